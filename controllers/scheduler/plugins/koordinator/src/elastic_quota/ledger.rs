//! What pods request and use by their claims, and the trees that follow from it.

mod audit;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use koord_quota::Quota;
use koord_resource::ResourceList;

use super::{Claim, Forest, Kind, QuotaSettings, Sums};

/// Counts pods. The quotas are kept elsewhere and handed over; the trees are built when they are asked for first after a
/// quota has changed, and brought up to date with every pod from then on.
#[derive(Clone, Debug)]
pub struct Ledger {
    settings: Arc<QuotaSettings>,
    groups: BTreeMap<Claim, Group>,
    offered: ResourceList,
    forest: OnceLock<Forest>,
}

/// The pods of one claim.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Pods that are known, and those of them that are placed.
    pods: usize,
    sums: Sums,
}

/// A pod, as far as its quota counts it.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    /// By what it finds its quota.
    pub claim: &'a Claim,
    pub requests: &'a ResourceList,
    /// Whether it gives way to other pods of its quota.
    pub is_preemptible: bool,
}

pub(super) use self::audit::Times;

impl Ledger {
    /// Without pods and nodes.
    pub fn new(settings: QuotaSettings) -> Self {
        Self {
            settings: Arc::new(settings),
            groups: BTreeMap::new(),
            offered: ResourceList::new(),
            forest: OnceLock::new(),
        }
    }

    /// How quotas limit pods.
    pub fn settings(&self) -> &Arc<QuotaSettings> {
        &self.settings
    }

    /// A pod became known: it requests.
    pub fn request(&mut self, pod: Counted<'_>) {
        self.count(pod, 1, Kind::of_known(pod.is_preemptible));
    }

    /// A pod is gone: it does not request any more.
    pub fn unrequest(&mut self, pod: Counted<'_>) {
        let negated = pod.requests.mapped(|_, amount| -amount.clone());
        self.count(Counted { requests: &negated, ..pod }, -1, Kind::of_known(pod.is_preemptible));
    }

    /// A pod is placed: it uses what it requests.
    pub fn place(&mut self, pod: Counted<'_>) {
        self.count(pod, 1, Kind::of_placed(pod.is_preemptible));
    }

    /// A pod is not placed any more.
    pub fn unplace(&mut self, pod: Counted<'_>) {
        let negated = pod.requests.mapped(|_, amount| -amount.clone());
        self.count(Counted { requests: &negated, ..pod }, -1, Kind::of_placed(pod.is_preemptible));
    }

    /// A node offers something else, or came or went.
    pub fn offer(&mut self, old: Option<&ResourceList>, new: Option<&ResourceList>) {
        if let Some(old) = old {
            self.offered = self.offered.minus(old);
        }
        if let Some(new) = new {
            self.offered.add(new);
        }
        if let Some(forest) = self.forest.get_mut() {
            forest.set_offered(&self.offered);
        }
    }

    /// A quota was added, changed or deleted.
    pub fn quotas_changed(&mut self) {
        self.forest = OnceLock::new();
    }

    /// The trees of these quotas.
    pub fn forest<'a>(&self, quotas: impl IntoIterator<Item = &'a Quota>) -> &Forest {
        let pods = self.groups.iter().map(|(claim, group)| (claim, &group.sums));
        self.forest.get_or_init(|| Forest::new(&self.settings, quotas, pods, &self.offered))
    }

    fn count(&mut self, pod: Counted<'_>, pods: isize, kinds: impl Iterator<Item = Kind>) {
        let group = match self.groups.get_mut(pod.claim) {
            Some(group) => group,
            None => self.groups.entry(pod.claim.clone()).or_default(),
        };
        group.pods = group.pods.saturating_add_signed(pods);
        for kind in kinds {
            group.sums.add(kind, pod.requests);
            if let Some(forest) = self.forest.get_mut() {
                forest.add(pod.claim, kind, pod.requests);
            }
        }
        if group.pods == 0 {
            self.groups.remove(pod.claim);
        }
    }
}
