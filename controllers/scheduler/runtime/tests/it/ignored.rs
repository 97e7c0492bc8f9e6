//! What makes no sense in labels and annotations is ignored, and told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use koord_config::scheduler::SchedulerConfiguration;
use koord_resource::{
    declare::Profile as Hardening,
    document::{Declared, custom_resource_definition},
};
use koord_scheduler_assembly::build;
use koord_types::{
    cluster_network_topology::ClusterNetworkTopology,
    device::Device,
    elastic_quota::ElasticQuota,
    node_resource_topology::{v1alpha1, v1alpha2},
    pod_group::PodGroup,
    reservation::Reservation,
};

use super::*;

/// What was told so far in events of this reason: of which kind of object, how often, and the message.
fn messages(stage: &Stage, reason: &str) -> Vec<String> {
    let events = stage.send(Method::GET, "/api/v1/namespaces/default/events", &Value::Null);
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let of_reason = events.iter().filter(|event| event["reason"] == reason);
    let mut said: Vec<String> = of_reason
        .map(|event| {
            format!("{} {} {}", event["involvedObject"]["kind"], event["count"].as_u64().unwrap_or(1), event["message"])
        })
        .collect();
    said.sort();
    said
}

/// A profile with these plugins, wherever they have a part.
fn profile_of(plugins: &[&str]) -> Profile {
    let enabled: Vec<Value> = plugins.iter().map(|name| json!({"name": name})).collect();
    let args = json!([{"name": "ElasticQuota", "args": {"quotaGroupNamespace": "kube-system"}}]);
    let points = json!({"multiPoint": {"enabled": enabled}});
    let profile = json!({"schedulerName": "koord-scheduler", "plugins": points, "pluginConfig": args});
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile],
    });
    let profiles = SchedulerConfiguration::of(&document).unwrap().profiles;
    build(&profiles[0].resolved(), &|_| false).unwrap().profile
}

