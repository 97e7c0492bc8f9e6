//! Events: what a program reports to users about their objects.
//!
//! They are Events of `events.k8s.io/v1`; one that repeats becomes a series ([`Correlator`]). Whatever goes wrong here is
//! never an error of the caller.

mod correlator;
mod spam;

use std::sync::Arc;

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

/// An object of which an event speaks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Regarded {
    /// Its kind.
    pub kind: ResourceKind,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Tells apart an object and a later one of the same name.
    pub uid: Uid,
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
    /// Another object that has to do with it.
    pub related: Option<Box<Regarded>>,
    /// Who reports it, where one component speaks for several.
    pub reporter: Option<Arc<str>>,
    /// Annotations of the Event: figures that its message, which others may know by heart, has no place for.
    pub annotations: Vec<(&'static str, String)>,
}

impl Event {
    /// Something about an object.
    pub fn new(about: Regarded, type_: EventType, action: &'static str, reason: &'static str, message: String) -> Self {
        let Regarded { kind, key, uid } = about;
        Self { kind, key, uid, type_, action, reason, message, related: None, reporter: None, annotations: Vec::new() }
    }

    /// Information about an object of a cache.
    pub fn normal<P: Projection>(
        (key, entry): (&ObjectKey, &Entry<P>),
        action: &'static str,
        reason: &'static str,
        message: String,
    ) -> Self {
        let about = Regarded { kind: P::KIND, key: key.clone(), uid: entry.uid.clone() };
        Self::new(about, EventType::Normal, action, reason, message)
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
    /// Records an event in the name of a component, unless the event says whose it is.
    fn record(&self, component: &'static str, event: Event);
}

/// Drops every event.
#[derive(Debug, Default)]
pub struct NoopSink;

impl EventSink for NoopSink {
    fn record(&self, _: &'static str, _: Event) {}
}
