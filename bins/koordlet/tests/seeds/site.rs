//! An agent on a node, with the API server and the kubelet that it has around it.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use koord_core::{clock::Moment, random::Random, write::Action};
use koord_koordlet_framework::{Node as NodeObject, Target};
use koord_koordlet_resolver::{File, State};
use koord_koordlet_runtime::{
    Agent, Effect, Host, Input, Kept, KubeletFailure, KubeletPath, MetricObject, Now, Object, Settings, SloObject,
    TopologyObject,
};
use koord_koordlet_system::{Cgroups, Version};
use koord_koordlet_testing::Fixtures;
use koord_resource::schema::patch::merge;
use koordlet::Options;
use serde_json::{Value, json};
use tracing::{Level, Metadata, Subscriber, field, span};

use crate::{
    kernel::{Attempt, Kernel},
    node::{MEMORY, Machine, Node},
    pods::{Pod, pod_list},
};

/// When a run begins.
const START: &str = "2026-06-01T00:00:00Z";
/// The worker of the program calls the agent at least so often.
const IDLE_MAX: Duration = Duration::from_secs(1);
/// An agent that has more to do at one time does not come to an end.
const RUNS_MAX: u32 = 200;
/// How long after its condition a pod may still be evicted: rounds are carried out one eviction at a time.
const EVICTION_DELAY: Duration = Duration::from_secs(25);

/// How the API server fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ApiHealth {
    #[default]
    Well,
    /// No connection, and no changes by the watches.
    Away,
    /// It answers writes with this status.
    Refusing(u16),
}

/// How the kubelet fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KubeletHealth {
    #[default]
    Well,
    Down,
    /// Its answers break off.
    Malformed,
    /// It has just started, and knows no pods.
    Empty,
    /// It answers after the time-out.
    Late,
}

/// The objects of the node on the API server.
#[derive(Default)]
struct Api {
    health: ApiHealth,
    revision: u64,
    slo: Value,
    metric: Value,
    topology: Option<Value>,
    /// What the watches give when they are connected again.
    held: Vec<Input>,
}

/// What the agent is given, and what it asks for.
pub(crate) struct Site {
    pub(crate) node: Node,
    pub(crate) kernel: Kernel,
    pub(crate) kubelet: KubeletHealth,
    agent: Option<Agent>,
    settings: Settings,
    seed: u64,
    api: Api,
    pub(crate) accepts_evictions: bool,
    pub(crate) list: String,
    pub(crate) now: Duration,
    /// What the time of day is off by, in seconds.
    pub(crate) skew_s: i64,
    answers: Vec<(Duration, Input)>,
    /// Pods whose eviction was accepted since it was last asked.
    pub(crate) evicted: Vec<String>,
    ever_evicted: BTreeSet<String>,
    /// Conditions of evictions: when, and the memory in use in percent with the thresholds that the agent knew.
    conditions: VecDeque<(Duration, u64, Value)>,
    /// The thresholds that hold for the agent.
    thresholds: Value,
    refused: BTreeSet<String>,
    pub(crate) story: Vec<String>,
    pub(crate) refusals: u64,
    /// Reports that the API server has taken.
    pub(crate) reports: u64,
    pub(crate) evictions: u64,
}

thread_local! {
    static WARNINGS: Cell<u64> = const { Cell::new(0) };
}

