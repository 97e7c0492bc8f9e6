//! NodeSLO and the spec of NodeMetric (§2.3, §4.2, §4.3).

use serde_json::{Value, json};

use super::config::Config;
use crate::people::name_of;

pub(super) fn check(config: &Config, node: &Value, found: &Value) -> Result<(), String> {
    let found = &found["spec"];
    // What third parties keep there stays.
    let theirs = match &found["extensions"] {
        Value::Null => json!({"Object": {}}),
        theirs => theirs.clone(),
    };
    let mut expected = json!({
        "resourceUsedThresholdWithBE": config.threshold(node),
        "resourceQOSStrategy": config.qos(node),
        "cpuBurstStrategy": config.cpu_burst(node),
        "extensions": theirs,
    });
    for (field, value) in
        [("systemStrategy", config.system(node)), ("hostApplications", config.host_applications(node))]
    {
        if let Some(value) = value {
            expected[field] = value;
        }
    }
    if *found == expected {
        return Ok(());
    }
    Err(format!("the NodeSLO of {} is {found} instead of {expected}", name_of(node)))
}

pub(super) fn check_metric(config: &Config, node: &Value, found: &Value) -> Result<(), String> {
    let (strategy, _) = config.strategy(node);
    let policy = &found["spec"]["metricCollectPolicy"];
    let expected = if strategy["enable"] == true {
        json!({
            "aggregateDurationSeconds": strategy["metricAggregateDurationSeconds"],
            "reportIntervalSeconds": strategy["metricReportIntervalSeconds"],
            "nodeAggregatePolicy": strategy["metricAggregatePolicy"],
            "nodeMemoryCollectPolicy": strategy["metricMemoryCollectPolicy"],
        })
    } else {
        json!({
            "aggregateDurationSeconds": 300, "reportIntervalSeconds": 60,
            "nodeAggregatePolicy": {"durations": ["5m0s", "10m0s", "30m0s"]},
            "nodeMemoryCollectPolicy": "usageWithoutPageCache",
        })
    };
    if *policy == expected {
        return Ok(());
    }
    Err(format!("the NodeMetric of {} is collected by {policy} instead of {expected}", name_of(node)))
}
