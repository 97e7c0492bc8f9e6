//! Pods are charged to their quotas by writes to an API server that is played here.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use koord_runtime::{
    clock::SystemClock,
    panics::PanicGuard,
    random::Random,
    write::{Answer, WireRequest},
};
use koord_webhook_handlers::{Ctx, QuotaAccessor, QuotaEvaluator, Retries, serve};
use koord_webhook_server::{Metrics, Service, ServiceBuilder};
use parking_lot::Mutex;
use serde_json::{Value, json};

const CHILD_REQUEST: &str = "quota.scheduling.koordinator.sh/child-request";

/// What the server says about a write to a quota that is another one by now.
const CONFLICT: &str = "Precondition failed: UID in precondition: u, UID in object meta: v";

/// Stores ElasticQuotas, and shows their changes to the caches after a while.
pub(crate) struct Server {
    ctx: Arc<Ctx>,
    quotas: Mutex<BTreeMap<String, Value>>,
    revision: AtomicU64,
    delay: Duration,
    writes: AtomicU64,
    conflicts: AtomicU64,
    /// What the next writes are answered with, the last one first: a code, or why there is no answer.
    failures: Mutex<Vec<Result<u16, String>>>,
}

impl Server {
    pub(crate) fn new(ctx: &Arc<Ctx>, delay: Duration) -> Arc<Self> {
        Arc::new(Self {
            ctx: Arc::clone(ctx),
            quotas: Mutex::default(),
            revision: AtomicU64::new(1000),
            delay,
            writes: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            failures: Mutex::default(),
        })
    }

    /// Stores a quota that the caches know already.
    pub(crate) fn keep(&self, quota: &Value) {
        let name = format!("{}/{}", text(quota, "/metadata/namespace"), text(quota, "/metadata/name"));
        self.quotas.lock().insert(name, quota.clone());
    }

    pub(crate) fn charged(&self, key: &str) -> Option<Value> {
        let quotas = self.quotas.lock();
        serde_json::from_str(quotas.get(key)?["metadata"]["annotations"][CHILD_REQUEST].as_str()?).ok()
    }

    fn answer(&self, request: &WireRequest) -> Answer {
        let path: Vec<&str> = request.uri.split('?').next().unwrap().split('/').collect();
        let [.., namespace, "elasticquotas", name] = path[..] else { panic!("{}", request.uri) };
        let mut quotas = self.quotas.lock();
        let Some(stored) = quotas.get_mut(&format!("{namespace}/{name}")) else {
            return Answer { code: 404, ..Answer::default() };
        };
        if request.method == "PATCH" {
            self.writes.fetch_add(1, Relaxed);
            let patch: Value = serde_json::from_str(&request.body).unwrap();
            if ["/metadata/uid", "/metadata/resourceVersion"].iter().any(|at| stored.pointer(at) != patch.pointer(at)) {
                self.conflicts.fetch_add(1, Relaxed);
                let body = json!({"kind": "Status", "message": CONFLICT}).to_string();
                return Answer { code: 409, retry_after: None, body };
            }
            let charged = patch["metadata"]["annotations"][CHILD_REQUEST].clone();
            self.change(stored, charged);
        }
        Answer { code: 200, retry_after: None, body: stored.to_string() }
    }

    fn change(&self, quota: &mut Value, charged: Value) {
        quota["metadata"]["annotations"][CHILD_REQUEST] = charged;
        quota["metadata"]["resourceVersion"] = (self.revision.fetch_add(1, Relaxed) + 1).to_string().into();
        let (ctx, shown, delay) = (Arc::clone(&self.ctx), quota.to_string(), self.delay);
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            ctx.put("ElasticQuota", &shown).unwrap();
        });
    }
}

pub(crate) struct Wire(pub(crate) Arc<Server>);

impl QuotaAccessor for Wire {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<Answer, String>> {
        Box::pin(async move {
            // Others get their turn while a write is under way.
            tokio::time::sleep(Duration::from_millis(1)).await;
            let failure = if request.method == "PATCH" { self.0.failures.lock().pop() } else { None };
            match failure {
                Some(failure) => failure.map(|code| Answer { code, ..Answer::default() }),
                None => Ok(self.0.answer(&request)),
            }
        })
    }
}

fn text<'v>(value: &'v Value, at: &str) -> &'v str {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

