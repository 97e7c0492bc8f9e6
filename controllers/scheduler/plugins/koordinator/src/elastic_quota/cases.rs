//! Cases of the corpus, restated: an engine of this plugin and DefaultPreemption, quotas and pods.

mod gates;
mod hooks;
mod names;
mod status_updates;

use std::{any::TypeId, sync::Arc, time::Duration};

use koord_config::scheduler::{CoschedulingArgs, DefaultPreemptionArgs};
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_scheduler_engine::{Engine, Outcome, Refused, queue::Timings};
use koord_scheduler_framework::{
    AttemptState, Plugin, PreFilter as _, Profile, ServiceEndpoint as _,
    object::Object,
    pod::{Pod, Template},
};
use koord_scheduler_plugins_kubernetes::{DefaultPreemption, NodeResourcesFit};
use koord_types::elastic_quota::ElasticQuota;
use serde_json::{Value, json};

use super::*;
use crate::Coscheduling;

struct World {
    engine: Engine,
    seconds: u64,
}

impl World {
    fn new(settings: QuotaSettings) -> Self {
        Self::of(vec![
            Arc::new(NodeResourcesFit::default()),
            Arc::new(ElasticQuotaPlugin::from(settings)),
            Arc::new(DefaultPreemption::new(&DefaultPreemptionArgs::default())),
        ])
    }

    /// One node of 100 cores. The first of the plugins filters, and the others preempt.
    fn of(plugins: Vec<Arc<dyn Plugin>>) -> Self {
        let profile = Profile { filters: vec![0], post_filters: vec![1, 2], ..Profile::of("test", plugins) };
        let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        let mut world = Self { engine, seconds: 0 };
        let allocatable = json!({"cpu": "100", "memory": "400Gi", "pods": "110"});
        let now = world.now();
        world
            .engine
            .set_node(koord_scheduler_testing::node("n1", &json!({"status": {"allocatable": allocatable}})), now);
        world
    }

    fn now(&self) -> Moment {
        Moment::at(Duration::from_secs(self.seconds))
    }

    fn tick(&mut self, seconds: u64) {
        self.seconds = seconds;
        self.engine.tick(jiff::Timestamp::from_second(i64::try_from(seconds).unwrap()).unwrap());
    }

    fn quota(&mut self, name: &str, min: &str, max: &str, metadata: &Value) {
        let mut metadata = metadata.clone();
        metadata["name"] = json!(name);
        metadata["namespace"] = json!("ns");
        let amounts = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
        let spec = json!({"min": amounts(min, "10Gi"), "max": amounts(max, "400Gi")});
        let quota: ElasticQuota = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
        let now = self.now();
        let object = Object::new(ObjectKey::new("ns", name), Uid::from(name), false, Arc::new(quota));
        self.engine.set_object(object, now);
    }

    fn create(&mut self, pod: Arc<Pod>) -> Outcome {
        let now = self.now();
        self.engine.set_pod(pod, now);
        self.attempt().expect("an attempt")
    }

    fn attempt(&mut self) -> Option<Outcome> {
        let now = self.now();
        self.engine.attempt(now).map(|attempt| attempt.outcome)
    }

    fn place(&mut self, pod: Arc<Pod>) {
        assert!(matches!(self.create(pod), Outcome::Bind { .. }));
    }

    fn refuse(&mut self, pod: Arc<Pod>) -> Refused {
        match self.create(pod) {
            Outcome::Refused(refused) => refused,
            other => panic!("{other:?}"),
        }
    }

    fn delete(&mut self, pod: &str) {
        let now = self.now();
        self.engine.remove_pod(&Uid::from(pod), now);
    }

    /// Whether a pod is placed after some time.
    fn revives(&mut self) -> bool {
        self.seconds += 60;
        matches!(self.attempt(), Some(Outcome::Bind { .. }))
    }
}

fn pod(name: &str, quota: &str, cpu: &str, priority: i32) -> Arc<Pod> {
    let requests = json!({"cpu": cpu, "memory": "1Gi"});
    let spec = json!({"containers": [{"resources": {"requests": requests}}], "schedulerName": "test"});
    let pod = koord_scheduler_testing::pod(name, &spec);
    let label = [("quota.scheduling.koordinator.sh/name", quota)].into_iter().filter(|(_, name)| !name.is_empty());
    let template = Template { priority, labels: label.collect(), ..Template::clone(&pod.template) };
    Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&pod) })
}

