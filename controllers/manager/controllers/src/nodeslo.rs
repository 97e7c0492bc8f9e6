//! Gives every node a NodeSLO that says what `slo-controller-config` says about it.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use jiff::Timestamp;
use koord_resource::{
    Schema as _, controller,
    declare::{Emit, Profile},
    schema::{self, structural::defaults},
};
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
    node_slo::NodeSLOSpec,
    slo_config::{NodeSloConfig, SectionError},
};
use parking_lot::RwLock;
use serde_json::{Value, json};

use crate::{
    ConfigSource,
    config::{ConfigError, ConfigErrors},
    one_per_node::{self, Counts},
    view::{ConfigMapView, NodeSloView, NodeView},
};

/// What the CRD says about the spec.
static SCHEMA: LazyLock<schema::Schema> = LazyLock::new(|| NodeSLOSpec::schema(Emit::new(Profile::Compatible)));

pub(crate) const WRITES: Description = Description::counter(
    "slo_controller_nodeslo_reconcile_count",
    &["status", "reason"],
    "Writes of NodeSLOs by result (succeeded, failed) and reason.",
)
.to(Audience::Internal)
.advice("Failures: the log line `reconcile failed` names the node and what the API server said.");
pub(crate) const SPECS: Description = Description::counter(
    "slo_controller_nodeslo_spec_parse_count",
    &["status", "reason"],
    "Parts of NodeSLOs that were made, by result and part.",
)
.to(Audience::Internal)
.advice("`getSystemConfigSpec` fails for nodes whose bandwidth annotation is no quantity.");

/// The component of its events.
pub const COMPONENT: &str = "nodeslo-controller";

/// Writes the NodeSLO of each node.
#[controller(
    name = "nodeslo",
    for = slos,
    owns(slos),
    watches(nodes, predicate = one_per_node::matters),
    watches(config_maps, by = Self::configured, namespace = &source.namespace, fields = source.fields()),
    arguments(source: &ConfigSource),
    init(
        config,
        config_errors = ConfigErrors::new(wiring.metrics(), Self::SPEC.name)?,
        counts = Counts::new(wiring.metrics(), WRITES, SPECS)?,
    ),
    error = prometheus::Error,
)]
pub struct NodeSloController {
    slos: Arc<Store<NodeSloView>>,
    nodes: Arc<Store<NodeView>>,
    config_maps: Arc<Store<ConfigMapView>>,
    config: RwLock<NodeSloConfig>,
    config_errors: ConfigErrors,
    counts: Counts,
}

impl NodeSloController {
    /// The ConfigMap changed. Its deletion changes nothing; a key that cannot be read leaves its last good value,
    /// and a value that the CRD does not allow is reported while its bound is in force.
    fn configured(&self, change: &Change<ConfigMapView>, requests: &mut Requests) {
        let Some(config_map) = &change.new else { return };
        let nothing = BTreeMap::new();
        let data = config_map.value.data().unwrap_or(&nothing);
        let (next, errors) = self.config.read().update(data);
        let errors = errors.into_iter().map(|error| {
            let reason = match &error {
                SectionError::Unreadable { .. } => "SLOCfgUnmarshalFailed",
                SectionError::OutOfRange { .. } => "SLOCfgOutOfRange",
            };
            ConfigError { key: error.key(), reason, message: error.to_string() }
        });
        self.config_errors.report(errors, (&change.key, config_map), requests);
        let differs = *self.config.read() != next;
        *self.config.write() = next;
        if differs {
            self.nodes.read().keys().for_each(|node| requests.enqueue(node));
        }
    }

    fn spec(&self, node: &NodeView, stored: Option<&NodeSloView>) -> Option<Value> {
        let resolved = self.config.read().for_node(&node.labels.to_map(), &node.annotations.to_map());
        let parts = [
            ("getResourceThresholdSpec", true),
            ("getResourceQOSSpec", true),
            ("getCPUBurstConfigSpec", true),
            ("getSystemConfigSpec", resolved.bandwidth_error.is_none()),
            ("getHostApplicationConfig", true),
            ("getNodeSLOExtension", true),
        ];
        for (part, succeeded) in parts {
            self.counts.specs.count(succeeded, part);
        }
        if let Some(error) = &resolved.bandwidth_error {
            tracing::warn!(%error, "a node's bandwidth annotation is no quantity; its system strategy is left out");
        }
        let mut spec = serde_json::to_value(&resolved.spec).ok()?;
        // The API server fills these in; without them every look would find a difference.
        defaults::apply(&SCHEMA, &mut spec);
        keep_extensions(&mut spec, stored.map(NodeSloView::spec));
        Some(spec)
    }
}

/// Third parties keep their data under `extensions.Object`; what stands there stays.
fn keep_extensions(spec: &mut Value, stored: Option<Value>) {
    let Some(Value::Object(theirs)) =
        stored.and_then(|mut stored| stored.pointer_mut("/extensions/Object").map(Value::take))
    else {
        return;
    };
    if !theirs.is_empty() {
        spec["extensions"] = json!({ "Object": theirs });
    }
}

impl Controller for NodeSloController {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        one_per_node::keep(key, &self.nodes.read(), &self.slos.read(), |node, stored| {
            match self.spec(&node.value, stored) {
                Some(spec) => Ok(Some(spec)),
                None => {
                    Err(ReconcileError::never(Fault::Bug, "a NodeSLO could not be written as JSON; please report it"))
                }
            }
        })
    }

    fn written(&self, _: &ObjectKey, write: &Write, result: Result<(), &ReconcileError>) {
        self.counts.written(write, result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_server_fills_in_is_no_difference() {
        let mut spec = json!({"resourceQOSStrategy": {"lsClass": {"networkQOS": {"enable": true, "egressLimit": 5}}}});
        defaults::apply(&SCHEMA, &mut spec);
        let filled =
            json!({"enable": true, "egressLimit": 5, "egressRequest": 0, "ingressLimit": 100, "ingressRequest": 0});
        assert_eq!(spec["resourceQOSStrategy"]["lsClass"]["networkQOS"], filled);
    }

    #[test]
    fn extensions_of_third_parties_stay() {
        let kept = |stored: Value| {
            let mut spec = json!({"extensions": {"Object": {}}});
            keep_extensions(&mut spec, Some(stored));
            spec["extensions"].to_string()
        };
        assert_eq!(kept(json!({"extensions": {"Object": {"x": 1}}})), r#"{"Object":{"x":1}}"#);
        assert_eq!(kept(json!({"extensions": {"Object": null}})), r#"{"Object":{}}"#);
        assert_eq!(kept(json!({})), r#"{"Object":{}}"#);
    }
}
