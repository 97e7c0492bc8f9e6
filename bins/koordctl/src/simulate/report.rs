//! The report: one HTML file with plots that needs no other file, no network and no script.

mod chart;
mod nodes;

use koord_scheduler_simulator::outcome::{Sample, Served};

use self::chart::{Chart, Line, bars};
use super::{
    Played, Run,
    summary::{compared, percent, reasons, seconds, shown},
};
use crate::html::{self, escaped, section, table};

pub(super) fn page(played: &Played, runs: &[Run]) -> String {
    let Played { nodes, pods, seed } = played;
    let names: Vec<&str> = runs.iter().map(|run| run.config.as_str()).collect();
    let title = format!("Simulation of {pods} pods on {nodes} nodes");
    let figures = section("Figures", "", &table("What came of it", &compared(runs)));
    let sections = [
        figures,
        utilisation(runs),
        fragmentation(runs),
        waiting(runs),
        nodes::section(runs),
        fairness(runs),
        refused(runs),
    ];
    let about = format!("Seed {seed}. Configurations: {}.", escaped(&names.join(", ")));
    html::page(&title, &about, &sections.concat())
}

/// One line for each run.
fn lines(runs: &[Run], point: impl Fn(&Sample) -> Option<(f64, f64)>) -> Vec<Line> {
    let of =
        |run: &Run| Line { name: run.config.clone(), points: run.outcome.samples.iter().filter_map(&point).collect() };
    runs.iter().map(of).collect()
}

/// The first resources of all runs, by which they are compared.
fn resources(runs: &[Run]) -> Vec<&str> {
    /// More curves than these nobody reads.
    const MAX: usize = 6;
    let first = runs.first().map(|run| run.outcome.resources.as_slice()).unwrap_or_default();
    shown(first).take(MAX).collect()
}

fn utilisation(runs: &[Run]) -> String {
    let chart = |name: &&str| {
        let lines = lines(runs, |sample| Some((sample.at_s, *sample.requested.get(*name)?)));
        Chart {
            title: format!("{name} requested"),
            x: "time",
            y: "share of all",
            lines,
            show_x: seconds,
            show_y: short,
        }
        .figure()
    };
    let charts: String = resources(runs).iter().map(chart).collect();
    section("Utilisation over time", "What pods request, as a share of what all nodes offer.", &charts)
}

fn fragmentation(runs: &[Run]) -> String {
    let has_gpus = runs.iter().all(|run| run.outcome.samples.iter().all(|sample| sample.gpu_demand.is_some()));
    let (x, show_x): (_, fn(f64) -> String) =
        if has_gpus { ("GPUs that were requested so far", short) } else { ("pods that have come", whole) };
    let chart = |name: &str| {
        let at = |sample: &Sample| sample.gpu_demand.filter(|_| has_gpus).unwrap_or(sample.arrived as f64);
        let lines = lines(runs, |sample| Some((at(sample), *sample.fragmented.get(name)?)));
        Chart { title: format!("{name} free and of no use"), x, y: "share of all", lines, show_x, show_y: short }
            .figure()
    };
    let names = resources(runs);
    let names = if has_gpus { vec!["gpus"] } else { names };
    let charts: String = names.into_iter().map(chart).collect();
    let words = "What is free on nodes that have no place for the pods that come, and what is left of GPUs that are too small for \
                 them: the mean over the most frequent kinds of pods.";
    section("Fragmentation", words, &charts)
}

fn waiting(runs: &[Run]) -> String {
    let lines = lines(runs, |sample| Some((sample.at_s, sample.waiting as f64)));
    let chart =
        Chart { title: "Pods that wait".to_owned(), x: "time", y: "pods", lines, show_x: seconds, show_y: whole };
    let first = runs.first().map(|run| run.outcome.waits.histogram.as_slice()).unwrap_or_default();
    let mut labels: Vec<String> = first.iter().filter_map(|bucket| bucket.up_to_s).map(up_to).collect();
    labels.push("longer".to_owned());
    labels.push("still waits".to_owned());
    let counts = |run: &Run| {
        let placed = run.outcome.waits.histogram.iter().map(|bucket| bucket.pods);
        (run.config.clone(), placed.chain([run.outcome.pods.waiting]).collect::<Vec<usize>>())
    };
    let histogram = bars("How long pods waited for their node", &labels, &runs.iter().map(counts).collect::<Vec<_>>());
    section("Waiting", "", &(chart.figure() + &histogram))
}

fn up_to(bound: f64) -> String {
    match bound {
        0.0 => "at once".to_owned(),
        bound if bound < 60.0 => format!("≤ {bound} s"),
        bound if bound < 3600.0 => format!("≤ {} min", bound / 60.0),
        bound => format!("≤ {} h", bound / 3600.0),
    }
}

/// A share in percent, without zeros at its end.
fn short(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

fn fairness(runs: &[Run]) -> String {
    let mut text = String::new();
    for (kind, of) in [
        ("Namespace", (|run| &run.outcome.fairness.namespaces) as fn(&Run) -> &Vec<Served>),
        ("Quota", |run| &run.outcome.fairness.quotas),
    ] {
        let Some(owners) = runs.first().map(of).filter(|owners| !owners.is_empty()) else { continue };
        let head = [kind, "Pods", "Demand"].map(str::to_owned).into_iter();
        let head = head.chain(runs.iter().map(|run| format!("Served: {}", run.config))).collect();
        let row = |owner: &Served| {
            let served = runs.iter().map(|run| {
                let known = of(run).iter().find(|served| served.name == owner.name);
                known.map_or_else(|| "-".to_owned(), |known| percent(known.served))
            });
            [owner.name.clone(), owner.pods.to_string(), percent(owner.demand)].into_iter().chain(served).collect()
        };
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(owners.iter().map(row)).collect();
        text += &table(&format!("What was served, by {}", kind.to_lowercase()), &rows);
    }
    let words = "A pod counts as the largest share of any resource of all nodes that it requests; served is the part of that demand \
                 that got a node.";
    section("Fairness", words, &text)
}

fn refused(runs: &[Run]) -> String {
    let of = |run: &Run| {
        let rows = reasons(run);
        let title = format!("Why pods wait at the end: {}", run.config);
        if rows.len() > 1 { table(&title, &rows) } else { format!("<p>{}: no pod waits.</p>\n", escaped(&run.config)) }
    };
    section("Pods that wait", "", &runs.iter().map(of).collect::<String>())
}
