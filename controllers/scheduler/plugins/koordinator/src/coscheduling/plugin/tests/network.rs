//! Gangs that ask for a place in the network, on the seven nodes of the recordings: blocks of two, two and three nodes, of
//! which the last is a spine of its own.

use koord_config::scheduler::DefaultPreemptionArgs;
use koord_scheduler_framework::PreFilter;
use koord_scheduler_plugins_kubernetes::DefaultPreemption;
use koord_types::cluster_network_topology::ClusterNetworkTopology;

use super::*;

const NODES: [(&str, &str, &str); 7] = [
    ("n1", "b1", "s1"),
    ("n2", "b1", "s1"),
    ("n3", "b2", "s1"),
    ("n4", "b2", "s1"),
    ("n5", "b3", "s2"),
    ("n6", "b3", "s2"),
    ("n7", "b3", "s2"),
];

/// Seven nodes of four cpus.
pub(super) fn world(args: &Value) -> World {
    world_beside(None, args, false)
}

fn world_beside(other: Option<Arc<dyn Plugin>>, args: &Value, in_batches: bool) -> World {
    let mut args = args.clone();
    if args["awareNetworkTopology"].is_null() {
        args["awareNetworkTopology"] = json!(true);
    }
    let plugin = Coscheduling::new(&serde_json::from_value(args).unwrap()).in_batches(in_batches);
    let mut world = World::beside(other, plugin, &[]);
    for (name, block, spine) in NODES {
        world.add_node_at(name, 4, &json!({"t/block": block, "t/spine": spine}));
    }
    set_topology(&mut world);
    world
}

fn set_topology(world: &mut World) {
    let spec = json!({"networkTopologySpec": [
        {"labelKey": ["t/spine"], "parentTopologyLayer": "ClusterTopologyLayer", "topologyLayer": "SpineLayer"},
        {"labelKey": ["t/block"], "parentTopologyLayer": "SpineLayer", "topologyLayer": "BlockLayer"},
        {"parentTopologyLayer": "BlockLayer", "topologyLayer": "NodeTopologyLayer"},
    ]});
    let value: ClusterNetworkTopology = serde_json::from_value(json!({ "spec": spec })).unwrap();
    let key = ObjectKey::cluster("default");
    world.engine.set_object(Object::new(key, Uid::from("t"), false, Arc::new(value)), world.now);
}

/// A gang of so many that gathers in this layer.
pub(super) fn gathered(min: usize, strategy: &str) -> Value {
    let spec = format!(r#"{{"gatherStrategy":[{strategy}]}}"#);
    json!({"name": "g", "min-available": min.to_string(), "network-topology-spec": spec})
}

pub(super) fn must(layer: &str) -> String {
    format!(r#"{{"layer":"{layer}","strategy":"MustGather"}}"#)
}

/// Where the pods are to be bound, by name.
fn nodes(world: &World) -> String {
    let node = |attempt: &Attempt| match &attempt.outcome {
        Outcome::Bind { node, .. } => node.to_string(),
        _ => unreachable!(),
    };
    world.bound.values().map(node).collect::<Vec<_>>().join(" ")
}

#[test]
fn members_are_gathered_where_they_ask_for_it() {
    let names = ["p1", "p2", "p3", "p4"];
    let multiple = r#"{"layer":"BlockLayer","strategy":"PreferGather","podCountMultiple":2}"#.to_owned();
    for (members, strategy, expected) in [
        (3, must("BlockLayer"), "n5 n6 n7"),
        (4, must("SpineLayer"), "n1 n2 n3 n4"),
        (4, multiple, "n1 n2 n3 n4"),
        (2, must("BlockLayer"), "n1 n2"),
    ] {
        let mut world = world(&json!({}));
        world.create(&names[..members], 4, &gathered(members, &strategy));
        assert_eq!(nodes(&world), expected, "{members} {strategy}");
        assert_eq!(world.engine.cluster().discrepancies(), []);
    }
    // topo-two-per-node
    let mut two = world(&json!({}));
    two.create(&["p1", "p2"], 2, &gathered(2, &must("NodeTopologyLayer")));
    assert_eq!(nodes(&two), "n1 n1");
    // topo-must-block-tight
    let mut tight = world(&json!({}));
    tight.put("a", 4, &json!({"node": "n1"}));
    tight.create(&["p1", "p2"], 4, &gathered(2, &must("BlockLayer")));
    assert_eq!(nodes(&tight), "n3 n4");
}

#[test]
fn a_gang_without_a_place_says_which_places_are_too_small() {
    let mut world = world(&json!({}));
    world.create(&["p1", "p2", "p3", "p4"], 4, &gathered(4, &must("BlockLayer")));
    let places = "topology topologyNode BlockLayer/b1: 2;topology topologyNode BlockLayer/b2: 2;topology topologyNode \
                  BlockLayer/b3: 3, 0/7 nodes are available: 7 Insufficient cpu.";
    let why = format!("no candidate topology nodes can accommodate job, desiredOfferSlot: 4, {places}");
    assert_eq!(world.messages["p4"], format!("0/7 nodes are available: {why}."));
    let reason = format!("0/7 nodes are available: 7 {why}.");
    assert_eq!(
        world.messages["p1"],
        format!(
            "0/7 nodes are available: GangGroup \"ns/g\" gets rejected due to member Pod \"ns/p4\" is unschedulable with \
             reason {reason:?}, alreadyWaitForBound: 0."
        )
    );
    let attempts = world.attempts;
    assert_eq!((world.bound(), world.wait(250).attempts), (String::new(), attempts), "nothing has changed");
    // A fourth node in the block.
    world.add_node_at("n8", 4, &json!({"t/block": "b3", "t/spine": "s2"}));
    world.wait(12);
    assert_eq!(nodes(&world), "n5 n6 n7 n8");
}

/// Admits pods to a cluster with fewer pods than this.
struct AtMost(usize);

impl Plugin for AtMost {
    fn name(&self) -> &'static str {
        "AtMost"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).pre_filter(&self)
    }
}

