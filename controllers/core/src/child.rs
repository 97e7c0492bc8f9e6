//! Children: objects that a controller declares whole, as values of their Rust types, and that are written by server-side apply.
//!
//! What is ours of a child is what we declared, as its `managedFields` record it. The cache keeps that part alone; what the
//! API server and others filled in is neither compared nor written.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    marker::PhantomData,
    sync::atomic::{AtomicU64, Ordering},
};

use koord_resource::{
    controller::{ObjectScope, ResourceKind},
    k8s_openapi,
    schema::fieldset::{FieldSet, extract},
};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

use crate::{
    cache::{Cache, Entry},
    digest::digest_of,
    error::{Fault, ReconcileError},
    index::Index,
    intern::Interner,
    key::ObjectKey,
    outcome::{Outcome, check_readable},
    ownership::{Controlled, Owner, check_owner},
    projection::{DecodeError, Metadata, Projection, WireMetadata},
    uid::Uid,
    write::{Action, Write, comparable},
};

/// An object type of k8s-openapi, or one that is declared with `#[derive(Resource)]`.
pub trait Object: k8s_openapi::Resource<Scope: ObjectScope> + Serialize + 'static {
    /// Its identity.
    const IDENTITY: ResourceKind = ResourceKind::typed::<Self>();
}

impl<T: k8s_openapi::Resource<Scope: ObjectScope> + Serialize + 'static> Object for T {}

/// What a controller reads of a child beside what it applied.
pub trait Seen: DeserializeOwned + PartialEq + Send + Sync + 'static {}

impl<V: DeserializeOwned + PartialEq + Send + Sync + 'static> Seen for V {}

/// What the cache keeps of a child: the part that this program applied, who controls it, and what the controller reads of
/// it besides, such as a struct with the one field of the status that matters.
pub struct Child<T, V = Nothing> {
    /// What is read beside what was applied.
    pub seen: V,
    controller: Option<Owner>,
    /// JSON of what this program owns of the object by its applies; none where it never applied it.
    owned: Option<Box<str>>,
    /// The digest of a declaration that was found to agree with `owned`; 0 for none. What is compared once need not be
    /// compared again.
    agreed: AtomicU64,
    of: PhantomData<fn() -> T>,
}

/// Nothing is read of a child beside what was applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Nothing {}

impl<T, V: PartialEq> PartialEq for Child<T, V> {
    fn eq(&self, other: &Self) -> bool {
        self.seen == other.seen && self.controller == other.controller && self.owned == other.owned
    }
}

impl<T, V: fmt::Debug> fmt::Debug for Child<T, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seen, controller, owned, .. } = self;
        f.debug_struct("Child").field("seen", seen).field("controller", controller).field("owned", owned).finish()
    }
}

/// The text of a child, and its metadata.
pub struct WireChild<'a> {
    text: &'a RawValue,
    metadata: WireMetadata<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for WireChild<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Parts<'a> {
            #[serde(borrow)]
            metadata: WireMetadata<'a>,
        }
        let text = <&RawValue>::deserialize(deserializer)?;
        let Parts { metadata } = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { text, metadata })
    }
}

impl<'a> Metadata<'a> for WireChild<'a> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl<T: Object, V: Seen> Projection for Child<T, V> {
    const KIND: ResourceKind = T::IDENTITY;
    type Wire<'a> = WireChild<'a>;
    type Index = Children;

    fn project(wire: WireChild<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let text = wire.text.get();
        let fields = wire.metadata.managed_fields.map(|fields| applied_by(strings.field_manager(), fields));
        let owned = match fields.transpose()?.flatten() {
            None => None,
            Some(set) => {
                let object: Value = serde_json::from_str(text).map_err(|error| DecodeError::new("object", error))?;
                Some(extract(&object, &set).to_string().into())
            }
        };
        Ok(Self {
            seen: serde_json::from_str(text).map_err(|error| DecodeError::new("object", error))?,
            controller: Owner::read(wire.metadata.owner_references, strings)?,
            owned,
            agreed: AtomicU64::new(0),
            of: PhantomData,
        })
    }
}

