//! The result of a run, with the fields of the original's performance harness and finer ones beside them.

use std::{
    collections::BTreeMap,
    fs::File,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow, bail};
use jiff::Timestamp;
use koord_resource::yaml::read_text;
use koord_runtime::key::ObjectKey;
use serde::{Deserialize, Serialize};

use crate::{player::Run, pods::Seen, scenario::Thresholds};

/// How many reasons are listed.
const REASONS_MAX: usize = 5;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    pub(crate) name: String,
    #[serde(rename = "runID")]
    pub(crate) run_id: String,
    pub(crate) timestamp: Timestamp,
    /// The version of this program; that of the scheduler too, where it runs in it.
    pub(crate) koordinator_version: &'static str,
    /// `embedded`, or the URL of the API server.
    pub(crate) api_server: String,
    pub(crate) node_count: usize,
    pub(crate) pod_count: usize,
    pub(crate) throughput_pods_per_sec: f64,
    pub(crate) api_creation_duration_sec: f64,
    pub(crate) total_duration_sec: f64,
    /// By the times that the objects carry, in whole seconds.
    #[serde(rename = "latencyP50Sec")]
    pub(crate) latency_p50_sec: f64,
    #[serde(rename = "latencyP90Sec")]
    pub(crate) latency_p90_sec: f64,
    #[serde(rename = "latencyP99Sec")]
    pub(crate) latency_p99_sec: f64,
    /// By the events of the watch.
    pub(crate) observed: Observed,
    pub(crate) threshold_breached: bool,
    pub(crate) timed_out: bool,
    pub(crate) scheduling_failure_count: usize,
    pub(crate) scheduling_failure_rate: f64,
    #[serde(rename = "gangCompletionP50")]
    pub(crate) gang_completion_p50: Option<f64>,
    #[serde(rename = "gangCompletionP99")]
    pub(crate) gang_completion_p99: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<Failure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) comparison: Option<Comparison>,
}

/// How long pods waited for their nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Observed {
    #[serde(rename = "p50Sec")]
    pub(crate) p50: f64,
    #[serde(rename = "p90Sec")]
    pub(crate) p90: f64,
    #[serde(rename = "p99Sec")]
    pub(crate) p99: f64,
    #[serde(rename = "maxSec")]
    pub(crate) max: f64,
}

/// Why pods have no node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    pub(crate) pods: usize,
    pub(crate) example: String,
    pub(crate) message: String,
}

/// An earlier result, as far as it is compared.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Baseline {
    name: String,
    #[serde(rename = "runID")]
    run_id: String,
    node_count: usize,
    pod_count: usize,
    throughput_pods_per_sec: f64,
    #[serde(rename = "latencyP99Sec")]
    latency_p99_sec: f64,
    observed: Option<Observed>,
}

/// How a result differs from an earlier one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Comparison {
    #[serde(rename = "baselineRunID")]
    pub(crate) baseline_run_id: String,
    pub(crate) baseline_throughput_pods_per_sec: f64,
    #[serde(rename = "baselineP99Sec")]
    pub(crate) baseline_p99_sec: f64,
    /// Negative where it has grown.
    pub(crate) throughput_drop_pct: f64,
    /// Negative where it has fallen; none where there was nothing that could grow.
    #[serde(rename = "p99IncreasePct")]
    pub(crate) p99_increase_pct: Option<f64>,
    pub(crate) breaches: Vec<String>,
}

impl Outcome {
    /// The result of a run that ends now.
    pub fn of(run: &Run, timed_out: bool, api_server: String, timestamp: Timestamp) -> Self {
        let measured = run.measured.lock().clone();
        let pods = run.pods.all();
        let counted = || pods.iter().filter(|(_, seen)| seen.is_measured);
        let pod_count = counted().count();
        let placed = || counted().filter(|(_, seen)| seen.placed.is_some());
        let begin = measured.begin.unwrap_or_else(Instant::now);
        let end = placed().filter_map(|(_, seen)| seen.placed).max().filter(|_| !timed_out);
        let total = end.unwrap_or_else(Instant::now).saturating_duration_since(begin);
        let failed = pod_count - placed().count();
        let by_watch = sorted(placed().filter_map(|(_, seen)| seen.waited()));
        let by_objects = sorted(placed().filter_map(|(_, seen)| seen.waited_by_the_objects()));
        let gangs = sorted(gangs(placed()).into_values());
        let completion = |part: f64| (!gangs.is_empty()).then(|| percentile(&gangs, part));
        Self {
            name: run.scenario.name.clone(),
            run_id: run.id.clone(),
            timestamp,
            koordinator_version: env!("CARGO_PKG_VERSION"),
            api_server,
            node_count: measured.nodes,
            pod_count,
            throughput_pods_per_sec: rounded(per_second(placed().count(), total)),
            api_creation_duration_sec: seconds(measured.creation),
            total_duration_sec: seconds(total),
            latency_p50_sec: percentile(&by_objects, 0.5),
            latency_p90_sec: percentile(&by_objects, 0.9),
            latency_p99_sec: percentile(&by_objects, 0.99),
            observed: Observed {
                p50: percentile(&by_watch, 0.5),
                p90: percentile(&by_watch, 0.9),
                p99: percentile(&by_watch, 0.99),
                max: percentile(&by_watch, 1.0),
            },
            threshold_breached: false,
            timed_out,
            scheduling_failure_count: failed,
            scheduling_failure_rate: if pod_count == 0 { 0.0 } else { rounded(failed as f64 / pod_count as f64) },
            gang_completion_p50: completion(0.5),
            gang_completion_p99: completion(0.99),
            failures: failures(counted().filter(|(_, seen)| seen.placed.is_none()), &run.scenario.scheduler_name),
            comparison: None,
        }
    }

