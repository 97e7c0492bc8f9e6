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
    /// The name of the role; none for that of the program's roles.
    pub role: Option<&'static str>,
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
