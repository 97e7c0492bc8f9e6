//! Numbers within their bounds, and pairs of which one must be the larger.

use std::collections::BTreeMap;

use koord_api::slo_config::{
    BOUNDS, COLOCATION_CONFIG, CPU_BURST_CONFIG, Draft, PAIRS, RESOURCE_QOS_CONFIG, RESOURCE_THRESHOLD_CONFIG,
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

/// The classes of a QoS strategy, by their JSON and Go names. The strategies of other keys have none.
const CLASSES: [(&str, &str); 5] = [
    ("lsrClass", "LSRClass"),
    ("lsClass", "LSClass"),
    ("beClass", "BEClass"),
    ("systemClass", "SystemClass"),
    ("cgroupRoot", "CgroupRoot"),
];

fn check(key: &str, go_path: &str, strategy: &Value, broken: &mut Broken) {
    if key != RESOURCE_QOS_CONFIG {
        return check_numbers(key, go_path, strategy, broken);
    }
    for (class, go_class) in CLASSES {
        if let Some(class) = strategy.get(class) {
            check_numbers(key, &format!("{go_path}.{go_class}"), class, broken);
        }
    }
}

fn check_numbers(key: &str, go_path: &str, numbers: &Value, broken: &mut Broken) {
    for bound in BOUNDS.iter().filter(|bound| bound.key == key) {
        let Some(number) = number(numbers, bound.path) else { continue };
        if let Some(rule) = bound.rules.iter().find(|rule| !rule.holds(number)) {
            let text = format!("{} {rule}", last(bound.go_path));
            broken.insert(format!("{go_path}.{}", bound.go_path), text);
        }
    }
    for pair in PAIRS.iter().filter(|pair| pair.key == key) {
        let (upper, lower) = (number(numbers, pair.upper), number(numbers, pair.lower));
        // QUIRK: a number whose partner is absent is refused, as recorded (`threshold-memory-evict-alone`).
        if upper.zip(lower).is_some_and(|(upper, lower)| upper > lower) {
            continue;
        }
        let (go_upper, go_lower) = (last(pair.go_upper), last(pair.go_lower));
        let mut tell = |number: Option<f64>, field: &str, text: String| {
            if number.is_some() {
                broken.entry(format!("{go_path}.{field}")).or_insert(text);
            }
        };
        tell(upper, pair.go_upper, format!("{go_upper} must be greater than {go_lower}"));
        tell(lower, pair.go_lower, format!("{go_lower} must be less than {go_upper}"));
    }
}

fn number(numbers: &Value, path: &str) -> Option<f64> {
    path.split('.').try_fold(numbers, |value, name| value.get(name))?.as_f64()
}

fn last(go_path: &str) -> &str {
    go_path.rsplit('.').next().unwrap_or(go_path)
}

#[cfg(test)]
mod tests {
    use koord_api::slo_config::SYSTEM_CONFIG;

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
