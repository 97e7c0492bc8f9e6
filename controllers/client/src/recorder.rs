//! The task that writes events, and the sink in front of it.

use std::sync::Arc;

use jiff::Timestamp;
use koord_core::{
    clock::SharedClock,
    events::{Correlator, Event, EventSink},
    panics::{PanicGuard, Place},
    random::Random,
};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::api::Api;

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
        let Self { queue, api, random, host, guard } = self;
        let mut queue = queue.lock().await;
        let mut correlator = Correlator::new(host);
        loop {
            let waiting = tokio::select! { biased; () = stop.cancelled() => return, next = queue.0.recv() => next };
            let Some((component, event, now)) = waiting else { return stop.cancelled().await };
            guard.inject(Place::Events);
            let Some(write) = correlator.write(component, event.clone(), now, &random) else { continue };
            let Err(error) = api.write(&write).await else { continue };
            // The Event that a count belonged to may have expired; then the event is written anew, once.
            correlator.forget(&write.key);
            let again = correlator.write(component, event, now, &random);
            if let Some(again) = again
                && let Err(second) = api.write(&again).await
            {
                tracing::debug!(%error, %second, "an event could not be written");
            }
        }
    }
}
