//! Whatever a user writes into an object, the answer about it never says that the server is at fault.

use std::sync::Arc;

use koord_runtime::clock::SystemClock;
use koord_types::catalogue::KEYS;
use koord_webhook_handlers::{Ctx, serve};
use koord_webhook_server::{Metrics, Service, ServiceBuilder};
use serde_json::{Value, json};

/// Annotations of a node that the original answers with 500 too (recordings `mutate-ratio-bad-json`, `mutate-raw-bad-json`).
const AS_THE_ORIGINAL: [&str; 2] =
    ["node.koordinator.sh/resource-amplification-ratio", "node.koordinator.sh/raw-allocatable"];

/// What stands where something else is expected.
const TEXTS: [&str; 12] =
    ["", " ", "x", "{", "[]", "{}", "null", "5", "-1", "99999999999999999999", r#"{"containers":5}"#, "a\u{0}\"\\\n"];

/// Those of them that are tried in every label and annotation.
const FEW: [&str; 5] = ["", "x", "{", "[]", r#"{"containers":5}"#];

struct Case {
    path: &'static str,
    resource: (&'static str, &'static str, &'static str),
    operation: &'static str,
    object: Value,
}

/// An object of each kind that somebody writes, with most of its fields.
fn cases() -> Vec<Case> {
    let metadata = json!({"name": "o", "namespace": "n", "uid": "u", "labels": {"a": "b"}, "annotations": {"a": "b"}});
    let amounts = json!({"requests": {"kubernetes.io/batch-cpu": "1", "cpu": "1"}, "limits": {"memory": "1Gi"}});
    let container = json!({"name": "c", "image": "i", "resources": amounts});
    let affinity =
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}});
    let spec = json!({
        "containers": [container], "initContainers": [container], "priority": 5500, "priorityClassName": "koord-batch",
        "affinity": affinity, "overhead": {"cpu": "1"}, "schedulerName": "s",
    });
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}});
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": metadata,
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi"}, "capacity": {"cpu": "4"}},
    });
    let quota = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": metadata,
        "spec": {"min": {"cpu": "1"}, "max": {"cpu": "2"}}, "status": {"used": {"cpu": "1"}},
    });
    let reservation = json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "metadata": metadata,
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}, "ttl": "1h", "expires": "2026-01-02T03:04:05Z",
            "owners": [{"labelSelector": {"matchLabels": {"a": "b"}}}], "taints": [{"key": "k", "effect": "NoSchedule"}]},
    });
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slo-controller-config", "namespace": "koordinator-system"},
        "data": {
            "colocation-config": "{}", "resource-threshold-config": "{}", "resource-qos-config": "{}", "cpu-burst-config": "{}",
            "system-config": "{}", "host-application-config": "{}", "cpu-normalization-config": "{}",
        },
    });
    let core = |plural| ("", "v1", plural);
    let of = |path, resource, operation, object: &Value| Case { path, resource, operation, object: object.clone() };
    let quotas = ("scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas");
    let reservations = ("scheduling.koordinator.sh", "v1alpha1", "reservations");
    vec![
        of("/mutate-pod", core("pods"), "CREATE", &pod),
        of("/validate-pod", core("pods"), "CREATE", &pod),
        of("/validate-pod", core("pods"), "UPDATE", &pod),
        of("/mutate-node-status", core("nodes"), "UPDATE", &node),
        of("/validate-node", core("nodes"), "CREATE", &node),
        of("/validate-node", core("nodes"), "UPDATE", &node),
        of("/mutate-scheduling-sigs-k8s-io-v1alpha1-elasticquota", quotas, "CREATE", &quota),
        of("/validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota", quotas, "CREATE", &quota),
        of("/validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota", quotas, "UPDATE", &quota),
        of("/mutate-reservation", reservations, "CREATE", &reservation),
        of("/validate-configmap", core("configmaps"), "CREATE", &config),
        of("/validate-configmap", core("configmaps"), "UPDATE", &config),
    ]
}

/// The service where a profile applies to everything.
fn service() -> Service {
    let ctx = Arc::new(Ctx::detached(|_| true));
    let profile = json!({
        "metadata": {"name": "p", "uid": "u", "resourceVersion": "1"},
        "spec": {"labels": {"x": "y"}, "patch": {"metadata": {"annotations": {"x": "y"}}}},
    });
    ctx.put("ClusterColocationProfile", &profile.to_string()).unwrap();
    let metrics = Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap();
    serve(ServiceBuilder::new(metrics, SystemClock::shared()), &ctx, |_| true).build()
}

/// The code of a refusal with its message; 200 where the object is admitted.
fn answer(service: &Service, case: &Case, object: &Value) -> (u64, String) {
    let (group, version, plural) = case.resource;
    let old = if case.operation == "UPDATE" { case.object.clone() } else { Value::Null };
    let sub_resource = if case.path == "/mutate-node-status" { "status" } else { "" };
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": case.operation, "resource": {"group": group, "version": version, "resource": plural},
            "subResource": sub_resource, "object": object, "oldObject": old, "namespace": "n", "name": "o",
        },
    });
    let answer = service.decide(case.path, review.to_string().as_bytes()).unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let status = &answer["response"]["status"];
    (status["code"].as_u64().unwrap_or(200), status["message"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn no_label_and_no_annotation_makes_it_the_fault_of_the_server() {
    let service = service();
    let mut refused = 0;
    for case in cases() {
        assert_ne!(answer(&service, &case, &case.object).0, 500, "{}", case.path);
        for key in KEYS {
            for text in FEW {
                for place in ["labels", "annotations"] {
                    let mut object = case.object.clone();
                    object["metadata"][place] = json!({key.name(): text});
                    let (code, message) = answer(&service, &case, &object);
                    let is_known = case.path == "/mutate-node-status" && AS_THE_ORIGINAL.contains(&key.name());
                    assert!(
                        code != 500 || is_known,
                        "{} {} {place} {}={text:?}: {message}",
                        case.path,
                        case.operation,
                        key.name()
                    );
                    refused += usize::from(code != 200);
                }
            }
        }
    }
    assert!(refused > 100, "only {refused} were refused");
}

/// Every object that differs from this one in one place.
fn changed(object: &Value) -> Vec<Value> {
    let mut all: Vec<Value> = TEXTS.iter().map(|text| json!(text)).collect();
    all.extend([
        json!(null),
        json!(5),
        json!(-1.5),
        json!(u64::MAX),
        json!(true),
        json!([]),
        json!({}),
        json!([null]),
        json!({"a": null}),
    ]);
    match object {
        Value::Object(members) => {
            for (name, member) in members {
                for one in changed(member) {
                    let mut object = object.clone();
                    object[name] = one;
                    all.push(object);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                for one in changed(item) {
                    let mut object = object.clone();
                    object[at] = one;
                    all.push(object);
                }
            }
        }
        _ => {}
    }
    all
}

#[test]
fn no_value_of_any_field_makes_it_the_fault_of_the_server() {
    let service = service();
    let (mut refused, mut admitted) = (0, 0);
    for case in cases() {
        for object in changed(&case.object) {
            let (code, message) = answer(&service, &case, &object);
            assert_ne!(code, 500, "{} {}: {message}\n{object}", case.path, case.operation);
            *if code == 200 { &mut admitted } else { &mut refused } += 1;
        }
    }
    assert!(refused > 500 && admitted > 500, "{refused} refused, {admitted} admitted");
}
