//! What every quota of a tree may use (`spec/scheduler.md` 3D.2 to 3D.5).

use std::collections::{BTreeMap, BTreeSet};

use koord_resource::ResourceList;
use koord_scheduling::{count, quantity};
use koord_types::quota::{DEFAULT_QUOTA, is_reserved};

use crate::{Child, Quota, Snapshot, redistribute, scaled_min};

/// What is to be divided, and who asks for it.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// The resources of the tree: what its nodes have, without what the system and the default quota use.
    pub total: &'a ResourceList,
    /// What the pods of a quota itself request, by its name; not those of its children.
    pub requests: &'a BTreeMap<&'a str, ResourceList>,
    /// Whether mins shrink while their sum exceeds what the parent may use.
    pub scale_min: bool,
    /// Whether what a quota is guaranteed counts like its `min`.
    pub guarantee: bool,
}

/// What each quota that the root reaches may use, of the resources that its `max` names.
///
/// Requests go upwards, limited by the `max` of every quota they pass; the total goes downwards, divided anew at every
/// quota. A resource that the parent's `max` does not name is not divided. The system and the default quota may use
/// their `max`.
pub fn runtime<'a>(tree: &'a Snapshot, demand: Demand<'_>) -> BTreeMap<&'a str, ResourceList> {
    let quotas = tree.top_down();
    let at: BTreeMap<&str, usize> =
        quotas.iter().enumerate().map(|(index, quota)| (quota.name.as_str(), index)).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); quotas.len() + 1];
    // The root's children stand in the last row.
    let parents: Vec<usize> =
        quotas.iter().map(|quota| at.get(quota.parent.as_str()).copied().unwrap_or(quotas.len())).collect();
    for (index, _) in quotas.iter().enumerate().filter(|(_, quota)| !is_special(quota)) {
        children[parents[index]].push(index);
    }
    let resources: BTreeSet<&str> = quotas.iter().flat_map(|quota| quota.max.names()).collect();
    let mut runtimes: BTreeMap<&str, ResourceList> = quotas
        .iter()
        .map(|quota| (quota.name.as_str(), if is_special(quota) { quota.max.clone() } else { ResourceList::new() }))
        .collect();
    for resource in resources {
        let column = Column { resource, quotas: &quotas, parents: &parents, children: &children, demand };
        for (quota, runtime) in quotas.iter().zip(column.runtime()) {
            let (Some(max), Some(runtime)) = (quota.max.get(resource), runtime) else { continue };
            if let Some(amounts) = runtimes.get_mut(quota.name.as_str()) {
                amounts.insert(resource, quantity(resource, runtime, max.format()));
            }
        }
    }
    runtimes
}

fn is_special(quota: &Quota) -> bool {
    is_reserved(&quota.name) || quota.name == DEFAULT_QUOTA
}

/// One resource of all quotas: no rule connects it with another.
struct Column<'a> {
    resource: &'a str,
    quotas: &'a [&'a Quota],
    parents: &'a [usize],
    children: &'a [Vec<usize>],
    demand: Demand<'a>,
}

