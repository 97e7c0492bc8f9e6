//! Which pods a quota loses that uses more than it may (`spec/scheduler.md` 3D.8).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};
use koord_core::uid::Uid;
use koord_resource::ResourceList;
use koord_scheduler_framework::{
    cluster::{Cluster, Placed},
    pod::Pod,
    preemption::by_importance,
};

use super::{Forest, Quotas, forest::is_special, is_preemptible, settings::Revocation, sums::masked};

/// The quotas that use more than they may, and the pods that they lose for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overuse {
    quotas: BTreeMap<Arc<str>, TooMuch>,
    looks_at: Option<Timestamp>,
}

/// A quota that uses more than it may.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TooMuch {
    since: Timestamp,
    lost: Vec<Uid>,
}

/// A placed pod of such a quota.
#[derive(Clone, Debug, PartialEq)]
pub struct Running<P> {
    pub pod: P,
    /// What it uses, of the resources that the quota bounds.
    pub used: ResourceList,
    /// Whether it may be taken away.
    pub is_preemptible: bool,
}

impl Overuse {
    /// When quotas are looked at next.
    pub fn looks_at(&self) -> Option<Timestamp> {
        self.looks_at
    }

    /// The pods that are to be evicted.
    pub fn lost(&self) -> impl Iterator<Item = &Uid> {
        self.quotas.values().flat_map(|quota| &quota.lost)
    }

    /// Looks at all quotas, if it is time for it, and decides which pods of them are lost.
    pub(super) fn look(&mut self, quotas: &Quotas, cluster: &Cluster, now: Timestamp) {
        let Some(Revocation { every, after }) = quotas.settings().revocation else { return };
        if self.looks_at.is_some_and(|at| now < at) {
            return;
        }
        self.looks_at = now.checked_add(every).ok();
        let late = self.late(quotas.forest(), now, after);
        if late.is_empty() {
            return;
        }
        let mut pods: BTreeMap<&Arc<str>, Vec<&Placed>> = late.iter().map(|name| (name, Vec::new())).collect();
        for placed in cluster.pods().filter(|placed| quotas.counts(&placed.pod)) {
            let quota = quotas.quota_of(&placed.pod.template);
            quota.and_then(|quota| pods.get_mut(quota)).into_iter().for_each(|of| of.push(placed));
        }
        for (name, pods) in pods {
            let lost = lost(quotas, name, pods, cluster);
            _ = self.quotas.get_mut(name).map(|quota| quota.lost = lost);
        }
    }

    /// The quotas that have used more than they may for longer than this time; for each of them it begins anew.
    pub(super) fn late(&mut self, forest: &Forest, now: Timestamp, after: SignedDuration) -> BTreeSet<Arc<str>> {
        // The default and the system quota lose no pods.
        let may_lose = forest.nodes().filter(|(name, _)| !is_special(name));
        let over = may_lose.filter(|(name, node)| !node.sums.used.is_within(&forest.limit(name)));
        let mut known = std::mem::take(&mut self.quotas);
        let over = over.map(|(name, _)| {
            let quota = known.remove(name).unwrap_or(TooMuch { since: now, lost: Vec::new() });
            (Arc::clone(name), quota)
        });
        self.quotas = over.collect();
        let late = self.quotas.iter_mut().filter(|(_, quota)| now.duration_since(quota.since) > after);
        late.map(|(name, quota)| {
            quota.since = now;
            Arc::clone(name)
        })
        .collect()
    }
}

/// Which of its pods a quota loses. Those that are going already are not counted.
fn lost(quotas: &Quotas, name: &str, mut pods: Vec<&Placed>, cluster: &Cluster) -> Vec<Uid> {
    let forest = quotas.forest();
    let Some(node) = forest.node(name) else { return Vec::new() };
    let use_of = |pod: &Pod| masked(&quotas.requests(&pod.template), &node.quota.max);
    let mut used = node.sums.used.clone();
    for placed in pods.extract_if(.., |placed| placed.pod.deleting) {
        used = used.minus(&use_of(&placed.pod));
    }
    pods.sort_by(|one, other| by_importance(&other.pod, &one.pod));
    let running = pods.into_iter().map(|placed| Running {
        pod: placed.pod.uid.clone(),
        used: use_of(&placed.pod),
        is_preemptible: is_preemptible(&placed.pod.template) && !cluster.is_spared(placed),
    });
    revoked(running.collect(), &used, &forest.limit(name))
}

/// The pods that a quota loses, in the order of their eviction, of `pods` with the least important first. Pods are taken
/// until the others fit; then those are left again that fit nevertheless, the most important first.
pub fn revoked<P>(pods: Vec<Running<P>>, used: &ResourceList, limit: &ResourceList) -> Vec<P> {
    let (mut used, mut taken) = (used.clone(), Vec::new());
    for pod in pods {
        if used.is_within(limit) {
            break;
        }
        if pod.is_preemptible {
            used = used.minus(&pod.used);
            taken.push(pod);
        }
    }
    let mut lost = Vec::new();
    for pod in taken.into_iter().rev() {
        let with = used.plus(&pod.used);
        if with.is_within(limit) {
            used = with;
        } else {
            lost.push(pod.pod);
        }
    }
    lost
}
