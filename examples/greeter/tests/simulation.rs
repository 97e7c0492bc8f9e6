//! The operator of the README in virtual time: what users do and what goes wrong follow from a seed.
//!
//! `docs/library.md` shows what is found of the planted bug; `UPDATE_GUIDE=1 cargo test -p greeter --test simulation found_out` writes it there.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../src/greeting.rs"]
mod greeting;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Display,
    fs,
    sync::{Arc, Mutex},
};

use greeting::{Greeting, Greetings};
use koord::{
    controller::ResourceKind,
    document::Declared,
    http::Method,
    jiff::Timestamp,
    runtime::{Core, controller::Controller, error::ReconcileError, key::ObjectKey, outcome::Outcome, random::Random},
    serde_json::{Value, json},
    simulation::{
        Failed, Fault, Simulation, Stage, Trial,
        people::{name_of, replace},
    },
};

const KINDS: [&[Declared]; 1] = [&[Declared::of::<Greeting>()]];
const GREETINGS: &str = "/apis/example.com/v1/namespaces/default/greetings";
const CARDS: &str = "/api/v1/namespaces/default/configmaps";
const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/library.md");
/// What stands in the guide before the text that is shown of the planted bug.
const BEFORE_TEXT: &str = "found_out -- --nocapture` prints it:\n\n```text\n";

fn trial<E: Display>(operator: impl Fn(&mut Core) -> Result<(), E> + Sync + 'static) -> Trial {
    Trial::of(operator)
        .kinds(KINDS)
        .users(act)
        .always("a card has one owner", a_card_has_one_owner)
        .eventually("every greeting has its card", every_greeting_has_its_card)
}

/// One thing that a user does.
fn act(stage: &mut Stage, random: &Random) -> String {
    let name = format!("g{}", random.below(4));
    let path = format!("{GREETINGS}/{name}");
    let spec = json!({"to": format!("user {}", random.below(5)), "times": 1 + random.below(3)});
    let body = json!({"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": name}, "spec": spec});
    let (what, code) = match random.below(6) {
        0 | 1 => ("creates", stage.person(&Method::POST, GREETINGS, &body)),
        2 | 3 => ("changes", stage.person(&Method::PATCH, &path, &json!({"spec": spec}))),
        4 => ("deletes", stage.person(&Method::DELETE, &path, &Value::Null)),
        _ => ("replaces", replace(stage, (&path, GREETINGS), &body)),
    };
    format!("{what} {name} -> {code}")
}

fn a_card_has_one_owner(stage: &mut Stage) -> Result<(), String> {
    let owners = |card: &Value| card["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len);
    match stage.objects(CARDS).iter().find(|card| owners(card) != 1) {
        None => Ok(()),
        Some(card) => Err(format!("{} has {} owners", name_of(card), owners(card))),
    }
}

fn every_greeting_has_its_card(stage: &mut Stage) -> Result<(), String> {
    let words = |greeting: &Value| {
        let hello = format!("Hello, {}!", greeting["spec"]["to"].as_str().unwrap_or_default());
        vec![hello; greeting["spec"]["times"].as_u64().unwrap_or(1) as usize].join(" ")
    };
    let wanted: BTreeMap<String, Value> =
        stage.objects(GREETINGS).iter().map(|greeting| (name_of(greeting), words(greeting).into())).collect();
    let found: BTreeMap<String, Value> =
        stage.objects(CARDS).iter().map(|card| (name_of(card), card["data"]["words"].clone())).collect();
    if found == wanted { Ok(()) } else { Err(format!("the cards say {found:?} instead of {wanted:?}")) }
}

#[test]
fn greetings_are_published_whatever_happens() -> Result<(), Failed> {
    let played = trial(|core| core.add(Greetings::SPEC, "greeter", Greetings::wire).map(drop)).play(40)?;
    assert!(played.faults.contains_key(&Fault::Lost), "{:?}", played.faults);
    Ok(())
}

/// Planted bug: what was sent counts as done, whatever the answer was.
struct Careless {
    greetings: Arc<Greetings>,
    sent: Arc<Mutex<BTreeSet<String>>>,
}

impl Controller for Careless {
    fn reconcile(&self, key: &ObjectKey, now: Timestamp) -> Result<Outcome, ReconcileError> {
        let mut outcome = self.greetings.reconcile(key, now)?;
        let plan = format!("{:?}", outcome.plan);
        if self.sent.lock().unwrap().contains(&plan) {
            return Ok(Outcome::settled());
        }
        let sent = Arc::clone(&self.sent);
        outcome.remember_of(ResourceKind::CONFIG_MAP, key, move |_| {
            sent.lock().unwrap().insert(plan);
        });
        Ok(outcome)
    }
}

#[test]
fn an_operator_that_does_not_look_at_answers_is_found_out() {
    let careless = |core: &mut Core| {
        let add = core.add(Greetings::SPEC, "greeter", |wiring| {
            Greetings::wire(wiring).map(|greetings| Arc::new(Careless { greetings, sent: Arc::default() }))
        });
        add.map(drop)
    };
    let trial = trial(careless);
    let Err(failed) = Simulation::of(&trial).play_seeds(0..40) else { panic!("nothing was found") };
    let Failed::Wrong(found) = &failed else { panic!("{failed}") };
    // As a test that fails with this error is shown.
    let shown = format!("Error: {failed:?}");
    println!("{shown}");
    assert!(found.failure.what.starts_with("every greeting has its card: the cards say"), "{found}");
    assert!(found.failure.story.contains("a person: creates g"), "{found}");
    // The seed alone shows the same.
    assert_eq!(Simulation::of(&trial).play_seeds([found.failure.seed]).err().as_ref(), Some(&failed));
    compare_with_guide(&shown);
}

/// The guide shows what a failing test prints, without the lines of the story.
fn compare_with_guide(shown: &str) {
    let head = shown.lines().take(3).collect::<Vec<_>>().join("\n");
    let block = format!("{head}\n  …\n");
    let guide = fs::read_to_string(GUIDE).unwrap();
    let (before, rest) = guide.split_once(BEFORE_TEXT).expect("the guide shows what is found");
    let (_, after) = rest.split_once("```\n").unwrap();
    let wanted = format!("{before}{BEFORE_TEXT}{block}```\n{after}");
    if env::var_os("UPDATE_GUIDE").is_some() {
        fs::write(GUIDE, wanted).unwrap();
        return;
    }
    assert!(guide == wanted, "docs/library.md does not show this; write it with UPDATE_GUIDE=1:\n{block}");
}
