//! The task that writes events, and the sink in front of it.

use std::sync::Arc;

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
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::api::{Api, refused};

/// Events that wait to be written; when the API server cannot keep up, further ones are dropped.
const WAITING_MAX: usize = 1000;

type Recorded = (&'static str, Event, Timestamp);

/// Hands events to the task that writes them.
#[derive(Debug)]
pub struct Recorder {
    queue: mpsc::Sender<Recorded>,
    clock: SharedClockDebug,
}

/// The other end of a [`Recorder`].
#[derive(Debug)]
pub struct EventQueue(mpsc::Receiver<Recorded>);

struct SharedClockDebug(SharedClock);

impl std::fmt::Debug for SharedClockDebug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("clock")
    }
}

impl Recorder {
    /// A recorder and its other end.
    pub fn new(clock: SharedClock) -> (Self, EventQueue) {
        let (queue, receiver) = mpsc::channel(WAITING_MAX);
        (Self { queue, clock: SharedClockDebug(clock) }, EventQueue(receiver))
    }
}

impl EventSink for Recorder {
    fn record(&self, component: &'static str, event: Event) {
        if self.queue.try_send((component, event, self.clock.0.now())).is_err() {
            tracing::debug!(component, "an event was dropped: too many wait");
        }
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
    /// Writes events until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut queue = self.queue.lock().await;
        let (mut correlator, mut obstacle) = (Correlator::new(self.host.as_str()), Obstacle::default());
        let mut sweep = self.clock.sleep(Correlator::SWEEP);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = &mut sweep => {
                    self.sweep(&mut correlator).await;
                    sweep = self.clock.sleep(Correlator::SWEEP);
                }
                recorded = queue.0.recv() => match recorded {
                    Some(recorded) => self.write(&mut correlator, &mut obstacle, recorded).await,
                    None => return stop.cancelled().await,
                },
            }
        }
    }

    /// Writes an event.
    async fn write(&self, correlator: &mut Correlator, obstacle: &mut Obstacle, recorded: Recorded) {
        let (component, event, now) = recorded;
        self.guard.inject(Place::Events);
        for write in correlator.record(component, event.clone(), now, &self.random) {
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
            for again in correlator.record(component, event.clone(), now, &self.random) {
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
        let answer = self.api.answer(write, None).await?;
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
