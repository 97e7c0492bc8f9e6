//! The devices of a node, and the shares of them that pods have.

use std::collections::BTreeMap;

use koord_resource::ResourceList;

/// A device of a node: its type, such as `gpu`, and its minor number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId {
    /// The type.
    pub type_: String,
    /// The minor number, unique among the devices of one type.
    pub minor: i32,
}

/// A device as a node reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportedDevice {
    /// Whether it is healthy. An unhealthy device has no free resources.
    pub is_healthy: bool,
    /// The resources of the device.
    pub resources: ResourceList,
    /// Its NUMA node, where that is known.
    pub numa_node: Option<i32>,
}

/// The devices of one node, with what is allocated of them.
///
/// ```
/// use koord_scheduling::{DeviceId, NodeDevices, ReportedDevice};
/// # fn list(text: &str) -> koord_resource::ResourceList { serde_json::from_str(text).unwrap() }
/// let gpu = DeviceId { type_: "gpu".to_owned(), minor: 0 };
/// let resources = list(r#"{"koordinator.sh/gpu-core":"100"}"#);
/// let mut devices = NodeDevices::default();
/// devices.report(gpu.clone(), ReportedDevice { is_healthy: true, resources, numa_node: None });
/// devices.allocate(gpu.clone(), "default/train", &list(r#"{"koordinator.sh/gpu-core":"60"}"#));
/// assert_eq!(devices.get(&gpu).unwrap().free(), list(r#"{"koordinator.sh/gpu-core":"40"}"#));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeDevices(BTreeMap<DeviceId, NodeDevice>);

/// One device of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeDevice {
    /// The node's report; none where pods have a device that the node does not report.
    pub reported: Option<ReportedDevice>,
    /// The allocated shares, by the pod's namespace and name.
    pub allocations: BTreeMap<String, ResourceList>,
}

/// Why allocations of a device contradict the node's report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceConflict {
    /// The node does not report the device.
    #[error("the node reports no such device")]
    Unknown,
    /// The device is unhealthy.
    #[error("the device is unhealthy")]
    Unhealthy,
    /// More is allocated than the device has.
    #[error("more is allocated than the device has of {}", .0.join(", "))]
    Overcommitted(Vec<String>),
}

// === impl NodeDevices ===

impl NodeDevices {
    /// Takes the node's report of a device.
    pub fn report(&mut self, id: DeviceId, device: ReportedDevice) {
        self.0.entry(id).or_default().reported = Some(device);
    }

    /// Allocates a share of a device to a pod, whether or not the node reports the device. Several shares add up.
    pub fn allocate(&mut self, id: DeviceId, pod: &str, share: &ResourceList) {
        self.0.entry(id).or_default().allocations.entry(pod.to_owned()).or_default().add(share);
    }

    /// A device that is reported or allocated.
    pub fn get(&self, id: &DeviceId) -> Option<&NodeDevice> {
        self.0.get(id)
    }

    /// All devices that are reported or allocated, by type and minor number.
    pub fn iter(&self) -> impl Iterator<Item = (&DeviceId, &NodeDevice)> {
        self.0.iter()
    }

    /// The devices whose allocations contradict the report.
    pub fn conflicts(&self) -> impl Iterator<Item = (&DeviceId, DeviceConflict)> {
        self.iter().filter_map(|(id, device)| Some((id, device.conflict()?)))
    }
}

// === impl NodeDevice ===

impl NodeDevice {
    /// The resources that can be allocated: none where the device is not reported or unhealthy.
    pub fn total(&self) -> ResourceList {
        let healthy = self.reported.as_ref().filter(|device| device.is_healthy);
        healthy.map(|device| device.resources.clone()).unwrap_or_default()
    }

    /// The sum of all shares.
    pub fn used(&self) -> ResourceList {
        self.allocations.values().fold(ResourceList::new(), |sum, share| sum.plus(share))
    }

    /// Total minus used, not below zero.
    pub fn free(&self) -> ResourceList {
        remaining(&self.total(), &self.used())
    }

