//! Which reservations and nodes are looked at for a pod that asks for a reservation, and for a Reservation that takes pods over
//! (3C.5, 3C.6).

use super::*;

fn restricted(node: &str) -> Value {
    json!({"allocatePolicy": "Restricted", "nodeName": node})
}

/// A node that takes so many pods.
fn narrow(pods: u32) -> Arc<koord_scheduler_framework::node::Node> {
    let allocatable = json!({"cpu": "16", "memory": "1Ti", "pods": pods.to_string()});
    node("n1", &json!({"status": {"allocatable": allocatable}}))
}

const TOO_LARGE: &str = "1 Reservation(s) Insufficient cpu, requested: 6000, used: 0, capacity: 4000, \
     1 node(s) didn't satisfy plugin(s) [Reservation]. 1 Reservation(s) exactly matches the requested reservation name, ";

#[test]
fn nodes_without_a_required_reservation_are_left_out() {
    let mut world = World::new(&[8, 16]);
    world.reserve("r1", 4, &restricted("n1"));
    let named = r#"{"name":"r1"}"#;
    let said = format!("0/2 nodes are available: {TOO_LARGE}1 Reservation(s) matched owner total");
    assert_eq!(world.owner("p", 6, named), said);
    // The node of the reservation lacks cpu, and the other one is not asked.
    let said = world.owner("q", 9, named);
    assert!(
        said.starts_with(
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [Reservation]."
        ),
        "{said}"
    );
    assert_eq!(world.owner("s", 4, named), "n1 in r1");
}

#[test]
fn nodes_that_are_left_out_have_a_code_of_the_plugin() {
    let mut world = World::new(&[8, 16]);
    world.reserve("r1", 4, &restricted("n1"));
    assert!(world.owner("p", 6, r#"{"name":"r1"}"#).contains(TOO_LARGE));
    let nodes = world.engine.on_nodes(&Uid::from("p")).unwrap();
    let reasons = nodes.iter().flat_map(|on| &on.refusals).flat_map(|one| &one.reasons);
    let left_out = reasons.filter(|reason| reason.text.contains("didn't satisfy"));
    assert_eq!(left_out.map(|reason| reason.code).collect::<Vec<_>>(), [ReasonCode::ReservationNotMatched]);
}

#[test]
fn a_pod_that_names_a_reservation_is_not_compared_with_those_of_other_nodes() {
    let mut world = World::new(&[16, 16]);
    world.reserve("r1", 4, &restricted("n1"));
    world.reserve("r2", 4, &restricted("n2"));
    let named = r#"{"name":"r1"}"#;
    let said = format!("0/2 nodes are available: {TOO_LARGE}1 Reservation(s) matched owner total");
    assert_eq!(world.owner("p", 6, named), said);
    world.reserve("r3", 2, &restricted("n1"));
    let said = format!(
        "0/2 nodes are available: {TOO_LARGE}1 Reservation(s) didn't match the requested reservation name, \
         2 Reservation(s) matched owner total"
    );
    assert_eq!(world.owner("q", 6, named), said);
    // Without a node of the name, all reservations are compared with it.
    let said = "0/2 nodes are available: node(s) no reservations match reservation affinity. \
         3 Reservation(s) didn't match the requested reservation name, 3 Reservation(s) matched owner total";
    assert_eq!(world.owner("s", 2, r#"{"name":"none"}"#), said);
}

#[test]
fn reservations_on_nodes_that_the_pod_does_not_select_do_not_count() {
    let mut world = World::new(&[8, 16]);
    world.reserve("r", 4, &json!({"nodeName": "n1"}));
    let on_n2 = |name: &str, affinity: &str| {
        let spec = json!({
            "nodeSelector": {"kubernetes.io/hostname": "n2"},
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "17"}}}],
        });
        let pod = World::of(name, 17, &[("app", "x")], affinity);
        let annotations = pod.template.annotations.iter().collect();
        let template =
            Template::of("ns", pod.template.labels.clone(), &annotations, &serde_json::from_value(spec).unwrap());
        Pod { template: Arc::new(template.unwrap()), ..pod }
    };
    let mut said = |pod: Pod| {
        world.engine.set_pod(Arc::new(pod), world.now);
        world.attempt()
    };
    assert_eq!(
        said(on_n2("p", "{}")),
        "0/2 nodes are available: node(s) no reservations match reservation affinity. 0 Reservation(s) matched owner total"
    );
    assert!(!said(on_n2("q", "")).contains("Reservation(s)"));
}

