//! The ConfigMap `slo-controller-config`: what administrators say about all nodes and about some of them.
//!
//! Every key holds JSON that is decoded by Go's rules ([`koord_resource::go_json`]). A key that cannot be decoded leaves
//! its last good value, and the other keys, in force. All functions here are pure; the controllers of the manager watch
//! the ConfigMap and hand it in.

mod bounds;
mod colocation;
mod cpu_normalization;
mod defaults;
mod draft;
mod effective;
mod names;
mod node_slo;
mod resource_amplification;
mod strategy;
mod switchable;

pub use bounds::{Bound, FieldPath, Limits, Pair, limits};
pub use colocation::{
    CalculatePolicy, ColocationConfig, ColocationConfigError, ColocationStrategy, MetricAggregatePolicy,
    NODE_COLOCATION_STRATEGY, NodeColocation, OutOfRange,
};
pub use cpu_normalization::{CpuNormalizationConfig, CpuNormalizationStrategy, ModelRatios};
pub use defaults::{
    colocation_strategy, cpu_burst_strategy, full_resource_qos_strategy, node_slo_spec, none_resource_qos,
    resource_threshold_strategy, system_strategy,
};
pub use draft::{CHECKED_KEYS, Draft, NodeDraft};
pub use effective::{EffectiveConfig, EffectiveKey, EffectiveStrategy, EffectiveValue, Origin};
use koord_resource::go_json::DecodeError;
pub use node_slo::{HostApplications, NodeHostApplications, NodeSloConfig, NodeSloResolved, Section, SectionError};
pub use resource_amplification::{ResourceAmplificationConfig, ResourceAmplificationStrategy};
use serde::de::DeserializeOwned;
pub use strategy::{NodeProfile, NodeStrategy};
pub use switchable::{Switchable, SwitchableConfig};

/// Name of the ConfigMap, unless a flag says otherwise.
pub const CONFIG_MAP_NAME: &str = "slo-controller-config";
/// Namespace of the ConfigMap, unless a flag says otherwise.
pub const CONFIG_MAP_NAMESPACE: &str = "koordinator-system";

/// Key of what best-effort pods may use, and of what is measured.
pub const COLOCATION_CONFIG: &str = "colocation-config";
/// Key of when best-effort pods are held back or evicted.
pub const RESOURCE_THRESHOLD_CONFIG: &str = "resource-threshold-config";
/// Key of what each QoS class gets.
pub const RESOURCE_QOS_CONFIG: &str = "resource-qos-config";
/// Key of when containers may use more CPU than their limit.
pub const CPU_BURST_CONFIG: &str = "cpu-burst-config";
/// Key of settings of the whole node.
pub const SYSTEM_CONFIG: &str = "system-config";
/// Key of applications outside pods.
pub const HOST_APPLICATION_CONFIG: &str = "host-application-config";
/// Key of how much faster some CPUs are than others.
pub const CPU_NORMALIZATION_CONFIG: &str = "cpu-normalization-config";
/// Key of how much more than it has a node may promise.
pub const RESOURCE_AMPLIFICATION_CONFIG: &str = "resource-amplification-config";

/// All keys that somebody reads.
pub const KEYS: [&str; 8] = [
    COLOCATION_CONFIG,
    RESOURCE_THRESHOLD_CONFIG,
    RESOURCE_QOS_CONFIG,
    CPU_BURST_CONFIG,
    SYSTEM_CONFIG,
    HOST_APPLICATION_CONFIG,
    CPU_NORMALIZATION_CONFIG,
    RESOURCE_AMPLIFICATION_CONFIG,
];

/// Decodes one key's text into its type, with Go's names in error messages.
pub fn decode<T: DeserializeOwned>(text: &str) -> Result<T, DecodeError> {
    koord_resource::go_json::from_str_named(text, &names::NAMES)
}
