//! What a decision costs, without an API server: `cargo bench -p koord-scheduler-plugins`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use koord_api::reservation::Reservation;
use koord_config::scheduler::SchedulerConfiguration;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_engine::{
    engine::{Attempt, Engine, Outcome},
    labels::Labels,
    node::Node,
    object::Object,
    pod::{Pod, Template},
    queue::Timings,
};
use koord_scheduler_plugins::{build, default_profile};
use serde_json::{Value, json};

const NOW: Moment = Moment::at(Duration::ZERO);

fn node(number: usize) -> Arc<Node> {
    let allocatable = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
    let labels = json!({"kubernetes.io/hostname": format!("n{number}"), "topology.kubernetes.io/zone": format!("z{}", number % 3)});
    let object =
        json!({"metadata": {"name": format!("n{number}"), "labels": labels}, "status": {"allocatable": allocatable}});
    Arc::new(Node::of(&serde_json::from_value(object).unwrap()).unwrap())
}

fn template(spec: &Value) -> Arc<Template> {
    let spec = serde_json::from_value(spec.clone()).unwrap();
    Arc::new(Template::of("ns", Labels::default(), &BTreeMap::new(), &spec).unwrap())
}

fn pod(number: usize, template: &Arc<Template>) -> Arc<Pod> {
    let name = format!("p{number}");
    Arc::new(Pod {
        key: ObjectKey::new("ns", &name),
        uid: Uid::from(&*format!("00000000-0000-4000-8000-{number:012x}")),
        template: Arc::clone(template),
        ..Pod::default()
    })
}

/// Pods per second, from the queue to the assumed node.
fn decide(nodes: usize, pods: usize, template_of: impl Fn(usize) -> Arc<Template>) -> f64 {
    let mut engine =
        Engine::new(vec![default_profile("koord-scheduler").unwrap()], Timings::default(), Random::seeded(1));
    (0..nodes).for_each(|number| engine.set_node(node(number), NOW));
    (0..pods).for_each(|number| engine.set_pod(pod(number, &template_of(number)), NOW));
    let start = Instant::now();
    for _ in 0..pods {
        let Some(Attempt { outcome: Outcome::Bind { .. }, .. }) = engine.attempt(NOW) else {
            panic!("a pod was not placed")
        };
    }
    pods as f64 / start.elapsed().as_secs_f64()
}

/// An engine of the profile that Koordinator ships.
fn shipped() -> Engine {
    const CONFIGURATION: &str = include_str!("../../../../bins/koord-scheduler/koord-scheduler.config.yaml");
    let document = koord_resource::yaml::parse(CONFIGURATION).unwrap();
    let configuration = SchedulerConfiguration::of(&document).unwrap();
    let profile = build(&configuration.profiles[0].resolved(), &|_| false).unwrap().profile;
    Engine::new(vec![profile], Timings::default(), Random::seeded(1))
}

/// A pod of this workload.
fn member(number: usize, template: &Arc<Template>, app: &str) -> Arc<Pod> {
    let labels = [("app", app)].into_iter().collect();
    pod(number, &Arc::new(Template { labels, ..Template::clone(template) }))
}

/// Owners per second that find the reservations which are theirs: a thousand, of so many workloads, on as many nodes.
fn decide_owners(nodes: usize, workloads: usize, spec: &Value, are_reserved: bool) -> f64 {
    const OWNERS: usize = 1000;
    let mut engine = shipped();
    (0..nodes).for_each(|number| engine.set_node(node(number), NOW));
    let app = |number: usize| format!("app-{}", number % workloads);
    for number in (0..OWNERS).filter(|_| are_reserved) {
        let (name, uid) = (format!("r{number}"), format!("10000000-0000-4000-8000-{number:012x}"));
        let owner = json!({"labelSelector": {"matchLabels": {"app": app(number)}}});
        let object: Reservation = serde_json::from_value(json!({
            "metadata": {"name": name, "uid": uid},
            "spec": {"owners": [owner], "template": {"spec": spec}},
            "status": {"phase": "Available", "nodeName": format!("n{}", number * nodes / OWNERS)},
        }))
        .unwrap();
        let object = Object::new(ObjectKey::cluster(&name), Uid::from(&*uid), false, Arc::new(object));
        engine.set_object(object, NOW);
    }
    let template = template(spec);
    let templates: Vec<Arc<Template>> =
        (0..workloads).map(|number| Arc::clone(&member(number, &template, &app(number)).template)).collect();
    (0..OWNERS).for_each(|number| engine.set_pod(pod(number, &templates[number % workloads]), NOW));
    let start = Instant::now();
    for _ in 0..OWNERS {
        let Some(Attempt { outcome: Outcome::Bind { patch, .. }, .. }) = engine.attempt(NOW) else {
            panic!("a pod was not placed")
        };
        let uses_one = patch.annotations.contains_key("scheduling.koordinator.sh/reservation-allocated");
        assert_eq!(uses_one, are_reserved);
    }
    OWNERS as f64 / start.elapsed().as_secs_f64()
}

