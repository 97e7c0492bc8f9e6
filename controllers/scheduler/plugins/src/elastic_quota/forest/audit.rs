//! Trees, compared with trees that were built anew.

use std::{collections::BTreeMap, sync::Arc};

use koord_api::quota::ROOT_QUOTA;
use koord_resource::ResourceList;
use serde_json::json;

use super::{Forest, Node, Root};

impl Forest {
    /// The quotas whose sums or runtimes differ from those of other trees, with how they differ.
    pub fn differences(&self, actual: &Self) -> BTreeMap<Arc<str>, String> {
        let added = actual.nodes.keys().filter(|name| !self.nodes.contains_key(*name));
        let nodes = self.nodes.keys().chain(added).filter_map(|name| {
            let words =
                |forest: &Self| forest.nodes.get(name).map_or("nothing".to_owned(), |node| node.words(forest, name));
            Some((name, self.nodes.get(name).zip(actual.nodes.get(name))))
                .filter(|(_, pair)| pair.is_none_or(|(kept, node)| !kept.means(node) || !self.limits_as(actual, name)))
                .map(|(name, _)| (Arc::clone(name), format!("{} instead of {}", words(self), words(actual))))
        });
        let nothing = Root::default();
        let trees = self.roots.keys().chain(actual.roots.keys().filter(|tree| !self.roots.contains_key(*tree)));
        let roots = trees.filter_map(|tree| {
            let [kept, root] = [self, actual].map(|forest| forest.roots.get(tree).unwrap_or(&nothing));
            let details = || format!("the root of tree {tree:?}: {} instead of {}", kept.words(), root.words());
            (!kept.means(root)).then(|| (Arc::from(ROOT_QUOTA), details()))
        });
        nodes.chain(roots).collect()
    }

    fn limits_as(&self, other: &Self, name: &str) -> bool {
        is_same(&self.limit(name), &other.limit(name))
    }

    /// As if a quota and those above it used more.
    #[cfg(test)]
    pub(in crate::elastic_quota) fn spoil(&mut self, name: &str, more: &ResourceList) {
        self.nodes.get_mut(name).unwrap().sums.request.add(more);
    }
}

impl Node {
    fn means(&self, other: &Self) -> bool {
        let same_place = (&self.quota, &self.above, &self.children) == (&other.quota, &other.above, &other.children);
        let amounts = |node: &Self| [node.request.clone(), node.allocated.clone(), node.guaranteed.clone()];
        same_place
            && self.sums.means(&other.sums)
            && amounts(self).iter().zip(&amounts(other)).all(|(one, another)| is_same(one, another))
    }

    fn words(&self, forest: &Forest, name: &str) -> String {
        let Self { sums, request, allocated, guaranteed, .. } = self;
        let limit = forest.limit(name);
        let amounts = [request, allocated, guaranteed, &*limit].map(|amounts| json!(amounts).to_string());
        format!("pods {sums}, of it {}", amounts.join(" "))
    }
}

impl Root {
    fn means(&self, other: &Self) -> bool {
        let same_place = (&self.resources, &self.children) == (&other.resources, &other.children);
        let same_amounts = is_same(&self.total, &other.total) && is_same(&self.allocated, &other.allocated);
        same_place && self.sums.means(&other.sums) && same_amounts
    }

    fn words(&self) -> String {
        format!("{} of {}", self.sums, json!(self.total))
    }
}

/// Whether two lists mean the same: what is not listed is 0.
fn is_same(one: &ResourceList, another: &ResourceList) -> bool {
    one.minus(another).is_zero()
}
