//! The quotas as trees, with what their pods request and use (`spec/scheduler.md` 3D.2).

mod audit;
mod hang;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_api::quota::{DEFAULT_QUOTA, ROOT_QUOTA, SYSTEM_QUOTA};
use koord_quota::Quota;
use koord_resource::{Quantity, ResourceList};

use super::{
    Claim, Kind, Settings, Sums,
    division::{Claimant, Division},
    sums::masked,
};

/// A quota in its tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// What was read of the object.
    pub quota: Arc<Quota>,
    /// What its own pods and its children amount to; of a child counts what it requests within its `max`.
    pub sums: Sums,
    /// What it requests: at least its `min` where it does not lend.
    pub request: ResourceList,
    /// What it requests of its parent: of each resource that its `max` names at most that.
    limited: ResourceList,
    /// What its own pods use, and what its children are guaranteed.
    pub allocated: ResourceList,
    /// What it is guaranteed for that, at least its `min`.
    pub guaranteed: ResourceList,
    /// Whether pods of its own have counted since the tree was built.
    has_pods: bool,
    above: Above,
    children: Vec<Arc<str>>,
    division: Division,
}

/// Where a quota hangs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Above {
    /// At the root of a tree.
    Root(Arc<str>),
    /// Below another quota.
    Quota(Arc<str>),
    /// Nowhere: its parent is unknown, in another tree, or a descendant.
    Nothing,
}

/// The root of a tree.
#[derive(Clone, Debug, Default)]
struct Root {
    sums: Sums,
    /// What its children are guaranteed.
    allocated: ResourceList,
    /// What there is to be divided.
    total: ResourceList,
    /// Resources that some quota of the tree bounds, but the system and the default quota.
    resources: BTreeSet<String>,
    children: Vec<Arc<str>>,
    division: Division,
}

/// All trees. The default tree has an empty id.
#[derive(Clone, Debug)]
pub struct Forest {
    settings: Arc<Settings>,
    nodes: BTreeMap<Arc<str>, Node>,
    roots: BTreeMap<Arc<str>, Root>,
    /// By namespace, the quota that names it in an annotation.
    bound: BTreeMap<String, Arc<str>>,
    /// The quotas that say what their tree has, by name.
    tops: Vec<Arc<Quota>>,
}

impl Node {
    fn claimant(&self, has_guarantees: bool) -> Claimant<'_> {
        let guaranteed = has_guarantees.then_some(&self.guaranteed);
        Claimant { quota: &self.quota, request: &self.limited, guaranteed }
    }

    fn renew_request(&mut self) {
        let of_pods = &self.sums.request;
        self.request = if self.quota.lends { of_pods.clone() } else { of_pods.max(&self.quota.min) };
        let max = &self.quota.max;
        let limited =
            self.request.iter().map(|(name, amount)| (name, max.get(name).map_or(amount, |max| amount.min(max))));
        self.limited = limited.map(|(name, amount)| (name, amount.clone())).collect();
    }
}

impl Forest {
    /// The quota of pods with this claim; none where they belong to none.
    pub fn quota_of(&self, claim: &Claim) -> Option<&Arc<str>> {
        let known = |name: &str| self.nodes.get_key_value(name).map(|(name, _)| name);
        let default = || known(DEFAULT_QUOTA).filter(|_| self.settings.has_default);
        if !claim.label.is_empty() {
            return known(&claim.label).or_else(default);
        }
        let namespaced = || {
            let (own, node) = self.nodes.get_key_value(&claim.namespace)?;
            (node.quota.namespace == *claim.namespace).then_some(own)
        };
        let by_namespace = || namespaced().or_else(|| self.bound.get(&*claim.namespace));
        by_namespace().filter(|_| self.settings.has_default).or_else(default)
    }

