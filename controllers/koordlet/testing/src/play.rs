//! Plays a case in virtual time: the tree, the kubelet, the API server and the runtimes around an agent.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use serde_json::{Map, Value, json};

use crate::{
    agent::{Agent, Answer, Event, Input, Output, Setup, Start},
    api_server::{ApiServer, Change},
    case::{Case, Step},
    counters::Counters,
    exposition,
    fixtures::Fixtures,
    kernel::FixtureKernel,
    kubelet::Kubelet,
    memory::memory_files,
    names::Names,
    observed::Scene,
    start::{fill_work_folder, flags, scratch_folder, server, with_port},
    tree::Tree,
};

/// How long the first request for pods is waited for.
const PODS_WAIT: Duration = Duration::from_secs(15);
/// Least progress between two calls of an agent that has nothing to do at the time that it named.
const TICK: Duration = Duration::from_millis(1);
/// Most outputs in a row at one time: an agent with more does not come to an end.
const OUTPUTS_MAX: usize = 10_000;

/// Plays a case; gives what was seen, in the form of a recording.
///
/// # Panics
///
/// The case is malformed, or the agent panics or never comes to an end.
pub fn play(case: &Case, fixtures: &Fixtures, start: Start<'_>) -> Value {
    let folder = scratch_folder();
    let (root, work) = (folder.path().join("root"), folder.path().join("work"));
    let tree = Tree::of(case, fixtures);
    tree.write(&root);
    fill_work_folder(case, &root, &work);
    let (names, kernel) = (Names::of(case), FixtureKernel::new(&root, case.is_v2(), case.has_resctrl()));
    let setup = Setup {
        flags: flags(case, &root, &work),
        env: case.env.clone(),
        node_name: case.node_name.clone(),
        root: root.clone(),
        work: work.clone(),
        commands: tree.commands.clone(),
        kernel: kernel.clone(),
        is_v2: case.is_v2(),
    };
    let mut counters = Counters::of(case, &names, &root, fixtures.machine(&case.machine).ncpu);
    counters.advance(Duration::ZERO);
    let mut player = Player {
        case,
        names,
        root: &root,
        work: &work,
        files: tree.files,
        kernel,
        counters,
        server: server(case),
        kubelet: Kubelet::new(&case.kubelet, &case.pods),
        agent: None,
        exit: None,
        now: Duration::ZERO,
        began: None,
        answers: Vec::new(),
        events: Vec::new(),
        cri_calls: Vec::new(),
        nri: Map::new(),
        snapshots: Map::new(),
    };
    match start(setup) {
        Ok(agent) => player.agent = Some(agent),
        Err(code) => player.exit = Some(code),
    }
    let seen = player.play();
    let text = seen.to_string().replace(root.to_str().unwrap(), "{root}").replace(work.to_str().unwrap(), "{work}");
    serde_json::from_str(&text).unwrap()
}

pub(crate) struct Player<'a> {
    pub(crate) case: &'a Case,
    pub(crate) names: Names,
    root: &'a Path,
    work: &'a Path,
    /// The tree as it is when the agent writes nothing.
    files: BTreeMap<String, String>,
    pub(crate) kernel: FixtureKernel,
    counters: Counters,
    server: ApiServer,
    kubelet: Kubelet,
    /// The agent, as long as it runs.
    pub(crate) agent: Option<Box<dyn Agent>>,
    exit: Option<i32>,
    pub(crate) now: Duration,
    /// When pods were first answered.
    began: Option<Duration>,
    /// What comes to the agent, by time.
    answers: Vec<(Duration, Input)>,
    events: Vec<Event>,
    cri_calls: Vec<Value>,
    pub(crate) nri: Map<String, Value>,
    snapshots: Map<String, Value>,
}

