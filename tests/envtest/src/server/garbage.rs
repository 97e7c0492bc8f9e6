//! Garbage collection and the deletion of namespaces, as kube-controller-manager does them in a real cluster.
//!
//! Nothing here runs by itself. [`ApiServer::collect_garbage`] is one deterministic pass over what changed since the last;
//! a simulation calls it as a step, a server with controllers some time after a change. Its writes ask no webhooks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use http::Method;
use serde_json::{Value, json};

use super::{ApiServer, Outcome};
use crate::{
    encode, metadata,
    registry::ResourceDef,
    request::{ApiRequest, User},
    store::{Change, ChangeKind, CollectionId, Record},
};

/// One object: its collection and key.
type Place = (CollectionId, Arc<str>);

/// Dependents by owner, and the objects of the next pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Garbage {
    /// Objects by the identity of an owner.
    dependents: BTreeMap<Box<str>, BTreeSet<Place>>,
    /// Objects to examine in the next pass.
    suspects: BTreeSet<Place>,
    /// Objects that wait for their dependents, by identity.
    waiting: BTreeMap<Box<str>, Place>,
    /// Namespaces that are ending.
    ending: BTreeSet<String>,
}

impl Garbage {
    /// Takes note of a changed object.
    pub(super) fn note_put(
        &mut self,
        collection: CollectionId,
        key: &str,
        old: Option<&Record>,
        new: &Record,
        object: &Value,
    ) {
        let place = (collection, Arc::from(key));
        self.forget_owners(&place, old);
        for owner in &new.owners {
            self.dependents.entry(owner.clone()).or_default().insert(place.clone());
        }
        if !new.owners.is_empty() || metadata::is_deleting(object) {
            self.suspects.insert(place);
        }
    }

    /// Takes note of an object that is gone.
    pub(super) fn note_removed(&mut self, collection: CollectionId, key: &str, old: Option<&Record>, object: &Value) {
        let place = (collection, Arc::from(key));
        self.forget_owners(&place, old);
        // A server without controllers keeps no list of what it will never look at.
        self.suspects.remove(&place);
        let uid = metadata::text(object, "uid");
        self.waiting.remove(uid);
        if let Some(dependents) = self.dependents.get(uid) {
            self.suspects.extend(dependents.iter().cloned());
        }
    }

    /// Takes note that a change is undone; what rests on it is looked at again.
    pub(super) fn note_undone(&mut self, collection: CollectionId, change: &Change) {
        let place = (collection, Arc::clone(&change.key));
        if change.kind != ChangeKind::Deleted {
            self.forget_owners(&place, Some(&change.new));
        }
        for owner in change.old.iter().flat_map(|old| old.owners.iter()) {
            self.dependents.entry(owner.clone()).or_default().insert(place.clone());
        }
        self.suspects.insert(place);
    }

    fn forget_owners(&mut self, place: &Place, record: Option<&Record>) {
        for owner in record.into_iter().flat_map(|record| record.owners.iter()) {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(place);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
            if let Some(waiting) = self.waiting.get(owner) {
                self.suspects.insert(waiting.clone());
            }
        }
    }
}

/// The state of an owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Present,
    WaitingForDependents,
    Absent,
}

impl ApiServer {
    /// Whether [`Self::collect_garbage`] may have something to do.
    pub fn has_garbage(&self) -> bool {
        !self.garbage.suspects.is_empty() || !self.garbage.ending.is_empty()
    }

    /// One pass of garbage collection and namespace deletion; gives the number of writes. Cascades take several passes.
    pub fn collect_garbage(&mut self) -> usize {
        let before = self.store.revision();
        for place in std::mem::take(&mut self.garbage.suspects) {
            self.examine(&place);
        }
        for namespace in self.garbage.ending.clone() {
            self.empty_namespace(&namespace);
        }
        usize::try_from(self.store.revision() - before).unwrap_or(usize::MAX)
    }

    fn examine(&mut self, place: &Place) {
        let (collection, key) = place;
        let Some(record) = self.store.collection(*collection).get(key).cloned() else { return };
        let Some(definition) = self.registry.storing(*collection, &record).cloned() else { return };
        let object = encode::value(&definition, &record);
        if metadata::is_deleting(&object) {
            if definition.group.is_empty() && definition.plural == "namespaces" {
                self.garbage.ending.insert(metadata::text(&object, "name").to_owned());
            }
            self.finish_deletion(place, &definition, &object);
        } else if !record.owners.is_empty() {
            self.check_owners(&definition, &object);
        }
    }

