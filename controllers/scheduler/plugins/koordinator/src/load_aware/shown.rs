//! What is known of the load of a node, for people.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use koord_resource::ResourceList;
use koord_scheduler_framework::{
    Operands, Reason, ReasonCode, Refusal,
    cluster::{Cluster, Placed},
    columns::Row,
    pod::Pod,
    shown,
};
use serde_json::{Map, Value, json};

use super::{
    Amounts, EXPIRED, Incoming, LoadAwareSettings, Loads, Measure, NodeLoad, NodeMetric, UNREPORTED, View,
    node_load::plus,
};

/// The pods of a node, what they are estimated to add to what is reported of it, and what is compared with its thresholds. The shape is
/// that of the original, and says more where it says nothing.
pub(super) fn on_node(loads: &Loads, cluster: &Cluster, row: Row) -> Option<Value> {
    let (settings, view) = (loads.settings(), loads.view(row)?);
    let node = cluster.node(row)?;
    let assigned = |placed: &Placed| settings.assigned(placed, || Arc::new(settings.incoming(&placed.pod.template)));
    let placed = cluster.pods_on(row).filter(|placed| !placed.pod.is_reservation());
    let placed: Vec<_> = placed.map(|placed| (&placed.pod, assigned(placed))).collect();
    let pods = placed.iter().map(|(pod, assigned)| {
        json!({
            "pod": shown::pod(pod, Some(&node.name)),
            "timestamp": time(assigned.since),
            "estimatedUntil": assigned.until.map(time),
            "estimated": named(settings, &assigned.adds.estimate),
            "isProd": assigned.adds.is_prod,
        })
    });
    let mut answer = shown::without_empty(json!({"pods": pods.collect::<Vec<_>>()}));
    if let Some(metric) = view.metric {
        let of_pods = placed.iter().map(|(_, assigned)| {
            let adds = NodeLoad::of([assigned.clone()], view.metric);
            (assigned.key.to_string(), adds)
        });
        let deltas = deltas(settings, view.load, metric, &of_pods.collect());
        deltas.into_iter().for_each(|(name, value)| answer[name] = value);
    }
    answer["allocatable"] = named(settings, view.capacity);
    answer["nodeMetric"] = view.metric.map(|metric| reported(settings, view, metric, cluster.time())).into();
    answer["compared"] = Vec::from([false, true].map(|is_prod| compared(settings, view, is_prod))).into();
    Some(answer)
}

