//! What nodes say in labels and annotations.

use std::collections::BTreeMap;

use koord_resource::{Quantity, ResourceList, go_json};
use koord_scheduling::{CpuSet, ParseCpuSetError};
use serde::{Deserialize, Serialize};

use crate::{
    go_text,
    protocol::{Flag, Key, Labels, ProtocolError, Text, json_texts, word_texts},
    word::{self, words},
};

/// Annotation: how colocation works on this node, as the fields of `colocation-config`.
pub const COLOCATION_STRATEGY: &str = "node.koordinator.sh/colocation-strategy";
/// Label: the share of CPU that may be reclaimed, as a fraction.
pub const CPU_RECLAIM_RATIO: &str = "node.koordinator.sh/cpu-reclaim-ratio";
/// Label: the share of memory that may be reclaimed, as a fraction.
pub const MEMORY_RECLAIM_RATIO: &str = "node.koordinator.sh/memory-reclaim-ratio";
/// Label: the share of CPU that mid pods get in static mode, as a fraction.
pub const MID_STATIC_CPU_RESERVED_RATIO: &str = "node.koordinator.sh/mid-static-cpu-reserved-ratio";
/// Label: the share of memory that mid pods get in static mode, as a fraction.
pub const MID_STATIC_MEMORY_RESERVED_RATIO: &str = "node.koordinator.sh/mid-static-memory-reserved-ratio";
/// Annotation: bandwidth of the node's network, in bits per second, as a quantity.
pub const NETWORK_BANDWIDTH: &str = "node.koordinator.sh/network-bandwidth";

/// The share of CPU that may be reclaimed.
pub const NODE_CPU_RECLAIM_RATIO: Key<Fraction> = Key::new(CPU_RECLAIM_RATIO, FRACTION);
/// The share of memory that may be reclaimed.
pub const NODE_MEMORY_RECLAIM_RATIO: Key<Fraction> = Key::new(MEMORY_RECLAIM_RATIO, FRACTION);
/// The share of CPU that mid pods get in static mode.
pub const NODE_MID_STATIC_CPU_RESERVED_RATIO: Key<Fraction> = Key::new(MID_STATIC_CPU_RESERVED_RATIO, FRACTION);
/// The share of memory that mid pods get in static mode.
pub const NODE_MID_STATIC_MEMORY_RESERVED_RATIO: Key<Fraction> = Key::new(MID_STATIC_MEMORY_RESERVED_RATIO, FRACTION);
/// Bandwidth of the node's network, in bits per second.
pub const NODE_NETWORK_BANDWIDTH: Key<Quantity> = Key::new(NETWORK_BANDWIDTH, "a quantity such as 10G");
/// How much faster the node's CPUs are than the reference.
pub const CPU_NORMALIZATION_RATIO: Key<NormalizationRatio> =
    Key::new("node.koordinator.sh/cpu-normalization-ratio", "a number above 0 such as 1.20");
/// Whether the node's CPUs are normalized, whatever the configuration says.
pub const CPU_NORMALIZATION_ENABLED: Key<bool> =
    Key::new("node.koordinator.sh/cpu-normalization-enabled", "true or false");
