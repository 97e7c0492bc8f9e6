//! The routing table, and what happens between an HTTP request and a handler.

use std::{
    any::TypeId,
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
    Caches, Core,
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
/// What is not complete, for the message of a refusal; none when everything is.
type Missing = Box<dyn Fn() -> Option<String> + Send + Sync>;
/// What answers on a path.
enum Route {
    Admission(Admission),
    Conversion(&'static [Conversion]),
    Page(Box<dyn Fn(&Bytes) -> Page + Send + Sync>),
}

/// What decides about the reviews of a path.
struct Admission {
    decide: Decide,
    metrics: PathMetrics,
    /// Whether the decision needs more than the request.
    reads_caches: bool,
    /// Whether what it denies is admitted with a warning.
    advisory: bool,
    /// Whether it is answered for those alone who ask on their own: the configuration writer leaves its entries out.
    unlisted: bool,
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
    missing: Missing,
    metrics: Metrics,
    clock: SharedClock,
    tracer: Tracer,
}

/// Collects routes.
pub struct ServiceBuilder {
    routes: BTreeMap<&'static str, Route>,
    elsewhere: Vec<&'static str>,
    missing: Missing,
    metrics: Metrics,
    clock: SharedClock,
    tracer: Tracer,
}

impl ServiceBuilder {
    /// A server that answers `/healthz`, and `/convert` for no kind. It knows of no caches: where handlers read some, [`of`](Self::of) makes the
    /// server, or [`wait_for`](Self::wait_for) says when they are complete.
    pub fn new(metrics: Metrics, clock: SharedClock) -> Self {
        let (routes, elsewhere, missing) = (BTreeMap::new(), Vec::new(), Box::new(|| None));
        Self { routes, elsewhere, missing, metrics, clock, tracer: Tracer::default() }
            .page("/healthz", |_| Page::default())
            .conversions(&[])
    }

    /// The same for a program that is wired in `core`: by its clock, and with its metrics and traces. Handlers that see more than the request
    /// refuse reviews with 500 while a cache of the program is not complete, also one that is asked for later.
    pub fn of(core: &Core) -> Result<Self, prometheus::Error> {
        let metrics = Metrics::register(core.metrics())?;
        let builder = Self::new(metrics, Arc::clone(core.clock())).traced(core.tracer().clone());
        Ok(builder.waits_for(core.caches().clone()))
    }

    /// Serves handlers that see nothing but the request, each on its path, whatever their gates say: where some are off, those that are on
    /// are added by [`handler`](Self::handler). They wait for no cache.
    pub fn handlers(self, handlers: &'static [Handler<()>]) -> Self {
        handlers.iter().fold(self, |builder, handler| builder.handler(handler, || &()))
    }

    /// Serves handlers that see a snapshot, each on its path, whatever their gates say, as [`handler`](Self::handler) does one.
    pub fn handlers_with<C, S>(
        self,
        handlers: &'static [Handler<C>],
        snapshot: impl Fn() -> S + Clone + Send + Sync + 'static,
    ) -> Self
    where
        C: 'static,
        S: Deref<Target = C>,
    {
        handlers.iter().fold(self, |builder, handler| builder.handler(handler, snapshot.clone()))
    }

    /// Serves a handler on its path. `snapshot` gives what the handler sees, afresh for every request. While caches of the program are not
    /// complete, reviews are refused with 500, except where the handler sees nothing but the request.
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
        let reads_caches = TypeId::of::<C>() != TypeId::of::<()>();
        let admission = Admission { decide, metrics, reads_caches, advisory: false, unlisted: false };
        self.routes.insert(handler.path, Route::Admission(admission));
        let elsewhere = handler.entries.iter().filter(|entry| is_elsewhere(entry.client));
        self.elsewhere.extend(elsewhere.map(|entry| entry.name));
        self
    }

    /// Serves a handler that denies nothing: what it would deny is counted, and admitted with a warning for each mistake. API servers go on
    /// where it does not answer, and do not ask it about writes of the installation's own ServiceAccounts: the entries get a match condition,
    /// and are left out where the API server has none (before Kubernetes 1.28). A handler that changes objects is not served.
    pub fn advisory<C, S>(self, handler: &'static Handler<C>, snapshot: impl Fn() -> S + Send + Sync + 'static) -> Self
    where
        C: ?Sized + 'static,
        S: Deref<Target = C>,
    {
        if handler.entries.iter().any(|entry| entry.kind == WebhookKind::Mutating) {
            return self;
        }
        let mut builder = self.handler(handler, snapshot);
        if let Some(Route::Admission(admission)) = builder.routes.get_mut(handler.path) {
            admission.advisory = true;
        }
        builder
    }

    /// Answers reviews on this path, and lists it in no configuration: it decides nothing as the program is set, so that a call of it would cost
    /// time for nothing. Paths without a handler are passed over.
    pub fn unlisted(mut self, path: &str) -> Self {
        if let Some(Route::Admission(admission)) = self.routes.get_mut(path) {
            admission.unlisted = true;
        }
        self
    }

    /// Replaces the handler of a path by one whose requests have side effects. Paths without a handler are passed over.
    pub fn side_effects(
        mut self,
        path: &str,
        by: impl Fn(&Request<'_>) -> (Verdict, Option<SideEffect>) + Send + Sync + 'static,
    ) -> Self {
        if let Some(Route::Admission(admission)) = self.routes.get_mut(path) {
            admission.decide = Box::new(by);
        }
        self
    }

    /// Converts objects of these kinds on `/convert`. The server then keeps their definitions calling it.
    pub fn conversions(mut self, table: &'static [Conversion]) -> Self {
        self.routes.insert(CONVERT_PATH, Route::Conversion(table));
        self
    }

    /// Says when what the handlers see is complete, in place of the caches of the program: until then reviews are refused with 500, because a
    /// decision would let pass what it does not see.
    pub fn wait_for(mut self, ready: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.missing = Box::new(move || (!ready()).then(String::new));
        self
    }

    fn waits_for(mut self, caches: Caches) -> Self {
        self.missing = Box::new(move || {
            let kinds = caches.incomplete();
            (!kinds.is_empty()).then(|| format!(" ({})", kinds.join(", ")))
        });
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
        let Self { routes, elsewhere, missing, metrics, clock, tracer } = self;
        let inner = Arc::new(Inner { routes, elsewhere, missing, metrics, clock, tracer });
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
    /// The paths that are served, in order, without those that are [unlisted](ServiceBuilder::unlisted). The configuration writer drops entries of
    /// other paths.
    pub fn paths(&self) -> impl Iterator<Item = &'static str> {
        let is_unlisted = |route: &Route| matches!(route, Route::Admission(Admission { unlisted: true, .. }));
        self.inner.routes.iter().filter(move |(_, route)| !is_unlisted(route)).map(|(path, _)| *path)
    }

    /// The paths that deny nothing. The configuration writer puts a match condition on their entries.
    pub fn advisory(&self) -> impl Iterator<Item = &'static str> {
        let is_advisory = |route: &Route| matches!(route, Route::Admission(Admission { advisory: true, .. }));
        self.inner.routes.iter().filter(move |(_, route)| is_advisory(route)).map(|(path, _)| *path)
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
        let Route::Admission(admission) = self.inner.routes.get(path)? else { return None };
        let review = match review::decode("application/json", body) {
            Ok(review) => review,
            Err(denial) => return Some(review::refuse(denial)),
        };
        let start = self.inner.clock.moment();
        let (mut verdict, _) = self.inner.verdict(admission, &review.request);
        report_unenforced(&mut verdict, &admission.metrics);
        self.inner.observe(&admission.metrics, &review.request, &verdict, start);
        Some(review.answer(&verdict))
    }
}

impl Inner {
    /// Answers a request to a path of the table.
    async fn answer(&self, path: &str, request: HttpRequest) -> Response {
        let Some(route) = self.routes.get(path) else { return text(StatusCode::NOT_FOUND, "") };
        let (head, body) = request.into_parts();
        let Route::Admission(Admission { metrics, .. }) = route else { return self.by(route, &head, body).await };
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
            Route::Admission(admission) => {
                let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
                let content_type = content_type.unwrap_or_default();
                let caller = self.tracer.is_on().then(|| head.headers.get("traceparent")).flatten();
                let caller = caller.and_then(|value| TraceContext::parse(value.to_str().ok()?));
                let span = self.tracer.open(caller).map(|span| (span, caller.is_some(), head.uri.path()));
                json(self.review(admission, (content_type, &body), span).await)
            }
        }
    }

    /// Answers a review. While caches are not complete it waits, and a provisional verdict is decided again until they have caught up; not for long.
    async fn review(
        &self,
        admission: &Admission,
        (content_type, body): (&str, &[u8]),
        span: Option<(Open, bool, &str)>,
    ) -> Vec<u8> {
        let review = match review::decode(content_type, body) {
            Ok(review) => review,
            Err(denial) => return review::refuse(denial),
        };
        let start = self.clock.moment();
        let is_over = || self.clock.moment() >= start + CACHE_WAIT_MAX;
        while !admission.advisory && self.missing(admission).is_some() && !is_over() {
            self.clock.sleep(RECHECK_EVERY).await;
        }
        let (mut verdict, mut side_effect) = self.verdict(admission, &review.request);
        while verdict.provisional && !is_over() {
            self.clock.sleep(RECHECK_EVERY).await;
            (verdict, side_effect) = self.verdict(admission, &review.request);
        }
        if let (true, Some(denial)) = (verdict.provisional, &mut verdict.denial) {
            denial.message =
                format!("{} (after waiting {}s for it to appear)", denial.message, CACHE_WAIT_MAX.as_secs());
        }
        if let (None, Some(side_effect)) = (&verdict.denial, side_effect) {
            verdict.denial = side_effect.await.err();
        }
        report_unenforced(&mut verdict, &admission.metrics);
        self.observe(&admission.metrics, &review.request, &verdict, start);
        if let Some((span, has_parent, path)) = span {
            traced::record(&self.tracer, span, has_parent, path, &review.request, &verdict);
        }
        review.answer(&verdict)
    }

    /// What a handler needs and is not complete.
    fn missing(&self, admission: &Admission) -> Option<String> {
        admission.reads_caches.then(|| (self.missing)()).flatten()
    }

    /// What is decided at this moment: what the handler says, without a denial where it may deny nothing.
    fn verdict(&self, admission: &Admission, request: &Request<'_>) -> (Verdict, Option<SideEffect>) {
        let (verdict, side_effect) = self.decision(admission, request);
        if !admission.advisory {
            return (verdict, side_effect);
        }
        let Verdict { denial, warnings, audit_annotations, steps, .. } = verdict;
        // What is not the user's fault is no warning of his.
        let unenforced = denial.filter(|denial| denial.code < 500);
        (Verdict { unenforced, warnings, audit_annotations, steps, ..Verdict::allow() }, None)
    }

    /// What the handler says at this moment.
    fn decision(&self, admission: &Admission, request: &Request<'_>) -> (Verdict, Option<SideEffect>) {
        let Admission { decide, metrics, .. } = admission;
        if let Some(missing) = self.missing(admission) {
            let message = format!("the caches of the webhook server are not complete yet{missing}; try again");
            return (Verdict::deny(Denial::internal(message)), None);
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

/// Counts what is admitted although it breaks rules, and warns of each mistake.
fn report_unenforced(verdict: &mut Verdict, metrics: &PathMetrics) {
    let Some(denial) = verdict.unenforced.take().filter(|_| verdict.denial.is_none()) else { return };
    metrics.warned.inc();
    let mut mistakes: Vec<String> = denial.causes.iter().map(ToString::to_string).collect();
    if mistakes.is_empty() {
        mistakes.push(denial.message);
    }
    let warnings = mistakes.iter().map(|mistake| format!("would be denied where rules are enforced: {mistake}"));
    verdict.warnings.extend(warnings);
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
mod tests;
