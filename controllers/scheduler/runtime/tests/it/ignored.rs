//! What makes no sense in labels and annotations is ignored, and told.

use koord_api::node_resource_topology::{v1alpha1, v1alpha2};
use koord_config::scheduler::SchedulerConfiguration;
use koord_resource::{
    declare::Profile as Hardening,
    document::{Declared, custom_resource_definition},
};
use koord_scheduler_plugins::build;

use super::*;

/// What was told so far: of which kind of object, how often, and the message.
fn told(stage: &Stage) -> Vec<String> {
    let events = stage.send(Method::GET, "/api/v1/namespaces/default/events", &Value::Null);
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let ignored = events.iter().filter(|event| event["reason"] == "Ignored");
    let mut said: Vec<String> = ignored
        .map(|event| {
            format!("{} {} {}", event["involvedObject"]["kind"], event["count"].as_u64().unwrap_or(1), event["message"])
        })
        .collect();
    said.sort();
    said
}

#[tokio::test(start_paused = true)]
async fn an_annotation_that_makes_no_sense_is_told_once_of_its_object_and_hurts_no_other() {
    const THRESHOLDS: &str = "scheduling.koordinator.sh/usage-thresholds";
    const DEVICES: &str = "scheduling.koordinator.sh/device-allocated";
    let stage = Stage::new();
    stage.add_node("odd", "4");
    let annotated = |name: &str, text: &str| json!({"metadata": {"annotations": {name: text}}});
    stage.send(Method::PATCH, "/api/v1/nodes/odd", &annotated(THRESHOLDS, "{"));
    for name in ["odd", "plain", "bound"] {
        stage.add_pod(name, "1");
    }
    let gang = json!({"metadata": {"labels": {"pod-group.scheduling.sigs.k8s.io/min-available": "many"}}});
    stage.send(Method::PATCH, &format!("{PODS}/odd"), &gang);
    let profile = default_profile("koord-scheduler").unwrap();
    let (manager, ..) = stage.program(Client::new(stage.server.router(), "default"), profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(20).await;
    assert_eq!(["odd", "plain", "bound"].map(|name| stage.place(name)), ["odd", "odd", "odd"]);
    stage.send(Method::PATCH, &format!("{PODS}/bound"), &annotated(DEVICES, &"[".repeat(200)));
    stage.pass(200).await;
    let said = told(&stage);
    let [node, odd, bound] = &said[..] else { panic!("{said:#?}") };
    assert!(node.starts_with(r#""Node" 1 "#) && node.contains(&format!("{THRESHOLDS} is ignored: ")), "{node}");
    assert!(odd.starts_with(r#""Pod" 1 "#) && odd.contains("min-available is ignored: "), "{odd}");
    assert!(bound.contains(DEVICES) && bound.contains("; expected ") && bound.len() < 400, "{bound}");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn cpus_of_a_node_that_cannot_be_read_are_told_of_its_topology() {
    const CPUS: &str = "node.koordinator.sh/cpu-topology";
    let stage = Stage::new();
    let versions = [Declared::of::<v1alpha1::NodeResourceTopology>(), Declared::of::<v1alpha2::NodeResourceTopology>()];
    let definition = custom_resource_definition(&versions, Hardening::Hardened);
    stage.send(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    stage.add_node("odd", "4");
    let metadata = json!({"name": "odd", "annotations": {CPUS: "{bad"}});
    let report = json!({"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
        "metadata": metadata, "topologyPolicies": [], "zones": []});
    stage.send(Method::POST, "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies", &report);
    let points = json!({"filter": {"enabled": [{"name": "NodeNUMAResource"}]}});
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "koord-scheduler", "plugins": points}],
    });
    let profiles = SchedulerConfiguration::of(&document).unwrap().profiles;
    let profile = build(&profiles[0].resolved(), &|_| false).unwrap().profile;
    let (manager, ..) = stage.program(Client::new(stage.server.router(), "default"), profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(200).await;
    let said = told(&stage);
    let [report] = &said[..] else { panic!("{said:#?}") };
    let expected = format!(r#""NodeResourceTopology" 1 "{CPUS} is ignored: "#);
    assert!(report.starts_with(&expected), "{report}");
    stop.cancel();
    running.await.unwrap().unwrap();
}
