//! The task of leader election.
//!
//! A leader renews the Lease every retry period. A candidate watches it meanwhile: every event is an observation at that
//! moment, so that the end of the Lease is known exactly, and a Lease without a holder is tried for at once. Where no event
//! comes, and where the API server does not let it watch, the candidate reads the Lease every retry period. What it writes
//! follows from a read alone. Events of the Lease say who became leader, and who no longer is.

mod lease_watch;

use std::{sync::Arc, time::Duration};

use koord_resource::controller::{ELECTION_JITTER, ResourceKind};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::lease_watch::LeaseWatch;
use crate::{
    api::{Api, refused},
    clock::SharedClock,
    events::{Event, EventSink, EventType, Regarded},
    key::ObjectKey,
    lease::{Election, LeaderElectionConfig, Leadership, Lease, Step},
    metrics::Metrics,
    panics::{PanicGuard, Place},
    random::Random,
    reflector::Failure,
    refusal::{Obstacle, Refused},
    uid::Uid,
    write::WireRequest,
};

/// A Lease without a holder is tried for within this time, at random: most of several candidates then read that another was
/// faster.
const SPREAD_MS: u64 = 100;

/// How soon the Lease is asked for again, at least, when the API server could not serve it; up to twice as late at random. Within a
/// retry period a server that works again is otherwise not noticed, and the lead may be over.
const AGAIN: Duration = Duration::from_millis(500);

/// What leader election works with, and what it shows.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) config: LeaderElectionConfig,
    /// A way to the API server on which no other request is waited for.
    pub(crate) api: Api,
    pub(crate) clock: SharedClock,
    pub(crate) random: Random,
    pub(crate) metrics: Metrics,
    pub(crate) guard: PanicGuard,
    /// Shows whether this process leads.
    pub(crate) leading: Arc<watch::Sender<bool>>,
    pub(crate) leadership: Leadership,
    /// Where it is recorded who leads, in the name of this component.
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) component: &'static str,
}

/// What an event says when a process begins to lead, and when it does not lead any more: client-go's words.
const BECAME_LEADER: &str = "became leader";
const STOPPED_LEADING: &str = "stopped leading";

/// Without the lead as long as it is not shown, and when the task ends in whatever way.
struct Shown<'c>(&'c Candidate);

impl Candidate {
    /// Runs leader election until `stop`. Releases the lease when `idle` says that nothing runs in its name any more.
    /// The clock must run in real time: other replicas have no other.
    pub(crate) async fn run(self, stop: CancellationToken, idle: CancellationToken) {
        let election = Election::new(self.config.clone());
        let mut session =
            Session { election, candidate: &self, obstacle: Obstacle::default(), followed: None, revision: None };
        let (mut watch, shown) = (LeaseWatch::new(&self), Shown(&self));
        loop {
            let in_time = self.clock.sleep(session.election.patience(self.clock.moment()));
            let tried = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                tried = session.attempt() => tried,
                () = in_time => Err(Failure::local("the API server did not answer in time")),
            };
            let again = tried.as_ref().err().and_then(|failure| self.again(failure));
            session.report(tried);
            let leads = shown.show(&session.election);
            session.follow(leads);
            let pause = async {
                if leads {
                    watch.close();
                    self.clock.sleep(again.unwrap_or(self.config.retry)).await;
                } else {
                    session.wait(&mut watch, again).await;
                }
            };
            tokio::select! { biased; () = stop.cancelled() => break, () = pause => {} }
        }
        if session.election.leads(self.clock.moment()) {
            self.record(&session.election, STOPPED_LEADING);
        }
        drop(shown);
        // A write that was begun may still be on its way; the next leader must not meet it.
        idle.cancelled().await;
        if let Err(failure) = session.release().await {
            tracing::debug!(reason = failure.message, "the lease could not be released");
        }
    }

    /// How soon a try is repeated that failed because the API server could not serve it; none where it failed for another reason.
    fn again(&self, failure: &Failure) -> Option<Duration> {
        let is_refused = failure.code.is_some_and(|code| code != 429 && code < 500);
        let again = self.random.jitter(AGAIN, 1.0).max(failure.retry_after.unwrap_or_default());
        (!is_refused).then(|| again.min(self.config.retry))
    }

    /// Records on the Lease what has become of this process.
    fn record(&self, election: &Election, what: &str) {
        let Some(uid) = election.uid() else { return };
        let config = &self.config;
        let key = ObjectKey::new(&config.namespace, &config.name);
        let lease = Regarded { kind: ResourceKind::LEASE, key, uid: Uid::from(uid) };
        let message = format!("{} {what}", config.identity);
        let event = Event::new(lease, EventType::Normal, "LeaderElection", "LeaderElection", message);
        self.events.record(self.component, event);
    }
}

impl Shown<'_> {
    fn show(&self, election: &Election) -> bool {
        let Candidate { config, clock, metrics, leading, leadership, .. } = self.0;
        leadership.follow(election);
        let leads = election.leads(clock.moment());
        let changed = leading.send_if_modified(|shown| std::mem::replace(shown, leads) != leads);
        let lease = config.name.as_str();
        metrics.leader.with_label_values(&[lease]).set(i64::from(leads));
        match (changed, leads) {
            (true, true) => {
                tracing::info!(lease, "leading");
                self.0.record(election, BECAME_LEADER);
            }
            (true, false) => {
                tracing::warn!(lease, leader = election.leader(), "no longer leading");
                self.0.record(election, STOPPED_LEADING);
            }
            (false, _) => {}
        }
        leads
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let Candidate { config, metrics, leading, leadership, .. } = self.0;
        leadership.end();
        leading.send_replace(false);
        metrics.leader.with_label_values(&[config.name.as_str()]).set(0);
    }
}

