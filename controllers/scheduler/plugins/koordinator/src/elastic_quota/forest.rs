//! The quotas as trees, with what their pods request and use (`spec/scheduler.md` 3D.2).

mod audit;
mod hang;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use koord_quota::Quota;
use koord_resource::{Quantity, ResourceList};
use koord_types::quota::{DEFAULT_QUOTA, ROOT_QUOTA, SYSTEM_QUOTA};
use smallvec::SmallVec;

use super::{
    Claim, Kind, QuotaSettings, Sums,
    division::{Claimant, Division},
    sums::masked,
};

/// A quota in its tree.
#[derive(Clone, Debug)]
pub struct Node {
    name: Arc<str>,
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
    /// Which it is of those among whom is divided what is above; none where it takes no part.
    share: Option<usize>,
    /// By number, in the order of their names.
    children: Vec<usize>,
    division: Division,
}

/// Where a quota hangs, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Above {
    /// At the root of a tree.
    Root(usize),
    /// Below another quota.
    Quota(usize),
    /// Nowhere: its parent is unknown, in another tree, or a descendant.
    Nothing,
}

/// The root of a tree.
#[derive(Clone, Debug, Default)]
struct Root {
    tree: Arc<str>,
    sums: Sums,
    /// What its children are guaranteed.
    allocated: ResourceList,
    /// What there is to be divided.
    total: ResourceList,
    /// Resources that some quota of the tree bounds, but the system and the default quota.
    resources: BTreeSet<String>,
    children: Vec<usize>,
    division: Division,
}

/// All trees. The default tree has an empty id. Which quotas there are does not change, so that they are known by their numbers.
#[derive(Clone, Debug)]
pub struct Forest {
    settings: Arc<QuotaSettings>,
    /// In the order of their names.
    nodes: Vec<Node>,
    numbers: HashMap<Arc<str>, usize>,
    /// In the order of their trees' ids: the default tree comes first.
    roots: Vec<Root>,
    /// By namespace, the quota that names it in an annotation.
    bound: BTreeMap<String, usize>,
    /// The quotas that say what their tree has, by name.
    tops: Vec<Arc<Quota>>,
}

/// From a quota upwards.
type Path = SmallVec<[usize; 8]>;

impl Forest {
    /// The quota of pods with this claim; none where they belong to none.
    pub fn quota_of(&self, claim: &Claim) -> Option<&Arc<str>> {
        self.number_of(claim).map(|number| &self.nodes[number].name)
    }

    fn number_of(&self, claim: &Claim) -> Option<usize> {
        let default = || self.number(DEFAULT_QUOTA).filter(|_| self.settings.has_default);
        if !claim.label.is_empty() {
            return self.number(&claim.label).or_else(default);
        }
        let namespaced = || {
            let number = self.number(&claim.namespace)?;
            (self.nodes[number].quota.namespace == *claim.namespace).then_some(number)
        };
        let by_namespace = || namespaced().or_else(|| self.bound.get(&*claim.namespace).copied());
        by_namespace().filter(|_| self.settings.has_default).or_else(default)
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    pub fn node(&self, name: &str) -> Option<&Node> {
        self.number(name).map(|number| &self.nodes[number])
    }

    /// The quotas that hang where this one does, without itself.
    pub fn siblings<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Arc<str>, &'a Node)> {
        let quota = self.node(name);
        self.nodes()
            .filter(move |(other, node)| ***other != *name && quota.is_some_and(|quota| quota.above == node.above))
    }

