//! The NodeResourceTopology of the node: computed again and again, written where it differs.

use std::{sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_reports::{LiveTopology, MANAGED_BY, TopologyInput, TopologyReport};
use koord_koordlet_system::{CpuManagerState, is_gone, read};
use koord_resource::{controller::ResourceKind, schema::patch::merge};
use koord_runtime::{
    key::ObjectKey,
    write::{Action, Write},
};
use koord_types::node_resource_topology::v1alpha1::NodeResourceTopology;
use serde_json::{Value, json};

use super::{Agent, Now};
use crate::{
    capability::Capabilities,
    exchange::Effect,
    host::Host,
    objects::{Kept as _, TopologyObject},
    settings::Settings,
};

/// What is known of the report.
#[derive(Debug, Default)]
pub(super) struct Topology {
    pub(super) report: Option<TopologyReport>,
    /// The object as the watch shows it.
    pub(super) live: Option<Arc<TopologyObject>>,
    /// Whether the objects of the node are known: before that, nothing is created.
    pub(super) is_listed: bool,
    /// Counts changes of the topology.
    pub(super) generation: u64,
    next: Option<Moment>,
    /// The write that has no answer yet.
    under_way: Option<u64>,
    /// What `cpu_manager_state` said last, as far as it could be read.
    cpu_manager: Option<CpuManagerState>,
    refused: Vec<String>,
}

pub(super) const FEATURE: &str = "NodeTopologyReport";
const FAILURE_PAUSE: Duration = Duration::from_secs(3);

impl Topology {
    pub(super) fn due(&self, settings: &Settings) -> Option<Moment> {
        settings.intervals.topology.map(|_| self.next.unwrap_or_default())
    }

    /// Pods or the node have changed: the report is computed at once.
    pub(super) fn hurry(&mut self) {
        self.next = None;
    }

    pub(super) fn answered(&mut self, id: u64, error: Option<&str>, now: Moment, capabilities: &mut Capabilities) {
        if self.under_way != Some(id) {
            return;
        }
        self.under_way = None;
        if let Some(reason) = error {
            self.next = Some(now + FAILURE_PAUSE);
            let remedy = "let the agent's ServiceAccount create and patch noderesourcetopologies.topology.node.k8s.io";
            capabilities.degraded(FEATURE, reason, remedy);
        }
    }
}

impl Agent {
    /// Computes the report when it is due, and writes what differs.
    pub(super) fn report_topology(&mut self, now: Now) {
        let Some(interval) = self.settings.intervals.topology else { return };
        if self.topology.next.is_some_and(|next| next > now.moment) {
            return;
        }
        self.topology.next = Some(now.moment + interval);
        let Some(node) = self.node.clone() else { return };
        match self.topology_report(&node) {
            Ok(report) => {
                for refused in report.refused.iter().filter(|refused| !self.topology.refused.contains(refused)) {
                    tracing::warn!("{refused}");
                }
                self.topology.refused.clone_from(&report.refused);
                if self.topology.report.as_ref().is_none_or(|known| known.topology != report.topology) {
                    self.topology.generation += 1;
                }
                self.topology.report = Some(report);
                self.capabilities.active(FEATURE);
            }
            // The last good report counts on.
            Err((reason, remedy)) => {
                self.capabilities.degraded(FEATURE, reason, remedy);
            }
        }
        if !self.settings.features.has(FEATURE) || !self.topology.is_listed || self.topology.under_way.is_some() {
            return;
        }
        let action = match (&self.topology.live, &self.topology.report) {
            (None, report) => {
                let mut object = json!({
                    "apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
                    "metadata": {
                        "name": node.name, "labels": {MANAGED_BY.0: MANAGED_BY.1},
                        "ownerReferences": [{
                            "apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid,
                            "controller": true, "blockOwnerDeletion": true,
                        }],
                    },
                    "topologyPolicies": ["None"], "zones": [],
                });
                if let Some(patch) = report.as_ref().and_then(|report| report.patch(&LiveTopology::default())) {
                    object = merge::apply(object, &patch);
                }
                Action::Create(object)
            }
            (Some(live), Some(report)) => {
                let Some(mut patch) = report.patch(&live.live) else { return };
                // Zones are merged with what was read.
                patch["metadata"]["resourceVersion"] = Value::String(live.identity.resource_version.clone());
                patch["metadata"]["uid"] = Value::String(live.identity.uid.clone());
                Action::Patch { subresource: "", patch }
            }
            (Some(_), None) => return,
        };
        let id = self.next_id();
        self.topology.under_way = Some(id);
        let kind = ResourceKind::typed::<NodeResourceTopology>();
        debug_assert_eq!(kind, TopologyObject::KIND);
        let write = Write { kind, key: ObjectKey::cluster(&node.name), action };
        self.effects.push(Effect::Write { id, write });
    }

    fn topology_report(
        &mut self,
        node: &koord_koordlet_framework::Node,
    ) -> Result<TopologyReport, (String, &'static str)> {
        let asks = self.settings.kubelet.asks_configuration;
        let kubelet = self.kubelet.configuration.as_ref();
        if asks && kubelet.is_none() {
            let remedy = "see the feature `kubelet configuration`, or set --disable-query-kubelet-config";
            return Err(("the kubelet's configuration is not known yet".to_owned(), remedy));
        }
        let path = self.settings.roots.kubelet.join("cpu_manager_state");
        let state = match read(&path) {
            Ok(text) => CpuManagerState::parse(&text).map_err(|error| format!("{}: {error}", path.display())),
            Err(error) if is_gone(&error) => Ok(CpuManagerState::default()),
            Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
        };
        match state {
            Ok(state) => self.topology.cpu_manager = Some(state),
            Err(reason) if self.topology.cpu_manager.is_none() => {
                return Err((
                    reason,
                    "mount the kubelet's folder; the kubelet writes the file anew when it starts without it",
                ));
            }
            Err(reason) => tracing::debug!(reason, "the last good state of the kubelet's CPU manager counts"),
        }
        let numa = Host::numa(&self.settings.roots);
        self.collections.numa_nodes.count(numa.is_ok());
        let numa = numa.map_err(|error| (error.to_string(), "mount /sys of the node"))?;
        let cpu_manager = self.topology.cpu_manager.clone().unwrap_or_default();
        TopologyReport::new(TopologyInput {
            node,
            machine: &self.host.machine,
            numa: &numa,
            pods: &self.kubelet.pods,
            kubelet,
            cpu_manager: &cpu_manager,
            reports_huge_pages: self.settings.features.has("HugePageReport"),
        })
        .map_err(|error| (error.to_string(), "mount /sys of the node"))
    }
}
