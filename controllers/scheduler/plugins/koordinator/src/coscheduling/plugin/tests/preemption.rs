//! Room for whole gangs.

use koord_scheduler_framework::pod::Reference;
use koord_scheduler_plugins_kubernetes::{NodeAffinity, NodeUnschedulable};

use super::{
    network::{gathered, must},
    *,
};

fn world(cpus: &[u32]) -> World {
    let args = serde_json::from_value(json!({"enablePreemption": true})).unwrap();
    World::with(Coscheduling::new(&args), cpus)
}

/// A running pod of this priority.
fn run(world: &mut World, name: &str, cpus: u32, priority: i32, node: &str) {
    world.put(name, cpus, &json!({"node": node, "priority": priority}));
}

fn urgent(min: usize) -> Value {
    json!({"name": "g", "min-available": min.to_string(), "priority": 1000})
}

/// The pods that were evicted go.
fn victims_go(world: &mut World) {
    for evicted in std::mem::take(&mut world.evicted) {
        world.delete(evicted.split(' ').next().unwrap());
    }
    world.wait(12);
}

#[test]
fn a_gang_takes_a_node_over() {
    // preempt-job
    let mut world = world(&[8]);
    run(&mut world, "l1", 4, 1, "n1");
    run(&mut world, "l2", 4, 1, "n1");
    world.create(&["p1", "p2"], 4, &urgent(2));
    assert_eq!(
        (&world.evicted[..], &*world.preemptors[0]),
        (&["l1 for p2", "l2 for p2"].map(str::to_owned)[..], "ns/g")
    );
    assert_eq!(world.messages["p2"], "0/1 nodes are available: 1 Insufficient cpu.");
    let message = "0/1 nodes are available: GangGroup \"ns/g\" gets rejected due to member Pod \"ns/p2\" is unschedulable with \
                reason \"0/1 nodes are available: 1 Insufficient cpu.\", alreadyWaitForBound: 0. preemption: preemption \
                already attempted by ns/p2 with message preempt success, alreadyWaitingForBound: 0/2";
    assert_eq!(world.messages["p1"], message);
    // One of them goes first: nobody else is evicted, and nobody takes the room.
    world.delete("l1").create(&["x"], 4, &json!({"priority": 1000}));
    world.wait(12);
    assert_eq!((world.bound(), world.evicted.len()), (String::new(), 2));
    world.delete("l2").wait(12);
    assert_eq!(world.bound(), "p1:2 p2:2");
}

#[test]
fn those_who_are_going_are_not_evicted_again() {
    let mut world = world(&[8]);
    run(&mut world, "l1", 4, 1, "n1");
    run(&mut world, "l2", 4, 1, "n1");
    world.create(&["p1", "p2"], 4, &urgent(2));
    // What the eviction writes into the pod comes back, and the other one is gone.
    let going = Pod { is_preempted: true, ..Pod::clone(&world.pods["l2"]) };
    world.engine.set_pod(Arc::new(going), world.now);
    world.delete("l1").wait(12);
    assert_eq!((world.evicted.len(), world.bound()), (2, String::new()));
    let waits = "preemption: not eligible due to terminating pod on the nominated node.";
    assert!(world.messages["p1"].ends_with(waits), "{}", world.messages["p1"]);
    let rejected = "0/1 nodes are available: 1 GangGroup \"ns/g\" gets rejected due to member Pod \"ns/p1\" is unschedulable \
                    with reason \"0/1 nodes are available: 1 Insufficient cpu.\", alreadyWaitForBound: 1.";
    assert_eq!(world.messages["p2"], rejected, "this round makes no room");
    world.delete("l2").wait(12);
    assert_eq!(world.bound(), "p1:2 p2:2");
}

