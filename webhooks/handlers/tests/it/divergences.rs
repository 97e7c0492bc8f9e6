//! Differences from the original that no recording shows (docs/reference/divergences.md).

use std::{collections::BTreeSet, sync::Arc};

use koord_resource::{
    admission::WebhookKind,
    document::{WebhookService, webhook_configuration},
};
use koord_runtime::clock::SystemClock;
use koord_webhook_handlers::{Ctx, HANDLERS, serve};
use koord_webhook_server::{Metrics, ServiceBuilder};
use serde_json::{Value, json};

/// The message by which a review of a new object is refused.
fn refusal(ctx: &Arc<Ctx>, path: &str, resource: &Value, object: &Value) -> String {
    let metrics = Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap();
    let service = serve(ServiceBuilder::new(metrics, SystemClock::shared()), ctx, |_| true).build();
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "CREATE", "resource": resource, "object": object,
            "namespace": object["metadata"]["namespace"], "name": object["metadata"]["name"],
        },
    });
    let answer = service.decide(path, review.to_string().as_bytes()).unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["response"]["allowed"], false, "{answer}");
    answer["response"]["status"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn of_several_nodes_that_conflict_with_strategies_the_first_by_name_is_named() {
    let names = ["n7", "n3", "n9", "n1", "n5"];
    let strategy = |name: &str| json!({"name": name, "nodeSelector": {"matchLabels": {name: "yes"}}, "enable": true});
    let config = json!({"enable": true, "nodeConfigs": [strategy("one"), strategy("two")]});
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "slo-controller-config", "namespace": "koordinator-system"},
        "data": {"colocation-config": config.to_string()},
    });
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    // In whatever order the watch shows them.
    for first in 0..names.len() {
        let ctx = Arc::new(Ctx::detached(|_| true));
        for at in 0..names.len() {
            let name = names[(first + at) % names.len()];
            let metadata = json!({
                "name": name, "uid": name, "resourceVersion": "1", "labels": {"one": "yes", "two": "yes"},
            });
            ctx.put("Node", &json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}).to_string()).unwrap();
        }
        let message = refusal(&ctx, "/validate-configmap", &resource, &object);
        assert!(message.contains(r#""exampleNodes":["n1"]"#), "{message}");
    }
}

#[test]
fn the_entry_for_the_configuration_takes_reviews_of_both_versions() {
    let service = WebhookService { namespace: "n", name: "s", ca_bundle: "" };
    let configuration = webhook_configuration(WebhookKind::Validating, "v", HANDLERS, &service);
    let entries = configuration["webhooks"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["name"] == "vconfigmap.koordinator.sh").unwrap();
    let versions: BTreeSet<&str> =
        entry["admissionReviewVersions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(versions, BTreeSet::from(["v1", "v1beta1"]));
}

#[test]
fn a_type_error_has_gos_words_for_pods_and_what_was_expected_elsewhere() {
    let ctx = Arc::new(Ctx::detached(|_| true));
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": "c"}});
    let resource = json!({"group": "", "version": "v1", "resource": "pods"});
    let message = refusal(&ctx, "/mutate-pod", &resource, &pod);
    assert!(message.contains("Go struct field PodSpec.spec.containers"), "{message}");
    let quota = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": "q", "namespace": "n"}, "spec": {"min": "much"},
    });
    let resource = json!({"group": "scheduling.sigs.k8s.io", "version": "v1alpha1", "resource": "elasticquotas"});
    let path = "/validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota";
    let message = refusal(&ctx, path, &resource, &quota);
    assert!(message.contains("expected") && !message.contains("Go struct field"), "{message}");
}
