//! slo-controller-config as JSON: what holds for a node is laid over what holds for the cluster, and that over defaults.

use serde_json::{Map, Value, json};

use super::said;

/// The sections of the ConfigMap.
#[derive(Debug)]
pub(super) struct Config {
    colocation: Value,
    thresholds: Value,
    normalization: Value,
    amplification: Value,
}

impl Config {
    /// A configuration that people left behind is one that can be read.
    pub(super) fn read(data: &Value) -> Result<Self, String> {
        let section = |key: &str| match data[key].as_str() {
            None => Ok(json!({})),
            Some(text) => serde_json::from_str(text).map_err(|error| format!("{key}: {error}")),
        };
        Ok(Self {
            colocation: section("colocation-config")?,
            thresholds: section("resource-threshold-config")?,
            normalization: section("cpu-normalization-config")?,
            amplification: section("resource-amplification-config")?,
        })
    }

    /// How colocation works on a node, and whether it is on (§2.1, §2.2).
    pub(super) fn strategy(&self, node: &Value) -> (Value, bool) {
        let cluster = laid_over(&defaults(), &self.colocation);
        let mut strategy = for_node(&cluster, &self.colocation["nodeConfigs"], node);
        let annotation = said(node, "annotations", "node.koordinator.sh/colocation-strategy");
        if let Some(own) = annotation.and_then(|text| serde_json::from_str(text).ok()) {
            strategy = laid_over(&strategy, &own);
        }
        for (label, field) in [
            ("node.koordinator.sh/cpu-reclaim-ratio", "cpuReclaimThresholdPercent"),
            ("node.koordinator.sh/memory-reclaim-ratio", "memoryReclaimThresholdPercent"),
        ] {
            let ratio = said(node, "labels", label).and_then(|text| text.parse::<f64>().ok());
            if let Some(ratio) = ratio.filter(|ratio| *ratio >= 0.0) {
                strategy[field] = json!((ratio * 100.0) as i64);
            }
        }
        let is_on = cluster["enable"] == true && strategy["enable"] == true;
        (strategy, is_on)
    }

    /// How best-effort pods are kept in check on a node: the first strategy that selects it is laid over the cluster's.
    pub(super) fn threshold(&self, node: &Value) -> Value {
        let defaults = json!({
            "enable": false, "cpuSuppressThresholdPercent": 65, "cpuSuppressPolicy": "cpuset",
            "memoryEvictThresholdPercent": 70, "cpuEvictPolicy": "evictByRealLimit",
        });
        let cluster = laid_over(&defaults, &self.thresholds["clusterStrategy"]);
        for_node(&cluster, &self.thresholds["nodeStrategies"], node)
    }

    /// How CPUs are normalized on a node.
    pub(super) fn normalization(&self, node: &Value) -> Value {
        for_node(&laid_over(&json!({}), &self.normalization), &self.normalization["nodeConfigs"], node)
    }

    /// What a node promises more of than it has.
    pub(super) fn amplification(&self, node: &Value) -> Value {
        for_node(&laid_over(&json!({}), &self.amplification), &self.amplification["nodeConfigs"], node)
    }
}

fn defaults() -> Value {
    json!({
        "enable": false, "metricAggregateDurationSeconds": 300, "metricReportIntervalSeconds": 60,
        "metricAggregatePolicy": {"durations": ["5m0s", "10m0s", "30m0s"]},
        "metricMemoryCollectPolicy": "usageWithoutPageCache",
        "cpuReclaimThresholdPercent": 60, "cpuCalculatePolicy": "usage",
        "memoryReclaimThresholdPercent": 65, "memoryCalculatePolicy": "usage",
        "degradeTimeMinutes": 15, "updateTimeThresholdSeconds": 300, "resourceDiffThreshold": 0.1,
        "midCPUThresholdPercent": 100, "midMemoryThresholdPercent": 100, "midUnallocatedPercent": 0,
        "midStaticCPUReservedPercent": 0, "midStaticMemoryReservedPercent": 0,
    })
}

/// What says something new goes before what was said.
fn laid_over(below: &Value, above: &Value) -> Value {
    let (Value::Object(below), Value::Object(above)) = (below, above) else {
        return if above.is_null() { below.clone() } else { above.clone() };
    };
    let mut result: Map<String, Value> = below.clone();
    for (key, value) in above.iter().filter(|(key, _)| !["nodeConfigs", "name", "nodeSelector"].contains(&key.as_str()))
    {
        let value = laid_over(below.get(key).unwrap_or(&Value::Null), value);
        result.insert(key.clone(), value);
    }
    Value::Object(result)
}

/// The first entry that selects the node counts.
fn for_node(cluster: &Value, entries: &Value, node: &Value) -> Value {
    let selects = |entry: &&Value| match entry["nodeSelector"]["matchLabels"].as_object() {
        None => false,
        Some(labels) => labels.iter().all(|(key, value)| said(node, "labels", key) == value.as_str()),
    };
    let entry = entries.as_array().into_iter().flatten().find(selects);
    entry.map_or_else(|| cluster.clone(), |entry| laid_over(cluster, entry))
}
