//! What the values of labels and annotations are checked for, key by key.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::{Unknown, unknown};
use crate::{
    device_protocol::{
        self, DeviceAllocateHints, DeviceAllocateStrategy, DeviceAllocations, DeviceExclusivePolicy,
        DeviceJointAllocate, DeviceJointScope, DeviceTopologyScope, GpuPartition, GpuPartitionAllocatePolicy,
        GpuPartitionSpec,
    },
    gang::{self, GangMatchPolicy, GangMode, Gather, NetworkTopologySpec},
    node_annotations::{
        self, GpuPartitionPolicy, NodeCpuBindPolicy, NodeReservation, NodeReservationApplyPolicy, NumaAllocateStrategy,
        NumaTopologyPolicy, SystemQosResource, UsageThresholds,
    },
    node_metric::AggregationType,
    node_slo::{CpuBurstPolicy, CpuBurstStrategy},
    numa::{
        self, CpuBindPolicy, CpuExclusivePolicy, NumaNodeExclusive, NumaTopologySpec, ResourceSpec, ResourceStatus,
    },
    pod_annotations::{self, CoreSchedPolicy, PodMemoryQos, PodMemoryQosPolicy, PreemptionPolicy},
    priority::PRIORITY_CLASS_LABEL,
    qos::{QOS_LABEL, QosClass},
    quota,
    reservation_protocol::{
        self, ExactMatchReservationSpec, PodOperatingMode, ReservationAffinity, ReservationAllocated,
        ReservationOwners, ReservationResizeAllocatable, ReservationRestrictedOptions,
    },
};

/// What the texts of a key are checked for.
pub(super) struct Rules {
    pub(super) key: &'static str,
    /// Finds the members of its JSON for which its type has no field; none where the text is no JSON.
    pub(super) unknown: Option<fn(&Value) -> Vec<Unknown>>,
    /// By path. `*` is any member or item, and the empty path the whole text.
    pub(super) values: &'static [(&'static str, Rule)],
}

/// What a value must be.
pub(super) enum Rule {
    /// One of these words, or nothing.
    Word(&'static [&'static str]),
    /// A number from this one on.
    AtLeast(f64),
    /// A quantity that is not negative.
    Amount,
    /// A duration above 0.
    Duration,
    /// CPUs such as `0-3,8`.
    Cpus,
}

/// The priority classes by their names.
pub(super) const PRIORITY_CLASSES: &[&str] = &["koord-prod", "koord-mid", "koord-batch", "koord-free"];
const AMOUNTS: &[(&str, Rule)] = &[("*", Rule::Amount)];
const FROM_ZERO: &[(&str, Rule)] = &[("", Rule::AtLeast(0.0))];

