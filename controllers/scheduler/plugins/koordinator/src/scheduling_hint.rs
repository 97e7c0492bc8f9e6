//! SchedulingHint: the nodes that an annotation of the pod names, as the only ones or as those that are tried first (3G).

use std::sync::Arc;

use koord_config::scheduler::SchedulingHintArgs;
use koord_scheduler_framework::{
    BeforePreFilter, Filter, Plugin, PreferNodes, PreparedFilter, ReasonCode, Registration, Rejection, Request,
    SchedulingHintSource, SchedulingSignature, SignatureFields, cluster::Cluster, columns::Row, event::Events,
    pod::Template,
};
use koord_types::{
    gang::{SCHEDULING_HINT, SchedulingHint as Hint},
    protocol::ProtocolError,
};

/// Looks for a node among those that the pod's hint names.
#[derive(Clone, Copy, Debug)]
pub struct SchedulingHint {
    /// So many preferred nodes are looked at.
    preferred_max: usize,
}

impl SchedulingHint {
    /// With these arguments.
    pub fn new(args: &SchedulingHintArgs) -> Self {
        Self { preferred_max: usize::try_from(args.max_hint_nodes).unwrap_or_default() }
    }
}

impl Plugin for SchedulingHint {
    fn name(&self) -> &'static str {
        "SchedulingHint"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .retried_after(Events::NODE_ADDED | Events::POD_CHANGED)
            .before_pre_filter(&self)
            .prefer_nodes(&self)
            .filter(&self)
            .scheduling_hint(&self)
            .scheduling_signature(&self)
    }
}

impl BeforePreFilter for SchedulingHint {
    fn before_pre_filter(&self, request: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
        let invalid = |error: ProtocolError| Rejection::error(ReasonCode::SchedulingHintInvalid.reason(error.reason));
        hint_of(request.template()).map(drop).map_err(invalid)
    }
}

impl PreferNodes for SchedulingHint {
    fn prefer_nodes(&self, request: &Request<'_>, cluster: &Cluster) -> Vec<Row> {
        let Ok(Some(hint)) = hint_of(request.template()) else { return Vec::new() };
        let preferred = hint.preferred_node_names.iter().take(self.preferred_max);
        preferred.filter_map(|name| cluster.row(name)).collect()
    }
}

impl Filter for SchedulingHint {
    fn prepare_filter(&self, request: &Request<'_>, _: &Cluster) -> PreparedFilter {
        match self.hinted_nodes(request.template()) {
            names if names.is_empty() => PreparedFilter::Skip,
            names => PreparedFilter::NodeNames(names.into_iter().map(Box::from).collect(), None),
        }
    }

    fn names_nodes(&self) -> bool {
        true
    }
}

impl SchedulingHintSource for SchedulingHint {
    fn hinted_nodes(&self, template: &Template) -> Vec<String> {
        hint_of(template).ok().flatten().map(|hint| hint.node_names).unwrap_or_default()
    }
}

impl SchedulingSignature for SchedulingHint {
    fn signature(&self) -> SignatureFields {
        SignatureFields::NONE
    }
}

/// The hint of a pod.
fn hint_of(template: &Template) -> Result<Option<Hint>, ProtocolError> {
    let text = |name: &str| template.annotations.get(name).filter(|text| !text.is_empty());
    let text = text(SCHEDULING_HINT.key.name()).or_else(|| text(SCHEDULING_HINT.deprecated));
    text.map(|text| SCHEDULING_HINT.key.read(text)).transpose()
}

#[cfg(test)]
mod tests {
    use koord_core::{clock::Moment, random::Random};
    use koord_scheduler_engine::{Engine, Outcome, queue::Timings};
    use koord_scheduler_framework::{Profile, labels::Labels, pod::Pod};
    use koord_scheduler_plugins_kubernetes::{NodeAffinity, NodeResourcesFit, NodeUnschedulable};
    use serde_json::{Value, json};

    use super::*;

    const NOW: Moment = Moment::at(std::time::Duration::ZERO);

