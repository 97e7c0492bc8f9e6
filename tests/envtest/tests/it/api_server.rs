//! The core of a server alone, as a simulation drives it.

use envtest::{
    environment::{Environment, SeededEnvironment},
    kinds,
    request::ApiRequest,
    server::{ApiServer, Outcome, Watch},
    store::HistoryLimits,
};
use http::Method;
use serde_json::Value;

/// A server that knows the built-in kinds and holds no object.
pub(crate) fn empty() -> ApiServer {
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
    kinds::install(&mut core);
    core
}

/// A server with the objects that a kube-apiserver creates at its start.
pub(crate) struct Core(ApiServer);

impl Core {
    pub(crate) fn new() -> Self {
        let mut core = empty();
        envtest::bootstrap::run(&mut core).unwrap();
        Self(core)
    }

    /// Code and body of an answer that needs no webhook.
    pub(crate) fn send(&mut self, request: &ApiRequest) -> (u16, Value) {
        match self.0.handle(request) {
            Outcome::Done(answer) => (answer.code, serde_json::from_slice(&answer.body).unwrap_or_default()),
            other => panic!("{other:?}"),
        }
    }

    /// A request of the administrator; `null` is no body.
    pub(crate) fn ask(&mut self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(&ApiRequest::new(method, path, body))
    }

    /// Opens a watch.
    pub(crate) fn watch(&mut self, path: &str, accept: &str) -> Box<Watch> {
        let mut request = ApiRequest::new(Method::GET, path, "");
        accept.clone_into(&mut request.accept);
        match self.0.handle(&request) {
            Outcome::Watch(watch) => watch,
            other => panic!("{other:?}"),
        }
    }

    /// The events since the last call.
    pub(crate) fn poll(&mut self, watch: &mut Watch) -> Vec<Value> {
        let frames = self.0.poll_watch(watch, 100);
        frames.iter().map(|frame| serde_json::from_slice(&frame.text).unwrap()).collect()
    }

    pub(crate) fn create(&mut self, path: &str, body: &Value) -> Value {
        let (code, created) = self.ask(Method::POST, path, body);
        assert_eq!(code, 201, "{created}");
        created
    }

    pub(crate) fn exists(&mut self, path: &str) -> bool {
        self.ask(Method::GET, path, &Value::Null).0 == 200
    }

    /// Another server with the same objects.
    pub(crate) fn fork(&self, environment: Box<dyn Environment>) -> Self {
        Self(self.0.fork(environment))
    }

    /// Collects garbage until there is none.
    pub(crate) fn collect_garbage(&mut self) {
        for _ in 0..20 {
            if self.0.collect_garbage() == 0 {
                return;
            }
        }
        panic!("there is always more garbage");
    }
}