impl PreFilter for AtMost {
    fn pre_filter(&self, _: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        let is_full = cluster.pods().count() >= self.0;
        if is_full { Err(Rejection::unschedulable(ReasonCode::TooManyPods.reason("too many"))) } else { Ok(()) }
    }
}

#[test]
fn a_gang_that_is_tried_as_a_whole_fails_before_its_first_member_is_placed() {
    let tried = |pods_max: usize, in_batches: bool, args: &Value| {
        let mut world = world_beside(Some(Arc::new(AtMost(pods_max))), args, in_batches);
        world.put("low", 4, &json!({"node": "n7", "priority": -1}));
        world.create(&["p1", "p2"], 4, &gathered(2, &must("BlockLayer")));
        world
    };
    let gang = "GangGroup \"ns/g\" gets rejected due to member Pod";
    let without = tried(2, false, &json!({}));
    assert_eq!(without.messages["p1"], "0/7 nodes are available: too many.");
    assert!(without.messages["p2"].starts_with(&format!("0/1 nodes are available: 1 {gang} \"ns/p1\"")));
    let failed = "0/7 nodes are available: job batch schedule failed.";
    let mut with = tried(2, true, &json!({}));
    assert_eq!((with.bound(), &*with.messages["p2"]), (String::new(), failed));
    let reason = format!("{gang} \"ns/p2\" is unschedulable with reason \"0/7 nodes are available: 7 job batch");
    assert!(with.messages["p1"].contains(&reason), "{}", with.messages["p1"]);
    let ended = with.engine.take_ended_jobs();
    assert_eq!(ended.iter().map(|job| (job.is_complete, job.is_batch)).collect::<Vec<_>>(), [(false, true)]);
    let evicting = tried(2, true, &json!({"enablePreemption": true}));
    assert_eq!(evicting.evicted, [""; 0]);
    let mut fits = tried(3, true, &json!({}));
    assert_eq!((fits.bound(), nodes(&fits)), ("p1:2 p2:2".to_owned(), "n5 n6".to_owned()));
    let ended = fits.engine.take_ended_jobs();
    assert_eq!(ended.iter().map(|job| (job.is_complete, job.is_batch)).collect::<Vec<_>>(), [(true, true)]);
}

#[test]
fn members_sit_down_by_name_whatever_their_index() {
    let mut world = world(&json!({}));
    for (name, index) in [("p1", "2"), ("p2", "1"), ("p3", "0")] {
        let mut gang = gathered(3, &must("BlockLayer"));
        gang["network-topology-index"] = json!(index);
        world.put(name, 4, &gang);
    }
    world.run();
    assert_eq!(nodes(&world), "n5 n6 n7");
}

