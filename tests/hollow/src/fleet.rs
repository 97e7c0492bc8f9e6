//! A fleet of hollow nodes at an API server: registration, and the leases that say each node is alive.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
};
use koord_client::clock::SharedClock;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::{
    node::{HollowNode, LEASE_NAMESPACE, LEASE_RENEWAL},
    pace::Pace,
    seed::Seed,
    workload,
};

/// Requests of the fleet that are on their way at once.
pub(crate) const IN_FLIGHT: usize = 32;

/// Why a fleet cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The API server did not take a node.
    #[error("node {node} cannot register itself: {source}")]
    Register {
        /// Name of the node.
        node: String,
        /// What the server or the connection said.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server did not take a production pod.
    #[error("a production pod of node {node} cannot be created: {source}")]
    Populate {
        /// Name of the node.
        node: String,
        /// What the server, a webhook or the connection said.
        #[source]
        source: Box<kube::Error>,
    },
}

/// Some nodes that were drawn from one seed.
#[derive(Clone)]
pub struct Fleet {
    nodes: Arc<[HollowNode]>,
    by_name: Arc<BTreeMap<String, u32>>,
}

impl Fleet {
    /// The fleet of this size that a seed gives. A larger fleet of the same seed begins with the same nodes.
    pub fn drawn(seed: u64, size: u32) -> Self {
        let nodes: Arc<[HollowNode]> = (0..size).map(|index| HollowNode::of_fleet(Seed::new(seed), index)).collect();
        let by_name = nodes.iter().map(|node| (node.name.clone(), node.index)).collect();
        Self { nodes, by_name: Arc::new(by_name) }
    }

    /// The fleet without a node: for one that something else speaks for.
    pub fn without(&self, name: &str) -> Self {
        let nodes: Arc<[HollowNode]> = self.nodes.iter().filter(|node| node.name != name).cloned().collect();
        let by_name = nodes.iter().zip(0..).map(|(node, at)| (node.name.clone(), at)).collect();
        Self { nodes, by_name: Arc::new(by_name) }
    }

    /// All nodes, by number.
    pub fn nodes(&self) -> &[HollowNode] {
        &self.nodes
    }

    /// The number of nodes.
    pub fn size(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    /// The node of this name, if it is one of the fleet.
    pub fn node(&self, name: &str) -> Option<&HollowNode> {
        self.nodes.get(*self.by_name.get(name)? as usize)
    }

    /// Creates the Node objects and reports after each how many there are. A node that exists already, from an earlier run, stays.
    pub async fn register(
        &self,
        client: &Client,
        clock: &SharedClock,
        mut progress: impl FnMut(usize),
    ) -> Result<(), FleetError> {
        let api: Api<Node> = Api::all(client.clone());
        let mut registrations = stream::iter(self.nodes.iter())
            .map(|node| {
                let (api, object) = (api.clone(), node.object(clock.now()));
                async move {
                    let registered = match api.create(&PostParams::default(), &object).await {
                        Ok(created) => clear_not_ready(&api, &created).await,
                        Err(error) if has_code(&error, 409) => Ok(()),
                        Err(error) => Err(error),
                    };
                    registered
                        .map_err(|error| FleetError::Register { node: node.name.clone(), source: Box::new(error) })
                }
            })
            .buffer_unordered(IN_FLIGHT);
        let mut done = 0;
        while let Some(result) = registrations.next().await {
            result?;
            done += 1;
            progress(done);
        }
        Ok(())
    }

    /// Creates this many production pods on every node. The namespace [`workload::NAMESPACE`] must be there; a pod that exists stays.
    pub async fn populate(
        &self,
        client: &Client,
        pods_per_node: u32,
        mut progress: impl FnMut(usize),
    ) -> Result<(), FleetError> {
        let api: Api<Pod> = Api::namespaced(client.clone(), workload::NAMESPACE);
        let pods = self
            .nodes
            .iter()
            .flat_map(|node| workload::production_pods(node, pods_per_node).map(move |pod| (node.name.clone(), pod)));
        let mut creations = stream::iter(pods)
            .map(|(node, pod)| {
                let api = api.clone();
                async move {
                    match api.create(&PostParams::default(), &pod).await {
                        Err(error) if has_code(&error, 409) => Ok(()),
                        result => {
                            result.map(drop).map_err(|error| FleetError::Populate { node, source: Box::new(error) })
                        }
                    }
                }
            })
            .buffer_unordered(IN_FLIGHT);
        let mut done = 0;
        while let Some(result) = creations.next().await {
            result?;
            done += 1;
            progress(done);
        }
        Ok(())
    }

    /// Renews the leases for as long as it is polled. A renewal that fails is tried again first thing in the next round.
    pub async fn keep_alive(self, client: Client, clock: SharedClock) {
        let start = clock.moment();
        let mut pace = Pace::new(self.size(), LEASE_RENEWAL);
        // The first turn of everyone comes at once: a node without a lease counts as lost.
        let mut due: Vec<u32> = (0..self.size()).collect();
        loop {
            let failed: Vec<u32> = stream::iter(due)
                .map(|index| {
                    let (client, clock) = (client.clone(), clock.clone());
                    let node = &self.nodes[index as usize];
                    async move { renew(node, client, &clock).await.is_err().then_some(index) }
                })
                .buffer_unordered(IN_FLIGHT)
                .filter_map(std::future::ready)
                .collect()
                .await;
            // A server that refuses everything is not asked at once again.
            clock.sleep(if failed.is_empty() { pace.tick() } else { PAUSE_AFTER_FAILURE }).await;
            let turns: Vec<u32> =
                pace.due(clock.moment().since(start)).filter(|index| !failed.contains(index)).collect();
            due = failed;
            due.extend(turns);
        }
    }
}

/// Takes off the taint that every new node is given, as the node controller does once the node reports that it is ready.
async fn clear_not_ready(api: &Api<Node>, node: &Node) -> kube::Result<()> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let left: Vec<_> = taints.iter().filter(|taint| taint.key != NOT_READY).collect();
    if left.len() == taints.len() {
        return Ok(());
    }
    let change = Patch::Merge(json!({ "spec": { "taints": left } }));
    api.patch(node.metadata.name.as_deref().unwrap_or_default(), &PatchParams::default(), &change).await.map(drop)
}

/// Renews the lease of one node, or makes it.
async fn renew(node: &HollowNode, client: Client, clock: &SharedClock) -> kube::Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    let renewal = json!({ "spec": node.lease("", clock.now()).spec });
    match leases.patch(&node.name, &PatchParams::default(), &Patch::Merge(renewal)).await {
        Err(error) if has_code(&error, 404) => {
            let api: Api<Node> = Api::all(client);
            let uid = api.get_metadata(&node.name).await?.metadata.uid.unwrap_or_default();
            leases.create(&PostParams::default(), &node.lease(&uid, clock.now())).await.map(drop)
        }
        result => result.map(drop),
    }
}

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// How long, in real time, something that failed is left alone before the next try.
pub(crate) const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Whether the server answered with this HTTP status.
pub(crate) fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_fleet_begins_with_the_same_nodes() {
        let (small, large) = (Fleet::drawn(1, 10), Fleet::drawn(1, 20));
        assert_eq!(small.nodes(), &large.nodes()[..10]);
        assert_eq!(large.node("hollow-19").map(|node| node.index), Some(19));
        assert_eq!(large.node("hollow-20"), None);
    }
}
