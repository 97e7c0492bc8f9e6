//! Devices for ResourceClaims. The test plays the controller that makes claims of templates, and takes devices from claims whose
//! pods have ended.

use std::{process::Stdio, time::Instant};

use http::Method;
use programs::{Running, free};
use serde_json::{Value, json};

use crate::{
    program::Server,
    replicas::{MAX, is_ready},
};

const CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {resourceName: koord-scheduler, resourceNamespace: kube-system}
clientConnection: {kubeconfig: KUBECONFIG}
profiles:
- schedulerName: devices
";

const PODS: &str = "/api/v1/namespaces/default/pods";
const RESOURCE: &str = "/apis/resource.k8s.io/v1";
const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const DRIVER: &str = "gpu.example.com";

/// A request for a device with so much memory.
pub(crate) fn request(memory: &str) -> Value {
    let expression = format!("device.capacity['{DRIVER}'].memory.compareTo(quantity('{memory}')) >= 0");
    let exactly = json!({"deviceClassName": "gpu", "selectors": [{"cel": {"expression": expression}}]});
    json!({"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}})
}

impl Server {
    /// A class of devices, and a node's only device.
    pub(crate) async fn add_device(&self, node: &str) {
        let selector = json!({"cel": {"expression": format!("device.driver == '{DRIVER}'")}});
        let class = json!({"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}});
        self.post(&format!("{RESOURCE}/deviceclasses"), &class).await;
        let device = json!({"name": "gpu-0", "capacity": {"memory": {"value": "80Gi"}}});
        let pool = json!({"name": node, "generation": 1, "resourceSliceCount": 1});
        let spec = json!({"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [device]});
        let slice = json!({"metadata": {"name": "slice"}, "spec": spec});
        self.post(&format!("{RESOURCE}/resourceslices"), &slice).await;
    }

    pub(crate) async fn add_claim(&self, metadata: Value) {
        self.post(CLAIMS, &json!({"metadata": metadata, "spec": request("40Gi")})).await;
    }

    async fn pod_with(&self, name: &str, claim: Value) -> Value {
        let container = json!({"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}});
        let mut claims = json!([{"name": "gpu"}]);
        claims[0].as_object_mut().unwrap().extend(claim.as_object().unwrap().clone());
        let spec = json!({"schedulerName": "devices", "containers": [container], "resourceClaims": claims});
        self.send(Method::POST, PODS, &json!({"metadata": {"name": name}, "spec": spec})).await
    }

    /// A pod with a claim of its own, which is made of a template.
    async fn pod_with_own_device(&self, name: &str) {
        let pod = self.pod_with(name, json!({"resourceClaimTemplateName": "gpu"})).await;
        let uid = &pod["metadata"]["uid"];
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": true});
        let claim = format!("{name}-gpu-x7");
        self.add_claim(json!({"name": claim, "ownerReferences": [owner]})).await;
        let status = json!({"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": claim}]});
        self.send(Method::PATCH, &format!("{PODS}/{name}/status"), &json!({ "status": status })).await;
    }

    async fn claim_of(&self, pod: &str) -> Value {
        self.send(Method::GET, &format!("{CLAIMS}/{pod}-gpu-x7"), &Value::Null).await
    }

    /// The message of the condition that says why a pod has no node.
    async fn refusal(&self, name: &str) -> String {
        let begin = Instant::now();
        loop {
            let pod = self.send(Method::GET, &format!("{PODS}/{name}"), &Value::Null).await;
            let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            if let Some(condition) = conditions.iter().find(|condition| condition["type"] == "PodScheduled") {
                return condition["message"].as_str().unwrap_or_default().to_owned();
            }
            assert!(begin.elapsed() < MAX, "nothing is said of {name}: {pod}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

fn consumers(claim: &Value) -> Vec<&str> {
    let consumers = claim["status"]["reservedFor"].as_array().into_iter().flatten();
    let mut names: Vec<&str> = consumers.filter_map(|consumer| consumer["name"].as_str()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_a_template_is_given_a_device_and_the_next_pod_waits_for_it() {
    let server = Server::start().await;
    server.add_node("only", "8").await;
    server.add_device("only").await;
    let template = json!({"metadata": {"name": "gpu"}, "spec": {"spec": request("40Gi")}});
    server.post(&format!("{RESOURCE}/namespaces/default/resourceclaimtemplates"), &template).await;
    let port = free();
    let mut program = Running(server.program(CONFIG, port).stderr(Stdio::null()).spawn().unwrap());
    is_ready(&mut program, port).await;

    server.pod_with_own_device("first").await;
    assert_eq!(server.node_of("first").await, "only");
    let claim = server.claim_of("first").await;
    let result = json!({"request": "gpu", "driver": DRIVER, "pool": "only", "device": "gpu-0"});
    let only = json!({"key": "metadata.name", "operator": "In", "values": ["only"]});
    let expected = json!({
        "devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only]}]},
    });
    assert_eq!((&claim["status"]["allocation"], consumers(&claim)), (&expected, vec!["first"]));
    assert_eq!(claim["metadata"]["finalizers"], json!(["resource.kubernetes.io/delete-protection"]));

    server.pod_with_own_device("second").await;
    let refused = server.refusal("second").await;
    assert!(
        refused.starts_with("0/1 nodes are available: 1 cannot allocate all claims. still not schedulable"),
        "{refused}"
    );

    server.send(Method::PATCH, &format!("{PODS}/first/status"), &json!({"status": {"phase": "Succeeded"}})).await;
    let freed = json!({"status": {"allocation": null, "reservedFor": null}});
    server.send(Method::PATCH, &format!("{CLAIMS}/first-gpu-x7/status"), &freed).await;
    assert_eq!(server.node_of("second").await, "only");
    assert_eq!(server.claim_of("second").await["status"]["allocation"], expected);

    server.pod_with("third", json!({"resourceClaimName": "second-gpu-x7"})).await;
    assert_eq!(server.node_of("third").await, "only");
    assert_eq!(consumers(&server.claim_of("second").await), ["second", "third"], "both use one device");
}
