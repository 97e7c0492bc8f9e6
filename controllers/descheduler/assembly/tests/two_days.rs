//! Two days of a cluster with moving load: koord-descheduler with LowNodeLoad, the engine of koord-scheduler, ReplicaSets that replace evicted pods, and
//! NodeMetrics every minute, in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use jiff::Timestamp;
use koord_configuration::Source as Text;
use koord_descheduler_assembly::{Configuration, build};
use koord_descheduler_framework::{
    Cluster, CoolDown, Descheduler, History, Input, Memory, PastEviction, Planning, Step,
};
use koord_descheduler_planning::{EvictedAgain, Foresight, plan};
use koord_program::{gates::Gates, plan::Source};
use koord_runtime::{clock::Moment, uid::Uid};
use koord_scheduler_assembly::{Configuration as SchedulerConfiguration, GATES, amend, snapshot, transformers};
use koord_scheduler_engine::{Engine, Outcome};
use serde_json::{Value, json};

const NODES: usize = 12;
const WORKLOADS: usize = 20;
const REPLICAS: usize = 4;
const MINUTES: i64 = 48 * 60;
/// What a node has, and what a pod requests, in thousandths of cores.
const NODE_MILLI: f64 = 16_000.0;
const REQUEST_MILLI: f64 = 1_500.0;

const CONFIGURATION: &str = r#"
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 1m
profiles:
- name: p
  planning: enforce
  plugins:
    balance: {enabled: [{name: LowNodeLoad}]}
    evict: {disabled: [{name: "*"}], enabled: [{name: DefaultEvictor}]}
    filter: {disabled: [{name: "*"}], enabled: [{name: DefaultEvictor}]}
  pluginConfig:
  - name: LowNodeLoad
    args:
      lowThresholds: {cpu: 50, memory: 90}
      highThresholds: {cpu: 65, memory: 95}
      anomalyCondition: {consecutiveAbnormalities: 3}
"#;

/// A pod of a ReplicaSet.
struct Replica {
    workload: usize,
    node: usize,
    created: Timestamp,
}

struct World {
    descheduler: Descheduler,
    engine: Engine,
    memory: Memory,
    history: History,
    pods: BTreeMap<String, Replica>,
    made: usize,
    /// Minutes of nodes above the high threshold, after the first hour.
    hot_minutes: usize,
    /// Successors that no node took.
    pending: usize,
}

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + minute * 60).unwrap()
}

/// What a pod of a workload uses: between night and day, each workload at its own hours and at its own height, with bursts of some minutes.
fn usage(workload: usize, minute: i64) -> f64 {
    let day = (minute as f64 / 1440.0 + workload as f64 / WORKLOADS as f64) * std::f64::consts::TAU;
    let height = 0.35 + 0.5 * ((workload * 7 % WORKLOADS) as f64 / WORKLOADS as f64);
    let burst = if (minute + workload as i64 * 37) % 173 < 12 { 0.35 } else { 0.0 };
    REQUEST_MILLI * (height * (1.0 + 0.6 * day.sin()) + burst).clamp(0.05, 1.6)
}

fn node(index: usize) -> Value {
    let name = format!("n{index:02}");
    let amounts = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn pod(name: &str, replica: &Replica, is_bound: bool) -> Value {
    let set = format!("w{:02}", replica.workload);
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "uid": set, "controller": true});
    let requests = json!({"cpu": format!("{REQUEST_MILLI}m"), "memory": "2Gi"});
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "ownerReferences": [owner],
            "labels": {"app": set}, "creationTimestamp": replica.created.to_string(),
        },
        "spec": {"schedulerName": "koord-scheduler", "containers": [{"name": "c", "image": "app:1", "resources": {"requests": requests}}]},
        "status": {"phase": "Pending"},
    });
    if is_bound {
        pod["spec"]["nodeName"] = json!(format!("n{:02}", replica.node));
        pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    }
    pod
}

impl World {
    async fn new(planning: Planning) -> Self {
        let text = Text::new("test", CONFIGURATION);
        let configuration = Configuration::of_document(text.parse().unwrap(), &text).unwrap();
        let mut descheduler = build(&configuration.values).unwrap().descheduler;
        descheduler.profiles[0].planning = planning;
        let mut pods = BTreeMap::new();
        for index in 0..WORKLOADS * REPLICAS {
            // Uneven from the start on: workloads with equal hours share nodes.
            let replica =
                Replica { workload: index / REPLICAS, node: index * NODES / (WORKLOADS * REPLICAS), created: at(-600) };
            pods.insert(format!("p{index:05}"), replica);
        }
        let bound = pods.iter().map(|(name, replica)| pod(name, replica, true));
        let objects: Vec<Value> = (0..NODES).map(node).chain(bound).collect();
        let scheduler = SchedulerConfiguration::shipped_for_all_pods().unwrap();
        let engine = snapshot(&scheduler, &Gates::new(GATES), Source::Files(objects), at(0)).await.unwrap();
        let made = pods.len();
        Self {
            descheduler,
            engine,
            memory: Memory::default(),
            history: History::default(),
            pods,
            made,
            hot_minutes: 0,
            pending: 0,
        }
    }

