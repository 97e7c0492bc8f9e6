//! Moves pods from nodes of one level to nodes of later levels, such as from dear to cheap ones.

mod drain;

use std::sync::Arc;

use koord_config::descheduler::{CustomPriorityArgs, EvictionMode};
use koord_descheduler_framework::{
    Balance, Cluster, NodeId, Pass, Plugin, Pod, PodId, Reason, ReasonCode, Refusal, Registration, StrategyError,
};
use koord_scheduling::Selector;

use crate::{
    ArgsError,
    selection::{self, Movable},
    targets::Targets,
};

/// QUIRK: after so many pods of a node in a row that fit nowhere, the others are not looked at.
const MISSES_MAX: usize = 5;

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct CustomPriority {
    args: CustomPriorityArgs,
    nodes: Option<Selector>,
    levels: Vec<Selector>,
    movable: Movable,
}

/// What a pass has come to: nodes by level, and what targets have left.
struct Levels<'a> {
    cluster: &'a Cluster,
    /// The nodes of each level, by name. A node belongs to the first level that selects it.
    nodes: Vec<Vec<NodeId>>,
    /// The nodes of all levels but the first one, level by level.
    targets: Targets<'a>,
    /// By level: where among the targets those of later levels begin.
    later: Vec<usize>,
    /// By the number of an equivalence class: before this target none fits pods of the class. That stays true as long as targets only become fuller.
    first_fit: Vec<usize>,
}

impl CustomPriority {
    /// # Errors
    ///
    /// A selector is none.
    pub fn new(args: CustomPriorityArgs) -> Result<Self, ArgsError> {
        let nodes = args.node_selector.as_ref().map(|nodes| selection::parse("nodeSelector", nodes)).transpose()?;
        let selectors = args.pod_selectors.iter().map(|pods| pods.selector.as_ref());
        let movable = Movable::new(args.evictable_namespaces.as_ref(), selectors)?;
        let levels = args.eviction_order.iter().map(|level| match &level.node_selector {
            Some(selector) => selection::parse("evictionOrder", selector),
            None => Err(ArgsError::Selector { field: "evictionOrder", error: "a nodeSelector is missing".to_owned() }),
        });
        let levels = levels.collect::<Result<_, _>>()?;
        Ok(Self { args, nodes, levels, movable })
    }

    /// The pods of a node that may be moved as far as the arguments say, those with small requests first.
    fn pods_of(&self, pass: &mut Pass<'_>, node: NodeId) -> Vec<PodId> {
        let mut pods = Vec::new();
        for (id, pod) in pass.cluster().active_pods_on(node) {
            match self.movable.check(pod) {
                Ok(()) => pods.push((size(pod), id)),
                Err(refusal) => pass.leave(id, refusal),
            }
        }
        // Pods of a node come by namespace and name.
        pods.sort_by_key(|(size, _)| *size);
        pods.into_iter().map(|(_, id)| id).collect()
    }

    /// Moves what fits elsewhere.
    fn move_what_fits(&self, pass: &mut Pass<'_>, level: usize, node: NodeId, levels: &mut Levels<'_>) {
        let mut misses = 0;
        for id in self.pods_of(pass, node) {
            if misses == MISSES_MAX {
                pass.leave(id, Refusal::new(ReasonCode::GivenUpAfterMisfits).with("misfits", misses));
                continue;
            }
            if !pass.filter(id) {
                continue;
            }
            let target = if self.args.node_fit { levels.first_fit(level, id) } else { None };
            if self.args.node_fit && target.is_none() {
                misses += 1;
                pass.leave(id, levels.targets.refusal());
                continue;
            }
            misses = 0;
            if self.evict(pass, level, id) {
                levels.targets.take(target, id);
            }
        }
    }

