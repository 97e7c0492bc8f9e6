//! Leader election by a Lease, with client-go's rules, as a state machine.
//!
//! A candidate never compares clocks of two machines: it watches when the record changed by its own clock, and takes
//! the lease when that is longer ago than its holder says that it lasts. Writes are PUTs with resourceVersion, so that
//! of two candidates one loses with a conflict. A Go and a Rust replica can share a lease.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::clock::{Moment, micro_time};

/// How a program takes part in leader election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElectionConfig {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// The identity of this process: unique.
    pub identity: String,
    /// How long other candidates wait before they take over.
    pub lease: Duration,
    /// How long the leader keeps trying to renew before it steps down; shorter than `lease`.
    pub renew: Duration,
    /// Pause between tries.
    pub retry: Duration,
    /// Whether a leader that stops releases the lease, so that another takes over at once.
    pub release: bool,
}

impl LeaderElectionConfig {
    /// The default durations of controller-runtime: 15 s, 10 s, 2 s; a leader that stops releases the lease.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            release: true,
        }
    }
}

/// The Lease object, as far as the election is concerned. Fields that others keep there come back unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// `metadata`, untouched.
    #[serde(default)]
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// The record.
    #[serde(default)]
    pub spec: Record,
}

impl Lease {
    /// Its `resourceVersion`.
    pub fn revision(&self) -> Option<&str> {
        self.metadata.get("resourceVersion").and_then(serde_json::Value::as_str)
    }

    /// Its `uid`.
    pub fn uid(&self) -> Option<&str> {
        self.metadata.get("uid").and_then(serde_json::Value::as_str)
    }
}

/// Who leads and since when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Record {
    /// The leader; empty when the lease was given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder_identity: Option<String>,
    /// How long the lease lasts after a renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_duration_seconds: Option<i64>,
    /// When the leader became leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquire_time: Option<String>,
    /// When the leader last said that it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_time: Option<String>,
    /// How often the leader changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_transitions: Option<i64>,
    /// Fields of newer Kubernetes versions.
    #[serde(flatten)]
    pub others: serde_json::Map<String, serde_json::Value>,
}

impl Record {
    /// How long the lease lasts after a renewal, by what its holder says: a patient leader among hasty candidates
    /// keeps it as long as among its like.
    fn lasts(&self) -> Duration {
        Duration::from_secs(self.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0))
    }

    /// Whether nobody holds the lease.
    fn is_free(&self) -> bool {
        self.holder_identity.as_deref().is_none_or(str::is_empty)
    }
}

/// Until when a process may start writes as the leader, by its own clock. Cheap to clone.
///
/// A leader may start a write as long as its last renewal was requested less than the renew deadline ago. No other
/// candidate takes over before the lease duration has passed, which is longer: what was started in time has the
/// difference to arrive. A request that is on its way for longer than that cannot be called back; client-go has the same limit.
#[derive(Clone, Debug)]
pub struct Leadership(Arc<Mutex<Until>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// The process does not lead.
    NotLeading,
    /// The lead ends at this moment.
    Deadline(Moment),
    /// There is no election.
    Always,
}

impl Leadership {
    /// That of a program without leader election.
    pub fn without_election() -> Self {
        Self(Arc::new(Mutex::new(Until::Always)))
    }

    /// That of a candidate, which does not lead yet.
    pub fn of_candidate() -> Self {
        Self(Arc::new(Mutex::new(Until::NotLeading)))
    }

    /// Whether a write may be started at this moment.
    pub fn holds(&self, now: Moment) -> bool {
        match *self.0.lock() {
            Until::NotLeading => false,
            Until::Deadline(deadline) => now < deadline,
            Until::Always => true,
        }
    }

    /// Takes the state of the election.
    pub fn follow(&self, election: &Election) {
        *self.0.lock() = election.deadline().map_or(Until::NotLeading, Until::Deadline);
    }

    /// The lead is over.
    pub fn end(&self) {
        *self.0.lock() = Until::NotLeading;
    }
}

/// Leader election, seen from one candidate.
#[derive(Debug)]
pub struct Election {
    config: LeaderElectionConfig,
    /// The record that was seen last, and when it last changed, by our clock.
    observed: Option<(Record, Moment)>,
    /// The uid of the Lease object, as it was written last.
    uid: Option<String>,
    leading: bool,
    /// When we last wrote or confirmed our own record.
    renewed: Moment,
    /// Our lease as the server stored it last; none where it has to be read.
    stored: Option<Lease>,
}

/// What to do about the lease.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Another candidate leads.
    Wait,
    /// POST this lease: there is none.
    Create(Lease),
    /// PUT this lease.
    Update(Lease),
}

impl Election {
    /// No leader is known.
    pub fn new(config: LeaderElectionConfig) -> Self {
        Self { config, observed: None, uid: None, leading: false, renewed: Moment::default(), stored: None }
    }

