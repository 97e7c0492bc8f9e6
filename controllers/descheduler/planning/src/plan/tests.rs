use std::sync::Arc;

use jiff::Timestamp;
use koord_descheduler_framework::{
    Balance, Cluster, CoolDown, Eviction, Memory, Outlook, Pass, Planning, Plugin, ReasonCode, Registration, Step,
    StrategyError, Successor,
};
use koord_descheduler_testing::{Everything, cluster, descheduler, node, pod, with};
use koord_program::{gates::Gates, plan::Source};
use koord_scheduler_assembly::{Configuration, GATES, snapshot};
use serde_json::{Value, json};

use super::*;
use crate::document;

/// Evicts these pods, in this order, from whichever node they are on.
struct Chosen(Vec<&'static str>);

impl Plugin for Chosen {
    fn name(&self) -> &'static str {
        "Chosen"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).balance(&self)
    }
}

impl Balance for Chosen {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        for name in &self.0 {
            if let Some(id) = pass.cluster().pod_id(&format!("default/{name}")) {
                pass.evict(id, ReasonCode::FailedPod.reason("test"), "");
            }
        }
        Ok(())
    }
}

/// Evicts pods from nodes with this label.
struct FromLabelled(&'static str);

impl Plugin for FromLabelled {
    fn name(&self) -> &'static str {
        "FromLabelled"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).balance(&self)
    }
}

impl Balance for FromLabelled {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        let cluster = pass.cluster();
        let labelled = |id| {
            cluster.node_of(id).and_then(|node| cluster.node(node)).is_some_and(|node| node.label(self.0).is_some())
        };
        for id in cluster.pods().map(|(id, _)| id).filter(|id| labelled(*id)).collect::<Vec<_>>() {
            pass.evict(id, ReasonCode::FailedPod.reason("test"), "");
        }
        Ok(())
    }
}

struct World {
    cluster: Cluster,
    engine: Option<Engine>,
    history: History,
    now: Timestamp,
}

impl World {
    async fn of(objects: &[Value]) -> Self {
        let configuration = Configuration::shipped_for_all_pods().unwrap();
        let source = Source::Files(objects.to_vec());
        let now = Timestamp::UNIX_EPOCH;
        let engine = snapshot(&configuration, &Gates::new(GATES), source, now).await.unwrap();
        Self { cluster: cluster(objects), engine: Some(engine), history: History::default(), now }
    }

    fn plan_with(&self, planning: Planning, strategy: impl Plugin, results: &[bool]) -> Plan {
        let mut descheduler = descheduler(strategy, Everything);
        descheduler.profiles[0].planning = planning;
        let memory = Memory::default();
        let input = Input { results, ..Input::new(&self.cluster, &memory, self.now) };
        let foresight = Foresight { scheduler: self.engine.as_ref(), history: &self.history };
        plan(&descheduler, &input, foresight, &mut EvictedAgain::default())
    }

    fn plan(&self, planning: Planning, pods: &[&'static str]) -> Plan {
        self.plan_with(planning, Chosen(pods.to_vec()), &[])
    }
}

fn evictions(plan: &Plan) -> Vec<&Eviction> {
    plan.steps.iter().filter_map(Step::eviction).collect()
}

fn objections<'p>(evictions: impl IntoIterator<Item = &'p Eviction>) -> Vec<Option<ReasonCode>> {
    evictions.into_iter().map(|eviction| eviction.outlook.objection.as_ref().map(|objection| objection.code)).collect()
}

fn names<'p>(evictions: impl IntoIterator<Item = &'p Eviction>) -> Vec<&'p str> {
    evictions.into_iter().map(|eviction| eviction.pod.key.name()).collect()
}

fn stored(object: &Value, api_version: &str) -> Value {
    with(object, &json!({"apiVersion": api_version, "metadata": {"resourceVersion": "1"}}))
}