/// The fields that a manager has applied, as `managedFields` record them.
fn applied_by(manager: &str, entries: &RawValue) -> Result<Option<FieldSet>, DecodeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry<'a> {
        #[serde(borrow, default)]
        manager: Cow<'a, str>,
        #[serde(borrow, default)]
        operation: Cow<'a, str>,
        #[serde(borrow, default)]
        subresource: Cow<'a, str>,
        #[serde(borrow, default, rename = "fieldsV1")]
        fields: Option<&'a RawValue>,
    }
    let wrong = |error: &dyn fmt::Display| DecodeError::new("metadata.managedFields", error);
    let entries: Option<Vec<Entry<'_>>> = serde_json::from_str(entries.get()).map_err(|error| wrong(&error))?;
    let ours =
        |entry: &Entry<'_>| entry.manager == manager && entry.operation == "Apply" && entry.subresource.is_empty();
    let Some(fields) = entries.into_iter().flatten().find(ours).and_then(|entry| entry.fields) else { return Ok(None) };
    let fields: Value = serde_json::from_str(fields.get()).map_err(|error| wrong(&error))?;
    FieldSet::from_json(&fields).map(Some).map_err(|error| wrong(&error))
}

impl<T: Object, V: Seen> Controlled for Child<T, V> {
    fn controller(&self) -> Option<&Owner> {
        self.controller.as_ref()
    }
}

impl<T, V> Child<T, V> {
    /// What this program owns of the object by its applies; `null` where it never applied it.
    pub fn owned(&self) -> Value {
        self.owned.as_ref().map_or(Value::Null, |owned| serde_json::from_str(owned).unwrap_or_default())
    }

    /// Whether a declaration of this digest is known to agree with the object.
    pub(crate) fn agrees_with(&self, digest: u64) -> bool {
        self.agreed.load(Ordering::Relaxed) == digest
    }

    /// A declaration of this digest agrees with the object.
    pub(crate) fn agree(&self, digest: u64) {
        self.agreed.store(digest, Ordering::Relaxed);
    }
}

/// Children by the object that controls them, and what the API server made of declarations that it writes differently.
#[derive(Debug, Default)]
pub struct Children {
    by_owner: BTreeMap<Uid, BTreeSet<ObjectKey>>,
    /// `1000m` is stored as `1`: what was declared and what became of it, where they differ.
    normalized: BTreeMap<ObjectKey, Normalized>,
    /// Of an object that was removed and perhaps comes again with its next value.
    changing: Option<(ObjectKey, Normalized)>,
}

/// Digests of a declaration, and of what the object shows of ours after it was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Normalized {
    declared: u64,
    owned: u64,
}

impl Children {
    /// The objects that another controls, in the order of their keys.
    pub fn of(&self, owner: &Uid) -> impl Iterator<Item = &ObjectKey> {
        self.by_owner.get(owner).into_iter().flatten()
    }

    /// Whether the API server made of the declaration of this digest what the object shows.
    pub(crate) fn is_normalized<T, V>(&self, key: &ObjectKey, declared: u64, child: &Child<T, V>) -> bool {
        self.normalized.get(key) == Some(&Normalized { declared, owned: child.digest() })
    }
}

impl<T: Object, V: Seen> Index<Child<T, V>> for Children {
    fn insert(&mut self, key: &ObjectKey, child: &Child<T, V>) {
        if let Some(owner) = &child.controller {
            self.by_owner.entry(owner.uid.clone()).or_default().insert(key.clone());
        }
        if let Some((changed, normalized)) = self.changing.take()
            && changed == *key
        {
            self.normalized.insert(changed, normalized);
        }
    }

    fn remove(&mut self, key: &ObjectKey, child: &Child<T, V>) {
        if let Some(owner) = &child.controller
            && let Some(keys) = self.by_owner.get_mut(&owner.uid)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_owner.remove(&owner.uid);
            }
        }
        self.changing = self.normalized.remove_entry(key);
    }

    fn applied(&mut self, key: &ObjectKey, wanted: &Value, answered: &Child<T, V>) {
        if *wanted == answered.owned() {
            self.normalized.remove(key);
        } else {
            let declared = digest_of(wanted.to_string().as_bytes());
            let normalized = Normalized { declared, owned: answered.digest() };
            self.normalized.insert(key.clone(), normalized);
        }
    }
}

impl<T, V> Child<T, V> {
    fn digest(&self) -> u64 {
        digest_of(self.owned.as_deref().unwrap_or_default().as_bytes())
    }
}

/// A member that is `null` in a declaration is one that is not declared.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

