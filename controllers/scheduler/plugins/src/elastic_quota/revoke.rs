//! Which pods a quota loses that uses more than it may (`spec/scheduler.md` 3D.8).

use std::{collections::BTreeMap, sync::Arc};

use koord_resource::ResourceList;

use super::Forest;

/// Since when quotas have used more than they may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overuse(BTreeMap<Arc<str>, i64>);

/// A placed pod of such a quota.
#[derive(Clone, Debug, PartialEq)]
pub struct Running<P> {
    /// Which one.
    pub pod: P,
    /// What it uses, of the resources that the quota bounds.
    pub used: ResourceList,
    /// Whether it may be taken away.
    pub is_preemptible: bool,
}

impl Overuse {
    /// Looks at all quotas at a time in seconds since 1970. Gives those that have used more than they may for longer than
    /// the delay; for each of them the delay begins anew.
    pub fn look(&mut self, forest: &Forest, now: i64, delay_seconds: i64) -> Vec<Arc<str>> {
        let over = forest.nodes().filter(|(name, node)| !node.sums.used.is_within(&forest.limit(name)));
        let over = over.map(|(name, _)| (Arc::clone(name), self.0.get(name).copied().unwrap_or(now)));
        let mut since: BTreeMap<Arc<str>, i64> = over.collect();
        let late = |since: &i64| now.saturating_sub(*since) > delay_seconds;
        let late: Vec<Arc<str>> = since.iter().filter(|(_, at)| late(at)).map(|(name, _)| Arc::clone(name)).collect();
        for name in &late {
            since.insert(Arc::clone(name), now);
        }
        self.0 = since;
        late
    }
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
