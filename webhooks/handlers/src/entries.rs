//! The entries of the webhook configurations, and the permissions that the caches need.

use koord_resource::{
    admission::{FailurePolicy, Operation, Selector, WebhookEntry, WebhookKind},
    rbac::RbacRule,
};

/// Namespaces of the control plane are left alone.
const OUTSIDE_CONTROL_PLANE: Selector = Selector { expressions: &[("control-plane", "DoesNotExist", &[])] };

/// Nor are pods that the cluster itself runs on, wherever they are not labelled so.
const OUTSIDE_KUBE_SYSTEM: &[(&str, &str)] = &[("outside-kube-system", "request.namespace != 'kube-system'")];

const ENTRY: WebhookEntry = WebhookEntry {
    groups: &[""],
    versions: &["v1"],
    resources: &["pods"],
    review_versions: &["v1", "v1beta1"],
    ..WebhookEntry::BASE
};

const QUOTA: WebhookEntry = WebhookEntry {
    groups: &["scheduling.sigs.k8s.io"],
    versions: &["v1alpha1"],
    resources: &["elasticquotas"],
    ..ENTRY
};

pub(crate) const MUTATE_POD_CREATE: WebhookEntry = WebhookEntry {
    kind: WebhookKind::Mutating,
    name: "mpod-create.koordinator.sh",
    namespace_selector: Some(OUTSIDE_CONTROL_PLANE),
    match_conditions: OUTSIDE_KUBE_SYSTEM,
    ..ENTRY
};

pub(crate) const MUTATE_POD_UPDATE: WebhookEntry = WebhookEntry {
    name: "mpod-update.koordinator.sh",
    operations: &[Operation::Update],
    object_selector: Some(Selector { expressions: &[("pod.koordinator.sh/mutating-update", "In", &["true"])] }),
    ..MUTATE_POD_CREATE
};

pub(crate) const VALIDATE_POD: WebhookEntry = WebhookEntry {
    name: "vpod.koordinator.sh",
    operations: &[Operation::Create, Operation::Update],
    namespace_selector: Some(OUTSIDE_CONTROL_PLANE),
    match_conditions: OUTSIDE_KUBE_SYSTEM,
    ..ENTRY
};

pub(crate) const MUTATE_QUOTA: WebhookEntry =
    WebhookEntry { kind: WebhookKind::Mutating, name: "melasticquota.koordinator.sh", ..QUOTA };

pub(crate) const VALIDATE_QUOTA: WebhookEntry = WebhookEntry {
    name: "velasticquota.koordinator.sh",
    operations: &[Operation::Create, Operation::Update, Operation::Delete],
    ..QUOTA
};

pub(crate) const MUTATE_NODE_STATUS: WebhookEntry = WebhookEntry {
    kind: WebhookKind::Mutating,
    name: "mnode-status.koordinator.sh",
    resources: &["nodes/status"],
    operations: &[Operation::Create, Operation::Update],
    failure_policy: FailurePolicy::Ignore,
    ..ENTRY
};

pub(crate) const VALIDATE_NODE: WebhookEntry = WebhookEntry {
    name: "vnode.koordinator.sh",
    resources: &["nodes"],
    operations: &[Operation::Create, Operation::Update],
    failure_policy: FailurePolicy::Ignore,
    ..ENTRY
};

pub(crate) const VALIDATE_CONFIG_MAP: WebhookEntry = WebhookEntry {
    name: "vconfigmap.koordinator.sh",
    resources: &["configmaps"],
    operations: &[Operation::Create, Operation::Update, Operation::Delete],
    object_selector: Some(Selector {
        expressions: &[("koordinator.sh/configmap-type", "In", &["slo-controller-config"])],
    }),
    ..ENTRY
};

pub(crate) const VALIDATE_POD_BINDING: WebhookEntry = WebhookEntry {
    name: "vpodbinding.koordinator.sh",
    resources: &["pods/binding"],
    failure_policy: FailurePolicy::Ignore,
    ..ENTRY
};

pub(crate) const MUTATE_RESERVATION: WebhookEntry = WebhookEntry {
    kind: WebhookKind::Mutating,
    name: "mreservation-create.koordinator.sh",
    groups: &["scheduling.koordinator.sh"],
    versions: &["v1alpha1"],
    resources: &["reservations"],
    ..ENTRY
};

const fn follow(group: &'static str, resource: &'static str) -> RbacRule {
    RbacRule { group, resource, names: &[], verbs: &["list", "watch"], urls: &[], namespace: None }
}

pub(crate) const POD_RULES: [RbacRule; 5] = [
    follow("config.koordinator.sh", "clustercolocationprofiles"),
    follow("", "namespaces"),
    follow("scheduling.k8s.io", "priorityclasses"),
    follow("quota.koordinator.sh", "elasticquotaprofiles"),
    QUOTA_RULES[0],
];

/// Admitted pods are charged to their quota; a ConfigMap says which labels they must have.
pub(crate) const POD_CHECK_RULES: [RbacRule; 3] = [
    RbacRule { verbs: &["get", "list", "patch", "watch"], ..follow("scheduling.sigs.k8s.io", "elasticquotas") },
    follow("", "pods"),
    follow("", "configmaps"),
];

pub(crate) const BINDING_RULES: [RbacRule; 1] = [follow("", "pods")];

pub(crate) const CONFIG_MAP_RULES: [RbacRule; 1] = [follow("", "nodes")];

pub(crate) const NODE_RULES: [RbacRule; 1] = [follow("", "configmaps")];

pub(crate) const QUOTA_RULES: [RbacRule; 2] = [follow("scheduling.sigs.k8s.io", "elasticquotas"), follow("", "pods")];

pub(crate) const PROFILE_RULES: [RbacRule; 2] =
    [follow("config.koordinator.sh", "clustercolocationprofiles"), follow("scheduling.k8s.io", "priorityclasses")];