#[test]
fn a_member_whose_nomination_is_lost_does_not_end_the_wait_of_the_others() {
    let args = serde_json::from_value(json!({"enablePreemption": true})).unwrap();
    let mut world = World::beside(Some(Arc::new(NodeUnschedulable)), Coscheduling::new(&args), &[4, 4, 1]);
    run(&mut world, "l1", 4, 1, "n1");
    run(&mut world, "l2", 4, 1, "n2");
    run(&mut world, "x", 1, 2000, "n3");
    // The last to come is tried first.
    world.create(&["p2", "p1"], 4, &urgent(2));
    assert_eq!(world.evicted, ["l1 for p1", "l2 for p1"]);
    let cluster = world.engine.cluster();
    let nodes_with_capacity = ["p1", "p2"].map(|name| cluster.nomination(&Uid::from(name)));
    assert_eq!(nodes_with_capacity, ["n1", "n2"].map(|node| cluster.row(node)));
    let cordoned = json!({"spec": {"unschedulable": true}, "status": {"allocatable": {"cpu": "4", "pods": "110"}}});
    world.engine.set_node(node("n1", &cordoned), world.now);
    world.messages.clear();
    world.delete("x").wait(12);
    let waits = "preemption: not eligible due to terminating pod on the nominated node.";
    assert!(world.messages["p1"].ends_with(waits), "{}", world.messages["p1"]);
    assert_eq!((world.evicted.len(), world.bound()), (2, String::new()));
}

#[test]
fn waiting_members_are_rejected_with_the_reason_of_the_failed_preemption() {
    let mut alone = world(&[4]);
    alone.create(&["p1", "p2"], 4, &urgent(2));
    let none = "preemption: 0/1 nodes are available: 1 no potential victims.";
    assert!(alone.messages["p1"].ends_with(none), "{}", alone.messages["p1"]);
    let message = "0/1 nodes are available: 1 0/1 nodes are available: 1 no potential victims..";
    assert_eq!(alone.messages["p2"], message);
    let mut crowded = world(&[8]);
    run(&mut crowded, "l", 4, 1, "n1");
    crowded.create(&["p1", "p2", "p3"], 4, &urgent(3));
    let message = "0/1 nodes are available: 1 0/1 nodes are available: 1 Insufficient cpu..";
    assert_eq!((crowded.messages["p3"].as_str(), crowded.evicted.len()), (message, 0));
}

#[test]
fn a_gang_takes_two_nodes_over_at_once() {
    // preempt-job-two-nodes: the original evicts the second pod only when the first has its place.
    let mut world = world(&[4, 4]);
    run(&mut world, "m", 4, 10, "n1");
    run(&mut world, "l", 4, 1, "n2");
    world.create(&["p1", "p2"], 4, &urgent(2));
    assert_eq!(world.evicted, ["m for p2", "l for p2"]);
    victims_go(&mut world);
    assert_eq!(world.bound(), "p1:2 p2:2");
}

#[test]
fn those_who_cost_least_go_and_only_those_who_must() {
    // preempt-job-cheapest-node
    let mut cheapest = world(&[4, 4]);
    run(&mut cheapest, "m", 4, 10, "n1");
    run(&mut cheapest, "l", 4, 1, "n2");
    cheapest.create(&["p1"], 4, &urgent(1));
    assert_eq!(cheapest.evicted, ["l for p1"]);
    // The most important ones are spared first.
    let mut spared = world(&[8]);
    for (name, priority) in [("a", 10), ("b", 1), ("c", 1), ("d", 10)] {
        run(&mut spared, name, 2, priority, "n1");
    }
    spared.create(&["p1", "p2"], 2, &urgent(2));
    assert_eq!(spared.evicted, ["b for p2", "c for p2"]);
}

#[test]
fn of_nodes_that_cost_the_same_the_first_by_name_is_taken() {
    let mut world = world(&[]);
    for name in ["n3", "n1", "n2"] {
        world.add_node(name, 4);
        run(&mut world, &format!("l-{name}"), 4, 1, name);
    }
    world.create(&["p1"], 4, &urgent(1));
    assert_eq!(world.evicted, ["l-n1 for p1"]);
}

