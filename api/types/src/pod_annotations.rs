//! What pods say about how they run, are scheduled and are evicted.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions;
use koord_resource::{Quantity, Time};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::{
    node_slo::{BlkIoQosCfg, CpuBurstStrategy, CpuQosCfg, MemoryQosCfg, NetworkQosCfg},
    protocol::{Flag, Key, Labels, ProtocolError, Text, json_texts, read_json, word_texts, write_json},
    word::{self, words},
};

/// Label: the webhook also changes the pod when it is updated.
pub const MUTATING_UPDATE: Flag = Flag::new("pod.koordinator.sh/mutating-update");
/// Label: the webhook makes only the basic checks.
pub const SKIP_ENHANCED_VALIDATION: Flag = Flag::new("pod.koordinator.sh/skip-enhanced-validation");
/// Label: the pod may be evicted when its node is short of something.
pub const EVICTION_ENABLED: Flag = Flag::new("koordinator.sh/eviction-enabled");
/// Label: pods of one group may share a core.
pub const CORE_SCHED_GROUP_ID: Key<String> = Key::new("koordinator.sh/core-sched-group-id", "a text");
/// Label: who may share a core with the pod.
pub const CORE_SCHED_POLICY: Key<CoreSchedPolicy> =
    Key::new("koordinator.sh/core-sched-policy", "none, exclusive, or nothing for the default");
/// Label: the scheduler of the pod, in place of `spec.schedulerName`.
pub const SCHEDULER_NAME: Key<String> = Key::new("scheduling.koordinator.sh/scheduler-name", "a scheduler's name");
/// Label: whether others leave for the pod.
pub const PREEMPTION_POLICY: Key<PreemptionPolicy> =
    Key::new("scheduling.koordinator.sh/preemption-policy", "Never or PreemptLowerPriority");
/// Label: the pod does not leave for a reservation.
pub const DISABLE_PREEMPTIBLE: Flag = Flag::new("scheduling.koordinator.sh/disable-preemptible");
/// Label: the ScheduleExplanation that asks about the pod.
pub const QUESTIONED_OBJECT_KEY: Key<String> = Key::new("scheduling.koordinator.sh/questioned-object-key", "a text");
/// Label: the layer of the network that a ScheduleExplanation asks about.
pub const TOPOLOGY_KEY_TO_EXPLAIN: Key<String> =
    Key::new("scheduling.koordinator.sh/topology-key-to-explain", "a text");

