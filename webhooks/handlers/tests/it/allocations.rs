//! What a review costs the heap. Time depends on the machine, the number of allocations does not.

use std::sync::Arc;

use allocations::allocations;
use koord_resource::admission::Patch;
use koord_runtime::clock::SystemClock;
use koord_schema::patch::json;
use koord_webhook_handlers::{Ctx, HANDLERS, serve};
use koord_webhook_server::{Metrics, ServiceBuilder, review};
use serde_json::{Value, json};

const REVIEW: &[u8] = include_bytes!("../data/pod_review_3kb.json");
const PROFILE: &str = r#"{"kind":"ClusterColocationProfile","metadata":{"name":"batch","uid":"u","resourceVersion":"1"},
    "spec":{"selector":{"matchLabels":{"koordinator.sh/enable-colocation":"true"}},"labels":{"colocated":"yes"},
    "qosClass":"BE","priorityClassName":"koord-batch","koordinatorPriority":1000,"schedulerName":"koord-scheduler"}}"#;
const PRIORITY_CLASS: &str =
    r#"{"kind":"PriorityClass","metadata":{"name":"koord-batch","uid":"u","resourceVersion":"1"},"value":5000}"#;

fn ctx(profile: &str) -> Arc<Ctx> {
    let ctx = Ctx::detached(|_| false);
    ctx.put("PriorityClass", PRIORITY_CLASS).unwrap();
    ctx.put("ClusterColocationProfile", profile).unwrap();
    Arc::new(ctx)
}

#[test]
fn a_patch_between_two_pods_costs_a_quarter_of_the_allocations_of_json_patch() {
    let review: Value = serde_json::from_slice(REVIEW).unwrap();
    let before = &review["request"]["object"];
    let mut after = before.clone();
    for (label, value) in [("koordinator.sh/qosClass", "BE"), ("koordinator.sh/priority-class", "koord-batch")] {
        after["metadata"]["labels"][label] = value.into();
    }
    after["spec"]["schedulerName"] = "koord-scheduler".into();
    after["spec"]["containers"][0]["resources"] = json!({"requests": {"kubernetes.io/batch-cpu": "1k"}});
    let (ours, written) = allocations(|| Patch::between(before, &after).unwrap());
    let (theirs, text) = allocations(|| serde_json::to_vec(&json_patch::diff(before, &after)).unwrap());
    for operations in [written.as_bytes(), &text] {
        let operations = serde_json::from_slice(operations).unwrap();
        assert_eq!(json::apply(before.clone(), &operations).as_ref(), Ok(&after));
    }
    println!("allocations of a patch between two pods: {ours}, of json-patch {theirs}");
    assert!(ours * 4 <= theirs, "{ours} against {theirs}");
}

#[test]
fn a_pod_that_a_profile_changes_costs_few_allocations() {
    let ctx = ctx(PROFILE);
    let review = review::decode("application/json", REVIEW).unwrap();
    let (in_handler, verdict) = allocations(|| (HANDLERS[0].call)(&review.request, &ctx));
    let patch = verdict.patch.as_str().into_owned();
    assert!(patch.contains("batch-cpu") && patch.contains("extended-resource-spec"), "{patch}");

    let builder = ServiceBuilder::new(
        Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap(),
        SystemClock::shared(),
    );
    let service = serve(builder, &ctx, |_| true).build();
    // The first review makes the metrics.
    service.decide("/mutate-pod", REVIEW);
    let (in_all, answer) = allocations(|| service.decide("/mutate-pod", REVIEW));
    assert!(answer.is_some());
    println!("{} bytes: {in_handler} allocations in the handler, {in_all} from body to answer", REVIEW.len());
    assert!(in_handler <= 20, "{in_handler} allocations in the handler");
    assert!(in_all <= 30, "{in_all} allocations from body to answer");
}

#[test]
fn a_pod_that_nothing_concerns_costs_fewer() {
    let ctx = Ctx::detached(|_| false);
    let review = review::decode("application/json", REVIEW).unwrap();
    let (in_handler, verdict) = allocations(|| (HANDLERS[0].call)(&review.request, &ctx));
    assert!(verdict.patch.is_empty());
    println!("{in_handler} allocations");
    assert!(in_handler <= 10, "{in_handler} allocations in the handler");
}

#[test]
fn a_patch_costs_what_it_touches_and_not_the_whole_pod() {
    let review = review::decode("application/json", REVIEW).unwrap();
    let (in_tree, _) = allocations(|| serde_json::from_slice::<serde_json::Value>(REVIEW).unwrap());
    println!("{in_tree} to read the review into a tree");
    let toleration = r#"{"key":"batch","operator":"Exists"}"#;
    let beside = [
        (r#"{"spec":{"terminationGracePeriodSeconds":5}}"#.to_owned(), 20),
        (r#"{"metadata":{"labels":{"pool":"batch"},"annotations":{"note":"x"}}}"#.to_owned(), 20),
        (format!(r#"{{"spec":{{"tolerations":[{toleration}],"nodeSelector":{{"pool":"batch"}}}}}}"#), 20),
        (r#"{"spec":{"affinity":{"nodeAffinity":{}},"hostNetwork":null}}"#.to_owned(), 20),
        (r#"{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}"#.to_owned(), 24),
        (r#"{"spec":{"containers":[{"name":"executor","imagePullPolicy":"Always"}]}}"#.to_owned(), 24),
        (r#"{"spec":{"containers":[{"name":"executor","env":[{"name":"X","value":"y"}]}]}}"#.to_owned(), 26),
    ];
    // What the later steps look at becomes a tree.
    let resources = r#"{"spec":{"containers":[{"name":"executor","resources":{"limits":{"cpu":"2"}}}]}}"#.to_owned();
    let table = beside.into_iter().chain([(resources, 670)]);
    for (patch, most) in table {
        let ctx = ctx(&PROFILE.replace(r#""labels":{"#, &format!(r#""patch":{patch},"labels":{{"#)));
        // The first review also makes what all share.
        (HANDLERS[0].call)(&review.request, &ctx);
        let (in_handler, verdict) = allocations(|| (HANDLERS[0].call)(&review.request, &ctx));
        assert!(verdict.denial.is_none() && verdict.patch.as_str().contains("batch-cpu"), "{patch}: {verdict:?}");
        println!("{in_handler} allocations: {patch}");
        assert!(in_handler <= most, "{in_handler} allocations in the handler for {patch}");
    }
}
