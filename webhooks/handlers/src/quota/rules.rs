//! What must hold between a quota and those above and below it.

use koord_api::quota::ROOT_QUOTA;
use koord_resource::{
    ResourceList,
    admission::{Advice, Denial},
};
use koord_runtime::cache::Cache;

use super::{PlacedPod, Quota, Tree, advice, tree::sum};

/// Why a change is refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// It breaks a rule.
    Broken(Denial),
    /// Something is not there that may be on its way.
    Missing(Denial),
}

impl Refusal {
    /// It breaks a rule, and this mends it.
    pub(crate) fn broken(message: String, advice: &'static Advice) -> Self {
        Self::Broken(Denial::bad_request(message).advise(advice))
    }

    /// Something is not there that may be on its way; if it does not come, this mends it.
    pub(crate) fn missing(message: String, advice: &'static Advice) -> Self {
        Self::Missing(Denial::bad_request(message).advise(advice))
    }
}

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Self {
        Self::Broken(denial)
    }
}

/// Which rules are in force.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// Resources may be added to a quota before those below it have them.
    pub(crate) fewer_keys_below: bool,
    /// What a quota promises must be guaranteed by those above it.
    pub(crate) guarantee: bool,
    /// No quota may break a promise, whatever its label says.
    pub(crate) unforced: bool,
}

/// A quota as it shall be, in a tree where it is not yet so.
pub(crate) struct Proposal<'a> {
    pub(crate) quota: &'a Quota,
    /// How it is now; none for a new one.
    pub(crate) old: Option<&'a Quota>,
    pub(crate) tree: Tree<'a>,
    pub(crate) pods: &'a Cache<PlacedPod>,
    pub(crate) rules: Rules,
}

type Checked = Result<(), Refusal>;

fn broken(message: String, advice: &'static Advice) -> Checked {
    Err(Refusal::broken(message, advice))
}

impl<'a> Proposal<'a> {
    /// Namespaces belong to one quota each.
    pub(crate) fn namespaces_are_free(&self) -> Checked {
        let quota = self.quota;
        for namespace in &quota.namespaces {
            let Some(owner) = self.tree.bound_to(namespace).filter(|owner| *owner != quota.name) else { continue };
            let name = &quota.name;
            let message = match self.old {
                None => {
                    format!(
                        "AddQuota quota {name}'s annotation namespace {namespace} is already bound to quota {owner}"
                    )
                }
                Some(_) => format!(
                    "UpdadteQuota, quota {name} update namespaces, but namespace {namespace} is already bound to quota {owner}"
                ),
            };
            return broken(message, advice::NAMESPACE_TAKEN);
        }
        Ok(())
    }

    /// All rules about its place in the tree.
    pub(crate) fn fits(&self) -> Checked {
        if self.quota.name == ROOT_QUOTA {
            return Ok(());
        }
        let below = self.below();
        self.kind_of_node(&below)?;
        self.tree_id(&below)?;
        let above = match self.quota.parent.as_str() {
            ROOT_QUOTA if !self.quota.is_parent => return Ok(()),
            ROOT_QUOTA => None,
            name => Some(self.parent(name)?),
        };
        self.resources(above, &below)?;
        if (self.quota.forced && !self.rules.unforced) || self.quota.begins_tree {
            return Ok(());
        }
        self.promises(above, &below)?;
        if self.rules.guarantee && !self.quota.tree_id.is_empty() {
            self.guarantees()?;
        }
        Ok(())
    }

