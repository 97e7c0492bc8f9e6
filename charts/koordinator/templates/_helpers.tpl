{{/*
Fills in what a values file lacks, as `--reuse-values` of an older release does: sections, and what stands directly in a section.
What is deeper was decided by whoever wrote the section; `--set manager.podSecurityContext.runAsUser=null` stays without a user.
Every template begins with this.
*/}}
{{- define "koordinator.defaults" -}}
{{- $defaults := .Files.Get "files/defaults.yaml" | fromYaml -}}
{{- include "koordinator.fill" (list .Values $defaults) -}}
{{- range $section, $default := $defaults -}}
{{- if and (kindIs "map" $default) (kindIs "map" (index $.Values $section)) -}}
{{- include "koordinator.fill" (list (index $.Values $section) $default) -}}
{{- end -}}
{{- end -}}
{{- range list "failurePolicy" -}}
{{- include "koordinator.fill" (list (index $.Values.webhookConfiguration .) (index $defaults.webhookConfiguration .)) -}}
{{- end -}}
{{- range list "metrics" "healthProbe" "podDisruptionBudget" "networkPolicy" "image" "prometheusRule" "dashboards" -}}
{{- include "koordinator.fill" (list (index $.Values.manager .) (index $defaults.manager .)) -}}
{{- end -}}
{{- range list "log" "image" "deviceShare" "podDisruptionBudget" "networkPolicy" "prometheusRule" "dashboards" -}}
{{- include "koordinator.fill" (list (index $.Values.scheduler .) (index $defaults.scheduler .)) -}}
{{- end -}}
{{- range list "log" "image" "podDisruptionBudget" "networkPolicy" "prometheusRule" "dashboards" -}}
{{- include "koordinator.fill" (list (index $.Values.descheduler .) (index $defaults.descheduler .)) -}}
{{- end -}}
{{- range list "log" "image" "hostDirs" "metrics" "networkPolicy" "prometheusRule" "dashboards" -}}
{{- include "koordinator.fill" (list (index $.Values.koordlet .) (index $defaults.koordlet .)) -}}
{{- end -}}
{{- end -}}

{{- define "koordinator.fill" -}}
{{- $values := first . -}}
{{- range $key, $default := last . -}}
{{- if not (hasKey $values $key) -}}
{{- $_ := set $values $key $default -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Values files of the original name its releases, and so does `--reuse-values`; what they mean is the program of this chart.
Takes (list $ "manager"), (list $ "scheduler"), (list $ "descheduler") or (list $ "koordlet").
*/}}
{{- define "koordinator.namesOriginalOf" -}}
{{- $image := (index (first .).Values (last .)).image -}}
{{- $tag := toString (default "" $image.tag) -}}
{{- $isOriginal := regexMatch `^v?(0\.[1-7]|1\.[0-8])\.[0-9]+$` $tag -}}
{{- if and $isOriginal (regexMatch (printf `^koordinator-?sh/(koord-)?%s$` (last .)) $image.repository) -}}
{{- $tag -}}
{{- end -}}
{{- end -}}

{{/* The image of a program, by the same arguments. */}}
{{- define "koordinator.imageOf" -}}
{{- $root := first . -}}
{{- $image := (index $root.Values (last .)).image -}}
{{- $tag := $image.tag -}}
{{- if or (not $tag) (include "koordinator.namesOriginalOf" .) -}}
{{- $tag = printf "v%s-rust" $root.Chart.AppVersion -}}
{{- end -}}
{{- join "/" (compact (list $root.Values.imageRepositoryHost $image.repository)) -}}:{{- toString $tag -}}
{{- end -}}

{{/*
The gates of the manager of which `featureGates` says something, by their name or by that of their group, with what it says, as JSON. A gate's own
setting beats AllAlpha and AllBeta.
*/}}
{{- define "koordinator.gatesStated" -}}
{{- $known := (.Files.Get "files/gates.yaml" | fromYaml).gates -}}
{{- $names := list "AllAlpha" "AllBeta" -}}
{{- range $known -}}{{- $names = append $names .name -}}{{- end -}}
{{- $set := dict -}}
{{- range $word := splitList "," (toString .Values.featureGates) -}}
{{- $word = trim $word -}}
{{- if $word -}}
{{- $name := trim (first (splitList "=" $word)) -}}
{{- if not (regexMatch `^[^=]*=\s*(1|t|T|true|TRUE|True|0|f|F|false|FALSE|False)$` $word) -}}
{{- fail (printf "featureGates: %q is not of the form Name=true or Name=false" $word) -}}
{{- end -}}
{{- if not (has $name $names) -}}
{{- fail (printf "featureGates: the manager has no gate %q, and would not start; it has %s" $name (join ", " (sortAlpha $names))) -}}
{{- end -}}
{{- $_ := set $set $name (regexMatch `=\s*(1|t|T|true|TRUE|True)$` $word) -}}
{{- end -}}
{{- end -}}
{{- $gates := dict -}}
{{- range $known -}}
{{- if hasKey $set .name -}}
{{- $_ := set $gates .name (get $set .name) -}}
{{- else if and .all (hasKey $set .all) -}}
{{- $_ := set $gates .name (get $set .all) -}}
{{- end -}}
{{- end -}}
{{- toJson $gates -}}
{{- end -}}

{{/* Every gate that the manager knows with whether it is on, as JSON. */}}
{{- define "koordinator.gates" -}}
{{- $stated := include "koordinator.gatesStated" . | fromJson -}}
{{- $gates := dict -}}
{{- range (.Files.Get "files/gates.yaml" | fromYaml).gates -}}
{{- $on := .default -}}
{{- if hasKey $stated .name -}}{{- $on = get $stated .name -}}{{- end -}}
{{- $_ := set $gates .name $on -}}
{{- end -}}
{{- toJson $gates -}}
{{- end -}}

{{/*
The annotation on objects of which the manager fills in a part: the chart has never written that part, so nothing that Helm does takes it away.
An object that another installation made has had it from there; it is repeated from the cluster, because Helm deletes what a release no longer
names. Once repeated it has to be repeated for ever.
*/}}
{{- define "koordinator.leaves" -}}koordinator.sh/left-to-the-manager{{- end -}}

{{/* The live object is empty where there is none, and where templates are rendered without a cluster. */}}
{{- define "koordinator.isLeft" -}}
{{- $annotations := dig "metadata" "annotations" dict . | default dict -}}
{{- if or (empty .) (hasKey $annotations (include "koordinator.leaves" .)) -}}true{{- end -}}
{{- end -}}

{{/* Annotations that keep an object when the release is uninstalled. */}}
{{- define "koordinator.keep" -}}
{{- if ne (toString .Values.crds.keep) "false" -}}
helm.sh/resource-policy: keep
{{- end -}}
{{- end -}}

{{/*
Whether this release owns a live object that nothing keeps: what is not rendered any more would be deleted with all that depends on it.
Takes (list $ LIVE).
*/}}
{{- define "koordinator.wouldGo" -}}
{{- $root := first . -}}
{{- $annotations := dig "metadata" "annotations" dict (last .) | default dict -}}
{{- $isOurs := and (eq (toString (get $annotations "meta.helm.sh/release-name")) $root.Release.Name)
  (eq (toString (get $annotations "meta.helm.sh/release-namespace")) $root.Release.Namespace) -}}
{{- if and (ne (toString $root.Values.crds.keep) "false") $isOurs (ne (toString (get $annotations "helm.sh/resource-policy")) "keep") -}}true{{- end -}}
{{- end -}}
