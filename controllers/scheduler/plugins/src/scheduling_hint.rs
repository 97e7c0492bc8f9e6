//! SchedulingHint: the nodes that an annotation of the pod names, as the only ones or as those that are tried first (3G).

use koord_api::{
    gang::{SCHEDULING_HINT, SchedulingHint as Hint},
    protocol::ProtocolError,
};
use koord_config::scheduler::SchedulingHintArgs;
use koord_engine::{
    cluster::Cluster,
    columns::Row,
    cycle::Profile,
    event::Events,
    plugin::{Filter, Plan, Plugin, PreFilter, Refusal, Rejection, Request},
    pod::Template,
};

/// Looks for a node among those that the pod's hint names.
#[derive(Clone, Copy, Debug)]
pub struct SchedulingHint {
    /// So many preferred nodes are looked at.
    preferred_max: usize,
}

impl SchedulingHint {
    const PREFERRED_MAX: usize = 100;

    /// With these arguments.
    pub fn new(args: &SchedulingHintArgs) -> Self {
        let max = args.max_hint_nodes.and_then(|max| usize::try_from(max).ok());
        Self { preferred_max: max.unwrap_or(Self::PREFERRED_MAX) }
    }
}

impl Plugin for SchedulingHint {
    fn name(&self) -> &'static str {
        "SchedulingHint"
    }

    fn admit(&self, request: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
        hint_of(request.template()).map(drop).map_err(|error| Rejection::error(error.reason))
    }

    fn filter(&self, request: &Request<'_>, _: &Cluster) -> PreFilter {
        match hint_of(request.template()) {
            Ok(Some(hint)) if !hint.node_names.is_empty() => PreFilter::Nodes(Box::new(Named(hint.node_names))),
            _ => PreFilter::Skip,
        }
    }

    fn plan(&self, request: &Request<'_>, _: &Profile, cluster: &mut Cluster) -> Plan {
        let Ok(Some(hint)) = hint_of(request.template()) else { return Plan::Any };
        let preferred = hint.preferred_node_names.iter().take(self.preferred_max);
        let rows: Vec<Row> = preferred.filter_map(|name| cluster.row(name)).collect();
        if rows.is_empty() { Plan::Any } else { Plan::Prefer(rows) }
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<String> {
        vec![format!("node(s) didn't satisfy plugin(s) [{}]", self.name())]
    }

    fn events(&self) -> Events {
        Events::NODE_ADDED
    }
}

/// The hint of a pod.
fn hint_of(template: &Template) -> Result<Option<Hint>, ProtocolError> {
    let text = |name: &str| template.annotations.get(name).filter(|text| !text.is_empty());
    let text = text(SCHEDULING_HINT.key.name()).or_else(|| text(SCHEDULING_HINT.deprecated));
    text.map(|text| SCHEDULING_HINT.key.read(text)).transpose()
}

/// The names of the only nodes.
struct Named(Vec<String>);

impl Filter for Named {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let is_named = cluster.node(row).is_some_and(|node| self.0.iter().any(|name| **name == *node.name));
        if is_named { Ok(()) } else { Err(Refusal::unresolvable(0)) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use koord_core::{clock::Moment, random::Random};
    use koord_engine::{
        engine::{Engine, Outcome},
        labels::Labels,
        pod::Pod,
        queue::Timings,
    };
    use serde_json::{Value, json};

    use super::*;
    use crate::{NodeResourcesFit, testing};

    const NOW: Moment = Moment::at(std::time::Duration::ZERO);

    /// Where a pod of two cores goes that has this annotation, or what is said: n1 and n3 have room, n2 has not.
    fn placed(annotation: &str, hint: &Value) -> String {
        let plugins: Vec<Arc<dyn Plugin>> =
            vec![Arc::new(SchedulingHint::new(&SchedulingHintArgs::default())), Arc::new(NodeResourcesFit::default())];
        let profile = Profile { filters: vec![0, 1], ..Profile::of("test", plugins) };
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        for (name, cpu) in [("n1", "8"), ("n2", "1"), ("n3", "32")] {
            engine.set_node(testing::node(name, &json!({"status": {"allocatable": {"cpu": cpu, "pods": "9"}}})), NOW);
        }
        let spec = json!({"containers": [{"resources": {"requests": {"cpu": "2"}}}]});
        let pod = testing::pod("p", &spec);
        let hint = hint.as_str().map_or_else(|| hint.to_string(), ToOwned::to_owned);
        let annotations: Labels = [(annotation, &*hint)].into_iter().collect();
        let template = Template { scheduler: "test".into(), annotations, ..Template::clone(&pod.template) };
        engine.set_pod(Arc::new(Pod { template: Arc::new(template), ..Pod::clone(&pod) }), NOW);
        match engine.attempt(NOW).unwrap().outcome {
            Outcome::Bind { node, .. } => node.as_ref().to_owned(),
            Outcome::Refused(refused) => refused.message,
            Outcome::Waiting { .. } | Outcome::Asks { .. } => unreachable!(),
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
}