/// Counts warnings.
pub(crate) struct Warnings;

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Fields;
        impl field::Visit for Fields {
            fn record_debug(&mut self, _: &field::Field, value: &dyn std::fmt::Debug) {
                // What a log line says must not fail either.
                _ = format!("{value:?}");
            }
        }
        event.record(&mut Fields);
        WARNINGS.with(|warnings| warnings.set(warnings.get() + 1));
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// What the program's flags say for an agent of this node.
fn settings(node: &Node, gates: &str, only_evicts_by_api: bool, collect_s: u64) -> Settings {
    let (root, work) = (node.root(), node.work());
    let (root, work) = (root.display(), work.display());
    let flags = [
        format!("--cgroup-root-dir={root}/cgroup/"),
        format!("--sys-root-dir={root}/sys/"),
        format!("--sys-fs-root-dir={root}/sysfs/"),
        format!("--proc-root-dir={root}/proc/"),
        format!("--var-run-root-dir={root}/var-run/"),
        format!("--run-root-dir={root}/run/"),
        format!("--var-lib-kubelet-dir={root}/kubelet/"),
        format!("--audit-log-dir={work}/audit"),
        format!("--prediction-checkpoint-filepath={work}/checkpoints"),
        format!("--xpu-device-infos-dir={root}/xpu/"),
        format!("--collect-res-used-interval={collect_s}s"),
        format!("--only-evict-by-api={only_evicts_by_api}"),
        format!("--feature-gates={gates}"),
        "--prediction-model-expiration-duration=2m".to_owned(),
        "--kubelet-sync-interval=2s".to_owned(),
        "--resource-force-update-seconds=10".to_owned(),
        "--kubelet-insecure-tls=true".to_owned(),
        "--enable-nri-runtime-hook=false".to_owned(),
    ];
    let options = Options::from_arguments(["koordlet".to_owned()].into_iter().chain(flags)).unwrap();
    let environment = BTreeMap::from([("NODE_NAME", "node"), ("agent_mode", "dsMode")]);
    let environment = environment.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    options.check_in(&environment).unwrap().settings()
}

/// What differs between the agents of seeds.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) machine: Machine,
    pub(crate) gates: String,
    pub(crate) only_evicts_by_api: bool,
    pub(crate) collect_s: u64,
}

impl Site {
    pub(crate) fn new(setting: &Setting, fixtures: &Fixtures, random: Random, seed: u64, now: Duration) -> Self {
        let node = Node::new(setting.machine, fixtures, now);
        let settings = settings(&node, &setting.gates, setting.only_evicts_by_api, setting.collect_s);
        Self {
            kernel: Kernel::new(&node.root(), setting.machine.is_v2, random),
            node,
            kubelet: KubeletHealth::Well,
            agent: None,
            settings,
            seed,
            api: Api { metric: json!({"metadata": {"name": "node", "uid": "metric"}, "spec": {}}), ..Api::default() },
            accepts_evictions: true,
            list: String::new(),
            now,
            skew_s: 0,
            answers: Vec::new(),
            evicted: Vec::new(),
            ever_evicted: BTreeSet::new(),
            conditions: VecDeque::new(),
            thresholds: Value::Null,
            refused: BTreeSet::new(),
            story: Vec::new(),
            refusals: 0,
            reports: 0,
            evictions: 0,
        }
    }

    pub(crate) fn record(&mut self, line: impl FnOnce() -> String) {
        let line = format!("{:>8.3} {}", self.now.as_secs_f64(), line());
        self.story.push(line);
    }

    /// Forgets what the run was like so far: it must not count as memory of the agent.
    pub(crate) fn forget_run(&mut self) {
        self.kernel.forget();
        (self.story, self.evicted, self.ever_evicted, self.refused) = Default::default();
    }

    fn time(&self) -> Now {
        let start: Timestamp = START.parse().unwrap();
        let time = start + SignedDuration::try_from(self.now).unwrap() + SignedDuration::from_secs(self.skew_s);
        Now { moment: Moment::at(self.now), time }
    }

    /// Starts the agent, or ends it and starts it again; `is_clean` with SIGTERM.
    pub(crate) fn restart(&mut self, is_clean: bool) {
        let now = self.time();
        if let Some(mut agent) = self.agent.take()
            && is_clean
        {
            agent.stop(now);
        }
        self.answers.clear();
        self.api.held.clear();
        self.refused.clear();
        self.thresholds = Value::Null;
        self.seed += 1;
        let version = if self.node.machine.is_v2 { Version::V2 } else { Version::V1 };
        let host = Host::discover(&self.settings.roots, version);
        let writer = Box::new(self.kernel.clone());
        self.agent = Some(Agent::new(self.settings.clone(), host, writer, self.seed, now));
        let cpus = self.node.machine.cpus.to_string();
        let amounts = json!({"cpu": cpus, "memory": MEMORY.to_string(), "pods": "110"});
        let node = json!({
            "metadata": {"name": "node", "uid": "node", "labels": {}, "annotations": {}},
            "status": {
                "capacity": amounts, "allocatable": amounts,
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            },
        });
        self.watch(Input::Object(Object::Node(Some(Arc::new(NodeObject::read(&node.to_string()).unwrap())))));
        let (slo, metric, topology) = (self.api.slo.clone(), self.api.metric.clone(), self.api.topology.clone());
        if !slo.is_null() {
            self.watch(slo_input(&slo));
        }
        self.watch(metric_input(&metric));
        if let Some(topology) = topology {
            self.watch(topology_input(&topology));
        }
        self.watch(Input::Listed);
    }

