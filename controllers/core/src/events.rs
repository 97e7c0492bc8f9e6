//! Events: what a program reports to users about their objects.
//!
//! They are Events of `events.k8s.io/v1`; one that repeats becomes a series ([`Correlator`]). Whatever goes wrong here is
//! never an error of the caller.

mod correlator;
mod spam;

use koord_resource::controller::ResourceKind;

pub use self::correlator::{Correlator, EventGroup};
use crate::{cache::Entry, key::ObjectKey, projection::Projection, uid::Uid};

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

impl Event {
    /// Information about an object of a cache.
    pub fn normal<P: Projection>(
        (key, entry): (&ObjectKey, &Entry<P>),
        action: &'static str,
        reason: &'static str,
        message: String,
    ) -> Self {
        let (kind, key, uid) = (P::KIND, key.clone(), entry.uid.clone());
        Self { kind, key, uid, type_: EventType::Normal, action, reason, message }
    }

    /// Something about an object of a cache that a user should look at.
    pub fn warning<P: Projection>(
        object: (&ObjectKey, &Entry<P>),
        action: &'static str,
        reason: &'static str,
        message: String,
    ) -> Self {
        Self { type_: EventType::Warning, ..Self::normal(object, action, reason, message) }
    }
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