impl Column<'_> {
    fn of(&self, amounts: &ResourceList) -> i64 {
        amounts.get(self.resource).map_or(0, |amount| count(self.resource, amount))
    }

    /// By quota; none where it is not divided.
    fn runtime(&self) -> Vec<Option<i64>> {
        let requests = self.limited_requests();
        let mut runtime = vec![None; self.quotas.len()];
        let root = self.quotas.len();
        self.divide(root, self.of(self.demand.total), &requests, &mut runtime);
        for (parent, quota) in self.quotas.iter().enumerate() {
            if let Some(total) = runtime[parent].filter(|_| quota.max.contains(self.resource)) {
                self.divide(parent, total, &requests, &mut runtime);
            }
        }
        runtime
    }

    /// What each quota requests of its parent: what its pods and children request, at least `min` where it does not
    /// lend, at most `max`, and nothing where `max` does not name the resource.
    fn limited_requests(&self) -> Vec<i64> {
        let own = |quota: &Quota| self.demand.requests.get(quota.name.as_str()).map_or(0, |amounts| self.of(amounts));
        let mut requests: Vec<i64> = self.quotas.iter().map(|quota| own(quota).max(0)).collect();
        for index in (0..self.quotas.len()).rev() {
            let quota = self.quotas[index];
            let request = if quota.lends { requests[index] } else { requests[index].max(self.of(&quota.min)) };
            requests[index] = if quota.max.contains(self.resource) { request.min(self.of(&quota.max)) } else { 0 };
            if !is_special(quota)
                && let Some(of_parent) = requests.get(self.parents[index])
            {
                requests[self.parents[index]] = of_parent.saturating_add(requests[index]);
            }
        }
        requests
    }

    fn divide(&self, parent: usize, total: i64, requests: &[i64], runtime: &mut [Option<i64>]) {
        let among = &self.children[parent];
        let mins: i64 = among.iter().fold(0, |sum, index| sum.saturating_add(self.of(&self.quotas[*index].min)));
        let child = |index: &usize| {
            let quota = self.quotas[*index];
            let min = self.of(&quota.min);
            Child {
                name: &quota.name,
                request: requests[*index],
                min: if self.demand.scale_min { scaled_min(min, total, mins, 0) } else { min },
                guaranteed: if self.demand.guarantee { self.of(&quota.guaranteed) } else { 0 },
                weight: self.of(quota.weights()),
                lends: quota.lends,
            }
        };
        let children: Vec<Child<'_>> = among.iter().map(child).collect();
        for (index, amount) in among.iter().zip(redistribute(total, &children)) {
            runtime[*index] = Some(amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use koord_resource::{Quantity, quantity::Format};
    use koord_types::quota::ROOT_QUOTA;

    use super::*;

    fn cpu(cores: i64) -> ResourceList {
        [("cpu", Quantity::new(cores, Format::DecimalSI))].into_iter().collect()
    }

    fn quota(name: &str, parent: &str, min: i64, lends: bool) -> Quota {
        let (name, parent) = (name.to_owned(), parent.to_owned());
        Quota { name, parent, min: cpu(min), max: cpu(1000), lends, ..Quota::default() }
    }

    fn cores(tree: &Snapshot, total: i64, requests: &[(&str, i64)], names: &[&str]) -> Vec<i64> {
        let requests = requests.iter().map(|(name, cores)| (*name, cpu(*cores))).collect();
        let runtime =
            runtime(tree, Demand { total: &cpu(total), requests: &requests, scale_min: false, guarantee: false });
        names.iter().map(|name| runtime[name].amount("cpu").value()).collect()
    }

    #[test]
    fn a_tree_divides_what_its_root_may_use() {
        let all = |tree: &Snapshot| [0, 40, 60].map(|request| cores(tree, 100, &[("c1", request)], &["p", "c1", "c2"]));
        let tree = |parent_lends, c2_lends| -> Snapshot {
            let c1 = quota("c1", "p", 20, c2_lends);
            [quota("p", ROOT_QUOTA, 60, parent_lends), c1, quota("c2", "p", 20, c2_lends)].into_iter().collect()
        };
        assert_eq!(all(&tree(false, false)), [[60, 20, 20], [60, 40, 20], [80, 60, 20]]);
        assert_eq!(all(&tree(true, false)), [[40, 20, 20], [60, 40, 20], [80, 60, 20]]);
        let first_keeps: Snapshot =
            [quota("p", ROOT_QUOTA, 60, true), quota("c1", "p", 20, false), quota("c2", "p", 20, true)]
                .into_iter()
                .collect();
        assert_eq!(all(&first_keeps), [[20, 20, 0], [40, 40, 0], [60, 60, 0]]);
    }

    #[test]
    fn requests_are_limited_by_max_at_every_level() {
        let tree: Snapshot = [
            Quota { max: cpu(50), ..quota("p", ROOT_QUOTA, 0, true) },
            Quota { max: cpu(80), ..quota("c", "p", 0, true) },
            quota("other", ROOT_QUOTA, 0, true),
        ]
        .into_iter()
        .collect();
        assert_eq!(cores(&tree, 100, &[("c", 90), ("other", 5)], &["p", "c", "other"]), [50, 50, 5]);
    }

    #[test]
    fn mins_shrink_where_that_is_asked_for() {
        let tree: Snapshot = [quota("a", ROOT_QUOTA, 50, true), quota("b", ROOT_QUOTA, 50, true)].into_iter().collect();
        let requests = BTreeMap::from([("a", cpu(60)), ("b", cpu(60))]);
        let shares = |scale_min| {
            let runtime = runtime(&tree, Demand { total: &cpu(60), requests: &requests, scale_min, guarantee: false });
            ["a", "b"].map(|name| runtime[name].amount("cpu").value())
        };
        assert_eq!((shares(false), shares(true)), ([50, 50], [30, 30]));
    }

    #[test]
    fn a_resource_that_the_parent_does_not_bound_is_not_divided() {
        let both: ResourceList =
            [("cpu", "9".parse().unwrap()), ("memory", "1Gi".parse().unwrap())].into_iter().collect();
        let parent = quota("p", ROOT_QUOTA, 0, true);
        let child = Quota { max: both.clone(), ..quota("c", "p", 0, true) };
        let system = Quota { max: both.clone(), ..quota(koord_types::quota::SYSTEM_QUOTA, ROOT_QUOTA, 0, true) };
        let tree: Snapshot = [parent, child, system].into_iter().collect();
        let requests = BTreeMap::from([("c", both.clone())]);
        let runtime = runtime(&tree, Demand { total: &both, requests: &requests, scale_min: true, guarantee: true });
        assert_eq!((runtime["c"].amount("cpu").value(), runtime["c"].get("memory")), (9, None));
        assert_eq!(runtime[koord_types::quota::SYSTEM_QUOTA], both);
    }

    #[test]
    fn a_deep_tree_is_divided_without_recursion() {
        let parent = |depth: usize| if depth == 0 { ROOT_QUOTA.to_owned() } else { format!("q{}", depth - 1) };
        let tree: Snapshot = (0..20_000).map(|depth| quota(&format!("q{depth}"), &parent(depth), 0, true)).collect();
        assert_eq!(cores(&tree, 100, &[("q19999", 7)], &["q0", "q19999"]), [7, 7]);
    }
}
