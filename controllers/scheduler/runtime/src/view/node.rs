//! A node, as far as it is kept.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::core::v1::{ContainerImage, Node as ApiNode, NodeSpec, NodeStatus},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use koord_resource::controller::ResourceKind;
use koord_runtime::{
    intern::Interner,
    projection::{DecodeError, Projection, WireObject},
};
use koord_scheduler_framework::{node::Node, template::of_koordinator};
use koord_types::node_annotations::NODE_RESERVATION;
use serde::Deserialize;

use super::{labels, texts};
use crate::transform;

#[derive(Debug)]
pub(crate) struct NodeView(pub(crate) Arc<Node>);

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeMembers {
    spec: NodeSpec,
    status: NodeStatusWire,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatusWire {
    allocatable: Option<BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
    images: Option<Vec<ContainerImage>>,
}

impl Projection for NodeView {
    const KIND: ResourceKind = ResourceKind::NODE;
    type Wire<'a> = WireObject<'a, NodeMembers>;
    type Index = ();

    fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
        let NodeMembers { spec, status: NodeStatusWire { mut allocatable, images } } = wire.members;
        allocatable.iter_mut().for_each(transform::rename);
        let annotations = texts(wire.metadata.annotations, "metadata.annotations")?;
        let metadata = ObjectMeta { name: Some(wire.metadata.name.into_owned()), ..ObjectMeta::default() };
        let status = NodeStatus { allocatable, images, ..NodeStatus::default() };
        let object = ApiNode { metadata, spec: Some(spec), status: Some(status) };
        let mut node = Node::of(&object).map_err(|error| DecodeError::new("status.allocatable", error))?;
        let reservation = annotations.get(NODE_RESERVATION.name());
        transform::keep_away(reservation.map(|text| &**text), &mut node.allocatable);
        let annotations = of_koordinator(annotations.iter().map(|(key, value)| (&**key, &**value)));
        let images = node.images.iter().map(|(name, size)| (strings.intern(name), *size)).collect();
        let labels = labels(wire.metadata.labels, strings)?;
        Ok(Self(Arc::new(Node { labels, annotations, images, ..node })))
    }
}

impl PartialEq for NodeView {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use koord_runtime::cache::Cache;
    use koord_types::resource_names::{BATCH_CPU, BATCH_MEMORY};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_that_keeps_something_away_offers_batch_resources_under_either_name() {
        let offered = |cpu: &str, memory: &str| {
            let annotations = json!({"node.koordinator.sh/reservation": r#"{"resources":{"cpu":"2"}}"#});
            let metadata = json!({"name": "n", "uid": "u", "resourceVersion": "1", "annotations": annotations});
            let allocatable = json!({"cpu": "8", cpu: "4000", memory: "1Gi"});
            let mut cache = Cache::<NodeView>::default();
            cache.upsert(&json!({"metadata": metadata, "status": {"allocatable": allocatable}}).to_string()).unwrap();
            let allocatable = &cache.get("n").unwrap().value.0.allocatable;
            ["cpu", BATCH_CPU, BATCH_MEMORY].map(|name| allocatable.amount(name).to_string())
        };
        let expected = ["6", "4k", "1Gi"].map(str::to_owned);
        assert_eq!(offered(BATCH_CPU, BATCH_MEMORY), expected);
        assert_eq!(offered("koordinator.sh/batch-cpu", "koordinator.sh/batch-memory"), expected);
    }
}
