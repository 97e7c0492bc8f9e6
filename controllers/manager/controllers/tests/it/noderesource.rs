//! What the noderesource controller promises beyond what was recorded: when it writes, and what it never does.

use std::time::Duration;

use jiff::SignedDuration;
use koord_manager_controllers::colocationprofile;
use serde_json::{Value, json};

use crate::stage::{START, Stage};

const DAY: Duration = Duration::from_hours(24);

/// A cluster with one node of 100 cores and 120 GB, whose system uses 7 cores and 12 GB.
pub(crate) fn cluster() -> Stage {
    let mut stage = Stage::new("");
    configure(&mut stage, &json!({"colocation-config": json!({"enable": true}).to_string()}));
    let amounts = json!({"cpu": "100", "memory": "120G"});
    stage.put(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                      "status": {"capacity": amounts, "allocatable": amounts}}));
    stage.settle();
    report(&mut stage, "7");
    stage
}

fn configure(stage: &mut Stage, data: &Value) {
    let metadata = json!({"name": "slo-controller-config", "namespace": "koordinator-system"});
    stage.put(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}));
    stage.settle();
}

pub(crate) fn report(stage: &mut Stage, system_cpu: &str) {
    let usage = |cpu: &str| json!({"resources": {"cpu": cpu, "memory": "12G"}});
    let now = START + SignedDuration::try_from(stage.elapsed()).unwrap();
    let status = json!({"updateTime": now.to_string(), "nodeMetric": {"nodeUsage": usage("50"), "systemUsage": usage(system_cpu)}});
    stage.put(&json!({"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n"}, "status": status}));
    stage.settle();
}

fn node(stage: &mut Stage) -> Value {
    stage.observe(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}))
}

pub(crate) fn batch_cpu(stage: &mut Stage) -> Value {
    node(stage)["status"]["allocatable"]["kubernetes.io/batch-cpu"].clone()
}

/// The writes that came about meanwhile.
fn writes(stage: &mut Stage) -> Vec<String> {
    std::mem::take(&mut stage.writes)
}

