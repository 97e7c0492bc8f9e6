//! The state of the agent as it serves it. The documents of one node are kept beside their types, where the tests of koordctl read them:
//! `WRITE=1 cargo test -p koordlet --test recordings state` writes them.

use std::{fs, path::Path};

use koord_koordlet_state::{CapabilityState, Comparison, FILES_PATH, NodeFiles, NodeStatus, STATUS_PATH};
use koord_koordlet_testing::{Case, Corpus, Fixtures, Step, play};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::node_agent::NodeAgent;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../controllers/koordlet/state/examples");
const BEST_EFFORT: &str = "kubepods.slice/kubepods-besteffort.slice";
const POD: &str = "kubepods-besteffort-podb61822e8_357d_caff_77ea_accf348d9134.slice";

/// A node with two batch pods and suppression by quota, on which another program has changed two files of one of them.
fn node(case: &mut Case) {
    "BatchResource=true".clone_into(&mut case.feature_gates);
    "n1".clone_into(&mut case.node_name);
    case.node.as_mut().unwrap()["metadata"]["name"] = json!("n1");
    let threshold = json!({"enable": true, "cpuSuppressThresholdPercent": 65, "cpuSuppressPolicy": "cfsQuota"});
    case.objects[0]["metadata"]["name"] = json!("n1");
    case.objects[0]["spec"]["resourceUsedThresholdWithBE"] = threshold;
    case.pods[0]["metadata"]["namespace"] = json!("shop");
    let mut other = case.pods[0].clone();
    other["metadata"]["name"] = json!("other");
    other["metadata"]["uid"] = json!("0d7e54a1-9c55-4a9c-9a3b-5b1b0c7f2d11");
    other["status"]["containerStatuses"][0]["containerID"] = json!("containerd://77aa01bc");
    case.pods.push(other);
    let files = [("cpu/{}/cpu.shares", "2"), ("memory/{}/memory.limit_in_bytes", "4096")];
    let folder = format!("{BEST_EFFORT}/{POD}");
    let files = files.map(|(file, text)| (format!("cgroup/{}", file.replace("{}", &folder)), Some(text.to_owned())));
    case.steps.push(Step { at: 7.0, files: files.into(), ..Step::default() });
}

/// The document of a path after the case, and its text.
fn shown<T: DeserializeOwned>(path: &str, change: impl FnOnce(&mut Case)) -> (T, Value) {
    let corpus = Corpus::own();
    let mut case = corpus.cases().into_iter().find(|case| case.name == "batch-v1").unwrap();
    node(&mut case);
    case.http.insert("page".to_owned(), path.to_owned());
    case.http_body = true;
    change(&mut case);
    let seen = play(&case, &Fixtures::in_folder(corpus.fixtures()), &NodeAgent::start);
    let page = &seen["http"]["page"];
    assert_eq!(page["status"], 200, "{page:#}");
    let body: Value = serde_json::from_str(page["body"].as_str().unwrap()).unwrap();
    (serde_json::from_value(body.clone()).unwrap(), body)
}

/// Compares a document with the example of this name.
fn is_example(name: &str, document: &Value) {
    let file = Path::new(EXAMPLES).join(name);
    let text = serde_json::to_string_pretty(document).unwrap() + "\n";
    if std::env::var_os("WRITE").is_some() {
        fs::write(&file, text).unwrap();
    } else {
        let known = fs::read_to_string(&file).unwrap();
        assert_eq!(known, text, "{name} is behind: WRITE=1 cargo test -p koordlet --test recordings state");
    }
}

#[test]
fn the_status_has_features_and_the_age_of_inputs() {
    let (status, document) = shown::<NodeStatus>(STATUS_PATH, |_| {});
    is_example("status.json", &document);
    let age = |name: &str| status.inputs.iter().find(|input| input.name == name).unwrap().age_seconds;
    assert!(age("samples").unwrap() <= 1.0 && age("kubelet pods").unwrap() <= 10.0, "{status:#?}");
    assert!(age("NodeSLO").unwrap() >= 8.0 && age("Node").unwrap() >= 8.0, "{status:#?}");
    assert_eq!((age("NodeMetric"), status.pods), (None, 2), "the case has no NodeMetric");
    let state = |name: &str| status.capabilities.iter().find(|known| known.feature == name).unwrap();
    assert_eq!(state("kubelet").state, CapabilityState::Active);
    let node = state("node");
    assert!(node.state == CapabilityState::Degraded && node.reason.as_ref().unwrap().contains("/meminfo"), "{node:?}");
    assert!(node.remedy.is_some());
}

#[test]
fn files_are_compared_with_what_is_wanted_of_them() {
    let (files, document) = shown::<NodeFiles>(FILES_PATH, |_| {});
    is_example("files.json", &document);
    let pod = files.pod("shop", "worker").unwrap();
    assert_eq!(pod.cgroup, format!("{BEST_EFFORT}/{POD}"));
    let shares = files.of_cgroup(&pod.cgroup).find(|file| file.file == "cpu.shares").unwrap();
    let decision = shares.decision.as_ref().unwrap();
    assert_eq!((decision.value.as_str(), shares.actual.as_deref()), ("2560", Some("2")));
    assert_eq!((decision.reason.object.as_str(), shares.comparison), ("Pod/shop/worker", Comparison::Differs));
    let suppressed = files.of_cgroup(BEST_EFFORT).find(|file| file.file == "cpu.cfs_quota_us").unwrap();
    let reason = &suppressed.decision.as_ref().unwrap().reason;
    assert_eq!((reason.strategy.as_str(), reason.object.as_str()), ("CPUSuppress", "NodeSLO/n1"));
    assert_eq!(suppressed.comparison, Comparison::Agrees);
    let wrong: Vec<&str> =
        files.files.iter().filter(|file| file.comparison.is_wrong()).map(|file| &*file.file).collect();
    assert_eq!(wrong, ["cpu.shares", "memory.limit_in_bytes"]);
}

#[test]
fn files_of_a_pod_are_those_of_its_cgroups_and_the_ones_above() {
    let (all, _) = shown::<NodeFiles>(FILES_PATH, |_| {});
    let (of_pod, _) = shown::<NodeFiles>(&format!("{FILES_PATH}?pod=shop/worker"), |_| {});
    let is_of_pod = |cgroup: &str| {
        cgroup.is_empty() || BEST_EFFORT.starts_with(cgroup) || cgroup.starts_with(&format!("{BEST_EFFORT}/{POD}"))
    };
    let wanted: Vec<_> = all.files.iter().filter(|file| file.cgroup.as_deref().is_some_and(is_of_pod)).collect();
    assert!(wanted.len() < all.files.len(), "some file is of another cgroup");
    assert_eq!(of_pod.files.iter().collect::<Vec<_>>(), wanted);
    let (of_none, _) = shown::<NodeFiles>(&format!("{FILES_PATH}?pod=shop/nothing"), |_| {});
    assert!(of_none.files.is_empty() && of_none.pods.len() == 2, "the answer names the pods that there are");
}