#[tokio::test(start_paused = true)]
async fn an_invalid_annotation_is_reported_once_of_its_object_and_affects_no_other() {
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
    let said = messages(&stage, "Ignored");
    let [node, odd, bound] = &said[..] else { panic!("{said:#?}") };
    assert!(node.starts_with(r#""Node" 1 "#) && node.contains(&format!("{THRESHOLDS} is ignored: ")), "{node}");
    assert!(odd.starts_with(r#""Pod" 1 "#) && odd.contains("min-available is ignored: "), "{odd}");
    assert!(bound.contains(DEVICES) && bound.contains("; expected ") && bound.len() < 400, "{bound}");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn undecodable_cpus_are_reported_of_the_topology_of_their_node() {
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
    let said = messages(&stage, "Ignored");
    let [report] = &said[..] else { panic!("{said:#?}") };
    let expected = format!(r#""NodeResourceTopology" 1 "{CPUS} is ignored: "#);
    assert!(report.starts_with(&expected), "{report}");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_member_of_a_gang_whose_minimum_is_no_number_learns_why_it_waits() {
    const MINIMUM: &str = "gang.scheduling.koordinator.sh/min-available";
    const MODE: &str = "gang.scheduling.koordinator.sh/mode";
    let stage = Stage::new();
    stage.add_node("only", "4");
    let annotations = json!({"gang.scheduling.koordinator.sh/name": "g", MINIMUM: "two", MODE: "strict"});
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}});
    let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
    let pod = json!({"metadata": {"name": "member", "annotations": annotations}, "spec": spec});
    stage.send(Method::POST, PODS, &pod);
    let profile = profile_of(&["Coscheduling"]);
    let (manager, ..) = stage.program(Client::new(stage.server.router(), "default"), profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(200).await;
    let waits = format!("{MINIMUM} cannot be read, and the pod waits until it is corrected: ");
    assert!(stage.place("member").starts_with(&waits), "{}", stage.place("member"));
    let failed = messages(&stage, "FailedScheduling");
    let [event] = &failed[..] else { panic!("{failed:#?}") };
    assert!(event.starts_with(&format!(r#""Pod" 1 "{waits}"#)) && event.contains("; expected an integer"), "{event}");
    let ignored = messages(&stage, "Ignored");
    let [event] = &ignored[..] else { panic!("{ignored:#?}") };
    assert!(event.starts_with(&format!(r#""Pod" 1 "{MODE}: "#)) && event.contains("did you mean Strict?"), "{event}");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_gang_without_enough_members_is_reported_once_after_a_while() {
    let stage = Stage::new();
    stage.add_node("only", "8");
    let add = |name: &str, gang: &str| {
        let annotations = json!({
            "gang.scheduling.koordinator.sh/name": gang, "gang.scheduling.koordinator.sh/min-available": "3",
        });
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}});
        let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
        stage.send(Method::POST, PODS, &json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec}));
    };
    for name in ["a1", "a2"] {
        add(name, "a");
    }
    for name in ["b1", "b2", "b3"] {
        add(name, "b");
    }
    let (manager, ..) =
        stage.program(Client::new(stage.server.router(), "default"), profile_of(&["Coscheduling"]), "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(20).await;
    assert_eq!(["b1", "b2", "b3"].map(|name| stage.place(name)), ["only"; 3]);
    assert_eq!(messages(&stage, "GangIncomplete"), [""; 0], "the others may be on their way");
    stage.pass(300).await;
    let said = messages(&stage, "GangIncomplete");
    let expected = "gang default/a has 2 of 3 members; its pods are not tried until then";
    assert_eq!(said, [format!("\"Pod\" 1 \"{expected}\"")], "once, of the gang and not of each member");
    add("a3", "a");
    stage.pass(20).await;
    assert_eq!(stage.place("a1"), "only");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_condition_of_a_held_member_whose_write_failed_is_written_again_after_pauses_that_grow() {
    const MINIMUM: &str = "gang.scheduling.koordinator.sh/min-available";
    let stage = Stage::new();
    stage.add_node("only", "4");
    let annotations = json!({"gang.scheduling.koordinator.sh/name": "g", MINIMUM: "two"});
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}});
    let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
    let pod = json!({"metadata": {"name": "member", "annotations": annotations}, "spec": spec});
    stage.send(Method::POST, PODS, &pod);
    let (is_open, tries) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (open, tried) = (Arc::clone(&is_open), Arc::clone(&tries));
    let client = rerouted(&stage.server, move |path| {
        let is_condition = path.contains("/member/status");
        tried.fetch_add(usize::from(is_condition), Ordering::Relaxed);
        (!is_condition || open.load(Ordering::Relaxed)).then(|| path.to_owned())
    });
    let (manager, ..) = stage.program(client, profile_of(&["Coscheduling"]), "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    // Pods that wait are looked at every second. The pauses are 1 s, 2 s, 4 s and so on, and a minute at most.
    for (seconds, expected) in [(20, 4..=6), (580, 12..=18)] {
        stage.pass(seconds).await;
        let tries = tries.load(Ordering::Relaxed);
        assert!(expected.contains(&tries), "{tries} tries, expected {expected:?}");
    }
    assert_eq!(stage.place("member"), "-");
    is_open.store(true, Ordering::Relaxed);
    stage.pass(65).await;
    assert!(stage.place("member").starts_with(&format!("{MINIMUM} cannot be read")), "{}", stage.place("member"));
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_refused_for_an_annotation_has_the_words_of_the_attempt_alone() {
    const AFFINITY: &str = "scheduling.koordinator.sh/reservation-affinity";
    const REFUSED: &str = "invalid character 'b' looking for beginning of object key string";
    let stage = Stage::new();
    let definition = custom_resource_definition(&[Declared::of::<Reservation>()], Hardening::Hardened);
    stage.send(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    stage.add_node("only", "4");
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}});
    let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
    let pod = json!({"metadata": {"name": "owner", "annotations": {AFFINITY: "{bad"}}, "spec": spec});
    stage.send(Method::POST, PODS, &pod);
    let profile = profile_of(&["Reservation"]);
    let (manager, ..) = stage.program(Client::new(stage.server.router(), "default"), profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(200).await;
    assert_eq!(stage.place("owner"), REFUSED);
    let failed = messages(&stage, "FailedScheduling");
    let [event] = &failed[..] else { panic!("{failed:#?}") };
    assert!(event.ends_with(&format!(r#""{REFUSED}""#)), "{event}");
    assert_eq!(messages(&stage, "Ignored"), [""; 0]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn invalid_values_are_reported_of_objects_of_every_kind_that_the_scheduler_reads() {
    let stage = Stage::new();
    for declared in [
        Declared::of::<ElasticQuota>(),
        Declared::of::<PodGroup>(),
        Declared::of::<Device>(),
        Declared::of::<Reservation>(),
        Declared::of::<ClusterNetworkTopology>(),
    ] {
        let definition = custom_resource_definition(&[declared], Hardening::Hardened);
        stage.send(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    }
    let (sigs, koordinator) = ("scheduling.sigs.k8s.io/v1alpha1", "scheduling.koordinator.sh/v1alpha1");
    let shared_weight = json!({"quota.scheduling.koordinator.sh/shared-weight": "{"});
    let mode = json!({"gang.scheduling.koordinator.sh/mode": "strict"});
    let order = json!({"scheduling.koordinator.sh/reservation-order": "first"});
    let owners = json!([{"labelSelector": {"matchLabels": {"a": "b"}}}]);
    let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (path, group, object) in [
        (
            "namespaces/default/elasticquotas",
            sigs,
            json!({"kind": "ElasticQuota", "metadata": {"name": "team", "annotations": shared_weight}, "spec": {}}),
        ),
        (
            "namespaces/default/podgroups",
            sigs,
            json!({"kind": "PodGroup", "metadata": {"name": "gang", "annotations": mode}, "spec": {"minMember": 2}}),
        ),
        (
            "devices",
            koordinator,
            json!({"kind": "Device", "metadata": {"name": "odd"},
                "spec": {"devices": [{"type": "tpu", "minor": 0, "health": true}]}}),
        ),
        (
            "reservations",
            koordinator,
            json!({"kind": "Reservation", "metadata": {"name": "kept", "labels": order},
                "spec": {"template": template, "owners": owners, "ttl": "1h"}}),
        ),
        (
            "clusternetworktopologies",
            koordinator,
            json!({"kind": "ClusterNetworkTopology", "metadata": {"name": "default"}, "spec": {"networkTopologySpec": [
                {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "RackLayer"},
            ]}}),
        ),
    ] {
        let mut object = object;
        object["apiVersion"] = group.into();
        let answer = stage.send(Method::POST, &format!("/apis/{group}/{path}"), &object);
        assert_eq!(answer["kind"], object["kind"], "{answer}");
    }
    let templates = json!({"metadata": {"name": "gpu-shared-resource-templates"}, "data": {"data.yaml": "a: ["}});
    stage.send(Method::POST, "/api/v1/namespaces/default/configmaps", &templates);
    let profile = profile_of(&["ElasticQuota", "Coscheduling", "DeviceShare", "Reservation"]);
    let (manager, ..) = stage.program(Client::new(stage.server.router(), "default"), profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(200).await;
    let said = messages(&stage, "Ignored");
    let expected = [
        r#""ClusterNetworkTopology" 1 "spec.networkTopologySpec[0].parentTopologyLayer: "#,
        r#""ConfigMap" 1 "data[data.yaml]: "#,
        r#""Device" 1 "spec.devices[0].type: "#,
        r#""ElasticQuota" 1 "quota.scheduling.koordinator.sh/shared-weight is ignored: "#,
        r#""PodGroup" 1 "gang.scheduling.koordinator.sh/mode: "#,
        r#""Reservation" 1 "scheduling.koordinator.sh/reservation-order is ignored: "#,
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}");
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}
