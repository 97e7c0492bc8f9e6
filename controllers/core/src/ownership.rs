//! Who an object belongs to, and what must be cleaned up before it goes: owner references and finalizers.

use std::{borrow::Cow, sync::Arc};

use koord_resource::controller::ResourceKind;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    cache::Entry,
    intern::Interner,
    key::ObjectKey,
    projection::{DecodeError, Projection},
    uid::Uid,
};

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

/// An object that controls others: the owner reference with `controller: true`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// `group/version`, or the version alone.
    pub api_version: Arc<str>,
    /// Its kind.
    pub kind: Arc<str>,
    /// Its name; it lives in the namespace of what it controls, or in none.
    pub name: Arc<str>,
    /// Tells apart an object and a later one of the same name.
    pub uid: Uid,
}

impl Owner {
    /// An object of a cache as an owner.
    pub fn of<P: Projection>(key: &ObjectKey, entry: &Entry<P>) -> Self {
        Self {
            api_version: P::KIND.api_version().into(),
            kind: P::KIND.kind.into(),
            name: key.name().into(),
            uid: entry.uid.clone(),
        }
    }

    /// The controller among the owner references of an object; none where nothing controls it.
    pub fn read(owners: Option<&RawValue>, strings: &mut Interner) -> Result<Option<Self>, DecodeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Reference<'a> {
            #[serde(borrow)]
            api_version: Cow<'a, str>,
            #[serde(borrow)]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            name: Cow<'a, str>,
            #[serde(borrow)]
            uid: Cow<'a, str>,
            controller: Option<bool>,
        }
        let Some(owners) = owners else { return Ok(None) };
        let owners: Option<Vec<Reference<'_>>> =
            serde_json::from_str(owners.get()).map_err(|error| DecodeError::new("metadata.ownerReferences", error))?;
        let controller = owners.into_iter().flatten().find(|owner| owner.controller == Some(true));
        Ok(controller.map(|owner| Self {
            api_version: strings.intern(&owner.api_version),
            kind: strings.intern(&owner.kind),
            name: strings.intern(&owner.name),
            uid: Uid::from(&*owner.uid),
        }))
    }

    /// Whether the owner is of a kind, in whatever version the reference names it.
    pub fn is_a(&self, kind: &ResourceKind) -> bool {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        *self.kind == *kind.kind && group == kind.group
    }

    /// The key of the owner of an object, given the owner's kind.
    pub fn key(&self, kind: &ResourceKind, dependent: &ObjectKey) -> ObjectKey {
        ObjectKey::new(if kind.namespaced { dependent.namespace() } else { "" }, &self.name)
    }

    /// As an owner reference.
    pub fn reference(&self) -> Value {
        json!({
            "apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid,
            "controller": true, "blockOwnerDeletion": true,
        })
    }
}

/// A projection that keeps by which object its objects are controlled.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not keep who controls its objects",
    note = "take `Child<Type>`, add the field `controller: Option<Owner>` to the projection, or say `by = same_name` where objects have the name of their owner"
)]
pub trait Controlled: Projection {
    /// The controller; none where nothing controls the object.
    fn controller(&self) -> Option<&Owner>;
}

/// Refuses owners that the garbage collector would not find: it would take the dependent for an orphan.
pub fn check_owner(owner: (&ResourceKind, &ObjectKey), dependent: &ObjectKey) -> Result<(), OwnershipError> {
    let (kind, key) = owner;
    let both = || (key.clone(), dependent.clone());
    if kind.namespaced && dependent.namespace().is_empty() {
        let (owner, dependent) = both();
        return Err(OwnershipError::ClusterDependent { owner, dependent });
    }
    if kind.namespaced && key.namespace() != dependent.namespace() {
        let (owner, dependent) = both();
        return Err(OwnershipError::OtherNamespace { owner, dependent });
    }
    Ok(())
}

/// What must be done before an object goes: the names in `metadata.finalizers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finalizers(Box<[Arc<str>]>);

impl Finalizers {
    /// Reads the finalizers of an object.
    pub fn read(finalizers: Option<&RawValue>, strings: &mut Interner) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
        let Some(finalizers) = finalizers else { return Ok(Self::default()) };
        let names: Option<Vec<Name<'_>>> =
            serde_json::from_str(finalizers.get()).map_err(|error| DecodeError::new("metadata.finalizers", error))?;
        Ok(Self(names.into_iter().flatten().map(|name| strings.intern(&name.0)).collect()))
    }

    /// All names, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Whether a name is among them.
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|known| known == name)
    }
}

/// A projection that keeps the finalizers of its objects.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not keep the finalizers of its objects",
    note = "add the field `finalizers: Finalizers` to the projection"
)]
pub trait Finalized: Projection {
    /// The finalizers.
    fn finalizers(&self) -> &Finalizers;
}

/// How far the cleanup of an object has come that is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cleanup {
    /// Nothing is left; the finalizer goes.
    Done,
    /// The finalizer stays. An event of the object says what is waited for, such as `the bucket data-7`.
    WaitsFor(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_must_live_where_its_dependent_lives() {
        let refused = |kind, owner: ObjectKey, dependent: ObjectKey| {
            check_owner((kind, &owner), &dependent).map_err(|error| error.to_string())
        };
        let (node, namespaced) = (ObjectKey::cluster("n"), ObjectKey::new("a", "x"));
        assert_eq!(refused(&ResourceKind::NODE, node.clone(), namespaced.clone()), Ok(()));
        assert_eq!(refused(&ResourceKind::POD, namespaced.clone(), ObjectKey::new("a", "y")), Ok(()));
        assert!(refused(&ResourceKind::POD, namespaced.clone(), node).unwrap_err().contains("cluster-scoped n"));
        assert!(refused(&ResourceKind::POD, namespaced, ObjectKey::new("b", "y")).unwrap_err().contains("different"));
    }

    #[test]
    fn the_controller_is_found_among_the_owners() {
        let read = |text: &str| {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            Owner::read(Some(raw), &mut Interner::default()).map_err(|error| error.to_string())
        };
        let reference = |name: &str, controller: bool| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u", "controller": controller});
        let owner = read(&json!([reference("a", false), reference("b", true)]).to_string()).unwrap().unwrap();
        assert_eq!(*owner.name, *"b");
        let sets = ResourceKind {
            group: "apps",
            version: "v1beta2",
            kind: "ReplicaSet",
            plural: "replicasets",
            namespaced: true,
        };
        assert!(owner.is_a(&sets) && !owner.is_a(&ResourceKind { group: "", ..sets }));
        assert_eq!(owner.key(&sets, &ObjectKey::new("ns", "pod")), ObjectKey::new("ns", "b"));
        assert_eq!(
            owner.key(&ResourceKind { namespaced: false, ..sets }, &ObjectKey::new("ns", "pod")),
            ObjectKey::cluster("b")
        );
        assert_eq!((read("null"), read("[]")), (Ok(None), Ok(None)));
        assert!(read("[{}]").unwrap_err().starts_with("metadata.ownerReferences: missing field"));
    }
}
