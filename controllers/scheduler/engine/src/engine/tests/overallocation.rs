//! What is given to more than may have it.

use std::sync::Arc;

use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    Audit, DoubleAllocation, Plugin, Registration,
    cluster::{Subject, Turn},
    pod::Reference,
};

use super::*;
use crate::engine::{Overallocation, Whose};

/// Gives each pod of a node the same thing, and all pods of the cluster another one.
struct Careless;

impl Plugin for Careless {
    fn name(&self) -> &'static str {
        "Careless"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).audit(&self)
    }
}

impl Audit for Careless {
    fn double_allocations(&self, cluster: &Cluster, row: Option<Row>) -> Vec<DoubleAllocation> {
        let (what, pods): (_, Vec<&Placed>) = match row {
            Some(row) => ("seat", cluster.pods_on(row).collect()),
            None => ("key", cluster.pods().collect()),
        };
        let names: Vec<&str> = pods.iter().map(|placed| placed.pod.key.name()).collect();
        let (details, pods) = (names.join(" and "), pods.iter().map(|placed| placed.pod.uid.clone()).collect());
        if names.len() > 1 { vec![DoubleAllocation { what, details, pods, subject: None }] } else { Vec::new() }
    }
}

/// A round of looking: what is new.
fn round(engine: &mut Engine) -> Vec<Overallocation> {
    let mut found = engine.overallocations(Turn::Rows(0), usize::MAX);
    found.extend((0..3).flat_map(|part| engine.overallocations(Turn::Whole(part), usize::MAX)));
    found
}

fn figures(engine: &Engine) -> Vec<String> {
    let figures = engine.figures().into_iter();
    figures.map(|figure| format!("{} {} {}", figure.name, figure.labels.join(" "), figure.value)).collect()
}

#[test]
fn what_is_given_twice_is_reported_once_and_counted_while_it_is() {
    let profiles = ["test", "more"].map(|name| Profile::of(name, vec![Arc::new(Careless)]));
    let mut engine = Engine::new(profiles.to_vec(), Timings::default(), Random::seeded(1));
    engine.set_node(node("n1", 9), at(0));
    engine.set_pod(pod("a", "test", Some("n1")), at(0));
    assert_eq!((round(&mut engine), figures(&engine)), (vec![], vec![]));
    engine.set_pod(pod("b", "more", Some("n1")), at(0));
    let excess =
        |subject, what, details: &str, whose| Overallocation { subject, what, details: details.to_owned(), whose };
    let on_node = |details, whose| excess(Subject::Node("n1".into()), "seat", details, whose);
    let anywhere = |details, whose| excess(Subject::Cluster, "key", details, whose);
    assert_eq!(
        round(&mut engine),
        [on_node("a and b", Whose::ThisScheduler), anywhere("a and b", Whose::ThisScheduler)]
    );
    assert_eq!(round(&mut engine), []);
    assert_eq!(figures(&engine), ["koord_scheduler_given_twice key own 1", "koord_scheduler_given_twice seat own 1"]);
    engine.set_pod(pod("c", "other", Some("n1")), at(0));
    let three = "a and b and c";
    assert_eq!(round(&mut engine), [on_node(three, Whose::Others), anywhere(three, Whose::Others)]);
    for name in ["b", "c"] {
        engine.remove_pod(&Uid::from(name), at(1));
    }
    assert_eq!((round(&mut engine), figures(&engine)), (vec![], vec![]));
    engine.set_pod(pod("b", "more", Some("n1")), at(2));
    assert_eq!(round(&mut engine).len(), 2, "it is new again");
    engine.clear();
    assert_eq!(figures(&engine), [""; 0]);
}

#[test]
fn a_node_is_overcommitted_by_the_pods_of_this_scheduler_only_where_these_alone_exceed_it() {
    let mut engine = engine();
    let mut of_pods = |change: &dyn Fn(&mut Engine)| {
        change(&mut engine);
        assert_eq!(round(&mut engine), [], "it is no event");
        figures(&engine)
    };
    let add = |name: &'static str, scheduler: &'static str| {
        move |engine: &mut Engine| engine.set_pod(pod(name, scheduler, Some("n1")), at(0))
    };
    assert_eq!(of_pods(&|engine| engine.set_node(node("n1", 2), at(0))), [""; 0]);
    assert_eq!(of_pods(&add("a", "test")), [""; 0]);
    let reserve_pod = |engine: &mut Engine| {
        for name in ["r", "s"] {
            let reference = Reference { kind: ResourceKind::POD, key: ObjectKey::cluster(name) };
            let pod = Pod { reservation: Some(Arc::new(reference)), ..Pod::clone(&pod(name, "test", None)) };
            engine.cluster.place(Arc::new(pod), &"n1".into(), Holds::default());
        }
    };
    assert_eq!(of_pods(&reserve_pod), [""; 0], "its owners are counted themselves");
    assert_eq!(of_pods(&add("b", "other")), [""; 0]);
    let overcommitted = |whose: &str| [format!("koord_scheduler_nodes_overcommitted pods {whose} 1")];
    assert_eq!(of_pods(&add("c", "test")), overcommitted("others"));
    assert_eq!(of_pods(&|engine| engine.set_node(node("n1", 1), at(0))), overcommitted("own"));
    assert_eq!(of_pods(&|engine| engine.set_node(node("n1", 5), at(0))), [""; 0]);
    assert_eq!(of_pods(&|engine| engine.set_node(node("n1", 0), at(0))), overcommitted("own"));
    assert_eq!(of_pods(&|engine| engine.remove_node("n1", at(0))), [""; 0]);
}
