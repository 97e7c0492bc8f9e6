//! The types of pods: the metadata, the spec, and its containers with what is most often patched in them.

use super::{
    GoField, GoKind,
    GoKind::{Amounts, Flag, Int32, Int64, Names, Object, Objects, Opaque, Text, Texts},
    GoType,
};

const fn field(name: &'static str, kind: GoKind) -> GoField {
    GoField::new(name, kind)
}

const fn kept(name: &'static str, kind: GoKind) -> GoField {
    GoField::kept(name, kind)
}

const fn open(name: &'static str) -> GoType {
    GoType::open(name)
}

pub const POD: GoType = GoType {
    name: "v1.Pod",
    fields: &[
        field("apiVersion", Text("string")),
        field("kind", Text("string")),
        field("metadata", Object(METADATA)),
        field("spec", Object(POD_SPEC)),
        field("status", Object(open("v1.PodStatus"))),
    ],
};

/// What pods are made of.
pub const POD_TEMPLATE: GoType = GoType {
    name: "v1.PodTemplateSpec",
    fields: &[field("metadata", Object(METADATA)), field("spec", Object(POD_SPEC))],
};

/// The metadata of every kind.
pub const METADATA: GoType = GoType {
    name: "v1.ObjectMeta",
    fields: &[
        field("annotations", Texts),
        field("creationTimestamp", Opaque),
        kept("deletionGracePeriodSeconds", Int64),
        field("deletionTimestamp", Opaque),
        field("finalizers", Names),
        field("generateName", Text("string")),
        field("generation", Int64),
        field("labels", Texts),
        field("managedFields", Objects(open("v1.ManagedFieldsEntry"))),
        field("name", Text("string")),
        field("namespace", Text("string")),
        field("ownerReferences", Objects(open("v1.OwnerReference"))),
        field("resourceVersion", Text("string")),
        field("selfLink", Text("string")),
        field("uid", Text("types.UID")),
    ],
};

const POD_SPEC: GoType = GoType {
    name: "v1.PodSpec",
    fields: &[
        kept("activeDeadlineSeconds", Int64),
        field("affinity", Object(open("v1.Affinity"))),
        kept("automountServiceAccountToken", Flag),
        field("containers", Objects(CONTAINER)),
        field("dnsConfig", Object(open("v1.PodDNSConfig"))),
        field("dnsPolicy", Text("v1.DNSPolicy")),
        kept("enableServiceLinks", Flag),
        field("ephemeralContainers", Objects(EPHEMERAL_CONTAINER)),
        field("hostAliases", Objects(open("v1.HostAlias"))),
        field("hostIPC", Flag),
        field("hostNetwork", Flag),
        field("hostPID", Flag),
        kept("hostUsers", Flag),
        field("hostname", Text("string")),
        kept("hostnameOverride", Text("string")),
        field("imagePullSecrets", Objects(open("v1.LocalObjectReference"))),
        field("initContainers", Objects(CONTAINER)),
        field("nodeName", Text("string")),
        field("nodeSelector", Texts),
        field("os", Object(open("v1.PodOS"))),
        field("overhead", Amounts),
        kept("preemptionPolicy", Text("v1.PreemptionPolicy")),
        kept("priority", Int32),
        field("priorityClassName", Text("string")),
        field("readinessGates", Objects(open("v1.PodReadinessGate"))),
        field("resourceClaims", Objects(open("v1.PodResourceClaim"))),
        field("resources", Object(RESOURCES)),
        field("restartPolicy", Text("v1.RestartPolicy")),
        kept("runtimeClassName", Text("string")),
        field("schedulerName", Text("string")),
        field("schedulingGates", Objects(open("v1.PodSchedulingGate"))),
        field("securityContext", Object(open("v1.PodSecurityContext"))),
        field("serviceAccount", Text("string")),
        field("serviceAccountName", Text("string")),
        kept("setHostnameAsFQDN", Flag),
        kept("shareProcessNamespace", Flag),
        field("subdomain", Text("string")),
        kept("terminationGracePeriodSeconds", Int64),
        field("tolerations", Objects(TOLERATION)),
        field("topologySpreadConstraints", Objects(open("v1.TopologySpreadConstraint"))),
        field("volumes", Objects(open("v1.Volume"))),
        field("workloadRef", Object(open("v1.WorkloadReference"))),
    ],
};

