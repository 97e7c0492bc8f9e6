//! What is written for the device plugins of vendors (`DevicePluginAdaption`).

use std::time::Duration;

use koord_core::{
    key::ObjectKey,
    write::{Action, Write},
};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    Patch, Plugin as _, PreBindProgress,
    cluster::{Cluster, Placed},
};
use koord_types::{
    device::Device as ApiDevice,
    device_protocol::{DeviceAllocations, GPU_ISOLATION_PROVIDER},
    node_annotations::{GPU_MODEL, GPU_VENDOR},
};
use serde_json::json;
use thiserror::Error;

use super::DeviceShare;
use crate::device_share::device_plugin::{Adaption, AdaptionError, Binding, Lock, adapt};

/// How long a lock of a node may take to be seen.
const LOCK_SEEN: Duration = Duration::from_secs(10);

/// The device plugin of a vendor cannot use an allocation.
#[derive(Debug, Error)]
#[error("failed to adapt for GPU device plugin of vendor {vendor:?}: {source}")]
pub(super) struct VendorError {
    vendor: String,
    source: AdaptionError,
}

impl DeviceShare {
    /// What is written into the pod, and whether its binding waits for a lock of the node.
    pub(super) fn adapt(&self, allocations: &DeviceAllocations, placed: &Placed, cluster: &Cluster, patch: &mut Patch) {
        match self.adaption(allocations, placed, cluster) {
            None => {}
            // What is wrong is said by `prepared`.
            Some(Err(_)) => patch.wait = Some(patch.wait.unwrap_or(LOCK_SEEN)),
            Some(Ok(Adaption { annotations, labels, lock })) => {
                for (name, value) in annotations {
                    patch.annotate(name, value);
                }
                patch.labels.extend(labels.into_iter().map(|(name, value)| (name.to_owned(), Some(value))));
                if lock.is_some() {
                    patch.wait = Some(patch.wait.map_or(LOCK_SEEN, |wait| wait.max(LOCK_SEEN)));
                }
            }
        }
    }

    /// Whether the pod has its lock of the node, where it needs one.
    pub(super) fn lock(&self, allocations: &DeviceAllocations, placed: &Placed, cluster: &Cluster) -> PreBindProgress {
        match self.adaption(allocations, placed, cluster) {
            Some(Err(error)) => PreBindProgress::Failed(error.to_string()),
            Some(Ok(Adaption { lock: Some(Lock { name, value, is_held: false }), .. })) => {
                let node = cluster.node(placed.row).map(|node| ObjectKey::cluster(&node.name)).unwrap_or_default();
                let action =
                    Action::Patch { subresource: "", patch: json!({"metadata": {"annotations": {name: value}}}) };
                PreBindProgress::Write(self.name(), Write { kind: ResourceKind::NODE, key: node, action })
            }
            Some(Ok(_)) | None => PreBindProgress::Done,
        }
    }

    /// What is written for the device plugins of vendors, or why that cannot be; none where nothing is.
    fn adaption(
        &self,
        allocations: &DeviceAllocations,
        placed: &Placed,
        cluster: &Cluster,
    ) -> Option<Result<Adaption, VendorError>> {
        let pod = Some(&placed.pod).filter(|pod| self.0.adapts && !pod.is_reservation())?;
        let node = cluster.node(placed.row)?;
        let report = cluster.objects().get::<ApiDevice>(&node.name);
        let labels = report.and_then(|report| report.metadata.labels.as_ref());
        let label = |name: &str| labels.and_then(|labels| labels.get(name)).map_or("", String::as_str);
        let (vendor, model) = (label(GPU_VENDOR.name()), label(GPU_MODEL.name()));
        let binding = Binding {
            pod: (pod.key.namespace(), pod.key.name()),
            isolation: pod.template.labels.get(GPU_ISOLATION_PROVIDER.name()),
            node: &node.name,
            vendor,
            model,
            now: cluster.time(),
        };
        let is_known = |namespace: &str, name: &str| {
            let key = ObjectKey::new(namespace, name);
            let placed = cluster.pods().map(|placed| &placed.pod);
            placed.chain(cluster.pending()).any(|pod| pod.key == key)
        };
        let adaption = adapt(allocations, &binding, |name| node.annotations.get(name), is_known);
        Some(adaption.map_err(|source| VendorError { vendor: vendor.to_owned(), source }))
    }
}
