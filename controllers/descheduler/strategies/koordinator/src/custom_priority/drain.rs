//! The mode `DrainNode`: all movable pods of a node are moved, or none.

use koord_descheduler_framework::{NodeId, Pass, PodId, ReasonCode, Refusal};
use koord_scheduling::{ResourceId, ResourceVector};

use super::{CustomPriority, Levels};

/// A pod with the target that is to take it.
struct Placed {
    id: PodId,
    target: usize,
    /// The first target that pods of its template fitted before.
    known: usize,
}

impl CustomPriority {
    pub(super) fn drain(&self, pass: &mut Pass<'_>, level: usize, node: NodeId, levels: &mut Levels<'_>) {
        let pods: Vec<PodId> = self.pods_of(pass, node).into_iter().filter(|id| pass.filter(*id)).collect();
        let mut placed = Vec::with_capacity(pods.len());
        for id in &pods {
            let known = levels.known_first_fit(*id);
            let Some(target) = self.place(level, *id, levels) else {
                levels.forget_first_fit(*id, known);
                break;
            };
            levels.targets.take(Some(target), *id);
            placed.push(Placed { id: *id, target, known });
        }
        if let Some(unplaced) = pods.get(placed.len()) {
            give_back(&placed, levels);
            pass.leave(*unplaced, levels.targets.refusal());
            let others = pods.iter().filter(|id| *id != unplaced);
            leave_all(pass, others.copied(), *unplaced);
            return;
        }
        if placed.is_empty() {
            return;
        }
        let is_cordoned = pass.cluster().node(node).is_some_and(|node| node.is_unschedulable);
        // A node that was cordoned before stays so. Where the cordon fails the pods go all the same; they may come back.
        let has_cordoned = self.args.auto_cordon && !self.args.dry_run && !is_cordoned && pass.cordon(node);
        let failed = placed.iter().position(|placed| !self.evict(pass, level, placed.id));
        let Some(failed) = failed else { return };
        if has_cordoned {
            pass.uncordon(node);
        }
        let (_, staying) = placed.split_at(failed);
        give_back(staying, levels);
        if let Some((cause, others)) = staying.split_first() {
            leave_all(pass, others.iter().map(|placed| placed.id), cause.id);
        }
    }

    /// The first target that has room for a pod.
    fn place(&self, level: usize, id: PodId, levels: &mut Levels<'_>) -> Option<usize> {
        let begin = levels.begin(level)?;
        if self.args.node_fit {
            return levels.first_fit(level, id);
        }
        // Without nodeFit only cpu and memory have to be free.
        let requests = levels.targets.requests(id);
        let mut counted = ResourceVector::default();
        for resource in [ResourceId::CPU, ResourceId::MEMORY] {
            counted.set(resource, requests.get(resource));
        }
        (begin..levels.targets.len()).find(|target| levels.targets.has_free(*target, &counted))
    }
}

/// Targets get back what pods took that stay after all, the last one first.
fn give_back(staying: &[Placed], levels: &mut Levels<'_>) {
    for Placed { id, target, known } in staying.iter().rev() {
        levels.targets.give_back(*target, *id);
        levels.forget_first_fit(*id, *known);
    }
}

/// Pods stay because another one of their node does.
fn leave_all(pass: &mut Pass<'_>, pods: impl Iterator<Item = PodId>, cause: PodId) {
    if pass.wants_verdicts()
        && let Some(cause) = pass.cluster().pod(cause)
    {
        let cause: std::sync::Arc<str> = cause.key.as_str().into();
        for id in pods {
            pass.leave(id, Refusal::new(ReasonCode::NodeNotDrained).with("pod", &cause));
        }
    }
}
