//! koord-manager: every node has a NodeSLO and a NodeMetric that say what `slo-controller-config` says.

use std::collections::BTreeMap;

use http::Method;
use koord_api::slo_config::{ColocationConfig, NodeSloConfig};
use koord_manager_controllers::{
    ConfigSource,
    nodemetric::{self, NodeMetricController},
    nodeslo::{self, NodeSloController},
};
use koord_resource::{
    declare::Profile,
    document::{Declared, custom_resource_definition},
};
use koord_runtime::{Core, random::Random};
use serde_json::{Value, json};

use crate::{Scenario, Stage};

const NODES: &str = "/api/v1/nodes";
const SLOS: &str = "/apis/slo.koordinator.sh/v1alpha1/nodeslos";
const METRICS: &str = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics";
const CONFIG_MAPS: &str = "/api/v1/namespaces/koordinator-system/configmaps";
const CONFIG: &str = "/api/v1/namespaces/koordinator-system/configmaps/slo-controller-config";
/// Few names, so that things that happen to one name meet.
const NAMES: u64 = 5;

const THRESHOLDS: [&str; 4] = [
    r#"{"clusterStrategy":{"enable":true,"cpuSuppressThresholdPercent":60}}"#,
    r#"{"clusterStrategy":{"enable":true},"nodeStrategies":[{"name":"b","nodeSelector":{"matchLabels":{"pool":"p1"}},"cpuSuppressThresholdPercent":40}]}"#,
    "{not json",
    r#"{"clusterStrategy":null}"#,
];
const COLOCATIONS: [&str; 4] = [
    r#"{"enable":true,"metricReportIntervalSeconds":30}"#,
    r#"{"enable":true,"nodeConfigs":[{"name":"b","nodeSelector":{"matchLabels":{"pool":"p1"}},"metricReportIntervalSeconds":20}]}"#,
    "[",
    r#"{"enable":true,"degradeTimeMinutes":0}"#,
];

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manager;

