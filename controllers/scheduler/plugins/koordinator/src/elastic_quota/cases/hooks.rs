//! Hooks of quotas: what they refuse, what they follow, and what they write.

use koord_core::write::Action;
use koord_quota::Quota;
use parking_lot::Mutex;

use super::*;

const LIMIT: &str = "example.com/limit";

/// Lets so many pods into each quota, counts them, says so in an annotation, and notes the updates of quotas.
#[derive(Clone, Default)]
struct Limit {
    pods_max: usize,
    pods: BTreeSet<(String, String)>,
    /// Whether it takes every write into a quota for an update.
    is_curious: bool,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Limit {
    fn of(pods_max: usize) -> Self {
        Self { pods_max, ..Self::default() }
    }

    fn count(&self, quota: &str) -> usize {
        self.pods.iter().filter(|(own, _)| own == quota).count()
    }

    fn note(&self, when: &str, update: &QuotaUpdate<'_>, quotas: &Forest) {
        let cpu = |quota: Option<&Quota>| quota.map(|quota| quota.max.amount("cpu").value());
        let name = update.object.metadata.name.as_deref().unwrap_or_default();
        let is_known = quotas.node(name).is_some();
        self.notes.lock().push(format!("{when} {name} {:?} {:?} {is_known}", cpu(update.old), cpu(update.new)));
    }
}

impl QuotaHook for Limit {
    fn copy(&self) -> Box<dyn QuotaHook> {
        Box::new(self.clone())
    }

    fn is_quota_updated(&self, _: &QuotaUpdate<'_>, _: &Forest) -> bool {
        self.is_curious
    }

    fn pre_quota_update(&mut self, update: &QuotaUpdate<'_>, quotas: &Forest, state: &mut QuotaUpdateState) {
        self.note("before", update, quotas);
        state.store("noted", self.notes.lock().len());
    }

    fn post_quota_update(&mut self, update: &QuotaUpdate<'_>, quotas: &Forest, state: &mut QuotaUpdateState) {
        assert_eq!(state.load("noted"), Some(&self.notes.lock().len()));
        assert_eq!(state.load::<&str>("noted"), None, "it is of another type");
        self.note("after", update, quotas);
    }

    fn on_pod_updated(&mut self, quota: &str, old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) {
        let key = |pod: &Arc<Pod>| (quota.to_owned(), pod.key.name().to_owned());
        if let Some(old) = old {
            assert!(self.pods.remove(&key(old)), "{quota} {old:?}");
        }
        if let Some(new) = new {
            assert!(self.pods.insert(key(new)), "{quota} {new:?}");
        }
    }

    fn update_quota_status(&self, old: &ElasticQuota, new: Option<&ElasticQuota>) -> Option<ElasticQuota> {
        let mut quota = new.unwrap_or(old).clone();
        let text = self.count(quota.metadata.name.as_deref()?).to_string();
        let known = quota.metadata.annotations.get_or_insert_default().insert(LIMIT.to_owned(), text.clone());
        (known != Some(text)).then_some(quota)
    }

