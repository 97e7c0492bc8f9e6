//! Rules: what NodeSLO, node and topology say for hooks, as one snapshot that calls of hooks read without a lock.

use std::sync::Arc;

use koord_koordlet_framework::{Node, NodeSlo, NodeTopology};
use koord_koordlet_system::Layout;
use koord_resource::Quantity;
use koord_types::{
    node_annotations::{CPU_NORMALIZATION_RATIO, NormalizationRatio},
    node_slo::{CpuSuppressPolicy, HostApplicationSpec},
};

use crate::{
    batch::BatchRule,
    core_sched::CoreSchedRule,
    cpuset::CpusetRule,
    gpu::GpuOptions,
    group_identity::GroupIdentityRule,
    hook::{Hook, Hooks},
    network::{terway::TerwayRule, traffic::TrafficRule},
    normalization::NormalizationRule,
    refused::Refused,
    resctrl_group::ResctrlMachine,
    stage::Stages,
    switches::KernelSwitches,
};

/// What flags and feature gates say for hooks.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub hooks: Hooks,
    /// Stages at which no hook runs (`runtime-hooks-disable-stages`).
    pub disabled_stages: Stages,
    /// Whether a call that fails is an error for the runtime (`runtime-hooks-failure-policy`).
    pub failure_policy: FailurePolicy,
    /// Whether a hook that fails makes its call fail (`runtime-hooks-plugin-failure-policy`).
    pub plugin_failure_policy: FailurePolicy,
    /// Whether pods with CPUs of their own lose their quota (not `disable-unset-cpu-quota`).
    pub lifts_quota: bool,
    /// Whether BE pods are bound to the NUMA nodes that the scheduler chose (gate `BECPUManager`).
    pub binds_be_to_nodes: bool,
    /// Whether tasks of running pods are moved to their resctrl groups (`enable-pod-taskids`).
    pub moves_tasks: bool,
    pub gpu: GpuOptions,
}

/// What follows when something fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It is reported, and everything else goes on.
    #[default]
    Ignore,
    /// It is an error.
    Fail,
}

/// What rules are computed from.
#[derive(Clone, Copy, Debug)]
pub struct RuleInputs<'a> {
    pub options: &'a Options,
    pub layout: Layout,
    /// `None` until the NodeSLO is known: then hooks that have no default do nothing.
    pub slo: Option<&'a NodeSlo>,
    pub topology: Option<&'a Arc<NodeTopology>>,
    pub node: Option<&'a Node>,
    pub switches: KernelSwitches,
    /// `None` where the machine has no resctrl.
    pub resctrl: Option<&'a Arc<ResctrlMachine>>,
}

/// What calls of hooks and the reconciler follow.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(crate) options: Options,
    pub(crate) layout: Layout,
    pub(crate) group_identity: Option<GroupIdentityRule>,
    pub(crate) cpuset: Option<CpusetRule>,
    pub(crate) batch: Option<BatchRule>,
    pub(crate) normalization: Option<NormalizationRule>,
    pub(crate) core_sched: Option<CoreSchedRule>,
    pub(crate) resctrl: Option<Arc<ResctrlMachine>>,
    pub(crate) traffic: Option<TrafficRule>,
    pub(crate) terway: Option<TerwayRule>,
    pub(crate) host_applications: Vec<HostApplicationSpec>,
    pub(crate) refused: Vec<Refused>,
    ratio: Option<NormalizationRatio>,
}

// === impl FailurePolicy ===

impl FailurePolicy {
    /// The policy of a name; there are `Ignore` and `Fail`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "Ignore" => Some(Self::Ignore),
            "Fail" => Some(Self::Fail),
            _ => None,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Fail => "Fail",
        }
    }
}

// === impl Options ===

impl Default for Options {
    /// The defaults of flags and gates.
    fn default() -> Self {
        Self {
            hooks: Hooks::default(),
            disabled_stages: Stages::default(),
            failure_policy: FailurePolicy::Ignore,
            plugin_failure_policy: FailurePolicy::Ignore,
            lifts_quota: true,
            binds_be_to_nodes: false,
            moves_tasks: false,
            gpu: GpuOptions::default(),
        }
    }
}

// === impl Rules ===

