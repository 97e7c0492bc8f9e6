//! Which values administrators may write, as data: the webhook of the ConfigMap denies others, and so does lint.
//!
//! The types of the strategies declare the bounds, for the CRD (`minimum = 0`) and for admission
//! (`admission(maximum = 100)`); here both are read from the schema. The manager itself accepts more: what the CRD of
//! NodeSLO allows, and [`super::ColocationStrategy::is_valid`].

use std::{collections::BTreeMap, fmt, sync::LazyLock};

use koord_resource::{
    Schema,
    declare::Emit,
    schema::{self, SchemaType},
};

use super::{
    CHECKED_KEYS, COLOCATION_CONFIG, CPU_BURST_CONFIG, ColocationStrategy, RESOURCE_QOS_CONFIG,
    RESOURCE_THRESHOLD_CONFIG,
};
use crate::node_slo::{
    CpuBurstStrategy, Ordered, ResctrlQosCfg, ResourceQosStrategy, ResourceThresholdStrategy, SystemStrategy,
};

/// What holds for the numbers of one key's strategies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// The bounds of single numbers, in the order of the strategy's fields.
    pub bounds: Vec<Bound>,
    /// Pairs of numbers.
    pub pairs: Vec<Pair>,
}

/// The bounds of one number.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The field in a strategy.
    pub field: FieldPath,
    /// What must hold.
    pub rules: Vec<Rule>,
}

/// Two numbers of which one must be greater. Where only one of them is set the original denies both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The greater one.
    pub upper: FieldPath,
    /// The smaller one.
    pub lower: FieldPath,
}

/// A field of a strategy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath {
    /// JSON names joined by dots.
    pub json: String,
    /// The same in Go's field names, as messages name it.
    pub go: String,
}

/// What must hold for a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// It is at least this.
    AtLeast(f64),
    /// It is at most this.
    AtMost(f64),
    /// It is greater than this.
    Above(f64),
}

/// What holds for the numbers of one of [`CHECKED_KEYS`]; nothing for other keys.
pub fn limits(key: &str) -> &'static Limits {
    static NOTHING: Limits = Limits { bounds: Vec::new(), pairs: Vec::new() };
    static LIMITS: LazyLock<BTreeMap<&str, Limits>> =
        LazyLock::new(|| CHECKED_KEYS.into_iter().map(|key| (key, Limits::of(key))).collect());
    LIMITS.get(key).unwrap_or(&NOTHING)
}

impl Limits {
    fn of(key: &str) -> Self {
        let cx = Emit::default().with_admission();
        let schema = match key {
            COLOCATION_CONFIG => ColocationStrategy::schema(cx),
            RESOURCE_THRESHOLD_CONFIG => ResourceThresholdStrategy::schema(cx),
            RESOURCE_QOS_CONFIG => ResourceQosStrategy::schema(cx),
            CPU_BURST_CONFIG => CpuBurstStrategy::schema(cx),
            _ => SystemStrategy::schema(cx),
        };
        let mut limits = Self::default();
        limits.object(&schema, &FieldPath::default());
        if key == RESOURCE_THRESHOLD_CONFIG {
            limits.pairs(&ResourceThresholdStrategy::ORDERED, &FieldPath::default());
        }
        limits
    }

    /// The numbers of an object and of the objects in it. Nothing in a list is checked: no two lists are one.
    fn object(&mut self, schema: &schema::Schema, at: &FieldPath) {
        for (name, schema) in &schema.properties {
            let field = at.child(name);
            match schema.type_ {
                Some(SchemaType::Object) => {
                    self.object(schema, &field);
                    if name == "resctrlQOS" {
                        self.pairs(&ResctrlQosCfg::ORDERED, &field);
                    }
                }
                Some(SchemaType::Integer | SchemaType::Number) => {
                    let rules = Rule::of(schema);
                    if !rules.is_empty() {
                        self.bounds.push(Bound { field, rules });
                    }
                }
                _ => {}
            }
        }
    }

    fn pairs<T>(&mut self, pairs: &[Ordered<T>], at: &FieldPath) {
        let pair = |pair: &Ordered<T>| Pair { upper: at.child(pair.upper.0), lower: at.child(pair.lower.0) };
        self.pairs.extend(pairs.iter().map(pair));
    }
}

