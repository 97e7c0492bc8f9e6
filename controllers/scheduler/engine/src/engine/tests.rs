mod named;
mod overallocation;
mod timing;

use std::{sync::Arc, time::Duration};

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{
    AllocationRestore, Attempted, EnqueueExtensions, Filter, NodeFilter, Operands, Orders, Permit, PermitResult,
    Plugin, PluginState, PostFilter, PostFilterResult, PreBind, PreEnqueue, PreFilter, PreparedFilter, Reason,
    ReasonCode, Refusal, Registration, Rejection, Request, Reserve,
    cluster::{Placed, state::State},
    columns::Row,
    event::Events,
    hold::Holds,
    node::Node,
    pod::Template,
};
use koord_scheduling::ResourceId;

use super::*;

/// Fits pods by their number.
struct PodLimit;

impl Plugin for PodLimit {
    fn name(&self) -> &'static str {
        "PodLimit"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).pre_enqueue(&self).enqueue_extensions(&self).filter(&self)
    }
}

impl PreEnqueue for PodLimit {
    fn pre_enqueue(&self, pod: &Pod, _: &Cluster) -> Result<(), Reason> {
        if pod.gates.is_empty() { Ok(()) } else { Err(ReasonCode::SchedulingGated.reason("waits")) }
    }
}

impl EnqueueExtensions for PodLimit {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED | Events::POD_REMOVED
    }
}

impl Filter for PodLimit {
    fn prepare_filter(&self, _: &Request<'_>, _: &Cluster) -> PreparedFilter {
        PreparedFilter::Nodes(Box::new(PodLimit))
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<Reason> {
        ReasonCode::TooManyPods.reason("Too many pods").into()
    }

    fn details(&self, _: &Refusal, request: &Request<'_>, cluster: &Cluster, row: Row) -> Operands {
        let pods = cluster.allocatable(ResourceId::PODS, row);
        vec![("pods", pods.to_string()), ("for", request.pod.key.name().to_owned())]
    }
}

impl NodeFilter for PodLimit {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let capacity = cluster.allocatable(ResourceId::PODS, row) - cluster.requested(ResourceId::PODS, row);
        if capacity > 0 { Ok(()) } else { Err(Refusal::resolvable(0, 0)) }
    }
}

fn engine() -> Engine {
    let profile = Profile { filters: vec![0], ..Profile::of("test", vec![Arc::new(PodLimit)]) };
    Engine::new(vec![profile], Timings::default(), Random::seeded(1))
}

fn node(name: &str, pods: u32) -> Arc<Node> {
    let allocatable = [("pods", pods.to_string().parse().unwrap())].into_iter().collect();
    Arc::new(Node { name: name.into(), allocatable, ..Node::default() })
}

fn pod(name: &str, scheduler: &str, node: Option<&str>) -> Arc<Pod> {
    Arc::new(Pod {
        key: ObjectKey::new("ns", name),
        uid: Uid::from(name),
        template: Arc::new(Template { scheduler: scheduler.into(), ..Template::default() }),
        node: node.map(Arc::from),
        ..Pod::default()
    })
}

fn at(second: u64) -> Moment {
    Moment::at(Duration::from_secs(second))
}

#[test]
fn a_pod_that_is_given_to_another_scheduler_is_tried_no_more() {
    let mut engine = engine();
    engine.set_pod(pod("a", "test", None), at(0));
    assert!(matches!(engine.attempt(at(0)).unwrap().outcome, Outcome::Refused(_)), "there is no node");
    engine.set_pod(pod("a", "other", None), at(1));
    engine.set_node(node("n", 1), at(1));
    assert!(engine.attempt(at(60)).is_none());
    engine.set_pod(pod("a", "test", None), at(61));
    assert!(matches!(engine.attempt(at(61)).unwrap().outcome, Outcome::Bind { .. }), "it has come back");
}

