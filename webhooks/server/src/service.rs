//! The routing table, and what happens between an HTTP request and a handler.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    error::Error,
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use axum::{Router, body::Body, extract::Request as HttpRequest, response::Response, routing::any};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, StatusCode, header, request::Parts};
use koord_listen::ReadError;
use koord_resource::{
    admission::{Client, Denial, Handler, Request, Verdict, WebhookKind},
    convert::{self, CONVERT_PATH, Conversion},
};
use koord_runtime::{
    Core,
    clock::{Moment, SharedClock},
    trace::{Open, TraceContext, Tracer},
};
use prometheus::IntGauge;
use tower::Service as _;

use crate::{
    metrics::{Metrics, PathMetrics},
    review, traced,
};

/// Most bytes of a review. An object of the API server may have 1.5 MiB (3 MiB with old and new), and escapes grow it.
pub const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long a provisional denial waits for caches that may be behind.
pub const CACHE_WAIT_MAX: Duration = Duration::from_secs(2);

/// How often the request is decided again meanwhile.
const RECHECK_EVERY: Duration = Duration::from_millis(10);

/// A side effect of an admitted request, such as charging it to a quota: it is awaited before the answer, and its denial
/// denies the request after all.
///
/// Decisions are pure; a side effect begins when nothing else can deny the request any more, and is the one place where an
/// admission path may write.
pub type SideEffect = BoxFuture<'static, Result<(), Denial>>;

type Decide = Box<dyn Fn(&Request<'_>) -> (Verdict, Option<SideEffect>) + Send + Sync>;
type Ready = Box<dyn Fn() -> bool + Send + Sync>;
/// What answers on a path.
enum Route {
    Admission { decide: Decide, metrics: PathMetrics },
    Conversion(&'static [Conversion]),
    Page(Box<dyn Fn(&Bytes) -> Page + Send + Sync>),
}

/// An answer that is no review.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// HTTP status.
    pub status: StatusCode,
    /// Body.
    pub body: Vec<u8>,
}

/// The routing table of a webhook server. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    inner: Arc<Inner>,
    router: Router,
}

struct Inner {
    routes: BTreeMap<&'static str, Route>,
    elsewhere: Vec<&'static str>,
    ready: Ready,
    metrics: Metrics,
    clock: SharedClock,
    tracer: Tracer,
}

/// Collects routes.
pub struct ServiceBuilder {
    routes: BTreeMap<&'static str, Route>,
    elsewhere: Vec<&'static str>,
    ready: Ready,
    metrics: Metrics,
    clock: SharedClock,
    tracer: Tracer,
}

impl ServiceBuilder {
    /// A server that answers `/healthz`, and `/convert` for no kind.
    pub fn new(metrics: Metrics, clock: SharedClock) -> Self {
        let (routes, elsewhere, ready) = (BTreeMap::new(), Vec::new(), Box::new(|| true));
        Self { routes, elsewhere, ready, metrics, clock, tracer: Tracer::default() }
            .page("/healthz", |_| Page::default())
            .conversions(&[])
    }

    /// The same for a program that is wired in `core`: by its clock, and with its metrics and traces.
    pub fn of(core: &Core) -> Result<Self, prometheus::Error> {
        let metrics = Metrics::register(core.metrics())?;
        Ok(Self::new(metrics, Arc::clone(core.clock())).traced(core.tracer().clone()))
    }

    /// Serves handlers that see nothing but the request, each on its path, whatever their gates say: where some are off, those that are on
    /// are added by [`handler`](Self::handler).
    pub fn handlers(self, handlers: &'static [Handler<()>]) -> Self {
        handlers.iter().fold(self, |builder, handler| builder.handler(handler, || &()))
    }

