//! Turns events into writes: a new Event, the beginning of a series, or nothing.
//!
//! The rules are those of client-go's `tools/events`: an event that equals one of the last six minutes makes a series of
//! it; a series that goes on is written every half an hour, and one that has been quiet for six minutes is written a last
//! time and forgotten. Unlike there, events with different messages are different events, and a component that writes too
//! many about one object is held back as by the spam filter of `tools/record`.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use serde_json::{Value, json};

use super::{Event, spam::SpamFilter};
use crate::{
    clock::micro_time,
    key::ObjectKey,
    random::Random,
    uid::Uid,
    write::{Action, Write},
};

/// Through which group Events are written. The server keeps the same objects for both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventGroup {
    /// `events.k8s.io/v1`.
    #[default]
    Events,
    /// The core group: for roles that grant nothing else, and for readers who look for the component in `source`, which the other group does not take.
    Core,
}

impl EventGroup {
    /// The kind Event of this group.
    pub const fn kind(self) -> ResourceKind {
        match self {
            Self::Events => ResourceKind { group: "events.k8s.io", ..ResourceKind::EVENT },
            Self::Core => ResourceKind::EVENT,
        }
    }

    /// How this group calls the object, the message and the component.
    const fn fields(self) -> [&'static str; 3] {
        match self {
            Self::Events => ["regarding", "note", "reportingController"],
            Self::Core => ["involvedObject", "message", "reportingComponent"],
        }
    }
}

/// What is known of the events of a program.
#[derive(Debug)]
pub struct Correlator {
    known: BTreeMap<(&'static str, Event), Known>,
    spam: SpamFilter,
    host: String,
    group: EventGroup,
}

/// An event that was written, and how often it was recorded since.
#[derive(Debug)]
struct Known {
    key: ObjectKey,
    count: u32,
    last: Timestamp,
    /// The count that was written last, and when.
    written: (u32, Timestamp),
}

impl Known {
    /// Whether the event has not been repeated for so long that a repetition is a new event.
    fn is_finished(&self, now: Timestamp) -> bool {
        now.duration_since(self.last) >= FINISHED
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let (count, at) = self.written;
        self.count > count && (self.is_finished(now) || now.duration_since(at) >= REFRESH)
    }

    /// The write of the series.
    fn series(&mut self, group: EventGroup, now: Timestamp) -> Write {
        self.written = (self.count, now);
        let patch = json!({"series": series(self.count, self.last)});
        Write { kind: group.kind(), key: self.key.clone(), action: Action::Patch { subresource: "", patch } }
    }
}

/// After this time without a repetition an event is finished.
const FINISHED: jiff::SignedDuration = jiff::SignedDuration::from_mins(6);
/// A series that goes on is written this often: the server drops events after an hour.
const REFRESH: jiff::SignedDuration = jiff::SignedDuration::from_mins(30);
/// More different events than this are not remembered.
const KNOWN_MAX: usize = 4096;
/// How long the message of an Event may be.
const MESSAGE_BYTES_MAX: usize = 1024;
/// How long the name of the object may be in the name of its Event, which ends with a dot and sixteen digits.
const NAME_BYTES_MAX: usize = 253 - 17;

impl Correlator {
    /// How often [`Correlator::sweep`] is to be called.
    pub const SWEEP: Duration = Duration::from_mins(6);

    /// For a program on this host.
    pub fn new(host: impl Into<String>) -> Self {
        Self { known: BTreeMap::new(), spam: SpamFilter::default(), host: host.into(), group: EventGroup::default() }
    }

    /// Through which group events are written.
    pub fn group(&self) -> EventGroup {
        self.group
    }

    /// Writes events through this group from now on.
    pub fn set_group(&mut self, group: EventGroup) {
        self.group = group;
    }

    /// The writes that follow from an event: none while a series goes on, or when there were too many about the object.
    pub fn record(&mut self, component: &'static str, event: Event, now: Timestamp, random: &Random) -> Vec<Write> {
        self.record_repeated(component, event, (1, now), random)
    }

