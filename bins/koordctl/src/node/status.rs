//! The features and inputs of an agent as tables.

use koord_koordlet_state::{Capability, CapabilityState, Input, NodeStatus};

use crate::{screen::Screen, table};

pub(super) fn is_degraded(status: &NodeStatus) -> bool {
    status.capabilities.iter().any(|capability| capability.state == CapabilityState::Degraded)
}

pub(super) fn table(status: &NodeStatus, screen: Screen) -> String {
    let mode = if status.observe_only { ", only observes" } else { "" };
    let head = format!(
        "koordlet {} on {}, since {}; cgroups {} ({}), {} pods{mode}\n",
        status.version, status.node, status.started, status.cgroup_version, status.cgroup_driver, status.pods
    );
    let mut capabilities: Vec<&Capability> = status.capabilities.iter().collect();
    // What does not work comes first.
    capabilities.sort_by_key(|capability| capability.state != CapabilityState::Degraded);
    let header = ["FEATURE", "STATE", "REASON AND REMEDY"].map(str::to_owned).to_vec();
    let rows = capabilities.into_iter().map(row);
    let features: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
    let header = ["INPUT", "LAST"].map(str::to_owned).to_vec();
    let inputs: Vec<Vec<String>> = std::iter::once(header).chain(status.inputs.iter().map(input)).collect();
    format!("{head}\n{}\n{}", table::lines(&features, screen), table::lines(&inputs, screen))
}

fn row(capability: &Capability) -> Vec<String> {
    let words: Vec<&str> = [&capability.reason, &capability.remedy].into_iter().flatten().map(String::as_str).collect();
    vec![capability.feature.clone(), capability.state.to_string(), words.join("; ")]
}

fn input(input: &Input) -> Vec<String> {
    let last = match input.age_seconds {
        Some(age) => format!("{} {} ago", input.event, duration(age)),
        None => format!("not {} yet", input.event),
    };
    vec![input.name.clone(), last]
}

/// An age in the largest unit of which there are at least two.
fn duration(seconds: f64) -> String {
    let units = [("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)];
    let unit = units.into_iter().find(|(_, size)| seconds >= 2.0 * size);
    unit.map_or_else(|| format!("{seconds:.1} s"), |(unit, size)| format!("{:.0} {unit}", (seconds / size).floor()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_in_the_largest_unit() {
        for (seconds, text) in
            [(0.04, "0.0 s"), (119.9, "119.9 s"), (120.0, "2 min"), (7_199.0, "119 min"), (172_800.0, "2 d")]
        {
            assert_eq!(duration(seconds), text);
        }
    }
}
