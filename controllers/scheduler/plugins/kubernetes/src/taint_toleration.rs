//! TaintToleration: pods stay away from taints that they do not tolerate.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Toleration;
use koord_scheduler_framework::{
    EnqueueExtensions, Filter, NodeFilter, NodeScore, Plugin, PreparedFilter, Reason, ReasonCode, Refusal,
    Registration, Request, SCORE_MAX, Scale, SchedulingSignature, Score, SignatureFields,
    cluster::Cluster,
    columns::Row,
    event::{Event, Events},
    lowest_is_best,
    node::Node,
    pod::Pod,
};
use koord_scheduling::{Effect, tolerates, untolerated};

/// Refuses nodes with a taint of effect `NoSchedule` or `NoExecute` that the pod does not tolerate, and prefers those with
/// fewer such taints of effect `PreferNoSchedule`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaintToleration;

struct Tolerations(Vec<Toleration>);

impl Plugin for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).enqueue_extensions(&self).filter(&self).score(&self).scheduling_signature(&self)
    }
}

impl EnqueueExtensions for TaintToleration {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED | Events::NODE_TAINTS | Events::POD_CHANGED
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, _: &Cluster) -> bool {
        let takes = |node: &Node| untolerated(&node.taints, &pod.template.tolerations, &Effect::HARD).is_none();
        match event {
            Event::NodeAdded(node) => takes(node),
            Event::NodeChanged { old, new } => takes(new) && !takes(old),
            _ => true,
        }
    }
}

impl Filter for TaintToleration {
    fn prepare_filter(&self, request: &Request<'_>, _: &Cluster) -> PreparedFilter {
        PreparedFilter::Nodes(Box::new(Tolerations(request.template().tolerations.clone())))
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<Reason> {
        ReasonCode::TaintNotTolerated.reason("node(s) had untolerated taint(s)").into()
    }
}

impl Score for TaintToleration {
    fn prepare_score(&self, request: &Request<'_>, _: &Cluster) -> Option<Box<dyn NodeScore>> {
        // Tolerations of other effects do not count here.
        let is_soft = |toleration: &&Toleration| {
            let effect = toleration.effect.as_deref().unwrap_or_default();
            effect.is_empty() || effect == Effect::PreferNoSchedule.as_str()
        };
        Some(Box::new(Tolerations(request.template().tolerations.iter().filter(is_soft).cloned().collect())))
    }
}

impl SchedulingSignature for TaintToleration {
    fn signature(&self) -> SignatureFields {
        SignatureFields::NONE
    }
}

impl NodeFilter for Tolerations {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let taint = cluster.node(row).and_then(|node| untolerated(&node.taints, &self.0, &Effect::HARD));
        if taint.is_some() { Err(Refusal::unresolvable(0)) } else { Ok(()) }
    }

    fn filter_after(&self, cluster: &Cluster, row: Row, _: usize) -> Option<Result<(), Refusal>> {
        Some(self.filter(cluster, row))
    }
}

impl NodeScore for Tolerations {
    fn score(&self, cluster: &Cluster, row: Row) -> i64 {
        let taints = cluster.node(row).map_or(&[][..], |node| &node.taints);
        let soft = taints.iter().filter(|taint| taint.effect == Effect::PreferNoSchedule.as_str());
        let untolerated = soft.filter(|taint| !self.0.iter().any(|toleration| tolerates(toleration, taint)));
        i64::try_from(untolerated.count()).unwrap_or(i64::MAX)
    }

    fn scale(&self) -> Option<Scale> {
        Some(lowest_is_best)
    }

    fn is_local(&self) -> bool {
        false
    }

