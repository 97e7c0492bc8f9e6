//! Quotas that are made, changed and removed at once, while the watch is late: time is virtual.

mod soundness;

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64, atomic::Ordering::Relaxed},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use koord_runtime::{clock::ScaledClock, random::Random, store::Sink};
use koord_webhook_server::{Metrics, Service, ServiceBuilder};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{Ctx, serve};

const PATH: &str = "/validate-scheduling-sigs-k8s-io-v1alpha1-elasticquota";
const AT_ONCE: Duration = Duration::ZERO;

/// An API server with one webhook, and a watch that shows changes some time after they were stored.
#[derive(Clone)]
struct Cluster {
    ctx: Arc<Ctx>,
    service: Service,
    stored: Arc<Mutex<BTreeMap<String, Value>>>,
    revision: Arc<AtomicU64>,
    events: tokio::sync::mpsc::UnboundedSender<(tokio::time::Instant, Event)>,
}

type Event = Box<dyn FnOnce(&Ctx) + Send>;

impl Cluster {
    fn new() -> Self {
        let gates = |gate: &str| gate.starts_with("Elastic") && gate.ends_with("Webhook");
        let clock = ScaledClock::shared(Timestamp::UNIX_EPOCH, 1.0);
        let mut ctx = Ctx::detached(gates);
        ctx.clock = Arc::clone(&clock);
        let ctx = Arc::new(ctx);
        let builder =
            ServiceBuilder::new(Metrics::register(&koord_runtime::metrics::Metrics::new().unwrap()).unwrap(), clock);
        let service = serve(builder, &ctx, gates).build();
        let (events, mut due) = tokio::sync::mpsc::unbounded_channel::<(tokio::time::Instant, Event)>();
        let shown = Arc::clone(&ctx);
        tokio::spawn(async move {
            while let Some((at, event)) = due.recv().await {
                tokio::time::sleep_until(at).await;
                event(&shown);
            }
        });
        Self { ctx, service, stored: Arc::default(), revision: Arc::default(), events }
    }

    /// What the webhook says: nothing when it admits, else its message.
    async fn ask(
        &self,
        operation: &str,
        new: Option<&Value>,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<(), String> {
        let resource = json!({"group": "scheduling.sigs.k8s.io", "version": "v1alpha1", "resource": "elasticquotas"});
        let request = json!({"uid": "u", "operation": operation, "resource": resource, "namespace": "default",
            "object": new, "oldObject": old, "dryRun": dry_run});
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let request = http::Request::post(PATH).header("content-type", "application/json");
        let request = request.body(Full::new(Bytes::from(review.to_string()))).unwrap();
        let body = self.service.answer(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        if answer["response"]["allowed"] == true {
            return Ok(());
        }
        Err(answer["response"]["status"]["message"].as_str().unwrap_or_default().to_owned())
    }

    /// Stores a quota; the watch shows it after `delay`.
    fn store(&self, mut quota: Value, delay: Duration) {
        let name = quota["metadata"]["name"].as_str().unwrap().to_owned();
        let revision = self.revision.fetch_add(1, Relaxed) + 1;
        let uid = self
            .stored
            .lock()
            .get(&name)
            .map_or_else(|| json!(format!("{name}-{revision}")), |old| old["metadata"]["uid"].clone());
        quota["metadata"]["uid"] = uid;
        quota["metadata"]["resourceVersion"] = revision.to_string().into();
        self.stored.lock().insert(name, quota.clone());
        self.show(delay, move |ctx| {
            ctx.quotas.upsert(&quota.to_string()).unwrap();
        });
    }

    fn remove(&self, name: &str, delay: Duration) {
        let Some(mut quota) = self.stored.lock().remove(name) else { return };
        quota["metadata"]["resourceVersion"] = (self.revision.fetch_add(1, Relaxed) + 1).to_string().into();
        self.show(delay, move |ctx| {
            ctx.quotas.remove(&quota.to_string()).unwrap();
        });
    }

    fn show(&self, delay: Duration, event: impl FnOnce(&Ctx) + Send + 'static) {
        if delay.is_zero() {
            return event(&self.ctx);
        }
        // Events keep their order.
        self.events.send((tokio::time::Instant::now() + delay, Box::new(event))).unwrap();
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.stored.lock().get(name).cloned()
    }

    async fn create(&self, quota: Value, delay: Duration) -> Result<(), String> {
        self.ask("CREATE", Some(&quota), None, false).await?;
        self.store(quota, delay);
        Ok(())
    }

    async fn update(&self, quota: Value, delay: Duration) -> Result<(), String> {
        let old = self.get(quota["metadata"]["name"].as_str().unwrap());
        self.ask("UPDATE", Some(&quota), old.as_ref(), false).await?;
        self.store(quota, delay);
        Ok(())
    }

    async fn delete(&self, name: &str, delay: Duration) -> Result<(), String> {
        let old = self.get(name);
        self.ask("DELETE", None, old.as_ref(), false).await?;
        self.remove(name, delay);
        Ok(())
    }
}

fn quota(name: &str, parent: &str, is_parent: bool, min: u64) -> Value {
    json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": name, "namespace": "default", "labels": {
            "quota.scheduling.koordinator.sh/parent": parent,
            "quota.scheduling.koordinator.sh/is-parent": is_parent.to_string()}},
        "spec": {"min": {"cpu": min.to_string()}, "max": {"cpu": "1000"}}})
}