    /// Something that the watches give, now or when they are connected again.
    fn watch(&mut self, input: Input) {
        if self.api.health == ApiHealth::Away {
            self.api.held.push(input);
        } else {
            self.answers.push((self.now, input));
        }
    }

    pub(crate) fn set_api(&mut self, health: ApiHealth) {
        self.api.health = health;
        if health != ApiHealth::Away {
            let held = std::mem::take(&mut self.api.held);
            self.answers.extend(held.into_iter().map(|input| (self.now, input)));
        }
    }

    pub(crate) fn set_slo(&mut self, spec: &Value) {
        self.api.slo = spec.clone();
        self.watch(slo_input(spec));
    }

    pub(crate) fn set_pods(&mut self, pods: &BTreeMap<String, Pod>) {
        self.list = pod_list(pods);
    }

    /// A folder of a pod has come or gone, and the agent's watch has seen it.
    pub(crate) fn see_folder(&mut self) {
        self.answers.push((self.now, Input::PodFolder));
    }

    pub(crate) fn agent(&self) -> &Agent {
        self.agent.as_ref().unwrap()
    }

    /// Runs the agent until a time.
    pub(crate) fn advance(&mut self, end: Duration) -> Result<(), String> {
        loop {
            self.settle()?;
            if self.now >= end {
                return Ok(());
            }
            let due = self.agent().due().since(Moment::default()).max(self.now + Duration::from_millis(1));
            let answer = self.answers.iter().map(|(at, _)| *at).min().unwrap_or(end);
            self.now = end.min(due).min(answer).min(self.now + IDLE_MAX).max(self.now);
            self.node.advance(self.now);
        }
    }