/// The rules of all keys that have some.
pub(super) const RULES: &[Rules] = &[
    // Labels and plain annotations.
    Rules { key: QOS_LABEL, unknown: None, values: &[("", Rule::Word(QosClass::TEXTS))] },
    Rules { key: PRIORITY_CLASS_LABEL, unknown: None, values: &[("", Rule::Word(PRIORITY_CLASSES))] },
    Rules {
        key: pod_annotations::CORE_SCHED_POLICY.name(),
        unknown: None,
        values: &[("", Rule::Word(CoreSchedPolicy::TEXTS))],
    },
    Rules {
        key: pod_annotations::PREEMPTION_POLICY.name(),
        unknown: None,
        values: &[("", Rule::Word(PreemptionPolicy::TEXTS))],
    },
    Rules { key: pod_annotations::LOAD_ESTIMATED_SECONDS_AFTER_POD_SCHEDULED.name(), unknown: None, values: FROM_ZERO },
    Rules { key: pod_annotations::LOAD_ESTIMATED_SECONDS_AFTER_INITIALIZED.name(), unknown: None, values: FROM_ZERO },
    Rules { key: gang::MIN_AVAILABLE.name(), unknown: None, values: FROM_ZERO },
    Rules { key: gang::DEPRECATED_MIN_AVAILABLE.name(), unknown: None, values: FROM_ZERO },
    Rules { key: gang::TOTAL_NUMBER.name(), unknown: None, values: FROM_ZERO },
    Rules { key: gang::WAITING_TIME.name(), unknown: None, values: &[("", Rule::Duration)] },
    Rules { key: gang::MODE.name(), unknown: None, values: &[("", Rule::Word(GangMode::TEXTS))] },
    Rules { key: gang::MATCH_POLICY.name(), unknown: None, values: &[("", Rule::Word(GangMatchPolicy::TEXTS))] },
    Rules { key: gang::MATCH_POLICY_ALIAS.name(), unknown: None, values: &[("", Rule::Word(GangMatchPolicy::TEXTS))] },
    Rules {
        key: node_annotations::CPU_BIND_POLICY.name(),
        unknown: None,
        values: &[("", Rule::Word(NodeCpuBindPolicy::TEXTS))],
    },
    Rules {
        key: node_annotations::NUMA_ALLOCATE_STRATEGY.name(),
        unknown: None,
        values: &[("", Rule::Word(NumaAllocateStrategy::TEXTS))],
    },
    Rules {
        key: node_annotations::NUMA_TOPOLOGY_POLICY.name(),
        unknown: None,
        values: &[("", Rule::Word(NumaTopologyPolicy::TEXTS))],
    },
    Rules {
        key: node_annotations::GPU_PARTITION_POLICY.name(),
        unknown: None,
        values: &[("", Rule::Word(GpuPartitionPolicy::TEXTS))],
    },
    Rules { key: node_annotations::NODE_NETWORK_BANDWIDTH.name(), unknown: None, values: &[("", Rule::Amount)] },
    Rules {
        key: reservation_protocol::OPERATING_MODE.name(),
        unknown: None,
        values: &[("", Rule::Word(PodOperatingMode::TEXTS))],
    },
    // JSON of pods.
    Rules {
        key: numa::RESOURCE_SPEC.name(),
        unknown: Some(unknown::<ResourceSpec>),
        values: &[
            ("requiredCPUBindPolicy", Rule::Word(CpuBindPolicy::TEXTS)),
            ("preferredCPUBindPolicy", Rule::Word(CpuBindPolicy::TEXTS)),
            ("preferredCPUExclusivePolicy", Rule::Word(CpuExclusivePolicy::TEXTS)),
        ],
    },
    Rules {
        key: numa::RESOURCE_STATUS.name(),
        unknown: Some(unknown::<ResourceStatus>),
        values: &[
            ("cpuset", Rule::Cpus),
            ("numaNodeResources.*.node", Rule::AtLeast(0.0)),
            ("numaNodeResources.*.resources.*", Rule::Amount),
        ],
    },
    Rules {
        key: numa::NUMA_TOPOLOGY_SPEC.name(),
        unknown: Some(unknown::<NumaTopologySpec>),
        values: &[
            ("numaTopologyPolicy", Rule::Word(NumaTopologyPolicy::TEXTS)),
            ("singleNUMANodeExclusive", Rule::Word(NumaNodeExclusive::TEXTS)),
        ],
    },
    Rules {
        key: device_protocol::DEVICE_ALLOCATED.name(),
        unknown: Some(unknown::<DeviceAllocations>),
        values: &[("*.*.minor", Rule::AtLeast(0.0)), ("*.*.resources.*", Rule::Amount)],
    },
    Rules {
        key: device_protocol::DEVICE_ALLOCATE_HINT.name(),
        unknown: Some(unknown::<DeviceAllocateHints>),
        values: &[
            ("*.allocateStrategy", Rule::Word(DeviceAllocateStrategy::TEXTS)),
            ("*.requiredTopologyScope", Rule::Word(DeviceTopologyScope::TEXTS)),
            ("*.exclusivePolicy", Rule::Word(DeviceExclusivePolicy::TEXTS)),
        ],
    },
    Rules {
        key: device_protocol::DEVICE_JOINT_ALLOCATE.name(),
        unknown: Some(unknown::<DeviceJointAllocate>),
        values: &[("requiredScope", Rule::Word(DeviceJointScope::TEXTS))],
    },
    Rules {
        key: device_protocol::GPU_PARTITION_SPEC.name(),
        unknown: Some(unknown::<GpuPartitionSpec>),
        values: &[
            ("allocatePolicy", Rule::Word(GpuPartitionAllocatePolicy::TEXTS)),
            ("ringBusBandwidth", Rule::Amount),
        ],
    },
    Rules {
        key: gang::NETWORK_TOPOLOGY_SPEC.name(),
        unknown: Some(unknown::<NetworkTopologySpec>),
        values: &[
            ("gatherStrategy.*.strategy", Rule::Word(Gather::TEXTS)),
            ("gatherStrategy.*.podCountMultiple", Rule::AtLeast(0.0)),
        ],
    },
    Rules {
        key: pod_annotations::CPU_BURST.name(),
        unknown: Some(unknown::<CpuBurstStrategy>),
        values: &[("policy", Rule::Word(CpuBurstPolicy::TEXTS))],
    },
    Rules {
        key: pod_annotations::MEMORY_QOS.name(),
        unknown: Some(unknown::<PodMemoryQos>),
        values: &[("policy", Rule::Word(PodMemoryQosPolicy::TEXTS))],
    },
    Rules {
        key: pod_annotations::LOAD_ESTIMATED_SCALING_FACTORS.name(),
        unknown: Some(unknown::<BTreeMap<String, i64>>),
        values: &[("*", Rule::AtLeast(0.0))],
    },
    Rules {
        key: reservation_protocol::RESERVATION_ALLOCATED.name(),
        unknown: Some(unknown::<ReservationAllocated>),
        values: &[],
    },
    Rules {
        key: reservation_protocol::RESERVATION_AFFINITY.name(),
        unknown: Some(unknown::<ReservationAffinity>),
        values: &[],
    },
    Rules {
        key: reservation_protocol::EXACT_MATCH_RESERVATION.name(),
        unknown: Some(unknown::<ExactMatchReservationSpec>),
        values: &[],
    },
    // JSON of nodes and Devices.
    Rules {
        key: node_annotations::NODE_RESERVATION.name(),
        unknown: Some(unknown::<NodeReservation>),
        values: &[
            ("resources.*", Rule::Amount),
            ("reservedCPUs", Rule::Cpus),
            ("applyPolicy", Rule::Word(NodeReservationApplyPolicy::TEXTS)),
        ],
    },
    Rules {
        key: node_annotations::SYSTEM_QOS_RESOURCE.name(),
        unknown: Some(unknown::<SystemQosResource>),
        values: &[("cpuset", Rule::Cpus)],
    },
    Rules {
        key: node_annotations::USAGE_THRESHOLDS.name(),
        unknown: Some(unknown::<UsageThresholds>),
        values: &[
            ("usageThresholds.*", Rule::AtLeast(0.0)),
            ("prodUsageThresholds.*", Rule::AtLeast(0.0)),
            ("aggregatedUsage.usageThresholds.*", Rule::AtLeast(0.0)),
            ("aggregatedUsage.usageAggregationType", Rule::Word(AggregationType::TEXTS)),
        ],
    },
    Rules {
        key: node_annotations::RESOURCE_AMPLIFICATION_RATIO.name(),
        unknown: Some(unknown::<BTreeMap<String, f64>>),
        values: &[("*", Rule::AtLeast(1.0))],
    },
    Rules {
        key: node_annotations::RAW_ALLOCATABLE.name(),
        unknown: Some(unknown::<BTreeMap<String, Value>>),
        values: AMOUNTS,
    },
    Rules {
        key: device_protocol::GPU_PARTITIONS.name(),
        unknown: Some(unknown::<BTreeMap<String, Vec<GpuPartition>>>),
        values: &[("*.*.minors.*", Rule::AtLeast(0.0)), ("*.*.ringBusBandwidth", Rule::Amount)],
    },
    // JSON of quotas: what users write.
    Rules { key: quota::SHARED_WEIGHT.name(), unknown: Some(unknown::<BTreeMap<String, Value>>), values: AMOUNTS },
    Rules { key: quota::TOTAL_RESOURCE.name(), unknown: Some(unknown::<BTreeMap<String, Value>>), values: AMOUNTS },
    Rules {
        key: quota::UNSCHEDULABLE_RESOURCE.name(),
        unknown: Some(unknown::<BTreeMap<String, Value>>),
        values: AMOUNTS,
    },
    Rules { key: quota::GUARANTEED.name(), unknown: Some(unknown::<BTreeMap<String, Value>>), values: AMOUNTS },
    Rules { key: quota::ADMISSION.name(), unknown: Some(unknown::<BTreeMap<String, Value>>), values: AMOUNTS },
    // JSON of Reservations and of pods that keep room.
    Rules {
        key: reservation_protocol::RESERVATION_RESTRICTED_OPTIONS.name(),
        unknown: Some(unknown::<ReservationRestrictedOptions>),
        values: &[],
    },
    Rules {
        key: reservation_protocol::RESERVATION_RESIZE_ALLOCATABLE.name(),
        unknown: Some(unknown::<ReservationResizeAllocatable>),
        values: &[("resources.*", Rule::Amount)],
    },
    Rules {
        key: reservation_protocol::RESERVATION_OWNERS.name(),
        unknown: Some(unknown::<ReservationOwners>),
        values: &[],
    },
];
