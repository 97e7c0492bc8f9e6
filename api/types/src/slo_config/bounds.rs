//! Which values administrators may write, as data: the webhook refuses others, and so does lint.
//!
//! The manager itself is laxer ([`super::ColocationStrategy::is_valid`]); these bounds are those of the original's webhook.

use std::fmt;

use super::{COLOCATION_CONFIG, CPU_BURST_CONFIG, RESOURCE_QOS_CONFIG, RESOURCE_THRESHOLD_CONFIG, SYSTEM_CONFIG};

/// The bounds of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Key of the ConfigMap.
    pub key: &'static str,
    /// Where the number stands in a strategy, and for `resource-qos-config` in a class: JSON names joined by dots.
    pub path: &'static str,
    /// The same in Go's field names, as messages say it.
    pub go_path: &'static str,
    /// What must hold.
    pub rules: &'static [Rule],
}

/// What must hold for a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// It is not smaller.
    AtLeast(f64),
    /// It is not larger.
    AtMost(f64),
    /// It is larger.
    Above(f64),
}

/// Two numbers of which one must be larger. Where only one of them is set the original refuses both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Key of the ConfigMap.
    pub key: &'static str,
    /// The larger one, as in [`Bound::path`].
    pub upper: &'static str,
    /// The smaller one.
    pub lower: &'static str,
    /// The larger one in Go's field names.
    pub go_upper: &'static str,
    /// The smaller one in Go's field names.
    pub go_lower: &'static str,
}

impl Rule {
    /// Whether the rule holds for a number.
    pub fn holds(self, number: f64) -> bool {
        match self {
            Self::AtLeast(least) => number >= least,
            Self::AtMost(most) => number <= most,
            Self::Above(bound) => number > bound,
        }
    }
}

/// As messages say it after the name of the field: `must be 0 or greater`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "must be {} or greater", grouped(*least)),
            Self::AtMost(most) => write!(f, "must be {} or less", grouped(*most)),
            Self::Above(bound) => write!(f, "must be greater than {}", grouped(*bound)),
        }
    }
}

/// A number with a comma before every third digit.
fn grouped(number: f64) -> String {
    let plain = number.to_string();
    let digits = plain.find('.').unwrap_or(plain.len());
    let mut text = String::with_capacity(plain.len() + 2);
    for (index, character) in plain.char_indices() {
        let left = digits.saturating_sub(index);
        if character.is_ascii_digit() && text.ends_with(|last: char| last.is_ascii_digit()) && left % 3 == 0 && left > 0
        {
            text.push(',');
        }
        text.push(character);
    }
    text
}

const PERCENT: &[Rule] = &[Rule::AtLeast(0.0), Rule::AtMost(100.0)];
const NOT_NEGATIVE: &[Rule] = &[Rule::AtLeast(0.0)];
const FROM_ONE: &[Rule] = &[Rule::AtLeast(1.0)];
const SWITCH: &[Rule] = &[Rule::AtLeast(0.0), Rule::AtMost(1.0)];

const fn colocation(path: &'static str, go_path: &'static str, rules: &'static [Rule]) -> Bound {
    Bound { key: COLOCATION_CONFIG, path, go_path, rules }
}

const fn threshold(path: &'static str, go_path: &'static str, rules: &'static [Rule]) -> Bound {
    Bound { key: RESOURCE_THRESHOLD_CONFIG, path, go_path, rules }
}

const fn qos(path: &'static str, go_path: &'static str, rules: &'static [Rule]) -> Bound {
    Bound { key: RESOURCE_QOS_CONFIG, path, go_path, rules }
}

const fn burst(path: &'static str, go_path: &'static str, rules: &'static [Rule]) -> Bound {
    Bound { key: CPU_BURST_CONFIG, path, go_path, rules }
}

const fn system(path: &'static str, go_path: &'static str, rules: &'static [Rule]) -> Bound {
    Bound { key: SYSTEM_CONFIG, path, go_path, rules }
}