#[test]
fn a_node_without_victims_comes_before_one_whose_victims_cost_nothing() {
    let mut world = world(&[8, 8]);
    run(&mut world, "l", 8, 1, "n1");
    run(&mut world, "x", 7, 2000, "n2");
    // The small member is placed first. On n1, it would be in the way of the large one.
    world.put("p1", 1, &urgent(2));
    world.put("p2", 8, &urgent(2));
    world.run();
    assert_eq!(world.evicted, ["l for p2"]);
    victims_go(&mut world);
    assert_eq!(world.bound(), "p1:2 p2:2");
}

#[test]
fn a_job_costs_as_much_as_the_most_important_of_its_pods() {
    let mut world = world(&[4, 4]);
    for (name, priority) in [("a", 1), ("b", 10)] {
        let job = "scheduling.koordinator.sh/questioned-object-key=j";
        world.put(name, 2, &json!({"node": "n1", "priority": priority, "label": job}));
    }
    run(&mut world, "c", 4, 5, "n2");
    world.create(&["p1"], 4, &urgent(1));
    assert_eq!(world.evicted, ["c for p1"]);
}

#[test]
fn of_pods_alike_the_first_by_name_is_spared_whatever_its_namespace() {
    let mut world = world(&[8]);
    run(&mut world, "a/y", 4, 1, "n1");
    run(&mut world, "b/x", 4, 1, "n1");
    world.create(&["p1"], 4, &urgent(1));
    assert_eq!(world.evicted, ["a/y for p1"]);
}

#[test]
fn no_pod_is_evicted_in_vain() {
    // preempt-job-not-enough: room for two of three.
    let mut world = world(&[8]);
    run(&mut world, "l1", 4, 1, "n1");
    run(&mut world, "l2", 4, 1, "n1");
    world.create(&["p1", "p2", "p3"], 4, &urgent(3));
    assert_eq!((world.evicted.len(), world.engine.cluster().nominated().count()), (0, 0));
    let none = "preemption: 0/1 nodes are available: 1 Insufficient cpu.";
    assert!(world.messages["p3"].ends_with(none), "{}", world.messages["p3"]);
    let attempts = world.attempts;
    assert_eq!((world.wait(250).attempts, world.engine.cluster().discrepancies()), (attempts, vec![]));
}

#[test]
fn protected_pods_and_those_of_the_same_priority_stay() {
    for (label, priority) in [
        ("scheduling.koordinator.sh/disable-preemptible=true", 1),
        ("quota.scheduling.koordinator.sh/preemptible=false", 1),
        ("app=any", 1000),
        ("app=of-another-scheduler", 1),
    ] {
        let mut world = world(&[8]);
        world.put("l1", 8, &json!({"node": "n1", "priority": priority, "label": label}));
        if label == "app=of-another-scheduler" {
            let pod = &world.pods["l1"];
            let template = Template { scheduler: "other".into(), ..Template::clone(&pod.template) };
            let theirs = Arc::new(Pod { template: Arc::new(template), ..Pod::clone(pod) });
            world.engine.set_pod(theirs, world.now);
        }
        world.create(&["p1", "p2"], 4, &urgent(2));
        let none = "preemption: 0/1 nodes are available: 1 no potential victims.";
        assert_eq!(world.messages["p2"], format!("0/1 nodes are available: 1 Insufficient cpu. {none}"));
        let again = "preemption: preemption already attempted by ns/p2 with message 0/1 nodes are available: 1 no potential \
                     victims.";
        assert!(world.messages["p1"].ends_with(again), "{}", world.messages["p1"]);
        assert!(world.evicted.is_empty());
    }
}

