//! What a pod gets of a node: shares of NUMA nodes, and exclusive CPUs (`spec/scheduler.md` 3B.5 and 3B.6).

#[cfg(test)]
pub mod tests;

use std::{borrow::Cow, collections::BTreeMap};

use koord_scheduler_framework::{Reason, ReasonCode};
use koord_scheduling::{CpuSet, NumaMask, ResourceId, ResourceVector};
use smallvec::SmallVec;

use super::{
    accumulator::{CpuPolicies, Offer, take_preferred},
    ledger::NumaAllocation,
    node::{NumaLimits, NumaNode, milli},
    policy::{Bind, Fill},
    zone::NumaZone,
};

/// What a pod requests of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order<'a> {
    pub requests: Cow<'a, ResourceVector>,
    /// The exclusive CPUs; none where it shares them.
    pub cpus: Option<CpuOrder>,
    /// Which NUMA nodes are filled first.
    pub fill: Fill,
}

/// CPUs of a pod's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuOrder {
    /// How many.
    pub needed: usize,
    /// How it wants them.
    pub policies: CpuPolicies,
    /// Whether others will not do.
    pub is_required: bool,
}

/// Why a pod gets nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The node reports no NUMA nodes.
    NoZones,
    /// The NUMA nodes have too little of these resources.
    Shares(Vec<ResourceId>),
    /// There are too few CPUs.
    Cpus,
    /// There are too few CPUs that fulfil the pod's policy.
    Policy(Bind),
}

/// What a node has for a pod, before it is decided which NUMA nodes the pod gets it of.
#[derive(Debug)]
pub struct Stock<'a> {
    pub node: &'a NumaNode,
    /// What the pod requests.
    pub order: &'a Order<'a>,
    pub limits: &'a NumaLimits,
    /// What the pod may have of each of the node's NUMA nodes; none where that is all that is left.
    shares: Option<Vec<ResourceVector>>,
    /// The CPUs that the pod may have; empty where it shares them.
    cpus: Cow<'a, CpuSet>,
}

// === impl Shortage ===

impl Shortage {
    /// The words of a refusal, with the names of resources.
    pub fn reasons<'a>(&self, name: impl Fn(ResourceId) -> &'a str) -> Vec<Reason> {
        match self {
            Self::NoZones => ReasonCode::NumaUnavailable.reason("insufficient resources on NUMA Node").into(),
            Self::Shares(short) => {
                let short = short.iter().map(|id| name(*id));
                let reason = |name| ReasonCode::NumaUnavailable.reason(format!("Insufficient NUMA {name}"));
                short.map(|name| reason(name).with("resource", name)).collect()
            }
            Self::Cpus => ReasonCode::CpusUnavailable.reason("not enough cpus available to satisfy request").into(),
            Self::Policy(bind) => {
                let words = format!("insufficient CPUs to satisfy required cpu bind policy {}", bind.word());
                ReasonCode::CpusUnavailable.reason(words).with("policy", bind.word()).into()
            }
        }
    }
}

// === impl Stock ===

impl<'a> Stock<'a> {
    /// What a node has for a pod.
    pub fn new(node: &'a NumaNode, order: &'a Order<'a>, limits: &'a NumaLimits) -> Self {
        let cpus = match (order.cpus, &limits.cpus) {
            (None, _) => Cow::Owned(CpuSet::default()),
            (Some(cpu_order), None) => cpu_order.of_available(node, node.available_cpus()),
            (Some(cpu_order), Some(only)) => {
                Cow::Owned(cpu_order.of_available(node, &only.intersection(node.available_cpus())).into_owned())
            }
        };
        let is_required = order.cpus.is_some_and(|cpu_order| cpu_order.is_required);
        let share = |zone: &NumaZone| {
            let mut share = zone.free.clone();
            if let Some(most) = &limits.shares {
                share.minimise(&most.get(&zone.number).cloned().unwrap_or_default());
            }
            if is_required {
                let of_cpus = milli(cpus.common(&zone.cpus));
                share.set(ResourceId::CPU, share.get(ResourceId::CPU).min(of_cpus));
            }
            share
        };
        let is_limited = is_required || limits.shares.is_some();
        let shares = is_limited.then(|| node.zones.iter().map(share).collect());
        Self { node, order, limits, shares, cpus }
    }

