use std::time::Duration;

use koord_core::key::ObjectKey;
use koord_scheduling::ResourceId;

use super::*;
use crate::{
    columns::Row,
    event::Events,
    plugin::{Filter, Plugin, PreFilter, Refusal, Request},
    pod::Template,
};

/// Fits pods by their number.
struct Room;

impl Plugin for Room {
    fn name(&self) -> &'static str {
        "Room"
    }

    fn pre_enqueue(&self, pod: &Pod, _: &Cluster) -> Result<(), String> {
        if pod.gates.is_empty() { Ok(()) } else { Err("waits".to_owned()) }
    }

    fn filter(&self, _: &Request<'_>, _: &Cluster) -> PreFilter {
        PreFilter::Nodes(Box::new(Room))
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<String> {
        vec!["Too many pods".to_owned()]
    }

    fn events(&self) -> Events {
        Events::NODE_ADDED | Events::POD_REMOVED
    }
}

impl Filter for Room {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let room = cluster.allocatable(ResourceId::PODS, row) - cluster.requested(ResourceId::PODS, row);
        if room > 0 { Ok(()) } else { Err(Refusal::resolvable(0, 0)) }
    }
}

fn engine() -> Engine {
    let profile =
        Profile { scheduler: "test".into(), plugins: vec![Arc::new(Room)], filters: vec![0], ..Profile::default() };
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

fn next(engine: &mut Engine, now: Moment) -> String {
    match engine.attempt(now) {
        None => "-".to_owned(),
        Some(Attempt { pod, outcome: Outcome::Bind { node, .. }, .. }) => format!("{} on {node}", pod.key.name()),
        Some(Attempt { pod, outcome: Outcome::Refused(refused), .. }) => {
            format!("{}: {}", pod.key.name(), refused.message)
        }
        Some(Attempt { pod, outcome: Outcome::Waiting { node }, .. }) => format!("{} waits on {node}", pod.key.name()),
    }
}

#[test]
fn pods_are_placed_while_there_is_room_and_wait_for_it_otherwise() {
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
fn a_failed_binding_gives_the_room_back() {
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