impl FieldPath {
    /// The path of a field in this one.
    fn child(&self, name: &str) -> Self {
        let join = |path: &str, name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let go = go_name(name);
        // Some structs of Go embed another one, which is named like a field.
        let go = match name {
            "cpuQOS" | "memoryQOS" | "blkioQOS" | "resctrlQOS" | "networkQOS" => format!("{go}.{go}"),
            "cpuBurstPercent" | "cfsQuotaBurstPercent" | "cfsQuotaBurstPeriodSeconds" => format!("CPUBurstConfig.{go}"),
            _ => go,
        };
        Self { json: join(&self.json, name), go: join(&self.go, &go) }
    }

    /// The last of Go's names.
    pub fn go_field(&self) -> &str {
        self.go.rsplit('.').next().unwrap_or(&self.go)
    }
}

/// The name of Go's field with a JSON name: its first word is a capitalized word or an abbreviation.
fn go_name(json: &str) -> String {
    let end = json.find(|letter: char| letter.is_ascii_uppercase()).unwrap_or(json.len());
    let (first, rest) = json.split_at(end);
    match first {
        "cpu" | "cat" | "mba" | "cfs" | "lsr" | "ls" | "be" => format!("{}{rest}", first.to_ascii_uppercase()),
        _ => json.chars().take(1).map(|letter| letter.to_ascii_uppercase()).chain(json.chars().skip(1)).collect(),
    }
}

