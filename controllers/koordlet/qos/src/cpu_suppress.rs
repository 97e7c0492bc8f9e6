//! CPU suppression: BE pods get what others leave of the node's CPUs, as a set of CPUs or as a CFS quota.
//!
//! What is off is undone: without the quota policy the folder of BE pods has no quota, without the cpuset policy BE pods have all CPUs that they may use.

mod budget;
mod selection;

use std::{collections::HashMap, sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_framework::{Constraints, Node, NodeSlo, NodeTopology, Precedence, Reason};
use koord_koordlet_system::{CFS_PERIOD_US, CgroupPath, QosFolder, Resource, Value};
use koord_scheduling::CpuSet;
use koord_types::{
    node_slo::CpuSuppressPolicy,
    numa::RESOURCE_STATUS,
    qos::{KubernetesQos, QosClass},
};

pub use self::{
    budget::Budget,
    selection::{CpuCandidates, select_cpus},
};
use crate::{
    feature::Feature,
    input::{Generations, Input},
    outcome::{Gauge, Note, Outcome, gauges},
};

/// Fewest CPUs that BE pods get by the cpuset policy.
const CPUS_MIN: usize = 2;
/// Smallest quota of BE pods, in microseconds of each period.
const QUOTA_US_MIN: i64 = 2000;
/// How often folders are listed anew while nothing else changes.
const LIST_INTERVAL: Duration = Duration::from_secs(5);

const ENABLE: &str = "NodeSLO resourceUsedThresholdWithBE.enable";
const POLICY: &str = "NodeSLO resourceUsedThresholdWithBE.cpuSuppressPolicy";
const THRESHOLD: &str = "NodeSLO resourceUsedThresholdWithBE.cpuSuppressThresholdPercent";

/// The strategy of feature `BECPUSuppress`.
#[derive(Debug, Default)]
pub struct CpuSuppress {
    seen: Option<Generations>,
    /// Whether a pod is BE, by its uid.
    is_be: HashMap<Arc<str>, bool>,
    candidates: CpuCandidates,
    /// CPUs that BE pods may use when they are not suppressed.
    allowed: CpuSet,
    /// Folders of pods with CPUs or NUMA nodes of their own.
    bound_pods: Vec<CgroupPath>,
    wanted: Option<Wanted>,
    listed: Option<Moment>,
    policy_labels: Option<[Arc<str>; 2]>,
}

/// What the files shall say.
#[derive(Clone, Debug, PartialEq)]
struct Wanted {
    /// The quota of all BE pods.
    quota: Value,
    /// `None` where the topology is not known, or no CPU is left.
    cpus: Option<(CpuSet, Level)>,
}

/// Which folders get the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// All folders get all CPUs that BE pods may use.
    Recovered,
    /// The same, but for containers of pods with CPUs of their own.
    RecoveredByManager,
    /// All folders get the chosen ones.
    Suppressed,
    /// Containers get the chosen ones, the folders above them all: the kubelet writes those of new containers by itself.
    SuppressedContainers,
}

/// Why the files shall say so.
enum Cause {
    Manager,
    Disabled,
    Suppressed(Budget),
}

// === impl CpuSuppress ===

impl CpuSuppress {
    /// Decides what BE pods get now.
    pub fn run(&mut self, input: &Input<'_>) -> Outcome {
        if !input.features.is_on(Feature::BeCpuSuppress) {
            return Outcome::unchanged();
        }
        let Some(slo) = input.slo else { return Outcome::skipped("no NodeSLO was received yet") };
        let mut notes = self.refresh(input);
        let (wanted, cause) = if input.features.is_on(Feature::BeCpuManager) {
            (self.recovered(Level::RecoveredByManager), Cause::Manager)
        } else if slo.threshold.enable != Some(true) {
            (self.recovered(Level::Recovered), Cause::Disabled)
        } else {
            let Some(node) = input.node else { return Outcome::skipped("no Node was received yet") };
            if input.pods.is_empty() {
                return Outcome::skipped("the kubelet has listed no pods");
            }
            let Some(budget) = Budget::of(input, node, slo, &self.is_be) else {
                return Outcome::skipped("there is no recent sample of the node's CPU usage");
            };
            let wanted = match slo.threshold.cpu_suppress_policy {
                Some(CpuSuppressPolicy::CfsQuota) => self.by_quota(input, node, &budget),
                _ => self.by_cpus(input, &budget, &mut notes),
            };
            (wanted, Cause::Suppressed(budget))
        };
        let gauges = Some(self.gauges(slo, &cause));
        Outcome {
            constraints: self.constraints(input, wanted, &cause),
            gauges,
            notes: Some(notes),
            ..Outcome::default()
        }
    }

