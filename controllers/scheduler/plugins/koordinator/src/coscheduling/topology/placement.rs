//! A place in the network for all pods of a gang at once (3E.6).

use std::{cmp::Reverse, collections::BTreeMap, fmt};

use koord_scheduler_framework::abridged;
use koord_types::gang::{Gather, NetworkTopologySpec};

use super::tree::{Place, Tree};

/// What a node can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// How many of the pods, one after the other.
    pub slots: usize,
    /// Pods on it that the gang is to be near to.
    pub existing: usize,
    /// How good it is among equals.
    pub score: i64,
}

/// What a gang requires.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// How many pods there are.
    pub pods: usize,
    /// The layers in each of which all pods must be in one place.
    pub gather: Vec<String>,
    /// By layer: each place takes a multiple of so many pods.
    pub multiples: BTreeMap<String, usize>,
}

/// No place takes all pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaceable {
    pods: usize,
    /// The places that were looked at, with what they can take, as texts in their order.
    places: Vec<String>,
    /// The layers that take multiples, whether the tree has them or not, as texts in their order.
    multiples: Vec<String>,
    /// Why the nodes take no more.
    pub why: String,
}

impl Requirements {
    /// What the annotation says, for so many pods.
    pub fn new(spec: &NetworkTopologySpec, pods: usize) -> Self {
        let layers = spec.gather_strategy.iter();
        let gather = layers.clone().filter(|layer| layer.strategy == Some(Gather::MustGather));
        let multiple = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok());
        let multiples = layers.filter_map(|layer| Some((layer.layer.clone(), multiple(layer.pod_count_multiple)?)));
        Self {
            pods,
            gather: gather.map(|layer| layer.layer.clone()).collect(),
            multiples: multiples.filter(|(_, multiple)| *multiple > 1).collect(),
        }
    }
}

impl Tree {
    /// How many pods each node takes, in the order in which they are filled. `offers` are by node; what is not in the tree
    /// takes none.
    pub fn place<'a>(
        &self,
        requirements: &Requirements,
        offers: impl IntoIterator<Item = (&'a str, Offer)>,
    ) -> Result<Vec<(String, usize)>, Unplaceable> {
        let sums = Sums::new(self, requirements, offers);
        let roots = sums.roots(requirements);
        let mut candidates = sums.narrowed(&roots, requirements.pods);
        candidates.sort_by_cached_key(|at| sums.rank(*at, |slots| slots));
        let shares = candidates.into_iter().find_map(|at| {
            let mut shares = Vec::new();
            (sums.distribute(at, requirements.pods, &mut shares) >= requirements.pods).then_some(shares)
        });
        shares.ok_or_else(|| sums.refusal(&roots, requirements))
    }
}

/// What the places of a tree can take together.
struct Sums<'t> {
    tree: &'t Tree,
    /// By layer.
    multiples: Vec<usize>,
    offers: Vec<Offer>,
}

/// The order of places: more pods to be near to, fewer or more slots, a better score, the name. Numbers are those of the
/// place itself and then of all around it.
type Rank<'t> = (Vec<Reverse<usize>>, Vec<i64>, Reverse<i64>, &'t str);

impl<'t> Sums<'t> {
    fn new<'a>(
        tree: &'t Tree,
        requirements: &Requirements,
        offers: impl IntoIterator<Item = (&'a str, Offer)>,
    ) -> Self {
        let depth = tree.places().iter().map(|place| place.layer).max().unwrap_or(0);
        let multiple = |layer: usize| requirements.multiples.get(tree.layer_name(layer)).copied().unwrap_or(1).max(1);
        let mut sums = Self {
            tree,
            multiples: (0..=depth).map(multiple).collect(),
            offers: vec![Offer::default(); tree.places().len()],
        };
        for (node, offer) in offers {
            if let Some(leaf) = tree.leaf(node) {
                sums.offers[leaf] = offer;
            }
        }
        // Children come after their parents.
        for at in (0..tree.places().len()).rev() {
            let place = &tree.places()[at];
            sums.offers[at].slots = sums.floored(place, sums.offers[at].slots);
            if let Some(parent) = place.parent {
                let Offer { slots, existing, score } = sums.offers[at];
                let sum = &mut sums.offers[parent];
                (sum.slots, sum.existing) = (sum.slots.saturating_add(slots), sum.existing.saturating_add(existing));
                sum.score = sum.score.saturating_add(score);
            }
        }
        sums
    }

