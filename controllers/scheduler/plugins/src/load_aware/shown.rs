//! What is known of the load of a node, for people.

use std::sync::Arc;

use jiff::Timestamp;
use koord_engine::{cluster::Cluster, columns::Row};
use serde_json::{Value, json};

use super::{Amounts, Loads, Measure, NodeMetric, Settings, View};

/// The report about a node, what its pods are estimated to add, and what is compared with its thresholds.
pub(super) fn on_node(loads: &Loads, cluster: &Cluster, row: Row) -> Option<Value> {
    let (settings, view) = (loads.settings(), loads.view(row)?);
    let pods = cluster.pods_on(row).filter(|placed| !placed.pod.is_reservation()).map(|placed| {
        let assigned = settings.assigned(placed, || Arc::new(settings.incoming(&placed.pod.template)));
        json!({
            "pod": assigned.key.to_string(),
            "timestamp": time(assigned.since),
            "estimatedUntil": assigned.until.map(time),
            "estimated": named(settings, &assigned.adds.estimate),
            "isProd": assigned.adds.is_prod,
        })
    });
    Some(json!({
        "node": cluster.node(row).map(|node| &*node.name),
        "allocatable": named(settings, view.capacity),
        "pods": pods.collect::<Vec<_>>(),
        "nodeMetric": view.metric.map(|metric| reported(settings, view, metric, cluster.time())),
        "compared": Vec::from([false, true].map(|is_prod| compared(settings, view, is_prod))),
    }))
}

fn reported(settings: &Settings, view: View<'_>, metric: &NodeMetric, now: Timestamp) -> Value {
    json!({
        "updateTime": metric.updated.map(time),
        "ageSeconds": metric.updated.map(|updated| now.as_second().saturating_sub(updated)),
        "reportIntervalSeconds": metric.interval_seconds,
        "isExpired": view.is_expired,
        "nodeUsage": metric.node.as_ref().map(|node| named(settings, &node.average.amounts(&settings.dimensions))),
        "systemUsage": metric.node.as_ref().map(|node| named(settings, &node.system.amounts(&settings.dimensions))),
        "podsReported": metric.pods.len(),
    })
}

/// What is compared with which thresholds for production pods, or for others; null where nothing is.
fn compared(settings: &Settings, view: View<'_>, is_prod: bool) -> Value {
    let Some((thresholds, measure)) = view.thresholds.of_pod(is_prod) else { return Value::Null };
    let used = view
        .metric
        .and_then(|metric| view.load.usage(metric, measure, settings.prod_includes_system, &settings.dimensions));
    let name = match measure {
        Measure::Average => "average",
        Measure::Prod => "prod",
        Measure::Aggregated(type_, _) => type_.as_str(),
    };
    json!({
        "isProd": is_prod,
        "measure": name,
        "used": used.map(|used| named(settings, &used)),
        "thresholdsPercent": named(settings, thresholds),
    })
}

fn named(settings: &Settings, amounts: &Amounts) -> Value {
    settings.dimensions.names().zip(amounts).map(|(name, amount)| (name.to_owned(), json!(amount))).collect()
}

fn time(seconds: i64) -> Value {
    Timestamp::from_second(seconds).map_or(Value::Null, |time| json!(time.to_string()))
}
