//! What the webhook of pods does to pods of other schedulers, and to pods that a profile gives to koord-scheduler.

use koord_program::{findings::Report, names::few};

use crate::Situation;

pub(crate) fn look(Situation { world, ours, census, .. }: &Situation<'_>, report: &mut Report) {
    let profiles = world.profiles.iter().filter(|(_, scheduler)| ours.serves(scheduler));
    let profiles: Vec<String> = profiles.map(|(name, _)| name.clone()).collect();
    let has_others = census.schedulers.keys().any(|scheduler| !ours.serves(scheduler));
    for entry in &world.entries {
        let object = format!("MutatingWebhookConfiguration {}, entry {}", entry.configuration, entry.name);
        if !entry.is_strict && !profiles.is_empty() {
            report.warning(
                object,
                format!(
                    "failurePolicy is Ignore: pods that ClusterColocationProfile {} gives to koord-scheduler stay with the scheduler that they name while no \
                     koord-manager answers",
                    few(&profiles)
                ),
                "set failurePolicy: Fail and leave out the namespaces of the system, or write schedulerName into the pods themselves",
            );
        } else if entry.is_strict && has_others {
            report.note(
                object,
                "failurePolicy is Fail: pods of other schedulers cannot be created either while no koord-manager answers",
                "leave their namespaces out by a namespaceSelector, or their pods by matchConditions",
            );
        }
    }
}
