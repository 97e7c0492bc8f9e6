//! The tree of the cluster's network, from the layers of a ClusterNetworkTopology and the labels of the nodes (2.13).

use std::collections::{BTreeMap, BTreeSet};

use koord_scheduler_framework::labels::Labels;
use koord_types::cluster_network_topology::{
    CLUSTER_LAYER, ClusterNetworkTopologySpec, NODE_LAYER, NetworkTopologyDetail, NetworkTopologySpec, TopologyInfo,
};

/// A tree whose leaves are nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The names of the layers, from the whole cluster down to the node.
    layers: Vec<String>,
    /// Parents before their children, and children in the order of their names.
    places: Vec<Place>,
    /// The places of the nodes.
    leaves: BTreeMap<String, usize>,
}

/// A place of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) layer: usize,
    pub(super) name: String,
    pub(super) parent: Option<usize>,
    pub(super) children: Vec<usize>,
}

impl Tree {
    /// The tree of these nodes; none where the layers are no chain from the cluster to the node.
    ///
    /// A node without the label of the layer above it has a place of its own there, by its name. One without the label of
    /// any other layer is not in the tree.
    pub fn new<'a>(
        spec: &ClusterNetworkTopologySpec,
        nodes: impl IntoIterator<Item = (&'a str, &'a Labels)>,
    ) -> Option<Self> {
        let layers = chain(spec)?;
        let keys = |layer: &String| {
            let declared = spec.network_topology_spec.iter().find(|declared| declared.topology_layer == *layer);
            declared.map(|declared| declared.label_key.as_slice()).unwrap_or_default()
        };
        let inner = layers.get(1..layers.len() - 1)?;
        let path = |name: &str, labels: &Labels| -> Option<Vec<String>> {
            let mut path = Vec::new();
            for (index, layer) in inner.iter().enumerate() {
                let label = keys(layer).iter().find_map(|key| labels.get(key)).filter(|value| !value.is_empty());
                let is_last = index + 1 == inner.len();
                path.push(label.or_else(|| is_last.then_some(name))?.to_owned());
            }
            path.push(name.to_owned());
            Some(path)
        };
        let paths: BTreeSet<Vec<String>> = nodes.into_iter().filter_map(|(name, labels)| path(name, labels)).collect();
        let root = Place { layer: 0, name: String::new(), parent: None, children: Vec::new() };
        let mut tree = Self { layers, places: vec![root], leaves: BTreeMap::new() };
        for path in paths {
            let leaf = path.iter().fold(0, |parent, name| tree.child(parent, name));
            tree.leaves.extend(path.last().map(|name| (name.clone(), leaf)));
        }
        Some(tree)
    }

    /// The places above the nodes, as the status of the ClusterNetworkTopology lists them.
    pub fn details(&self) -> Vec<NetworkTopologyDetail> {
        let info = |place: &Place| TopologyInfo {
            topology_layer: self.layers[place.layer].clone(),
            topology_name: place.name.clone(),
        };
        let mut nodes = vec![0; self.places.len()];
        for leaf in self.leaves.values() {
            self.ancestors(*leaf).for_each(|at| nodes[at] += 1);
        }
        let inner = self.places.iter().zip(nodes).filter(|(place, _)| place.layer + 1 < self.layers.len());
        inner
            .map(|(place, node_num)| {
                let below = if place.children.is_empty() { "" } else { self.layer_name(place.layer + 1) };
                let children = place.children.iter().map(|child| self.places[*child].name.clone());
                NetworkTopologyDetail {
                    topology_info: info(place),
                    parent_topology_info: place.parent.map(|parent| info(&self.places[parent])),
                    child_topology_names: children.filter(|_| below != NODE_LAYER).collect(),
                    child_topology_layer: below.to_owned(),
                    node_num,
                }
            })
            .collect()
    }

    /// How near each node is to the pods that it is to be near to: 0 for the node where most of them are, on itself or
    /// around it; of equals, that with the fewest candidates around it. Nodes outside of the tree come last.
    pub fn ranks(&self, candidates: &[&str], existing: impl Fn(&str) -> usize) -> Vec<usize> {
        let (mut pods, mut rivals) = (vec![0; self.places.len()], vec![0; self.places.len()]);
        for (name, leaf) in &self.leaves {
            self.ancestors(*leaf).for_each(|at| pods[at] += existing(name));
        }
        for leaf in candidates.iter().filter_map(|name| self.leaves.get(*name)) {
            self.ancestors(*leaf).for_each(|at| rivals[at] += 1);
        }
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_by_key(|index| {
            let leaf = self.leaves.get(candidates[*index]).copied();
            let upward = |of: &dyn Fn(usize) -> i64| leaf.map(|leaf| self.ancestors(leaf).map(of).collect::<Vec<_>>());
            let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
            (leaf.is_none(), upward(&|at| -count(pods[at])), upward(&|at| count(rivals[at])), candidates[*index])
        });
        let mut ranks = vec![0; candidates.len()];
        order.into_iter().enumerate().for_each(|(rank, index)| ranks[index] = rank);
        ranks
    }

    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    pub(super) fn leaf(&self, node: &str) -> Option<usize> {
        self.leaves.get(node).copied()
    }

    pub(super) fn layer(&self, name: &str) -> Option<usize> {
        self.layers.iter().position(|layer| layer == name)
    }

    pub(super) fn layer_name(&self, layer: usize) -> &str {
        self.layers.get(layer).map_or("", String::as_str)
    }

    /// The place itself and all places around it, up to the whole cluster.
    pub(super) fn ancestors(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(at), |at| self.places[*at].parent)
    }

    fn child(&mut self, parent: usize, name: &str) -> usize {
        let known = self.places[parent].children.iter().copied().find(|child| self.places[*child].name == name);
        known.unwrap_or_else(|| {
            let at = self.places.len();
            let layer = self.places[parent].layer + 1;
            self.places.push(Place { layer, name: name.to_owned(), parent: Some(parent), children: Vec::new() });
            self.places[parent].children.push(at);
            at
        })
    }
}

