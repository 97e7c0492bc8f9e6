//! What a webhook server may do in a cluster.

use koord_resource::rbac::RbacRule;

/// What a server needs whose Secret and webhook configurations have these names. `.` stands for the program's own
/// namespace. A name cannot be required of what is created.
pub const fn rbac(
    secret: &'static [&'static str],
    mutating: &'static [&'static str],
    validating: &'static [&'static str],
) -> [RbacRule; 4] {
    [
        RbacRule { namespace: Some("."), ..rule("", "secrets", &[], &["create"]) },
        RbacRule { namespace: Some("."), ..rule("", "secrets", secret, OF_ONE) },
        rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations", mutating, OF_ONE),
        rule("admissionregistration.k8s.io", "validatingwebhookconfigurations", validating, OF_ONE),
    ]
}

/// Lists and watches select the one object by its name, which is why a rule with the name allows them.
const OF_ONE: &[&str] = &["get", "list", "patch", "watch"];

/// What a server that converts objects needs beside [`rbac`]: its authority stands in the definitions of their kinds.
pub const CONVERSION_RBAC: RbacRule = rule("apiextensions.k8s.io", "customresourcedefinitions", &[], OF_ONE);

const fn rule(
    group: &'static str,
    resource: &'static str,
    names: &'static [&'static str],
    verbs: &'static [&'static str],
) -> RbacRule {
    RbacRule { group, resource, names, urls: &[], verbs, namespace: None, role: None }
}