/// What kind of CPU the node has; stands on its NodeResourceTopology.
pub const CPU_BASIC_INFO: Key<CpuBasicInfo> =
    Key::new("node.koordinator.sh/cpu-basic-info", r#"a JSON object such as {"cpuModel":"…"}"#);
/// By what factor the node promises more than it has.
pub const RESOURCE_AMPLIFICATION_RATIO: Key<AmplificationRatios> =
    Key::new("node.koordinator.sh/resource-amplification-ratio", r#"a JSON object such as {"cpu":1.20}"#);
/// What the node could allocate before it was amplified.
pub const RAW_ALLOCATABLE: Key<ResourceList> =
    Key::new("node.koordinator.sh/raw-allocatable", r#"a JSON object such as {"cpu":"4"}"#);
/// What is kept away from pods.
pub const NODE_RESERVATION: Key<NodeReservation> =
    Key::new("node.koordinator.sh/reservation", r#"a JSON object such as {"resources":{"cpu":"2"}}"#);
/// Whether room on NUMA nodes is kept for reservations.
pub const ENABLE_NUMA_RESERVATION: Key<String> = Key::new("node.koordinator.sh/enable-numa-reservation", "a text");
/// Which CPUs belong to pods of class SYSTEM.
pub const SYSTEM_QOS_RESOURCE: Key<SystemQosResource> =
    Key::new("node.koordinator.sh/system-qos-resource", r#"a JSON object such as {"cpuset":"0-3"}"#);
/// Extended resources of the node before others took some.
pub const ORIGIN_EXTENDED_ALLOCATABLE: Key<OriginExtendedAllocatable> = Key::new(
    "node.koordinator.sh/originExtendedAllocatable",
    r#"a JSON object such as {"resources":{"kubernetes.io/batch-cpu":"1k"}}"#,
);
/// Extended resources that others took.
pub const THIRD_PARTY_ALLOCATIONS: Key<ThirdPartyAllocations> = Key::new(
    "node.koordinator.sh/thirdPartyAllocations",
    r#"a JSON object such as {"allocations":[{"name":"x","resources":{}}]}"#,
);
/// Use, in percent, above which the node gets no further pods.
pub const USAGE_THRESHOLDS: Key<UsageThresholds> =
    Key::new("scheduling.koordinator.sh/usage-thresholds", r#"a JSON object such as {"usageThresholds":{"cpu":65}}"#);
/// How CPUs are bound on the node.
pub const CPU_BIND_POLICY: Key<NodeCpuBindPolicy> =
    Key::new("node.koordinator.sh/cpu-bind-policy", "None, FullPCPUsOnly or SpreadByPCPUs");
/// In which order NUMA nodes are filled.
pub const NUMA_ALLOCATE_STRATEGY: Key<NumaAllocateStrategy> =
    Key::new("node.koordinator.sh/numa-allocate-strategy", "MostAllocated, LeastAllocated or DistributeEvenly");
/// How the resources of one pod are kept together on the node.
pub const NUMA_TOPOLOGY_POLICY: Key<NumaTopologyPolicy> =
    Key::new("node.koordinator.sh/numa-topology-policy", "BestEffort, Restricted or SingleNUMANode");
/// Whether GPUs are given out only in the node's partitions: `Honor`, or anything else to prefer them.
pub const GPU_PARTITION_POLICY: Key<GpuPartitionPolicy> =
    Key::new("node.koordinator.sh/gpu-partition-policy", "Honor or Prefer");
/// Who made the node's GPUs.
pub const GPU_VENDOR: Key<String> =
    Key::new("node.koordinator.sh/gpu-vendor", "nvidia, huawei, cambricon, metax or baidu");
/// The model of the node's GPUs.
pub const GPU_MODEL: Key<String> = Key::new("node.koordinator.sh/gpu-model", "a text");
/// The version of the driver of the node's GPUs.
pub const GPU_DRIVER_VERSION: Key<String> = Key::new("node.koordinator.sh/gpu-driver-version", "a text");
/// Whether network cards are planned in pairs with GPUs.
pub const SECONDARY_DEVICE_WELL_PLANNED: Flag = Flag::new("node.koordinator.sh/secondary-device-well-planned");
/// Marks nodes whose GPUs HAMi shares.
pub const HAMI_VGPU_NODE: Key<String> = Key::new("hami.io/vgpu-node", "a text");

const FRACTION: &str = "a number of at least 0 such as 0.65";

/// A share.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Fraction(f64);

impl Fraction {
    /// The share; none where it is negative or no number.
    pub fn new(share: f64) -> Option<Self> {
        (share >= 0.0 && share.is_finite()).then_some(Self(share))
    }

    /// The share.
    pub fn value(self) -> f64 {
        self.0
    }

    /// QUIRK: cut, not rounded, so that 0.29 gives 28 (spec/manager.md 6.1; `shares_are_cut_to_percents`).
    pub fn percent(self) -> i64 {
        (self.0 * 100.0) as i64
    }
}

impl Text for Fraction {
    fn read(text: &str) -> Result<Self, String> {
        let number = go_text::parse_float(text).ok_or_else(|| "not a number".to_owned())?;
        Self::new(number).ok_or_else(|| "not a number from 0".to_owned())
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

/// How much faster CPUs are than the reference; above 0 in the two decimals that are written.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct NormalizationRatio(f64);

impl NormalizationRatio {
    /// A smaller ratio would be written as `0.00`, which nobody reads.
    const LEAST: f64 = 0.005;

    /// The ratio; none where it is not above 0, or would be written as 0.
    pub fn new(ratio: f64) -> Option<Self> {
        (ratio >= Self::LEAST && ratio.is_finite()).then_some(Self(ratio))
    }

    /// The ratio.
    pub fn value(self) -> f64 {
        self.0
    }

    /// Whether `new` is so far from this ratio that it is worth writing. QUIRK: the sums decide as they are rounded to 64
    /// bits, so that 1.20 and 1.21 are close, and 2.01 and 2.02 are not (`normalization_ratios_have_two_decimals`).
    pub fn is_different(self, new: Self) -> bool {
        const LEAST: f64 = 0.01;
        self.0 > new.0 + LEAST || self.0 < new.0 - LEAST
    }
}

impl Text for NormalizationRatio {
    fn read(text: &str) -> Result<Self, String> {
        let number = go_text::parse_float(text)
            .ok_or_else(|| format!("strconv.ParseFloat: parsing {text:?}: invalid syntax"))?;
        Self::new(number).ok_or_else(|| format!("illegal cpu normalization ratio: {}", go_json::float_text(number)))
    }

    fn write(&self) -> String {
        go_text::two_decimals(self.0)
    }
}

/// What kind of CPU a node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CpuBasicInfo {
    /// The model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpu_model: String,
    /// Whether hyper-threading is on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hyper_thread_enabled: bool,
    /// Whether turbo is on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub turbo_enabled: bool,
    /// The ways of the last-level cache, as a hexadecimal mask.
    #[serde(rename = "catL3CbmMask", skip_serializing_if = "String::is_empty")]
    pub cat_l3_cbm_mask: String,
    /// Who made it.
    #[serde(rename = "vendorID", skip_serializing_if = "String::is_empty")]
    pub vendor_id: String,
}

/// By what factor a node promises more than it has, by resource. Written with two decimals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AmplificationRatios(pub BTreeMap<String, f64>);

impl AmplificationRatios {
    /// The factor of a resource; 1 where none is said, or one that would promise less.
    pub fn ratio(&self, resource: &str) -> f64 {
        self.0.get(resource).copied().filter(|ratio| *ratio > 1.0).unwrap_or(1.0)
    }

    /// An amount times a factor, rounded up. CPU is computed in thousandths, everything else in whole units.
    pub fn amplify(resource: &str, amount: &Quantity, ratio: f64) -> Quantity {
        use koord_resource::quantity::Format;
        if ratio <= 1.0 {
            return amount.clone();
        }
        let product = |value: i64| (value as f64 * ratio).ceil() as i64;
        match resource {
            "cpu" => Quantity::from_milli(product(amount.milli_value()), Format::DecimalSI),
            "memory" | "ephemeral-storage" => Quantity::new(product(amount.value()), Format::BinarySI),
            _ => Quantity::new(product(amount.value()), Format::DecimalSI),
        }
    }
}

impl Text for AmplificationRatios {
    fn read(text: &str) -> Result<Self, String> {
        const NAMES: go_json::Names = go_json::Names::NONE;
        // What is no map, and a value that is no number, is named as Go names it.
        let named = |words: String| {
            let words = words.replace("of type float64", "of type extension.Ratio");
            words.replace("of type map[string]string", "of type map[v1.ResourceName]extension.Ratio")
        };
        let ratios: BTreeMap<String, f64> =
            go_json::from_str_named(text, &NAMES).map_err(|error| named(error.to_string()))?;
        Ok(Self(ratios))
    }

    fn write(&self) -> String {
        let entries = self.0.iter().map(|(resource, ratio)| {
            let resource = go_json::to_string(resource).unwrap_or_default();
            format!("{resource}:{}", go_text::two_decimals(*ratio))
        });
        format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
    }
}

/// What of a node is kept away from pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeReservation {
    /// Amounts, by resource.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
    /// These very CPUs; the amount of CPU does not count beside them.
    #[serde(rename = "reservedCPUs", skip_serializing_if = "String::is_empty")]
    pub reserved_cpus: String,
    /// Whether amounts are taken off what is allocatable.
    #[serde(skip_serializing_if = "word::is_unset")]
    pub apply_policy: Option<NodeReservationApplyPolicy>,
}

impl NodeReservation {
    /// How many CPUs are kept, rounded up, where only their amount is said.
    pub fn cpu_count(&self) -> i64 {
        if !self.reserved_cpus.is_empty() {
            return 0;
        }
        self.resources.get("cpu").map_or(0, Quantity::value).max(0)
    }

    /// Which CPUs are kept; none where only their amount is said.
    pub fn cpus(&self) -> Result<CpuSet, ProtocolError> {
        self.reserved_cpus.parse().map_err(|error: ParseCpuSetError| ProtocolError {
            key: NODE_RESERVATION.name(),
            value: self.reserved_cpus.clone(),
            reason: error.to_string(),
            expected: "CPU numbers such as 0-3,8 in reservedCPUs",
        })
    }
}

words! {
    /// Whether reserved amounts are taken off what is allocatable.
    pub open enum NodeReservationApplyPolicy {
        /// They are.
        Default = "Default",
        /// They are not; only the CPUs are not given to pods.
        ReservedCpusOnly = "ReservedCPUsOnly",
    }
}

/// Which CPUs belong to pods of class SYSTEM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SystemQosResource {
    /// The CPUs, such as `0-3`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpuset: String,
    /// Whether no other pod may use them; absent is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpuset_exclusive: Option<bool>,
}

impl SystemQosResource {
    /// Whether no other pod may use the CPUs.
    pub fn is_exclusive(&self) -> bool {
        self.cpuset_exclusive.unwrap_or(true)
    }
}

/// Extended resources of a node before others took some.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OriginExtendedAllocatable {
    /// Amounts, by resource.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
}

/// Extended resources that others took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThirdPartyAllocations {
    /// One entry per taker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allocations: Vec<ThirdPartyAllocation>,
}

/// What one taker took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThirdPartyAllocation {
    /// Who.
    pub name: String,
    /// The priority class of the resources.
    pub priority: String,
    /// Amounts, by resource.
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    pub resources: ResourceList,
}

/// Use, in percent, above which a node gets no further pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageThresholds {
    /// Use by everyone, by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub usage_thresholds: BTreeMap<String, i64>,
    /// Use by prod pods, by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prod_usage_thresholds: BTreeMap<String, i64>,
    /// Use over a longer time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregated_usage: Option<AggregatedUsageThresholds>,
}

/// Use over a longer time, in percent, above which a node gets no further pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AggregatedUsageThresholds {
    /// Use by everyone, by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub usage_thresholds: BTreeMap<String, i64>,
    /// How samples become one value: `avg`, `p50`, `p90`, `p95` or `p99`.
    #[serde(skip_serializing_if = "word::is_unset")]
    pub usage_aggregation_type: Option<crate::node_metric::AggregationType>,
    /// Over which window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_aggregated_duration: Option<koord_resource::Duration>,
}

