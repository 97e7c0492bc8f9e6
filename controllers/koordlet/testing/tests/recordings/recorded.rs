//! An agent that does what was recorded, just before it is looked at.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    time::Duration,
};

use koord_koordlet_system::Writer;
use koord_koordlet_testing::{Agent, Answer, ApiRequest, Case, Event, Input, Output, Setup, Tree, wire};
use serde_json::{Value, json};

/// Where the objects of a kind are.
const PATHS: [(&str, &str); 5] = [
    ("NodeMetric", "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"),
    ("NodeSLO", "/apis/slo.koordinator.sh/v1alpha1/nodeslos"),
    ("Device", "/apis/scheduling.koordinator.sh/v1alpha1/devices"),
    ("NodeResourceTopology", "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies"),
    ("Node", "/api/v1/nodes"),
];

pub(crate) struct Recorded {
    case: Case,
    tree: Tree,
    setup: Setup,
    outcome: Value,
    began: Option<Duration>,
    has_asked: bool,
    /// What is done, and when after the first pods, by the end.
    plans: Vec<(Duration, Value)>,
    /// Files that an earlier state had.
    touched: BTreeSet<String>,
    /// Writes that were done, by path.
    writes: BTreeMap<String, u64>,
    ordered: usize,
    events: Vec<Value>,
    hooks: usize,
    nri: usize,
    requests: u64,
}

impl Recorded {
    pub(crate) fn new(case: Case, tree: Tree, setup: Setup) -> Self {
        let text = case.recorded.to_string();
        let text = text.replace("{root}", setup.root.to_str().unwrap()).replace("{work}", setup.work.to_str().unwrap());
        let recorded: Value = serde_json::from_str(&text).unwrap();
        let before = |seconds: f64| Duration::from_secs_f64(seconds - 0.001);
        let mut plans = vec![(before(case.seconds), recorded.clone())];
        for step in case.steps.iter().rev() {
            if let Some(name) = &step.snapshot {
                plans.push((before(step.at), recorded["snapshots"][name].clone()));
            }
        }
        let (began, has_asked, writes, events) = (None, false, BTreeMap::new(), Vec::new());
        Self {
            case,
            tree,
            setup,
            outcome: recorded,
            began,
            has_asked,
            plans,
            touched: BTreeSet::new(),
            writes,
            ordered: 0,
            events,
            hooks: 0,
            nri: 0,
            requests: 0,
        }
    }

    fn ask(&self) -> Vec<Output> {
        let usual = json!(["/pods/", "/configz"]);
        let paths = if self.case.kubelet_requests { &self.outcome["kubeletRequests"] } else { &usual };
        let request = |line: &str| {
            let (path, credentials) = line.split_once(' ').unwrap_or((line, ""));
            Output::Kubelet { path: path.to_owned(), has_credentials: !credentials.is_empty() }
        };
        paths.as_array().into_iter().flatten().filter_map(Value::as_str).map(request).collect()
    }