    /// How this process takes part.
    pub fn config(&self) -> &LeaderElectionConfig {
        &self.config
    }

    /// Whether this process leads at this moment: also a leader that cannot reach the server must stop before others may
    /// start.
    pub fn leads(&self, moment: Moment) -> bool {
        self.deadline().is_some_and(|deadline| moment < deadline)
    }

    /// When the lead ends unless it is renewed; none without the lead.
    pub fn deadline(&self) -> Option<Moment> {
        self.leading.then(|| self.renewed + self.config.renew)
    }

    /// The longest that one try may take: a leader must know in time that it could not renew.
    pub fn patience(&self, moment: Moment) -> Duration {
        let renew = self.config.renew;
        if self.leads(moment) { renew.saturating_sub(moment.since(self.renewed)) } else { renew }
    }

    /// The pause before the next try: this one, or what is left of the lease of another candidate where that is less.
    pub fn pause(&self, longest: Duration, moment: Moment) -> Duration {
        let ends = |(record, changed): &(Record, Moment)| *changed + record.lasts();
        let others = self.observed.as_ref().filter(|_| !self.leading && self.leader().is_some());
        let left = others.map(|observed| ends(observed).since(moment)).filter(|left| !left.is_zero());
        left.map_or(longest, |left| left.min(longest))
    }

    /// The uid of the Lease object; none before it was written.
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// Who leads, as far as is known.
    pub fn leader(&self) -> Option<&str> {
        self.observed.as_ref().and_then(|(record, _)| record.holder_identity.as_deref()).filter(|name| !name.is_empty())
    }

    /// What a leader PUTs to renew its lease without reading it; none where it has to be read. Its resourceVersion is the
    /// precondition, so that it is refused when another candidate was faster.
    pub fn renewal(&mut self, now: Timestamp, moment: Moment) -> Option<Lease> {
        let Lease { metadata, spec } = self.stored.take()?;
        let spec = self.record(Some(&spec), now);
        self.leads(moment).then_some(Lease { metadata, spec })
    }

    /// The lease was read, or an event of a watch shows it. Says whether nobody holds it, so that a try is due.
    /// An event may be late: only [`Election::read`] decides what is written. A record counts from the moment at which it
    /// was seen, so an event that is late makes the lease of its holder end later for us, never sooner.
    pub fn observe(&mut self, record: &Record, moment: Moment) -> bool {
        if self.observed.as_ref().is_none_or(|(known, _)| known != record) {
            self.observed = Some((record.clone(), moment));
        }
        if !self.holds(record) {
            self.leading = false;
        }
        record.is_free()
    }

    /// The lease was read; none means that it does not exist. Says what to do.
    pub fn read(&mut self, lease: Option<Lease>, now: Timestamp, moment: Moment) -> Step {
        let Some(lease) = lease else {
            let mut metadata = serde_json::Map::new();
            metadata.insert("name".to_owned(), self.config.name.as_str().into());
            metadata.insert("namespace".to_owned(), self.config.namespace.as_str().into());
            return Step::Create(Lease { metadata, spec: self.record(None, now) });
        };
        let is_free = self.observe(&lease.spec, moment);
        let changed = self.observed.as_ref().map_or(moment, |(_, changed)| *changed);
        if !is_free && !self.holds(&lease.spec) && moment.since(changed) < lease.spec.lasts() {
            return Step::Wait;
        }
        let spec = self.record(Some(&lease.spec), now);
        Step::Update(Lease { metadata: lease.metadata, spec })
    }

    /// The write that [`Election::read`] or [`Election::renewal`] asked for at `moment` went well, and this was stored.
    pub fn written(&mut self, lease: Lease, moment: Moment) {
        self.observed = Some((lease.spec.clone(), moment));
        self.uid = lease.uid().map(str::to_owned).or(self.uid.take());
        self.leading = true;
        self.renewed = moment;
        self.stored = Some(lease);
    }

    /// What to PUT when a leader stops and releases the lease.
    pub fn release(&self, lease: Lease, now: Timestamp) -> Option<Lease> {
        if !self.config.release || !self.holds(&lease.spec) {
            return None;
        }
        let spec = Record {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(micro_time(now)),
            renew_time: Some(micro_time(now)),
            ..lease.spec
        };
        Some(Lease { metadata: lease.metadata, spec })
    }

    /// Whether the record is in our name.
    fn holds(&self, record: &Record) -> bool {
        record.holder_identity.as_deref() == Some(&self.config.identity)
    }

