//! Where pods may go that leave a domain.

use std::collections::{BTreeMap, BTreeSet};

use koord_descheduler_framework::{PodId, ReasonCode, Refusal, fit::Rule};

use super::{constraint::Constraints, index::Index};

/// The nodes of domains that have fewer pods than domains have on average.
pub(super) struct Destinations<'i, 'a> {
    index: &'i Index<'a>,
    /// Their positions.
    at: Vec<usize>,
    /// Whether a pod must fit one of them.
    has_node_fit: bool,
    /// By class: whether its pods fit any of the nodes.
    fits: BTreeMap<usize, Result<(), Refusal>>,
    /// By class: whether its pods fit each of the nodes, as far as that was asked.
    fits_each: BTreeMap<usize, Vec<Option<bool>>>,
    /// Classes whose pods have no destination from a node, as long as no other pod moves.
    stuck: BTreeSet<(usize, usize)>,
}

impl<'i, 'a> Destinations<'i, 'a> {
    pub(super) fn new(index: &'i Index<'a>, at: Vec<usize>, has_node_fit: bool) -> Self {
        let (fits, fits_each) = (BTreeMap::new(), BTreeMap::new());
        Self { index, at, has_node_fit, fits, fits_each, stuck: BTreeSet::new() }
    }

    /// Whether a pod fits one of the nodes.
    pub(super) fn fit(&mut self, pod: PodId, class: usize) -> Result<(), Refusal> {
        if !self.has_node_fit {
            return Ok(());
        }
        if let Some(known) = self.fits.get(&class) {
            return known.clone();
        }
        let Self { index, at, .. } = self;
        let nodes = at.iter().map(|at| index.nodes[*at]);
        let fits = Rule::Kubernetes.fits_any(index.cluster, pod, nodes).map(|_| ()).map_err(|mut refusal| {
            refusal.code = ReasonCode::NoSmallerDomainFits;
            refusal
        });
        if self.is_alike(pod) {
            self.fits.insert(class, fits.clone());
        }
        fits
    }

    /// Whether all pods of the class of a pod fit the same nodes. With anti-affinity it matters which of them is asked about.
    fn is_alike(&self, pod: PodId) -> bool {
        self.index.cluster.pod(pod).is_some_and(|pod| pod.template.placement.pod_affinity.forbidden.is_empty())
    }

    /// The best node for a pod that several constraints count: one that it fits, where none of them gets worse, and of these the one whose domains have the
    /// fewest pods. `first` is the constraint for which the pod moves.
    pub(super) fn best(
        &mut self,
        constraints: &Constraints<'_>,
        first: usize,
        pod: PodId,
        class: usize,
        from: usize,
    ) -> Option<usize> {
        if self.stuck.contains(&(class, from)) {
            return None;
        }
        let Self { index, at, has_node_fit, fits_each, .. } = self;
        let counting: Vec<_> =
            constraints.counting[class].iter().map(|number| (*number, &constraints.all[*number])).collect();
        let from_domains: Vec<Option<usize>> =
            counting.iter().map(|(_, constraint)| index.topology(constraint.topology).domain(from)).collect();
        let sizes_at = |at: usize| -> Option<(i64, i64)> {
            let (mut of_first, mut of_others) = (0, 0);
            for (number, constraint) in &counting {
                let size = constraint.size(index.topology(constraint.topology).domain(at));
                // No pod is scheduled to a node that is in no domain of a constraint that must hold.
                if size.is_none() && constraint.spec.is_hard {
                    return None;
                }
                *(if *number == first { &mut of_first } else { &mut of_others }) += size.unwrap_or(0);
            }
            Some((of_first, of_others))
        };
        let worsens = |at: usize| {
            let mut others = counting.iter().zip(&from_domains).filter(|((number, _), _)| *number != first);
            others.any(|((_, constraint), from)| {
                constraint.worsens(*from, index.topology(constraint.topology).domain(at))
            })
        };
        // No node is better than one of the smallest domains.
        let smallest = |is_first: bool| -> i64 {
            let of = counting.iter().filter(|(number, _)| (*number == first) == is_first);
            of.map(|(_, constraint)| constraint.smallest()).sum()
        };
        let least = (smallest(true), smallest(false));
        let asked = fits_each.entry(class).or_insert_with(|| vec![None; at.len()]);
        let mut best: Option<((i64, i64), usize)> = None;
        for (number, at) in at.iter().enumerate() {
            let Some(sizes) = sizes_at(*at) else { continue };
            if best.is_some_and(|(best, _)| best <= sizes) || worsens(*at) {
                continue;
            }
            let check = || !*has_node_fit || Rule::Kubernetes.check(index.cluster, pod, index.nodes[*at]).is_ok();
            if *asked[number].get_or_insert_with(check) {
                best = Some((sizes, *at));
                if sizes <= least {
                    break;
                }
            }
        }
        if !self.is_alike(pod) {
            self.fits_each.remove(&class);
        } else if best.is_none() {
            self.stuck.insert((class, from));
        }
        best.map(|(_, at)| at)
    }

    /// A pod has moved.
    pub(super) fn moved(&mut self) {
        self.stuck.clear();
    }
}
