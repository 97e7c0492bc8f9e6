//! What is decided while the caches fill: nothing, until the engine has all of what makes them complete.

use koord_resource::controller::ResourceKind;
use koord_runtime::{clock::SystemClock, events::NoopSink, store::Sink};
use koord_scheduler_runtime::Next;

use super::*;

fn object(kind: &str, name: &str, members: &Value) -> String {
    let metadata = json!({"name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"});
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": metadata});
    object.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    if kind == "Node" {
        object["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    object.to_string()
}

fn pod(name: &str, node: Option<&str>) -> String {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}});
    let spec = json!({"schedulerName": "koord-scheduler", "nodeName": node, "containers": [container]});
    object("Pod", name, &json!({"spec": spec, "status": {"phase": "Pending"}}))
}

/// Watches are other tasks: a list may end between the deltas that were applied and the next decision.
#[test]
fn what_completes_the_caches_is_applied_before_anything_is_decided() {
    let (clock, metrics) = (SystemClock::shared(), Metrics::new().unwrap());
    let mut core = Core::new("it", Arc::clone(&clock), Random::seeded(1), metrics, Arc::new(NoopSink));
    let engine = Engine::new(vec![default_profile("koord-scheduler").unwrap()], Timings::default(), Random::seeded(1));
    let feed = Feed::of(&mut core, &engine.reads());
    let sinks: Vec<(ResourceKind, Arc<dyn Sink>)> =
        core.watches().iter().map(|watch| (watch.kind, Arc::clone(&watch.sink))).collect();
    let mut scheduler = Scheduler::new(engine, feed, Arc::new(NoopSink), clock);
    let upsert = |of: ResourceKind, text: &str| {
        sinks.iter().filter(|(kind, _)| *kind == of).for_each(|(_, sink)| _ = sink.upsert(text).unwrap());
    };

    for (_, sink) in &sinks {
        sink.begin_list(true);
    }
    let allocatable = json!({"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}});
    upsert(ResourceKind::NODE, &object("Node", "n", &allocatable));
    upsert(ResourceKind::POD, &pod("waits", None));
    assert!(!scheduler.catch_up());
    // The pod that has the whole node comes last.
    upsert(ResourceKind::POD, &pod("runs", Some("n")));
    for (_, sink) in &sinks {
        sink.end_list();
    }

    let next = scheduler.step();
    assert!(matches!(next, Next::Rest), "decided without the pod that runs: {next:?}");
    assert!(scheduler.has_work(), "nobody would look again");
    assert!(!scheduler.catch_up());
    let decided: Vec<Next> =
        std::iter::from_fn(|| Some(scheduler.step())).take_while(|next| !matches!(next, Next::Rest)).collect();
    assert!(!decided.is_empty(), "the pod was not tried");
    let is_binding = |next: &Next| matches!(next, Next::Send(work) if work.write.to_string().starts_with("bind "));
    assert!(!decided.iter().any(is_binding), "the node is full: {decided:?}");
}
