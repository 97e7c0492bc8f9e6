//! Roles out of declared permissions, merged and ordered as controller-gen does it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::crd::sorted;
use crate::rbac::{OWN_NAMESPACE, RbacRule};

/// A rule whose objects may have names that are known only at run time.
#[derive(Clone, Debug)]
pub(super) struct Grant<'a> {
    rule: RbacRule,
    names: Vec<&'a str>,
}

impl From<RbacRule> for Grant<'_> {
    fn from(rule: RbacRule) -> Self {
        Self { rule, names: rule.names.to_vec() }
    }
}

impl<'a> Grant<'a> {
    /// The rule for the object of this name alone.
    pub(super) fn of_one(rule: RbacRule, name: &'a str) -> Self {
        Self { rule, names: vec![name] }
    }
}

/// What a rule grants, without the verbs. The order of the fields is the order of the rules in a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    groups: BTreeSet<String>,
    resources: BTreeSet<String>,
    names: BTreeSet<String>,
    urls: BTreeSet<String>,
}

type Verbs = BTreeSet<String>;

/// A ClusterRole for the permissions without a namespace, and a Role for each namespace that has some; one more of each
/// for every role that rules name.
///
/// `name` is the name of all whose rules name no other role; `installed` is the namespace that `"."` stands for.
pub fn roles(name: &str, rules: &[RbacRule], installed: &str) -> Vec<Value> {
    let grants: Vec<Grant<'_>> = rules.iter().copied().map(Grant::from).collect();
    roles_of(name, &grants, installed)
}

/// The same [`roles`], of rules with names that are known only at run time.
pub(super) fn roles_of(name: &str, grants: &[Grant<'_>], installed: &str) -> Vec<Value> {
    let mut by_role: BTreeMap<(&str, &str), Vec<&Grant<'_>>> = BTreeMap::new();
    for grant in grants {
        let namespace = match grant.rule.namespace {
            Some(OWN_NAMESPACE) => installed,
            Some(namespace) => namespace,
            None => "",
        };
        by_role.entry((namespace, grant.rule.role.unwrap_or(name))).or_default().push(grant);
    }
    by_role.into_iter().map(|((namespace, name), grants)| role(name, namespace, &grants)).collect()
}

fn role(name: &str, namespace: &str, grants: &[&Grant<'_>]) -> Value {
    let rules: Vec<Value> = normalized(grants).iter().map(|(key, verbs)| policy_rule(key, verbs)).collect();
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), json!(name));
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    sorted(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": if namespace.is_empty() { "ClusterRole" } else { "Role" },
        "metadata": metadata,
        "rules": rules,
    }))
}