    /// Whether there are enough CPUs, wherever they sit.
    pub fn has_cpus(&self) -> bool {
        self.order.cpus.is_none_or(|cpu_order| self.cpus.len() >= cpu_order.needed)
    }

    /// What the pod gets: of these NUMA nodes, or CPUs alone where it does not matter which.
    pub fn allocate(&self, affinity: Option<NumaMask>) -> Result<NumaAllocation, Shortage> {
        let shares = match affinity {
            None => Vec::new(),
            Some(_) if self.node.zones.is_empty() => return Err(Shortage::NoZones),
            Some(affinity) => self.split(affinity)?,
        };
        let Some(cpu_order) = self.order.cpus else {
            return Ok(NumaAllocation { shares, ..NumaAllocation::default() });
        };
        let cpus = self.take(&cpu_order, &shares)?;
        Ok(NumaAllocation { cpus, exclusive: cpu_order.policies.exclusive, shares })
    }

    /// The resources that the pod requests and some NUMA node reports.
    pub fn requests(&self) -> impl Iterator<Item = (ResourceId, i64)> {
        self.order.requests.iter().filter(|(id, _)| self.node.known.contains(id))
    }

    /// Divides what the pod requests evenly among NUMA nodes.
    fn split(&self, affinity: NumaMask) -> Result<Vec<(u32, ResourceVector)>, Shortage> {
        let mut shares: BTreeMap<u32, ResourceVector> = BTreeMap::new();
        let mut short = Vec::new();
        for (resource, request) in self.requests() {
            let give = |node, part| shares.entry(node).or_default().set(resource, part);
            if self.divide(affinity, (resource, request), give) != 0 {
                short.push(resource);
            }
        }
        if short.is_empty() { Ok(shares.into_iter().collect()) } else { Err(Shortage::Shares(short)) }
    }

    /// Divides what the pod requests of one resource; what is left in the end.
    pub fn divide(
        &self,
        affinity: NumaMask,
        (resource, request): (ResourceId, i64),
        mut give: impl FnMut(u32, i64),
    ) -> i64 {
        let mut remaining = request;
        let mut ask = |node: u32, nodes: usize| {
            let part = self.even_part(resource, remaining, nodes).min(self.free(node, resource));
            if part > 0 {
                give(node, part);
                remaining -= part;
            }
        };
        if affinity.len() == 1 {
            affinity.iter().for_each(|node| ask(node, 1));
        } else {
            let nodes = self.fullest_first(affinity, resource);
            let left = (1..=nodes.len()).rev();
            nodes.into_iter().zip(left).for_each(|(node, left)| ask(node, left));
        }
        remaining
    }

    /// What one of so many NUMA nodes gets of what remains.
    fn even_part(&self, resource: ResourceId, remaining: i64, nodes: usize) -> i64 {
        // Mostly there is one, and dividing takes longer than all else.
        let share = |amount: i64| if nodes == 1 { amount } else { amount / i64::try_from(nodes).unwrap_or(i64::MAX) };
        let Some(cpu_order) = self.order.cpus.filter(|_| resource == ResourceId::CPU) else { return share(remaining) };
        let cpus = share(remaining / 1000);
        if !cpu_order.is_required || cpu_order.policies.bind != Bind::FullPcpus {
            return cpus * 1000;
        }
        let per_core = i64::try_from(self.node.cpus_per_core()).unwrap_or(1).max(1);
        cpus / per_core * per_core * 1000
    }