    fn record(&self, old: Option<&Record>, now: Timestamp) -> Record {
        // A first record starts at 0; taking over from anybody, even from nobody, counts.
        let known = old.is_some();
        let old = old.cloned().unwrap_or_default();
        let ours = self.holds(&old);
        let transitions = old.lease_transitions.unwrap_or_default();
        Record {
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: Some(i64::try_from(self.config.lease.as_secs()).unwrap_or(i64::MAX)),
            acquire_time: if ours { old.acquire_time } else { Some(micro_time(now)) },
            renew_time: Some(micro_time(now)),
            lease_transitions: Some(transitions.saturating_add(i64::from(known && !ours))),
            others: old.others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    fn now() -> Timestamp {
        "2026-01-02T03:04:05.000006Z".parse().unwrap()
    }

    fn election(identity: &str) -> Election {
        Election::new(LeaderElectionConfig::new("koordinator-system", "koordinator-manager", identity))
    }

    fn held_by(holder: &str, renewed: &str) -> Lease {
        let spec = Record {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            acquire_time: Some("2025-01-01T00:00:00.000000Z".to_owned()),
            renew_time: Some(renewed.to_owned()),
            lease_transitions: Some(3),
            others: serde_json::Map::new(),
        };
        Lease { metadata: serde_json::Map::new(), spec }
    }

    #[test]
    fn the_first_candidate_creates_the_lease_and_leads() {
        let mut a = election("a");
        let Step::Create(lease) = a.read(None, now(), at(0)) else { panic!() };
        assert_eq!(
            serde_json::to_value(&lease.spec).unwrap(),
            serde_json::json!({"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
                "acquireTime": "2026-01-02T03:04:05.000006Z", "renewTime": "2026-01-02T03:04:05.000006Z"})
        );
        assert!(!a.leads(at(0)), "not before the write went well");
        a.written(lease, at(0));
        assert!(a.leads(at(9)));
        let leadership = Leadership::of_candidate();
        assert!(!leadership.holds(at(9)));
        leadership.follow(&a);
        assert!(leadership.holds(at(9)) && !leadership.holds(at(10)), "no write is started after the renew deadline");
        leadership.end();
        assert!(!leadership.holds(at(9)) && Leadership::without_election().holds(at(9)));
        assert_eq!(a.patience(at(7)), Duration::from_secs(3), "a try that hangs must not outlast leadership");
        assert!(!a.leads(at(10)), "a leader that cannot renew stops before others may start");
    }

    #[test]
    fn a_lease_is_taken_when_its_record_has_not_changed_for_its_length_by_our_own_clock() {
        let mut b = election("b");
        // The holder's clock is years off; only our own counts.
        assert_eq!(b.read(Some(held_by("a", "1999-01-01T00:00:00.000000Z")), now(), at(100)), Step::Wait);
        assert_eq!(b.read(Some(held_by("a", "1999-01-01T00:00:02.000000Z")), now(), at(114)), Step::Wait);
        assert_eq!(b.read(Some(held_by("a", "1999-01-01T00:00:02.000000Z")), now(), at(128)), Step::Wait);
        let Step::Update(lease) = b.read(Some(held_by("a", "1999-01-01T00:00:02.000000Z")), now(), at(129)) else {
            panic!()
        };
        assert_eq!((lease.spec.holder_identity.as_deref(), lease.spec.lease_transitions), (Some("b"), Some(4)));
    }

    #[test]
    fn a_candidate_tries_again_when_the_lease_of_another_ends() {
        let (mut b, long) = (election("b"), Duration::from_secs(4));
        assert_eq!(b.pause(long, at(100)), long, "nothing is known");
        let lease = held_by("a", "x");
        assert_eq!(b.read(Some(lease.clone()), now(), at(100)), Step::Wait);
        let pauses =
            [at(110), at(111), at(112), at(114), at(115), at(120)].map(|moment| b.pause(long, moment).as_secs());
        assert_eq!(pauses, [4, 4, 3, 1, 4, 4], "a try that failed is not repeated at once");
        let moment = at(112) + b.pause(long, at(112));
        assert!(matches!(b.read(Some(lease.clone()), now(), moment), Step::Update(_)));
        b.written(Lease { spec: b.record(Some(&lease.spec), now()), ..lease }, moment);
        assert_eq!(b.pause(long, at(129)), long, "a leader renews as often as it always does");
        let mut released = held_by("", "x");
        released.spec.lease_duration_seconds = Some(1);
        let mut c = election("c");
        c.read(Some(released), now(), at(0));
        assert_eq!(c.pause(long, at(0)), long);
    }

    #[test]
    fn a_watched_lease_ends_its_duration_after_the_event_of_its_last_renewal() {
        let (mut b, long) = (election("b"), Duration::from_secs(4));
        assert_eq!(b.read(Some(held_by("a", "1")), now(), at(100)), Step::Wait);
        assert!(!b.observe(&held_by("a", "2").spec, at(102)));
        assert!(!b.observe(&held_by("a", "2").spec, at(103)), "an event that comes twice is one renewal");
        assert_eq!(b.pause(long, at(116)), Duration::from_secs(1));
        assert_eq!(b.read(Some(held_by("a", "2")), now(), at(116)), Step::Wait);
        assert!(matches!(b.read(Some(held_by("a", "2")), now(), at(117)), Step::Update(_)));
        assert!(b.observe(&held_by("", "3").spec, at(118)), "it was released");
    }

    #[test]
    fn a_late_event_makes_nobody_lead() {
        let mut b = election("b");
        assert_eq!(b.read(Some(held_by("c", "5")), now(), at(100)), Step::Wait);
        assert!(b.observe(&held_by("", "4").spec, at(101)), "this was before c took it");
        assert!(!b.leads(at(101)));
        assert_eq!(b.read(Some(held_by("c", "5")), now(), at(101)), Step::Wait, "a read shows it");
        assert!(!b.observe(&held_by("a", "3").spec, at(110)));
        assert_eq!(b.read(Some(held_by("c", "5")), now(), at(117)), Step::Wait, "c has its whole lease once more");
        assert!(matches!(b.read(Some(held_by("c", "5")), now(), at(132)), Step::Update(_)));
    }

    #[test]
    fn a_renewal_keeps_the_time_of_acquisition_and_what_others_wrote() {
        let mut a = election("a");
        let mut lease = held_by("a", "x");
        lease.spec.others.insert("strategy".to_owned(), "OldestEmulationVersion".into());
        let Step::Update(renewed) = a.read(Some(lease), now(), at(0)) else { panic!() };
        assert_eq!(renewed.spec.acquire_time.as_deref(), Some("2025-01-01T00:00:00.000000Z"));
        assert_eq!((renewed.spec.lease_transitions, renewed.spec.others.len()), (Some(3), 1));
    }

    #[test]
    fn a_leader_renews_without_reading_until_a_write_fails() {
        let mut a = election("a");
        assert!(a.renewal(now(), at(0)).is_none(), "nothing was stored");
        let mut stored = held_by("a", "x");
        stored.metadata.insert("resourceVersion".to_owned(), "7".into());
        a.written(stored.clone(), at(0));
        let renewed = a.renewal(now(), at(2)).unwrap();
        assert_eq!(renewed.metadata, stored.metadata);
        assert_eq!(renewed.spec.renew_time.as_deref(), Some("2026-01-02T03:04:05.000006Z"));
        assert_eq!(
            (renewed.spec.acquire_time, renewed.spec.lease_transitions),
            (stored.spec.acquire_time.clone(), Some(3))
        );
        assert!(a.renewal(now(), at(2)).is_none(), "it was not stored");
        a.written(stored, at(2));
        assert!(a.renewal(now(), at(12)).is_none(), "the lead is over");
    }

    #[test]
    fn a_leader_that_sees_another_name_has_lost() {
        let mut a = election("a");
        a.written(held_by("a", "x"), at(0));
        assert!(a.leads(at(1)));
        assert_eq!(a.read(Some(held_by("b", "y")), now(), at(2)), Step::Wait);
        assert!(!a.leads(at(2)));
        assert_eq!(a.leader(), Some("b"));
    }

    #[test]
    fn a_lease_lasts_as_long_as_its_holder_says() {
        let mut patient = held_by("a", "x");
        patient.spec.lease_duration_seconds = Some(60);
        let mut b = election("b");
        assert_eq!(b.read(Some(patient.clone()), now(), at(0)), Step::Wait);
        assert_eq!(b.read(Some(patient.clone()), now(), at(59)), Step::Wait);
        assert!(matches!(b.read(Some(patient), now(), at(60)), Step::Update(_)));
    }

    #[test]
    fn a_released_lease_is_taken_at_once() {
        let mut a = election("a");
        assert!(a.release(held_by("b", "x"), now()).is_none(), "only our own");
        let released = a.release(held_by("a", "x"), now()).unwrap();
        assert_eq!(
            serde_json::to_value(&released.spec).unwrap(),
            serde_json::json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3,
                "acquireTime": "2026-01-02T03:04:05.000006Z", "renewTime": "2026-01-02T03:04:05.000006Z"})
        );
        let Step::Update(taken) = election("b").read(Some(released), now(), at(0)) else { panic!() };
        assert_eq!((taken.spec.holder_identity.as_deref(), taken.spec.lease_transitions), (Some("b"), Some(4)));
        a.config.release = false;
        assert!(a.release(held_by("a", "x"), now()).is_none(), "unless it is to be kept");
    }

    #[test]
    fn an_empty_lease_is_taken_at_once() {
        let Step::Update(taken) = election("a").read(Some(Lease::default()), now(), at(0)) else { panic!() };
        assert_eq!((taken.spec.lease_duration_seconds, taken.spec.lease_transitions), (Some(15), Some(1)));
    }
}
