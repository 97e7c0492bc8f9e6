//! Roles and bindings that every cluster starts with.

use http::Method;
use serde_json::{Value, json};

use crate::builtins;
use crate::metadata;
use crate::request::ApiRequest;
use crate::server::{ApiServer, aggregated_rules};

const ALL: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const READ: [&str; 3] = ["get", "list", "watch"];
/// What `view` does not show and `edit` does not change.
const ROLE_KINDS: [&str; 2] = ["roles", "rolebindings"];

/// Creates the roles and bindings that are not there yet.
pub fn install(core: &mut ApiServer) {
    let label = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
    for (name, rules) in cluster_roles() {
        let role = json!({"metadata": {"name": name, "labels": label}, "rules": rules});
        create(core, "clusterroles", &role);
    }
    install_user_roles(core, &label);
    for (name, groups) in [
        ("cluster-admin", &["system:masters"][..]),
        ("system:basic-user", &["system:authenticated"]),
        ("system:discovery", &["system:authenticated"]),
        ("system:public-info-viewer", &["system:authenticated", "system:unauthenticated"]),
    ] {
        let group = |group: &&str| json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": group});
        let subjects: Vec<Value> = groups.iter().map(group).collect();
        let role = json!({"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": name});
        let binding = json!({"metadata": {"name": name, "labels": label}, "subjects": subjects, "roleRef": role});
        create(core, "clusterrolebindings", &binding);
    }
}

fn create(core: &mut ApiServer, plural: &str, object: &Value) {
    let mut object = object.clone();
    // The real server puts right at its start what has been changed, unless this says otherwise.
    object["metadata"]["annotations"] = json!({"rbac.authorization.kubernetes.io/autoupdate": "true"});
    let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
    let mut request = ApiRequest::new(Method::POST, &path, object.to_string());
    "kube-apiserver".clone_into(&mut request.user_agent);
    // An object of an earlier run stays as it is.
    let _ = core.handle(&request);
}

/// `view`, `edit` and `admin`: each aggregates its own rules, those of the lesser role, and whatever a user's role adds by
/// its label.
fn install_user_roles(core: &mut ApiServer, label: &Value) {
    let label_of = |name: &str| format!("rbac.authorization.k8s.io/aggregate-to-{name}");
    let mut roles = Vec::new();
    for (name, greater, rules) in [
        ("view", Some("edit"), namespaced_rules(&READ, |plural| plural != "secrets" && !ROLE_KINDS.contains(&plural))),
        ("edit", Some("admin"), namespaced_rules(&ALL, |plural| !ROLE_KINDS.contains(&plural))),
        ("admin", None, namespaced_rules(&ALL, |plural| ROLE_KINDS.contains(&plural))),
    ] {
        let mut labels = label.clone();
        labels[label_of(name)] = json!("true");
        roles.push(json!({
            "metadata": {"name": format!("system:aggregate-to-{name}"), "labels": labels}, "rules": rules,
        }));
        let mut labels = label.clone();
        if let Some(greater) = greater {
            labels[label_of(greater)] = json!("true");
        }
        let selectors = json!([{"matchLabels": {label_of(name): "true"}}]);
        let mut role = json!({
            "metadata": {"name": name, "labels": labels}, "aggregationRule": {"clusterRoleSelectors": selectors},
        });
        // A server alone does not aggregate: they start with what it would come to.
        roles.sort_by(|one, two| metadata::text(one, "name").cmp(metadata::text(two, "name")));
        role["rules"] = Value::Array(aggregated_rules(&role, &roles));
        roles.push(role);
    }
    for role in roles {
        create(core, "clusterroles", &role);
    }
}

fn cluster_roles() -> Vec<(&'static str, Value)> {
    let paths = |paths: &[&str]| json!([{"nonResourceURLs": paths, "verbs": ["get"]}]);
    vec![
        (
            "cluster-admin",
            json!([
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                {"nonResourceURLs": ["*"], "verbs": ["*"]},
            ]),
        ),
        (
            "system:basic-user",
            json!([
                {"apiGroups": ["authorization.k8s.io"], "verbs": ["create"],
                    "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]},
                {"apiGroups": ["authentication.k8s.io"], "verbs": ["create"], "resources": ["selfsubjectreviews"]},
            ]),
        ),
        (
            "system:discovery",
            paths(&[
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
                "/healthz",
                "/livez",
                "/openapi",
                "/openapi/*",
                "/readyz",
                "/version",
                "/version/",
            ]),
        ),
        ("system:public-info-viewer", paths(&["/healthz", "/livez", "/readyz", "/version", "/version/"])),
    ]
}

/// One rule per group over the built-in namespaced kinds that are stored.
fn namespaced_rules(verbs: &[&str], include: impl Fn(&str) -> bool) -> Value {
    let mut rules: Vec<(&str, Vec<String>)> = Vec::new();
    for resource in builtins::resources() {
        if !resource.namespaced || !resource.verbs.contains(&"list") || !include(resource.plural) {
            continue;
        }
        let names = std::iter::once(resource.plural.to_owned())
            .chain(resource.subresources.iter().map(|sub| format!("{}/{}", resource.plural, sub.name)));
        match rules.iter_mut().find(|(group, _)| *group == resource.group) {
            Some((_, resources)) => resources.extend(names),
            None => rules.push((resource.group, names.collect())),
        }
    }
    let rule = |(group, mut resources): (&str, Vec<String>)| {
        resources.sort();
        resources.dedup();
        json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
    };
    Value::Array(rules.into_iter().map(rule).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{environment::SeededEnvironment, kinds, server::Outcome, store::HistoryLimits};

    #[test]
    fn roles_of_users_have_their_rules_from_the_start() {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
        kinds::install(&mut core);
        crate::bootstrap::run(&mut core).unwrap();
        install(&mut core);
        for name in ["view", "edit", "admin"] {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");
            let Outcome::Done(answer) = core.handle(&ApiRequest::new(Method::GET, &path, "")) else { panic!("{name}") };
            let role: Value = serde_json::from_slice(&answer.body).unwrap();
            assert!(role["rules"].as_array().is_some_and(|rules| !rules.is_empty()), "{role}");
            assert_eq!(role["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"], "true");
        }
    }
}
