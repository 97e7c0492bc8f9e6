//! Two days of a cluster with moving load, in virtual time and on one API server: koord-manager turns what is unused into batch resources,
//! koord-scheduler places pods, koord-descheduler moves them with LowNodeLoad and Reservations, ReplicaSets replace them, and NodeMetrics come every minute.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use envtest::{cluster::standard_server, environment::TimedEnvironment, shell::Server};
use hollow::ReplicaSets;
use http::Method;
use jiff::Timestamp;
use koord_config::descheduler::Planning;
use koord_configuration::Source;
use koord_descheduler_assembly::Configuration;
use koord_descheduler_framework::{CoolDown, PastEviction};
use koord_descheduler_runtime::{HISTORY, history_of};
use koord_manager_assembly::{Options, webhook_defaults};
use koord_program::Dependencies;
use koord_resource::{declare::Profile, document::custom_resource_definition};
use koord_runtime::{
    clock::{ScaledClock, SharedClock},
    random::Random,
};
use koord_scheduler_assembly::Configuration as SchedulerConfiguration;
use koordctl::up::install;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const START: Timestamp = Timestamp::constant(1_767_225_600, 0);
const HALF_A_DAY: u64 = 12 * 60;
const TWO_DAYS: u64 = 48 * 60;
/// How often kubelets look.
const KUBELET: Duration = Duration::from_secs(30);
const NODES: usize = 6;
/// What a node has, in thousandths of cores.
const NODE_MILLI: f64 = 16_000.0;
/// Above this share a node is hot.
const HOT: f64 = 0.55;
/// Workloads, those of batch last.
const WORKLOADS: usize = 11;
const BATCH: usize = 2;
const REPLICAS: usize = 4;
/// What a pod requests, in thousandths of cores.
const REQUEST_MILLI: f64 = 1_500.0;
/// How many pods of a workload may be on their way.
const MIGRATING_MAX: usize = 2;

const NODE_PATH: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const METRICS: &str = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics";
const JOBS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs";
const MAPS: &str = "/api/v1/namespaces/koordinator-system/configmaps";

const DESCHEDULER: &str = "
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
leaderElection: {leaderElect: false}
deschedulingInterval: 1m
profiles:
- name: p
  plugins: {balance: {enabled: [{name: LowNodeLoad}]}}
  pluginConfig:
  - name: LowNodeLoad
    args:
      lowThresholds: {cpu: 45, memory: 90}
      highThresholds: {cpu: 55, memory: 95}
      anomalyCondition: {consecutiveAbnormalities: 3}
  - name: MigrationController
    args: {maxMigratingPerWorkload: 2, maxUnavailablePerWorkload: 2}
";

struct World {
    server: Server,
    clock: SharedClock,
    programs: JoinSet<anyhow::Result<()>>,
    /// Nodes of pods at the beginning, by workload.
    placed: Vec<(usize, usize)>,
    /// Minutes of nodes that were hot, after the first hour.
    hot_minutes: usize,
}

/// What a pod of a workload uses, in thousandths of cores: between night and day, each workload at its own hours and at its own height, with bursts of some minutes.
fn usage(workload: usize, minute: u64) -> f64 {
    let day = (minute as f64 / 1440.0 + workload as f64 / WORKLOADS as f64) * std::f64::consts::TAU;
    let height = 0.4 + 0.5 * ((workload * 5 % WORKLOADS) as f64 / WORKLOADS as f64);
    let burst = if (minute + workload as u64 * 37) % 173 < 12 { 0.35 } else { 0.0 };
    REQUEST_MILLI * (height * (1.0 + 0.8 * day.sin()) + burst).clamp(0.05, 1.6)
}

