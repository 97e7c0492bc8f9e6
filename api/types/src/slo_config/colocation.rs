//! `colocation-config`: what best-effort pods may use of a node, and what koordlet measures for it.

use koord_resource::{
    Duration, Schema, Validate,
    field::{Errors, FieldError, Mistake, Path},
    go_json::{DecodeError, Inline},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    COLOCATION_CONFIG, decode, defaults,
    strategy::{NodeProfile, NodeStrategy, laid_over},
};
use crate::{
    node_annotations::{
        COLOCATION_STRATEGY, CPU_RECLAIM_RATIO, MEMORY_RECLAIM_RATIO, MID_STATIC_CPU_RESERVED_RATIO,
        MID_STATIC_MEMORY_RESERVED_RATIO,
    },
    node_metric::NodeMemoryCollectPolicy,
    protocol::{Key, Labels, json_texts},
    word::words,
};

/// Annotation of a node: its colocation strategy.
pub const NODE_COLOCATION_STRATEGY: Key<ColocationStrategy> =
    Key::new(COLOCATION_STRATEGY, r#"a JSON object such as {"enable":true}"#);

json_texts!(ColocationStrategy);

/// The colocation strategy of a node. Absent fields are inherited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate)]
#[serde(rename_all = "camelCase", default)]
pub struct ColocationStrategy {
    /// Whether unused resources are offered to batch and mid pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// The window of the average usage, in seconds.
    #[koord(minimum = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_aggregate_duration_seconds: Option<i64>,
    /// The interval between two usage reports, in seconds.
    #[koord(minimum = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_report_interval_seconds: Option<i64>,
    /// Additional windows over which usage is aggregated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_aggregate_policy: Option<MetricAggregatePolicy>,
    /// Whether memory usage includes the page cache. An empty string makes the whole strategy invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric_memory_collect_policy: Option<NodeMemoryCollectPolicy>,
    /// CPU usage of prod pods and the system, in percent of the node, at which no batch CPU is left.
    #[koord(minimum = 0)]
    #[serde(rename = "cpuReclaimThresholdPercent", skip_serializing_if = "Option::is_none")]
    pub cpu_reclaim_threshold_percent: Option<i64>,
    /// How the CPU consumption of prod pods is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_calculate_policy: Option<CalculatePolicy>,
    /// Memory usage of prod pods and the system, in percent of the node, at which no batch memory is left.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_reclaim_threshold_percent: Option<i64>,
    /// How the memory consumption of prod pods is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_calculate_policy: Option<CalculatePolicy>,
    /// After how many minutes without a usage report the node is degraded: no batch and mid resources.
    #[koord(minimum = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degrade_time_minutes: Option<i64>,
    /// After how many seconds amounts on a node are written again although they hardly changed.
    #[koord(minimum = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_time_threshold_seconds: Option<i64>,
    /// Relative change of an amount, as a fraction, below which the node is not updated.
    #[koord(minimum = 0, exclusive_minimum, admission(maximum = 1))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_diff_threshold: Option<f64>,
    /// `static` to reserve fixed shares of the node for mid pods. Defaults to the predicted unused resources of prod pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid_reclaim_mode: Option<String>,
    /// Maximum mid CPU, in percent of the node.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(rename = "midCPUThresholdPercent", skip_serializing_if = "Option::is_none")]
    pub mid_cpu_threshold_percent: Option<i64>,
    /// Maximum mid memory, in percent of the node.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid_memory_threshold_percent: Option<i64>,
    /// The share of unrequested resources offered as mid resources, in percent.
    #[koord(minimum = 0, maximum = 100)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid_unallocated_percent: Option<i64>,
    /// Mid CPU in static mode, in percent of the node.
    #[koord(minimum = 0, admission(maximum = 100))]
    #[serde(rename = "midStaticCPUReservedPercent", skip_serializing_if = "Option::is_none")]
    pub mid_static_cpu_reserved_percent: Option<i64>,
    /// Mid memory in static mode, in percent of the node.
    #[koord(minimum = 0, admission(maximum = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mid_static_memory_reserved_percent: Option<i64>,
    /// Maximum batch CPU, in percent of the node; absent sets no limit.
    #[koord(minimum = 0)]
    #[serde(rename = "batchCPUThresholdPercent", skip_serializing_if = "Option::is_none")]
    pub batch_cpu_threshold_percent: Option<i64>,
    /// Maximum batch memory, in percent of the node; absent sets no limit.
    #[koord(minimum = 0)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_memory_threshold_percent: Option<i64>,
    /// Third-party settings.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extensions: Map<String, Value>,
}

/// Windows over which usage is aggregated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Schema, Validate)]
#[serde(default)]
pub struct MetricAggregatePolicy {
    /// Lengths of the windows, as durations such as `5m0s`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub durations: Vec<Duration>,
}

words! {
    /// How the consumption of prod pods is computed. Unknown values count as `usage`.
    pub open enum CalculatePolicy {
        /// By their usage.
        Usage = "usage",
        /// By their requests.
        Request = "request",
        /// By the greater of both.
        MaxUsageRequest = "maxUsageRequest",
    }
}

impl ColocationStrategy {
    /// Whether the manager accepts it. (The webhook is stricter: [`super::limits`].)
    pub fn is_valid(&self) -> bool {
        self.out_of_range().is_none()
    }

    /// The first value that the manager does not accept.
    pub fn out_of_range(&self) -> Option<OutOfRange> {
        let mut errors = Errors::new();
        self.validate_schema(&Path::root(""), &mut errors);
        // A word that this version does not know is accepted, an empty one is not.
        let unset = self.metric_memory_collect_policy.as_ref().is_some_and(|policy| policy.as_str().is_empty());
        let error = errors.iter().find(|error| error.mistake == Mistake::Invalid || unset)?;
        let FieldError { field, value, detail, .. } = error.clone();
        let expected = detail.strip_prefix(&format!("{field} in body should ")).unwrap_or("be set").to_owned();
        Some(OutOfRange { field, value, expected })
    }

    /// Whether colocation is on.
    pub fn is_enabled(&self) -> bool {
        self.enable.unwrap_or(false)
    }

    /// What an annotation of the node says goes before the configuration, and labels go before the annotation.
    /// Texts that make no sense are ignored.
    fn apply_node(&mut self, labels: &Labels, annotations: &Labels) {
        let annotated = annotations.get(COLOCATION_STRATEGY).map(|text| decode::<ColocationStrategy>(text));
        if let Some(Ok(annotated)) = annotated {
            *self = laid_over(self, &annotated);
        }
        for (label, field) in OVERRIDING_LABELS {
            if let Some(percent) = labelled(label, labels) {
                *field.of(self) = Some(percent);
            }
        }
    }
}

/// A percentage that a label of the node sets, as a ratio.
#[derive(Clone, Copy)]
enum LabelledPercent {
    CpuReclaim,
    MemoryReclaim,
    MidStaticCpu,
    MidStaticMemory,
}

const OVERRIDING_LABELS: [(&str, LabelledPercent); 4] = [
    (CPU_RECLAIM_RATIO, LabelledPercent::CpuReclaim),
    (MEMORY_RECLAIM_RATIO, LabelledPercent::MemoryReclaim),
    (MID_STATIC_CPU_RESERVED_RATIO, LabelledPercent::MidStaticCpu),
    (MID_STATIC_MEMORY_RESERVED_RATIO, LabelledPercent::MidStaticMemory),
];

impl LabelledPercent {
    fn of(self, strategy: &mut ColocationStrategy) -> &mut Option<i64> {
        match self {
            Self::CpuReclaim => &mut strategy.cpu_reclaim_threshold_percent,
            Self::MemoryReclaim => &mut strategy.memory_reclaim_threshold_percent,
            Self::MidStaticCpu => &mut strategy.mid_static_cpu_reserved_percent,
            Self::MidStaticMemory => &mut strategy.mid_static_memory_reserved_percent,
        }
    }

    /// The field's name in JSON.
    fn field(self) -> &'static str {
        match self {
            Self::CpuReclaim => "cpuReclaimThresholdPercent",
            Self::MemoryReclaim => "memoryReclaimThresholdPercent",
            Self::MidStaticCpu => "midStaticCPUReservedPercent",
            Self::MidStaticMemory => "midStaticMemoryReservedPercent",
        }
    }
}

