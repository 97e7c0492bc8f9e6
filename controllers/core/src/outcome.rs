//! What a reconcile decides: objects that shall exist or not, events to record, when to reconcile again.
//!
//! A controller declares; the difference between what it declares and what the cache shows is the plan, and the plan
//! is what gets written. Nothing is written when there is no difference.

use std::{fmt, sync::Arc, time::Duration};

use koord_resource::{controller::ResourceKind, schema::patch::merge};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::{
    cache::{Cache, Entry},
    child::{Child, Object, comparable, digest_of},
    effect::{EffectError, Effects, Progress, Wanted},
    error::{Fault, ReconcileError},
    events::{Event, EventType},
    key::ObjectKey,
    ownership::{Cleanup, Controlled, Finalized, Owner, check_owner},
    projection::Projection,
    write::{Action, Deletion, Write},
};

/// A projection that keeps all of what our controllers write into such objects by [`Outcome::present`].
pub trait Owned: Projection {
    /// The parts that we write, such as `{"spec": {…}}`; they are compared with what is declared.
    fn owned(&self) -> Value;
}

/// A projection that keeps the status of its objects.
pub trait WithStatus: Projection {
    /// The type of the status.
    type Status: PartialEq;

    /// The status that the object shows; none where it has none yet.
    fn status(&self) -> Option<&Self::Status>;
}

/// What a reconcile decides.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The difference between what was declared and what the caches show.
    pub plan: Vec<Write>,
    /// Events about objects.
    pub events: Vec<Event>,
    /// Reconcile again after this time although nothing may have changed.
    pub requeue: Option<Duration>,
    /// What the controller remembers once the plan is executed.
    pub(crate) memory: Vec<Memory>,
    /// What owns the objects that are applied.
    pub(crate) owner: Option<(ResourceKind, ObjectKey, Owner)>,
    /// Work outside of the cluster that is wanted.
    pub effects: Vec<Wanted>,
    /// The objects that were applied, whether something has to be written or not.
    pub(crate) applied: Vec<(ResourceKind, ObjectKey)>,
}

/// Something that a controller remembers of a decision. A decision changes nothing itself: two decisions in a row on the
/// same view are equal.
pub(crate) struct Memory {
    /// The object whose writes it follows; none for what follows the plan as a whole.
    pub(crate) of: Option<(ResourceKind, ObjectKey)>,
    pub(crate) keep: Keep,
}

/// Keeps something, given the result of the writes that it follows.
pub(crate) type Keep = Box<dyn FnOnce(Result<(), &ReconcileError>) + Send>;

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("of", &self.of).finish_non_exhaustive()
    }
}

impl Outcome {
    /// Everything is as it should be.
    pub fn settled() -> Self {
        Self::default()
    }

    /// The outcome of a decision about an object of a cache. What it applies is controlled by that object, and goes with it.
    pub fn of<P: Projection>(key: &ObjectKey, entry: &Entry<P>) -> Self {
        Self { owner: Some((P::KIND, key.clone(), Owner::of(key, entry))), ..Self::default() }
    }

