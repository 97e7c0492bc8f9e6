//! What is found of the objects of a cluster.

use super::*;

#[test]
fn objects_that_are_set_aside_are_found() {
    let cluster = Cluster::installed("doctor-objects");
    cluster.create("/api/v1/nodes", &json!({"metadata": {"name": "n1"}}));
    assert_eq!(findings(&cluster, &["--only=objects"]), (vec![], 0));
    let annotation = "node.koordinator.sh/reservation";
    cluster.patch("/api/v1/nodes/n1", &json!({"metadata": {"annotations": {annotation: "half"}}}));
    finds(&cluster, "objects", "warning", "Node n1", annotation);
    cluster.patch("/api/v1/nodes/n1", &json!({"metadata": {"annotations": {annotation: null}}}));

    let quota = |name: &str, labels: Value, cpu: &str| {
        cluster.create(
            QUOTAS,
            &json!({
                "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
                "metadata": {"name": name, "labels": labels}, "spec": {"min": {"cpu": cpu}, "max": {"cpu": "100"}},
            }),
        );
    };
    let parent = "quota.scheduling.koordinator.sh/parent";
    quota("orphan", json!({parent: "nobody"}), "1");
    finds(&cluster, "objects", "warning", "ElasticQuota default/orphan", "orphan has parentName nobody but not find");
    cluster.delete(&format!("{QUOTAS}/orphan"));
    quota("koordinator-root-quota", json!({"quota.scheduling.koordinator.sh/is-parent": "true", parent: ""}), "0");
    assert_eq!(findings(&cluster, &["--only=objects"]).0, [], "it belongs to the scheduler");
    quota("top", json!({"quota.scheduling.koordinator.sh/is-parent": "true"}), "5");
    quota("low", json!({parent: "top"}), "9");
    let (found, _) = findings(&cluster, &["--only=objects"]);
    assert!(
        found
            .iter()
            .any(|(_, what, why)| what == "ElasticQuota default/top" && why.contains("all children's MinQuota")),
        "{found:?}"
    );
}

#[test]
fn an_object_that_cannot_be_read_is_found() {
    let cluster = Cluster::installed("doctor-unreadable");
    // Without a schema the server stores whatever comes.
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodemetrics.slo.koordinator.sh";
    let mut versions = cluster.get(crd)["spec"]["versions"].clone();
    versions[0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    versions[0]["subresources"] = Value::Null;
    cluster.patch(crd, &json!({"spec": {"versions": versions}}));
    cluster.create(
        "/apis/slo.koordinator.sh/v1alpha1/nodemetrics",
        &json!({"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n1"}, "status": 5}),
    );
    finds(&cluster, "objects", "warning", "NodeMetric n1", "DecodeError: this NodeMetric cannot be read");
}

#[test]
fn nodes_without_reports_are_found() {
    let cluster = Cluster::installed("doctor-nodes");
    node(&cluster, "fresh", Some(Timestamp::now()));
    assert_eq!(findings(&cluster, &["--only=nodes"]), (vec![], 0));
    cluster.create("/api/v1/nodes", &json!({"metadata": {"name": "bare"}}));
    finds(&cluster, "nodes", "warning", "Node bare", "there is no NodeMetric");
    cluster.delete("/api/v1/nodes/bare");
    node(&cluster, "silent", None);
    finds(&cluster, "nodes", "warning", "NodeMetric silent", "koordlet has never reported");
    cluster.delete("/api/v1/nodes/silent");
    node(&cluster, "old", Some(Timestamp::now() - SignedDuration::from_mins(20)));
    finds(&cluster, "nodes", "warning", "NodeMetric old", "degradeTimeMinutes (15 min)");
    let path = format!("/api/v1/namespaces/{SYSTEM}/configmaps/slo-controller-config");
    cluster.patch(&path, &json!({"data": {"colocation-config": r#"{"enable":true,"degradeTimeMinutes":30}"#}}));
    assert_eq!(findings(&cluster, &["--only=nodes"]), (vec![], 0));
}

#[test]
fn nodes_whose_gpus_cannot_be_shared_are_found() {
    let cluster = Cluster::installed("doctor-gpus");
    node(&cluster, "g1", Some(Timestamp::now()));
    let gpu = json!({"type": "gpu", "minor": 0, "health": true, "resources": {"koordinator.sh/gpu-core": "100"}});
    let device = json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
        "metadata": {"name": "g1"}, "spec": {"devices": [gpu]}});
    cluster.create("/apis/scheduling.koordinator.sh/v1alpha1/devices", &device);
    cluster.patch("/api/v1/nodes/g1/status", &json!({"status": {"allocatable": {"koordinator.sh/gpu-core": "100"}}}));
    assert_eq!(findings(&cluster, &["--only=nodes"]), (vec![], 0), "no webhook completes pods");
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
    let entry = json!({
        "name": "mpod-create.koordinator.sh", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Ignore", "rules": [rule], "clientConfig": {"url": "https://127.0.0.1:1/mutate-pod"},
    });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "koordinator-mutating-webhook-configuration"}, "webhooks": [entry],
    });
    cluster.create(MUTATING, &configuration);
    finds(&cluster, "nodes", "warning", "Node g1", "no koordinator.sh/gpu.shared");
    cluster.patch("/api/v1/nodes/g1/status", &json!({"status": {"allocatable": {"koordinator.sh/gpu.shared": "100"}}}));
    assert_eq!(findings(&cluster, &["--only=nodes"]), (vec![], 0));
}

#[test]
fn devices_and_cpus_that_are_allocated_twice_are_found() {
    let cluster = Cluster::installed("doctor-allocations");
    cluster.create("/api/v1/nodes", &json!({"metadata": {"name": "n1"}}));
    let devices = "/apis/scheduling.koordinator.sh/v1alpha1/devices";
    let gpu = json!({"type": "gpu", "minor": 0, "health": true, "resources": {"koordinator.sh/gpu-core": "100"}});
    cluster.create(
        devices,
        &json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
        "metadata": {"name": "n1"}, "spec": {"devices": [gpu]}}),
    );
    let pod = |name: &str| {
        let device = r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"60"}}]}"#;
        let annotations = json!({
            "scheduling.koordinator.sh/device-allocated": device,
            "scheduling.koordinator.sh/resource-status": r#"{"cpuset":"0-3"}"#,
        });
        json!({"metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
    };
    let pods = "/api/v1/namespaces/default/pods";
    cluster.create(pods, &pod("a"));
    assert_eq!(findings(&cluster, &["--only=allocations"]), (vec![], 0));
    cluster.create(pods, &pod("b"));
    let (found, code) = findings(&cluster, &["--only=allocations"]);
    let problems: Vec<&str> = found.iter().map(|(_, _, problem)| problem.as_str()).collect();
    let over =
        "gpu 0: more is allocated than the device has of koordinator.sh/gpu-core; allocated to default/a, default/b";
    assert_eq!((problems, code), (vec![over, "CPUs 0-3 belong to default/a, default/b"], 1));
    let explained = cluster.koordctl(&["explain", "node", "n1"]).unwrap().text;
    assert!(explained.contains("conflict: gpu 0: more is allocated"), "{explained}");
    cluster.delete(&format!("{devices}/n1"));
    let (found, _) = findings(&cluster, &["--only=allocations"]);
    assert!(found[0].2.starts_with("gpu 0: the node reports no such device"), "{found:#?}");

    let bare = Cluster::bare("doctor-allocations-bare");
    assert_eq!(
        findings(&bare, &["--only=allocations"]),
        (vec![], 0),
        "without definitions there is nothing to compare"
    );
}
