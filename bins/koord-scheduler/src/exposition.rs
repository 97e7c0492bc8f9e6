//! Which metrics are shown, and with which values of their labels.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use clap::{ArgAction, Args};
use koord_program::flags::wrong;
use koord_resource::yaml::parse;

const LABELS: &str = "allow-metric-labels";
/// What stands in the place of a value that is not allowed.
const UNEXPECTED: &str = "unexpected";
/// The content type of pages of metrics begins so.
const METRICS: &str = "text/plain; version=";

/// Flags of the metrics.
#[derive(Clone, Debug, Args)]
pub(crate) struct MetricFlags {
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

/// What of the metrics is shown. By default everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exposition {
    disabled: BTreeSet<String>,
    /// By metric and label.
    allowed: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl MetricFlags {
    /// What the flags say, without the manifest.
    pub(crate) fn check(&self) -> Result<Exposition, clap::Error> {
        let disabled = self.disabled_metrics.iter().map(|name| name.trim().to_owned());
        let mut exposition =
            Exposition { disabled: disabled.filter(|name| !name.is_empty()).collect(), ..Exposition::default() };
        for text in &self.allow_metric_labels {
            for pair in pairs(text) {
                let malformed = || wrong(LABELS, format!("{pair:?} must be METRIC,LABEL=VALUE,…"));
                let (key, values) = pair.split_once('=').ok_or_else(malformed)?;
                exposition.allow(key, values).ok_or_else(malformed)?;
            }
        }
        Ok(exposition)
    }

    /// The file with further labels.
    pub(crate) fn manifest(&self) -> Option<&Path> {
        self.allow_metric_labels_manifest.as_deref()
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

impl Exposition {
    /// Adds what a file says. One that cannot be read has no effect, as in the original.
    pub(crate) fn with_manifest(mut self, file: Option<&Path>) -> Self {
        let Some(file) = file else { return self };
        let labels = std::fs::read_to_string(file).map_err(anyhow::Error::from);
        let labels = labels.and_then(|text| Ok(serde_json::from_value::<BTreeMap<String, String>>(parse(&text)?)?));
        match labels {
            Ok(labels) => {
                for (key, values) in labels {
                    if self.allow(&key, &values).is_none() {
                        tracing::warn!(%key, "--allow-metric-labels-manifest has a key that is no METRIC,LABEL");
                    }
                }
            }
            Err(error) => {
                tracing::warn!(file = %file.display(), "--allow-metric-labels-manifest cannot be used: {error:#}");
            }
        }
        self
    }

    /// Allows these values of a label; none where the key names no label.
    fn allow(&mut self, key: &str, values: &str) -> Option<()> {
        let is_name = |text: &str, others: &str| {
            let is_letter = |letter: char| letter.is_ascii_alphabetic() || others.contains(letter);
            text.starts_with(is_letter) && text.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit())
        };
        let (metric, label) =
            key.split_once(',').filter(|&(metric, label)| is_name(metric, "_:") && is_name(label, "_"))?;
        let values = values.split(',').map(str::to_owned).collect();
        self.allowed.entry(metric.to_owned()).or_default().insert(label.to_owned(), values);
        Some(())
    }

    /// Whether all metrics are shown as they are.
    pub(crate) fn is_everything(&self) -> bool {
        self.disabled.is_empty() && self.allowed.is_empty()
    }

    /// The same routes; pages of metrics show what is to be shown.
    pub(crate) fn over(&self, router: Router) -> Router {
        if self.is_everything() {
            return router;
        }
        router.layer(middleware::from_fn_with_state(Arc::new(self.clone()), show))
    }

    /// What is shown of a page.
    fn page(&self, text: &str) -> String {
        let mut page = String::new();
        let mut family = Family::default();
        for line in text.lines() {
            let name = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE "));
            let Some(name) = name.map(|rest| rest.split(' ').next().unwrap_or_default()) else {
                family.add(line);
                continue;
            };
            if name != family.name {
                family.end(&mut page);
                let allowed = self.allowed.get(name).cloned().unwrap_or_default();
                family = Family {
                    name: name.to_owned(),
                    allowed,
                    is_shown: !self.disabled.contains(name),
                    ..Family::default()
                };
            }
            family.head.push_str(line);
            family.head.push('\n');
        }
        family.end(&mut page);
        page
    }
}

/// The lines of one metric.
#[derive(Default)]
struct Family {
    name: String,
    is_shown: bool,
    allowed: BTreeMap<String, BTreeSet<String>>,
    head: String,
    /// Series and their values, in the order of the page. Values of series that become one are added.
    series: Vec<(String, String)>,
    places: BTreeMap<String, usize>,
}

impl Family {
    fn add(&mut self, line: &str) {
        let Some((series, value)) = line.rsplit_once(' ') else { return };
        let series = self.constrained(series);
        let Some(place) = self.places.get(&series).copied() else {
            self.places.insert(series.clone(), self.series.len());
            self.series.push((series, value.to_owned()));
            return;
        };
        let (_, sum) = &mut self.series[place];
        if let (Ok(known), Ok(value)) = (sum.parse::<f64>(), value.parse::<f64>()) {
            *sum = (known + value).to_string();
        }
    }

    /// A series whose labels have allowed values alone.
    fn constrained(&self, series: &str) -> String {
        let labels = series.split_once('{').and_then(|(name, labels)| Some((name, labels.strip_suffix('}')?)));
        let Some((name, mut rest)) = labels.filter(|_| !self.allowed.is_empty()) else { return series.to_owned() };
        let mut text = format!("{name}{{");
        while let Some((label, after)) = rest.split_once("=\"") {
            let Some(end) = end_of_text(after) else { return series.to_owned() };
            let (value, after) = after.split_at(end);
            let known = self.allowed.get(label.trim_start_matches(','));
            let value = if known.is_none_or(|known| known.contains(value)) { value } else { UNEXPECTED };
            text.extend([label, "=\"", value, "\""]);
            rest = &after[1..];
        }
        text.push('}');
        text
    }

    fn end(&mut self, page: &mut String) {
        if !self.is_shown {
            return;
        }
        page.push_str(&self.head);
        for (series, value) in &self.series {
            page.extend([series.as_str(), " ", value.as_str(), "\n"]);
        }
    }
}

/// Where a text in quotes ends: at the first quote without a backslash before it.
fn end_of_text(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

async fn show(State(exposition): State<Arc<Exposition>>, request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    let content_type = answer.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !content_type.is_some_and(|content_type| content_type.starts_with(METRICS)) {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, Body::from(exposition.page(&String::from_utf8_lossy(&bytes))))
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
        command.flags.check().map(|exposition| exposition.with_manifest(command.flags.manifest()))
    }

    const PAGE: &str = "# HELP a Help.\n# TYPE a counter\na{x=\"1\",y=\"q\\\"{, }\"} 2\na{x=\"2\",y=\"q\"} 3\na{x=\"3\",y=\"q\"} 4.5\n\
        # HELP b_seconds Help.\n# TYPE b_seconds histogram\nb_seconds_bucket{le=\"+Inf\"} 1\nb_seconds_sum 0.5\nb_seconds_count 1\n\
        # TYPE c gauge\nc 7\n";

    #[test]
    fn disabled_metrics_are_not_shown() {
        assert_eq!(Exposition::default().page(PAGE), PAGE);
        let page = flags(&["--disabled-metrics=b_seconds,d", "--disabled-metrics", "a"]).unwrap().page(PAGE);
        assert_eq!(page, "# TYPE c gauge\nc 7\n");
    }

    #[test]
    fn values_that_are_not_allowed_are_one() {
        let page = flags(&["--allow-metric-labels=a,x=1"]).unwrap().page(PAGE);
        let shown = "a{x=\"1\",y=\"q\\\"{, }\"} 2\na{x=\"unexpected\",y=\"q\"} 7.5\n";
        assert!(page.contains(shown) && page.ends_with("b_seconds_count 1\n# TYPE c gauge\nc 7\n"), "{page}");
        let both = flags(&["--allow-metric-labels", r#""a,x=1,2,3","a,y=q""#]).unwrap().page(PAGE);
        assert!(both.contains("a{x=\"1\",y=\"unexpected\"} 2\na{x=\"2\",y=\"q\"} 3\n"), "{both}");
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