    /// Writes files as they were seen.
    fn write(&mut self, state: &Value) {
        let root = self.setup.root.clone();
        let order: Vec<&str> = state["order"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for path in order.iter().skip(self.ordered) {
            self.count(path);
        }
        self.ordered = order.len();
        for (path, count) in state["counts"].as_object().into_iter().flatten() {
            while self.writes.get(path).copied().unwrap_or_default() < count.as_u64().unwrap() {
                self.count(path);
            }
        }
        for path in self.touched.iter().filter(|path| state["files"].get(path.as_str()).is_none()) {
            match self.tree.files.get(path) {
                Some(text) => fs::write(root.join(path), text).unwrap(),
                None => fs::remove_file(root.join(path)).unwrap(),
            }
        }
        for (path, text) in state["files"].as_object().into_iter().flatten() {
            let target = root.join(path);
            self.touched.insert(path.clone());
            match text.as_str() {
                Some(text) => {
                    fs::create_dir_all(target.parent().unwrap()).unwrap();
                    fs::write(target, text).unwrap();
                }
                None => _ = fs::remove_file(target),
            }
        }
        let folders = state["emptyDirs"].as_array();
        if folders.is_some_and(|folders| !folders.contains(&json!("hookserver"))) {
            fs::write(root.join("hookserver/koordlet.json"), "{}").unwrap();
        }
    }

    /// Writes a file as the kernel sees it, so that it is counted.
    fn count(&mut self, path: &str) {
        *self.writes.entry(path.to_owned()).or_default() += 1;
        let path = self.setup.root.join(path);
        let text = fs::read_to_string(&path).unwrap();
        self.setup.kernel.write(&path, &text).unwrap();
    }

    fn keep_work_files(&self, state: &Value) {
        let work = &self.setup.work;
        let files = state["workFiles"].as_object();
        for path in self.case.work_files.keys().filter(|_| files.is_some()) {
            fs::remove_file(work.join(path)).unwrap();
        }
        let names = state["workNames"].as_array().into_iter().flatten().map(|name| (name.as_str().unwrap(), ""));
        let files = files.into_iter().flatten().map(|(path, text)| (path.as_str(), text.as_str().unwrap()));
        for (path, text) in names.chain(files) {
            fs::write(work.join(path), text).unwrap();
        }
    }

    fn api(&mut self, method: &str, path: String, body: Value) -> Output {
        self.requests += 1;
        Output::Api { id: self.requests, request: ApiRequest { method: method.to_owned(), path, body } }
    }

    /// Writes to the API server and the runtime.
    fn requests(&mut self, state: &Value) -> Vec<Output> {
        let mut outputs = Vec::new();
        for (kind, object) in state["objects"].as_object().cloned().into_iter().flatten() {
            let Some((_, path)) = PATHS.iter().find(|(known, _)| *known == kind).filter(|_| !object.is_null()) else {
                continue;
            };
            let mut object = object.clone();
            for (_, value) in object["metadata"]["annotations"].as_object_mut().into_iter().flatten() {
                if value.is_object() {
                    *value = json!(value["json"].to_string());
                }
            }
            let name = &self.setup.node_name.clone();
            outputs.push(self.api("POST", (*path).to_owned(), object.clone()));
            outputs.push(self.api("PUT", format!("{path}/{name}"), object.clone()));
            outputs.push(self.api("PUT", format!("{path}/{name}/status"), object));
        }
        for name in state["objects"]["evicted"].as_array().cloned().into_iter().flatten() {
            let path = format!("/api/v1/namespaces/{}/pods/{}/eviction", self.case.name, name.as_str().unwrap());
            outputs.push(self.api("POST", path, json!({})));
        }
        for event in state["objects"]["events"].as_array().into_iter().flatten() {
            if self.events.contains(event) {
                continue;
            }
            self.events.push(event.clone());
            let field = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            outputs.push(Output::Event(Event {
                kind: field("kind"),
                namespace: self.case.name.clone(),
                name: field("name"),
                type_: field("type"),
                reason: field("reason"),
                message: field("message"),
                component: field("component"),
            }));
        }
        for call in state["criCalls"].as_array().into_iter().flatten() {
            outputs.push(Output::Cri {
                id: 0,
                endpoint: self.setup.flags["containerd-endpoint"].clone(),
                method: call[0].as_str().unwrap().to_owned(),
                container: call[1].as_str().unwrap().to_owned(),
                timeout_s: call[2].as_i64().unwrap(),
            });
        }
        outputs
    }
}

impl Agent for Recorded {
    fn due(&self) -> Option<Duration> {
        let (at, _) = self.plans.last()?;
        if self.has_asked { Some(self.began.unwrap_or_default() + *at) } else { Some(Duration::ZERO) }
    }

    fn handle(&mut self, at: Duration, input: Input) {
        if matches!(&input, Input::Kubelet { path, .. } if path == "/pods/") {
            self.began.get_or_insert(at);
        }
    }