    fn below(&self) -> Vec<&'a Quota> {
        self.tree.below(&self.quota.name)
    }

    /// A quota with others below it stays a parent; one with pods stays a leaf.
    fn kind_of_node(&self, below: &[&Quota]) -> Checked {
        let (Some(old), quota) = (self.old, self.quota) else { return Ok(()) };
        let name = &quota.name;
        if old.is_parent && !quota.is_parent && !below.is_empty() {
            return broken(
                format!("quota has children, isParent is forbidden to modify as false, quotaName:{name}"),
                advice::HAS_CHILDREN,
            );
        }
        let has_pods = || {
            let mut namespaces = std::iter::once(name).chain(&old.namespaces);
            self.pods.index().get(name.as_str()).next().is_some()
                || namespaces.any(|namespace| self.pods.in_namespace(namespace).next().is_some())
        };
        if !old.is_parent && quota.is_parent && has_pods() {
            return broken(
                format!("quota has bound pods, isParent is forbidden to modify as true, quotaName: {name}"),
                advice::HAS_PODS,
            );
        }
        Ok(())
    }

    /// A tree has one id from top to bottom, and a quota stays in it.
    fn tree_id(&self, below: &[&Quota]) -> Checked {
        let Quota { name, tree_id, parent, .. } = self.quota;
        if let Some(old) = self.old.filter(|old| old.tree_id != *tree_id) {
            return broken(format!("{name} tree id changed [{}] vs [{tree_id}]", old.tree_id), advice::TREE_CHANGED);
        }
        let above = self.tree.find(parent).filter(|_| parent != ROOT_QUOTA);
        if let Some(other) = above.filter(|above| above.tree_id != *tree_id) {
            let theirs = &other.tree_id;
            return broken(
                format!("{name} tree id is different from parent {parent}, [{tree_id}] vs [{theirs}]"),
                advice::TREE_DIFFERS,
            );
        }
        if let Some(other) = below.iter().find(|child| child.tree_id != *tree_id) {
            let (child, theirs) = (&other.name, &other.tree_id);
            return broken(
                format!("{name} tree id is different from child {child}, [{tree_id}] vs [{theirs}]"),
                advice::TREE_DIFFERS,
            );
        }
        Ok(())
    }

    /// The quota above: one that may have others below it, and that is not below this one.
    fn parent(&self, parent: &str) -> Result<&'a Quota, Refusal> {
        let name = &self.quota.name;
        let Some(above) = self.tree.find(parent).filter(|above| above.name != *name) else {
            let message = format!("{name} has parentName {parent} but not find parentInfo in quotaInfoMap");
            let refuse = if parent == name { Refusal::broken } else { Refusal::missing };
            return Err(refuse(message, advice::NO_PARENT));
        };
        if !above.is_parent {
            let message = format!("{name} has parentName {parent} but the parentQuotaInfo's IsParent is false");
            return Err(Refusal::broken(message, advice::PARENT_IS_LEAF));
        }
        if self.ancestors(above).any(|ancestor| ancestor.name == *name) {
            let message = format!("{name} has parentName {parent}, which is below {name}; move {parent} away first");
            return Err(Refusal::broken(message, advice::PARENT_IS_BELOW));
        }
        Ok(above)
    }

    /// A quota and all above it; ends before the root, and where stored quotas go round in a circle.
    fn ancestors(&self, first: &'a Quota) -> impl Iterator<Item = &'a Quota> {
        let (tree, mut seen) = (self.tree, Vec::new());
        std::iter::successors(Some(first), move |quota| {
            seen.push(quota.name.as_str());
            tree.find(&quota.parent).filter(|above| !seen.contains(&above.name.as_str()))
        })
    }

    /// What is bounded below is bounded above, and what is promised below is promised above.
    fn resources(&self, above: Option<&Quota>, below: &[&Quota]) -> Checked {
        if let Some(above) = above {
            self.bounded(above, self.quota, above, self.quota)?;
            promised(self.quota, above)?;
        }
        for child in below {
            self.bounded(self.quota, child, child, self.quota)?;
            promised(child, self.quota)?;
        }
        Ok(())
    }

    /// `first` and `second` are named in this order where both must bound the same resources.
    fn bounded(&self, above: &Quota, below: &Quota, first: &Quota, second: &Quota) -> Checked {
        let covered = below.max.names().all(|name| above.max.contains(name));
        let relation = if self.rules.fewer_keys_below {
            if covered {
                return Ok(());
            }
            format!("{}'s max keys are not all included in {}'s", below.name, above.name)
        } else {
            if covered && above.max.len() == below.max.len() {
                return Ok(());
            }
            format!("{}'s max keys are not the same with {}'s", first.name, second.name)
        };
        wrong_resources(&relation, advice::MAX_RESOURCES)
    }

    /// No more is promised below than above.
    fn promises(&self, above: Option<&Quota>, below: &[&Quota]) -> Checked {
        if let Some(above) = above {
            let siblings = self.siblings(above);
            let total = sum(siblings, |quota| &quota.min).plus(&self.quota.min);
            if exceeds(&total, &above.min) {
                let parent = &above.name;
                return broken(
                    format!("checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: {parent}"),
                    advice::MIN_ABOVE,
                );
            }
        }
        if exceeds(&sum(below.iter().copied(), |quota| &quota.min), &self.quota.min) {
            let name = &self.quota.name;
            return broken(
                format!("checkMinQuotaSum all children's MinQuota > current MinQuota, current: {name}"),
                advice::MIN_BELOW,
            );
        }
        Ok(())
    }

    /// The others below a quota.
    fn siblings(&self, above: &Quota) -> impl Iterator<Item = &'a Quota> {
        self.tree.below(&above.name).into_iter().filter(|sibling| sibling.name != self.quota.name)
    }

    /// Somebody above guarantees what this quota promises: either has enough, or gets it from further above.
    fn guarantees(&self) -> Checked {
        let quota = self.quota;
        if !exceeds(&quota.min, &quota.guaranteed) {
            return Ok(());
        }
        let mut needed = quota.min.max(&quota.guaranteed);
        let mut last = quota;
        let above = self.tree.find(&quota.parent).filter(|_| quota.parent != ROOT_QUOTA);
        for above in above.into_iter().flat_map(|first| self.ancestors(first)).filter(|above| above.name != ROOT_QUOTA)
        {
            let others = self.tree.below(&above.name).into_iter().filter(|other| other.name != last.name);
            needed = above.min.max(&sum(others, |quota| &quota.guaranteed).plus(&needed));
            if !exceeds(&needed, &above.guaranteed) {
                return Ok(());
            }
            last = above;
        }
        broken(format!("tree root quota {} can't guarantee for min {}", last.name, quota.name), advice::NOT_GUARANTEED)
    }
}

fn promised(below: &Quota, above: &Quota) -> Checked {
    if below.min.names().all(|name| above.min.contains(name)) {
        return Ok(());
    }
    wrong_resources(
        &format!("{}'s min keys are not all included in {}'s", below.name, above.name),
        advice::MIN_RESOURCES,
    )
}

fn wrong_resources(relation: &str, advice: &'static Advice) -> Checked {
    let message = format!(
        "failed to check sub and parent group quotaKey, err: checkSubAndParentGroupQuotaKey failed: {relation}"
    );
    broken(message, advice)
}

/// Whether there is more of any resource than the limit says; what the limit does not name is nothing.
fn exceeds(amounts: &ResourceList, limit: &ResourceList) -> bool {
    !amounts.exceeding_completely(limit).is_empty()
}