    /// Serves a handler on its path. `snapshot` gives what the handler sees, afresh for every request.
    pub fn handler<C, S>(
        mut self,
        handler: &'static Handler<C>,
        snapshot: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self
    where
        C: ?Sized + 'static,
        S: Deref<Target = C>,
    {
        let entry = handler.entries.first();
        let kind = entry.map_or(WebhookKind::Validating, |entry| entry.kind);
        let plugin = entry.map_or(handler.path, |entry| entry.name);
        let metrics = self.metrics.of_path(handler.path, plugin, kind, handler.object_type);
        let decide = Box::new(move |request: &Request<'_>| ((handler.call)(request, &snapshot()), None));
        self.routes.insert(handler.path, Route::Admission { decide, metrics });
        let elsewhere = handler.entries.iter().filter(|entry| is_elsewhere(entry.client));
        self.elsewhere.extend(elsewhere.map(|entry| entry.name));
        self
    }

    /// Replaces the handler of a path by one whose requests have side effects. Paths without a handler are passed over.
    pub fn side_effects(
        mut self,
        path: &str,
        by: impl Fn(&Request<'_>) -> (Verdict, Option<SideEffect>) + Send + Sync + 'static,
    ) -> Self {
        if let Some(Route::Admission { decide, .. }) = self.routes.get_mut(path) {
            *decide = Box::new(by);
        }
        self
    }

    /// Converts objects of these kinds on `/convert`. The server then keeps their definitions calling it.
    pub fn conversions(mut self, table: &'static [Conversion]) -> Self {
        self.routes.insert(CONVERT_PATH, Route::Conversion(table));
        self
    }

    /// Refuses reviews with 500 until `ready`: a decision without complete caches would let pass what it does not see.
    pub fn wait_for(mut self, ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.ready = Box::new(ready);
        self
    }

    /// Records a span of every review, and remembers which changes were admitted.
    pub fn traced(mut self, tracer: Tracer) -> Self {
        self.tracer = tracer;
        self
    }

    /// Serves something else than reviews on a path, such as a debug view; it is given the body.
    pub fn page(mut self, path: &'static str, answer: impl Fn(&Bytes) -> Page + Send + Sync + 'static) -> Self {
        self.routes.insert(path, Route::Page(Box::new(answer)));
        self
    }

    /// The finished table.
    pub fn build(self) -> Service {
        let Self { routes, elsewhere, ready, metrics, clock, tracer } = self;
        let inner = Arc::new(Inner { routes, elsewhere, ready, metrics, clock, tracer });
        let not_found = async || text(StatusCode::NOT_FOUND, "404 page not found\n");
        let router = inner.routes.keys().copied().fold(Router::new(), |router, path| {
            let inner = Arc::clone(&inner);
            // What is no review is answered as one that says so, whatever its method.
            router.route(path, any(async move |request: HttpRequest| inner.answer(path, request).await))
        });
        Service { inner, router: router.fallback(not_found) }
    }
}

impl Service {
    /// The paths that are served, in order. The configuration writer drops entries of other paths.
    pub fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.inner.routes.keys().copied()
    }

    /// Names of the entries that declare a Service or a URL of their own. The configuration writer leaves them as they are.
    pub fn elsewhere(&self) -> &[&'static str] {
        &self.inner.elsewhere
    }

    /// What is counted.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// The kinds that are converted.
    pub fn conversions(&self) -> &'static [Conversion] {
        match self.inner.routes.get(CONVERT_PATH) {
            Some(Route::Conversion(table)) => table,
            _ => &[],
        }
    }

    /// What answers requests: every path of the table, exactly.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Answers one request without a connection.
    pub async fn answer<B>(&self, request: http::Request<B>) -> Result<Response, Infallible>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        self.router().call(request.map(Body::new)).await
    }

    /// Decides about one review by what the caches show now, without HTTP and without what is due: for tests and benches.
    pub fn decide(&self, path: &str, body: &[u8]) -> Option<Vec<u8>> {
        let Route::Admission { decide, metrics } = self.inner.routes.get(path)? else { return None };
        let review = match review::decode("application/json", body) {
            Ok(review) => review,
            Err(denial) => return Some(review::refuse(denial)),
        };
        let start = self.inner.clock.moment();
        let (verdict, _) = self.inner.verdict(decide, metrics, &review.request);
        self.inner.observe(metrics, &review.request, &verdict, start);
        Some(review.answer(&verdict))
    }
}

