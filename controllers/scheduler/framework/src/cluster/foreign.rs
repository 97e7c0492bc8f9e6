//! Pods that are not those of this scheduler, and pods that it must not evict.

use std::sync::Arc;

use super::{Cluster, Placed};
use crate::{pod::Pod, policy::Policy};

/// Who schedules by this cluster, and what that one may do to others.
#[derive(Clone, Debug, Default)]
pub(super) struct Scheduling {
    /// The scheduler names of this scheduler; none while it is not the leader.
    names: Vec<Arc<str>>,
    policy: Policy,
}

impl Cluster {
    /// Pods of these scheduler names are placed by this scheduler, all others are foreign.
    pub fn schedule(&mut self, names: Vec<Arc<str>>, policy: Policy) {
        self.scheduling = Scheduling { names, policy };
    }

    /// What may be done for and to other pods.
    pub fn policy(&self) -> &Policy {
        &self.scheduling.policy
    }

    /// From now on this may be done for and to other pods.
    pub fn set_policy(&mut self, policy: Policy) {
        self.scheduling.policy = policy;
    }

    /// Whether another scheduler is responsible for a pod.
    pub fn is_foreign(&self, pod: &Pod) -> bool {
        let names = &self.scheduling.names;
        !names.is_empty() && !names.contains(&pod.template.scheduler)
    }

    /// Whether a pod must not be evicted, whatever the rules of plugins say: another scheduler is responsible for it, or this one
    /// runs in it. A pod that is being deleted already is not evicted any more, so that its resources will be free.
    pub fn is_spared(&self, placed: &Placed) -> bool {
        let policy = self.policy();
        let is_own = policy.scheduler_pod.as_ref() == Some(&placed.pod.key);
        !placed.pod.deleting && (is_own || !policy.evicts_foreign && self.is_foreign(&placed.pod))
    }
}
