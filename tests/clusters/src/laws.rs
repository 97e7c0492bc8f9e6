//! What must hold of all that was given out.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    facts::{Amounts, Facts, Node, Pod, Reservation, sum},
    usage::Usage,
};

/// What a GPU has: percents of its cores and memory, and bytes.
pub(crate) const GPU: [(&str, i64); 3] = [
    ("koordinator.sh/gpu-core", 100),
    ("koordinator.sh/gpu-memory-ratio", 100),
    ("koordinator.sh/gpu-memory", 80 << 30),
];

/// Everything that is wrong with what was given out, and with what is said of it once nothing happens any more.
pub fn broken(facts: &Facts, is_settled: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for node in &facts.nodes {
        whole(facts, node, &mut wrong);
        for pod in facts.on(&node.name) {
            let report = |what: String| wrong.push(format!("{} on {}: {what}", pod.name, node.name));
            gpus(pod, node).into_iter().chain(cpus(pod, node)).chain(zones(pod, node)).for_each(report);
        }
    }
    facts.reservations.iter().for_each(|reservation| wrong.extend(reserved(facts, reservation, is_settled)));
    wrong.extend(owners(facts));
    wrong.extend(quotas(facts, is_settled));
    wrong.extend(gangs(facts));
    wrong
}

/// The first amount that is more than what there is, among names of which there is anything.
fn over(used: &Amounts, most: &Amounts) -> Option<String> {
    let over = |(name, used): (&String, &i64)| {
        most.get(name).filter(|most| *used > **most).map(|most| format!("{used} of {most} {name}"))
    };
    used.iter().find_map(over)
}

/// A node gives out no more than it has of anything.
fn whole(facts: &Facts, node: &Node, wrong: &mut Vec<String>) {
    let usage = Usage::of(facts, node, None);
    let name = &node.name;
    wrong.extend(over(&usage.amounts, &node.allocatable).map(|what| format!("{name} gives out {what}")));
    let of_gpu = GPU.iter().map(|(name, most)| ((*name).to_owned(), *most)).collect();
    for (minor, used) in &usage.gpus {
        wrong.extend(over(used, &of_gpu).map(|what| format!("{name} gives out {what} of GPU {minor}")));
    }
    let twice: Vec<_> = usage.cpus.iter().filter(|(_, times)| **times > 1).map(|(cpu, _)| cpu).collect();
    if !twice.is_empty() {
        wrong.push(format!("{name} gives out CPUs {twice:?} twice"));
    }
    wrong.extend(usage.others.overallocations().into_iter().map(|what| format!("{name} gives out {what}")));
    for (zone, used) in &usage.zones {
        let most = node.zones.get(zone).cloned().unwrap_or_default();
        wrong.extend(over(used, &most).map(|what| format!("{name} gives out {what} of NUMA node {zone}")));
    }
}

/// A pod has as many GPUs as it requests, and of each what it requests.
fn gpus(pod: &Pod, node: &Node) -> Vec<String> {
    let given = &pod.given.gpus;
    let Some(request) = &pod.request.gpus else {
        return if given.is_empty() { Vec::new() } else { vec![format!("it has GPUs {given:?} and asks for none")] };
    };
    let mut wrong = Vec::new();
    if given.len() != request.count {
        wrong.push(format!("it has {} GPUs of {}", given.len(), request.count));
    }
    for (minor, amounts) in given {
        if node.gpus.get(minor).is_none_or(|(is_well, _)| !is_well) {
            wrong.push(format!("it has GPU {minor}, which is not well or not there"));
        }
        if request.each.iter().any(|(name, amount)| amounts.get(name) != Some(amount)) {
            wrong.push(format!("it has {amounts:?} of GPU {minor} and asks for {:?}", request.each));
        }
    }
    let minors: BTreeSet<u32> = given.keys().copied().collect();
    let is_whole = request.each.get("koordinator.sh/gpu-memory-ratio") == Some(&100);
    if is_whole && must_be_partition(pod, node) && !is_partition(node, &minors) {
        wrong.push(format!("its GPUs {minors:?} are no partition"));
    }
    wrong
}

/// Whether whole GPUs are given to a pod as a partition alone.
fn must_be_partition(pod: &Pod, node: &Node) -> bool {
    node.honors && !node.partitions.is_empty() || pod.request.partition
}

fn is_partition(node: &Node, minors: &BTreeSet<u32>) -> bool {
    node.partitions.get(&minors.len()).is_some_and(|partitions| partitions.contains(minors))
}

/// A pod that gets CPUs of its own has as many as it requests, bound as it or its node says.
fn cpus(pod: &Pod, node: &Node) -> Vec<String> {
    let cpus = &pod.given.cpus;
    if !pod.request.binds_on(node) {
        return if cpus.is_empty() { Vec::new() } else { vec![format!("it has CPUs {cpus:?} and shares them")] };
    }
    let mut wrong = Vec::new();
    if Some(cpus.len()) != pod.request.cpus() {
        wrong.push(format!("it has {} CPUs of {:?}", cpus.len(), pod.request.cpus()));
    }
    let mut cores: BTreeMap<u32, usize> = BTreeMap::new();
    for cpu in cpus {
        match node.cpus.get(cpu) {
            Some((core, _)) => *cores.entry(*core).or_default() += 1,
            None => wrong.push(format!("it has CPU {cpu}, which is not there")),
        }
    }
    let wanted = match pod.request.bind_on(node) {
        Some("FullPCPUs") => 2,
        Some("SpreadByPCPUs") => 1,
        _ => return wrong,
    };
    if cores.values().any(|count| *count != wanted) {
        wrong.push(format!("its CPUs {cpus:?} are not bound by {:?}", pod.request.bind_on(node)));
    }
    wrong
}

