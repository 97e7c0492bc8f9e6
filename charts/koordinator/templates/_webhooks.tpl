{{/*
What becomes of requests that break the derived rules: off, warn or enforce. A file of values turns a bare off into false.
*/}}
{{- define "koordinator.declaredWebhooks" -}}
{{- $mode := toString (.Values.manager.declaredWebhooks | default "") -}}
{{- if eq (toString .Values.manager.declaredWebhooks) "false" -}}{{- $mode = "off" -}}{{- end -}}
{{- if $mode -}}{{ $mode }}
{{- else -}}
{{- $stated := (include "koordinator.gatesStated" . | fromJson).DeclaredWebhooks -}}
{{- if kindIs "bool" $stated -}}{{ $stated | ternary "enforce" "off" }}{{- else -}}warn{{- end -}}
{{- end -}}
{{- end -}}

{{/* The entries of a configuration that the manager serves, as a JSON list without certificate authorities. Takes (list $ "mutating"). */}}
{{- define "koordinator.entries" -}}
{{- $root := first . -}}
{{- $kind := last . -}}
{{- $v := $root.Values -}}
{{- $gates := include "koordinator.gates" $root | fromJson -}}
{{- $mode := include "koordinator.declaredWebhooks" $root -}}
{{- $knowsConditions := semverCompare ">= 1.28-0" $root.Capabilities.KubeVersion.Version -}}
{{- $files := $root.Files.Get "files/webhooks.yaml" | fromYaml -}}
{{- $entries := list -}}
{{- if $gates.WebhookFramework -}}
{{- range $declared := index $files $kind -}}
{{- $isServed := true -}}
{{- range $declared.gates -}}{{- if not (get $gates .) -}}{{- $isServed = false -}}{{- end -}}{{- end -}}
{{- $isAdvisory := and $declared.derived (eq $mode "warn") -}}
{{- if and $declared.derived (eq $mode "off") -}}{{- $isServed = false -}}{{- end -}}
{{- /* Nothing is changed, and without conditions the API server would ask about what Koordinator itself writes. */ -}}
{{- if and $isAdvisory (or (eq $kind "mutating") (not $knowsConditions)) -}}{{- $isServed = false -}}{{- end -}}
{{- if $isServed -}}
{{- $entry := deepCopy $declared.entry -}}
{{- $policy := $declared.failurePolicy -}}
{{- $_ := set $entry "failurePolicy" (get $v.webhookConfiguration.failurePolicy (toString $policy.value) | default $policy.otherwise) -}}
{{- $_ := set $entry "timeoutSeconds" (int $v.webhookConfiguration.timeoutSeconds) -}}
{{- $service := dict "name" "koordinator-webhook-service" "namespace" $v.installation.namespace "path" $declared.path "port" 443 -}}
{{- $_ := set $entry "clientConfig" (dict "service" $service) -}}
{{- if $entry.matchConditions -}}
{{- $_ := unset $entry "matchConditions" -}}
{{- if $knowsConditions -}}
{{- $excluded := append $v.webhookConfiguration.excludedNamespaces $v.installation.namespace | uniq -}}
{{- $outside := dict "name" "outside-system-namespaces" "expression" (printf "!(request.namespace in %s)" (toJson $excluded)) -}}
{{- $_ := set $entry "matchConditions" (prepend $v.webhookConfiguration.matchConditions $outside) -}}
{{- end -}}
{{- end -}}
{{- if $isAdvisory -}}
{{- $advisory := $files.advisory -}}
{{- $_ := set $entry "failurePolicy" $advisory.failurePolicy -}}
{{- $_ := set $entry "timeoutSeconds" (min (int $entry.timeoutSeconds) (int $advisory.timeoutSeconds) | int) -}}
{{- $conditions := toJson $advisory.matchConditions | replace "NAMESPACE" $v.installation.namespace | fromJsonArray -}}
{{- $_ := set $entry "matchConditions" (concat (default list $entry.matchConditions) $conditions) -}}
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
