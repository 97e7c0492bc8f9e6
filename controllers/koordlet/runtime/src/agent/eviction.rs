//! Evictions that strategies decided on, carried out one by one: through the API server, or by stopping containers.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use koord_core::clock::Moment;

use koord_koordlet_qos::{
    Strategy,
    eviction::{Answer, EVICT_POD_FAIL, EVICT_POD_SUCCESS, Eviction, EvictionRound, Ledger, Means},
};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    events::{Event, EventType, Regarded},
    key::ObjectKey,
    uid::Uid,
    write::{Action, Deletion, Write},
};

use super::{Agent, Now};
use crate::{
    audit::{AuditEvent, Subject},
    exchange::Effect,
};

/// Rounds that are not carried out yet.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    /// Pods that were evicted and are still there.
    pub(super) ledger: Ledger,
    rounds: VecDeque<(Strategy, EvictionRound)>,
    under_way: Option<UnderWay>,
    /// How many pods were evicted.
    pub(super) count: u64,
    /// Evicted pods as `NAMESPACE/NAME`, with how often and when last.
    pub(super) pods: BTreeMap<String, (u64, Moment)>,
}

/// The eviction that has no answer yet.
#[derive(Debug)]
struct UnderWay {
    eviction: Eviction,
    /// The writes or stops that are waited for.
    ids: BTreeSet<u64>,
    means: Means,
    /// The first thing that failed.
    error: Option<String>,
}

/// How long an evicted pod is remembered by name.
const DETAIL_KEPT: Duration = Duration::from_mins(10);

/// The annotation of events of evictions with the setting and the figures that they follow from.
const EVICTION_REASON: &str = "koordinator.sh/eviction-reason";
/// Who reports evictions.
const REPORTER: &str = "koordlet-qosManager";

impl Evictions {
    /// Takes a round. A strategy has one at a time.
    pub(super) fn begin(&mut self, strategy: Strategy, round: EvictionRound) {
        self.rounds.push_back((strategy, round));
    }
}

impl Agent {
    /// Starts the next eviction when none is under way.
    pub(super) fn evict(&mut self, now: Now) {
        self.evictions.pods.retain(|_, (_, at)| now.moment.since(*at) < DETAIL_KEPT);
        if self.evictions.under_way.is_some() {
            return;
        }
        while let Some((strategy, round)) = self.evictions.rounds.front_mut() {
            let strategy = *strategy;
            round.count_pending(&self.evictions.ledger);
            if let Some(eviction) = round.next_eviction() {
                self.start_eviction(eviction, now);
                return;
            }
            if let Some((_, round)) = self.evictions.rounds.pop_front() {
                self.enforcement.strategies.finish(strategy, &round, now.moment);
            }
        }
    }

    fn start_eviction(&mut self, eviction: Eviction, now: Now) {
        let pod = &eviction.pod;
        let mut ids = BTreeSet::new();
        let mut error = None;
        let means = if self.settings.only_observes {
            error = Some("--observe-only is set: no pod is evicted".to_owned());
            Means::Api
        } else if self.settings.eviction.only_by_api {
            let id = self.next_id();
            ids.insert(id);
            let action = Action::Evict(Deletion::of(Uid::from(&*pod.uid)));
            let write = Write { kind: ResourceKind::POD, key: ObjectKey::new(&pod.namespace, &pod.name), action };
            self.effects.push(Effect::Write { id, write });
            Means::Api
        } else {
            let containers: Vec<_> = eviction.containers_to_stop().into_iter().cloned().collect();
            if containers.is_empty() {
                error = Some("none of its containers runs".to_owned());
            }
            for container in containers {
                let id = self.next_id();
                ids.insert(id);
                self.effects.push(Effect::StopContainer { id, container });
            }
            Means::StoppedContainers
        };
        let is_answered = ids.is_empty();
        self.evictions.under_way = Some(UnderWay { eviction, ids, means, error });
        if is_answered {
            self.end_eviction(now);
        }
    }

    /// Takes the answer to a write or a stop; returns whether it was one of an eviction.
    pub(super) fn eviction_answered(&mut self, id: u64, error: Option<String>, now: Now) -> bool {
        let Some(under_way) = self.evictions.under_way.as_mut() else { return false };
        if !under_way.ids.remove(&id) {
            return false;
        }
        if under_way.error.is_none() {
            under_way.error = error;
        }
        if under_way.ids.is_empty() {
            self.end_eviction(now);
        }
        true
    }

    fn end_eviction(&mut self, now: Now) {
        let Some(UnderWay { eviction, means, error, .. }) = self.evictions.under_way.take() else { return };
        let answer = match error {
            None => Answer::Accepted(means),
            Some(error) => Answer::Failed { error },
        };
        if let Some((_, round)) = self.evictions.rounds.front_mut() {
            round.report(&eviction, &answer, &mut self.evictions.ledger, now.moment);
        }
        let is_accepted = matches!(answer, Answer::Accepted(_));
        let pod = &eviction.pod;
        let event_message = eviction.message(&answer);
        let figures = format!("{}: {}", eviction.reason.setting, eviction.reason.formula);
        let message = format!("{event_message}; {figures}");
        if is_accepted {
            self.evictions.count += 1;
            let detail = self.evictions.pods.entry(pod.key()).or_insert((0, now.moment));
            *detail = (detail.0 + 1, now.moment);
            tracing::info!(pod = pod.key(), message, "a pod was evicted");
        } else {
            tracing::warn!(pod = pod.key(), message, "a pod could not be evicted");
        }
        let about = Regarded {
            kind: ResourceKind::POD,
            key: ObjectKey::new(&pod.namespace, &pod.name),
            uid: Uid::from(&*pod.uid),
        };
        let reason = if is_accepted { EVICT_POD_SUCCESS } else { EVICT_POD_FAIL };
        // The message is the original's, as others look for it; the figures stand beside it.
        let event = Event::new(about, EventType::Warning, "Evicting", reason, event_message);
        let annotations = vec![(EVICTION_REASON, figures)];
        self.effects.push(Effect::Event(Event { reporter: Some(REPORTER.into()), annotations, ..event }));
        let mut audited = AuditEvent::of(Subject::Pod, 0, &pod.name, reason, message, now.time);
        pod.namespace.as_ref().clone_into(&mut audited.namespace);
        self.audit(&audited, now);
    }
}
