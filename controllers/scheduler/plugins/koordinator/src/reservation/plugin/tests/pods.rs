//! Pods that keep what they have for others, and room that is made for Reservations.

use super::*;

/// A pod of so many cores that runs on `n1` and keeps them for the app `x`.
pub(super) fn keeping(name: &str, cpus: u32) -> Pod {
    let labels = [("scheduling.koordinator.sh/operating-mode", "Reservation")];
    let pod = World::of(name, cpus, &labels, "");
    let owners = r#"[{"labelSelector":{"matchLabels":{"app":"x"}}}]"#;
    let annotations = [("scheduling.koordinator.sh/reservation-owners", owners)].into_iter().collect();
    let template = Arc::new(Template { annotations, ..Template::clone(&pod.template) });
    Pod { template, node: Some("n1".into()), is_running: true, is_ready: true, ..pod }
}

pub(super) fn with(cpus: &[u32], pod: Pod) -> World {
    let mut world = World::new(cpus);
    world.engine.set_pod(Arc::new(pod), world.now);
    world
}

#[test]
fn an_operating_pod_serves_one_owner_while_it_is_ready() {
    let mut world = with(&[4], keeping("op", 4));
    assert_eq!(world.pod("other", 2, &[], ""), FULL);
    assert_eq!(world.owner("p", 4, ""), "n1 in op");
    assert_eq!(world.owner("q", 1, ""), FULL, "one owner is all that it takes");
    assert_eq!(world.engine.status_updates().writes, [], "what it keeps is no object");
    for (is_running, is_ready) in [(true, false), (false, true)] {
        let mut world = with(&[4], Pod { is_running, is_ready, ..keeping("op", 4) });
        assert_eq!(world.owner("p", 4, ""), FULL, "operating-mode-not-ready");
        let ignoring = [("scheduling.koordinator.sh/reservation-ignored", "true")];
        assert_eq!(world.pod("s", 4, &ignoring, ""), FULL, "nobody uses what is not ready");
    }
    let mut world = with(&[4], Pod { deleting: true, ..keeping("op", 4) });
    let said = world.owner("p", 4, "");
    assert_eq!(said, format!("{FULL} 1 Reservation(s) is unschedulable, 1 Reservation(s) matched owner total"));
}

#[test]
fn an_operating_pod_does_not_raise_the_score_of_its_node() {
    let mut world = with(&[8, 16], keeping("op", 4));
    assert_eq!(world.owner("p", 4, ""), "n2", "operating-mode-empty-node");
}

#[test]
fn an_owner_may_take_more_than_an_operating_pod_reserves_and_leaves_the_rest_when_it_goes() {
    let mut world = with(&[8], keeping("op", 4));
    assert_eq!(world.owner("p", 6, ""), "n1 in op", "it is Aligned");
    assert_eq!(world.pod("other", 2, &[], ""), "n1", "the owner's 6 contain the 4");
    world.engine.remove_pod(&Uid::from("op"), world.now);
    assert!(world.engine.cluster().state::<ReservationCache>().unwrap().is_empty());
    assert_eq!((world.used(), world.pod("late", 1, &[], "")), (8000, FULL.to_owned()));
}

