//! The asynchronous shell: HTTP in, core, webhooks, HTTP out.

use std::{
    collections::HashMap,
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use bytes::Bytes;
use futures::{future::try_join_all, stream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};

use crate::{
    conversion::{self, ConversionWebhook},
    faults::{Fault, Faults},
    journal::{Entry, Journal, Memory, Receipt},
    request::{ApiRequest, User, parse_query},
    server::{self, Admitted, ApiResponse, ApiServer, Frame, Outcome, Review, Watch},
    status::ApiError,
    store::ShelfId,
};

/// The largest body that is read, as in the real server.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// How often a quiet watch is told of the newest revision.
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);
/// How long before its end a watch gets a last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// Reviews that a conversion webhook gets at the same time for one request.
const CONVERSIONS_AT_ONCE: usize = 16;
/// Frames that are made under one lock.
const FRAMES_PER_POLL: usize = 128;

/// A future that borrows from its caller.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Asks admission webhooks.
pub trait Admission: Send + Sync {
    /// Asks every webhook of the review's phase that matches it.
    fn review<'a>(&'a self, server: &'a Server, review: &'a Review) -> BoxFuture<'a, Result<Admitted, ApiError>>;
}

/// Asks conversion webhooks.
pub trait Conversion: Send + Sync {
    /// Brings one object into another `apiVersion`.
    fn convert<'a>(
        &'a self,
        server: &'a Server,
        webhook: &'a ConversionWebhook,
        object: &'a Value,
        desired: &'a str,
    ) -> BoxFuture<'a, Result<Value, ApiError>>;
}

/// Answers paths that are no resources: discovery, OpenAPI, health.
pub trait Pages: Send + Sync {
    /// The page, or none when the path belongs to the core.
    fn page(&self, core: &mut ApiServer, request: &ApiRequest, headers: &HeaderMap) -> Option<Response>;
}

/// A running server: the core behind a lock, and those who wait for changes.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    core: Mutex<ApiServer>,
    /// Wakes those who watch a shelf, in the order in which they began to wait: tokio's `watch` channel would draw
    /// lots, and no run could be repeated.
    changes: Mutex<HashMap<ShelfId, Arc<Notify>>>,
    admission: Option<Box<dyn Admission>>,
    conversion: Option<Box<dyn Conversion>>,
    pages: Vec<Box<dyn Pages>>,
    garbage_collection: Option<Duration>,
    is_collecting: AtomicBool,
    faults: Faults,
    journal: Option<Journal>,
}

/// What the shell is made of, beside the core.
#[derive(Default)]
pub struct Parts {
    /// Asks webhooks; without it, reviews admit everything.
    pub admission: Option<Box<dyn Admission>>,
    /// Asks conversion webhooks; without it, objects of such kinds are there in their stored version alone.
    pub conversion: Option<Box<dyn Conversion>>,
    /// Pages beside the resources, asked in order.
    pub pages: Vec<Box<dyn Pages>>,
    /// How long after a change garbage is collected and terminating namespaces are emptied; none leaves that to the caller.
    pub garbage_collection: Option<Duration>,
    /// Where changes are kept; the core must have been told to keep a journal.
    pub journal: Option<Journal>,
}

// === impl Server ===

impl Server {
    /// Puts a core behind the shell.
    pub fn new(core: ApiServer, parts: Parts) -> Self {
        let shared = Arc::new(Shared {
            core: Mutex::new(core),
            changes: Mutex::default(),
            admission: parts.admission,
            conversion: parts.conversion,
            pages: parts.pages,
            garbage_collection: parts.garbage_collection,
            is_collecting: AtomicBool::new(false),
            faults: Faults::default(),
            journal: parts.journal,
        });
        if let Some(journal) = &shared.journal {
            let memory: Weak<dyn Memory> = Arc::downgrade(&(Arc::clone(&shared) as Arc<dyn Memory>));
            journal.serve(memory);
        }
        Self { shared }
    }

    /// Waits until everything done so far is on disk, where there is one.
    pub async fn settled(&self) -> Result<(), ApiError> {
        let ((), receipt) = self.change(|_| ());
        match receipt {
            Some(receipt) => receipt.settled().await,
            None => Ok(()),
        }
    }

