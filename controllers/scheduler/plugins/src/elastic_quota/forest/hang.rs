//! How the trees are built from the quotas.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_api::quota::{DEFAULT_QUOTA, ROOT_QUOTA, SYSTEM_QUOTA};
use koord_quota::Quota;
use koord_resource::ResourceList;

use super::{Above, Forest, Node, Root, is_special};
use crate::elastic_quota::{Claim, Kind, Settings, Sums, division::Division};

/// A tree, and the name of a quota in it.
type Place = (Arc<str>, Arc<str>);

impl Forest {
    /// The trees of these quotas, with what the pods of each claim amount to and what all nodes offer. Of quotas with the
    /// same name the first counts. The system and the default quota exist without an object too.
    pub fn new<'q, 'p>(
        settings: &Arc<Settings>,
        quotas: impl IntoIterator<Item = &'q Quota>,
        pods: impl IntoIterator<Item = (&'p Claim, &'p Sums)>,
        offered: &ResourceList,
    ) -> Self {
        let mut forest = Self {
            settings: Arc::clone(settings),
            nodes: BTreeMap::new(),
            roots: BTreeMap::from([("".into(), Root::default())]),
            bound: BTreeMap::new(),
            tops: Vec::new(),
        };
        quotas.into_iter().filter(|quota| quota.name != ROOT_QUOTA).for_each(|quota| forest.insert(quota.clone()));
        for (name, max) in [(DEFAULT_QUOTA, &settings.default_max), (SYSTEM_QUOTA, &settings.system_max)] {
            let (name, parent) = (name.to_owned(), ROOT_QUOTA.to_owned());
            forest.insert(Quota { name, parent, max: max.clone(), lends: true, ..Quota::default() });
        }
        let tops = forest.nodes.values().map(|node| &node.quota).filter(|quota| settings.begins_tree(quota));
        forest.tops = tops.cloned().collect();
        forest.hang();
        for name in forest.bottom_up() {
            forest.request_min(&name);
            forest.allocate(&name, ResourceList::new());
        }
        forest.set_offered(offered);
        for (claim, sums) in pods {
            for kind in Kind::ALL {
                forest.add(claim, kind, sums.get(kind));
            }
        }
        forest
    }

    fn insert(&mut self, mut quota: Quota) {
        // What a quota uses beyond its `min` is guaranteed to it, so that nothing is lent.
        quota.lends &= !self.settings.guarantees_usage;
        let name: Arc<str> = quota.name.as_str().into();
        if self.nodes.contains_key(&name) {
            return;
        }
        for namespace in &quota.namespaces {
            self.bound.entry(namespace.clone()).or_insert_with(|| Arc::clone(&name));
        }
        let root = self.roots.entry(self.settings.tree(&quota)).or_default();
        if !is_special(&name) {
            root.resources.extend(quota.max.names().map(ToOwned::to_owned));
        }
        let node = Node {
            quota: Arc::new(quota),
            sums: Sums::default(),
            request: ResourceList::new(),
            limited: ResourceList::new(),
            allocated: ResourceList::new(),
            guaranteed: ResourceList::new(),
            has_pods: false,
            above: Above::Nothing,
            children: Vec::new(),
            division: Division::default(),
        };
        self.nodes.insert(name, node);
    }

    /// Hangs the quotas to their parents, from the roots downwards.
    fn hang(&mut self) {
        let mut below: BTreeMap<Place, Vec<Arc<str>>> = BTreeMap::new();
        for (name, node) in &self.nodes {
            let place: Place = (self.settings.tree(&node.quota), node.quota.parent.as_str().into());
            below.entry(place).or_default().push(Arc::clone(name));
        }
        let mut hung: Vec<Place> = Vec::new();
        for (tree, root) in &mut self.roots {
            root.children = below.remove(&(Arc::clone(tree), ROOT_QUOTA.into())).unwrap_or_default();
            hung.extend(root.children.iter().map(|child| (Arc::clone(tree), Arc::clone(child))));
        }
        for (tree, child) in &hung {
            _ = self.nodes.get_mut(child).map(|node| node.above = Above::Root(Arc::clone(tree)));
        }
        // A quota has one parent, so none is met twice.
        while let Some((tree, name)) = hung.pop() {
            let children = below.remove(&(Arc::clone(&tree), Arc::clone(&name))).unwrap_or_default();
            for child in &children {
                _ = self.nodes.get_mut(child).map(|node| node.above = Above::Quota(Arc::clone(&name)));
                hung.push((Arc::clone(&tree), Arc::clone(child)));
            }
            _ = self.nodes.get_mut(&name).map(|node| node.children = children);
        }
    }

    /// All quotas, each before its parent.
    fn bottom_up(&self) -> Vec<Arc<str>> {
        let mut order: Vec<Arc<str>> = self.roots.values().flat_map(|root| root.children.iter().cloned()).collect();
        let mut next = 0;
        while let Some(node) = order.get(next).and_then(|name| self.nodes.get(name)) {
            order.extend(node.children.iter().cloned());
            next += 1;
        }
        let hung: BTreeSet<&Arc<str>> = order.iter().collect();
        let lost: Vec<Arc<str>> = self.nodes.keys().filter(|name| !hung.contains(name)).cloned().collect();
        order.into_iter().rev().chain(lost).collect()
    }

    /// Sets what a quota requests without pods, and passes it to its parent.
    fn request_min(&mut self, name: &str) {
        let Some(node) = self.nodes.get_mut(name) else { return };
        node.renew_request();
        let (request, above) = (node.limited.clone(), node.above.clone());
        let sums = match &above {
            Above::Quota(parent) => self.nodes.get_mut(parent).map(|parent| &mut parent.sums),
            Above::Root(tree) => self.roots.get_mut(tree).map(|root| &mut root.sums),
            Above::Nothing => None,
        };
        if let Some(sums) = sums {
            sums.add(Kind::Request, &request);
        }
    }
}