#[test]
fn a_pod_that_is_given_to_another_scheduler_while_it_is_being_bound_is_tried_no_more() {
    let mut engine = engine();
    engine.set_node(node("n", 1), at(0));
    engine.set_pod(pod("a", "test", None), at(0));
    let attempt = engine.attempt(at(0)).unwrap();
    engine.set_pod(pod("a", "other", None), at(1));
    assert!(engine.bind_failed(&attempt, at(2)));
    assert_eq!((next(&mut engine, at(60)), engine.queue().depths().backoff), ("-".to_owned(), 0));
    engine.set_pod(pod("a", "test", None), at(61));
    assert_eq!(next(&mut engine, at(61)), "a on n", "it has come back");
}

#[test]
fn a_pod_that_is_being_deleted_leaves_the_queue_untried_when_its_turn_comes() {
    let mut engine = engine();
    let going = |name: &str| Arc::new(Pod { deleting: true, ..Pod::clone(&pod(name, "test", None)) });
    for name in ["a", "b"] {
        engine.set_pod(going(name), at(0));
    }
    engine.set_pod(pod("c", "test", None), at(1));
    let skipped = |engine: &Engine| engine.skipped().iter().map(|pod| pod.key.name()).collect::<Vec<_>>().join(" ");
    assert_eq!(next(&mut engine, at(1)), "c: no nodes available to schedule pods");
    assert_eq!(skipped(&engine), "a b");
    assert!(!engine.queue().contains(&Uid::from("a")));
    assert_eq!((next(&mut engine, at(1)), skipped(&engine)), ("-".to_owned(), String::new()));
    engine.set_pod(going("c"), at(2));
    assert_eq!((next(&mut engine, at(60)), skipped(&engine)), ("-".to_owned(), "c".to_owned()));
}

fn next(engine: &mut Engine, now: Moment) -> String {
    match engine.attempt(now) {
        None => "-".to_owned(),
        Some(Attempt { pod, outcome: Outcome::Bind { node, .. }, .. }) => format!("{} on {node}", pod.key.name()),
        Some(Attempt { pod, outcome: Outcome::Refused(refused), .. }) => {
            format!("{}: {}", pod.key.name(), refused.message)
        }
        Some(Attempt { pod, outcome: Outcome::Waiting { node }, .. }) => format!("{} waits on {node}", pod.key.name()),
        Some(Attempt { pod, outcome: Outcome::ExtenderCall { .. }, .. }) => {
            format!("{} is asked about", pod.key.name())
        }
    }
}

#[test]
fn pods_are_placed_while_nodes_have_capacity_and_wait_otherwise() {
    let mut engine = engine();
    for name in ["a", "b", "c"] {
        engine.set_pod(pod(name, "test", None), at(0));
    }
    assert_eq!(next(&mut engine, at(0)), "a: no nodes available to schedule pods");
    engine.set_node(node("n1", 1), at(0));
    assert_eq!(next(&mut engine, at(0)), "b on n1");
    assert_eq!(next(&mut engine, at(0)), "c: 0/1 nodes are available: 1 Too many pods.");
    engine.set_pod(pod("b", "test", Some("n1")), at(1));
    engine.remove_pod(&Uid::from("b"), at(3));
    assert_eq!(next(&mut engine, at(3)), "a on n1", "it had no reason to wait and has paused");
    assert_eq!(next(&mut engine, at(3)), "c: 0/1 nodes are available: 1 Too many pods.");
    assert_eq!(next(&mut engine, at(3)), "-");
    engine.set_node(node("n2", 1), at(9));
    assert_eq!(next(&mut engine, at(9)), "c on n2");
    assert_eq!(engine.cluster().discrepancies(), []);
}

