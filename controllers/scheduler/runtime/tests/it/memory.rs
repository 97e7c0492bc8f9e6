//! What users write is not kept longer than the pods that have it.

use std::sync::Arc;

use allocations::held;
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
use serde_json::{Value, json};

/// What a pod of this number has much of.
type Spec = fn(u64, usize) -> (Value, Value);

/// How many texts of each kind a pod has that no other has.
const TEXTS: usize = 400;
const ROUNDS: u64 = 100;
const PODS: u64 = 5;

struct Stage {
    scheduler: Scheduler,
    pods: Arc<dyn Sink>,
}

impl Stage {
    fn new() -> Self {
        const CONFIGURATION: &str = include_str!("../../../../../config/koord-scheduler.config.yaml");
        let configuration = SchedulerConfiguration::of(&koord_resource::yaml::parse(CONFIGURATION).unwrap()).unwrap();
        let profile = build(&configuration.profiles[0].resolved(), &|_| false).unwrap().profile;
        let (clock, events): (_, Arc<dyn EventSink>) = (SystemClock::shared(), Arc::new(NoopSink));
        let metrics = Metrics::new().unwrap();
        let mut core = Core::new("test", Arc::clone(&clock), Random::seeded(1), metrics, Arc::clone(&events));
        let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        let feed = Feed::of(&mut core, &engine.reads());
        let sink = |kind| core.watches().iter().find(|watch| watch.kind == kind).map(|watch| Arc::clone(&watch.sink));
        let (pods, nodes) = (sink(ResourceKind::POD).unwrap(), sink(ResourceKind::NODE).unwrap());
        core.watches().iter().for_each(|watch| watch.sink.begin_list(false));
        let allocatable = json!({"cpu": "64", "memory": "64Gi", "pods": "110"});
        let metadata = json!({"name": "n", "uid": "n", "resourceVersion": "1", "labels": {"zone": "a"}});
        nodes.upsert(&json!({"metadata": metadata, "status": {"allocatable": allocatable}}).to_string()).unwrap();
        core.watches().iter().for_each(|watch| watch.sink.end_list());
        let mut scheduler = Scheduler::new(engine, feed, events, clock);
        scheduler.lead();
        let mut stage = Self { scheduler, pods };
        stage.settle();
        stage
    }

    /// Until there is nothing to do.
    fn settle(&mut self) {
        loop {
            while self.scheduler.catch_up() {}
            match self.scheduler.step() {
                Next::Send(work) => self.scheduler.written(work, Ok(())),
                Next::Attempted => {}
                Next::CallExtenders(_) => panic!("nobody is asked"),
                Next::Rest => return,
            }
        }
    }
}

fn names(what: &str, pod: u64, value: &str) -> Value {
    (0..TEXTS).map(|text| (format!("{what}-{pod}-{text}"), json!(value))).collect::<serde_json::Map<_, _>>().into()
}

/// What is held after each round, in which some pods come, are tried or placed, and go.
fn rounds(spec: Spec) -> Vec<isize> {
    let mut stage = Stage::new();
    let before = held();
    let rounds = (0..ROUNDS).map(|round| {
        let pods: Vec<String> = (round * PODS..(round + 1) * PODS)
            .map(|number| {
                let (labels, spec) = spec(number, TEXTS);
                let name = format!("p{number}");
                let (uid, revision) = (format!("uid-{number}"), (number + 2).to_string());
                json!({
                    "metadata": {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": revision, "labels": labels},
                    "spec": spec,
                })
                .to_string()
            })
            .collect();
        for pod in &pods {
            stage.pods.upsert(pod).unwrap();
        }
        stage.settle();
        for pod in &pods {
            stage.pods.remove(pod).unwrap();
        }
        stage.settle();
        held() - before
    });
    rounds.collect()
}

fn container(requests: &Value) -> Value {
    json!([{"name": "c", "resources": {"requests": requests}}])
}

#[test]
fn pods_that_are_gone_leave_none_of_their_texts() {
    let specs: [(&str, Spec); 5] = [
        ("keys of labels", |pod, _| {
            (names("key", pod, "v"), json!({"containers": container(&json!({})), "schedulerName": "koord-scheduler"}))
        }),
        ("values of labels", |pod, texts| {
            let labels = (0..texts).map(|text| (format!("key-{text}"), json!(format!("value-{pod}-{text}"))));
            let spec = json!({"containers": container(&json!({})), "schedulerName": "koord-scheduler"});
            (labels.collect::<serde_json::Map<_, _>>().into(), spec)
        }),
        ("node selectors", |pod, _| {
            let selector = names("selects", pod, "v");
            let containers = container(&json!({}));
            (json!({}), json!({"containers": containers, "schedulerName": "koord-scheduler", "nodeSelector": selector}))
        }),
        ("resources", |pod, _| {
            let requests = names("example.com/of", pod, "1");
            (json!({}), json!({"containers": container(&requests), "schedulerName": "koord-scheduler"}))
        }),
        ("topology keys", |pod, texts| {
            let key = |text| format!("spread-{pod}-{text}");
            let constraint =
                |text| json!({"maxSkew": 1, "topologyKey": key(text), "whenUnsatisfiable": "ScheduleAnyway"});
            let (constraints, containers): (Vec<Value>, _) =
                ((0..texts).map(constraint).collect(), container(&json!({})));
            let spec = json!({"containers": containers, "schedulerName": "koord-scheduler", "topologySpreadConstraints": constraints});
            (json!({}), spec)
        }),
    ];
    for (what, spec) in specs {
        let held = rounds(spec);
        let (first, last) = held.split_at(held.len() / 2);
        let most = |held: &[isize]| held.iter().copied().max().unwrap_or_default();
        let (first, last) = (most(first), most(last));
        println!("{what}: {} KB, then {} KB", first / 1000, last / 1000);
        // Hundreds of pods have come meanwhile, each of which takes a hundred kilobytes or more.
        assert!(last - first < 1_500_000, "{what}: {held:?}");
    }
}
