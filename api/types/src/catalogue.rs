//! Every label and annotation of the protocol in one table, for those who meet one without knowing what it is: linters, warnings,
//! events and tests. [`Entry::check`] says whether a text can be read, [`doubts`] what in a readable one hardly does what was meant, and
//! [`objects`] the same of the fields of objects.

mod doubt;
mod fields;
pub mod objects;
mod rules;
mod values;

use std::{collections::HashMap, sync::LazyLock};

pub use self::{doubt::Doubt, values::doubts};
use crate::{
    device_protocol, gang, node_annotations, numa, pod_annotations, priority,
    protocol::{Flag, Key, ProtocolError, Text},
    quota, reservation_protocol, slo_config,
};

/// A label or annotation, whatever the type of its value.
pub trait Entry: Sync {
    /// The label's or annotation's name.
    fn name(&self) -> &'static str;

    /// What its values are, for users: a noun phrase.
    fn expected(&self) -> &'static str;

    /// What is wrong with a text.
    fn check(&self, text: &str) -> Result<(), ProtocolError>;

    /// Reads a text and writes it as we would.
    fn rewrite(&self, text: &str) -> Result<String, ProtocolError>;
}

impl<T: Text> Entry for Key<T> {
    fn name(&self) -> &'static str {
        Key::name(self)
    }

    fn expected(&self) -> &'static str {
        Key::expected(self)
    }

    fn check(&self, text: &str) -> Result<(), ProtocolError> {
        self.read(text).map(drop)
    }

    fn rewrite(&self, text: &str) -> Result<String, ProtocolError> {
        Ok(self.read(text)?.write())
    }
}

impl Entry for Flag {
    fn name(&self) -> &'static str {
        Flag::name(*self)
    }

    fn expected(&self) -> &'static str {
        "\"true\" or \"false\""
    }

    /// Whoever asks a flag takes every other text for nothing; somebody who wrote one should hear of it.
    fn check(&self, text: &str) -> Result<(), ProtocolError> {
        if matches!(text, "true" | "false") {
            return Ok(());
        }
        let reason = "counts as if it were not there".to_owned();
        Err(ProtocolError { key: Flag::name(*self), value: text.to_owned(), reason, expected: self.expected() })
    }

    fn rewrite(&self, text: &str) -> Result<String, ProtocolError> {
        self.check(text).map(|()| text.to_owned())
    }
}

