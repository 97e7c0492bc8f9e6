//! The way to the API server: requests as text, answers as text, watches line by line.
//!
//! kube's client brings connection, TLS and authentication. Bodies stay text because caches read them borrowed; lines
//! of a watch are read where the connection put them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use http::{Request, Response, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use koord_core::{
    clock::SharedClock,
    error::{Fault, ReconcileError, in_one_line},
    lease::Leadership,
    reflector::Failure,
    trace_context::TraceContext,
    write::{Answer, WireRequest, Write},
};
use kube::{Client, client::Body};

pub use crate::limiter::Priority;
use crate::{limiter::Limiter, lines::Lines, metrics::RequestMetrics, outage::Outage};

/// What of the objects of a collection the server shall send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// The metadata alone. A server that cannot do that sends everything.
    Metadata,
}

impl Part {
    /// As the header `Accept` of a list asks for it.
    fn of_list(self) -> &'static str {
        match self {
            Self::Whole => WHOLE,
            Self::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        }
    }

    /// As the header `Accept` of a watch asks for it.
    fn of_event(self) -> &'static str {
        match self {
            Self::Whole => WHOLE,
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        }
    }
}

const WHOLE: &str = "application/json";

/// Sends requests in the name of one program, no faster than allowed.
#[derive(Clone)]
pub struct Api {
    client: Client,
    limiter: Limiter,
    priority: Priority,
    /// Without the lead nothing is written.
    leadership: Leadership,
    clock: SharedClock,
    metrics: RequestMetrics,
    field_manager: &'static str,
    /// The API server as the metrics name it: `10.96.0.1:443`.
    host: Arc<str>,
    /// Requests one after the other that have got no answer.
    unanswered: Arc<AtomicU32>,
    outage: Outage,
}

impl Api {
    /// No request takes longer; a connection that has stalled ends here.
    const TIMEOUT: Duration = Duration::from_secs(30);
    /// So many requests without an answer are more than a connection that has ended.
    const UNANSWERED_MAX: u32 = 3;

    /// `per_second` of zero or less means no limit. The clock must run in real time.
    pub fn new(
        client: Client,
        clock: SharedClock,
        metrics: RequestMetrics,
        field_manager: &'static str,
        limit: (f32, u32),
    ) -> Self {
        let (limiter, leadership) = (Limiter::new(limit, Arc::clone(&clock)), Leadership::without_election());
        let (host, unanswered, outage) = (Arc::from("in-process"), Arc::default(), Outage::default());
        let priority = Priority::default();
        Self { client, limiter, priority, leadership, clock, metrics, field_manager, host, unanswered, outage }
    }

    /// The same with a limit of its own: its requests and those of others do not wait for each other.
    pub fn with_own_limit(mut self, limit: (f32, u32)) -> Self {
        self.limiter = Limiter::new(limit, Arc::clone(&self.clock));
        self
    }

    /// The same for requests that may wait longer, or less long, behind others of this program.
    pub fn at(&self, priority: Priority) -> Self {
        Self { priority, ..self.clone() }
    }

    /// The same for what only the leader may write: a write that has waited until the lead was over is not started.
    pub fn as_leader(mut self, leadership: Leadership) -> Self {
        self.leadership = leadership;
        self
    }

    /// The same with the host and port of the API server's URL, for the metrics.
    pub fn at_host(mut self, host: &str) -> Self {
        self.host = Arc::from(host);
        self
    }

    /// Whether the API server serves requests at all.
    pub fn outage(&self) -> &Outage {
        &self.outage
    }

    /// Carries out a write. Gives what the API server answered.
    pub async fn write(&self, write: &Write) -> Result<Answer, ReconcileError> {
        self.write_because(write, None).await
    }

    /// Carries out a write that belongs to a trace, whose context is sent along.
    pub async fn write_because(&self, write: &Write, cause: Option<TraceContext>) -> Result<Answer, ReconcileError> {
        let answer = self
            .answer(write, cause)
            .await
            .map_err(|error| ReconcileError::new(Fault::Api, format!("{write}: {}", error.message)).aborting_plan())?;
        write.judge(answer)
    }

    /// Sends a write. Gives the answer, whatever it says.
    pub(crate) async fn answer(&self, write: &Write, cause: Option<TraceContext>) -> Result<Answer, Failure> {
        self.exchange(&write.request(self.field_manager), WHOLE, cause, usize::MAX).await
    }

    /// Sends a request and reads the whole answer.
    pub async fn call(&self, request: &WireRequest) -> Result<Answer, Failure> {
        self.exchange(request, WHOLE, None, usize::MAX).await
    }

