//! The smallest scenario, for the runtime alone: the controller of the runtime's example, whose nodes have name cards.

use std::collections::BTreeMap;

use http::Method;
use koord_runtime::{Core, random::Random};
use serde_json::{Value, json};

use crate::{Scenario, Stage};

#[path = "../../../controllers/runtime/examples/name_cards/controller.rs"]
mod controller;

use controller::body;

const NODES: &str = "/api/v1/nodes";
const CARDS: &str = "/api/v1/namespaces/cards/configmaps";
/// Few names, so that things that happen to one name meet.
const NAMES: u64 = 6;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct NameCards;

impl Scenario for NameCards {
    fn prepare(&self, stage: &mut Stage) {
        for name in ["default", "cards"] {
            stage.person(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
    }

    fn wire(&self, core: &mut Core) -> Result<(), String> {
        core.add(controller::NameCards::SPEC, controller::COMPONENT, |wiring| Ok(controller::NameCards::wire(wiring)))
            .map(drop)
    }

    fn disturb(&self, stage: &mut Stage, random: &Random) -> String {
        let name = format!("n{}", random.below(NAMES));
        let (node, card) = (format!("{NODES}/{name}"), format!("{CARDS}/{name}"));
        let pool = format!("p{}", random.below(3));
        let (what, code) = match random.below(9) {
            0..=2 => {
                let body = json!({"metadata": {"name": name, "labels": {"pool": pool}}});
                ("creates a node", stage.person(&Method::POST, NODES, &body))
            }
            3 => ("deletes a node", stage.person(&Method::DELETE, &node, &Value::Null)),
            4 => {
                stage.person(&Method::DELETE, &node, &Value::Null);
                let body = json!({"metadata": {"name": name}});
                ("replaces a node", stage.person(&Method::POST, NODES, &body))
            }
            5 => {
                let body = json!({"metadata": {"labels": {"pool": pool}}});
                ("moves a node", stage.person(&Method::PATCH, &node, &body))
            }
            6 => {
                ("spoils a card", stage.person(&Method::PATCH, &card, &json!({"data": {"pool": "wrong", "more": "x"}})))
            }
            7 => ("deletes a card", stage.person(&Method::DELETE, &card, &Value::Null)),
            _ => {
                stage.person(&Method::DELETE, &card, &Value::Null);
                let body = json!({"metadata": {"name": name}, "data": {"name": "somebody else"}});
                ("replaces a card", stage.person(&Method::POST, CARDS, &body))
            }
        };
        format!("{what} {name} ({pool}) -> {code}")
    }

    fn conclude(&self, _: &mut Stage) {}

    fn check(&self, stage: &mut Stage) -> Result<(), String> {
        let names = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let nodes = stage.objects(NODES);
        let expected: BTreeMap<String, Value> = nodes
            .iter()
            .map(|node| (names(node), body(&names(node), node["metadata"]["labels"]["pool"].as_str())["data"].clone()))
            .collect();
        let mut found: BTreeMap<String, Value> =
            stage.objects(CARDS).into_iter().map(|card| (names(&card), card["data"].clone())).collect();
        // A card whose node was gone before anybody saw it belongs to nobody.
        found.retain(|name, data| expected.contains_key(name) || data["name"] != "somebody else");
        if found == expected { Ok(()) } else { Err(format!("the cards are {found:?} instead of {expected:?}")) }
    }
}
