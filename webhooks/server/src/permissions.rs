//! What a webhook server may do in a cluster.

use koord_resource::rbac::RbacRule;

/// The Secret with the certificates, and the two webhook configurations. `.` stands for the program's own namespace.
pub const RBAC: [RbacRule; 3] = [
    RbacRule { namespace: Some("."), ..rule("", "secrets", &["create", "get", "list", "patch", "watch"]) },
    rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", &["get", "list", "patch", "watch"]),
    rule("admissionregistration.k8s.io", "validatingwebhookconfigurations", &["get", "list", "patch", "watch"]),
];

/// What a server that converts objects needs beside [`RBAC`]: its authority stands in the definitions of their kinds.
pub const CONVERSION_RBAC: RbacRule =
    rule("apiextensions.k8s.io", "customresourcedefinitions", &["get", "list", "patch", "watch"]);

const fn rule(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> RbacRule {
    RbacRule { group, resource, names: &[], urls: &[], verbs, namespace: None }
}