#[test]
fn only_nodes_where_an_eviction_may_help_are_tried_and_named() {
    let hostname = |name: &str| json!({"kubernetes.io/hostname": name});
    let on_n1 = json!({"nodeSelector": {"kubernetes.io/hostname": "n1"}});
    let args = serde_json::from_value(json!({"enablePreemption": true})).unwrap();
    let failed = |label: &str, is_selective: bool| {
        let mut world = World::beside(Some(Arc::new(NodeAffinity::default())), Coscheduling::new(&args), &[]);
        world.add_node_at("n1", 8, &hostname("n1"));
        world.add_node_at("n2", 4, &hostname("n2"));
        world.put("l1", 8, &json!({"node": "n1", "priority": 1, "label": label}));
        world.put("l2", 4, &json!({"node": "n2", "priority": 1}));
        let mut gang = urgent(3);
        if is_selective {
            gang["spec"] = on_n1.clone();
        }
        world.create(&["p1", "p2", "p3"], 4, &gang);
        assert!(world.evicted.is_empty(), "{:?}", world.evicted);
        world.messages["p3"].split_once("preemption: ").map(|(_, words)| words.to_owned()).unwrap_or_default()
    };
    let protected = "scheduling.koordinator.sh/disable-preemptible=true";
    assert_eq!(failed(protected, true), "0/2 nodes are available: 1 no potential victims.");
    assert_eq!(failed("app=any", true), "0/2 nodes are available: 1 Insufficient cpu.", "n1 has room for two");
    assert_eq!(failed(protected, false), "0/2 nodes are available: 2 Insufficient cpu.", "n2 has room for one");
}

#[test]
fn a_reserve_pod_is_neither_evicted_nor_preempts() {
    let mut world = world(&[8]);
    let reserved = |pod: &Pod| {
        let reference = Reference { kind: ResourceKind::POD, key: pod.key.clone() };
        Arc::new(Pod { reservation: Some(Arc::new(reference)), ..Pod::clone(pod) })
    };
    run(&mut world, "r", 8, 1, "n1");
    world.engine.set_pod(reserved(&world.pods["r"]), world.now);
    world.create(&["p1"], 4, &urgent(1));
    assert!(world.evicted.is_empty() && world.messages["p1"].ends_with("1 no potential victims."));
    world.delete("r").delete("p1");
    run(&mut world, "l", 8, 1, "n1");
    world.put("s", 8, &json!({"priority": 1000, "gated": ""}));
    world.engine.set_pod(reserved(&Pod { gates: Vec::new(), ..Pod::clone(&world.pods["s"]) }), world.now);
    world.run();
    assert!(world.evicted.is_empty() && world.messages["s"].ends_with("preemption: pod \"s\" not found"));
}

#[test]
fn a_plain_pod_preempts_too() {
    // preempt-job-single
    let mut world = world(&[8]);
    run(&mut world, "l1", 6, 1, "n1");
    world.create(&["h"], 4, &json!({"priority": 1000}));
    assert_eq!((&world.evicted[..], &*world.preemptors[0]), (&["l1 for h".to_owned()][..], "ns/h"));
    victims_go(&mut world);
    assert_eq!(world.bound(), "h");
}

#[test]
fn members_that_have_found_a_node_stay_reserved_while_others_preempt() {
    let mut world = world(&[4, 4]);
    run(&mut world, "l", 4, 1, "n1");
    world.create(&["p1", "p2"], 4, &urgent(2));
    assert_eq!(world.evicted, ["l for p1"]);
    assert_eq!(world.messages["p2"], "0/1 nodes are available: 1 preempt success, alreadyWaitingForBound: 1/2.");
    assert_eq!(world.create(&["x"], 4, &json!({"priority": 1000})).bound(), "", "the free node is kept for p2");
    victims_go(&mut world);
    assert_eq!(world.bound(), "p1:2 p2:2");
}