#[test]
fn the_details_of_a_refusal_are_those_of_its_time() {
    let mut engine = engine();
    engine.set_node(node("n1", 0), at(0));
    engine.set_pod(pod("a", "test", None), at(0));
    next(&mut engine, at(0));
    engine.set_node(node("n1", 4), at(1));
    let records = engine.verdicts(&ObjectKey::new("ns", "a"));
    let Ending::Refused { by, .. } = &records[0].ending else { panic!("{records:?}") };
    let reasons = by[0].reasons(engine.profile("test"), engine.cluster());
    assert_eq!([reasons[0].operand("pods"), reasons[0].operand("for")], [Some("0"), Some("a")]);
}

#[test]
fn pods_of_others_are_counted_and_not_tried() {
    let mut engine = engine();
    engine.set_node(node("n1", 1), at(0));
    engine.set_pod(pod("theirs", "other", None), at(0));
    assert_eq!(next(&mut engine, at(0)), "-");
    engine.set_pod(pod("theirs", "other", Some("n1")), at(0));
    engine.set_pod(pod("ours", "test", None), at(0));
    assert_eq!(next(&mut engine, at(0)), "ours: 0/1 nodes are available: 1 Too many pods.");
}

#[test]
fn of_one_name_there_is_one_pod() {
    let mut engine = engine();
    engine.set_node(node("n1", 1), at(0));
    let of_uid = |uid: &str, node: Option<&str>| {
        let pod = pod("a", "test", node);
        Arc::new(Pod { uid: Uid::from(uid), ..Pod::clone(&pod) })
    };
    for uid in ["1", "2", "3"] {
        engine.set_pod(of_uid(uid, (uid == "1").then_some("n1")), at(0));
    }
    let key = ObjectKey::new("ns", "a");
    engine.remove_others(&key, Some(&Uid::from("3")), at(0));
    assert_eq!(engine.attempt(at(0)).map(|attempt| attempt.pod.uid.to_string()).as_deref(), Some("3"));
    engine.remove_others(&key, None, at(0));
    assert!(engine.cluster().pods().next().is_none() && engine.queue().depths().active == 0);
    assert_eq!(engine.cluster().pending().count(), 0);
}

#[test]
fn a_failed_binding_releases_the_resources() {
    let mut engine = engine();
    engine.set_node(node("n1", 1), at(0));
    engine.set_pod(pod("a", "test", None), at(0));
    let attempt = engine.attempt(at(0)).unwrap();
    engine.bind_failed(&attempt, at(0));
    assert_eq!(
        (engine.cluster().pods_on(engine.cluster().row("n1").unwrap()).count(), engine.queue().depths().backoff),
        (0, 1)
    );
    assert_eq!(engine.wake_at(), Some(at(2)));
    assert_eq!(next(&mut engine, at(2)), "a on n1");
    let again = Attempt { pod: pod("a", "test", None), ..attempt };
    engine.set_pod(pod("a", "test", Some("n1")), at(3));
    engine.bind_failed(&again, at(3));
    assert_eq!(next(&mut engine, at(9)), "-", "the binding has arrived, whatever the answer was");
}

/// Lets pods wait in pairs: the second releases the first. Keeps how many pods it has in places.
#[derive(Default)]
struct Pairs;

#[derive(Clone, Debug, Default, PartialEq)]
struct Placements(Vec<String>);

impl State for Placements {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn placed(&mut self, _: &Cluster, placed: &Placed) {
        let number = placed.holds.get::<u32>().copied().unwrap_or_default();
        self.0.push(format!("{} has {number}", placed.pod.key.name()));
    }

    fn removed(&mut self, _: &Cluster, placed: &Placed) {
        let begin = format!("{} ", placed.pod.key.name());
        self.0.retain(|known| !known.starts_with(&begin));
    }
}

impl Plugin for Pairs {
    fn name(&self) -> &'static str {
        "Pairs"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .enqueue_extensions(&self)
            .pre_filter(&self)
            .reserve(&self)
            .permit(&self)
            .pre_bind(&self)
            .allocation_restore(&self)
            .state(&self)
    }
}

