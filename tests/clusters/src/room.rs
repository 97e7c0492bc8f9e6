//! Whether some node has a place for a pod that waits, found out by trying everything.
//!
//! What is claimed is less than what is true: where rules leave it open which of several parts are given, as a policy that prefers
//! NUMA nodes does, a place counts only where no choice could spoil it.

use std::collections::{BTreeMap, BTreeSet};

use koord_scheduler_simulator::Outcome;

use crate::{
    facts::{Amounts, Facts, GpuRequest, Node, Pod, Request, Reservation},
    laws::GPU,
    usage::Usage,
};

/// Pods and Reservations that wait beside a place for them.
pub fn overlooked(facts: &Facts, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    let waits = |pod: &&Pod| pod.node.is_none() && pod.gang.as_ref().is_none_or(|gang| is_complete(facts, gang));
    for pod in facts.pods.iter().filter(waits).filter(|pod| quota_allows(facts, pod)) {
        let place = facts.nodes.iter().find_map(|node| place(facts, node, pod));
        found.extend(place.map(|place| {
            let name = format!("default/{}", pod.name);
            let said = outcome.reasons.iter().find(|reason| reason.example == name).map(|reason| &reason.message);
            format!("{} waits beside {place}: {}", pod.name, said.map_or("as others do", |said| said))
        }));
    }
    for reservation in
        facts.reservations.iter().filter(|one| !matches!(&*one.phase, "Available" | "Succeeded" | "Failed"))
    {
        let fits = |node: &&Node| goes_with(facts, reservation, node) && takes(facts, node, &reservation.request, None);
        if let Some(node) = facts.nodes.iter().find(fits) {
            found.push(format!("{} waits beside {}: {}", reservation.name, node.name, reservation.message));
        }
    }
    found
}

/// Whether all Reservations of a node have a policy like this one's: those without do not share a node with the others.
fn goes_with(facts: &Facts, reservation: &Reservation, node: &Node) -> bool {
    let here = facts.reservations.iter().filter(|one| one.keeps() && one.node.as_deref() == Some(&*node.name));
    here.into_iter().all(|one| one.policy.is_none() == reservation.policy.is_none())
}

/// Whether a gang has its least members, so that the others go one by one.
fn is_complete(facts: &Facts, gang: &str) -> bool {
    let placed = facts.members(gang).filter(|pod| pod.node.is_some()).count();
    facts.gangs.get(gang).is_some_and(|least| placed >= *least)
}

/// Whether the pod's quota and those above it let it have what it requests now.
fn quota_allows(facts: &Facts, pod: &Pod) -> bool {
    let Some(own) = &pod.quota else { return true };
    let has_room = |(name, quota): (&str, &crate::facts::Quota)| {
        let used = facts.used(name);
        quota.max.keys().all(|name| {
            let of = |amounts: &Amounts| amounts.get(name).copied().unwrap_or_default();
            of(&used) + of(&pod.request.amounts) <= of(&quota.runtime)
        })
    };
    facts.quotas.contains_key(own) && facts.lineage(own).all(has_room)
}

/// A place of a node for a pod, in words.
fn place(facts: &Facts, node: &Node, pod: &Pod) -> Option<String> {
    let is_open = |reservation: &&Reservation| {
        let is_free = !reservation.once || facts.owners(reservation).next().is_none();
        let is_here = reservation.node.as_deref() == Some(&*node.name);
        reservation.keeps() && is_free && is_here && pod.app.as_ref() == Some(&reservation.name)
    };
    if takes(facts, node, &pod.request, None) {
        return Some(node.name.clone());
    }
    let within = facts.reservations.iter().filter(is_open).find(|one| takes(facts, node, &pod.request, Some(one)))?;
    Some(format!("{} with {}", node.name, within.name))
}

/// Whether a node has everything that is requested, with what is left of a reservation.
fn takes(facts: &Facts, node: &Node, request: &Request, within: Option<&Reservation>) -> bool {
    let usage = Usage::of(facts, node, within);
    let left = |most: &Amounts, used: &Amounts, wanted: &Amounts| {
        wanted.iter().all(|(name, wanted)| {
            let of = |amounts: &Amounts| amounts.get(name).copied().unwrap_or_default();
            most.get(name).is_some_and(|most| wanted + of(used) <= *most)
        })
    };
    let Ok(policy) = request.policy_on(node) else { return false };
    if !left(&node.allocatable, &usage.amounts, &request.amounts) || !fits_reservation(facts, request, within) {
        return false;
    }
    let Some(zones) = policy.map(|_| &node.zones) else {
        return cpus_fit(node, &usage, request, |_| true) && gpus_fit(node, &usage, request, |_| true);
    };
    // Which NUMA nodes a reservation leaves is not claimed; neither is a place that is spread over several.
    if within.is_some() {
        return false;
    }
    zones.iter().any(|(zone, most)| {
        let wanted: Amounts = request
            .amounts
            .iter()
            .filter(|(name, _)| most.contains_key(*name))
            .map(|(name, amount)| (name.clone(), *amount))
            .collect();
        left(most, usage.zones.get(zone).unwrap_or(&Amounts::new()), &wanted)
            && cpus_fit(node, &usage, request, |of| of == *zone)
            && gpus_fit(node, &usage, request, |of| of == *zone)
            && (request.policy.is_none() || !is_shared(facts, node, *zone))
    })
}

