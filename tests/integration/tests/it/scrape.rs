//! What a running koord-manager serves as metrics, held against its table and against the original.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use anyhow::{Context as _, Result, ensure};
use koord_runtime::metrics::{Audience, Description};

/// What dashboards for the original ask for: name, type, labels.
const ORIGINAL: &[(&str, &str, &[&str])] = &[
    ("slo_controller_node_resource_reconcile_count", "counter", &["status", "reason"]),
    ("slo_controller_node_resource_run_plugin_status", "counter", &["plugin", "status", "reason"]),
    ("slo_controller_node_extended_resource_allocatable_internal", "gauge", &["node", "resource", "unit"]),
    ("slo_controller_nodemetric_reconcile_count", "counter", &["status", "reason"]),
    ("slo_controller_nodemetric_spec_parse_count", "counter", &["status", "reason"]),
    ("slo_controller_nodeslo_reconcile_count", "counter", &["status", "reason"]),
    ("slo_controller_nodeslo_spec_parse_count", "counter", &["status", "reason"]),
    (
        "koord_manager_webhook_webhook_duration_milliseconds",
        "histogram",
        &["webhook_type", "object_type", "operation", "plugin_name", "status"],
    ),
    ("koord_manager_webhook_binding_admission_decisions_total", "counter", &["decision"]),
    ("koord_manager_webhook_quota_shared_weight", "gauge", &["elasticquota_name", "resource_name"]),
    ("controller_runtime_reconcile_total", "counter", &["controller", "result"]),
    ("controller_runtime_reconcile_errors_total", "counter", &["controller"]),
    ("controller_runtime_terminal_reconcile_errors_total", "counter", &["controller"]),
    ("controller_runtime_reconcile_panics_total", "counter", &["controller"]),
    ("controller_runtime_reconcile_time_seconds", "histogram", &["controller"]),
    ("controller_runtime_max_concurrent_reconciles", "gauge", &["controller"]),
    ("controller_runtime_active_workers", "gauge", &["controller"]),
    ("controller_runtime_webhook_requests_total", "counter", &["webhook", "code"]),
    ("controller_runtime_webhook_requests_in_flight", "gauge", &["webhook"]),
    ("controller_runtime_webhook_latency_seconds", "histogram", &["webhook"]),
    ("workqueue_depth", "gauge", &["name", "controller", "priority"]),
    ("workqueue_adds_total", "counter", &["name", "controller"]),
    ("workqueue_retries_total", "counter", &["name", "controller"]),
    ("workqueue_queue_duration_seconds", "histogram", &["name", "controller"]),
    ("workqueue_work_duration_seconds", "histogram", &["name", "controller"]),
    ("workqueue_unfinished_work_seconds", "gauge", &["name", "controller"]),
    ("workqueue_longest_running_processor_seconds", "gauge", &["name", "controller"]),
    ("rest_client_requests_total", "counter", &["code", "method", "host"]),
    ("leader_election_master_status", "gauge", &["name"]),
    ("process_cpu_seconds_total", "counter", &[]),
    ("process_resident_memory_bytes", "gauge", &[]),
    ("process_open_fds", "gauge", &[]),
    ("process_max_fds", "gauge", &[]),
    ("process_virtual_memory_bytes", "gauge", &[]),
    ("process_start_time_seconds", "gauge", &[]),
];

/// Described, but without a series until something goes wrong or somebody asks for it.
const AT_TIMES: &[&str] = &[
    "koord_reconcile_faults_total",
    // No controller of koord-manager asks for work outside of the cluster.
    "koord_effects_total",
    "koord_effect_duration_seconds",
    "koord_effects",
    // Only with a collector.
    "koord_trace_spans_total",
    // Where edits of the configuration are reviewed, no key is ever wrong.
    "koord_config_errors_total",
    "koord_config_key_invalid",
    // The node of the test is gone when its end is scraped.
    "slo_controller_node_extended_resource_allocatable_internal",
    // So are the quotas.
    "koord_manager_webhook_quota_shared_weight",
    // Nobody binds a pod in this test.
    "koord_manager_webhook_binding_admission_decisions_total",
];