words! {
    /// How CPUs are bound on a node.
    pub open enum NodeCpuBindPolicy {
        /// As the pods ask.
        None = "None",
        /// Only whole cores.
        FullPcpusOnly = "FullPCPUsOnly",
        /// One CPU per core, as far as possible.
        SpreadByPcpus = "SpreadByPCPUs",
    }
}

words! {
    /// In which order NUMA nodes are filled.
    pub open enum NumaAllocateStrategy {
        /// The fullest first.
        MostAllocated = "MostAllocated",
        /// The emptiest first.
        LeastAllocated = "LeastAllocated",
        /// All evenly.
        DistributeEvenly = "DistributeEvenly",
    }
}

words! {
    /// How the resources of one pod are kept together.
    pub open enum NumaTopologyPolicy {
        /// Not at all.
        None = "",
        /// On as few NUMA nodes as possible.
        BestEffort = "BestEffort",
        /// On as few NUMA nodes as possible, or not on this node.
        Restricted = "Restricted",
        /// On one NUMA node, or not on this node.
        SingleNumaNode = "SingleNUMANode",
    }
}

words! {
    /// Whether GPUs are given out only in partitions.
    pub open enum GpuPartitionPolicy {
        /// Only in partitions.
        Honor = "Honor",
        /// In partitions as far as possible.
        Prefer = "Prefer",
    }
}