    fn uniform(&self, cluster: &Cluster) -> Option<i64> {
        (cluster.softly_tainted() == 0).then_some(SCORE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_core::{clock::Moment, random::Random};
    use koord_scheduler_engine::{Engine, queue::Timings};
    use koord_scheduler_framework::{
        Profile,
        pod::{Pod, Template},
    };
    use koord_scheduler_testing::{Nodes, filtered, node, pod, scored};
    use serde_json::{Value, json};

    use super::*;
    use crate::NodeResourcesFit;

    fn nodes() -> Nodes {
        let tainted = |name: &str, taints: Value| node(name, &json!({"spec": {"taints": taints}}));
        let taint = |key: &str, effect: &str| json!({"key": key, "value": "x", "effect": effect});
        vec![
            tainted("clean", json!([])),
            tainted("hard", json!([taint("a", "NoSchedule")])),
            tainted("soft", json!([taint("b", "PreferNoSchedule")])),
            tainted("softer", json!([taint("b", "PreferNoSchedule"), taint("c", "PreferNoSchedule")])),
            tainted("evicting", json!([taint("d", "NoExecute")])),
        ]
    }

    #[test]
    fn hard_taints_refuse_and_soft_ones_count() {
        let refused = "UU node(s) had untolerated taint(s)";
        assert_eq!(filtered(&TaintToleration, &nodes(), &json!({})), ["", refused, "", "", refused]);
        let tolerant = json!({"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "value": "x"}]});
        assert_eq!(filtered(&TaintToleration, &nodes(), &tolerant), ["", "", "", "", refused]);
        assert_eq!(scored(&TaintToleration, &nodes(), &json!({})), Some(vec![100, 100, 50, 0, 100]));
        assert_eq!(scored(&TaintToleration, &nodes(), &tolerant), Some(vec![100, 100, 100, 0, 100]));
        let hard = json!({"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]});
        assert_eq!(scored(&TaintToleration, &nodes(), &hard), Some(vec![100, 100, 50, 0, 100]));
    }

    #[test]
    fn without_soft_taints_all_nodes_are_alike() {
        assert_eq!(scored(&TaintToleration, &nodes()[..2], &json!({})), Some(vec![100, 100]));
    }

    #[test]
    fn a_node_helps_that_is_tolerated_now_and_was_not_before() {
        let nodes = nodes();
        let (clean, hard, evicting) = (&nodes[0], &nodes[1], &nodes[4]);
        let waiting = pod("p", &json!({"tolerations": [{"key": "d", "operator": "Exists"}]}));
        let helps = |event: Event| TaintToleration.is_helped_by(&waiting, &event, &Cluster::default());
        let added = |node: &Arc<Node>| helps(Event::NodeAdded(Arc::clone(node)));
        assert_eq!([added(clean), added(hard), added(evicting)], [true, false, true]);
        let changed =
            |old: &Arc<Node>, new: &Arc<Node>| helps(Event::NodeChanged { old: Arc::clone(old), new: Arc::clone(new) });
        assert_eq!([changed(hard, clean), changed(clean, evicting), changed(clean, hard)], [true, false, false]);
        assert!(helps(Event::PodChanged));
    }

    #[test]
    fn changes_of_taints_wake_the_pods_that_taints_refused_and_no_others() {
        let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(TaintToleration), Arc::new(NodeResourcesFit::default())];
        let profile = Profile { filters: vec![0, 1], ..Profile::of("test", plugins) };
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        let at = |seconds| Moment::at(std::time::Duration::from_secs(seconds));
        let tainted = |name: &str, taints: Value| {
            let status = json!({"allocatable": {"cpu": "1", "pods": "9"}});
            node(name, &json!({"spec": {"taints": taints}, "status": status}))
        };
        let taint = |key: &str| json!([{"key": key, "effect": "NoSchedule"}]);
        engine.set_node(tainted("n1", taint("a")), at(0));
        engine.set_node(tainted("n2", taint("a")), at(0));
        for (name, cpu, tolerations) in [("large", "2", json!([{"operator": "Exists"}])), ("kept-out", "1", json!([]))]
        {
            let requests = json!([{"resources": {"requests": {"cpu": cpu}}}]);
            let one = pod(name, &json!({"containers": requests, "tolerations": tolerations}));
            let template = Template { scheduler: "test".into(), ..Template::clone(&one.template) };
            engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&one) }), at(0));
        }
        let tried = |engine: &mut Engine, now| {
            std::iter::from_fn(|| Some(engine.attempt(now)?.pod.key.name().to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(tried(&mut engine, at(0)).len(), 2);
        engine.set_node(tainted("n1", taint("b")), at(20));
        assert_eq!(tried(&mut engine, at(20)), Vec::<String>::new());
        engine.set_node(tainted("n2", json!([])), at(40));
        assert_eq!(tried(&mut engine, at(40)), ["kept-out"]);
    }
}
