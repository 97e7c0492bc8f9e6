//! A Grafana dashboard with a panel for every metric of the table.

use koord_runtime::metrics::{Description, Kind, Unit};
use serde_json::{Value, json};

/// Rows by the beginning of the names that belong there; the first that fits takes a metric.
const ROWS: &[(&str, &[&str])] = &[
    (
        "Replicas",
        &[
            "koord_manager_build_info",
            "koord_scheduler_build_info",
            "koord_descheduler_build_info",
            "leader_election_",
            "koord_webhook_",
            "kubernetes_healthcheck",
        ],
    ),
    ("Queue", &["scheduler_pending_", "koord_scheduler_pending_", "scheduler_queue_", "scheduler_unschedulable_"]),
    (
        "Attempts",
        &[
            "scheduler_schedul",
            "scheduler_pod_scheduling_",
            "scheduler_permit_",
            "scheduler_framework_",
            "koord_scheduler_node_conflicts_",
            "koord_scheduler_stale_",
        ],
    ),
    (
        "Quotas, gangs and reservations",
        &[
            "scheduler_elastic_",
            "scheduler_update_elastic_",
            "scheduler_gang_",
            "scheduler_waiting_gang_",
            "scheduler_reservation_",
        ],
    ),
    ("Passes and evictions", &["descheduler_", "koord_descheduler_"]),
    ("Preemption and cache", &["scheduler_"]),
    ("Admission webhooks", &["koord_manager_webhook_", "controller_runtime_webhook_"]),
    ("Nodes and configuration", &["slo_controller_", "koord_nodes_", "koord_config_"]),
    ("Controllers", &["controller_runtime_", "koord_reconcile_"]),
    ("Work queues", &["workqueue_"]),
    ("Requests to the API server", &["rest_client_"]),
    ("Caches and watches", &["koord_cache_", "koord_watch_"]),
    ("Process", &["process_"]),
    ("More", &[""]),
];

/// Labels that would make a line per object.
const PER_OBJECT: &[&str] = &["node", "elasticquota_name"];
/// Metrics whose labels `name` and `parent` are those of objects.
const OF_OBJECTS: &[&str] = &["scheduler_elastic_quota_", "scheduler_reservation_"];
/// Labels that say nothing beside the others.
const REDUNDANT: &[&str] = &["host", "priority", "language"];

const COLUMNS: u64 = 3;
const WIDTH: u64 = 24 / COLUMNS;
const HEIGHT: u64 = 8;

/// What a dashboard is called, and the metric by which its program is found.
pub(super) struct Names {
    pub(super) uid: &'static str,
    pub(super) title: &'static str,
    pub(super) build: &'static str,
}

/// The dashboard as Grafana imports it.
pub(super) fn dashboard(names: &Names, metrics: &[Description]) -> Value {
    let mut panels = Vec::new();
    let (mut id, mut y) = (0_u64, 0_u64);
    let mut next_id = || {
        id += 1;
        id
    };
    for (title, row) in rows(metrics) {
        panels.push(json!({
            "id": next_id(), "type": "row", "title": title, "collapsed": false, "panels": [],
            "gridPos": {"x": 0, "y": y, "w": 24, "h": 1},
        }));
        y += 1;
        let mut x = 0;
        for description in row {
            let place = json!({"x": x, "y": y, "w": WIDTH, "h": HEIGHT});
            panels.push(panel(description, next_id(), &place));
            x += WIDTH;
            if x == 24 {
                (x, y) = (0, y + HEIGHT);
            }
        }
        y += if x == 0 { 0 } else { HEIGHT };
    }
    let job = format!("label_values({}, job)", names.build);
    let source = json!({"type": "prometheus", "uid": "${datasource}"});
    json!({
        "uid": names.uid,
        "title": names.title,
        "tags": ["koordinator"],
        "schemaVersion": 38,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
            {
                "name": "job", "type": "query", "label": "Job", "datasource": source, "refresh": 2, "includeAll": true,
                "multi": true, "definition": job, "query": {"query": job, "refId": "job"},
                "current": {"text": "All", "value": "$__all"},
            },
        ]},
        "panels": panels,
    })
}

