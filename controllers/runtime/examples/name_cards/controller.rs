//! Every node has a ConfigMap in the namespace `cards` that names it and its pool: the smallest whole controller.

use std::sync::Arc;

use jiff::Timestamp;
use koord_resource::{Projection, controller, controller::ResourceKind};
use koord_runtime::{
    cache::Change,
    controller::{Controller, Requests},
    error::ReconcileError,
    events::Event,
    key::ObjectKey,
    outcome::{Outcome, Owned},
    projection::Labels,
    store::Store,
};
use serde_json::{Map, Value, json};

/// Where the cards are.
pub(crate) const NAMESPACE: &str = "cards";
/// The name under which the controller's events are recorded.
pub(crate) const COMPONENT: &str = "card-controller";

/// What is read of a node.
#[derive(Debug, PartialEq, Eq, Projection)]
#[koord(kind = ResourceKind::NODE)]
pub(crate) struct NodeView {
    labels: Labels,
}

/// What is read of a card.
#[derive(Debug, PartialEq, Eq, Projection)]
#[koord(kind = ResourceKind::CONFIG_MAP)]
pub(crate) struct CardView {
    data: Arc<str>,
}

impl Owned for CardView {
    fn owned(&self) -> Value {
        json!({"data": serde_json::from_str::<Value>(&self.data).unwrap_or_default()})
    }
}

/// Writes the card of each node.
#[controller(name = "name-cards", for = nodes, owns(cards, by = its_node, namespace = NAMESPACE), concurrency = 2)]
pub(crate) struct NameCards {
    nodes: Arc<Store<NodeView>>,
    cards: Arc<Store<CardView>>,
}

fn its_node(change: &Change<CardView>, requests: &mut Requests) {
    requests.enqueue(&ObjectKey::cluster(change.key.name()));
}

impl Controller for NameCards {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        let (nodes, cards) = (self.nodes.read(), self.cards.read());
        let card = ObjectKey::new(NAMESPACE, key.name());
        let mut outcome = Outcome::settled();
        let Some(node) = nodes.get(key.as_str()) else {
            outcome.absent(&cards, &card);
            return Ok(outcome);
        };
        outcome.present(&cards, &card, body(key.name(), node.value.labels.get("pool")))?;
        if !outcome.plan.is_empty() {
            let message = "the node gets a new name card".to_owned();
            outcome.event(Event::normal((key, node), "Naming", "NameCard", message));
        }
        Ok(outcome)
    }
}

/// What shall be written on a card.
pub(crate) fn body(name: &str, pool: Option<&str>) -> Map<String, Value> {
    let data = json!({"name": name, "pool": pool.unwrap_or("none")});
    Map::from_iter([("data".to_owned(), data)])
}