    /// Compares it with an earlier result.
    #[must_use]
    pub fn against(self, baseline: &Baseline, thresholds: Thresholds) -> Self {
        let (before, now) = match &baseline.observed {
            Some(observed) => (observed.p99, self.observed.p99),
            None => (baseline.latency_p99_sec, self.latency_p99_sec),
        };
        let percent = |change: f64, of: f64| (of > 0.0).then(|| rounded(100.0 * change / of));
        let earlier = baseline.throughput_pods_per_sec;
        let drop = percent(earlier - self.throughput_pods_per_sec, earlier).unwrap_or(0.0);
        let increase = percent(now - before, before);
        let mut breaches = Vec::new();
        if let Some(most) = thresholds.throughput_drop_pct.filter(|most| drop > *most) {
            breaches.push(format!("the throughput fell by {drop:.1} %, more than {most} %"));
        }
        if let (Some(most), Some(increase)) = (thresholds.p99_increase_pct, increase)
            && increase > most
        {
            breaches.push(format!("the 99th percentile of the wait grew by {increase:.1} %, more than {most} %"));
        }
        let comparison = Comparison {
            baseline_run_id: baseline.run_id.clone(),
            baseline_throughput_pods_per_sec: earlier,
            baseline_p99_sec: before,
            throughput_drop_pct: drop,
            p99_increase_pct: increase,
            breaches,
        };
        Self { threshold_breached: !comparison.breaches.is_empty(), comparison: Some(comparison), ..self }
    }

    /// Whether it is as it should be.
    pub fn is_good(&self) -> bool {
        !self.timed_out && !self.threshold_breached && self.scheduling_failure_count == 0
    }
}

impl Baseline {
    /// Reads an earlier result.
    pub fn of_file(file: &Path) -> Result<Self> {
        let cannot = || format!("--baseline {} cannot be read", file.display());
        let text = File::open(file).and_then(read_text).with_context(cannot)?;
        let wrong = |error| anyhow!("--baseline {} is no result of koordctl bench: {error}", file.display());
        serde_json::from_str(&text).map_err(wrong)
    }

    /// Refuses a result of something else.
    pub fn is_of(&self, scenario: &str) -> Result<()> {
        if self.name != scenario {
            bail!("--baseline is a result of scenario {}, not of {scenario}; they cannot be compared", self.name);
        }
        Ok(())
    }

    /// Refuses a result of another size.
    pub fn is_alike(&self, outcome: &Outcome) -> Result<()> {
        let (nodes, pods) = (outcome.node_count, outcome.pod_count);
        if (self.node_count, self.pod_count) != (nodes, pods) {
            let (before, of) = (self.node_count, self.pod_count);
            bail!("--baseline is a result of {of} pods on {before} nodes, not of {pods} on {nodes}; measure it anew");
        }
        Ok(())
    }
}

/// The time from the first event of a gang's pods to the node of the last, of gangs that are complete.
fn gangs<'p>(pods: impl Iterator<Item = (&'p ObjectKey, &'p Seen)>) -> BTreeMap<Arc<str>, Duration> {
    let mut spans: BTreeMap<Arc<str>, (Instant, Instant)> = BTreeMap::new();
    for (_, seen) in pods {
        if let (Some(gang), Some(came), Some(placed)) = (&seen.gang, seen.came, seen.placed) {
            let span = spans.entry(Arc::clone(gang)).or_insert((came, placed));
            *span = (span.0.min(came), span.1.max(placed));
        }
    }
    spans.into_iter().map(|(gang, (came, placed))| (gang, placed.saturating_duration_since(came))).collect()
}

