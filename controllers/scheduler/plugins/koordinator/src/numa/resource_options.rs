//! What a pod says about its CPUs and NUMA nodes (`spec/scheduler.md` 3B.2 and 3B.3).

use koord_scheduler_allocation::numa::{
    accumulator::CpuPolicies,
    allocate::CpuOrder,
    node::NumaNode,
    policy::{Bind, Exclusive, Policy},
};
use koord_scheduler_framework::{Reason, ReasonCode};
use koord_types::{
    numa::{CpuBindPolicy, NUMA_TOPOLOGY_SPEC, NumaNodeExclusive, RESOURCE_SPEC, ResourceSpec},
    priority::{PRIORITY_CLASS_LABEL, PriorityClass},
    protocol::ProtocolError,
    qos::{QOS_LABEL, QosClass},
};

/// What a pod requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResourceOptions {
    /// The cpu that it requests, in thousandths.
    pub(crate) cpu: i64,
    /// How its CPUs must be bound.
    required: Option<Bind>,
    /// How its CPUs are bound where the node does not say it; none where it shares them.
    preferred: Option<Bind>,
    /// What it does not share with pods that say the same.
    pub(crate) exclusive: Exclusive,
    /// How strictly its resources are kept together; none where the node decides.
    policy: Policy,
    /// Whether it keeps apart from pods that use NUMA nodes differently.
    pub(crate) keeps_apart: bool,
    /// What it says about binding, for the annotation that records what was decided.
    pub(crate) spec: ResourceSpec,
}

/// Why a pod cannot be scheduled at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Invalid {
    /// An annotation makes no sense.
    Annotation {
        key: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// It requests exclusive CPUs, but a fraction of one.
    FractionalCpu,
}

/// Why a pod and a node do not go together, whatever else is on the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// Both have a policy about NUMA nodes, and not the same.
    Policy,
    /// The node binds CPUs, and the pod requests a fraction of one.
    FractionalCpu,
    /// By what factor the node promises more cpu than it has cannot be read.
    Ratio,
    /// The node does not report its CPUs.
    Topology,
    /// The node and the pod bind CPUs differently.
    Bind,
    /// The pod requests no whole cores, but must have such.
    Cores,
    /// The node does not report its NUMA nodes.
    Zones,
}

// === impl ResourceOptions ===

