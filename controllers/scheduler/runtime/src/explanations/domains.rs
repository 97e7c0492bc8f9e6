//! The topology domains in one of which a gang must be, each with its nodes.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_runtime::{clock::Moment, key::ObjectKey};
use koord_scheduler_engine::Engine;
use koord_scheduler_framework::{node::Node, pod::Pod};
use koord_types::{
    cluster_network_topology::{
        CLUSTER_LAYER, ClusterNetworkTopology, ClusterNetworkTopologySpec, NODE_LAYER, NetworkTopologySpec as Layer,
    },
    gang::{Gather, NETWORK_TOPOLOGY_SPEC},
    pod_group::PodGroup,
};

use super::gang_of;

/// Domains of one answer: each takes a copy of what the scheduler knows.
const DOMAINS_MAX: usize = 16;
/// The ClusterNetworkTopology by which gangs are placed.
const TOPOLOGY: &str = "default";

/// A place of the network.
pub(super) struct Domain {
    /// Its layer and its name, as refusals write them.
    pub(super) name: String,
    nodes: BTreeSet<Arc<str>>,
}

impl Domain {
    /// The engine as it would be without the nodes outside of the domain.
    pub(super) fn alone(&self, engine: &Engine, now: Moment) -> Engine {
        let mut engine = engine.copy();
        let names = engine.cluster().rows().map(|(_, node)| &node.name);
        let others: Vec<Arc<str>> = names.filter(|name| !self.nodes.contains(*name)).cloned().collect();
        for name in others {
            engine.remove_node(&name, now);
        }
        engine
    }
}

/// The domains of the deepest layer in which the gang of these pods must be together, those with most nodes first. None where the pods
/// are no gang, it asks for no such layer, or the network is not known.
pub(super) fn domains(engine: &Engine, pods: &[Arc<Pod>]) -> Vec<Domain> {
    let gang = pods.first().and_then(|pod| Some((pod, gang_of(pod)?)));
    let Some((pod, gang)) = gang.filter(|(_, gang)| pods.iter().all(|pod| gang_of(pod).as_ref() == Some(gang))) else {
        return Vec::new();
    };
    let cluster = engine.cluster();
    let Some(topology) = cluster.objects().get::<ClusterNetworkTopology>(TOPOLOGY) else { return Vec::new() };
    let gathered = gathered(engine, pod, &gang);
    let paths = gathered.iter().filter_map(|layer| path(&topology.spec, layer));
    let Some(path) = paths.max_by_key(Vec::len) else { return Vec::new() };
    let mut places = BTreeMap::<Vec<String>, BTreeSet<Arc<str>>>::new();
    for (_, node) in cluster.rows() {
        let place: Option<Vec<String>> = path.iter().map(|layer| position(&topology.spec, layer, node)).collect();
        if let Some(place) = place {
            places.entry(place).or_default().insert(Arc::clone(&node.name));
        }
    }
    let layer = path.last().map_or("", |layer| layer.topology_layer.as_str());
    let mut domains = named(layer, places);
    domains.sort_by_key(|domain| Reverse(domain.nodes.len()));
    domains.truncate(DOMAINS_MAX);
    domains
}

/// Places by their own name, or with those around them where several have that name.
fn named(layer: &str, places: BTreeMap<Vec<String>, BTreeSet<Arc<str>>>) -> Vec<Domain> {
    let name_of = |place: &[String]| place.last().cloned().unwrap_or_default();
    let mut alike = BTreeMap::<String, usize>::new();
    for place in places.keys() {
        *alike.entry(name_of(place)).or_default() += 1;
    }
    let domain = |(place, nodes): (Vec<String>, BTreeSet<Arc<str>>)| {
        let own_name = name_of(&place);
        let is_alone = alike.get(&own_name) == Some(&1);
        let name = if is_alone { own_name } else { place.join("/") };
        Domain { name: format!("{layer}/{name}"), nodes }
    };
    places.into_iter().map(domain).collect()
}

/// The layers in each of which the pods of a gang must be together: its PodGroup says it, or its pods where it has none.
fn gathered(engine: &Engine, pod: &Pod, gang: &ObjectKey) -> Vec<String> {
    let name = NETWORK_TOPOLOGY_SPEC.name();
    let text = match engine.cluster().objects().get::<PodGroup>(gang.as_str()) {
        Some(group) => {
            let annotations = group.metadata.annotations.as_ref();
            annotations.and_then(|annotations| annotations.get(name)).map(String::as_str)
        }
        None => pod.template.annotations.get(name),
    };
    let spec = text.and_then(|text| NETWORK_TOPOLOGY_SPEC.read(text).ok()).unwrap_or_default();
    let must = spec.gather_strategy.into_iter().filter(|layer| layer.strategy == Some(Gather::MustGather));
    must.map(|layer| layer.layer).filter(|layer| layer != CLUSTER_LAYER).collect()
}