impl Player<'_> {
    fn play(&mut self) -> Value {
        let case = self.case;
        self.answers.push((Duration::ZERO, Input::Listed(self.server.listed())));
        if !case.no_wait {
            self.run(PODS_WAIT, |player| player.began.is_some());
        }
        let began = self.began.unwrap_or_default();
        for step in &case.steps {
            self.run(began + Duration::from_secs_f64(step.at), |_| false);
            self.step(step);
        }
        self.run(began + Duration::from_secs_f64(case.seconds), |_| false);
        let mut seen = Map::new();
        if !case.hooks.is_empty() {
            let answers: Vec<Value> = case.hooks.iter().map(|call| self.hook(&call.method, &call.request)).collect();
            seen.insert("hooks".to_owned(), json!(answers));
            self.run(self.now + Duration::from_secs_f64(case.after_hooks), |_| false);
        }
        if !case.nri.is_empty() {
            self.run(self.now + PODS_WAIT, |player| player.nri.contains_key("register"));
            let answers: Vec<Value> = case.nri.iter().map(|call| self.nri_event(&call.method, &call.request)).collect();
            self.nri.insert("answers".to_owned(), json!(answers));
            seen.insert("nri".to_owned(), Value::Object(self.nri.clone()));
            self.run(self.now + Duration::from_secs_f64(case.after_hooks), |_| false);
        }
        if let Some(wanted) = &case.metrics {
            let of = |text: &Answer| exposition::families(&text.body, wanted);
            let texts: Map<String, Value> = wanted
                .endpoints
                .iter()
                .map(|path| (path.clone(), self.get(path).as_ref().map_or(Value::Null, of)))
                .collect();
            seen.insert("metrics".to_owned(), Value::Object(texts));
        }
        if !case.http.is_empty() {
            let answers: Map<String, Value> =
                case.http.iter().map(|(name, path)| (name.clone(), self.http(path))).collect();
            seen.insert("http".to_owned(), Value::Object(answers));
        }
        seen.insert("alive".to_owned(), json!(self.exit.is_none()));
        if let Some(code) = self.exit {
            seen.insert("exit".to_owned(), json!(code));
        }
        if !self.snapshots.is_empty() {
            seen.insert("snapshots".to_owned(), Value::Object(std::mem::take(&mut self.snapshots)));
        }
        if let Value::Object(state) = self.observe(true) {
            seen.extend(state);
        }
        if let Some(agent) = &mut self.agent {
            let code = agent.stop(self.now);
            if case.record_stop && code.is_some() {
                seen.insert("stopExit".to_owned(), json!(code));
            }
        }
        Value::Object(seen)
    }

    /// Runs the agent until a time, or until a condition is met, or the agent has ended.
    fn run(&mut self, end: Duration, is_met: impl Fn(&Self) -> bool) {
        loop {
            self.settle();
            let Some(agent) = &self.agent else { return };
            if self.now >= end || is_met(self) {
                return;
            }
            let due = agent.due().map_or(end, |due| due.max(self.now + TICK));
            let answer = self.answers.iter().map(|(at, _)| *at).min().unwrap_or(end);
            self.now = end.min(due).min(answer).max(self.now);
            self.counters.advance(self.now);
        }
    }

    /// Lets the agent do all that is due now.
    fn settle(&mut self) {
        let mut outputs = 0;
        loop {
            let Some(agent) = &mut self.agent else { return };
            let (due, later): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.answers).into_iter().partition(|(at, _)| *at <= self.now);
            self.answers = later;
            let is_quiet = due.is_empty();
            for (_, input) in due {
                if matches!(&input, Input::Kubelet { path, .. } if path.starts_with("/pods/")) {
                    self.began.get_or_insert(self.now);
                }
                agent.handle(self.now, input);
            }
            let made = agent.advance_to(self.now);
            if is_quiet && made.is_empty() {
                break;
            }
            outputs += made.len().max(1);
            assert!(outputs <= OUTPUTS_MAX, "the agent does not come to an end at {:?}: {made:?}", self.now);
            for output in made {
                self.take(output);
            }
        }
        self.greet();
    }

    fn take(&mut self, output: Output) {
        let now = self.now;
        match output {
            Output::Kubelet { path, has_credentials } => {
                let (delay, answer) = self.kubelet.answer(&path, has_credentials);
                self.answers.push((now + delay, Input::Kubelet { path, answer }));
            }
            Output::Api { id, request } => {
                let (answer, change) = self.server.request(&request);
                self.answers.push((now, Input::Api { id, answer }));
                match change {
                    Some(Change::Changed(object)) if object["kind"] != "Pod" => {
                        self.answers.push((now, Input::Changed(object)));
                    }
                    Some(Change::Deleted(object)) => self.answers.push((now, Input::Deleted(object))),
                    _ => {}
                }
            }
            Output::Event(event) => self.events.push(event),
            Output::Cri { id, endpoint, method, container, timeout_s } => {
                let is_there = endpoint.ends_with("/cri.sock") && self.case.cri;
                let call = json!([method, container, timeout_s]);
                if is_there && !self.cri_calls.contains(&call) {
                    self.cri_calls.push(call);
                }
                let result = if is_there { Ok(()) } else { Err(format!("no socket at {endpoint}")) };
                self.answers.push((now, Input::Cri { id, result }));
            }
            Output::Exit(code) => {
                self.exit = Some(code);
                self.agent = None;
            }
        }
    }

    fn step(&mut self, step: &Step) {
        if let Some(name) = &step.snapshot {
            let seen = self.observe(step.watch);
            self.snapshots.insert(name.clone(), seen);
        }
        for (path, change) in &step.files {
            let path = self.names.fill(path);
            if let Some(text) = change {
                self.write(path, self.names.fill(text));
            } else {
                _ = fs::remove_file(self.root.join(&path));
                self.files.remove(&path);
            }
        }
        for folder in &step.rmdirs {
            let folder = self.names.fill(folder);
            _ = fs::remove_dir_all(self.root.join(&folder));
            self.files.retain(|path, _| !path.starts_with(&format!("{folder}/")));
        }
        if let Some(memory) = &step.memory {
            for (path, text) in memory_files(self.case.is_v2(), &self.names, memory) {
                self.write(path, text);
            }
        }
        if let Some(usage) = &step.cpu {
            self.counters.set(&self.names, usage);
        }
        if let Some(state) = &step.kubelet {
            self.kubelet.change(state);
        }
        for object in &step.objects {
            let object = self.server.apply(&with_port(object));
            self.answers.push((self.now, Input::Changed(object)));
        }
        for object in &step.delete {
            if let Some(object) = self.server.delete(object) {
                self.answers.push((self.now, Input::Deleted(object)));
            }
        }
    }

    /// Writes a file from outside.
    fn write(&mut self, path: String, text: String) {
        let target = self.root.join(&path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, &text).unwrap();
        self.files.insert(path, text);
    }

    fn observe(&self, with_objects: bool) -> Value {
        let scene = Scene {
            case: self.case,
            names: &self.names,
            root: self.root,
            work: self.work,
            files: &self.files,
            written: &self.kernel.written(),
            server: &self.server,
            events: &self.events,
            cri_calls: &self.cri_calls,
            kubelet_requests: &self.kubelet.requests,
        };
        scene.observe(with_objects)
    }
}