#[test]
fn a_small_change_waits_and_is_written_once() {
    let mut stage = cluster();
    assert_eq!(batch_cpu(&mut stage), "53k");
    writes(&mut stage);
    report(&mut stage, "8");
    assert_eq!(writes(&mut stage), [""; 0], "1000 of 53000 is less than a tenth");
    stage.wait(Duration::from_secs(299));
    assert_eq!(writes(&mut stage), [""; 0]);
    stage.wait(Duration::from_secs(2));
    assert_eq!(batch_cpu(&mut stage), "52k");
    let written = writes(&mut stage);
    assert_eq!(written.len(), 1, "{written:?}");
    assert!(written[0].starts_with("patch Node/status n ") && !written[0].contains("mid-cpu"), "{written:?}");
    assert!(written[0].contains(r#""resourceVersion":"#) && written[0].contains(r#""uid":"#), "{written:?}");
}

#[test]
fn a_large_change_is_written_at_once() {
    let mut stage = cluster();
    report(&mut stage, "20");
    assert_eq!(batch_cpu(&mut stage), "40k");
}

#[test]
fn a_quiet_cluster_sees_no_write() {
    let mut stage = cluster();
    configure(
        &mut stage,
        &json!({"colocation-config": json!({"enable": true, "degradeTimeMinutes": 100_000}).to_string()}),
    );
    writes(&mut stage);
    for _ in 0..10 {
        stage.wait(Duration::from_secs(301));
        report(&mut stage, "7");
    }
    assert_eq!(writes(&mut stage), [""; 0]);
}

#[test]
fn a_report_that_grows_old_takes_the_amounts_with_it() {
    let mut stage = cluster();
    stage.wait(Duration::from_mins(15));
    assert_eq!(batch_cpu(&mut stage), "53k");
    stage.wait(Duration::from_secs(2));
    assert_eq!(batch_cpu(&mut stage), Value::Null);
    writes(&mut stage);
    stage.wait(DAY);
    assert_eq!(writes(&mut stage), [""; 0]);
}

#[test]
fn amounts_of_zones_go_with_those_of_the_node() {
    let mut stage = cluster();
    let resource = |name: &str, amount: &str| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
    let zone = |name: &str| json!({"name": name, "type": "Node", "resources": [resource("cpu", "50"), resource("memory", "60G")], "theirs": 1});
    let topology = json!({"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
                          "metadata": {"name": "n"}, "topologyPolicies": ["None"], "zones": [zone("node-0"), zone("node-1")]});
    stage.put(&topology);
    stage.settle();
    let mut batch = || {
        let found = stage.observe(&topology);
        assert_eq!(found["zones"][0]["theirs"], 1, "what others say of a zone stays");
        let resources = found["zones"][1]["resources"].as_array().unwrap().clone();
        let batch = resources.into_iter().find(|resource| resource["name"] == "kubernetes.io/batch-cpu").unwrap();
        batch["allocatable"].clone()
    };
    assert_eq!(batch(), "26500");
    // The second zone grows a little: by less than a tenth, and the node not at all.
    let mut grown = stage.observe(&topology);
    let cpus = grown["zones"][1]["resources"].as_array_mut().unwrap();
    *cpus.iter_mut().find(|resource| resource["name"] == "cpu").unwrap() = resource("cpu", "52");
    stage.put(&grown);
    stage.settle();
    let batch = |stage: &mut Stage| {
        let resources = stage.observe(&topology)["zones"][1]["resources"].as_array().unwrap().clone();
        let batch = resources.into_iter().find(|resource| resource["name"] == "kubernetes.io/batch-cpu").unwrap();
        (batch["allocatable"].clone(), batch["available"].clone())
    };
    assert_eq!(batch(&mut stage), (json!("26500"), json!("26500")));
    stage.wait(Duration::from_secs(302));
    report(&mut stage, "7");
    assert_eq!(batch(&mut stage), (json!("26500"), json!("26500")), "1200 of 26500 is less than a tenth, at any time");
    stage.wait(Duration::from_mins(16));
    assert_eq!(batch(&mut stage), (json!("0"), json!("0")));
}

#[test]
fn each_amount_of_a_zone_is_replaced_beyond_the_threshold_alone() {
    let mut stage = cluster();
    let resource = |name: &str, amount: &str| json!({"name": name, "capacity": amount, "allocatable": amount, "available": amount});
    let batch = json!({"name": "kubernetes.io/batch-cpu", "capacity": "26k", "allocatable": "20k", "available": "27k"});
    let resources = json!([resource("cpu", "50"), resource("memory", "60G"), batch]);
    let topology = json!({"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
                          "metadata": {"name": "n"}, "topologyPolicies": ["None"],
                          "zones": [{"name": "node-0", "type": "Node", "resources": resources},
                                    {"name": "node-1", "type": "Node", "resources": [resource("cpu", "50"), resource("memory", "60G")]}]});
    stage.put(&topology);
    stage.settle();
    let resources = stage.observe(&topology)["zones"][0]["resources"].clone();
    let batch =
        json!({"name": "kubernetes.io/batch-cpu", "capacity": "26k", "allocatable": "26500", "available": "27k"});
    assert_eq!(resources[1], batch);
    assert_eq!(resources[2]["name"], "kubernetes.io/batch-memory", "what is missing is added");
}

#[test]
fn a_key_that_was_never_good_decides_nothing() {
    let mut stage = Stage::asleep("", colocationprofile::Settings::default());
    let colocation = json!({"enable": true}).to_string();
    let keys = ["cpu-normalization-config", "resource-amplification-config"];
    configure(&mut stage, &json!({"colocation-config": colocation, keys[0]: "", keys[1]: ""}));
    let amounts = json!({"cpu": "100", "memory": "120G"});
    stage.put(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                      "status": {"capacity": amounts, "allocatable": amounts}}));
    stage.settle();
    report(&mut stage, "7");
    let ratio = |stage: &mut Stage| {
        node(stage)["metadata"]["annotations"]["node.koordinator.sh/cpu-normalization-ratio"].clone()
    };
    assert_eq!((batch_cpu(&mut stage), ratio(&mut stage)), (json!("53k"), Value::Null));
    let mut reasons = stage.reasons("slo-controller-config");
    reasons.sort_unstable();
    assert_eq!(reasons, ["CPUNormalizationCfgUnmarshalFailed", "ResourceAmplificationCfgUnmarshalFailed"]);
    configure(&mut stage, &json!({"colocation-config": colocation}));
    assert_eq!(ratio(&mut stage), "1.00");
    configure(&mut stage, &json!({"colocation-config": colocation, keys[0]: ""}));
    assert_eq!(ratio(&mut stage), "1.00", "the last good one holds");
}

#[test]
fn what_no_amount_depends_on_decides_nothing_anew() {
    let mut stage = cluster();
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "10", "memory": "10G"}}});
    stage.put(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
                      "spec": {"nodeName": "n", "containers": [container]}, "status": {"phase": "Running"}}));
    let ready = json!({"type": "MemoryPressure", "status": "False", "reason": "r", "message": "m"});
    stage.send("PATCH", "/api/v1/nodes/n/status", &json!({"status": {"conditions": [ready]}}));
    stage.settle();
    assert_eq!(batch_cpu(&mut stage), "53k");
    stage.wait(Duration::from_secs(1));
    report(&mut stage, "7");
    assert_eq!(batch_cpu(&mut stage), "43k");
}

