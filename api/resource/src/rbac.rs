//! RBAC rules, declared beside the code that needs them.

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
}
