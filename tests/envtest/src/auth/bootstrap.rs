//! Roles and bindings that every cluster starts with.

use http::Method;
use serde_json::{Value, json};

use crate::request::ApiRequest;
use crate::server::ApiServer;

const GROUP: &str = "rbac.authorization.k8s.io";
/// Roles with their rules, then bindings; its first lines explain its form.
const TABLE: &str = include_str!("bootstrap/roles.txt");

/// Creates the roles and bindings that are not there yet. The rules of aggregated roles are left to a controller.
pub fn install(core: &mut ApiServer) {
    for (plural, namespace, object) in objects() {
        let place = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
        let path = format!("/apis/{GROUP}/v1{place}/{plural}");
        let mut request = ApiRequest::new(Method::POST, &path, object.to_string());
        "kube-apiserver".clone_into(&mut request.user_agent);
        // An object of an earlier run stays as it is.
        let _ = core.handle(&request);
    }
}

/// The rules of a ClusterRole of the table.
pub(super) fn rules_of(role: &str) -> Vec<Value> {
    let found = objects()
        .into_iter()
        .find(|(plural, _, object)| *plural == "clusterroles" && object["metadata"]["name"] == role);
    found.and_then(|(_, _, object)| object["rules"].as_array().cloned()).unwrap_or_default()
}

/// Every object of the table, with its plural and its namespace.
fn objects() -> Vec<(&'static str, &'static str, Value)> {
    let mut objects: Vec<(&str, &str, Value)> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [verbs, resources, ref rest @ ..] if line.starts_with(' ') => {
                if let Some((_, _, role)) = objects.last_mut()
                    && let Some(rules) = role["rules"].as_array_mut()
                {
                    rules.push(rule(verbs, resources, rest));
                }
            }
            ["ClusterRole", name, ref labels @ ..] => {
                objects.push(("clusterroles", "", cluster_role(name, labels)));
            }
            ["Role", name, ..] => {
                let (namespace, name) = name.split_once('/').unwrap_or(("", name));
                let mut role = named(name);
                role["rules"] = json!([]);
                objects.push(("roles", namespace, role));
            }
            ["ClusterRoleBinding", name, role, ref subjects @ ..] => {
                objects.push(("clusterrolebindings", "", binding(name, "ClusterRole", role, subjects)));
            }
            ["RoleBinding", name, role, ref subjects @ ..] => {
                let (namespace, name) = name.split_once('/').unwrap_or(("", name));
                objects.push(("rolebindings", namespace, binding(name, "Role", role, subjects)));
            }
            _ => {}
        }
    }
    objects
}

fn named(name: &str) -> Value {
    json!({"metadata": {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        // The real server puts right at its start what has been changed, unless this says otherwise.
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }})
}

/// A role with its further labels; `aggregates LABEL` leaves its rules to the roles that have the label.
fn cluster_role(name: &str, words: &[&str]) -> Value {
    let mut role = named(name);
    let aggregated = match words {
        [.., "aggregates", label] => Some(*label),
        _ => None,
    };
    for (label, value) in words.iter().filter_map(|word| word.split_once('=')) {
        role["metadata"]["labels"][label] = json!(value);
    }
    match aggregated {
        Some(label) => {
            role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]});
            role["rules"] = Value::Null;
        }
        None => role["rules"] = json!([]),
    }
    role
}

fn rule(verbs: &str, resources: &str, rest: &[&str]) -> Value {
    let list = |text: &str| -> Vec<String> {
        text.split(',').map(|word| if word == "core" { String::new() } else { word.to_owned() }).collect()
    };
    if let Some(paths) = resources.strip_prefix("url:") {
        return json!({"verbs": list(verbs), "nonResourceURLs": list(paths)});
    }
    let groups = rest.first().copied().unwrap_or_default();
    let mut rule = json!({"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)});
    if let Some(names) = rest.get(1) {
        rule["resourceNames"] = json!(list(names));
    }
    rule
}

fn binding(name: &str, kind: &str, role: &str, subjects: &[&str]) -> Value {
    let subject = |text: &&str| {
        let (kind, name) = text.split_once(':').unwrap_or(("", text));
        match name.split_once('/').filter(|_| kind == "ServiceAccount") {
            Some((namespace, name)) => json!({"kind": kind, "namespace": namespace, "name": name}),
            None => json!({"kind": kind, "apiGroup": GROUP, "name": name}),
        }
    };
    let mut binding = named(name);
    binding["roleRef"] = json!({"apiGroup": GROUP, "kind": kind, "name": role});
    if !subjects.is_empty() {
        binding["subjects"] = subjects.iter().map(subject).collect();
    }
    binding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{environment::SeededEnvironment, kinds, server::Outcome, store::HistoryLimits};

    fn role(core: &mut ApiServer, name: &str) -> Value {
        let path = format!("/apis/{GROUP}/v1/clusterroles/{name}");
        let Outcome::Done(answer) = core.handle(&ApiRequest::new(Method::GET, &path, "")) else { panic!("{name}") };
        serde_json::from_slice(&answer.body).unwrap()
    }

    #[test]
    fn every_object_of_the_table_is_created() {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
        kinds::install(&mut core);
        crate::bootstrap::run(&mut core).unwrap();
        install(&mut core);
        for (plural, namespace, object) in objects() {
            let definition = core.registry.get(GROUP, "v1", plural).cloned().unwrap();
            let name = object["metadata"]["name"].as_str().unwrap();
            assert!(core.object(&definition, namespace, name).is_some(), "{plural} {namespace}/{name}");
        }
        let view = role(&mut core, "view");
        assert_eq!(view["rules"], Value::Null, "nothing aggregates without a controller");
        assert_eq!(view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"], "true");
        let scheduler = role(&mut core, "system:kube-scheduler");
        assert_eq!(scheduler["rules"][0]["apiGroups"], json!(["", "events.k8s.io"]));
        assert_eq!(role(&mut core, "cluster-admin")["rules"][1], json!({"nonResourceURLs": ["*"], "verbs": ["*"]}));
    }
}
