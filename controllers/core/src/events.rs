//! Events: what a program tells users about their objects.
//!
//! They are core/v1 Events with a source component, as the original writes them; an event that repeats raises the
//! count of the first. Whatever goes wrong here is never an error of the caller.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use serde_json::{Value, json};

use crate::{
    clock::Moment,
    key::ObjectKey,
    queue::Bucket,
    random::Random,
    uid::Uid,
    write::{Action, Write},
};

/// Whether an event is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// Information.
    Normal,
    /// Something a user should look at.
    Warning,
}

/// One thing to tell about one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// The kind of the object.
    pub kind: ResourceKind,
    /// The object.
    pub key: ObjectKey,
    /// Tells apart an object and a later one of the same name.
    pub uid: Uid,
    /// Whether it is good news.
    pub type_: EventType,
    /// One word in CamelCase.
    pub reason: &'static str,
    /// What happened, for a person.
    pub message: String,
}

/// Takes events; it never blocks and never fails.
pub trait EventSink: Send + Sync + 'static {
    /// Tells an event in the name of a component.
    fn record(&self, component: &'static str, event: Event);
}

/// Drops every event.
#[derive(Debug, Default)]
pub struct NoopSink;

impl EventSink for NoopSink {
    fn record(&self, _: &'static str, _: Event) {}
}

/// Turns events into writes: a new Event object, or a higher count on one that was written before.
#[derive(Debug)]
pub struct Correlator {
    known: BTreeMap<(&'static str, Event), Known>,
    /// How many events a component may still write about an object.
    buckets: BTreeMap<Subject, Bucket>,
    host: String,
}

/// A component and an object that it writes events about.
type Subject = (&'static str, ResourceKind, ObjectKey, Uid);

#[derive(Debug)]
struct Known {
    key: ObjectKey,
    count: u32,
    last: Timestamp,
}

impl Correlator {
    /// More different events than this are not remembered.
    const KNOWN_MAX: usize = 4096;
    /// Events that a component may write about one object at once.
    const BURST: f64 = 25.0;
    /// And after that: one in five minutes.
    const PER_SECOND: f64 = 1.0 / 300.0;
    /// The server drops events after an hour; a later repetition is a new one.
    const FORGET_AFTER_SECONDS: i64 = 3000;

    /// For a program on this host.
    pub fn new(host: impl Into<String>) -> Self {
        Self { known: BTreeMap::new(), buckets: BTreeMap::new(), host: host.into() }
    }

    /// Whether a component has written so many events about an object lately that this one is dropped. The limits are those
    /// of client-go's spam filter.
    fn is_spam(&mut self, component: &'static str, event: &Event, now: Timestamp) -> bool {
        let now = Moment::at(Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default()));
        let subject = (component, event.kind, event.key.clone(), event.uid.clone());
        if self.buckets.len() >= Self::KNOWN_MAX && !self.buckets.contains_key(&subject) {
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
            if self.buckets.len() >= Self::KNOWN_MAX {
                self.buckets.clear();
            }
        }
        let bucket = self.buckets.entry(subject).or_insert_with(|| Bucket::new(Self::PER_SECOND, Self::BURST));
        !bucket.take(now)
    }

    /// The write of an event; none when there were too many about its object.
    pub fn write(&mut self, component: &'static str, event: Event, now: Timestamp, random: &Random) -> Option<Write> {
        if self.is_spam(component, &event, now) {
            return None;
        }
        Some(self.aggregate(component, event, now, random))
    }

    /// A new Event, or a higher count of an equal one.
    fn aggregate(&mut self, component: &'static str, event: Event, now: Timestamp, random: &Random) -> Write {
        let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let fresh = |known: &Known| now.as_second() - known.last.as_second() < Self::FORGET_AFTER_SECONDS;
        let subject = (component, event);
        if let Some(known) = self.known.get_mut(&subject).filter(|known| fresh(known)) {
            known.count = known.count.saturating_add(1);
            known.last = now;
            let patch = json!({"count": known.count, "lastTimestamp": time, "message": subject.1.message});
            let action = Action::Patch { subresource: "", patch };
            return Write { kind: ResourceKind::EVENT, key: known.key.clone(), action };
        }
        if self.known.len() >= Self::KNOWN_MAX {
            self.known.retain(|_, known| fresh(known));
            if self.known.len() >= Self::KNOWN_MAX {
                self.known.clear();
            }
        }
        let event = &subject.1;
        let namespace = if event.key.namespace().is_empty() { "default" } else { event.key.namespace() };
        let key = ObjectKey::new(namespace, &format!("{}.{:016x}", event.key.name(), random.number()));
        let action = Action::Create(self.object(component, event, &key, &time));
        self.known.insert(subject, Known { key: key.clone(), count: 1, last: now });
        Write { kind: ResourceKind::EVENT, key, action }
    }

    /// The Event object of a write is gone (expired): the next repetition is written anew.
    pub fn forget(&mut self, key: &ObjectKey) {
        self.known.retain(|_, known| known.key != *key);
    }

    fn object(&self, component: &str, event: &Event, key: &ObjectKey, time: &str) -> Value {
        let mut involved = json!({
            "apiVersion": event.kind.api_version(), "kind": event.kind.kind,
            "name": event.key.name(), "uid": event.uid,
        });
        if !event.key.namespace().is_empty() {
            involved["namespace"] = event.key.namespace().into();
        }
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": key.name(), "namespace": key.namespace()},
            "involvedObject": involved,
            "type": match event.type_ { EventType::Normal => "Normal", EventType::Warning => "Warning" },
            "reason": event.reason, "message": event.message,
            "source": {"component": component, "host": self.host},
            "reportingComponent": component, "reportingInstance": self.host,
            "firstTimestamp": time, "lastTimestamp": time, "count": 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_events_about_one_object_some_are_dropped() {
        let (mut correlator, random) = (Correlator::new("h"), Random::seeded(1));
        let mut written = |name: &str, second| {
            let event = Event {
                kind: ResourceKind::CONFIG_MAP,
                key: ObjectKey::new("ns", name),
                uid: Uid::from("u"),
                type_: EventType::Warning,
                reason: "Odd",
                message: "it is odd".to_owned(),
            };
            correlator.write("c", event, Timestamp::from_second(second).unwrap(), &random).is_some()
        };
        assert_eq!((0..40).filter(|_| written("a", 0)).count(), 25);
        assert!(written("b", 0), "another object has events of its own");
        assert!(!written("a", 299) && written("a", 300) && !written("a", 301), "then one in five minutes");
    }

    #[test]
    fn a_repeated_event_raises_the_count_of_the_first() {
        let (mut correlator, random) = (Correlator::new("h"), Random::seeded(1));
        let event = Event {
            kind: ResourceKind::CONFIG_MAP,
            key: ObjectKey::new("ns", "a"),
            uid: Uid::from("u"),
            type_: EventType::Warning,
            reason: "Odd",
            message: "it is odd".to_owned(),
        };
        let mut tell = |second, event: &Event| {
            correlator.write("c", event.clone(), Timestamp::from_second(second).unwrap(), &random).unwrap()
        };
        let first = tell(0, &event);
        let Action::Create(object) = &first.action else { panic!("{first}") };
        assert_eq!(object["involvedObject"]["namespace"], "ns");
        assert_eq!(object["firstTimestamp"], "1970-01-01T00:00:00Z");
        let second = tell(10, &event);
        assert_eq!((&second.key, second.to_string().contains(r#""count":2"#)), (&first.key, true));
        let other = Event { message: "very odd".to_owned(), ..event.clone() };
        assert!(matches!(tell(20, &other).action, Action::Create(_)));
        assert!(matches!(tell(10_000, &event).action, Action::Create(_)), "the first has expired on the server");
    }
}