impl GpuPartitionPolicy {
    /// The policy of a node; whatever is not `Honor` prefers.
    pub fn of(labels: &Labels) -> Self {
        match labels.get(GPU_PARTITION_POLICY.name()).map(String::as_str) {
            Some("Honor") => Self::Honor,
            _ => Self::Prefer,
        }
    }
}

json_texts!(
    CpuBasicInfo,
    NodeReservation,
    SystemQosResource,
    OriginExtendedAllocatable,
    ThirdPartyAllocations,
    UsageThresholds,
);
word_texts!(NodeCpuBindPolicy, NumaAllocateStrategy, NumaTopologyPolicy, GpuPartitionPolicy);

#[cfg(test)]
mod tests {
    use proptest::{collection::btree_map, prelude::*};

    use super::*;
    use crate::protocol::laws::{keeps_values, read, reads_any_text, written};

    #[test]
    fn a_normalization_ratio_that_would_be_written_as_nothing_is_refused() {
        for (text, rewritten) in [
            ("0.005", Ok("0.01")),
            ("1.2", Ok("1.20")),
            (".001", Err("0.001")),
            ("0.00499", Err("0.00499")),
            ("0", Err("0")),
        ] {
            let ratio = NormalizationRatio::read(text).map(|ratio| ratio.write());
            let expected =
                rewritten.map(str::to_owned).map_err(|ratio| format!("illegal cpu normalization ratio: {ratio}"));
            assert_eq!(ratio, expected, "{text}");
        }
    }