/// What is added to the report of a node for its pods, in all and for production pods, and for which.
fn deltas(
    settings: &LoadAwareSettings,
    load: &NodeLoad,
    metric: &NodeMetric,
    pods: &BTreeMap<String, NodeLoad>,
) -> Map<String, Value> {
    let dimensions = &settings.dimensions;
    let list = |amounts: &Amounts| -> ResourceList {
        shown::quantities(dimensions.names().zip(amounts).map(|(name, amount)| (name, *amount)))
    };
    let those = |is_one: &dyn Fn(&NodeLoad) -> bool| -> Vec<&String> {
        pods.iter().filter(|(_, adds)| is_one(adds)).map(|(key, _)| key).collect()
    };
    let adds = |at: usize| those(&|adds: &NodeLoad| adds.missing(dimensions)[at].iter().any(|amount| *amount != 0));
    let [delta, prod_delta] = load.missing(dimensions);
    let [estimated, used_prod] = load.known(dimensions);
    let system = metric.node.as_ref().filter(|_| settings.prod_includes_system);
    let system = system.map_or_else(|| dimensions.zero(), |node| node.system.clone());
    let shown = shown::without_empty(json!({
        "prodUsage": list(&plus(used_prod, &system, 1)),
        "nodeDelta": list(&delta),
        "prodDelta": list(&prod_delta),
        "nodeEstimated": list(&estimated),
        "nodeDeltaPods": adds(0),
        "prodDeltaPods": adds(1),
        "nodeEstimatedPods":
            those(&|adds: &NodeLoad| adds.known(dimensions)[0].iter().any(|amount| *amount != 0)),
    }));
    match shown {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// What of a node that is refused is beyond its bounds, or why nothing is known of it.
pub(super) fn details(
    settings: &LoadAwareSettings,
    view: View<'_>,
    pod: &Incoming,
    refusal: &Refusal,
    cluster: &Cluster,
    row: Row,
) -> Operands {
    let updated = view.metric.and_then(|metric| metric.updated);
    let age = updated.map(|updated| ("age", format!("{}s", cluster.time().as_second().saturating_sub(updated))));
    let mut details: Operands = age.into_iter().collect();
    match refusal.reason {
        EXPIRED => {}
        UNREPORTED => details.push(("agent_state", agent_state(cluster, row).to_owned())),
        _ => {
            let compared = usize::try_from(refusal.operand).ok().and_then(|index| settings.compared(view, pod, index));
            details.extend(
                compared.into_iter().flat_map(|(used, threshold)| {
                    [("value", format!("{used}%")), ("threshold", format!("{threshold}%"))]
                }),
            );
        }
    }
    details
}

/// What is remarked where some nodes have a NodeMetric and others have none: the load of these does not count. A cluster in which no
/// node has one runs no koordlet.
pub(super) fn without_metric(loads: &Loads, cluster: &Cluster) -> Option<Reason> {
    let has_metric = |row: Row| loads.view(row).is_some_and(|view| view.metric.is_some());
    let (with, without): (Vec<_>, Vec<_>) = cluster.rows().partition(|(row, _)| has_metric(*row));
    let (row, node) = without.first().filter(|_| !with.is_empty())?;
    let (nodes, name) = (without.len(), &node.name);
    let text =
        format!("{nodes} of {} nodes have no NodeMetric, such as {name}; their load does not count", cluster.len());
    let reason = ReasonCode::NodeMetricMissing.reason(text).with("nodes", nodes).with("example", name);
    Some(reason.with("agent_state", agent_state(cluster, *row)))
}

/// Whether a pod of koordlet is on a node, and is ready there.
fn agent_state(cluster: &Cluster, row: Row) -> &'static str {
    let is_agent = |pod: &Pod| pod.template.labels.get("koord-app") == Some("koordlet");
    let mut agents = cluster.pods_on(row).filter(|placed| is_agent(&placed.pod)).peekable();
    if agents.peek().is_none() {
        "absent"
    } else if agents.any(|placed| placed.pod.is_ready) {
        "ready"
    } else {
        "unready"
    }
}

fn reported(settings: &LoadAwareSettings, view: View<'_>, metric: &NodeMetric, now: Timestamp) -> Value {
    let reported = |usage: &Amounts| named(settings, &plus(settings.dimensions.zero(), usage, 1));
    json!({
        "updateTime": metric.updated.map(time),
        "ageSeconds": metric.updated.map(|updated| now.as_second().saturating_sub(updated)),
        "reportIntervalSeconds": metric.interval_seconds,
        "isExpired": view.is_expired,
        "nodeUsage": metric.node.as_ref().map(|node| reported(&node.average)),
        "systemUsage": metric.node.as_ref().map(|node| reported(&node.system)),
        "podsReported": metric.pods.len(),
    })
}

/// What is compared with which thresholds for production pods, or for others; null where nothing is.
fn compared(settings: &LoadAwareSettings, view: View<'_>, is_prod: bool) -> Value {
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

fn named(settings: &LoadAwareSettings, amounts: &Amounts) -> Value {
    settings.dimensions.names().zip(amounts).map(|(name, amount)| (name.to_owned(), json!(amount))).collect()
}

fn time(seconds: i64) -> Value {
    Timestamp::from_second(seconds).map_or(Value::Null, |time| json!(time.to_string()))
}