/// Joins verbs of equal keys, then resources, groups and URLs of rules that are equal otherwise.
fn normalized(grants: &[&Grant<'_>]) -> Vec<(Key, Verbs)> {
    let mut verbs: BTreeMap<Key, Verbs> = BTreeMap::new();
    for Grant { rule, names } in grants {
        let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<BTreeSet<_>>();
        let of_resource = rule.urls.is_empty();
        let key = Key {
            groups: if of_resource { set(&[if rule.group == "core" { "" } else { rule.group }]) } else { set(&[]) },
            resources: if of_resource { set(&[rule.resource]) } else { set(&[]) },
            names: set(names),
            urls: set(rule.urls),
        };
        verbs.entry(key).or_default().extend(rule.verbs.iter().map(|verb| (*verb).to_owned()));
    }
    let mut rules: Vec<(Key, Verbs)> = verbs.into_iter().collect();
    for part in [Part::Resources, Part::Groups, Part::Urls] {
        rules = merged(rules, part);
    }
    rules.sort_by_key(|(key, _)| {
        let joined = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join("&");
        [joined(&key.groups), joined(&key.resources), joined(&key.names), joined(&key.urls)]
    });
    for (_, verbs) in &mut rules {
        if verbs.contains("*") {
            *verbs = Verbs::from(["*".to_owned()]);
        }
    }
    rules
}

#[derive(Clone, Copy)]
enum Part {
    Resources,
    Groups,
    Urls,
}

impl Part {
    fn of(self, key: &mut Key) -> &mut BTreeSet<String> {
        match self {
            Part::Resources => &mut key.resources,
            Part::Groups => &mut key.groups,
            Part::Urls => &mut key.urls,
        }
    }
}

/// Joins one part of the rules that agree in all others.
fn merged(rules: Vec<(Key, Verbs)>, part: Part) -> Vec<(Key, Verbs)> {
    let mut alike: BTreeMap<(Key, Verbs), BTreeSet<String>> = BTreeMap::new();
    for (mut key, verbs) in rules {
        let own = std::mem::take(part.of(&mut key));
        alike.entry((key, verbs)).or_default().extend(own);
    }
    let restored = alike.into_iter().map(|((mut key, verbs), joined)| {
        *part.of(&mut key) = joined;
        (key, verbs)
    });
    restored.collect()
}

fn policy_rule(key: &Key, verbs: &Verbs) -> Value {
    let mut rule = Map::new();
    if key.urls.is_empty() {
        rule.insert("apiGroups".to_owned(), json!(key.groups));
        rule.insert("resources".to_owned(), json!(key.resources));
    } else {
        rule.insert("nonResourceURLs".to_owned(), json!(key.urls));
    }
    if !key.names.is_empty() {
        rule.insert("resourceNames".to_owned(), json!(key.names));
    }
    rule.insert("verbs".to_owned(), json!(verbs));
    Value::Object(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rules: &[RbacRule]) -> Vec<String> {
        let document = roles("r", rules, "here").remove(0);
        let rules = document["rules"].as_array().unwrap().clone();
        let words = |value: &Value| {
            let words = value.as_array().into_iter().flatten();
            words.filter_map(Value::as_str).collect::<Vec<_>>().join(",")
        };
        let line = |rule: &Value| {
            format!(
                "{}/{}{}: {}",
                words(&rule["apiGroups"]),
                words(&rule["resources"]),
                words(&rule["nonResourceURLs"]),
                words(&rule["verbs"])
            )
        };
        rules.iter().map(line).collect()
    }

    #[test]
    fn rules_are_joined_by_verbs_then_by_resources_then_by_groups() {
        assert_eq!(
            shown(&[
                RbacRule::new("apps", "deployments", &["watch", "get"]),
                RbacRule::new("", "pods", &["list"]),
                RbacRule::new("core", "pods", &["get", "watch"]),
                RbacRule::new("", "nodes", &["watch", "list", "get"]),
                RbacRule::new("batch", "jobs", &["get", "watch"]),
                RbacRule::new("batch", "deployments", &["get", "watch"]),
                RbacRule::new("b", "x", &["*", "get"]),
                RbacRule { urls: &["/metrics"], ..RbacRule::new("", "", &["get"]) },
                RbacRule { urls: &["/healthz"], ..RbacRule::new("", "", &["get"]) },
            ]),
            [
                "//healthz,/metrics: get",
                "/nodes,pods: get,list,watch",
                "apps/deployments: get,watch",
                "b/x: *",
                "batch/deployments,jobs: get,watch",
            ]
        );
    }

    #[test]
    fn a_namespace_gets_a_role_of_its_own() {
        let documents = roles(
            "r",
            &[
                RbacRule::new("", "pods", &["get"]),
                RbacRule { namespace: Some("."), ..RbacRule::new("", "secrets", &["get"]) },
            ],
            "here",
        );
        let named: Vec<_> = documents.iter().map(|d| (d["kind"].clone(), d["metadata"].clone())).collect();
        assert_eq!(
            named,
            [(json!("ClusterRole"), json!({"name": "r"})), (json!("Role"), json!({"name": "r", "namespace": "here"}))]
        );
    }

    #[test]
    fn a_rule_that_names_a_role_stands_in_it() {
        let viewer = RbacRule { role: Some("viewer"), ..RbacRule::new("", "pods", &["get"]) };
        let documents = roles(
            "r",
            &[RbacRule::new("", "nodes", &["get"]), viewer, RbacRule { namespace: Some("shop"), ..viewer }],
            "here",
        );
        let named = |document: &Value| (document["metadata"].clone(), document["rules"][0]["resources"].clone());
        assert_eq!(
            documents.iter().map(named).collect::<Vec<_>>(),
            [
                (json!({"name": "r"}), json!(["nodes"])),
                (json!({"name": "viewer"}), json!(["pods"])),
                (json!({"name": "viewer", "namespace": "shop"}), json!(["pods"])),
            ]
        );
    }
}
