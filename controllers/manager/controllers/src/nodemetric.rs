//! Gives every node a NodeMetric that sets what koordlet measures there.

use std::sync::Arc;

use jiff::Timestamp;
use koord_resource::controller;
use koord_runtime::{
    cache::Change,
    controller::{Controller, Requests},
    error::{Fault, ReconcileError},
    key::ObjectKey,
    metrics::{Audience, Description},
    outcome::Outcome,
    store::Store,
    write::Write,
};
use koord_types::{
    node_metric::{AggregatePolicy, NodeMemoryCollectPolicy, NodeMetricCollectPolicy, NodeMetricSpec},
    slo_config::{COLOCATION_CONFIG, ColocationConfig, ColocationConfigError, ColocationStrategy},
};
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    ConfigSource,
    colocation::{Colocation, OUT_OF_RANGE, reason},
    config::{ConfigError, ConfigErrors},
    one_per_node::{self, Counts},
    view::{ConfigMapView, NodeMetricView, NodeView},
};

pub(crate) const WRITES: Description = Description::counter(
    "slo_controller_nodemetric_reconcile_count",
    &["status", "reason"],
    "Writes of NodeMetrics by result (succeeded, failed) and reason.",
)
.to(Audience::Internal)
.advice("Failures: the log line `reconcile failed` names the node and what the API server said.");
pub(crate) const SPECS: Description = Description::counter(
    "slo_controller_nodemetric_spec_parse_count",
    &["status", "reason"],
    "Specs of NodeMetrics that were made, by result.",
)
.to(Audience::Internal);

/// The component of its events.
pub const COMPONENT: &str = "nodemetric-controller";

/// Writes the spec of the NodeMetric of each node.
#[controller(
    name = "nodemetric",
    for(metrics, predicate = spec_changed),
    owns(metrics),
    watches(nodes, predicate = one_per_node::matters),
    watches(config_maps, by = Self::configured, namespace = &source.namespace, fields = source.fields()),
    arguments(source: &ConfigSource),
    init(
        colocation,
        config_errors = ConfigErrors::new(wiring.metrics(), Self::SPEC.name)?,
        counts = Counts::new(wiring.metrics(), WRITES, SPECS)?,
    ),
    error = prometheus::Error,
)]
pub struct NodeMetricController {
    metrics: Arc<Store<NodeMetricView>>,
    nodes: Arc<Store<NodeView>>,
    config_maps: Arc<Store<ConfigMapView>>,
    colocation: Arc<Mutex<Colocation>>,
    config_errors: ConfigErrors,
    counts: Counts,
}

impl NodeMetricController {
    /// The ConfigMap changed. Its deletion is no reason to look at anything.
    fn configured(&self, change: &Change<ConfigMapView>, requests: &mut Requests) {
        let Some(config_map) = &change.new else { return self.colocation.lock().deleted() };
        let read = ColocationConfig::parse(config_map.value.get(COLOCATION_CONFIG));
        self.config_errors.report(config_errors(&read), (&change.key, config_map), requests);
        if self.colocation.lock().read(read.ok()) {
            self.nodes.read().keys().for_each(|node| requests.enqueue(node));
            // Nodes may have gone while there was no configuration to decide with.
            self.metrics.read().keys().for_each(|metric| requests.enqueue(metric));
        }
    }
}

fn config_errors(read: &Result<ColocationConfig, ColocationConfigError>) -> Vec<ConfigError> {
    let error = |reason, message| ConfigError { key: COLOCATION_CONFIG, reason, message };
    let config = match read {
        Ok(config) => config,
        Err(unusable) => return vec![error(reason(unusable), unusable.to_string())],
    };
    let mut strategies = std::iter::once(&config.cluster).chain(config.nodes.iter().map(|node| &node.strategy));
    let unknown_policy = strategies.find_map(unknown_memory_policy).map(|word| {
        format!(
            "{COLOCATION_CONFIG}: metricMemoryCollectPolicy: {word:?} is not among the values that are allowed; the default is used instead"
        )
    });
    config.refusals().into_iter().chain(unknown_policy).map(|message| error(OUT_OF_RANGE, message)).collect()
}

/// A NodeMetric came, went, or has another spec; what koordlet reports in it does not matter here.
fn spec_changed(change: &Change<NodeMetricView>) -> bool {
    change.matters(|old, new| new.has_other_spec(old))
}

/// A word that no NodeMetric may have: the API server would refuse the whole object.
fn unknown_memory_policy(strategy: &ColocationStrategy) -> Option<&str> {
    match &strategy.metric_memory_collect_policy {
        Some(NodeMemoryCollectPolicy::Other(word)) => Some(word),
        _ => None,
    }
}

/// What koordlet shall measure on a node under a strategy. A node without colocation is measured as if nothing were
/// configured.
fn collect_policy(strategy: &ColocationStrategy) -> NodeMetricCollectPolicy {
    let default = ColocationConfig::default().cluster;
    let strategy = if strategy.is_enabled() && strategy.is_valid() { strategy } else { &default };
    let memory = if unknown_memory_policy(strategy).is_none() { strategy } else { &default };
    NodeMetricCollectPolicy {
        aggregate_duration_seconds: strategy.metric_aggregate_duration_seconds,
        report_interval_seconds: strategy.metric_report_interval_seconds,
        node_aggregate_policy: strategy
            .metric_aggregate_policy
            .as_ref()
            .map(|policy| AggregatePolicy { durations: policy.durations.clone() }),
        node_memory_collect_policy: memory.metric_memory_collect_policy.clone(),
    }
}

impl Controller for NodeMetricController {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        let colocation = self.colocation.lock();
        // Without any configuration that could be read, nothing is touched; the next edit triggers every node.
        let Some((config, trusted)) = colocation.current() else { return Ok(Outcome::settled()) };
        let mut outcome = one_per_node::keep(key, &self.nodes.read(), &self.metrics.read(), |node, stored| {
            if stored.is_some() && !trusted {
                return Ok(None);
            }
            let node = &node.value;
            let strategy = config.for_node(&node.labels.to_map(), &node.annotations.to_map());
            let spec = NodeMetricSpec { collect_policy: Some(collect_policy(&strategy)) };
            let spec: Result<Value, _> = serde_json::to_value(&spec);
            self.counts.specs.count(spec.is_ok(), "getNodeMetricCollectPolicy");
            spec.map(Some).map_err(|error| ReconcileError::never(Fault::Bug, error.to_string()))
        })?;
        if colocation.is_unseen() {
            let memory = Arc::clone(&self.colocation);
            outcome.remember(move || memory.lock().decided());
        }
        Ok(outcome)
    }

    fn written(&self, _: &ObjectKey, write: &Write, result: Result<(), &ReconcileError>) {
        self.counts.written(write, result);
    }
}
