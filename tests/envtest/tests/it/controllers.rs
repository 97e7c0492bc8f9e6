//! A server alone does nothing by itself, as kube-apiserver; with controllers it does what kube-controller-manager does.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use envtest::{
    cluster::{Cluster, Controllers, Options},
    shell::Server,
};
use http::Method;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Creates an object whose owner never existed, and deletes a namespace; then much time passes.
async fn after_an_hour(controllers: Option<Controllers>) -> Server {
    let cluster = Cluster::bind(Options { controllers, ..Options::default() }).await.unwrap();
    let server = cluster.server.clone();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "u"});
    let orphan = json!({"metadata": {"name": "orphan", "ownerReferences": [owner]}});
    assert_eq!(server.send(Method::POST, MAPS, &orphan).await.0, 201);
    let namespace = json!({"metadata": {"name": "n"}});
    assert_eq!(server.send(Method::POST, "/api/v1/namespaces", &namespace).await.0, 201);
    assert_eq!(server.send(Method::DELETE, "/api/v1/namespaces/n", &Value::Null).await.0, 200);
    tokio::time::sleep(Duration::from_hours(1)).await;
    server
}

#[tokio::test(start_paused = true)]
async fn a_server_alone_collects_no_garbage_and_creates_no_object() {
    let server = after_an_hour(None).await;
    assert_eq!(server.send(Method::GET, &format!("{MAPS}/orphan"), &Value::Null).await.0, 200);
    let (code, namespace) = server.send(Method::GET, "/api/v1/namespaces/n", &Value::Null).await;
    assert_eq!((code, namespace["status"]["phase"].as_str()), (200, Some("Terminating")));
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    assert_eq!(server.send(Method::GET, account, &Value::Null).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn with_controllers_garbage_goes_namespaces_end_and_default_objects_are_there() {
    let server = after_an_hour(Some(Controllers::default())).await;
    assert_eq!(server.send(Method::GET, &format!("{MAPS}/orphan"), &Value::Null).await.0, 404);
    assert_eq!(server.send(Method::GET, "/api/v1/namespaces/n", &Value::Null).await.0, 404);
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    assert_eq!(server.send(Method::GET, account, &Value::Null).await.0, 200);
}

async fn with_controllers() -> Server {
    let cluster = Cluster::bind(Options { controllers: Some(Controllers::default()), ..Options::default() });
    cluster.await.unwrap().server
}

async fn get(server: &Server, path: &str) -> Value {
    server.send(Method::GET, path, &Value::Null).await.1
}

async fn create(server: &Server, path: &str, body: Value) {
    let (code, answer) = server.send(Method::POST, path, &body).await;
    assert_eq!(code, 201, "{answer}");
}

async fn change(server: &Server, path: &str, change: impl FnOnce(&mut Value)) {
    let mut object = get(server, path).await;
    change(&mut object);
    let (code, answer) = server.send(Method::PUT, path, &object).await;
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_cordoned_node_is_tainted_until_it_is_uncordoned() {
    let server = with_controllers().await;
    create(&server, "/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    let node = "/api/v1/nodes/n";
    let keys = || async {
        let taints = get(&server, node).await["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.iter().map(|taint| format!("{}:{}", taint["key"], taint["effect"]).replace('"', "")).collect::<Vec<_>>()
    };
    assert_eq!(keys().await, ["node.kubernetes.io/not-ready:NoSchedule"]);
    let ready = json!([{"type": "Ready", "status": "True"}]);
    change(&server, &format!("{node}/status"), |node| node["status"]["conditions"] = ready).await;
    assert!(keys().await.is_empty());
    change(&server, node, |node| node["spec"]["unschedulable"] = json!(true)).await;
    assert_eq!(keys().await, ["node.kubernetes.io/unschedulable:NoSchedule"]);
    assert!(get(&server, node).await["spec"]["taints"][0]["timeAdded"].is_string());
    change(&server, node, |node| node["spec"]["unschedulable"] = json!(false)).await;
    assert!(keys().await.is_empty());
}

const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";

fn volume(name: &str, class: &str, size: &str, modes: &[&str]) -> Value {
    json!({"metadata": {"name": name}, "spec": {"capacity": {"storage": size}, "accessModes": modes, "storageClassName": class,
        "local": {"path": "/x"}}})
}

fn claim(name: &str, class: &str, size: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": {"storage": size}}}})
}

async fn class(server: &Server, name: &str, provisioner: &str, mode: &str) {
    let class = json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode});
    create(server, "/apis/storage.k8s.io/v1/storageclasses", class).await;
}

fn phase(object: &Value) -> &str {
    object["status"]["phase"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_waits_for_its_pod_is_bound_when_the_scheduler_has_chosen() {
    let server = with_controllers().await;
    class(&server, "wffc", "kubernetes.io/no-provisioner", "WaitForFirstConsumer").await;
    create(&server, VOLUMES, volume("disk", "wffc", "1Gi", &["ReadWriteOnce"])).await;
    create(&server, CLAIMS, claim("claim", "wffc", "1Gi")).await;
    let (disk, own) = (format!("{VOLUMES}/disk"), format!("{CLAIMS}/claim"));
    let (available, pending) = (get(&server, &disk).await, get(&server, &own).await);
    assert_eq!((phase(&available), phase(&pending)), ("Available", "Pending"));
    assert_eq!(available["spec"].get("claimRef"), None);
    // What the scheduler writes before it binds the pod.
    let uid = pending["metadata"]["uid"].clone();
    change(&server, &disk, |volume| {
        volume["metadata"]["annotations"] = json!({"pv.kubernetes.io/bound-by-controller": "yes"});
        volume["spec"]["claimRef"] =
            json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "default", "name": "claim", "uid": uid});
    })
    .await;
    let (volume, claim) = (get(&server, &disk).await, get(&server, &own).await);
    assert_eq!((phase(&volume), phase(&claim)), ("Bound", "Bound"));
    assert_eq!(claim["spec"]["volumeName"], "disk");
    let yes = json!({"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"});
    assert_eq!(claim["metadata"]["annotations"], yes);
    assert_eq!(claim["status"]["capacity"], json!({"storage": "1Gi"}));
    assert_eq!(claim["status"]["accessModes"], json!(["ReadWriteOnce"]));
    assert_eq!(server.send(Method::DELETE, &own, &Value::Null).await.0, 200);
    assert_eq!(phase(&get(&server, &disk).await), "Released");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_does_not_wait_takes_the_smallest_volume_that_fits() {
    let server = with_controllers().await;
    class(&server, "now", "kubernetes.io/no-provisioner", "Immediate").await;
    create(&server, CLAIMS, claim("early", "now", "2Gi")).await;
    assert_eq!(phase(&get(&server, &format!("{CLAIMS}/early")).await), "Pending");
    for (name, class, size, modes) in [
        ("small", "now", "1Gi", &["ReadWriteOnce"][..]),
        ("other-class", "", "2Gi", &["ReadWriteOnce"]),
        ("read-only", "now", "2Gi", &["ReadOnlyMany"]),
        ("first", "now", "4Gi", &["ReadWriteOnce", "ReadOnlyMany"]),
        ("larger", "now", "8Gi", &["ReadWriteOnce"]),
        ("large", "now", "3Gi", &["ReadWriteOnce"]),
        ("both", "now", "2Gi", &["ReadWriteOnce", "ReadOnlyMany"]),
    ] {
        create(&server, VOLUMES, volume(name, class, size, modes)).await;
    }
    assert_eq!(get(&server, &format!("{CLAIMS}/early")).await["spec"]["volumeName"], "first", "it came first");
    let reference = get(&server, &format!("{VOLUMES}/first")).await["spec"]["claimRef"].clone();
    let early = get(&server, &format!("{CLAIMS}/early")).await;
    assert_eq!((&reference["name"], &reference["uid"]), (&json!("early"), &early["metadata"]["uid"]));
    create(&server, CLAIMS, claim("late", "now", "2Gi")).await;
    let late = get(&server, &format!("{CLAIMS}/late")).await;
    assert_eq!((phase(&late), &late["spec"]["volumeName"]), ("Bound", &json!("large")));
    // A volume that names a claim waits for it.
    let mut kept = volume("kept", "", "1Gi", &["ReadWriteOnce"]);
    kept["spec"]["claimRef"] = json!({"namespace": "default", "name": "owner"});
    create(&server, VOLUMES, kept).await;
    assert_eq!(phase(&get(&server, &format!("{VOLUMES}/kept")).await), "Available");
    create(&server, CLAIMS, claim("owner", "", "1Gi")).await;
    assert_eq!(get(&server, &format!("{CLAIMS}/owner")).await["spec"]["volumeName"], "kept");
    // A volume that is gone leaves its claim lost.
    assert_eq!(server.send(Method::DELETE, &format!("{VOLUMES}/large"), &Value::Null).await.0, 200);
    assert_eq!(phase(&get(&server, &format!("{CLAIMS}/late")).await), "Lost");
}

#[tokio::test(start_paused = true)]
async fn a_claim_says_which_provisioner_is_to_make_its_volume_once_a_node_is_chosen() {
    let server = with_controllers().await;
    class(&server, "made", "example.com/disk", "WaitForFirstConsumer").await;
    create(&server, CLAIMS, claim("c", "made", "1Gi")).await;
    let path = format!("{CLAIMS}/c");
    assert_eq!(get(&server, &path).await["metadata"].get("annotations"), None);
    let selected = json!({"volume.kubernetes.io/selected-node": "n"});
    change(&server, &path, |claim| claim["metadata"]["annotations"] = selected).await;
    let annotations = get(&server, &path).await["metadata"]["annotations"].clone();
    assert_eq!(annotations["volume.kubernetes.io/storage-provisioner"], "example.com/disk");
    assert_eq!(annotations["volume.kubernetes.io/selected-node"], "n");
}

#[tokio::test(start_paused = true)]
async fn a_node_is_unreachable_a_minute_after_its_kubelet_stopped_and_no_sooner() {
    let server = with_controllers().await;
    create(&server, "/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    let node = "/api/v1/nodes/n";
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}});
    change(&server, &format!("{node}/status"), |node| node["status"] = status.clone()).await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    create(&server, leases, json!({"metadata": {"name": "n"}, "spec": {"holderIdentity": "n"}})).await;
    let ready = || async { get(&server, node).await["status"]["conditions"][0]["status"].as_str().map(str::to_owned) };
    for round in 0..30 {
        change(&server, &format!("{leases}/n"), |lease| lease["spec"]["leaseTransitions"] = json!(round)).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    assert_eq!(ready().await.as_deref(), Some("True"), "it lives");
    tokio::time::sleep(Duration::from_secs(39)).await;
    assert_eq!(ready().await.as_deref(), Some("True"), "49 s are within its grace");
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(ready().await.as_deref(), Some("Unknown"));
    let taints = get(&server, node).await["spec"]["taints"].clone();
    assert_eq!(taints[1]["key"], "node.kubernetes.io/unreachable", "{taints}");
    assert_eq!(taints[1]["effect"], "NoExecute");
    change(&server, &format!("{node}/status"), |node| node["status"] = status).await;
    assert_eq!(get(&server, node).await["spec"]["taints"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_lost_node_are_not_ready_and_stay() {
    let server = with_controllers().await;
    create(&server, "/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}});
    change(&server, "/api/v1/nodes/n/status", |node| node["status"] = status).await;
    let pods = "/api/v1/namespaces/default/pods";
    let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    create(&server, pods, json!({"metadata": {"name": "p"}, "spec": spec})).await;
    let ready = json!([{"type": "Ready", "status": "True"}]);
    change(&server, &format!("{pods}/p/status"), |pod| pod["status"]["conditions"] = ready).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    let pod = get(&server, &format!("{pods}/p")).await;
    assert_eq!(pod["status"]["conditions"][0]["status"], "False", "{pod}");
    assert_eq!(pod["metadata"]["deletionTimestamp"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn requests_for_certificates_stay_until_somebody_deletes_them() {
    let server = with_controllers().await;
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let text = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";
    let spec = json!({"request": BASE64.encode(text), "signerName": "example.com/signer", "usages": ["client auth"]});
    create(&server, requests, json!({"metadata": {"name": "c"}, "spec": spec})).await;
    tokio::time::sleep(Duration::from_hours(72)).await;
    assert_eq!(get(&server, &format!("{requests}/c")).await["metadata"]["name"], "c");
}