#[test]
fn a_ratio_that_cannot_be_told_leaves_the_one_that_is_there() {
    let mut stage = cluster();
    let amplify = |stage: &mut Stage, ratio: f64| {
        let amplification = json!({"enable": true, "resourceAmplificationRatio": {"memory": ratio}});
        let data = json!({"colocation-config": json!({"enable": true}).to_string(),
                          "resource-amplification-config": amplification.to_string()});
        configure(stage, &data);
        node(stage)["metadata"]["annotations"]["node.koordinator.sh/resource-amplification-ratio"].clone()
    };
    assert_eq!(amplify(&mut stage, 1.5), r#"{"memory":1.50}"#);
    assert_eq!(amplify(&mut stage, 0.5), r#"{"memory":1.50}"#);
    assert_eq!(amplify(&mut stage, 2.0), r#"{"memory":2.00}"#);
}

#[test]
fn labels_of_gpus_are_copied_whenever_they_change() {
    let mut stage = cluster();
    let device = |model: &str| {
        json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
               "metadata": {"name": "n", "labels": {"node.koordinator.sh/gpu-model": model}},
               "spec": {"devices": [{"type": "gpu", "health": true, "resources": {"koordinator.sh/gpu-core": "100"}}]}})
    };
    for model in ["A100", "H100"] {
        stage.put(&device(model));
        stage.settle();
        assert_eq!(node(&mut stage)["metadata"]["labels"]["node.koordinator.sh/gpu-model"], model);
    }
}

#[test]
fn an_empty_label_of_a_device_is_copied_when_something_is_written() {
    let mut stage = cluster();
    let labels = json!({"node.koordinator.sh/gpu-model": ""});
    for labels in [&json!({}), &labels] {
        stage.put(&json!({
            "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": "n", "labels": labels},
            "spec": {"devices": [{"type": "gpu", "health": true, "resources": {"koordinator.sh/gpu-core": "100"}}]},
        }));
        stage.settle();
        assert_eq!(node(&mut stage)["metadata"]["labels"], Value::Null);
    }
    stage.wait(Duration::from_secs(302));
    assert_eq!(node(&mut stage)["metadata"]["labels"], labels);
}

#[test]
fn what_batch_pods_could_use_is_written_anew_where_it_stands_in_another_form() {
    let mut stage = cluster();
    let annotate = |stage: &mut Stage, key: &str, text: &str| {
        stage.send("PATCH", "/api/v1/nodes/n", &json!({"metadata": {"annotations": {key: text}}}));
        stage.settle();
        stage.wait(Duration::from_secs(302));
        report(stage, "7");
        node(stage)["metadata"]["annotations"]["node.koordinator.sh/originExtendedAllocatable"].clone()
    };
    let written = annotate(&mut stage, "a", "b");
    let text = written.as_str().unwrap();
    assert!(text.starts_with(r#"{"resources":{"kubernetes.io/batch-cpu":"53k","#), "{text}");
    let spaced = text.replace(',', ", ");
    assert_eq!(annotate(&mut stage, "node.koordinator.sh/originExtendedAllocatable", &spaced), written);
}

#[test]
fn what_nobody_understands_is_told_once() {
    let mut stage = cluster();
    let annotate = |stage: &mut Stage, text: &str| {
        stage.put(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "annotations": {"node.koordinator.sh/reservation": text}}}));
        stage.settle();
        (batch_cpu(stage), stage.reasons("n").len())
    };
    assert_eq!(annotate(&mut stage, "{"), (json!("53k"), 1));
    assert_eq!(annotate(&mut stage, r#"{"resources":{"cpu":"40"}}"#), (json!("20k"), 1));
    assert_eq!(stage.reasons("n"), ["InvalidNodeSetting"]);
}

#[test]
fn the_amounts_of_a_node_by_hand_are_put_right() {
    let mut stage = cluster();
    let edit = |stage: &mut Stage, field: &str| {
        let patch = json!({"status": {field: {"kubernetes.io/batch-cpu": "1"}}});
        stage.send("PATCH", "/api/v1/nodes/n/status", &patch);
        stage.settle();
        node(stage)["status"][field]["kubernetes.io/batch-cpu"].clone()
    };
    assert_eq!(edit(&mut stage, "allocatable"), "53k");
    assert_eq!(edit(&mut stage, "capacity"), "1", "nobody reads it, so that it waits like a small change");
    stage.wait(Duration::from_secs(302));
    assert_eq!(node(&mut stage)["status"]["capacity"]["kubernetes.io/batch-cpu"], "53k");
}
