//! What a pod gets of a node: shares of NUMA nodes, and CPUs of its own (`spec/scheduler.md` 3B.5 and 3B.6).

#[cfg(test)]
mod tests;

use koord_engine::plugin::{Reason, ReasonCode};
use std::collections::BTreeMap;

use koord_scheduling::{CpuSet, NumaMask, ResourceId, ResourceVector};

use super::{
    accumulator::{Offer, Wish, take_preferred},
    ledger::Allocation,
    node::{Limits, NumaNode, milli},
    policy::{Bind, Fill},
};

/// What a pod wants of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// What it requests.
    pub(crate) requests: ResourceVector,
    /// The CPUs of its own; none where it shares them.
    pub(crate) cpus: Option<CpuOrder>,
    /// Which NUMA nodes are filled first.
    pub(crate) fill: Fill,
}

/// CPUs of a pod's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuOrder {
    /// How many.
    pub(crate) needed: usize,
    /// How it wants them.
    pub(crate) wish: Wish,
    /// Whether others will not do.
    pub(crate) is_required: bool,
}

/// Why a pod gets nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
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
pub(crate) struct Stock<'a> {
    /// The node.
    pub(crate) node: &'a NumaNode,
    /// What the pod wants.
    pub(crate) order: &'a Order,
    /// What is left of each NUMA node.
    pub(crate) shares: BTreeMap<u32, ResourceVector>,
    limits: &'a Limits,
    /// The CPUs that the pod may have; empty where it shares them.
    cpus: CpuSet,
}

// === impl Shortage ===

impl Shortage {
    /// The words of a refusal, with the names of resources.
    pub(crate) fn reasons<'a>(&self, name: impl Fn(ResourceId) -> &'a str) -> Vec<Reason> {
        match self {
            Self::NoZones => ReasonCode::NumaUnavailable.says("insufficient resources on NUMA Node").into(),
            Self::Shares(short) => {
                let short = short.iter().map(|id| name(*id));
                let reason = |name| ReasonCode::NumaUnavailable.says(format!("Insufficient NUMA {name}"));
                short.map(|name| reason(name).with("resource", name)).collect()
            }
            Self::Cpus => ReasonCode::CpusUnavailable.says("not enough cpus available to satisfy request").into(),
            Self::Policy(bind) => {
                let words = format!("insufficient CPUs to satisfy required cpu bind policy {}", bind.word());
                ReasonCode::CpusUnavailable.says(words).with("policy", bind.word()).into()
            }
        }
    }
}

// === impl Stock ===

impl<'a> Stock<'a> {
    /// What a node has for a pod.
    pub(crate) fn new(node: &'a NumaNode, order: &'a Order, limits: &'a Limits) -> Self {
        let only = |available: CpuSet| match &limits.cpus {
            Some(cpus) => cpus.intersection(&available),
            None => available,
        };
        let cpus = order.cpus.map(|wanted| wanted.of_available(node, only(node.available_cpus())));
        let mut shares = node.free_shares();
        if let Some(most) = &limits.shares {
            for (numa_node, share) in &mut shares {
                share.minimise(&most.get(numa_node).cloned().unwrap_or_default());
            }
        }
        if let (Some(cpus), Some(CpuOrder { is_required: true, .. })) = (&cpus, order.cpus) {
            for (numa_node, share) in &mut shares {
                let of_cpus = milli(cpus.intersection(&node.cpus_of(*numa_node)).len());
                share.set(ResourceId::CPU, share.get(ResourceId::CPU).min(of_cpus));
            }
        }
        Self { node, order, shares, limits, cpus: cpus.unwrap_or_default() }
    }

    /// Whether there are enough CPUs, wherever they sit.
    pub(crate) fn has_cpus(&self) -> bool {
        self.order.cpus.is_none_or(|wanted| self.cpus.len() >= wanted.needed)
    }

    /// What the pod gets: of these NUMA nodes, or CPUs alone where it does not matter which.
    pub(crate) fn allocate(&self, affinity: Option<NumaMask>) -> Result<Allocation, Shortage> {
        let shares = match affinity {
            None => Vec::new(),
            Some(_) if self.shares.is_empty() => return Err(Shortage::NoZones),
            Some(affinity) => self.split(affinity)?,
        };
        let Some(wanted) = self.order.cpus else { return Ok(Allocation { shares, ..Allocation::default() }) };
        let cpus = self.take(&wanted, &shares)?;
        Ok(Allocation { cpus, exclusive: wanted.wish.exclusive, shares })
    }