    /// The same for an event that was recorded so often since it could be written, last at this time: what is new is a series at once.
    pub fn record_repeated(
        &mut self,
        component: &'static str,
        event: Event,
        (times, now): (u32, Timestamp),
        random: &Random,
    ) -> Vec<Write> {
        let group = self.group;
        let mut writes = Vec::new();
        let recorded = (component, event);
        if let Some(known) = self.known.get_mut(&recorded) {
            if !known.is_finished(now) {
                (known.count, known.last) = (known.count.saturating_add(times), now);
                let begins = known.written.0 == 1;
                if begins && self.spam.accepts(component, &recorded.1, now) {
                    writes.push(known.series(group, now));
                }
                return writes;
            }
            if known.is_due(now) {
                writes.push(known.series(group, now));
            }
            self.known.remove(&recorded);
        }
        if !self.spam.accepts(component, &recorded.1, now) {
            return writes;
        }
        self.make_room(now);
        let event = &recorded.1;
        let namespace = if event.key.namespace().is_empty() { "default" } else { event.key.namespace() };
        let name = shortened(event.key.name(), NAME_BYTES_MAX);
        let key = ObjectKey::new(namespace, &format!("{name}.{:016x}", random.number()));
        writes.push(Write {
            kind: group.kind(),
            key: key.clone(),
            action: Action::Create(self.object(component, event, &key, (times, now))),
        });
        self.known.insert(recorded, Known { key, count: times, last: now, written: (times, now) });
        writes
    }

    /// The writes of series that are finished, or go on for long. Finished ones are forgotten.
    pub fn sweep(&mut self, now: Timestamp) -> Vec<Write> {
        let group = self.group;
        let due = self.known.values_mut().filter(|known| known.is_due(now));
        let writes = due.map(|known| known.series(group, now)).collect();
        self.known.retain(|_, known| !known.is_finished(now));
        writes
    }

    /// The Event of a write is gone (expired): the next repetition is written anew. Says whether the Event was known.
    pub fn forget(&mut self, key: &ObjectKey) -> bool {
        let before = self.known.len();
        self.known.retain(|_, known| known.key != *key);
        self.known.len() < before
    }

    fn make_room(&mut self, now: Timestamp) {
        if self.known.len() >= KNOWN_MAX {
            self.known.retain(|_, known| !known.is_finished(now));
            if self.known.len() >= KNOWN_MAX {
                self.known.clear();
            }
        }
    }

    fn object(&self, component: &str, event: &Event, key: &ObjectKey, (times, now): (u32, Timestamp)) -> Value {
        let [object, message, reporter] = self.group.fields();
        let component = event.reporter.as_deref().unwrap_or(component);
        let mut written = json!({
            "apiVersion": self.group.kind().api_version(), "kind": "Event",
            "metadata": {"name": key.name(), "namespace": key.namespace()},
            "eventTime": micro_time(now),
            "type": event.type_.as_str(), "action": event.action, "reason": event.reason,
            object: reference(event.kind, &event.key, &event.uid),
            message: shortened(&event.message, MESSAGE_BYTES_MAX),
            reporter: component, "reportingInstance": format!("{component}-{}", self.host),
        });
        if self.group == EventGroup::Core {
            written["source"] = json!({"component": component, "host": self.host});
        }
        if times > 1 {
            written["series"] = series(times, now);
        }
        for (name, value) in &event.annotations {
            written["metadata"]["annotations"][name] = value.as_str().into();
        }
        if let Some(related) = &event.related {
            written["related"] = reference(related.kind, &related.key, &related.uid);
        }
        written
    }
}

fn series(count: u32, last: Timestamp) -> Value {
    json!({"count": count, "lastObservedTime": micro_time(last)})
}

/// As an Event names an object.
fn reference(kind: ResourceKind, key: &ObjectKey, uid: &Uid) -> Value {
    let mut about = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "name": key.name(), "uid": uid});
    if !key.namespace().is_empty() {
        about["namespace"] = key.namespace().into();
    }
    about
}

