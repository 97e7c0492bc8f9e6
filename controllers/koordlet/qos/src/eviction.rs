//! The framework of evictions: what has to be released, which pods are evicted for it in which order, and what counts as released.
//!
//! A strategy gives [`Task`]s; together they are an [`EvictionRound`]. The caller takes one [`Eviction`] after the other from the round, carries it out, and
//! reports the [`Answer`]. A pod counts as released only when its eviction was accepted, and from then on until it is gone: the [`Ledger`] remembers it.
//! Nothing here calls anybody.

mod ledger;
mod order;
mod round;

use std::sync::Arc;

use koord_koordlet_framework::{Container, Pod, Reason};
use koord_koordlet_system::ContainerId;
use koord_types::pod_annotations::EVICTION_POLICY;

pub(crate) use self::order::best_effort;
pub use self::{
    ledger::{Ledger, Means},
    order::{Victims, by_priority},
    round::EvictionRound,
};
use crate::feature::Feature;

/// How the release of a pod is measured. Amounts of different kinds never satisfy each other's requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReleaseKind {
    /// What the pod uses.
    Used,
    /// What the pod requests.
    Requested,
}

/// An amount that a pod releases, or has to be released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub kind: ReleaseKind,
    /// The name of the resource.
    pub resource: &'static str,
    /// Thousandths of CPUs, or bytes.
    pub amount: i64,
}

/// What one feature wants released, and from whom.
pub struct Task<'a> {
    pub feature: Feature,
    /// The setting, and the formula of the requirement.
    pub reason: Reason,
    /// What has to be released; what is not positive is not required.
    pub required: Vec<Release>,
    /// Pods in the order in which they are evicted.
    pub pods: Vec<Arc<Pod>>,
    /// What a pod releases.
    pub release: ReleaseOf<'a>,
}

/// What a pod releases, by a task.
pub type ReleaseOf<'a> = Box<dyn Fn(&Pod) -> Vec<Release> + 'a>;

/// A pod that is to be evicted.
#[derive(Clone, Debug)]
pub struct Eviction {
    pub pod: Arc<Pod>,
    pub feature: Feature,
    /// The setting that it follows from, and the formula with its numbers.
    pub reason: Reason,
    /// What it releases.
    pub releases: Vec<Release>,
}

/// What became of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The API server accepted it, or all containers were stopped.
    Accepted(Means),
    /// It was refused, or could not be carried out; the next pod is tried.
    Failed {
        /// What was answered.
        error: String,
    },
}

/// The reason of events and the label of metrics.
pub const EVICTED: &str = "evicted";
/// The reason of an event of an accepted eviction.
pub const EVICT_POD_SUCCESS: &str = "evictPodSuccess";
/// The reason of an event of a failed eviction.
pub const EVICT_POD_FAIL: &str = "evictPodFail";

// === impl Eviction ===

impl Eviction {
    /// What caused it, as it stands in events.
    pub fn trigger(&self) -> String {
        format!("trigger by koordlet feature {}", self.feature)
    }

    /// The message of its event.
    pub fn message(&self, answer: &Answer) -> String {
        let Pod { namespace, name, .. } = &*self.pod;
        let trigger = self.trigger();
        let message = format!("evict Pod:{namespace}/{name}, reason: {EVICTED}, message: {trigger}, kill pod: {name}");
        match answer {
            Answer::Accepted(_) => message,
            Answer::Failed { error } => format!("{message}, error {error}"),
        }
    }

    /// The containers that are stopped where pods are not evicted through the API.
    ///
    /// QUIRK: a container that does not run protects those after it, as Koordinator has it.
    pub fn containers_to_stop(&self) -> Vec<&ContainerId> {
        let running = self.pod.regular_containers().take_while(|container| container.is_running());
        running.map_while(|container: &Container| container.id.as_ref()).collect()
    }
}

/// Whether the owner of a pod lets a feature evict it: without the annotation each may, with a malformed one none.
pub fn may_evict(pod: &Pod, feature: Feature) -> bool {
    match EVICTION_POLICY.get(&pod.annotations) {
        Ok(None) => true,
        Ok(Some(features)) => features.iter().any(|allowed| allowed == feature.name()),
        Err(_) => false,
    }
}

#[cfg(test)]
pub(crate) mod tests;
