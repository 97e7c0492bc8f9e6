//! What a controller is, as data: which kinds it follows, how it is limited, what it may do.

use crate::{
    rbac::RbacRule,
    resource::{ResourceInfo, Scope},
};

/// Replicas that wait for a Lease spread their attempts: each comes after the retry period and up to so many retry periods more, as in
/// client-go. The renew deadline of a leader is longer than so many retry periods.
pub const ELECTION_JITTER: f64 = 1.2;

/// The part of a kind's identity that a request needs.
///
/// ```
/// use koord_resource::controller::ResourceKind;
/// assert_eq!(ResourceKind::NODE.url_path("", Some("n1")), "/api/v1/nodes/n1");
/// assert_eq!(ResourceKind::CONFIG_MAP.url_path("kube-system", None), "/api/v1/namespaces/kube-system/configmaps");
/// assert_eq!(ResourceKind::CONFIG_MAP.url_path("", None), "/api/v1/configmaps");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKind {
    /// API group; empty for core.
    pub group: &'static str,
    /// API version, such as `v1alpha1`.
    pub version: &'static str,
    /// Kind, such as `NodeSLO`.
    pub kind: &'static str,
    /// Lower-case plural, as it stands in URLs.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// Where the objects of a kind live.
pub trait ObjectScope: k8s_openapi::ResourceScope {
    /// Whether they live in namespaces.
    const NAMESPACED: bool;
}

impl ObjectScope for k8s_openapi::NamespaceResourceScope {
    const NAMESPACED: bool = true;
}

impl ObjectScope for k8s_openapi::ClusterResourceScope {
    const NAMESPACED: bool = false;
}

impl ResourceKind {
    /// The core kind Node.
    pub const NODE: Self = Self::core("Node", "nodes", false);
    /// The core kind Namespace.
    pub const NAMESPACE: Self = Self::core("Namespace", "namespaces", false);
    /// The core kind Pod.
    pub const POD: Self = Self::core("Pod", "pods", true);
    /// The core kind ConfigMap.
    pub const CONFIG_MAP: Self = Self::core("ConfigMap", "configmaps", true);
    /// The core kind Secret.
    pub const SECRET: Self = Self::core("Secret", "secrets", true);
    /// The core kind Event.
    pub const EVENT: Self = Self::core("Event", "events", true);
    /// The kind Lease.
    pub const LEASE: Self =
        Self { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases", namespaced: true };
    /// The kind PriorityClass.
    pub const PRIORITY_CLASS: Self = Self {
        group: "scheduling.k8s.io",
        version: "v1",
        kind: "PriorityClass",
        plural: "priorityclasses",
        namespaced: false,
    };

    const fn core(kind: &'static str, plural: &'static str, namespaced: bool) -> Self {
        Self { group: "", version: "v1", kind, plural, namespaced }
    }

    /// The identity of a declared type.
    pub const fn of(info: &ResourceInfo) -> Self {
        Self {
            group: info.group,
            version: info.version,
            kind: info.kind,
            plural: info.plural,
            namespaced: matches!(info.scope, Scope::Namespaced),
        }
    }

    /// The identity of an object type of k8s-openapi, or of one that is declared with `#[derive(Resource)]`.
    pub const fn typed<T: k8s_openapi::Resource<Scope: ObjectScope> + ?Sized>() -> Self {
        Self {
            group: T::GROUP,
            version: T::VERSION,
            kind: T::KIND,
            plural: T::URL_PATH_SEGMENT,
            namespaced: <T::Scope as ObjectScope>::NAMESPACED,
        }
    }

    /// Permission for all objects of the kind.
    pub const fn rule(self, verbs: &'static [&'static str]) -> RbacRule {
        RbacRule { group: self.group, resource: self.plural, names: &[], urls: &[], verbs, namespace: None, role: None }
    }

    /// `v1` or `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The URL path of one object, or of the collection when no name is given.
    /// An empty namespace means all of them; it is ignored for kinds of cluster scope.
    pub fn url_path(&self, namespace: &str, name: Option<&str>) -> String {
        let mut path = String::with_capacity(96);
        path.push_str(if self.group.is_empty() { "/api/" } else { "/apis/" });
        if !self.group.is_empty() {
            path.push_str(self.group);
            path.push('/');
        }
        path.push_str(self.version);
        if self.namespaced && !namespace.is_empty() {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(self.plural);
        if let Some(name) = name {
            path.push('/');
            path.push_str(name);
        }
        path
    }
}

/// How often a failing key may be tried again, and how fast keys may come at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Delay after the first failure of a key, in milliseconds; it doubles with each further one.
    pub base_ms: u64,
    /// The longest delay of a key, in milliseconds.
    pub max_ms: u64,
    /// Retries per second over all keys.
    pub per_second: u32,
    /// Retries that may come at once before `per_second` holds.
    pub burst: u32,
}

impl RateLimit {
    /// client-go's default: 5 ms doubling up to 1000 s for a key, 10 per second with a burst of 100 over all.
    pub const DEFAULT: Self = Self { base_ms: 5, max_ms: 1_000_000, per_second: 10, burst: 100 };
}

/// A controller as data: the binaries, the RBAC documents and the reference pages read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerSpec {
    /// Lower-case name, as it stands in `--controllers`, metrics and logs.
    pub name: &'static str,
    /// The kind whose keys are reconciled.
    pub for_kind: ResourceKind,
    /// Kinds whose objects the controller creates and repairs.
    pub owns: &'static [ResourceKind],
    /// Kinds that are only read.
    pub watches: &'static [ResourceKind],
    /// Keys that are reconciled at the same time; never two runs of one key.
    pub concurrency: usize,
    /// Limits of retries.
    pub rate_limit: RateLimit,
    /// Feature gate that starts the controller; none starts it always.
    pub gate: Option<&'static str>,
    /// Permissions beyond those that follow from the kinds above.
    pub rbac: &'static [RbacRule],
}

impl ControllerSpec {
    /// All permissions: to follow every kind, to write the owned ones, and what is declared besides. What the cache shows is never read again
    /// one by one, and changes are patches, so neither `get` nor `update` is among them.
    pub fn rbac_rules(&self) -> Vec<RbacRule> {
        const FOLLOW: &[&str] = &["list", "watch"];
        const OWN: &[&str] = &["create", "delete", "list", "patch", "watch"];
        let owned = |kind: &ResourceKind| self.owns.contains(kind);
        let followed = std::iter::once(&self.for_kind).chain(self.watches).filter(|kind| !owned(kind));
        followed
            .map(|kind| kind.rule(FOLLOW))
            .chain(self.owns.iter().map(|kind| kind.rule(OWN)))
            .chain(self.rbac.iter().copied())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_follow_from_the_kinds() {
        const SECRETS: ResourceKind = ResourceKind::SECRET;
        let spec = ControllerSpec {
            name: "mirror",
            for_kind: ResourceKind::CONFIG_MAP,
            owns: &[SECRETS],
            watches: &[ResourceKind::NODE, SECRETS],
            concurrency: 1,
            rate_limit: RateLimit::DEFAULT,
            gate: None,
            rbac: &[],
        };
        let shown: Vec<String> =
            spec.rbac_rules().iter().map(|rule| format!("{}: {}", rule.resource, rule.verbs.join(" "))).collect();
        assert_eq!(shown, ["configmaps: list watch", "nodes: list watch", "secrets: create delete list patch watch"]);
    }
}