    fn settle(&mut self) -> Result<(), String> {
        let used = self.node.memory() * 100 / MEMORY;
        self.conditions.push_back((self.now, used, self.thresholds.clone()));
        while self.conditions.front().is_some_and(|(at, ..)| self.now.saturating_sub(*at) > EVICTION_DELAY) {
            self.conditions.pop_front();
        }
        for _ in 0..RUNS_MAX {
            let (due, later): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.answers).into_iter().partition(|(at, _)| *at <= self.now);
            self.answers = later;
            let (now, is_quiet) = (self.time(), due.is_empty());
            for (_, input) in due {
                if let Input::Object(Object::Slo(Some(slo))) = &input {
                    self.take_thresholds(&slo.spec);
                }
                self.agent.as_mut().unwrap().handle(input, now);
            }
            let warnings = WARNINGS.with(Cell::get);
            let effects = self.agent.as_mut().unwrap().run(now, &|| now.moment);
            self.check_refusals(WARNINGS.with(Cell::get) - warnings)?;
            if is_quiet && effects.is_empty() {
                return Ok(());
            }
            for effect in effects {
                self.carry_out(effect)?;
            }
        }
        Err(format!("the agent does not come to an end at {:?}", self.now))
    }

    fn take_thresholds(&mut self, spec: &Value) {
        let given = &spec["resourceUsedThresholdWithBE"];
        if given.is_object() {
            self.thresholds = given.clone();
            self.conditions.push_back((self.now, self.node.memory() * 100 / MEMORY, given.clone()));
        }
    }

    /// A refused value is a state of its file, and there is a warning when that is new.
    fn check_refusals(&mut self, warnings: u64) -> Result<(), String> {
        let attempts = self.kernel.attempts();
        if attempts.is_empty() {
            return Ok(());
        }
        let mut last: BTreeMap<&str, Option<i32>> = BTreeMap::new();
        for Attempt { path, text, refused } in &attempts {
            last.insert(path, *refused);
            let refused = refused.map_or_else(String::new, |error| format!(" is refused with error {error}"));
            self.story.push(format!("{:>8.3} {path} ← {}{refused}", self.now.as_secs_f64(), text.trim()));
        }
        let is_any_refused = attempts.iter().any(|attempt| attempt.refused.is_some());
        let root = self.node.root();
        let states: BTreeMap<PathBuf, State> = if is_any_refused {
            self.states().into_iter().map(|(path, file)| (path, file.state().clone())).collect()
        } else {
            BTreeMap::new()
        };
        let mut new = Vec::new();
        for (path, error) in last {
            let state = states.get(&root.join(path));
            match error {
                Some(error) => {
                    self.refusals += 1;
                    if let Some(State::New | State::Agrees | State::Unsupported | State::Foreign { .. }) = state {
                        return Err(format!(
                            "{path} was refused with error {error}, and its state is another one: {state:?}"
                        ));
                    }
                    if self.refused.insert(path.to_owned()) {
                        new.push(path);
                    }
                }
                None if matches!(state, Some(State::Cut { .. })) => {}
                None => _ = self.refused.remove(path),
            }
        }
        if new.is_empty() || warnings > 0 {
            Ok(())
        } else {
            Err(format!("no warning says that one of these was refused: {new:?}"))
        }
    }

    /// What the agent wants of files, by their paths.
    pub(crate) fn states(&self) -> BTreeMap<PathBuf, &File> {
        let agent = self.agent();
        let cgroups = Cgroups::new(self.settings.roots.cgroup.clone(), agent.layout());
        let path = |target: &Target| match target {
            Target::Cgroup { cgroup, resource } | Target::Disk { cgroup, resource, .. } => {
                cgroups.path(cgroup, *resource)
            }
            Target::System(path) => Some(path.clone()),
        };
        agent.resolver().files().filter_map(|(target, file)| Some((path(target)?, file))).collect()
    }

    fn carry_out(&mut self, effect: Effect) -> Result<(), String> {
        let now = self.now;
        match effect {
            Effect::AskKubelet(path) => {
                let result = match (self.kubelet, path) {
                    (KubeletHealth::Down, _) => Err(unanswered("connection refused")),
                    (KubeletHealth::Late, _) => Err(unanswered("no answer in time")),
                    (_, KubeletPath::Configuration) => Ok(br#"{"kubeletconfig":{"cpuManagerPolicy":"none"}}"#.to_vec()),
                    (KubeletHealth::Malformed, _) => Ok(self.list.as_bytes()[..self.list.len() / 2].to_vec()),
                    (KubeletHealth::Empty, _) => Ok(br#"{"kind":"PodList","items":[]}"#.to_vec()),
                    (KubeletHealth::Well, _) => Ok(self.list.clone().into_bytes()),
                };
                let at = if self.kubelet == KubeletHealth::Late { now + Duration::from_secs(3) } else { now };
                self.answers.push((at, Input::Kubelet { path, result }));
            }
            Effect::Write { id, write } => {
                let result = match self.api.health {
                    ApiHealth::Away => Err("connection refused".to_owned()),
                    ApiHealth::Refusing(code) => Ok((code, r#"{"kind":"Status","message":"refused"}"#.to_owned())),
                    ApiHealth::Well => Ok(self.written(&write.action, write.kind.kind, write.key.name())?),
                };
                self.answers.push((now, Input::Written { id, result }));
            }
            Effect::StopContainer { id, container } => {
                let container = container.to_string();
                let result = if self.accepts_evictions { Ok(()) } else { Err("no socket".to_owned()) };
                if result.is_ok() {
                    let uid = self.pod_of_container(&container);
                    self.record(|| format!("container {container} of {uid:?} is stopped"));
                    if let Some(uid) = uid.filter(|uid| !self.evicted.contains(uid)) {
                        self.evict(uid)?;
                    }
                }
                self.answers.push((now, Input::Stopped { id, result }));
            }
            Effect::Event(event) => {
                let figures = event.annotations.first().map(|(_, figures)| figures.clone()).unwrap_or_default();
                self.check_condition(&figures)?;
                self.record(|| format!("{} {}: {figures}", event.reason, event.key.name()));
            }
        }
        Ok(())
    }

    /// The uid of the pod in the kubelet's list that has a container.
    fn pod_of_container(&self, container: &str) -> Option<String> {
        let list: Value = serde_json::from_str(&self.list).unwrap();
        let pod = list["items"].as_array()?.iter().find(|pod| pod["status"].to_string().contains(container))?;
        pod["metadata"]["uid"].as_str().map(str::to_owned)
    }

    fn evict(&mut self, uid: String) -> Result<(), String> {
        self.evictions += 1;
        if !self.ever_evicted.insert(uid.clone()) {
            return Err(format!("pod {uid} is evicted a second time"));
        }
        self.evicted.push(uid);
        Ok(())
    }

    /// The API server takes a write.
    fn written(&mut self, action: &Action, kind: &str, name: &str) -> Result<(u16, String), String> {
        self.api.revision += 1;
        let revision = self.api.revision.to_string();
        let object = match (kind, action) {
            ("Pod", Action::Evict(deletion)) => {
                if !self.accepts_evictions {
                    return Ok((429, r#"{"kind":"Status","message":"the disruption budget"}"#.to_owned()));
                }
                let uid = deletion.uid.to_string();
                self.record(|| format!("pod {name} ({uid}) is evicted"));
                self.evict(uid)?;
                return Ok((201, "{}".to_owned()));
            }
            ("NodeMetric", Action::Update { object, .. }) => {
                self.reports += 1;
                self.api.metric["metadata"]["resourceVersion"] = json!(revision);
                let input = metric_input(&self.api.metric);
                self.watch(input);
                object.clone()
            }
            ("NodeResourceTopology", Action::Create(object)) => {
                let mut object = object.clone();
                object["metadata"]["resourceVersion"] = json!(revision);
                object["metadata"]["uid"] = json!("topology");
                object
            }
            ("NodeResourceTopology", Action::Patch { patch, .. }) => {
                let mut object = merge::apply(self.api.topology.clone().unwrap_or_default(), patch);
                object["metadata"]["resourceVersion"] = json!(revision);
                object
            }
            (kind, action) => return Err(format!("unexpected write of {kind}: {action:?}")),
        };
        if kind == "NodeResourceTopology" {
            self.watch(topology_input(&object));
            self.api.topology = Some(object.clone());
        }
        Ok((200, object.to_string()))
    }

    /// An eviction has its condition, now or a short while ago.
    fn check_condition(&self, figures: &str) -> Result<(), String> {
        let is_met = |(_, used, thresholds): &(Duration, u64, Value)| {
            let is_enabled = thresholds["enable"] == true;
            let threshold = thresholds["memoryEvictThresholdPercent"].as_u64().unwrap_or(70);
            is_enabled && (!figures.contains("memoryEvictThresholdPercent") || used + 1 >= threshold)
        };
        if self.conditions.iter().any(is_met) {
            return Ok(());
        }
        Err(format!("a pod is evicted without its condition: {figures}; seen: {:?}", self.conditions.back()))
    }
}

fn slo_input(spec: &Value) -> Input {
    Input::Object(Object::Slo(Some(Arc::new(SloObject { spec: spec.clone() }))))
}

fn metric_input(metric: &Value) -> Input {
    Input::Object(Object::Metric(Some(Arc::new(MetricObject::read(&metric.to_string()).unwrap()))))
}

fn topology_input(topology: &Value) -> Input {
    Input::Object(Object::Topology(Some(Arc::new(TopologyObject::read(&topology.to_string()).unwrap()))))
}

fn unanswered(reason: &str) -> KubeletFailure {
    KubeletFailure { status: None, reason: reason.to_owned() }
}
