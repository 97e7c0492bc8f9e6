//! What a cluster costs the scheduler in memory, and how long it takes from its objects to the first binding:
//! `cargo bench -p koord-scheduler-runtime -- [NODES PODS]...`.
//!
//! Objects are lines as an API server sends them, and go through the caches into the engine with the profile that Koordinator ships.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::{
    fmt::Write as _,
    fs,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use koord_config::scheduler::SchedulerConfiguration;
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Core,
    clock::SystemClock,
    events::{EventSink, NoopSink},
    metrics::Metrics,
    random::Random,
    store::Sink,
};
use koord_scheduler_assembly::build;
use koord_scheduler_engine::{Engine, queue::Timings};
use koord_scheduler_runtime::{Next, Scheduler, feed::Feed};

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    match numbers[..] {
        [nodes, pods] => measure(nodes, pods),
        _ => {
            // Each in a process of its own: memory that was given back may stay resident.
            for (nodes, pods) in [(5000, 2000), (5000, 150_000), (10_000, 300_000)] {
                let program = std::env::current_exe().unwrap();
                let status = Command::new(program).args([nodes.to_string(), pods.to_string()]).status().unwrap();
                assert!(status.success());
            }
        }
    }
}

fn measure(nodes: usize, pods: usize) {
    let (mut scheduler, sinks) = scheduler();
    let sink = |kind: ResourceKind| sinks.iter().find(|(known, _)| *known == kind).map(|(_, sink)| sink).unwrap();
    let before = resident("VmRSS:");
    let mut busy = Duration::ZERO;
    let (mut text, begin) = (String::new(), Instant::now());
    for (_, sink) in &sinks {
        sink.begin_list(true);
    }
    for number in 0..nodes {
        text.clear();
        node(&mut text, number);
        let start = Instant::now();
        sink(ResourceKind::NODE).upsert(&text).unwrap();
        busy += start.elapsed();
    }
    for number in 0..=pods {
        text.clear();
        pod(&mut text, number, (number < pods).then_some(number % nodes));
        let start = Instant::now();
        sink(ResourceKind::POD).upsert(&text).unwrap();
        if number % 512 == 0 {
            while scheduler.catch_up() {}
        }
        busy += start.elapsed();
    }
    let start = Instant::now();
    for (_, sink) in &sinks {
        sink.end_list();
    }
    while scheduler.catch_up() {}
    scheduler.lead();
    loop {
        match scheduler.step() {
            Next::Send(work) if work.write.key.name().starts_with("pod-") => break,
            // Quotas that every cluster has.
            Next::Send(work) => scheduler.written(work, Ok(())),
            Next::Attempted => {}
            Next::CallExtenders(_) | Next::Rest => panic!("nothing was decided"),
        }
    }
    busy += start.elapsed();
    let (after, highest) = (resident("VmRSS:"), resident("VmHWM:"));
    println!(
        "{nodes} nodes, {pods} pods: {:.1} MB resident ({:.1} before, {:.1} at most), {} bytes a pod; first binding after {:.2} s of work ({:.2} s with the making of the objects)",
        mb(after),
        mb(before),
        mb(highest),
        (after - before) / pods,
        busy.as_secs_f64(),
        begin.elapsed().as_secs_f64(),
    );
}

type Sinks = Vec<(ResourceKind, Arc<dyn Sink>)>;

fn scheduler() -> (Scheduler, Sinks) {
    const CONFIGURATION: &str = include_str!("../../../../config/koord-scheduler.config.yaml");
    let configuration = SchedulerConfiguration::of(&koord_resource::yaml::parse(CONFIGURATION).unwrap()).unwrap();
    let profile = build(&configuration.profiles[0].resolved(), &|_| false).unwrap().profile;
    let (clock, events): (_, Arc<dyn EventSink>) = (SystemClock::shared(), Arc::new(NoopSink));
    let metrics = Metrics::new().unwrap();
    let mut core = Core::new("bench", Arc::clone(&clock), Random::seeded(1), metrics, Arc::clone(&events));
    let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
    let feed = Feed::of(&mut core, &engine.reads());
    let sinks = core.watches().iter().map(|watch| (watch.kind, Arc::clone(&watch.sink))).collect();
    (Scheduler::new(engine, feed, events, clock), sinks)
}