fn named_node(name: &str, cpu: &str) -> Value {
    let amounts = json!({"cpu": cpu, "memory": "16Gi", "pods": "110"});
    let change = json!({"metadata": {"uid": name}, "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}});
    stored(&with(&node(name), &change), "v1")
}

fn requesting(name: &str, on: &str, cpu: &str) -> Value {
    let container = json!({"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}});
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let change = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}, "status": {"conditions": ready}});
    stored(&with(&pod(name, on), &change), "v1")
}

/// One pod takes two of n2's three cores, so that the second successor can only come back.
fn room_for_one() -> Vec<Value> {
    vec![
        named_node("n1", "6"),
        named_node("n2", "3"),
        requesting("a", "n1", "2"),
        requesting("b", "n1", "2"),
        requesting("c", "n1", "2"),
    ]
}

#[tokio::test]
async fn each_eviction_sees_what_became_of_those_before() {
    let world = World::of(&room_for_one()).await;
    let plan = world.plan(Planning::Report, &["a", "b"]);
    let successors: Vec<_> =
        evictions(&plan).iter().map(|eviction| eviction.outlook.successor.clone().unwrap()).collect();
    assert!(successors.contains(&Successor::On("n2".into())), "{successors:?}");
    assert!(successors.contains(&Successor::ComesBack("n1".into())), "{successors:?}");
    assert!(objections(evictions(&plan)).contains(&Some(ReasonCode::ComesBack)));
    assert!(plan.spared.is_empty(), "objections change nothing");
}

#[tokio::test]
async fn a_pod_whose_eviction_is_not_worth_it_stays_and_changes_nothing_for_others() {
    let mut objects = room_for_one();
    // b fits n1 alone, so c gets the place on n2 although b was tried before.
    objects[3] = with(&objects[3], &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "n1"}}}));
    let world = World::of(&objects).await;
    let plan = world.plan(Planning::Enforce, &["b", "c", "a"]);
    let evicted = names(evictions(&plan));
    assert_eq!((evicted.len(), names(&plan.spared).len()), (1, 2), "{:?}", plan.spared);
    assert_eq!(evictions(&plan)[0].outlook.successor, Some(Successor::On("n2".into())));
    assert!(names(&plan.spared).contains(&"b"));
    assert!(objections(&plan.spared).iter().all(|code| *code == Some(ReasonCode::ComesBack)));
    assert_eq!(objections(evictions(&plan)), [None]);
}

#[tokio::test]
async fn a_successor_that_fits_nowhere_stays_pending() {
    let cordoned = with(&named_node("n1", "8"), &json!({"spec": {"unschedulable": true}}));
    let world = World::of(&[cordoned, named_node("n2", "1"), requesting("a", "n1", "2")]).await;
    let plan = world.plan(Planning::Report, &["a"]);
    let [Step::Evict(eviction)] = &*plan.steps else { panic!("{:?}", plan.steps) };
    assert_eq!(objections([&**eviction]), [Some(ReasonCode::StaysPending)]);
    let document = document(&plan.steps[0], &world.cluster);
    assert_eq!(document["objection"]["code"], "StaysPending");
    assert_eq!(document["frees"], json!({"cpu": "2"}));
    assert_eq!(world.plan(Planning::Enforce, &["a"]).steps, []);
}

#[tokio::test]
async fn a_budget_lets_as_many_go_as_it_allows() {
    let budget = json!({
        "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "default", "uid": "b"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
    });
    let mut objects = room_for_one();
    objects[1] = named_node("n2", "64");
    objects[0] = with(&objects[0], &json!({"spec": {"unschedulable": true}}));
    objects.push(stored(&budget, "policy/v1"));
    let world = World::of(&objects).await;
    let expected = [None, Some(ReasonCode::BreaksBudget)];
    assert_eq!(objections(evictions(&world.plan(Planning::Report, &["a", "b"]))), expected);
    let plan = world.plan(Planning::Enforce, &["a", "b"]);
    assert_eq!((names(evictions(&plan)), names(&plan.spared)), (vec!["a"], vec!["b"]));
    // What an objection spares leaves the budget to the next.
    objects[2] = with(&objects[2], &json!({"spec": {"nodeSelector": {"no": "node"}}}));
    let plan = World::of(&objects).await.plan(Planning::Enforce, &["a", "b"]);
    assert_eq!((names(evictions(&plan)), names(&plan.spared)), (vec!["b"], vec!["a"]));
}

#[tokio::test]
async fn an_eviction_that_failed_changes_nothing_for_others() {
    let mut objects = room_for_one();
    objects[0] = with(&objects[0], &json!({"spec": {"unschedulable": true}}));
    let world = World::of(&objects).await;
    let strategy = || Chosen(vec!["a", "b"]);
    let planned = world.plan_with(Planning::Enforce, strategy(), &[]);
    assert_eq!(names(evictions(&planned)), ["a"], "n2 takes one");
    let after_failure = world.plan_with(Planning::Enforce, strategy(), &[false]);
    assert_eq!(names(evictions(&after_failure)), ["a", "b"], "the place of a's successor is free");
}