impl Rules {
    /// How the folders of pods are named.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The rules of these inputs. `previous` gives what stays in force: a ratio that cannot be read keeps its last value, and one that changes by less than
    /// 0.01 is not changed.
    pub fn new(inputs: RuleInputs<'_>, previous: Option<&Self>) -> Self {
        let RuleInputs { options, layout, slo, topology, node, switches, resctrl } = inputs;
        let is_on = |hook| options.hooks.contains(hook);
        let mut refused = Vec::new();
        let ratio = ratio(node, previous.and_then(|previous| previous.ratio), &mut refused);
        let was_normalized = previous.is_some_and(|previous| previous.normalization.is_some());
        let normalization = match ratio {
            Some(ratio) => Some(NormalizationRule::Ratio(ratio.value())),
            None => was_normalized.then_some(NormalizationRule::Restored),
        };
        let total_bits = slo.and_then(|slo| slo.system.total_network_bandwidth.as_ref()).map_or(0, Quantity::value);
        let core_sched = slo.filter(|_| is_on(Hook::CoreSched)).and_then(|slo| CoreSchedRule::new(&slo.qos, switches));
        let clears_group_identity = core_sched.as_ref().is_some_and(|rule| rule.is_active);
        Self {
            options: options.clone(),
            layout,
            group_identity: slo
                .filter(|_| is_on(Hook::GroupIdentity))
                .and_then(|slo| GroupIdentityRule::new(&slo.qos, switches, clears_group_identity)),
            cpuset: is_on(Hook::CpuSetAllocator).then(|| CpusetRule {
                topology: topology.cloned(),
                binds_be_to_nodes: options.binds_be_to_nodes,
                lifts_quota: options.lifts_quota,
            }),
            batch: is_on(Hook::BatchResource).then(|| BatchRule {
                is_quota_suppressed: slo.is_some_and(|slo| {
                    slo.threshold.enable == Some(true)
                        && slo.threshold.cpu_suppress_policy == Some(CpuSuppressPolicy::CfsQuota)
                }),
                ratio: ratio.map(NormalizationRatio::value),
            }),
            normalization: normalization.filter(|_| is_on(Hook::CpuNormalization)),
            core_sched,
            resctrl: resctrl.filter(|_| is_on(Hook::Resctrl)).cloned(),
            traffic: slo
                .filter(|_| is_on(Hook::TcNetworkQos))
                .and_then(|slo| TrafficRule::new(&slo.qos, total_bits, &mut refused)),
            terway: slo
                .filter(|_| is_on(Hook::TerwayQos))
                .and_then(|slo| TerwayRule::new(&slo.qos, total_bits, &mut refused)),
            host_applications: slo.map(|slo| slo.host_applications.clone()).unwrap_or_default(),
            refused,
            ratio,
        }
    }

    /// The rules of these inputs; the previous snapshot itself when they are the same.
    pub fn updated(previous: &Arc<Self>, inputs: RuleInputs<'_>) -> Arc<Self> {
        let rules = Self::new(inputs, Some(previous));
        if rules.is_same(previous) { Arc::clone(previous) } else { Arc::new(rules) }
    }

    /// Settings of the node that are not used.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// The flags and gates of this snapshot.
    pub fn options(&self) -> &Options {
        &self.options
    }

    fn is_same(&self, other: &Self) -> bool {
        self.options == other.options
            && self.layout == other.layout
            && self.group_identity == other.group_identity
            && self.cpuset.is_some() == other.cpuset.is_some()
            && same_topology(self.cpuset.as_ref(), other.cpuset.as_ref())
            && self.batch == other.batch
            && self.normalization == other.normalization
            && self.core_sched == other.core_sched
            && self.resctrl == other.resctrl
            && self.traffic == other.traffic
            && self.terway == other.terway
            && self.host_applications == other.host_applications
            && self.refused == other.refused
            && self.ratio == other.ratio
    }
}

fn same_topology(one: Option<&CpusetRule>, other: Option<&CpusetRule>) -> bool {
    let topology = |rule: Option<&CpusetRule>| rule.and_then(|rule| rule.topology.clone());
    match (topology(one), topology(other)) {
        (Some(one), Some(other)) => Arc::ptr_eq(&one, &other) || one == other,
        (None, None) => true,
        _ => false,
    }
}

/// The ratio of the node's annotation.
fn ratio(
    node: Option<&Node>,
    previous: Option<NormalizationRatio>,
    refused: &mut Vec<Refused>,
) -> Option<NormalizationRatio> {
    let Some(node) = node else { return previous };
    let read = node.annotations.as_ref().map(|annotations| CPU_NORMALIZATION_RATIO.get(annotations));
    match read.transpose() {
        Ok(ratio) => {
            let ratio = ratio.flatten()?;
            Some(previous.filter(|previous| !previous.is_different(ratio)).unwrap_or(ratio))
        }
        Err(error) => {
            let reason = format!("{:?} is wrong: {}; expected {}", error.value, error.reason, error.expected);
            refused.push(Refused::node(CPU_NORMALIZATION_RATIO.name(), reason));
            previous
        }
    }
}
