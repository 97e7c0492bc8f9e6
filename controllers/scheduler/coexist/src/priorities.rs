//! Priorities of other schedulers' pods: bands of Koordinator that they fall into, and evictions across schedulers.

use koord_program::findings::{Report, Severity};
use koord_types::priority::{PRIORITY_CLASS_LABEL, PriorityClass};

use crate::Situation;

pub(crate) fn look(situation: &Situation<'_>, report: &mut Report) {
    bands(situation, report);
    evictions(situation, report);
}

fn bands(Situation { world, ours, .. }: &Situation<'_>, report: &mut Report) {
    for (name, value) in &world.classes {
        let Some(class) = PriorityClass::of_priority(*value).filter(|_| PriorityClass::named(name).is_none()) else {
            continue;
        };
        let pods = world.pods.iter().filter(|pod| !ours.serves(&pod.scheduler) && pod.priority_class == *name).count();
        let band = class.band();
        report.add(
            if pods > 0 { Severity::Warning } else { Severity::Note },
            format!("PriorityClass {name}"),
            format!(
                "its value {value} is in the band {}–{} of {class}: its pods count as {class} on nodes and in colocation, {pods} of other schedulers among them",
                band.start(),
                band.end()
            ),
            format!("give the class a value outside of Koordinator's bands, or its pods the label {PRIORITY_CLASS_LABEL} with the class that is meant"),
        );
    }
}

/// koord-scheduler evicts no pod of another scheduler; others do not hold it alike.
fn evictions(Situation { world, ours, census, .. }: &Situation<'_>, report: &mut Report) {
    let is_shared = |node: &str| census.shared.contains_key(node);
    let of_ours = world.pods.iter().filter(|pod| ours.serves(&pod.scheduler));
    let lowest = of_ours.filter(|pod| pod.node.as_deref().is_some_and(is_shared)).map(|pod| pod.priority).min();
    let may_evict = world.pods.iter().filter(|pod| {
        !ours.serves(&pod.scheduler)
            && !pod.is_daemon
            && !pod.never_preempts
            && lowest.is_some_and(|low| pod.priority > low)
    });
    let Some((highest, lowest)) = may_evict.map(|pod| pod.priority).max().zip(lowest) else { return };
    report.note(
        "Pod",
        format!(
            "pods of other schedulers have priorities up to {highest}, and pods of koord-scheduler on shared nodes have {lowest} and more: other schedulers may evict these, \
             without regard to gangs, Reservations and quotas"
        ),
        "give pods of other schedulers a PriorityClass with preemptionPolicy: Never, or each scheduler nodes of its own",
    );
}