    /// The tower service that answers for the server. Requests carry their [`User`] as an extension; without one they
    /// come from the in-process administrator.
    pub fn router(&self) -> Router {
        Router::new().fallback(serve).with_state(self.clone())
    }

    /// Works on the core; watchers hear of what changed.
    pub fn with_core<T>(&self, work: impl FnOnce(&mut ApiServer) -> T) -> T {
        self.change(work).0
    }

    /// Works on the core; with a data directory, the receipt tells when what was done or decided is on disk.
    fn change<T>(&self, work: impl FnOnce(&mut ApiServer) -> T) -> (T, Option<Receipt>) {
        let (result, receipt, has_garbage) = self.shared.change(work);
        if has_garbage {
            self.collect_garbage_later();
        }
        (result, receipt)
    }

    /// Faults on purpose, and the record of accesses.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Starts a task that collects garbage until none is left, unless one runs already.
    fn collect_garbage_later(&self) {
        let Some(delay) = self.shared.garbage_collection else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.shared.is_collecting.swap(true, Ordering::AcqRel) {
            return;
        }
        let shared = Arc::downgrade(&self.shared);
        runtime.spawn(async move {
            loop {
                tokio::time::sleep(delay).await;
                let Some(shared) = shared.upgrade() else { return };
                let server = Server { shared };
                let (writes, revision) = server.with_core(|core| (core.collect_garbage(), core.store.revision()));
                if writes > 0 {
                    continue;
                }
                server.shared.is_collecting.store(false, Ordering::Release);
                // What changed while the flag was still up started no task of its own.
                if server.with_core(|core| core.store.revision()) != revision {
                    server.collect_garbage_later();
                }
                return;
            }
        });
    }

    /// Answers a request, asking webhooks where the core wants them. What [`Self::faults`] hold in store befalls it.
    pub async fn answer(&self, request: &ApiRequest) -> Result<ApiResponse, Box<Watch>> {
        match self.shared.faults.of_request(request) {
            Some(Fault::Refuse(error)) => Ok(ApiResponse::error(&error)),
            Some(Fault::LoseAnswer(error)) => {
                // The watch or answer that nobody will see is dropped.
                drop(self.answer_truly(request).await);
                Ok(ApiResponse::error(&error))
            }
            Some(Fault::StaleList(lag)) => {
                let mut stale = request.clone();
                let revision = self.with_core(|core| core.store.shown()).saturating_sub(lag).max(1);
                stale.query.retain(|(name, _)| name != "resourceVersion" && name != "resourceVersionMatch");
                stale.query.push(("resourceVersion".to_owned(), revision.to_string()));
                stale.query.push(("resourceVersionMatch".to_owned(), "Exact".to_owned()));
                self.answer_truly(&stale).await
            }
            _ => self.answer_truly(request).await,
        }
    }

    async fn answer_truly(&self, request: &ApiRequest) -> Result<ApiResponse, Box<Watch>> {
        let is_write = request.method != http::Method::GET;
        if is_write && let Some(refusal) = self.shared.journal.as_ref().and_then(Journal::refusal) {
            return Ok(ApiResponse::error(&refusal));
        }
        let (mut outcome, receipt) = self.change(|core| core.handle(request));
        let mut receipts = Vec::from_iter(receipt);
        let answer = loop {
            match outcome {
                Outcome::Done(response) => break Ok(response),
                Outcome::Watch(watch) => break Err(watch),
                Outcome::Review(review) => {
                    let verdict = match &self.shared.admission {
                        Some(admission) => admission.review(self, &review).await,
                        None => Ok(Admitted::default()),
                    };
                    let (next, receipt) = self.change(|core| core.resume(*review, verdict));
                    outcome = next;
                    receipts.extend(receipt);
                }
                Outcome::Convert(conversion) => {
                    let answer = self.convert_all(&conversion).await;
                    let (next, receipt) = self.change(|core| core.resume_converted(*conversion, answer));
                    outcome = next;
                    receipts.extend(receipt);
                }
            }
        };
        // What readers are told is on disk already.
        for receipt in receipts.into_iter().filter(|_| is_write) {
            if let Err(refusal) = receipt.settled().await {
                return Ok(ApiResponse::error(&refusal));
            }
        }
        answer
    }

