//! NodeResourcesBalancedAllocation: nodes whose resources would be used alike are preferred.

use std::sync::Arc;

use koord_config::scheduler::NodeResourcesBalancedAllocationArgs;
use koord_scheduler_framework::{
    NodeScore, Plugin, Registration, Request, SCORE_MAX, SchedulingSignature, Score, SignatureFields, cluster::Cluster,
    columns::Row,
};
use koord_scheduling::ResourceId;
use smallvec::SmallVec;

use crate::rated::{Rate, Rated};

/// Scores nodes by how little the used shares of their resources differ.
#[derive(Clone, Debug)]
pub struct BalancedAllocation {
    /// The resources that are compared.
    pub resources: Vec<String>,
}

impl Default for BalancedAllocation {
    /// cpu and memory, as kube-scheduler.
    fn default() -> Self {
        Self { resources: ["cpu", "memory"].map(ToOwned::to_owned).into() }
    }
}

impl BalancedAllocation {
    /// The plugin with these arguments.
    pub fn new(args: NodeResourcesBalancedAllocationArgs) -> Self {
        Self { resources: args.resources.into_iter().map(|resource| resource.name).collect() }
    }
}

/// What the pod adds to each resource.
struct Requests(Vec<(ResourceId, i64)>);

impl Plugin for BalancedAllocation {
    fn name(&self) -> &'static str {
        "NodeResourcesBalancedAllocation"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).score(&self).scheduling_signature(&self)
    }
}

impl Score for BalancedAllocation {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        let resources = self.resources.iter().filter_map(|name| cluster.resources().get(name));
        let requests = resources.map(|id| (id, request.class.requests().get(id)));
        let is_known = |(id, request): &(ResourceId, i64)| *request > 0 || id.index() <= ResourceId::PODS.index();
        let requests: Vec<(ResourceId, i64)> = requests.filter(is_known).collect();
        // A pod that requests none of them changes no balance.
        requests
            .iter()
            .any(|(_, request)| *request > 0)
            .then(|| Box::new(Rated(Requests(requests))) as Box<dyn NodeScore>)
    }
}

impl SchedulingSignature for BalancedAllocation {
    fn signature(&self) -> SignatureFields {
        SignatureFields::NONE
    }
}

impl Rate for Requests {
    fn rate(&self, cluster: &Cluster, row: Row, twice: impl Fn(ResourceId) -> i64) -> i64 {
        let (allocatable, requested) = (cluster.allocatable_on(row), cluster.requested_on(row));
        let share = |(id, request): &(ResourceId, i64)| {
            let offered = allocatable.get(*id);
            let used = requested.get(*id).saturating_sub(twice(*id)).saturating_add(*request);
            (offered > 0).then(|| (used as f64 / offered as f64).min(1.0))
        };
        let spread = match &self.0[..] {
            [one, another] => share(one).zip(share(another)).map_or(0.0, |(one, another)| half(one - another)),
            several => spread(&several.iter().filter_map(share).collect::<SmallVec<[f64; 4]>>()),
        };
        ((1.0 - spread) * SCORE_MAX as f64) as i64
    }
}

/// How much shares differ.
fn spread(shares: &[f64]) -> f64 {
    match *shares {
        [one, another] => half(one - another),
        [] | [_] => 0.0,
        _ => {
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            (shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / shares.len() as f64).sqrt()
        }
    }
}

fn half(difference: f64) -> f64 {
    difference.abs() / 2.0
}

#[cfg(test)]
mod tests {
    use koord_scheduler_testing::{node, scored};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_nearer_the_shares_the_higher_the_score() {
        let sized = |name, cpu, memory| {
            node(name, &json!({"status": {"allocatable": {"cpu": cpu, "memory": memory, "example.com/gpu": "1"}}}))
        };
        let nodes = [sized("a", "4", "4000"), sized("b", "10", "2000"), sized("c", "1", "500"), sized("d", "0", "500")];
        let requesting = |requests: Value| json!({"containers": [{"name": "c", "resources": {"requests": requests}}]});
        let even = requesting(json!({"cpu": "1", "memory": "1000"}));
        // b: 1 of 10 and half of the memory; c: all of both; d has no cpu to compare with.
        assert_eq!(scored(&BalancedAllocation::default(), &nodes, &even), Some(vec![100, 80, 100, 100]));
        assert_eq!(scored(&BalancedAllocation::default(), &nodes, &requesting(json!({}))), None);
        let three =
            BalancedAllocation { resources: ["cpu", "memory", "example.com/gpu"].map(ToOwned::to_owned).into() };
        let uneven = requesting(json!({"cpu": "1", "memory": "1000", "example.com/gpu": "1"}));
        // a: 0.25, 0.25 and 1: the deviation is 0.35.
        assert_eq!(scored(&three, &nodes, &uneven).map(|scores| scores[0]), Some(64));
        assert_eq!(
            scored(&three, &nodes, &even).map(|scores| scores[1]),
            Some(80),
            "what is not requested is not compared"
        );
    }
}
