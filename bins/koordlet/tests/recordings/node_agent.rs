//! The agent of the program, without its tasks and connections: what its worker does with inputs and effects, in virtual time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use koord_core::{
    clock::{ManualClock, Moment},
    write::{Answer as ApiAnswer, Write},
};
use koord_koordlet_framework::Node;
use koord_koordlet_protocols::cri::Protocol;
use koord_koordlet_runtime::{
    Agent, COMPONENT, ClaimObject, DeviceObject, Effect, Host, Input, Kept, KubeletFailure, KubeletPath, MetricObject,
    Now, Object, Runtimes, Settings, SloObject, TopologyObject,
};
use koord_koordlet_system::{CommandOutput, Disks, Version};
use koord_koordlet_testing as testing;
use koord_koordlet_testing::{ApiRequest, Output, Setup};
use koordlet::Options;
use parking_lot::Mutex;
use serde_json::Value;

use super::{hook_calls::Calls, pages::Pages};

/// When every case begins: pods were made before it.
const START: &str = "2026-06-01T00:00:00Z";
/// The worker of the program calls the agent at least so often.
const IDLE_MAX: Duration = Duration::from_secs(1);
/// An agent that runs more often than this in a second does not wait.
const RUNS_PER_SECOND_MAX: u32 = 200;

pub(crate) struct NodeAgent {
    agent: Arc<Mutex<Agent>>,
    settings: Settings,
    runtimes: Runtimes,
    calls: Calls,
    pages: Pages,
    start: Timestamp,
    /// When the agent ran last.
    last: Option<Duration>,
    runs: u32,
    /// When the kubelet was asked for each path.
    asked: BTreeMap<&'static str, Duration>,
    /// Requests to the API server without answer.
    writes: BTreeMap<u64, Write>,
}

impl NodeAgent {
    /// Starts the agent of a case. Flags that are wrong are the program's exit code.
    #[allow(clippy::needless_pass_by_value, reason = "as the player starts agents")]
    pub(crate) fn start(setup: Setup) -> Result<Box<dyn testing::Agent>, i32> {
        const USAGE: i32 = 2;
        let flags = setup.flags.iter().map(|(name, value)| format!("--{name}={value}"));
        let environment = [("NODE_NAME", setup.node_name.as_str()), ("agent_mode", "dsMode")];
        let mut environment: BTreeMap<String, String> =
            environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        for (name, value) in &setup.env {
            match value {
                Some(value) => _ = environment.insert(name.clone(), value.clone()),
                None => _ = environment.remove(name),
            }
        }
        let options = Options::from_arguments(["koordlet".to_owned()].into_iter().chain(flags));
        let checked = options.and_then(|options| options.check_in(&environment)).map_err(|_| USAGE)?;
        let settings = checked.settings();
        let version = if setup.is_v2 { Version::V2 } else { Version::V1 };
        let mut host = Host::discover(&settings.roots, version);
        let commands = setup.commands.clone();
        host.disk_programs = Some(Box::new(move || {
            let printed = |name: &str| commands.get(name).and_then(Option::as_deref).unwrap_or_default();
            Disks::of_commands(CommandOutput {
                lsblk: printed("lsblk"),
                vgs: printed("vgs"),
                lvs: printed("lvs"),
                findmnt: printed("findmnt"),
            })
        }));
        let start: Timestamp = START.parse().unwrap();
        let (clock, at_start) = (ManualClock::new(start), Now { moment: Moment::default(), time: start });
        let agent = Agent::new(settings.clone(), host, Box::new(setup.kernel.clone()), 1, at_start);
        let calls = Calls::new(&agent, &settings, &setup, clock.clone());
        let agent = Arc::new(Mutex::new(agent));
        let pages = Pages::new(&agent, &settings, clock);
        Ok(Box::new(Self {
            agent,
            settings,
            runtimes: checked.runtimes(),
            calls,
            pages,
            start,
            last: None,
            runs: 0,
            asked: BTreeMap::new(),
            writes: BTreeMap::new(),
        }))
    }

    fn now(&self, at: Duration) -> Now {
        Now { moment: Moment::at(at), time: self.start.checked_add(at).unwrap() }
    }

    /// An object of the API server as the watches give it: those of this node, and claims where disks are looked at.
    fn object(&self, object: &Value, is_gone: bool) -> Option<Object> {
        fn read<T: Kept>(object: &Value, is_gone: bool, of: fn(Option<Arc<T>>) -> Object) -> Option<Object> {
            let read = || T::read(&object.to_string()).ok().map(|object| of(Some(Arc::new(object))));
            if is_gone { Some(of(None)) } else { read() }
        }
        let is_of_node = object["metadata"]["name"] == self.settings.node_name.as_str();
        match object["kind"].as_str()? {
            "PersistentVolumeClaim" if self.settings.features.has("BlkIOReconcile") && !is_gone => {
                ClaimObject::read(&object.to_string()).ok().map(|claim| Object::Claim(Arc::new(claim)))
            }
            "Node" if is_of_node => read::<Node>(object, is_gone, Object::Node),
            "NodeSLO" if is_of_node => read::<SloObject>(object, is_gone, Object::Slo),
            "NodeMetric" if is_of_node => read::<MetricObject>(object, is_gone, Object::Metric),
            "NodeResourceTopology" if is_of_node => read::<TopologyObject>(object, is_gone, Object::Topology),
            "Device" if is_of_node => read::<DeviceObject>(object, is_gone, Object::Device),
            _ => None,
        }
    }

