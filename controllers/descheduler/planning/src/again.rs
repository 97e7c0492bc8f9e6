//! Evictions in vain: the successor would be evicted again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_descheduler_framework::{
    Cluster, Descheduler, Eviction, Input, Limits, Means, Plan, Pod, Step, Successor,
    pod::{Condition, Phase, State},
};

/// The pods whose successors would be evicted by the same strategy, in the pass after: with the nodes that they would get.
#[derive(Clone, Debug, Default)]
pub struct EvictedAgain(BTreeMap<(Uid, &'static str), Arc<str>>);

impl EvictedAgain {
    /// The node from which the successor of a pod would be evicted again.
    pub(crate) fn node(&self, eviction: &Eviction) -> Option<&Arc<str>> {
        self.0.get(&(eviction.pod.uid.clone(), eviction.plugin))
    }

    /// Computes the pass after a plan, on the cluster as it would be, by the strategies that evict. Whether that has shown more evictions in vain.
    pub(crate) fn look(&mut self, descheduler: &Descheduler, input: &Input<'_>, plan: &Plan) -> bool {
        let assumed = plan.steps.iter().zip(&plan.assumed).filter(|(_, is_done)| **is_done).map(|(step, _)| step);
        let moves: Vec<(&Eviction, &Arc<str>)> = assumed.filter_map(Step::eviction).filter_map(moved).collect();
        if moves.is_empty() {
            return false;
        }
        let strategies: BTreeSet<&str> = moves.iter().map(|(eviction, _)| eviction.plugin).collect();
        let mut cluster = input.cluster.clone();
        let mut successors = BTreeMap::<ObjectKey, (&Eviction, &Arc<str>)>::new();
        for (eviction, to) in moves {
            if let Some(successor) = successor(&cluster, eviction, to, input.now) {
                successors.insert(successor.key.clone(), (eviction, to));
                cluster.replace_pod(&eviction.pod.key, Arc::new(successor));
            }
        }
        // The limits of one pass do not hide what a later one does.
        let unlimited = Descheduler { limits: Limits::default(), ..descheduler.with_strategies(&strategies) };
        let after = unlimited.pass(&Input::new(&cluster, &plan.memory, input.now));
        let before = self.0.len();
        for again in after.steps.iter().filter_map(Step::eviction) {
            if let Some((first, to)) = successors.get(&again.pod.key)
                && first.plugin == again.plugin
            {
                self.0.entry((first.pod.uid.clone(), first.plugin)).or_insert_with(|| Arc::clone(to));
            }
        }
        self.0.len() > before
    }
}

/// An eviction whose successor gets another node, with that.
fn moved(eviction: &Eviction) -> Option<(&Eviction, &Arc<str>)> {
    match &eviction.outlook.successor {
        Some(Successor::On(node)) if eviction.means != Means::DryRun => Some((eviction, node)),
        _ => None,
    }
}

/// The pod that has replaced an evicted one, as soon as it is ready.
fn successor(cluster: &Cluster, eviction: &Eviction, node: &Arc<str>, now: Timestamp) -> Option<Pod> {
    let old = cluster.pod(cluster.pod_id(eviction.pod.key.as_str())?)?;
    let name = format!("{}-successor", old.key.name());
    let conditions =
        ["PodScheduled", "Ready"].map(|kind| Condition { kind: kind.into(), status: "True".into(), reason: "".into() });
    let state = State { phase: Phase::Running, conditions: conditions.into(), ..State::default() };
    Some(Pod {
        key: ObjectKey::new(old.key.namespace(), &name),
        uid: Uid::from(format!("{}-successor", old.uid).as_str()),
        node: Some(Arc::clone(node)),
        created: now.as_second(),
        started: Some(now.as_second()),
        is_deleting: false,
        transitions: [now.as_second(); 2].into(),
        state: state.into(),
        ..Pod::clone(old)
    })
}