    fn check_pod(&self, quota: &str, _: &Pod, quotas: &Forest) -> Result<(), BoxError> {
        assert!(quotas.node(quota).is_some());
        let pods = self.count(quota);
        if pods < self.pods_max { Ok(()) } else { Err(format!("{pods} of {} pods", self.pods_max).into()) }
    }
}

fn world(settings: QuotaSettings, hook: Limit) -> World {
    let hooks = vec![Hook::new("limit", Box::new(hook))];
    World::of(vec![
        Arc::new(NodeResourcesFit::default()),
        Arc::new(ElasticQuotaPlugin::from(settings).with_hooks(hooks)),
        Arc::new(DefaultPreemption::new(&DefaultPreemptionArgs::default())),
    ])
}

const REFUSED: &str = "0/1 nodes are available: CheckPod failed for hook plugin limit, err: 1 of 1 pods.";

#[test]
fn a_hook_refuses_a_pod_until_others_are_gone() {
    let mut world = world(QuotaSettings::default(), Limit::of(1));
    world.quota("q1", "5", "10", &json!({}));
    world.quota("q2", "5", "10", &json!({}));
    world.place(pod("a", "q1", "1", 0));
    world.place(pod("b", "q2", "1", 0));
    let message = world.refuse(pod("c", "q1", "1", 0)).message;
    assert!(message.starts_with(REFUSED), "{message}");
    world.delete("b");
    assert!(!world.revives(), "a pod of another quota is gone");
    world.delete("a");
    assert!(world.revives());
}

#[test]
fn a_hook_is_called_after_the_check_of_the_quota_and_before_its_parents() {
    let parent = json!({"labels": {"quota.scheduling.koordinator.sh/is-parent": "true"}});
    let below = json!({"labels": {"quota.scheduling.koordinator.sh/parent": "par"}});
    let settings = || QuotaSettings { checks_parents: true, uses_runtime: false, ..QuotaSettings::default() };
    let tried = |pods_max, cpu| {
        let mut world = world(settings(), Limit::of(pods_max));
        world.quota("par", "1", "8", &parent);
        world.quota("q1", "1", "9", &below);
        world.place(pod("a", "q1", "6", 0));
        world.refuse(pod("b", "q1", cpu, 0)).message
    };
    let (own, above) = (tried(1, "4"), tried(2, "3"));
    assert!(own.contains("quotaName: q1,"), "{own}");
    assert!(tried(1, "3").starts_with(REFUSED));
    assert!(above.contains("quotaNameTopo: [par q1],"), "{above}");
}

#[test]
fn pods_are_evicted_only_where_the_hook_lets_the_other_one_in_after_that() {
    let tried = |pods_max| {
        let mut world = world(QuotaSettings::default(), Limit::of(pods_max));
        world.quota("q1", "10", "90", &json!({}));
        let now = world.now();
        let running = Arc::new(Pod { node: Some("n1".into()), ..Pod::clone(&pod("a", "q1", "1", 1)) });
        world.engine.set_pod(running, now);
        victims(&world.refuse(pod("h", "q1", "1", 10))).len()
    };
    assert_eq!([tried(1), tried(0)], [1, 0]);
}

#[test]
fn a_hook_sees_quotas_that_are_added_changed_and_deleted() {
    let hook = Limit::default();
    let notes = Arc::clone(&hook.notes);
    let mut world = world(QuotaSettings::default(), hook);
    let taken = || std::mem::take(&mut *notes.lock());
    world.quota("q1", "5", "10", &json!({}));
    assert_eq!(taken(), ["before q1 None Some(10) false", "after q1 None Some(10) true"]);
    world.quota("q1", "5", "20", &json!({}));
    assert_eq!(taken(), ["before q1 Some(10) Some(20) true", "after q1 Some(10) Some(20) true"]);
    world.quota("q1", "5", "20", &json!({"annotations": {"a": "b"}}));
    assert_eq!(taken(), [""; 0], "nothing that limits pods has changed");
    let now = world.now();
    world.engine.remove_object(TypeId::of::<ElasticQuota>(), "ns/q1", now);
    assert_eq!(taken(), ["before q1 Some(20) None true", "after q1 Some(20) None false"]);
}

#[test]
fn a_hook_may_take_any_write_into_a_quota_for_an_update() {
    let hook = Limit { is_curious: true, ..Limit::default() };
    let notes = Arc::clone(&hook.notes);
    let mut world = world(QuotaSettings::default(), hook);
    world.quota("q1", "5", "10", &json!({}));
    notes.lock().clear();
    world.quota("q1", "5", "10", &json!({"annotations": {"a": "b"}}));
    assert_eq!(*notes.lock(), ["before q1 Some(10) Some(10) true", "after q1 Some(10) Some(10) true"]);
}

#[test]
fn a_hook_follows_pods_that_come_to_another_quota() {
    let mut world = world(QuotaSettings::default(), Limit::of(1));
    world.place(pod("a", "q1", "1", 0));
    let message = world.refuse(pod("b", "", "1", 0)).message;
    assert!(message.starts_with(REFUSED), "there is no q1 yet: {message}");
    world.quota("q1", "5", "10", &json!({}));
    assert!(world.revives(), "the pod belongs to q1 now");
    assert!(world.refuse(pod("c", "q1", "1", 0)).message.starts_with(REFUSED));
}

#[test]
fn what_a_hook_writes_goes_with_what_the_scheduler_writes() {
    let mut world = world(QuotaSettings::default(), Limit::of(9));
    world.quota("q1", "5", "10", &json!({"annotations": {"kept": "yes"}}));
    let patch_of_q1 = |world: &World| {
        let mut writes = world.engine.status_updates().writes.into_iter();
        writes.find(|write| write.key.as_str() == "ns/q1").map(|write| match write.action {
            Action::Patch { subresource: "", patch } => patch,
            other => panic!("{other:?}"),
        })
    };
    let metadata = json!({"uid": "q1", "annotations": {LIMIT: "0"}});
    assert_eq!(patch_of_q1(&world), Some(json!({"metadata": metadata})), "the scheduler itself has nothing to say");
    world.quota("q1", "5", "10", &json!({"annotations": {LIMIT: "0"}}));
    assert_eq!(patch_of_q1(&world), None);
    world.place(pod("a", "q1", "6", 0));
    let patch = patch_of_q1(&world).unwrap();
    let annotations = patch["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(annotations[LIMIT], json!("1"));
    assert_eq!(annotations["quota.scheduling.koordinator.sh/request"], json!(r#"{"cpu":"6","memory":"1Gi"}"#));
    assert_eq!(patch["status"], json!({"used": {"cpu": "6", "memory": "1Gi"}}));
}

#[test]
fn a_hook_sees_the_quotas_below_one() {
    let mut world = world(QuotaSettings::default(), Limit::default());
    world.quota("par", "1", "8", &json!({"labels": {"quota.scheduling.koordinator.sh/is-parent": "true"}}));
    world.quota("q1", "1", "8", &json!({"labels": {"quota.scheduling.koordinator.sh/parent": "par"}}));
    let quotas: &Quotas = world.engine.cluster().state().unwrap();
    let below = |name: &str| quotas.forest().children(name).map(|(name, _)| name.to_string()).collect::<Vec<_>>();
    assert_eq!((below("par"), below("q1")), (vec!["q1".to_owned()], Vec::new()));
    assert!(below("koordinator-root-quota").contains(&"par".to_owned()));
}

#[test]
fn a_hook_sees_quotas_of_every_tree() {
    let hook = Limit::of(1);
    let notes = Arc::clone(&hook.notes);
    let mut world = world(QuotaSettings { has_trees: true, ..QuotaSettings::default() }, hook);
    let root = json!({"tree-id": "ta", "is-root": "true"});
    let labels = |labels: Value| -> Value {
        let labels = labels.as_object().unwrap().clone().into_iter();
        labels.map(|(key, text)| (format!("quota.scheduling.koordinator.sh/{key}"), text)).collect()
    };
    world.quota("q1", "5", "10", &json!({}));
    world.quota("qa", "5", "10", &json!({"labels": labels(root)}));
    assert_eq!(notes.lock().len(), 4, "two for each quota");
}
