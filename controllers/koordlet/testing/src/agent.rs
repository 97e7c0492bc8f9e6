//! What a case asks of an agent, and what the agent is given.
//!
//! An agent is driven by the virtual time: nothing happens between two calls, and the same calls give the same results.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use koord_koordlet_system::Roots;
use serde_json::Value;

use crate::kernel::FixtureKernel;

/// What an agent is started with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// All flags by name without dashes, the standard ones of a case included: `--root-dir=x` is `root-dir` → `x`.
    pub flags: BTreeMap<String, String>,
    /// Variables of the environment; `None` is not set.
    pub env: BTreeMap<String, Option<String>>,
    pub node_name: String,
    /// The fixture tree.
    pub root: PathBuf,
    /// A folder for what the agent keeps: checkpoints, audit files, sockets.
    pub work: PathBuf,
    /// What programs of the path print; `None` for one that fails.
    pub commands: BTreeMap<String, Option<String>>,
    /// How files of the tree are written.
    pub kernel: FixtureKernel,
    /// Whether cgroups are a unified hierarchy.
    pub is_v2: bool,
}

impl Setup {
    /// The roots below the tree. A flag of the case may name others.
    pub fn roots(&self) -> Roots {
        let folder = |flag: &str, name: &str| self.flags.get(flag).map_or_else(|| self.root.join(name), PathBuf::from);
        Roots {
            cgroup: folder("cgroup-root-dir", "cgroup"),
            proc: folder("proc-root-dir", "proc"),
            sys: folder("sys-root-dir", "sys"),
            sys_fs: folder("sys-fs-root-dir", "sysfs"),
            var_run: folder("var-run-root-dir", "var-run"),
            run: folder("run-root-dir", "run"),
            kubelet: folder("var-lib-kubelet-dir", "kubelet"),
        }
    }
}

/// An answer over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

/// What comes to the agent from outside.
#[derive(Clone, Debug)]
pub enum Input {
    /// The kubelet answers the oldest request for this path that has no answer yet.
    Kubelet { path: String, answer: Answer },
    /// All objects that exist on the API server: comes once, at the start. Pods are not among them.
    Listed(Vec<Value>),
    /// An object was added or has changed.
    Changed(Value),
    /// An object is gone; its last state.
    Deleted(Value),
    /// The API server answers a request of the agent.
    Api { id: u64, answer: Answer },
    /// The container runtime answers a call; the error is a message.
    Cri { id: u64, result: Result<(), String> },
}

/// A request to the API server, as it goes over the wire.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: String,
    /// `/api/v1/namespaces/a/pods/b/eviction`; a query is not looked at.
    pub path: String,
    /// Null where there is none.
    pub body: Value,
}

/// An event that the agent reports.
#[derive(Clone, Debug)]
pub struct Event {
    /// Of the object that it is about.
    pub kind: String,
    pub namespace: String,
    pub name: String,
    /// `Normal` or `Warning`.
    pub type_: String,
    pub reason: String,
    pub message: String,
    pub component: String,
}

/// What the agent does outside of the files.
#[derive(Clone, Debug)]
pub enum Output {
    /// GET of a path of the kubelet: `/pods/`, `/configz`.
    Kubelet {
        path: String,
        has_credentials: bool,
    },
    /// A request to the API server; the answer comes with this id.
    Api {
        id: u64,
        request: ApiRequest,
    },
    Event(Event),
    /// A call of the runtime at a socket; the answer comes with this id.
    Cri {
        id: u64,
        endpoint: String,
        method: String,
        container: String,
        timeout_s: i64,
    },
    /// The process ends.
    Exit(i32),
}

/// A started agent.
///
/// A panic of the agent is a difference of the case.
pub trait Agent {
    /// When the agent next has something to do by itself, counted from the start; `None` when it only waits for input.
    fn due(&self) -> Option<Duration>;

    /// Takes something from outside. What follows from it comes from the next [`Agent::advance_to`], which may be at the same time.
    fn handle(&mut self, at: Duration, input: Input);

    /// Does all that is due until a time, files included. It is called with the same time again until nothing comes.
    fn advance_to(&mut self, at: Duration) -> Vec<Output>;

    /// A call of the hook server: the encoded `PodSandboxHookRequest` or `ContainerResourceHookRequest`, and the encoded response. The error is the name
    /// of a gRPC code.
    fn call_hook(&mut self, at: Duration, method: &str, request: &[u8]) -> Result<Vec<u8>, String> {
        let _ = (at, method, request);
        Err("UNAVAILABLE".to_owned())
    }

    /// The encoded `RegisterPluginRequest` that the agent sends over NRI; `None` as long as it is not registered.
    fn nri_registration(&mut self, at: Duration) -> Option<Vec<u8>> {
        let _ = at;
        None
    }

    /// A call of the runtime over NRI (`Configure`, `Synchronize`, `StateChange`, `CreateContainer`, `UpdateContainer`): encoded request and response.
    /// The error is a status code of ttrpc, which are those of gRPC: 2 is unknown, 14 unavailable.
    fn call_nri(&mut self, at: Duration, method: &str, request: &[u8]) -> Result<Vec<u8>, i32> {
        let _ = (at, method, request);
        Err(14)
    }

    /// GET of the agent's own HTTP server; `None` when it does not listen.
    fn http(&mut self, at: Duration, path: &str) -> Option<Answer> {
        let _ = (at, path);
        None
    }

    /// SIGTERM: the exit code; `None` of an agent that is no process, whose code is not compared.
    fn stop(&mut self, at: Duration) -> Option<i32> {
        let _ = at;
        None
    }
}

/// How an agent is started; the error is the exit code of one that does not start.
pub type Start<'a> = &'a (dyn Fn(Setup) -> Result<Box<dyn Agent>, i32> + Sync);
