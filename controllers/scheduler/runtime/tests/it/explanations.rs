//! ScheduleExplanations: questions of users, and those that are written for pods that wait.

use std::sync::atomic::{AtomicUsize, Ordering};

use koord_config::scheduler::SchedulerConfiguration;
use koord_resource::{
    declare::Profile as Hardening,
    document::{Declared, custom_resource_definition},
};
use koord_scheduler_assembly::build;
use koord_types::{
    cluster_network_topology::ClusterNetworkTopology, pod_group::PodGroup, schedule_explanation::ScheduleExplanation,
};

use super::*;

const EXPLANATIONS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/namespaces/default/scheduleexplanations";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn stage(writes: bool) -> Stage {
    let clock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0);
    // The server's time passes as the scheduler's does.
    let time = Arc::clone(&clock);
    let environment = TimedEnvironment::new(1, move || time.now());
    let stage = Stage { explains: Some(writes), clock, ..Stage::of(Box::new(environment)) };
    let kinds =
        [Declared::of::<ScheduleExplanation>(), Declared::of::<PodGroup>(), Declared::of::<ClusterNetworkTopology>()];
    for declared in kinds {
        stage.send(Method::POST, DEFINITIONS, &custom_resource_definition(&[declared], Hardening::Compatible));
    }
    stage
}

impl Stage {
    fn ask(&self, name: &str, spec: &Value) {
        let body = json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "ScheduleExplanation", "metadata": {"name": name}, "spec": spec});
        let made = self.send(Method::POST, EXPLANATIONS, &body);
        assert_eq!(made["metadata"]["name"], json!(name), "{made}");
    }

    fn explanation(&self, name: &str) -> Value {
        self.send(Method::GET, &format!("{EXPLANATIONS}/{name}"), &Value::Null)
    }

    fn status(&self, name: &str) -> Value {
        self.explanation(name)["status"].clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_about_a_pod_is_answered_once_a_minute_until_its_time_is_over() {
    let stage = stage(false);
    stage.add_node("small", "1");
    stage.add_pod("large", "4");
    stage.ask("why-large", &json!({"questionObjectKey": "large", "ttl": "5m"}));
    stage.ask("nothing", &json!({}));
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.pass(10).await;
    let status = stage.status("why-large");
    let message = status["failedMessage"].as_str().unwrap_or_default().to_owned();
    assert!(message.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{status}");
    let result = &status["detailedExplanation"][0]["scheduleExplanation"];
    let detail = json!({"failedPlugin": "NodeResourcesFit", "reason": "Insufficient cpu [InsufficientResources]", "failedNodes": ["small"]});
    assert_eq!(result["nodeFailedDetails"], json!([detail]), "{status}");
    let nothing = stage.status("nothing");
    assert!(nothing["failedMessage"].as_str().unwrap_or_default().starts_with("spec asks nothing"), "{nothing}");
    assert!(stage.explanation("large")["status"].is_string() || stage.explanation("large")["code"] == 404);

    stage.add_node("large", "8");
    stage.pass(20).await;
    assert_eq!(stage.place("large"), "large");
    assert_eq!(stage.status("why-large")["failedMessage"], json!(message), "an answer holds for a minute");
    stage.pass(60).await;
    let status = stage.status("why-large");
    assert_eq!((&status["schedulable"], &status["failedMessage"]), (&json!(true), &Value::Null), "{status}");
    let placed = &status["detailedExplanation"][0]["scheduleExplanation"]["feasibleSchedulingResult"][0];
    assert_eq!((&placed["name"], &placed["nodeName"]), (&json!("large"), &json!("large")));
    stage.pass(240).await;
    assert_eq!(stage.explanation("why-large")["code"], json!(404), "its time is over");
    assert_eq!(stage.explanation("nothing")["metadata"]["name"], json!("nothing"), "a day is not over");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_template_is_answered_as_a_new_pod_would_be_with_the_pods_that_would_be_evicted() {
    let stage = stage(false);
    stage.add_node("only", "4");
    stage.add_pod("runs", "3");
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    stage.send(Method::POST, "/apis/scheduling.k8s.io/v1/priorityclasses", &class);
    let template = |cpu: &str, class: Option<&str>| {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
        json!({"spec": {"schedulerName": "koord-scheduler", "containers": [container], "priorityClassName": class}})
    };
    stage.ask("small", &json!({"questionObjectTemplate": template("1", None)}));
    stage.ask("high", &json!({"questionObjectTemplate": template("3", Some("high"))}));
    stage.ask("unknown", &json!({"questionObjectTemplate": template("3", Some("none"))}));
    stage.ask("empty", &json!({"questionObjectTemplate": {"metadata": {}}}));
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.pass(20).await;
    assert_eq!(stage.status("small")["schedulable"], json!(true), "{}", stage.status("small"));
    let high = stage.status("high");
    assert_eq!((&high["schedulable"], &high["schedulableAfterPreemption"]), (&Value::Null, &json!(true)), "{high}");
    let victims = &high["detailedExplanation"][0]["nodePossibleVictims"][0];
    assert_eq!((&victims["nodeName"], &victims["possibleVictims"][0]["name"]), (&json!("only"), &json!("runs")));
    let said = |name: &str| stage.status(name)["failedMessage"].as_str().unwrap_or_default().to_owned();
    assert_eq!(said("unknown"), "there is no PriorityClass none; create it, or write spec.priority");
    assert!(said("empty").starts_with("spec.questionObjectTemplate has no spec"), "{}", said("empty"));
    assert_eq!(stage.place("runs"), "only", "nobody was evicted");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn pods_are_read_once_as_the_transformers_make_them_and_templates_are_made_alike() {
    let transformers = Transformers { priority: true, ..Transformers::default() };
    let stage = Stage { transformers, ..stage(true) };
    stage.add_node("only", "4");
    stage.add_pod("runs", "3");
    let batch = json!({"metadata": {"labels": {"koordinator.sh/priority-class": "koord-batch"}}});
    stage.send(Method::PATCH, &format!("{PODS}/runs"), &batch);
    stage.add_pod("large", "16");
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}});
    let labels = json!({"koordinator.sh/priority-class": "koord-prod"});
    let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    stage.ask("prod", &json!({"questionObjectTemplate": template}));
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lists);
    let client = client(&stage.server, move |request| {
        let uri = request.uri();
        let watches = uri.query().is_some_and(|query| query.contains("watch="));
        counted.fetch_add(usize::from(watches && uri.path() == "/api/v1/pods"), Ordering::Relaxed);
        std::future::ready(())
    });
    let (manager, ..) = stage.program(client, default_profile("koord-scheduler").unwrap(), "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(20).await;
    let status = stage.status("large");
    assert!(status["failedMessage"].as_str().unwrap_or_default().contains("Insufficient cpu"), "{status}");
    let prod = stage.status("prod");
    assert_eq!(prod["schedulableAfterPreemption"], json!(true), "its priority is that of its class: {prod}");
    assert_eq!(lists.load(Ordering::Relaxed), 1, "one watch of pods for both");
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// A profile with gangs.
fn gangs() -> Profile {
    profile_with(&["Coscheduling"])
}

/// A profile with these plugins of Koordinator.
pub(super) fn profile_with(plugins: &[&str]) -> Profile {
    configured(plugins, &json!([]))
}

/// The same with these arguments.
fn configured(plugins: &[&str], arguments: &Value) -> Profile {
    let enabled: Vec<Value> = plugins.iter().map(|name| json!({"name": name})).collect();
    let points = json!({"multiPoint": {"enabled": enabled}});
    let profile = json!({"schedulerName": "koord-scheduler", "plugins": points, "pluginConfig": arguments});
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile],
    });
    let profiles = SchedulerConfiguration::of(&document).unwrap().profiles;
    build(&profiles[0].resolved(), &|_| false).unwrap().profile
}

