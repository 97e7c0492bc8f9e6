//! What a reconcile decides: objects that shall exist or not, events to record, when to reconcile again.
//!
//! A controller declares; the difference between what it declares and what the cache shows is the plan, and the plan
//! is what gets written. Nothing is written when there is no difference.

use std::{fmt, time::Duration};

use koord_resource::{controller::ResourceKind, schema::patch::merge};
use serde_json::{Map, Value, json};

use crate::{
    cache::{Cache, Entry},
    error::{Fault, ReconcileError},
    events::Event,
    key::ObjectKey,
    projection::Projection,
    write::{Action, Deletion, Write},
};

/// A projection that keeps all of what our controllers write into such objects.
pub trait Owned: Projection {
    /// The parts that we write, such as `{"spec": {…}}`; they are compared with what is declared.
    fn owned(&self) -> Value;

    /// The status, for kinds whose status we write.
    fn status(&self) -> Value {
        Value::Null
    }
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

    /// Whether another decision is the same: its plan, its events, and when to reconcile again.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.plan, &self.events, self.requeue) == (&other.plan, &other.events, other.requeue)
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

    /// Of the objects that a key owns (by label and owner reference, found through an index), those that were not
    /// declared before this call shall not exist.
    pub fn prune<'k, P: Projection>(
        &mut self,
        cache: &Cache<P>,
        owned: impl IntoIterator<Item = &'k ObjectKey>,
        declared: &[ObjectKey],
    ) {
        for key in owned {
            if !declared.contains(key) {
                self.absent(cache, key);
            }
        }
    }

    /// The status of this object shall be `status`.
    pub fn status<P: Owned>(&mut self, cache: &Cache<P>, key: &ObjectKey, status: &Value) {
        let Some(entry) = cache.get(key.as_str()) else { return };
        let Some(change) = merge::diff(&entry.value.status(), status) else { return };
        let patch = with_preconditions(json!({ "status": change }), entry);
        let action = Action::Patch { subresource: "status", patch };
        self.plan.push(Write { kind: P::KIND, key: key.clone(), action });
    }

    /// A part of an object that belongs to others as well shall change by this merge patch; an empty patch changes
    /// nothing. For everything that [`Outcome::present`] can declare, declare it.
    pub fn change<P: Projection>(
        &mut self,
        cache: &Cache<P>,
        key: &ObjectKey,
        subresource: &'static str,
        patch: Map<String, Value>,
    ) {
        let Some(entry) = cache.get(key.as_str()).filter(|entry| !entry.deleting) else { return };
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
    use std::sync::Arc;

    use koord_resource::controller::ResourceKind;
    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;
    use crate::{
        intern::Interner,
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
}
