//! Events: what a program reports to users about their objects.
//!
//! They are Events of `events.k8s.io/v1`; one that repeats becomes a series ([`Correlator`]). Whatever goes wrong here is
//! never an error of the caller.

mod correlator;
mod spam;

use koord_resource::controller::ResourceKind;

pub use self::correlator::{Correlator, EventGroup};
use crate::{key::ObjectKey, uid::Uid};

/// Whether an event is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// Information.
    Normal,
    /// Something a user should look at.
    Warning,
}

impl EventType {
    /// As `type` of an Event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// What is reported about an object.
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
    /// What the component was doing, such as `Scheduling`.
    pub action: &'static str,
    /// Why the event is recorded: one word in CamelCase.
    pub reason: &'static str,
    /// What happened, for a person.
    pub message: String,
}

/// Takes events; it never blocks and never fails.
pub trait EventSink: Send + Sync + 'static {
    /// Records an event in the name of a component.
    fn record(&self, component: &'static str, event: Event);
}

/// Drops every event.
#[derive(Debug, Default)]
pub struct NoopSink;

impl EventSink for NoopSink {
    fn record(&self, _: &'static str, _: Event) {}
}
