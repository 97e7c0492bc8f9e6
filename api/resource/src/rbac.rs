//! RBAC rules, declared beside the code that needs them, and those that every operator needs.

/// Permission that one piece of code needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RbacRule {
    /// API group; empty for core.
    pub group: &'static str,
    /// Plural, or `plural/subresource`.
    pub resource: &'static str,
    /// Only objects of these names; empty for all.
    pub names: &'static [&'static str],
    /// URL paths beside the API's resources, such as `/metrics`; group and resource are empty then.
    pub urls: &'static [&'static str],
    /// `get`, `list`, `watch`, …
    pub verbs: &'static [&'static str],
    /// The namespace of a Role; none for a ClusterRole. `"."` stands for the namespace that the program is installed in.
    pub namespace: Option<&'static str>,
    /// The name of the role; none for that of the program's roles.
    pub role: Option<&'static str>,
}

/// Events of all objects. Where a role of an older installation grants events of the core group alone, that group is used.
pub const EVENTS: RbacRule = RbacRule::new("events.k8s.io", "events", &["create", "patch"]);

/// Leader election in the program's own namespace with a Lease of this name: to create a Lease, and to keep that one. A name cannot be
/// required of what is created. Where a role does not grant the watch of leases, a replica that waits reads its Lease every retry period.
pub const fn leader_election(lease: &'static [&'static str]) -> [RbacRule; 2] {
    const GROUP: &str = "coordination.k8s.io";
    let namespace = Some(OWN_NAMESPACE);
    [
        RbacRule { namespace, ..RbacRule::new(GROUP, "leases", &["create"]) },
        RbacRule { namespace, names: lease, ..RbacRule::new(GROUP, "leases", &["get", "update", "watch"]) },
    ]
}

/// What a webhook server needs that converts objects, beside [`webhook_server`]: its authority stands in the definitions of their kinds.
pub const CONVERSIONS: RbacRule = RbacRule::new("apiextensions.k8s.io", "customresourcedefinitions", OF_ONE);

/// What a webhook server needs whose Secret and webhook configurations have these names: to create a Secret and to keep its own in its
/// namespace, and to keep the configurations of both kinds. A name cannot be required of what is created.
pub const fn webhook_server(
    secret: &'static [&'static str],
    mutating: &'static [&'static str],
    validating: &'static [&'static str],
) -> [RbacRule; 4] {
    const GROUP: &str = "admissionregistration.k8s.io";
    let namespace = Some(OWN_NAMESPACE);
    [
        RbacRule { namespace, ..RbacRule::new("", "secrets", &["create"]) },
        RbacRule { namespace, names: secret, ..RbacRule::new("", "secrets", OF_ONE) },
        RbacRule { names: mutating, ..RbacRule::new(GROUP, "mutatingwebhookconfigurations", OF_ONE) },
        RbacRule { names: validating, ..RbacRule::new(GROUP, "validatingwebhookconfigurations", OF_ONE) },
    ]
}

/// Stands for the namespace that the program is installed in.
pub const OWN_NAMESPACE: &str = ".";

/// Lists and watches select the one object by its name, which is why a rule with the name allows them.
const OF_ONE: &[&str] = &["get", "list", "patch", "watch"];

impl RbacRule {
    /// A rule about all objects of a resource.
    pub const fn new(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> Self {
        Self { group, resource, names: &[], urls: &[], verbs, namespace: None, role: None }
    }
}

/// The name of a subresource, such as `nodes/status`, put together while compiling.
///
/// ```
/// use koord_resource::rbac::Subresource;
/// const STATUS: Subresource = Subresource::new("nodes", "status");
/// assert_eq!(STATUS.as_str(), "nodes/status");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Subresource {
    text: [u8; Self::LENGTH_MAX],
    length: usize,
}

impl Subresource {
    /// A plural is at most one label of a domain name.
    const LENGTH_MAX: usize = 63 + 1 + 63;

    /// Of the kind with this plural.
    pub const fn new(plural: &str, name: &str) -> Self {
        let mut text = [b'/'; Self::LENGTH_MAX];
        let (start, end) = (plural.len() + 1, plural.len() + 1 + name.len());
        text.split_at_mut(plural.len()).0.copy_from_slice(plural.as_bytes());
        text.split_at_mut(end).0.split_at_mut(start).1.copy_from_slice(name.as_bytes());
        Self { text, length: end }
    }

    /// `plural/name`.
    pub const fn as_str(&self) -> &str {
        match str::from_utf8(self.text.split_at(self.length).0) {
            Ok(text) => text,
            Err(_) => "",
        }
    }
}
