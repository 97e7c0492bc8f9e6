//! What users asked for, so that a test can hold the permissions that somebody has against those that he uses.

use std::collections::BTreeSet;
use std::sync::Arc;

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

/// Notes each thing that is asked for once; clones share the notes.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<BTreeSet<Asked>>>);

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
