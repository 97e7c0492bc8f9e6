//! What came of simulations, for people: configurations side by side, and why pods wait.

use std::path::Path;

use koord_scheduler_simulator::outcome::{Placement, Served, Utilisation};

use super::{Played, Run};
use crate::{screen::Screen, table};

/// More pods are not listed one by one.
const LISTED_MAX: usize = 20;

pub(super) fn text(played: &Played, runs: &[Run], report: Option<&Path>, screen: Screen) -> String {
    let Played { nodes, pods, seed } = played;
    let mut parts = vec![format!("{pods} pods on {nodes} nodes, seed {seed}\n"), table::lines(&compared(runs), screen)];
    for run in runs {
        let of = if runs.len() > 1 { format!(" with {}", run.config) } else { String::new() };
        let tables = [("Pods wait", reasons(run)), ("Pods were placed", placements(&run.outcome.placements))];
        for (title, rows) in tables.into_iter().filter(|(_, rows)| rows.len() > 1) {
            parts.push(format!("{title}{of}:\n{}", table::lines(&rows, screen)));
        }
    }
    parts.extend(report.map(|file| format!("report: {}\n", file.display())));
    parts.join("\n")
}

/// One row for each figure, and one column for each configuration.
pub(super) fn compared(runs: &[Run]) -> Vec<Vec<String>> {
    let mut rows = vec![head(runs)];
    let mut row = |name: &str, value: &dyn Fn(&Run) -> String| {
        rows.push(std::iter::once(name.to_owned()).chain(runs.iter().map(value)).collect());
    };
    row("pods placed", &|run| run.outcome.pods.placed.to_string());
    row("pods that wait at the end", &|run| run.outcome.pods.waiting.to_string());
    for (name, count) in [
        ("pods that have ended", (|run| run.outcome.pods.ended) as fn(&Run) -> usize),
        ("pods that were evicted", |run| run.outcome.pods.evicted),
    ] {
        if runs.iter().any(|run| count(run) > 0) {
            row(name, &|run| count(run).to_string());
        }
    }
    let resources = runs.first().map(|run| run.outcome.resources.as_slice()).unwrap_or_default();
    for name in shown(resources) {
        let of = |run: &Run, value: fn(&Utilisation) -> Option<f64>| {
            let known = run.outcome.resources.iter().find(|resource| resource.name == name);
            known.and_then(value).map_or_else(|| "-".to_owned(), percent)
        };
        row(&format!("{name} requested at the end"), &|run| of(run, |resource| Some(resource.requested)));
        row(&format!("{name} requested on average"), &|run| of(run, |resource| Some(resource.mean)));
        if resources.iter().any(|resource| resource.name == name && resource.fragmented.is_some()) {
            row(&format!("{name} free and of no use"), &|run| of(run, |resource| resource.fragmented));
        }
    }
    if runs.iter().any(|run| run.outcome.fairness.namespaces.len() > 1) {
        row("fairness of namespaces (Jain)", &|run| format!("{:.3}", run.outcome.fairness.index));
    }
    for (kind, of) in [
        ("namespace", (|run| &run.outcome.fairness.namespaces) as fn(&Run) -> &Vec<Served>),
        ("quota", |run| &run.outcome.fairness.quotas),
    ] {
        let owners = runs.first().map(of).filter(|owners| owners.len() > usize::from(kind == "namespace"));
        for owner in owners.into_iter().flatten().take(LISTED_MAX) {
            row(&format!("{kind} {} served", owner.name), &|run| {
                let served = of(run).iter().find(|served| served.name == owner.name);
                served.map_or_else(|| "-".to_owned(), |served| percent(served.served))
            });
        }
    }
    row("wait of placed pods, median", &|run| seconds(run.outcome.waits.p50_s));
    row("wait of placed pods, 99 %", &|run| seconds(run.outcome.waits.p99_s));
    row("wait of placed pods, longest", &|run| seconds(run.outcome.waits.max_s));
    row("attempts", &|run| run.outcome.decisions.attempts.to_string());
    row("attempts a second", &|run| format!("{:.0}", run.per_second()));
    row("simulated time", &|run| seconds(run.outcome.lasted_s));
    rows
}

/// The names of resources; those that stand for GPUs are left out where whole GPUs are counted.
pub(super) fn shown(resources: &[Utilisation]) -> impl Iterator<Item = &str> {
    let has_gpus = resources.iter().any(|resource| resource.name == "gpus");
    let names = resources.iter().map(|resource| resource.name.as_str());
    names.filter(move |name| !has_gpus || *name == "gpus" || !name.contains("gpu"))
}

fn head(runs: &[Run]) -> Vec<String> {
    std::iter::once(String::new()).chain(runs.iter().map(|run| run.config.clone())).collect()
}

pub(super) fn reasons(run: &Run) -> Vec<Vec<String>> {
    let head = ["PODS", "REFUSED BY", "EXAMPLE", "WHY"].map(str::to_owned).to_vec();
    let row = |reason: &koord_scheduler_simulator::outcome::Reason| {
        let plugins = if reason.plugins.is_empty() { "-".to_owned() } else { reason.plugins.join(", ") };
        vec![reason.pods.to_string(), plugins, reason.example.clone(), reason.reason.clone()]
    };
    std::iter::once(head).chain(run.outcome.reasons.iter().take(LISTED_MAX).map(row)).collect()
}

fn placements(placements: &[Placement]) -> Vec<Vec<String>> {
    let head = ["POD", "NODE", "CAME AT", "WAITED"].map(str::to_owned).to_vec();
    let row = |placement: &Placement| {
        let (node, at) = (placement.node.clone()?, placement.placed_s?);
        Some(vec![placement.pod.clone(), node, seconds(placement.arrived_s), seconds(at - placement.arrived_s)])
    };
    let listed = if placements.len() > LISTED_MAX { &[][..] } else { placements };
    std::iter::once(head).chain(listed.iter().filter_map(row)).collect()
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// A span, in the unit that reads best.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        0.0 => "0".to_owned(),
        short if short < 120.0 => format!("{} s", (short * 100.0).round() / 100.0),
        medium if medium < 7200.0 => format!("{:.1} min", medium / 60.0),
        long if long < 172_800.0 => format!("{:.1} h", long / 3600.0),
        days => format!("{:.1} d", days / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_the_unit_that_reads_best() {
        let spans = [0.0, 0.014, 90.0, 600.0, 9000.0, 864_000.0].map(seconds);
        assert_eq!(spans, ["0", "0.01 s", "90 s", "10.0 min", "2.5 h", "10.0 d"]);
        assert_eq!(percent(0.953_951), "95.40 %");
    }
}