/// Whether pods here have CPUs of this NUMA node and of another, which a pod with a policy of its own keeps apart from.
fn is_shared(facts: &Facts, node: &Node, zone: u32) -> bool {
    let spans = |cpus: &BTreeSet<u32>| {
        let zones: BTreeSet<u32> = cpus.iter().filter_map(|cpu| node.cpus.get(cpu)).map(|(_, zone)| *zone).collect();
        zones.len() > 1 && zones.contains(&zone)
    };
    let kept = facts.reservations.iter().filter(|one| one.node.as_deref() == Some(&*node.name));
    facts.on(&node.name).map(|pod| &pod.given.cpus).chain(kept.map(|one| &one.given.cpus)).any(spans)
}

/// Whether a reservation that owners may not exceed has enough.
fn fits_reservation(facts: &Facts, request: &Request, within: Option<&Reservation>) -> bool {
    let Some(reservation) = within.filter(|reservation| reservation.is_restricted()) else { return true };
    // Of its GPUs and CPUs nothing is claimed.
    let used = crate::facts::sum(facts.owners(reservation).map(|pod| &pod.request.amounts));
    request.gpus.is_none()
        && !request.binds
        && reservation.allocatable.iter().all(|(name, most)| {
            let of = |amounts: &Amounts| amounts.get(name).copied().unwrap_or_default();
            of(&request.amounts) + of(&used) <= *most
        })
}

/// Whether enough CPUs are free of the NUMA nodes that count, bound as they must be.
fn cpus_fit(node: &Node, usage: &Usage, request: &Request, counts: impl Fn(u32) -> bool) -> bool {
    if !request.binds_on(node) {
        return true;
    }
    let (Some(wanted), false) = (request.cpus(), node.cpus.is_empty()) else { return false };
    if request.bind.is_some() && node.binds_all() && request.bind_on(node) != bind_of(node) {
        return false;
    }
    let mut cores: BTreeMap<u32, usize> = BTreeMap::new();
    for (cpu, (core, zone)) in &node.cpus {
        if counts(*zone) && !usage.cpus.contains_key(cpu) {
            *cores.entry(*core).or_default() += 1;
        }
    }
    match request.bind_on(node) {
        Some("FullPCPUs") => wanted % 2 == 0 && cores.values().filter(|free| **free == 2).count() * 2 >= wanted,
        Some("SpreadByPCPUs") => cores.len() >= wanted,
        _ => cores.values().sum::<usize>() >= wanted,
    }
}

fn bind_of(node: &Node) -> Option<&str> {
    Request::default()
        .binds_on(node)
        .then(|| if node.bind.as_deref() == Some("FullPCPUsOnly") { "FullPCPUs" } else { "SpreadByPCPUs" })
}

/// Whether enough GPUs have enough left, as a partition where it must be one.
fn gpus_fit(node: &Node, usage: &Usage, request: &Request, counts: impl Fn(u32) -> bool) -> bool {
    let Some(GpuRequest { count, each }) = &request.gpus else { return true };
    let has_left = |minor: &u32| {
        let used = usage.gpus.get(minor);
        GPU.iter().all(|(name, most)| {
            let used = used.and_then(|used| used.get(*name)).copied().unwrap_or_default();
            used + each.get(*name).copied().unwrap_or_default() <= *most
        }) && (each.get("koordinator.sh/gpu-memory-ratio") != Some(&100) || used.is_none())
    };
    let is_well = |(minor, (is_well, zone)): (&u32, &(bool, u32))| (*is_well && counts(*zone)).then_some(*minor);
    let free: BTreeSet<u32> = node.gpus.iter().filter_map(is_well).filter(has_left).collect();
    let is_whole = each.get("koordinator.sh/gpu-memory-ratio") == Some(&100);
    let needs_partition = is_whole && (request.partition || node.honors && !node.partitions.is_empty());
    if needs_partition {
        // A pod that wants the best partition alone may wait for it.
        return !request.best
            && node.partitions.get(count).is_some_and(|all| all.iter().any(|partition| partition.is_subset(&free)));
    }
    free.len() >= *count
}