const CONTAINER: GoType = GoType { name: "v1.Container", fields: &CONTAINER_FIELDS };

const EPHEMERAL_CONTAINER: GoType = GoType {
    name: "v1.EphemeralContainer",
    fields: &{
        // One field more than a container.
        let mut fields = [field("targetContainerName", Text("string")); CONTAINER_FIELDS.len() + 1];
        let mut index = 0;
        while index < CONTAINER_FIELDS.len() {
            fields[index] = CONTAINER_FIELDS[index];
            index += 1;
        }
        fields
    },
};

const CONTAINER_FIELDS: [GoField; 25] = [
    field("args", Names),
    field("command", Names),
    field("env", Objects(ENV_VAR)),
    field("envFrom", Objects(open("v1.EnvFromSource"))),
    field("image", Text("string")),
    field("imagePullPolicy", Text("v1.PullPolicy")),
    field("lifecycle", Object(open("v1.Lifecycle"))),
    field("livenessProbe", Object(open("v1.Probe"))),
    kept("name", Text("string")),
    field("ports", Objects(CONTAINER_PORT)),
    field("readinessProbe", Object(open("v1.Probe"))),
    field("resizePolicy", Objects(open("v1.ContainerResizePolicy"))),
    field("resources", Object(RESOURCES)),
    kept("restartPolicy", Text("v1.ContainerRestartPolicy")),
    field("restartPolicyRules", Objects(open("v1.ContainerRestartRule"))),
    field("securityContext", Object(open("v1.SecurityContext"))),
    field("startupProbe", Object(open("v1.Probe"))),
    field("stdin", Flag),
    field("stdinOnce", Flag),
    field("terminationMessagePath", Text("string")),
    field("terminationMessagePolicy", Text("v1.TerminationMessagePolicy")),
    field("tty", Flag),
    field("volumeDevices", Objects(open("v1.VolumeDevice"))),
    field("volumeMounts", Objects(VOLUME_MOUNT)),
    field("workingDir", Text("string")),
];

const RESOURCES: GoType = GoType {
    name: "v1.ResourceRequirements",
    fields: &[field("claims", Objects(open("v1.ResourceClaim"))), field("limits", Amounts), field("requests", Amounts)],
};

const ENV_VAR: GoType = GoType {
    name: "v1.EnvVar",
    fields: &[
        kept("name", Text("string")),
        field("value", Text("string")),
        field("valueFrom", Object(open("v1.EnvVarSource"))),
    ],
};

const CONTAINER_PORT: GoType = GoType {
    name: "v1.ContainerPort",
    fields: &[
        kept("containerPort", Int32),
        field("hostIP", Text("string")),
        field("hostPort", Int32),
        field("name", Text("string")),
        field("protocol", Text("v1.Protocol")),
    ],
};

const VOLUME_MOUNT: GoType = GoType {
    name: "v1.VolumeMount",
    fields: &[
        kept("mountPath", Text("string")),
        kept("mountPropagation", Text("v1.MountPropagationMode")),
        kept("name", Text("string")),
        field("readOnly", Flag),
        kept("recursiveReadOnly", Text("v1.RecursiveReadOnlyMode")),
        field("subPath", Text("string")),
        field("subPathExpr", Text("string")),
    ],
};

const TOLERATION: GoType = GoType {
    name: "v1.Toleration",
    fields: &[
        field("effect", Text("v1.TaintEffect")),
        field("key", Text("string")),
        field("operator", Text("v1.TolerationOperator")),
        kept("tolerationSeconds", Int64),
        field("value", Text("string")),
    ],
};
