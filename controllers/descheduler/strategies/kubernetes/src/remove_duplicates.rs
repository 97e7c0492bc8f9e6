//! Evicts pods of one owner that share a node, where other nodes have fewer of them.

mod identity;
mod share;

use std::sync::Arc;

use koord_config::descheduler::RemoveDuplicatesArgs;
use koord_descheduler_framework::{
    Balance, ByClass, NamespaceSelection, Pass, Plugin, Pod, PodId, ReasonCode, Refusal, Registration, StrategyError,
};

use self::{
    identity::{Identities, Identity},
    share::{Group, Holder, Shares},
};
use crate::{ArgsError, selection};

/// The strategy of this name.
#[derive(Clone, Debug)]
pub struct RemoveDuplicates {
    args: RemoveDuplicatesArgs,
    namespaces: NamespaceSelection,
}

/// A pod that is looked at.
struct Found {
    pod: PodId,
    identity: Identity,
    /// The position of its node among those of the pass.
    at: usize,
}

/// What was met on the node that is being gone through.
#[derive(Default)]
struct LastMet(Vec<usize>);

impl LastMet {
    /// Whether a number was met on this node before.
    fn again(&mut self, number: usize, at: usize) -> bool {
        if self.0.len() <= number {
            self.0.resize(number + 1, usize::MAX);
        }
        std::mem::replace(&mut self.0[number], at) == at
    }
}

impl RemoveDuplicates {
    /// # Errors
    ///
    /// None so far: which arguments are valid is checked when they are read.
    pub fn new(args: RemoveDuplicatesArgs) -> Result<Self, ArgsError> {
        let namespaces = selection::namespaces(args.namespaces.as_ref());
        Ok(Self { args, namespaces })
    }

    /// Whether a pod is looked at.
    fn check(&self, pod: &Pod) -> Result<(), Refusal> {
        if !self.namespaces.selects_pod(pod) {
            return Err(ReasonCode::NamespaceNotSelected.into());
        }
        if pod.owners.is_empty() {
            return Err(ReasonCode::BarePod.into());
        }
        match self.args.exclude_owner_kinds.iter().find(|kind| pod.is_owned_by(kind)) {
            Some(kind) => {
                Err(Refusal::new(ReasonCode::OwnerKindExcluded).with("kind", Arc::<str>::from(kind.as_str())))
            }
            None => Ok(()),
        }
    }

    /// The pods by owner and images, as far as two of them share a node. Only for these the filters are asked.
    fn groups<'a>(&self, pass: &mut Pass<'a>) -> Vec<Group<'a>> {
        let cluster = pass.cluster();
        let mut identities = Identities::default();
        let by_class = ByClass::default();
        let mut found: Vec<Found> = Vec::new();
        let (mut met, mut is_doubled) = (LastMet::default(), Vec::new());
        for (at, node) in pass.nodes().iter().enumerate() {
            for (pod_id, pod) in cluster.active_pods_on(*node) {
                let of_class: Result<Identity, Refusal> =
                    by_class.of(cluster, pod_id, || self.check(pod).map(|()| identities.of(pod)));
                let identity = match of_class {
                    Ok(identity) => identity,
                    Err(refusal) => {
                        pass.leave(pod_id, refusal);
                        continue;
                    }
                };
                if met.again(identity.0, at) {
                    is_doubled.resize(is_doubled.len().max(identity.0 + 1), false);
                    is_doubled[identity.0] = true;
                }
                found.push(Found { pod: pod_id, identity, at });
            }
        }
        let mut groups: Vec<Option<Group<'_>>> = identities.doubled(&is_doubled);
        let mut met = LastMet::default();
        for Found { pod, identity, at } in found {
            let of_pod = identities.groups_of(identity);
            if !of_pod.iter().any(|group| groups.get(*group).is_some_and(Option::is_some)) {
                pass.leave(pod, ReasonCode::NoDuplicate);
                continue;
            }
            if !pass.filter(pod) {
                continue;
            }
            let is_duplicate = met.again(identity.0, at);
            if !is_duplicate {
                pass.leave(pod, ReasonCode::NoDuplicate);
            }
            for group in of_pod {
                if let Some(Some(group)) = groups.get_mut(*group) {
                    group.add(at, is_duplicate.then_some(pod));
                }
            }
        }
        groups.into_iter().flatten().filter(Group::has_duplicates).collect()
    }
}

impl Plugin for RemoveDuplicates {
    fn name(&self) -> &'static str {
        "RemoveDuplicates"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).balance(&self)
    }
}

impl Balance for RemoveDuplicates {
    fn balance(&self, pass: &mut Pass<'_>) -> Result<(), StrategyError> {
        if !pass.is_search_of_use() {
            return Ok(());
        }
        let groups = self.groups(pass);
        let mut counts = vec![0; pass.nodes().len()];
        for group in &groups {
            if !pass.is_search_of_use() {
                break;
            }
            let shares = Shares::new(pass.cluster(), pass.nodes(), group, &mut counts);
            match shares {
                Ok(shares) => evict(pass, group, shares),
                Err(refusal) => {
                    for pod in group.holders.iter().flat_map(|holder| &holder.duplicates) {
                        pass.leave(*pod, refusal.clone());
                    }
                }
            }
            counts.fill(0);
        }
        Ok(())
    }
}

/// Evicts the duplicates of a group that are above the share of their nodes.
fn evict(pass: &mut Pass<'_>, group: &Group<'_>, mut shares: Shares<'_>) {
    let share = shares.share;
    for Holder { at, duplicates, .. } in &group.holders {
        // The first pod of the node is no duplicate, and has the first place of the share.
        let (kept, surplus) = duplicates.split_at(duplicates.len().min(share.saturating_sub(1)));
        for pod in kept {
            pass.leave(*pod, Refusal::new(ReasonCode::WithinShare).with("share", share));
        }
        for pod in surplus {
            let Some(target) = shares.target(pass.cluster(), *pod, *at) else {
                pass.leave(*pod, Refusal::new(ReasonCode::NoNodeBelowShare).with("share", share));
                continue;
            };
            if !pass.pre_eviction_filter(*pod) {
                continue;
            }
            let (kind, name) = (group.kind, group.owner);
            let pods = duplicates.len() + 1;
            let reason = ReasonCode::DuplicatePod
                .reason(format!("the node has {pods} pods of {kind} {name}, and {share} of them is its share"))
                .with("pods", pods)
                .with("share", share)
                .with("nodes", shares.targets);
            if pass.evict(*pod, reason, "") {
                shares.move_to(target, *at);
            }
        }
    }
}

#[cfg(test)]
mod tests;
