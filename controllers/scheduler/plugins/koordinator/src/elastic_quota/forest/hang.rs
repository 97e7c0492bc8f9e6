//! How the trees are built from the quotas.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use koord_quota::Quota;
use koord_resource::ResourceList;
use koord_types::quota::{DEFAULT_QUOTA, ROOT_QUOTA, SYSTEM_QUOTA};

use super::{Above, Forest, Node, Root, is_special};
use crate::elastic_quota::{Claim, Kind, QuotaSettings, Sums, division::Division};

/// The quotas below another of a tree, or below its root, by the number of the tree and the name that they call their parent.
type Below<'q> = BTreeMap<(usize, &'q str), Vec<usize>>;

impl Forest {
    /// The trees of these quotas, with what the pods of each claim amount to and what all nodes offer. Of quotas with the
    /// same name the first counts. The system and the default quota exist without an object too.
    pub fn new<'q, 'p>(
        settings: &Arc<QuotaSettings>,
        quotas: impl IntoIterator<Item = &'q Quota>,
        pods: impl IntoIterator<Item = (&'p Claim, &'p Sums)>,
        offered: &ResourceList,
    ) -> Self {
        let of_user = quotas.into_iter().filter(|quota| quota.name != ROOT_QUOTA).cloned();
        let special = [(DEFAULT_QUOTA, &settings.default_max), (SYSTEM_QUOTA, &settings.system_max)];
        let special = special.map(|(name, max)| {
            let (name, parent) = (name.to_owned(), ROOT_QUOTA.to_owned());
            Quota { name, parent, max: max.clone(), lends: true, ..Quota::default() }
        });
        let (mut nodes, mut bound) = (BTreeMap::<Arc<str>, Node>::new(), BTreeMap::<String, Arc<str>>::new());
        for quota in of_user.chain(special) {
            let name: Arc<str> = quota.name.as_str().into();
            if nodes.contains_key(&name) {
                continue;
            }
            for namespace in &quota.namespaces {
                bound.entry(namespace.clone()).or_insert_with(|| Arc::clone(&name));
            }
            nodes.insert(Arc::clone(&name), Node::new(name, quota, settings));
        }
        let numbers: HashMap<Arc<str>, usize> = nodes.keys().cloned().zip(0..).collect();
        let nodes: Vec<Node> = nodes.into_values().collect();
        let mut roots = BTreeMap::from([("".into(), Root::default())]);
        for node in &nodes {
            let tree = settings.tree(&node.quota);
            let root = roots.entry(Arc::clone(&tree)).or_insert_with(|| Root { tree, ..Root::default() });
            if !is_special(&node.name) {
                root.resources.extend(node.quota.max.names().map(ToOwned::to_owned));
            }
        }
        let tops = nodes.iter().map(|node| &node.quota).filter(|quota| settings.begins_tree(quota)).cloned().collect();
        let bound = bound.into_iter().filter_map(|(namespace, name)| Some((namespace, *numbers.get(&name)?))).collect();
        let (settings, roots) = (Arc::clone(settings), roots.into_values().collect());
        let mut forest = Self { settings, nodes, numbers, roots, bound, tops };
        forest.hang();
        for number in forest.bottom_up() {
            forest.request_min(number);
            forest.allocate(number, ResourceList::new());
        }
        forest.set_offered(offered);
        for (claim, sums) in pods {
            for kind in Kind::ALL {
                forest.add(claim, kind, sums.get(kind));
            }
        }
        forest
    }

    /// Hangs the quotas to their parents, from the roots downwards.
    fn hang(&mut self) {
        let quotas: Vec<Arc<Quota>> = self.nodes.iter().map(|node| Arc::clone(&node.quota)).collect();
        let trees: BTreeMap<Arc<str>, usize> = self.roots.iter().map(|root| Arc::clone(&root.tree)).zip(0..).collect();
        let mut below = Below::new();
        for (number, quota) in quotas.iter().enumerate() {
            if let Some(tree) = trees.get(&self.settings.tree(quota)) {
                below.entry((*tree, quota.parent.as_str())).or_default().push(number);
            }
        }
        let mut hung: Vec<(usize, usize)> = Vec::new();
        for tree in 0..self.roots.len() {
            let children = below.remove(&(tree, ROOT_QUOTA)).unwrap_or_default();
            hung.extend(children.iter().map(|child| (tree, *child)));
            self.place(&children, Above::Root(tree));
            self.roots[tree].children = children;
        }
        // A quota has one parent, so none is met twice.
        while let Some((tree, number)) = hung.pop() {
            let children = below.remove(&(tree, quotas[number].name.as_str())).unwrap_or_default();
            hung.extend(children.iter().map(|child| (tree, *child)));
            self.place(&children, Above::Quota(number));
            self.nodes[number].children = children;
        }
    }

    fn place(&mut self, children: &[usize], above: Above) {
        let mut shares = 0..;
        for child in children {
            let node = &mut self.nodes[*child];
            node.above = above;
            node.share = if is_special(&node.name) { None } else { shares.next() };
        }
    }

    /// All quotas, each before its parent.
    fn bottom_up(&self) -> Vec<usize> {
        let mut order: Vec<usize> = self.roots.iter().flat_map(|root| root.children.iter().copied()).collect();
        let mut next = 0;
        while let Some(number) = order.get(next) {
            order.extend(&self.nodes[*number].children);
            next += 1;
        }
        let hung: BTreeSet<usize> = order.iter().copied().collect();
        let lost: Vec<usize> = (0..self.nodes.len()).filter(|number| !hung.contains(number)).collect();
        order.into_iter().rev().chain(lost).collect()
    }

    /// Sets what a quota requests without pods, and passes it to its parent.
    fn request_min(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        let of_pods = &node.sums.request;
        let known = if node.quota.lends { of_pods.clone() } else { of_pods.max(&node.quota.min) };
        let request = node.renew_requests(&known);
        match node.above {
            Above::Quota(parent) => self.nodes[parent].sums.add(Kind::Request, &request),
            Above::Root(root) => self.roots[root].sums.add(Kind::Request, &request),
            Above::Nothing => {}
        }
    }
}

impl Node {
    fn new(name: Arc<str>, mut quota: Quota, settings: &QuotaSettings) -> Self {
        // What a quota uses beyond its `min` is guaranteed to it, so that nothing is lent.
        quota.lends &= !settings.guarantees_usage;
        Self {
            name,
            quota: Arc::new(quota),
            sums: Sums::default(),
            request: ResourceList::new(),
            limited: ResourceList::new(),
            allocated: ResourceList::new(),
            guaranteed: ResourceList::new(),
            has_pods: false,
            above: Above::Nothing,
            share: None,
            children: Vec::new(),
            division: Division::default(),
        }
    }
}
