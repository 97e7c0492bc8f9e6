//! Which pods of a node count, and since when.

use koord_scheduler_framework::{AttemptState, Filter as _, pod::Reference};

use super::*;

/// A pod of 40 cores that is bound to a node.
fn bound(node: &str, scheduled: i64) -> Pod {
    Pod { node: Some(node.into()), scheduled: Some(scheduled), ..Pod::clone(&sized("a", "40", "10Gi")) }
}

/// Two nodes that use 35 of 100 cores, 5 of which are those of the pod.
fn measured() -> World {
    let mut world = World::new(&thresholds(), &["n1", "n2"]);
    let amounts = |cpu: &str| json!({"resources": {"cpu": cpu, "memory": "10Gi"}});
    let pods = json!([{"name": "a", "namespace": "ns", "podUsage": amounts("5")}]);
    for node in ["n1", "n2"] {
        world.report(node, 20, &json!({"nodeMetric": {"nodeUsage": amounts("35")}, "podsMetric": pods}));
    }
    world
}

/// The nodes that have room for a pod of 5 cores.
fn nodes_with_capacity(world: &World) -> Vec<&'static str> {
    let mut cluster = world.engine.cluster().clone();
    let pod = sized("p", "5", "1Gi");
    let class = cluster.class(&pod.template);
    let request = Request { pod: &pod, class: &class, plugins: &[], state: &AttemptState::default() };
    let args: LoadAwareSchedulingArgs = koord_config::arguments(&thresholds()).unwrap();
    let PreparedFilter::Nodes(filter) = LoadAwareScheduling::new(&args).prepare_filter(&request, &cluster) else {
        panic!("no filter")
    };
    let fits_in = |name: &&str| filter.filter(&cluster, cluster.row(name).unwrap()).is_ok();
    ["n1", "n2"].into_iter().filter(fits_in).collect()
}

#[test]
fn a_pod_counts_since_its_condition_and_on_its_node() {
    let mut world = measured();
    let mut after = |pod: Pod| {
        let now = world.now();
        world.engine.set_pod(Arc::new(pod), now);
        nodes_with_capacity(&world)
    };
    let (long_ago, just_now) = (START - 500, START);
    assert_eq!(after(bound("n1", long_ago)), ["n1", "n2"], "it is measured");
    assert_eq!(after(bound("n1", just_now)), ["n2"], "it was not there for the whole time");
    let labelled = |pod: Pod| {
        let labels = [("k", "v")].into_iter().collect();
        Pod { template: Arc::new(Template { labels, ..Template::clone(&pod.template) }), ..pod }
    };
    assert_eq!(after(labelled(bound("n1", long_ago))), ["n1", "n2"]);
    assert_eq!(after(bound("n1", long_ago)), ["n1", "n2"], "another label is no other time");
    assert_eq!(after(bound("n2", just_now)), ["n1"], "it has moved");
}

#[test]
fn another_annotation_alone_does_not_change_what_a_pod_is_estimated_to_use() {
    let mut args = thresholds();
    args["allowCustomizeEstimation"] = json!(true);
    let mut world = World::new(&args, &["n1"]);
    world.use_of("n1", "50", "10Gi");
    // With 8.5 cores of each of two such pods 67 are used.
    let running = Pod { node: Some("n1".into()), scheduled: Some(START), ..Pod::clone(&sized("a", "10", "1Gi")) };
    let factors = |pod: Pod, text: &str| {
        let factors = [("scheduling.koordinator.sh/load-estimated-scaling-factors", text)];
        Pod::clone(&with(&Arc::new(pod), |template| template.annotations = factors.into_iter().collect()))
    };
    let little = factors(running.clone(), r#"{"cpu":10}"#);
    let mut tried = |pod: Pod, name: &str| {
        let now = world.now();
        world.engine.set_pod(Arc::new(pod), now);
        assert_eq!(world.engine.cluster().discrepancies(), []);
        assert_eq!(world.engine.audit_all(), []);
        let placed = world.create(sized(name, "10", "1Gi"));
        let now = world.now();
        world.engine.remove_pod(&Uid::from(name), now);
        placed
    };
    assert_eq!(tried(running.clone(), "p1"), OVER_CPU);
    assert_eq!(tried(little.clone(), "p2"), OVER_CPU, "it is estimated as before");
    assert_eq!(tried(factors(little.clone(), r#"{"cpu":20}"#), "p3"), OVER_CPU, "and so after the next change");
    assert_eq!(tried(Pod { initialized: Some(START), ..little.clone() }, "p4"), "n1", "with its conditions");
    assert_eq!(
        tried(Pod { initialized: Some(START), ..running.clone() }, "p5"),
        "n1",
        "again it is estimated as before"
    );
    assert_eq!(tried(running, "p6"), OVER_CPU);
}

#[test]
fn pods_of_daemon_sets_count_and_those_that_stand_for_reservations_do_not() {
    let mut world = measured();
    let now = world.now();
    let of = |name: &str| Pod { key: ObjectKey::new("ns", name), uid: Uid::from(name), ..bound("n1", START) };
    let object = Reference { kind: ResourceKind::NODE, key: ObjectKey::cluster("r") };
    world.engine.set_pod(Arc::new(Pod { reservation: Some(Arc::new(object)), ..of("r") }), now);
    assert_eq!(nodes_with_capacity(&world), ["n1", "n2"]);
    world.engine.set_pod(Arc::new(Pod { is_of_daemon_set: true, ..of("daemon") }), now);
    assert_eq!(nodes_with_capacity(&world), ["n2"]);
}
