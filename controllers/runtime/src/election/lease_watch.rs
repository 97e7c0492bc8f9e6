//! The watch of one Lease, for candidates that wait for it.

use std::{future::pending, time::Duration};

use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use koord_resource::controller::ResourceKind;
use kube::core::WatchEvent;

use super::Candidate;
use crate::{
    api::{Api, Events, Part},
    clock::Moment,
    lease::Lease,
    reflector::Failure,
};

/// Watches the Lease of a candidate from where it was read last.
///
/// Nothing depends on it: where the API server refuses it, cuts it, or sends nothing, the candidate's reads go on. So that it
/// costs little there, it is opened at most once in the duration of a Lease.
pub(super) struct LeaseWatch<'c> {
    candidate: &'c Candidate,
    /// What it sends; none while it is not open.
    events: Option<BoxStream<'static, Result<WatchEvent<Lease>, Failure>>>,
    /// The resourceVersion after which it goes on; none where the Lease has to be read first.
    revision: Option<String>,
    /// It is not opened before.
    opens: Moment,
    /// When the server last sent an event, or the watch was opened.
    heard: Moment,
    /// Whether the API server refuses it.
    refused: bool,
}

impl<'c> LeaseWatch<'c> {
    /// The server is asked to end it after 240 s to 300 s, as other watches are.
    const TIME: Duration = Duration::from_mins(4);
    const IDLE_MARGIN: Duration = Duration::from_secs(5);
    /// What the role does not grant, or the server does not serve, is asked for again after this time.
    const REFUSED: Duration = Duration::from_mins(5);

    /// Not open: the Lease has to be read first.
    pub(super) fn new(candidate: &'c Candidate) -> Self {
        let (opens, heard) = (Moment::default(), Moment::default());
        Self { candidate, events: None, revision: None, opens, heard, refused: false }
    }

    /// The Lease was read at this revision. A watch that has shown neither it nor anything else for a retry period is
    /// closed: its connection is dead, or its server is behind.
    pub(super) fn read_at(&mut self, revision: String) {
        let Candidate { clock, config, .. } = self.candidate;
        if self.events.is_some() {
            let has_shown_it = self.revision.as_ref() == Some(&revision);
            if has_shown_it || clock.moment().since(self.heard) < config.retry {
                return;
            }
            tracing::debug!(lease = config.name, "a watch that did not show the last change is closed");
        }
        self.events = None;
        self.revision = Some(revision);
    }

    /// Ends the watch: a leader has none.
    pub(super) fn close(&mut self) {
        (self.events, self.revision) = (None, None);
    }

    /// What the next event shows: the Lease, or none where it was deleted. Waits while there is no watch. No event is lost when
    /// the future is dropped.
    pub(super) async fn next(&mut self) -> Option<Lease> {
        loop {
            let Some(events) = &mut self.events else {
                self.open().await;
                continue;
            };
            let (lease, is_deleted) = match events.next().await {
                Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease))) => (lease, false),
                Some(Ok(WatchEvent::Deleted(lease))) => (lease, true),
                Some(Ok(WatchEvent::Bookmark(_))) => continue,
                Some(Ok(WatchEvent::Error(status))) => {
                    let (code, message) = (Some(status.code), status.message);
                    self.failed(&Failure { code, message, ..Failure::default() });
                    continue;
                }
                Some(Err(failure)) => {
                    self.failed(&failure);
                    continue;
                }
                None => {
                    self.events = None;
                    continue;
                }
            };
            (self.heard, self.refused) = (self.candidate.clock.moment(), false);
            if let Some(revision) = lease.revision() {
                self.revision = Some(revision.to_owned());
            }
            return (!is_deleted).then_some(lease);
        }
    }

    /// Opens it, once the Lease was read and its time has come.
    async fn open(&mut self) {
        let Candidate { config, clock, random, api, .. } = self.candidate;
        let Some(revision) = self.revision.clone() else { return pending().await };
        clock.sleep(self.opens.since(clock.moment())).await;
        let time = random.jitter(Self::TIME, 0.25);
        let uri = format!(
            "{}?fieldSelector=metadata.name%3D{}&resourceVersion={revision}&watch=true&timeoutSeconds={}",
            ResourceKind::LEASE.url_path(&config.namespace, None),
            config.name,
            time.as_secs()
        );
        self.events = Some(events(api.clone(), uri, time + Self::IDLE_MARGIN));
        self.heard = clock.moment();
        self.opens = self.heard + config.lease;
    }

    /// Closes it. What the server refused, or ended with an error, goes on from the next read of the Lease; what broke, from where
    /// it was.
    fn failed(&mut self, failure: &Failure) {
        let Candidate { clock, config, .. } = self.candidate;
        let is_refusal = matches!(failure.code, Some(403..=405));
        let pause = if is_refusal { Self::REFUSED } else { failure.retry_after.unwrap_or_default() };
        self.opens = self.opens.max(clock.moment() + pause);
        self.events = None;
        if failure.code.is_some() {
            self.revision = None;
        }
        let is_known = std::mem::replace(&mut self.refused, is_refusal);
        if !(is_known && is_refusal) {
            tracing::debug!(lease = config.name, reason = failure.message, "the lease cannot be watched and is read");
        }
    }
}

/// Sends a request for a watch, and gives its events.
fn events(api: Api, uri: String, idle: Duration) -> BoxStream<'static, Result<WatchEvent<Lease>, Failure>> {
    let opening = async move { api.watch(uri, Part::Whole, idle).await };
    stream::once(opening).map_ok(|lines| stream::try_unfold(lines, event)).try_flatten().boxed()
}

/// The next event, and what reads those after it.
async fn event(mut lines: Events) -> Result<Option<(WatchEvent<Lease>, Events)>, Failure> {
    loop {
        let Some(line) = lines.next().await? else { return Ok(None) };
        if !line.is_empty() {
            let event = serde_json::from_str(line).map_err(|error| Failure::local(error.to_string()))?;
            return Ok(Some((event, lines)));
        }
    }
}