    /// NUMA nodes in the order in which parts are taken from them: those with less of the resource first.
    ///
    /// QUIRK: what is compared is what the NUMA nodes have whose numbers are the positions in the list
    /// (spec/scheduler.md 3B.5; `parts_are_ordered_by_position`).
    fn fullest_first(&self, affinity: NumaMask, resource: ResourceId) -> SmallVec<[u32; 8]> {
        let mut nodes: SmallVec<[u32; 8]> = affinity.iter().collect();
        let at = |position: usize| u32::try_from(position).map_or(0, |node| self.free(node, resource));
        for end in 1..nodes.len() {
            let mut position = end;
            while position > 0 && at(position) < at(position - 1) {
                nodes.swap(position, position - 1);
                position -= 1;
            }
        }
        nodes
    }

    /// How much of a resource the pod may have of a NUMA node.
    pub fn free(&self, number: u32, resource: ResourceId) -> i64 {
        self.node.place_of(number).map_or(0, |at| self.share(at).get(resource))
    }

    /// What the pod may have of the NUMA node of a place.
    fn share(&self, at: usize) -> &ResourceVector {
        self.shares.as_ref().map_or(&self.node.zones[at].free, |shares| &shares[at])
    }

    /// The NUMA nodes of a set, with what the pod may have of each.
    pub fn zones(&self, affinity: NumaMask) -> impl Iterator<Item = (&NumaZone, &ResourceVector)> {
        let places = affinity.iter().filter_map(|number| self.node.place_of(number));
        places.filter_map(|at| Some((self.node.zones.get(at)?, self.share(at))))
    }

    /// How many CPUs are taken of a NUMA node that gives so much cpu.
    pub fn cpus_within(&self, number: u32, cpu: i64) -> usize {
        let there = self.node.zone(number).map_or(0, |zone| match &self.cpus {
            Cow::Borrowed(_) => zone.available,
            Cow::Owned(cpus) => cpus.common(&zone.cpus),
        });
        usize::try_from(cpu / 1000).unwrap_or(0).min(there)
    }

    fn take(&self, cpu_order: &CpuOrder, shares: &[(u32, ResourceVector)]) -> Result<CpuSet, Shortage> {
        if !self.has_cpus() {
            return Err(Shortage::Cpus);
        }
        let (node, fill) = (self.node, self.order.fill);
        let offer = Offer { topology: &node.cpus, ledger: &node.ledger, refs_max: node.refs_max, fill };
        let take = |available: &CpuSet, needed: usize| {
            take_preferred(offer, available, &self.limits.preferred, needed, cpu_order.policies).ok_or(Shortage::Cpus)
        };
        let mut cpus = CpuSet::default();
        if shares.is_empty() {
            cpus = take(&self.cpus, cpu_order.needed)?;
        }
        for (numa_node, share) in shares {
            let of_node = node.zone(*numa_node).map(|zone| self.cpus.intersection(&zone.cpus)).unwrap_or_default();
            cpus = cpus.union(&take(&of_node, self.cpus_within(*numa_node, share.get(ResourceId::CPU)))?);
        }
        if cpus.len() != cpu_order.needed || !self.limits.required.is_subset(&cpus) {
            return Err(Shortage::Cpus);
        }
        if cpu_order.is_required && !cpu_order.is_fulfilled(node, &cpus) {
            return Err(Shortage::Policy(cpu_order.policies.bind));
        }
        Ok(cpus)
    }
}

// === impl CpuOrder ===

impl CpuOrder {
    /// The available CPUs that the pod may have.
    fn of_available<'a>(&self, node: &NumaNode, available: &'a CpuSet) -> Cow<'a, CpuSet> {
        match self.policies.bind {
            _ if !self.is_required => Cow::Borrowed(available),
            Bind::FullPcpus => Cow::Owned(node.cpus.whole_cores(available)),
            Bind::SpreadByPcpus => Cow::Owned(node.cpus.first_of_cores(available)),
        }
    }

    fn is_fulfilled(&self, node: &NumaNode, cpus: &CpuSet) -> bool {
        let cores = node.cpus.first_of_cores(cpus).len();
        match self.policies.bind {
            Bind::FullPcpus => cores * node.cpus_per_core() == cpus.len(),
            Bind::SpreadByPcpus => cores == cpus.len(),
        }
    }
}
