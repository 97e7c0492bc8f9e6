//! Above and below which shares a node is overutilized and underutilized.

use std::collections::{BTreeMap, BTreeSet};

use koord_scheduling::{ResourceId, ResourceNames};

/// Percentages by resource.
type Percents = BTreeMap<String, f64>;

/// The resources that a pool goes by, with what its arguments say of each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Thresholds {
    /// By name.
    resources: Vec<Resource>,
    /// Whether percentages are distances from the mean.
    are_deviations: bool,
    /// Whether any threshold of what production pods use is set.
    pub(super) has_prod: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Resource {
    name: String,
    node: Option<Pair>,
    prod: Option<Pair>,
    weight: i64,
}

/// What the arguments say of one resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    low: f64,
    /// `None` where only a low threshold is set.
    high: Option<f64>,
}

/// The thresholds of a resource in one pass.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bounds<'p> {
    pub(super) name: &'p str,
    /// `None` where no node, pod or report of the cluster names the resource.
    pub(super) id: Option<ResourceId>,
    pub(super) node: Percent,
    pub(super) prod: Percent,
    pub(super) weight: i64,
}

/// In force for all nodes of a pool, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Percent {
    pub(super) low: f64,
    pub(super) high: f64,
    /// Whether the arguments set it. Where not, up to all of the resource may be used.
    pub(super) is_set: bool,
}

/// The thresholds of the arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'a> {
    pub(super) low: &'a Percents,
    pub(super) high: &'a Percents,
    pub(super) prod_low: &'a Percents,
    pub(super) prod_high: &'a Percents,
    pub(super) are_deviations: bool,
    pub(super) weights: &'a BTreeMap<String, i64>,
}

impl Thresholds {
    /// QUIRK: memory always counts, and a high threshold without a low one is dropped: up to all of the resource may be used.
    pub(super) fn new(given: &Given<'_>) -> Self {
        let named = [given.low, given.high, given.prod_low, given.prod_high].into_iter().flat_map(BTreeMap::keys);
        let names: BTreeSet<&str> = named.map(String::as_str).chain(["memory"]).collect();
        let pair = |low: &Percents, high: &Percents, name: &str| {
            Some(Pair { low: *low.get(name)?, high: high.get(name).copied() })
        };
        let resource = |name: &str| Resource {
            name: name.to_owned(),
            node: pair(given.low, given.high, name),
            prod: pair(given.prod_low, given.prod_high, name),
            weight: weight(given, name),
        };
        let resources: Vec<Resource> = names.into_iter().map(resource).collect();
        let has_prod = resources.iter().any(|resource| resource.prod.is_some());
        Self { resources, are_deviations: given.are_deviations, has_prod }
    }

    /// The thresholds in force, given the mean use of each resource in percent: by nodes, and by production pods.
    pub(super) fn in_force<'p>(
        &'p self,
        names: &ResourceNames,
        mean: impl Fn(ResourceId) -> (f64, f64),
    ) -> Vec<Bounds<'p>> {
        let bounds = |resource: &'p Resource| {
            let id = names.get(&resource.name);
            let (of_nodes, of_prod) = id.filter(|_| self.are_deviations).map_or((0.0, 0.0), &mean);
            let percent = |pair, mean| if self.are_deviations { around(pair, mean) } else { absolute(pair) };
            Bounds {
                name: &resource.name,
                id,
                node: percent(resource.node, of_nodes),
                prod: percent(resource.prod, of_prod),
                weight: resource.weight,
            }
        };
        self.resources.iter().map(bounds).collect()
    }
}

/// Weights are completed: 1 for cpu, memory and all that have a threshold.
fn weight(given: &Given<'_>, name: &str) -> i64 {
    let is_completed =
        matches!(name, "cpu" | "memory") || given.low.contains_key(name) || given.high.contains_key(name);
    match given.weights.get(name) {
        Some(weight) if *weight > 0 || !is_completed => (*weight).max(0),
        _ => i64::from(is_completed),
    }
}

const ALL: Percent = Percent { low: 100.0, high: 100.0, is_set: false };

fn absolute(pair: Option<Pair>) -> Percent {
    let of = |Pair { low, high }: Pair| Percent { low, high: high.unwrap_or(100.0), is_set: true };
    pair.map_or(ALL, of)
}

