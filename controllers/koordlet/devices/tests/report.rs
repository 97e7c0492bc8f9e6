//! The Device object that device files, GPUs and network cards make.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{fs, path::Path};

use fake_nvml::{FakeNvml, Gpu as FakeGpu, Scenario};
use jiff::Timestamp;
use koord_koordlet_devices::{DeviceChange, DeviceFiles, DeviceReport, Gpus, RdmaCards, Sources};
use koord_koordlet_framework::Node;
use koord_koordlet_system::HostTree;
use koord_koordlet_testing::{Case, Corpus, FileChange};
use serde_json::{Value, json};
use tempfile::TempDir;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).unwrap()
}

fn node(name: &str) -> Node {
    Node { name: name.into(), uid: "node-uid".into(), ..Node::default() }
}

/// Device files in a folder.
struct Files(TempDir, DeviceFiles);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), DeviceFiles::default())
    }

    fn report(&mut self, files: &[(&str, &str)]) -> DeviceReport {
        for (name, text) in files {
            fs::write(self.0.path().join(name), text).unwrap();
        }
        self.1.refresh(&HostTree, self.0.path());
        DeviceReport::of(&Sources { xpu: &self.1.devices(), ..Sources::default() })
    }
}

fn change(report: &DeviceReport, live: Option<&Value>, second: i64) -> Option<DeviceChange> {
    report.change(&node("n"), live, at(second))
}

/// The object after a change.
fn applied(report: &DeviceReport, live: Option<Value>, node: &Node, now: Timestamp) -> Value {
    match (report.change(node, live.as_ref(), now), live) {
        (Some(DeviceChange::Create(object)), None) => object,
        (Some(DeviceChange::Patch(patch)), Some(mut live)) => {
            merge(&mut live, &patch);
            live
        }
        (None, Some(live)) => live,
        (change, _) => panic!("{change:?}"),
    }
}

/// JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        match value {
            Value::Null => _ = target.as_object_mut().unwrap().remove(name),
            value => merge(&mut target[name], value),
        }
    }
}

const HEALTHY: &str = r#"[{"uuid":"u","minor":"0","vendor":"huawei","model":"Ascend-910B","topology":{"p2pLinks":[{"peerMinor":"1","type":"HCCS"}]},
    "status":{"healthy":true}}]"#;
const BROKEN: &str = r#"[{"uuid":"u","minor":"0","vendor":"huawei","model":"Ascend-910B","status":{"errCode":"12","errMessage":"broken"}}]"#;

#[test]
fn a_node_without_devices_has_an_empty_object() {
    let report = DeviceReport::of(&Sources::default());
    let Some(DeviceChange::Create(object)) = change(&report, None, 0) else { panic!("it is created") };
    assert_eq!(
        object,
        json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": "n",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "node-uid", "blockOwnerDeletion": true, "controller": true}]},
            "spec": {}, "status": {}})
    );
    assert_eq!(change(&report, Some(&object), 1), None);
}

