//! What nodes can take of the pods that leave others.

use k8s_openapi::api::core::v1::{Taint, Toleration};
use koord_descheduler_framework::{Pod, ReasonCode, toleration};

/// The nodes that take pods, and what they have left.
///
/// Two rules hold together: like the original, all nodes together have something left of every resource before a pod goes; and, unlike it, one of them has
/// room for the pod itself, so that no pod goes that would overload wherever it went.
#[derive(Debug)]
pub(crate) struct Targets<'a> {
    /// What each has left, by resource.
    left: Vec<Vec<i64>>,
    /// The number of the taints of each.
    taints_of: Vec<usize>,
    /// Lists of taints, each once: most nodes have the same.
    taints: Vec<&'a [Taint]>,
    /// What all of them have left.
    total: Vec<i64>,
    /// Where the search for room begins: pods are spread over the targets, as a scheduler would.
    next: usize,
    /// Usage that found no room, with the taints that were tolerated. Room only shrinks.
    refused: Vec<(Vec<bool>, Vec<i64>)>,
}

impl<'a> Targets<'a> {
    /// Nodes with their taints, and what they have left. Without nodes nothing is left.
    pub(crate) fn new(nodes: impl IntoIterator<Item = (&'a [Taint], Vec<i64>)>) -> Self {
        let mut targets = Self {
            left: Vec::new(),
            taints_of: Vec::new(),
            taints: Vec::new(),
            total: Vec::new(),
            next: 0,
            refused: Vec::new(),
        };
        for (taints, left) in nodes {
            let known = targets.taints.iter().position(|known| *known == taints);
            targets.taints_of.push(known.unwrap_or(targets.taints.len()));
            if known.is_none() {
                targets.taints.push(taints);
            }
            targets.total.resize(left.len(), 0);
            for (total, left) in targets.total.iter_mut().zip(&left) {
                *total = total.saturating_add(*left);
            }
            targets.left.push(left);
        }
        targets
    }

    pub(crate) fn count(&self) -> usize {
        self.left.len()
    }

    /// The first resource of which nothing is left.
    pub(crate) fn exhausted(&self) -> Option<usize> {
        self.total.iter().position(|left| *left <= 0)
    }

    /// The target that takes a pod with this usage.
    pub(crate) fn find(&mut self, pod: &Pod, usage: &[i64]) -> Result<usize, ReasonCode> {
        let tolerations = &pod.template.placement.tolerations;
        let tolerated: Vec<bool> = self.taints.iter().map(|taints| tolerates(tolerations, taints)).collect();
        if !tolerated.contains(&true) {
            return Err(ReasonCode::NoTargetTolerated);
        }
        let is_refused = |(taints, refused): &(Vec<bool>, Vec<i64>)| {
            *taints == tolerated && refused.iter().zip(usage).all(|(refused, amount)| refused <= amount)
        };
        if self.refused.iter().any(is_refused) {
            return Err(ReasonCode::PodOverloadsTargets);
        }
        let takes = |index: &usize| {
            let has_room = self.left[*index].iter().zip(usage).all(|(left, amount)| *amount <= 0 || amount <= left);
            tolerated[self.taints_of[*index]] && has_room
        };
        if let Some(index) = (self.next..self.left.len()).chain(0..self.next).find(takes) {
            return Ok(index);
        }
        self.refused.push((tolerated, usage.to_vec()));
        Err(ReasonCode::PodOverloadsTargets)
    }

    /// A pod goes to a target.
    pub(crate) fn take(&mut self, target: usize, usage: &[i64]) {
        if let Some(left) = self.left.get_mut(target) {
            let amounts = left.iter_mut().chain(&mut self.total).zip(usage.iter().chain(usage));
            amounts.for_each(|(left, amount)| *left = left.saturating_sub(*amount));
        }
        self.next = target + 1;
        if self.next >= self.left.len() {
            self.next = 0;
        }
    }
}

/// Whether all of these taints are tolerated, whatever their effect.
///
/// QUIRK: there must be as many tolerations as taints, although one toleration can be about many
/// (`a_pod_needs_as_many_tolerations_as_a_target_has_taints`).
fn tolerates(tolerations: &[Toleration], taints: &[Taint]) -> bool {
    let is_tolerated = |taint| tolerations.iter().any(|toleration| toleration::tolerates(toleration, taint));
    tolerations.len() >= taints.len() && taints.iter().all(is_tolerated)
}
