//! What users asked for, so that a test can hold the permissions that somebody has against those that he uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use koord_resource::rbac::RbacRule;
use parking_lot::Mutex;

use super::rbac::Action;

/// Something that a user asked for, whatever the object's name was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// Name of the user.
    pub user: String,
    /// Namespace; empty for cluster scope or all namespaces.
    pub namespace: String,
    /// API group; empty for core.
    pub group: String,
    /// Plural and, after a slash, the subresource; a path when it was about no resource.
    pub resource: String,
    /// `get`, `list`, `create`, …
    pub verb: String,
    /// Whether he was allowed to.
    pub allowed: bool,
}

/// A right as a role grants it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// Namespace; empty for all of them.
    pub namespace: String,
    /// API group; empty for core.
    pub group: String,
    /// Plural and, after a slash, the subresource.
    pub resource: String,
    /// `get`, `list`, `create`, …
    pub verb: String,
}

/// Notes each thing that is asked for once; clones share the notes.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<BTreeSet<Asked>>>);

// === impl Right ===

impl Right {
    /// What rules grant, each right once: those of Roles in this namespace, the others everywhere.
    pub fn of_rules(rules: &[RbacRule], own_namespace: &str) -> BTreeSet<Self> {
        let of_rule = |rule: &RbacRule| {
            let namespace = rule.namespace.map_or("", |_| own_namespace).to_owned();
            let (group, resource) = (rule.group.to_owned(), rule.resource.to_owned());
            let right = move |verb: &&str| Self {
                namespace: namespace.clone(),
                group: group.clone(),
                resource: resource.clone(),
                verb: (*verb).to_owned(),
            };
            rule.verbs.iter().map(right).collect::<Vec<_>>()
        };
        rules.iter().flat_map(of_rule).collect()
    }

    /// Whether something that was asked for needed it.
    pub fn is_used_by(&self, asked: &Asked) -> bool {
        (&self.group, &self.resource, &self.verb) == (&asked.group, &asked.resource, &asked.verb)
            && (self.namespace.is_empty() || self.namespace == asked.namespace)
    }
}

// === impl Recorder ===

impl Recorder {
    /// Everything that this user has asked for so far.
    pub fn asked_by(&self, user: &str) -> Vec<Asked> {
        self.0.lock().iter().filter(|asked| asked.user == user).cloned().collect()
    }

    pub(super) fn note(&self, user: &str, action: &Action, allowed: bool) {
        let resource = match (action.resource.as_str(), action.subresource.as_str()) {
            ("", _) => action.path.clone(),
            (resource, "") => resource.to_owned(),
            (resource, subresource) => format!("{resource}/{subresource}"),
        };
        self.0.lock().insert(Asked {
            user: user.to_owned(),
            namespace: action.namespace.clone(),
            group: action.group.clone(),
            resource,
            verb: action.verb.clone(),
            allowed,
        });
    }
}
