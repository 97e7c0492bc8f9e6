//! SchedulingHint: an annotation says where a pod should go (`spec/scheduler.md` 3G).

use std::{collections::BTreeSet, sync::Arc};

use koord_api::gang::{Renamed, SCHEDULING_HINT, SchedulingHint as Hint};
use koord_config::scheduler::SchedulingHintArgs;
use koord_engine::{
    cluster::Cluster,
    columns::Row,
    event::Events,
    plugin::{Code, Filter, Plugin, PreFilter, Refusal, Rejection, Request},
    pod::Template,
};

/// Restricts a pod to the nodes that its hint names, and tries those first that the hint prefers.
#[derive(Clone, Copy, Debug)]
pub struct SchedulingHint {
    /// The most preferred nodes that are tried.
    pub nodes_max: usize,
}

impl Default for SchedulingHint {
    fn default() -> Self {
        Self { nodes_max: 100 }
    }
}

struct Named(BTreeSet<Arc<str>>);

impl SchedulingHint {
    /// With these arguments.
    pub fn new(args: &SchedulingHintArgs) -> Self {
        let configured = args.max_hint_nodes.and_then(|nodes| usize::try_from(nodes).ok());
        configured.map_or_else(Self::default, |nodes_max| Self { nodes_max })
    }
}

fn hint(template: &Template) -> Result<Option<Hint>, String> {
    let Renamed { key, deprecated } = SCHEDULING_HINT;
    let text = |name: &str| template.annotations.get(name).filter(|text| !text.is_empty());
    let text = text(key.name()).or_else(|| text(deprecated));
    text.map(|text| key.read(text)).transpose().map_err(|error| error.reason)
}

impl Plugin for SchedulingHint {
    fn name(&self) -> &'static str {
        "SchedulingHint"
    }

    fn admit(&self, request: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
        hint(request.template()).map(drop).map_err(|message| Rejection { code: Code::Error, message })
    }

    fn filter(&self, request: &Request<'_>, _: &Cluster) -> PreFilter {
        match hint(request.template()) {
            Ok(Some(hint)) if !hint.node_names.is_empty() => {
                let names = hint.node_names.iter().map(|name| Arc::from(&**name));
                PreFilter::Nodes(Box::new(Named(names.collect())))
            }
            _ => PreFilter::Skip,
        }
    }

    fn prefers(&self, request: &Request<'_>, cluster: &Cluster) -> Vec<Row> {
        let hint = hint(request.template()).ok().flatten().unwrap_or_default();
        let preferred = hint.preferred_node_names.iter().take(self.nodes_max);
        preferred.filter_map(|name| cluster.row(name)).collect()
    }

    fn reasons(&self, _: &Refusal, _: &Cluster) -> Vec<String> {
        vec!["node(s) didn't satisfy plugin(s) [SchedulingHint]".to_owned()]
    }

    fn events(&self) -> Events {
        Events::NODE_ADDED | Events::POD_CHANGED
    }
}

impl Filter for Named {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let is_named = cluster.node(row).is_some_and(|node| self.0.contains(&node.name));
        if is_named { Ok(()) } else { Err(Refusal::unresolvable(0)) }
    }
}

#[cfg(test)]
mod tests {
    use koord_core::{clock::Moment, random::Random};
    use koord_engine::{
        cycle::Profile,
        engine::{Engine, Outcome},
        labels::Labels,
        pod::{Pod, Template},
        queue::Timings,
    };
    use serde_json::json;

    use super::*;
    use crate::{NodeResourcesFit, testing};

    /// Where a pod of one core goes on nodes of so many cores, or why nowhere.
    fn placed(hint: &str, cpus: &[u32]) -> String {
        let plugins: Vec<Arc<dyn Plugin>> =
            vec![Arc::new(NodeResourcesFit::default()), Arc::new(SchedulingHint { nodes_max: 2 })];
        let profile =
            Profile { filters: vec![1, 0], scores: vec![(0, 1)], ..Profile::of("default-scheduler", plugins) };
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        for (index, cpus) in cpus.iter().enumerate() {
            let members = json!({"status": {"allocatable": {"cpu": cpus.to_string(), "memory": "1Gi", "pods": "9"}}});
            engine.set_node(testing::node(&format!("n{}", index + 1), &members), Moment::default());
        }
        let spec = json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]});
        let pod = testing::pod("p", &spec);
        let annotations: Labels = [(SCHEDULING_HINT.key.name(), hint)].into_iter().collect();
        let template = Arc::new(Template { annotations, ..Template::clone(&pod.template) });
        engine.set_pod(Arc::new(Pod { template, ..Pod::clone(&pod) }), Moment::default());
        match engine.attempt(Moment::default()).unwrap().outcome {
            Outcome::Bind { node, .. } => node.to_string(),
            Outcome::Refused(refused) => refused.message,
            Outcome::Waiting { .. } => unreachable!(),
        }
    }

    #[test]
    fn only_named_nodes_are_taken() {
        assert_eq!(placed(r#"{"nodeNames":["n1"]}"#, &[2, 8]), "n1");
        let full = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [SchedulingHint].";
        assert_eq!(placed(r#"{"nodeNames":["n1"]}"#, &[0, 8]), full);
    }

    #[test]
    fn the_first_preferred_node_that_fits_is_taken_before_a_better_one() {
        assert_eq!(placed(r#"{"preferredNodeNames":["n1","n2"]}"#, &[0, 2, 8]), "n2");
        assert_eq!(placed(r#"{"preferredNodeNames":["n1"]}"#, &[0, 2, 8]), "n3", "none of them fits");
        assert_eq!(placed(r#"{"preferredNodeNames":["n1","x","n2"]}"#, &[0, 2, 8]), "n3", "too many of them");
        assert_eq!(placed(r#"{"nodeNames":["n3"],"preferredNodeNames":["n2"]}"#, &[0, 2, 8]), "n3");
    }

    #[test]
    fn a_hint_that_is_no_json_is_an_error() {
        assert_eq!(placed("{bad", &[8]), "invalid character 'b' looking for beginning of object key string");
    }
}