fn node(text: &mut String, number: usize) {
    write!(
        text,
        r#"{{"kind":"Node","apiVersion":"v1","metadata":{{"name":"node-{number:05}","uid":"20000000-0000-4000-8000-{number:012x}","resourceVersion":"{revision}","creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"kubernetes.io/hostname":"node-{number:05}","kubernetes.io/arch":"amd64","kubernetes.io/os":"linux","topology.kubernetes.io/zone":"zone-{zone}"}},"annotations":{{"volumes.kubernetes.io/controller-managed-attach-detach":"true"}}}},"spec":{{"podCIDR":"10.0.0.0/24"}},"status":{{"capacity":{{"cpu":"96","memory":"384Gi","pods":"110"}},"allocatable":{{"cpu":"96","memory":"384Gi","pods":"110","ephemeral-storage":"1Ti","kubernetes.io/batch-cpu":"32000","kubernetes.io/batch-memory":"128Gi"}},"conditions":[{{"type":"Ready","status":"True"}}],"addresses":[{{"type":"InternalIP","address":"10.0.0.1"}}],"nodeInfo":{{"kubeletVersion":"v1.34.3"}}}}}}"#,
        revision = number + 1,
        zone = number % 3,
    )
    .unwrap();
}

/// One of a ReplicaSet of fifty pods.
fn pod(text: &mut String, number: usize, node: Option<usize>) {
    let (workload, revision) = (number / 50, number + 100_000);
    let placed = node.map(|node| format!(r#""nodeName":"node-{node:05}","#)).unwrap_or_default();
    let status = if node.is_some() {
        r#"{"phase":"Running","startTime":"2026-01-01T00:00:02Z","conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-01T00:00:01Z"},{"type":"Initialized","status":"True","lastTransitionTime":"2026-01-01T00:00:02Z"},{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:05Z"}],"hostIP":"10.0.0.1","podIP":"10.1.0.1","qosClass":"Burstable"}"#
    } else {
        r#"{"phase":"Pending"}"#
    };
    write!(
        text,
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"pod-{workload:04}-6c9f7d5b8-{number:06}","namespace":"team-{team:02}","uid":"{uid:08x}-0000-4000-8000-{number:012x}","resourceVersion":"{revision}","creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app":"app-{workload:04}","pod-template-hash":"6c9f7d5b8"}},"annotations":{{"prometheus.io/scrape":"true"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"pod-{workload:04}-6c9f7d5b8","uid":"30000000-0000-4000-8000-{workload:012x}","controller":true,"blockOwnerDeletion":true}}]}},"spec":{{{placed}"schedulerName":"koord-scheduler","priority":9000,"serviceAccountName":"default","containers":[{{"name":"main","image":"registry.example.com/team/app-{workload:04}:1.2.3","args":["--listen=:8080"],"env":[{{"name":"REGION","value":"eu-west-1"}}],"ports":[{{"containerPort":8080}}],"resources":{{"requests":{{"cpu":"500m","memory":"1Gi"}},"limits":{{"cpu":"1","memory":"2Gi"}}}},"volumeMounts":[{{"name":"kube-api-access-x","mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","readOnly":true}}]}}],"volumes":[{{"name":"kube-api-access-x","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}}]}}}}],"tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}},{{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}]}},"status":{status}}}"#,
        team = workload % 40,
        // In no order, as an API server draws them.
        uid = (number as u32).wrapping_mul(2_654_435_769),
    )
    .unwrap();
}

fn resident(line: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|known| known.strip_prefix(line)).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1024
}

fn mb(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