    async fn convert_all(&self, conversion: &server::Conversion) -> Result<Vec<Value>, ApiError> {
        let mut converted = Vec::with_capacity(conversion.objects.len());
        for objects in conversion.objects.chunks(CONVERSIONS_AT_ONCE) {
            let mut calls = Vec::with_capacity(objects.len());
            for object in objects {
                calls.push(self.convert(&conversion.webhook, object, &conversion.desired));
            }
            converted.extend(try_join_all(calls).await?);
        }
        Ok(converted)
    }

    /// Brings one object into another `apiVersion`, by asking its kind's webhook.
    pub(crate) async fn convert(
        &self,
        webhook: &ConversionWebhook,
        object: &Value,
        desired: &str,
    ) -> Result<Value, ApiError> {
        let Some(conversion) = &self.shared.conversion else {
            let about = conversion::printed_kind(object);
            let why = "this server was made without a client for conversion webhooks";
            return Err(ApiError::internal(format!("conversion webhook for {about} failed: {why}")));
        };
        conversion.convert(self, webhook, object, desired).await
    }

    fn changes_of(&self, shelf: ShelfId) -> Arc<Notify> {
        Arc::clone(self.shared.changes.lock().entry(shelf).or_default())
    }

    fn stream(&self, watch: Box<Watch>) -> Body {
        let changes = self.changes_of(watch.shelf());
        let now = Instant::now();
        let ends = watch.timeout_seconds().map(|seconds| now + Duration::from_secs(seconds));
        let state = Stream {
            server: self.clone(),
            watch,
            changes,
            ends,
            bookmark_at: now + BOOKMARK_PERIOD,
            is_last_bookmark_sent: false,
            is_cut: false,
        };
        Body::from_stream(stream::unfold(state, |mut state| async move {
            let bytes = state.next().await?;
            Some((Ok::<_, std::convert::Infallible>(bytes), state))
        }))
    }
}

// === impl Shared ===

impl Shared {
    /// Works on the core; the last value is whether there may be garbage.
    fn change<T>(&self, work: impl FnOnce(&mut ApiServer) -> T) -> (T, Option<Receipt>, bool) {
        let mut core = self.core.lock();
        let result = work(&mut core);
        let changed = core.take_changed();
        let has_garbage = core.has_garbage();
        let entries = core.take_journal();
        // Under the lock, so that the order on disk is that of the revisions.
        let receipt = self
            .journal
            .as_ref()
            .and_then(|journal| if entries.is_empty() { journal.receipt() } else { Some(journal.append(entries)) });
        drop(core);
        if !changed.is_empty() {
            let changes = self.changes.lock();
            for shelf in changed {
                if let Some(watchers) = changes.get(&shelf) {
                    watchers.notify_waiters();
                }
            }
        }
        (result, receipt, has_garbage)
    }
}

impl Memory for Shared {
    fn show(&self, revision: u64) {
        self.change(|core| core.store.show(revision));
    }

    fn undo(&self, why: &Arc<str>) -> Vec<Entry> {
        let undo = |core: &mut ApiServer| {
            if let Some(journal) = &self.journal {
                journal.refuse_queued(why);
            }
            core.undo_hidden()
        };
        self.change(undo).0
    }
}

struct Stream {
    server: Server,
    watch: Box<Watch>,
    changes: Arc<Notify>,
    ends: Option<Instant>,
    bookmark_at: Instant,
    is_last_bookmark_sent: bool,
    /// Set by a fault: nothing follows.
    is_cut: bool,
}

impl Stream {
    /// The text of these frames after what befalls them.
    async fn befallen(&mut self, frames: Vec<Frame>) -> Vec<u8> {
        let mut text = Vec::new();
        for frame in frames {
            let fault = self.server.shared.faults.of_event(&self.watch.definition().plural);
            match fault {
                Some(Fault::DropEvent) => continue,
                Some(Fault::RepeatEvent) => text.extend_from_slice(&frame.text),
                Some(Fault::DelayEvent(delay)) => tokio::time::sleep(delay).await,
                Some(Fault::CutWatch) => {
                    self.is_cut = true;
                    return text;
                }
                Some(Fault::Expire) => {
                    self.is_cut = true;
                    text.extend_from_slice(&Frame::error(&ApiError::expired("too old resource version")).text);
                    return text;
                }
                _ => {}
            }
            text.extend_from_slice(&frame.text);
        }
        text
    }