    async fn exchange(
        &self,
        request: &WireRequest,
        accept: &'static str,
        cause: Option<TraceContext>,
        bytes_max: usize,
    ) -> Result<Answer, Failure> {
        let waited = self.limiter.acquire(self.priority).await;
        self.metrics.limited.with_label_values(&[request.method, &self.host]).observe(waited.as_secs_f64());
        if request.method != "GET" && !self.leadership.holds(self.clock.moment()) {
            return Err(Failure::local("not sent: this process does not lead any more"));
        }
        let work = async {
            let response = self.send(request, accept, cause).await?;
            let (code, retry_after) = head(&response);
            let body = read_all(response, bytes_max).await?;
            Ok(Answer { code, retry_after, body })
        };
        tokio::select! {
            biased;
            answer = work => answer,
            () = self.clock.sleep(Self::TIMEOUT) => Err(self.timed_out("no answer")),
        }
    }

    /// GET of a path and query, as text.
    pub async fn get(&self, uri: String) -> Result<Answer, Failure> {
        self.call(&read(uri)).await
    }

    /// The same for an answer that another than the API server may have written: one that is longer is an error.
    pub async fn get_up_to(&self, bytes_max: usize, uri: String) -> Result<Answer, Failure> {
        self.exchange(&read(uri), WHOLE, None, bytes_max).await
    }

    /// Fetches a page of a collection.
    pub async fn list(&self, uri: String, part: Part) -> Result<Answer, Failure> {
        self.exchange(&read(uri), part.of_list(), None, usize::MAX).await
    }

    /// Starts a watch.
    pub async fn watch(&self, uri: String, part: Part, idle: Duration) -> Result<Events, Failure> {
        let request = read(uri);
        let opened = async {
            let response = self.send(&request, part.of_event(), None).await?;
            let (code, retry_after) = head(&response);
            if (200..300).contains(&code) {
                let frames = response.into_body().into_data_stream();
                return Ok(Events { frames, lines: Lines::default(), idle, clock: Arc::clone(&self.clock) });
            }
            let answer = Answer { code, retry_after, body: read_all(response, usize::MAX).await? };
            Err(refused(&answer))
        };
        tokio::select! {
            biased;
            lines = opened => lines,
            () = self.clock.sleep(Self::TIMEOUT) => Err(self.timed_out("the watch did not start")),
        }
    }

    fn timed_out(&self, what: &str) -> Failure {
        let failure = Failure::local(format!("{what} within {} s", Self::TIMEOUT.as_secs()));
        self.outage.failed();
        self.answered(Some(&failure));
        failure
    }

    async fn send(
        &self,
        request: &WireRequest,
        accept: &'static str,
        cause: Option<TraceContext>,
    ) -> Result<Response<Body>, Failure> {
        let mut builder = Request::builder();
        if let Some(cause) = cause {
            builder = builder.header("traceparent", cause.to_string());
        }
        let built = builder
            .method(request.method)
            .uri(&request.uri)
            .header(header::ACCEPT, accept)
            // An event must not wait in a compressor for the next one.
            .header(header::ACCEPT_ENCODING, "identity")
            .header(header::CONTENT_TYPE, request.content_type)
            .body(Body::from(request.body.clone().into_bytes()))
            .map_err(|error| Failure::local(error.to_string()))?;
        let start = self.clock.moment();
        let response = self.client.send(built).await;
        let spent = self.clock.moment().since(start).as_secs_f64();
        self.metrics.duration.with_label_values(&[request.method, &self.host]).observe(spent);
        let code =
            response.as_ref().map_or_else(|_| "<error>".to_owned(), |answer| answer.status().as_str().to_owned());
        self.metrics.requests.with_label_values(&[code.as_str(), request.method, &self.host]).inc();
        let response = response.map_err(|error| Failure::local(in_one_line(&error)));
        match &response {
            Ok(answer) if Outage::is_sign(answer.status().as_u16()) && !is_of_another(&request.uri) => {
                self.outage.failed();
            }
            Ok(_) => self.outage.served(),
            Err(_) => self.outage.failed(),
        }
        self.answered(response.as_ref().err());
        response
    }

    /// Logs once that the API server does not answer, and once that it does again.
    fn answered(&self, failure: Option<&Failure>) {
        let server = &*self.host;
        let Some(failure) = failure else {
            if self.unanswered.swap(0, Ordering::Relaxed) >= Self::UNANSWERED_MAX {
                tracing::info!(server, "the API server answers again");
            }
            return;
        };
        if self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 == Self::UNANSWERED_MAX {
            let reason = failure.message.as_str();
            tracing::warn!(
                server,
                reason,
                "the API server does not answer; the program goes on trying. Look at the server, and at the address in the kubeconfig"
            );
        }
    }
}

