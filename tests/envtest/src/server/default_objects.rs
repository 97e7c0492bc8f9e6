//! The default objects of a cluster: every namespace has its ServiceAccount `default` and its ConfigMap
//! `kube-root-ca.crt`, and aggregated ClusterRoles hold the rules of the roles that they select.
//!
//! In a real cluster kube-controller-manager maintains them. A server does so after
//! [`ApiServer::maintain_default_objects`].

use std::{collections::BTreeSet, sync::Arc};

use http::Method;
use serde_json::{Value, json};

use super::{ApiServer, Outcome};
use crate::{
    encode, metadata,
    registry::ResourceDef,
    request::{ApiRequest, User},
    selector,
    store::CollectionId,
};

const ROOT_CA: &str = "kube-root-ca.crt";
const DESCRIPTION: &str = "kubernetes.io/description";
const ROOT_CA_DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

/// The kinds of the default objects.
#[derive(Clone, Debug)]
pub(super) struct DefaultObjects {
    authority_pem: Arc<str>,
    namespaces: Arc<ResourceDef>,
    service_accounts: Arc<ResourceDef>,
    config_maps: Arc<ResourceDef>,
    cluster_roles: Arc<ResourceDef>,
}

impl ApiServer {
    /// Maintains the default objects from now on. `authority_pem` is what clients verify the server with.
    pub fn maintain_default_objects(&mut self, authority_pem: &str) {
        let find = |group: &str, plural: &str| self.registry.any_version(group, plural).cloned();
        let (Some(namespaces), Some(service_accounts), Some(config_maps), Some(cluster_roles)) = (
            find("", "namespaces"),
            find("", "serviceaccounts"),
            find("", "configmaps"),
            find("rbac.authorization.k8s.io", "clusterroles"),
        ) else {
            return;
        };
        self.follow_all(&namespaces);
        self.follow_all(&cluster_roles);
        let authority_pem = Arc::from(authority_pem);
        self.default_objects =
            Some(DefaultObjects { authority_pem, namespaces, service_accounts, config_maps, cluster_roles });
        self.follow_changes();
    }

    /// Creates and repairs the default objects that these changes concern.
    pub(super) fn reconcile_default_objects(&mut self, changed: &[(CollectionId, String)]) {
        let Some(kinds) = self.default_objects.clone() else { return };
        let mut namespaces = BTreeSet::new();
        for (collection, key) in changed {
            let owned = |kind: &ResourceDef, name: &str| {
                key.strip_suffix(name)
                    .and_then(|rest| rest.strip_suffix('/'))
                    .filter(|_| *collection == kind.collection)
            };
            if *collection == kinds.namespaces.collection {
                namespaces.insert(key.as_str());
            }
            namespaces.extend(owned(&kinds.service_accounts, "default"));
            namespaces.extend(owned(&kinds.config_maps, ROOT_CA));
        }
        for namespace in namespaces {
            self.ensure_default_objects(&kinds, namespace);
        }
        if changed.iter().any(|(collection, _)| *collection == kinds.cluster_roles.collection) {
            self.aggregate_roles(&kinds.cluster_roles);
        }
    }

    fn ensure_default_objects(&mut self, kinds: &DefaultObjects, namespace: &str) {
        let is_active = self.object(&kinds.namespaces, "", namespace).is_some_and(|it| !metadata::is_deleting(&it));
        if !is_active {
            return;
        }
        let base = format!("/api/v1/namespaces/{namespace}");
        if self.object(&kinds.service_accounts, namespace, "default").is_none() {
            let account = json!({"metadata": {"name": "default", "namespace": namespace}});
            self.write_own(Method::POST, &format!("{base}/serviceaccounts"), &account);
        }
        let data = json!({"ca.crt": kinds.authority_pem.as_ref()});
        let annotations = json!({DESCRIPTION: ROOT_CA_DESCRIPTION});
        match self.object(&kinds.config_maps, namespace, ROOT_CA) {
            None => {
                let map = json!({"metadata": {"name": ROOT_CA, "annotations": annotations}, "data": data});
                self.write_own(Method::POST, &format!("{base}/configmaps"), &map);
            }
            Some(map) => {
                let described = map["metadata"]["annotations"][DESCRIPTION].as_str().is_some_and(|it| !it.is_empty());
                if map["data"] != data || !described {
                    let mut map = map;
                    map["data"] = data;
                    map["metadata"]["annotations"][DESCRIPTION] = json!(ROOT_CA_DESCRIPTION);
                    self.write_own(Method::PUT, &format!("{base}/configmaps/{ROOT_CA}"), &map);
                }
            }
        }
    }

    fn aggregate_roles(&mut self, kind: &Arc<ResourceDef>) {
        let collection = self.store.collection(kind.collection);
        let roles: Vec<Value> = collection.range("", "").map(|(_, record)| encode::value(kind, record)).collect();
        for role in roles.iter().filter(|role| role["aggregationRule"].is_object()) {
            let rules = aggregated_rules(role, &roles);
            let known = role["rules"].as_array().map_or(&[][..], Vec::as_slice);
            if rules != known {
                let name = metadata::text(role, "name");
                let patch = json!({
                    "apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}, "rules": rules,
                });
                let path = format!("/apis/{}/{}/{name}", kind.api_version(), kind.plural);
                self.write_own(Method::PATCH, &path, &patch);
            }
        }
    }

