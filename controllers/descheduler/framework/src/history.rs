//! Evictions of the past, by the controllers of the evicted pods: so that a pod which replaced an evicted one is not evicted for the same reason again
//! and again.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use jiff::Timestamp;
use koord_core::uid::Uid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    pod::Pod,
    step::{Eviction, Means},
};

/// How many evictions are remembered: the latest.
const EVICTIONS_MAX: usize = 500;
/// How long it is looked for the node that the successor of a pod got.
const SUCCESSOR_WITHIN: Duration = Duration::from_hours(1);
/// The longest text of a reason, in bytes.
const TEXT_MAX: usize = 300;

/// The latest evictions, the oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    evictions: VecDeque<PastEviction>,
}

/// An eviction of the past.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastEviction {
    pub at: Timestamp,
    pub namespace: String,
    pub pod: String,
    /// The controller of the pod.
    pub owner: PastOwner,
    /// The node of the pod.
    pub from: String,
    /// The node that its successor was expected to get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The node that its successor has got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The successor's uid, as soon as it has a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<String>,
    pub strategy: String,
    /// The code of the reason.
    pub reason: String,
    pub text: String,
    /// `Eviction` or `PodMigrationJob`.
    pub by: String,
    /// How many evictions for this reason have followed each other: each of a pod that had replaced the one before.
    pub round: u32,
}

/// The controller of an evicted pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastOwner {
    pub kind: String,
    pub name: String,
    pub uid: String,
}

/// How long a pod stays that has replaced one which was evicted for the same reason: twice as long after each further eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoolDown {
    pub initial: Duration,
    pub maximum: Duration,
}

impl CoolDown {
    /// The pause after so many evictions that have followed each other.
    pub fn pause(self, round: u32) -> Duration {
        let factor = 1_u32.checked_shl(round.saturating_sub(1)).unwrap_or(u32::MAX);
        self.initial.saturating_mul(factor).min(self.maximum)
    }
}

impl Default for CoolDown {
    fn default() -> Self {
        Self { initial: Duration::from_mins(10), maximum: Duration::from_hours(6) }
    }
}

impl PastEviction {
    /// Until when pods that replace the evicted one stay.
    pub fn cools_down_until(&self, cool_down: CoolDown) -> Timestamp {
        self.at.saturating_add(cool_down.pause(self.round)).unwrap_or(Timestamp::MAX)
    }

    fn is_of(&self, pod: &Pod, strategy: &str, reason: &str) -> bool {
        self.reason == reason
            && self.strategy == strategy
            && self.namespace == pod.namespace()
            && pod.controller().is_some_and(|owner| *owner.kind == *self.owner.kind && *owner.name == *self.owner.name)
    }

    /// Whether a pod of the same controller can have replaced the evicted one.
    fn is_replaced_by(&self, pod: &Pod) -> bool {
        pod.created >= self.at.as_second()
    }
}

impl History {
    /// The latest evictions, the oldest first.
    pub fn evictions(&self) -> impl DoubleEndedIterator<Item = &PastEviction> {
        self.evictions.iter()
    }

    /// These evictions, in the order of their times; the latest, where they are too many.
    pub fn of(mut evictions: Vec<PastEviction>) -> Self {
        evictions.sort_by_key(|eviction| eviction.at);
        let skipped = evictions.len().saturating_sub(EVICTIONS_MAX);
        Self { evictions: evictions.into_iter().skip(skipped).collect() }
    }

    /// The history that [`History::to_json`] has written.
    ///
    /// # Errors
    ///
    /// The text is none.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text).map(Self::of)
    }

    /// As JSON, the latest eviction first.
    pub fn to_json(&self) -> Value {
        json!(self.evictions.iter().rev().collect::<Vec<_>>())
    }

    /// Why a pod is not to be evicted yet: the eviction whose pod it has replaced, if that was for the same reason and not long ago.
    pub fn cooling_down(
        &self,
        pod: &Pod,
        strategy: &str,
        reason: &str,
        cool_down: CoolDown,
        now: Timestamp,
    ) -> Option<&PastEviction> {
        let last = self.last(pod, strategy, reason)?;
        (last.is_replaced_by(pod) && last.cools_down_until(cool_down) > now).then_some(last)
    }

    /// The last eviction for a reason from the controller of a pod.
    fn last(&self, pod: &Pod, strategy: &str, reason: &str) -> Option<&PastEviction> {
        self.evictions.iter().rev().find(|past| past.is_of(pod, strategy, reason))
    }

    /// A pod has been evicted, or a job for that was made. Pods without a controller are replaced by nothing, so they are not remembered.
    pub fn add(&mut self, pod: &Pod, eviction: &Eviction, cool_down: CoolDown, now: Timestamp) {
        let Some(owner) = pod.controller() else { return };
        if eviction.means == Means::DryRun {
            return;
        }
        let reason = eviction.reason.code.as_str();
        let round = self.last(pod, eviction.plugin, reason).map_or(1, |last| {
            let pause = cool_down.pause(last.round).saturating_mul(2);
            let is_forgotten = last.at.saturating_add(pause).is_ok_and(|until| until < now);
            match (is_forgotten, last.is_replaced_by(pod)) {
                (true, _) => 1,
                (false, true) => last.round.saturating_add(1),
                (false, false) => last.round,
            }
        });
        let expected = eviction.outlook.successor.as_ref().and_then(|successor| successor.node());
        let text = &eviction.reason.text;
        self.evictions.push_back(PastEviction {
            at: now,
            namespace: pod.namespace().to_owned(),
            pod: pod.key.name().to_owned(),
            owner: PastOwner { kind: owner.kind.to_string(), name: owner.name.to_string(), uid: owner.uid.to_string() },
            from: pod.node.as_deref().unwrap_or_default().to_owned(),
            expected: expected.map(ToString::to_string),
            to: None,
            successor: None,
            strategy: eviction.plugin.to_owned(),
            reason: reason.to_owned(),
            text: text[..text.floor_char_boundary(TEXT_MAX)].to_owned(),
            by: eviction.means.as_str().to_owned(),
            round,
        });
        if self.evictions.len() > EVICTIONS_MAX {
            self.evictions.pop_front();
        }
    }

    /// Looks for the successors of pods that were evicted not long ago. Whether one was found.
    pub fn find_successors(&mut self, cluster: &Cluster, now: Timestamp) -> bool {
        let oldest = now.saturating_sub(SUCCESSOR_WITHIN).unwrap_or(Timestamp::MIN);
        let successors = self.evictions.iter().filter_map(|past| past.successor.as_deref());
        let mut taken: BTreeSet<Uid> = successors.map(Uid::from).collect();
        let mut is_found = false;
        for past in self.evictions.iter_mut().filter(|past| past.to.is_none() && past.at >= oldest) {
            let uid = Uid::from(past.owner.uid.as_str());
            let candidates = cluster
                .pods_of(&uid)
                .filter(|(_, pod)| past.is_replaced_by(pod) && pod.node.is_some() && !taken.contains(&pod.uid));
            let Some((_, pod)) = candidates.min_by_key(|(_, pod)| (pod.created, pod.key.clone())) else { continue };
            past.to = pod.node.as_deref().map(str::to_owned);
            past.successor = Some(pod.uid.to_string());
            taken.insert(pod.uid.clone());
            is_found = true;
        }
        is_found
    }
}

#[cfg(test)]
mod tests;
