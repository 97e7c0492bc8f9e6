//! Tells every node what batch and mid pods may use of it, how fast its CPUs are, and what devices it has.
//!
//! Each number is computed by one function from [`Facts`], which reports its terms to a listener: [`batch::available`],
//! [`mid::available`], [`cpu_normalization::ratio`], [`amplification::ratios`]. [`decide`] puts them together; the
//! controller compares the result with what is and writes what is worth a write.

pub mod amplification;
pub mod batch;
#[cfg(test)]
mod boundaries;
mod configuration;
pub(crate) mod counts;
pub mod cpu_normalization;
pub mod decision;
mod devices;
mod difference;
mod explanation;
pub mod facts;
pub mod mid;
mod mistakes;
mod plugin;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod vectors;
pub mod waterfall;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

pub use configuration::Configuration;
pub use decision::{Decision, decide};
pub use explanation::{About, Explanation, explain};
pub use facts::{Caches, Facts};
use jiff::Timestamp;
use koord_resource::{controller, controller::ResourceKind};
use koord_runtime::{
    cache::Change,
    controller::{Controller, Requests},
    error::ReconcileError,
    events::Event,
    key::ObjectKey,
    outcome::Outcome,
    store::Store,
    write::{Action, Write},
};
use parking_lot::Mutex;
pub use plugin::{Plugin, Plugins};
use serde_json::{Map, Value};

use self::{
    configuration::InForce,
    counts::Counts,
    difference::{Difference, ZoneRules},
};
use crate::{
    ConfigSource,
    config::ConfigErrors,
    view::{ConfigMapView, DeviceView, NodeMetricView, NodeView, PodView, TopologyView},
};

/// The component of its events.
pub const COMPONENT: &str = "noderesource-controller";

/// Computes the resources of batch and mid pods, and the annotations, of each node.
#[controller(
    name = "noderesource",
    for(nodes, by = node_changed, writes = [patch, status]),
    watches(metrics, by = Self::metric_changed),
    watches(topologies, predicate = topology_changed, writes = [patch]),
    watches(devices),
    watches(config_maps, by = Self::configured, namespace = &source.namespace, fields = source.fields()),
    // Pods that have ended use nothing.
    reads(pods, fields = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"),
    arguments(source: &ConfigSource),
    init(
        config,
        synced,
        config_errors = ConfigErrors::new(wiring.metrics(), Self::SPEC.name)?,
        counts = Counts::new(wiring.metrics(), wiring.clock(), &plugins)?,
    ),
    error = prometheus::Error,
)]
pub struct NodeResourceController {
    nodes: Arc<Store<NodeView>>,
    metrics: Arc<Store<NodeMetricView>>,
    pods: Arc<Store<PodView>>,
    topologies: Arc<Store<TopologyView>>,
    devices: Arc<Store<DeviceView>>,
    config_maps: Arc<Store<ConfigMapView>>,
    config: Arc<Mutex<InForce>>,
    plugins: Plugins,
    config_errors: ConfigErrors,
    synced: Arc<Mutex<Synced>>,
    counts: Counts,
}

/// When all amounts of a node were last brought up to date, down to the smallest difference.
type Synced = BTreeMap<ObjectKey, Timestamp>;

impl NodeResourceController {
    fn metric_changed(&self, change: &Change<NodeMetricView>, requests: &mut Requests) {
        if change.new.is_none() {
            self.synced.lock().remove(&change.key);
        }
        requests.enqueue(&change.key);
    }

    /// The ConfigMap changed. Its deletion is no reason to look at anything; a key that cannot be read leaves its last good value.
    fn configured(&self, change: &Change<ConfigMapView>, requests: &mut Requests) {
        let Some(config_map) = &change.new else { return self.config.lock().deleted() };
        let (errors, differs) = self.config.lock().read(&config_map.value);
        self.config_errors.report(errors, (&change.key, config_map), requests);
        if differs {
            self.nodes.read().keys().for_each(|node| requests.enqueue(node));
        }
    }

    /// What is worth a write now, and when to look again where something small has to wait.
    fn plan(
        &self,
        outcome: &mut Outcome,
        caches: &Caches<'_>,
        key: &ObjectKey,
        facts: &Facts<'_>,
        decision: &Decision,
    ) {
        let difference = Difference::of(decision, facts);
        let wait = Duration::from_secs(
            facts.strategy.update_time_threshold_seconds.and_then(|wait| u64::try_from(wait).ok()).unwrap_or_default(),
        );
        let synced = self.synced.lock().get(key).copied();
        let left = remaining(synced, wait, facts.now);
        let is_empty = difference.is_empty();
        let Difference { metadata, status, is_large, is_pressing } = difference;
        let nodes = caches.nodes;
        if is_large || left.is_none() {
            // The status of a node may be written together with its metadata.
            let subresource = if status.is_empty() { "" } else { "status" };
            outcome.change(nodes, key, subresource, parts([("metadata", metadata), ("status", status)]));
            self.remember_synced(outcome, key, facts.now);
        } else if is_pressing {
            outcome.change(nodes, key, "", parts([("metadata", metadata)]));
            outcome.requeue = left.filter(|_| !status.is_empty());
        } else if !is_empty {
            outcome.requeue = left;
        }
        let (Some(wanted), Some(topology)) = (&decision.zones, facts.topology) else { return };
        let rules = match decision.reset {
            None => ZoneRules::Threshold(facts.strategy.resource_diff_threshold.unwrap_or_default()),
            Some(_) => ZoneRules::Reset,
        };
        if let Some(zones) = difference::zones(topology.zones(), wanted, rules) {
            outcome.change(caches.topologies, key, "", Map::from_iter([("zones".to_owned(), zones)]));
        }
    }

