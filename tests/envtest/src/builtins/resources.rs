//! The resources that every API server serves: kinds, scopes, verbs, short names, categories.

use std::sync::OnceLock;

use base64::Engine;
use sha2::{Digest, Sha256};

/// A built-in resource with its subresources.
#[derive(Debug)]
pub struct BuiltinResource {
    /// API group; empty for core.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Plural.
    pub plural: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Singular.
    pub singular: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs, sorted.
    pub verbs: Vec<&'static str>,
    /// Names that kubectl takes for the plural.
    pub short_names: &'static [&'static str],
    /// Collections that the resource belongs to, such as `all`.
    pub categories: &'static [&'static str],
    /// Subresources, sorted by name.
    pub subresources: Vec<BuiltinSubresource>,
}

/// A subresource of a [`BuiltinResource`].
#[derive(Debug)]
pub struct BuiltinSubresource {
    /// Name behind the slash.
    pub name: &'static str,
    /// Group of the kind that the subresource takes and gives.
    pub group: &'static str,
    /// Version of that kind.
    pub version: &'static str,
    /// That kind.
    pub kind: &'static str,
    /// Verbs, sorted.
    pub verbs: Vec<&'static str>,
}

/// The built-in groups in the order in which discovery lists them, core first.
pub const GROUP_ORDER: [&str; 21] = [
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// Every built-in resource, ordered by group version and plural.
pub fn resources() -> &'static [BuiltinResource] {
    static RESOURCES: OnceLock<Vec<BuiltinResource>> = OnceLock::new();
    RESOURCES.get_or_init(|| parse(include_str!("resources.txt")))
}

fn parse(text: &'static str) -> Vec<BuiltinResource> {
    let mut resources: Vec<BuiltinResource> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&'static str> = line.split(' ').collect();
        let [group_version, name, kind, scope, verbs] = columns[..] else { continue };
        let (group, version) = split_group_version(group_version);
        let verbs = verbs.split(',').collect();
        match name.split_once('/') {
            None => resources.push(BuiltinResource {
                group,
                version,
                plural: name,
                kind,
                singular: kind.to_ascii_lowercase(),
                namespaced: scope == "namespaced",
                verbs,
                short_names: short_names(name),
                categories: categories(group, name),
                subresources: Vec::new(),
            }),
            Some((_, subresource)) => {
                let Some(parent) = resources.last_mut() else { continue };
                let ((group, version), kind) = match kind.rsplit_once('/') {
                    None => ((group, version), kind),
                    Some((other, kind)) => (split_group_version(other), kind),
                };
                parent.subresources.push(BuiltinSubresource { name: subresource, group, version, kind, verbs });
            }
        }
    }
    resources
}

/// `apps/v1` is group `apps`, `v1` the core group.
pub fn split_group_version(group_version: &str) -> (&str, &str) {
    group_version.rsplit_once('/').unwrap_or(("", group_version))
}

/// What discovery publishes so that a client sees a change of the stored version: base64 of the first eight bytes of SHA-256.
pub fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    base64::engine::general_purpose::STANDARD.encode(&digest[..8])
}

/// The group and version in which a built-in resource is stored, where that is not its own.
pub fn storage_version<'a>(group: &'a str, version: &'a str, plural: &str) -> (&'a str, &'a str) {
    match (group, plural) {
        ("events.k8s.io", "events") => ("", "v1"),
        ("autoscaling", "horizontalpodautoscalers") => (group, "v2"),
        ("apiextensions.k8s.io", _) | ("storage.k8s.io", "volumeattributesclasses") => (group, "v1beta1"),
        ("resource.k8s.io", _) => (group, "v1beta2"),
        _ => (group, version),
    }
}

fn short_names(plural: &str) -> &'static [&'static str] {
    match plural {
        "certificatesigningrequests" => &["csr"],
        "componentstatuses" => &["cs"],
        "configmaps" => &["cm"],
        "cronjobs" => &["cj"],
        "customresourcedefinitions" => &["crd", "crds"],
        "daemonsets" => &["ds"],
        "deployments" => &["deploy"],
        "endpoints" => &["ep"],
        "events" => &["ev"],
        "horizontalpodautoscalers" => &["hpa"],
        "ingresses" => &["ing"],
        "ipaddresses" => &["ip"],
        "limitranges" => &["limits"],
        "namespaces" => &["ns"],
        "networkpolicies" => &["netpol"],
        "nodes" => &["no"],
        "persistentvolumeclaims" => &["pvc"],
        "persistentvolumes" => &["pv"],
        "poddisruptionbudgets" => &["pdb"],
        "pods" => &["po"],
        "priorityclasses" => &["pc"],
        "replicasets" => &["rs"],
        "replicationcontrollers" => &["rc"],
        "resourcequotas" => &["quota"],
        "serviceaccounts" => &["sa"],
        "services" => &["svc"],
        "statefulsets" => &["sts"],
        "storageclasses" => &["sc"],
        "volumeattributesclasses" => &["vac"],
        _ => &[],
    }
}

fn categories(group: &str, plural: &str) -> &'static [&'static str] {
    match (group, plural) {
        ("", "pods" | "services" | "replicationcontrollers")
        | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
        | ("batch", "jobs" | "cronjobs")
        | ("autoscaling", "horizontalpodautoscalers") => &["all"],
        ("admissionregistration.k8s.io", _)
        | ("apiregistration.k8s.io", "apiservices")
        | ("apiextensions.k8s.io", "customresourcedefinitions") => &["api-extensions"],
        _ => &[],
    }
}
