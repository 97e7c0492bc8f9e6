//! The task that writes events, and the sink in front of it.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use koord_core::{
    clock::SharedClock,
    events::{Correlator, Event, EventGroup, EventSink},
    panics::{PanicGuard, Place},
    random::Random,
    reflector::Failure,
    refusal::{Obstacle, Refused},
    write::Write,
};
use tokio::sync::{Mutex, Notify};
use tokio_util::sync::CancellationToken;

use crate::api::{Api, Priority, refused};

/// Events that wait to be written; when the API server cannot keep up, further ones are dropped.
const WAITING_MAX: usize = 1000;

/// How long a program that ends goes on writing events.
const LAST_EVENTS_MAX: Duration = Duration::from_secs(2);

/// An event, and by which component it was recorded.
type Recorded = (&'static str, Event);

/// Hands events to the task that writes them. One that waits already takes no second place: it is written once, with how often and when
/// it was recorded last.
pub struct Recorder {
    waiting: Arc<Waiting>,
    clock: SharedClock,
}

/// The other end of a [`Recorder`].
#[derive(Debug)]
pub struct EventQueue {
    waiting: Arc<Waiting>,
    group: EventGroup,
}

#[derive(Debug, Default)]
struct Waiting {
    events: parking_lot::Mutex<Events>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Events {
    order: VecDeque<Recorded>,
    /// How often each was recorded, and when last.
    repeated: BTreeMap<Recorded, (u32, Timestamp)>,
}

// === impl Recorder ===

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl Recorder {
    /// A recorder and its other end.
    pub fn new(clock: SharedClock) -> (Self, EventQueue) {
        let waiting = Arc::<Waiting>::default();
        (Self { waiting: Arc::clone(&waiting), clock }, EventQueue { waiting, group: EventGroup::default() })
    }
}

impl EventSink for Recorder {
    fn record(&self, component: &'static str, event: Event) {
        if self.waiting.events.lock().add((component, event), self.clock.now()) {
            self.waiting.arrived.notify_one();
        } else {
            tracing::debug!(component, "an event was dropped: too many wait");
        }
    }
}

// === impl EventQueue ===

impl EventQueue {
    /// Events are written through this group. Without a permission for `events.k8s.io`, they go through the core group in any case.
    pub fn set_group(&mut self, group: EventGroup) {
        self.group = group;
    }

    /// The event that waits for longest.
    async fn next(&mut self) -> (Recorded, u32, Timestamp) {
        loop {
            if let Some(next) = self.take() {
                return next;
            }
            self.waiting.arrived.notified().await;
        }
    }

    /// The same, if one waits.
    fn take(&self) -> Option<(Recorded, u32, Timestamp)> {
        self.waiting.events.lock().take()
    }
}

// === impl Events ===

impl Events {
    /// Says whether there was a place for the event.
    fn add(&mut self, recorded: Recorded, now: Timestamp) -> bool {
        if let Some((count, last)) = self.repeated.get_mut(&recorded) {
            (*count, *last) = (count.saturating_add(1), now);
            return true;
        }
        if self.order.len() >= WAITING_MAX {
            return false;
        }
        self.order.push_back(recorded.clone());
        self.repeated.insert(recorded, (1, now));
        true
    }

    fn take(&mut self) -> Option<(Recorded, u32, Timestamp)> {
        let recorded = self.order.pop_front()?;
        let (count, last) = self.repeated.remove(&recorded)?;
        Some((recorded, count, last))
    }
}

/// The task that writes events.
#[derive(Clone)]
pub struct EventWriter {
    /// Shared with the next run of the task.
    pub queue: Arc<Mutex<EventQueue>>,
    /// The way to the API server.
    pub api: Api,
    /// For the end of series.
    pub clock: SharedClock,
    /// For the names of Event objects.
    pub random: Random,
    /// The host's name.
    pub host: String,
    /// Where tests inject panics.
    pub guard: PanicGuard,
}

impl EventWriter {
    /// Writes events until `stop`, and for a short time those that wait then: they say what the program did last.
    pub async fn run(self, stop: CancellationToken) {
        let mut queue = self.queue.lock().await;
        let (mut correlator, mut obstacle) = (Correlator::new(self.host.as_str()), Obstacle::default());
        correlator.set_group(queue.group);
        let mut sweep = self.clock.sleep(Correlator::SWEEP);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = &mut sweep => {
                    self.sweep(&mut correlator).await;
                    sweep = self.clock.sleep(Correlator::SWEEP);
                }
                (recorded, count, last) = queue.next() => {
                    self.write(&mut correlator, &mut obstacle, recorded, (count, last)).await;
                }
            }
        }
        let rest = async {
            while let Some((recorded, count, last)) = queue.take() {
                self.write(&mut correlator, &mut obstacle, recorded, (count, last)).await;
            }
        };
        tokio::select! { biased; () = rest => {}, () = self.clock.sleep(LAST_EVENTS_MAX) => {} }
    }

    /// Writes an event.
    async fn write(
        &self,
        correlator: &mut Correlator,
        obstacle: &mut Obstacle,
        (component, event): Recorded,
        (count, last): (u32, Timestamp),
    ) {
        self.guard.inject(Place::Events);
        for write in correlator.record_repeated(component, event.clone(), (count, last), &self.random) {
            let Err(refusal) = self.send(&write).await else { continue };
            if is_forbidden(&refusal) && correlator.group() == EventGroup::Events {
                tracing::info!(
                    reason = refusal.message,
                    "events are written through the core group; grant create and patch of events.k8s.io"
                );
                correlator.set_group(EventGroup::Core);
            }
            // The Event of a series may have expired. It is written anew, once.
            if !correlator.forget(&write.key) {
                continue;
            }
            for again in correlator.record_repeated(component, event.clone(), (count, last), &self.random) {
                if let Err(failure) = self.send(&again).await {
                    report(obstacle, &again, &failure);
                    correlator.forget(&again.key);
                }
            }
        }
    }

    /// Writes the counts of series that are finished, or go on for long.
    async fn sweep(&self, correlator: &mut Correlator) {
        for write in correlator.sweep(self.clock.now()) {
            if let Err(failure) = self.send(&write).await {
                tracing::debug!(reason = failure.message, "a series of events could not be written");
                correlator.forget(&write.key);
            }
        }
    }

    async fn send(&self, write: &Write) -> Result<(), Failure> {
        let answer = self.api.at(Priority::Background).answer(write, None).await?;
        if answer.is_success() { Ok(()) } else { Err(refused(&answer)) }
    }
}