    /// Where a pod of two cores goes that has this annotation, or what is said: it fits on n1 and n3, not on n2.
    fn placed(annotation: &str, hint: &Value) -> String {
        let plugins: Vec<Arc<dyn Plugin>> =
            vec![Arc::new(SchedulingHint::new(&SchedulingHintArgs::default())), Arc::new(NodeResourcesFit::default())];
        let profile = Profile { filters: vec![0, 1], ..Profile::of("test", plugins) };
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        for (name, cpu) in [("n1", "8"), ("n2", "1"), ("n3", "32")] {
            engine.set_node(
                koord_scheduler_testing::node(name, &json!({"status": {"allocatable": {"cpu": cpu, "pods": "9"}}})),
                NOW,
            );
        }
        let spec = json!({"containers": [{"resources": {"requests": {"cpu": "2"}}}]});
        let pod = koord_scheduler_testing::pod("p", &spec);
        let hint = hint.as_str().map_or_else(|| hint.to_string(), ToOwned::to_owned);
        let annotations: Labels = [(annotation, &*hint)].into_iter().collect();
        let template = Template { scheduler: "test".into(), annotations, ..Template::clone(&pod.template) };
        engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&pod) }), NOW);
        match engine.attempt(NOW).unwrap().outcome {
            Outcome::Bind { node, .. } => node.as_ref().to_owned(),
            Outcome::Refused(refused) => refused.message,
            Outcome::Waiting { .. } | Outcome::ExtenderCall { .. } => unreachable!(),
        }
    }

    #[test]
    fn named_nodes_are_the_only_ones_and_preferred_ones_the_first() {
        let new = SCHEDULING_HINT.key.name();
        for (annotation, hint, expected) in [
            (new, json!({"nodeNames": ["n1"]}), "n1"),
            (SCHEDULING_HINT.deprecated, json!({"nodeNames": ["n3"], "extensions": {"DeviceShare": {}}}), "n3"),
            (new, json!({"preferredNodeNames": ["n2", "n1"]}), "n1"),
            (new, json!({"preferredNodeNames": ["n3", "n1"], "nodeNames": ["n1"]}), "n1"),
            (new, json!({"preferredNodeNames": ["n2"], "nodeNames": ["n3"]}), "n3"),
            (
                new,
                json!({"nodeNames": ["n2"]}),
                "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [SchedulingHint].",
            ),
            (new, json!("{bad"), "invalid character 'b' looking for beginning of object key string"),
        ] {
            assert_eq!(placed(annotation, &hint), expected, "{hint}");
        }
    }

    /// What is said about a pod of two cores that names these nodes by affinity, and these by a hint.
    fn said(by_affinity: &[&str], by_hint: &[&str]) -> String {
        let plugins: Vec<Arc<dyn Plugin>> = vec![
            Arc::new(NodeUnschedulable),
            Arc::new(NodeResourcesFit::default()),
            Arc::new(NodeAffinity::default()),
            Arc::new(SchedulingHint::new(&SchedulingHintArgs::default())),
        ];
        let profile = Profile { filters: vec![0, 1, 2, 3], ..Profile::of("test", plugins) };
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        for (name, is_closed) in [("n1", true), ("n2", false), ("n3", false)] {
            let status = json!({"allocatable": {"cpu": "1", "pods": "9"}});
            engine.set_node(
                koord_scheduler_testing::node(name, &json!({"spec": {"unschedulable": is_closed}, "status": status})),
                NOW,
            );
        }
        let term = |name| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]});
        let terms: Vec<Value> = by_affinity.iter().map(term).collect();
        let mut spec = json!({"containers": [{"resources": {"requests": {"cpu": "2"}}}]});
        if !by_affinity.is_empty() {
            spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
                json!(terms);
        }
        let pod = koord_scheduler_testing::pod("p", &spec);
        let hint = json!({"nodeNames": by_hint}).to_string();
        let annotations: Labels = [(SCHEDULING_HINT.key.name(), &*hint)].into_iter().collect();
        let template = Template { scheduler: "test".into(), annotations, ..Template::clone(&pod.template) };
        engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&pod) }), NOW);
        match engine.attempt(NOW).unwrap().outcome {
            Outcome::Refused(refused) => refused.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pod_is_tried_again_when_its_hint_is_changed_or_removed() {
        let plugins: Vec<Arc<dyn Plugin>> = vec![
            Arc::new(SchedulingHint::new(&SchedulingHintArgs::default())),
            Arc::new(NodeUnschedulable),
            Arc::new(NodeResourcesFit::default()),
        ];
        let hinted = |hint: &[&str]| {
            let pod = koord_scheduler_testing::pod("p", &json!({}));
            let hint = json!({"nodeNames": hint}).to_string();
            let annotations: Labels = [(SCHEDULING_HINT.key.name(), &*hint)].into_iter().collect();
            let template = Template { scheduler: "test".into(), annotations, ..Template::clone(&pod.template) };
            Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&pod) })
        };
        for (before, after) in [("gone", &["n2"][..]), ("gone", &[]), ("closed", &["n2"])] {
            let profile = Profile { filters: vec![0, 1, 2], ..Profile::of("test", plugins.clone()) };
            let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
            for (name, is_closed) in [("closed", true), ("n2", false)] {
                let members = json!({"spec": {"unschedulable": is_closed}, "status": {"allocatable": {"pods": "9"}}});
                engine.set_node(koord_scheduler_testing::node(name, &members), NOW);
            }
            engine.set_pod(hinted(&[before]), NOW);
            assert!(matches!(engine.attempt(NOW).unwrap().outcome, Outcome::Refused(_)));
            assert!(engine.attempt(NOW).is_none());
            let later = NOW + std::time::Duration::from_secs(5);
            engine.set_pod(hinted(after), later);
            let bound = engine.attempt(later).map(|attempt| attempt.outcome);
            assert!(matches!(bound, Some(Outcome::Bind { node, .. }) if &*node == "n2"), "{before} {after:?}");
        }
    }

    #[test]
    fn nodes_outside_of_a_hint_are_not_filtered_and_the_refusal_names_the_hint_once() {
        for (by_affinity, by_hint, expected) in [
            (&["n2"][..], &[][..], "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."),
            (
                &["n2", "n1"],
                &["n2", "n3"],
                "1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity SchedulingHint].",
            ),
            (&["n1"], &["n3"], "node(s) didn't satisfy plugin(s) [NodeAffinity SchedulingHint] simultaneously."),
            (&["n9"], &[], "3 node(s) didn't satisfy plugin(s) [NodeAffinity]."),
        ] {
            assert_eq!(said(by_affinity, by_hint), format!("0/3 nodes are available: {expected}"));
        }
    }
}
