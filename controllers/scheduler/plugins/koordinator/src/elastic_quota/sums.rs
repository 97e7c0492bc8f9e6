//! What pods amount to.

use std::fmt;

use koord_resource::ResourceList;
use serde_json::json;

/// What pods amount to: those of a quota, of all below it, or of one claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// What they request, whether they are placed or wait.
    pub request: ResourceList,
    /// What those use that are placed.
    pub used: ResourceList,
    /// Of the request, what does not give way to other pods of the quota.
    pub non_preemptible_request: ResourceList,
    /// Of what is used, what does not give way to other pods of the quota.
    pub non_preemptible_used: ResourceList,
}

/// One of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Request,
    /// What placed pods use.
    Used,
    /// What pods request that do not give way.
    NonPreemptibleRequest,
    /// What placed pods use that do not give way.
    NonPreemptibleUsed,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Request, Self::Used, Self::NonPreemptibleRequest, Self::NonPreemptibleUsed];

    /// The sums that a pod counts in as a pod that requests something.
    pub fn of_known(is_preemptible: bool) -> impl Iterator<Item = Self> {
        [Self::Request, Self::NonPreemptibleRequest].into_iter().take(if is_preemptible { 1 } else { 2 })
    }

    /// The sums that a pod counts in as a pod that is placed.
    pub fn of_placed(is_preemptible: bool) -> impl Iterator<Item = Self> {
        [Self::Used, Self::NonPreemptibleUsed].into_iter().take(if is_preemptible { 1 } else { 2 })
    }
}

impl Sums {
    /// One of the sums.
    pub fn get(&self, kind: Kind) -> &ResourceList {
        match kind {
            Kind::Request => &self.request,
            Kind::Used => &self.used,
            Kind::NonPreemptibleRequest => &self.non_preemptible_request,
            Kind::NonPreemptibleUsed => &self.non_preemptible_used,
        }
    }

    /// Whether both mean the same: what is not listed is 0.
    pub fn means(&self, other: &Self) -> bool {
        Kind::ALL.into_iter().all(|kind| self.get(kind).minus(other.get(kind)).is_zero())
    }

    /// Adds to one of the sums, which does not become negative.
    pub fn add(&mut self, kind: Kind, change: &ResourceList) {
        let sum = match kind {
            Kind::Request => &mut self.request,
            Kind::Used => &mut self.used,
            Kind::NonPreemptibleRequest => &mut self.non_preemptible_request,
            Kind::NonPreemptibleUsed => &mut self.non_preemptible_used,
        };
        sum.add(change);
        if sum.iter().any(|(_, amount)| amount.is_negative()) {
            *sum = sum.minus_down_to_zero(&ResourceList::new());
        }
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, used, non_preemptible_request, non_preemptible_used } = self;
        write!(f, "request {} and use {}, not preemptible ", json!(request), json!(used))?;
        write!(f, "{} and {}", json!(non_preemptible_request), json!(non_preemptible_used))
    }
}

/// Only the amounts of resources that `bounds` names.
pub(super) fn masked(amounts: &ResourceList, bounds: &ResourceList) -> ResourceList {
    amounts.filtered(|name, _| bounds.contains(name))
}
