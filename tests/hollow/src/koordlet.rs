//! The hollow koordlet of a whole fleet: reports each node's NodeMetric at the pace that its policy asks for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, stream};
use koord_client::clock::{Moment, SharedClock};
use kube::Client;
use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, IN_FLIGHT, has_code},
    node::HollowNode,
    orders::Orders,
    report::{self, CollectPolicy},
    roster::Roster,
    usage::UsageModel,
};

/// How often the nodes are looked through for those whose time has come, in real time.
const TICK: Duration = Duration::from_millis(100);

/// Reports for all nodes of a fleet.
pub struct Koordlet {
    fleet: Fleet,
    client: Client,
    clock: SharedClock,
    roster: Roster,
    answered: Arc<AtomicUsize>,
}

/// When a node reports next, by which policy, and the orders it has got.
struct Turn {
    at: Moment,
    policy: CollectPolicy,
    orders: Orders,
    /// How long to wait for a NodeMetric that is not there yet, in sixtieths of an interval.
    patience: u32,
    has_answer: bool,
}

/// See [`Turn::patience`].
const PATIENCE_MAX: u32 = 8;

impl Koordlet {
    /// A koordlet for all nodes of a fleet; intervals and times of reports are the clock's.
    pub fn new(fleet: Fleet, client: Client, clock: SharedClock, roster: Roster) -> Self {
        Self { fleet, client, clock, roster, answered: Arc::default() }
    }

    /// The number of nodes whose NodeMetric was reached at least once.
    pub fn answered(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.answered)
    }

    /// Works for as long as it is polled.
    pub async fn run(self) {
        let mut turns: Vec<Turn> = self
            .fleet
            .nodes()
            .iter()
            .map(|_| Turn {
                at: self.clock.moment(),
                policy: CollectPolicy::default(),
                orders: Orders::default(),
                patience: 1,
                has_answer: false,
            })
            .collect();
        loop {
            let now = self.clock.moment();
            let due = turns.iter_mut().zip(self.fleet.nodes()).filter(|(turn, _)| turn.at <= now);
            stream::iter(due).for_each_concurrent(IN_FLIGHT, |(turn, node)| self.take(turn, node)).await;
            tokio::time::sleep(TICK).await;
        }
    }

    async fn take(&self, turn: &mut Turn, node: &HollowNode) {
        let answered = if turn.orders.stopped { self.look(node).await } else { self.report(node, turn).await };
        match answered {
            Ok(node_metric) => {
                if !std::mem::replace(&mut turn.has_answer, true) {
                    self.answered.fetch_add(1, Ordering::Relaxed);
                }
                turn.policy = CollectPolicy::read(&node_metric);
                let orders = Orders::read(&node_metric);
                if std::mem::replace(&mut turn.orders, orders) != orders {
                    // A new order is carried out at once.
                    return;
                }
                // Nodes that came up together do not report together: each keeps a phase of its own.
                let phase = turn.policy.interval.mul_f64(node.seed.child("phase").share());
                let elapsed = self.clock.moment().since(Moment::default()).saturating_sub(phase);
                let into = Duration::from_nanos_u128(elapsed.as_nanos() % turn.policy.interval.as_nanos().max(1));
                turn.at = self.clock.moment() + turn.policy.interval.saturating_sub(into);
            }
            // The manager makes the NodeMetric when it sees the node: soon for a few nodes, later for thousands.
            Err(error) if has_code(&error, 404) => {
                turn.at = self.clock.moment() + turn.policy.interval / 60 * turn.patience;
                turn.patience = (turn.patience * 2).min(PATIENCE_MAX);
            }
            Err(_) => turn.at = self.clock.moment() + turn.policy.interval,
        }
    }

    /// Writes the status and gives the NodeMetric that the server answers with.
    async fn report(&self, node: &HollowNode, turn: &Turn) -> kube::Result<Value> {
        let ordered = turn.orders.load.map(|share| HollowNode { usage: UsageModel::Steady { share }, ..node.clone() });
        let pods = self.roster.on(&node.name);
        let status = report::status(ordered.as_ref().unwrap_or(node), &pods, &turn.policy, self.clock.now());
        let path = format!("{NODE_METRICS}/{}/status", node.name);
        let body = serde_json::to_vec(&json!({ "status": status })).map_err(kube::Error::SerdeError)?;
        let request = http::Request::patch(path)
            .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
            .body(body)
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    /// The NodeMetric as it is, with nothing written.
    async fn look(&self, node: &HollowNode) -> kube::Result<Value> {
        let request = http::Request::get(format!("{NODE_METRICS}/{}", node.name)).body(Vec::new());
        self.client.request(request.map_err(kube::Error::HttpError)?).await
    }
}

const NODE_METRICS: &str = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics";