fn quota(max: u64) -> Value {
    json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": "q", "namespace": "d", "uid": "u", "resourceVersion": "1", "annotations": {}},
        "spec": {"max": {"cpu": max.to_string()}}})
}

fn stage(max: u64, delay: Duration) -> (Arc<Server>, Service) {
    guarded_stage(max, delay, PanicGuard::default())
}

fn guarded_stage(max: u64, delay: Duration, guard: PanicGuard) -> (Arc<Server>, Service) {
    let gate =
        |name: &str| ["PodValidatingWebhook", "EnableQuotaAdmission", "ValidatePodDeviceResource"].contains(&name);
    let ctx = Arc::new(Ctx::detached(gate));
    ctx.put("ElasticQuota", &quota(max).to_string()).unwrap();
    let server = Server::new(&ctx, delay);
    server.keep(&quota(max));
    let evaluator = QuotaEvaluator::new(Arc::clone(&ctx), Retries::default(), Random::seeded(1), guard);
    evaluator.connect(Arc::new(Wire(Arc::clone(&server))));
    let metrics = Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap();
    let builder = serve(ServiceBuilder::new(metrics, SystemClock::shared()), &ctx, gate);
    (server, evaluator.serve(builder).build())
}

async fn create(service: &Service, dry_run: bool) -> Result<(), String> {
    create_of(service, dry_run, "q", &json!({"cpu": "1", "memory": "1Gi"})).await
}

async fn create_of(service: &Service, dry_run: bool, quota: &str, requests: &Value) -> Result<(), String> {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d", "labels": {"quota.scheduling.koordinator.sh/name": quota}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}});
    let request = json!({"uid": "u", "operation": "CREATE", "namespace": "d", "dryRun": dry_run,
        "resource": {"version": "v1", "resource": "pods"}, "object": pod});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    let request = http::Request::post("/validate-pod").header("content-type", "application/json");
    let request = request.body(Full::new(Bytes::from(review.to_string()))).unwrap();
    let body = service.answer(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    if answer["response"]["allowed"] == true {
        return Ok(());
    }
    Err(text(&answer, "/response/status/message").to_owned())
}

#[tokio::test]
async fn many_pods_at_once_are_charged_with_few_writes_and_never_too_many() {
    for delay in [Duration::ZERO, Duration::from_millis(20)] {
        let (server, service) = stage(60, delay);
        let answers = futures::future::join_all((0..100).map(|_| create(&service, false))).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 60);
        assert_eq!(server.charged("d/q"), Some(json!({"cpu": "60"})));
        let refusal = answers.into_iter().find_map(Result::err);
        assert_eq!(refusal.unwrap(), "exceeded quota: d/q, requested: cpu=1, used: cpu=60, limited: cpu=60");
        assert!(server.writes.load(Relaxed) <= 5, "{} writes", server.writes.load(Relaxed));
    }
}

#[tokio::test]
async fn a_writer_that_panics_denies_its_batch_at_once_and_writes_the_next() {
    let counted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&counted);
    let guard = PanicGuard::counting(move |_, task, panics| {
        assert_eq!(task.to_string(), "quota writer");
        count.fetch_add(panics, Relaxed);
    });
    let guard = guard.injecting(Arc::new({
        let panicked = AtomicBool::new(false);
        move |_| assert!(panicked.swap(true, Relaxed), "injected")
    }));
    let (server, service) = guarded_stage(1, Duration::ZERO, guard);
    let begin = Instant::now();
    let denied = create(&service, false).await.unwrap_err();
    assert!(denied.contains("its writer panicked; try again"), "{denied}");
    assert!(begin.elapsed() < Duration::from_secs(5), "nobody waits for it");
    assert_eq!((counted.load(Relaxed), server.charged("d/q")), (1, None));
    create(&service, false).await.unwrap();
    assert_eq!((counted.load(Relaxed), server.charged("d/q")), (1, Some(json!({"cpu": "1"}))));
}

#[tokio::test]
async fn what_others_write_meanwhile_counts() {
    let (server, service) = stage(10, Duration::from_millis(50));
    for charged in [3, 5, 8] {
        server.change(
            server.quotas.lock().get_mut("d/q").unwrap(),
            json!({"cpu": charged.to_string()}).to_string().into(),
        );
        create(&service, false).await.unwrap();
        assert_eq!(server.charged("d/q"), Some(json!({"cpu": (charged + 1).to_string()})));
    }
    assert_eq!(server.conflicts.load(Relaxed), 3);
    create(&service, false).await.unwrap();
    assert!(create(&service, false).await.is_err());
}