    fn advance_to(&mut self, at: Duration) -> Vec<Output> {
        if !std::mem::replace(&mut self.has_asked, true) {
            return self.ask();
        }
        if self.due().is_none_or(|due| at < due) {
            return Vec::new();
        }
        let (_, state) = self.plans.pop().unwrap();
        self.write(&state);
        self.keep_work_files(&state);
        let mut outputs = self.requests(&state);
        if let Some(code) = state["exit"].as_i64().filter(|_| !self.case.reference_crash) {
            outputs.push(Output::Exit(i32::try_from(code).unwrap()));
        }
        outputs
    }

    fn call_hook(&mut self, _: Duration, method: &str, _: &[u8]) -> Result<Vec<u8>, String> {
        let answer = &self.outcome["hooks"][self.hooks];
        self.hooks += 1;
        let message =
            if method.contains("PodSandbox") { "PodSandboxHookResponse" } else { "ContainerResourceHookResponse" };
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(wire::encode(message, &answer["response"])),
        }
    }

    fn nri_registration(&mut self, _: Duration) -> Option<Vec<u8>> {
        let register = &self.outcome["nri"]["register"];
        (!register.is_null()).then(|| wire::encode("RegisterPluginRequest", register))
    }

    fn call_nri(&mut self, _: Duration, method: &str, _: &[u8]) -> Result<Vec<u8>, i32> {
        let nri = &self.outcome["nri"];
        let (answer, message) = match method {
            "Configure" => (&nri["configure"], "ConfigureResponse".to_owned()),
            "Synchronize" => (&nri["synchronize"], "SynchronizeResponse".to_owned()),
            "StateChange" => (&nri["answers"][self.nri], "UpdateContainerResponse".to_owned()),
            _ => (&nri["answers"][self.nri], format!("{method}Response")),
        };
        self.nri += usize::from(!matches!(method, "Configure" | "Synchronize"));
        match answer["error"].as_i64() {
            Some(code) => Err(i32::try_from(code).unwrap()),
            None => Ok(wire::encode(&message, &answer["response"])),
        }
    }

    fn http(&mut self, _: Duration, path: &str) -> Option<Answer> {
        if let Some(families) = self.outcome["metrics"].get(path) {
            return (!families.is_null()).then(|| Answer { status: 200, body: exposition(families) });
        }
        let (name, _) = self.case.http.iter().find(|(_, known)| *known == path)?;
        let answer = &self.outcome["http"][name];
        let status = u16::try_from(answer["status"].as_u64()?).ok()?;
        let body = match &answer["events"] {
            Value::Null => answer["body"].as_str().unwrap_or_default().to_owned(),
            events => {
                let twice: Vec<Value> = (0..2).flat_map(|time| timed(events, time)).collect();
                json!({"Events": twice}).to_string()
            }
        };
        Some(Answer { status, body })
    }

    fn stop(&mut self, _: Duration) -> Option<i32> {
        i32::try_from(self.outcome["stopExit"].as_i64()?).ok()
    }
}

fn timed(events: &Value, time: u8) -> Vec<Value> {
    let mut events = events.as_array().unwrap().clone();
    for event in &mut events {
        event["createdAt"] = json!(time);
    }
    events
}

/// Families as text.
fn exposition(families: &Value) -> String {
    let mut text = String::new();
    for (name, family) in families.as_object().unwrap() {
        _ = writeln!(text, "# TYPE {name} {}", family["type"].as_str().unwrap());
        for series in family["series"].as_array().unwrap() {
            let label = |(label, value): (&String, &Value)| format!("{label}=\"{}\"", value.as_str().unwrap());
            let labels: Vec<String> = series["labels"].as_object().unwrap().iter().map(label).collect();
            let labels = labels.join(",");
            if family["type"] != "histogram" {
                _ = writeln!(text, "{name}{{{labels}}} {}", series["value"].as_f64().unwrap_or_default());
                continue;
            }
            for bound in family["buckets"].as_array().unwrap() {
                let bound = bound.as_f64().map_or("+Inf".to_owned(), |bound| bound.to_string());
                _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} 1");
            }
            _ = writeln!(text, "{name}_count{{{labels}}} 1");
        }
    }
    text
}
