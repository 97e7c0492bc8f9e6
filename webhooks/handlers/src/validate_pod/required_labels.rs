//! Labels that pods of some namespaces must have, by a ConfigMap.

use koord_resource::admission::Denial;

use crate::{Ctx, pod::Parts};

/// Label of pods that need none of the labels.
const SKIP: &str = "pod.koordinator.sh/skip-enhanced-validation";

/// Refuses a pod that lacks a label which a rule requires.
pub(super) fn check(pod: &Parts<'_>, namespace: &str, ctx: &Ctx) -> Result<(), Denial> {
    if pod.metadata.labels.get(SKIP) == Some("true") {
        return Ok(());
    }
    let config = ctx.gated.required_labels.read();
    let Some(entry) = config.get(&ctx.settings.required_labels.key()) else { return Ok(()) };
    for rule in &entry.value.0 {
        if rule.namespace_whitelist.iter().any(|exempt| exempt == namespace) {
            continue;
        }
        let missing = |label: &&String| pod.metadata.labels.get(label).is_none();
        let missing: Vec<&str> = rule.required_labels.iter().filter(missing).map(String::as_str).collect();
        match missing[..] {
            [] => {}
            [label] => return Err(Denial::bad_request(format!("required label '{label}' is missing"))),
            ref labels => {
                let labels = labels.join(" ");
                return Err(Denial::bad_request(format!("required labels are missing: [{labels}]")));
            }
        }
    }
    Ok(())
}