#[test]
fn an_operating_pod_whose_owner_is_written_serves_no_other_pod() {
    let given = [("scheduling.koordinator.sh/reservation-current-owner", r#"{"name":"p","uid":"p"}"#)];
    let mut world = with(&[4], Pod { given: given.into_iter().collect(), ..keeping("op", 4) });
    assert_eq!(world.owner("q", 4, ""), FULL);
    let bad = [("scheduling.koordinator.sh/reservation-owners", "{")].into_iter().collect();
    let mut pod = keeping("op", 4);
    pod.template = Arc::new(Template { annotations: bad, ..Template::clone(&pod.template) });
    assert_eq!(with(&[4], pod).owner("p", 4, ""), FULL, "nobody owns it");
}

#[test]
fn a_pod_whose_owner_is_not_written_any_more_serves_the_next_one() {
    let given = [("scheduling.koordinator.sh/reservation-current-owner", r#"{"name":"p","uid":"p"}"#)];
    let mut world = with(&[4], Pod { given: given.into_iter().collect(), ..keeping("op", 4) });
    world.engine.set_pod(Arc::new(keeping("op", 4)), world.now);
    assert_eq!(world.owner("q", 4, ""), "n1 in op");
}

#[test]
fn a_pod_with_a_reservation_affinity_finds_an_operating_pod_that_becomes_ready() {
    let mut world = with(&[8], Pod { is_ready: false, ..keeping("op", 4) });
    assert!(world.owner("p", 2, r#"{"name":"op"}"#).contains("no reservations match reservation affinity"));
    world.engine.set_pod(Arc::new(keeping("op", 4)), world.now);
    world.now = world.now + std::time::Duration::from_secs(12);
    assert_eq!(world.attempt(), "n1 in op");
}

#[test]
fn an_operating_pod_is_not_beside_used_reservations_of_the_default_policy() {
    let mode = ("scheduling.koordinator.sh/operating-mode", "Reservation");
    let beside = |is_used: bool, app: &str| {
        let mut world = World::new(&[16]);
        world.reserve("r", 4, &json!({"allocateOnce": false}));
        if is_used {
            assert_eq!(world.owner("p", 2, ""), "n1 in r");
        }
        world.pod("op", 4, &[mode, ("app", app)], "")
    };
    let conflict = "0/1 nodes are available: 1 node(s) reservation allocate policy conflict.";
    assert_eq!(beside(true, "y"), conflict);
    assert_eq!(beside(false, "y"), "n1", "nobody uses it");
    let matched = beside(false, "x");
    assert!(matched.starts_with(conflict), "{matched}");
}

/// A scheduler that makes room for Reservations.
pub(super) fn preempting(cpus: &[u32]) -> World {
    let args = ReservationArgs { enable_preemption: true, ..ReservationArgs::default() };
    World::of_plugin(Reservation::new(&args, |_| false), cpus)
}

#[test]
fn the_nominated_node_of_a_reservation_is_not_taken_by_pods_of_lower_priority() {
    let mut world = preempting(&[4]);
    let victim = Pod { node: Some("n1".into()), ..World::of("victim", 4, &[], "") };
    world.engine.set_pod(Arc::new(victim), world.now);
    world.create("r", 4, &json!({}));
    let Outcome::Refused(refused) = world.next().unwrap().outcome else { panic!("there is no room") };
    assert_eq!(refused.nominated.as_deref(), Some("n1"), "preempt-enabled");
    world.engine.set_pod(Arc::new(World::of("small", 1, &[], "")), world.now);
    world.engine.remove_pod(&Uid::from("victim"), world.now);
    world.update("r", &|object| object["metadata"]["labels"] = json!({"seen": "again"}));
    let mut placed = BTreeMap::new();
    world.now = world.now + std::time::Duration::from_mins(1);
    while let Some(attempt) = world.next() {
        let name = attempt.pod.key.name().to_owned();
        placed.insert(name, matches!(attempt.outcome, Outcome::Bind { .. }));
        world.written(attempt);
    }
    assert_eq!(placed, [("r".to_owned(), true), ("small".to_owned(), false)].into());
    // What is gone holds no room.
    let mut world = preempting(&[4]);
    let victim = Pod { node: Some("n1".into()), ..World::of("victim", 4, &[], "") };
    world.engine.set_pod(Arc::new(victim), world.now);
    world.create("r", 4, &json!({}));
    world.next().unwrap();
    world.engine.remove_object(std::any::TypeId::of::<ReservationObject>(), "r", world.now);
    world.engine.remove_pod(&Uid::from("victim"), world.now);
    assert_eq!(world.pod("small", 1, &[], ""), "n1");
}

/// A pod that is more important than others.
fn important(name: &str, cpus: u32, labels: &[(&str, &str)], affinity: &str) -> Pod {
    let pod = World::of(name, cpus, labels, affinity);
    Pod { template: Arc::new(Template { priority: 10, ..Template::clone(&pod.template) }), ..pod }
}

/// On a node of 8 cores, 4 of them reserved for a pod that runs there: who goes for a pod, and what becomes of it then.
fn who_goes(policy: &str, pod: Pod) -> (Vec<String>, String) {
    let mut world = preempting(&[8]);
    world.reserve("r", 4, &json!({"allocateOnce": false, "allocatePolicy": policy}));
    assert_eq!(world.owner("owner", 4, ""), "n1 in r");
    assert_eq!(world.pod("plain", 4, &[], ""), "n1");
    world.engine.set_pod(Arc::new(pod), world.now);
    let Outcome::Refused(refused) = world.next().unwrap().outcome else { panic!("there is no room") };
    for victim in &refused.victims {
        world.engine.remove_pod(&victim.uid, world.now);
    }
    world.now = world.now + std::time::Duration::from_mins(1);
    let mut names: Vec<String> = refused.victims.iter().map(|victim| victim.key.name().to_owned()).collect();
    names.sort();
    (names, world.attempt())
}

#[test]
fn the_place_of_an_owner_within_its_reservation_is_taken_over_by_owners_alone() {
    let goes = |names: &[&str], then: &str| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        (names, then.to_owned())
    };
    let owner = |cpus, affinity: &str| important("high", cpus, &[("app", "x")], affinity);
    assert_eq!(
        who_goes("Restricted", owner(4, r#"{"name":"r"}"#)),
        goes(&["owner"], "n1 in r"),
        "owner-preempts-inside"
    );
    assert_eq!(who_goes("Aligned", owner(8, "")), goes(&["owner", "plain"], "n1 in r"), "both parts count");
    // What an owner leaves stays reserved; a pod that matches no reservation takes the place of another such pod.
    assert_eq!(who_goes("Restricted", important("high", 4, &[], "")), goes(&["plain"], "n1"));
}

#[test]
fn the_share_of_an_owner_in_its_reservation_is_not_available_to_others() {
    let mut world = preempting(&[8]);
    world.reserve("r", 6, &json!({"allocateOnce": false}));
    assert_eq!(world.owner("owner", 6, ""), "n1 in r");
    world.engine.set_pod(Arc::new(important("high", 4, &[], "")), world.now);
    let Outcome::Refused(refused) = world.next().unwrap().outcome else { panic!("there is no room") };
    assert_eq!(refused.message, format!("{FULL} preemption: {FULL}"));
    assert_eq!((refused.nominated, refused.victims), (None, vec![]));
}

#[test]
fn a_reservation_of_a_lower_priority_is_no_victim() {
    let mut world = preempting(&[8]);
    assert_eq!(world.reserve("r", 8, &json!({"labels": {"koordinator.sh/priority": "1"}})), "n1");
    world.engine.set_pod(Arc::new(important("high", 4, &[], "")), world.now);
    let Outcome::Refused(refused) = world.next().unwrap().outcome else { panic!("there is no room") };
    let words = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    assert_eq!(refused.message, format!("{FULL} {words}"));
    assert_eq!((refused.nominated, refused.victims), (None, vec![]));
}

#[test]
fn marked_pods_of_the_whole_cluster_are_taken_over_by_their_priority() {
    let taken = |first: &str, second: &str| {
        let pre_allocation = koord_config::scheduler::PreAllocation { enable_cluster_mode: true, ..Default::default() };
        let args = ReservationArgs { pre_allocation_config: pre_allocation, ..ReservationArgs::default() };
        let mut world = World::of_plugin(Reservation::new(&args, |_| false), &[10]);
        let label = [("pod.koordinator.sh/is-pre-allocatable", "true")];
        let mut run = |name: &str, labels: &[(&str, &str)], priority: &str| {
            let pod = World::of(name, 2, labels, "");
            // One asks for another Reservation.
            let affinity = ("scheduling.koordinator.sh/reservation-affinity", r#"{"name":"other"}"#);
            let affinity = (name == "bound elsewhere").then_some(affinity);
            let annotations = [("pod.koordinator.sh/pre-allocatable-priority", priority)].into_iter();
            let annotations = annotations.chain(affinity).collect();
            let template = Arc::new(Template { annotations, ..Template::clone(&pod.template) });
            world.engine.set_pod(Arc::new(Pod { template, node: Some("n1".into()), ..pod }), world.now);
        };
        run("a", &label, first);
        run("b", &label, second);
        run("unmarked", &[], "100");
        run("bound elsewhere", &label, "100");
        // The priority counts that a pod has when the Reservation is placed.
        run("c", &label, "100");
        run("c", &label, "0");
        let over = json!({
            "allocatePolicy": "Restricted", "preAllocation": true, "preAllocationPolicy": {"mode": "Cluster"},
            "labels": {"scheduling.koordinator.sh/pre-allocation-required": "true"},
        });
        assert_eq!(world.reserve("r", 2, &over), "n1");
        world.status_updates();
        world.objects["r"]["status"]["currentOwners"][0]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!([taken("1", "9"), taken("9", "1"), taken("x", "1")], ["b", "a", "b"]);
    assert_eq!(taken("-9223372036854775808", "1"), "b", "the least number that there is");
}
