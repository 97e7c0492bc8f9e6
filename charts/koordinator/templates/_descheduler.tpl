{{/*
How far evictions are planned before they are made: the field `planning` of a profile. Where no value says it, what is in the cluster stays: a
configuration without the field, as those of the original, has the program's default; a new installation enforces.
*/}}
{{- define "koordinator.planning" -}}
{{- $planning := toString .Values.descheduler.planning -}}
{{- if not $planning -}}
{{- $planning = "enforce" -}}
{{- with lookup "v1" "ConfigMap" .Values.installation.namespace "koord-descheduler-config" -}}
{{- $document := get (default dict .data) "koord-descheduler-config" | fromYaml -}}
{{- $planning = dig "planning" "report" (first (default (list dict) $document.profiles)) -}}
{{- end -}}
{{- end -}}
{{- /* YAML reads a bare off as false. */ -}}
{{- toString $planning | replace "false" "off" -}}
{{- end -}}

{{/* Which namespaces the pods may be in that are evicted. */}}
{{- define "koordinator.evictionNamespaces" -}}
{{- with .Values.descheduler.evictionNamespaces -}}
include: {{ toJson . }}
{{- else -}}
exclude: [kube-system, {{ .Values.installation.namespace }}]
{{- end -}}
{{- end -}}

{{/* The configuration of koord-descheduler: the one that a value gives, or what the other values make of the original's. */}}
{{- define "koordinator.deschedulerConfig" -}}
{{- $descheduler := .Values.descheduler -}}
{{- $namespaces := include "koordinator.evictionNamespaces" . -}}
{{- if $descheduler.config -}}
{{ toYaml $descheduler.config }}
{{- else -}}
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
enableContentionProfiling: true
enableProfiling: true
healthzBindAddress: 0.0.0.0:{{ $descheduler.port }}
metricsBindAddress: 0.0.0.0:{{ $descheduler.port }}
leaderElection:
  leaderElect: true
  resourceLock: leases
  resourceName: koord-descheduler
  resourceNamespace: {{ .Values.installation.namespace }}
deschedulingInterval: 10s
dryRun: false
profiles:
- name: koord-descheduler
  planning: {{ include "koordinator.planning" . | quote }}
  plugins:
    deschedule:
      disabled: [{name: "*"}]
    # To move pods away from nodes whose usage is high:
    # balance:
    #   enabled: [{name: LowNodeLoad}]
    evict:
      disabled: [{name: "*"}]
      enabled: [{name: MigrationController}]
  pluginConfig:
  - name: MigrationController
    args:
      apiVersion: descheduler/v1alpha2
      kind: MigrationControllerArgs
      evictionPolicy: Eviction
      namespaces:
        {{ $namespaces }}
      evictQPS: "10"
      evictBurst: 1
  - name: LowNodeLoad
    args:
      apiVersion: descheduler/v1alpha2
      kind: LowNodeLoadArgs
      evictableNamespaces:
        {{ $namespaces }}
      useDeviationThresholds: false
      lowThresholds: {cpu: 45, memory: 55}
      highThresholds: {cpu: 75, memory: 80}
{{- end -}}
{{- end -}}
