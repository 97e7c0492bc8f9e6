//! The hollow koordlet of a whole fleet: reports each node's NodeMetric at the pace that its policy asks for.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use koord_runtime::clock::{Moment, SharedClock};
use kube::Client;
use serde_json::{Value, json};

use crate::{
    fleet::{Fleet, IN_FLIGHT, has_code},
    node::HollowNode,
    report::{self, CollectPolicy},
    roster::Roster,
};

/// How often the nodes are looked through for those whose time has come, in real time.
const TICK: Duration = Duration::from_millis(100);

/// Reports for all nodes of a fleet.
pub struct Koordlet {
    fleet: Fleet,
    client: Client,
    clock: SharedClock,
    roster: Roster,
}

/// When a node reports next, and by which policy.
struct Turn {
    at: Moment,
    policy: CollectPolicy,
    /// How long to wait for a NodeMetric that is not there yet, in sixtieths of an interval.
    patience: u32,
}

/// See [`Turn::patience`].
const PATIENCE_MAX: u32 = 8;

impl Koordlet {
    /// A koordlet for all nodes of a fleet; intervals and times of reports are the clock's.
    pub fn new(fleet: Fleet, client: Client, clock: SharedClock, roster: Roster) -> Self {
        Self { fleet, client, clock, roster }
    }

    /// Works for as long as it is polled.
    pub async fn run(self) {
        let mut turns: Vec<Turn> = self
            .fleet
            .nodes()
            .iter()
            .map(|_| Turn { at: self.clock.moment(), policy: CollectPolicy::default(), patience: 1 })
            .collect();
        loop {
            let now = self.clock.moment();
            let due = turns.iter_mut().zip(self.fleet.nodes()).filter(|(turn, _)| turn.at <= now);
            stream::iter(due).for_each_concurrent(IN_FLIGHT, |(turn, node)| self.take(turn, node)).await;
            tokio::time::sleep(TICK).await;
        }
    }

    async fn take(&self, turn: &mut Turn, node: &HollowNode) {
        match self.report(node, &turn.policy).await {
            Ok(node_metric) => {
                turn.policy = CollectPolicy::read(&node_metric);
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
    async fn report(&self, node: &HollowNode, policy: &CollectPolicy) -> kube::Result<Value> {
        let status = report::status(node, &self.roster.on(&node.name), policy, self.clock.now());
        let path = format!("/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{}/status", node.name);
        let body = serde_json::to_vec(&json!({ "status": status })).map_err(kube::Error::SerdeError)?;
        let request = http::Request::patch(path)
            .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
            .body(body)
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }
}