    /// The next lines; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_cut {
                return None;
            }
            // What changes from here on wakes this, also when it happens before the wait.
            let changes = Arc::clone(&self.changes);
            let mut changed = pin!(changes.notified());
            changed.as_mut().enable();
            let frames = self.server.shared.core.lock().poll_watch(&mut self.watch, FRAMES_PER_POLL);
            if !frames.is_empty() {
                let text = self.befallen(frames).await;
                if text.is_empty() && !self.is_cut {
                    continue;
                }
                return (!text.is_empty()).then(|| Bytes::from(text));
            }
            if self.watch.has_ended() {
                return None;
            }
            if let Some((webhook, object)) = self.watch.conversion() {
                let desired = self.watch.definition().api_version();
                let answer = self.server.convert(&webhook, &object, &desired).await;
                self.watch.converted(answer);
                continue;
            }
            let mut wake = self.bookmark_at;
            if let Some(ends) = self.ends {
                wake = wake.min(ends);
                if !self.is_last_bookmark_sent && self.watch.sends_bookmarks() {
                    wake = wake.min(ends.checked_sub(LAST_BOOKMARK).unwrap_or(ends));
                }
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = tokio::time::sleep_until(wake) => {
                    if self.ends.is_some_and(|ends| wake >= ends) {
                        return None;
                    }
                    self.is_last_bookmark_sent |= wake < self.bookmark_at;
                    self.bookmark_at = Instant::now() + BOOKMARK_PERIOD;
                    let bookmark = self.server.shared.core.lock().bookmark(&mut self.watch);
                    if let Some(frame) = bookmark {
                        return Some(Bytes::from(frame.text));
                    }
                }
            }
        }
    }
}

async fn serve(State(server): State<Server>, request: Request) -> Response {
    let mut response = serve_undated(&server, request).await;
    if let Some(date) = date(server.with_core(ApiServer::now)) {
        response.headers_mut().insert(header::DATE, date);
    }
    response
}

async fn serve_undated(server: &Server, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("Request entity too large: limit is {BODY_BYTES_MAX}");
            return respond(&ApiError::new(413, "RequestEntityTooLarge", message).into());
        }
        Err(error) => return respond(&ApiError::bad_request(error.to_string()).into()),
    };
    let header =
        |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let mut request = ApiRequest::new(parts.method.clone(), parts.uri.path(), body);
    request.query = parse_query(parts.uri.query().unwrap_or_default());
    request.content_type = header(header::CONTENT_TYPE);
    request.accept = accept(&parts.headers);
    request.user_agent = header(header::USER_AGENT);
    if let Some(user) = parts.extensions.get::<User>() {
        request.user = user.clone();
    }
    for pages in &server.shared.pages {
        let page = server.with_core(|core| pages.page(core, &request, &parts.headers));
        if let Some(page) = page {
            return page;
        }
    }
    match server.answer(&request).await {
        Ok(answer) => respond(&answer),
        Err(watch) => {
            let warnings = watch.warnings().to_vec();
            let mut response = Response::new(server.stream(watch));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            warn(response.headers_mut(), &warnings);
            response
        }
    }
}

/// The cluster's time, which need not be the machine's.
fn date(now: jiff::Timestamp) -> Option<HeaderValue> {
    let text = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok()?;
    HeaderValue::from_str(&text).ok()
}

/// All `Accept` headers as one.
fn accept(headers: &HeaderMap) -> String {
    let values: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    values.join(",")
}

/// The HTTP response of an answer.
pub fn respond(answer: &ApiResponse) -> Response {
    let mut response = Response::new(Body::from(answer.body.clone()));
    *response.status_mut() = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if answer.code != 204 {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    }
    if let Some(seconds) = answer.retry_after_seconds {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    warn(headers, &answer.warnings);
    response
}

fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(header::WARNING, value);
        }
    }
}
