//! Nobody grants what they do not hold: roles and bindings are stored for users who have every rule in them, or the
//! verbs `escalate` and `bind`.

use serde_json::{Value, json};

use super::authorizer;
use super::rbac::{self, Action};
use crate::registry::ResourceDef;
use crate::request::User;
use crate::server::ApiServer;
use crate::status::{ApiError, Subject};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether the user may store this role or binding; objects of other kinds may always be stored.
pub(super) fn check(
    core: &ApiServer,
    user: &User,
    definition: &ResourceDef,
    namespace: &str,
    object: &Value,
) -> Result<(), ApiError> {
    if definition.group != GROUP || user.groups.iter().any(|group| group == "system:masters") {
        return Ok(());
    }
    let plural = definition.plural.as_str();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let forbidden = |why: &str| ApiError::forbidden(Subject { group: GROUP, resource: plural, name }, why);
    let rules = match plural {
        "roles" | "clusterroles" => {
            if may(core, user, "escalate", plural, namespace, name) {
                return Ok(());
            }
            if object["aggregationRule"].is_object() && !holds_everything(core, user) {
                return Err(forbidden("must have cluster-admin privileges to use the aggregationRule"));
            }
            object["rules"].clone()
        }
        "rolebindings" | "clusterrolebindings" => {
            let (kind, role) = (&object["roleRef"]["kind"], object["roleRef"]["name"].as_str().unwrap_or_default());
            let (roles, place) = if kind == "Role" { ("roles", namespace) } else { ("clusterroles", "") };
            if may(core, user, "bind", roles, namespace, role) {
                return Ok(());
            }
            let missing = || ApiError::not_found(Subject { group: GROUP, resource: plural, name: role });
            let roles = core.registry.get(GROUP, "v1", roles).ok_or_else(missing)?;
            core.object(roles, place, role).ok_or_else(missing)?["rules"].clone()
        }
        _ => return Ok(()),
    };
    let missing = not_held(core, user, namespace, &rules);
    if missing.is_empty() {
        return Ok(());
    }
    Err(forbidden(&format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(&user.groups),
        missing.join("\n")
    )))
}

fn may(core: &ApiServer, user: &User, verb: &str, resource: &str, namespace: &str, name: &str) -> bool {
    let action = Action {
        verb: verb.to_owned(),
        group: GROUP.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..Action::default()
    };
    authorizer::decide(core, user, &action).allowed
}

fn holds_everything(core: &ApiServer, user: &User) -> bool {
    let everything = json!([
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]);
    not_held(core, user, "", &everything).is_empty()
}

/// One permission of a rule: a single verb on a single resource, object or path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Permission {
    groups: Vec<String>,
    resources: Vec<String>,
    paths: Vec<String>,
    names: Vec<String>,
    verbs: Vec<String>,
}

/// The permissions of these rules that the user does not hold in the namespace, as messages show them.
fn not_held(core: &ApiServer, user: &User, namespace: &str, rules: &Value) -> Vec<String> {
    let (held, _) = rbac::granted(core, user, namespace);
    let mut missing: Vec<Permission> = Vec::new();
    for permission in rules.as_array().into_iter().flatten().flat_map(permissions) {
        if held.iter().any(|granted| covers(&granted.rule, &permission)) {
            continue;
        }
        // The verbs on a whole resource are shown together.
        let same = missing.iter_mut().find(|known| {
            known.paths.is_empty()
                && known.names.is_empty()
                && permission.names.is_empty()
                && (&known.groups, &known.resources) == (&permission.groups, &permission.resources)
        });
        match same {
            Some(known) => known.verbs.extend(permission.verbs),
            None => missing.push(permission),
        }
    }
    let mut shown: Vec<String> = missing.iter().map(Permission::to_text).collect();
    shown.sort();
    shown.dedup();
    shown
}

fn texts<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn permissions(rule: &Value) -> Vec<Permission> {
    let one = |text: &str| vec![text.to_owned()];
    let mut permissions = Vec::new();
    for verb in texts(rule, "verbs") {
        for path in texts(rule, "nonResourceURLs") {
            permissions.push(Permission { paths: one(path), verbs: one(verb), ..Permission::default() });
        }
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                let whole = Permission {
                    groups: one(group),
                    resources: one(resource),
                    verbs: one(verb),
                    ..Permission::default()
                };
                match texts(rule, "resourceNames").as_slice() {
                    [] => permissions.push(whole),
                    names => {
                        permissions.extend(names.iter().map(|name| Permission { names: one(name), ..whole.clone() }));
                    }
                }
            }
        }
    }
    permissions
}

/// Whether a rule that the user has includes the permission.
fn covers(rule: &Value, permission: &Permission) -> bool {
    let has = |field: &str, wanted: &[String]| {
        let given = texts(rule, field);
        given.contains(&"*") || wanted.iter().all(|wanted| given.contains(&wanted.as_str()))
    };
    let names = texts(rule, "resourceNames");
    let is_resource = permission.resources.iter().all(|wanted| {
        let given = texts(rule, "resources");
        let any_of = wanted.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        given.contains(&"*")
            || given.contains(&wanted.as_str())
            || any_of.is_some_and(|any_of| given.contains(&any_of.as_str()))
    });
    let is_named = names.is_empty()
        || (!permission.names.is_empty() && permission.names.iter().all(|wanted| names.contains(&wanted.as_str())));
    let is_path = permission.paths.iter().all(|wanted| {
        texts(rule, "nonResourceURLs").iter().any(|given| match given.strip_suffix('*') {
            Some(prefix) => wanted.starts_with(prefix),
            None => wanted == given,
        })
    });
    has("verbs", &permission.verbs) && has("apiGroups", &permission.groups) && is_resource && is_named && is_path
}

fn quoted(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" "))
}

// === impl Permission ===

impl Permission {
    fn to_text(&self) -> String {
        let fields = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let fields = fields.iter().filter(|(_, texts)| !texts.is_empty());
        let fields: Vec<String> = fields.map(|(name, texts)| format!("{name}:{}", quoted(texts))).collect();
        format!("{{{}}}", fields.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_covers_what_it_includes_and_no_more() {
        let permission = |rule: Value| permissions(&rule).remove(0);
        let pods = permission(json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}));
        let pod = permission(json!({
            "apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"],
        }));
        let scale = permission(json!({"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"]}));
        let held = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]});
        assert!(covers(&held, &pods) && covers(&held, &pod) && !covers(&held, &scale));
        let named = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["*"], "resourceNames": ["a"]});
        assert!(!covers(&named, &pods) && covers(&named, &pod));
        let scales = json!({"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["*"]});
        assert!(covers(&scales, &scale));
        let paths = json!({"nonResourceURLs": ["/a/*"], "verbs": ["get"]});
        assert!(covers(&paths, &permission(json!({"nonResourceURLs": ["/a/b"], "verbs": ["get"]}))));
        assert!(!covers(&paths, &permission(json!({"nonResourceURLs": ["/b"], "verbs": ["get"]}))));
    }

    #[test]
    fn a_permission_is_shown_by_its_fields() {
        let rule = json!({"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["update"], "resourceNames": ["x"]});
        let text = permissions(&rule)[0].to_text();
        assert_eq!(
            text,
            r#"{APIGroups:["apps"], Resources:["deployments/scale"], ResourceNames:["x"], Verbs:["update"]}"#
        );
    }
}
