//! Charges pods to their quotas, as the quota admission of Kubernetes does: charges of one quota are written in batches.

use std::{
    collections::BTreeMap,
    fmt::Display,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::future::BoxFuture;
use koord_resource::{Resource, ResourceList, admission::Denial, controller::ResourceKind};
use koord_runtime::{
    api::Api,
    cache::Revision,
    key::ObjectKey,
    panics::{PanicGuard, Place, Task},
    random::Random,
    uid::Uid,
    write::{Action, Answer, WireRequest, Write},
};
use koord_types::{elastic_quota::ElasticQuota, quota::CHILD_REQUEST};
use koord_webhook_server::{ServiceBuilder, SideEffect};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    Ctx,
    pod::{
        charge::{self, Charge},
        validate::{VALIDATE_POD, decide},
    },
    quota::{self, CachedQuota},
};

/// How long a pod waits for its charge.
const WAIT_MAX: Duration = Duration::from_secs(10);

const KIND: ResourceKind = ResourceKind::of(&ElasticQuota::INFO);
const FIELD_MANAGER: &str = "koordinator-manager";

/// How quotas are read and written.
pub trait QuotaAccessor: Send + Sync {
    /// Sends a request to the API server; an error says why there is no answer.
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<Answer, String>>;
}

impl QuotaAccessor for Api {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<Answer, String>> {
        Box::pin(async move { self.call(&request).await.map_err(|failure| failure.message) })
    }
}

/// How often a charge is tried again after a write that failed, and how long it pauses after a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How often at the most; at least 3.
    pub max: u32,
    /// The longest pause; the shortest is half of it.
    pub jitter: Duration,
    /// How long all pauses may last together.
    pub jitter_total: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { max: 3, jitter: Duration::ZERO, jitter_total: Duration::from_secs(1) }
    }
}

/// Admits pods against their quotas and writes the usage.
pub struct QuotaEvaluator {
    ctx: Arc<Ctx>,
    accessor: OnceLock<Arc<dyn QuotaAccessor>>,
    retries: Retries,
    random: Random,
    guard: PanicGuard,
    work: Mutex<BTreeMap<ObjectKey, Work>>,
}

#[derive(Default)]
struct Work {
    waiters: Vec<Waiter>,
    /// Whether a task writes: charges that arrive meanwhile are its next batch.
    busy: bool,
    /// What was written last.
    last: Option<State>,
}

struct Waiter {
    amounts: ResourceList,
    answer: oneshot::Sender<Result<(), Denial>>,
}

/// A quota as it was stored at a revision.
#[derive(Clone)]
struct State {
    uid: Uid,
    revision: Revision,
    quota: Arc<CachedQuota>,
    requested: ResourceList,
}

/// Why a charge was not stored.
enum Failure {
    /// The quota was changed meanwhile: the words of the API server.
    Conflict(String),
    /// A refusal, or no answer: what is wrong.
    Other(String),
}

impl Failure {
    fn of(error: impl Display) -> Self {
        Self::Other(error.to_string())
    }
}

/// Of an answer: the object as it is now stored.
#[derive(Deserialize)]
struct Stored {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    resource_version: String,
}

impl QuotaEvaluator {
    /// An evaluator over the caches of the handlers. `guard` counts panics.
    pub fn new(ctx: Arc<Ctx>, retries: Retries, random: Random, guard: PanicGuard) -> Arc<Self> {
        let retries = Retries { max: retries.max.max(3), ..retries };
        Arc::new(Self { ctx, accessor: OnceLock::new(), retries, random, guard, work: Mutex::default() })
    }

    /// From now on charges can be written. A second call changes nothing.
    pub fn connect(&self, accessor: Arc<dyn QuotaAccessor>) {
        // The first one stays.
        let _ = self.accessor.set(accessor);
    }

    /// Has every pod charged that `/validate-pod` admits, where the gate for that is on.
    pub fn serve(self: &Arc<Self>, builder: ServiceBuilder) -> ServiceBuilder {
        if !self.ctx.switches.quota_admission {
            return builder;
        }
        let evaluator = Arc::clone(self);
        builder.side_effects(VALIDATE_POD.path, move |request| {
            let (verdict, charge) = decide(request, evaluator.ctx.pods(), Some(evaluator.ctx.clock.now()));
            (verdict, charge.map(|charge| Arc::clone(&evaluator).side_effect(charge, request.dry_run)))
        })
    }

    fn side_effect(self: Arc<Self>, charge: Charge, dry_run: bool) -> SideEffect {
        Box::pin(async move {
            if !dry_run {
                return self.charge(charge).await;
            }
            // The same answer, without the write.
            let Some(state) = self.shown(&charge.quota) else { return Ok(()) };
            charge::admit(&charge.quota, &state.quota, &state.requested, &charge.amounts).map(drop)
        })
    }

