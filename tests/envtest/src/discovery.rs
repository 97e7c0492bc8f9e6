//! What the server serves, as clients ask for it: `/api`, `/apis`, groups, group versions; aggregated and plain.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::builtins;
use crate::registry::{Registry, ResourceDef, Subresource};

/// Media type of aggregated discovery.
pub const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// The media type of the same document as YAML.
pub const AGGREGATED_YAML: &str = "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// A version's place among those of its group: stable before beta before alpha, higher numbers first, other names last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct VersionRank(Stability, Reverse<u64>, Reverse<u64>, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Stable,
    Beta,
    Alpha,
    Other,
}

// === impl VersionRank ===

impl VersionRank {
    fn of(version: &str) -> Self {
        Self::parse(version).unwrap_or_else(|| Self(Stability::Other, Reverse(0), Reverse(0), version.to_owned()))
    }

    fn parse(version: &str) -> Option<Self> {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at(end);
        let (stability, minor) = match rest {
            "" => (Stability::Stable, "0"),
            _ => match rest.strip_prefix("beta") {
                Some(minor) => (Stability::Beta, minor),
                None => (Stability::Alpha, rest.strip_prefix("alpha")?),
            },
        };
        Some(Self(stability, Reverse(major.parse().ok()?), Reverse(minor.parse().ok()?), String::new()))
    }
}

/// Orders versions as discovery does, the preferred one first.
pub fn compare_versions(one: &str, two: &str) -> Ordering {
    VersionRank::of(one).cmp(&VersionRank::of(two))
}

/// The served groups with their versions: built-in groups in their order, then those of custom resources by name.
pub fn groups(registry: &Registry) -> Vec<(String, Vec<String>)> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for definition in registry.iter() {
        let known = versions.entry(&definition.group).or_default();
        if !known.contains(&definition.version.as_str()) {
            known.push(&definition.version);
        }
    }
    let rank = |group: &str| {
        let built_in = builtins::GROUP_ORDER.iter().position(|known| *known == group);
        (built_in.unwrap_or(builtins::GROUP_ORDER.len()), group.to_owned())
    };
    let mut groups: Vec<(String, Vec<String>)> = versions
        .into_iter()
        .map(|(group, mut versions)| {
            versions.sort_by(|one, two| compare_versions(one, two));
            (group.to_owned(), versions.into_iter().map(ToOwned::to_owned).collect())
        })
        .collect();
    groups.sort_by_key(|(group, _)| rank(group));
    groups
}

/// Whether a group is one of those that every server has.
pub fn is_built_in(group: &str) -> bool {
    builtins::GROUP_ORDER.contains(&group)
}

