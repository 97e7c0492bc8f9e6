//! The smallest scenario, for the runtime alone: the controller of the runtime's example, whose nodes have name cards.

use std::collections::BTreeMap;

use http::Method;
use koord_runtime::{Core, random::Random};
use koord_simulator::Scenario;
use serde_json::{Value, json};

use crate::{
    Disturbance, Fault, Stage,
    people::{delete_held, let_go, name_of, replace},
};

#[path = "../../../controllers/runtime/examples/name_cards/controller.rs"]
mod controller;

use controller::body;

const NODES: &str = "/api/v1/nodes";
const NAMESPACE: &str = "/api/v1/namespaces/cards";
const CARDS: &str = "/api/v1/namespaces/cards/configmaps";
/// Few names, so that things that happen to one name meet.
const NAMES: u64 = 6;

/// The scenario of the runtime's example controller.
#[derive(Clone, Copy, Debug, Default)]
pub struct NameCards;

impl Scenario for NameCards {
    fn prepare(&self, stage: &mut Stage) {
        for name in ["default", "cards"] {
            stage.person(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
    }

    fn wire(&self, core: &mut Core) -> Result<(), String> {
        core.add(controller::NameCards::SPEC, controller::COMPONENT, controller::NameCards::wire)
            .map(drop)
            .map_err(|error| match error {})
    }

    fn disturb(&self, stage: &mut Stage, random: &Random) -> Disturbance {
        let name = format!("n{}", random.below(NAMES));
        let (node, card) = (format!("{NODES}/{name}"), format!("{CARDS}/{name}"));
        let pool = format!("p{}", random.below(3));
        let node_body = json!({"metadata": {"name": name, "labels": {"pool": pool}}});
        let (what, code, fault) = match random.below(13) {
            0..=2 => ("creates a node", stage.person(&Method::POST, NODES, &node_body), None),
            3 => ("deletes a node", stage.person(&Method::DELETE, &node, &Value::Null), None),
            4 => ("replaces a node", replace(stage, (&node, NODES), &node_body), Some(Fault::Recreated)),
            5 => {
                let body = json!({"metadata": {"labels": {"pool": pool}}});
                ("moves a node", stage.person(&Method::PATCH, &node, &body), None)
            }
            6 => {
                let body = json!({"data": {"pool": "wrong", "more": "x"}});
                ("spoils a card", stage.person(&Method::PATCH, &card, &body), None)
            }
            7 => ("deletes a card", stage.person(&Method::DELETE, &card, &Value::Null), None),
            8 => {
                let body = json!({"metadata": {"name": name}, "data": {"name": "somebody else"}});
                ("replaces a card", replace(stage, (&card, CARDS), &body), Some(Fault::Recreated))
            }
            9 => ("deletes a held node", delete_held(stage, &node), Some(Fault::Stuck)),
            10 => ("deletes a held card", delete_held(stage, &card), Some(Fault::Stuck)),
            11 => {
                let code = let_go(stage, &node);
                ("lets go of what is held", code.max(let_go(stage, &card)), None)
            }
            _ if random.below(6) == 0 => {
                ("ends the namespace", stage.person(&Method::DELETE, NAMESPACE, &Value::Null), Some(Fault::Terminating))
            }
            _ => ("makes the namespace", make_namespace(stage), None),
        };
        let fault = fault.filter(|_| code < 300);
        Disturbance { what: format!("{what} {name} ({pool}) -> {code}"), fault }
    }

    fn collections(&self) -> &'static [&'static str] {
        &[NODES, CARDS]
    }

    fn conclude(&self, stage: &mut Stage) {
        for collection in [NODES, CARDS] {
            for object in stage.objects(collection) {
                let_go(stage, &format!("{collection}/{}", name_of(&object)));
            }
        }
        while stage.tidy() > 0 {}
        make_namespace(stage);
    }

    fn check(&self, stage: &mut Stage) -> Result<(), String> {
        let nodes = stage.objects(NODES);
        let expected: BTreeMap<String, Value> = nodes
            .iter()
            .map(|node| {
                (name_of(node), body(&name_of(node), node["metadata"]["labels"]["pool"].as_str())["data"].clone())
            })
            .collect();
        let mut found: BTreeMap<String, Value> =
            stage.objects(CARDS).into_iter().map(|card| (name_of(&card), card["data"].clone())).collect();
        // A card whose node was gone before anybody saw it belongs to nobody.
        found.retain(|name, data| expected.contains_key(name) || data["name"] != "somebody else");
        if found == expected { Ok(()) } else { Err(format!("the cards are {found:?} instead of {expected:?}")) }
    }
}

fn make_namespace(stage: &mut Stage) -> u16 {
    stage.person(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "cards"}}))
}