    async fn charge(self: &Arc<Self>, charge: Charge) -> Result<(), Denial> {
        let (answer, settled) = oneshot::channel();
        let idle = {
            let mut work = self.work.lock();
            let work = work.entry(charge.quota.clone()).or_default();
            work.waiters.push(Waiter { amounts: charge.amounts, answer });
            !std::mem::replace(&mut work.busy, true)
        };
        if idle {
            // A task of its own, because the request may be cancelled, and others wait too.
            tokio::spawn(Arc::clone(self).write_batches(charge.quota));
        }
        tokio::select! {
            biased;
            settled = settled => settled.unwrap_or_else(|_| Err(Denial::internal("the quota could not be charged, because its writer panicked; try again"))),
            () = self.ctx.clock.sleep(WAIT_MAX) => {
                Err(Denial::bad_request("Internal error occurred: elastic quota evaluation timed out"))
            }
        }
    }

    /// Writes batches until no charge waits.
    async fn write_batches(self: Arc<Self>, key: ObjectKey) {
        loop {
            let (waiters, last) = {
                let mut work = self.work.lock();
                let Some(work) = work.get_mut(&key) else { return };
                // Requests that waited too long have been answered.
                work.waiters.retain(|waiter| !waiter.answer.is_closed());
                if work.waiters.is_empty() {
                    work.busy = false;
                    return;
                }
                (std::mem::take(&mut work.waiters), work.last.clone())
            };
            // A batch whose write panics is given up: its pods are denied at once, and the next batch is written.
            let write = async {
                self.guard.inject(Place::Task);
                self.write(&key, waiters, last).await
            };
            let written =
                self.guard.catch_async(Place::Task, Task("quota writer", ""), write).await.unwrap_or_default();
            if let Some(work) = self.work.lock().get_mut(&key) {
                work.last = written.or(work.last.take());
            }
        }
    }

    /// Charges a batch with one write; gives what is stored then.
    async fn write(&self, key: &ObjectKey, waiters: Vec<Waiter>, last: Option<State>) -> Option<State> {
        let tries = self.retries.max.min(3 + waiters.len().ilog2());
        let mut paused = Duration::ZERO;
        let mut waiters = waiters;
        let mut state = newer(self.shown(key), last);
        for attempt in 0..=tries {
            let Some(current) = state.take() else {
                answer(waiters, &Err(Denial::bad_request(format!("elastic quota {} not found", key.name()))));
                return None;
            };
            let requested;
            (requested, waiters) = admit_all(key, &current, waiters);
            if waiters.is_empty() {
                return Some(current);
            }
            let failure = match self.store(key, &current, &requested).await {
                Ok(written) => {
                    answer(waiters, &Ok(()));
                    return Some(written);
                }
                Err(failure) => failure,
            };
            if attempt == tries {
                let (Failure::Conflict(message) | Failure::Other(message)) = failure;
                answer(waiters, &Err(Denial::bad_request(message)));
                return None;
            }
            if matches!(failure, Failure::Conflict(_)) {
                paused += self.pause(paused).await;
            }
            state = self.read(key).await;
        }
        None
    }

    /// What the cache shows.
    fn shown(&self, key: &ObjectKey) -> Option<State> {
        let quotas = self.ctx.quotas.read();
        let entry = quotas.get(key.as_str())?;
        let requested = entry.value.requested.clone();
        Some(State { uid: entry.uid.clone(), revision: entry.revision, quota: Arc::clone(&entry.value), requested })
    }

    /// What the API server has; what the cache shows where the server does not answer.
    async fn read(&self, key: &ObjectKey) -> Option<State> {
        let uri = KIND.url_path(key.namespace(), Some(key.name()));
        let request = WireRequest { method: "GET", uri, content_type: "application/json", body: String::new() };
        let answer = match self.accessor.get() {
            Some(accessor) => accessor.send(request).await.ok().filter(Answer::is_success),
            None => None,
        };
        let fresh = answer.and_then(|answer| {
            let Stored { metadata } = serde_json::from_str(&answer.body).ok()?;
            let quota = Arc::new(quota::read(&answer.body).ok()?);
            let (revision, requested) = (Revision::parse(&metadata.resource_version).ok()?, quota.requested.clone());
            Some(State { uid: Uid::from(&*metadata.uid), revision, quota, requested })
        });
        newer(self.shown(key), fresh)
    }