#[tokio::test(start_paused = true)]
async fn where_configured_an_explanation_is_created_for_each_waiting_pod_and_gang() {
    let stage = stage(true);
    stage.add_node("only", "4");
    stage.add_pod("fits", "1");
    stage.add_pod("large", "16");
    let group = json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "train"}, "spec": {"minMember": 2}});
    stage.send(Method::POST, "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups", &group);
    for name in ["train-0", "train-1"] {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}});
        let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
        let metadata = json!({"name": name, "labels": {"pod-group.scheduling.sigs.k8s.io": "train"}});
        stage.send(Method::POST, PODS, &json!({"metadata": metadata, "spec": spec}));
    }
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&writes);
    let client = client(&stage.server, move |request| {
        let is_write =
            request.method() != Method::GET && request.uri().path() == format!("{EXPLANATIONS}/large/status");
        counted.fetch_add(usize::from(is_write), Ordering::Relaxed);
        std::future::ready(())
    });
    let (manager, ..) = stage.program(client, gangs(), "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(15).await;
    let list = stage.send(Method::GET, EXPLANATIONS, &Value::Null);
    let names: Vec<&str> =
        list["items"].as_array().unwrap().iter().filter_map(|one| one["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["large", "train"], "one for the gang, none for what is placed");
    let large = stage.explanation("large");
    assert_eq!(large["metadata"]["ownerReferences"][0]["name"], json!("large"));
    assert!(large["status"]["failedMessage"].as_str().unwrap().contains("Insufficient cpu"), "{large}");
    let train = stage.status("train");
    assert!(train["failedMessage"].as_str().unwrap_or_default().starts_with("default/train-"), "{train}");
    let feasible = &train["detailedExplanation"][0]["scheduleExplanation"]["feasibleSchedulingResult"];
    assert!(feasible.as_array().is_none_or(Vec::is_empty), "a gang is placed as a whole: {train}");

    // What the pod says changes all the time; the explanation does not.
    for cpu in 1..60 {
        stage.send(Method::PATCH, "/api/v1/nodes/only", &json!({"metadata": {"labels": {"x": cpu.to_string()}}}));
        stage.pass(5).await;
    }
    let minutes = writes.load(Ordering::Relaxed);
    assert!((5..=6).contains(&minutes), "one write a minute in five minutes: {minutes}");
    stage.add_node("another", "8");
    stage.pass(90).await;
    assert_eq!(stage.status("train")["schedulable"], json!(true), "{}", stage.status("train"));
    stage.pass(3600).await;
    assert_eq!(stage.explanation("train")["code"], json!(404), "its hour is over, and nothing waits");
    assert_eq!(stage.explanation("large")["metadata"]["name"], json!("large"), "it waits still and has a new one");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_gang_without_a_place_in_the_network_is_explained_by_topology_domain() {
    let stage = stage(false);
    for (name, block) in [("n1", "b1"), ("n2", "b1"), ("n3", "b2"), ("n4", "b2"), ("n5", "b2")] {
        stage.add_node(name, "4");
        let labels = json!({"t/block": block, "t/spine": "s1"});
        stage.send(Method::PATCH, &format!("/api/v1/nodes/{name}"), &json!({"metadata": {"labels": labels}}));
    }
    let layers = json!([
        {"labelKey": ["t/spine"], "parentTopologyLayer": "ClusterTopologyLayer", "topologyLayer": "SpineLayer"},
        {"labelKey": ["t/block"], "parentTopologyLayer": "SpineLayer", "topologyLayer": "BlockLayer"},
        {"parentTopologyLayer": "BlockLayer", "topologyLayer": "NodeTopologyLayer"},
    ]);
    let topology = json!({
        "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "ClusterNetworkTopology",
        "metadata": {"name": "default"}, "spec": {"networkTopologySpec": layers},
    });
    let made = stage.send(Method::POST, "/apis/scheduling.koordinator.sh/v1alpha1/clusternetworktopologies", &topology);
    assert_eq!(made["metadata"]["name"], json!("default"), "{made}");
    let together = r#"{"gatherStrategy":[{"layer":"BlockLayer","strategy":"MustGather"}]}"#;
    let annotations = json!({"gang.scheduling.koordinator.sh/network-topology-spec": together});
    let group = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "train", "annotations": annotations}, "spec": {"minMember": 4},
    });
    stage.send(Method::POST, "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups", &group);
    for number in 0..4 {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}});
        let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
        let labels = json!({"pod-group.scheduling.sigs.k8s.io": "train"});
        let metadata = json!({"name": format!("train-{number}"), "labels": labels});
        stage.send(Method::POST, PODS, &json!({"metadata": metadata, "spec": spec}));
    }
    let aware = json!([{"name": "Coscheduling", "args": {"awareNetworkTopology": true}}]);
    let (manager, ..) =
        stage.program(client(&stage.server, |_| std::future::ready(())), configured(&["Coscheduling"], &aware), "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(15).await;
    stage.ask("why-train", &json!({"questionObjectKey": "train"}));
    stage.pass(10).await;
    let status = stage.status("why-train");
    let said = |domain: usize| {
        let explanation = &status["detailedExplanation"][domain];
        let text = |field: &str| explanation[field].as_str().unwrap_or_default().to_owned();
        (text("topologyDomain"), text("failedMessage"))
    };
    let (whole, message) = said(0);
    assert_eq!((&*whole, message.as_str()), ("", status["failedMessage"].as_str().unwrap_or_default()));
    let places = "BlockLayer/b1: 2;topology topologyNode BlockLayer/b2: 3";
    assert!(message.contains(places), "what was tried says why: {status}");
    for (index, domain, slots) in [(1, "BlockLayer/b2", 3), (2, "BlockLayer/b1", 2)] {
        let (name, message) = said(index);
        assert_eq!(name, domain, "those with most nodes first: {status}");
        let words = format!(
            "desiredOfferSlot: 4, topology topologyNode {domain}: {slots}, 0/{slots} nodes are available: {slots} \
             Insufficient cpu."
        );
        assert!(message.contains(&words), "{message}");
    }
    assert_eq!(status["detailedExplanation"].as_array().map(Vec::len), Some(3), "{status}");

    stage.add_node("n6", "4");
    stage.send(Method::PATCH, "/api/v1/nodes/n6", &json!({"metadata": {"labels": {"t/block": "b2", "t/spine": "s1"}}}));
    stage.pass(90).await;
    let status = stage.status("why-train");
    assert_eq!(status["schedulable"], json!(true), "{status}");
    assert_eq!(status["detailedExplanation"].as_array().map(Vec::len), Some(1), "{status}");
    stop.cancel();
    running.await.unwrap().unwrap();
}