    fn carry_out(&mut self, effect: Effect, at: Duration) -> Output {
        match effect {
            Effect::AskKubelet(path) => {
                self.asked.insert(path.as_str(), at);
                Output::Kubelet { path: path.as_str().to_owned(), has_credentials: !self.settings.kubelet.is_insecure }
            }
            Effect::Write { id, write } => {
                let request = write.request(COMPONENT);
                self.writes.insert(id, write);
                let path = request.uri.split('?').next().unwrap().to_owned();
                let body = serde_json::from_str(&request.body).unwrap();
                Output::Api { id, request: ApiRequest { method: request.method.to_owned(), path, body } }
            }
            Effect::Event(event) => Output::Event(testing::Event {
                kind: event.kind.kind.to_string(),
                namespace: event.key.namespace().to_owned(),
                name: event.key.name().to_owned(),
                type_: event.type_.as_str().to_owned(),
                reason: event.reason.to_owned(),
                message: event.message,
                component: event.reporter.as_deref().unwrap_or(COMPONENT).to_owned(),
            }),
            Effect::StopContainer { id, container } => {
                let (protocol, socket) = match self.runtimes.endpoint(&container) {
                    Ok((protocol, socket)) => (protocol, socket.display().to_string()),
                    Err(reason) => (Protocol::Cri, reason),
                };
                // The player has a runtime with CRI alone.
                let method = if protocol == Protocol::Cri { "StopContainer" } else { "stop" };
                Output::Cri {
                    id,
                    endpoint: socket,
                    method: method.to_owned(),
                    container: container.id.to_string(),
                    timeout_s: 0,
                }
            }
        }
    }
}

impl testing::Agent for NodeAgent {
    fn due(&self) -> Option<Duration> {
        let due = self.agent.lock().due().since(Moment::default());
        Some(self.last.map_or(Duration::ZERO, |last| due.min(last + IDLE_MAX)))
    }

    fn handle(&mut self, at: Duration, input: testing::Input) {
        let now = self.now(at);
        let inputs: Vec<Input> = match input {
            testing::Input::Kubelet { path, answer } => {
                let path =
                    if path == KubeletPath::Pods.as_str() { KubeletPath::Pods } else { KubeletPath::Configuration };
                let asked = self.asked.get(path.as_str()).copied().unwrap_or_default();
                let is_late = at.saturating_sub(asked) >= self.settings.kubelet.timeout;
                let result = match answer.status {
                    _ if is_late => Err(KubeletFailure { status: None, reason: "no answer in time".to_owned() }),
                    200 => Ok(answer.body.into_bytes()),
                    status => {
                        Err(KubeletFailure { status: Some(status), reason: format!("HTTP {status}: {}", answer.body) })
                    }
                };
                vec![Input::Kubelet { path, result }]
            }
            testing::Input::Listed(objects) => {
                let objects = objects.iter().filter_map(|object| self.object(object, false)).map(Input::Object);
                objects.chain([Input::Listed]).collect()
            }
            testing::Input::Changed(object) => self.object(&object, false).map(Input::Object).into_iter().collect(),
            testing::Input::Deleted(object) => self.object(&object, true).map(Input::Object).into_iter().collect(),
            testing::Input::Api { id, answer } => {
                let write = self.writes.remove(&id).unwrap();
                let answer = ApiAnswer { code: answer.status, retry_after: None, body: answer.body };
                let result = write.judge(answer).map(|answer| (answer.code, answer.body));
                vec![Input::Written { id, result: result.map_err(|error| error.message) }]
            }
            testing::Input::Cri { id, result } => vec![Input::Stopped { id, result }],
        };
        for input in inputs {
            self.agent.lock().handle(input, now);
        }
    }

    fn advance_to(&mut self, at: Duration) -> Vec<Output> {
        self.runs = if self.last.map(|last| last.as_secs()) == Some(at.as_secs()) { self.runs + 1 } else { 0 };
        assert!(
            self.runs <= RUNS_PER_SECOND_MAX,
            "the agent does not wait: it is due at {:?}, at {at:?}",
            self.agent.lock().due()
        );
        self.calls.advance(at.saturating_sub(self.last.unwrap_or_default()));
        self.last = Some(at);
        let now = self.now(at);
        for input in self.calls.inputs() {
            self.agent.lock().handle(input, now);
        }
        let effects = self.agent.lock().run(now, &|| now.moment);
        self.calls.serve(&self.agent.lock());
        effects.into_iter().map(|effect| self.carry_out(effect, at)).collect()
    }

    fn call_hook(&mut self, _: Duration, method: &str, request: &[u8]) -> Result<Vec<u8>, String> {
        self.calls.hook(method, request)
    }

    fn nri_registration(&mut self, _: Duration) -> Option<Vec<u8>> {
        self.calls.registration(&self.agent.lock())
    }

    fn call_nri(&mut self, _: Duration, method: &str, request: &[u8]) -> Result<Vec<u8>, i32> {
        self.calls.nri(method, request)
    }

    fn http(&mut self, at: Duration, path: &str) -> Option<testing::Answer> {
        Some(self.pages.get(self.now(at), path))
    }
}
