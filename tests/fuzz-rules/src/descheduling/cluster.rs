//! The cluster: an object of every kind that the descheduler reads, and a failed pod that has nothing to do with the others.

use serde_json::{Value, json};

/// Where the pod lives that has nothing to do with the others, and what its nodes are called.
pub(super) const APART: &str = "apart";
/// How many objects at the end of [`cluster`] stay as they are.
pub(super) const BYSTANDERS: usize = 3;

fn object(api_version: &str, kind: &str, (namespace, name): (&str, &str), members: &Value) -> Value {
    let mut metadata = json!({"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    koord_schema::patch::merge::apply(object, members)
}

fn node(name: &str, members: &Value) -> Value {
    let status = json!({"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}});
    let node = object("v1", "Node", ("", name), &json!({"metadata": {"labels": {"zone": name}}, "status": status}));
    koord_schema::patch::merge::apply(node, members)
}

fn pod((namespace, name): (&str, &str), node: &str, members: &Value) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": true});
    let requests = json!({"cpu": "1", "memory": "1Gi"});
    let spread = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}}});
    let pod = json!({
        "metadata": {"labels": {"app": "a"}, "ownerReferences": [owner]},
        "spec": {
            "nodeName": node, "schedulerName": "koord-scheduler", "topologySpreadConstraints": [spread],
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    object("v1", "Pod", (namespace, name), &koord_schema::patch::merge::apply(pod, members))
}

fn metric(node: &str, cpu: &str) -> Value {
    let usage = json!({"resources": {"cpu": cpu, "memory": "1Gi"}});
    let pods = json!([{"namespace": "default", "name": "p1", "podUsage": usage}]);
    let status = json!({"updateTime": "2026-01-02T03:04:00Z", "nodeMetric": {"nodeUsage": usage, "systemUsage": usage}, "podsMetric": pods});
    object("slo.koordinator.sh/v1alpha1", "NodeMetric", ("", node), &json!({ "status": status }))
}

fn job(name: &str, pod: &str) -> Value {
    let spec =
        json!({"podRef": {"namespace": "default", "name": pod, "uid": pod}, "mode": "ReservationFirst", "ttl": "5m"});
    object("scheduling.koordinator.sh/v1alpha1", "PodMigrationJob", ("", name), &json!({ "spec": spec }))
}

/// Objects that strategies, filters and arbitration look at, and then nodes and a pod for which they do not matter.
pub(super) fn cluster() -> Vec<Value> {
    let taint = json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}});
    let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}]});
    let restarts = json!({"status": {"containerStatuses": [{"name": "c", "restartCount": 100, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}});
    let selector = json!({"matchLabels": {"app": "a"}});
    vec![
        node("n1", &json!({})),
        node("n2", &taint),
        pod(("default", "p1"), "n1", &json!({"spec": {"affinity": {"podAntiAffinity": terms}}})),
        pod(("default", "p2"), "n1", &restarts),
        pod(
            ("default", "p3"),
            "n2",
            &json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}}),
        ),
        pod(("default", "p4"), "n1", &json!({"status": {"phase": "Failed", "reason": "Evicted"}})),
        metric("n1", "4"),
        metric("n2", "100m"),
        job("j1", "p1"),
        job("j2", "p2"),
        object("v1", "Namespace", ("", "default"), &json!({"metadata": {"labels": {"team": "x"}}})),
        object("apps/v1", "ReplicaSet", ("default", "rs"), &json!({"spec": {"replicas": 4, "selector": selector}})),
        object(
            "policy/v1",
            "PodDisruptionBudget",
            ("default", "b"),
            &json!({"spec": {"minAvailable": 1, "selector": selector}}),
        ),
        object("v1", "PersistentVolumeClaim", ("default", "c"), &json!({"spec": {"storageClassName": "s"}})),
        object("scheduling.k8s.io/v1", "PriorityClass", ("", "high"), &json!({"value": 1000})),
        node("apart-1", &json!({})),
        node("apart-2", &json!({})),
        pod((APART, "failed"), "apart-1", &json!({"status": {"phase": "Failed"}})),
    ]
}