/// Rows with their metrics, in the order of their names.
fn rows(metrics: &[Description]) -> Vec<(&'static str, Vec<&Description>)> {
    let place = |name: &str| ROWS.iter().position(|(_, begins)| begins.iter().any(|begin| name.starts_with(begin)));
    let row = |index: usize| metrics.iter().filter(move |one| place(one.name) == Some(index)).collect::<Vec<_>>();
    let rows = ROWS.iter().enumerate().map(|(index, (title, _))| (*title, row(index)));
    rows.filter(|(_, row)| !row.is_empty()).collect()
}

fn panel(description: &Description, id: u64, place: &Value) -> Value {
    let mut targets = Vec::new();
    for (letter, (expression, legend)) in ('A'..).zip(expressions(description)) {
        targets.push(json!({"refId": letter.to_string(), "expr": expression, "legendFormat": legend}));
    }
    let text = [description.help, description.advice].join("\n\n");
    json!({
        "id": id,
        "type": "timeseries",
        "title": description.name,
        "description": text.trim_end(),
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": unit(description)}, "overrides": []},
        "options": {"legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}},
        "targets": targets,
    })
}

/// What is shown of a metric, each with the legend of its lines: rates of what only grows, quantiles of what is
/// distributed, the rest as it is.
pub(super) fn expressions(description: &Description) -> Vec<(String, String)> {
    let Description { name, kind, labels, unit, .. } = description;
    let mut by: Vec<&str> = Vec::new();
    let is_of_objects = OF_OBJECTS.iter().any(|begin| name.starts_with(begin));
    let is_of_object =
        |label: &str| PER_OBJECT.contains(&label) || is_of_objects && ["name", "parent"].contains(&label);
    for label in labels.iter().filter(|label| !is_of_object(label) && !REDUNDANT.contains(label)) {
        // The name of a queue is that of its controller.
        if !(*label == "name" && labels.contains(&"controller")) {
            by.push(label);
        }
    }
    if by.is_empty() {
        by.push("instance");
    }
    let legend = |by: &[&str]| by.iter().map(|label| format!("{{{{{label}}}}}")).collect::<Vec<_>>().join(" ");
    let selected = |series: &str| format!(r#"{series}{{job=~"$job"}}"#);
    match kind {
        Kind::Counter => {
            let expression = format!("sum by ({}) (rate({}[$__rate_interval]))", by.join(", "), selected(name));
            vec![(expression, legend(&by))]
        }
        Kind::Gauge => {
            let together = if labels.iter().any(|label| PER_OBJECT.contains(label)) { "sum" } else { "max" };
            let value = format!("{together} by ({}) ({})", by.join(", "), selected(name));
            let value = if *unit == Unit::UnixTime { format!("{value} - time()") } else { value };
            vec![(value, legend(&by))]
        }
        Kind::Histogram(_) => {
            by.truncate(2);
            let buckets = selected(&format!("{name}_bucket"));
            let of = |quantile: &str| {
                let sums = format!("sum by (le, {}) (rate({buckets}[$__rate_interval]))", by.join(", "));
                (format!("histogram_quantile({quantile}, {sums})"), format!("p{} {}", &quantile[2..], legend(&by)))
            };
            vec![of("0.50"), of("0.99")]
        }
    }
}

/// Grafana's name of a unit.
fn unit(description: &Description) -> &'static str {
    match (description.kind, description.unit) {
        (Kind::Counter, Unit::Seconds) => "percentunit",
        (Kind::Counter, _) => "cps",
        (_, Unit::Seconds) => "s",
        (_, Unit::Milliseconds) => "ms",
        (_, Unit::Bytes) => "bytes",
        (_, Unit::UnixTime) => "dtdurations",
        (_, Unit::YesNo) => "bool_yes_no",
        (_, Unit::Count | Unit::Labelled) => "short",
    }
}
