//! A result for people.

use koord_program::{screen::Screen, table};

use crate::{
    result::{Failure, Outcome},
    scenario::Scenario,
};

/// The result as rows.
pub fn text(outcome: &Outcome, scenario: &Scenario, qps: u32, screen: Screen) -> String {
    let Outcome { name, pod_count, node_count, api_server, .. } = outcome;
    let place = if api_server == "embedded" { "the embedded API server" } else { api_server };
    let mut text = format!("{name}: {pod_count} pods on {node_count} nodes, {place}\n\n");
    text += &table::lines(&rows(outcome, qps), screen);
    if qps > 0 && is_held_up(outcome, qps) {
        let limited =
            format!("Pods were placed as fast as they came, {qps} requests a second: --qps 0 lifts that limit.");
        text = format!("{text}\n{}\n", screen.wrapped(&limited, "", "").trim_end());
    }
    if !outcome.failures.is_empty() {
        let head = ["PODS", "EXAMPLE", "WHY"].map(str::to_owned).to_vec();
        let row = |failure: &Failure| vec![failure.pods.to_string(), failure.example.clone(), failure.message.clone()];
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(outcome.failures.iter().map(row)).collect();
        text = format!("{text}\nPods without a node:\n{}", table::lines(&rows, screen));
    }
    if outcome.timed_out {
        text = format!("{text}\nIt was not done within {} s.\n", scenario.timeout().as_secs());
    }
    for breach in outcome.comparison.iter().flat_map(|comparison| &comparison.breaches) {
        text = format!("{text}\nWorse than before: {breach}\n");
    }
    text
}

/// Whether the pods came no faster than they were placed.
fn is_held_up(outcome: &Outcome, qps: u32) -> bool {
    outcome.throughput_pods_per_sec > 0.8 * f64::from(qps) && outcome.scheduling_failure_count == 0
}

fn rows(outcome: &Outcome, qps: u32) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut say = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    let limit = if qps > 0 { format!(", at most {qps} requests a second") } else { String::new() };
    say("throughput", format!("{:.1} pods/s", outcome.throughput_pods_per_sec));
    say("from the first pod to the last node", span(outcome.total_duration_sec));
    say("of that, creating the pods", format!("{}{limit}", span(outcome.api_creation_duration_sec)));
    let observed = outcome.observed;
    let spans = [("median", observed.p50), ("90 %", observed.p90), ("99 %", observed.p99)];
    for (name, value) in spans.into_iter().chain([("longest", observed.max)]) {
        say(&format!("wait for a node, {name}"), span(value));
    }
    if let (Some(half), Some(most)) = (outcome.gang_completion_p50, outcome.gang_completion_p99) {
        say("gang complete, median", span(half));
        say("gang complete, 99 %", span(most));
    }
    say("pods without a node", outcome.scheduling_failure_count.to_string());
    if let Some(comparison) = &outcome.comparison {
        let change = |percent: f64| format!("{}{:.1} %", if percent > 0.0 { "+" } else { "" }, percent + 0.0);
        let before = comparison.baseline_throughput_pods_per_sec;
        say("throughput before", format!("{before:.1} pods/s, now {}", change(-comparison.throughput_drop_pct)));
        let grown = comparison.p99_increase_pct.map(|percent| format!(", now {}", change(percent)));
        let before = span(comparison.baseline_p99_sec);
        say("wait for a node, 99 %, before", format!("{before}{}", grown.unwrap_or_default()));
    }
    rows
}

/// Seconds, or less where that reads better.
fn span(seconds: f64) -> String {
    if seconds > 0.0 && seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_the_unit_that_reads_best() {
        assert_eq!([0.0, 0.0042, 0.9, 12.345].map(span), ["0.00 s", "4.2 ms", "900.0 ms", "12.35 s"]);
    }
}