impl EnqueueExtensions for Pairs {
    fn events_to_register(&self) -> Events {
        Events::POD_REMOVED
    }
}

impl PreFilter for Pairs {
    fn pre_filter(&self, request: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
        match request.pod.key.name() {
            "never" => Err(Rejection::unresolvable(ReasonCode::PluginSpecific.reason("it is never admitted"))),
            "broken" => Err(Rejection::error(ReasonCode::PluginSpecific.reason("something broke"))),
            _ => Ok(()),
        }
    }
}

impl Reserve for Pairs {
    fn reserve(&self, request: &Request<'_>, _: &Cluster, _: Row, holds: &mut Holds) -> Result<(), Rejection> {
        match request.pod.key.name() {
            "greedy" => Err(Rejection::unschedulable(ReasonCode::PluginSpecific.reason("there is not enough"))),
            "clumsy" => Err(Rejection::error(ReasonCode::PluginSpecific.reason("something fell"))),
            _ => {
                holds.set(7_u32);
                Ok(())
            }
        }
    }
}

impl Permit for Pairs {
    fn permit(&self, request: &Request<'_>, cluster: &mut Cluster, orders: &mut Orders) -> PermitResult {
        if request.pod.key.name() == "patient" {
            return PermitResult::Wait(Duration::from_hours(1));
        }
        let row = cluster.pod(&request.pod.uid).map(|placed| placed.row).unwrap();
        let first = cluster.pods_on(row).find(|placed| placed.pod.node.is_none() && placed.pod != *request.pod);
        match first.map(|placed| placed.pod.uid.clone()) {
            None => PermitResult::Wait(Duration::from_secs(90)),
            Some(first) => {
                orders.allow.push(first);
                PermitResult::Allow
            }
        }
    }
}

impl PreBind for Pairs {
    fn pre_bind(&self, _: &Request<'_>, placed: &Placed, _: &Cluster, patch: &mut Patch) {
        patch.annotate("number", placed.holds.get::<u32>().unwrap().to_string());
    }
}

impl AllocationRestore for Pairs {
    fn restore_allocation(&self, pod: &Pod, holds: &mut Holds) {
        if let Some(number) = pod.given.get("number").and_then(|number| number.parse::<u32>().ok()) {
            holds.set(number);
        }
    }
}

impl PluginState for Pairs {
    fn state(&self) -> Box<dyn State> {
        Box::<Placements>::default()
    }
}

fn paired() -> Engine {
    let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(PodLimit), Arc::new(Pairs)];
    let profile = Profile { filters: vec![0], ..Profile::of("test", plugins) };
    let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
    engine.set_node(node("n1", 2), at(0));
    engine
}

fn placements(engine: &Engine) -> Vec<String> {
    engine.cluster().state::<Placements>().unwrap().0.clone()
}

#[test]
fn a_pod_waits_in_its_place_until_another_releases_it() {
    let mut engine = paired();
    engine.set_pod(pod("a", "test", None), at(0));
    engine.set_pod(pod("b", "test", None), at(0));
    assert_eq!(next(&mut engine, at(0)), "a waits on n1");
    assert_eq!((engine.waiting().count(), placements(&engine)), (1, vec!["a has 7".to_owned()]));
    let Some(Attempt { outcome: Outcome::Bind { patch, .. }, pod, .. }) = engine.attempt(at(1)) else { panic!() };
    assert_eq!((pod.key.name(), &patch.annotations["number"]), ("a", &Some("7".to_owned())), "the first comes first");
    assert_eq!(next(&mut engine, at(1)), "b on n1");
    assert_eq!(next(&mut engine, at(1)), "-");
    // What the API server shows then is what was assumed, and more exact where it says so.
    let mut bound = Pod::clone(&self::pod("a", "test", Some("n1")));
    bound.given = [("number", "8")].into_iter().collect();
    engine.set_pod(Arc::new(bound), at(2));
    engine.set_pod(self::pod("b", "test", Some("n1")), at(2));
    assert_eq!(placements(&engine), ["a has 8", "b has 7"]);
    engine.remove_pod(&Uid::from("a"), at(3));
    assert_eq!(placements(&engine), ["b has 7"]);
}

