//! The cluster without the program: the server, its clock, and the people who work with it.

use std::time::Duration;

use envtest::{
    environment::{Environment, TimedEnvironment},
    kinds,
    request::ApiRequest,
    server::{Admitted, ApiServer, Outcome, Watch},
    shell::{Parts, Server},
    status::ApiError,
    store::HistoryLimits,
};
use http::Method;
use koord_runtime::{
    clock::SharedClock,
    write::{Answer, WireRequest},
};
use serde_json::{Value, json};

/// Changes that the server remembers for watches; few, so that watches expire.
const HISTORY: usize = 48;

/// The cluster that a program works in.
pub struct Stage {
    server: Server,
    clock: SharedClock,
    writes: u64,
}

impl Stage {
    /// An empty cluster.
    pub fn new(seed: u64, clock: SharedClock) -> Self {
        Self::remembering(seed, clock, HISTORY)
    }

    /// An empty cluster whose server remembers so many changes for watches.
    pub fn remembering(seed: u64, clock: SharedClock, changes: usize) -> Self {
        let limits = HistoryLimits { changes, ..HistoryLimits::default() };
        let mut core = ApiServer::empty(Self::environment(seed, &clock), limits);
        kinds::install(&mut core);
        Self { server: Server::new(core, Parts::default()), clock, writes: 0 }
    }

    /// A cluster in the same state that goes its own way: setting a stage takes longer than many a play on it.
    pub fn fork(&self, seed: u64, clock: SharedClock) -> Self {
        self.fork_with(seed, clock, Parts::default())
    }

    /// A cluster in the same state, whose server has these parts beside its core.
    pub fn fork_with(&self, seed: u64, clock: SharedClock, parts: Parts) -> Self {
        // What was set before has its uids from a seed too, and no two objects have the same.
        let core = self.server.with_core(|core| core.fork(Self::environment(!seed, &clock)));
        Self { server: Server::new(core, parts), clock, writes: 0 }
    }

    fn environment(seed: u64, clock: &SharedClock) -> Box<dyn Environment> {
        let clock = SharedClock::clone(clock);
        Box::new(TimedEnvironment::new(seed, move || clock.now()))
    }

    /// The clock of everyone here.
    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// The server as a program's client sees it.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// How many writes were carried out so far.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// What a person does; the code of the answer.
    pub fn person(&mut self, method: &Method, path: &str, body: &Value) -> u16 {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let content_type = if *method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let method = match method.as_str() {
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            _ => "DELETE",
        };
        self.send(&WireRequest { method, uri: path.to_owned(), content_type, body }).code
    }

    /// The objects of a collection.
    pub fn objects(&mut self, path: &str) -> Vec<Value> {
        let list: Value = serde_json::from_str(&self.get(path).body).unwrap_or_default();
        list.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
    }

    /// One object.
    pub fn object(&mut self, path: &str) -> Option<Value> {
        let answer = self.get(path);
        answer.is_success().then(|| serde_json::from_str(&answer.body).ok()).flatten()
    }

    /// Collects garbage and empties ending namespaces, as the controllers of Kubernetes do; how much there was to do.
    pub fn tidy(&mut self) -> usize {
        self.server.with_core(ApiServer::collect_garbage)
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.server.with_core(|core| core.store.revision())
    }

    pub(crate) fn get(&mut self, uri: &str) -> Answer {
        self.send(&WireRequest { method: "GET", uri: uri.to_owned(), content_type: "", body: String::new() })
    }

    /// Carries out a request.
    pub(crate) fn send(&mut self, request: &WireRequest) -> Answer {
        let answer = match self.handle(request) {
            Ok(answer) => answer,
            Err(_) => Answer { code: 500, ..Answer::default() },
        };
        if request.method != "GET" && answer.is_success() {
            self.writes += 1;
        }
        answer
    }

    /// Opens a watch, or gives the answer that refuses it.
    pub(crate) fn open(&mut self, uri: &str) -> Result<Box<Watch>, Answer> {
        let request = WireRequest { method: "GET", uri: uri.to_owned(), content_type: "", body: String::new() };
        match self.handle(&request) {
            Ok(answer) => Err(answer),
            Err(watch) => Ok(watch),
        }
    }

    /// The next lines of a watch.
    pub(crate) fn lines(&mut self, watch: &mut Watch, limit: usize) -> Vec<String> {
        let frames = self.server.with_core(|core| core.poll_watch(watch, limit));
        frames.into_iter().map(|frame| line(frame.text.to_vec())).collect()
    }

    pub(crate) fn bookmark(&mut self, watch: &mut Watch) -> Option<String> {
        self.server.with_core(|core| core.bookmark(watch)).map(|frame| line(frame.text.to_vec()))
    }

    fn handle(&mut self, request: &WireRequest) -> Result<Answer, Box<Watch>> {
        let method = Method::from_bytes(request.method.as_bytes()).unwrap_or(Method::GET);
        let mut asked = ApiRequest::new(method, &request.uri, request.body.clone());
        request.content_type.clone_into(&mut asked.content_type);
        let mut outcome = self.server.with_core(|core| core.handle(&asked));
        loop {
            match outcome {
                Outcome::Watch(watch) => return Err(watch),
                Outcome::Review(review) => {
                    outcome = self.server.with_core(|core| core.resume(*review, Ok(Admitted::default())));
                }
                Outcome::Convert(conversion) => {
                    let nobody = ApiError::internal("no conversion webhook runs in a simulation");
                    outcome = self.server.with_core(|core| core.resume_converted(*conversion, Err(nobody)));
                }
                Outcome::Done(response) => {
                    let retry_after = response.retry_after_seconds.map(|seconds| Duration::from_secs(seconds.into()));
                    return Ok(Answer { code: response.code, retry_after, body: text(response.body.into()) });
                }
            }
        }
    }
}

fn line(bytes: Vec<u8>) -> String {
    let mut line = text(bytes);
    line.truncate(line.trim_end().len());
    line
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_default()
}

/// An answer that the server never gave.
pub fn failure(code: u16, reason: &str, message: &str) -> Answer {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message});
    Answer { code, retry_after: None, body: body.to_string() }
}