    /// A write of kube-controller-manager.
    pub(super) fn write_own(&mut self, method: Method, path: &str, body: &Value) {
        let mut request = ApiRequest::new(method, path, body.to_string());
        "kube-controller-manager".clone_into(&mut request.user_agent);
        if request.method == Method::PATCH {
            "application/apply-patch+yaml".clone_into(&mut request.content_type);
            for (name, value) in [("fieldManager", "clusterrole-aggregation-controller"), ("force", "true")] {
                request.query.push((name.to_owned(), value.to_owned()));
            }
        }
        request.user = User::server();
        if let Outcome::Done(answer) = self.handle_own(&request)
            && answer.code >= 400
        {
            // Quotas and the like may refuse; the next change of the namespace brings another try.
            tracing::debug!(path, code = answer.code, "the server refused a write of its own controllers");
        }
    }
}

/// The rules of the roles that `role` selects, by selector and then by name, each once.
fn aggregated_rules(role: &Value, all: &[Value]) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    for selector in role["aggregationRule"]["clusterRoleSelectors"].as_array().into_iter().flatten() {
        let Some(selector) = selector::of_object(selector) else { continue };
        for other in all.iter().filter(|other| other["metadata"]["name"] != role["metadata"]["name"]) {
            let labels = &other["metadata"]["labels"];
            if !selector.selects(|key| labels.get(key).and_then(Value::as_str)) {
                continue;
            }
            for rule in other["rules"].as_array().into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{environment::SeededEnvironment, kinds, store::HistoryLimits};

    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

    fn core() -> ApiServer {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
        kinds::install(&mut core);
        crate::bootstrap::run(&mut core).unwrap();
        crate::auth::bootstrap::install(&mut core);
        core
    }

    fn send(core: &mut ApiServer, method: Method, path: &str, body: &Value) -> Value {
        match core.handle(&ApiRequest::json(method, path, body)) {
            Outcome::Done(answer) => serde_json::from_slice(&answer.body).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn get(core: &mut ApiServer, path: &str) -> Value {
        send(core, Method::GET, path, &Value::Null)
    }

    #[test]
    fn every_namespace_has_its_default_objects() {
        let mut core = core();
        assert_eq!(get(&mut core, "/api/v1/namespaces/default/serviceaccounts/default")["code"], 404);
        core.maintain_default_objects("PEM");
        send(&mut core, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "n"}}));
        for namespace in ["default", "kube-system", "n"] {
            let base = format!("/api/v1/namespaces/{namespace}");
            let account = get(&mut core, &format!("{base}/serviceaccounts/default"));
            assert_eq!(account["metadata"]["managedFields"], Value::Null, "it has no fields that anybody manages");
            assert_eq!(account["metadata"]["name"], "default");
            let map = get(&mut core, &format!("{base}/configmaps/{ROOT_CA}"));
            assert_eq!(map["data"], json!({"ca.crt": "PEM"}));
            assert_eq!(map["metadata"]["managedFields"][0]["manager"], "kube-controller-manager");
        }
    }

    #[test]
    fn default_objects_that_a_user_removes_are_created_again_until_the_namespace_ends() {
        let mut core = core();
        core.maintain_default_objects("PEM");
        let path = format!("/api/v1/namespaces/default/configmaps/{ROOT_CA}");
        send(&mut core, Method::PATCH, &path, &json!({"data": {"ca.crt": "forged", "more": "x"}}));
        assert_eq!(get(&mut core, &path)["data"], json!({"ca.crt": "PEM"}));
        let account = "/api/v1/namespaces/default/serviceaccounts/default";
        let before = get(&mut core, account)["metadata"]["uid"].clone();
        send(&mut core, Method::DELETE, account, &Value::Null);
        let after = get(&mut core, account)["metadata"]["uid"].clone();
        assert!(after.is_string() && after != before);

        send(&mut core, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "n"}}));
        send(&mut core, Method::DELETE, "/api/v1/namespaces/n", &Value::Null);
        for _ in 0..5 {
            core.collect_garbage();
        }
        assert_eq!(get(&mut core, "/api/v1/namespaces/n")["code"], 404);
    }

    #[test]
    fn a_role_adds_its_rules_to_the_roles_that_aggregate_its_label() {
        let mut core = core();
        let before = core.store.revision();
        core.maintain_default_objects("PEM");
        assert_eq!(
            core.store.revision() - before,
            8 + 6,
            "four namespaces get two objects; view, edit and admin get rules, and each what the lesser one got"
        );
        let rule = json!({"apiGroups": ["x.io"], "resources": ["widgets"], "verbs": ["get"]});
        let role = json!({
            "metadata": {"name": "widgets", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
            "rules": [rule],
        });
        send(&mut core, Method::POST, ROLES, &role);
        let has_rule = |core: &mut ApiServer, name: &str| {
            get(core, &format!("{ROLES}/{name}"))["rules"].as_array().unwrap().contains(&rule)
        };
        for name in ["view", "edit", "admin"] {
            assert!(has_rule(&mut core, name), "{name} holds what the lesser roles hold");
        }
        assert!(!has_rule(&mut core, "system:discovery"));
        send(&mut core, Method::DELETE, &format!("{ROLES}/widgets"), &Value::Null);
        assert!(!has_rule(&mut core, "view") && !has_rule(&mut core, "admin"));
    }
}