impl ResourceOptions {
    /// What a pod requests that has these labels and annotations, and requests so much cpu.
    pub(crate) fn of<'a>(
        label: impl Fn(&str) -> Option<&'a str>,
        annotation: impl Fn(&str) -> Option<&'a str>,
        priority: i32,
        cpu: i64,
        default_bind: Option<Bind>,
    ) -> Result<Self, Invalid> {
        let invalid = |ProtocolError { key, reason, .. }| Invalid::Annotation { key, reason };
        let spec = annotation(RESOURCE_SPEC.name()).map(|text| RESOURCE_SPEC.read(text));
        let spec = spec.transpose().map_err(invalid)?.unwrap_or_default();
        let numa = annotation(NUMA_TOPOLOGY_SPEC.name()).map(|text| NUMA_TOPOLOGY_SPEC.read(text));
        let numa = numa.transpose().map_err(invalid)?.unwrap_or_default();
        let policy = numa.numa_topology_policy.as_ref().map(Policy::of).unwrap_or_default();
        let exclusive = numa.single_numa_node_exclusive.filter(|word| !word.as_str().is_empty());
        let mut options = Self {
            cpu,
            policy,
            keeps_apart: exclusive.map_or(policy != Policy::None, |word| word == NumaNodeExclusive::Required),
            spec,
            ..Self::default()
        };
        if may_bind(label(QOS_LABEL), label(PRIORITY_CLASS_LABEL), priority) {
            options.bind(default_bind)?;
        }
        Ok(options)
    }

    fn bind(&mut self, default_bind: Option<Bind>) -> Result<(), Invalid> {
        // What is left to the scheduler is required all the same, where it is said in that place.
        let of_policy = |policy: &CpuBindPolicy| match policy {
            CpuBindPolicy::Default => default_bind,
            policy => Bind::of_pod(policy),
        };
        let required = non_empty(self.spec.required_cpu_bind_policy.as_ref()).map(of_policy);
        let preferred = non_empty(self.spec.preferred_cpu_bind_policy.as_ref()).map_or(default_bind, of_policy);
        let Some(bind) = required.unwrap_or(preferred) else { return Ok(()) };
        if self.cpu % 1000 != 0 {
            return Err(Invalid::FractionalCpu);
        }
        if self.cpu > 0 {
            self.required = required.flatten();
            self.preferred = Some(bind);
            self.exclusive = Exclusive::of_pod(self.spec.preferred_cpu_exclusive_policy.as_ref());
        }
        Ok(())
    }

    /// How strictly the pod's resources are kept together on a node.
    pub(crate) fn policy_on(&self, node: &NumaNode) -> Result<Policy, Mismatch> {
        match (self.policy, node.policy) {
            (Policy::None, policy) | (policy, Policy::None) => Ok(policy),
            (one, other) if one == other => Ok(one),
            _ => Err(Mismatch::Policy),
        }
    }

    /// Whether the pod gets exclusive CPUs on a node.
    pub(crate) fn binds_on(&self, node: &NumaNode) -> Result<bool, Mismatch> {
        if self.preferred.is_some() || node.bind.is_none() || self.cpu == 0 {
            return Ok(self.preferred.is_some());
        }
        if self.cpu % 1000 == 0 { Ok(true) } else { Err(Mismatch::FractionalCpu) }
    }

    /// The exclusive CPUs that the pod requests on a node; none where it shares them.
    pub(crate) fn cpus_on(&self, node: &NumaNode) -> Result<Option<CpuOrder>, Mismatch> {
        if !self.binds_on(node)? {
            return Ok(None);
        }
        if node.cpus_per_core() == 0 {
            return Err(Mismatch::Topology);
        }
        if self.required.is_some() && node.bind.is_some() && self.required != node.bind {
            return Err(Mismatch::Bind);
        }
        let required = self.required.or(node.bind);
        let Some(bind) = required.or(self.preferred) else { return Ok(None) };
        let needed = usize::try_from(self.cpu / 1000).unwrap_or(0);
        if required == Some(Bind::FullPcpus) && needed % node.cpus_per_core() != 0 {
            return Err(Mismatch::Cores);
        }
        let policies = CpuPolicies { bind, exclusive: self.exclusive };
        Ok(Some(CpuOrder { needed, policies, is_required: required.is_some() }))
    }

    /// What is written into a pod that left something about its CPUs to the node or to the scheduler; none where it did not.
    pub(crate) fn written(&self, decided: &CpuOrder) -> Option<ResourceSpec> {
        let mut spec = self.spec.clone();
        let (required, preferred) = (&mut spec.required_cpu_bind_policy, &mut spec.preferred_cpu_bind_policy);
        let is_left = |policy: &Option<CpuBindPolicy>| *policy == Some(CpuBindPolicy::Default);
        let word = Some(decided.policies.bind.word());
        if decided.is_required && (is_left(required) || non_empty(required.as_ref()).is_none()) {
            required.clone_from(&word);
        }
        if is_left(preferred) || non_empty(required.as_ref()).or(non_empty(preferred.as_ref())).is_none() {
            *preferred = word;
        }
        (spec != self.spec).then_some(spec)
    }
}

/// Whether CPUs of a pod of this class may be bound because it asks for it.
fn may_bind(qos: Option<&str>, class: Option<&str>, priority: i32) -> bool {
    let qos = QosClass::of_label(qos).filter(|qos| matches!(qos, QosClass::Lse | QosClass::Lsr));
    qos.is_some_and(|qos| {
        let declared = PriorityClass::declared(class, Some(priority));
        declared.or_else(|| PriorityClass::of_qos(&qos)) == Some(PriorityClass::Prod)
    })
}

/// A policy, unless it is an empty text.
fn non_empty(policy: Option<&CpuBindPolicy>) -> Option<&CpuBindPolicy> {
    policy.filter(|policy| !policy.as_str().is_empty())
}

// === impl Mismatch ===

impl Mismatch {
    /// The words of a refusal.
    pub(crate) fn reason(self) -> Reason {
        use ReasonCode::{CpuRequestInvalid, CpuTopologyMissing, NumaPolicyMismatch};
        let (code, words) = match self {
            Self::Policy => (NumaPolicyMismatch, "node(s) NUMA Topology policy not match"),
            Self::FractionalCpu => (CpuRequestInvalid, Invalid::FRACTIONAL_CPU),
            Self::Ratio => (CpuTopologyMissing, "node(s) invalid CPU amplification ratio"),
            Self::Topology => (CpuTopologyMissing, "node(s) invalid CPU Topology"),
            Self::Bind => (NumaPolicyMismatch, "node(s) cpu bind policy conflicts with pod's required cpu bind policy"),
            Self::Cores => (CpuRequestInvalid, "node(s) requested cpus not multiple cpus per core"),
            Self::Zones => (CpuTopologyMissing, "node(s) missing NUMA resources"),
        };
        code.reason(words)
    }
}

impl Invalid {
    /// The words of a refusal.
    pub(crate) const FRACTIONAL_CPU: &str = "the requested CPUs must be integer";
}

#[cfg(test)]
mod tests {
    use koord_scheduling::Cpu;

    use super::*;

    const SPEC: &str = "scheduling.koordinator.sh/resource-spec";
    const NUMA: &str = "scheduling.koordinator.sh/numa-topology-spec";