/// The layer above a layer. One that names none is right below the cluster; the cluster itself may be declared too, and has
/// nothing above it.
fn parent(layer: &NetworkTopologySpec) -> Option<&str> {
    match layer.parent_topology_layer.as_str() {
        _ if layer.topology_layer == CLUSTER_LAYER => None,
        "" => Some(CLUSTER_LAYER),
        parent => Some(parent),
    }
}

/// The layers from the cluster down to the node.
fn chain(spec: &ClusterNetworkTopologySpec) -> Option<Vec<String>> {
    let mut layers = vec![CLUSTER_LAYER.to_owned()];
    while let Some(layer) = layers.last().filter(|layer| *layer != NODE_LAYER) {
        let below = spec.network_topology_spec.iter().find(|below| parent(below) == Some(layer.as_str()))?;
        // A layer below itself would have no end.
        if layers.contains(&below.topology_layer) {
            return None;
        }
        layers.push(below.topology_layer.clone());
    }
    Some(layers)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in super::super) fn spec() -> ClusterNetworkTopologySpec {
        serde_json::from_value(json!({"networkTopologySpec": [
            {"labelKey": ["t/spine"], "parentTopologyLayer": "ClusterTopologyLayer", "topologyLayer": "SpineLayer"},
            {"labelKey": ["t/rack", "t/block"], "parentTopologyLayer": "SpineLayer", "topologyLayer": "BlockLayer"},
            {"parentTopologyLayer": "BlockLayer", "topologyLayer": "NodeTopologyLayer"},
        ]}))
        .unwrap()
    }

    /// A tree of nodes `(name, block, spine)`.
    pub(in super::super) fn tree(nodes: &[(&str, &str, &str)]) -> Tree {
        let labels: Vec<(&str, Labels)> = nodes
            .iter()
            .map(|(name, block, spine)| {
                let all = [("t/block", *block), ("t/spine", *spine)].into_iter();
                (*name, all.filter(|(_, value)| !value.is_empty()).collect())
            })
            .collect();
        Tree::new(&spec(), labels.iter().map(|(name, labels)| (*name, labels))).unwrap()
    }

    /// Two blocks of two nodes in one spine, and one of three in another.
    pub(in super::super) const SEVEN: [(&str, &str, &str); 7] = [
        ("n1", "b1", "s1"),
        ("n2", "b1", "s1"),
        ("n3", "b2", "s1"),
        ("n4", "b2", "s1"),
        ("n5", "b3", "s2"),
        ("n6", "b3", "s2"),
        ("n7", "b3", "s2"),
    ];

    #[test]
    fn the_status_lists_the_places_above_the_nodes() {
        let details = tree(&SEVEN).details();
        let shown = |detail: &NetworkTopologyDetail| {
            let NetworkTopologyDetail { topology_info, child_topology_names, node_num, .. } = detail;
            format!("{}:{} {}", topology_info.topology_name, node_num, child_topology_names.join(" "))
        };
        let all: Vec<String> = details.iter().map(shown).collect();
        assert_eq!(all, [":7 s1 s2", "s1:4 b1 b2", "b1:2 ", "b2:2 ", "s2:3 b3", "b3:3 "]);
        assert_eq!(details[0].parent_topology_info, None);
        assert_eq!(details[2].parent_topology_info.as_ref().unwrap().topology_name, "s1");
        assert_eq!(details[2].child_topology_layer, "NodeTopologyLayer");
    }

    #[test]
    fn a_place_without_others_below_it_names_no_layer_below_it() {
        let details = Tree::new(&spec(), []).unwrap().details();
        assert_eq!((details.len(), &*details[0].child_topology_layer), (1, ""));
    }

    #[test]
    fn blocks_of_one_name_in_two_spines_are_two_places() {
        let details = tree(&[("n1", "b1", "s1"), ("n2", "b1", "s2")]).details();
        let shown = |detail: &NetworkTopologyDetail| {
            let parent = detail.parent_topology_info.as_ref().map(|parent| parent.topology_name.clone());
            format!("{}/{}:{}", parent.unwrap_or_default(), detail.topology_info.topology_name, detail.node_num)
        };
        let all: Vec<String> = details.iter().map(shown).collect();
        assert_eq!(all, ["/:2", "/s1:1", "s1/b1:1", "/s2:1", "s2/b1:1"]);
    }

    #[test]
    fn a_node_without_a_block_has_one_of_its_own_and_one_without_a_spine_is_left_out() {
        let details = tree(&[("n1", "b1", "s1"), ("n2", "", "s1"), ("n3", "b1", "")]).details();
        let names: Vec<&str> = details.iter().map(|detail| &*detail.topology_info.topology_name).collect();
        assert_eq!((names, details[0].node_num), (vec!["", "s1", "b1", "n2"], 2));
    }

    #[test]
    fn a_layer_without_a_parent_is_right_below_the_cluster_which_may_be_declared_too() {
        let layers = ["ClusterTopologyLayer", "SpineLayer", "BlockLayer", "NodeTopologyLayer"];
        let mut manual = spec();
        manual.network_topology_spec[0].parent_topology_layer = String::new();
        assert_eq!(Tree::new(&manual, []).unwrap().layers, layers);
        let labels: Labels = [("t/block", "b"), ("t/spine", "s")].into_iter().collect();
        let details = Tree::new(&manual, [("n", &labels)]).unwrap().details();
        let NetworkTopologyDetail { topology_info, child_topology_layer, .. } = &details[0];
        assert_eq!((&*topology_info.topology_layer, &**child_topology_layer), ("ClusterTopologyLayer", "SpineLayer"));
        let cluster =
            NetworkTopologySpec { topology_layer: CLUSTER_LAYER.to_owned(), ..NetworkTopologySpec::default() };
        for spec in [&mut manual, &mut spec()] {
            spec.network_topology_spec.insert(0, cluster.clone());
            assert_eq!(Tree::new(spec, []).unwrap().layers, layers);
        }
    }

    #[test]
    fn layers_that_are_no_chain_make_no_tree() {
        for broken in ["NodeTopologyLayer", "BlockLayer"] {
            let mut spec = spec();
            spec.network_topology_spec[1].parent_topology_layer = broken.to_owned();
            assert_eq!(Tree::new(&spec, []), None);
        }
    }

    #[test]
    fn nodes_near_the_pods_come_first_and_then_those_with_few_rivals() {
        let ranks = |existing: &str| {
            let candidates = ["n1", "n2", "n3", "n5", "n6", "n7", "elsewhere"];
            tree(&SEVEN).ranks(&candidates, |node| usize::from(node == existing))
        };
        // On the node itself, in its block, in its spine.
        assert_eq!(ranks("n2"), [1, 0, 2, 3, 4, 5, 6]);
        // The pod is on a node that is no candidate; of the others the lonely one comes first.
        assert_eq!(ranks("n4"), [1, 2, 0, 3, 4, 5, 6]);
    }
}
