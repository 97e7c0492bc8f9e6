//! What must hold between a quota, its parent and its children.

use std::collections::BTreeSet;

use koord_resource::{
    ResourceList,
    admission::{Advice, Denial},
};
use koord_types::quota::ROOT_QUOTA;

use crate::{Quota, Quotas, advice, sum};

/// Why a change is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// It breaks a rule.
    Broken(Denial),
    /// It refers to an object that a cache does not show; it may do so in a moment.
    Missing(Denial),
}

impl Refusal {
    /// It breaks a rule; the advice says how to repair it.
    pub fn broken(message: String, advice: &'static Advice) -> Self {
        Self::Broken(Denial::bad_request(message).advise(advice))
    }

    /// It refers to an object that a cache does not show; the advice is for when it stays so.
    pub fn missing(message: String, advice: &'static Advice) -> Self {
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
pub struct Rules {
    /// A quota may bound resources that its children do not bound (`ElasticQuotaEnableUpdateResourceKey`).
    pub fewer_keys_below: bool,
    /// The ancestors of a quota must be able to guarantee its `min` (`ElasticQuotaGuaranteeUsage`).
    pub guarantee: bool,
    /// The label `allow-force-update` has no effect.
    pub unforced: bool,
}

/// The pods that belong to quotas.
pub trait BoundPods {
    /// Whether a pod's label names this quota.
    fn of_quota(&self, quota: &str) -> bool;

    /// Whether there is a pod in this namespace.
    fn in_namespace(&self, namespace: &str) -> bool;
}

/// A new or changed quota, and the tree that does not contain the change yet.
#[derive(Clone, Copy)]
pub struct Proposal<'a, T> {
    /// The quota after the change.
    pub quota: &'a Quota,
    /// The quota before the change; none for a new one.
    pub old: Option<&'a Quota>,
    /// The quotas that exist.
    pub tree: T,
    /// The pods that exist.
    pub pods: &'a dyn BoundPods,
    /// Which rules are in force.
    pub rules: Rules,
}

type Checked = Result<(), Refusal>;

fn broken(message: String, advice: &'static Advice) -> Checked {
    Err(Refusal::broken(message, advice))
}

impl<'a, T: Quotas<'a>> Proposal<'a, T> {
    /// A namespace belongs to one quota.
    pub fn namespaces_are_free(&self) -> Checked {
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

    /// All rules about its place in the tree, in the order of the original.
    pub fn fits(&self) -> Checked {
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
        self.mins(above, &below)?;
        if self.rules.guarantee && !self.quota.tree_id.is_empty() {
            self.guarantees()?;
        }
        Ok(())
    }

    fn below(&self) -> Vec<&'a Quota> {
        self.tree.below(&self.quota.name)
    }

    /// A quota with children stays a parent; one with pods stays a leaf.
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
            self.pods.of_quota(name) || namespaces.any(|namespace| self.pods.in_namespace(namespace))
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

    /// The parent: one that may have children, and that is not below this one.
    fn parent(&self, parent: &str) -> Result<&'a Quota, Refusal> {
        let name = &self.quota.name;
        // What is changed is known as its own parent, and a leaf is no parent of anything.
        let is_itself = |above: &Quota| above.name == *name && (self.old.is_none() || above.is_parent);
        let Some(above) = self.tree.find(parent).filter(|above| !is_itself(above)) else {
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

    /// A quota and its ancestors; ends also where stored quotas are their own ancestors.
    fn ancestors(&self, first: &'a Quota) -> impl Iterator<Item = &'a Quota> + use<'a, T> {
        let (tree, mut seen) = (self.tree, BTreeSet::from([first.name.as_str()]));
        std::iter::successors(Some(first), move |quota| {
            tree.find(&quota.parent).filter(|above| seen.insert(above.name.as_str()))
        })
    }

    /// Parent and children bound the same resources, and the resources of a `min` are among those of the parent's.
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

    /// The mins of children do not exceed that of their parent.
    fn mins(&self, above: Option<&Quota>, below: &[&Quota]) -> Checked {
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

    /// The other children of a quota.
    fn siblings(&self, above: &Quota) -> impl Iterator<Item = &'a Quota> {
        self.tree.below(&above.name).into_iter().filter(|sibling| sibling.name != self.quota.name)
    }

    /// An ancestor can guarantee the `min`: it has enough, or its own ancestors do.
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

/// Whether there is more of any resource than the limit allows; a resource that the limit does not name is limited to 0.
fn exceeds(amounts: &ResourceList, limit: &ResourceList) -> bool {
    !amounts.exceeding_completely(limit).is_empty()
}
