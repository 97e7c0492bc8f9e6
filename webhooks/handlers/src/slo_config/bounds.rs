//! Numbers within their bounds, and pairs of which one must be greater.

use std::collections::BTreeMap;

use koord_types::slo_config::{
    Bound, COLOCATION_CONFIG, CPU_BURST_CONFIG, Draft, FieldPath, Pair, RESOURCE_QOS_CONFIG, RESOURCE_THRESHOLD_CONFIG,
    limits,
};
use serde_json::Value;

/// What is wrong, by the path of the field in Go's names.
pub(super) type Broken = BTreeMap<String, String>;

/// Every number of a key that breaks a rule; of a field the first rule that is broken.
pub(super) fn broken(key: &str, draft: &Draft) -> Broken {
    let mut broken = Broken::new();
    let (section, cluster, nodes, strategy) = go_names(key);
    check(key, &format!("{section}.{cluster}"), &draft.cluster, &mut broken);
    for (index, node) in draft.nodes.iter().enumerate() {
        check(key, &format!("{section}.{nodes}[{index}].{strategy}"), &node.strategy, &mut broken);
    }
    broken
}

/// What Go calls the type of a key, its strategy for all nodes, the list of those for some, and the strategy there.
fn go_names(key: &str) -> (&'static str, &'static str, &'static str, &'static str) {
    match key {
        COLOCATION_CONFIG => ("ColocationCfg", "ColocationStrategy", "NodeConfigs", "ColocationStrategy"),
        RESOURCE_THRESHOLD_CONFIG => {
            ("ResourceThresholdCfg", "ClusterStrategy", "NodeStrategies", "ResourceThresholdStrategy")
        }
        RESOURCE_QOS_CONFIG => ("ResourceQOSCfg", "ClusterStrategy", "NodeStrategies", "ResourceQOSStrategy"),
        CPU_BURST_CONFIG => ("CPUBurstCfg", "ClusterStrategy", "NodeStrategies", "CPUBurstStrategy"),
        _ => ("SystemCfg", "ClusterStrategy", "NodeStrategies", "SystemStrategy"),
    }
}

fn check(key: &str, go_path: &str, strategy: &Value, broken: &mut Broken) {
    let limits = limits(key);
    for Bound { field, rules } in &limits.bounds {
        let Some(number) = number(strategy, field) else { continue };
        if let Some(rule) = rules.iter().find(|rule| !rule.holds(number)) {
            broken.insert(format!("{go_path}.{}", field.go), format!("{} {rule}", field.go_field()));
        }
    }
    for Pair { upper, lower } in &limits.pairs {
        let (upper_number, lower_number) = (number(strategy, upper), number(strategy, lower));
        // QUIRK: a number whose partner is absent is denied, as recorded (`threshold-memory-evict-alone`).
        if upper_number.zip(lower_number).is_some_and(|(upper, lower)| upper > lower) {
            continue;
        }
        let (go_upper, go_lower) = (upper.go_field(), lower.go_field());
        let mut add = |number: Option<f64>, field: &FieldPath, text: String| {
            if number.is_some() {
                broken.entry(format!("{go_path}.{}", field.go)).or_insert(text);
            }
        };
        add(upper_number, upper, format!("{go_upper} must be greater than {go_lower}"));
        add(lower_number, lower, format!("{go_lower} must be less than {go_upper}"));
    }
}

fn number(strategy: &Value, field: &FieldPath) -> Option<f64> {
    field.json.split('.').try_fold(strategy, |value, name| value.get(name))?.as_f64()
}

#[cfg(test)]
mod tests {
    use koord_types::slo_config::SYSTEM_CONFIG;

    use super::*;

    fn broken_by(key: &str, text: &str) -> Vec<String> {
        broken(key, &Draft::read(key, text).unwrap())
            .into_iter()
            .map(|(path, text)| format!("{path}: {text}"))
            .collect()
    }

    #[test]
    fn every_field_is_named_as_in_the_original() {
        let qos =
            r#"{"nodeStrategies":[{"beClass":{"cpuQOS":{"groupIdentity":3},"memoryQOS":{"wmarkScalePermill":1001}}}]}"#;
        assert_eq!(
            broken_by(RESOURCE_QOS_CONFIG, qos),
            [
                "ResourceQOSCfg.NodeStrategies[0].ResourceQOSStrategy.BEClass.CPUQOS.CPUQOS.GroupIdentity: GroupIdentity must be 2 or less",
                "ResourceQOSCfg.NodeStrategies[0].ResourceQOSStrategy.BEClass.MemoryQOS.MemoryQOS.WmarkScalePermill: WmarkScalePermill must be 1,000 or less",
            ]
        );
        assert_eq!(
            broken_by(COLOCATION_CONFIG, r#"{"degradeTimeMinutes":0,"nodeConfigs":[{"midCPUThresholdPercent":101}]}"#),
            [
                "ColocationCfg.ColocationStrategy.DegradeTimeMinutes: DegradeTimeMinutes must be 1 or greater",
                "ColocationCfg.NodeConfigs[0].ColocationStrategy.MidCPUThresholdPercent: MidCPUThresholdPercent must be 100 or less",
            ]
        );
        assert_eq!(
            broken_by(SYSTEM_CONFIG, r#"{"clusterStrategy":{"watermarkScaleFactor":401}}"#),
            ["SystemCfg.ClusterStrategy.WatermarkScaleFactor: WatermarkScaleFactor must be 400 or less"]
        );
    }

    #[test]
    fn of_a_pair_one_must_be_the_larger_and_neither_stands_alone() {
        let of =
            |numbers: &str| broken_by(RESOURCE_THRESHOLD_CONFIG, &format!(r#"{{"clusterStrategy":{{{numbers}}}}}"#));
        assert!(of(r#""memoryEvictThresholdPercent":70,"memoryEvictLowerPercent":65"#).is_empty());
        assert_eq!(of(r#""memoryEvictThresholdPercent":65,"memoryEvictLowerPercent":65"#).len(), 2);
        assert_eq!(
            of(r#""memoryEvictLowerPercent":65"#),
            [
                "ResourceThresholdCfg.ClusterStrategy.MemoryEvictLowerPercent: MemoryEvictLowerPercent must be less than MemoryEvictThresholdPercent"
            ]
        );
        assert_eq!(
            of(r#""memoryEvictThresholdPercent":101"#),
            [
                "ResourceThresholdCfg.ClusterStrategy.MemoryEvictThresholdPercent: MemoryEvictThresholdPercent must be 100 or less"
            ]
        );
    }
}