/// One run of the task.
struct Session<'c> {
    election: Election,
    candidate: &'c Candidate,
    obstacle: Obstacle,
    /// Who leads, as was logged last.
    followed: Option<String>,
    /// The resourceVersion of the lease that the last try read; none where it read none, and once the watch knows it.
    revision: Option<String>,
}

impl Session<'_> {
    /// Waits until a candidate that does not lead has to try: nobody holds the lease, it is over, or nothing was seen of it for a
    /// retry period, up to 2.2 times as long at random, or for this time after a try that failed.
    async fn wait(&mut self, watch: &mut LeaseWatch<'_>, again: Option<Duration>) {
        let Candidate { clock, random, config, .. } = self.candidate;
        if let Some(revision) = self.revision.take() {
            watch.read_at(revision);
        }
        loop {
            let longest = again.unwrap_or_else(|| random.jitter(config.retry, ELECTION_JITTER));
            let pause = self.election.pause(longest, clock.moment());
            let seen = tokio::select! {
                biased;
                seen = watch.next() => seen,
                () = clock.sleep(pause) => return,
            };
            if seen.is_none_or(|lease| self.election.observe(&lease.spec, clock.moment())) {
                return clock.sleep(Duration::from_millis(random.below(SPREAD_MS))).await;
            }
            self.follow(false);
        }
    }

    /// Logs once for whose lease this process waits.
    fn follow(&mut self, leads: bool) {
        let ours = self.candidate.config.identity.as_str();
        let leader = self.election.leader().filter(|leader| !leads && *leader != ours);
        if leader != self.followed.as_deref() {
            self.followed = leader.map(str::to_owned);
            if let Some(leader) = &self.followed {
                tracing::info!(lease = self.candidate.config.name, leader, "waiting: another process leads");
            }
        }
    }

    /// What keeps a program from ever leading is said; what passes is not.
    fn report(&mut self, tried: Result<(), Failure>) {
        let config = &self.candidate.config;
        let failure = match tried {
            Ok(()) => {
                self.obstacle.gone();
                return;
            }
            Err(failure) => failure,
        };
        let refused = Refused {
            kind: ResourceKind::LEASE,
            subresource: "",
            namespace: &config.namespace,
            verbs: &["create", "get", "update"],
            code: failure.code.unwrap_or_default(),
            message: &failure.message,
        };
        if let Some(reason) = self.obstacle.met(refused) {
            tracing::warn!(lease = config.name, reason, "cannot lead; the program waits until it can");
        } else {
            tracing::debug!(reason = failure.message, "the lease could not be written");
        }
    }

    async fn attempt(&mut self) -> Result<(), Failure> {
        let Candidate { guard, clock, config, .. } = self.candidate;
        guard.inject(Place::Election);
        self.revision = None;
        let moment = clock.moment();
        if let Some(lease) = self.election.renewal(clock.now(), moment) {
            match self.send("PUT", self.uri(), &lease).await {
                Ok(stored) => {
                    self.election.written(stored, moment);
                    return Ok(());
                }
                Err(failure) => tracing::debug!(reason = failure.message, "the lease is read again"),
            }
        }
        let lease = self.fetch().await?;
        self.revision = lease.as_ref().and_then(Lease::revision).map(str::to_owned);
        let moment = clock.moment();
        let stored = match self.election.read(lease, clock.now(), moment) {
            Step::Wait => return Ok(()),
            Step::Create(lease) => {
                self.send("POST", ResourceKind::LEASE.url_path(&config.namespace, None), &lease).await?
            }
            Step::Update(lease) => self.send("PUT", self.uri(), &lease).await?,
        };
        self.election.written(stored, moment);
        Ok(())
    }

    async fn release(&self) -> Result<(), Failure> {
        if !self.candidate.config.release {
            return Ok(());
        }
        let Some(lease) = self.fetch().await? else { return Ok(()) };
        match self.election.release(lease, self.candidate.clock.now()) {
            Some(lease) => self.send("PUT", self.uri(), &lease).await.map(drop),
            None => Ok(()),
        }
    }

    async fn fetch(&self) -> Result<Option<Lease>, Failure> {
        let answer = self.candidate.api.get(self.uri()).await?;
        match answer.code {
            404 => Ok(None),
            200 => serde_json::from_str(&answer.body).map(Some).map_err(|error| Failure::local(error.to_string())),
            _ => Err(refused(&answer)),
        }
    }

    async fn send(&self, method: &'static str, uri: String, lease: &Lease) -> Result<Lease, Failure> {
        let mut body = serde_json::to_value(lease).map_err(|error| Failure::local(error.to_string()))?;
        body["apiVersion"] = ResourceKind::LEASE.api_version().into();
        body["kind"] = ResourceKind::LEASE.kind.into();
        let request = WireRequest { method, uri, content_type: "application/json", body: body.to_string() };
        let answer = self.candidate.api.call(&request).await?;
        if !answer.is_success() {
            return Err(refused(&answer));
        }
        serde_json::from_str(&answer.body).map_err(|error| Failure::local(error.to_string()))
    }

    fn uri(&self) -> String {
        let config = &self.candidate.config;
        ResourceKind::LEASE.url_path(&config.namespace, Some(&config.name))
    }
}