fn labelled(label: &str, labels: &Labels) -> Option<i64> {
    labels.get(label).and_then(|text| ratio_percent(text))
}

/// The label of a node that sets this field there.
pub(super) fn overriding_label(field: &str, labels: &Labels) -> Option<&'static str> {
    let sets = |(label, percent): &(&'static str, LabelledPercent)| {
        percent.field() == field && labelled(label, labels).is_some()
    };
    OVERRIDING_LABELS.into_iter().find(sets).map(|(label, _)| label)
}

/// The percentage of a ratio in text form; none for what is negative or no number.
///
/// QUIRK: cut, not rounded, so that "0.29" gives 28 (spec/manager.md 6.1). QUIRK: what no percentage can say, such as
/// "NaN", is 0, as recorded (`noderesource/labels-nan`).
fn ratio_percent(text: &str) -> Option<i64> {
    let percent = crate::go_text::parse_float(text)? * 100.0;
    if percent < 0.0 {
        return None;
    }
    Some(if percent < i64::MAX as f64 { percent as i64 } else { 0 })
}

/// The key as it is written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ColocationSection {
    pub(super) node_configs: Vec<NodeStrategy<ColocationStrategy>>,
}

/// The key with everything filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct ColocationConfig {
    /// For nodes that nothing else is said about.
    pub cluster: ColocationStrategy,
    /// For some nodes, in the order of the configuration.
    pub nodes: Vec<NodeColocation>,
}