impl Rule {
    /// The bounds of a schema, the lower one first.
    fn of(schema: &schema::Schema) -> Vec<Self> {
        let number = |number: &Option<serde_json::Number>| number.as_ref().and_then(serde_json::Number::as_f64);
        let least = if schema.exclusive_minimum { Self::Above } else { Self::AtLeast };
        let lower = number(&schema.minimum).map(least);
        lower.into_iter().chain(number(&schema.maximum).map(Self::AtMost)).collect()
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slo_config::{RESOURCE_QOS_CONFIG, SYSTEM_CONFIG, defaults};

    /// Every bound of a key: its path in Go's names, and the rules.
    fn shown(key: &str) -> Vec<String> {
        let shown = |bound: &Bound| {
            let rules: Vec<String> = bound.rules.iter().map(ToString::to_string).collect();
            format!("{} {}", bound.field.go, rules.join(", "))
        };
        limits(key).bounds.iter().map(shown).collect()
    }

    #[test]
    fn bounds_are_those_of_the_original() {
        const PERCENT: &str = "must be 0 or greater, must be 100 or less";
        const SWITCH: &str = "must be 0 or greater, must be 1 or less";
        let expect = |key: &str, rows: &[(&str, &str)]| {
            let rows: Vec<String> = rows.iter().map(|(field, rules)| format!("{field} {rules}")).collect();
            assert_eq!(shown(key), rows, "{key}");
        };
        expect(
            COLOCATION_CONFIG,
            &[
                ("MetricAggregateDurationSeconds", "must be 1 or greater"),
                ("MetricReportIntervalSeconds", "must be 1 or greater"),
                ("CPUReclaimThresholdPercent", "must be 0 or greater"),
                ("MemoryReclaimThresholdPercent", "must be 0 or greater"),
                ("DegradeTimeMinutes", "must be 1 or greater"),
                ("UpdateTimeThresholdSeconds", "must be 1 or greater"),
                ("ResourceDiffThreshold", "must be greater than 0, must be 1 or less"),
                ("MidCPUThresholdPercent", PERCENT),
                ("MidMemoryThresholdPercent", PERCENT),
                ("MidUnallocatedPercent", PERCENT),
                ("MidStaticCPUReservedPercent", PERCENT),
                ("MidStaticMemoryReservedPercent", PERCENT),
                ("BatchCPUThresholdPercent", "must be 0 or greater"),
                ("BatchMemoryThresholdPercent", "must be 0 or greater"),
            ],
        );
        expect(
            RESOURCE_THRESHOLD_CONFIG,
            &[
                ("CPUSuppressThresholdPercent", PERCENT),
                ("CPUSuppressMinPercent", PERCENT),
                ("MemoryEvictThresholdPercent", PERCENT),
                ("MemoryEvictLowerPercent", PERCENT),
                ("MemoryAllocatableEvictThresholdPercent", "must be 0 or greater"),
                ("MemoryAllocatableEvictLowerPercent", "must be 0 or greater"),
                ("CPUEvictBESatisfactionUpperPercent", PERCENT),
                ("CPUEvictBESatisfactionLowerPercent", PERCENT),
                ("CPUEvictBEUsageThresholdPercent", PERCENT),
                ("CPUEvictTimeWindowSeconds", "must be greater than 0"),
                ("CPUEvictThresholdPercent", PERCENT),
                ("CPUEvictLowerPercent", PERCENT),
                ("CPUAllocatableEvictThresholdPercent", "must be 0 or greater"),
                ("CPUAllocatableEvictLowerPercent", "must be 0 or greater"),
                ("AllocatableEvictPriorityThreshold", "must be 0 or greater, must be 7,999 or less"),
            ],
        );
        expect(
            CPU_BURST_CONFIG,
            &[
                ("CPUBurstConfig.CPUBurstPercent", "must be 1 or greater, must be 10,000 or less"),
                ("CPUBurstConfig.CFSQuotaBurstPercent", "must be 100 or greater"),
                ("CPUBurstConfig.CFSQuotaBurstPeriodSeconds", "must be -1 or greater"),
                ("SharePoolThresholdPercent", PERCENT),
            ],
        );
        expect(
            SYSTEM_CONFIG,
            &[
                ("MinFreeKbytesFactor", "must be greater than 0"),
                ("WatermarkScaleFactor", "must be greater than 0, must be 400 or less"),
                ("MemcgReapBackGround", SWITCH),
                ("PageCacheLimitEnabled", SWITCH),
            ],
        );
        let qos = shown(RESOURCE_QOS_CONFIG);
        let class = [
            ("CPUQOS.CPUQOS.GroupIdentity", "must be -1 or greater, must be 2 or less"),
            ("CPUQOS.CPUQOS.SchedIdle", SWITCH),
            ("MemoryQOS.MemoryQOS.MinLimitPercent", PERCENT),
            ("MemoryQOS.MemoryQOS.LowLimitPercent", PERCENT),
            ("MemoryQOS.MemoryQOS.ThrottlingPercent", PERCENT),
            ("MemoryQOS.MemoryQOS.WmarkRatio", PERCENT),
            ("MemoryQOS.MemoryQOS.WmarkScalePermill", "must be 1 or greater, must be 1,000 or less"),
            ("MemoryQOS.MemoryQOS.WmarkMinAdj", "must be -25 or greater, must be 50 or less"),
            ("MemoryQOS.MemoryQOS.PriorityEnable", SWITCH),
            ("MemoryQOS.MemoryQOS.Priority", "must be 0 or greater, must be 12 or less"),
            ("MemoryQOS.MemoryQOS.OomKillGroup", SWITCH),
            ("MemoryQOS.MemoryQOS.PageCacheLimitPercent", PERCENT),
            ("ResctrlQOS.ResctrlQOS.CATRangeStartPercent", PERCENT),
            ("ResctrlQOS.ResctrlQOS.CATRangeEndPercent", PERCENT),
            ("ResctrlQOS.ResctrlQOS.MBAPercent", PERCENT),
        ];
        let expected = ["LSRClass", "LSClass", "BEClass", "SystemClass", "CgroupRoot"]
            .into_iter()
            .flat_map(|name| class.iter().map(move |(field, rules)| format!("{name}.{field} {rules}")));
        assert_eq!(qos, expected.collect::<Vec<_>>());
    }

    #[test]
    fn pairs_stand_beside_their_numbers() {
        let pairs = &limits(RESOURCE_QOS_CONFIG).pairs;
        assert_eq!(pairs.len(), 5, "one per class");
        assert_eq!(pairs[2].upper.json, "beClass.resctrlQOS.catRangeEndPercent");
        assert_eq!(pairs[2].lower.go, "BEClass.ResctrlQOS.ResctrlQOS.CATRangeStartPercent");
        assert_eq!(limits(RESOURCE_THRESHOLD_CONFIG).pairs.len(), 5);
    }

    #[test]
    fn the_defaults_are_within_the_bounds() {
        let strategies = [
            (COLOCATION_CONFIG, serde_json::to_value(defaults::colocation_strategy()).unwrap()),
            (RESOURCE_THRESHOLD_CONFIG, serde_json::to_value(defaults::resource_threshold_strategy()).unwrap()),
            (CPU_BURST_CONFIG, serde_json::to_value(defaults::cpu_burst_strategy()).unwrap()),
            (RESOURCE_QOS_CONFIG, serde_json::to_value(defaults::full_resource_qos_strategy()).unwrap()),
        ];
        for (key, strategy) in strategies {
            let mut compared = 0;
            for bound in &limits(key).bounds {
                let pointer = format!("/{}", bound.field.json.replace('.', "/"));
                let Some(number) = strategy.pointer(&pointer).and_then(serde_json::Value::as_f64) else { continue };
                assert!(bound.rules.iter().all(|rule| rule.holds(number)), "{key} {pointer} {number}");
                compared += 1;
            }
            assert!(compared > 1, "{key}");
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