#[tokio::test]
async fn a_pod_whose_successor_would_be_evicted_again_stays() {
    let labelled = |name: &str| with(&named_node(name, "8"), &json!({"metadata": {"labels": {"old": "yes"}}}));
    let cordoned = with(&labelled("n1"), &json!({"spec": {"unschedulable": true}}));
    let strategy = || FromLabelled("old");
    let in_vain = World::of(&[cordoned.clone(), labelled("n2"), requesting("a", "n1", "2")]).await;
    let plan = in_vain.plan_with(Planning::Enforce, strategy(), &[]);
    assert_eq!((plan.steps, objections(&plan.spared)), (vec![], vec![Some(ReasonCode::RelievesNothing)]));
    let plan = in_vain.plan_with(Planning::Report, strategy(), &[]);
    assert_eq!(objections(evictions(&plan)), [Some(ReasonCode::RelievesNothing)]);
    let of_use = World::of(&[cordoned, named_node("n2", "8"), requesting("a", "n1", "2")]).await;
    assert_eq!(objections(evictions(&of_use.plan_with(Planning::Enforce, strategy(), &[]))), [None]);
}

#[tokio::test]
async fn a_pod_that_has_replaced_an_evicted_one_cools_down() {
    let mut objects = room_for_one();
    objects[0] = with(&objects[0], &json!({"spec": {"unschedulable": true}}));
    let mut world = World::of(&objects).await;
    let plan = world.plan(Planning::Enforce, &["a"]);
    let evicted = evictions(&plan)[0].clone();
    let pod = Arc::clone(world.cluster.pod(world.cluster.pod_id("default/a").unwrap()).unwrap());
    world.history.add(&pod, &evicted, CoolDown::default(), world.now);
    let minutes = |minutes: i64| Timestamp::from_second(minutes * 60).unwrap();
    world.now = minutes(5);
    let plan = world.plan(Planning::Enforce, &["b"]);
    assert_eq!(objections(&plan.spared), [Some(ReasonCode::CoolingDown)]);
    let text = plan.spared[0].outlook.objection.as_ref().unwrap().to_string();
    assert!(text.contains("a at 1970-01-01T00:00:00Z") && text.contains("until 1970-01-01T00:10:00Z"), "{text}");
    world.now = minutes(11);
    assert_eq!(objections(evictions(&world.plan(Planning::Enforce, &["b"]))), [None]);
}

#[tokio::test]
async fn nothing_comes_instead_of_a_pod_without_a_controller() {
    let bare = with(&requesting("a", "n1", "1"), &json!({"metadata": {"ownerReferences": null}}));
    let world = World::of(&[named_node("n1", "8"), named_node("n2", "8"), bare]).await;
    let plan = world.plan(Planning::Enforce, &["a"]);
    assert_eq!(evictions(&plan)[0].outlook, Outlook { successor: Some(Successor::None), objection: None });
}

#[tokio::test]
async fn a_profile_without_planning_foresees_nothing() {
    let world = World::of(&room_for_one()).await;
    let plan = world.plan(Planning::Off, &["a", "b"]);
    assert!(evictions(&plan).iter().all(|eviction| eviction.outlook == Outlook::default()), "{:?}", plan.steps);
}

#[tokio::test]
async fn what_cannot_be_followed_is_not_evicted_where_planning_is_enforced() {
    let world = World { engine: None, ..World::of(&room_for_one()).await };
    let plan = world.plan(Planning::Enforce, &["a"]);
    assert_eq!((plan.steps.len(), objections(&plan.spared)), (0, vec![Some(ReasonCode::NotFollowed)]));
    assert_eq!(objections(evictions(&world.plan(Planning::Report, &["a"]))), [None]);
}

#[tokio::test]
async fn the_engine_that_is_asked_stays_as_it_is() {
    let world = World::of(&room_for_one()).await;
    let plans = [(); 2].map(|()| world.plan(Planning::Enforce, &["a", "b", "c"]));
    assert_eq!(plans[0].steps, plans[1].steps);
    assert_eq!(plans[0].spared, plans[1].spared);
}