    /// Carries out the finalizers that stand for a propagation policy.
    fn finish_deletion(&mut self, place: &Place, definition: &ResourceDef, object: &Value) {
        let uid = metadata::text(object, "uid");
        let dependents: Vec<Place> = self.garbage.dependents.get(uid).into_iter().flatten().cloned().collect();
        if metadata::finalizers(object).any(|finalizer| finalizer == "orphan") {
            for dependent in &dependents {
                self.drop_owners(dependent, &|owner| owner == uid);
            }
            self.drop_finalizer(definition, object, "orphan");
        } else if metadata::finalizers(object).any(|finalizer| finalizer == "foregroundDeletion") {
            let mut blocks = false;
            for (collection, key) in &dependents {
                let Some(record) = self.store.collection(*collection).get(key).cloned() else { continue };
                let Some(known) = self.registry.storing(*collection, &record).cloned() else { continue };
                let dependent = encode::value(&known, &record);
                let references = dependent["metadata"]["ownerReferences"].as_array().into_iter().flatten();
                blocks |= references
                    .clone()
                    .any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == Value::Bool(true));
                if !metadata::is_deleting(&dependent) {
                    self.check_owners(&known, &dependent);
                }
            }
            if blocks && !self.garbage.dependents.get(uid).is_none_or(BTreeSet::is_empty) {
                self.garbage.waiting.insert(uid.into(), place.clone());
            } else {
                self.drop_finalizer(definition, object, "foregroundDeletion");
            }
        }
    }

    /// Deletes an object whose owners are all absent; removes the references to absent owners where others are present.
    fn check_owners(&mut self, definition: &ResourceDef, object: &Value) {
        let references: Vec<Value> = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let mut absent = Vec::new();
        let (mut is_present, mut waiting) = (false, false);
        for reference in &references {
            match self.owner(definition, object, reference) {
                Owner::Present => is_present = true,
                Owner::WaitingForDependents => {
                    waiting = true;
                    absent.push(reference["uid"].as_str().unwrap_or_default());
                }
                Owner::Absent => absent.push(reference["uid"].as_str().unwrap_or_default()),
            }
        }
        if absent.is_empty() {
            return;
        }
        let key = definition.key(metadata::text(object, "namespace"), metadata::text(object, "name"));
        if is_present {
            self.drop_owners(&(definition.collection, Arc::from(key)), &|owner| absent.contains(&owner));
            return;
        }
        let uid = metadata::text(object, "uid");
        let has_dependents = self.garbage.dependents.get(uid).is_some_and(|all| !all.is_empty());
        let policy = if waiting && has_dependents {
            "Foreground"
        } else if metadata::finalizers(object).any(|finalizer| finalizer == "orphan") {
            "Orphan"
        } else {
            "Background"
        };
        let options = json!({"propagationPolicy": policy, "preconditions": {"uid": uid}});
        self.ask(Method::DELETE, definition, object, "", &options, "application/json");
    }

    fn owner(&self, definition: &ResourceDef, object: &Value, reference: &Value) -> Owner {
        let part = |name: &str| reference[name].as_str().unwrap_or_default();
        let (group, version) = crate::builtins::split_group_version(part("apiVersion"));
        // A kind that is not served may come back; its objects count as present.
        let Some(kind) = self.registry.by_kind(group, version, part("kind")) else { return Owner::Present };
        if kind.namespaced && !definition.namespaced {
            return Owner::Present;
        }
        let namespace = if kind.namespaced { metadata::text(object, "namespace") } else { "" };
        let owner = self.object(kind, namespace, part("name"));
        match owner.filter(|owner| metadata::text(owner, "uid") == part("uid")) {
            None => Owner::Absent,
            Some(owner) => {
                let waits = metadata::is_deleting(&owner)
                    && metadata::finalizers(&owner).any(|finalizer| finalizer == "foregroundDeletion");
                if waits { Owner::WaitingForDependents } else { Owner::Present }
            }
        }
    }

    fn drop_owners(&mut self, (collection, key): &Place, is_dropped: &dyn Fn(&str) -> bool) {
        let Some(record) = self.store.collection(*collection).get(key).cloned() else { return };
        let Some(definition) = self.registry.storing(*collection, &record).cloned() else { return };
        let object = encode::value(&definition, &record);
        let mut owners = object["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners.retain(|owner| !is_dropped(owner["uid"].as_str().unwrap_or_default()));
        let owners = if owners.is_empty() { Value::Null } else { Value::Array(owners) };
        let patch = json!({"metadata": {"ownerReferences": owners, "uid": metadata::text(&object, "uid")}});
        self.ask(Method::PATCH, &definition, &object, "", &patch, "application/merge-patch+json");
    }

    fn drop_finalizer(&mut self, definition: &ResourceDef, object: &Value, name: &str) {
        let left: Vec<&str> = metadata::finalizers(object).filter(|finalizer| *finalizer != name).collect();
        let patch = json!({"metadata": {"finalizers": left, "uid": metadata::text(object, "uid")}});
        self.ask(Method::PATCH, definition, object, "", &patch, "application/merge-patch+json");
    }

    /// Deletes the content of a terminating namespace, then removes the namespace's finalizer.
    fn empty_namespace(&mut self, name: &str) {
        let Some(namespaces) = self.registry.get("", "v1", "namespaces").cloned() else { return };
        let Some(namespace) = self.object(&namespaces, "", name).filter(metadata::is_deleting) else {
            self.garbage.ending.remove(name);
            return;
        };
        let mut kinds: BTreeMap<CollectionId, Arc<ResourceDef>> = BTreeMap::new();
        for definition in self.registry.iter().filter(|known| known.namespaced && known.allows("delete")) {
            kinds.entry(definition.collection).or_insert_with(|| Arc::clone(definition));
        }
        let prefix = format!("{name}/");
        let mut is_empty = true;
        for definition in kinds.values() {
            let records: Vec<Arc<Record>> = self
                .store
                .collection(definition.collection)
                .range(&prefix, "")
                .map(|(_, record)| Arc::clone(record))
                .collect();
            for record in records {
                let Some(definition) = self.registry.storing(definition.collection, &record).cloned() else { continue };
                let object = encode::value(&definition, &record);
                if !metadata::is_deleting(&object) {
                    let options = json!({"propagationPolicy": "Background"});
                    self.ask(Method::DELETE, &definition, &object, "", &options, "application/json");
                }
            }
            is_empty &= self.store.collection(definition.collection).range(&prefix, "").next().is_none();
        }
        if is_empty {
            let mut last = namespace.clone();
            let left: Vec<Value> = namespace["spec"]["finalizers"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|finalizer| *finalizer != "kubernetes")
                .cloned()
                .collect();
            last["spec"]["finalizers"] = Value::Array(left);
            self.ask(Method::PUT, &namespaces, &namespace, "/finalize", &last, "application/json");
            self.garbage.ending.remove(name);
        }
    }

    /// A request of the server itself; a refusal leaves the object for a later pass.
    fn ask(
        &mut self,
        method: Method,
        definition: &ResourceDef,
        object: &Value,
        subresource: &str,
        body: &Value,
        content_type: &str,
    ) {
        let base = if definition.group.is_empty() { "/api" } else { "/apis" };
        let namespace = match metadata::text(object, "namespace") {
            "" => String::new(),
            namespace => format!("/namespaces/{namespace}"),
        };
        let path = format!(
            "{base}/{}{namespace}/{}/{}{subresource}",
            definition.api_version(),
            definition.plural,
            metadata::text(object, "name")
        );
        let mut request = ApiRequest::new(method, &path, body.to_string());
        content_type.clone_into(&mut request.content_type);
        "kube-controller-manager".clone_into(&mut request.user_agent);
        request.user = User::server();
        match self.handle(&request) {
            Outcome::Done(answer) if answer.code < 400 || answer.code == 404 => {}
            _ => {
                let key = definition.key(metadata::text(object, "namespace"), metadata::text(object, "name"));
                tracing::debug!(%path, "the garbage collector was refused");
                self.garbage.suspects.insert((definition.collection, Arc::from(key)));
            }
        }
    }
}