fn root(name: &str, min: u64) -> Value {
    quota(name, "koordinator-root-quota", true, min)
}

#[tokio::test(start_paused = true)]
async fn a_parent_and_its_child_come_together_a_thousand_times() {
    for delay in [AT_ONCE, Duration::from_millis(500)] {
        let cluster = Cluster::new();
        for number in 0..1000 {
            let (parent, child) = (format!("p{number}"), format!("c{number}"));
            cluster.create(root(&parent, 10), delay).await.unwrap();
            cluster.create(quota(&child, &parent, false, 10), delay).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_children_at_once_never_get_more_than_their_parent_has() {
    for seed in 0..5 {
        let (cluster, random) = (Cluster::new(), Random::seeded(seed));
        cluster.create(root("p", 10), AT_ONCE).await.unwrap();
        let children = (0..100).map(|number| {
            let (cluster, delay) = (cluster.clone(), Duration::from_millis(random.below(500)));
            async move { cluster.create(quota(&format!("c{number}"), "p", false, 1), delay).await }
        });
        let answers = futures::future::join_all(children).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 10, "seed {seed}");
        let refusal = answers.into_iter().find_map(Result::err).unwrap();
        assert!(
            refusal.starts_with("checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: p"),
            "{refusal}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_later_webhook_refuses_leaves_no_trace() {
    let cluster = Cluster::new();
    cluster.create(root("p", 10), AT_ONCE).await.unwrap();
    let child = |name: &str| quota(name, "p", false, 10);
    let start = tokio::time::Instant::now();
    for _ in 0..3 {
        // Admitted here, refused elsewhere: it is never stored.
        cluster.ask("CREATE", Some(&child("c")), None, false).await.unwrap();
    }
    assert_eq!(start.elapsed(), AT_ONCE, "the same again is admitted at once");
    let refused = cluster.create(child("d"), AT_ONCE).await.unwrap_err();
    assert!(refused.contains("after waiting 2s"), "{refused}");
    tokio::time::sleep(Duration::from_secs(9)).await;
    cluster.create(child("d"), AT_ONCE).await.unwrap();

    // A removal that was refused elsewhere frees nothing.
    let stored = cluster.get("d");
    cluster.ask("DELETE", None, stored.as_ref(), false).await.unwrap();
    cluster.ask("DELETE", None, stored.as_ref(), false).await.unwrap();
    assert!(cluster.create(child("e"), AT_ONCE).await.unwrap_err().contains("all brothers' MinQuota"));
}

/// Neither a smaller amount, which would leave more to others, nor a larger one counts for good.
#[tokio::test(start_paused = true)]
async fn a_change_that_a_later_webhook_refuses_leaves_no_trace() {
    let cluster = Cluster::new();
    cluster.create(root("p", 10), AT_ONCE).await.unwrap();
    let child = |name: &str, min| quota(name, "p", false, min);
    cluster.create(child("c", 5), AT_ONCE).await.unwrap();
    let stored = cluster.get("c");
    for (admitted, other, refused) in [(1, 9, true), (10, 5, false)] {
        // Admitted here, refused elsewhere: it is never stored.
        cluster.ask("UPDATE", Some(&child("c", admitted)), stored.as_ref(), false).await.unwrap();
        let answer = cluster.create(child("d", other), AT_ONCE).await.unwrap_err();
        assert!(answer.contains("all brothers' MinQuota"), "{answer}");
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert_eq!(cluster.create(child("d", other), AT_ONCE).await.is_err(), refused, "min {admitted}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let cluster = Cluster::new();
    cluster.create(root("p", 10), AT_ONCE).await.unwrap();
    cluster.ask("CREATE", Some(&quota("c", "p", false, 10)), None, true).await.unwrap();
    cluster.create(quota("d", "p", false, 10), AT_ONCE).await.unwrap();
    let stored = cluster.get("d");
    cluster.ask("DELETE", None, stored.as_ref(), true).await.unwrap();
    assert!(cluster.create(quota("c", "p", false, 1), AT_ONCE).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_waited_for_and_the_message_says_so() {
    let cluster = Cluster::new();
    let start = tokio::time::Instant::now();
    let refused = cluster.create(quota("c", "nobody", false, 1), AT_ONCE).await.unwrap_err();
    assert_eq!(
        refused,
        "c has parentName nobody but not find parentInfo in quotaInfoMap (after waiting 2s for it to appear)"
    );
    assert!(start.elapsed() < Duration::from_millis(2100));
    // Made by a replica whose admission this one never saw.
    cluster.store(root("p", 10), Duration::from_millis(300));
    cluster.create(quota("c", "p", false, 1), AT_ONCE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_was_just_removed_can_be_made_anew() {
    let cluster = Cluster::new();
    let late = Duration::from_millis(400);
    cluster.create(root("p", 10), AT_ONCE).await.unwrap();
    cluster.create(quota("c", "p", false, 10), AT_ONCE).await.unwrap();
    cluster.delete("c", late).await.unwrap();
    cluster.create(quota("c", "p", false, 7), late).await.unwrap();
    cluster.delete("c", late).await.unwrap();
    cluster.delete("p", late).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_changed_removed_and_made_anew_before_the_watch_shows_it() {
    let cluster = Cluster::new();
    let (start, never) = (tokio::time::Instant::now(), Duration::from_hours(1));
    let wanted = root("p", 10);
    cluster.create(wanted.clone(), never).await.unwrap();
    cluster.update(root("p", 11), never).await.unwrap();
    cluster.delete("p", never).await.unwrap();
    cluster.create(wanted, never).await.unwrap();
    assert_eq!(start.elapsed(), AT_ONCE);
    let other = json!({"metadata": {"name": "p", "namespace": "elsewhere"}});
    let taken = cluster.ask("UPDATE", Some(&other), Some(&other), false).await;
    assert_eq!(taken, Ok(()), "nothing changes");
}

#[tokio::test(start_paused = true)]
async fn only_a_quota_whose_place_or_amounts_change_is_looked_at() {
    let cluster = Cluster::new();
    let system = |labels: Value, spec: Value| {
        json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota", "spec": spec,
            "metadata": {"name": "koordinator-system-quota", "namespace": "default", "labels": labels}})
    };
    let max = |cpu: Value| json!({"max": {"cpu": cpu}});
    let old = system(json!({}), max(json!("1")));
    let empty = json!({"quota.scheduling.koordinator.sh/parent": "", "other": "x"});
    for same in [system(empty, max(json!("1"))), system(json!({}), max(json!(1)))] {
        assert_eq!(cluster.ask("UPDATE", Some(&same), Some(&old), false).await, Ok(()), "{same}");
    }
    // Of these texts the original keeps nothing but the number.
    for (old, new) in [("1000", "+1000"), ("8Gi", "08Gi"), ("0.5", ".5"), ("1.5Gi", "1.50Gi")] {
        let [old, new] = [old, new].map(|text| system(json!({}), max(json!(text))));
        assert_eq!(cluster.ask("UPDATE", Some(&new), Some(&old), false).await, Ok(()), "{new}");
    }
    let moved = system(json!({"quota.scheduling.koordinator.sh/parent": "p"}), max(json!("1")));
    let bounded = system(json!({}), json!({"max": {"cpu": "1"}, "min": {}}));
    let amounts = [json!("1000m"), json!("1.0"), json!("+1"), json!("01"), Value::Null];
    let amounts = amounts.map(|amount| system(json!({}), max(amount)));
    for changed in [moved, bounded, system(json!({}), json!({}))].into_iter().chain(amounts) {
        let refused = cluster.ask("UPDATE", Some(&changed), Some(&old), false).await;
        assert_eq!(refused, Err("invalid quota koordinator-system-quota".to_owned()), "{changed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_quota_cannot_move_below_itself() {
    let cluster = Cluster::new();
    cluster.create(root("a", 10), AT_ONCE).await.unwrap();
    cluster.create(quota("b", "a", true, 5), AT_ONCE).await.unwrap();
    cluster.create(quota("c", "b", true, 5), AT_ONCE).await.unwrap();
    let refused = cluster.update(quota("a", "c", true, 1), AT_ONCE).await.unwrap_err();
    assert_eq!(refused, "a has parentName c, which is below a; move c away first");
    let refused = cluster.update(quota("a", "a", true, 1), AT_ONCE).await.unwrap_err();
    assert_eq!(refused, "a has parentName a but not find parentInfo in quotaInfoMap");
    cluster.create(quota("u", "a", false, 1), AT_ONCE).await.unwrap();
    let refused = cluster.update(quota("u", "u", false, 1), AT_ONCE).await.unwrap_err();
    assert_eq!(refused, "u has parentName u but the parentQuotaInfo's IsParent is false");
}

#[tokio::test(start_paused = true)]
async fn a_stored_quota_below_one_that_nobody_saw_harms_nobody_else() {
    let cluster = Cluster::new();
    cluster.store(quota("lost", "never-there", false, 10), AT_ONCE);
    cluster.create(root("p", 10), AT_ONCE).await.unwrap();
    cluster.create(quota("c", "p", false, 5), AT_ONCE).await.unwrap();
    // It comes back into the tree by the same rules as any other.
    assert!(cluster.update(quota("lost", "p", false, 6), AT_ONCE).await.is_err());
    cluster.update(quota("lost", "p", false, 5), AT_ONCE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn quotas_that_are_stored_in_a_circle_harm_nobody_else() {
    let cluster = Cluster::new();
    cluster.store(quota("a", "b", true, 10), AT_ONCE);
    cluster.store(quota("b", "a", true, 5), AT_ONCE);
    cluster.create(root("p", 10), AT_ONCE).await.unwrap();
    cluster.create(quota("c", "a", false, 5), AT_ONCE).await.unwrap();
    cluster.update(root("b", 20), AT_ONCE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_removed_names_two_of_its_pods() {
    let cluster = Cluster::new();
    cluster.create(root("q", 10), AT_ONCE).await.unwrap();
    for (count, named) in [(1, "p1"), (2, "p1, p2"), (3, "p1, p2, ...")] {
        let labels = json!({"quota.scheduling.koordinator.sh/name": "q"});
        let name = format!("p{count}");
        let metadata = json!({"name": name, "namespace": "d", "uid": name, "resourceVersion": count.to_string(), "labels": labels});
        cluster.ctx.put("Pod", &json!({ "metadata": metadata }).to_string()).unwrap();
        let refused = cluster.delete("q", AT_ONCE).await.unwrap_err();
        assert_eq!(refused, format!("delete quota failed, quota q has {count} child pods: {named}"));
    }
    let start = tokio::time::Instant::now();
    assert_eq!(cluster.ask("DELETE", None, None, false).await, Err("not found quota:".to_owned()));
    assert_eq!(start.elapsed(), AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn an_empty_weight_says_nothing() {
    let cluster = Cluster::new();
    let weighted = |weight: &str| {
        let mut quota = root("q", 10);
        quota["metadata"]["annotations"] = json!({"quota.scheduling.koordinator.sh/shared-weight": weight});
        quota
    };
    assert!(cluster.create(weighted(" "), AT_ONCE).await.unwrap_err().ends_with("unexpected end of JSON input"));
    cluster.create(weighted(""), AT_ONCE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_quota_was_is_what_the_api_server_says() {
    let cluster = Cluster::new();
    let never = Duration::from_hours(1);
    cluster.create(quota("q", "koordinator-root-quota", false, 10), AT_ONCE).await.unwrap();
    cluster.update(root("q", 10), never).await.unwrap();
    let labels = json!({"quota.scheduling.koordinator.sh/name": "q"});
    let metadata = json!({"name": "p", "namespace": "d", "uid": "p", "resourceVersion": "1", "labels": labels});
    cluster.ctx.put("Pod", &json!({ "metadata": metadata }).to_string()).unwrap();
    cluster.update(root("q", 11), never).await.unwrap();
}