/// What holds on some nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeColocation {
    /// Which nodes.
    pub profile: NodeProfile,
    /// What holds there.
    pub strategy: ColocationStrategy,
    /// Why that is the strategy of the cluster.
    pub refused: Option<OutOfRange>,
}

/// A value that the manager does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {value} is out of range, it must {expected}")]
pub struct OutOfRange {
    /// Its field.
    pub field: String,
    /// The value.
    pub value: String,
    /// Which values are accepted, such as `be greater than 0`.
    pub expected: String,
}

/// Why the last good configuration stays in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColocationConfigError {
    /// The text cannot be decoded. The text of this error is that of the event that reports it.
    #[error("failed to unmarshal colocation config, err: {0}")]
    Decode(#[from] DecodeError),
    /// A value that holds on all nodes is out of its range.
    #[error("{COLOCATION_CONFIG}: {0}; the last good configuration stays in force")]
    OutOfRange(#[from] OutOfRange),
}

impl Default for ColocationConfig {
    fn default() -> Self {
        Self { cluster: defaults::colocation_strategy(), nodes: Vec::new() }
    }
}

impl ColocationConfig {
    /// Reads the key; an absent or empty one gives the defaults.
    pub fn parse(text: Option<&str>) -> Result<Self, ColocationConfigError> {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(Self::default()) };
        let section: Inline<ColocationSection, ColocationStrategy> = decode(text)?;
        let cluster = laid_over(&defaults::colocation_strategy(), &section.second);
        if let Some(wrong) = cluster.out_of_range() {
            return Err(wrong.into());
        }
        let nodes = section.first.node_configs.into_iter().map(|node| {
            let strategy = laid_over(&cluster, &node.second);
            let refused = strategy.out_of_range();
            let strategy = if refused.is_none() { strategy } else { cluster.clone() };
            NodeColocation { profile: node.first, strategy, refused }
        });
        Ok(Self { nodes: nodes.collect(), cluster })
    }

    /// What is said about some nodes and not taken.
    pub fn refusals(&self) -> Vec<String> {
        let refused = self.nodes.iter().enumerate().filter_map(|(index, node)| Some((index, node.refused.as_ref()?)));
        let messages = refused.map(|(index, wrong)| {
            format!("{COLOCATION_CONFIG}: nodeConfigs[{index}].{wrong}; what holds on all nodes holds there")
        });
        messages.collect()
    }

    /// What holds on a node.
    pub fn for_node(&self, labels: &Labels, annotations: &Labels) -> ColocationStrategy {
        let node = self.nodes.iter().find(|node| node.profile.selects(labels));
        let mut strategy = node.map_or(&self.cluster, |node| &node.strategy).clone();
        strategy.apply_node(labels, annotations);
        strategy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn config(text: &str) -> ColocationConfig {
        ColocationConfig::parse(Some(text)).unwrap()
    }

    #[test]
    fn labels_go_before_the_configuration() {
        let labels = map(&[
            (CPU_RECLAIM_RATIO, "0.7"),
            (MEMORY_RECLAIM_RATIO, "0.75"),
            (MID_STATIC_CPU_RESERVED_RATIO, "0.1"),
            (MID_STATIC_MEMORY_RESERVED_RATIO, "0.12"),
        ]);
        let strategy = config(r#"{"cpuReclaimThresholdPercent":65}"#).for_node(&labels, &map(&[]));
        assert_eq!(
            (
                strategy.cpu_reclaim_threshold_percent,
                strategy.memory_reclaim_threshold_percent,
                strategy.mid_static_cpu_reserved_percent,
                strategy.mid_static_memory_reserved_percent
            ),
            (Some(70), Some(75), Some(10), Some(12))
        );
    }

    #[test]
    fn the_annotation_reads_any_text() {
        crate::protocol::laws::reads_any_text(&NODE_COLOCATION_STRATEGY);
    }

    #[test]
    fn labels_that_make_no_sense_are_ignored() {
        let labels = map(&[(CPU_RECLAIM_RATIO, "-1"), (MEMORY_RECLAIM_RATIO, "invalidField")]);
        let strategy = config(r#"{"cpuReclaimThresholdPercent":65}"#).for_node(&labels, &map(&[]));
        assert_eq!(strategy.cpu_reclaim_threshold_percent, Some(65));
        assert_eq!(strategy.memory_reclaim_threshold_percent, Some(65));
    }

    #[test]
    fn a_label_sets_the_field_that_is_named_for_it() {
        for (label, percent) in OVERRIDING_LABELS {
            let labels = map(&[(label, "0.07")]);
            let strategy = config("{}").for_node(&labels, &map(&[]));
            assert_eq!(serde_json::to_value(strategy).unwrap()[percent.field()], 7, "{label}");
            assert_eq!(overriding_label(percent.field(), &labels), Some(label));
        }
    }

    #[test]
    fn ratios_are_cut() {
        for (text, percent) in [("0.29", 28), ("0.57", 56), ("0.58", 57), ("1.1", 110), ("1.0", 100), ("0", 0)] {
            assert_eq!(ratio_percent(text), Some(percent), "{text}");
        }
    }

    #[test]
    fn the_annotation_goes_before_the_configuration_and_labels_before_it() {
        let annotated = map(&[(COLOCATION_STRATEGY, r#"{"cpuReclaimThresholdPercent":100}"#)]);
        let base = config(r#"{"enable":true}"#);
        assert_eq!(base.for_node(&map(&[]), &annotated).cpu_reclaim_threshold_percent, Some(100));
        let labels = map(&[(CPU_RECLAIM_RATIO, "0.8")]);
        assert_eq!(base.for_node(&labels, &annotated).cpu_reclaim_threshold_percent, Some(80));
        let disabled = map(&[(COLOCATION_STRATEGY, r#"{"enable":false}"#)]);
        assert!(!base.for_node(&map(&[]), &disabled).is_enabled());
        let broken = map(&[(COLOCATION_STRATEGY, "invalidField")]);
        assert_eq!(base.for_node(&map(&[]), &broken), base.cluster);
    }

    #[test]
    fn validity_is_the_managers() {
        for (text, valid) in [
            (r#"{"enable":true}"#, true),
            (r#"{"midCPUThresholdPercent":-1}"#, false),
            (r#"{"midCPUThresholdPercent":101}"#, false),
            (r#"{"midMemoryThresholdPercent":150}"#, false),
            (r#"{"midUnallocatedPercent":-10}"#, false),
            (r#"{"midUnallocatedPercent":200}"#, false),
            (r#"{"batchCPUThresholdPercent":100}"#, true),
            (r#"{"batchMemoryThresholdPercent":0}"#, true),
            (r#"{"batchCPUThresholdPercent":-1}"#, false),
            (r#"{"metricMemoryCollectPolicy":""}"#, false),
            (r#"{"degradeTimeMinutes":0}"#, false),
            (r#"{"resourceDiffThreshold":1.5}"#, true),
            (r#"{"resourceDiffThreshold":0}"#, false),
            (r#"{"resourceDiffThreshold":-0.1}"#, false),
            (r#"{"updateTimeThresholdSeconds":0}"#, false),
            (r#"{"metricAggregateDurationSeconds":0}"#, false),
            (r#"{"cpuReclaimThresholdPercent":-1}"#, false),
            (r#"{"memoryReclaimThresholdPercent":0}"#, true),
            (r#"{"midStaticMemoryReservedPercent":-1}"#, false),
            (r#"{"batchMemoryThresholdPercent":900}"#, true),
            (r#"{"midStaticCPUReservedPercent":300}"#, true),
        ] {
            assert_eq!(ColocationConfig::parse(Some(text)).is_ok(), valid, "{text}");
        }
    }

    #[test]
    fn json_is_read_as_the_original_reads_it() {
        let default = ColocationConfig::default;
        for nothing in [
            "null",
            "{}",
            " {} ",
            r#"{"enable":null}"#,
            r#"{"nodeConfigs":null}"#,
            r#"{"nodeConfigs":[]}"#,
            r#"{"x":1}"#,
        ] {
            assert_eq!(ColocationConfig::parse(Some(nothing)), Ok(default()), "{nothing}");
        }
        assert_eq!(ColocationConfig::parse(Some("")), Ok(default()));
        assert_eq!(ColocationConfig::parse(None), Ok(default()));
        for on in [r#"{"ENABLE":true}"#, r#"{"enable":false,"enable":true}"#, r#"{"enable":false,"Enable":true}"#] {
            assert!(config(on).cluster.is_enabled(), "{on}");
        }
        let one =
            config(r#"{"metricReportIntervalSeconds":20,"nodeConfigs":[null,{"nodeSelector":null,"enable":true}]}"#);
        assert_eq!(
            (one.nodes.len(), one.for_node(&map(&[]), &map(&[])).is_enabled()),
            (2, false),
            "they select nothing"
        );
        for bad in [
            " ",
            "{",
            "[]",
            "1",
            r#""x""#,
            "{} x",
            r#"{"enable":1}"#,
            r#"{"degradeTimeMinutes":"15"}"#,
            r#"{"degradeTimeMinutes":15.0}"#,
            r#"{"degradeTimeMinutes":1e1}"#,
            r#"{"degradeTimeMinutes":9223372036854775808}"#,
            r#"{"resourceDiffThreshold":"0.1"}"#,
            r#"{"nodeConfigs":{}}"#,
            r#"{"nodeConfigs":[1]}"#,
            r#"{"nodeConfigs":[{"nodeSelector":[]}]}"#,
            r#"{"cpuCalculatePolicy":1}"#,
            r#"{"metricAggregatePolicy":[]}"#,
            r#"{"metricAggregatePolicy":{"durations":[300]}}"#,
            r#"{"resourceDiffThreshold":1e400}"#,
        ] {
            let error = ColocationConfig::parse(Some(bad)).unwrap_err();
            assert!(matches!(error, ColocationConfigError::Decode(_)), "{bad}: {error}");
        }
    }

    #[test]
    fn what_holds_on_some_nodes_is_laid_over_what_holds_on_all() {
        let config = config(
            r#"{"enable":true,"cpuReclaimThresholdPercent":50,"metricAggregatePolicy":{"durations":["1m","2m"]},"nodeConfigs":[
                {"nodeSelector":{"matchLabels":{"pool":"a"}},"cpuReclaimThresholdPercent":0,"metricAggregatePolicy":{"durations":["9m"]}},
                {"nodeSelector":{"matchExpressions":[{"key":"pool","operator":"In","values":["a","b"]}]},"cpuReclaimThresholdPercent":70},
                {"nodeSelector":{"matchExpressions":[{"key":"pool","operator":"DoesNotExist"}]},"enable":false},
                {"nodeSelector":{"matchExpressions":[{"key":"pool","operator":"Exists","values":["x"]}]},"cpuReclaimThresholdPercent":1},
                {"nodeSelector":{"matchLabels":{"pool":"in valid"}},"cpuReclaimThresholdPercent":2}]}"#,
        );
        let at = |labels: &[(&str, &str)]| {
            let strategy = config.for_node(&map(labels), &map(&[]));
            let windows = strategy.metric_aggregate_policy.as_ref().unwrap().durations.len();
            (strategy.is_enabled(), strategy.cpu_reclaim_threshold_percent.unwrap(), windows)
        };
        assert_eq!(at(&[("pool", "a")]), (true, 0, 1), "the first that selects it, alone");
        assert_eq!(at(&[("pool", "b")]), (true, 70, 2));
        assert_eq!(at(&[]), (false, 50, 2));
        assert_eq!(at(&[("pool", "c")]), (true, 50, 2), "selectors that nobody understands select nothing");
    }

    #[test]
    fn an_invalid_entry_for_some_nodes_falls_back_to_the_cluster() {
        let config = config(
            r#"{"metricReportIntervalSeconds":20,"nodeConfigs":[
                {"name":"a","nodeSelector":{"matchLabels":{"pool":"a"}},"metricReportIntervalSeconds":-1},
                {"name":"b","nodeSelector":{"matchLabels":{"pool":"b"}},"metricReportIntervalSeconds":30},
                {"name":"c","nodeSelector":{},"metricReportIntervalSeconds":40}]}"#,
        );
        for (pool, seconds) in [("a", 20), ("b", 30), ("z", 40)] {
            let strategy = config.for_node(&map(&[("pool", pool)]), &map(&[]));
            assert_eq!(strategy.metric_report_interval_seconds, Some(seconds), "{pool}");
        }
        let message = "colocation-config: nodeConfigs[0].metricReportIntervalSeconds: -1 is out of range, it must be greater than or equal to 1; what holds on all nodes holds there";
        assert_eq!(config.refusals(), [message]);
        let error = ColocationConfig::parse(Some(r#"{"midCPUThresholdPercent":101}"#)).unwrap_err().to_string();
        let message = "colocation-config: midCPUThresholdPercent: 101 is out of range, it must be less than or equal to 100; the last good configuration stays in force";
        assert_eq!(error, message);
    }

    #[test]
    fn errors_have_the_words_of_the_original() {
        for (text, error) in [
            ("[]", "json: cannot unmarshal array into Go value of type configuration.ColocationCfg"),
            (
                r#"{"degradeTimeMinutes":1.5}"#,
                "json: cannot unmarshal number 1.5 into Go struct field ColocationCfg.ColocationStrategy.degradeTimeMinutes of type int64",
            ),
            (
                r#"{"enable":"yes"}"#,
                "json: cannot unmarshal string into Go struct field ColocationCfg.ColocationStrategy.enable of type bool",
            ),
            (r#"{"metricAggregatePolicy":{"durations":["1x"]}}"#, r#"time: unknown unit "x" in duration "1x""#),
        ] {
            let message = format!("failed to unmarshal colocation config, err: {error}");
            assert_eq!(ColocationConfig::parse(Some(text)).unwrap_err().to_string(), message);
        }
    }
}
