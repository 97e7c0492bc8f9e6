//! The devices of all nodes, kept up to date.

mod audit;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::ConfigMap;
use koord_resource::{ResourceList, yaml};
use koord_scheduler_framework::{
    cluster::{Cluster, Mismatch, Placed, Subject, state::State},
    columns::Row,
    object::ObjectChange,
    pod::Pod,
};
use koord_types::{
    device::Device as ApiDevice,
    node_annotations::{GPU_PARTITION_POLICY, GpuPartitionPolicy},
};

use super::{allocation::AllocatedDevices, mix::Mix, node::NodeDevices, template::GpuTemplates};

/// The devices of all nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Devices {
    rows: Vec<NodeDevices>,
    /// The templates by which GPUs can be divided, by the namespace and name of their ConfigMap.
    templates: BTreeMap<String, GpuTemplates>,
    /// What pods request of GPUs.
    pub mix: Mix,
    /// Nodes with a label by which GPUs are given out in partitions only.
    honoring: BTreeSet<Row>,
}

/// The part of the ConfigMap that has the templates.
const TEMPLATES: &str = "data.yaml";

impl Devices {
    /// Nodes without devices. Templates will be those of the ConfigMap of this namespace and name.
    pub fn new(templates_in: String) -> Self {
        Self { templates: [(templates_in, GpuTemplates::default())].into(), ..Self::default() }
    }

    /// The templates of the ConfigMap of this namespace and name; none where no plugin has named it.
    pub fn templates(&self, map: &str) -> Option<&GpuTemplates> {
        self.templates.get(map)
    }

    /// The devices of a node; none where nothing is known of any.
    pub fn of(&self, row: Row) -> Option<&NodeDevices> {
        self.rows.get(row.index()).filter(|node| !node.is_empty())
    }

    /// Whether the label of a node says that GPUs are given out in partitions only; a table of partitions goes before it.
    pub fn honors_partitions(&self, row: Row) -> bool {
        self.honoring.contains(&row)
    }

    fn at(&mut self, row: Row) -> &mut NodeDevices {
        let index = row.index();
        if index >= self.rows.len() {
            self.rows.resize_with(index + 1, NodeDevices::default);
        }
        &mut self.rows[index]
    }

    fn device(&mut self, cluster: &Cluster, node: &str, report: Option<&ApiDevice>) -> Vec<Row> {
        let row = cluster.row(node);
        match (row, report) {
            (Some(row), Some(report)) => self.at(row).report(report),
            (Some(row), None) => self.at(row).withdraw(),
            (None, _) => {}
        }
        row.into_iter().collect()
    }
}

impl State for Devices {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    /// Profiles share the devices; each has the templates of its own ConfigMap.
    fn join(&mut self, other: Box<dyn State>) {
        let other: Box<dyn std::any::Any> = other;
        self.templates.extend(other.downcast::<Self>().map(|other| other.templates).unwrap_or_default());
    }

    fn placed(&mut self, _: &Cluster, placed: &Placed) {
        if let Some(allocation) = placed.holds.get::<AllocatedDevices>() {
            self.at(placed.row).allocate(allocation);
        }
    }

    fn removed(&mut self, _: &Cluster, placed: &Placed) {
        if let Some(allocation) = placed.holds.get::<AllocatedDevices>() {
            self.at(placed.row).release(allocation);
        }
    }

    fn pod(&mut self, cluster: &Cluster, old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) {
        if let Some(pod) = new.or(old) {
            self.mix.pod(cluster, &pod.uid, new.map(|pod| &**pod));
        }
    }

    fn node(&mut self, cluster: &Cluster, row: Row) {
        self.mix.node(cluster, row);
        let policy = cluster.node(row).and_then(|node| node.labels.get(GPU_PARTITION_POLICY.name()));
        if policy == Some(GpuPartitionPolicy::Honor.as_str()) {
            self.honoring.insert(row);
        } else {
            self.honoring.remove(&row);
        }
        match cluster.node(row) {
            None => self.at(row).forget(),
            Some(node) if self.of(row).is_none_or(|devices| !devices.is_reported) => {
                if let Some(report) = cluster.objects().get::<ApiDevice>(&node.name) {
                    self.at(row).report(report);
                }
            }
            Some(_) => {}
        }
    }

    fn audit(&mut self, cluster: &Cluster, row: Row) -> Vec<(&'static str, String)> {
        self.audit_row(cluster, row)
    }

    fn audit_whole(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        let details = self.mix.audit(cluster);
        details.map(|details| Mismatch::new(Subject::Cluster, "gpu_demand", details)).into_iter().collect()
    }

    fn object(&mut self, cluster: &Cluster, change: &ObjectChange) -> Vec<Row> {
        let Some(key) = change.key() else { return Vec::new() };
        if let Some((_, report)) = change.of::<ApiDevice>() {
            return self.device(cluster, key.name(), report);
        }
        match change.of::<ConfigMap>() {
            Some((_, map)) => {
                let Some(known) = self.templates.get_mut(key.as_str()) else { return Vec::new() };
                *known = map.map(templates).unwrap_or_default();
                cluster.rows().map(|(row, _)| row).filter(|row| self.of(*row).is_some()).collect()
            }
            None => Vec::new(),
        }
    }
}

/// The templates of a ConfigMap; none where they cannot be read.
fn templates(map: &ConfigMap) -> GpuTemplates {
    let text = map.data.as_ref().and_then(|data| data.get(TEMPLATES));
    let value = text.and_then(|text| yaml::parse(text).ok());
    let by_model =
        value.and_then(|value| serde_json::from_value::<BTreeMap<String, BTreeMap<String, ResourceList>>>(value).ok());
    by_model.map(|by_model| GpuTemplates::new(&by_model)).unwrap_or_default()
}
