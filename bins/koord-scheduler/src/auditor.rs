//! The flags of the workload auditor.

use std::{collections::BTreeSet, time::Duration};

use clap::{ArgAction, Args};
use koord_program::flags::{count, span, switch, wrong};
use koord_scheduler_runtime::{AuditorSettings, Limits};

const LABELS: &str = "workload-auditor-metric-labels";

/// Labels that metrics of the auditor have anyway, or that Prometheus gives them.
const TAKEN: [&str; 6] = ["priority", "event_type", "outcome", "le", "job", "instance"];

/// Flags of the workload auditor.
#[derive(Clone, Debug, Args)]
pub(crate) struct AuditorFlags {
    /// Audit workloads: measure what happens to every pod and gang until it is scheduled or deleted, and log what is not as it should be.
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true",
          action = ArgAction::Set, value_parser = switch)]
    enable_workload_auditor: bool,
    /// Labels of the auditor's metrics beside priority, each with the label of pods that gives its value, such as
    /// quota_name=quota.scheduling.koordinator.sh/name.
    #[arg(long, default_value = "", value_name = "NAME=LABEL,…")]
    workload_auditor_metric_labels: String,
    /// How long after its victims are gone a pod or gang may wait for the next attempt, before that is logged.
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = span)]
    workload_auditor_victim_reschedule_duration: Duration,
    /// How long victims may take to leave, before that is logged.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = span)]
    workload_auditor_victim_deletion_duration: Duration,
    /// How often a pod or gang may be tried while its victims leave, before that is logged.
    #[arg(long, default_value = "3", value_name = "N", allow_negative_numbers = true, value_parser = count)]
    workload_auditor_victim_deleting_retries: u32,
    /// How long nothing may happen to a pod or gang that waits, before that is logged.
    #[arg(long, default_value = "5m", value_name = "DURATION", value_parser = span)]
    workload_auditor_scheduling_event_interval: Duration,
}

impl AuditorFlags {
    /// How workloads are audited; none where they are not. What is wrong is an error in any case.
    pub(crate) fn check(&self) -> Result<Option<AuditorSettings>, clap::Error> {
        let labels = labels(&self.workload_auditor_metric_labels).map_err(|reason| wrong(LABELS, reason))?;
        let limits = Limits {
            reschedule: self.workload_auditor_victim_reschedule_duration,
            deletion: self.workload_auditor_victim_deletion_duration,
            retries: self.workload_auditor_victim_deleting_retries,
            interval: self.workload_auditor_scheduling_event_interval,
        };
        Ok(self.enable_workload_auditor.then_some(AuditorSettings { labels, limits }))
    }
}

/// Pairs of a label of metrics and one of pods.
fn labels(text: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let parts = pair.split_once('=').map(|(name, label)| (name.trim(), label.trim()));
        let Some((name, label)) = parts.filter(|(name, label)| !name.is_empty() && !label.is_empty()) else {
            let example = "quota_name=quota.scheduling.koordinator.sh/name";
            return Err(format!("{pair:?} must be the name of a metric's label, =, and a label of pods: {example}"));
        };
        let is_name = |(at, letter): (usize, char)| {
            letter == '_' || letter.is_ascii_alphabetic() || at > 0 && letter.is_ascii_digit()
        };
        if !name.char_indices().all(is_name) || name.starts_with("__") {
            return Err(format!("{name:?} is no name of a metric's label: use letters, digits and _, no digit first"));
        }
        if TAKEN.contains(&name) {
            return Err(format!("metrics have a label {name:?} already: use another name for {label:?}"));
        }
        Ok((name.to_owned(), label.to_owned()))
    });
    let pairs: Vec<(String, String)> = pairs.collect::<Result<_, _>>()?;
    let mut names = BTreeSet::new();
    match pairs.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(format!("{name:?} stands there twice: give each label of metrics one label of pods")),
        None => Ok(pairs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_metrics_are_pairs_of_names() {
        let pair = |name: &str, label: &str| (name.to_owned(), label.to_owned());
        assert_eq!(labels(" "), Ok(vec![]));
        assert_eq!(labels("a=b/c, _2 = d=e,"), Ok(vec![pair("a", "b/c"), pair("_2", "d=e")]));
        for (text, reason) in [
            ("quota", "quota_name=quota.scheduling.koordinator.sh/name"),
            ("a=b,=c", "\"=c\" must be"),
            ("a=", "\"a=\" must be"),
            ("2a=b", "no digit first"),
            ("a-b=c", "use letters, digits and _"),
            ("priority=a", "metrics have a label \"priority\" already"),
            ("a=b,a=c", "\"a\" stands there twice"),
        ] {
            let message = labels(text).unwrap_err();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }
}
