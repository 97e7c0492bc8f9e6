//! Role-based access control: whether some binding lets a user do something.

use std::sync::Arc;

use serde_json::Value;

use crate::registry::ResourceDef;
use crate::request::User;
use crate::server::ApiServer;

const GROUP: &str = "rbac.authorization.k8s.io";

/// What somebody wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// `get`, `list`, `create`, …
    pub verb: String,
    /// API group; empty for core.
    pub group: String,
    /// Plural; empty when the action is about a path.
    pub resource: String,
    /// Subresource; empty for none.
    pub subresource: String,
    /// Namespace; empty for cluster scope.
    pub namespace: String,
    /// Name; empty when there is none.
    pub name: String,
    /// The path of an action that is about no resource.
    pub path: String,
    /// Fields that the objects of a collection must have, with their values.
    pub fields: Vec<(String, String)>,
}

/// The answer about an [`Action`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may be done.
    pub allowed: bool,
    /// Which binding allowed it, or what was broken; may be empty.
    pub reason: String,
}

// === impl Action ===

impl Action {
    fn qualified_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// The message for a user without the permission.
    pub fn refusal(&self, user: &str) -> String {
        if self.resource.is_empty() {
            return format!("User \"{user}\" cannot {} path \"{}\"", self.verb, self.path);
        }
        let place = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace \"{}\"", self.namespace)
        };
        let (verb, resource, group) = (&self.verb, self.qualified_resource(), &self.group);
        format!("User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}")
    }
}

/// A rule that a user has, in the order in which bindings are looked at.
#[derive(Clone, Debug)]
pub struct GrantedRule {
    /// The rule as the role states it.
    pub rule: Value,
    reason: String,
}

/// Whether `user` may do `action`.
pub fn decide(core: &ApiServer, user: &User, action: &Action) -> Decision {
    if user.groups.iter().any(|group| group == "system:masters") {
        return Decision { allowed: true, reason: String::new() };
    }
    let (rules, broken) = granted(core, user, &action.namespace);
    if let Some(granted) = rules.into_iter().find(|granted| allows(&granted.rule, action)) {
        return Decision { allowed: true, reason: granted.reason };
    }
    let reason = if broken.is_empty() { String::new() } else { format!("RBAC: {}", broken.join(", ")) };
    Decision { allowed: false, reason }
}

/// Every rule that the user's bindings give in a namespace, and the roles that bindings name but nobody made.
pub fn granted(core: &ApiServer, user: &User, namespace: &str) -> (Vec<GrantedRule>, Vec<String>) {
    let mut rules = Vec::new();
    let mut broken = Vec::new();
    for (bindings, place) in [("clusterrolebindings", ""), ("rolebindings", namespace)] {
        if bindings == "rolebindings" && namespace.is_empty() {
            continue;
        }
        for binding in objects(core, bindings, place) {
            let subjects = binding["subjects"].as_array().into_iter().flatten();
            let Some(who) = subjects.into_iter().find_map(|subject| matches_subject(subject, user, place)) else {
                continue;
            };
            let (kind, name) = (&binding["roleRef"]["kind"], binding["roleRef"]["name"].as_str().unwrap_or_default());
            let (plural, kind, role_namespace) =
                if kind == "Role" { ("roles", "Role", place) } else { ("clusterroles", "ClusterRole", "") };
            let Some(role) = object(core, plural, role_namespace, name) else {
                broken.push(format!("{}.{GROUP} \"{name}\" not found", kind.to_lowercase()));
                continue;
            };
            let bound = binding["metadata"]["name"].as_str().unwrap_or_default();
            let reason = if place.is_empty() {
                format!("RBAC: allowed by ClusterRoleBinding \"{bound}\" of {kind} \"{name}\" to {who}")
            } else {
                format!("RBAC: allowed by RoleBinding \"{bound}/{place}\" of {kind} \"{name}\" to {who}")
            };
            let of_role = role["rules"].as_array().into_iter().flatten();
            rules.extend(of_role.map(|rule| GrantedRule { rule: rule.clone(), reason: reason.clone() }));
        }
    }
    (rules, broken)
}

/// How a subject names the user, when it does.
fn matches_subject(subject: &Value, user: &User, binding_namespace: &str) -> Option<String> {
    let name = subject["name"].as_str().unwrap_or_default();
    match subject["kind"].as_str()? {
        "User" => (user.name == name).then(|| format!("User \"{name}\"")),
        "Group" => user.groups.iter().any(|group| group == name).then(|| format!("Group \"{name}\"")),
        "ServiceAccount" => {
            let namespace = subject["namespace"].as_str().filter(|text| !text.is_empty()).unwrap_or(binding_namespace);
            let account = format!("system:serviceaccount:{namespace}:{name}");
            (user.name == account).then(|| format!("ServiceAccount \"{name}/{namespace}\""))
        }
        _ => None,
    }
}

/// Whether one rule of a role allows the action.
pub(super) fn allows(rule: &Value, action: &Action) -> bool {
    let has = |field: &str, wanted: &str| list(rule, field).any(|found| found == "*" || found == wanted);
    if !has("verbs", &action.verb) {
        return false;
    }
    if action.resource.is_empty() {
        return list(rule, "nonResourceURLs").any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => action.path.starts_with(prefix),
            None => pattern == action.path,
        });
    }
    let resource = action.qualified_resource();
    let any_of = format!("*/{}", action.subresource);
    let is_resource = list(rule, "resources")
        .any(|found| found == "*" || found == resource || (!action.subresource.is_empty() && found == any_of));
    let mut names = list(rule, "resourceNames").peekable();
    let is_name = names.peek().is_none() || names.any(|name| name == action.name);
    is_resource && is_name && has("apiGroups", &action.group)
}

fn list<'a>(rule: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    rule[field].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn definition<'a>(core: &'a ApiServer, plural: &str) -> Option<&'a Arc<ResourceDef>> {
    core.registry.get(GROUP, "v1", plural)
}

fn object(core: &ApiServer, plural: &str, namespace: &str, name: &str) -> Option<Value> {
    core.object(definition(core, plural)?, namespace, name)
}

fn objects(core: &ApiServer, plural: &str, namespace: &str) -> Vec<Value> {
    let Some(definition) = definition(core, plural) else { return Vec::new() };
    let prefix = definition.key_prefix(namespace);
    let records = core.store.collection(definition.collection).range(&prefix, "");
    records.map(|(_, record)| crate::encode::value(definition, record)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn action(verb: &str, resource: &str, subresource: &str, name: &str) -> Action {
        Action {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
            ..Action::default()
        }
    }

    #[test]
    fn a_rule_allows_what_it_names_and_no_more() {
        let rule = json!({"apiGroups": [""], "resources": ["pods", "*/scale"], "verbs": ["get"]});
        assert!(allows(&rule, &action("get", "pods", "", "p")));
        assert!(!allows(&rule, &action("get", "pods", "status", "p")));
        assert!(allows(&rule, &action("get", "things", "scale", "p")));
        assert!(!allows(&rule, &action("list", "pods", "", "")));
        let named = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "resourceNames": ["a"]});
        assert!(allows(&named, &action("get", "pods", "", "a")));
        assert!(!allows(&named, &action("list", "pods", "", "")));
        let path = json!({"nonResourceURLs": ["/custom/*", "/version"], "verbs": ["get"]});
        let at = |path: &str| Action { verb: "get".to_owned(), path: path.to_owned(), ..Action::default() };
        assert!(allows(&path, &at("/custom/x")));
        assert!(!allows(&path, &at("/custom2")));
        assert!(allows(&path, &at("/version")));
    }
}
