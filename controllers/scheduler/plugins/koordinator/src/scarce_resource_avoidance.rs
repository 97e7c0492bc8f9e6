//! ScarceResourceAvoidance: nodes with scarce resources are kept for pods that request them.

use std::sync::Arc;

use koord_config::scheduler::ScarceResourceAvoidanceArgs;
use koord_scheduler_framework::{
    NodeScore, Plugin, Registration, Request, SCORE_MAX, SchedulingSignature, Score, SignatureFields, cluster::Cluster,
    columns::Row,
};
use koord_scheduling::ResourceVector;

/// Scores nodes the lower the more of their resources are scarce, among those that the pod does not request.
#[derive(Clone, Debug, Default)]
pub struct ScarceResourceAvoidance {
    pub resources: Vec<String>,
}

struct Unrequested {
    requests: ResourceVector,
    scarce: Vec<String>,
}

impl From<&ScarceResourceAvoidanceArgs> for ScarceResourceAvoidance {
    fn from(args: &ScarceResourceAvoidanceArgs) -> Self {
        Self { resources: args.resources.clone() }
    }
}

impl Plugin for ScarceResourceAvoidance {
    fn name(&self) -> &'static str {
        "ScarceResourceAvoidance"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).score(&self).scheduling_signature(&self)
    }
}

impl Score for ScarceResourceAvoidance {
    fn prepare_score(&self, request: &Request<'_>, _: &Cluster) -> Option<Box<dyn NodeScore>> {
        // Without scarce resources all nodes are alike.
        let score = || Unrequested { requests: request.class.requests().clone(), scarce: self.resources.clone() };
        (!self.resources.is_empty()).then(|| Box::new(score()) as Box<dyn NodeScore>)
    }
}

impl SchedulingSignature for ScarceResourceAvoidance {
    fn signature(&self) -> SignatureFields {
        SignatureFields::NONE
    }
}

impl NodeScore for Unrequested {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        let (mut unrequested, mut scarce) = (0, 0);
        for name in cluster.resources().names().filter(|name| is_compared(name)) {
            let Some(id) = cluster.resources().get(name) else { continue };
            if cluster.allocatable(id, row) > 0 && self.requests.get(id) == 0 {
                unrequested += 1;
                scarce += i64::from(self.scarce.iter().any(|known| known == name));
            }
        }
        if scarce == 0 { SCORE_MAX } else { (unrequested - scarce) * SCORE_MAX / unrequested }
    }

    fn is_local(&self) -> bool {
        true
    }
}

/// Whether kube-scheduler counts the resource: `pods` and names without a domain are left out.
fn is_compared(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage")
        || name.contains('/')
        || ["hugepages-", "attachable-volumes-"].iter().any(|kind| name.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use koord_scheduler_testing::{node, scored};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn nodes_with_scarce_resources_that_the_pod_does_not_request_are_avoided() {
        let sized = |name, more: Value| {
            let mut allocatable = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
            allocatable.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            node(name, &json!({"status": {"allocatable": allocatable}}))
        };
        let nodes = [
            sized("plain", json!({})),
            sized("gpu", json!({"nvidia.com/gpu": "8"})),
            sized("used-up", json!({"nvidia.com/gpu": "0"})),
            sized("both", json!({"nvidia.com/gpu": "8", "example.com/fast-disk": "1", "hugepages-2Mi": "1Gi"})),
        ];
        let args = json!({"resources": ["nvidia.com/gpu", "example.com/fast-disk"]});
        let args: ScarceResourceAvoidanceArgs = serde_json::from_value(args).unwrap();
        let avoidance = ScarceResourceAvoidance::from(&args);
        let scores = |requests: Value| {
            scored(&avoidance, &nodes, &json!({"containers": [{"resources": {"requests": requests}}]})).unwrap()
        };
        // gpu: of memory and GPUs half is scarce; both: of memory, huge pages and both devices half.
        assert_eq!(scores(json!({"cpu": "1"})), [100, 50, 100, 50]);
        assert_eq!(scores(json!({"cpu": "1", "nvidia.com/gpu": "1"})), [100, 100, 100, 66]);
        assert_eq!(scores(json!({})), [100, 66, 100, 60]);
        assert_eq!(scored(&ScarceResourceAvoidance::default(), &nodes, &json!({})), None);
    }
}
