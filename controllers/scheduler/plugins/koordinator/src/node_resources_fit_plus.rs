//! NodeResourcesFitPlus: nodes are compared by what is requested of them, each resource by a rule of its own.

use std::sync::Arc;

use koord_config::scheduler::{NodeResourcesFitPlusArgs, ScoringType};
use koord_scheduler_allocation::CountedTwice;
use koord_scheduler_framework::{
    NodeScore, Plugin, Registration, Request, SchedulingSignature, Score, SignatureFields, cluster::Cluster,
    columns::Row, share,
};
use koord_scheduling::ResourceId;

/// Scores nodes by the resources that the pod requests.
#[derive(Clone, Debug, Default)]
pub struct NodeResourcesFitPlus {
    /// The resources that count, each with its rule and its weight.
    pub resources: Vec<(String, ScoringType, i64)>,
}

struct Requests {
    counted: Vec<Counted>,
    /// The weight of what it requests and no node offers: a scheduler extender answers for that.
    unoffered: i64,
}

/// A resource that the pod requests.
struct Counted {
    id: ResourceId,
    rule: ScoringType,
    weight: i64,
    /// What the pod adds to it.
    request: i64,
    /// Which assumed usage is compared instead of requests.
    assumed: Option<usize>,
}

impl From<&NodeResourcesFitPlusArgs> for NodeResourcesFitPlus {
    fn from(args: &NodeResourcesFitPlusArgs) -> Self {
        let resources = args.resources.iter().map(|(name, score)| (name.clone(), score.type_, score.weight));
        Self { resources: resources.collect() }
    }
}

impl Plugin for NodeResourcesFitPlus {
    fn name(&self) -> &'static str {
        "NodeResourcesFitPlus"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).score(&self).scheduling_signature(&self)
    }
}

impl Score for NodeResourcesFitPlus {
    fn prepare_score(&self, request: &Request<'_>, cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        let is_unoffered = |name: &str| {
            request.class.unoffered().is_some_and(|unoffered| unoffered.names().any(|known| known == name))
        };
        let unoffered = self.resources.iter().filter(|(name, ..)| is_unoffered(name));
        let unoffered = unoffered.fold(0_i64, |sum, (_, _, weight)| sum.saturating_add(*weight));
        let counted = self.resources.iter().filter_map(|(name, rule, weight)| {
            let id = cluster.resources().get(name)?;
            let requested = Some(request.class.requests().get(id)).filter(|request| *request > 0)?;
            let assumed = [ResourceId::CPU, ResourceId::MEMORY].iter().position(|known| *known == id);
            let added = assumed.map_or(requested, |which| request.template().assumed_usage[which]);
            Some(Counted { id, rule: *rule, weight: *weight, request: added, assumed })
        });
        let counted: Vec<Counted> = counted.collect();
        // Without a resource all nodes are alike.
        let weights = counted.iter().fold(unoffered, |sum, counted| sum.saturating_add(counted.weight));
        (weights > 0).then(|| Box::new(Requests { counted, unoffered }) as Box<dyn NodeScore>)
    }
}

impl SchedulingSignature for NodeResourcesFitPlus {
    fn signature(&self) -> SignatureFields {
        SignatureFields::NONE
    }
}

impl NodeScore for Requests {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        let (assumed_usage, twice) = (cluster.assumed_usage(row), CountedTwice::on(cluster, row));
        let (mut sum, mut weights) = (0_i64, self.unoffered);
        for Counted { id, rule, weight, request, assumed } in &self.counted {
            let before = assumed.map_or_else(|| cluster.requested(*id, row), |which| assumed_usage[which]);
            let before = before.saturating_sub(twice.of(*id));
            let of_resource = score(*rule, before.saturating_add(*request), cluster.allocatable(*id, row));
            sum = sum.saturating_add(weight.saturating_mul(of_resource));
            weights = weights.saturating_add(*weight);
        }
        sum / weights.max(1)
    }

    fn is_local(&self) -> bool {
        true
    }
}

