//! koord-manager: every node has a NodeSLO and a NodeMetric that say what `slo-controller-config` says.

use std::collections::BTreeMap;

use http::Method;
use koord_manager_controllers::{
    ConfigSource,
    nodemetric::{self, NodeMetricController},
    nodeslo::{self, NodeSloController},
};
use koord_resource::document::Declared;
use koord_runtime::{Core, random::Random};
use koord_simulator::Scenario;
use koord_types::slo_config::{ColocationConfig, NodeSloConfig};
use serde_json::{Value, json};

use crate::{
    Disturbance, Fault, Stage,
    people::{define, delete_held, let_go, name_of, replace},
};

pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const SLOS: &str = "/apis/slo.koordinator.sh/v1alpha1/nodeslos";
pub(crate) const METRICS: &str = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics";
const CONFIG_MAPS: &str = "/api/v1/namespaces/koordinator-system/configmaps";
pub(crate) const CONFIG: &str = "/api/v1/namespaces/koordinator-system/configmaps/slo-controller-config";
/// Few names, so that things that happen to one name meet.
const NAMES: u64 = 5;

/// So many of the configurations mean something; the others are nonsense.
const SENSIBLE: usize = 3;
const THRESHOLDS: [&str; 8] = [
    r#"{"clusterStrategy":{"enable":true,"cpuSuppressThresholdPercent":60}}"#,
    r#"{"clusterStrategy":{"enable":true},"nodeStrategies":[{"name":"b","nodeSelector":{"matchLabels":{"pool":"p1"}},"cpuSuppressThresholdPercent":40}]}"#,
    r#"{"clusterStrategy":null}"#,
    NONSENSE,
    "null",
    r#"{"clusterStrategy":{"enable":true,"cpuSuppressThresholdPercent":-5}}"#,
    r#"{"clusterStrategy":{"enable":true,"cpuSuppressThresholdPercent":9223372036854775807}}"#,
    r#"{"clusterStrategy":{"enable":"yes","cpuSuppressPolicy":"neither"}}"#,
];
const COLOCATIONS: [&str; 7] = [
    r#"{"enable":true,"metricReportIntervalSeconds":30}"#,
    r#"{"enable":true,"nodeConfigs":[{"name":"b","nodeSelector":{"matchLabels":{"pool":"p1"}},"metricReportIntervalSeconds":20}]}"#,
    r#"{"enable":false}"#,
    "[",
    r#"{"enable":true,"degradeTimeMinutes":0}"#,
    r#"{"enable":true,"metricReportIntervalSeconds":-1}"#,
    r#"{"enable":true,"nodeConfigs":[{"nodeSelector":{"matchExpressions":[{"key":"pool","operator":"Like"}]}}]}"#,
];
const NONSENSE: &str = "{not json";
/// Annotations of one object may have 256 KiB together.
const NONSENSE_MAX: usize = 200_000;

/// The scenario of the controllers of NodeSLO and NodeMetric.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manager {
    /// People write nothing that only a program with a memory understands: no nonsense, behind which the last good value
    /// counts, and no deletion of the configuration, which changes nothing until the next start.
    pub sensible: bool,
}