/// QUIRK: a deviation of 0 switches the resource off.
fn around(pair: Option<Pair>, mean: f64) -> Percent {
    let of = |Pair { low, high }: Pair| Percent {
        low: (mean - low).clamp(0.0, 100.0),
        high: high.map_or(100.0, |high| (mean + high).clamp(0.0, 100.0)),
        is_set: true,
    };
    pair.filter(|pair| pair.low > 0.0).map_or(ALL, of)
}

/// A share of what a node has.
pub(super) fn share(percent: f64, capacity: i64) -> i64 {
    (percent * 0.01 * capacity as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percents(pairs: &[(&str, f64)]) -> Percents {
        pairs.iter().map(|(name, percent)| ((*name).to_owned(), *percent)).collect()
    }

    /// The thresholds of nodes in force, low and high, by resource.
    fn in_force(low: &[(&str, f64)], high: &[(&str, f64)], mean: Option<f64>) -> Vec<(String, f64, f64)> {
        let (low, high, none, weights) = (percents(low), percents(high), Percents::new(), BTreeMap::new());
        let are_deviations = mean.is_some();
        let given =
            Given { low: &low, high: &high, prod_low: &none, prod_high: &none, are_deviations, weights: &weights };
        let thresholds = Thresholds::new(&given);
        assert!(!thresholds.has_prod);
        let bounds = thresholds.in_force(&ResourceNames::default(), |_| (mean.unwrap_or(0.0), 0.0));
        bounds.into_iter().map(|bounds| (bounds.name.to_owned(), bounds.node.low, bounds.node.high)).collect()
    }

    #[test]
    fn what_is_not_set_may_be_used_up() {
        let of = |rows: &[(&str, f64, f64)]| -> Vec<(String, f64, f64)> {
            rows.iter().map(|(name, low, high)| ((*name).to_owned(), *low, *high)).collect()
        };
        let memory = ("memory", 100.0, 100.0);
        assert_eq!(in_force(&[], &[], None), of(&[memory]));
        assert_eq!(in_force(&[("cpu", 30.0)], &[("cpu", 50.0)], None), of(&[("cpu", 30.0, 50.0), memory]));
        assert_eq!(
            in_force(&[], &[("cpu", 50.0)], None),
            of(&[("cpu", 100.0, 100.0), memory]),
            "high alone is dropped"
        );
        assert_eq!(in_force(&[("cpu", 30.0)], &[], None), of(&[("cpu", 30.0, 100.0), memory]), "low alone");
        assert_eq!(in_force(&[("cpu", 10.0)], &[("cpu", 20.0)], Some(45.0)), of(&[("cpu", 35.0, 65.0), memory]));
        assert_eq!(in_force(&[("cpu", 10.0)], &[("cpu", 20.0)], Some(95.0)), of(&[("cpu", 85.0, 100.0), memory]));
        assert_eq!(in_force(&[("cpu", 0.0)], &[("cpu", 20.0)], Some(45.0)), of(&[("cpu", 100.0, 100.0), memory]));
        assert_eq!(in_force(&[("cpu", 10.0)], &[], Some(45.0)), of(&[("cpu", 35.0, 100.0), memory]));
    }

    #[test]
    fn shares_are_cut_off() {
        for (percent, capacity, expected) in [(50.0, 9, 4), (50.0, 10_000, 5000), (100.0, 7, 7), (29.0, 100, 28)] {
            assert_eq!(share(percent, capacity), expected, "{percent} % of {capacity}");
        }
    }

    #[test]
    fn weights_are_completed_for_cpu_memory_and_thresholds() {
        let (low, none) = (percents(&[("gpu", 10.0)]), Percents::new());
        let of = |weights: &[(&str, i64)]| {
            let weights: BTreeMap<String, i64> = weights.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
            let prod = percents(&[("disk", 10.0)]);
            let given = Given {
                low: &low,
                high: &none,
                prod_low: &prod,
                prod_high: &none,
                are_deviations: false,
                weights: &weights,
            };
            let resources = Thresholds::new(&given).resources;
            resources.into_iter().map(|resource| (resource.name, resource.weight)).collect::<Vec<_>>()
        };
        let row = |disk, gpu, memory| {
            [("disk", disk), ("gpu", gpu), ("memory", memory)].map(|(name, n): (&str, i64)| (name.to_owned(), n))
        };
        assert_eq!(of(&[]), row(0, 1, 1));
        assert_eq!(of(&[("gpu", 3), ("memory", -1), ("disk", 5)]), row(5, 3, 1));
        assert_eq!(of(&[("gpu", 0), ("disk", -5)]), row(0, 1, 1));
    }
}
