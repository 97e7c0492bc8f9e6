//! The cluster: an object of every kind that the scheduler reads, and pods that have to do with them.

use serde_json::{Value, json};

/// Where the pod lives that has nothing to do with the others.
pub(super) const APART: &str = "far-away-from-all-others";
/// How many objects at the end of [`cluster`] stay as they are.
pub(super) const BYSTANDERS: usize = 2;

const KOORDINATOR: &str = "scheduling.koordinator.sh/v1alpha1";
const SIGS: &str = "scheduling.sigs.k8s.io/v1alpha1";
const RESOURCE: &str = "resource.k8s.io/v1";
const STORAGE: &str = "storage.k8s.io/v1";

/// An object with a uid of its name; `ns/name` lives in a namespace.
fn object(api_version: &str, kind: &str, name: &str, members: &Value) -> Value {
    let (namespace, name) = name.split_once('/').map_or((None, name), |(namespace, name)| (Some(namespace), name));
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "uid": name}});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    for (key, value) in members.as_object().into_iter().flatten() {
        if key == "metadata" {
            for (key, value) in value.as_object().into_iter().flatten() {
                object["metadata"][key] = value.clone();
            }
        } else {
            object[key] = value.clone();
        }
    }
    object
}

/// What every pod has.
fn template(members: &Value) -> Value {
    let requests = json!({"cpu": "1", "memory": "1Gi"});
    let mut spec = json!({
        "schedulerName": "koord-scheduler",
        "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}],
    });
    spec.as_object_mut().expect("it is one").extend(members.as_object().cloned().unwrap_or_default());
    spec
}

fn pod(name: &str, labels: &Value, members: &Value) -> Value {
    let spec = template(members);
    object("v1", "Pod", name, &json!({"metadata": {"labels": labels}, "spec": spec, "status": {"phase": "Pending"}}))
}

fn node(name: &str) -> Value {
    let allocatable = json!({
        "cpu": "8", "memory": "16Gi", "pods": "110", "koordinator.sh/gpu-core": "100",
        "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "16Gi",
    });
    let status = json!({"allocatable": allocatable, "images": [{"names": ["i:latest"], "sizeBytes": 100_000_000}]});
    let labels = json!({"kubernetes.io/hostname": name, "block": format!("of-{name}"), "app": "r"});
    object("v1", "Node", name, &json!({"metadata": {"labels": labels}, "spec": {}, "status": status}))
}

/// One object of each kind that matters, and then a node and a pod for which they do not matter.
pub(super) fn cluster() -> Vec<Value> {
    let mut objects = of_koordinator();
    objects.extend(pods());
    objects.extend(of_kubernetes());
    objects.extend(of_volumes());
    objects.extend(of_devices());
    objects.extend([node("n2"), pod(&format!("{APART}/even"), &json!({}), &json!({}))]);
    objects
}

fn of_koordinator() -> Vec<Value> {
    let devices = json!([{"type": "gpu", "minor": 0, "health": true, "id": "GPU-0", "resources": {
        "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory": "16Gi", "koordinator.sh/gpu-memory-ratio": "100"}}]);
    let zones = json!([{"name": "node-0", "type": "Node", "resources": [
        {"name": "cpu", "capacity": "8", "allocatable": "8", "available": "8"}]}]);
    let usage = json!({"resources": {"cpu": "1", "memory": "1Gi"}});
    let metric = json!({
        "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 60}},
        "status": {"updateTime": "2026-01-02T03:04:00Z", "nodeMetric": {
            "nodeUsage": usage, "systemUsage": usage,
            "aggregatedNodeUsages": [{"duration": "5m", "usage": {"p95": usage, "p99": usage}}]}},
    });
    let reservation = json!({"spec": {
        "owners": [{"labelSelector": {"matchLabels": {"app": "r"}}}],
        "template": {"metadata": {"namespace": "default"}, "spec": template(&json!({}))}}});
    let layers = json!({"networkTopologySpec": [
        {"labelKey": ["block"], "parentTopologyLayer": "ClusterTopologyLayer", "topologyLayer": "BlockLayer"},
        {"parentTopologyLayer": "BlockLayer", "topologyLayer": "NodeTopologyLayer"}]});
    let templates = json!({"data": {"data.yaml": "nvidia-a100: {half: {koordinator.sh/gpu-core: 50}}"}});
    vec![
        pod("default/odd", &json!({}), &json!({})),
        node("n1"),
        object(KOORDINATOR, "Device", "n1", &json!({"spec": {"devices": devices}})),
        object(
            "topology.node.k8s.io/v1alpha1",
            "NodeResourceTopology",
            "n1",
            &json!({"topologyPolicies": ["None"], "zones": zones}),
        ),
        object("slo.koordinator.sh/v1alpha1", "NodeMetric", "n1", &metric),
        object(KOORDINATOR, "Reservation", "r", &reservation),
        object(SIGS, "PodGroup", "default/g", &json!({"spec": {"minMember": 1}})),
        object(
            SIGS,
            "ElasticQuota",
            "default/q",
            &json!({"metadata": {"labels": {"quota.scheduling.koordinator.sh/parent": "parent"}},
            "spec": {"max": {"cpu": "4"}, "min": {"cpu": "1"}}}),
        ),
        object(
            SIGS,
            "ElasticQuota",
            "default/parent",
            &json!({"metadata": {"labels": {"quota.scheduling.koordinator.sh/is-parent": "true"}},
            "spec": {"max": {"cpu": "9"}, "min": {"cpu": "2"}}}),
        ),
        object(KOORDINATOR, "ClusterNetworkTopology", "default", &json!({"spec": layers})),
        object(KOORDINATOR, "ScheduleExplanation", "default/odd", &json!({"spec": {"podName": "odd"}})),
        object("v1", "ConfigMap", "koordinator-system/gpu-shared-resource-templates", &templates),
    ]
}