    /// What koordlets report in a minute.
    fn metrics(&mut self, minute: i64) -> Vec<Value> {
        let usage_of = |milli: f64| json!({"resources": {"cpu": format!("{}m", milli.round()), "memory": "1Gi"}});
        let metric = |index: usize| {
            let mine = self.pods.iter().filter(|(_, replica)| replica.node == index);
            let used: Vec<(&String, f64)> =
                mine.map(|(name, replica)| (name, usage(replica.workload, minute))).collect();
            let all: f64 = 500.0 + used.iter().map(|(_, used)| used).sum::<f64>();
            let pods: Vec<Value> = used
                .iter()
                .map(|(name, used)| json!({"namespace": "default", "name": name, "podUsage": usage_of(*used)}))
                .collect();
            let name = format!("n{index:02}");
            let metric = json!({
                "apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric",
                "metadata": {"name": name, "uid": name, "resourceVersion": format!("{}", minute + 2)}, "spec": {},
                "status": {"updateTime": at(minute).to_string(), "podsMetric": pods,
                    "nodeMetric": {"nodeUsage": usage_of(all), "systemUsage": usage_of(500.0)}},
            });
            (metric, all)
        };
        let (metrics, used): (Vec<Value>, Vec<f64>) = (0..NODES).map(metric).unzip();
        if minute >= 60 {
            self.hot_minutes += used.iter().filter(|used| **used > 0.65 * NODE_MILLI).count();
        }
        metrics
    }

    async fn minute(&mut self, minute: i64) {
        let now = at(minute);
        self.engine.tick(now);
        let metrics = self.metrics(minute);
        let transformers = transformers(&Gates::new(GATES));
        amend(&mut self.engine, metrics.clone(), transformers).await.unwrap();
        let bound = self.pods.iter().map(|(name, replica)| pod(name, replica, true));
        let objects: Vec<Value> = (0..NODES).map(node).chain(bound).chain(metrics).collect();
        let (cluster, errors) = Cluster::of(&objects);
        assert_eq!(errors, []);
        self.history.find_successors(&cluster, now);
        let foresight = Foresight { scheduler: Some(&self.engine), history: &self.history };
        let input = Input::new(&cluster, &self.memory, now);
        let plan = plan(&self.descheduler, &input, foresight, &mut EvictedAgain::default());
        assert_eq!(plan.errors, []);
        for eviction in plan.steps.iter().filter_map(Step::eviction) {
            let id = cluster.pod_id(eviction.pod.key.as_str()).unwrap();
            self.history.add(cluster.pod(id).unwrap(), eviction, CoolDown::default(), now);
            let gone = self.pods.remove(eviction.pod.key.name()).unwrap();
            self.engine.remove_pod(&Uid::from(eviction.pod.key.name()), Moment::default());
            self.replace(gone.workload, now).await;
        }
        self.memory = plan.memory;
    }

    /// The ReplicaSet makes another pod, and the scheduler places it.
    async fn replace(&mut self, workload: usize, now: Timestamp) {
        let name = format!("p{:05}", self.made);
        self.made += 1;
        let mut replica = Replica { workload, node: 0, created: now };
        let transformers = transformers(&Gates::new(GATES));
        amend(&mut self.engine, vec![pod(&name, &replica, false)], transformers).await.unwrap();
        match self.engine.attempt_for(&Uid::from(name.as_str()), Moment::default()) {
            Some(Outcome::Bind { node, .. }) => replica.node = node[1..].parse().unwrap(),
            other => {
                self.pending += 1;
                panic!("no node takes {name}: {other:?}");
            }
        }
        let mut bound = pod(&name, &replica, true);
        bound["metadata"]["resourceVersion"] = json!("2");
        amend(&mut self.engine, vec![bound], transformers).await.unwrap();
        self.pods.insert(name, replica);
    }

    async fn two_days(planning: Planning) -> Self {
        let mut world = Self::new(planning).await;
        for minute in 0..MINUTES {
            world.minute(minute).await;
        }
        world
    }

    /// Evictions of pods that had replaced one of the same controller, evicted for the same reason, before its pause was over.
    fn too_early(&self) -> usize {
        let past: Vec<&PastEviction> = self.history.evictions().collect();
        let is_too_early = |(index, later): (usize, &&PastEviction)| {
            let key = |past: &PastEviction| (past.owner.name.clone(), past.reason.clone(), past.strategy.clone());
            let before = past[..index].iter().rev().find(|before| key(before) == key(later));
            before.is_some_and(|before| {
                later.round > before.round && later.at < before.cools_down_until(CoolDown::default())
            })
        };
        past.iter().enumerate().filter(|(index, later)| is_too_early((*index, later))).count()
    }
}

#[tokio::test]
async fn hot_spots_end_and_no_successor_is_evicted_again_before_its_pause_is_over() {
    let nothing = {
        let mut world = World::new(Planning::Off).await;
        world.descheduler.limits.total = Some(0);
        for minute in 0..MINUTES {
            world.metrics(minute);
        }
        world
    };
    let planned = World::two_days(Planning::Enforce).await;
    let evictions = planned.history.evictions().count();
    println!(
        "hot minutes of nodes: {} without a descheduler, {} with; {evictions} evictions",
        nothing.hot_minutes, planned.hot_minutes
    );
    assert!(evictions > 0);
    assert!(planned.hot_minutes * 4 < nothing.hot_minutes, "{} {}", planned.hot_minutes, nothing.hot_minutes);
    assert_eq!(planned.too_early(), 0);
}

/// Without planning the same load has pods evicted again soon after they came, so the test above can fail.
#[tokio::test]
async fn without_planning_successors_are_evicted_again() {
    let world = World::two_days(Planning::Report).await;
    let evictions = world.history.evictions().count();
    println!("{evictions} evictions without planning, {} of them too early", world.too_early());
    assert!(world.too_early() > 0);
}