#[test]
fn pods_of_one_kind_follow_the_reservations_from_node_to_node() {
    let mut world = World::new(&[8, 8, 8]);
    let any = r#"{"reservationSelector":{}}"#;
    for (round, nodes) in [["n1", "n2"], ["n3", "n1"]].into_iter().enumerate() {
        for node in nodes {
            let name = format!("r-{round}-{node}");
            assert_eq!(world.reserve(&name, 2, &json!({"nodeName": node})), node);
        }
        let mut used: Vec<String> = (0..2).map(|pod| world.owner(&format!("p-{round}-{pod}"), 2, any)).collect();
        used.sort();
        let mut expected = nodes.map(|node| format!("{node} in r-{round}-{node}"));
        expected.sort();
        assert_eq!(used, expected);
        assert!(world.owner(&format!("late-{round}"), 2, any).contains("no reservations match reservation affinity"));
        world.engine.remove_pod(&Uid::from(&*format!("late-{round}")), world.now);
    }
}

#[test]
fn a_reservation_that_must_pre_allocate_is_filtered_where_the_pods_run() {
    let mut world = World::new(&[4, 16]);
    for (name, app) in [("a", "x"), ("b", "y")] {
        let running = World::of(name, 2, &[("app", app)], "");
        world.engine.set_pod(Arc::new(Pod { node: Some("n1".into()), ..running }), world.now);
    }
    let over = |is_required: bool| {
        let required = json!({"scheduling.koordinator.sh/pre-allocation-required": is_required.to_string()});
        json!({"allocatePolicy": "Restricted", "preAllocation": true, "labels": required})
    };
    assert_eq!(
        world.reserve("r1", 4, &over(true)),
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [Reservation]."
    );
    world.engine.remove_object(std::any::TypeId::of::<ReservationObject>(), "r1", world.now);
    assert_eq!(world.reserve("r2", 4, &over(false)), "n2");
}

#[test]
fn an_owner_takes_the_place_of_the_pod_that_stands_for_its_reservation() {
    let mut world = World::new(&[]);
    world.engine.set_node(narrow(1), world.now);
    assert_eq!(world.reserve("r", 4, &json!({})), "n1");
    assert_eq!(world.pod("other", 1, &[], ""), "0/1 nodes are available: 1 Too many pods.");
    assert_eq!(world.owner("p", 2, ""), "n1 in r");
}

#[test]
fn an_operating_pod_is_known_though_it_is_added_before_its_node() {
    let labels = [("scheduling.koordinator.sh/operating-mode", "Reservation")];
    let owners = r#"[{"labelSelector":{"matchLabels":{"app":"x"}}}]"#;
    let annotations = [("scheduling.koordinator.sh/reservation-owners", owners)].into_iter().collect();
    let pod = World::of("op", 4, &labels, "");
    let template = Arc::new(Template { annotations, ..Template::clone(&pod.template) });
    let pod = Pod { template, node: Some("n1".into()), is_running: true, is_ready: true, ..pod };
    let mut world = World::new(&[]);
    world.engine.set_pod(Arc::new(pod), world.now);
    let allocatable = json!({"cpu": "4", "memory": "1Ti", "pods": "110"});
    world.engine.set_node(node("n1", &json!({"status": {"allocatable": allocatable}})), world.now);
    assert_eq!(world.pod("other", 2, &[], ""), FULL);
    assert_eq!(world.owner("p", 4, ""), "n1 in op");
}