    /// Why the allocations contradict the report.
    pub fn conflict(&self) -> Option<DeviceConflict> {
        if self.allocations.is_empty() {
            return None;
        }
        let Some(reported) = &self.reported else { return Some(DeviceConflict::Unknown) };
        if !reported.is_healthy {
            return Some(DeviceConflict::Unhealthy);
        }
        let used = self.used();
        let over: Vec<String> = used.exceeding(&reported.resources).into_iter().map(str::to_owned).collect();
        (!over.is_empty()).then_some(DeviceConflict::Overcommitted(over))
    }
}

/// What is left of a total, not below zero. Resources that the total does not name are left out.
pub(crate) fn remaining(total: &ResourceList, used: &ResourceList) -> ResourceList {
    let names: Vec<&str> = total.names().collect();
    total.minus_down_to_zero(&used.only(&names))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(minor: i32) -> DeviceId {
        DeviceId { type_: "gpu".to_owned(), minor }
    }

    fn amounts(core: i64, memory: &str) -> ResourceList {
        let text = format!(r#"{{"koordinator.sh/gpu-core":"{core}","koordinator.sh/gpu-memory":"{memory}"}}"#);
        serde_json::from_str(&text).unwrap()
    }

    /// Two healthy GPUs and an unhealthy one.
    fn node() -> NodeDevices {
        let mut node = NodeDevices::default();
        for (minor, is_healthy) in [(0, true), (1, true), (2, false)] {
            let resources = amounts(100, "80Gi");
            node.report(gpu(minor), ReportedDevice { is_healthy, resources, numa_node: Some(minor / 2) });
        }
        node
    }

    #[test]
    fn shares_of_a_device_add_up_and_the_rest_is_free() {
        let mut node = node();
        node.allocate(gpu(0), "a/x", &amounts(30, "10Gi"));
        node.allocate(gpu(0), "a/x", &amounts(20, "10Gi"));
        node.allocate(gpu(0), "b/y", &amounts(25, "4Gi"));
        let device = node.get(&gpu(0)).unwrap();
        assert_eq!((device.used(), device.free()), (amounts(75, "24Gi"), amounts(25, "56Gi")));
        assert_eq!(device.allocations.keys().collect::<Vec<_>>(), ["a/x", "b/y"]);
        assert_eq!(node.get(&gpu(1)).unwrap().free(), amounts(100, "80Gi"));
        assert_eq!(node.conflicts().count(), 0);
    }

    #[test]
    fn an_unhealthy_device_has_nothing_free() {
        let node = node();
        let device = node.get(&gpu(2)).unwrap();
        assert_eq!((device.total(), device.free(), device.conflict()), Default::default());
    }

    #[test]
    fn a_resource_that_the_device_does_not_report_is_no_conflict() {
        let mut node = node();
        let share: ResourceList = serde_json::from_str(r#"{"koordinator.sh/gpu-memory-ratio":"100"}"#).unwrap();
        node.allocate(gpu(0), "a/x", &share);
        assert_eq!((node.conflicts().count(), node.get(&gpu(0)).unwrap().free()), (0, amounts(100, "80Gi")));
    }

    #[test]
    fn allocations_that_contradict_the_report_are_conflicts() {
        let mut node = node();
        node.allocate(gpu(0), "a/x", &amounts(80, "1Gi"));
        node.allocate(gpu(0), "a/y", &amounts(40, "1Gi"));
        node.allocate(gpu(2), "a/x", &amounts(1, "1Gi"));
        node.allocate(gpu(7), "a/x", &amounts(1, "1Gi"));
        assert_eq!(node.get(&gpu(0)).unwrap().free(), amounts(0, "78Gi"), "not below zero");
        let over = DeviceConflict::Overcommitted(vec!["koordinator.sh/gpu-core".to_owned()]);
        assert_eq!(
            node.conflicts().collect::<Vec<_>>(),
            [(&gpu(0), over), (&gpu(2), DeviceConflict::Unhealthy), (&gpu(7), DeviceConflict::Unknown)]
        );
    }
}