impl Inner {
    /// Answers a request to a path of the table.
    async fn answer(&self, path: &str, request: HttpRequest) -> Response {
        let Some(route) = self.routes.get(path) else { return text(StatusCode::NOT_FOUND, "") };
        let (head, body) = request.into_parts();
        let Route::Admission { metrics, .. } = route else { return self.by(route, &head, body).await };
        let start = self.clock.moment();
        metrics.in_flight.inc();
        // Also when the caller goes away and this future is dropped.
        let _in_flight = InFlight(&metrics.in_flight);
        let answer = self.by(route, &head, body).await;
        metrics.answered(answer.status(), self.clock.moment().since(start));
        answer
    }

    async fn by(&self, route: &Route, head: &Parts, body: Body) -> Response {
        let body = match koord_listen::read(body, BODY_BYTES_MAX).await {
            Ok(body) => body,
            Err(ReadError::TooLarge(max)) => {
                return text(StatusCode::PAYLOAD_TOO_LARGE, format!("the review has more than {max} bytes"));
            }
            Err(error @ ReadError::Broken(_)) => return text(error.status(), "the body broke off"),
            Err(error) => return text(error.status(), error.to_string()),
        };
        match route {
            Route::Page(answer) => {
                let page = answer(&body);
                text(page.status, page.body)
            }
            Route::Conversion(table) => convert(table, &body),
            Route::Admission { decide, metrics } => {
                let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
                let content_type = content_type.unwrap_or_default();
                let caller = self.tracer.is_on().then(|| head.headers.get("traceparent")).flatten();
                let caller = caller.and_then(|value| TraceContext::parse(value.to_str().ok()?));
                let span = self.tracer.open(caller).map(|span| (span, caller.is_some(), head.uri.path()));
                json(self.review(decide, metrics, (content_type, &body), span).await)
            }
        }
    }

    /// Answers a review. A provisional verdict is decided again until the caches have caught up.
    async fn review(
        &self,
        decide: &Decide,
        metrics: &PathMetrics,
        (content_type, body): (&str, &[u8]),
        span: Option<(Open, bool, &str)>,
    ) -> Vec<u8> {
        let review = match review::decode(content_type, body) {
            Ok(review) => review,
            Err(denial) => return review::refuse(denial),
        };
        let start = self.clock.moment();
        let (mut verdict, mut side_effect) = self.verdict(decide, metrics, &review.request);
        while verdict.provisional && self.clock.moment() < start + CACHE_WAIT_MAX {
            self.clock.sleep(RECHECK_EVERY).await;
            (verdict, side_effect) = self.verdict(decide, metrics, &review.request);
        }
        if let (true, Some(denial)) = (verdict.provisional, &mut verdict.denial) {
            denial.message =
                format!("{} (after waiting {}s for it to appear)", denial.message, CACHE_WAIT_MAX.as_secs());
        }
        if let (None, Some(side_effect)) = (&verdict.denial, side_effect) {
            verdict.denial = side_effect.await.err();
        }
        self.observe(metrics, &review.request, &verdict, start);
        if let Some((span, has_parent, path)) = span {
            traced::record(&self.tracer, span, has_parent, path, &review.request, &verdict);
        }
        review.answer(&verdict)
    }

    /// What the handler says at this moment.
    fn verdict(&self, decide: &Decide, metrics: &PathMetrics, request: &Request<'_>) -> (Verdict, Option<SideEffect>) {
        if !(self.ready)() {
            let denial = Denial::internal("the caches of the webhook server are not complete yet; try again");
            return (Verdict::deny(denial), None);
        }
        catch_unwind(AssertUnwindSafe(|| decide(request))).unwrap_or_else(|payload| {
            metrics.panics.inc();
            let cause = payload
                .downcast_ref::<&str>()
                .map(ToString::to_string)
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "unknown cause".to_owned());
            tracing::error!(uid = %request.uid, %cause, "a webhook handler broke off; this is a defect");
            (Verdict::deny(Denial::internal(format!("panic: {cause} [recovered]"))), None)
        })
    }

    fn observe(&self, metrics: &PathMetrics, request: &Request<'_>, verdict: &Verdict, start: Moment) {
        let spent = self.clock.moment().since(start);
        metrics.observe(request.operation, verdict, spent);
    }
}

