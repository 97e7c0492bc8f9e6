//! The smallest scenario, for the runtime alone: every node has a ConfigMap that names it and its pool.

use std::{collections::BTreeMap, sync::Arc};

use http::Method;
use jiff::Timestamp;
use koord_resource::controller::{ControllerSpec, RateLimit, ResourceKind};
use koord_runtime::{
    Core, Wiring,
    controller::{Controller, same_key},
    error::ReconcileError,
    events::{Event, EventType},
    intern::Interner,
    key::ObjectKey,
    outcome::{Outcome, Owned},
    projection::{Labels, Metadata, MetadataOnly, Projection, Unreadable, WireMetadata},
    random::Random,
    reflector::Selection,
    store::Store,
};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use crate::{Scenario, Stage};

const NODES: &str = "/api/v1/nodes";
const CARDS: &str = "/api/v1/namespaces/cards/configmaps";
/// Few names, so that things that happen to one name meet.
const NAMES: u64 = 6;

#[derive(PartialEq)]
struct NodeView {
    pool: Option<Arc<str>>,
}

impl Projection for NodeView {
    const KIND: ResourceKind = ResourceKind::NODE;
    type Wire<'a> = MetadataOnly<'a>;
    type Index = ();

    fn project(wire: MetadataOnly<'_>, strings: &mut Interner) -> Result<Self, Unreadable> {
        let labels = Labels::read("metadata.labels", wire.metadata().labels, strings)?;
        Ok(Self { pool: labels.get("pool").map(Arc::from) })
    }
}

#[derive(PartialEq)]
struct CardView(Arc<str>);

#[derive(Deserialize)]
struct CardWire<'a> {
    #[serde(borrow)]
    metadata: WireMetadata<'a>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

impl<'a> Metadata<'a> for CardWire<'a> {
    fn metadata(&self) -> &WireMetadata<'a> {
        &self.metadata
    }
}

impl Projection for CardView {
    const KIND: ResourceKind = ResourceKind::CONFIG_MAP;
    type Wire<'a> = CardWire<'a>;
    type Index = ();

    fn project(wire: CardWire<'_>, strings: &mut Interner) -> Result<Self, Unreadable> {
        Ok(Self(strings.intern(wire.data.map_or("{}", RawValue::get))))
    }
}

impl Owned for CardView {
    fn owned(&self) -> Value {
        json!({"data": serde_json::from_str::<Value>(&self.0).unwrap_or_default()})
    }
}

struct Cards {
    nodes: Arc<Store<NodeView>>,
    cards: Arc<Store<CardView>>,
}

const SPEC: ControllerSpec = ControllerSpec {
    name: "name-cards",
    for_kind: ResourceKind::NODE,
    owns: &[ResourceKind::CONFIG_MAP],
    watches: &[],
    concurrency: 2,
    rate_limit: RateLimit::DEFAULT,
    gate: None,
    rbac: &[],
};

impl Controller for Cards {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        let (nodes, cards) = (self.nodes.read(), self.cards.read());
        let card = ObjectKey::new("cards", key.name());
        let mut outcome = Outcome::settled();
        match nodes.get(key.as_str()) {
            None => outcome.absent(&cards, &card),
            Some(node) => {
                outcome.present(&cards, &card, body(key.name(), node.value.pool.as_deref()))?;
                if !outcome.plan.is_empty() {
                    outcome.event(Event {
                        kind: ResourceKind::NODE,
                        key: key.clone(),
                        uid: Arc::clone(&node.uid),
                        type_: EventType::Normal,
                        reason: "NameCard",
                        message: "the node gets a new name card".to_owned(),
                    });
                }
            }
        }
        Ok(outcome)
    }
}

fn body(name: &str, pool: Option<&str>) -> Map<String, Value> {
    let data = json!({"name": name, "pool": pool.unwrap_or("none")});
    Map::from_iter([("data".to_owned(), data)])
}

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
        let wire = |wiring: &mut Wiring<'_>| {
            let selection = Selection { namespace: "cards".to_owned(), ..Selection::default() };
            let (nodes, cards) = (wiring.reads::<NodeView>(), wiring.reads_some::<CardView>(&selection));
            wiring.on(&nodes, same_key);
            wiring.on(&cards, |change, reaction| reaction.enqueue(&ObjectKey::cluster(change.key.name())));
            Ok::<_, String>(Arc::new(Cards { nodes, cards }))
        };
        core.add(SPEC, "name-cards", wire).map(drop)
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