/// What a pod has of NUMA nodes is what it requests, its CPUs are there, and a policy is kept.
fn zones(pod: &Pod, node: &Node) -> Vec<String> {
    let (zones, mut wrong) = (&pod.given.zones, Vec::new());
    let policy = match pod.request.policy_on(node) {
        Ok(policy) => policy,
        Err(problem) => return vec![problem.to_owned()],
    };
    let Some(policy) = policy.filter(|_| !node.zones.is_empty()) else {
        return if zones.is_empty() { wrong } else { vec![format!("it has {zones:?} without a policy")] };
    };
    // QUIRK of the original: of one NUMA node that is all of the node nothing is recorded.
    if policy == "SingleNUMANode" && node.zones.len() == 1 && zones.is_empty() {
        return wrong;
    }
    let given = sum(zones.values());
    let requested = |name: &str| pod.request.amounts.get(name).copied().unwrap_or_default();
    if let Some((name, amount)) = given.iter().find(|(name, amount)| requested(name) != **amount) {
        wrong.push(format!("it has {amount} of {} {name} of NUMA nodes", requested(name)));
    }
    if ["cpu", "memory"].iter().any(|name| !given.contains_key(*name)) {
        wrong.push(format!("it has {given:?} of NUMA nodes"));
    }
    if policy == "SingleNUMANode" && zones.len() > 1 {
        wrong.push(format!("it has parts of NUMA nodes {:?}", zones.keys()));
    }
    for (zone, amounts) in zones.iter().filter(|_| !pod.given.cpus.is_empty()) {
        let here = |cpu: &&u32| node.cpus.get(cpu).is_some_and(|(_, of)| of == zone);
        let cpus = i64::try_from(pod.given.cpus.iter().filter(here).count()).unwrap_or_default();
        if amounts.get("cpu").copied().unwrap_or_default() != cpus * 1000 {
            wrong.push(format!("it has {cpus} CPUs of NUMA node {zone}, and {amounts:?}"));
        }
    }
    let is_elsewhere = |minor: &u32| node.gpus.get(minor).is_some_and(|(_, zone)| !zones.contains_key(zone));
    if policy == "SingleNUMANode" && pod.given.gpus.keys().any(is_elsewhere) {
        wrong.push(format!("it has GPUs {:?} beside NUMA nodes {:?}", pod.given.gpus.keys(), zones.keys()));
    }
    wrong
}

/// A Reservation that is available says what its owners have; it has no more owners than it takes, and they no more than it has.
fn reserved(facts: &Facts, reservation: &Reservation, is_settled: bool) -> Vec<String> {
    let name = &reservation.name;
    let owners: Vec<&Pod> = facts.owners(reservation).collect();
    let names = || owners.iter().map(|pod| &*pod.name).collect::<Vec<_>>();
    let mut wrong = Vec::new();
    if reservation.once && owners.len() > 1 {
        wrong.push(format!("{name} takes one owner and has {:?}", names()));
    }
    if !reservation.keeps() {
        return wrong;
    }
    if is_settled && reservation.once && !owners.is_empty() {
        wrong.push(format!("{name} has its owner {:?} and is still there for others", names()));
    }
    let mut used = sum(owners.iter().map(|pod| &pod.request.amounts));
    used.retain(|name, amount| *amount != 0 && reservation.allocatable.contains_key(name));
    let mut allocated = reservation.allocated.clone();
    allocated.retain(|_, amount| *amount != 0);
    if is_settled && (used != allocated || owners.len() != reservation.owners) {
        let said = format!("{} owners have {allocated:?}", reservation.owners);
        wrong.push(format!("{name} says that {said}, and {:?} have {used:?}", names()));
    }
    if reservation.is_restricted() {
        wrong.extend(over(&used, &reservation.allocatable).map(|what| format!("the owners of {name} have {what}")));
    }
    wrong
}

/// Who uses a reservation is named by it, and on its node.
fn owners(facts: &Facts) -> Vec<String> {
    let placed = facts.pods.iter().filter(|pod| pod.node.is_some());
    let wrong = placed.filter_map(|pod| {
        let (name, uid) = pod.reservation.as_ref()?;
        if pod.app.as_ref() != Some(name) {
            return Some(format!("{} uses {name}, which is not for it", pod.name));
        }
        let reservation = facts.reservations.iter().find(|reservation| reservation.uid == *uid)?;
        (reservation.node != pod.node).then(|| format!("{} uses {name} of another node", pod.name))
    });
    wrong.collect()
}

/// No quota is used beyond its maximum, and each says how much is used.
fn quotas(facts: &Facts, is_settled: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, quota) in &facts.quotas {
        let mut used = facts.used(name);
        used.retain(|name, amount| *amount != 0 && quota.max.contains_key(name));
        // Only the quotas of pods are bounded, unless the configuration says otherwise.
        let has_pods = facts.pods.iter().any(|pod| pod.quota.as_ref() == Some(name));
        wrong.extend(over(&used, &quota.max).filter(|_| has_pods).map(|what| format!("{name} is used by {what}")));
        let mut said = quota.used.clone();
        said.retain(|_, amount| *amount != 0);
        if is_settled && !name.starts_with("koordinator-") && said != used {
            wrong.push(format!("{name} says that {said:?} are used, and its pods use {used:?}"));
        }
    }
    wrong
}

/// A gang has a node for enough of its members or for none.
fn gangs(facts: &Facts) -> Vec<String> {
    let wrong = facts.gangs.iter().filter_map(|(gang, least)| {
        let placed = facts.members(gang).filter(|pod| pod.node.is_some()).count();
        (placed > 0 && placed < *least).then(|| format!("{placed} members of {gang} have a node, and it needs {least}"))
    });
    wrong.collect()
}