impl Outcome {
    /// This object shall exist, and hold what is declared here. What the API server and others have filled in besides is
    /// left alone; what was declared before and is not any more goes.
    ///
    /// Written by server-side apply, and only when the declaration differs from what the object shows of this program's
    /// fields. Name and namespace are those of the key; the status is not written. Fails where another object controls this one.
    pub fn apply<T, V>(&mut self, cache: &Cache<Child<T, V>>, key: &ObjectKey, object: &T) -> Result<(), ReconcileError>
    where
        T: Object,
        V: Seen,
    {
        self.applied.push((T::IDENTITY, key.clone()));
        check_readable(cache, key)?;
        let wrong = |error: &dyn fmt::Display| {
            ReconcileError::never(Fault::Bug, format!("{} {key} cannot be declared: {error}", T::IDENTITY.kind))
        };
        let text = serde_json::to_vec(object).map_err(|error| wrong(&error))?;
        let entry = cache.get(key.as_str());
        let digest = digest_of(&text);
        if let Some(entry) = entry {
            // A terminating object cannot be kept; its deletion triggers the next reconcile.
            if entry.deleting || entry.value.agrees_with(digest) && self.controls(entry) {
                return Ok(());
            }
            self.check_controller(key, entry)?;
        }
        let declared: Value = serde_json::from_slice(&text).map_err(|error| wrong(&error))?;
        let mut declared = self.declaration::<T>(key, declared).map_err(|error| wrong(&error))?;
        let mut owned = Value::Null;
        let (children, wanted) = (cache.index(), comparable(&declared));
        let sent = digest_of(wanted.to_string().as_bytes());
        if let Some(entry) = entry {
            owned = entry.value.owned();
            if owned == wanted || children.is_normalized(key, sent, &entry.value) {
                entry.value.agree(digest);
                return Ok(());
            }
        }
        if cache.is_carried_out(key.as_str(), sent) {
            return Ok(());
        }
        if let Some(entry) = entry {
            declared["metadata"]["uid"] = entry.uid.to_string().into();
        }
        let action = Action::Apply { object: declared, owned };
        self.plan.push(Write { kind: T::IDENTITY, key: key.clone(), action });
        Ok(())
    }

    /// Of the objects that the object of this decision controls, those that it did not apply shall not exist.
    pub fn prune<T, V>(&mut self, cache: &Cache<Child<T, V>>)
    where
        T: Object,
        V: Seen,
    {
        let Some((_, _, owner)) = &self.owner else { return };
        let is_applied =
            |key: &ObjectKey| self.applied.iter().any(|(kind, applied)| *kind == T::IDENTITY && applied == key);
        let rest: Vec<ObjectKey> = cache.index().of(&owner.uid).filter(|key| !is_applied(key)).cloned().collect();
        for key in &rest {
            self.absent(cache, key);
        }
    }

    /// Whether the object of this decision controls a child; true of a child without a controller where there is no owner.
    fn controls<T, V>(&self, child: &Entry<Child<T, V>>) -> bool
    where
        Child<T, V>: Controlled,
    {
        let owner = self.owner.as_ref().map(|(_, _, owner)| &owner.uid);
        Controlled::controller(&*child.value).map(|controller| &controller.uid) == owner
    }

    fn check_controller<T, V>(&self, key: &ObjectKey, child: &Entry<Child<T, V>>) -> Result<(), ReconcileError>
    where
        Child<T, V>: Controlled,
    {
        match Controlled::controller(&*child.value) {
            Some(controller) if !self.controls(child) => {
                let kind = <Child<T, V> as Projection>::KIND.kind;
                let Owner { kind: other, name, .. } = controller;
                let message = format!("{kind} {key} is controlled by {other} {name}; rename or delete one of the two");
                Err(ReconcileError::new(Fault::User, message))
            }
            _ => Ok(()),
        }
    }

    /// The object as it is sent: with its identity and its owner, without its status.
    fn declaration<T: Object>(&self, key: &ObjectKey, mut declared: Value) -> Result<Value, String> {
        drop_nulls(&mut declared);
        let Value::Object(object) = &mut declared else { return Err("it is no JSON object".to_owned()) };
        object.remove("status");
        object.insert("apiVersion".to_owned(), T::IDENTITY.api_version().into());
        object.insert("kind".to_owned(), T::IDENTITY.kind.into());
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        let Value::Object(metadata) = metadata else { return Err("its metadata is no JSON object".to_owned()) };
        for servers in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"] {
            metadata.remove(servers);
        }
        metadata.insert("name".to_owned(), key.name().into());
        if !key.namespace().is_empty() {
            metadata.insert("namespace".to_owned(), key.namespace().into());
        }
        if let Some((kind, owner_key, owner)) = &self.owner {
            check_owner((kind, owner_key), key).map_err(|error| error.to_string())?;
            let references = metadata.entry("ownerReferences").or_insert_with(|| json!([]));
            let Value::Array(references) = references else { return Err("its ownerReferences are no list".to_owned()) };
            references.push(owner.reference());
        }
        Ok(declared)
    }
}

