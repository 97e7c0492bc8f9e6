//! Pods of other schedulers that say what koord-scheduler alone honours.

use std::collections::{BTreeMap, BTreeSet};

use koord_program::{findings::Report, names::few};

use crate::Situation;

pub(crate) fn look(Situation { world, ours, .. }: &Situation<'_>, report: &mut Report) {
    let mut ignored = BTreeMap::<&str, (Vec<String>, BTreeSet<&str>)>::new();
    for pod in world.pods.iter().filter(|pod| !ours.serves(&pod.scheduler) && !pod.koordinator_only.is_empty()) {
        let (pods, names) = ignored.entry(pod.scheduler.as_str()).or_default();
        pods.push(pod.key.clone());
        names.extend(pod.koordinator_only.iter().map(String::as_str));
    }
    for (scheduler, (pods, names)) in ignored {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        report.warning(
            format!("Pod {}", few(&pods)),
            format!(
                "{scheduler} places them and ignores what they say for koord-scheduler: {}; they get no CPUs, devices or Reservation by it, wait for no gang \
                 and for no quota",
                few(&names)
            ),
            format!(
                "set schedulerName: {} in the pods or by a ClusterColocationProfile, or remove what has no effect",
                ours.names.first().map_or(crate::KOORD_SCHEDULER, String::as_str)
            ),
        );
    }
}