/// How many nodes are hot.
fn hot(placed: &[(usize, usize)], minute: u64) -> usize {
    let mut used = [500.0; NODES];
    for (workload, node) in placed {
        used[*node] += usage(*workload, minute);
    }
    used.iter().filter(|used| **used > HOT * NODE_MILLI).count()
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn replica_set(workload: usize) -> Value {
    let name = format!("w{workload:02}");
    let labels = json!({"app": name});
    let resources = if workload < WORKLOADS - BATCH {
        json!({"requests": {"cpu": format!("{REQUEST_MILLI}m"), "memory": "2Gi"}})
    } else {
        let batch = json!({"kubernetes.io/batch-cpu": REQUEST_MILLI.to_string(), "kubernetes.io/batch-memory": "2Gi"});
        json!({"requests": batch, "limits": batch})
    };
    let mut template = json!({
        "metadata": {"labels": labels},
        "spec": {
            "schedulerName": "koord-scheduler",
            "priorityClassName": "koord-prod",
            "containers": [{"name": "c", "image": "app:1", "resources": resources}],
        },
    });
    if workload >= WORKLOADS - BATCH {
        template["spec"]["priorityClassName"] = json!("koord-batch");
        template["metadata"]["labels"]["koordinator.sh/qosClass"] = json!("BE");
    }
    let spec = json!({"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template});
    json!({"metadata": {"name": name}, "spec": spec})
}

fn workload_of(pod: &Value) -> Option<usize> {
    text(pod, "/metadata/labels/app").strip_prefix('w')?.parse().ok()
}

fn node_of(pod: &Value) -> Option<usize> {
    text(pod, "/spec/nodeName").strip_prefix('n')?.parse().ok()
}

impl World {
    async fn new() -> Self {
        let clock = ScaledClock::shared(START, 1.0);
        let time = Arc::clone(&clock);
        let environment = TimedEnvironment::new(1, move || time.now());
        let server = standard_server(Box::new(environment)).unwrap();
        let world = Self { server, clock, programs: JoinSet::new(), placed: Vec::new(), hot_minutes: 0 };
        for kind in koord_types::KINDS {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            world.create(path, &custom_resource_definition(kind, Profile::Compatible)).await;
        }
        install::installation(&world.client()).await.unwrap();
        let amounts = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
        let ready = json!([{"type": "Ready", "status": "True"}]);
        for index in 0..NODES {
            let name = format!("n{index}");
            let status = json!({"allocatable": amounts, "capacity": amounts, "conditions": ready});
            let metadata = json!({"name": name, "labels": {"kubernetes.io/hostname": name}});
            world.create(NODE_PATH, &json!({"metadata": metadata, "status": status})).await;
            // Half of the nodes come later, so that pods are uneven from the start on.
            let spec = json!({"spec": {"taints": null, "unschedulable": index > NODES.div_ceil(2)}});
            world.send(Method::PATCH, &format!("{NODE_PATH}/{name}"), &spec).await;
        }
        world
    }

    fn client(&self) -> Client {
        Client::new(self.server.router(), "default")
    }

    fn dependencies(&self, seed: u64) -> Dependencies {
        let (client, clock) = (self.client(), Arc::clone(&self.clock));
        Dependencies { client, api_host: "cluster".to_owned(), clock, random: Random::seeded(seed) }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.server.send(method, path, body).await
    }

    async fn create(&self, path: &str, object: &Value) {
        let (code, answer) = self.send(Method::POST, path, object).await;
        assert_eq!(code, 201, "{path}: {answer}");
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let (_, mut list) = self.send(Method::GET, path, &Value::Null).await;
        list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    fn start_manager(&mut self) {
        let arguments = [
            "koord-manager",
            "--metrics-addr=0",
            "--health-probe-addr=0",
            "--rest-config-qps=0",
            "--enable-leader-election=false",
            "--feature-gates=WebhookFramework=false",
        ];
        let checked = Options::from_arguments(arguments.map(str::to_owned)).unwrap().check().unwrap();
        let environment = koord_webhook_server::Environment::of(webhook_defaults(), |_| None).unwrap();
        let stop = CancellationToken::new();
        self.programs.spawn(koord_manager::run_with(checked, self.dependencies(2), environment, stop));
    }

    fn start_scheduler(&mut self) {
        let mut configuration = SchedulerConfiguration::shipped_for_all_pods().unwrap();
        configuration.values.leader_election.leader_elect = false;
        let settings = koord_scheduler::Settings::within(configuration);
        self.programs.spawn(koord_scheduler::run_with(settings, self.dependencies(3), CancellationToken::new()));
    }

    fn start_descheduler(&mut self, planning: Planning) {
        let source = Source::new("two days", DESCHEDULER);
        let mut configuration = Configuration::of_document(&source.parse().unwrap(), &source).unwrap();
        configuration.values.profiles[0].planning = planning;
        let settings = koord_descheduler::Settings::within(configuration).unwrap();
        let (dependencies, clock) = (self.dependencies(4), Some(Arc::clone(&self.clock)));
        self.programs.spawn(koord_descheduler::run_with(settings, dependencies, clock, CancellationToken::new()));
    }

    /// What kubelets do: pods on nodes run, and those that are to go go. Returns the pods that run.
    async fn kubelets(&self) -> Vec<Value> {
        let mut running = Vec::new();
        for pod in self.list(PODS).await {
            let path = format!("{PODS}/{}", text(&pod, "/metadata/name"));
            if !pod["metadata"]["deletionTimestamp"].is_null() {
                self.send(Method::DELETE, &path, &json!({"gracePeriodSeconds": 0})).await;
            } else if node_of(&pod).is_some() {
                if text(&pod, "/status/phase") != "Running" {
                    let ready = json!([{"type": "Ready", "status": "True"}]);
                    let status = json!({"status": {"phase": "Running", "conditions": ready}});
                    self.send(Method::PATCH, &format!("{path}/status"), &status).await;
                }
                running.push(pod);
            }
        }
        running
    }

    /// What koordlets report in a minute.
    async fn koordlets(&mut self, pods: &[Value], minute: u64) {
        let usage_of = |milli: f64| json!({"resources": {"cpu": format!("{}m", milli.round()), "memory": "1Gi"}});
        for index in 0..NODES {
            let mine = pods.iter().filter(|pod| node_of(pod) == Some(index));
            let used: Vec<(&Value, f64)> =
                mine.filter_map(|pod| Some((pod, usage(workload_of(pod)?, minute)))).collect();
            let all: f64 = 500.0 + used.iter().map(|(_, used)| used).sum::<f64>();
            let of_pod = |(pod, used): &(&Value, f64)| {
                let priority = text(pod, "/spec/priorityClassName");
                json!({"namespace": "default", "name": pod["metadata"]["name"], "priority": priority, "podUsage": usage_of(*used)})
            };
            let status = json!({
                "updateTime": self.clock.now().to_string(), "podsMetric": used.iter().map(of_pod).collect::<Vec<_>>(),
                "nodeMetric": {"nodeUsage": usage_of(all), "systemUsage": usage_of(500.0)},
            });
            let path = format!("{METRICS}/n{index}/status");
            let (code, answer) = self.send(Method::PATCH, &path, &json!({ "status": status })).await;
            assert_eq!(code, 200, "koord-manager makes the NodeMetric of a node: {answer}");
        }
        if minute >= 60 {
            let placed: Vec<_> = pods.iter().filter_map(|pod| Some((workload_of(pod)?, node_of(pod)?))).collect();
            self.hot_minutes += hot(&placed, minute);
        }
    }

    /// Jobs on their way are no more than the configuration allows.
    async fn jobs_are_bounded(&self) {
        let mut jobs = self.list(JOBS).await;
        jobs.retain(|job| text(job, "/status/phase") == "Running");
        if jobs.is_empty() {
            return;
        }
        let pods = self.list(PODS).await;
        let workloads: BTreeMap<&str, usize> =
            pods.iter().filter_map(|pod| Some((text(pod, "/metadata/uid"), workload_of(pod)?))).collect();
        let mut of_workload: BTreeMap<usize, usize> = BTreeMap::new();
        for workload in jobs.iter().filter_map(|job| workloads.get(text(job, "/spec/podRef/uid"))) {
            *of_workload.entry(*workload).or_default() += 1;
        }
        assert!(of_workload.values().all(|count| *count <= MIGRATING_MAX), "{of_workload:?}");
    }

    /// A minute of the cluster.
    async fn minute(&mut self, minute: u64) {
        for round in 0..60 / KUBELET.as_secs() {
            self.clock.sleep(KUBELET).await;
            let pods = self.kubelets().await;
            if round == 0 {
                self.koordlets(&pods, minute).await;
                self.jobs_are_bounded().await;
            }
        }
        let ended = self.programs.try_join_next();
        assert!(ended.is_none(), "a program has ended: {ended:?}");
    }

    /// Lets koord-scheduler place all pods, while some nodes take none.
    async fn fill(&mut self) {
        for workload in 0..WORKLOADS {
            self.create(SETS, &replica_set(workload)).await;
        }
        for _ in 0..6 {
            self.clock.sleep(KUBELET).await;
            self.kubelets().await;
        }
        let pods = self.list(PODS).await;
        let place = |pod: &Value| Some((workload_of(pod)?, node_of(pod)?));
        self.placed = pods.iter().filter_map(place).collect();
        assert_eq!(self.placed.len(), WORKLOADS * REPLICAS, "not all pods have nodes");
        for index in 0..NODES {
            let path = format!("{NODE_PATH}/n{index}");
            self.send(Method::PATCH, &path, &json!({"spec": {"unschedulable": null}})).await;
        }
    }

    async fn history(&self) -> Vec<PastEviction> {
        let (_, map) = self.send(Method::GET, &format!("{MAPS}/{HISTORY}"), &Value::Null).await;
        history_of(&map).unwrap().evictions().cloned().collect()
    }
}

/// Evictions of pods that had replaced one of the same controller, evicted for the same reason, before its pause was over.
fn too_early(history: &[PastEviction]) -> Vec<&PastEviction> {
    let key = |past: &PastEviction| (past.owner.name.clone(), past.reason.clone(), past.strategy.clone());
    let is_too_early = |index: usize, later: &PastEviction| {
        let before = history[..index].iter().rev().find(|before| key(before) == key(later));
        before
            .is_some_and(|before| later.round > before.round && later.at < before.cools_down_until(CoolDown::default()))
    };
    history.iter().enumerate().filter(|(index, later)| is_too_early(*index, later)).map(|(_, later)| later).collect()
}

/// So many minutes of a cluster whose descheduler heeds its plans or only reports them: what it has evicted.
async fn evictions_of(minutes: u64, planning: Planning) -> Vec<PastEviction> {
    let mut world = World::new().await;
    world.start_manager();
    world.start_scheduler();
    let replica_sets = tokio::spawn(ReplicaSets::new(world.client()).run());
    world.clock.sleep(Duration::from_secs(30)).await;
    world.koordlets(&[], 0).await;
    world.clock.sleep(Duration::from_mins(2)).await;
    let node = world.send(Method::GET, &format!("{NODE_PATH}/n0"), &Value::Null).await.1;
    assert!(
        !node["status"]["allocatable"]["kubernetes.io/batch-cpu"].is_null(),
        "koord-manager offers batch resources"
    );
    world.fill().await;
    world.start_descheduler(planning);
    for minute in 0..minutes {
        world.minute(minute).await;
    }
    let untouched: usize = (60..minutes).map(|minute| hot(&world.placed, minute)).sum();
    let history = world.history().await;
    let moved: BTreeSet<&str> = history.iter().map(|past| past.owner.name.as_str()).collect();
    println!(
        "hot minutes of nodes: {untouched} without a descheduler, {} with; {} evictions, of {} workloads",
        world.hot_minutes,
        history.len(),
        moved.len()
    );
    assert!(world.hot_minutes * 4 < untouched, "{} of {untouched}", world.hot_minutes);
    let unfinished: Vec<Value> = world
        .list(JOBS)
        .await
        .into_iter()
        .filter(|job| !matches!(text(job, "/status/phase"), "Succeeded" | "Failed" | "Running"))
        .collect();
    assert_eq!(unfinished, Vec::<Value>::new());
    replica_sets.abort();
    history
}

async fn hot_spots_end_and_no_successor_is_evicted_again_before_its_pause_is_over(minutes: u64) {
    let history = evictions_of(minutes, Planning::Enforce).await;
    assert!(!history.is_empty());
    assert_eq!(too_early(&history), Vec::<&PastEviction>::new());
}

#[tokio::test(start_paused = true)]
async fn half_a_day_of_planned_evictions() {
    hot_spots_end_and_no_successor_is_evicted_again_before_its_pause_is_over(HALF_A_DAY).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "takes minutes; .ci/nightly runs it"]
async fn two_days_of_planned_evictions() {
    hot_spots_end_and_no_successor_is_evicted_again_before_its_pause_is_over(TWO_DAYS).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "the control of the test above, which takes as long; .ci/nightly runs it"]
async fn where_plans_are_only_reported_successors_are_evicted_again_at_once() {
    let history = evictions_of(TWO_DAYS, Planning::Report).await;
    assert_ne!(too_early(&history), Vec::<&PastEviction>::new());
}