/// Whether API servers are to find a webhook elsewhere than behind the Service that the program is installed with.
fn is_elsewhere(client: Client) -> bool {
    match client {
        Client::Url(_) => true,
        Client::Service { name, namespace, .. } => name.is_some() || namespace.is_some(),
    }
}

/// One request that is being decided.
struct InFlight<'a>(&'a IntGauge);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Converts the objects of one review. What is no review is answered with 400 and nothing else.
fn convert(table: &[Conversion], body: &[u8]) -> Response {
    match catch_unwind(|| convert::answer_text(body, table)) {
        Ok(Some(answer)) => json(answer),
        Ok(None) => text(StatusCode::BAD_REQUEST, ""),
        Err(_) => {
            tracing::error!("a conversion broke off; this is a defect");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the conversion broke off; this is a defect")
        }
    }
}

fn text(status: StatusCode, body: impl Into<Body>) -> Response {
    with(status, "text/plain; charset=utf-8", body)
}

fn json(body: Vec<u8>) -> Response {
    with(StatusCode::OK, "application/json", body)
}

fn with(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};
    use koord_resource::admission::WebhookEntry;
    use koord_runtime::{
        clock::SystemClock,
        metrics::{self as registry, Audience},
        random::Random,
        recorder::Recorder,
    };
    use serde_json::Value;

    use super::*;

    const ENTRY: WebhookEntry = WebhookEntry { name: "v.example.com", ..WebhookEntry::BASE };

    fn named(request: &Request<'_>, wanted: &str) -> Verdict {
        match request.name.as_ref() {
            "boom" => panic!("boom"),
            name if name == wanted => Verdict::allow(),
            name => Verdict::deny(Denial::forbidden(format!("{name} is not {wanted}"))),
        }
    }

    static HANDLER: Handler<str> =
        Handler { path: "/v", gate: None, entries: &[ENTRY], rbac: &[], object_type: "pod", call: named };

    #[tokio::test]
    async fn a_table_of_a_program_has_its_metrics_and_all_handlers() {
        #[expect(clippy::trivially_copy_pass_by_ref, reason = "handlers take their snapshot by reference")]
        fn allowed(_: &Request<'_>, (): &()) -> Verdict {
            Verdict::allow()
        }
        const fn at(path: &'static str) -> Handler<()> {
            Handler { path, gate: None, entries: &[ENTRY], rbac: &[], object_type: "pod", call: allowed }
        }
        static BOTH: [Handler<()>; 2] = [at("/first"), at("/second")];
        let registry = registry::Metrics::new().unwrap();
        let (recorder, _events) = Recorder::new(SystemClock::shared());
        let core = Core::new("t", SystemClock::shared(), Random::seeded(1), registry.clone(), Arc::new(recorder));
        let service = ServiceBuilder::of(&core).unwrap().handlers(&BOTH).build();
        assert_eq!(service.paths().collect::<Vec<_>>(), ["/convert", "/first", "/healthz", "/second"]);
        let (_, answer) = send(&service, "POST", "/second", r#"{"request":{"uid":"u","operation":"CREATE"}}"#).await;
        assert!(answer.contains(r#""allowed":true"#), "{answer}");
        let text = registry.text(&[Audience::Runtime, Audience::Internal]);
        assert!(text.contains(r#"webhook_requests_total{code="200",webhook="/second"} 1"#), "{text}");
    }

    fn service(registry: &registry::Metrics) -> Service {
        ServiceBuilder::new(Metrics::register(registry).unwrap(), SystemClock::shared())
            .handler(&HANDLER, || "good")
            .build()
    }

    async fn send(service: &Service, method: &str, path: &str, body: &str) -> (StatusCode, String) {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_owned())))
            .unwrap();
        let answer = service.answer(request).await.unwrap();
        let status = answer.status();
        (status, String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
    }

    #[tokio::test]
    async fn paths_are_exact_and_everything_else_is_not_found() {
        let service = service(&registry::Metrics::new().unwrap());
        let not_found = (StatusCode::NOT_FOUND, "404 page not found\n".to_owned());
        assert_eq!(send(&service, "POST", "/v/", "{}").await, not_found);
        assert_eq!(send(&service, "GET", "/", "").await, not_found);
        assert_eq!(send(&service, "POST", "/healthz", "{}").await, (StatusCode::OK, String::new()));
        for (method, body) in [("GET", ""), ("POST", "{}"), ("POST", "no JSON")] {
            assert_eq!(send(&service, method, "/convert", body).await, (StatusCode::BAD_REQUEST, String::new()));
        }
        assert!(send(&service, "GET", "/v", "").await.1.contains("request body is empty"));
        let review = r#"{"request":{"uid":"u","operation":"CREATE","name":"good"}}"#;
        assert_eq!(send(&service, "GET", "/v", review).await, send(&service, "POST", "/v", review).await);
    }

    #[test]
    fn entries_with_clients_of_their_own_are_known_by_their_names() {
        const fn entry(name: &'static str, client: Client) -> WebhookEntry {
            WebhookEntry { name, client, ..WebhookEntry::BASE }
        }
        const fn service(name: Option<&'static str>, namespace: Option<&'static str>) -> Client {
            Client::Service { name, namespace, port: Some(8443) }
        }
        static FIVE: Handler<str> = Handler {
            path: "/v",
            gate: None,
            rbac: &[],
            object_type: "pod",
            call: named,
            entries: &[
                ENTRY,
                entry("port.example.com", service(None, None)),
                entry("name.example.com", service(Some("policy"), None)),
                entry("namespace.example.com", service(None, Some("policies"))),
                entry("url.example.com", Client::Url("https://policy.example.com")),
            ],
        };
        let metrics = Metrics::register(&registry::Metrics::new().unwrap()).unwrap();
        let service = ServiceBuilder::new(metrics, SystemClock::shared()).handler(&FIVE, || "good").build();
        assert_eq!(service.elsewhere(), ["name.example.com", "namespace.example.com", "url.example.com"]);
    }

    #[tokio::test]
    async fn a_panic_is_answered_counted_and_harms_nobody_else() {
        let registry = registry::Metrics::new().unwrap();
        let service = service(&registry);
        let answer = |name: &str| format!(r#"{{"request":{{"uid":"u","operation":"CREATE","name":"{name}"}}}}"#);
        let (_, boom) = send(&service, "POST", "/v", &answer("boom")).await;
        let boom: Value = serde_json::from_str(&boom).unwrap();
        assert_eq!(boom["response"]["status"]["code"], 500);
        assert_eq!(boom["response"]["status"]["message"], "panic: boom [recovered]");
        assert!(send(&service, "POST", "/v", &answer("good")).await.1.contains(r#""allowed":true"#));
        assert!(send(&service, "POST", "/v", &answer("bad")).await.1.contains("bad is not good"));

        let text = registry.text(&[Audience::Runtime, Audience::Internal]);
        assert!(text.contains(r#"koord_manager_webhook_panics_total{path="/v"} 1"#), "{text}");
        let counted = |status: &str, count: u32| {
            let line = format!(
                r#"milliseconds_count{{object_type="pod",operation="CREATE",plugin_name="v.example.com",status="{status}",webhook_type="validate"}} {count}"#
            );
            assert!(text.contains(&line), "{line} in {text}");
        };
        counted("allowed", 1);
        counted("rejected", 2);
        for line in [
            r#"controller_runtime_webhook_requests_total{code="200",webhook="/v"} 3"#,
            r#"controller_runtime_webhook_requests_in_flight{webhook="/v"} 0"#,
            r#"controller_runtime_webhook_latency_seconds_count{webhook="/v"} 3"#,
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    /// Passes one part and refuses in the next.
    fn in_parts(_: &Request<'_>, _: &str) -> Verdict {
        let mut watch = koord_resource::admission::Stopwatch::default();
        watch.begin("First");
        watch.begin("Second");
        Verdict { steps: watch.stop(), ..Verdict::deny(Denial::bad_request("no")) }
    }

    static IN_PARTS: Handler<str> =
        Handler { path: "/parts", gate: None, entries: &[ENTRY], rbac: &[], object_type: "pod", call: in_parts };

    #[tokio::test]
    async fn the_parts_of_a_decision_are_timed_by_name_and_the_last_one_refuses() {
        let registry = registry::Metrics::new().unwrap();
        let builder = ServiceBuilder::new(Metrics::register(&registry).unwrap(), SystemClock::shared());
        let service = builder.handler(&IN_PARTS, || "").build();
        send(&service, "POST", "/parts", r#"{"request":{"uid":"u","operation":"UPDATE"}}"#).await;
        let text = registry.text(&[Audience::Runtime, Audience::Internal]);
        for (part, status) in [("First", "allowed"), ("Second", "rejected")] {
            let line = format!(
                r#"milliseconds_count{{object_type="pod",operation="UPDATE",plugin_name="{part}",status="{status}",webhook_type="validate"}} 1"#
            );
            assert!(text.contains(&line), "{line} in {text}");
        }
    }

    #[tokio::test]
    async fn nothing_is_decided_before_the_caches_are_complete() {
        let builder =
            ServiceBuilder::new(Metrics::register(&registry::Metrics::new().unwrap()).unwrap(), SystemClock::shared());
        let service = builder.handler(&HANDLER, || "good").wait_for(|| false).build();
        let (_, answer) = send(&service, "POST", "/v", r#"{"request":{"uid":"u","name":"good"}}"#).await;
        assert!(answer.contains(r#""code":500"#) && answer.contains("not complete yet"), "{answer}");
    }

    /// Refuses until it was asked as often as the request's name says.
    fn after_some_asking(request: &Request<'_>, asked: &std::sync::atomic::AtomicU32) -> Verdict {
        let times = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        match request.name.parse::<u32>() {
            Ok(enough) if times >= enough => Verdict::allow(),
            _ => Verdict::deny_provisionally(Denial::bad_request("no parent")),
        }
    }

    static PATIENT: Handler<std::sync::atomic::AtomicU32> =
        Handler { path: "/p", gate: None, entries: &[ENTRY], rbac: &[], object_type: "pod", call: after_some_asking };

    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_may_soon_be_none_is_thought_over_for_two_seconds() {
        let patient = || {
            let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
            let clock = koord_runtime::clock::ScaledClock::shared(jiff::Timestamp::UNIX_EPOCH, 1.0);
            ServiceBuilder::new(Metrics::register(&registry::Metrics::new().unwrap()).unwrap(), clock)
                .handler(&PATIENT, move || Arc::clone(&asked))
                .build()
        };
        let start = tokio::time::Instant::now();
        let (_, answer) = send(&patient(), "POST", "/p", r#"{"request":{"uid":"u","name":"51"}}"#).await;
        assert!(answer.contains(r#""allowed":true"#), "{answer}");
        assert_eq!(start.elapsed().as_millis(), 500);
        let (_, answer) = send(&patient(), "POST", "/p", r#"{"request":{"uid":"u","name":"never"}}"#).await;
        assert!(answer.contains("no parent (after waiting 2s for it to appear)"), "{answer}");
        assert_eq!(start.elapsed().as_millis(), 2500);
    }

    #[tokio::test]
    async fn a_huge_body_is_refused_before_it_is_read_whole() {
        let service = service(&registry::Metrics::new().unwrap());
        let (status, _) = send(&service, "POST", "/v", &"x".repeat(BODY_BYTES_MAX + 1)).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    }
}
