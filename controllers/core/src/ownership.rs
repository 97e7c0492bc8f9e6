//! Owner references and finalizers.

use std::sync::Arc;

use koord_resource::controller::ResourceKind;
use serde_json::{Value, json};

use crate::{cache::Entry, key::ObjectKey};

/// Why an object cannot own another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnershipError {
    /// The garbage collector would delete the dependent at once.
    #[error("{owner} lives in a namespace and cannot own the cluster-scoped {dependent}")]
    ClusterDependent {
        /// The owner.
        owner: ObjectKey,
        /// The dependent.
        dependent: ObjectKey,
    },
    /// The garbage collector would not find the owner.
    #[error("{owner} and {dependent} live in different namespaces; an owner must live where its dependent lives")]
    OtherNamespace {
        /// The owner.
        owner: ObjectKey,
        /// The dependent.
        dependent: ObjectKey,
    },
}

/// The owner reference of a controller for one of its objects; refused where the garbage collector would take the
/// dependent for an orphan.
pub fn controller_reference<P>(
    kind: &ResourceKind,
    owner: (&ObjectKey, &Entry<P>),
    dependent: &ObjectKey,
) -> Result<Value, OwnershipError> {
    let (key, entry) = owner;
    let both = || (key.clone(), dependent.clone());
    if kind.namespaced && dependent.namespace().is_empty() {
        let (owner, dependent) = both();
        return Err(OwnershipError::ClusterDependent { owner, dependent });
    }
    if kind.namespaced && key.namespace() != dependent.namespace() {
        let (owner, dependent) = both();
        return Err(OwnershipError::OtherNamespace { owner, dependent });
    }
    Ok(json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": key.name(), "uid": entry.uid,
        "controller": true, "blockOwnerDeletion": true,
    }))
}

/// What a finalizer asks for, given what the object shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finalize {
    /// Add the finalizer first, by setting the list to this.
    Add(Vec<Arc<str>>),
    /// Apply the object.
    Apply,
    /// Clean up, then set the list to this.
    CleanUp(Vec<Arc<str>>),
    /// The object is going and is not ours any more.
    Nothing,
}

/// The two halves of a finalizer as one decision: nothing outside may exist before the finalizer is stored, and the
/// finalizer goes only after everything outside is gone.
pub fn finalize(name: &str, finalizers: &[Arc<str>], deleting: bool) -> Finalize {
    let present = finalizers.iter().any(|known| known.as_ref() == name);
    match (deleting, present) {
        (false, false) => Finalize::Add(finalizers.iter().cloned().chain([Arc::from(name)]).collect()),
        (false, true) => Finalize::Apply,
        (true, true) => Finalize::CleanUp(finalizers.iter().filter(|known| known.as_ref() != name).cloned().collect()),
        (true, false) => Finalize::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry<()> {
        Entry {
            uid: "u".into(),
            revision: crate::cache::Revision(1),
            generation: 1,
            deleting: false,
            value: Arc::new(()),
        }
    }

    #[test]
    fn an_owner_must_live_where_its_dependent_lives() {
        let refer = |kind, owner: ObjectKey, dependent: ObjectKey| {
            controller_reference(kind, (&owner, &entry()), &dependent).map_err(|error| error.to_string())
        };
        let (node, namespaced) = (ObjectKey::cluster("n"), ObjectKey::new("a", "x"));
        assert_eq!(refer(&ResourceKind::NODE, node.clone(), namespaced.clone()).unwrap()["kind"], "Node");
        assert!(refer(&ResourceKind::POD, namespaced.clone(), ObjectKey::new("a", "y")).is_ok());
        assert!(refer(&ResourceKind::POD, namespaced.clone(), node).unwrap_err().contains("cluster-scoped n"));
        assert!(refer(&ResourceKind::POD, namespaced, ObjectKey::new("b", "y")).unwrap_err().contains("different"));
    }

    #[test]
    fn a_finalizer_comes_before_everything_and_goes_after_it() {
        let (ours, other): (Arc<str>, Arc<str>) = ("koord/x".into(), "z".into());
        let both = [Arc::clone(&other), Arc::clone(&ours)];
        let ask = |finalizers: &[Arc<str>], deleting| finalize("koord/x", finalizers, deleting);
        assert_eq!(ask(std::slice::from_ref(&other), false), Finalize::Add(both.to_vec()));
        assert_eq!(ask(&both, false), Finalize::Apply);
        assert_eq!(ask(&both, true), Finalize::CleanUp(vec![other]));
        assert_eq!(ask(&[], true), Finalize::Nothing);
    }
}
