//! Pods whose claims are bound when the pod has its node.

use http::Method;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{PODS, Stage};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const SELECTED: &str = "volume.kubernetes.io/selected-node";
const TIMEOUT: &str = r#"running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded"#;

/// A node, a claim of a class with this provisioner, and a pod with the claim.
fn stage(provisioner: &str) -> Stage {
    let stage = Stage::new();
    stage.add_node("only", "4");
    let class = json!({
        "metadata": {"name": "waits"}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
    });
    stage.send(Method::POST, "/apis/storage.k8s.io/v1/storageclasses", &class);
    let resources = json!({"requests": {"storage": "1Gi"}});
    let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "waits", "resources": resources});
    stage.send(Method::POST, CLAIMS, &json!({"metadata": {"name": "c"}, "spec": spec}));
    let volume = json!({"name": "v", "persistentVolumeClaim": {"claimName": "c"}});
    let container = json!({"name": "c", "image": "i"});
    let spec = json!({"schedulerName": "koord-scheduler", "containers": [container], "volumes": [volume]});
    stage.send(Method::POST, PODS, &json!({"metadata": {"name": "p"}, "spec": spec}));
    stage
}

impl Stage {
    fn add_volume(&self) {
        let spec = json!({
            "accessModes": ["ReadWriteOnce"], "storageClassName": "waits", "capacity": {"storage": "5Gi"},
            "hostPath": {"path": "/data"}, "persistentVolumeReclaimPolicy": "Retain",
        });
        self.send(Method::POST, VOLUMES, &json!({"metadata": {"name": "v"}, "spec": spec}));
        self.send(Method::PATCH, &format!("{VOLUMES}/v/status"), &json!({"status": {"phase": "Available"}}));
    }

    fn expected(&self) -> Value {
        self.send(Method::GET, &format!("{PODS}/p"), &Value::Null)["status"]["nominatedNodeName"].clone()
    }

    fn claim(&self) -> Value {
        self.send(Method::GET, &format!("{CLAIMS}/c"), &Value::Null)
    }

    /// What the controller of volumes does at last.
    fn finish_claim(&self) {
        let annotations = json!({"pv.kubernetes.io/bind-completed": "yes"});
        let bound = json!({"metadata": {"annotations": annotations}, "spec": {"volumeName": "v"}});
        self.send(Method::PATCH, &format!("{CLAIMS}/c"), &bound);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_when_its_volume_was_made_for_its_node() {
    let stage = stage("csi.example.com");
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.pass(5).await;
    assert_eq!(stage.claim()["metadata"]["annotations"][SELECTED], "only");
    assert_eq!((stage.place("p"), stage.expected()), ("-".to_owned(), json!("only")));

    stage.finish_claim();
    stage.pass(2).await;
    assert_eq!(stage.place("p"), "-", "its volume is not there");
    stage.add_volume();
    stage.pass(2).await;
    assert_eq!(stage.place("p"), "only");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_when_a_volume_that_exists_is_bound_to_its_claim() {
    let stage = stage("kubernetes.io/no-provisioner");
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.pass(5).await;
    let refused = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.";
    assert!(stage.place("p").starts_with(refused), "{}", stage.place("p"));

    stage.add_volume();
    stage.pass(20).await;
    let volume = stage.send(Method::GET, &format!("{VOLUMES}/v"), &Value::Null);
    assert_eq!(volume["spec"]["claimRef"]["uid"], stage.claim()["metadata"]["uid"]);
    assert_eq!(volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"], "yes");
    assert_ne!(stage.place("p"), "only");
    stage.finish_claim();
    stage.pass(2).await;
    assert_eq!(stage.place("p"), "only");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_volume_is_not_made_in_time_is_tried_again() {
    let stage = stage("csi.example.com");
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.pass(590).await;
    assert_eq!(stage.place("p"), "-");
    stage.pass(20).await;
    assert_eq!((stage.place("p"), stage.expected()), (TIMEOUT.to_owned(), json!("only")));

    stage.add_volume();
    stage.finish_claim();
    stage.pass(30).await;
    assert_eq!(stage.place("p"), "only");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_while_its_volume_is_made_is_forgotten() {
    let stage = stage("csi.example.com");
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.pass(5).await;
    stage.send(Method::DELETE, &format!("{PODS}/p"), &json!({"gracePeriodSeconds": 0}));
    stage.pass(700).await;
    let events = stage.send(Method::GET, "/api/v1/namespaces/default/events", &Value::Null);
    let events = events["items"].as_array().unwrap();
    assert!(!events.iter().any(|event| event["reason"] == "FailedScheduling"), "{events:?}");
    stop.cancel();
    running.await.unwrap().unwrap();
}
