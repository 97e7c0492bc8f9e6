//! CPUs, devices and Reservations that koord-scheduler gives out on nodes where somebody else gives out the same.

use std::collections::{BTreeMap, BTreeSet};

use koord_program::{findings::Report, names::few};

use crate::{
    Situation,
    world::{Amount, Pod, World},
};

pub(crate) fn look(situation: &Situation<'_>, report: &mut Report) {
    cpus(situation, report);
    devices(situation, report);
    reservations(situation, report);
}

/// The nodes of the pods of which this holds.
fn nodes_of(world: &World, holds: impl Fn(&Pod) -> bool) -> BTreeSet<&str> {
    world.pods.iter().filter(|pod| holds(pod)).filter_map(|pod| pod.node.as_deref()).collect()
}

/// These nodes of a report, by name.
fn named<'w>(nodes: impl IntoIterator<Item = &'w str>) -> Option<String> {
    let nodes: Vec<String> = nodes.into_iter().map(str::to_owned).collect();
    (!nodes.is_empty()).then(|| format!("Node {}", few(&nodes)))
}

fn cpus(Situation { world, ours, .. }: &Situation<'_>, report: &mut Report) {
    let given = nodes_of(world, |pod| ours.serves(&pod.scheduler) && pod.has_cpus);
    let taken = nodes_of(world, |pod| !ours.serves(&pod.scheduler) && pod.is_given_cpus_by_kubelet);
    let both = given.intersection(&taken).copied().filter(|node| world.static_cpus.contains(*node));
    if let Some(object) = named(both) {
        report.warning(
            object,
            "the kubelet's CPU manager (policy static) gives whole CPUs to Guaranteed pods of other schedulers, without knowledge of those that koord-scheduler \
             has given to its pods: a CPU may have two owners",
            "set cpuManagerPolicy: none in the kubelet's configuration, or keep Guaranteed pods of other schedulers off these nodes; who has which CPU: \
             koordctl explain node NAME",
        );
    }
}

fn devices(Situation { world, ours, .. }: &Situation<'_>, report: &mut Report) {
    let given = nodes_of(world, |pod| ours.serves(&pod.scheduler) && pod.has_devices);
    let taken = nodes_of(world, |pod| !ours.serves(&pod.scheduler) && pod.wants_device_plugin);
    let both = given.intersection(&taken).copied().filter(|node| world.with_devices.contains(*node));
    if let Some(object) = named(both) {
        report.warning(
            object,
            "pods of other schedulers get devices of the vendor's device plugin there, which does not know those that DeviceShare has given to pods of koord-scheduler: \
             a device may have two owners",
            "let koord-scheduler place all pods that request devices of these nodes, or keep them apart with a taint; who has which device: koordctl explain node NAME",
        );
    }
}

/// Reservations that no longer fit on their nodes since other schedulers do not know of them.
fn reservations(Situation { world, ours, .. }: &Situation<'_>, report: &mut Report) {
    let mut reserved = BTreeMap::<&str, Amount>::new();
    for (node, left) in &world.reservations {
        let sum = reserved.entry(node.as_str()).or_default();
        *sum = sum.plus(*left);
    }
    let mut requested = BTreeMap::<&str, Amount>::new();
    for pod in &world.pods {
        if let Some(node) = pod.node.as_deref() {
            let sum = requested.entry(node).or_default();
            *sum = sum.plus(pod.requests);
        }
    }
    let foreign = nodes_of(world, |pod| !ours.serves(&pod.scheduler));
    let exceeded = reserved.into_iter().filter(|(node, reserved)| {
        let total = requested.get(node).copied().unwrap_or_default().plus(*reserved);
        foreign.contains(node) && world.allocatable.get(*node).is_some_and(|has| total.exceeds(*has))
    });
    if let Some(object) = named(exceeded.map(|(node, _)| node)) {
        report.warning(
            object,
            "pods of other schedulers use what Reservations keep there: the owners of these Reservations will not fit, and the kubelet rejects them",
            "move pods of other schedulers away, or delete the Reservations; Reservations hold on nodes that koord-scheduler alone gives out",
        );
    }
}
