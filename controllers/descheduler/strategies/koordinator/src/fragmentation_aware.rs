//! Evicts the pod of a node without which its resources are used more evenly.

use std::sync::Arc;

use koord_config::descheduler::FragmentationAwareArgs;
use koord_descheduler_framework::{Balance, NodeId, Pass, Plugin, PodId, ReasonCode, Registration, StrategyError};
use koord_scheduling::{ResourceId, ResourceVector, Selector};

use crate::{
    ArgsError,
    selection::{self, Movable},
    targets::Targets,
};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct FragmentationAware {
    args: FragmentationAwareArgs,
    nodes: Option<Selector>,
    movable: Movable,
}

impl FragmentationAware {
    /// # Errors
    ///
    /// A selector is none.
    pub fn new(args: FragmentationAwareArgs) -> Result<Self, ArgsError> {
        let nodes = args.node_selector.as_ref().map(|nodes| selection::parse("nodeSelector", nodes)).transpose()?;
        let selectors = args.pod_selectors.iter().map(|pods| pods.selector.as_ref());
        let movable = Movable::new(args.evictable_namespaces.as_ref(), selectors)?;
        Ok(Self { args, nodes, movable })
    }

    /// Looks at one node, which is a target with a number as well.
    fn balance_node(
        &self,
        pass: &mut Pass<'_>,
        (number, node): (usize, NodeId),
        resources: &[ResourceId],
        targets: &mut Targets<'_>,
    ) {
        let cluster = pass.cluster();
        let (allocatable, requested) = (cluster.allocatable(node), cluster.requested(node));
        let before = fragmentation(resources, allocatable, requested, None);
        if before <= self.args.imbalance_threshold {
            pass.leave_node(node, &ReasonCode::NodeNotFragmented.into());
            return;
        }
        let mut candidates = Vec::<(f64, PodId)>::new();
        for (id, pod) in cluster.active_pods_on(node) {
            let gain = before - fragmentation(resources, allocatable, requested, Some(cluster.requests(id)));
            match self.movable.check(pod) {
                Err(refusal) => pass.leave(id, refusal),
                Ok(()) if gain <= self.args.min_improvement_threshold => pass.leave(id, ReasonCode::GainTooSmall),
                Ok(()) => candidates.push((gain, id)),
            }
        }
        // The first of equals comes first. What costs more to find out is only asked of the best ones.
        candidates.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let mut is_chosen = false;
        for (gain, id) in candidates {
            if is_chosen {
                pass.leave(id, ReasonCode::BetterPodChosen);
                continue;
            }
            if !pass.filter(id) {
                continue;
            }
            let target = if self.args.node_fit { targets.first(id, 0) } else { None };
            if self.args.node_fit && target.is_none() {
                pass.leave(id, targets.refusal());
                continue;
            }
            // QUIRK: where what is asked right before the eviction refuses the best pod, no other one is tried.
            is_chosen = true;
            if pass.pre_eviction_filter(id) && self.evict(pass, id, before, gain) {
                targets.take(target, id);
                targets.give_back(number, id);
            }
        }
    }

    fn evict(&self, pass: &mut Pass<'_>, id: PodId, before: f64, gain: f64) -> bool {
        let after = before - gain;
        let recorded = format!("fragmentation reduction: stdBefore={before:.4} stdAfter={after:.4} gain={gain:.4}");
        let text = format!("its node is used unevenly: a deviation of {before:.4}, and {after:.4} without the pod");
        let reason = ReasonCode::FragmentationReduced.reason(text);
        let reason = reason.with("before", format!("{before:.4}")).with("after", format!("{after:.4}"));
        if self.args.dry_run {
            pass.evict_in_dry_run(id, reason, recorded);
            return true;
        }
        pass.evict(id, reason, recorded)
    }
}

/// The standard deviation of the shares of resources that are requested, without a pod where one is given. Resources that the node lacks do not count.
fn fragmentation(
    resources: &[ResourceId],
    allocatable: &ResourceVector,
    requested: &ResourceVector,
    without: Option<&ResourceVector>,
) -> f64 {
    let share = |id: &ResourceId| {
        let (allocatable, without) = (allocatable.get(*id), without.map_or(0, |pod| pod.get(*id)));
        (allocatable > 0).then(|| (requested.get(*id) - without) as f64 / allocatable as f64)
    };
    let shares = || resources.iter().filter_map(share);
    let count = shares().count() as f64;
    if count < 2.0 {
        return 0.0;
    }
    let mean = shares().sum::<f64>() / count;
    (shares().map(|share| (share - mean) * (share - mean)).sum::<f64>() / count).sqrt()
}