    /// Remembers, once a node was written, that all its amounts are up to date; where it could not be written, that they
    /// are not.
    fn remember_synced(&self, outcome: &mut Outcome, key: &ObjectKey, now: Timestamp) {
        let (synced, of) = (Arc::clone(&self.synced), key.clone());
        outcome.remember_of(ResourceKind::NODE, key, move |result| match result {
            Ok(()) => _ = synced.lock().insert(of, now),
            Err(_) => _ = synced.lock().remove(&of),
        });
    }
}

/// The time until small changes are written; none when it is time.
fn remaining(last: Option<Timestamp>, wait: Duration, now: Timestamp) -> Option<Duration> {
    let since = now.duration_since(last?);
    let since = Duration::try_from(since).unwrap_or_default();
    // Strictly more than the threshold has to pass.
    Some(wait.checked_sub(since)? + Duration::from_secs(1))
}

fn parts<const N: usize>(parts: [(&str, Map<String, Value>); N]) -> Map<String, Value> {
    let parts = parts.into_iter().filter(|(_, part)| !part.is_empty());
    parts.map(|(name, part)| (name.to_owned(), Value::Object(part))).collect()
}

/// Whether a NodeResourceTopology changed in what amounts depend on. QUIRK: where it goes, nothing is decided until
/// something else triggers its node.
fn topology_changed(change: &Change<TopologyView>) -> bool {
    match (&change.old, &change.new) {
        (_, None) => false,
        (None, Some(new)) => new.value.has_amounts_or_cpu(),
        (Some(_), Some(_)) => change.matters(|old, new| new.triggers_reconcile(old)),
    }
}

/// A node came, went or changed. Settings on it that are not valid are reported once per edit.
fn node_changed(change: &Change<NodeView>, requests: &mut Requests) {
    requests.enqueue(&change.key);
    let Some(new) = &change.new else { return };
    let known = change.old.as_ref().map(|old| mistakes::of(&old.value)).unwrap_or_default();
    for mistake in mistakes::of(&new.value).into_iter().filter(|mistake| !known.contains(mistake)) {
        let message = format!("{mistake}; it is ignored");
        requests.event(Event::warning((&change.key, new), "ReadingSettings", "InvalidNodeSetting", message));
    }
}

impl Controller for NodeResourceController {
    fn reconcile(&self, key: &ObjectKey, now: Timestamp) -> Result<Outcome, ReconcileError> {
        let mut outcome = Outcome::settled();
        // Without any configuration that could be read, nothing is touched; the next edit triggers every node.
        let (config, is_unseen) = {
            let mut config = self.config.lock();
            (config.current(), config.is_unseen())
        };
        let Some(config) = config else { return Ok(outcome) };
        if is_unseen {
            let memory = Arc::clone(&self.config);
            outcome.remember(move || memory.lock().decided());
        }
        let (nodes, metrics, pods) = (self.nodes.read(), self.metrics.read(), self.pods.read());
        let (topologies, devices) = (self.topologies.read(), self.devices.read());
        if nodes.get(key.as_str()).is_none() {
            let (synced, gone) = (Arc::clone(&self.synced), key.clone());
            outcome.remember(move || _ = synced.lock().remove(&gone));
            self.counts.forget(key.name());
            return Ok(outcome);
        }
        let caches =
            Caches { nodes: &nodes, metrics: &metrics, pods: &pods, topologies: &topologies, devices: &devices };
        // A kubelet that has not reported what the node has will.
        let Some(facts) = Facts::of(&caches, key.as_str(), &config, now) else { return Ok(outcome) };
        let decision = decide(&facts, &self.plugins);
        self.counts.decided(&facts, &decision);
        self.plan(&mut outcome, &caches, key, &facts, &decision);
        if let (None, Some(expires)) = (decision.reset, facts.expires()) {
            let left = Duration::try_from(expires.duration_since(now)).unwrap_or_default();
            outcome.requeue_after(left + Duration::from_secs(1));
        }
        Ok(outcome)
    }

    fn written(&self, _: &ObjectKey, write: &Write, result: Result<(), &ReconcileError>) {
        let Action::Patch { subresource, .. } = &write.action else { return };
        if write.kind == ResourceKind::NODE {
            let reason = if *subresource == "status" { "updateNodeStatus" } else { "patchNodeMeta" };
            self.counts.writes.count(result.is_ok(), reason);
        } else {
            self.counts.writes.count(result.is_ok(), "updateNodeResourceTopology");
            self.counts.ran(Plugin::BatchResource, result.is_ok(), "NodePreUpdate");
        }
    }
}
