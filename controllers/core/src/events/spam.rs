//! Limits how many events a component writes about one object, as client-go's spam filter does.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use koord_resource::controller::ResourceKind;

use super::Event;
use crate::{clock::Moment, key::ObjectKey, queue::Bucket, uid::Uid};

/// Events that a component may write about one object at once.
const BURST: f64 = 25.0;
/// And after that: one in five minutes.
const PER_SECOND: f64 = 1.0 / 300.0;
/// More buckets than this are not kept.
const BUCKETS_MAX: usize = 4096;

/// A component and an object that it writes events about.
type Subject = (&'static str, ResourceKind, ObjectKey, Uid);

/// A token bucket for each component and object.
#[derive(Debug, Default)]
pub(super) struct SpamFilter {
    buckets: BTreeMap<Subject, Bucket>,
}

impl SpamFilter {
    /// Whether the event may be written; if so, it takes a token.
    pub(super) fn accepts(&mut self, component: &'static str, event: &Event, now: Timestamp) -> bool {
        let now = Moment::at(Duration::from_secs(u64::try_from(now.as_second()).unwrap_or_default()));
        let subject = (component, event.kind, event.key.clone(), event.uid.clone());
        if self.buckets.len() >= BUCKETS_MAX && !self.buckets.contains_key(&subject) {
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
            if self.buckets.len() >= BUCKETS_MAX {
                self.buckets.clear();
            }
        }
        self.buckets.entry(subject).or_insert_with(|| Bucket::new(PER_SECOND, BURST)).take(now)
    }
}