#[tokio::test]
async fn a_write_that_fails_is_tried_again_whatever_the_answer_and_three_times_at_the_most() {
    let (server, service) = stage(2, Duration::ZERO);
    for failure in [Ok(403), Ok(409), Ok(429), Ok(500), Err("connection refused".to_owned())] {
        *server.failures.lock() = vec![failure; 4];
        let refusal = create(&service, false).await.unwrap_err();
        assert!(
            ["answered", "the object has been modified", "connection refused"].iter().any(|why| refusal.contains(why)),
            "{refusal}"
        );
        assert!(server.failures.lock().is_empty(), "one write and three more");
        assert_eq!(server.charged("d/q"), None, "{refusal}");
    }
    *server.failures.lock() = vec![Ok(429), Ok(500), Err("connection refused".to_owned())];
    create(&service, false).await.unwrap();
    assert_eq!(server.charged("d/q"), Some(json!({"cpu": "1"})));
}

#[tokio::test]
async fn the_last_conflict_refuses_the_pod_in_the_words_of_the_server() {
    let (server, service) = stage(2, Duration::ZERO);
    *server.failures.lock() = vec![Ok(409); 4];
    let modified = "Operation cannot be fulfilled on elasticquotas.scheduling.sigs.k8s.io \"q\": the object has been modified; please apply your changes to the latest version and try again";
    assert_eq!(create(&service, false).await.unwrap_err(), modified, "the server has no words");
    let mut other = quota(2);
    other["metadata"]["uid"] = "v".into();
    server.keep(&other);
    assert_eq!(create(&service, false).await.unwrap_err(), CONFLICT);
    assert_eq!(server.conflicts.load(Relaxed), 4);
}

#[tokio::test]
async fn a_dry_run_is_charged_nothing() {
    let (server, service) = stage(1, Duration::ZERO);
    create(&service, true).await.unwrap();
    assert_eq!(server.charged("d/q"), None);
    create(&service, false).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(create(&service, true).await.unwrap_err().starts_with("exceeded quota"));
}

#[tokio::test]
async fn a_quota_that_is_missing_is_told_before_devices_and_a_full_one_after_them() {
    let (server, service) = stage(1, Duration::ZERO);
    let odd = json!({"cpu": "5", "koordinator.sh/gpu": "150"});
    let refusal = |quota| create_of(&service, false, quota, &odd);
    assert_eq!(refusal("missing").await.unwrap_err(), "elastic quota missing not found");
    assert!(refusal("q").await.unwrap_err().contains("the requested GPU must be percentage of 100"));
    assert_eq!(server.charged("d/q"), None);
}

#[tokio::test]
async fn a_quota_with_an_annotation_that_cannot_be_decoded_admits_no_pod_until_it_is_repaired() {
    let (server, service) = stage(2, Duration::ZERO);
    let change = |charged: &str| server.change(server.quotas.lock().get_mut("d/q").unwrap(), charged.into());
    change("{x");
    let refusal = create(&service, false).await.unwrap_err();
    assert_eq!(refusal, "invalid character 'x' looking for beginning of object key string");
    assert_eq!(server.charged("d/q"), None);
    change(r#"{"cpu":"1"}"#);
    // The cache shows the repair a moment later.
    let admitted = async {
        while create(&service, false).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), admitted).await.unwrap();
    assert_eq!(server.charged("d/q"), Some(json!({"cpu": "2"})));
}

#[tokio::test]
async fn a_quota_that_bounds_no_resource_that_is_counted_is_not_asked() {
    let (server, service) = stage(2, Duration::ZERO);
    let bound = |resource: &str| {
        let mut quota = quota(2);
        quota["spec"]["max"] = json!({ resource: "1" });
        quota["metadata"]["resourceVersion"] = (server.revision.fetch_add(1, Relaxed) + 1).to_string().into();
        server.ctx.put("ElasticQuota", &quota.to_string()).unwrap();
        server.keep(&quota);
    };
    for (resource, counted) in
        [("koordinator.sh/gpu-memory", false), ("example.com/x", false), ("nvidia.com/gpu", true)]
    {
        bound(resource);
        let admitted = create_of(&service, false, "q", &json!({ resource: "2" })).await;
        assert_eq!(admitted.is_err(), counted, "{resource}: {admitted:?}");
    }
}
