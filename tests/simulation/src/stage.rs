//! The cluster without the program: the server's core, its clock, and what it once answered.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use envtest::{
    environment::Environment,
    kinds,
    request::ApiRequest,
    server::{Admitted, ApiServer, Outcome, Watch},
    store::HistoryLimits,
};
use http::Method;
use jiff::Timestamp;
use koord_runtime::{
    clock::{Clock, ManualClock},
    random::Random,
    write::{Answer, WireRequest},
};
use serde_json::{Value, json};

/// Changes that the server remembers for watches; few, so that watches expire.
const HISTORY: usize = 48;
/// Past answers that are kept for each collection.
const PAST: usize = 6;

/// The cluster that a program works in.
pub struct Stage {
    server: ApiServer,
    clock: Arc<ManualClock>,
    past: BTreeMap<String, VecDeque<String>>,
    writes: u64,
}

struct StageEnvironment {
    clock: Arc<ManualClock>,
    random: Random,
}

impl Environment for StageEnvironment {
    fn now(&mut self) -> Timestamp {
        self.clock.now()
    }

    fn random(&mut self) -> u64 {
        self.random.number()
    }
}

impl Stage {
    /// An empty cluster at `start`.
    pub fn new(seed: u64, start: Timestamp) -> Self {
        let clock = ManualClock::new(start);
        let environment = StageEnvironment { clock: Arc::clone(&clock), random: Random::seeded(seed) };
        let limits = HistoryLimits { changes: HISTORY, ..HistoryLimits::default() };
        let mut server = ApiServer::empty(Box::new(environment), limits);
        kinds::install(&mut server);
        Self { server, clock, past: BTreeMap::new(), writes: 0 }
    }

    /// The clock of everyone here.
    pub fn clock(&self) -> &Arc<ManualClock> {
        &self.clock
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
        let frames = self.server.poll_watch(watch, limit);
        frames.into_iter().map(|frame| String::from_utf8_lossy(&frame.text).trim_end().to_owned()).collect()
    }

    pub(crate) fn bookmark(&mut self, watch: &mut Watch) -> Option<String> {
        let frame = self.server.bookmark(watch)?;
        Some(String::from_utf8_lossy(&frame.text).trim_end().to_owned())
    }

    /// Keeps what the server answers now, to be told as news later.
    pub(crate) fn remember(&mut self, path: &str) {
        let answer = self.get(path).body;
        let past = self.past.entry(path.to_owned()).or_default();
        if past.len() == PAST {
            past.pop_front();
        }
        past.push_back(answer);
    }

    /// What the server once answered.
    pub(crate) fn recall(&self, path: &str, random: &Random) -> Option<String> {
        let past = self.past.get(path)?;
        past.get(usize::try_from(random.below(past.len() as u64)).ok()?).cloned()
    }

    fn handle(&mut self, request: &WireRequest) -> Result<Answer, Box<Watch>> {
        let method = Method::from_bytes(request.method.as_bytes()).unwrap_or(Method::GET);
        let mut asked = ApiRequest::new(method, &request.uri, request.body.clone());
        request.content_type.clone_into(&mut asked.content_type);
        let mut outcome = self.server.handle(&asked);
        // Nobody follows the core's list of changed kinds here: watches are polled.
        self.server.take_changed();
        loop {
            match outcome {
                Outcome::Watch(watch) => return Err(watch),
                Outcome::Review(review) => outcome = self.server.resume(*review, Ok(Admitted::default())),
                Outcome::Done(response) => {
                    self.server.take_changed();
                    let body = String::from_utf8_lossy(&response.body).into_owned();
                    return Ok(Answer { code: response.code, retry_after: None, body });
                }
            }
        }
    }
}

/// An answer that the server never gave.
pub(crate) fn failure(code: u16, reason: &str, message: &str) -> Answer {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message});
    Answer { code, retry_after: None, body: body.to_string() }
}
