//! slo-controller-config as JSON: what holds for a node is laid over what holds for the cluster, and that over defaults.

use serde_json::{Map, Value, json};

use super::entry;

/// The sections of the ConfigMap.
#[derive(Debug)]
pub(super) struct Config {
    colocation: Value,
    thresholds: Value,
    qos: Value,
    cpu_burst: Value,
    system: Value,
    host_applications: Value,
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
            qos: section("resource-qos-config")?,
            cpu_burst: section("cpu-burst-config")?,
            system: section("system-config")?,
            host_applications: section("host-application-config")?,
            normalization: section("cpu-normalization-config")?,
            amplification: section("resource-amplification-config")?,
        })
    }

    /// How colocation works on a node, and whether it is on (§2.1, §2.2).
    pub(super) fn strategy(&self, node: &Value) -> (Value, bool) {
        let cluster = laid_over(&defaults(), &settings(&self.colocation));
        let mut strategy = for_node(&cluster, &self.colocation["nodeConfigs"], node);
        let annotation = entry(node, "annotations", "node.koordinator.sh/colocation-strategy");
        if let Some(own) = annotation.and_then(|text| serde_json::from_str(text).ok()) {
            strategy = laid_over(&strategy, &own);
        }
        for (label, field) in [
            ("node.koordinator.sh/cpu-reclaim-ratio", "cpuReclaimThresholdPercent"),
            ("node.koordinator.sh/memory-reclaim-ratio", "memoryReclaimThresholdPercent"),
        ] {
            let ratio = entry(node, "labels", label).and_then(|text| text.parse::<f64>().ok());
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
        of_strategies(&defaults, &self.thresholds, node)
    }

    /// What the classes of pods get of a node's resources. The API server fills in the limits of a network.
    pub(super) fn qos(&self, node: &Value) -> Value {
        let mut strategy = of_strategies(&json!({}), &self.qos, node);
        let classes = strategy.as_object_mut().into_iter().flat_map(|classes| classes.values_mut());
        for network in classes.filter_map(|class| class.get_mut("networkQOS")?.as_object_mut()) {
            for (field, default) in
                [("ingressRequest", 0), ("ingressLimit", 100), ("egressRequest", 0), ("egressLimit", 100)]
            {
                network.entry(field).or_insert(json!(default));
            }
        }
        strategy
    }

    /// How far pods may go beyond their limits of CPU for a while.
    pub(super) fn cpu_burst(&self, node: &Value) -> Value {
        let defaults = json!({
            "policy": "none", "cpuBurstPercent": 1000, "cfsQuotaBurstPercent": 300,
            "cfsQuotaBurstPeriodSeconds": -1, "sharePoolThresholdPercent": 50,
        });
        of_strategies(&defaults, &self.cpu_burst, node)
    }

    /// The settings of a node's kernel. A node may name its own bandwidth; when that cannot be read, there are no settings.
    pub(super) fn system(&self, node: &Value) -> Option<Value> {
        let mut strategy = of_strategies(&json!({"totalNetworkBandwidth": "0"}), &self.system, node);
        if let Some(bandwidth) = entry(node, "annotations", "node.koordinator.sh/network-bandwidth") {
            if !bandwidth.starts_with(|first: char| first.is_ascii_digit()) {
                return None;
            }
            strategy["totalNetworkBandwidth"] = json!(bandwidth);
        }
        Some(strategy)
    }

    /// Applications outside of pods: those of the first entry that selects the node, or those of all nodes.
    pub(super) fn host_applications(&self, node: &Value) -> Option<Value> {
        let entries = self.host_applications["nodeConfigs"].as_array();
        let entry = entries.into_iter().flatten().find(|entry| selects(entry, node));
        let applications = entry.unwrap_or(&self.host_applications)["applications"].clone();
        applications.is_array().then_some(applications)
    }

    /// How CPUs are normalized on a node.
    pub(super) fn normalization(&self, node: &Value) -> Value {
        for_node(&settings(&self.normalization), &self.normalization["nodeConfigs"], node)
    }

    /// What a node promises more of than it has.
    pub(super) fn amplification(&self, node: &Value) -> Value {
        for_node(&settings(&self.amplification), &self.amplification["nodeConfigs"], node)
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

/// A strategy of the cluster and its exceptions.
fn of_strategies(defaults: &Value, section: &Value, node: &Value) -> Value {
    for_node(&laid_over(defaults, &section["clusterStrategy"]), &section["nodeStrategies"], node)
}

/// A value that is given replaces the one below it; objects are merged field by field, and lists item by item.
fn laid_over(below: &Value, above: &Value) -> Value {
    let (below, above) = match (below, above) {
        (Value::Object(below), Value::Object(above)) => (below, above),
        (Value::Array(below), Value::Array(above)) => {
            let item = |(index, item): (usize, &Value)| laid_over(below.get(index).unwrap_or(&Value::Null), item);
            return above.iter().enumerate().map(item).collect();
        }
        (below, Value::Null) => return below.clone(),
        (_, above) => return above.clone(),
    };
    let mut result: Map<String, Value> = below.clone();
    for (key, value) in above {
        let value = laid_over(below.get(key).unwrap_or(&Value::Null), value);
        result.insert(key.clone(), value);
    }
    Value::Object(result)
}

/// The settings of a section, or of an entry for some nodes, without what says whom it is for.
fn settings(section: &Value) -> Value {
    let mut settings = section.clone();
    if let Some(settings) = settings.as_object_mut() {
        settings.retain(|key, _| !["nodeConfigs", "name", "nodeSelector"].contains(&key.as_str()));
    }
    settings
}

/// The first entry that selects the node counts.
fn for_node(cluster: &Value, entries: &Value, node: &Value) -> Value {
    let entry = entries.as_array().into_iter().flatten().find(|entry| selects(entry, node));
    entry.map_or_else(|| cluster.clone(), |entry| laid_over(cluster, &settings(entry)))
}

fn selects(config: &Value, node: &Value) -> bool {
    let labels = config["nodeSelector"]["matchLabels"].as_object();
    labels.is_some_and(|labels| labels.iter().all(|(key, value)| entry(node, "labels", key) == value.as_str()))
}