    /// The quotas that hang below this one; below the root those of the default tree.
    pub fn children<'a>(&'a self, name: &str) -> impl Iterator<Item = (&'a Arc<str>, &'a Node)> {
        let of_root = self.default_tree().filter(|_| name == ROOT_QUOTA).map(|root| &root.children);
        let children = self.node(name).map(|node| &node.children).or(of_root);
        children.into_iter().flatten().map(|child| self.named(*child))
    }

    /// All quotas but the root, by name.
    pub fn nodes(&self) -> impl Iterator<Item = (&Arc<str>, &Node)> {
        self.nodes.iter().map(|node| (&node.name, node))
    }

    fn named(&self, number: usize) -> (&Arc<str>, &Node) {
        let node = &self.nodes[number];
        (&node.name, node)
    }

    /// It is always there, and its id comes before all others.
    fn default_tree(&self) -> Option<&Root> {
        self.roots.first()
    }

    fn default_tree_mut(&mut self) -> Option<&mut Root> {
        self.roots.first_mut()
    }

    /// What all pods of the default tree amount to; of a quota counts what it requests within its `max`.
    pub fn root(&self) -> Option<&Sums> {
        self.default_tree().map(|root| &root.sums)
    }

    /// What the quotas of the default tree are guaranteed.
    pub fn guaranteed_to_all(&self) -> Option<&ResourceList> {
        self.default_tree().map(|root| &root.allocated)
    }

    /// The quota and those above it, without the root.
    pub fn upwards<'a>(&'a self, name: &str) -> impl Iterator<Item = (&'a Arc<str>, &'a Node)> {
        self.numbers_upwards(self.number(name)).map(|number| self.named(number))
    }

    fn numbers_upwards(&self, from: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(from, |number| match self.nodes[*number].above {
            Above::Quota(parent) => Some(parent),
            Above::Root(_) | Above::Nothing => None,
        })
    }

    /// The quota and those above it, with the root that they hang at; none where no root reaches it.
    fn path(&self, from: usize) -> Option<(&Root, Path)> {
        let path: Path = self.numbers_upwards(Some(from)).collect();
        match self.nodes[*path.last()?].above {
            Above::Root(root) => Some((&self.roots[root], path)),
            Above::Quota(_) | Above::Nothing => None,
        }
    }

    /// What the pods of a quota may use, of the resources that its `max` names. That is its `max` where runtimes are
    /// switched off, for the system and the default quota, and for a quota that no root reaches.
    pub fn limit(&self, name: &str) -> Cow<'_, ResourceList> {
        const NOTHING: &ResourceList = &ResourceList::new();
        let Some(number) = self.number(name) else { return Cow::Borrowed(NOTHING) };
        let max = &self.nodes[number].quota.max;
        if !self.settings.uses_runtime || is_special(name) {
            return Cow::Borrowed(max);
        }
        self.path(number).map_or(Cow::Borrowed(max), |(root, path)| self.runtime(root, &path))
    }

    /// The same as it is shown: what is divided above the quota and its `max` does not name is shown as 0, once something was requested.
    pub fn shown_limit(&self, name: &str) -> Cow<'_, ResourceList> {
        let limit = self.limit(name);
        let is_limited = |node: &&Node| self.settings.uses_runtime && !is_special(name) && !node.limited.is_empty();
        let Some(node) = self.node(name).filter(is_limited) else { return limit };
        let divided: Vec<&str> = match node.above {
            Above::Quota(parent) => self.nodes[parent].quota.max.names().collect(),
            Above::Root(root) => self.roots[root].resources.iter().map(String::as_str).collect(),
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

    /// Whether a quota has requests: of its own pods, or of a quota below that takes pods.
    pub fn is_divided_to(&self, name: &str) -> bool {
        self.number(name).is_some_and(|number| self.takes_pods(number))
    }

    fn takes_pods(&self, number: usize) -> bool {
        let node = &self.nodes[number];
        !node.quota.is_parent || node.has_pods || node.children.iter().any(|child| self.takes_pods(*child))
    }

    /// The `min` with which a quota takes part in a division: less than its own where the mins of its siblings exceed what there is and
    /// mins are scaled.
    pub fn scaled_min(&self, name: &str) -> ResourceList {
        let Some(number) = self.number(name) else { return ResourceList::new() };
        let node = &self.nodes[number];
        let place = self.path(number).filter(|_| self.settings.scales_min && !is_special(name));
        let scaled = place.and_then(|(root, path)| {
            // What is divided is known after that.
            self.runtime(root, &path);
            match path.get(1) {
                Some(parent) => {
                    let total = self.runtime(root, &path[1..]);
                    self.nodes[*parent].division.mins_of(node.share?, &total, &node.quota.min)
                }
                None => root.division.mins_of(node.share?, &root.total, &node.quota.min),
            }
        });
        scaled.unwrap_or_else(|| node.quota.min.clone())
    }

    /// The runtime of the first quota of a path that ends at a child of the root.
    fn runtime<'a>(&'a self, root: &'a Root, path: &[usize]) -> Cow<'a, ResourceList> {
        let mut total = Cow::Borrowed(&root.total);
        let mut above: Option<&Node> = None;
        for number in path.iter().rev() {
            let node = &self.nodes[*number];
            let division = above.map_or(&root.division, |above| &above.division);
            let divided = division.of(node.share, &total, self.settings.scales_min, || match above {
                None => (root.resources.iter().map(String::as_str).collect(), self.claimants(&root.children)),
                Some(above) => (above.quota.max.names().collect(), self.claimants(&above.children)),
            });
            total = Cow::Owned(divided);
            above = Some(node);
        }
        total
    }

    fn claimants(&self, children: &[usize]) -> Vec<Claimant<'_>> {
        let nodes = children.iter().map(|child| &self.nodes[*child]).filter(|node| node.share.is_some());
        nodes.map(|node| node.claimant(self.settings.guarantees_usage)).collect()
    }

    /// The division of what is above a quota takes it as it is now.
    fn renew_above(&self, number: usize) {
        let node = &self.nodes[number];
        let division = match node.above {
            Above::Quota(parent) => &self.nodes[parent].division,
            Above::Root(root) => &self.roots[root].division,
            Above::Nothing => return,
        };
        if let Some(share) = node.share {
            division.renew(share, &node.claimant(self.settings.guarantees_usage));
        }
    }

    /// Adds to a sum of the quota of a claim, and of those above it.
    pub fn add(&mut self, claim: &Claim, kind: Kind, change: &ResourceList) {
        let Some(number) = self.number_of(claim) else { return };
        let node = &mut self.nodes[number];
        let mut change = masked(change, &node.quota.max);
        node.has_pods |= kind == Kind::Request;
        if kind == Kind::Used {
            if is_special(&node.name) {
                self.take(&change);
            }
            if self.settings.guarantees_usage {
                self.allocate(number, change.clone());
            }
        }
        let mut at = number;
        loop {
            let node = &mut self.nodes[at];
            node.sums.add(kind, &change);
            let above = node.above;
            if kind == Kind::Request {
                change = node.renew_requests(&change);
                if !change.is_zero() {
                    self.renew_above(at);
                }
            }
            match above {
                Above::Quota(parent) => at = parent,
                Above::Root(root) => return self.roots[root].sums.add(kind, &change),
                Above::Nothing => return,
            }
        }
    }

    /// Adds to what is allocated in a quota; those above it allocate what it is guaranteed.
    fn allocate(&mut self, from: usize, mut change: ResourceList) {
        let mut at = Some(from);
        while let Some(number) = at.take() {
            let node = &mut self.nodes[number];
            node.allocated = node.allocated.plus(&change).minus_down_to_zero(&ResourceList::new());
            let guaranteed = node.allocated.max(&node.quota.min);
            change = guaranteed.minus(&node.guaranteed);
            node.guaranteed = guaranteed;
            match node.above {
                Above::Quota(parent) => at = Some(parent),
                Above::Root(root) => self.roots[root].allocated.add(&change),
                Above::Nothing => {}
            }
            self.renew_above(number);
        }
    }

    /// What the nodes offer has changed.
    pub fn set_offered(&mut self, offered: &ResourceList) {
        let mut rest = offered.clone();
        self.roots.iter_mut().for_each(|root| root.total = ResourceList::new());
        for quota in &self.tops {
            if let Ok(at) = self.roots.binary_search_by(|root| (*root.tree).cmp(quota.tree_id.as_str())) {
                self.roots[at].total.add(&quota.total);
            }
            if !quota.ignores_default_tree {
                rest = rest.minus(&masked(&quota.total, offered));
            }
        }
        if let Some(root) = self.default_tree_mut() {
            root.total = rest;
        }
        for special in [SYSTEM_QUOTA, DEFAULT_QUOTA] {
            if let Some(used) = self.node(special).map(|node| node.sums.used.clone()) {
                self.take(&used);
            }
        }
    }

    /// Takes what pods of the system and the default quota use from what the default tree divides.
    fn take(&mut self, used: &ResourceList) {
        if let Some(root) = self.default_tree_mut() {
            let used = masked(used, &root.total);
            root.total.subtract(&used);
        }
    }
}

impl Node {
    fn claimant(&self, has_guarantees: bool) -> Claimant<'_> {
        let guaranteed = has_guarantees.then_some(&self.guaranteed);
        Claimant { quota: &self.quota, request: &self.limited, guaranteed }
    }

    /// Brings up to date what it requests of the resources of a list; by how much that changes what it requests of its parent.
    fn renew_requests(&mut self, resources: &ResourceList) -> ResourceList {
        let Self { quota, sums, request, limited, .. } = self;
        resources.mapped(|name, _| {
            let of_pods = sums.request.amount(name);
            let min = if quota.lends { None } else { quota.min.get(name) };
            let guaranteed = min.filter(|min| *min > of_pods).unwrap_or(of_pods);
            request.insert(name, guaranteed.clone());
            let within = quota.max.get(name).map_or(guaranteed, |max| guaranteed.min(max)).clone();
            let mut change = within.clone();
            if let Some(before) = limited.insert(name, within) {
                change -= &before;
            }
            change
        })
    }
}

/// Whether the quota gets its `max` before anything is divided.
pub(super) fn is_special(name: &str) -> bool {
    matches!(name, SYSTEM_QUOTA | DEFAULT_QUOTA | ROOT_QUOTA)
}