/// Pods that have to do with the others: one of a gang, one of a quota, an owner of the reservation, one with a share of a GPU, one with
/// CPUs of its own, one with a volume, one with a device, and one that runs.
fn pods() -> Vec<Value> {
    let requests = |requests: &Value| json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}]});
    let spread = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "g"}}}]});
    let volume = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]});
    let device = json!({"resourceClaims": [{"name": "d", "resourceClaimName": "devices"}]});
    // The pod that has nothing to do with the others shares the default quota with all that name none.
    let mut bound = pod(
        "default/runs",
        &json!({"app": "runs", "koordinator.sh/qosClass": "LS", "quota.scheduling.koordinator.sh/name": "q"}),
        &json!({"nodeName": "n1", "priority": -1}),
    );
    bound["status"] = json!({"phase": "Running", "startTime": "2026-01-02T03:00:00Z"});
    let mut exclusive = pod(
        "default/exclusive",
        &json!({"koordinator.sh/qosClass": "LSR", "koordinator.sh/priority-class": "koord-prod"}),
        &requests(&json!({"cpu": "2", "memory": "1Gi"})),
    );
    exclusive["metadata"]["annotations"] =
        json!({"scheduling.koordinator.sh/resource-spec": r#"{"preferredCPUBindPolicy":"FullPCPUs"}"#});
    vec![
        pod("default/member", &json!({"app": "g", "pod-group.scheduling.sigs.k8s.io": "g"}), &spread),
        pod("default/limited", &json!({"quota.scheduling.koordinator.sh/name": "q"}), &json!({"priority": 5})),
        pod("default/owner", &json!({"app": "r"}), &json!({})),
        pod(
            "default/shared",
            &json!({}),
            &requests(&json!({"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"})),
        ),
        exclusive,
        pod("default/stored", &json!({}), &volume),
        pod("default/device", &json!({}), &device),
        bound,
    ]
}

fn of_kubernetes() -> Vec<Value> {
    let selector = json!({"matchLabels": {"app": "g"}});
    let template = json!({"metadata": {"labels": {"app": "g"}}, "spec": {"containers": []}});
    let controller = json!({"spec": {"selector": selector, "template": template, "replicas": 1, "serviceName": "s"}});
    let budget = json!({"spec": {"selector": {"matchLabels": {"app": "runs"}}, "minAvailable": 1},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}});
    vec![
        object("v1", "Namespace", "default", &json!({"metadata": {"labels": {"team": "a"}}})),
        object("v1", "Service", "default/s", &json!({"spec": {"selector": {"app": "g"}}})),
        object(
            "v1",
            "ReplicationController",
            "default/rc",
            &json!({"spec": {"selector": {"app": "g"}, "template": template, "replicas": 1}}),
        ),
        object("apps/v1", "ReplicaSet", "default/rs", &controller),
        object("apps/v1", "StatefulSet", "default/set", &controller),
        object("policy/v1", "PodDisruptionBudget", "default/budget", &budget),
    ]
}

fn of_volumes() -> Vec<Value> {
    let modes = json!(["ReadWriteOnce"]);
    let claim = json!({"spec": {"storageClassName": "class", "accessModes": modes, "resources": {"requests": {"storage": "1Gi"}}}});
    let volume = json!({
        "spec": {"storageClassName": "class", "accessModes": modes, "capacity": {"storage": "2Gi"},
            "csi": {"driver": "csi", "volumeHandle": "h"}},
        "status": {"phase": "Available"},
    });
    let class = json!({"provisioner": "csi", "volumeBindingMode": "WaitForFirstConsumer"});
    let drivers = json!({"spec": {"drivers": [{"name": "csi", "nodeID": "n1", "allocatable": {"count": 9}}]}});
    let capacity = json!({"storageClassName": "class", "capacity": "9Gi", "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": "n1"}}});
    let attachment =
        json!({"spec": {"attacher": "csi", "nodeName": "n1", "source": {"persistentVolumeName": "volume"}}});
    vec![
        object("v1", "PersistentVolumeClaim", "default/claim", &claim),
        object("v1", "PersistentVolume", "volume", &volume),
        object(STORAGE, "StorageClass", "class", &class),
        object(STORAGE, "CSINode", "n1", &drivers),
        object(STORAGE, "CSIDriver", "csi", &json!({"spec": {"storageCapacity": true}})),
        object(STORAGE, "CSIStorageCapacity", "default/capacity", &capacity),
        object(STORAGE, "VolumeAttachment", "attachment", &attachment),
    ]
}

fn of_devices() -> Vec<Value> {
    let expression = "device.driver == 'gpu.example.com'";
    let class = json!({"spec": {"selectors": [{"cel": {"expression": expression}}]}});
    let requests = json!([{"name": "r", "exactly": {"deviceClassName": "class"}}]);
    let pool = json!({"name": "n1", "generation": 1, "resourceSliceCount": 1});
    let slice =
        json!({"spec": {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [{"name": "gpu-0"}]}});
    let taint = json!({"key": "broken", "effect": "NoSchedule"});
    let rule = json!({"spec": {"deviceSelector": {"driver": "gpu.example.com", "pool": "elsewhere"}, "taint": taint}});
    vec![
        object(RESOURCE, "DeviceClass", "class", &class),
        object(RESOURCE, "ResourceClaim", "default/devices", &json!({"spec": {"devices": {"requests": requests}}})),
        object(RESOURCE, "ResourceSlice", "slice", &slice),
        object("resource.k8s.io/v1alpha3", "DeviceTaintRule", "rule", &rule),
    ]
}
