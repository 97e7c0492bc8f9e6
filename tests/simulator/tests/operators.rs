//! Operators with and without a planted bug: the first are found out, the others are not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../controllers/runtime/examples/name_cards/controller.rs"]
mod example;

use std::{collections::BTreeSet, fmt::Display, sync::Arc, time::Duration};

use http::Method;
use jiff::Timestamp;
use koord_resource::controller;
use koord_runtime::{
    Core,
    cache::Change,
    controller::{Controller, Requests},
    error::ReconcileError,
    key::ObjectKey,
    outcome::Outcome,
    random::Random,
    store::Store,
};
use koord_simulator::{Counterexample, Failed, Fault, Options, Simulation, Stage, Trial, people::name_of};
use serde_json::{Map, Value, json};

use self::example::{COMPONENT, CardView, NAMESPACE, NameCards, NodeView, body};

const NODES: &str = "/api/v1/nodes";
const CARDS: &str = "/api/v1/namespaces/cards/configmaps";
/// Few names, so that things that happen to one name meet.
const NAMES: u64 = 6;

// === the operators ===

/// Planted bug: it follows nodes alone, and does not see that a card came after its node was gone.
#[controller(name = "one-sided", for = nodes, owns(cards, by = nobody, namespace = NAMESPACE))]
pub(crate) struct OneSided {
    nodes: Arc<Store<NodeView>>,
    cards: Arc<Store<CardView>>,
}

fn nobody(_: &Change<CardView>, _: &mut Requests) {}

impl Controller for OneSided {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        let (nodes, cards) = (self.nodes.read(), self.cards.read());
        let card = ObjectKey::new(NAMESPACE, key.name());
        let mut outcome = Outcome::settled();
        if nodes.get(key.as_str()).is_some() {
            outcome.present(&cards, &card, body(key.name(), None))?;
        } else {
            outcome.absent(&cards, &card);
        }
        Ok(outcome)
    }
}

/// Planted bug: it writes the time of its last look on every card.
#[controller(name = "restless", for = nodes, owns(cards, by = its_node, namespace = NAMESPACE))]
pub(crate) struct Restless {
    nodes: Arc<Store<NodeView>>,
    cards: Arc<Store<CardView>>,
}

fn its_node(change: &Change<CardView>, requests: &mut Requests) {
    requests.enqueue(&ObjectKey::cluster(change.key.name()));
}

impl Controller for Restless {
    fn reconcile(&self, key: &ObjectKey, now: Timestamp) -> Result<Outcome, ReconcileError> {
        let (nodes, cards) = (self.nodes.read(), self.cards.read());
        let card = ObjectKey::new(NAMESPACE, key.name());
        let mut outcome = Outcome::settled();
        if nodes.get(key.as_str()).is_none() {
            outcome.absent(&cards, &card);
            return Ok(outcome);
        }
        let data = json!({"name": key.name(), "seen": now.to_string()});
        outcome.present(&cards, &card, Map::from_iter([("data".to_owned(), data)]))?;
        outcome.requeue_after(Duration::from_mins(10));
        Ok(outcome)
    }
}

// === what is tried with them ===

fn trial<E: Display>(wire: impl Fn(&mut Core) -> Result<(), E> + Sync + 'static) -> Trial {
    Trial::of(wire)
        .given(|stage| {
            stage.person(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}}));
        })
        .users(nodes_come_and_go)
        .eventually("every node has its card", every_node_has_its_card)
}

fn name_cards() -> Trial {
    trial(|core| core.add(NameCards::SPEC, COMPONENT, NameCards::wire).map(drop))
}

fn nodes_come_and_go(stage: &mut Stage, random: &Random) -> String {
    let name = format!("n{}", random.below(NAMES));
    let (what, code) = if random.below(3) > 0 {
        ("adds", stage.person(&Method::POST, NODES, &json!({"metadata": {"name": name}})))
    } else {
        ("removes", stage.person(&Method::DELETE, &format!("{NODES}/{name}"), &Value::Null))
    };
    format!("{what} {name} -> {code}")
}

fn every_node_has_its_card(stage: &mut Stage) -> Result<(), String> {
    let mut names = |path: &str| -> BTreeSet<String> { stage.objects(path).iter().map(name_of).collect() };
    let (nodes, cards) = (names(NODES), names(CARDS));
    if nodes == cards { Ok(()) } else { Err(format!("there are nodes {nodes:?} and cards {cards:?}")) }
}

/// What is wrong with an operator, as one of so many seeds shows it.
fn wrong(trial: &Trial, seeds: u64) -> Counterexample {
    match Simulation::of(trial).play_seeds(0..seeds) {
        Err(Failed::Wrong(found)) => *found,
        other => panic!("{other:?}"),
    }
}

// === the tests ===

#[test]
fn an_operator_without_a_bug_survives_everything() {
    let played = Simulation::of(&name_cards()).play_seeds(0..40).unwrap();
    assert_eq!(played.seeds, 40);
    for fault in [Fault::Crash, Fault::Lost, Fault::Conflict, Fault::StaleList] {
        assert!(played.faults.contains_key(&fault), "{fault:?}: {:?}", played.faults);
    }
}

#[test]
fn an_operator_that_does_not_see_its_late_writes_is_found_out() {
    let trial = trial(|core| core.add(OneSided::SPEC, COMPONENT, OneSided::wire).map(drop));
    let found = wrong(&trial, 40);
    assert!(found.failure.what.starts_with("every node has its card: there are nodes"), "{found}");
    assert!(found.failure.story.contains("a person: adds n"), "{found}");

    // One write less before the faults stop, and nothing is wrong: the story has nothing to spare.
    let shorter = Options { writes: found.writes - 1, ..Options::default() };
    let simulation = Simulation::of(&trial);
    assert!(found.writes < Options::default().writes && simulation.run(found.failure.seed, shorter).is_ok(), "{found}");
    // The seed alone gives the same story.
    assert_eq!(simulation.play_seeds([found.failure.seed]), Err(Failed::Wrong(Box::new(found))));
}

#[test]
fn an_operator_that_writes_for_ever_is_found_out() {
    let found = wrong(&trial(|core| core.add(Restless::SPEC, COMPONENT, Restless::wire).map(drop)), 3);
    assert!(found.failure.what.contains("writes in 1800s after everything was right"), "{found}");
}

#[test]
fn what_must_hold_always_is_looked_at_on_the_way() {
    let trial = name_cards().always("few cards", |stage| {
        let cards = stage.objects(CARDS).len();
        if cards < 3 { Ok(()) } else { Err(format!("there are {cards}")) }
    });
    let found = wrong(&trial, 10);
    assert_eq!(found.failure.what, "few cards: there are 3");
    assert!((3..Options::default().writes).contains(&found.writes), "three nodes come before three cards: {found}");
}

#[test]
fn users_who_do_nothing_do_not_go_on_for_ever() {
    let found = wrong(&Trial::of(|_: &mut Core| Ok::<(), String>(())), 1);
    assert_eq!(found.failure.what, "people have acted 10000 times, and nothing was written");
    assert!(found.failure.story.contains("a person: nobody: call Trial::users"), "{found}");
}