/// `/api`: the versions of the core group.
pub fn core_versions(registry: &Registry, address: &str) -> Value {
    let groups = groups(registry);
    let versions = groups.iter().find(|(group, _)| group.is_empty()).map(|(_, versions)| versions.as_slice());
    json!({
        "kind": "APIVersions", "versions": versions.unwrap_or_default(),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`: every named group.
pub fn group_list(registry: &Registry) -> Value {
    let groups = groups(registry);
    let named = groups.iter().filter(|(group, _)| !group.is_empty());
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": named.map(|(name, versions)| group_value(name, versions)).collect::<Vec<_>>()})
}

/// `/apis/GROUP`; none when nothing is served there.
pub fn group(registry: &Registry, name: &str) -> Option<Value> {
    let groups = groups(registry);
    let (name, versions) = groups.iter().find(|(group, _)| !group.is_empty() && group == name)?;
    let mut value = group_value(name, versions);
    value["kind"] = json!("APIGroup");
    value["apiVersion"] = json!("v1");
    Some(value)
}

fn group_value(name: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

/// `/api/v1` or `/apis/GROUP/VERSION`: resources and subresources; none when nothing is served there.
pub fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let definitions = in_version(registry, group, version);
    let group_version = definitions.first()?.api_version();
    let mut resources = Vec::new();
    for definition in definitions {
        resources.push(resource(definition));
        resources.extend(definition.subresources.iter().map(|sub| subresource(definition, sub)));
    }
    resources.sort_by(|one, two| one["name"].as_str().cmp(&two["name"].as_str()));
    let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
    // QUIRK: the list of the core group has no version of its own.
    if !group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

fn in_version<'a>(registry: &'a Registry, group: &str, version: &str) -> Vec<&'a Arc<ResourceDef>> {
    let served = |definition: &&Arc<ResourceDef>| definition.group == group && definition.version == version;
    registry.iter().filter(served).collect()
}

fn resource(definition: &ResourceDef) -> Value {
    let mut entry = json!({
        "name": definition.plural, "singularName": definition.singular, "namespaced": definition.namespaced,
        "kind": definition.kind, "verbs": definition.verbs,
    });
    add_names(&mut entry, definition);
    if let Some(hash) = stored_hash(definition) {
        entry["storageVersionHash"] = json!(hash);
    }
    entry
}

fn add_names(entry: &mut Value, definition: &ResourceDef) {
    if !definition.short_names.is_empty() {
        entry["shortNames"] = json!(definition.short_names);
    }
    if !definition.categories.is_empty() {
        entry["categories"] = json!(definition.categories);
    }
}

/// Only what is stored has a hash, and a custom resource only in the version that it is stored in.
fn stored_hash(definition: &ResourceDef) -> Option<String> {
    let ResourceDef { group, version, plural, kind, .. } = definition;
    if definition.custom {
        return definition.is_storage_version.then(|| builtins::storage_version_hash(group, version, kind));
    }
    if !definition.allows("create") || !definition.allows("get") {
        return None;
    }
    let (group, version) = builtins::storage_version(group, version, plural);
    Some(builtins::storage_version_hash(group, version, kind))
}

fn subresource(definition: &ResourceDef, sub: &Subresource) -> Value {
    let mut entry = json!({
        "name": format!("{}/{}", definition.plural, sub.name), "singularName": "", "namespaced": definition.namespaced,
        "kind": definition.kind, "verbs": sub.verbs,
    });
    if let Some((group, version, kind)) = &sub.body {
        entry["kind"] = json!(kind);
        if (group, version) != (&definition.group, &definition.version) {
            entry["group"] = json!(group);
            entry["version"] = json!(version);
        }
    }
    entry
}

/// Everything about the named groups, or about the core group, in one document.
pub fn aggregated(registry: &Registry, core: bool) -> Value {
    let mut items = Vec::new();
    for (group, versions) in groups(registry) {
        if group.is_empty() != core {
            continue;
        }
        let versions: Vec<Value> = versions
            .iter()
            .map(|version| {
                let resources = in_version(registry, &group, version);
                let resources: Vec<Value> = resources.into_iter().map(|known| aggregated_resource(known)).collect();
                json!({"version": version, "freshness": "Current", "resources": resources})
            })
            .collect();
        let metadata = if core { json!({}) } else { json!({"name": group}) };
        items.push(json!({"metadata": metadata, "versions": versions}));
    }
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(definition: &ResourceDef) -> Value {
    // Built-in kinds of the group version itself carry neither group nor version here.
    let (group, version) = if definition.custom { (&*definition.group, &*definition.version) } else { ("", "") };
    let own = |kind: &str| json!({"group": group, "version": version, "kind": kind});
    let mut entry = json!({
        "resource": definition.plural, "responseKind": own(&definition.kind),
        "scope": if definition.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": definition.singular, "verbs": definition.verbs,
    });
    add_names(&mut entry, definition);
    let mut subresources: Vec<&Subresource> = definition.subresources.iter().collect();
    subresources.sort_by(|one, two| one.name.cmp(&two.name));
    let subresources: Vec<Value> = subresources
        .into_iter()
        .map(|sub| {
            let kind = match &sub.body {
                Some((group, version, kind)) if (group, version) != (&definition.group, &definition.version) => {
                    json!({"group": group, "version": version, "kind": kind})
                }
                Some((_, _, kind)) => own(kind),
                None => own(&definition.kind),
            };
            json!({"subresource": sub.name, "responseKind": kind, "verbs": sub.verbs})
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = Value::Array(subresources);
    }
    entry
}

/// `/version`.
pub fn version() -> Value {
    let fields = [
        ("major", "1"),
        ("minor", "34"),
        ("emulationMajor", "1"),
        ("emulationMinor", "34"),
        ("minCompatibilityMajor", "1"),
        ("minCompatibilityMinor", "33"),
        ("gitVersion", concat!("v1.34.3+koordinator-", env!("CARGO_PKG_VERSION"))),
        ("gitCommit", "0000000000000000000000000000000000000000"),
        ("gitTreeState", "clean"),
        ("buildDate", "2026-01-01T00:00:00Z"),
        ("goVersion", "none"),
        ("compiler", "rustc"),
        ("platform", "linux/amd64"),
    ];
    Value::Object(fields.iter().map(|(key, text)| ((*key).to_owned(), json!(text))).collect::<Map<_, _>>())
}

/// The checks of the health endpoints, named as those of kube-apiserver; a server that answers passes them all.
const CHECKS: [&str; 34] = [
    "ping",
    "log",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
    "shutdown",
];
/// Checks that only `/readyz` has.
const READINESS_CHECKS: [&str; 3] = ["etcd-readiness", "informer-sync", "shutdown"];

/// The checks of one endpoint, in order.
fn checks(endpoint: &str) -> impl Iterator<Item = &'static str> {
    let is_ready = endpoint == "readyz";
    CHECKS.into_iter().filter(move |check| is_ready || !READINESS_CHECKS.contains(check))
}

/// Whether a health path has an answer: the three endpoints, and the checks below them that a client may name.
pub fn is_healthy(path: &str) -> bool {
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let endpoint = parts.next().unwrap_or_default();
    let check = parts.next().unwrap_or_default();
    matches!(endpoint, "healthz" | "livez" | "readyz")
        && (check.is_empty() || checks(endpoint).any(|known| known == check))
}

/// The paths that are served beside those of resources.
pub fn index(registry: &Registry) -> Value {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/version"].map(Into::into).into();
    for (group, versions) in groups(registry) {
        let base = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        paths.extend(versions.iter().map(|version| format!("{base}/{version}")));
        paths.extend((!group.is_empty()).then_some(base));
    }
    for endpoint in ["healthz", "livez", "readyz"] {
        paths.push(format!("/{endpoint}"));
        paths.extend(checks(endpoint).map(|check| format!("/{endpoint}/{check}")));
    }
    paths.sort();
    json!({ "paths": paths })
}

/// Each check of a health endpoint in a line, as `?verbose` asks for, without those that the client excludes.
pub fn health_in_words(endpoint: &str, excluded: &[&str]) -> String {
    let mut lines: Vec<String> = checks(endpoint)
        .map(|check| format!("[+]{check} {}", if excluded.contains(&check) { "excluded: ok" } else { "ok" }))
        .collect();
    let unknown: Vec<String> = excluded
        .iter()
        .filter(|name| checks(endpoint).all(|check| check != **name))
        .map(|name| format!("{name:?}"))
        .collect();
    if !unknown.is_empty() {
        lines.push(format!("warn: some health checks cannot be excluded: no matches for {}", unknown.join(",")));
    }
    lines.push(format!("{endpoint} check passed\n"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_can_be_asked_for_check_by_check() {
        let words = health_in_words("livez", &["etcd", "none"]);
        assert!(words.starts_with("[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n"), "{words}");
        assert!(words.ends_with("no matches for \"none\"\nlivez check passed\n"), "{words}");
        assert!(is_healthy("/readyz/informer-sync") && !is_healthy("/livez/informer-sync"));
        assert!(is_healthy("/readyz/ping") && is_healthy("/livez") && !is_healthy("/readyz/unknown"));
    }

    #[test]
    fn the_index_names_what_is_served() {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let environment = Box::new(crate::environment::SeededEnvironment::new(1, now));
        let mut core = crate::server::ApiServer::empty(environment, crate::store::HistoryLimits::default());
        crate::kinds::install(&mut core);
        let index = index(&core.registry);
        let paths: Vec<&str> = index["paths"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for path in
            ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz/ping", "/openapi/v3", "/version"]
        {
            assert!(paths.contains(&path), "{path} is not in {paths:?}");
        }
        assert!(paths.is_sorted());
    }

    #[test]
    fn versions_are_ordered_by_stability_then_number() {
        let mut versions = ["v1alpha1", "v1", "foo1", "v1beta2", "v10", "v2", "v1beta1"];
        versions.sort_by(|one, two| compare_versions(one, two));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo1"]);
    }

    #[test]
    fn health_has_named_checks() {
        for path in ["/healthz", "/livez/ping", "/readyz"] {
            assert!(is_healthy(path), "{path}");
        }
        assert!(!is_healthy("/readyz/nonsense"));
        assert!(!is_healthy("/health"));
    }
}