/// All bounds, in the order of Go's fields.
pub const BOUNDS: &[Bound] = &[
    colocation("metricAggregateDurationSeconds", "MetricAggregateDurationSeconds", FROM_ONE),
    colocation("metricReportIntervalSeconds", "MetricReportIntervalSeconds", FROM_ONE),
    colocation("cpuReclaimThresholdPercent", "CPUReclaimThresholdPercent", NOT_NEGATIVE),
    colocation("memoryReclaimThresholdPercent", "MemoryReclaimThresholdPercent", NOT_NEGATIVE),
    colocation("degradeTimeMinutes", "DegradeTimeMinutes", FROM_ONE),
    colocation("updateTimeThresholdSeconds", "UpdateTimeThresholdSeconds", FROM_ONE),
    colocation("resourceDiffThreshold", "ResourceDiffThreshold", &[Rule::Above(0.0), Rule::AtMost(1.0)]),
    colocation("midCPUThresholdPercent", "MidCPUThresholdPercent", PERCENT),
    colocation("midMemoryThresholdPercent", "MidMemoryThresholdPercent", PERCENT),
    colocation("midUnallocatedPercent", "MidUnallocatedPercent", PERCENT),
    colocation("midStaticCPUReservedPercent", "MidStaticCPUReservedPercent", PERCENT),
    colocation("midStaticMemoryReservedPercent", "MidStaticMemoryReservedPercent", PERCENT),
    colocation("batchCPUThresholdPercent", "BatchCPUThresholdPercent", NOT_NEGATIVE),
    colocation("batchMemoryThresholdPercent", "BatchMemoryThresholdPercent", NOT_NEGATIVE),
    threshold("cpuSuppressThresholdPercent", "CPUSuppressThresholdPercent", PERCENT),
    threshold("cpuSuppressMinPercent", "CPUSuppressMinPercent", PERCENT),
    threshold("memoryEvictThresholdPercent", "MemoryEvictThresholdPercent", PERCENT),
    threshold("memoryEvictLowerPercent", "MemoryEvictLowerPercent", PERCENT),
    threshold("cpuEvictBESatisfactionUpperPercent", "CPUEvictBESatisfactionUpperPercent", PERCENT),
    threshold("cpuEvictBESatisfactionLowerPercent", "CPUEvictBESatisfactionLowerPercent", PERCENT),
    threshold("cpuEvictBEUsageThresholdPercent", "CPUEvictBEUsageThresholdPercent", PERCENT),
    threshold("cpuEvictTimeWindowSeconds", "CPUEvictTimeWindowSeconds", &[Rule::Above(0.0)]),
    threshold(
        "allocatableEvictPriorityThreshold",
        "AllocatableEvictPriorityThreshold",
        &[Rule::AtLeast(0.0), Rule::AtMost(7999.0)],
    ),
    qos("cpuQOS.groupIdentity", "CPUQOS.CPUQOS.GroupIdentity", &[Rule::AtLeast(-1.0), Rule::AtMost(2.0)]),
    qos("cpuQOS.schedIdle", "CPUQOS.CPUQOS.SchedIdle", SWITCH),
    qos("memoryQOS.minLimitPercent", "MemoryQOS.MemoryQOS.MinLimitPercent", PERCENT),
    qos("memoryQOS.lowLimitPercent", "MemoryQOS.MemoryQOS.LowLimitPercent", PERCENT),
    qos("memoryQOS.throttlingPercent", "MemoryQOS.MemoryQOS.ThrottlingPercent", PERCENT),
    qos("memoryQOS.wmarkRatio", "MemoryQOS.MemoryQOS.WmarkRatio", PERCENT),
    qos(
        "memoryQOS.wmarkScalePermill",
        "MemoryQOS.MemoryQOS.WmarkScalePermill",
        &[Rule::AtLeast(1.0), Rule::AtMost(1000.0)],
    ),
    qos("memoryQOS.wmarkMinAdj", "MemoryQOS.MemoryQOS.WmarkMinAdj", &[Rule::AtLeast(-25.0), Rule::AtMost(50.0)]),
    qos("memoryQOS.priorityEnable", "MemoryQOS.MemoryQOS.PriorityEnable", SWITCH),
    qos("memoryQOS.priority", "MemoryQOS.MemoryQOS.Priority", &[Rule::AtLeast(0.0), Rule::AtMost(12.0)]),
    qos("memoryQOS.oomKillGroup", "MemoryQOS.MemoryQOS.OomKillGroup", SWITCH),
    qos("memoryQOS.pageCacheLimitPercent", "MemoryQOS.MemoryQOS.PageCacheLimitPercent", PERCENT),
    qos("resctrlQOS.catRangeStartPercent", "ResctrlQOS.ResctrlQOS.CATRangeStartPercent", PERCENT),
    qos("resctrlQOS.catRangeEndPercent", "ResctrlQOS.ResctrlQOS.CATRangeEndPercent", PERCENT),
    qos("resctrlQOS.mbaPercent", "ResctrlQOS.ResctrlQOS.MBAPercent", PERCENT),
    burst("cpuBurstPercent", "CPUBurstConfig.CPUBurstPercent", &[Rule::AtLeast(1.0), Rule::AtMost(10000.0)]),
    burst("cfsQuotaBurstPercent", "CPUBurstConfig.CFSQuotaBurstPercent", &[Rule::AtLeast(100.0)]),
    burst("cfsQuotaBurstPeriodSeconds", "CPUBurstConfig.CFSQuotaBurstPeriodSeconds", &[Rule::AtLeast(-1.0)]),
    burst("sharePoolThresholdPercent", "SharePoolThresholdPercent", PERCENT),
    system("minFreeKbytesFactor", "MinFreeKbytesFactor", &[Rule::Above(0.0)]),
    system("watermarkScaleFactor", "WatermarkScaleFactor", &[Rule::Above(0.0), Rule::AtMost(400.0)]),
    system("memcgReapBackGround", "MemcgReapBackGround", SWITCH),
    system("pageCacheLimitEnabled", "PageCacheLimitEnabled", SWITCH),
];

const fn pair(upper: &'static str, lower: &'static str, go_upper: &'static str, go_lower: &'static str) -> Pair {
    Pair { key: RESOURCE_THRESHOLD_CONFIG, upper, lower, go_upper, go_lower }
}