#[test]
fn who_waits_for_too_long_gives_its_place_back_and_is_not_its_own_help() {
    let mut engine = paired();
    engine.set_pod(pod("a", "test", None), at(0));
    assert_eq!(next(&mut engine, at(0)), "a waits on n1");
    assert_eq!((engine.has_work(at(89)), engine.wake_at()), (false, Some(at(90))));
    assert!(engine.has_work(at(90)));
    let refused = "a: 0/1 nodes are available: 1 rejected due to timeout after waiting 1m30s at plugin Pairs.";
    assert_eq!(next(&mut engine, at(90)), refused);
    let records = engine.verdicts(&ObjectKey::new("ns", "a"));
    let Ending::Refused { by, .. } = &records[0].ending else { panic!("{records:?}") };
    let reasons = by[0].reasons(engine.profile("test"), engine.cluster());
    assert_eq!((reasons[0].code, reasons[0].operand("waited")), (ReasonCode::PermitTimeout, Some("1m30s")));
    assert_eq!((placements(&engine).len(), engine.waiting().count()), (0, 0));
    assert_eq!((next(&mut engine, at(95)), engine.queue().depths().parked), ("-".to_owned(), 1));
    engine.set_pod(pod("x", "other", Some("n1")), at(95));
    engine.remove_pod(&Uid::from("x"), at(96));
    assert_eq!(next(&mut engine, at(96)), "a waits on n1");
}

#[test]
fn a_pod_that_is_deleted_while_it_waits_is_gone() {
    let mut engine = paired();
    engine.set_pod(pod("a", "test", None), at(0));
    assert_eq!(next(&mut engine, at(0)), "a waits on n1");
    engine.remove_pod(&Uid::from("a"), at(1));
    assert_eq!(
        (next(&mut engine, at(200)), engine.waiting().count(), placements(&engine).len()),
        ("-".to_owned(), 0, 0)
    );
    assert_eq!(engine.cluster().pending().count(), 0);
}

#[test]
fn no_pod_waits_longer_than_fifteen_minutes() {
    let mut engine = paired();
    engine.set_pod(pod("patient", "test", None), at(0));
    assert_eq!(next(&mut engine, at(0)), "patient waits on n1");
    assert_eq!(engine.wake_at(), Some(at(900)));
    let refused = "patient: 0/1 nodes are available: 1 rejected due to timeout after waiting 15m0s at plugin Pairs.";
    assert_eq!(next(&mut engine, at(900)), refused);
}

/// Evicts whatever is on the first node.
struct Clears;

impl Plugin for Clears {
    fn name(&self) -> &'static str {
        "Clears"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).enqueue_extensions(&self).post_filter(&self)
    }
}

impl EnqueueExtensions for Clears {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED
    }
}

impl PostFilter for Clears {
    fn post_filter(&self, _: &Request<'_>, attempted: &mut Attempted<'_>) -> PostFilterResult {
        let Some(row) = attempted.cluster.row("n1") else { return PostFilterResult::Nothing(String::new()) };
        let victims = attempted.cluster.pods_on(row).map(|placed| placed.pod.uid.clone()).collect();
        PostFilterResult::Nominate { row, victims }
    }
}