#[test]
fn labels_and_annotations_of_others_stay_and_ours_come_and_go() {
    let mut files = Files::new();
    let live = json!({"metadata": {"name": "n", "labels": {"foreign": "x", "node.koordinator.sh/gpu-driver-version": "1"}, "annotations": {"foreign": "y"}},
        "spec": {"devices": [{"id": "f", "minor": 0, "type": "fpga", "health": true}]}});
    let live = applied(&files.report(&[("a", HEALTHY)]), Some(live), &node("n"), at(0));
    assert_eq!(
        live["metadata"],
        json!({"name": "n", "labels": {"foreign": "x", "node.koordinator.sh/gpu-vendor": "huawei", "node.koordinator.sh/gpu-model": "Ascend-910B",
            "node.koordinator.sh/gpu-partition-policy": "Prefer"}, "annotations": {"foreign": "y",
            "scheduling.koordinator.sh/gpu-partitions": r#"{"2":[{"minors":[0,1],"gpuLinkType":"HCCS","allocationScore":1}]}"#}})
    );
    assert_eq!(live["spec"]["devices"].as_array().unwrap().len(), 1, "the devices are ours");
    let without_links = applied(&files.report(&[("a", BROKEN)]), Some(live), &node("n"), at(1));
    assert_eq!(without_links["metadata"]["annotations"], json!({"foreign": "y"}));
    let emptied = applied(&files.report(&[("a", "[]")]), Some(without_links), &node("n"), at(2));
    assert_eq!((&emptied["metadata"]["labels"], &emptied["spec"]), (&json!({"foreign": "x"}), &json!({})));
}

#[test]
fn the_transition_time_changes_with_the_status_alone() {
    let mut files = Files::new();
    let mut live = None;
    let other = BROKEN.replace("broken", "still broken");
    for (second, text, status, reason, since) in [
        (0, HEALTHY, "True", "DeviceHealthy", "2026-01-01T00:00:00Z"),
        (10, HEALTHY, "True", "DeviceHealthy", "2026-01-01T00:00:00Z"),
        (20, BROKEN, "False", "Error12", "2026-01-01T00:00:20Z"),
        (30, &other, "False", "Error12", "2026-01-01T00:00:20Z"),
        (40, HEALTHY, "True", "DeviceHealthy", "2026-01-01T00:00:40Z"),
    ] {
        let object = applied(&files.report(&[("a", text)]), live, &node("n"), at(second));
        let condition = &object["spec"]["devices"][0]["conditions"][0];
        let found = (&condition["status"], &condition["reason"], &condition["lastTransitionTime"], &condition["type"]);
        assert_eq!(found, (&json!(status), &json!(reason), &json!(since), &json!("Healthy")), "{second}");
        live = Some(object);
    }
}

#[test]
fn what_the_live_object_says_in_other_words_is_not_written_again() {
    let mut files = Files::new();
    let memory = r#"[{"uuid":"u","minor":"0","resources":{"gpu-memory":"1024Mi"}}]"#;
    let mut live = applied(&files.report(&[("a", memory)]), None, &node("n"), at(0));
    live["spec"]["devices"][0]["resources"]["koordinator.sh/gpu-memory"] = json!("1Gi");
    live["spec"]["devices"][0]["labels"] = json!({"of": "others"});
    live["spec"]["devices"][0]["conditions"].as_array_mut().unwrap().push(
        json!({"type": "Cordoned", "status": "True", "reason": "Admin", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}),
    );
    assert_eq!(change(&files.report(&[]), Some(&live), 5), None);
    live["spec"]["devices"][0]["minor"] = json!("none");
    assert!(change(&files.report(&[]), Some(&live), 5).is_some(), "a device that is not understood is replaced");
}

fn gpu(minor: u32, name: &str) -> FakeGpu {
    FakeGpu {
        uuid: format!("GPU-{minor}"),
        minor,
        name: name.to_owned(),
        bus_id: "00000000:1A:00.0".to_owned(),
        memory_total_bytes: 80 << 30,
        event_types: 8,
        ..FakeGpu::default()
    }
}

fn nvidia(gpus: Vec<FakeGpu>) -> (FakeNvml, Gpus) {
    let fake = FakeNvml::new(&Scenario { driver_version: "550.54.15".to_owned(), gpus, ..Scenario::default() });
    let mut gpus = Gpus::new(fake.path());
    gpus.refresh(&HostTree, Path::new("/nowhere"), at(0)).unwrap();
    (fake, gpus)
}

#[test]
fn gpus_of_nvidia_are_reported_with_model_and_driver() {
    let (_fake, gpus) = nvidia(vec![gpu(1, "NVIDIA H100 80GB HBM3"), gpu(0, "NVIDIA H100 80GB HBM3")]);
    let report = DeviceReport::of(&Sources { gpus: Some(&gpus), ..Sources::default() });
    let object = applied(&report, None, &node("n"), at(0));
    assert_eq!(
        object["metadata"]["labels"],
        json!({"node.koordinator.sh/gpu-vendor": "nvidia", "node.koordinator.sh/gpu-model": "H100-80GB-HBM3",
            "node.koordinator.sh/gpu-driver-version": "550.54.15"})
    );
    assert_eq!(
        object["spec"]["devices"][0],
        json!({"id": "GPU-0", "minor": 0, "type": "gpu", "health": true,
            "resources": {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "80Gi", "koordinator.sh/gpu-memory-ratio": "100"},
            "topology": {"socketID": -1, "nodeID": 0, "pcieID": "", "busID": "0000:1a:00.0"},
            "conditions": [{"type": "Healthy", "status": "True", "reason": "DeviceHealthy", "message": "device is healthy",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    );
    assert_eq!(object["spec"]["devices"][1]["id"], "GPU-1");
}

#[test]
fn gpus_of_several_models_have_an_empty_model_and_partitions_of_administrators_stay() {
    let (_fake, gpus) = nvidia(vec![gpu(0, "NVIDIA H100 80GB HBM3"), gpu(1, "NVIDIA A100-SXM4-40GB")]);
    let report = DeviceReport::of(&Sources { gpus: Some(&gpus), ..Sources::default() });
    let partitions = json!({"scheduling.koordinator.sh/gpu-partitions": "{}"});
    let live = json!({"metadata": {"name": "n", "annotations": partitions, "labels": {"node.koordinator.sh/gpu-partition-policy": "Honor"}}});
    let object = applied(&report, Some(live), &node("n"), at(0));
    assert_eq!(object["metadata"]["annotations"], partitions);
    assert_eq!(object["metadata"]["labels"]["node.koordinator.sh/gpu-model"], "");
    assert_eq!(object["metadata"]["labels"]["node.koordinator.sh/gpu-partition-policy"], "Honor");
}

#[test]
fn device_files_outrank_nvidia_and_network_cards_come_last() {
    let sys = tempfile::tempdir().unwrap();
    let card = sys.path().join("bus/pci/devices/0000:1b:00.0");
    fs::create_dir_all(card.join("infiniband/mlx5_0")).unwrap();
    for (name, text) in [("class", "0x020700"), ("numa_node", "0"), ("sriov_numvfs", "1")] {
        fs::write(card.join(name), text).unwrap();
    }
    fs::create_dir_all(sys.path().join("bus/pci/devices/0000:1b:00.2")).unwrap();
    std::os::unix::fs::symlink("../0000:1b:00.2", card.join("virtfn0")).unwrap();
    fs::create_dir_all(sys.path().join("class/infiniband/mlx5_0/ports/1")).unwrap();
    fs::write(sys.path().join("class/infiniband/mlx5_0/ports/1/state"), "4: ACTIVE\n").unwrap();
    let rdma = RdmaCards::discover(&HostTree, sys.path());
    let (_fake, gpus) = nvidia(vec![gpu(0, "NVIDIA H100 80GB HBM3")]);
    let mut files = Files::new();
    files.report(&[("a", BROKEN)]);
    let report = DeviceReport::of(&Sources { xpu: &files.1.devices(), gpus: Some(&gpus), rdma: Some(&rdma) });
    let object = applied(&report, None, &node("n"), at(0));
    let devices = object["spec"]["devices"].as_array().unwrap();
    assert_eq!(devices.iter().map(|device| &device["type"]).collect::<Vec<_>>(), ["gpu", "rdma"]);
    assert_eq!(devices[0]["id"], "u");
    assert_eq!(
        devices[1],
        json!({"id": "0000:1b:00.0", "minor": 0, "type": "rdma", "health": true, "resources": {"koordinator.sh/rdma": "100"},
            "topology": {"socketID": -1, "nodeID": 0, "pcieID": "", "busID": "0000:1b:00.0"},
            "vfGroups": [{"vfs": [{"minor": -1, "busID": "0000:1b:00.2"}]}],
            "conditions": [{"type": "Healthy", "status": "True", "reason": "DeviceHealthy", "message": "device is healthy",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    );
}

fn list<'a>(object: &'a mut Value, path: &str) -> impl Iterator<Item = &'a mut Value> {
    object.pointer_mut(path).and_then(Value::as_array_mut).into_iter().flatten()
}

/// What the recorded objects leave out: times, uids, and texts of annotations, which are compared as JSON.
fn as_recorded(mut object: Value) -> Value {
    for device in list(&mut object, "/spec/devices") {
        for condition in list(device, "/conditions") {
            condition.as_object_mut().unwrap().remove("lastTransitionTime");
        }
    }
    for owner in list(&mut object, "/metadata/ownerReferences") {
        owner.as_object_mut().unwrap().remove("uid");
    }
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    for text in annotations.into_iter().flat_map(serde_json::Map::values_mut) {
        if let Ok(json) = serde_json::from_str::<Value>(text.as_str().unwrap()) {
            *text = json!({ "json": json });
        }
    }
    object
}

/// The object that ours makes of a recorded case.
fn object_of(case: &Case) -> Value {
    let mut files = Files::new();
    let texts = case.files.iter().filter_map(|(path, change)| match change {
        Some(FileChange::Text(text)) => Some((path.strip_prefix("xpu/")?, text.as_str())),
        _ => None,
    });
    let report = files.report(&texts.collect::<Vec<_>>());
    let live = case.objects.iter().find(|object| object["kind"] == "Device").cloned();
    let mut object = applied(&report, live, &node(&case.node_name), at(0));
    object["status"] = json!({});
    as_recorded(object)
}

#[test]
fn recorded_cases_differ_only_in_what_the_original_does_wrong() {
    let Some(corpus) = Corpus::recorded() else {
        programs::skipped("recordings of the original", "they are not beside the repository");
        return;
    };
    let cases = corpus.cases().into_iter().filter(|case| case.group == "device").collect::<Vec<_>>();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let mut recorded = case.recorded["objects"]["Device"].clone();
        // The original drops the socket of a device file.
        for device in list(&mut recorded, "/spec/devices") {
            let minor = device["minor"].clone();
            device["topology"]["socketID"] = minor;
        }
        let ours = object_of(&case);
        match case.name.as_str() {
            // It removes labels and annotations of others.
            "device-xpu-existing" => {
                recorded["metadata"]["labels"]["foreign"] = json!("x");
                recorded["metadata"]["annotations"]["foreign"] = json!("y");
            }
            // It writes a reason that the API server refuses, every round, and reports nothing.
            "device-xpu-numeric-code" => {
                let devices = ours["spec"]["devices"].as_array().unwrap();
                let conditions: Vec<_> =
                    devices.iter().map(|device| device["conditions"][0]["reason"].as_str().unwrap()).collect();
                assert_eq!(conditions, ["DeviceHealthy", "Error12"]);
                continue;
            }
            _ => {}
        }
        assert_eq!(ours, recorded, "{}", case.name);
    }
}