    /// Computes what follows from pods, node and topology when one of them has changed.
    fn refresh(&mut self, input: &Input<'_>) -> Vec<Note> {
        let mut notes = Vec::new();
        if input.topology.is_none() {
            notes.push(Note::skipped("the CPUs of the node are not known yet, cpusets are left as they are"));
        }
        if self.seen == Some(input.generations) {
            if input.topology.is_some() && self.allowed.is_empty() {
                notes.push(no_cpu_left());
            }
            return notes;
        }
        self.seen = Some(input.generations);
        self.listed = None;
        self.is_be.clear();
        self.bound_pods.clear();
        let (mut lse, mut lsr) = (CpuSet::default(), CpuSet::default());
        for pod in input.pods {
            let is_be = pod.is_labelled_be() || pod.kubernetes_qos == KubernetesQos::BestEffort;
            self.is_be.insert(Arc::clone(&pod.uid), is_be);
            if pod.has_ended() {
                continue;
            }
            // What cannot be read is reported where CPUs are allocated.
            let Ok(Some(status)) = RESOURCE_STATUS.get(&pod.annotations) else { continue };
            let cpus = status.cpus().unwrap_or_default();
            if !cpus.is_empty() || !status.numa_node_resources.is_empty() {
                self.bound_pods.push(pod.cgroup.clone());
            }
            match pod.qos_label {
                Some(QosClass::Lse) => lse.insert_all(&cpus),
                Some(QosClass::Lsr) => lsr.insert_all(&cpus),
                _ => {}
            }
        }
        self.candidates = CpuCandidates::default();
        self.allowed = CpuSet::default();
        let Some(topology) = input.topology else { return notes };
        lse.insert_all(&kept_from_be(topology));
        self.allowed = topology.cpus.cpus().difference(&lse);
        for cpu in self.allowed.iter().filter_map(|cpu| topology.cpus.get(cpu)) {
            let list = if lsr.contains(cpu.id) { &mut self.candidates.lsr } else { &mut self.candidates.shared };
            list.push(cpu);
        }
        if self.allowed.is_empty() {
            notes.push(no_cpu_left());
        }
        notes
    }

    /// All that BE pods may use.
    fn recovered(&self, level: Level) -> Wanted {
        Wanted { quota: Value::Unlimited, cpus: self.allowed_cpus(level) }
    }

    fn allowed_cpus(&self, level: Level) -> Option<(CpuSet, Level)> {
        (!self.allowed.is_empty()).then(|| (self.allowed.clone(), level))
    }

    /// The quota of the budget. It grows in steps of a tenth of the node, once there is one, and small changes are not made.
    fn by_quota(&self, input: &Input<'_>, node: &Node, budget: &Budget) -> Wanted {
        let cores = node.capacity_milli_cpu().saturating_add(999) / 1000;
        let capacity = cores.saturating_mul(CFS_PERIOD_US);
        let (smallest_change, largest_step) = (capacity / 100, capacity / 10);
        let root = input.kernel.layout().qos(QosFolder::BestEffort);
        let current = input.kernel.value(&root, Resource::CpuQuota).unwrap_or(Value::Unlimited);
        let wanted = (budget.milli().saturating_mul(CFS_PERIOD_US) / 1000).max(QUOTA_US_MIN);
        let quota = match current {
            Value::Amount(now) if (wanted - now).abs() < smallest_change && wanted != QUOTA_US_MIN => now,
            Value::Amount(now) if wanted - now > largest_step => now + largest_step,
            _ => wanted,
        };
        Wanted { quota: Value::Amount(quota), cpus: self.allowed_cpus(Level::Recovered) }
    }

    /// As many CPUs as the budget has, rounded up, and at least two. They become more in steps of a tenth of the node.
    fn by_cpus(&self, input: &Input<'_>, budget: &Budget, notes: &mut Vec<Note>) -> Wanted {
        let cpus = input.topology.and_then(|topology| self.chosen_cpus(input, topology, budget, notes));
        Wanted { quota: Value::Unlimited, cpus }
    }

    fn chosen_cpus(
        &self,
        input: &Input<'_>,
        topology: &NodeTopology,
        budget: &Budget,
        notes: &mut Vec<Note>,
    ) -> Option<(CpuSet, Level)> {
        if self.candidates.is_empty() {
            return None;
        }
        let root = input.kernel.layout().qos(QosFolder::BestEffort);
        let current = match input.kernel.value(&root, Resource::Cpuset) {
            Ok(value) => value.cpus().map_or(0, CpuSet::len),
            Err(error) => {
                notes.push(Note::skipped(format!("the CPUs of BE pods are not known: {error}")));
                return None;
            }
        };
        let wanted = usize::try_from(budget.milli().max(0).saturating_add(999) / 1000).unwrap_or(usize::MAX);
        let step = topology.cpus.cpus().len().div_ceil(10);
        let count = wanted.max(CPUS_MIN).min(current.saturating_add(step));
        let level = if topology.is_kubelet_static { Level::SuppressedContainers } else { Level::Suppressed };
        Some((self.candidates.select(count), level))
    }