    /// The places of the deepest layer in which all pods must be together.
    fn roots(&self, requirements: &Requirements) -> Vec<usize> {
        // A layer that does not exist is passed over beside one that does. By itself it has no place.
        let deepest = requirements.gather.iter().filter_map(|layer| self.tree.layer(layer)).max();
        let Some(layer) = deepest.or_else(|| requirements.gather.is_empty().then_some(0)) else {
            return Vec::new();
        };
        let places = self.tree.places().iter().enumerate();
        places.filter(|(_, place)| place.layer == layer).map(|(at, _)| at).collect()
    }

    /// The smallest places that can take all pods.
    fn narrowed(&self, roots: &[usize], pods: usize) -> Vec<usize> {
        let sufficient = |places: Vec<usize>| -> Vec<usize> {
            places.into_iter().filter(|at| self.offers[*at].slots >= pods).collect()
        };
        let mut level = sufficient(roots.to_vec());
        loop {
            let below = level.iter().flat_map(|at| self.tree.places()[*at].children.iter().copied());
            match sufficient(below.collect()) {
                below if below.is_empty() => return level,
                below => level = below,
            }
        }
    }

    fn rank(&self, at: usize, by_slots: impl Fn(i64) -> i64) -> Rank<'t> {
        let upward = || self.tree.ancestors(at).map(|at| &self.offers[at]);
        let slots = |offer: &Offer| by_slots(i64::try_from(offer.slots).unwrap_or(i64::MAX));
        let existing = upward().map(|offer| Reverse(offer.existing)).collect();
        (existing, upward().map(slots).collect(), Reverse(self.offers[at].score), &self.tree.places()[at].name)
    }

    /// Fills a place with so many pods, the roomiest of its parts first. Gives how many it took.
    ///
    /// QUIRK: where one place below a layer takes all pods, the multiple of that layer does not count
    /// (`one_node_that_takes_all_needs_no_multiple`).
    fn distribute(&self, at: usize, pods: usize, shares: &mut Vec<(String, usize)>) -> usize {
        let place = &self.tree.places()[at];
        let pods = self.floored(place, pods.min(self.offers[at].slots));
        if pods == 0 {
            return 0;
        }
        if place.children.is_empty() {
            shares.push((place.name.clone(), pods));
            return pods;
        }
        let mut children = place.children.clone();
        children.sort_by_cached_key(|at| self.rank(*at, |slots| -slots));
        children.into_iter().fold(0, |taken, child| taken + self.distribute(child, pods - taken, shares))
    }

    fn floored(&self, place: &Place, pods: usize) -> usize {
        let multiple = self.multiples.get(place.layer).copied().unwrap_or(1);
        pods - pods % multiple
    }

    fn refusal(&self, roots: &[usize], requirements: &Requirements) -> Unplaceable {
        let shown = |at: &usize| {
            let Place { layer, name, .. } = &self.tree.places()[*at];
            format!("topology topologyNode {}/{name}: {}", self.tree.layer_name(*layer), self.offers[*at].slots)
        };
        let multiples = requirements.multiples.iter().map(|(layer, number)| format!("{layer}={number}"));
        let (mut places, mut multiples): (Vec<_>, Vec<_>) = (roots.iter().map(shown).collect(), multiples.collect());
        places.sort_unstable();
        multiples.sort_unstable();
        Unplaceable { pods: requirements.pods, places, multiples, why: String::new() }
    }
}

impl std::error::Error for Unplaceable {}