    /// Divides what the pod requests evenly among NUMA nodes.
    fn split(&self, affinity: NumaMask) -> Result<Vec<(u32, ResourceVector)>, Shortage> {
        let mut shares: BTreeMap<u32, ResourceVector> = BTreeMap::new();
        let mut short = Vec::new();
        for (resource, request) in self.order.requests.iter().filter(|(id, _)| self.node.known.contains(id)) {
            let (mut remaining, nodes) = (request, self.fullest_first(affinity, resource));
            for (position, node) in nodes.iter().enumerate() {
                let part = self.part(resource, remaining, nodes.len() - position).min(self.free(*node, resource));
                if part > 0 {
                    shares.entry(*node).or_default().set(resource, part);
                    remaining -= part;
                }
            }
            if remaining != 0 {
                short.push(resource);
            }
        }
        if short.is_empty() { Ok(shares.into_iter().collect()) } else { Err(Shortage::Shares(short)) }
    }

    /// What one of so many NUMA nodes gets of what remains.
    fn part(&self, resource: ResourceId, remaining: i64, nodes: usize) -> i64 {
        let nodes = i64::try_from(nodes).unwrap_or(i64::MAX);
        let Some(wanted) = self.order.cpus.filter(|_| resource == ResourceId::CPU) else { return remaining / nodes };
        let per_core = i64::try_from(self.node.cpus_per_core()).unwrap_or(1).max(1);
        let unit = if wanted.is_required && wanted.wish.bind == Bind::FullPcpus { per_core } else { 1 };
        remaining / 1000 / nodes / unit * unit * 1000
    }

    /// NUMA nodes in the order in which they are asked for a part: those with less of the resource first.
    ///
    /// QUIRK: what is compared is what the NUMA nodes have whose numbers are the positions in the list
    /// (spec/scheduler.md 3B.5; `parts_are_ordered_by_position`).
    fn fullest_first(&self, affinity: NumaMask, resource: ResourceId) -> Vec<u32> {
        let mut nodes: Vec<u32> = affinity.iter().collect();
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

    fn free(&self, node: u32, resource: ResourceId) -> i64 {
        self.shares.get(&node).map_or(0, |share| share.get(resource))
    }

    fn take(&self, wanted: &CpuOrder, shares: &[(u32, ResourceVector)]) -> Result<CpuSet, Shortage> {
        if !self.has_cpus() {
            return Err(Shortage::Cpus);
        }
        let (node, fill) = (self.node, self.order.fill);
        let offer = Offer { topology: &node.cpus, held: node.ledger.held(), refs_max: node.refs_max, fill };
        let take = |available: &CpuSet, needed: usize| {
            take_preferred(offer, available, &self.limits.preferred, needed, wanted.wish).ok_or(Shortage::Cpus)
        };
        let mut cpus = CpuSet::default();
        if shares.is_empty() {
            cpus = take(&self.cpus, wanted.needed)?;
        }
        for (numa_node, share) in shares {
            let of_node = self.cpus.intersection(&node.cpus_of(*numa_node));
            let part = usize::try_from(share.get(ResourceId::CPU) / 1000).unwrap_or(0);
            cpus = cpus.union(&take(&of_node, part.min(of_node.len()))?);
        }
        if cpus.len() != wanted.needed || !self.limits.required.is_subset(&cpus) {
            return Err(Shortage::Cpus);
        }
        if wanted.is_required && !wanted.is_fulfilled(node, &cpus) {
            return Err(Shortage::Policy(wanted.wish.bind));
        }
        Ok(cpus)
    }
}

// === impl CpuOrder ===

impl CpuOrder {
    /// Whether a node of which nothing is kept has enough CPUs, wherever they sit.
    pub(crate) fn is_enough(&self, node: &NumaNode) -> bool {
        self.of_available(node, node.available_cpus()).len() >= self.needed
    }

    /// The available CPUs that the pod may have.
    fn of_available(&self, node: &NumaNode, available: CpuSet) -> CpuSet {
        match self.wish.bind {
            _ if !self.is_required => available,
            Bind::FullPcpus => node.cpus.whole_cores(&available),
            Bind::SpreadByPcpus => {
                node.cpus.cores().filter_map(|(_, core)| core.intersection(&available).iter().next()).collect()
            }
        }
    }

    fn is_fulfilled(&self, node: &NumaNode, cpus: &CpuSet) -> bool {
        let cores = node.cpus.cores().filter(|(_, core)| !core.intersection(cpus).is_empty()).count();
        match self.wish.bind {
            Bind::FullPcpus => cores * node.cpus_per_core() == cpus.len(),
            Bind::SpreadByPcpus => cores == cpus.len(),
        }
    }
}