/// The layers from the top of the network down to this one; none where it is not declared, or below no top.
fn path<'s>(spec: &'s ClusterNetworkTopologySpec, layer: &str) -> Option<Vec<&'s Layer>> {
    let layers = &spec.network_topology_spec;
    let declared = |name: &str| layers.iter().find(|known| known.topology_layer == name);
    let mut path = vec![declared(layer)?];
    // A layer below itself has no top.
    while path.len() <= layers.len() {
        let lowest: &'s Layer = path.last().copied()?;
        match lowest.parent_topology_layer.as_str() {
            "" | CLUSTER_LAYER => {
                path.reverse();
                return Some(path);
            }
            parent => path.push(declared(parent)?),
        }
    }
    None
}

/// The name of the place that a node has in a layer. Right above the nodes, one without a label has a place of its own.
fn position(spec: &ClusterNetworkTopologySpec, layer: &Layer, node: &Node) -> Option<String> {
    if layer.topology_layer == NODE_LAYER {
        return Some(node.name.to_string());
    }
    let label = layer.label_key.iter().find_map(|key| node.labels.get(key)).filter(|value| !value.is_empty());
    let is_above_nodes = spec
        .network_topology_spec
        .iter()
        .any(|below| below.topology_layer == NODE_LAYER && below.parent_topology_layer == layer.topology_layer);
    label.or_else(|| is_above_nodes.then_some(&*node.name)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec() -> ClusterNetworkTopologySpec {
        serde_json::from_value(json!({"networkTopologySpec": [
            {"labelKey": ["t/spine"], "parentTopologyLayer": "ClusterTopologyLayer", "topologyLayer": "SpineLayer"},
            {"labelKey": ["t/rack", "t/block"], "parentTopologyLayer": "SpineLayer", "topologyLayer": "BlockLayer"},
            {"parentTopologyLayer": "BlockLayer", "topologyLayer": "NodeTopologyLayer"},
            {"parentTopologyLayer": "RingLayer", "topologyLayer": "RingLayer"},
        ]}))
        .unwrap()
    }

    #[test]
    fn a_layer_has_those_above_it_and_a_ring_has_no_top() {
        let spec = spec();
        let names = |layer: &str| {
            let layers = path(&spec, layer)?;
            Some(layers.iter().map(|layer| layer.topology_layer.as_str()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names("SpineLayer").as_deref(), Some("SpineLayer"));
        assert_eq!(names("NodeTopologyLayer").as_deref(), Some("SpineLayer BlockLayer NodeTopologyLayer"));
        assert_eq!((names("RingLayer"), names("RackLayer")), (None, None));
    }

    #[test]
    fn a_node_without_a_block_has_one_of_its_own_and_one_without_a_spine_has_no_place() {
        let spec = spec();
        let place = |labels: &[(&str, &str)]| {
            let labels = labels.iter().copied().collect();
            let node = Node { name: "n1".into(), labels, ..Node::default() };
            let layers = path(&spec, "BlockLayer")?;
            layers.into_iter().map(|layer| position(&spec, layer, &node)).collect::<Option<Vec<_>>>()
        };
        let expected = |names: [&str; 2]| Some(names.map(str::to_owned).to_vec());
        assert_eq!(place(&[("t/spine", "s1"), ("t/block", "b1")]), expected(["s1", "b1"]));
        assert_eq!(place(&[("t/spine", "s1")]), expected(["s1", "n1"]));
        assert_eq!(place(&[("t/block", "b1")]), None);
    }

    #[test]
    fn domains_of_one_name_are_distinguished_by_their_parents() {
        let place = |spine: &str, block: &str| (vec![spine.to_owned(), block.to_owned()], BTreeSet::new());
        let domains = named("BlockLayer", [place("s1", "b1"), place("s2", "b1"), place("s2", "b2")].into());
        let names: Vec<&str> = domains.iter().map(|domain| &*domain.name).collect();
        assert_eq!(names, ["BlockLayer/s1/b1", "BlockLayer/s2/b1", "BlockLayer/b2"]);
    }
}