fn with(pod: &Arc<Pod>, change: impl FnOnce(&mut Template)) -> Arc<Pod> {
    let mut template = Template::clone(&pod.template);
    change(&mut template);
    Arc::new(Pod { template: Arc::new(template), ..Pod::clone(pod) })
}

#[test]
fn profiles_share_the_quotas_by_the_arguments_of_the_first() {
    let admitted = |limits: [&str; 2]| {
        let plugins = limits.map(|cpu| {
            let default_max = [("cpu", cpu.parse().unwrap())].into_iter().collect();
            ElasticQuotaPlugin::from(QuotaSettings { default_max, ..QuotaSettings::default() })
        });
        let mut cluster = Cluster::default();
        plugins.iter().map(PluginState::state).for_each(|state| cluster.add_state(state));
        let pod = pod("p", "", "10", 0);
        let class = cluster.class(&pod.template);
        let request = Request { pod: &pod, class: &class, plugins: &[], state: &AttemptState::default() };
        plugins.map(|plugin| plugin.pre_filter(&request, &cluster).is_ok())
    };
    assert_eq!((admitted(["1", "20"]), admitted(["20", "1"])), ([false, false], [true, true]));
}

fn victims(refused: &Refused) -> Vec<&str> {
    refused.victims.iter().map(|victim| victim.key.name()).collect()
}

const SHORT: &str = "0/1 nodes are available: Insufficient quotas, quotaName: q1, runtime: cpu:10,memory:2Gi, \
                     used: cpu:6,memory:1Gi, pod's request: cpu:6,memory:1Gi, exceedDimensions: [cpu].";

const EXPECTED: &str = " preemption: expected at least one victim pod on node \"n1\"";

#[test]
fn quotas_are_shown_by_tree_and_with_their_pods() {
    let mut world = World::new(QuotaSettings { has_trees: true, ..QuotaSettings::default() });
    world.quota("q1", "5", "10", &json!({}));
    world.quota("qa", "5", "10", &json!({"labels": {"quota.scheduling.koordinator.sh/tree-id": "ta"}}));
    world.place(pod("a", "q1", "6", 0));
    world.refuse(pod("b", "q1", "6", 0));
    let plugin = ElasticQuotaPlugin::from(QuotaSettings::default());
    let shown = |path: &[&str], query: &[(&str, &str)]| {
        plugin.serve(path, &query.iter().copied().collect(), world.engine.cluster())
    };
    let pods = [("includePods", "true")];
    let requested = json!({"cpu": "6", "memory": "1Gi"});
    let expected = json!({
        "ns/a": {"isAssigned": true, "resource": requested},
        "ns/b": {"isAssigned": false, "resource": requested},
    });
    assert_eq!(shown(&["quotas", "q1"], &pods).unwrap()["podCache"], expected);
    assert_eq!(shown(&["quotas"], &pods).unwrap()["q1"]["podCache"], expected);
    assert_eq!(shown(&["quotas", "q1"], &[]).unwrap()["podCache"], json!({}), "only where it is asked for");
    let names = |shown: Value| shown.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(shown(&["quotas"], &[("tree", "ta")]).unwrap()), ["qa"]);
    assert_eq!(shown(&["quotas"], &[("tree", "none")]), Ok(json!({})));
    let unknown = ServiceError::NotFound("cannot find quota q2".to_owned());
    assert_eq!(
        (shown(&["quotas", "q2"], &pods), shown(&["quota"], &pods)),
        (Err(unknown), Err(ServiceError::UnknownPath))
    );
}

#[test]
fn a_pod_waits_until_its_quota_suffices() {
    let full = || {
        let mut world = World::new(QuotaSettings::default());
        world.quota("q1", "5", "10", &json!({}));
        world.place(pod("a", "q1", "6", 0));
        let none = " preemption: 0/1 nodes are available: 1 No victims found on node n1 for preemptor pod b., \
                    preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
        assert_eq!(world.refuse(pod("b", "q1", "6", 0)).message, format!("{SHORT}{none}"));
        world
    };
    let mut world = full();
    world.delete("a");
    assert!(world.revives(), "a pod of the quota is gone");
    let mut world = full();
    world.quota("q1", "5", "20", &json!({}));
    assert!(world.revives(), "max was raised");
    let mut world = full();
    world.quota("q1", "5", "11", &json!({}));
    assert!(!world.revives(), "not enough");
    let mut world = full();
    let now = world.now();
    world.engine.remove_object(TypeId::of::<ElasticQuota>(), "ns/q1", now);
    assert!(world.revives(), "its pods belong to the default quota then");
}