impl Scenario for Manager {
    fn prepare(&self, stage: &mut Stage) {
        for name in ["default", "koordinator-system"] {
            stage.person(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
        // Only what the program works with: the checking of thirteen definitions takes longer than the whole run.
        let is_used =
            |versions: &&&[Declared]| versions.iter().all(|version| version.info.group == "slo.koordinator.sh");
        define(stage, koord_types::KINDS.iter().filter(is_used));
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

    fn disturb(&self, stage: &mut Stage, random: &Random) -> Disturbance {
        let name = format!("n{}", random.below(NAMES));
        let pool = format!("p{}", random.below(3));
        let (node, slo, metric) = (format!("{NODES}/{name}"), format!("{SLOS}/{name}"), format!("{METRICS}/{name}"));
        let node_body = json!({"metadata": {"name": name, "labels": {"pool": pool}}});
        let (what, code, fault) = match random.below(16) {
            14 if self.sensible => ("leaves be", 304, None),
            0..=2 => ("creates a node", stage.person(&Method::POST, NODES, &node_body), None),
            3 => ("deletes a node", stage.person(&Method::DELETE, &node, &Value::Null), None),
            4 => ("replaces a node", replace(stage, (&node, NODES), &node_body), Some(Fault::Recreated)),
            5 => {
                let body = json!({"metadata": {"labels": {"pool": pool}}});
                ("moves a node", stage.person(&Method::PATCH, &node, &body), None)
            }
            6 => {
                let body = json!({"spec": {"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": random.below(100)}}});
                ("spoils a NodeSLO", stage.person(&Method::PATCH, &slo, &body), None)
            }
            7 => {
                let body = json!({"spec": {"extensions": {"Object": {"theirs": random.below(9)}}}});
                ("extends a NodeSLO", stage.person(&Method::PATCH, &slo, &body), None)
            }
            8 => ("deletes a NodeSLO", stage.person(&Method::DELETE, &slo, &Value::Null), None),
            9 => {
                let body = json!({"spec": {"metricCollectPolicy": {"reportIntervalSeconds": random.below(100)}}});
                ("spoils a NodeMetric", stage.person(&Method::PATCH, &metric, &body), None)
            }
            10 => {
                let some = if self.sensible { 2 } else { 4 };
                let cpu = ["1", "63", "9E", "-1"][usize::try_from(random.below(some)).unwrap_or_default()];
                let body = json!({"status": {"nodeMetric": {"nodeUsage": {"resources": {"cpu": cpu}}}}});
                let code = stage.person(&Method::PATCH, &format!("{metric}/status"), &body);
                ("reports usage", code, matches!(cpu, "9E" | "-1").then_some(Fault::Malformed))
            }
            11 => {
                let kept =
                    json!({"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeSLO", "metadata": {"name": name}});
                ("replaces a NodeSLO", replace(stage, (&slo, SLOS), &kept), Some(Fault::Recreated))
            }
            12 => {
                let held = if random.below(2) == 0 { &node } else { &slo };
                ("deletes what is held of", delete_held(stage, held), Some(Fault::Stuck))
            }
            13 => {
                let code = let_go(stage, &node);
                ("lets go of", code.max(let_go(stage, &slo)), None)
            }
            14 => {
                let nonsense = if random.below(8) == 0 { &"x".repeat(NONSENSE_MAX) } else { NONSENSE };
                let body = json!({"metadata": {"annotations": {"node.koordinator.sh/colocation-strategy": nonsense}}});
                ("annotates nonsense to", stage.person(&Method::PATCH, &node, &body), Some(Fault::Malformed))
            }
            _ => {
                let (code, is_nonsense) = configure(stage, random, self.sensible);
                ("configures", code, is_nonsense.then_some(Fault::Malformed))
            }
        };
        let fault = fault.filter(|_| code < 300);
        Disturbance { what: format!("{what} {name} ({pool}) -> {code}"), fault }
    }

    fn collections(&self) -> &'static [&'static str] {
        &[NODES, SLOS, METRICS]
    }

    /// A configuration that can be read: what the caches once held cannot matter any more.
    fn conclude(&self, stage: &mut Stage) {
        let data = json!({"resource-threshold-config": THRESHOLDS[1], "colocation-config": COLOCATIONS[1]});
        put_config(stage, &data);
        for collection in [NODES, SLOS] {
            for object in stage.objects(collection) {
                let_go(stage, &format!("{collection}/{}", name_of(&object)));
            }
        }
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

/// Writes another configuration; the code, and whether some of it is nonsense.
fn configure(stage: &mut Stage, random: &Random, sensible: bool) -> (u16, bool) {
    let pick = |from: &[&'static str]| {
        let from = if sensible { &from[..SENSIBLE] } else { from };
        let index = usize::try_from(random.below(from.len() as u64)).unwrap_or_default();
        (from[index], index >= SENSIBLE)
    };
    let ((thresholds, a), (colocation, b)) = (pick(&THRESHOLDS), pick(&COLOCATIONS));
    match random.below(5) {
        0 if !sensible => (stage.person(&Method::DELETE, CONFIG, &Value::Null), false),
        1 => (put_config(stage, &json!({})), false),
        2 => (put_config(stage, &json!({"resource-threshold-config": thresholds})), a),
        3 => (put_config(stage, &json!({"colocation-config": colocation})), b),
        _ => {
            let data = json!({"resource-threshold-config": thresholds, "colocation-config": colocation});
            (put_config(stage, &data), a || b)
        }
    }
}

pub(crate) fn put_config(stage: &mut Stage, data: &Value) -> u16 {
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
    objects.into_iter().map(|object| (name_of(&object), object)).collect()
}