fn report(obstacle: &mut Obstacle, write: &Write, failure: &Failure) {
    let refused = Refused {
        kind: write.kind,
        subresource: "",
        // Events are about objects of all namespaces.
        namespace: "",
        verbs: &["create", "patch"],
        code: failure.code.unwrap_or_default(),
        message: &failure.message,
    };
    if let Some(reason) = obstacle.met(refused) {
        tracing::warn!(reason, "events cannot be written");
    } else {
        tracing::debug!(reason = failure.message, "an event could not be written");
    }
}

/// Whether a role does not grant the write. A namespace that is being deleted takes no events either.
fn is_forbidden(refusal: &Failure) -> bool {
    refusal.code == Some(403) && !refusal.message.contains("is being terminated")
}

#[cfg(test)]
mod tests {
    use koord_core::{
        events::{EventType, Regarded},
        key::ObjectKey,
        uid::Uid,
    };

    use super::*;

    fn event(name: &str, message: &str) -> Event {
        let about =
            Regarded { kind: EventGroup::default().kind(), key: ObjectKey::new("ns", name), uid: Uid::from("u") };
        Event::new(about, EventType::Warning, "Scheduling", "FailedScheduling", message.to_owned())
    }

    #[test]
    fn an_event_that_waits_already_takes_no_second_place() {
        let (mut events, at) = (Events::default(), |second| Timestamp::from_second(second).unwrap());
        assert!(events.add(("s", event("a", "no node")), at(1)));
        assert!(events.add(("s", event("b", "no node")), at(2)));
        assert!(events.add(("s", event("a", "no node")), at(3)));
        assert!(events.add(("s", event("a", "other")), at(4)), "another message is another event");
        let taken = std::iter::from_fn(|| events.take())
            .map(|((_, event), count, last)| (event.key.name().to_owned(), event.message, count, last.as_second()));
        let expected = [("a", "no node", 2, 3), ("b", "no node", 1, 2), ("a", "other", 1, 4)];
        let expected = expected.map(|(name, message, count, last)| (name.to_owned(), message.to_owned(), count, last));
        assert_eq!(taken.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn when_too_many_wait_a_repetition_is_counted_and_a_new_event_is_dropped() {
        let (mut events, now) = (Events::default(), Timestamp::UNIX_EPOCH);
        for number in 0..WAITING_MAX {
            assert!(events.add(("s", event(&number.to_string(), "m")), now));
        }
        assert!(!events.add(("s", event("one more", "m")), now));
        assert!(events.add(("s", event("7", "m")), now));
    }
}