#[test]
fn a_waiting_pod_that_is_preempted_is_tried_again_at_the_events_of_the_preempting_plugin() {
    let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(PodLimit), Arc::new(Pairs), Arc::new(Clears)];
    let profile = Profile { filters: vec![0], post_filters: vec![2], ..Profile::of("test", plugins) };
    let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
    engine.set_node(node("n1", 1), at(0));
    engine.set_pod(pod("a", "test", None), at(0));
    assert_eq!(next(&mut engine, at(0)), "a waits on n1");
    engine.set_pod(pod("b", "test", None), at(0));
    assert_eq!(next(&mut engine, at(0)), "a: 0/1 nodes are available: 1 preempted.");
    let Some(Attempt { outcome: Outcome::Refused(refused), .. }) = engine.attempt(at(0)) else { panic!() };
    let withdrawn: Vec<&str> = refused.withdrawn.iter().map(|pod| pod.key.name()).collect();
    assert_eq!((refused.nominated.as_deref(), withdrawn, refused.victims.len()), (Some("n1"), vec!["a"], 0));
    let stopped: Vec<_> = engine.queue().refusals().map(|(pod, by)| (pod.key.name(), by)).collect();
    assert!(stopped.contains(&("a", koord_scheduler_framework::PluginSet::of(2))), "{stopped:?}");
}

#[test]
fn a_nomination_ends_when_the_pod_is_rejected_on_its_node_or_for_an_error_or_is_not_bound() {
    let mut engine = paired();
    let nominated = |name: &str| Arc::new(Pod { nominated: Some("n1".into()), ..Pod::clone(&pod(name, "test", None)) });
    let kept = |engine: &Engine, name: &str| engine.cluster().nomination(&Uid::from(name)).is_some();
    for name in ["greedy", "clumsy", "broken"] {
        engine.set_pod(nominated(name), at(0));
        assert!(kept(&engine, name));
        let Some(Attempt { outcome: Outcome::Refused(refused), .. }) = engine.attempt(at(0)) else { panic!() };
        assert_eq!((refused.nominated.as_deref(), kept(&engine, name)), (None, false), "{name}");
        engine.remove_pod(&Uid::from(name), at(0));
    }
    let mut engine = self::engine();
    engine.set_node(node("n1", 1), at(0));
    engine.set_pod(nominated("a"), at(0));
    let attempt = engine.attempt(at(0)).unwrap();
    assert!(!kept(&engine, "a") && engine.bind_failed(&attempt, at(1)));
    assert!(!kept(&engine, "a"), "whatever its status says");
    engine.remove_pod(&Uid::from("a"), at(2));
    assert!(!engine.bind_failed(&attempt, at(2)), "it is gone");
    engine.set_node(node("n1", 0), at(3));
    engine.set_pod(nominated("b"), at(3));
    assert!(kept(&engine, "b"));
    assert_eq!(next(&mut engine, at(3)), "b: 0/1 nodes are available: 1 Too many pods.");
    assert!(!kept(&engine, "b"), "no plugin makes room");
}

#[test]
fn a_pod_that_waits_in_its_place_is_not_in_flight_any_more_when_it_is_gone_or_bound_by_others() {
    for is_bound in [false, true] {
        let mut engine = paired();
        engine.set_pod(pod("a", "test", None), at(0));
        assert_eq!(next(&mut engine, at(0)), "a waits on n1");
        assert_eq!(engine.queue().standings().len(), 1);
        if is_bound {
            engine.set_pod(pod("a", "test", Some("n1")), at(1));
        } else {
            engine.remove_pod(&Uid::from("a"), at(1));
        }
        assert!(engine.queue().standings().is_empty() && engine.waiting().next().is_none());
    }
}

#[test]
fn a_plugin_rejects_a_pod_as_a_whole_or_on_the_node_that_was_chosen() {
    let mut engine = paired();
    for (name, said) in [
        ("never", "never: 0/1 nodes are available: it is never admitted."),
        ("greedy", "greedy: 0/1 nodes are available: 1 there is not enough."),
        ("broken", "broken: something broke"),
        ("clumsy", "clumsy: running Reserve plugin \"Pairs\": something fell"),
    ] {
        engine.set_pod(pod(name, "test", None), at(0));
        assert_eq!(next(&mut engine, at(0)), said);
        assert_eq!(placements(&engine).len(), 0);
    }
    assert_eq!(
        (engine.queue().depths().parked, engine.queue().depths().backoff),
        (2, 2),
        "what is broken is tried again"
    );
}

