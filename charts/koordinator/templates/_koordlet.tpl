{{/* Every gate of koordlet with whether it is on, as JSON. A gate's own setting beats AllAlpha and AllBeta. */}}
{{- define "koordinator.koordletGates" -}}
{{- $known := (.Files.Get "files/gates.yaml" | fromYaml).koordlet -}}
{{- $names := list "AllAlpha" "AllBeta" -}}
{{- range $known -}}{{- $names = append $names .name -}}{{- end -}}
{{- $set := dict -}}
{{- range $word := splitList "," (include "koordinator.koordletFeatures" .) -}}
{{- $word = trim $word -}}
{{- if $word -}}
{{- $name := trim (first (splitList "=" $word)) -}}
{{- if not (regexMatch `^[^=]*=\s*(1|t|T|true|TRUE|True|0|f|F|false|FALSE|False)$` $word) -}}
{{- fail (printf "koordlet.features: %q is not of the form Name=true or Name=false" $word) -}}
{{- end -}}
{{- if not (has $name $names) -}}
{{- fail (printf "koordlet.features: koordlet has no gate %q, and would not start; it has %s" $name (join ", " (sortAlpha $names))) -}}
{{- end -}}
{{- $_ := set $set $name (regexMatch `=\s*(1|t|T|true|TRUE|True)$` $word) -}}
{{- end -}}
{{- end -}}
{{- $gates := dict -}}
{{- range $known -}}
{{- $on := .default -}}
{{- if hasKey $set .name -}}{{- $on = get $set .name -}}
{{- else if and .all (hasKey $set .all) -}}{{- $on = get $set .all -}}
{{- end -}}
{{- $_ := set $gates .name $on -}}
{{- end -}}
{{- toJson $gates -}}
{{- end -}}

{{/* The feature gates of koordlet; without a value those that the original's chart sets. */}}
{{- define "koordinator.koordletFeatures" -}}
{{- default "BECPUEvict=true,BEMemoryEvict=true,CgroupReconcile=true,Accelerators=true" (toString .Values.koordlet.features) -}}
{{- end -}}

{{/*
The security context of the container: what the values say, and the capabilities that the gates need. A root that owns the files of cgroups writes them
without any; an agent that only observes has none.
*/}}
{{- define "koordinator.koordletSecurity" -}}
{{- $koordlet := .Values.koordlet -}}
{{- $gates := include "koordinator.koordletGates" . | fromJson -}}
{{- $context := deepCopy $koordlet.securityContext -}}
{{- $added := list -}}
{{- if $gates.CPICollector -}}{{- $added = append $added "PERFMON" -}}{{- end -}}
{{- if not $koordlet.observeOnly -}}
{{- if $gates.CoreSched -}}{{- $added = append $added "SYS_PTRACE" -}}{{- end -}}
{{- if $gates.TCNetworkQoS -}}{{- $added = append $added "NET_ADMIN" -}}{{- end -}}
{{- if $gates.OOMScoreAdj -}}{{- $added = concat $added (list "DAC_OVERRIDE" "SYS_RESOURCE") -}}{{- end -}}
{{- if $koordlet.pressureTriggers -}}{{- $added = append $added "SYS_RESOURCE" -}}{{- end -}}
{{- end -}}
{{- if $koordlet.privileged -}}
{{- $context = merge (dict "privileged" true) (omit $context "allowPrivilegeEscalation" "capabilities") -}}
{{- else if $added -}}
{{- $capabilities := default dict $context.capabilities -}}
{{- $added = concat (default list $capabilities.add) $added | uniq | sortAlpha -}}
{{- $context = merge (dict "capabilities" (merge (dict "add" $added) $capabilities)) $context -}}
{{- end -}}
{{- toYaml $context -}}
{{- end -}}

{{/*
Folders of the node in the container, as a list of objects: name, path in the container, path on the node, whether it is written, and whether what is mounted on the node
later is seen.
*/}}
{{- define "koordinator.koordletFolders" -}}
{{- $koordlet := .Values.koordlet -}}
{{- $dirs := $koordlet.hostDirs -}}
{{- $gates := include "koordinator.koordletGates" . | fromJson -}}
{{- $writes := not $koordlet.observeOnly -}}
{{- $sockets := trimSuffix "/" $dirs.koordletSockDir -}}
{{- $folders := list
  (dict "name" "host-cgroup" "path" "/host-cgroup/" "host" "/sys/fs/cgroup/" "writes" $writes)
  (dict "name" "host-sys" "path" "/host-sys/" "host" "/sys/" "writes" (and $writes $gates.ColdPageCollector))
  (dict "name" "host-sys-fs" "path" "/host-sys-fs/" "host" "/sys/fs/" "writes" $writes "follows" true)
  (dict "name" "host-run" "path" "/host-run/" "host" "/run/" "follows" true)
  (dict "name" "host-var-run" "path" "/host-var-run/" "host" "/var/run/" "follows" true)
  (dict "name" "host-kubernetes" "path" "/etc/kubernetes/" "host" $dirs.kubeletConfigDir)
  (dict "name" "host-kubelet" "path" "/var/lib/kubelet/" "host" $dirs.kubeletLibDir "follows" true)
  (dict "name" "xpu-device-infos" "path" "/var/run/koordlet/xpu-device-infos/" "host" (printf "%s/xpu-device-infos/" $sockets) "type" "DirectoryOrCreate") -}}
{{- if $writes -}}
{{- $folders = concat $folders (list
  (dict "name" "host-var-run-koordlet" "path" "/host-var-run-koordlet/" "host" $dirs.koordletSockDir "writes" true "type" "DirectoryOrCreate")
  (dict "name" "host-etc-hookserver" "path" "/host-etc-hookserver/" "host" $dirs.koordProxyRegisterDir "writes" true "type" "DirectoryOrCreate")
  (dict "name" "prediction-checkpoints" "path" "/prediction-checkpoints/" "host" $dirs.predictionCheckpointDir "writes" true "type" "DirectoryOrCreate")) -}}
{{- if $gates.HamiCoreVGPUMonitor -}}
{{- $folders = append $folders (dict "name" "host-vgpu" "path" "/usr/local/vgpu/containers/" "host" "/usr/local/vgpu/containers/" "writes" true "type" "DirectoryOrCreate") -}}
{{- end -}}
{{- if $gates.TerwayQoS -}}
{{- $folders = append $folders (dict "name" "host-terway" "path" "/host-var-lib/terway/" "host" "/var/lib/terway/" "writes" true) -}}
{{- end -}}
{{- if $gates.PodResourcesProxy -}}
{{- $folders = append $folders
  (dict "name" "pod-resources" "path" "/var/run/koordlet/pod-resources/" "host" $dirs.podResourcesProxyPath "writes" true "type" "DirectoryOrCreate") -}}
{{- end -}}
{{- end -}}
{{- if $gates.AuditEvents -}}
{{- $folders = append $folders
  (dict "name" "audit-log" "path" "/var/log/koordlet/" "host" $dirs.auditLogDir "writes" true "type" "DirectoryOrCreate") -}}
{{- end -}}
{{- toJson $folders -}}
{{- end -}}