/// Whether a refusal says nothing of the API server: of an eviction 429 says that a budget forbids it, and metrics come from the metrics server.
fn is_of_another(uri: &str) -> bool {
    uri.ends_with("/eviction") || uri.starts_with("/apis/metrics.k8s.io/")
}

fn read(uri: String) -> WireRequest {
    WireRequest { method: "GET", uri, content_type: "application/json", body: String::new() }
}

/// A refusal as the reflector wants to know it.
pub fn refused(answer: &Answer) -> Failure {
    let (_, message) = answer.status();
    let message = match excerpt(&answer.body) {
        _ if !message.is_empty() => message,
        body if body.is_empty() => format!("the API server answered {}", answer.code),
        body => format!("the API server answered {}: {body}", answer.code),
    };
    Failure { code: Some(answer.code), retry_after: answer.retry_after, message }
}

/// The begin of a text from outside, for messages: one line of at most 200 characters.
pub fn excerpt(text: &str) -> String {
    const CHARACTERS_MAX: usize = 200;
    let shown = |character: char| if character.is_control() { ' ' } else { character };
    text.trim().chars().take(CHARACTERS_MAX).map(shown).collect()
}

/// A watch that ended in the middle of a line. Of an event nothing is shown: it may be of a Secret.
fn cut(begun: &[u8]) -> Failure {
    let begin = excerpt(&String::from_utf8_lossy(begun));
    Failure::local(if begin.starts_with('{') {
        "the watch ended in the middle of a line".to_owned()
    } else {
        format!("this is not an event: {begin}")
    })
}

/// The events of a watch, a line each.
pub struct Events {
    frames: http_body_util::BodyDataStream<Body>,
    lines: Lines,
    idle: Duration,
    clock: SharedClock,
}

impl Events {
    /// etcd refuses objects over 1.5 MiB; what is longer than this is no event.
    const LINE_MAX: usize = 16 << 20;

    /// The next line; none at the end of the watch.
    pub async fn next(&mut self) -> Result<Option<&str>, Failure> {
        while !self.lines.advance() {
            if self.lines.begun().len() > Self::LINE_MAX {
                return Err(Failure::local("a line of the watch is too long"));
            }
            let frame = tokio::select! {
                biased;
                frame = self.frames.next() => frame,
                () = self.clock.sleep(self.idle) => return Err(Failure::local("the watch fell silent")),
            };
            match frame {
                Some(Ok(bytes)) => self.lines.put(bytes),
                Some(Err(error)) => return Err(Failure::local(in_one_line(&error))),
                None if self.lines.begun().is_empty() => return Ok(None),
                None => return Err(cut(self.lines.begun())),
            }
        }
        let line = std::str::from_utf8(self.lines.line());
        line.map(Some).map_err(|_| Failure::local("a line of the watch is not UTF-8"))
    }
}

fn head(response: &Response<Body>) -> (u16, Option<Duration>) {
    let retry_after = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    (response.status().as_u16(), retry_after.and_then(|text| text.parse().ok()).map(Duration::from_secs))
}

async fn read_all(response: Response<Body>, bytes_max: usize) -> Result<String, Failure> {
    let read = Limited::new(response.into_body(), bytes_max).collect().await.map_err(|error| {
        let is_too_long = error.is::<LengthLimitError>();
        let too_long = || format!("the answer is longer than {bytes_max} bytes");
        Failure::local(if is_too_long { too_long() } else { in_one_line(&*error) })
    })?;
    String::from_utf8(read.to_bytes().into()).map_err(|_| Failure::local("the answer is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use koord_metrics::Registries;
    use tower::{BoxError, service_fn};

    use super::*;
    use crate::clock::ScaledClock;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_takes_requests_and_never_answers_does_not_answer() {
        let silent = service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>());
        let clock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0);
        let metrics = RequestMetrics::of(&Registries::default()).unwrap();
        let api = Api::new(Client::new(silent, "default"), clock, metrics, "test", (0.0, 0));
        let list = api.list("/api/v1/pods".to_owned(), Part::Whole).await.map(drop);
        assert_eq!(list, Err(Failure::local("no answer within 30 s")));
        let watch =
            api.watch("/api/v1/pods?watch=true".to_owned(), Part::Whole, Duration::from_mins(1)).await.map(drop);
        assert_eq!(watch, Err(Failure::local("the watch did not start within 30 s")));
        assert_eq!(api.unanswered.load(Ordering::Relaxed), 2);
    }
}