/// The beginning of a text that has at most so many bytes.
fn shortened(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{EventType, Regarded};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn event(name: &str, message: &str) -> Event {
        let about = Regarded { kind: ResourceKind::CONFIG_MAP, key: ObjectKey::new("ns", name), uid: Uid::from("u") };
        Event::new(about, EventType::Warning, "Decoding", "Odd", message.to_owned())
    }

    /// A correlator, and what it writes, a line each.
    struct Recorded(Correlator, Random);

    impl Recorded {
        fn new() -> Self {
            Self(Correlator::new("h"), Random::seeded(1))
        }

        fn record(&mut self, second: i64, event: Event) -> Vec<String> {
            self.0.record("c", event, at(second), &self.1).iter().map(line).collect()
        }

        fn sweep(&mut self, second: i64) -> Vec<String> {
            self.0.sweep(at(second)).iter().map(line).collect()
        }
    }

    fn line(write: &Write) -> String {
        match &write.action {
            Action::Create(object) => format!("new: {}", object["note"].as_str().unwrap()),
            Action::Patch { patch, .. } => {
                let series = &patch["series"];
                format!(
                    "series: {}, last at {}",
                    series["count"],
                    &series["lastObservedTime"].as_str().unwrap()[11..19]
                )
            }
            _ => write.to_string(),
        }
    }

    #[test]
    fn what_was_recorded_several_times_before_it_was_written_is_one_write_and_goes_on_as_a_series() {
        let mut recorded = Recorded::new();
        let writes = recorded.0.record_repeated("c", event("a", "m"), (3, at(5)), &recorded.1);
        let [Write { action: Action::Create(object), .. }] = &writes[..] else { panic!("{writes:?}") };
        assert_eq!(object["series"], json!({"count": 3, "lastObservedTime": "1970-01-01T00:00:05.000000Z"}));
        assert!(recorded.record(6, event("a", "m")).is_empty(), "the series is written already");
        assert_eq!(recorded.sweep(1000), ["series: 4, last at 00:00:06"]);
        let once = recorded.0.record_repeated("c", event("b", "m"), (1, at(5)), &recorded.1);
        let [Write { action: Action::Create(object), .. }] = &once[..] else { panic!("{once:?}") };
        assert_eq!(object.get("series"), None);
    }

    #[test]
    fn an_event_has_the_fields_of_its_group() {
        let mut correlator = Correlator::new("h");
        let random = Random::seeded(1);
        let mut object = |group, event| {
            correlator.set_group(group);
            let writes = correlator.record("c", event, at(1), &random);
            let Action::Create(object) = &writes[0].action else { panic!("{writes:?}") };
            assert!(writes[0].request("me").uri.starts_with(match group {
                EventGroup::Events => "/apis/events.k8s.io/v1/namespaces/ns/events?",
                EventGroup::Core => "/api/v1/namespaces/ns/events?",
            }));
            object.clone()
        };
        let about = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "ns", "uid": "u"});
        let new = object(EventGroup::Events, event("a", "it is odd"));
        assert_eq!((&new["regarding"], &new["note"]), (&about, &json!("it is odd")));
        assert_eq!((&new["reportingController"], &new["reportingInstance"]), (&json!("c"), &json!("c-h")));
        assert_eq!((&new["eventTime"], &new["action"]), (&json!("1970-01-01T00:00:01.000000Z"), &json!("Decoding")));
        let node = Regarded { kind: ResourceKind::NODE, key: ObjectKey::cluster("n"), uid: Uid::from("v") };
        let other = Event {
            related: Some(node.into()),
            reporter: Some("another".into()),
            annotations: vec![("example.com/amount", "3".to_owned())],
            ..event("a", "it has to do with a node")
        };
        let related = object(EventGroup::Events, other);
        assert_eq!(related["related"], json!({"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "v"}));
        assert_eq!(
            (&related["reportingController"], &related["reportingInstance"]),
            (&json!("another"), &json!("another-h"))
        );
        assert_eq!(related["metadata"]["annotations"], json!({"example.com/amount": "3"}));
        let core = object(EventGroup::Core, event("a", "it is very odd"));
        assert_eq!((&core["involvedObject"], &core["message"]), (&about, &json!("it is very odd")));
        assert_eq!((&core["apiVersion"], &core["reportingComponent"]), (&json!("v1"), &json!("c")));
        assert_eq!((&core["source"], &new["source"]), (&json!({"component": "c", "host": "h"}), &Value::Null));
        let long = object(EventGroup::Events, event("a", &"ö".repeat(2000)));
        assert_eq!(long["note"].as_str().unwrap().len(), MESSAGE_BYTES_MAX);
    }

    #[test]
    fn repetitions_within_six_minutes_are_a_series() {
        let mut recorded = Recorded::new();
        assert_eq!(recorded.record(0, event("a", "odd")), ["new: odd"]);
        assert_eq!(recorded.record(10, event("a", "odd")), ["series: 2, last at 00:00:10"]);
        assert!((11..200).all(|second| recorded.record(second, event("a", "odd")).is_empty()), "it goes on");
        assert_eq!(recorded.record(20, event("a", "odder")), ["new: odder"], "another message is another event");
        assert_eq!(recorded.sweep(360), [""; 0], "it may still go on");
        assert_eq!(recorded.sweep(720), ["series: 191, last at 00:03:19"], "it is finished");
        assert_eq!(recorded.sweep(1080), [""; 0]);
        assert_eq!(recorded.record(1090, event("a", "odd")), ["new: odd"]);
        assert!(recorded.0.known.len() == 1, "the others are forgotten");
    }

    #[test]
    fn a_series_that_goes_on_is_written_every_half_an_hour() {
        let mut recorded = Recorded::new();
        let mut written = Vec::new();
        for minute in 0..100 {
            let lines = [recorded.record(minute * 60, event("a", "odd")), recorded.sweep(minute * 60 + 1)].concat();
            written.extend(lines.iter().map(|line| format!("{minute} {line}")));
        }
        assert_eq!(
            written,
            [
                "0 new: odd",
                "1 series: 2, last at 00:01:00",
                "31 series: 32, last at 00:31:00",
                "61 series: 62, last at 01:01:00",
                "91 series: 92, last at 01:31:00",
            ]
        );
    }

    #[test]
    fn a_series_that_ended_is_written_before_the_next_event() {
        let mut recorded = Recorded::new();
        for second in 0..5 {
            recorded.record(second, event("a", "odd"));
        }
        assert_eq!(recorded.record(1000, event("a", "odd")), ["series: 5, last at 00:00:04", "new: odd"]);
    }

    #[test]
    fn of_too_many_events_about_one_object_some_are_dropped() {
        let mut recorded = Recorded::new();
        let mut written =
            |name: &str, second, number| !recorded.record(second, event(name, &format!("{number}"))).is_empty();
        assert_eq!((0..40).filter(|number| written("a", 0, *number)).count(), 25);
        assert!(written("b", 0, 0), "another object has events of its own");
        assert!(!written("a", 299, 50) && written("a", 300, 51) && !written("a", 301, 52), "then one in five minutes");
    }

    #[test]
    fn an_event_that_has_expired_on_the_server_is_written_anew() {
        let mut recorded = Recorded::new();
        recorded.record(0, event("a", "odd"));
        let series = recorded.0.record("c", event("a", "odd"), at(1), &recorded.1);
        assert!(recorded.0.forget(&series[0].key) && !recorded.0.forget(&series[0].key));
        assert_eq!(recorded.record(1, event("a", "odd")), ["new: odd"]);
    }
}