    #[test]
    fn every_key_reads_any_text() {
        reads_any_text(&NODE_CPU_RECLAIM_RATIO);
        reads_any_text(&NODE_MEMORY_RECLAIM_RATIO);
        reads_any_text(&NODE_MID_STATIC_CPU_RESERVED_RATIO);
        reads_any_text(&NODE_MID_STATIC_MEMORY_RESERVED_RATIO);
        reads_any_text(&NODE_NETWORK_BANDWIDTH);
        reads_any_text(&CPU_NORMALIZATION_ENABLED);
        reads_any_text(&CPU_BASIC_INFO);
        reads_any_text(&RAW_ALLOCATABLE);
        reads_any_text(&NODE_RESERVATION);
        reads_any_text(&ENABLE_NUMA_RESERVATION);
        reads_any_text(&SYSTEM_QOS_RESOURCE);
        reads_any_text(&ORIGIN_EXTENDED_ALLOCATABLE);
        reads_any_text(&THIRD_PARTY_ALLOCATIONS);
        reads_any_text(&USAGE_THRESHOLDS);
        reads_any_text(&CPU_BIND_POLICY);
        reads_any_text(&NUMA_ALLOCATE_STRATEGY);
        reads_any_text(&NUMA_TOPOLOGY_POLICY);
        reads_any_text(&GPU_PARTITION_POLICY);
        reads_any_text(&GPU_VENDOR);
        reads_any_text(&GPU_MODEL);
        reads_any_text(&GPU_DRIVER_VERSION);
        reads_any_text(&HAMI_VGPU_NODE);
    }

    #[test]
    fn values_survive() {
        let hundredths = (100..500_i32).prop_map(|hundredths| f64::from(hundredths) / 100.0);
        keeps_values(&CPU_NORMALIZATION_RATIO, hundredths.clone().prop_map(NormalizationRatio));
        let ratios = btree_map("[a-z./\"<]{1,8}", hundredths, 0..4).prop_map(AmplificationRatios);
        keeps_values(&RESOURCE_AMPLIFICATION_RATIO, ratios);
        keeps_values(&NODE_CPU_RECLAIM_RATIO, (0.0..10.0).prop_map(Fraction));
        let amounts = btree_map("[a-z./]{1,8}", any::<i64>(), 0..4);
        let amounts = amounts.prop_map(|amounts| {
            amounts.into_iter().map(|(name, milli)| (name, Quantity::cpu_milli(milli))).collect::<ResourceList>()
        });
        keeps_values(&RAW_ALLOCATABLE, amounts);
    }