fn score(rule: ScoringType, requested: i64, offered: i64) -> i64 {
    let part = match rule {
        ScoringType::LeastAllocated => offered.saturating_sub(requested),
        ScoringType::MostAllocated => requested,
        ScoringType::BalancedAllocation | ScoringType::LeastFragmented => 0,
    };
    share(part, offered)
}

#[cfg(test)]
mod tests {
    use koord_config::scheduler::ScoringType::{LeastAllocated, MostAllocated};
    use koord_scheduler_framework::hold::Holds;
    use koord_scheduler_testing::{cluster, node, pod, scored_in};
    use serde_json::{Value, json};

    use super::*;

    fn requesting(requests: &Value) -> Value {
        json!({"containers": [{"resources": {"requests": requests}}]})
    }

    #[test]
    fn each_resource_that_the_pod_requests_is_compared_by_its_own_rule() {
        let sized = |name, cpu, gpu| {
            let allocatable = json!({"cpu": cpu, "memory": "10000Mi", "example.com/gpu": gpu});
            node(name, &json!({"status": {"allocatable": allocatable}}))
        };
        let mut cluster = cluster(&[sized("a", "10", "4"), sized("b", "10", "8"), sized("c", "1", "0")]);
        let running = requesting(&json!({"cpu": "2", "example.com/gpu": "1"}));
        cluster.place(pod("x", &running), &"a".into(), Holds::default());
        let args = json!({"resources": {
            "cpu": {"type": "LeastAllocated", "weight": 1},
            "example.com/gpu": {"type": "MostAllocated", "weight": 3},
        }});
        let args: NodeResourcesFitPlusArgs = serde_json::from_value(args).unwrap();
        let plus = NodeResourcesFitPlus::from(&args);
        let mut scores = |requests: Value| scored_in(&plus, &mut cluster, &requesting(&requests));
        // a: 7 of 10 cores are left and 2 of 4 devices are used; b: 9 of 10, 1 of 8; c: no core, no device.
        let both = json!({"cpu": "1", "example.com/gpu": "1"});
        assert_eq!(scores(both), Some(vec![(70 + 3 * 50) / 4, (90 + 3 * 12) / 4, 0]));
        assert_eq!(scores(json!({"cpu": "2", "memory": "1"})), Some(vec![60, 80, 0]));
        assert_eq!(scores(json!({"memory": "1"})), None);
    }

    #[test]
    fn containers_without_a_request_and_the_overhead_count_in_the_same_unit() {
        let mut cluster = cluster(&[node("a", &json!({"status": {"allocatable": {"cpu": "1"}}}))]);
        let containers = json!([{"resources": {"requests": {"cpu": "200m"}}}, {}]);
        let spec = json!({"containers": containers, "overhead": {"cpu": "100m"}});
        for (rule, score) in [(LeastAllocated, 60), (MostAllocated, 40)] {
            let plus = NodeResourcesFitPlus { resources: vec![("cpu".to_owned(), rule, 1)] };
            assert_eq!(scored_in(&plus, &mut cluster, &spec), Some(vec![score]));
        }
    }

    #[test]
    fn what_a_pod_requests_as_a_whole_counts_instead_of_its_containers() {
        let mut cluster = cluster(&[node("a", &json!({"status": {"allocatable": {"cpu": "4"}}}))]);
        let containers = json!([{"resources": {"requests": {"cpu": "500m"}}}, {}]);
        let plus = NodeResourcesFitPlus { resources: vec![("cpu".to_owned(), MostAllocated, 1)] };
        // 500m and the 100m of the container that requests nothing, or one core.
        assert_eq!(scored_in(&plus, &mut cluster, &json!({"containers": containers})), Some(vec![15]));
        let whole = json!({"containers": containers, "resources": {"requests": {"cpu": "1"}}});
        assert_eq!(scored_in(&plus, &mut cluster, &whole), Some(vec![25]));
        // A pod that runs counts alike.
        cluster.place(pod("x", &whole), &"a".into(), Holds::default());
        assert_eq!(scored_in(&plus, &mut cluster, &whole), Some(vec![50]));
    }
}