impl fmt::Display for Unplaceable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pods, places, why) = (self.pods, abridged(self.places.clone(), ";"), &self.why);
        write!(f, "no candidate topology nodes can accommodate job, desiredOfferSlot: {pods}, {places}, {why}")?;
        if self.multiples.is_empty() {
            return Ok(());
        }
        write!(f, "; podCountMultiple constraints: {}", self.multiples.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use koord_types::gang::NETWORK_TOPOLOGY_SPEC;
    use proptest::prelude::*;

    use super::{
        super::tree::tests::{SEVEN, tree},
        *,
    };

    fn requirements(gather: &str, pods: usize) -> Requirements {
        let spec = NETWORK_TOPOLOGY_SPEC.read(&format!(r#"{{"gatherStrategy":[{gather}]}}"#)).unwrap();
        Requirements::new(&spec, pods)
    }

    fn must(layer: &str) -> String {
        format!(r#"{{"layer":"{layer}","strategy":"MustGather"}}"#)
    }

    /// Where the pods go on the seven nodes, which offer so many slots.
    fn placed(requirements: &Requirements, slots: [usize; 7]) -> Result<String, String> {
        let offers = SEVEN.iter().zip(slots).map(|((name, ..), slots)| (*name, Offer { slots, ..Offer::default() }));
        let shares = tree(&SEVEN).place(requirements, offers);
        let shown = |shares: Vec<(String, usize)>| {
            shares.iter().map(|(name, pods)| format!("{name}:{pods}")).collect::<Vec<_>>().join(" ")
        };
        shares.map(shown).map_err(|refusal| {
            Unplaceable { why: "0/7 nodes are available: 7 Insufficient cpu.".to_owned(), ..refusal }.to_string()
        })
    }

    #[test]
    fn the_tightest_place_that_takes_all_is_chosen() {
        // topo-must-block-tight: a pod is on n1.
        assert_eq!(placed(&requirements(&must("BlockLayer"), 2), [0, 1, 1, 1, 1, 1, 1]).unwrap(), "n3:1 n4:1");
        assert_eq!(placed(&requirements(&must("BlockLayer"), 3), [1; 7]).unwrap(), "n5:1 n6:1 n7:1");
        assert_eq!(placed(&requirements(&must("SpineLayer"), 4), [1; 7]).unwrap(), "n1:1 n2:1 n3:1 n4:1");
        assert_eq!(placed(&requirements(&must("NodeTopologyLayer"), 2), [2; 7]).unwrap(), "n1:2");
    }

    #[test]
    fn without_a_layer_to_gather_in_the_smallest_place_is_chosen_all_the_same() {
        assert_eq!(placed(&requirements("", 2), [1; 7]).unwrap(), "n1:1 n2:1");
        assert_eq!(placed(&requirements("", 6), [1; 7]).unwrap(), "n1:1 n2:1 n3:1 n4:1 n5:1 n6:1");
    }

    #[test]
    fn a_refusal_names_the_places_that_are_too_small() {
        let refused = placed(&requirements(&must("BlockLayer"), 4), [1; 7]).unwrap_err();
        let places = "topology topologyNode BlockLayer/b1: 2;topology topologyNode BlockLayer/b2: 2;topology topologyNode \
                      BlockLayer/b3: 3";
        assert_eq!(
            refused,
            format!(
                "no candidate topology nodes can accommodate job, desiredOfferSlot: 4, {places}, \
                 0/7 nodes are available: 7 Insufficient cpu."
            )
        );
        assert!(placed(&requirements(&must("RackLayer"), 1), [1; 7]).is_err());
    }

    #[test]
    fn a_layer_that_does_not_exist_is_passed_over_beside_one_that_does() {
        for layers in [["RackLayer", "BlockLayer"], ["BlockLayer", "RackLayer"]] {
            let gather = layers.map(must).join(",");
            assert_eq!(placed(&requirements(&gather, 3), [1; 7]).unwrap(), "n5:1 n6:1 n7:1");
            let refused = placed(&requirements(&gather, 4), [1; 7]).unwrap_err();
            assert!(refused.contains("BlockLayer/b3: 3"), "{refused}");
        }
        assert!(placed(&requirements(&["RackLayer", "PodLayer"].map(must).join(","), 1), [1; 7]).is_err());
    }

    #[test]
    fn a_refusal_names_places_and_multiples_in_the_order_of_their_texts() {
        let layers = r#"{"layer":"SpineLayer","podCountMultiple":4},{"layer":"RackLayer","podCountMultiple":3}"#;
        let block = r#"{"layer":"BlockLayer","strategy":"MustGather","podCountMultiple":2}"#;
        let refused = |nodes: &[(&'static str, &'static str, &'static str)]| {
            let offers = nodes.iter().map(|(name, ..)| (*name, Offer { slots: 2, ..Offer::default() }));
            let placed = tree(nodes).place(&requirements(&format!("{layers},{block}"), 4), offers);
            placed.unwrap_err().to_string()
        };
        let places = |names: [&str; 2]| {
            let places = names.map(|name| format!("topology topologyNode BlockLayer/{name}: 2"));
            let multiples = "; podCountMultiple constraints: BlockLayer=2, RackLayer=3, SpineLayer=4";
            format!("desiredOfferSlot: 4, {}, {multiples}", places.join(";"))
        };
        let across = refused(&[("n1", "b3", "s1"), ("n2", "b1", "s2")]);
        assert!(across.ends_with(&places(["b1", "b3"])), "{across}");
        let ten = refused(&[("n1", "b1", "s1"), ("n2", "b10", "s1")]);
        assert!(ten.ends_with(&places(["b10", "b1"])), "{ten}");
    }

    #[test]
    fn places_take_multiples() {
        let gather = |strategy: &str, multiple: i64| {
            format!(r#"{{"layer":"BlockLayer","strategy":"{strategy}","podCountMultiple":{multiple}}}"#)
        };
        let two = gather("PreferGather", 2);
        assert_eq!(placed(&requirements(&two, 4), [1; 7]).unwrap(), "n1:1 n2:1 n3:1 n4:1");
        let refused = placed(&requirements(&gather("MustGather", 2), 3), [1; 7]).unwrap_err();
        assert!(refused.contains("BlockLayer/b3: 2"), "{refused}");
        assert!(refused.ends_with("Insufficient cpu.; podCountMultiple constraints: BlockLayer=2"), "{refused}");
        for ignored in [0, 1, -2] {
            assert_eq!(requirements(&gather("MustGather", ignored), 3).multiples.len(), 0);
        }
        // A multiple of the node and one of the block: from below, nodes take 4 and blocks 8.
        let both = format!(r#"{},{{"layer":"NodeTopologyLayer","podCountMultiple":4}}"#, gather("MustGather", 8));
        assert_eq!(placed(&requirements(&both, 8), [7, 7, 6, 7, 4, 4, 4]).unwrap(), "n5:4 n6:4");
    }

    #[test]
    fn one_node_that_takes_all_needs_no_multiple() {
        let block = requirements(r#"{"layer":"BlockLayer","podCountMultiple":2}"#, 3);
        assert_eq!(placed(&block, [3, 1, 1, 1, 1, 1, 1]).unwrap(), "n1:3");
        assert!(placed(&block, [2, 2, 1, 1, 1, 1, 1]).is_err());
    }

    #[test]
    fn pods_to_be_near_to_come_before_tightness_and_the_score_before_the_name() {
        let offers = |of: fn(&str) -> Offer| SEVEN.iter().map(move |(name, ..)| (*name, of(name)));
        let block = requirements(&must("BlockLayer"), 2);
        let near = offers(|name| Offer { slots: 1, existing: usize::from(name == "n6"), score: 0 });
        let shares = tree(&SEVEN).place(&block, near).unwrap();
        assert_eq!(shares, [("n6".to_owned(), 1), ("n5".to_owned(), 1)]);
        let good = offers(|name| Offer { slots: 1, existing: 0, score: i64::from(name == "n4") });
        assert_eq!(tree(&SEVEN).place(&block, good).unwrap(), [("n4".to_owned(), 1), ("n3".to_owned(), 1)]);
    }

    proptest! {
        #[test]
        fn all_pods_are_placed_within_the_offers_and_the_layer(
            slots in proptest::array::uniform7(0_usize..6),
            pods in 1_usize..12,
            multiple in 1_i64..4,
            gathers in any::<bool>(),
        ) {
            let strategy = if gathers { "MustGather" } else { "PreferGather" };
            let layer = format!(r#"{{"layer":"BlockLayer","strategy":"{strategy}","podCountMultiple":{multiple}}}"#);
            let offers: BTreeMap<&str, Offer> = SEVEN
                .iter()
                .zip(slots)
                .map(|((name, ..), slots)| (*name, Offer { slots, ..Offer::default() }))
                .collect();
            let each = offers.iter().map(|(name, offer)| (*name, *offer));
            let Ok(shares) = tree(&SEVEN).place(&requirements(&layer, pods), each) else {
                let block = |name: &str| -> usize {
                    let own = SEVEN.iter().zip(slots).filter(|((_, block, _), _)| *block == name);
                    let sum: usize = own.map(|(_, slots)| slots).sum();
                    sum - sum % usize::try_from(multiple).unwrap()
                };
                if gathers && multiple == 1 {
                    prop_assert!(["b1", "b2", "b3"].iter().all(|name| block(name) < pods));
                }
                return Ok(());
            };
            prop_assert_eq!(shares.iter().map(|(_, pods)| pods).sum::<usize>(), pods);
            let mut blocks: BTreeMap<&str, usize> = BTreeMap::new();
            for (name, share) in &shares {
                prop_assert!(offers[&**name].slots >= *share);
                let (_, block, _) = SEVEN.iter().find(|(node, ..)| node == name).unwrap();
                *blocks.entry(block).or_default() += share;
            }
            let in_multiples = blocks.values().all(|pods| i64::try_from(*pods).unwrap() % multiple == 0);
            prop_assert!(in_multiples || shares.len() == 1);
            prop_assert!(!gathers || blocks.len() == 1);
        }
    }
}