    #[test]
    fn normalization_ratios_have_two_decimals() {
        for (ratio, text) in [(1.2, "1.20"), (1.125, "1.12")] {
            assert_eq!(written(&CPU_NORMALIZATION_RATIO, &NormalizationRatio(ratio)), text);
        }
        assert_eq!(read(&CPU_NORMALIZATION_RATIO, "0"), Err("illegal cpu normalization ratio: 0".to_owned()));
        assert_eq!(read(&CPU_NORMALIZATION_RATIO, "-1.5"), Err("illegal cpu normalization ratio: -1.5".to_owned()));
        let ratio = |ratio| NormalizationRatio::new(ratio).unwrap();
        assert!(!ratio(1.2).is_different(ratio(1.205)));
        assert!(ratio(1.2).is_different(ratio(1.22)));
        for (old, new, is_different) in
            [(1.0, 1.01, false), (1.01, 1.0, false), (1.1, 1.11, false), (1.2, 1.21, false), (2.01, 2.02, true)]
        {
            assert_eq!(ratio(old).is_different(ratio(new)), is_different, "{old} {new}");
        }
    }

    #[test]
    fn amplification_ratios_are_sorted_and_have_two_decimals() {
        let ratios = AmplificationRatios(BTreeMap::from([("memory".to_owned(), 2.1), ("cpu".to_owned(), 1.222)]));
        assert_eq!(written(&RESOURCE_AMPLIFICATION_RATIO, &ratios), r#"{"cpu":1.22,"memory":2.10}"#);
        assert_eq!(
            read(&RESOURCE_AMPLIFICATION_RATIO, r#"{"cpu":"1.2"}"#),
            Err("json: cannot unmarshal string into Go value of type extension.Ratio".to_owned())
        );
        assert_eq!(
            read(&RESOURCE_AMPLIFICATION_RATIO, "[]"),
            Err("json: cannot unmarshal array into Go value of type map[v1.ResourceName]extension.Ratio".to_owned())
        );
        assert_eq!(read(&RESOURCE_AMPLIFICATION_RATIO, ""), Err("unexpected end of JSON input".to_owned()));
    }

    #[test]
    fn amounts_are_amplified_upwards() {
        let amplified = |resource: &str, amount: &str, ratio| {
            AmplificationRatios::amplify(resource, &amount.parse().unwrap(), ratio).to_string()
        };
        assert_eq!(amplified("cpu", "1001m", 1.5), "1502m");
        assert_eq!(amplified("memory", "4Gi", 1.5), "6Gi");
        assert_eq!(amplified("pods", "3", 1.5), "5");
        assert_eq!(amplified("cpu", "4", 1.0), "4");
        assert_eq!(amplified("cpu", "4", 0.5), "4");
    }

    #[test]
    fn reserved_cpus_are_counted_upwards() {
        let reservation = |json: &str| read(&NODE_RESERVATION, json).unwrap();
        assert_eq!(reservation(r#"{"resources":{"cpu":"2.5"}}"#).cpu_count(), 3);
        assert_eq!(reservation(r#"{"resources":{"cpu":"-2"}}"#).cpu_count(), 0);
        let with_cpus = reservation(r#"{"resources":{"cpu":"2"},"reservedCPUs":"0-1"}"#);
        assert_eq!((with_cpus.cpu_count(), with_cpus.cpus().unwrap().len()), (0, 2));
        assert_eq!(reservation(r#"{"reservedCPUs":"+1,3-2"}"#).cpus().unwrap().len(), 1);
        assert!(reservation(r#"{"reservedCPUs":"0-1, 3"}"#).cpus().is_err());
        assert!(reservation(r#"{"reservedCPUs":"x"}"#).cpus().unwrap_err().to_string().contains("reservedCPUs"));
    }

    #[test]
    fn shares_are_cut_to_percents() {
        for (text, percent) in [("0.29", 28), ("0.57", 56), ("0.58", 57), ("1.1", 110)] {
            assert_eq!(read(&NODE_CPU_RECLAIM_RATIO, text).unwrap().percent(), percent, "{text}");
        }
        assert_eq!(read(&NODE_CPU_RECLAIM_RATIO, "-0.1"), Err("not a number from 0".to_owned()));
    }

    #[test]
    fn cpus_of_the_system_are_exclusive_unless_said_otherwise() {
        assert!(read(&SYSTEM_QOS_RESOURCE, r#"{"cpuset":"0-3"}"#).unwrap().is_exclusive());
        assert!(!read(&SYSTEM_QOS_RESOURCE, r#"{"cpusetExclusive":false}"#).unwrap().is_exclusive());
    }
}
