//! Trees, compared with trees that were built anew.

use std::{collections::BTreeMap, sync::Arc};

use koord_resource::ResourceList;
use koord_types::quota::ROOT_QUOTA;
use serde_json::json;

use super::{Above, Forest, Node, Root};

impl Forest {
    /// The quotas whose sums or runtimes differ from those of other trees, with how they differ.
    pub fn differences(&self, actual: &Self) -> BTreeMap<Arc<str>, String> {
        let added = actual.nodes().filter(|(name, _)| self.node(name).is_none());
        let nodes = self.nodes().chain(added).filter_map(|(name, _)| {
            let [cached, node] = [self, actual].map(|forest| forest.node(name).map(|node| (forest, node)));
            let is_same = match (cached, node) {
                (Some(cached), Some(node)) => {
                    cached.1.means(node.1) && hangs(cached) == hangs(node) && self.limits_as(actual, name)
                }
                _ => false,
            };
            let words = |node: Option<(&Self, &Node)>| {
                node.map_or("nothing".to_owned(), |(forest, node)| node.words(forest, name))
            };
            (!is_same).then(|| (Arc::clone(name), format!("{} instead of {}", words(cached), words(node))))
        });
        let nothing = Root::default();
        let known = self.roots.iter().map(|root| &root.tree);
        let added = actual.roots.iter().map(|root| &root.tree).filter(|tree| self.root_of(tree).is_none());
        let roots = known.chain(added).filter_map(|tree| {
            let [(cached, below), (root, actual)] = [self, actual].map(|forest| {
                forest.root_of(tree).map_or((&nothing, Vec::new()), |root| (root, forest.names(&root.children)))
            });
            let details = || format!("the root of tree {tree:?}: {} instead of {}", cached.words(), root.words());
            (!cached.means(root) || below != actual).then(|| (Arc::from(ROOT_QUOTA), details()))
        });
        nodes.chain(roots).collect()
    }

    fn root_of(&self, tree: &str) -> Option<&Root> {
        self.roots.iter().find(|root| *root.tree == *tree)
    }

    fn names(&self, numbers: &[usize]) -> Vec<&str> {
        numbers.iter().map(|number| &*self.nodes[*number].name).collect()
    }

    fn limits_as(&self, other: &Self, name: &str) -> bool {
        is_same(&self.limit(name), &other.limit(name))
    }

    /// As if a quota and those above it used more.
    #[cfg(test)]
    pub(in crate::elastic_quota) fn spoil(&mut self, name: &str, more: &ResourceList) {
        let number = self.number(name).unwrap();
        self.nodes[number].sums.request.add(more);
    }
}

impl Node {
    fn means(&self, other: &Self) -> bool {
        let amounts = |node: &Self| [node.request.clone(), node.allocated.clone(), node.guaranteed.clone()];
        self.quota == other.quota
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
        let same_amounts = is_same(&self.total, &other.total) && is_same(&self.allocated, &other.allocated);
        self.resources == other.resources && self.sums.means(&other.sums) && same_amounts
    }

    fn words(&self) -> String {
        format!("{} of {}", self.sums, json!(self.total))
    }
}

/// The tree or the quota that a quota hangs at, and the quotas below it.
fn hangs<'f>((forest, node): (&'f Forest, &'f Node)) -> (Option<&'f str>, Option<&'f str>, Vec<&'f str>) {
    let (tree, parent) = match node.above {
        Above::Root(root) => (Some(&*forest.roots[root].tree), None),
        Above::Quota(parent) => (None, Some(&*forest.nodes[parent].name)),
        Above::Nothing => (None, None),
    };
    (tree, parent, forest.names(&node.children))
}

/// Whether two lists mean the same: what is not listed is 0.
fn is_same(one: &ResourceList, another: &ResourceList) -> bool {
    one.minus(another).is_zero()
}
