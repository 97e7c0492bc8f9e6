//! Metrics as `autoscaling/v1` keeps them in annotations: flat, under names of their own.

use serde_json::{Map, Value, json};

/// One field: its flat name, where it stands in `v2`, and whether Go writes it always.
type Field = (&'static str, &'static str, bool);

/// The kinds of metrics, by the name of their field.
const KINDS: [&str; 5] = ["object", "pods", "resource", "containerResource", "external"];

/// What is converted: the metrics that are wanted, or those that were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// `spec.metrics`
    Wanted,
    /// `status.currentMetrics`
    Seen,
}

fn fields(side: Side, kind: &str) -> &'static [Field] {
    match (side, kind) {
        (Side::Wanted, "object") => &[
            ("target", "/describedObject", true),
            ("metricName", "/metric/name", true),
            ("targetValue", "/target/value", true),
            ("selector", "/metric/selector", false),
            ("averageValue", "/target/averageValue", false),
        ],
        (Side::Wanted, "pods") => &[
            ("metricName", "/metric/name", true),
            ("targetAverageValue", "/target/averageValue", true),
            ("selector", "/metric/selector", false),
        ],
        (Side::Wanted, "external") => &[
            ("metricName", "/metric/name", true),
            ("metricSelector", "/metric/selector", false),
            ("targetValue", "/target/value", false),
            ("targetAverageValue", "/target/averageValue", false),
        ],
        (Side::Wanted, _) => &[
            ("name", "/name", true),
            ("targetAverageUtilization", "/target/averageUtilization", false),
            ("targetAverageValue", "/target/averageValue", false),
            ("container", "/container", false),
        ],
        (Side::Seen, "object") => &[
            ("target", "/describedObject", true),
            ("metricName", "/metric/name", true),
            ("currentValue", "/current/value", true),
            ("selector", "/metric/selector", false),
            ("averageValue", "/current/averageValue", false),
        ],
        (Side::Seen, "pods") => &[
            ("metricName", "/metric/name", true),
            ("currentAverageValue", "/current/averageValue", true),
            ("selector", "/metric/selector", false),
        ],
        (Side::Seen, "external") => &[
            ("metricName", "/metric/name", true),
            ("metricSelector", "/metric/selector", false),
            ("currentValue", "/current/value", true),
            ("currentAverageValue", "/current/averageValue", false),
        ],
        (Side::Seen, _) => &[
            ("name", "/name", true),
            ("currentAverageUtilization", "/current/averageUtilization", false),
            ("currentAverageValue", "/current/averageValue", true),
            ("container", "/container", false),
        ],
    }
}

/// The text of an annotation that holds these metrics, fields in the order in which Go writes them.
pub(super) fn flat_text<'a>(side: Side, metrics: impl Iterator<Item = &'a Value>) -> String {
    let texts: Vec<String> = metrics.map(|metric| one_flat_text(side, metric)).collect();
    format!("[{}]", texts.join(","))
}

fn one_flat_text(side: Side, metric: &Value) -> String {
    let mut parts = vec![format!("\"type\":{}", metric["type"])];
    for kind in KINDS {
        let source = &metric[kind];
        if !source.is_object() {
            continue;
        }
        let fields: Vec<String> = fields(side, kind)
            .iter()
            .filter_map(|(flat, place, is_always)| {
                let text = match source.pointer(place).filter(|value| !value.is_null()) {
                    Some(value) if *flat == "target" => in_order(value, &["kind", "name", "apiVersion"]),
                    Some(value) => value.to_string(),
                    None if *is_always && place.ends_with("alue") => "\"0\"".to_owned(),
                    None if *is_always => "\"\"".to_owned(),
                    None => return None,
                };
                Some(format!("\"{flat}\":{text}"))
            })
            .collect();
        parts.push(format!("\"{kind}\":{{{}}}", fields.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

/// An object with its fields in this order; absent ones are left out.
pub(super) fn in_order(object: &Value, names: &[&str]) -> String {
    let fields: Vec<String> = names
        .iter()
        .filter_map(|name| object.get(*name).map(|value| format!("{}:{value}", Value::from(*name))))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// The metrics that an annotation holds, as `v2` has them; none when the text is no list of metrics.
pub(super) fn from_flat_text(side: Side, text: &str) -> Option<Vec<Value>> {
    let metrics: Vec<Map<String, Value>> = serde_json::from_str(text).ok()?;
    Some(metrics.iter().map(|metric| from_flat(side, metric)).collect())
}

fn from_flat(side: Side, metric: &Map<String, Value>) -> Value {
    let mut converted = json!({"type": metric.get("type").cloned().unwrap_or_default()});
    for kind in KINDS {
        let Some(flat) = metric.get(kind).and_then(Value::as_object) else { continue };
        let mut source = json!({});
        for (name, place, _) in fields(side, kind) {
            if let Some(value) = flat.get(*name) {
                let steps: Vec<&str> = place.split('/').skip(1).collect();
                let mut at = &mut source;
                for step in steps {
                    at = &mut at[step];
                }
                *at = value.clone();
            }
        }
        if side == Side::Wanted {
            source["target"]["type"] = json!(target_type(kind, &source["target"]));
        }
        converted[kind] = source;
    }
    converted
}

/// What a target means follows from which of its values are set.
fn target_type(kind: &str, target: &Value) -> &'static str {
    match kind {
        "object" if target["averageValue"].is_null() => "Value",
        "external" if !target["value"].is_null() => "Value",
        "resource" | "containerResource" if !target["averageUtilization"].is_null() => "Utilization",
        _ => "AverageValue",
    }
}