#[test]
fn pods_that_run_already_and_pods_of_other_schedulers_count() {
    let mut world = World::new(QuotaSettings::default());
    let now = world.now();
    let running = with(&pod("a", "q1", "6", 0), |template| template.scheduler = "other".into());
    world.engine.set_pod(Arc::new(Pod { node: Some("n1".into()), ..Pod::clone(&running) }), now);
    world.quota("q1", "5", "10", &json!({}));
    assert!(world.refuse(pod("b", "q1", "6", 0)).message.starts_with(SHORT));
}

#[test]
fn waiting_pods_request_before_they_are_tried() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "40", "80", &json!({}));
    world.quota("q2", "50", "100", &json!({}));
    let (a, b) = (pod("a", "q2", "55", 0), pod("b", "q1", "40", 0));
    world.place(a);
    let now = world.now();
    world.engine.set_pod(with(&b, |template| template.scheduler = "other".into()), now);
    let message = world.refuse(pod("d", "q2", "10", 0)).message;
    assert!(message.contains("quotaName: q2, runtime: cpu:60,memory:2Gi, used: cpu:55,memory:1Gi"), "{message}");
}

#[test]
fn the_scheduler_s_own_annotations_change_nothing() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "5", "10", &json!({}));
    world.place(pod("a", "q1", "6", 0));
    let forest = std::ptr::from_ref(world.engine.cluster().state::<Quotas>().unwrap().forest());
    let written = json!({"quota.scheduling.koordinator.sh/child-request": r#"{"cpu":"6"}"#});
    world.quota("q1", "5", "10", &json!({"annotations": written}));
    let quotas = world.engine.cluster().state::<Quotas>().unwrap();
    assert!(std::ptr::eq(forest, quotas.forest()));
    assert_eq!(quotas.status("q1").unwrap().used.amount("cpu").value(), 6);
}

#[test]
fn a_higher_pod_evicts_a_lower_one_of_its_quota() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "10", "10", &json!({}));
    world.quota("q2", "10", "10", &json!({}));
    world.place(pod("other", "q2", "6", 1));
    world.place(pod("l", "q1", "6", 5));
    let refused = world.refuse(pod("h", "q1", "6", 10));
    assert_eq!((refused.nominated.as_deref(), victims(&refused)), (Some("n1"), vec!["l"]));
    world.delete("l");
    assert!(world.revives());
}

#[test]
fn a_pod_for_which_quota_and_node_are_short_preempts() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "10", "10", &json!({}));
    world.place(pod("other", "", "90", 100));
    world.place(pod("l", "q1", "6", 5));
    let refused = world.refuse(pod("h", "q1", "6", 10));
    assert_eq!((refused.nominated.as_deref(), victims(&refused)), (Some("n1"), vec!["l"]));
}

#[test]
fn job_preemption_does_not_take_the_place_of_that_within_the_quota() {
    let args = CoschedulingArgs { enable_preemption: true, ..CoschedulingArgs::default() };
    let mut world = World::of(vec![
        Arc::new(NodeResourcesFit::default()),
        Arc::new(Coscheduling::new(&args)),
        Arc::new(ElasticQuotaPlugin::from(QuotaSettings::default())),
    ]);
    world.quota("q1", "10", "10", &json!({}));
    world.place(pod("l", "q1", "6", 5));
    let refused = world.refuse(pod("h", "q1", "6", 10));
    assert_eq!((refused.nominated.as_deref(), victims(&refused)), (Some("n1"), vec!["l"]));
}

#[test]
fn no_more_pods_are_evicted_than_the_quota_needs() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "10", "10", &json!({}));
    let created = |name, created| Arc::new(Pod { created, ..Pod::clone(&pod(name, "q1", "4", 1)) });
    world.place(created("l1", 1));
    world.place(created("l2", 2));
    assert_eq!(victims(&world.refuse(pod("h", "q1", "4", 10))), ["l1"], "which was created first");
}