    /// This object shall exist, and hold what is declared here. What the API server and others have filled in besides is
    /// left alone; what was declared before and is not any more goes.
    ///
    /// Written by server-side apply, and only when the declaration differs from what the object shows of this program's
    /// fields. Name and namespace are those of the key; the status is not written. Fails where another object controls this one.
    pub fn apply<T, V>(&mut self, cache: &Cache<Child<T, V>>, key: &ObjectKey, object: &T) -> Result<(), ReconcileError>
    where
        T: Object,
        V: DeserializeOwned + PartialEq + Send + Sync + 'static,
    {
        self.applied.push((T::IDENTITY, key.clone()));
        if let Some(quarantined) = cache.quarantined(key.as_str()) {
            let message =
                format!("{} {key} cannot be read ({}); fix or delete it", T::IDENTITY.kind, quarantined.reason);
            return Err(ReconcileError::never(Fault::User, message));
        }
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
        if let Some(entry) = entry {
            owned = entry.value.owned();
            let children = cache.index();
            if owned == comparable(&declared) || children.is_normalized(key, &declared, &entry.value) {
                entry.value.agree(digest);
                return Ok(());
            }
            if cache.is_expected(key.as_str()) && children.is_sent(key, &declared) {
                return Ok(());
            }
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
        V: DeserializeOwned + PartialEq + Send + Sync + 'static,
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

    /// The two halves of a finalizer. `apply` is called when the finalizer is stored: nothing outside of the cluster may
    /// exist before. `clean_up` is called while the object is being deleted; the finalizer goes when it says
    /// [`Cleanup::Done`], and until then an event of the object says what is waited for. Neither is called for an object
    /// that is gone, or that is being deleted without the finalizer.
    pub fn finalizer<P: Finalized>(
        &mut self,
        cache: &Cache<P>,
        key: &ObjectKey,
        name: &str,
        apply: impl FnOnce(&mut Self, &Entry<P>) -> Result<(), ReconcileError>,
        clean_up: impl FnOnce(&mut Self, &Entry<P>) -> Result<Cleanup, ReconcileError>,
    ) -> Result<(), ReconcileError> {
        let Some(entry) = cache.get(key.as_str()) else { return Ok(()) };
        let finalizers = entry.value.finalizers();
        let listed = |names: &mut dyn Iterator<Item = &str>| -> Map<String, Value> {
            let names: Vec<&str> = names.collect();
            Map::from_iter([("metadata".to_owned(), json!({ "finalizers": names }))])
        };
        match (entry.deleting, finalizers.contains(name)) {
            (false, false) => self.change(cache, key, "", listed(&mut finalizers.iter().chain([name]))),
            (false, true) => apply(self, entry)?,
            (true, false) => {}
            (true, true) => match clean_up(self, entry)? {
                Cleanup::Done => {
                    self.change(cache, key, "", listed(&mut finalizers.iter().filter(|known| *known != name)));
                }
                Cleanup::WaitsFor(what) => self.event(Event {
                    kind: P::KIND,
                    key: key.clone(),
                    uid: entry.uid.clone(),
                    type_: EventType::Normal,
                    action: "CleaningUp",
                    reason: "WaitsForCleanup",
                    message: format!("the finalizer {name} stays until this is gone: {what}"),
                }),
            },
        }
        Ok(())
    }

    /// Work outside of the cluster is wanted: an effect of `key` with these inputs. Gives what has become of it so far.
    ///
    /// `work` runs when the writes of this plan have succeeded, once for these inputs; the key is decided about again when
    /// it has ended. It is cancelled when the inputs change, when a decision does not ask for it any more, and when the lead
    /// is lost, so it must bear to be begun again.
    pub fn effect<I, O>(
        &mut self,
        effects: &Arc<Effects<I, O>>,
        key: &ObjectKey,
        inputs: I,
        work: impl Future<Output = Result<O, EffectError>> + Send + 'static,
    ) -> Progress<O>
    where
        I: PartialEq + Serialize + Send + 'static,
        O: Send + Sync + 'static,
    {
        let progress = effects.progress(key, &inputs);
        if let Some(wait) = effects.due_in(key, &inputs) {
            self.requeue_after(wait);
        }
        let shown = serde_json::to_value(&inputs).unwrap_or_default();
        let (effects, of) = (Arc::clone(effects), key.clone());
        let name = effects.name();
        let begin = Box::new(move || effects.want(of, inputs, Box::pin(work)));
        self.effects.push(Wanted { name, key: key.clone(), inputs: shown, begin });
        progress
    }

    /// Whether another decision is the same: its plan, its effects, its events, and when to reconcile again.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.plan, &self.effects, &self.events, self.requeue)
            == (&other.plan, &other.effects, &other.events, other.requeue)
    }

    /// Keeps something in the controller's memory when the whole plan was executed without an error.
    pub fn remember(&mut self, keep: impl FnOnce() + Send + 'static) {
        let keep = Box::new(|result: Result<(), &ReconcileError>| {
            if result.is_ok() {
                keep();
            }
        });
        self.memory.push(Memory { of: None, keep });
    }

    /// Keeps something in the controller's memory when the writes of this plan to an object have been answered; at once
    /// when there are none. It is dropped when the plan ends before they are sent.
    pub fn remember_of(
        &mut self,
        kind: ResourceKind,
        key: &ObjectKey,
        keep: impl FnOnce(Result<(), &ReconcileError>) + Send + 'static,
    ) {
        self.memory.push(Memory { of: Some((kind, key.clone())), keep: Box::new(keep) });
    }

    /// This object shall exist, and its owned parts shall be `body`. What it holds besides is left alone.
    ///
    /// The decision rests on what the cache shows, so a change carries uid and resourceVersion as preconditions. An
    /// object that exists but cannot be decoded is an error: what is not understood is not overwritten.
    pub fn present<P: Owned>(
        &mut self,
        cache: &Cache<P>,
        key: &ObjectKey,
        body: Map<String, Value>,
    ) -> Result<(), ReconcileError> {
        if let Some(quarantined) = cache.quarantined(key.as_str()) {
            let message = format!("{} {key} cannot be read ({}); fix or delete it", P::KIND.kind, quarantined.reason);
            return Err(ReconcileError::never(Fault::User, message));
        }
        let action = match cache.get(key.as_str()) {
            // A terminating object cannot be kept; its deletion triggers the next reconcile.
            Some(entry) if entry.deleting => return Ok(()),
            Some(entry) => match merge::diff(&entry.value.owned(), &Value::Object(body)) {
                None => return Ok(()),
                Some(patch) => Action::Patch { subresource: "", patch: with_preconditions(patch, entry) },
            },
            None => Action::Create(new_object::<P>(key, body)),
        };
        self.plan.push(Write { kind: P::KIND, key: key.clone(), action });
        Ok(())
    }

    /// This object shall not exist.
    pub fn absent<P: Projection>(&mut self, cache: &Cache<P>, key: &ObjectKey) {
        let entry = cache.get(key.as_str()).map(|entry| (entry.deleting, &entry.uid));
        let unread = || cache.quarantined(key.as_str()).map(|quarantined| (false, &quarantined.uid));
        if let Some((false, uid)) = entry.or_else(unread) {
            let action = Action::Delete(Deletion::of(uid.clone()));
            self.plan.push(Write { kind: P::KIND, key: key.clone(), action });
        }
    }

    /// The status of this object shall be `status`. Only what differs is written, and a status of an object that is gone is
    /// not. What `status` has no field for is left alone.
    pub fn status<P: WithStatus<Status: Serialize>>(
        &mut self,
        cache: &Cache<P>,
        key: &ObjectKey,
        status: &P::Status,
    ) -> Result<(), ReconcileError> {
        let Some(entry) = cache.get(key.as_str()) else { return Ok(()) };
        if entry.value.status() == Some(status) {
            return Ok(());
        }
        let json = |status: Option<&P::Status>| {
            serde_json::to_value(status).map_err(|error| {
                ReconcileError::never(Fault::Bug, format!("the status of {} {key} is no JSON: {error}", P::KIND.kind))
            })
        };
        if let Some(change) = merge::diff(&json(entry.value.status())?, &json(Some(status))?) {
            let patch = with_preconditions(json!({ "status": change }), entry);
            let action = Action::Patch { subresource: "status", patch };
            self.plan.push(Write { kind: P::KIND, key: key.clone(), action });
        }
        Ok(())
    }

    /// A part of an object that belongs to others as well shall change by this merge patch; an empty patch changes
    /// nothing. For everything that [`Outcome::apply`] or [`Outcome::present`] can declare, declare it.
    pub fn change<P: Projection>(
        &mut self,
        cache: &Cache<P>,
        key: &ObjectKey,
        subresource: &'static str,
        patch: Map<String, Value>,
    ) {
        let Some(entry) = cache.get(key.as_str()) else { return };
        if !patch.is_empty() {
            let action = Action::Patch { subresource, patch: with_preconditions(Value::Object(patch), entry) };
            self.plan.push(Write { kind: P::KIND, key: key.clone(), action });
        }
    }

    /// Records an event.
    pub fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Reconcile again after this time.
    pub fn requeue_after(&mut self, delay: Duration) {
        self.requeue = Some(self.requeue.map_or(delay, |known| known.min(delay)));
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

fn with_preconditions<P>(mut patch: Value, entry: &Entry<P>) -> Value {
    if let Value::Object(object) = &mut patch {
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        if let Value::Object(metadata) = metadata {
            metadata.insert("uid".to_owned(), entry.uid.to_string().into());
            metadata.insert("resourceVersion".to_owned(), entry.revision.0.to_string().into());
        }
    }
    patch
}

fn new_object<P: Projection>(key: &ObjectKey, body: Map<String, Value>) -> Value {
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), P::KIND.api_version().into());
    object.insert("kind".to_owned(), P::KIND.kind.into());
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), key.name().into());
    if !key.namespace().is_empty() {
        metadata.insert("namespace".to_owned(), key.namespace().into());
    }
    object.insert("metadata".to_owned(), Value::Object(metadata));
    for (field, value) in body {
        match (object.get_mut(&field), value) {
            (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
            (_, value) => {
                object.insert(field, value);
            }
        }
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use koord_resource::controller::ResourceKind;
    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;
    use crate::{
        intern::Interner,
        ownership::Finalizers,
        projection::{DecodeError, WireObject},
    };

    #[derive(PartialEq)]
    struct Settings(Arc<str>);

    #[derive(Deserialize)]
    struct SettingsMembers<'a> {
        #[serde(borrow)]
        data: &'a RawValue,
    }

    impl Projection for Settings {
        const KIND: ResourceKind = ResourceKind::CONFIG_MAP;
        type Wire<'a> = WireObject<'a, SettingsMembers<'a>>;
        type Index = ();

        fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
            Ok(Self(strings.intern(wire.members.data.get())))
        }
    }

    impl Owned for Settings {
        fn owned(&self) -> Value {
            json!({"data": serde_json::from_str::<Value>(&self.0).unwrap()})
        }
    }

    fn cache(objects: &[Value]) -> Cache<Settings> {
        let mut cache = Cache::default();
        for object in objects {
            cache.upsert(&object.to_string()).unwrap();
        }
        cache
    }

    fn stored(data: &Value) -> Value {
        json!({"metadata": {"namespace": "ns", "name": "a", "uid": "u1", "resourceVersion": "7"}, "data": data})
    }

    fn plan(cache: &Cache<Settings>, desired: Option<Value>) -> Result<Vec<String>, String> {
        let mut outcome = Outcome::settled();
        let key = ObjectKey::new("ns", "a");
        match desired {
            None => outcome.absent(cache, &key),
            Some(Value::Object(body)) => outcome.present(cache, &key, body).map_err(|error| error.to_string())?,
            Some(_) => unreachable!(),
        }
        Ok(outcome.plan.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn only_differences_are_planned_and_a_change_carries_what_it_rests_on() {
        let (a1, a2) = (json!({"data": {"a": "1"}}), json!({"data": {"b": "2"}}));
        let cache = cache(&[stored(&json!({"a": "1"}))]);
        assert_eq!(plan(&cache, Some(a1)).unwrap(), [""; 0]);
        assert_eq!(
            plan(&cache, Some(a2)).unwrap(),
            [r#"patch ConfigMap ns/a {"data":{"a":null,"b":"2"},"metadata":{"resourceVersion":"7","uid":"u1"}}"#]
        );
        assert_eq!(plan(&cache, None).unwrap(), ["delete ConfigMap ns/a"]);
    }

    #[test]
    fn a_change_of_a_shared_object_carries_what_it_rests_on() {
        let cache = cache(&[stored(&json!({}))]);
        let key = ObjectKey::new("ns", "a");
        let mut outcome = Outcome::settled();
        outcome.change(&cache, &key, "status", Map::new());
        let patch = json!({"metadata": {"labels": {"x": "y"}}});
        outcome.change(&cache, &key, "status", patch.as_object().unwrap().clone());
        let plan: Vec<String> = outcome.plan.iter().map(ToString::to_string).collect();
        let metadata = r#"{"metadata":{"labels":{"x":"y"},"resourceVersion":"7","uid":"u1"}}"#;
        assert_eq!(plan, [format!("patch ConfigMap/status ns/a {metadata}")]);
    }

    #[test]
    fn an_absent_object_is_created_with_its_identity() {
        let mut outcome = Outcome::settled();
        let body = json!({"metadata": {"labels": {"x": "y"}}, "data": {}});
        let Value::Object(body) = body else { unreachable!() };
        outcome.present(&cache(&[]), &ObjectKey::new("ns", "a"), body).unwrap();
        let Action::Create(object) = &outcome.plan[0].action else { unreachable!() };
        assert_eq!(
            *object,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {},
                   "metadata": {"name": "a", "namespace": "ns", "labels": {"x": "y"}}})
        );
        assert_eq!(plan(&cache(&[]), None).unwrap(), [""; 0]);
    }

    #[test]
    fn a_dying_object_is_left_alone() {
        let mut dying = stored(&json!({}));
        dying["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let cache = cache(&[dying]);
        assert_eq!(plan(&cache, None).unwrap(), [""; 0]);
        assert_eq!(plan(&cache, Some(json!({"data": {"a": "1"}}))).unwrap(), [""; 0]);
    }

    #[test]
    fn an_object_that_cannot_be_read_is_not_overwritten_but_may_be_deleted() {
        let mut odd = stored(&json!({}));
        odd["metadata"]["generation"] = "x".into();
        let cache = cache(&[odd]);
        let error = plan(&cache, Some(json!({"data": {}}))).unwrap_err();
        assert!(error.starts_with("ConfigMap ns/a cannot be read (object: invalid type: string"), "{error}");
    }

    // === children ===

    use koord_resource::k8s_openapi::api::core::v1::ConfigMap;

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

    // === finalizers ===

    #[derive(PartialEq)]
    struct Kept(Finalizers);

    impl Projection for Kept {
        const KIND: ResourceKind = ResourceKind::CONFIG_MAP;
        type Wire<'a> = crate::projection::MetadataOnly<'a>;
        type Index = ();

        fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
            Ok(Self(Finalizers::read(wire.metadata.finalizers, strings)?))
        }
    }

    impl Finalized for Kept {
        fn finalizers(&self) -> &Finalizers {
            &self.0
        }
    }

    /// What is planned for an object with these finalizers, and which of the two functions was called.
    fn finalized(finalizers: &Value, deleting: bool, cleanup: &Cleanup) -> (Vec<String>, &'static str, Vec<Event>) {
        let mut object = stored(&json!({}));
        object["metadata"]["finalizers"] = finalizers.clone();
        if deleting {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let mut cache: Cache<Kept> = Cache::default();
        cache.upsert(&object.to_string()).unwrap();
        let called = std::cell::Cell::new("none");
        let mut outcome = Outcome::settled();
        let apply = |_: &mut Outcome, _: &Entry<Kept>| {
            called.set("apply");
            Ok(())
        };
        let clean_up = |_: &mut Outcome, _: &Entry<Kept>| {
            called.set("clean up");
            Ok(cleanup.clone())
        };
        outcome.finalizer(&cache, &ObjectKey::new("ns", "a"), "x/ours", apply, clean_up).unwrap();
        (outcome.plan.iter().map(ToString::to_string).collect(), called.get(), outcome.events)
    }

    #[test]
    fn a_finalizer_comes_before_everything_and_goes_after_it() {
        let patch = |finalizers: &str| {
            vec![format!(
                r#"patch ConfigMap ns/a {{"metadata":{{"finalizers":{finalizers},"resourceVersion":"7","uid":"u1"}}}}"#
            )]
        };
        let (theirs, both) = (json!(["z"]), json!(["z", "x/ours"]));
        assert_eq!(finalized(&theirs, false, &Cleanup::Done), (patch(r#"["z","x/ours"]"#), "none", vec![]));
        assert_eq!(finalized(&both, false, &Cleanup::Done), (vec![], "apply", vec![]));
        assert_eq!(finalized(&both, true, &Cleanup::Done), (patch(r#"["z"]"#), "clean up", vec![]));
        assert_eq!(finalized(&theirs, true, &Cleanup::Done), (vec![], "none", vec![]));
        let (plan, called, events) = finalized(&both, true, &Cleanup::WaitsFor("the bucket a".to_owned()));
        assert_eq!((plan, called), (vec![], "clean up"));
        assert_eq!(events[0].message, "the finalizer x/ours stays until this is gone: the bucket a");
    }
}