#[cfg(test)]
mod tests {
    use koord_resource::k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::{
        panics::PanicGuard,
        store::{Sink as _, Store},
        write::Answer,
    };

    const MANAGER: &str = "tester";

    fn children(objects: &[Value]) -> Store<Child<ConfigMap>> {
        let store = Store::of_program(MANAGER, PanicGuard::default());
        for object in objects {
            store.upsert(&object.to_string()).unwrap();
        }
        store
    }

    /// A ConfigMap of `ns/parent`, of which `ours` was applied by this program.
    fn child(name: &str, data: &Value, ours: &Value, owner: &str) -> Value {
        let fields =
            json!({"f:data": ours, "f:metadata": {"f:ownerReferences": {format!("k:{{\"uid\":\"{owner}\"}}"): {}}}});
        json!({
            "metadata": {
                "namespace": "ns", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "9",
                "ownerReferences": [parent(owner).2.reference()],
                "managedFields": [
                    {"manager": MANAGER, "operation": "Apply", "fieldsV1": fields},
                    {"manager": MANAGER, "operation": "Update", "fieldsV1": {"f:data": {"f:theirs": {}}}},
                ],
            },
            "data": data,
        })
    }

    fn parent(uid: &str) -> (ResourceKind, ObjectKey, Owner) {
        let owner = Owner { api_version: "v1".into(), kind: "Pod".into(), name: "parent".into(), uid: uid.into() };
        (ResourceKind::POD, ObjectKey::new("ns", "parent"), owner)
    }

    fn of_parent() -> Outcome {
        Outcome { owner: Some(parent("u")), ..Outcome::default() }
    }

    fn wanted(data: &[(&str, &str)]) -> ConfigMap {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        ConfigMap { data: Some(data), ..ConfigMap::default() }
    }

    fn applied(store: &Store<Child<ConfigMap>>, name: &str, object: &ConfigMap) -> Vec<String> {
        let mut outcome = of_parent();
        outcome.apply(&store.read(), &ObjectKey::new("ns", name), object).unwrap();
        outcome.plan.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_child_is_written_only_when_what_is_ours_differs() {
        let ours = json!({"f:a": {}, "f:b": {}});
        let store = children(&[child("c", &json!({"a": "1", "b": "2", "theirs": "3"}), &ours, "u")]);
        for _ in 0..2 {
            assert_eq!(applied(&store, "c", &wanted(&[("a", "1"), ("b", "2")])), [""; 0]);
        }
        assert_eq!(
            applied(&store, "c", &wanted(&[("a", "7")])),
            [r#"apply ConfigMap ns/c {"data":{"a":"7","b":null}}"#],
            "what is declared no longer goes, what others wrote stays"
        );
        assert_eq!(applied(&store, "new", &wanted(&[])), ["apply ConfigMap ns/new"]);
    }

    #[test]
    fn an_apply_names_its_object_its_owner_and_what_it_rests_on() {
        let store = children(&[child("c", &json!({}), &json!({}), "u")]);
        let mut outcome = of_parent();
        let labelled = ConfigMap {
            metadata: serde_json::from_value(json!({"labels": {"x": "y"}, "uid": "odd"})).unwrap(),
            ..wanted(&[("a", "1")])
        };
        outcome.apply(&store.read(), &ObjectKey::new("ns", "c"), &labelled).unwrap();
        let request = outcome.plan[0].request(MANAGER);
        assert_eq!(request.uri, "/api/v1/namespaces/ns/configmaps/c?fieldManager=tester&force=true");
        assert_eq!((request.method, request.content_type), ("PATCH", "application/apply-patch+yaml"));
        assert_eq!(
            serde_json::from_str::<Value>(&request.body).unwrap(),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"},
                "metadata": {
                    "name": "c", "namespace": "ns", "uid": "uid-c", "labels": {"x": "y"},
                    "ownerReferences": [parent("u").2.reference()],
                },
            })
        );
    }

