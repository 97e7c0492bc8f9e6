//! Flags that say which metrics are shown, and with which values of their labels.

use std::{collections::BTreeMap, path::PathBuf};

use clap::{ArgAction, Args};
use koord_resource::yaml::parse;
use koord_runtime::metrics::Exposition;

use crate::flags::wrong;

const LABELS: &str = "allow-metric-labels";

/// Flags of the metrics: `#[command(flatten)]` them.
#[derive(Clone, Debug, Args)]
pub struct MetricFlags {
    /// Metrics that are not shown, by their full names.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    disabled_metrics: Vec<String>,
    /// The values that a label of a metric may have; others are shown as unexpected. May be repeated.
    #[arg(long, value_name = "METRIC,LABEL=VALUE,…", action = ArgAction::Append)]
    allow_metric_labels: Vec<String>,
    /// A YAML file of such labels: a map from METRIC,LABEL to VALUE,….
    #[arg(long, value_name = "FILE")]
    allow_metric_labels_manifest: Option<PathBuf>,
}

impl MetricFlags {
    /// What the flags say, without the manifest. An error where a value is malformed.
    pub fn check(&self) -> Result<Exposition, clap::Error> {
        let mut exposition = Exposition::default();
        for name in &self.disabled_metrics {
            let name = name.trim();
            if !name.is_empty() {
                exposition.disable(name);
            }
        }
        for text in &self.allow_metric_labels {
            for pair in pairs(text) {
                let malformed = || wrong(LABELS, format!("{pair:?} must be METRIC,LABEL=VALUE,…"));
                let (key, values) = pair.split_once('=').ok_or_else(malformed)?;
                allow(&mut exposition, key, values).ok_or_else(malformed)?;
            }
        }
        Ok(exposition)
    }

    /// The same with what the manifest says. A manifest that cannot be read is logged and has no effect, as with the components of Kubernetes.
    pub fn with_manifest(&self, mut exposition: Exposition) -> Exposition {
        let Some(file) = &self.allow_metric_labels_manifest else { return exposition };
        let labels = std::fs::read_to_string(file).map_err(anyhow::Error::from);
        let labels = labels.and_then(|text| Ok(serde_json::from_value::<BTreeMap<String, String>>(parse(&text)?)?));
        match labels {
            Ok(labels) => {
                for (key, values) in labels {
                    if allow(&mut exposition, &key, &values).is_none() {
                        tracing::warn!(%key, "--allow-metric-labels-manifest has a key that is no METRIC,LABEL");
                    }
                }
            }
            Err(error) => {
                tracing::warn!(file = %file.display(), "--allow-metric-labels-manifest cannot be used: {error:#}");
            }
        }
        exposition
    }
}

/// The pairs of a flag: one, or several of which each stands in double quotes.
fn pairs(text: &str) -> Vec<String> {
    if text.matches('=').count() <= 1 {
        return vec![text.trim_matches('"').to_owned()];
    }
    let (mut pairs, mut pair, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => pairs.push(std::mem::take(&mut pair)),
            letter => pair.push(letter),
        }
    }
    pairs.push(pair);
    pairs
}

/// Allows these values of a label; none where the key names no label.
fn allow(exposition: &mut Exposition, key: &str, values: &str) -> Option<()> {
    let is_name = |text: &str, others: &str| {
        let is_letter = |letter: char| letter.is_ascii_alphabetic() || others.contains(letter);
        text.starts_with(is_letter) && text.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit())
    };
    let (metric, label) =
        key.split_once(',').filter(|&(metric, label)| is_name(metric, "_:") && is_name(label, "_"))?;
    exposition.allow(metric, label, values.split(','));
    Some(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        flags: MetricFlags,
    }

    fn flags(arguments: &[&str]) -> Result<Exposition, clap::Error> {
        let command = Command::try_parse_from(std::iter::once(&"program").chain(arguments)).unwrap();
        command.flags.check().map(|exposition| command.flags.with_manifest(exposition))
    }

    /// Allows `metric,label` the values.
    fn allowing(labels: &[(&str, &str, &[&str])]) -> Exposition {
        let mut exposition = Exposition::default();
        for (metric, label, values) in labels {
            exposition.allow(metric, label, values.iter().copied());
        }
        exposition
    }

    #[test]
    fn metrics_are_disabled_by_one_flag_or_several() {
        let mut disabled = Exposition::default();
        for name in ["a", "b_seconds", "d"] {
            disabled.disable(name);
        }
        assert_eq!(flags(&["--disabled-metrics=b_seconds, d,", "--disabled-metrics", "a"]).unwrap(), disabled);
        assert_eq!(flags(&[]).unwrap(), Exposition::default());
    }

    #[test]
    fn a_flag_has_one_label_or_several_in_quotes() {
        let one = flags(&["--allow-metric-labels=a,x=1,2", "--allow-metric-labels=a,y=q"]).unwrap();
        assert_eq!(one, allowing(&[("a", "x", &["1", "2"]), ("a", "y", &["q"])]));
        let several = flags(&["--allow-metric-labels", r#""a,x=1,2,3","a,y=q""#]).unwrap();
        assert_eq!(several, allowing(&[("a", "x", &["1", "2", "3"]), ("a", "y", &["q"])]));
    }

    #[test]
    fn labels_may_stand_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("labels.yaml");
        std::fs::write(&file, "a,x: \"1,2\"\nnothing: x\n").unwrap();
        let flag = format!("--allow-metric-labels-manifest={}", file.display());
        assert_eq!(flags(&[&flag]).unwrap(), flags(&["--allow-metric-labels=a,x=1,2"]).unwrap());
        std::fs::write(&file, "- a\n").unwrap();
        assert_eq!(flags(&[&flag]).unwrap(), Exposition::default());
    }

    #[test]
    fn a_wrong_label_says_what_is_expected() {
        for text in ["a,x", "a=1", "1a,x=1", "a,x:=1"] {
            let error = flags(&[&format!("--allow-metric-labels={text}")]).unwrap_err().to_string();
            assert!(error.contains("--allow-metric-labels") && error.contains("METRIC,LABEL=VALUE"), "{error}");
        }
    }
}