#[test]
fn no_pod_is_evicted_for_a_resource_that_max_does_not_name() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q2", "1", "10", &json!({}));
    let quota = json!({"metadata": {"name": "q1", "namespace": "ns"}, "spec": {"max": {"cpu": "10"}}});
    let quota: ElasticQuota = serde_json::from_value(quota).unwrap();
    let now = world.now();
    world.engine.set_object(Object::new(ObjectKey::new("ns", "q1"), Uid::from("q1"), false, Arc::new(quota)), now);
    for (name, created) in [("l1", 1), ("l2", 2)] {
        world.place(Arc::new(Pod { created, ..Pod::clone(&pod(name, "q1", "4", 1)) }));
    }
    assert_eq!(victims(&world.refuse(pod("h", "q1", "4", 10))), ["l1"], "q2 alone names the memory");
}

#[test]
fn no_pod_is_evicted_where_that_does_not_help_or_is_not_allowed() {
    let tried = |lower: &dyn Fn(Arc<Pod>) -> Arc<Pod>, higher: Arc<Pod>| {
        let mut world = World::new(QuotaSettings::default());
        world.quota("q1", "10", "10", &json!({}));
        let lower = lower(pod("l", "q1", "6", 5));
        if lower.node.is_some() {
            let now = world.now();
            world.engine.set_pod(lower, now);
        } else {
            world.place(lower);
        }
        let refused = world.refuse(higher);
        assert_eq!(victims(&refused), [""; 0], "{}", refused.message);
        refused.message
    };
    let same = |pod: Arc<Pod>| pod;
    let too_big = tried(&same, pod("h", "q1", "12", 10));
    assert!(too_big.contains("pod's request: cpu:12,memory:1Gi") && too_big.ends_with(EXPECTED), "{too_big}");
    let never = with(&pod("h", "q1", "6", 10), |template| template.preempts = false);
    assert!(tried(&same, never).contains("preemption: not eligible due to preemptionPolicy=Never."));
    assert!(tried(&same, pod("h", "q1", "6", 5)).contains("No victims found on node n1 for preemptor pod h."));
    let firm = |pod: Arc<Pod>| {
        let labels =
            [("quota.scheduling.koordinator.sh/name", "q1"), ("quota.scheduling.koordinator.sh/preemptible", "false")];
        with(&pod, |template| template.labels = labels.into_iter().collect())
    };
    let of_another = |pod: Arc<Pod>| {
        let pod = with(&pod, |template| template.scheduler = "default-scheduler".into());
        Arc::new(Pod { node: Some("n1".into()), ..Pod::clone(&pod) })
    };
    let theirs = tried(&of_another, pod("h", "q1", "6", 10));
    assert!(theirs.contains("No victims found on node n1 for preemptor pod h."), "{theirs}");
    let in_vain = tried(&firm, pod("h", "q1", "6", 10));
    assert_eq!(in_vain, format!("{SHORT}{EXPECTED}"), "the pod fits on the node as it is");
}

#[test]
fn evictions_outside_of_the_quota_and_below_its_min_are_in_vain() {
    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "10", "10", &json!({}));
    world.quota("q2", "10", "10", &json!({}));
    world.place(pod("other", "q2", "6", 1));
    world.place(pod("own", "q1", "6", 10));
    assert_eq!(world.refuse(pod("h", "q1", "6", 10)).message, format!("{SHORT}{EXPECTED}"));

    let mut world = World::new(QuotaSettings::default());
    world.quota("q1", "5", "20", &json!({}));
    world.place(pod("l", "q1", "2", 1));
    let labels =
        [("quota.scheduling.koordinator.sh/name", "q1"), ("quota.scheduling.koordinator.sh/preemptible", "false")];
    let firm = with(&pod("h", "q1", "6", 10), |template| template.labels = labels.into_iter().collect());
    let message = world.refuse(firm).message;
    assert!(message.contains("Insufficient non-preemptible quotas") && message.ends_with(EXPECTED), "{message}");
}

#[test]
fn pods_of_the_default_quota_are_not_evicted_for_it_unless_that_is_allowed() {
    let tried = |protects_default, max: &str| {
        let default_max = [("cpu", max.parse().unwrap())].into_iter().collect();
        let mut world = World::new(QuotaSettings { protects_default, default_max, ..QuotaSettings::default() });
        world.place(pod("l", "", "95", 1));
        victims(&world.refuse(pod("h", "", "10", 10))).len()
    };
    assert_eq!((tried(true, "100"), tried(false, "100")), (0, 1));
    assert_eq!(tried(true, "200"), 1, "the node lacks room, and DefaultPreemption makes it");
}