    /// `1000m` is stored as `1`: the answer shows it, and the declaration is not sent again for that.
    #[test]
    fn what_the_server_writes_differently_is_learned_from_its_answer() {
        let store = children(&[]);
        let key = ObjectKey::new("ns", "c");
        let declared = wanted(&[("cpu", "1000m")]);
        let stored = child("c", &json!({"cpu": "1"}), &json!({"f:cpu": {}}), "u");
        let mut outcome = of_parent();
        outcome.apply(&store.read(), &key, &declared).unwrap();
        store.wrote(&outcome.plan[0], &Answer { code: 201, body: stored.to_string(), ..Answer::default() });
        store.upsert(&stored.to_string()).unwrap();
        assert_eq!(applied(&store, "c", &declared), [""; 0]);
        // Others change something else, and then what is ours.
        let mut changed = stored.clone();
        changed["metadata"]["resourceVersion"] = "10".into();
        changed["data"]["theirs"] = "1".into();
        store.upsert(&changed.to_string()).unwrap();
        assert_eq!(applied(&store, "c", &declared), [""; 0]);
        changed["metadata"]["resourceVersion"] = "11".into();
        changed["data"]["cpu"] = "2".into();
        store.upsert(&changed.to_string()).unwrap();
        assert_eq!(applied(&store, "c", &declared), [r#"apply ConfigMap ns/c {"data":{"cpu":"1000m"}}"#]);
        assert_eq!(applied(&store, "c", &wanted(&[("cpu", "3")])).len(), 1);
    }

    #[test]
    fn an_apply_is_not_repeated_before_the_watch_shows_it() {
        let before = child("c", &json!({"a": "1"}), &json!({"f:a": {}}), "u");
        let store = children(std::slice::from_ref(&before));
        let (key, declared) = (ObjectKey::new("ns", "c"), wanted(&[("a", "2")]));
        let mut outcome = of_parent();
        outcome.apply(&store.read(), &key, &declared).unwrap();
        let mut after = before.clone();
        after["metadata"]["resourceVersion"] = "10".into();
        after["data"]["a"] = "2".into();
        store.wrote(&outcome.plan[0], &Answer { code: 200, body: after.to_string(), ..Answer::default() });
        assert_eq!(applied(&store, "c", &declared), [""; 0]);
        assert_eq!(applied(&store, "c", &wanted(&[("a", "3")])).len(), 1, "another declaration does not wait");
        // Others were faster than the watch.
        after["metadata"]["resourceVersion"] = "11".into();
        after["data"]["a"] = "1".into();
        store.upsert(&after.to_string()).unwrap();
        assert_eq!(applied(&store, "c", &declared).len(), 1);
    }

    #[test]
    fn a_child_that_was_created_is_not_applied_again_before_the_watch_shows_it() {
        let store = children(&[]);
        let (key, declared) = (ObjectKey::new("ns", "c"), wanted(&[("a", "1")]));
        let mut outcome = of_parent();
        outcome.apply(&store.read(), &key, &declared).unwrap();
        let created = child("c", &json!({"a": "1"}), &json!({"f:a": {}}), "u");
        let answer = || Answer { code: 201, body: created.to_string(), ..Answer::default() };
        store.wrote(&outcome.plan[0], &answer());
        assert_eq!(applied(&store, "c", &declared), [""; 0]);
        assert_eq!(applied(&store, "c", &wanted(&[("a", "2")])).len(), 1, "another declaration does not wait");
        store.upsert(&created.to_string()).unwrap();
        let mut deleted = created.clone();
        deleted["metadata"]["resourceVersion"] = "10".into();
        store.remove(&deleted.to_string()).unwrap();
        assert_eq!(applied(&store, "c", &declared).len(), 1, "it was deleted");
        store.wrote(&outcome.plan[0], &answer());
        assert_eq!(applied(&store, "c", &declared).len(), 1, "the watch was faster than the answer");
    }

    #[test]
    fn an_object_of_another_controller_is_not_taken() {
        let store = children(&[child("c", &json!({"a": "1"}), &json!({"f:a": {}}), "other")]);
        let mut outcome = of_parent();
        let error = outcome.apply(&store.read(), &ObjectKey::new("ns", "c"), &wanted(&[("a", "1")])).unwrap_err();
        assert_eq!(error.to_string(), "ConfigMap ns/c is controlled by Pod parent; rename or delete one of the two");
        let error = outcome.apply(&store.read(), &ObjectKey::new("elsewhere", "c"), &wanted(&[])).unwrap_err();
        assert!(error.to_string().ends_with("an owner must live where its dependent lives"), "{error}");
    }

    #[test]
    fn children_that_are_declared_no_longer_go() {
        let a = json!({"f:a": {}});
        let store = children(&[
            child("kept", &json!({"a": "1"}), &a, "u"),
            child("old", &json!({"a": "1"}), &a, "u"),
            child("theirs", &json!({"a": "1"}), &a, "other"),
        ]);
        let mut outcome = of_parent();
        outcome.apply(&store.read(), &ObjectKey::new("ns", "kept"), &wanted(&[("a", "1")])).unwrap();
        outcome.prune(&store.read());
        assert_eq!(outcome.plan.iter().map(ToString::to_string).collect::<Vec<_>>(), ["delete ConfigMap ns/old"]);
    }
}