/// A family as it is served.
#[derive(Clone, Debug, Default, PartialEq)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

/// Scrapes all pages of a manager that has worked for a while.
pub(crate) fn check(address: SocketAddr) -> Result<()> {
    let table = koord_manager_assembly::metrics();
    for (name, kind, labels) in ORIGINAL {
        let ours = table.iter().find(|description| description.name == *name);
        let ours = ours.with_context(|| format!("{name} of the original is missing"))?;
        ensure!(ours.kind.to_string() == *kind, "{name} is a {}, not a {kind}", ours.kind);
        ensure!(names(ours.labels) == names(labels), "{name} has labels {:?}, not {labels:?}", ours.labels);
    }
    let (mut together, mut served) = (BTreeMap::new(), BTreeMap::new());
    for audience in [Audience::Runtime, Audience::Internal, Audience::External, Audience::Slis] {
        let page = families(&get(address, audience.page())?)?;
        for (name, family) in &page {
            let described =
                table.iter().find(|description| description.name == name && description.audience == audience);
            let described = described.with_context(|| format!("{name} on {} is not in the table", audience.page()))?;
            agree(described, family)?;
        }
        served.extend(page.clone());
        if audience != Audience::Slis {
            together.extend(page);
        }
    }
    let all = families(&get(address, "/all-metrics")?)?;
    ensure!(all == together, "/all-metrics is not the other three pages together");
    let of_go = all.keys().find(|name| name.starts_with("go_"));
    ensure!(of_go.is_none(), "{of_go:?} is served, and no Go runs here");
    for Description { name, .. } in &table {
        ensure!(served.contains_key(*name) || AT_TIMES.contains(name), "{name} is described and not served");
    }
    Ok(())
}

fn names(labels: &[&str]) -> BTreeSet<String> {
    labels.iter().map(ToString::to_string).collect()
}

fn agree(described: &Description, family: &Family) -> Result<()> {
    let Description { name, kind, help, labels, .. } = described;
    ensure!(family.kind == kind.to_string(), "{name} is served as a {}", family.kind);
    // The words about the process are those of the library that reads /proc.
    ensure!(family.help == *help || name.starts_with("process_"), "{name} is served with {:?}", family.help);
    ensure!(family.labels == names(labels), "{name} is served with labels {:?}", family.labels);
    Ok(())
}

fn get(address: SocketAddr, page: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {page} HTTP/1.0\r\nhost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
    ensure!(head.starts_with("HTTP/1.0 200"), "{page}: {head}");
    ensure!(head.contains("text/plain; version=0.0.4"), "{page}: {head}");
    Ok(body.to_owned())
}

/// Reads the text format; the series of a histogram belong to its family, and `le` is no label of it.
fn families(text: &str) -> Result<BTreeMap<String, Family>> {
    let mut families = BTreeMap::<String, Family>::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            help.clone_into(&mut families.entry(name.to_owned()).or_default().help);
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            kind.clone_into(&mut families.entry(name.to_owned()).or_default().kind);
        } else {
            let (series, value) = line.rsplit_once(' ').with_context(|| line.to_owned())?;
            value.parse::<f64>().with_context(|| line.to_owned())?;
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let base = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|part| name.strip_suffix(part).filter(|base| families.contains_key(*base)));
            let family = families.get_mut(base.unwrap_or(name)).with_context(|| format!("{name} has no family"))?;
            let labels = labels.trim_end_matches('}').split("\",").filter_map(|pair| pair.split_once('='));
            family.labels.extend(labels.map(|(label, _)| label.to_owned()).filter(|label| label != "le"));
        }
    }
    Ok(families)
}