#[test]
fn a_gang_takes_a_block_over() {
    let mut world = super::network::world(&json!({"enablePreemption": true}));
    for node in ["n1", "n3", "n5", "n6", "n7"] {
        run(&mut world, &format!("l-{node}"), 4, 1, node);
    }
    let gang = |name: &str, min: usize| {
        let mut gang = gathered(min, &must("BlockLayer"));
        (gang["name"], gang["priority"]) = (json!(name), json!(1000));
        gang
    };
    world.create(&["p1", "p2"], 4, &gang("g", 2));
    // Each of the blocks of two nodes has a free one, so that less has to go there.
    assert_eq!(world.evicted, ["l-n1 for p2"]);
    victims_go(&mut world);
    assert_eq!(world.bound(), "p1:2 p2:2");
    world.create(&["q1", "q2", "q3", "q4"], 4, &gang("h", 4));
    assert!(world.evicted.is_empty(), "no block has room for four: {:?}", world.evicted);
}

#[test]
fn a_gang_takes_the_block_over_that_costs_least() {
    let mut world = super::network::world(&json!({"enablePreemption": true}));
    for (node, priority) in [("n1", 10), ("n2", 10), ("n3", 1), ("n4", 1), ("n5", 1), ("n6", 1), ("n7", 1)] {
        run(&mut world, &format!("l-{node}"), 4, priority, node);
    }
    let mut gang = gathered(2, &must("BlockLayer"));
    gang["priority"] = json!(1000);
    world.create(&["p1", "p2"], 4, &gang);
    assert_eq!(world.evicted, ["l-n3 for p2", "l-n4 for p2"]);
}

#[test]
fn a_round_preempts_once_and_again_when_the_nomination_was_lost() {
    let mut world = world(&[4, 4]);
    run(&mut world, "l1", 4, 1, "n1");
    run(&mut world, "l2", 4, 1, "n2");
    world.create(&["p1", "p2"], 4, &urgent(2));
    assert_eq!(world.evicted, ["l1 for p2", "l2 for p2"]);
    let nominated =
        |world: &World| world.engine.cluster().nominated().map(|(pod, _)| pod.key.name().to_owned()).collect();
    let names: Vec<String> = nominated(&world);
    assert_eq!(names, ["p1", "p2"], "every member has its room");
    let now = world.now;
    world.engine.eviction_failed(&Uid::from("l1"), now);
    world.delete("l2").wait(12);
    assert_eq!((world.bound(), &world.evicted[2..]), (String::new(), &["l1 for p1".to_owned()][..]));
    world.delete("l1").wait(12);
    assert_eq!(world.bound(), "p1:2 p2:2");
}

#[test]
fn two_gangs_neither_evict_nor_block_each_other() {
    let mut world = world(&[4, 4]);
    run(&mut world, "l1", 4, 1, "n1");
    run(&mut world, "l2", 4, 1, "n2");
    let other = json!({"name": "h", "min-available": "2", "priority": 1000});
    for (name, gang) in [("g1", urgent(2)), ("h1", other.clone()), ("g2", urgent(2)), ("h2", other)] {
        world.put(name, 4, &gang);
    }
    world.run();
    assert_eq!(world.evicted, ["l1 for g2", "l2 for g2"], "the other gang finds nobody to evict");
    victims_go(&mut world);
    assert_eq!((world.bound(), world.evicted.len()), ("g1:2 g2:2".to_owned(), 0));
    let attempts = world.bind().attempts;
    assert_eq!(world.wait(250).attempts, attempts);
}

#[test]
fn a_pod_that_must_not_preempt_is_reported() {
    let mut world = world(&[4]);
    run(&mut world, "l", 4, 1, "n1");
    world.put("p", 4, &json!({"priority": 1000, "gated": ""}));
    let pod = Arc::clone(&world.pods["p"]);
    let template = Template { preempts: false, ..Template::clone(&pod.template) };
    world
        .engine
        .set_pod(Arc::new(Pod { template: Arc::new(template), gates: Vec::new(), ..Pod::clone(&pod) }), world.now);
    world.run();
    assert!(world.messages["p"].ends_with("preemption: not eligible due to preemptionPolicy=Never."));
}
