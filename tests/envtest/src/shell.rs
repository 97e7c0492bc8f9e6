//! The asynchronous server around the core: HTTP in, core, webhooks, HTTP out.

mod deadline;
mod http;
mod kubelet;
mod node_monitor;
mod stream;
mod watchers;

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ::http::{HeaderMap, Method};
use axum::{Router, response::Response};
use futures::future::try_join_all;
use parking_lot::Mutex;
use serde_json::Value;

use self::watchers::Watchers;
pub use self::{
    http::respond,
    kubelet::{Connection, Dial},
};
use crate::{
    conversion::{self, ConversionWebhook},
    faults::{Fault, Faults},
    journal::{Entry, Journal, Memory, Receipt},
    request::ApiRequest,
    server::{self, Admitted, ApiResponse, ApiServer, Outcome, Review, Watch},
    status::ApiError,
};

/// Reviews that a conversion webhook gets at the same time for one request.
const CONVERSIONS_AT_ONCE: usize = 16;

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

/// A running server: the core behind a lock, and the watches of its clients.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    core: Mutex<ApiServer>,
    watchers: Arc<Watchers>,
    admission: Option<Box<dyn Admission>>,
    conversion: Option<Box<dyn Conversion>>,
    pages: Vec<Box<dyn Pages>>,
    garbage_collection: Option<Duration>,
    is_collecting: AtomicBool,
    faults: Faults,
    journal: Option<Journal>,
    kubelets: Option<Box<dyn Dial>>,
}

/// What a server is made of, beside the core.
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
    /// Where changes are kept; the core must have been set up to keep a journal.
    pub journal: Option<Journal>,
    /// Connects to kubelets, for logs, commands and ports of pods; without it no kubelet stands behind any node.
    pub kubelets: Option<Box<dyn Dial>>,
}

// === impl Server ===

impl Server {
    /// Serves a core.
    pub fn new(core: ApiServer, parts: Parts) -> Self {
        let shared = Arc::new(Shared {
            core: Mutex::new(core),
            watchers: Arc::default(),
            admission: parts.admission,
            conversion: parts.conversion,
            pages: parts.pages,
            garbage_collection: parts.garbage_collection,
            is_collecting: AtomicBool::new(false),
            faults: Faults::default(),
            journal: parts.journal,
            kubelets: parts.kubelets,
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

    /// The tower service that answers for the server. Requests carry their [`User`](crate::request::User) as an extension; without one they
    /// come from the in-process administrator.
    pub fn router(&self) -> Router {
        Router::new().fallback(http::serve).with_state(self.clone())
    }

    /// Works on the core; watches that report what changed are woken.
    pub fn with_core<T>(&self, work: impl FnOnce(&mut ApiServer) -> T) -> T {
        self.change(work).0
    }

    /// Works on the core; with a data directory, the receipt resolves when what was done or decided is on disk.
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

    /// Answers a [request with a JSON body](ApiRequest::json): the status code, and the answer's body, which is null where it is not JSON. A watch is
    /// not followed: its code is 200, and its body null.
    pub async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        match self.answer(&ApiRequest::json(method, path, body)).await {
            Ok(answer) => (answer.code, serde_json::from_slice(&answer.body).unwrap_or_default()),
            Err(_) => (200, Value::Null),
        }
    }

    /// Answers a request, asking webhooks where the core wants them, with the faults that [`Self::faults`] inject.
    pub async fn answer(&self, request: &ApiRequest) -> Result<ApiResponse, Box<Watch>> {
        match self.shared.faults.of_request(request) {
            Some(Fault::Refuse(error)) => Ok(ApiResponse::error(&error)),
            Some(Fault::LoseAnswer(error)) => {
                // The answer is lost; a watch ends at once.
                drop(self.answer_without_faults(request).await);
                Ok(ApiResponse::error(&error))
            }
            Some(Fault::StaleList(lag)) => {
                let mut stale = request.clone();
                let revision = self.with_core(|core| core.store.shown()).saturating_sub(lag).max(1);
                stale.query.retain(|(name, _)| name != "resourceVersion" && name != "resourceVersionMatch");
                stale.query.push(("resourceVersion".to_owned(), revision.to_string()));
                stale.query.push(("resourceVersionMatch".to_owned(), "Exact".to_owned()));
                self.answer_without_faults(&stale).await
            }
            _ => self.answer_without_faults(request).await,
        }
    }

    async fn answer_without_faults(&self, request: &ApiRequest) -> Result<ApiResponse, Box<Watch>> {
        let is_write = request.method != ::http::Method::GET;
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
        // What readers see is on disk already.
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
        let woken = self.watchers.mark(&core, &changed);
        drop(core);
        woken.wake();
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
