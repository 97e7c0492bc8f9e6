{{/*
koord-scheduler and koord-descheduler: their configuration, Deployment, disruption budget, network policy and PodMonitor. Takes a dict with root,
component (the key of its values), config (a text), args, env (both lists), securePort, and beside: the configurations of other components that it reads,
by component; each is mounted in a folder of that name.
*/}}
{{- define "koordinator.component" -}}
{{- $root := .root -}}
{{- $values := index .root.Values .component -}}
{{- $name := printf "koord-%s" .component -}}
{{- $namespace := .root.Values.installation.namespace -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}-config
  namespace: {{ $namespace }}
data:
  {{ $name }}-config: |
    {{- .config | nindent 4 }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  labels:
    koord-app: {{ $name }}
spec:
  replicas: {{ $values.replicas }}
  minReadySeconds: 3
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: 100%
  selector:
    matchLabels:
      koord-app: {{ $name }}
  template:
    metadata:
      labels:
        koord-app: {{ $name }}
      annotations:
        # The configuration is read at the start.
        checksum/config: {{ sha256sum .config }}
        {{- range $component, $config := .beside }}
        checksum/{{ $component }}-config: {{ sha256sum $config }}
        {{- end }}
    spec:
      serviceAccountName: {{ $name }}
      terminationGracePeriodSeconds: 10
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
      {{- toYaml . | nindent 6 }}
      {{- end }}
      hostNetwork: {{ $values.hostNetwork }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
      {{- toYaml . | nindent 6 }}
      {{- end }}
      affinity:
        {{- with $values.nodeAffinity }}
        nodeAffinity:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            podAffinityTerm:
              topologyKey: kubernetes.io/hostname
              labelSelector:
                matchExpressions:
                - key: koord-app
                  operator: In
                  values: [{{ $name }}]
      {{- with semverCompare ">= 1.19-0" $root.Capabilities.KubeVersion.Version | ternary $values.podSecurityContext (omit $values.podSecurityContext "seccompProfile") }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
      - name: {{ .component }}
        image: {{ include "koordinator.imageOf" (list $root .component) }}
        imagePullPolicy: {{ $values.image.pullPolicy }}
        command: [/{{ $name }}]
        args:
        {{- range .args }}
        - {{ . }}
        {{- end }}
        {{- range $values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
        {{- with .env }}
        env:
        {{- toYaml . | nindent 8 }}
        {{- end }}
        ports:
        - name: metrics
          containerPort: {{ $values.port }}
          protocol: TCP
        # Caches of large clusters take their time.
        startupProbe:
          httpGet:
            path: /healthz
            port: metrics
          periodSeconds: 2
          failureThreshold: 60
        livenessProbe:
          httpGet:
            path: /healthz
            port: metrics
          periodSeconds: 10
          failureThreshold: 6
        readinessProbe:
          httpGet:
            path: /readyz
            port: metrics
          periodSeconds: 5
        resources:
          {{- toYaml $values.resources | nindent 10 }}
        {{- with $values.securityContext }}
        securityContext:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        volumeMounts:
        - name: config
          mountPath: /config
          readOnly: true
        {{- range $component, $_ := .beside }}
        - name: {{ $component }}-config
          mountPath: /{{ $component }}
          readOnly: true
        {{- end }}
      volumes:
      - name: config
        configMap:
          name: {{ $name }}-config
          defaultMode: 420
          items:
          - key: {{ $name }}-config
            path: {{ $name }}.config
      {{- range $component, $_ := .beside }}
      - name: {{ $component }}-config
        configMap:
          name: koord-{{ $component }}-config
          defaultMode: 420
          items:
          - key: koord-{{ $component }}-config
            path: koord-{{ $component }}.config
      {{- end }}
{{- $budget := $values.podDisruptionBudget }}
{{- if $budget.enabled }}
---
apiVersion: {{ semverCompare ">= 1.21-0" $root.Capabilities.KubeVersion.Version | ternary "policy/v1" "policy/v1beta1" }}
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
spec:
  maxUnavailable: {{ $budget.maxUnavailable }}
  selector:
    matchLabels:
      koord-app: {{ $name }}
{{- end }}
{{- $policy := $values.networkPolicy }}
{{- if $policy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
spec:
  podSelector:
    matchLabels:
      koord-app: {{ $name }}
  # Egress is not restricted: the addresses and ports of API servers differ between clusters.
  policyTypes: [Ingress]
  ingress:
  # Health and metrics. Probes of the kubelet come from the node of the pod, which no policy blocks.
  - ports:
    - port: metrics
      protocol: TCP
    {{- with $policy.metricsFrom }}
    from:
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- $secure := include "koordinator.flagOf" (list $root .component "secure-port" .securePort) | int }}
  {{- if $secure }}
  # The secure port, where the API server decides who may read what.
  - ports:
    - port: {{ $secure }}
      protocol: TCP
  {{- end }}
{{- end }}
{{- if $values.monitorEnabled }}
---
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ $name }}-metrics-podmonitor
  namespace: {{ $root.Release.Namespace }}
spec:
  jobLabel: koord-app
  namespaceSelector:
    matchNames: [{{ $namespace }}]
  selector:
    matchLabels:
      koord-app: {{ $name }}
  podMetricsEndpoints:
  - port: metrics
    path: /metrics
    interval: 30s
{{- end }}
{{- end -}}

{{/*
The ServiceAccount of koord-scheduler or koord-descheduler, and its roles. Takes a dict with root, component, rules (with cluster and namespace), binding (the
name of the ClusterRoleBinding) and lease (the name of the Lease that it may keep).
*/}}
{{- define "koordinator.componentRoles" -}}
{{- $name := printf "koord-%s" .component -}}
{{- $namespace := .root.Values.installation.namespace -}}
{{- $lease := .lease -}}
{{- range .rules.namespace -}}
{{- if and .resourceNames (has "leases" .resources) -}}{{- $_ := set . "resourceNames" (list $lease) -}}{{- end -}}
{{- end -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  namespace: {{ $namespace }}
  {{- with .root.Values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}-role
rules:
{{- toYaml .rules.cluster | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .binding }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}-role
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ $namespace }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}-role
  namespace: {{ $namespace }}
rules:
{{- toYaml .rules.namespace | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}-rolebinding
  namespace: {{ $namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ $name }}-role
subjects:
- kind: ServiceAccount
  name: {{ $name }}
  namespace: {{ $namespace }}
{{- end -}}

{{/* What a flag of a component says, which the further flags may have; what is given otherwise. Takes (list $ COMPONENT FLAG OTHERWISE). */}}
{{- define "koordinator.flagOf" -}}
{{- $flag := index . 2 -}}
{{- $found := index . 3 -}}
{{- $isNext := false -}}
{{- range $word := (index (first .).Values (index . 1)).extraArgs -}}
{{- if $isNext -}}{{- $found = $word -}}{{- $isNext = false -}}{{- end -}}
{{- if regexMatch (printf "^--?%s=" $flag) $word -}}{{- $found = regexReplaceAll "^[^=]*=" $word "" -}}{{- end -}}
{{- if regexMatch (printf "^--?%s$" $flag) $word -}}{{- $isNext = true -}}{{- end -}}
{{- end -}}
{{- $found -}}
{{- end -}}

{{/*
The name of the Lease of a component: that of its flags, or of its configuration; OTHERWISE where a configuration is given and has none. Takes
(list $ COMPONENT OTHERWISE).
*/}}
{{- define "koordinator.leaseOf" -}}
{{- $otherwise := index . 2 -}}
{{- $lease := printf "koord-%s" (index . 1) -}}
{{- with (index (first .).Values (index . 1)).config -}}
{{- $lease = dig "leaderElection" "resourceName" "" . | default $otherwise -}}
{{- end -}}
{{- include "koordinator.flagOf" (list (first .) (index . 1) "leader-elect-resource-name" $lease) -}}
{{- end -}}