fn main() {
    let requests = json!({"cpu": "500m", "memory": "1Gi"});
    let spec =
        json!({"schedulerName": "koord-scheduler", "containers": [{"name": "c", "resources": {"requests": requests}}]});
    for workloads in [1, 20, 50] {
        let [owners, floor] = [true, false].map(|are_reserved| decide_owners(5000, workloads, &spec, are_reserved));
        println!(
            "owners of 1000 reservations, {workloads} workloads, 5000 nodes: {owners:.0} pods/s; without reservations {floor:.0}"
        );
    }
    for nodes in [1000, 5000, 20_000] {
        let plain = template(&spec);
        println!(
            "plain pods of one workload, {nodes} nodes: {:.0} pods/s",
            decide(nodes, 20_000, |_| Arc::clone(&plain))
        );
    }
    let mut mixed: Vec<Arc<Template>> = Vec::new();
    for number in 0..20 {
        let mut spec = spec.clone();
        spec["containers"][0]["resources"]["requests"]["cpu"] = json!(format!("{}m", 100 + number * 50));
        mixed.push(template(&spec));
    }
    println!(
        "pods of 20 workloads by turns, 5000 nodes: {:.0} pods/s",
        decide(5000, 20_000, |number| Arc::clone(&mixed[number % 20]))
    );
    println!("each pod of another workload, 5000 nodes: {:.0} pods/s", decide(5000, 500, |_| template(&spec)));
    let mut preferring = spec.clone();
    let term = json!({"weight": 5, "preference": {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]}]}});
    preferring["affinity"] = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}});
    let preferring = template(&preferring);
    println!("pods that prefer a zone, 5000 nodes: {:.0} pods/s", decide(5000, 500, |_| Arc::clone(&preferring)));
    let among_others = among_others(&spec);
    for (what, chosen) in [
        ("spread over zones and nodes", &among_others[..1]),
        ("apart from their own", &among_others[1..2]),
        ("near another workload", &among_others[2..3]),
        ("plain, beside workloads with terms", &among_others[3..4]),
    ] {
        let decided = decide(5000, 4000, |number| match number {
            // The workloads are there before the one that counts.
            0..1000 => Arc::clone(&among_others[number % among_others.len()]),
            _ => Arc::clone(&chosen[0]),
        });
        println!("pods that are {what}, 5000 nodes: {decided:.0} pods/s");
    }
    let mixed: Vec<Arc<Template>> = (0..5).flat_map(|_| self::among_others(&spec)).collect();
    println!(
        "spread, apart, near and plain pods of 20 workloads by turns, 5000 nodes: {:.0} pods/s",
        decide(5000, 10_000, |number| Arc::clone(&mixed[number % mixed.len()]))
    );
}

/// Four workloads: one is spread over zones and preferably over nodes, one wants to be apart from its own pods, one wants to be
/// near the first and prefers not to be near itself, and one says nothing.
fn among_others(spec: &Value) -> Vec<Arc<Template>> {
    let (zone, host) = ("topology.kubernetes.io/zone", "kubernetes.io/hostname");
    let selector = |app: &str| json!({"matchLabels": {"app": app}});
    let term = |key: &str, app: &str| json!({"topologyKey": key, "labelSelector": selector(app)});
    let constraint = |key: &str, skew: u32, action: &str| json!({"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": action, "labelSelector": selector("spread")});
    let spread = json!([constraint(zone, 1, "DoNotSchedule"), constraint(host, 1, "ScheduleAnyway")]);
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(host, "apart")]}});
    let weighted = json!([{"weight": 50, "podAffinityTerm": term(host, "near")}]);
    let near = json!({
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term(zone, "spread")]},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted},
    });
    let workload = |app: &str, member: &str, value: Value| {
        let mut spec = spec.clone();
        spec[member] = value;
        let spec = serde_json::from_value(spec).unwrap();
        let labels = [("app", app)].into_iter().collect();
        Arc::new(Template::of("ns", labels, &BTreeMap::new(), &spec).unwrap())
    };
    vec![
        workload("spread", "topologySpreadConstraints", spread),
        workload("apart", "affinity", apart),
        workload("near", "affinity", near),
        workload("plain", "affinity", json!(null)),
    ]
}