    /// Names all files when something has changed, or folders may have come.
    fn constraints(&mut self, input: &Input<'_>, wanted: Wanted, cause: &Cause) -> Option<Constraints> {
        let is_listed = self.listed.is_some_and(|listed| input.now.since(listed) < LIST_INTERVAL);
        if is_listed && self.wanted.as_ref() == Some(&wanted) {
            return None;
        }
        self.listed = Some(input.now);
        let root = input.kernel.layout().qos(QosFolder::BestEffort);
        let mut constraints = Constraints::default();
        let (precedence, reason) = match (&wanted.quota, cause) {
            (Value::Amount(quota), Cause::Suppressed(budget)) => (
                Precedence::Measured,
                Reason::new(
                    POLICY,
                    format!("{budget}: {quota} µs of each {CFS_PERIOD_US} µs, in steps of a tenth of the node"),
                ),
            ),
            (_, cause) => (Precedence::Default, Reason::new(cause.setting(), "BE pods have no quota")),
        };
        constraints.exactly(&root, Resource::CpuQuota, wanted.quota.clone(), precedence, reason);
        if let Some((cpus, level)) = &wanted.cpus {
            self.name_cpus(input, &root, (cpus, *level), cause, &mut constraints);
        }
        self.wanted = Some(wanted);
        Some(constraints)
    }

    fn name_cpus(
        &self,
        input: &Input<'_>,
        root: &CgroupPath,
        (cpus, level): (&CpuSet, Level),
        cause: &Cause,
        constraints: &mut Constraints,
    ) {
        let all = Reason::new(cause.setting(), format!("all CPUs that BE pods may use: {}", self.allowed));
        let chosen = match cause {
            Cause::Suppressed(budget) => {
                Reason::new(THRESHOLD, format!("{budget}: {} CPUs, in steps of a tenth of the node", cpus.len()))
            }
            Cause::Manager | Cause::Disabled => all.clone(),
        };
        for folder in input.kernel.subtree(root, 2) {
            let is_container = folder.depth() > root.depth() + 1;
            let (cpus, precedence, reason) = match level {
                Level::RecoveredByManager if is_container && self.is_bound(&folder) => continue,
                Level::SuppressedContainers if !is_container => (&self.allowed, Precedence::Default, &all),
                Level::Recovered | Level::RecoveredByManager => (cpus, Precedence::Default, &all),
                Level::Suppressed | Level::SuppressedContainers => (cpus, Precedence::Measured, &chosen),
            };
            constraints.exactly(&folder, Resource::Cpuset, Value::Cpus(cpus.clone()), precedence, reason.clone());
        }
    }

    fn is_bound(&self, folder: &CgroupPath) -> bool {
        self.bound_pods.iter().any(|pod| folder.is_within(pod))
    }

    fn gauges(&mut self, slo: &NodeSlo, cause: &Cause) -> Vec<Gauge> {
        let Cause::Suppressed(budget) = cause else { return Vec::new() };
        let [cpuset, quota] = self.policy_labels.get_or_insert_with(|| ["cpuset".into(), "cfsQuota".into()]);
        let policy = match slo.threshold.cpu_suppress_policy {
            Some(CpuSuppressPolicy::CfsQuota) => quota,
            _ => cpuset,
        };
        let gauge = |name, labels, value| Gauge { name, labels, value };
        vec![
            gauge(gauges::BE_SUPPRESS_CPU_CORES, vec![("type", Arc::clone(policy))], budget.milli() as f64 / 1000.0),
            gauge(gauges::BE_SUPPRESS_LS_USED_CPU_CORES, Vec::new(), budget.other_cores),
            gauge(gauges::BE_SUPPRESS_BE_USED_CPU_CORES, Vec::new(), budget.be_cores),
        ]
    }
}

impl Cause {
    fn setting(&self) -> &'static str {
        match self {
            Self::Manager => "feature gate BECPUManager",
            Self::Disabled => ENABLE,
            Self::Suppressed(_) => POLICY,
        }
    }
}

/// CPUs that BE pods may never use: those that the node reserves, those of SYSTEM pods alone, and those that the kubelet pinned to a pod.
fn kept_from_be(topology: &NodeTopology) -> CpuSet {
    let mut kept = topology.reserved.clone();
    if let Some(system) = topology.exclusive_system_cpus() {
        kept.insert_all(system);
    }
    let mut pools = topology.be_shared_pools.iter().map(|pool| &pool.cpus).peekable();
    if topology.is_kubelet_static && pools.peek().is_some() {
        let shared = pools.fold(CpuSet::default(), |all, pool| all.union(pool));
        kept.insert_all(&topology.cpus.cpus().difference(&shared));
    }
    kept
}

fn no_cpu_left() -> Note {
    Note::degraded(
        "no CPU is left for BE pods: all are reserved, or belong to LSE or SYSTEM pods",
        "reserve fewer CPUs, or keep BE pods from the node",
    )
}

#[cfg(test)]
mod tests;