#[test]
fn why_a_pod_has_a_node_and_another_has_none() {
    let nodes = |why: &Why| -> Vec<String> {
        let decision = why.decision.as_ref().unwrap();
        let said = |on: &koord_scheduler_framework::cycle::OnNode| {
            let refusals = on.refusals.iter().map(|one| format!(" {}: {}", one.plugin, Reason::joined(&one.reasons)));
            format!("{}{}", on.node, refusals.collect::<String>())
        };
        decision.nodes.iter().map(said).collect()
    };
    let engine = |pods: u32| {
        let mut engine = engine();
        engine.set_node(node("n1", pods), at(0));
        engine.set_pod(pod("a", "test", Some("n1")), at(0));
        engine.set_pod(pod("b", "test", None), at(0));
        engine.set_pod(pod("c", "other", None), at(0));
        engine
    };
    let why = |engine: Engine, name: &str| engine.why(&Uid::from(name), at(1)).unwrap();
    let bound = why(engine(1), "a");
    assert_eq!((bound.node.as_deref(), nodes(&bound)), (Some("n1"), vec!["n1".to_owned()]), "as if it were not there");
    assert!(bound.decision.unwrap().outcome.is_none());
    let waiting = why(engine(1), "b");
    assert_eq!(nodes(&waiting), ["n1 PodLimit: Too many pods"]);
    let Some(Outcome::Refused(refused)) = waiting.decision.unwrap().outcome else { panic!() };
    assert_eq!(refused.message, "0/1 nodes are available: 1 Too many pods.");
    let placed = why(engine(2), "b").decision.unwrap().outcome;
    assert!(matches!(placed, Some(Outcome::Bind { node, .. }) if &*node == "n1"));
    let mismatch = why(engine(1), "c").decision.unwrap_err();
    let operands = ["schedulerName", "profiles"].map(|name| mismatch.operand(name).unwrap_or_default());
    assert_eq!((mismatch.code, operands), (ReasonCode::SchedulerMismatch, ["other", "test"]), "another scheduler's");
    let not_tried = |engine: &Engine, pod: &Pod| engine.not_tried(pod).map(|(plugin, reason)| (plugin, reason.code));
    let known = engine(1);
    let mismatched = Some(("", ReasonCode::SchedulerMismatch));
    assert_eq!(
        [not_tried(&known, &pod("c", "other", None)), not_tried(&known, &pod("b", "test", None))],
        [mismatched, None]
    );
    assert!(engine(1).why(&Uid::from("x"), at(1)).is_none());
    let mut gated = engine(2);
    gated.set_pod(Arc::new(Pod { gates: vec!["g".into()], ..Pod::clone(&pod("d", "test", None)) }), at(0));
    assert_eq!(why(gated, "d").decision.unwrap().held, Some(("PodLimit", ReasonCode::SchedulingGated.reason("waits"))));
}

#[test]
fn a_nomination_follows_the_status_of_a_pod_until_that_changes() {
    let mut engine = engine();
    for name in ["n1", "n2"] {
        engine.set_node(node(name, 1), at(0));
    }
    let mut on = |said: Option<&str>| {
        let waits =
            Pod { nominated: said.map(Arc::from), gates: vec!["g".into()], ..Pod::clone(&pod("a", "test", None)) };
        engine.set_pod(Arc::new(waits), at(0));
        let cluster = engine.cluster();
        let rows = cluster.nominated().filter_map(|(_, row)| cluster.node(row));
        rows.map(|node| node.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!([on(Some("n1")), on(Some("n2"))], [["n1"], ["n2"]]);
    assert_eq!([on(None), on(None)], [[""; 0]; 2], "somebody has taken it back");
}
