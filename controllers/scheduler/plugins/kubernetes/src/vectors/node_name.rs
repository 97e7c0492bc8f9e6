use std::sync::Arc;

use koord_core::{clock::Moment, random::Random};
use koord_scheduler_engine::{Engine, Outcome, queue::Timings};
use koord_scheduler_framework::pod::{Pod, Template};
use koord_scheduler_testing::{node, pod};
use serde_json::json;

use crate::testing::default_profile;

/// A pod that names its node is there, and asks for none, be there such a node or not.
#[test]
fn a_pod_that_names_its_node_is_not_given_another() {
    for (named, attempted) in [(None, Some("n1")), (Some("n1"), None), (Some("elsewhere"), None)] {
        let profile = default_profile();
        let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        engine.set_node(node("n1", &json!({"status": {"allocatable": {"pods": "1"}}})), Moment::default());
        let pod = pod("p", &json!({}));
        let template = Template { scheduler: "test".into(), ..Template::clone(&pod.template) };
        let pod = Pod { template: Arc::new(template), node: named.map(Arc::from), ..Pod::clone(&pod) };
        engine.set_pod(Arc::new(pod), Moment::default());
        let node = engine.attempt(Moment::default()).map(|attempt| match attempt.outcome {
            Outcome::Bind { node, .. } => node,
            other => panic!("{other:?}"),
        });
        assert_eq!(node.as_deref(), attempted, "{named:?}");
    }
}
