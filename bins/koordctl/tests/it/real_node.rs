//! `koordctl up` as a real kubelet finds it.

use serde_json::{Value, json};

use crate::program::{Api, Up, folder};

const PODS: &str = "/api/v1/namespaces/default/pods";

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]}})
}

#[test]
fn a_real_node_loses_its_taint_when_it_is_ready_and_its_pods_get_tokens() {
    let kubeconfig = folder("real-node").join("koord.kubeconfig");
    let flags = ["--nodes=0", "--no-manager", "--no-scheduler", "--no-descheduler", "--service-account-admission"];
    let _up = Up::start(&kubeconfig, &flags);
    let api = Api::of(&kubeconfig);
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    let made = api.create("/api/v1/nodes", &node).unwrap();
    assert_eq!(made["spec"]["taints"][0]["key"], "node.kubernetes.io/not-ready");
    let status = |ready: &str| {
        json!({"status": {"conditions": [{"type": "Ready", "status": ready, "reason": "KubeletReady"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}})
    };
    api.merge("/api/v1/nodes/n/status", &status("False")).unwrap();
    let taints = api.get("/api/v1/nodes/n")["spec"]["taints"].clone();
    assert_eq!(taints.as_array().unwrap().len(), 2, "{taints}");
    api.merge("/api/v1/nodes/n/status", &status("True")).unwrap();
    assert_eq!(api.get("/api/v1/nodes/n")["spec"]["taints"], Value::Null);

    let pod = api.create(PODS, &pod("p")).unwrap();
    assert_eq!(pod["spec"]["serviceAccountName"], "default");
    let sources = &pod["spec"]["volumes"][0]["projected"]["sources"];
    assert_eq!(sources[0]["serviceAccountToken"]["path"], "token", "{pod}");
    for name in ["kubelet-bootstrap", "node-autoapprove-bootstrap", "node-autoapprove-certificate-rotation"] {
        api.get(&format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/kubeadm:{name}"));
    }
}

#[test]
fn without_the_flag_pods_stay_as_they_were_sent() {
    let kubeconfig = folder("plain-pods").join("koord.kubeconfig");
    let _up = Up::start(&kubeconfig, &["--nodes=0", "--no-manager", "--no-scheduler", "--no-descheduler"]);
    let pod = Api::of(&kubeconfig).create(PODS, &pod("p")).unwrap();
    assert_eq!((&pod["spec"]["serviceAccountName"], &pod["spec"]["volumes"]), (&Value::Null, &Value::Null));
}