impl Plugin for FragmentationAware {
    fn name(&self) -> &'static str {
        "FragmentationAware"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).balance(&self)
    }
}

impl Balance for FragmentationAware {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        if self.args.paused {
            return Ok(());
        }
        let cluster = pass.cluster();
        let nodes = selection::nodes(cluster, pass.nodes(), self.nodes.as_ref());
        let resources = self.args.resources.iter().filter_map(|name| cluster.resources().get(name));
        let resources: Vec<ResourceId> = resources.collect();
        let mut targets = Targets::new(cluster, nodes.iter().copied());
        for node in nodes.into_iter().enumerate() {
            self.balance_node(pass, node, &resources, &mut targets);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use koord_descheduler_framework::Cluster;
    use koord_descheduler_testing::{args, cluster, evicted, node, plan, pod, with};
    use serde_json::{Value, json};

    use super::*;

    fn plugin(arguments: &Value) -> FragmentationAware {
        let thresholds = json!({"imbalanceThreshold": 0.1, "minImprovementThreshold": 0.01});
        FragmentationAware::new(args("FragmentationAware", &with(&thresholds, arguments))).unwrap()
    }

    fn evicts(arguments: &Value, objects: &[Value]) -> Vec<String> {
        evicted(plugin(arguments), &cluster(objects), 0)
    }

    fn of(name: &str, cpu_milli: i64, memory: i64) -> Value {
        with(
            &node(name),
            &json!({"status": {"allocatable": {"cpu": format!("{cpu_milli}m"), "memory": memory.to_string()}}}),
        )
    }

    fn requesting(name: &str, node: &str, cpu_milli: i64, memory: i64) -> Value {
        let requests = json!({"cpu": format!("{cpu_milli}m"), "memory": memory.to_string()});
        let container = json!({"name": "c", "image": "i", "resources": {"requests": requests}});
        with(&pod(name, node), &json!({"spec": {"containers": [container]}}))
    }

    #[test]
    fn the_pod_goes_whose_leaving_gains_most() {
        let objects = [
            of("n1", 4000, 4000),
            of("n2", 4000, 4000),
            requesting("a", "n1", 2500, 500),
            requesting("b", "n1", 500, 500),
        ];
        assert_eq!(evicts(&json!({}), &objects), ["a"]);
        assert_eq!(evicts(&json!({"imbalanceThreshold": 0.25}), &objects), [""; 0], "0.25 is not above");
        assert_eq!(evicts(&json!({"minImprovementThreshold": 0.25}), &objects), [""; 0], "it gains 0.25 and not more");
        assert_eq!(evicts(&json!({"resources": ["cpu"]}), &objects), [""; 0], "one resource is never uneven");
        assert_eq!(evicts(&json!({"resources": ["cpu", "memory", "example.com/gpu"]}), &objects), ["a"]);
        assert_eq!(evicts(&json!({"paused": true}), &objects), [""; 0]);
        let other = [requesting("c", "n2", 4000, 4000)];
        let full: Vec<Value> = objects.iter().chain(&other).cloned().collect();
        assert_eq!(evicts(&json!({}), &full), [""; 0], "it fits nowhere else");
        assert_eq!(evicts(&json!({"nodeFit": false}), &full), ["a"]);
    }

    #[test]
    fn of_equals_the_first_goes_and_one_of_a_node() {
        let objects = [
            of("n1", 4000, 4000),
            of("n2", 4000, 4000),
            requesting("b", "n1", 1000, 100),
            requesting("a", "n1", 1000, 100),
            requesting("c", "n1", 900, 100),
        ];
        assert_eq!(evicts(&json!({}), &objects), ["a"]);
    }

    /// Stricter than the original, which looks at each node by itself.
    #[test]
    fn what_one_pod_takes_of_a_target_is_gone_for_the_next_and_what_it_leaves_is_there() {
        let uneven = |node: &str, pod: &str| [of(node, 4000, 4000), requesting(pod, node, 2500, 100)];
        let small = |node: &str, pod: &str| [of(node, 3000, 4000), requesting(pod, node, 2600, 100)];
        let two = [uneven("n1", "a"), uneven("n2", "b")].concat();
        assert_eq!(evicts(&json!({}), &two), [""; 0], "neither has room for the other");
        assert_eq!(
            evicts(&json!({}), &[two, vec![of("n3", 4000, 4000)]].concat()),
            ["a", "b"],
            "one to n3, the other to n1"
        );
        let blocked = [uneven("n1", "a"), small("n2", "b")].concat();
        assert_eq!(evicts(&json!({}), &[blocked, vec![of("n3", 2600, 4000)]].concat()), ["a", "b"]);
        let taken = [uneven("n1", "a"), [of("n2", 2600, 4000), requesting("c", "n2", 2600, 100)]].concat();
        let pinned = json!({"spec": {"nodeSelector": {"big": "yes"}}});
        let big = with(&of("n3", 2600, 4000), &json!({"metadata": {"labels": {"big": "yes"}}}));
        let taken: Vec<Value> = taken
            .iter()
            .map(|object| if object["kind"] == "Pod" { with(object, &pinned) } else { object.clone() })
            .collect();
        assert_eq!(evicts(&json!({}), &[taken, vec![big]].concat()), ["a"], "only one fits n3");
    }

    #[test]
    fn targets_are_the_selected_nodes_and_ended_pods_count_nothing() {
        let labelled = with(&of("n1", 4000, 4000), &json!({"metadata": {"labels": {"s": "1"}}}));
        let selector = json!({"nodeSelector": {"matchLabels": {"s": "1"}}});
        let uneven = requesting("a", "n1", 2500, 500);
        assert_eq!(evicts(&selector, &[labelled.clone(), of("n2", 4000, 4000), uneven.clone()]), [""; 0]);
        let ended = with(&uneven, &json!({"status": {"phase": "Succeeded"}}));
        assert_eq!(evicts(&json!({}), &[labelled, of("n2", 4000, 4000), ended]), [""; 0]);
    }

    #[test]
    fn the_reason_has_four_decimals() {
        let objects = [of("n1", 4000, 4000), of("n2", 4000, 4000), requesting("a", "n1", 2500, 1500)];
        let plan = plan(plugin(&json!({})), &cluster(&objects), 0);
        let eviction = plan.steps[0].eviction().unwrap();
        let recorded = "fragmentation reduction: stdBefore=0.1250 stdAfter=0.0000 gain=0.1250";
        assert_eq!(eviction.recorded_reason, recorded);
        assert_eq!(eviction.reason.code, ReasonCode::FragmentationReduced);
    }

    #[test]
    fn the_score_is_the_deviation_of_the_shares() {
        let vector = |cluster: &Cluster, pairs: &[(&str, i64)]| {
            let mut vector = ResourceVector::default();
            for (name, amount) in pairs {
                vector.set(cluster.resources().get(name).unwrap(), *amount);
            }
            vector
        };
        let gpu = json!({"status": {"allocatable": {"example.com/gpu": "2"}}});
        let cluster = cluster(&[with(&node("n1"), &gpu)]);
        let ids: Vec<ResourceId> =
            ["cpu", "memory", "example.com/gpu"].iter().map(|name| cluster.resources().get(name).unwrap()).collect();
        let score = |names: &[ResourceId], allocatable: &[(&str, i64)], requested: &[(&str, i64)]| {
            fragmentation(names, &vector(&cluster, allocatable), &vector(&cluster, requested), None)
        };
        let (cpu_and_gpu, cpu_and_memory) = ([ids[0], ids[2]], [ids[0], ids[1]]);
        let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-12, "{one} {other}");
        close(score(&cpu_and_gpu, &[("cpu", 8000), ("example.com/gpu", 2)], &[("example.com/gpu", 1)]), 0.25);
        close(score(&cpu_and_memory, &[("cpu", 4), ("memory", 4)], &[("cpu", 3), ("memory", 1)]), 0.25);
        close(score(&[], &[("cpu", 4)], &[("cpu", 3)]), 0.0);
        close(score(&cpu_and_memory, &[("cpu", 4)], &[("cpu", 3)]), 0.0);
    }

    #[test]
    fn scores_from_the_sum_of_requests_are_those_of_adding_up_anew() {
        let pods: Vec<Value> =
            (0..500_i64).map(|n| requesting(&format!("p{n:03}"), "n1", 7 * (n % 13), 5 * (n % 11))).collect();
        let objects: Vec<Value> =
            [of("n1", 64_000, 64_000), of("n2", 64_000, 64_000)].into_iter().chain(pods).collect();
        let cluster = cluster(&objects);
        let n1 = cluster.node_id("n1").unwrap();
        let resources = [ResourceId::CPU, ResourceId::MEMORY];
        for (left_out, _) in cluster.active_pods_on(n1) {
            let mut sum = ResourceVector::default();
            cluster
                .active_pods_on(n1)
                .filter(|(id, _)| *id != left_out)
                .for_each(|(id, _)| sum.add(cluster.requests(id)));
            let anew = fragmentation(&resources, cluster.allocatable(n1), &sum, None);
            let requests = Some(cluster.requests(left_out));
            let from_sum = fragmentation(&resources, cluster.allocatable(n1), cluster.requested(n1), requests);
            assert!((anew - from_sum).abs() < 1e-12);
        }
    }
}