    /// Stores what the pods of a quota request together.
    async fn store(&self, key: &ObjectKey, state: &State, requested: &ResourceList) -> Result<State, Failure> {
        let Some(accessor) = self.accessor.get() else {
            return Err(Failure::Other("quotas cannot be charged yet; try again".to_owned()));
        };
        let text = koord_resource::go_json::to_string(requested).map_err(Failure::of)?;
        let metadata: Value = json!({
            "uid": state.uid,
            "resourceVersion": state.revision.0.to_string(),
            "annotations": { CHILD_REQUEST.name(): text },
        });
        let action = Action::Patch { subresource: "", patch: json!({ "metadata": metadata }) };
        let write = Write { kind: KIND, key: key.clone(), action };
        let answer = accessor.send(write.request(FIELD_MANAGER)).await.map_err(Failure::Other)?;
        if answer.code == 409 {
            return Err(Failure::Conflict(conflict(key, &answer)));
        }
        let answer = write.judge(answer).map_err(Failure::of)?;
        let stored: Stored = serde_json::from_str(&answer.body).map_err(Failure::of)?;
        let revision = Revision::parse(&stored.metadata.resource_version).map_err(Failure::of)?;
        Ok(State { revision, requested: requested.clone(), ..state.clone() })
    }

    /// Waits a random part of the jitter, as long as some of the whole is left.
    async fn pause(&self, paused: Duration) -> Duration {
        let left = self.retries.jitter_total.saturating_sub(paused);
        let half = u64::try_from(self.retries.jitter.as_millis() / 2).unwrap_or(u64::MAX);
        let pause = Duration::from_millis(half.saturating_add(self.random.below(half.max(1)))).min(left);
        if half > 0 && !pause.is_zero() {
            self.ctx.clock.sleep(pause).await;
            return pause;
        }
        Duration::ZERO
    }
}

/// What an API server says about a conflict; where it says nothing, what it would say.
fn conflict(key: &ObjectKey, answer: &Answer) -> String {
    let ((_, message), name) = (answer.status(), key.name());
    if message.is_empty() {
        format!(
            "Operation cannot be fulfilled on elasticquotas.scheduling.sigs.k8s.io \"{name}\": the object has been modified; please apply your changes to the latest version and try again"
        )
    } else {
        message
    }
}

fn newer(a: Option<State>, b: Option<State>) -> Option<State> {
    match (a, b) {
        // The cache decides about what there is; another uid is another object.
        (Some(a), Some(b)) if a.uid == b.uid && b.revision > a.revision => Some(b),
        (Some(a), _) => Some(a),
        (None, _) => None,
    }
}

/// Admits one pod after the other; gives what is requested then, and those that were admitted.
fn admit_all(key: &ObjectKey, state: &State, waiters: Vec<Waiter>) -> (ResourceList, Vec<Waiter>) {
    let mut requested = state.requested.clone();
    let mut admitted = Vec::with_capacity(waiters.len());
    for waiter in waiters {
        match charge::admit(key, &state.quota, &requested, &waiter.amounts) {
            Ok(total) => {
                requested = total;
                admitted.push(waiter);
            }
            Err(denial) => answer(vec![waiter], &Err(denial)),
        }
    }
    (requested, admitted)
}

fn answer(waiters: Vec<Waiter>, answer: &Result<(), Denial>) {
    for waiter in waiters {
        // One that waited too long does not listen any more.
        let _ = waiter.answer.send(answer.clone());
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use koord_resource::Quantity;
    use koord_runtime::clock::ScaledClock;

    use super::*;

    /// An API server that does not answer.
    struct Hanging;

    impl QuotaAccessor for Hanging {
        fn send(&self, _: WireRequest) -> BoxFuture<'_, Result<Answer, String>> {
            Box::pin(std::future::pending())
        }
    }

    fn evaluator() -> Arc<QuotaEvaluator> {
        let mut ctx = Ctx::detached(|_| false);
        ctx.clock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0);
        let metadata = json!({"name": "q", "namespace": "d", "uid": "u", "resourceVersion": "1"});
        ctx.put("ElasticQuota", &json!({"metadata": metadata, "spec": {"max": {"cpu": "1"}}}).to_string()).unwrap();
        QuotaEvaluator::new(Arc::new(ctx), Retries::default(), Random::seeded(1), PanicGuard::default())
    }

    async fn refused(evaluator: &Arc<QuotaEvaluator>) -> (u16, String) {
        let amounts = [("cpu", Quantity::cpu_milli(500))].into_iter().collect();
        let charge = Charge { quota: ObjectKey::new("d", "q"), amounts };
        let denial = evaluator.charge(charge).await.unwrap_err();
        (denial.code, denial.message)
    }

    #[tokio::test(start_paused = true)]
    async fn a_charge_without_an_answer_in_time_is_refused_with_the_code_of_any_other() {
        let evaluator = evaluator();
        evaluator.connect(Arc::new(Hanging));
        let message = "Internal error occurred: elastic quota evaluation timed out".to_owned();
        assert_eq!(refused(&evaluator).await, (400, message));
    }

    #[tokio::test(start_paused = true)]
    async fn a_charge_before_quotas_can_be_written_says_so() {
        assert_eq!(refused(&evaluator()).await, (400, "quotas cannot be charged yet; try again".to_owned()));
    }
}
