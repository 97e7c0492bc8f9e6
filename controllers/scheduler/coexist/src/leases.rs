//! Which schedulers run leader election, and whether they keep apart.

use koord_program::{findings::Report, lease::Lease, names::few};

use crate::{DEFAULT_SCHEDULER, KOORD_SCHEDULER, Situation};

/// Namespace and name of kube-scheduler's Lease.
const OF_KUBE_SCHEDULER: (&str, &str) = ("kube-system", "kube-scheduler");

pub(crate) fn look(Situation { world, ours, census, now }: &Situation<'_>, report: &mut Report) {
    let held: Vec<&(String, Lease)> = world.leases.iter().filter(|(_, lease)| lease.is_held(*now)).collect();
    let is_ours = |namespace: &str, name: &str| {
        ours.lease.as_ref().is_some_and(|(lease_namespace, lease_name)| {
            (lease_namespace.as_str(), lease_name.as_str()) == (namespace, name)
        })
    };
    let (kube_namespace, kube_name) = OF_KUBE_SCHEDULER;
    let object = format!("Lease {kube_namespace}/{kube_name}");
    let kube_scheduler =
        held.iter().find(|(name, lease)| (lease.namespace.as_str(), name.as_str()) == OF_KUBE_SCHEDULER);
    if is_ours(kube_namespace, kube_name) {
        if census.schedulers.contains_key(DEFAULT_SCHEDULER) && !ours.serves(DEFAULT_SCHEDULER) {
            report.error(
                object,
                "koord-scheduler runs leader election with the Lease of kube-scheduler: one of both schedules at a time, and the pods of the other wait",
                "give koord-scheduler a Lease of its own: leaderElection.resourceName and resourceNamespace, or --leader-elect-resource-name",
            );
        }
    } else if let Some((_, lease)) = kube_scheduler.filter(|_| ours.serves(DEFAULT_SCHEDULER)) {
        report.error(
            object,
            format!(
                "kube-scheduler leads ({}), and koord-scheduler has a profile {DEFAULT_SCHEDULER} too: both place the same pods, and give out the same resources twice",
                lease.holder
            ),
            "give the profile another schedulerName, or stop kube-scheduler",
        );
    }
    // The original and ours have the same names where nobody has given them others.
    let leaders: Vec<String> = held
        .iter()
        .filter(|(name, lease)| name.contains(KOORD_SCHEDULER) || is_ours(&lease.namespace, name))
        .map(|(name, lease)| format!("{} by {}/{name}", lease.holder, lease.namespace))
        .collect();
    if leaders.len() > 1 {
        report.error(
            "Lease",
            format!(
                "several koord-schedulers lead at once, each with a Lease of its own: {}; where they serve the same schedulerName they place the same pods, and \
                 each gives out CPUs, devices and quotas without the other",
                few(&leaders)
            ),
            "let them use one Lease, so that one of them leads, or remove one installation; two that stay need a schedulerName and nodes of their own",
        );
    }
}