    fn options(
        qos: &'static str,
        priority: i32,
        cpu: i64,
        annotations: &[(&str, &'static str)],
    ) -> Result<ResourceOptions, Invalid> {
        let label = |key: &str| (key == "koordinator.sh/qosClass").then_some(qos);
        let annotation = |key: &str| annotations.iter().find(|(known, _)| *known == key).map(|(_, text)| *text);
        ResourceOptions::of(label, annotation, priority, cpu, Some(Bind::FullPcpus))
    }

    fn node(bind: Option<Bind>) -> NumaNode {
        NumaNode {
            cpus: (0..8).map(|id| Cpu { id, core: id / 2, node: 0, socket: 0 }).collect(),
            bind,
            ..NumaNode::default()
        }
    }

    /// How CPUs are bound, and whether they must be.
    fn bound(options: &ResourceOptions, node: &NumaNode) -> Result<Option<(Bind, bool)>, Mismatch> {
        Ok(options.cpus_on(node)?.map(|cpus| (cpus.policies.bind, cpus.is_required)))
    }

    #[test]
    fn only_exclusive_pods_of_production_bind_cpus_by_themselves() {
        let on_plain = |qos, priority| bound(&options(qos, priority, 2000, &[]).unwrap(), &node(None)).unwrap();
        let full = Some((Bind::FullPcpus, false));
        assert_eq!([on_plain("LSR", 9500), on_plain("LSE", 9500), on_plain("LSR", 0)], [full; 3]);
        assert_eq!(
            [on_plain("LS", 9500), on_plain("BE", 5500), on_plain("LSR", 5500), on_plain("LSR", 100)],
            [None, None, None, full]
        );
    }

    #[test]
    fn what_is_required_comes_before_the_node_and_the_node_before_what_is_preferred() {
        let with = |spec| options("LSR", 9500, 2000, &[(SPEC, spec)]).unwrap();
        let on = |spec, bind| bound(&with(spec), &node(bind));
        let (full, spread) = (Some(Bind::FullPcpus), Some(Bind::SpreadByPcpus));
        let prefers = r#"{"preferredCPUBindPolicy":"SpreadByPCPUs"}"#;
        let requires = r#"{"requiredCPUBindPolicy":"SpreadByPCPUs","preferredCPUBindPolicy":"FullPCPUs"}"#;
        assert_eq!(on(prefers, None), Ok(Some((Bind::SpreadByPcpus, false))));
        assert_eq!(on(prefers, full), Ok(Some((Bind::FullPcpus, true))));
        assert_eq!(on(requires, None), Ok(Some((Bind::SpreadByPcpus, true))));
        assert_eq!((on(requires, full), on(requires, spread)), (Err(Mismatch::Bind), on(requires, None)));
        assert_eq!(on(r#"{"preferredCPUBindPolicy":"Default"}"#, None), Ok(Some((Bind::FullPcpus, false))));
        assert_eq!(on(r#"{"preferredCPUBindPolicy":"ConstrainedBurst"}"#, None), Ok(None));
        let left = r#"{"requiredCPUBindPolicy":"Default"}"#;
        assert_eq!(on(left, None), Ok(Some((Bind::FullPcpus, true))), "what is left to the scheduler is required too");
        assert_eq!(on(left, spread), Err(Mismatch::Bind));
    }

    #[test]
    fn a_node_that_binds_binds_all_pods_of_whole_cpus() {
        let on_full = |qos, cpu| bound(&options(qos, 9500, cpu, &[]).unwrap(), &node(Some(Bind::FullPcpus)));
        assert_eq!(on_full("LS", 4000), Ok(Some((Bind::FullPcpus, true))));
        assert_eq!((on_full("LS", 1500), on_full("LS", 0)), (Err(Mismatch::FractionalCpu), Ok(None)));
        assert_eq!((on_full("LS", 3000), on_full("LSR", 3000)), (Err(Mismatch::Cores), Err(Mismatch::Cores)));
        assert_eq!(bound(&options("LS", 9500, 1500, &[]).unwrap(), &node(None)), Ok(None));
        assert_eq!(bound(&options("LSR", 9500, 2000, &[]).unwrap(), &NumaNode::default()), Err(Mismatch::Topology));
    }

    #[test]
    fn whole_cores_are_needed_where_the_node_or_the_pod_requires_them() {
        let on = |spec, bind| bound(&options("LSR", 9500, 5000, &[(SPEC, spec)]).unwrap(), &node(bind));
        let prefers = r#"{"preferredCPUBindPolicy":"FullPCPUs"}"#;
        let requires = r#"{"requiredCPUBindPolicy":"FullPCPUs"}"#;
        assert_eq!(on(prefers, None), Ok(Some((Bind::FullPcpus, false))));
        assert_eq!(on(prefers, Some(Bind::SpreadByPcpus)), Ok(Some((Bind::SpreadByPcpus, true))));
        assert_eq!(on(prefers, Some(Bind::FullPcpus)), Err(Mismatch::Cores));
        assert_eq!(on(requires, None), Err(Mismatch::Cores));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(options("LSR", 9500, 1500, &[]), Err(Invalid::FractionalCpu));
        let json = "invalid character 'b' looking for beginning of object key string".to_owned();
        for key in [SPEC, NUMA] {
            let invalid = Invalid::Annotation { key, reason: json.clone() };
            assert_eq!(options("LS", 9500, 1500, &[(key, "{bad")]), Err(invalid));
        }
    }

    #[test]
    fn policies_about_numa_nodes_must_agree() {
        let spec = r#"{"numaTopologyPolicy":"SingleNUMANode"}"#;
        let pod = options("LS", 9500, 1500, &[(NUMA, spec)]).unwrap();
        let on = |pod: &ResourceOptions, policy| pod.policy_on(&NumaNode { policy, ..node(None) });
        assert_eq!(on(&pod, Policy::None), Ok(Policy::SingleNumaNode));
        assert_eq!(on(&pod, Policy::SingleNumaNode), Ok(Policy::SingleNumaNode));
        assert_eq!(on(&pod, Policy::BestEffort), Err(Mismatch::Policy));
        assert_eq!(on(&ResourceOptions::default(), Policy::Restricted), Ok(Policy::Restricted));
    }

    #[test]
    fn a_pod_with_a_policy_of_its_own_keeps_apart_unless_it_says_otherwise() {
        let apart = |spec| options("LS", 9500, 1500, &[(NUMA, spec)]).unwrap().keeps_apart;
        assert!(apart(r#"{"numaTopologyPolicy":"Restricted"}"#) && apart(r#"{"singleNUMANodeExclusive":"Required"}"#));
        assert!(!apart(r#"{"numaTopologyPolicy":"Restricted","singleNUMANodeExclusive":"Preferred"}"#) && !apart("{}"));
    }

    #[test]
    fn what_was_decided_is_written_where_the_pod_did_not_say_it() {
        let written = |qos, bind, annotations: &[(&str, &'static str)]| {
            let options = options(qos, 9500, 2000, annotations).unwrap();
            let decided = options.cpus_on(&node(bind)).unwrap().unwrap();
            options.written(&decided).map(|spec| serde_json::to_string(&spec).unwrap())
        };
        assert_eq!(written("LSR", None, &[]).as_deref(), Some(r#"{"preferredCPUBindPolicy":"FullPCPUs"}"#));
        let full = Some(Bind::FullPcpus);
        assert_eq!(written("LS", full, &[]).as_deref(), Some(r#"{"requiredCPUBindPolicy":"FullPCPUs"}"#));
        let exclusive = r#"{"preferredCPUExclusivePolicy":"PCPULevel"}"#;
        let both = r#"{"preferredCPUBindPolicy":"FullPCPUs","preferredCPUExclusivePolicy":"PCPULevel"}"#;
        assert_eq!(written("LSR", None, &[(SPEC, exclusive)]).as_deref(), Some(both));
        for (spec, bind, expected) in [
            (r#"{"preferredCPUBindPolicy":"SpreadByPCPUs"}"#, None, None),
            (
                r#"{"preferredCPUBindPolicy":"SpreadByPCPUs"}"#,
                full,
                Some(r#"{"requiredCPUBindPolicy":"FullPCPUs","preferredCPUBindPolicy":"SpreadByPCPUs"}"#),
            ),
            (r#"{"preferredCPUBindPolicy":"Default"}"#, None, Some(r#"{"preferredCPUBindPolicy":"FullPCPUs"}"#)),
            (
                r#"{"preferredCPUBindPolicy":"Default"}"#,
                full,
                Some(r#"{"requiredCPUBindPolicy":"FullPCPUs","preferredCPUBindPolicy":"FullPCPUs"}"#),
            ),
            (r#"{"requiredCPUBindPolicy":"Default"}"#, None, Some(r#"{"requiredCPUBindPolicy":"FullPCPUs"}"#)),
            (
                r#"{"requiredCPUBindPolicy":"SpreadByPCPUs","preferredCPUBindPolicy":"Default"}"#,
                None,
                Some(r#"{"requiredCPUBindPolicy":"SpreadByPCPUs","preferredCPUBindPolicy":"SpreadByPCPUs"}"#),
            ),
            (r#"{"requiredCPUBindPolicy":"SpreadByPCPUs"}"#, None, None),
        ] {
            assert_eq!(written("LSR", bind, &[(SPEC, spec)]).as_deref(), expected, "{spec} on {bind:?}");
        }
    }
}