/// All keys, by the module that declares them.
pub const KEYS: &[&dyn Entry] = &[
    &device_protocol::GPU_ISOLATION_PROVIDER,
    &device_protocol::DEVICE_ALLOCATED,
    &device_protocol::DEVICE_ALLOCATE_HINT,
    &device_protocol::DEVICE_JOINT_ALLOCATE,
    &device_protocol::GPU_PARTITION_SPEC,
    &device_protocol::GPU_PARTITIONS,
    &gang::NAME,
    &gang::MIN_AVAILABLE,
    &gang::DEPRECATED_MIN_AVAILABLE,
    &gang::WAITING_TIME,
    &gang::TOTAL_NUMBER,
    &gang::MODE,
    &gang::GROUPS,
    &gang::TIMEOUT,
    &gang::MATCH_POLICY,
    &gang::MATCH_POLICY_ALIAS,
    &gang::NETWORK_TOPOLOGY_INDEX,
    &gang::NETWORK_TOPOLOGY_SPEC,
    &gang::ORIGINAL_SCHEDULER_NAME,
    &slo_config::NODE_COLOCATION_STRATEGY,
    &node_annotations::NODE_CPU_RECLAIM_RATIO,
    &node_annotations::NODE_MEMORY_RECLAIM_RATIO,
    &node_annotations::NODE_MID_STATIC_CPU_RESERVED_RATIO,
    &node_annotations::NODE_MID_STATIC_MEMORY_RESERVED_RATIO,
    &node_annotations::NODE_NETWORK_BANDWIDTH,
    &node_annotations::CPU_NORMALIZATION_RATIO,
    &node_annotations::CPU_NORMALIZATION_ENABLED,
    &node_annotations::CPU_BASIC_INFO,
    &node_annotations::RESOURCE_AMPLIFICATION_RATIO,
    &node_annotations::RAW_ALLOCATABLE,
    &node_annotations::NODE_RESERVATION,
    &node_annotations::ENABLE_NUMA_RESERVATION,
    &node_annotations::SYSTEM_QOS_RESOURCE,
    &node_annotations::ORIGIN_EXTENDED_ALLOCATABLE,
    &node_annotations::THIRD_PARTY_ALLOCATIONS,
    &node_annotations::USAGE_THRESHOLDS,
    &node_annotations::CPU_BIND_POLICY,
    &node_annotations::NUMA_ALLOCATE_STRATEGY,
    &node_annotations::NUMA_TOPOLOGY_POLICY,
    &node_annotations::GPU_PARTITION_POLICY,
    &node_annotations::GPU_VENDOR,
    &node_annotations::GPU_MODEL,
    &node_annotations::GPU_DRIVER_VERSION,
    &node_annotations::SECONDARY_DEVICE_WELL_PLANNED,
    &node_annotations::HAMI_VGPU_NODE,
    &numa::RESOURCE_SPEC,
    &numa::RESOURCE_STATUS,
    &numa::NUMA_TOPOLOGY_SPEC,
    &numa::CPU_TOPOLOGY,
    &numa::POD_CPU_ALLOCS,
    &numa::CPU_SHARED_POOLS,
    &numa::BE_CPU_SHARED_POOLS,
    &numa::KUBELET_CPU_MANAGER_POLICY,
    &pod_annotations::MUTATING_UPDATE,
    &pod_annotations::SKIP_ENHANCED_VALIDATION,
    &pod_annotations::EVICTION_ENABLED,
    &pod_annotations::CORE_SCHED_GROUP_ID,
    &pod_annotations::CORE_SCHED_POLICY,
    &pod_annotations::SCHEDULER_NAME,
    &pod_annotations::PREEMPTION_POLICY,
    &pod_annotations::DISABLE_PREEMPTIBLE,
    &pod_annotations::QUESTIONED_OBJECT_KEY,
    &pod_annotations::TOPOLOGY_KEY_TO_EXPLAIN,
    &pod_annotations::NETWORK_QOS,
    &pod_annotations::CPU_BURST,
    &pod_annotations::CPU_QOS,
    &pod_annotations::MEMORY_QOS,
    &pod_annotations::BLKIO_QOS,
    &pod_annotations::EVICTION_POLICY,
    &pod_annotations::EVICTION_PRIORITY,
    &pod_annotations::OOM_SCORE_ADJ,
    &pod_annotations::OOM_SCORE_ADJ_SPEC,
    &pod_annotations::REPLACE_RESOURCES,
    &pod_annotations::EXTENDED_RESOURCE_SPEC,
    &pod_annotations::RESCTRL,
    &pod_annotations::EVICTION_COST,
    &pod_annotations::SOFT_EVICTION,
    &pod_annotations::LOAD_ESTIMATED_SCALING_FACTORS,
    &pod_annotations::LOAD_ESTIMATED_SECONDS_AFTER_POD_SCHEDULED,
    &pod_annotations::LOAD_ESTIMATED_SECONDS_AFTER_INITIALIZED,
    &pod_annotations::NETWORK_TOPOLOGY_SELECTOR,
    &pod_annotations::CONTROLLER_MANAGED,
    &priority::SUB_PRIORITY,
    &quota::IS_PARENT,
    &quota::ALLOW_LENT_RESOURCE,
    &quota::IS_ROOT,
    &quota::IGNORE_DEFAULT_TREE,
    &quota::PREEMPTIBLE,
    &quota::ALLOW_FORCE_UPDATE,
    &quota::SHARED_WEIGHT,
    &quota::RUNTIME,
    &quota::REQUEST,
    &quota::CHILD_REQUEST,
    &quota::RESOURCE_KEYS,
    &quota::TOTAL_RESOURCE,
    &quota::UNSCHEDULABLE_RESOURCE,
    &quota::NAMESPACES,
    &quota::GUARANTEED,
    &quota::ALLOCATED,
    &quota::NON_PREEMPTIBLE_REQUEST,
    &quota::NON_PREEMPTIBLE_USED,
    &quota::ADMISSION,
    &quota::MAX_STRICT_CHECK_RESOURCE_KEYS,
    &reservation_protocol::RESERVATION_IGNORED,
    &reservation_protocol::PRE_ALLOCATION_REQUIRED,
    &reservation_protocol::IS_PRE_ALLOCATABLE,
    &reservation_protocol::PRE_ALLOCATABLE_PRIORITY,
    &reservation_protocol::RESERVATION_ORDER,
    &reservation_protocol::OPERATING_MODE,
    &reservation_protocol::RESERVATION_ALLOCATED,
    &reservation_protocol::RESERVATION_AFFINITY,
    &reservation_protocol::EXACT_MATCH_RESERVATION,
    &reservation_protocol::RESERVATION_RESTRICTED_OPTIONS,
    &reservation_protocol::RESERVATION_RESIZE_ALLOCATABLE,
    &reservation_protocol::RESERVATION_OWNERS,
    &reservation_protocol::RESERVATION_CURRENT_OWNER,
];

/// Keys of pods whose texts the scheduler must be able to read.
const NEEDED_BY_SCHEDULER: &[&dyn Entry] = &[
    &device_protocol::DEVICE_ALLOCATED,
    &device_protocol::DEVICE_ALLOCATE_HINT,
    &device_protocol::DEVICE_JOINT_ALLOCATE,
    &device_protocol::GPU_PARTITION_SPEC,
    &gang::MIN_AVAILABLE,
    &gang::DEPRECATED_MIN_AVAILABLE,
    &numa::RESOURCE_SPEC,
    &numa::RESOURCE_STATUS,
    &numa::NUMA_TOPOLOGY_SPEC,
    &reservation_protocol::RESERVATION_AFFINITY,
    &reservation_protocol::EXACT_MATCH_RESERVATION,
];

/// Whether the scheduler refuses a pod without a node while a text of the key of this name cannot be read. All other texts that cannot be
/// read are ignored.
pub fn refuses_pod(name: &str) -> bool {
    NEEDED_BY_SCHEDULER.iter().any(|entry| entry.name() == name)
}

/// The key of this name.
pub fn find(name: &str) -> Option<&'static dyn Entry> {
    static BY_NAME: LazyLock<HashMap<&str, &dyn Entry>> =
        LazyLock::new(|| KEYS.iter().map(|entry| (entry.name(), *entry)).collect());
    BY_NAME.get(name).copied()
}