#[test]
fn a_gang_that_requires_a_topology_waits_for_one_whether_it_counts_or_not() {
    let unknown = "0/1 nodes are available: no cluster network topology.";
    let helpless = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
    for (args, said) in [
        (json!({}), unknown.to_owned()),
        (json!({"awareNetworkTopology": true}), unknown.to_owned()),
        (json!({"awareNetworkTopology": true, "enablePreemption": true}), format!("{unknown} {helpless}")),
    ] {
        let mut world = World::with(Coscheduling::new(&serde_json::from_value(args.clone()).unwrap()), &[]);
        world.add_node_at("n1", 8, &json!({"t/block": "b1", "t/spine": "s1"}));
        world.create(&["p1", "p2"], 1, &gathered(2, &must("BlockLayer")));
        let messages = BTreeMap::from([("p2".to_owned(), said)]);
        assert_eq!(world.messages, messages, "{args}: nothing is said of the others, which are not tried");
        assert!(world.engine.take_ended_jobs().is_empty(), "{args}: no round has begun");
        assert_eq!(world.create(&["x"], 1, &json!({})).bound(), "x");
        set_topology(&mut world);
        assert_eq!(world.wait(12).bound(), "p1:2 p2:2 x", "{args}");
    }
}

#[test]
fn a_gang_goes_where_it_fits_where_its_place_does_not_count() {
    let mut world = world(&json!({"awareNetworkTopology": false}));
    world.create(&["p1", "p2", "p3", "p4"], 4, &gathered(4, &must("BlockLayer")));
    assert_eq!(world.bound(), "p1:4 p2:4 p3:4 p4:4", "though no block has room for four");
}

#[test]
fn a_gang_that_fits_on_each_node_and_has_no_place_says_nothing_of_the_nodes() {
    let mut world = world(&json!({}));
    world.create(&["p1"], 1, &gathered(1, &must("RackLayer")));
    let why = "no candidate topology nodes can accommodate job, desiredOfferSlot: 1, , 0/7 nodes are available:";
    assert_eq!(world.messages["p1"], format!("0/7 nodes are available: {why}."));
}

#[test]
fn where_coscheduling_does_not_preempt_default_preemption_does_for_the_member_that_was_tried() {
    let evicted = |args: &Value| {
        let preemption = DefaultPreemption::new(&DefaultPreemptionArgs::default());
        let mut world = world_beside(Some(Arc::new(preemption)), args, false);
        for (node, ..) in NODES {
            world.put(&format!("l-{node}"), 4, &json!({"node": node, "priority": 1}));
        }
        let mut gang = gathered(4, &must("BlockLayer"));
        gang["priority"] = json!(1000);
        world.create(&["p1", "p2", "p3", "p4"], 4, &gang);
        world.evicted
    };
    let alone = evicted(&json!({}));
    assert!(matches!(&alone[..], [one] if one.ends_with(" for p4")), "{alone:?}");
    assert_eq!(evicted(&json!({"enablePreemption": true})), [""; 0], "no block would have room for four");
}

#[test]
fn members_of_different_size_are_tried_each_with_its_own() {
    let mut world = world(&json!({}));
    let gang = gathered(2, &must("BlockLayer"));
    world.put("p1", 4, &gang);
    world.put("p2", 1, &gang);
    world.run();
    assert_eq!(nodes(&world), "n1 n2", "the small one does not fit beside the large one");
}

#[test]
fn members_that_come_later_go_where_they_fit() {
    let mut world = world(&json!({}));
    world.create(&["p1", "p2"], 4, &gathered(2, &must("BlockLayer"))).bind();
    world.create(&["p3"], 4, &gathered(2, &must("BlockLayer")));
    assert!(world.bound.contains_key("p3"), "though its block is full: {:?}", world.messages);
}

#[test]
fn the_members_of_a_group_are_arranged_together() {
    let of = |name: &str| {
        let mut gang = gathered(1, &must("BlockLayer"));
        (gang["name"], gang["groups"]) = (json!(name), json!(r#"["ns/A","ns/B","ns/C"]"#));
        gang
    };
    let mut world = world(&json!({}));
    for (name, gang) in [("a", "A"), ("b", "B"), ("c", "C")] {
        world.put(name, 4, &of(gang));
    }
    world.run();
    assert_eq!(nodes(&world), "n5 n6 n7");
}

#[test]
fn a_pod_goes_near_to_those_with_the_same_selector() {
    let near = |node: Option<&str>| {
        let mut pod = json!({"scheduling.koordinator.sh/network-topology-selector": "job-1"});
        if let Some(node) = node {
            pod["node"] = json!(node);
        }
        pod
    };
    let mut world = world(&json!({}));
    world.put("a", 1, &near(Some("n6")));
    world.create(&["p1"], 1, &near(None)).bind();
    assert_eq!(nodes(&world), "n6");
    world.create(&["p2"], 4, &near(None));
    assert!(matches!(nodes(&world).as_str(), "n6 n5"), "in its block: {}", nodes(&world));
}