/// Why pods have no node, the most frequent reason first.
fn failures<'p>(pods: impl Iterator<Item = (&'p ObjectKey, &'p Seen)>, scheduler: &str) -> Vec<Failure> {
    let mut by_message: BTreeMap<String, Failure> = BTreeMap::new();
    for (key, seen) in pods {
        let untried = || format!("nothing was said of it: is there a scheduler with the name {scheduler}?");
        let message = seen.message.clone().unwrap_or_else(untried);
        let known = by_message.entry(message.clone());
        known.or_insert_with(|| Failure { pods: 0, example: key.to_string(), message }).pods += 1;
    }
    let mut failures: Vec<Failure> = by_message.into_values().collect();
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.pods));
    failures.truncate(REASONS_MAX);
    failures
}

fn sorted(spans: impl Iterator<Item = Duration>) -> Vec<Duration> {
    let mut spans: Vec<Duration> = spans.collect();
    spans.sort_unstable();
    spans
}

/// The value at the whole part of so many of all, less one, as the original takes it.
fn percentile(sorted: &[Duration], part: f64) -> f64 {
    let place = (sorted.len() as f64 * part) as usize;
    sorted.get(place.saturating_sub(1)).map_or(0.0, |span| seconds(*span))
}

fn per_second(count: usize, span: Duration) -> f64 {
    if span.is_zero() { 0.0 } else { count as f64 / span.as_secs_f64() }
}

/// Seconds, to the millionth.
fn seconds(span: Duration) -> f64 {
    rounded(span.as_secs_f64())
}

fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_taken_as_the_original_takes_them() {
        let spans: Vec<Duration> = (1..=10).map(Duration::from_secs).collect();
        let at = |part: f64| percentile(&spans, part).to_string();
        assert_eq!([at(0.5), at(0.9), at(0.99), at(1.0), at(0.0)], ["5", "9", "9", "10", "1"]);
        assert_eq!(percentile(&[], 0.5).to_string(), "0");
    }

    fn outcome(throughput: f64, p99: f64) -> Outcome {
        Outcome {
            name: "s".to_owned(),
            run_id: "r".to_owned(),
            timestamp: Timestamp::UNIX_EPOCH,
            koordinator_version: "0",
            api_server: "embedded".to_owned(),
            node_count: 1,
            pod_count: 2,
            throughput_pods_per_sec: throughput,
            api_creation_duration_sec: 1.0,
            total_duration_sec: 1.0,
            latency_p50_sec: 0.0,
            latency_p90_sec: 0.0,
            latency_p99_sec: 1.0,
            observed: Observed { p99, ..Observed::default() },
            threshold_breached: false,
            timed_out: false,
            scheduling_failure_count: 0,
            scheduling_failure_rate: 0.0,
            gang_completion_p50: None,
            gang_completion_p99: None,
            failures: Vec::new(),
            comparison: None,
        }
    }

    #[test]
    fn a_result_is_worse_where_it_crosses_a_threshold() {
        let baseline: Baseline = serde_json::from_value(serde_json::to_value(outcome(100.0, 2.0)).unwrap()).unwrap();
        let thresholds = Thresholds { throughput_drop_pct: Some(10.0), p99_increase_pct: Some(20.0) };
        let breaches = |throughput: f64, p99: f64| {
            let outcome = outcome(throughput, p99).against(&baseline, thresholds);
            let comparison = outcome.comparison.clone().unwrap();
            assert_eq!(
                (outcome.threshold_breached, outcome.is_good()),
                (!comparison.breaches.is_empty(), comparison.breaches.is_empty())
            );
            comparison.breaches
        };
        assert!(breaches(90.0, 2.4).is_empty(), "as much as is allowed");
        assert!(breaches(200.0, 1.0).is_empty());
        assert_eq!(breaches(80.0, 1.0), ["the throughput fell by 20.0 %, more than 10 %"]);
        assert_eq!(breaches(80.0, 3.0)[1], "the 99th percentile of the wait grew by 50.0 %, more than 20 %");
        let mut coarse = baseline.clone();
        coarse.observed = None;
        let compared = outcome(100.0, 9.0).against(&coarse, thresholds);
        assert!(!compared.threshold_breached, "a result of the original is compared in whole seconds");
        assert!(baseline.is_of("t").unwrap_err().to_string().contains("of scenario s, not of t"));
        let larger = Outcome { node_count: 5, ..outcome(1.0, 1.0) };
        assert!(baseline.is_alike(&larger).unwrap_err().to_string().contains("not of 2 on 5; measure it anew"));
    }
}