/// All pairs.
pub const PAIRS: &[Pair] = &[
    pair(
        "memoryEvictThresholdPercent",
        "memoryEvictLowerPercent",
        "MemoryEvictThresholdPercent",
        "MemoryEvictLowerPercent",
    ),
    pair(
        "memoryAllocatableEvictThresholdPercent",
        "memoryAllocatableEvictLowerPercent",
        "MemoryAllocatableEvictThresholdPercent",
        "MemoryAllocatableEvictLowerPercent",
    ),
    pair(
        "cpuEvictBESatisfactionUpperPercent",
        "cpuEvictBESatisfactionLowerPercent",
        "CPUEvictBESatisfactionUpperPercent",
        "CPUEvictBESatisfactionLowerPercent",
    ),
    pair("cpuEvictThresholdPercent", "cpuEvictLowerPercent", "CPUEvictThresholdPercent", "CPUEvictLowerPercent"),
    pair(
        "cpuAllocatableEvictThresholdPercent",
        "cpuAllocatableEvictLowerPercent",
        "CPUAllocatableEvictThresholdPercent",
        "CPUAllocatableEvictLowerPercent",
    ),
    Pair {
        key: RESOURCE_QOS_CONFIG,
        upper: "resctrlQOS.catRangeEndPercent",
        lower: "resctrlQOS.catRangeStartPercent",
        go_upper: "ResctrlQOS.ResctrlQOS.CATRangeEndPercent",
        go_lower: "ResctrlQOS.ResctrlQOS.CATRangeStartPercent",
    },
];

#[cfg(test)]
mod tests {
    use koord_resource::{Schema, declare::Emit, schema};

    use super::*;
    use crate::{
        node_slo::{CpuBurstStrategy, ResourceQos, ResourceThresholdStrategy, SystemStrategy},
        slo_config::{ColocationStrategy, defaults},
    };

    fn schema_of(key: &str) -> schema::Schema {
        let cx = Emit::default();
        match key {
            COLOCATION_CONFIG => ColocationStrategy::schema(cx),
            RESOURCE_THRESHOLD_CONFIG => ResourceThresholdStrategy::schema(cx),
            RESOURCE_QOS_CONFIG => ResourceQos::schema(cx),
            CPU_BURST_CONFIG => CpuBurstStrategy::schema(cx),
            _ => SystemStrategy::schema(cx),
        }
    }

    #[test]
    fn every_path_leads_to_a_number_within_the_bounds_of_the_crd() {
        let rows = BOUNDS.iter().map(|bound| (bound.key, bound.path, bound.rules));
        let pairs = PAIRS.iter().flat_map(|pair| [(pair.key, pair.upper, &[][..]), (pair.key, pair.lower, &[])]);
        for (key, path, rules) in rows.chain(pairs) {
            let mut schema = schema_of(key);
            for step in path.split('.') {
                schema = schema.properties.get(step).unwrap_or_else(|| panic!("{key}: no {path}")).clone();
            }
            assert!(matches!(schema.type_, Some(schema::SchemaType::Integer | schema::SchemaType::Number)), "{path}");
            for rule in rules {
                let (minimum, maximum) = (&schema.minimum, &schema.maximum);
                let looser = match *rule {
                    Rule::AtLeast(least) => minimum.as_ref().is_some_and(|number| number.as_f64() > Some(least)),
                    Rule::AtMost(most) => maximum.as_ref().is_some_and(|number| number.as_f64() < Some(most)),
                    Rule::Above(_) => false,
                };
                assert!(!looser, "{path}: {rule}");
            }
        }
    }

    #[test]
    fn the_defaults_are_within_the_bounds() {
        let strategies = [
            (COLOCATION_CONFIG, serde_json::to_value(defaults::colocation_strategy()).unwrap()),
            (RESOURCE_THRESHOLD_CONFIG, serde_json::to_value(defaults::resource_threshold_strategy()).unwrap()),
            (CPU_BURST_CONFIG, serde_json::to_value(defaults::cpu_burst_strategy()).unwrap()),
            (RESOURCE_QOS_CONFIG, serde_json::to_value(defaults::none_resource_qos()).unwrap()),
        ];
        for (key, strategy) in strategies {
            for bound in BOUNDS.iter().filter(|bound| bound.key == key) {
                let pointer = format!("/{}", bound.path.replace('.', "/"));
                let Some(number) = strategy.pointer(&pointer).and_then(serde_json::Value::as_f64) else { continue };
                assert!(bound.rules.iter().all(|rule| rule.holds(number)), "{key} {pointer} {number}");
            }
        }
    }

    #[test]
    fn rules_read_as_in_the_original() {
        assert_eq!(Rule::AtLeast(1.0).to_string(), "must be 1 or greater");
        assert_eq!(Rule::AtMost(400.0).to_string(), "must be 400 or less");
        assert_eq!(Rule::Above(0.0).to_string(), "must be greater than 0");
        assert_eq!(Rule::AtMost(7999.0).to_string(), "must be 7,999 or less");
        assert_eq!(Rule::AtLeast(-25_000.5).to_string(), "must be -25,000.5 or greater");
    }
}