impl Scenario for Manager {
    fn prepare(&self, stage: &mut Stage) {
        for name in ["default", "koordinator-system"] {
            stage.person(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
        // Only what the program works with: the checking of thirteen definitions takes longer than the whole run.
        let is_used =
            |versions: &&&[Declared]| versions.iter().all(|version| version.info.group == "slo.koordinator.sh");
        for versions in koord_api::KINDS.iter().filter(is_used) {
            let definition = custom_resource_definition(versions, Profile::Hardened);
            stage.person(&Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
        }
    }

    fn wire(&self, core: &mut Core) -> Result<(), String> {
        let source = ConfigSource::default();
        core.add(NodeSloController::SPEC, nodeslo::COMPONENT, |wiring| NodeSloController::wire(wiring, &source))
            .and_then(|_| {
                core.add(NodeMetricController::SPEC, nodemetric::COMPONENT, |wiring| {
                    NodeMetricController::wire(wiring, &source)
                })
            })
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn disturb(&self, stage: &mut Stage, random: &Random) -> String {
        let name = format!("n{}", random.below(NAMES));
        let pool = format!("p{}", random.below(3));
        let (node, slo, metric) = (format!("{NODES}/{name}"), format!("{SLOS}/{name}"), format!("{METRICS}/{name}"));
        let (what, code) = match random.below(12) {
            0..=2 => {
                let body = json!({"metadata": {"name": name, "labels": {"pool": pool}}});
                ("creates a node", stage.person(&Method::POST, NODES, &body))
            }
            3 => ("deletes a node", stage.person(&Method::DELETE, &node, &Value::Null)),
            4 => {
                stage.person(&Method::DELETE, &node, &Value::Null);
                ("replaces a node", stage.person(&Method::POST, NODES, &json!({"metadata": {"name": name}})))
            }
            5 => {
                let body = json!({"metadata": {"labels": {"pool": pool}}});
                ("moves a node", stage.person(&Method::PATCH, &node, &body))
            }
            6 => {
                let body = json!({"spec": {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": random.below(100)}}});
                ("spoils a NodeSLO", stage.person(&Method::PATCH, &slo, &body))
            }
            7 => {
                let body = json!({"spec": {"extensions": {"Object": {"theirs": random.below(9)}}}});
                ("extends a NodeSLO", stage.person(&Method::PATCH, &slo, &body))
            }
            8 => ("deletes a NodeSLO", stage.person(&Method::DELETE, &slo, &Value::Null)),
            9 => {
                let body = json!({"spec": {"metricCollectPolicy": {"reportIntervalSeconds": random.below(100)}}});
                ("spoils a NodeMetric", stage.person(&Method::PATCH, &metric, &body))
            }
            10 => {
                let usage = json!({"status": {"nodeMetric": {"nodeUsage": {"resources": {"cpu": random.below(64).to_string()}}}}});
                ("reports usage", stage.person(&Method::PATCH, &format!("{metric}/status"), &usage))
            }
            _ => ("configures", configure(stage, random)),
        };
        format!("{what} {name} ({pool}) -> {code}")
    }

    /// A configuration that can be read: what the caches once held cannot matter any more.
    fn conclude(&self, stage: &mut Stage) {
        let data = json!({"resource-threshold-config": THRESHOLDS[1], "colocation-config": COLOCATIONS[1]});
        put_config(stage, &data);
    }

    fn check(&self, stage: &mut Stage) -> Result<(), String> {
        let config = stage.object(CONFIG).ok_or("the ConfigMap is gone")?;
        let data: BTreeMap<String, String> =
            serde_json::from_value(config["data"].clone()).map_err(|error| error.to_string())?;
        let (slo_config, mistakes) = NodeSloConfig::default().update(&data);
        if !mistakes.is_empty() {
            return Err(format!("the last configuration has mistakes: {mistakes:?}"));
        }
        let colocation = ColocationConfig::parse(data.get("colocation-config").map(String::as_str))
            .map_err(|error| error.to_string())?;
        let (slos, metrics) = (by_name(stage.objects(SLOS)), by_name(stage.objects(METRICS)));
        let nodes = by_name(stage.objects(NODES));
        for (kind, found) in [("NodeSLO", &slos), ("NodeMetric", &metrics)] {
            if !found.keys().eq(nodes.keys()) {
                return Err(format!("{kind}s of {:?} for the nodes {:?}", found.keys(), nodes.keys()));
            }
        }
        for (name, node) in &nodes {
            let labels: BTreeMap<String, String> =
                serde_json::from_value(node["metadata"]["labels"].clone()).unwrap_or_default();
            let mut expected = serde_json::to_value(slo_config.for_node(&labels, &BTreeMap::new()).spec)
                .map_err(|error| error.to_string())?;
            let found = &slos[name]["spec"];
            // What third parties keep there stays.
            expected["extensions"] = found["extensions"].clone();
            if *found != expected {
                return Err(format!("the NodeSLO of {name} is {found} instead of {expected}"));
            }
            let interval = colocation.for_node(&labels, &BTreeMap::new()).metric_report_interval_seconds;
            let found = &metrics[name]["spec"]["metricCollectPolicy"]["reportIntervalSeconds"];
            if *found != json!(interval) {
                return Err(format!("the NodeMetric of {name} is reported every {found} s instead of {interval:?}"));
            }
        }
        Ok(())
    }
}

fn configure(stage: &mut Stage, random: &Random) -> u16 {
    let pick = |from: &[&str; 4]| from[usize::try_from(random.below(4)).unwrap_or_default()].to_owned();
    match random.below(5) {
        0 => stage.person(&Method::DELETE, CONFIG, &Value::Null),
        1 => put_config(stage, &json!({})),
        2 => put_config(stage, &json!({"resource-threshold-config": pick(&THRESHOLDS)})),
        3 => put_config(stage, &json!({"colocation-config": pick(&COLOCATIONS)})),
        _ => {
            let data = json!({"resource-threshold-config": pick(&THRESHOLDS), "colocation-config": pick(&COLOCATIONS)});
            put_config(stage, &data)
        }
    }
}

fn put_config(stage: &mut Stage, data: &Value) -> u16 {
    let body = json!({"metadata": {"name": "slo-controller-config"}, "data": data});
    match stage.person(&Method::POST, CONFIG_MAPS, &body) {
        409 => {
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slo-controller-config"}, "data": data});
            stage.person(&Method::PUT, CONFIG, &body)
        }
        code => code,
    }
}

fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    objects.into_iter().map(|object| (name(&object), object)).collect()
}
