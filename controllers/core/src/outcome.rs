//! What a reconcile decides: objects that shall exist or not, events to record, when to reconcile again.
//!
//! A controller declares; the difference between what it declares and what the cache shows is the plan, and the plan
//! is what gets written. Nothing is written when there is no difference.

use std::{fmt, sync::Arc, time::Duration};

use koord_resource::{controller::ResourceKind, schema::patch::merge};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    cache::{Cache, Entry},
    digest::digest_of,
    effect::{EffectError, Effects, Progress, Wanted},
    error::{Fault, ReconcileError},
    events::Event,
    key::ObjectKey,
    ownership::{Cleanup, Finalized, Owner},
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
                Cleanup::WaitsFor(what) => {
                    let message = format!("the finalizer {name} stays until this is gone: {what}");
                    self.event(Event::normal((key, entry), "CleaningUp", "WaitsForCleanup", message));
                }
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
        self.effect_aged(effects, key, inputs, effects.limits().refresh, work)
    }

    /// The same, whose result is found out again when it is `refresh` old, whatever the limits of the effects say: for a period that stands in the
    /// object. It is no input: another period has the effect run again only where its result is too old then.
    pub fn effect_every<I, O>(
        &mut self,
        effects: &Arc<Effects<I, O>>,
        key: &ObjectKey,
        inputs: I,
        refresh: Duration,
        work: impl Future<Output = Result<O, EffectError>> + Send + 'static,
    ) -> Progress<O>
    where
        I: PartialEq + Serialize + Send + 'static,
        O: Send + Sync + 'static,
    {
        self.effect_aged(effects, key, inputs, Some(refresh), work)
    }

    fn effect_aged<I, O>(
        &mut self,
        effects: &Arc<Effects<I, O>>,
        key: &ObjectKey,
        inputs: I,
        refresh: Option<Duration>,
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
        let begin = Box::new(move || effects.want(of, inputs, refresh, Box::pin(work)));
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
        check_readable(cache, key)?;
        match cache.get(key.as_str()) {
            // A terminating object cannot be kept; its deletion triggers the next reconcile.
            Some(entry) if entry.deleting => {}
            Some(entry) => {
                if let Some(patch) = merge::diff(&entry.value.owned(), &Value::Object(body)) {
                    self.patch(cache, (key, entry), "", patch);
                }
            }
            None => {
                let action = Action::Create(new_object::<P>(key, body));
                self.plan.push(Write { kind: P::KIND, key: key.clone(), action });
            }
        }
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
            self.patch(cache, (key, entry), "status", json!({ "status": change }));
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
            self.patch(cache, (key, entry), subresource, Value::Object(patch));
        }
    }

    /// A patch of an object as the cache shows it. One that was carried out already would meet a conflict: the watch has not
    /// shown it yet.
    fn patch<P: Projection>(
        &mut self,
        cache: &Cache<P>,
        (key, entry): (&ObjectKey, &Entry<P>),
        subresource: &'static str,
        patch: Value,
    ) {
        let patch = with_preconditions(patch, entry);
        if !cache.is_carried_out(key.as_str(), digest_of(patch.to_string().as_bytes())) {
            self.plan.push(Write { kind: P::KIND, key: key.clone(), action: Action::Patch { subresource, patch } });
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

/// What is not understood is not overwritten.
pub(crate) fn check_readable<P: Projection>(cache: &Cache<P>, key: &ObjectKey) -> Result<(), ReconcileError> {
    let Some(quarantined) = cache.quarantined(key.as_str()) else { return Ok(()) };
    let message = format!("{} {key} cannot be read ({}); fix or delete it", P::KIND.kind, quarantined.reason);
    Err(ReconcileError::never(Fault::User, message))
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
    fn a_patch_is_not_repeated_before_the_watch_shows_it() {
        let mut cache = cache(&[stored(&json!({"a": "1"}))]);
        let (key, desired) = (ObjectKey::new("ns", "a"), json!({"data": {"a": "2"}}));
        let mut outcome = Outcome::settled();
        outcome.present(&cache, &key, desired.as_object().cloned().unwrap()).unwrap();
        let Action::Patch { patch, .. } = &outcome.plan[0].action else { unreachable!() };
        cache.expect_patch(&key, patch);
        assert_eq!(plan(&cache, Some(desired.clone())).unwrap(), [""; 0]);
        assert_eq!(plan(&cache, Some(json!({"data": {"a": "3"}}))).unwrap().len(), 1, "another patch does not wait");
        // Others have changed it back since.
        let mut after = stored(&json!({"a": "1"}));
        after["metadata"]["resourceVersion"] = "9".into();
        cache.upsert(&after.to_string()).unwrap();
        assert_eq!(plan(&cache, Some(desired)).unwrap().len(), 1);
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
