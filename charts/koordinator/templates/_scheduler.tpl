{{/* Whether a feature gate of koord-scheduler is on that is off by default: the last word about it counts, or else the last about AllAlpha. */}}
{{- define "koordinator.schedulerHas" -}}
{{- $on := dict -}}
{{- range $word := splitList "," (toString .root.Values.scheduler.featureGates) -}}
{{- $_ := set $on (trim (first (splitList "=" $word))) (regexMatch `=\s*(1|t|T|true|TRUE|True)\s*$` $word) -}}
{{- end -}}
{{- if ternary (get $on .gate) (get $on "AllAlpha") (hasKey $on .gate) -}}true{{- end -}}
{{- end -}}

{{/* The configuration of koord-scheduler: the one that a value gives, or what the other values make of the original's. */}}
{{- define "koordinator.schedulerConfig" -}}
{{- $scheduler := .Values.scheduler -}}
{{- $namespace := .Values.installation.namespace -}}
{{- if $scheduler.config -}}
{{ toYaml $scheduler.config }}
{{- else -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceLock: leases
  resourceName: koord-scheduler
  resourceNamespace: {{ $namespace }}
profiles:
- schedulerName: koord-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      scoringStrategy:
        type: LeastAllocated
        resources:
        - {name: cpu, weight: 1}
        - {name: memory, weight: 1}
        - {name: kubernetes.io/batch-cpu, weight: 1}
        - {name: kubernetes.io/batch-memory, weight: 1}
  - name: LoadAwareScheduling
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: LoadAwareSchedulingArgs
      filterExpiredNodeMetrics: false
      nodeMetricExpirationSeconds: 300
      resourceWeights: {cpu: 1, memory: 1}
      usageThresholds: {cpu: 65, memory: 95}
      estimatedScalingFactors: {cpu: 85, memory: 70}
  - name: ElasticQuota
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: ElasticQuotaArgs
      quotaGroupNamespace: {{ $namespace }}
  - name: Coscheduling
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: CoschedulingArgs
      {{- if $scheduler.enableJobPreemption }}
      enablePreemption: true
      {{- end }}
      awareNetworkTopology: true
  {{- with $scheduler.deviceShare.gpuShareUnsupportedModels }}
  - name: DeviceShare
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: DeviceShareArgs
      gpuShareUnsupportedModels:
      {{- toYaml . | nindent 6 }}
  {{- end }}
  plugins:
    preEnqueue:
      enabled: [{name: Coscheduling}]
    queueSort:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}]
    preFilter:
      enabled:
      - name: SchedulingHint
      - name: Coscheduling
      - name: Reservation
      - name: NodeNUMAResource
      - name: DeviceShare
      - name: ElasticQuota
    filter:
      enabled:
      - name: Reservation
      - name: LoadAwareScheduling
      - name: NodeNUMAResource
      - name: DeviceShare
    postFilter:
      disabled: [{name: "*"}]
      enabled:
      - name: Reservation
      - name: Coscheduling
      - name: ElasticQuota
      {{- if not $scheduler.enableJobPreemption }}
      - name: DefaultPreemption
      {{- end }}
    preScore:
      enabled: [{name: Reservation}, {name: Coscheduling}]
    score:
      enabled:
      - {name: LoadAwareScheduling, weight: 1}
      - {name: NodeNUMAResource, weight: 1}
      - {name: DeviceShare, weight: 1}
      - {name: Reservation, weight: 5000}
      - {name: Coscheduling, weight: 1}
    reserve:
      enabled:
      - name: Reservation
      - name: LoadAwareScheduling
      - name: NodeNUMAResource
      - name: DeviceShare
      - name: Coscheduling
      - name: ElasticQuota
    permit:
      enabled: [{name: Coscheduling}]
    preBind:
      enabled:
      - name: NodeNUMAResource
      - name: DeviceShare
      - name: Reservation
      - name: Coscheduling
      - name: DefaultPreBind
    bind:
      disabled: [{name: "*"}]
      enabled: [{name: Reservation}, {name: DefaultBinder}]
    postBind:
      enabled: [{name: Coscheduling}]
{{- end -}}
{{- end -}}