    fn evict(&self, pass: &mut Pass<'_>, level: usize, id: PodId) -> bool {
        let name = self.args.eviction_order.get(level).map_or("", |level| &level.name);
        let recorded = format!("evicting from {name} priority resource to lower priority resource");
        let reason = self.reason(name);
        if self.args.dry_run {
            pass.evict_in_dry_run(id, reason, recorded);
            return true;
        }
        pass.evict(id, reason, recorded)
    }

    fn reason(&self, level: &str) -> Reason {
        let place = if self.args.node_fit { ", and nodes of later levels have room for it" } else { "" };
        ReasonCode::LaterLevelFits.reason(format!("its node is of level {level}{place}")).with("level", level)
    }
}

/// What counts as the size of a pod: what its containers request of cpu, then of memory. Init containers and overhead do not count.
fn size(pod: &Pod) -> (i64, i64) {
    let containers = pod.template.containers.iter();
    containers.fold((0, 0), |(cpu, memory), container| (cpu + container.cpu_milli, memory + container.memory_bytes))
}

// === impl Levels ===

impl<'a> Levels<'a> {
    fn new(cluster: &'a Cluster, nodes: &[NodeId], selectors: &[Selector]) -> Self {
        let mut levels = vec![Vec::new(); selectors.len()];
        for id in nodes {
            let Some(node) = cluster.node(*id) else { continue };
            let level = selectors.iter().position(|selector| selector.selects(|key| node.label(key)));
            if let Some(level) = level.and_then(|level| levels.get_mut(level)) {
                level.push(*id);
            }
        }
        let targets = Targets::new(cluster, levels.iter().skip(1).flatten().copied());
        let mut later = 0;
        let later = levels.iter().enumerate().map(|(index, level)| {
            later += if index == 0 { 0 } else { level.len() };
            later
        });
        let later = later.collect();
        Self { cluster, nodes: levels, targets, later, first_fit: vec![0; cluster.equivalence_classes_max()] }
    }

    /// Where the targets of a level begin; `None` where no later level has nodes.
    fn begin(&self, level: usize) -> Option<usize> {
        self.later.get(level).copied().filter(|begin| *begin < self.targets.len())
    }

    /// The first node of a later level that a pod fits.
    fn first_fit(&mut self, level: usize, pod: PodId) -> Option<usize> {
        let known = self.first_fit.get_mut(self.cluster.equivalence_class(pod))?;
        let from = self.later.get(level).copied()?.max(*known);
        let found = self.targets.first(pod, from);
        *known = found.unwrap_or(self.targets.len());
        found
    }

    /// Before which target none fits pods of the class of a pod.
    fn known_first_fit(&self, pod: PodId) -> usize {
        self.first_fit.get(self.cluster.equivalence_class(pod)).copied().unwrap_or(0)
    }

    /// Targets have more left than when it was found out which of them pods of a class fit.
    fn forget_first_fit(&mut self, pod: PodId, known: usize) {
        if let Some(first_fit) = self.first_fit.get_mut(self.cluster.equivalence_class(pod)) {
            *first_fit = (*first_fit).min(known);
        }
    }
}

impl Plugin for CustomPriority {
    fn name(&self) -> &'static str {
        "CustomPriority"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).balance(&self)
    }
}

impl Balance for CustomPriority {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        if self.args.paused {
            return Ok(());
        }
        let cluster = pass.cluster();
        let nodes = selection::nodes(cluster, pass.nodes(), self.nodes.as_ref());
        let mut levels = Levels::new(cluster, &nodes, &self.levels);
        for (level, nodes) in std::mem::take(&mut levels.nodes).into_iter().enumerate() {
            let has_targets = levels.begin(level).is_some();
            for node in nodes {
                match self.args.mode {
                    _ if !has_targets => pass.leave_node(node, &ReasonCode::NoLaterLevel.into()),
                    EvictionMode::BestEffort => self.move_what_fits(pass, level, node, &mut levels),
                    EvictionMode::DrainNode => self.drain(pass, level, node, &mut levels),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
