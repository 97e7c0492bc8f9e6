//! The text form of metrics as families with sorted series.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{case::MetricsWanted, pattern::matches};

/// Labels and value of each series, by its name in the text.
type Series<'a> = BTreeMap<&'a str, Vec<(Map<String, Value>, f64)>>;

/// The families of a text that a case records: type, buckets of histograms, series by labels. Histograms have no values.
pub(crate) fn families(text: &str, wanted: &MetricsWanted) -> Value {
    let (mut types, mut series) = (BTreeMap::new(), Series::new());
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
            types.insert(name, kind);
        } else if let Some((name, labels, value)) = sample(line) {
            series.entry(name).or_default().push((labels, value));
        }
    }
    let mut families = Map::new();
    let is_wanted = |name: &str| match &wanted.only {
        Some(only) => only.iter().any(|pattern| matches(pattern, name)),
        None => name.starts_with("koordlet_"),
    };
    for (name, kind) in types.into_iter().filter(|(name, _)| is_wanted(name)) {
        let of = |name: &str| series.get(name).cloned().unwrap_or_default();
        let mut family = json!({"type": kind});
        let mut shown: Vec<(String, Value)> = if kind == "histogram" {
            family["buckets"] = json!(buckets(&of(&format!("{name}_bucket"))));
            of(&format!("{name}_count"))
                .into_iter()
                .map(|(labels, _)| (sort_key(&labels), json!({"labels": labels})))
                .collect()
        } else {
            of(name)
                .into_iter()
                .map(|(labels, value)| (sort_key(&labels), json!({"labels": labels, "value": value})))
                .collect()
        };
        shown.sort_by(|one, other| one.0.cmp(&other.0));
        family["series"] = shown.into_iter().map(|(_, series)| series).collect();
        families.insert(name.to_owned(), family);
    }
    Value::Object(families)
}

fn buckets(series: &[(Map<String, Value>, f64)]) -> Vec<Value> {
    let mut bounds: Vec<f64> = series
        .iter()
        .filter_map(|(labels, _)| labels.get("le")?.as_str()?.replace("+Inf", "inf").parse().ok())
        .collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup_by(|one, other| one.total_cmp(other).is_eq());
    bounds.into_iter().map(|bound| if bound.is_finite() { json!(bound) } else { json!("+Inf") }).collect()
}

/// Labels in the order of their names, as JSON has them.
fn sort_key(labels: &Map<String, Value>) -> String {
    let sorted: BTreeMap<&String, &Value> = labels.iter().collect();
    let members: Vec<String> = sorted.iter().map(|(name, value)| format!("{name:?}: {value}")).collect();
    format!("{{{}}}", members.join(", "))
}

/// Name, labels and value of a line.
fn sample(line: &str) -> Option<(&str, Map<String, Value>, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Map::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            rest = rest.trim_start_matches([',', ' ']);
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, value) = rest.split_once("=\"")?;
            let end = closing_quote(value)?;
            // What is escaped stays so, as it is recorded.
            labels.insert(label.to_owned(), json!(value[..end]));
            rest = &value[end + 1..];
        }
    }
    let value = rest.split_whitespace().next()?.replace("Inf", "inf").parse().ok()?;
    Some((name, labels, value))
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, character)| {
        let is_end = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end.then_some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_sorted_series_and_histograms_have_buckets() {
        let text = "# HELP koordlet_a x\n# TYPE koordlet_a gauge\nkoordlet_a{pod=\"b,}\\\"\",node=\"n\"} 1.5\nkoordlet_a{node=\"n\",pod=\"a\"} 2\n\
            # TYPE koordlet_h histogram\nkoordlet_h_bucket{le=\"0.5\"} 1\nkoordlet_h_bucket{le=\"+Inf\"} 1\nkoordlet_h_sum 1\nkoordlet_h_count 1\n\
            # TYPE go_threads gauge\ngo_threads 9\n";
        let wanted = json!({
            "koordlet_a": {"type": "gauge", "series": [
                {"labels": {"node": "n", "pod": "a"}, "value": 2.0}, {"labels": {"node": "n", "pod": "b,}\\\""}, "value": 1.5}]},
            "koordlet_h": {"type": "histogram", "buckets": [0.5, "+Inf"], "series": [{"labels": {}}]},
        });
        assert_eq!(families(text, &MetricsWanted::default()), wanted);
        let only = MetricsWanted { only: Some(vec!["*_h".to_owned()]), ..MetricsWanted::default() };
        assert_eq!(families(text, &only).as_object().unwrap().len(), 1);
    }
}
