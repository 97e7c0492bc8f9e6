{{/* The entries of a configuration whose gates are on, as a JSON list without certificate authorities. Takes (list $ "mutating"). */}}
{{- define "koordinator.entries" -}}
{{- $root := first . -}}
{{- $v := $root.Values -}}
{{- $gates := include "koordinator.gates" $root | fromJson -}}
{{- $entries := list -}}
{{- if $gates.WebhookFramework -}}
{{- range $declared := index ($root.Files.Get "files/webhooks.yaml" | fromYaml) (last .) -}}
{{- $isServed := true -}}
{{- range $declared.gates -}}{{- if not (get $gates .) -}}{{- $isServed = false -}}{{- end -}}{{- end -}}
{{- if $isServed -}}
{{- $entry := deepCopy $declared.entry -}}
{{- $policy := $declared.failurePolicy -}}
{{- $_ := set $entry "failurePolicy" (get $v.webhookConfiguration.failurePolicy (toString $policy.value) | default $policy.otherwise) -}}
{{- $_ := set $entry "timeoutSeconds" (int $v.webhookConfiguration.timeoutSeconds) -}}
{{- $service := dict "name" "koordinator-webhook-service" "namespace" $v.installation.namespace "path" $declared.path "port" 443 -}}
{{- $_ := set $entry "clientConfig" (dict "service" $service) -}}
{{- if $entry.matchConditions -}}
{{- $_ := unset $entry "matchConditions" -}}
{{- if semverCompare ">= 1.28-0" $root.Capabilities.KubeVersion.Version -}}
{{- $excluded := append $v.webhookConfiguration.excludedNamespaces $v.installation.namespace | uniq -}}
{{- $outside := dict "name" "outside-system-namespaces" "expression" (printf "!(request.namespace in %s)" (toJson $excluded)) -}}
{{- $_ := set $entry "matchConditions" (prepend $v.webhookConfiguration.matchConditions $outside) -}}
{{- end -}}
{{- end -}}
{{- $entries = append $entries $entry -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $entries -}}
{{- end -}}

{{/*
One configuration. The annotation `template` is what the manager rebuilds entries from. Takes (list $ KIND NAME "mutating").
*/}}
{{- define "koordinator.configuration" -}}
{{- $root := first . -}}
{{- $kind := index . 1 -}}
{{- $name := index . 2 -}}
{{- $entries := include "koordinator.entries" (list $root (index . 3)) | fromJsonArray -}}
{{- $template := toJson $entries -}}
{{- $live := lookup "admissionregistration.k8s.io/v1" $kind "" $name -}}
{{- $isLeft := include "koordinator.isLeft" $live -}}
{{- if not $isLeft -}}
{{- $bundles := dict -}}
{{- $some := "" -}}
{{- range $live.webhooks -}}
{{- $bundle := default "" .clientConfig.caBundle -}}
{{- if not (has $bundle (list "" "Cg==")) -}}
{{- $_ := set $bundles .name $bundle -}}
{{- $some = $bundle -}}
{{- end -}}
{{- end -}}
{{- range $entries -}}
{{- $bundle := get $bundles .name | default $some -}}
{{- if $bundle -}}{{- $_ := set .clientConfig "caBundle" $bundle -}}{{- end -}}
{{- end -}}
{{- end -}}
apiVersion: admissionregistration.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $name }}
  annotations:
    template: {{ toJson $template }}
    {{- if $isLeft }}
    {{ include "koordinator.leaves" . }}: caBundle
    {{- end }}
webhooks: {{- if $entries }}
{{ toYaml $entries }}
{{- else }} []
{{- end }}
{{- end -}}