/// Annotation: how the pod's network is shared.
pub const NETWORK_QOS: Key<PodNetworkQos> =
    Key::new("koordinator.sh/networkQOS", r#"a JSON object such as {"ingressLimit":"50M"}"#);
/// Annotation: when the pod's containers may use more CPU than their limit.
pub const CPU_BURST: Key<CpuBurstStrategy> =
    Key::new("koordinator.sh/cpuBurst", r#"a JSON object such as {"policy":"auto"}"#);
/// Annotation: how the pod's CPU is shared.
pub const CPU_QOS: Key<CpuQosCfg> =
    Key::new("koordinator.sh/cpuQOS", r#"a JSON object such as {"groupIdentity":2}, from -1 to 2"#);
/// Annotation: how the pod's memory is shared.
pub const MEMORY_QOS: Key<PodMemoryQos> =
    Key::new("koordinator.sh/memoryQOS", r#"a JSON object such as {"policy":"auto"}"#);
/// Annotation: how disks are shared with the pod.
pub const BLKIO_QOS: Key<BlkIoQosCfg> =
    Key::new("koordinator.sh/blkioQOS", r#"a JSON object such as {"blocks":[{"name":"/dev/vda"}]}"#);
/// Annotation: the ways by which the pod may be evicted.
pub const EVICTION_POLICY: Key<Vec<String>> =
    Key::new("koordinator.sh/eviction-policy", r#"a JSON list of texts such as ["Eviction"]"#);
/// Annotation: which pods are evicted first; lower is earlier, absent is 0.
pub const EVICTION_PRIORITY: Key<EvictionPriority> =
    Key::new("koordinator.sh/eviction-priority", "an integer of 32 bits");
/// Annotation: which containers are killed first when memory runs out; higher is earlier.
pub const OOM_SCORE_ADJ: Key<OomScoreAdj> = Key::new("koordinator.sh/oom-score-adj", "an integer from -1000 to 1000");
/// Annotation: the same, by container.
pub const OOM_SCORE_ADJ_SPEC: Key<BTreeMap<String, i64>> =
    Key::new("koordinator.sh/oom-score-adj-spec", r#"a JSON object such as {"main":-100}"#);
/// Annotation: resources under other names.
pub const REPLACE_RESOURCES: Key<ResourceReplacements> =
    Key::new("pod.koordinator.sh/replace-resources", "pairs such as cpu:kubernetes.io/batch-cpu,memory:");
/// Annotation: the extended resources of the pod's containers, for koordlet.
pub const EXTENDED_RESOURCE_SPEC: Key<ExtendedResourceSpec> = Key::new(
    "node.koordinator.sh/extended-resource-spec",
    r#"a JSON object such as {"containers":{"main":{"requests":{"kubernetes.io/batch-cpu":"1k"}}}}"#,
);
/// Annotation: the pod's part of caches and memory bandwidth.
pub const RESCTRL: Key<ResctrlSpec> =
    Key::new("node.koordinator.sh/resctrl", r#"a JSON object such as {"llc":{"schemata":{"range":[0,50]}}}"#);
/// Annotation: how much it costs to evict the pod; 2147483647 is never.
pub const EVICTION_COST: Key<EvictionCost> =
    Key::new("scheduling.koordinator.sh/eviction-cost", "an integer of 32 bits without leading zeros or +");
/// Annotation: asks the pod's owner to move it.
pub const SOFT_EVICTION: Key<SoftEvictionSpec> =
    Key::new("scheduling.koordinator.sh/soft-eviction", r#"a JSON object such as {"reason":"…"}"#);
/// Annotation: how much of its requests the pod is expected to use, in percent by resource.
pub const LOAD_ESTIMATED_SCALING_FACTORS: Key<BTreeMap<String, i64>> =
    Key::new("scheduling.koordinator.sh/load-estimated-scaling-factors", r#"a JSON object such as {"cpu":85}"#);
/// Annotation: for how many seconds after it got a node the pod's use is estimated.
pub const LOAD_ESTIMATED_SECONDS_AFTER_POD_SCHEDULED: Key<i64> =
    Key::new("scheduling.koordinator.sh/load-estimated-seconds-after-pod-scheduled", "a number of seconds");
/// Annotation: for how many seconds after it was initialised the pod's use is estimated.
pub const LOAD_ESTIMATED_SECONDS_AFTER_INITIALIZED: Key<i64> =
    Key::new("scheduling.koordinator.sh/load-estimated-seconds-after-initialized", "a number of seconds");
/// Annotation: the place in the network where the pod may run.
pub const NETWORK_TOPOLOGY_SELECTOR: Key<String> =
    Key::new("scheduling.koordinator.sh/network-topology-selector", "a text");

/// Label of a ClusterColocationProfile: its matching pods are changed also after they were made.
pub const CONTROLLER_MANAGED: Flag = Flag::new("config.koordinator.sh/controller-managed");
/// Annotation of a ClusterColocationProfile: whatever it says, resources of pods are not changed.
pub const SKIP_UPDATE_RESOURCES: &str = "config.koordinator.sh/skip-update-resources";

words! {
    /// Who may share a core with a pod.
    pub open enum CoreSchedPolicy {
        /// Pods of its group.
        Default = "",
        /// Everybody.
        None = "none",
        /// Nobody.
        Exclusive = "exclusive",
    }
}

impl CoreSchedPolicy {
    /// The policy of a pod; one that is not known is the default.
    pub fn of(labels: &Labels) -> Self {
        match labels.get(CORE_SCHED_POLICY.name()).map(String::as_str) {
            Some("none") => Self::None,
            Some("exclusive") => Self::Exclusive,
            _ => Self::Default,
        }
    }
}

words! {
    /// Whether others leave for a pod.
    pub open enum PreemptionPolicy {
        /// Nobody does.
        Never = "Never",
        /// Those of lower priority do.
        PreemptLowerPriority = "PreemptLowerPriority",
    }
}

/// How a pod's network is shared.
pub type PodNetworkQos = NetworkQosCfg;

/// How a pod's memory is shared: a policy, and the fields of a class for `policy: default` or beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMemoryQos {
    /// Whether this is done.
    #[serde(skip_serializing_if = "word::is_unset")]
    pub policy: Option<PodMemoryQosPolicy>,
    /// Memory that is never reclaimed, in percent of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_limit_percent: Option<i64>,
    /// Memory that is reclaimed only when nothing else is left, in percent of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_limit_percent: Option<i64>,
    /// Use, in percent of the limit, above which allocations are slowed down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttling_percent: Option<i64>,
    /// Use, in percent of the limit, above which memory is reclaimed in the background.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wmark_ratio: Option<i64>,
    /// How much is reclaimed at a time, in thousandths of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wmark_scale_permill: Option<i64>,
    /// How much later or earlier the node's reclaim reaches the pod, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wmark_min_adj: Option<i64>,
    /// 1 to order the killing of containers by `priority`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_enable: Option<i64>,
    /// Priority when memory runs out, from 0 (killed first) to 12.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// 1 to kill all processes of a container together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oom_kill_group: Option<i64>,
}

impl PodMemoryQos {
    /// The fields that go before those of the pod's class.
    pub fn fields(&self) -> MemoryQosCfg {
        MemoryQosCfg {
            min_limit_percent: self.min_limit_percent,
            low_limit_percent: self.low_limit_percent,
            throttling_percent: self.throttling_percent,
            wmark_ratio: self.wmark_ratio,
            wmark_scale_permill: self.wmark_scale_permill,
            wmark_min_adj: self.wmark_min_adj,
            priority_enable: self.priority_enable,
            priority: self.priority,
            oom_kill_group: self.oom_kill_group,
            ..MemoryQosCfg::default()
        }
    }
}

words! {
    /// Whether a pod's memory is shared by its class.
    pub open enum PodMemoryQosPolicy {
        /// As the node is configured.
        Default = "default",
        /// Not at all.
        None = "none",
        /// By the class, and by the recommended fields where the class says nothing.
        Auto = "auto",
    }
}

impl Text for CpuQosCfg {
    fn read(text: &str) -> Result<Self, String> {
        let cpu: Self = read_json(text)?;
        match cpu.group_identity {
            Some(identity) if !(-1..=2).contains(&identity) => Err(format!("bad group identity value: {identity}")),
            _ => Ok(cpu),
        }
    }

    fn write(&self) -> String {
        write_json(self)
    }
}

/// Which pods are evicted first; lower is earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvictionPriority(pub i32);

impl Text for EvictionPriority {
    fn read(text: &str) -> Result<Self, String> {
        let invalid = |error| format!("invalid value {text:?}, err: {error}");
        <i32 as Text>::read(text).map(Self).map_err(invalid)
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

/// Which containers are killed first when memory runs out; higher is earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OomScoreAdj(i64);

impl OomScoreAdj {
    /// The score; none outside -1000..=1000.
    pub fn new(score: i64) -> Option<Self> {
        (-1000..=1000).contains(&score).then_some(Self(score))
    }

    /// The score.
    pub fn value(self) -> i64 {
        self.0
    }
}

impl Text for OomScoreAdj {
    fn read(text: &str) -> Result<Self, String> {
        let score = <i64 as Text>::read(text)?;
        Self::new(score).ok_or_else(|| format!("{score} is not from -1000 to 1000"))
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

/// How much it costs to evict a pod. Only one spelling per number is understood: no `+`, no leading zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvictionCost(pub i32);

impl EvictionCost {
    /// Never evicted.
    pub const NEVER: Self = Self(i32::MAX);
}

impl Text for EvictionCost {
    fn read(text: &str) -> Result<Self, String> {
        let invalid = || format!("invalid value {text:?}");
        match text.bytes().next() {
            Some(b'-' | b'1'..=b'9') => text.parse().map(Self).map_err(|_| invalid()),
            Some(b'0') if text == "0" => Ok(Self(0)),
            _ => Err(invalid()),
        }
    }

    fn write(&self) -> String {
        self.0.to_string()
    }
}

/// How much it costs to evict a pod; 0 where it does not say.
pub fn eviction_cost(annotations: &Labels) -> Result<EvictionCost, ProtocolError> {
    Ok(EVICTION_COST.get(annotations)?.unwrap_or_default())
}

/// For how many seconds a pod's use is estimated; -1 where it says nothing, or nothing that makes sense.
pub fn estimated_seconds(key: &Key<i64>, annotations: &Labels) -> i64 {
    key.get(annotations).ok().flatten().unwrap_or(-1)
}

/// Resources under other names: pairs of an old and a new name, an empty new name taking the resource away. No old name
/// stands twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceReplacements(pub Vec<(String, String)>);

impl Text for ResourceReplacements {
    /// Parts that are no pair are left out. Of several new names the last one counts, unless the resource is also taken
    /// away.
    fn read(text: &str) -> Result<Self, String> {
        let pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
        let pairs = pairs.filter(|(_, new)| !new.contains(':')).map(|(old, new)| (old.trim(), new.trim()));
        let mut replacements: Vec<(String, String)> = Vec::new();
        let mut places = BTreeMap::new();
        for (old, new) in pairs {
            let place = *places.entry(old).or_insert(replacements.len());
            match replacements.get_mut(place) {
                Some((_, known)) if known.is_empty() => {}
                Some((_, known)) => new.clone_into(known),
                None => replacements.push((old.to_owned(), new.to_owned())),
            }
        }
        Ok(Self(replacements))
    }

    fn write(&self) -> String {
        let pairs = self.0.iter().map(|(old, new)| format!("{old}:{new}"));
        pairs.collect::<Vec<_>>().join(",")
    }
}

/// The extended resources of a pod's containers. What is absent or `null` differs from what is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExtendedResourceSpec {
    /// By name of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<BTreeMap<String, ExtendedResourceContainerSpec>>,
}

/// The extended resources of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExtendedResourceContainerSpec {
    /// The most that it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<WrittenAmounts>,
    /// What is set aside for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<WrittenAmounts>,
}

/// Amounts by resource, in the form in which they are written; none for `null`.
pub type WrittenAmounts = BTreeMap<String, Option<WrittenQuantity>>;

/// A quantity in the form in which it is written, such as `1000` or `1k`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WrittenQuantity(String);

impl WrittenQuantity {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for WrittenQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
        Quantity::deserialize(value).map(|_| Self(text)).map_err(D::Error::custom)
    }
}

/// A pod's part of caches and memory bandwidth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResctrlSpec {
    /// Of the last-level cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llc: Option<ResctrlPart>,
    /// Of the memory bandwidth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mb: Option<ResctrlPart>,
}

/// A part of something, in general and for single caches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResctrlPart {
    /// In general.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schemata: Option<ResctrlSchemata>,
    /// For single caches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schemata_per_cache: Vec<ResctrlCacheSchemata>,
}

/// A part, in percent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResctrlSchemata {
    /// This much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<i64>,
    /// From where to where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub range: Vec<i64>,
}

/// A part of one cache, in percent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResctrlCacheSchemata {
    /// Number of the cache.
    #[serde(rename = "cacheID")]
    pub cache_id: i64,
    /// This much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<i64>,
    /// From where to where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub range: Vec<i64>,
}

/// A request to a pod's owner to move it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SoftEvictionSpec {
    /// When it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Time>,
    /// How the pod is to be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_options: Option<DeleteOptions>,
    /// Who made it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub initiator: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

json_texts!(
    NetworkQosCfg,
    CpuBurstStrategy,
    PodMemoryQos,
    BlkIoQosCfg,
    ExtendedResourceSpec,
    ResctrlSpec,
    SoftEvictionSpec,
);
word_texts!(CoreSchedPolicy, PreemptionPolicy);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::laws::{keeps_values, read, reads_any_text, written};

    #[test]
    fn every_key_reads_any_text() {
        reads_any_text(&CORE_SCHED_GROUP_ID);
        reads_any_text(&CORE_SCHED_POLICY);
        reads_any_text(&SCHEDULER_NAME);
        reads_any_text(&PREEMPTION_POLICY);
        reads_any_text(&QUESTIONED_OBJECT_KEY);
        reads_any_text(&TOPOLOGY_KEY_TO_EXPLAIN);
        reads_any_text(&NETWORK_QOS);
        reads_any_text(&CPU_BURST);
        reads_any_text(&CPU_QOS);
        reads_any_text(&MEMORY_QOS);
        reads_any_text(&BLKIO_QOS);
        reads_any_text(&EVICTION_POLICY);
        reads_any_text(&EVICTION_PRIORITY);
        reads_any_text(&OOM_SCORE_ADJ);
        reads_any_text(&OOM_SCORE_ADJ_SPEC);
        reads_any_text(&REPLACE_RESOURCES);
        reads_any_text(&EXTENDED_RESOURCE_SPEC);
        reads_any_text(&RESCTRL);
        reads_any_text(&EVICTION_COST);
        reads_any_text(&SOFT_EVICTION);
        reads_any_text(&LOAD_ESTIMATED_SCALING_FACTORS);
        reads_any_text(&LOAD_ESTIMATED_SECONDS_AFTER_POD_SCHEDULED);
        reads_any_text(&LOAD_ESTIMATED_SECONDS_AFTER_INITIALIZED);
        reads_any_text(&NETWORK_TOPOLOGY_SELECTOR);
    }

    #[test]
    fn values_survive() {
        keeps_values(&EVICTION_COST, any::<i32>().prop_map(EvictionCost));
        keeps_values(&EVICTION_PRIORITY, any::<i32>().prop_map(EvictionPriority));
        keeps_values(&OOM_SCORE_ADJ, (-1000..=1000_i64).prop_map(OomScoreAdj));
        let pairs = proptest::collection::btree_map("[a-z./]{1,8}", "[a-z./]{0,8}", 1..4);
        keeps_values(&REPLACE_RESOURCES, pairs.prop_map(|pairs| ResourceReplacements(pairs.into_iter().collect())));
    }

    #[test]
    fn group_identities_are_from_minus_one_to_two() {
        assert_eq!(read(&CPU_QOS, r#"{"groupIdentity":2}"#).unwrap().group_identity, Some(2));
        for identity in [-2, 3] {
            let text = format!(r#"{{"groupIdentity":{identity}}}"#);
            assert_eq!(read(&CPU_QOS, &text), Err(format!("bad group identity value: {identity}")));
        }
    }

    #[test]
    fn eviction_costs_have_one_spelling() {
        for (text, cost) in [("0", 0), ("-5", -5), ("2147483647", i32::MAX), ("10", 10)] {
            assert_eq!(read(&EVICTION_COST, text), Ok(EvictionCost(cost)));
        }
        for text in ["+10", "008", "00", "", "a", "2147483648", "-", "1.5"] {
            assert_eq!(read(&EVICTION_COST, text), Err(format!("invalid value {text:?}")));
        }
        assert_eq!(eviction_cost(&Labels::new()), Ok(EvictionCost(0)));
    }

    #[test]
    fn an_eviction_priority_that_is_no_number_says_why() {
        let error = "invalid value \"a\", err: strconv.ParseInt: parsing \"a\": invalid syntax".to_owned();
        assert_eq!(read(&EVICTION_PRIORITY, "a"), Err(error));
    }

    #[test]
    fn replacements_are_pairs() {
        let pairs = read(&REPLACE_RESOURCES, " a : b ,c:d,e:,f,g:h:i").unwrap();
        let expected = [("a", "b"), ("c", "d"), ("e", "")].map(|(old, new)| (old.to_owned(), new.to_owned()));
        assert_eq!(pairs.0, expected);
    }

    #[test]
    fn of_several_new_names_the_last_one_counts_unless_the_resource_is_taken_away() {
        for (text, expected) in [
            ("a:b,c:d,a:e", "a:e,c:d"),
            ("a:b, a : c ,a:d", "a:d"),
            ("a:b,a:", "a:"),
            ("a:,c:d,a:b", "a:,c:d"),
            ("a:b,a:c:d", "a:b"),
        ] {
            assert_eq!(written(&REPLACE_RESOURCES, &read(&REPLACE_RESOURCES, text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn caches_are_divided_in_general_and_one_by_one() {
        let text = r#"{"llc":{"schemata":{"range":[0,50]},"schemataPerCache":[{"cacheID":0,"percent":30}]},"mb":{"schemata":{"percent":20}}}"#;
        assert_eq!(written(&RESCTRL, &read(&RESCTRL, text).unwrap()), text);
    }

    #[test]
    fn unknown_policies_are_the_default() {
        let policy =
            |text: &str| CoreSchedPolicy::of(&Labels::from([(CORE_SCHED_POLICY.name().to_owned(), text.to_owned())]));
        assert_eq!(
            ["", "none", "exclusive", "x"].map(policy),
            [CoreSchedPolicy::Default, CoreSchedPolicy::None, CoreSchedPolicy::Exclusive, CoreSchedPolicy::Default]
        );
        assert_eq!(estimated_seconds(&LOAD_ESTIMATED_SECONDS_AFTER_INITIALIZED, &Labels::new()), -1);
    }
}