    /// A quota.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.get(name)
    }

    /// The quotas that hang where this one does, without itself.
    pub fn siblings<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Arc<str>, &'a Node)> {
        let own = self.nodes.get(name);
        self.nodes().filter(move |(other, node)| ***other != *name && own.is_some_and(|own| own.above == node.above))
    }

    /// The quotas that hang below this one; below the root those of the default tree.
    pub fn children<'a>(&'a self, name: &str) -> impl Iterator<Item = (&'a Arc<str>, &'a Node)> {
        let of_root = self.roots.get("").filter(|_| name == ROOT_QUOTA).map(|root| &root.children);
        let children = self.nodes.get(name).map(|node| &node.children).or(of_root);
        children.into_iter().flatten().filter_map(|child| self.nodes.get_key_value(child))
    }

    /// All quotas but the root, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&Arc<str>, &Node)> {
        self.nodes.iter()
    }

    /// What all pods of the default tree amount to; of a quota counts what it requests within its `max`.
    pub fn root(&self) -> Option<&Sums> {
        self.roots.get("").map(|root| &root.sums)
    }

    /// What the quotas of the default tree are guaranteed.
    pub fn guaranteed_to_all(&self) -> Option<&ResourceList> {
        self.roots.get("").map(|root| &root.allocated)
    }

    /// The quota and those above it, without the root.
    pub fn upwards<'a>(&'a self, name: &str) -> impl Iterator<Item = (&'a Arc<str>, &'a Node)> {
        std::iter::successors(self.nodes.get_key_value(name), |(_, node)| match &node.above {
            Above::Quota(parent) => self.nodes.get_key_value(parent),
            Above::Root(_) | Above::Nothing => None,
        })
    }

    /// What the pods of a quota may use, of the resources that its `max` names. That is its `max` where runtimes are
    /// switched off, for the system and the default quota, and for a quota that no root reaches.
    pub fn limit(&self, name: &str) -> Cow<'_, ResourceList> {
        const NOTHING: &ResourceList = &ResourceList::new();
        let max = self.nodes.get(name).map_or(NOTHING, |node| &node.quota.max);
        if !self.settings.uses_runtime || is_special(name) {
            return Cow::Borrowed(max);
        }
        let path: Vec<(&Arc<str>, &Node)> = self.upwards(name).collect();
        let root = path.last().and_then(|(_, top)| match &top.above {
            Above::Root(tree) => self.roots.get(tree),
            Above::Quota(_) | Above::Nothing => None,
        });
        root.map_or(Cow::Borrowed(max), |root| Cow::Owned(self.runtime(root, &path)))
    }

    /// The same as it is shown: what is divided above the quota and its `max` does not name is shown as 0, once something was requested.
    pub fn shown_limit(&self, name: &str) -> Cow<'_, ResourceList> {
        let limit = self.limit(name);
        let asks = |node: &&Node| self.settings.uses_runtime && !is_special(name) && !node.limited.is_empty();
        let Some(node) = self.nodes.get(name).filter(asks) else { return limit };
        let divided: Vec<&str> = match &node.above {
            Above::Quota(parent) => {
                self.nodes.get(parent).into_iter().flat_map(|parent| parent.quota.max.names()).collect()
            }
            Above::Root(tree) => {
                self.roots.get(tree).into_iter().flat_map(|root| &root.resources).map(|name| &**name).collect()
            }
            Above::Nothing => Vec::new(),
        };
        let missing: Vec<&str> = divided.into_iter().filter(|name| !limit.contains(name)).collect();
        if missing.is_empty() {
            return limit;
        }
        let mut shown = limit.into_owned();
        for name in missing {
            shown.insert(name, Quantity::default());
        }
        Cow::Owned(shown)
    }

    /// Whether somebody asks for what a quota may use: its own pods, or a quota below that takes pods.
    pub fn is_divided_to(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|node| {
            !node.quota.is_parent || node.has_pods || node.children.iter().any(|child| self.is_divided_to(child))
        })
    }

    /// The `min` with which a quota takes part in a division: less than its own where the mins of its siblings exceed what there is and
    /// mins are scaled.
    pub fn scaled_min(&self, name: &str) -> ResourceList {
        let path: Vec<(&Arc<str>, &Node)> = self.upwards(name).collect();
        let Some((_, own)) = path.first() else { return ResourceList::new() };
        let root = path.last().and_then(|(_, top)| match &top.above {
            Above::Root(tree) => self.roots.get(tree),
            Above::Quota(_) | Above::Nothing => None,
        });
        let scaled = root.filter(|_| self.settings.scales_min && !is_special(name)).and_then(|root| {
            // What is divided is known after that.
            self.runtime(root, &path);
            match path.get(1) {
                Some((_, parent)) => parent.division.mins_of(name, &self.runtime(root, &path[1..]), &own.quota.min),
                None => root.division.mins_of(name, &root.total, &own.quota.min),
            }
        });
        scaled.unwrap_or_else(|| own.quota.min.clone())
    }

    /// The runtime of the first quota of a path that ends at a child of the root.
    fn runtime(&self, root: &Root, path: &[(&Arc<str>, &Node)]) -> ResourceList {
        let mut total = root.total.clone();
        let mut above = None;
        for (name, node) in path.iter().rev() {
            let division = above.map_or(&root.division, |above: &Node| &above.division);
            total = division.of(name, &total, self.settings.scales_min, || match above {
                None => (root.resources.iter().map(String::as_str).collect(), self.claimants(&root.children)),
                Some(above) => (above.quota.max.names().collect(), self.claimants(&above.children)),
            });
            above = Some(node);
        }
        total
    }

    fn claimants(&self, children: &[Arc<str>]) -> Vec<Claimant<'_>> {
        let nodes = children.iter().filter(|name| !is_special(name)).filter_map(|name| self.nodes.get(name));
        nodes.map(|node| node.claimant(self.settings.guarantees_usage)).collect()
    }

    /// The division of what is above a quota takes it as it is now.
    fn renew_above(&self, name: &str) {
        let Some(node) = self.nodes.get(name) else { return };
        let division = match &node.above {
            Above::Quota(parent) => self.nodes.get(parent).map(|parent| &parent.division),
            Above::Root(tree) => self.roots.get(tree).map(|root| &root.division),
            Above::Nothing => None,
        };
        if let Some(division) = division {
            division.renew(name, &node.claimant(self.settings.guarantees_usage));
        }
    }

    /// Adds to a sum of the quota of a claim, and of those above it.
    pub fn add(&mut self, claim: &Claim, kind: Kind, change: &ResourceList) {
        let Some(name) = self.quota_of(claim).cloned() else { return };
        let Some(node) = self.nodes.get(&name) else { return };
        let mut change = masked(change, &node.quota.max);
        if kind == Kind::Used {
            if is_special(&name) {
                self.take(&change);
            }
            if self.settings.guarantees_usage {
                self.allocate(&name, change.clone());
            }
        }
        if kind == Kind::Request {
            _ = self.nodes.get_mut(&name).map(|node| node.has_pods = true);
        }
        let mut at = name;
        while let Some(node) = self.nodes.get_mut(&at) {
            let (is_changed, above) = (node.add(kind, &mut change), node.above.clone());
            if is_changed {
                self.renew_above(&at);
            }
            match above {
                Above::Quota(parent) => at = parent,
                Above::Root(tree) => {
                    _ = self.roots.get_mut(&tree).map(|root| root.sums.add(kind, &change));
                    return;
                }
                Above::Nothing => return,
            }
        }
    }

    /// Adds to what is allocated in a quota; those above it allocate what it is guaranteed.
    fn allocate(&mut self, name: &str, mut change: ResourceList) {
        let mut at = self.nodes.get_key_value(name).map(|(name, _)| Arc::clone(name));
        while let Some((name, node)) = at.take().and_then(|name| Some((Arc::clone(&name), self.nodes.get_mut(&name)?)))
        {
            node.allocated = node.allocated.plus(&change).minus_down_to_zero(&ResourceList::new());
            let guaranteed = node.allocated.max(&node.quota.min);
            change = guaranteed.minus(&node.guaranteed);
            node.guaranteed = guaranteed;
            match &node.above {
                Above::Quota(parent) => at = Some(Arc::clone(parent)),
                Above::Root(tree) => _ = self.roots.get_mut(tree).map(|root| root.allocated.add(&change)),
                Above::Nothing => {}
            }
            self.renew_above(&name);
        }
    }

    /// What the nodes offer has changed.
    pub fn set_offered(&mut self, offered: &ResourceList) {
        let mut rest = offered.clone();
        self.roots.values_mut().for_each(|root| root.total = ResourceList::new());
        for quota in &self.tops {
            if let Some(root) = self.roots.get_mut(&*quota.tree_id) {
                root.total.add(&quota.total);
            }
            if !quota.ignores_default_tree {
                rest = rest.minus(&masked(&quota.total, offered));
            }
        }
        if let Some(root) = self.roots.get_mut("") {
            root.total = rest;
        }
        for special in [SYSTEM_QUOTA, DEFAULT_QUOTA] {
            if let Some(used) = self.nodes.get(special).map(|node| node.sums.used.clone()) {
                self.take(&used);
            }
        }
    }

    /// Takes what pods of the system and the default quota use from what the default tree divides.
    fn take(&mut self, used: &ResourceList) {
        if let Some(root) = self.roots.get_mut("") {
            let used = masked(used, &root.total);
            root.total.subtract(&used);
        }
    }
}

impl Node {
    /// Adds to a sum; the change becomes that for the parent. Says whether the quota requests something else of it.
    fn add(&mut self, kind: Kind, change: &mut ResourceList) -> bool {
        if kind != Kind::Request {
            self.sums.add(kind, change);
            return false;
        }
        let before = std::mem::take(&mut self.limited);
        self.sums.add(kind, change);
        self.renew_request();
        *change = self.limited.minus(&before);
        self.limited != before
    }
}

/// Whether the quota gets its `max` before anything is divided.
pub(super) fn is_special(name: &str) -> bool {
    matches!(name, SYSTEM_QUOTA | DEFAULT_QUOTA | ROOT_QUOTA)
}
