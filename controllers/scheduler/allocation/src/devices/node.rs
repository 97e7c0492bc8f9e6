//! The devices of a node, and what of them is in use.

use std::collections::BTreeMap;

use koord_scheduling::NumaMask;
use koord_types::{
    device::{Device as ApiDevice, DeviceInfo, VirtualFunctionGroup},
    device_protocol::GPU_PARTITIONS,
    node_annotations::{GpuPartitionPolicy, SECONDARY_DEVICE_WELL_PLANNED},
};

use super::{
    allocation::{AllocatedDevices, Share},
    amounts::{DeviceAmounts, DeviceResource},
    gpus::Gpus,
    partition::Partitions,
    request::Kind,
    scope::Scope,
};

/// The devices of a node, and what of them is in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeDevices {
    devices: BTreeMap<(Kind, i32), Device>,
    /// Whether the node ever reported its devices.
    pub is_reported: bool,
    /// The partitions of its GPUs, where the report has a table of them.
    pub partitions: Option<Partitions>,
    /// Whether GPUs are given out in these partitions only.
    pub honors_partitions: bool,
    /// Whether other devices are planned in pairs with GPUs.
    pub is_well_planned: bool,
    /// Where its GPUs are; none where that is not known of all.
    pub scopes: Option<Scope>,
    /// The GPUs that it reports, in few words.
    pub gpus: Gpus,
}

/// A device of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    pub id: String,
    /// Whether the node reports it; pods may have devices that it does not.
    pub is_reported: bool,
    /// Whether it is reported as unhealthy.
    pub is_unhealthy: bool,
    /// What pods can have of it: nothing of an unhealthy device.
    pub total: DeviceAmounts,
    /// What pods have of it.
    pub used: DeviceAmounts,
    pub place: Option<Place>,
    /// By which pods select it.
    pub labels: BTreeMap<String, String>,
    pub virtual_functions: Vec<VirtualFunctionGroup>,
    /// How many pods have a virtual function, by its address.
    functions_in_use: BTreeMap<String, u32>,
}

/// Where a device is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its NUMA node; below 0 for a device that is near all of them.
    pub numa_node: i32,
    pub pcie: String,
}

impl NodeDevices {
    /// The node reports its devices. Devices without a minor number cannot be allocated and are left out.
    pub fn report(&mut self, report: &ApiDevice) {
        self.devices.values_mut().for_each(Device::forget);
        for info in &report.spec.devices {
            if let (Some(kind), Some(minor)) = (info.type_.as_ref().and_then(Kind::of), info.minor) {
                self.devices.entry((kind, minor)).or_default().report(info);
            }
        }
        self.devices.retain(|_, device| device.is_reported || device.is_in_use());
        let labels = report.metadata.labels.clone().unwrap_or_default();
        let annotations = report.metadata.annotations.clone().unwrap_or_default();
        // A table that cannot be read is as good as none.
        self.partitions = GPU_PARTITIONS.get(&annotations).ok().flatten().map(|table| Partitions::of(&table));
        self.honors_partitions = GpuPartitionPolicy::of(&labels) == GpuPartitionPolicy::Honor;
        self.is_well_planned = SECONDARY_DEVICE_WELL_PLANNED.is_set(&labels);
        self.scopes = Scope::of(self.of(Kind::Gpu).filter(|(_, device)| device.is_reported));
        self.is_reported = true;
        self.count_gpus();
    }

    fn count_gpus(&mut self) {
        self.gpus = Gpus::of(self.of(Kind::Gpu).map(|(_, device)| device).filter(|device| device.is_reported));
    }

    /// The report is gone. The devices stay known, with nothing to be had of them.
    pub fn withdraw(&mut self) {
        self.devices.values_mut().for_each(|device| device.total = DeviceAmounts::default());
        self.count_gpus();
    }

    /// The node is gone, and its report with it.
    pub fn forget(&mut self) {
        let mut devices = std::mem::take(&mut self.devices);
        devices.values_mut().for_each(Device::forget);
        devices.retain(|_, device| device.is_in_use());
        *self = Self { devices, ..Self::default() };
    }

    /// A pod has these devices from now on.
    pub fn allocate(&mut self, allocation: &AllocatedDevices) {
        self.change(allocation, Device::take);
    }

    /// A pod no longer has these devices.
    pub fn release(&mut self, allocation: &AllocatedDevices) {
        self.change(allocation, Device::give_back);
    }

    fn change(&mut self, allocation: &AllocatedDevices, change: impl Fn(&mut Device, &Share)) {
        for (kind, share) in allocation.iter() {
            let device = self.devices.entry((kind, share.minor)).or_default();
            change(device, share);
            if !device.is_reported && !device.is_in_use() {
                self.devices.remove(&(kind, share.minor));
            }
        }
        self.count_gpus();
    }

    /// The same, without pods.
    pub fn unused(&self) -> Self {
        let mut unused = self.clone();
        unused.devices.retain(|_, device| device.is_reported);
        for device in unused.devices.values_mut() {
            (device.used, device.functions_in_use) = (DeviceAmounts::default(), BTreeMap::new());
        }
        unused.count_gpus();
        unused
    }

    /// What pods have of the devices, and what they have of others; none where they have the same of both.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let nothing = Device::default();
        let of = |node: &Self, key| Device::used_words(node.devices.get(key).unwrap_or(&nothing));
        let keys = self.devices.keys().chain(other.devices.keys().filter(|key| !self.devices.contains_key(key)));
        let differ = keys.map(|key| (key, of(self, key), of(other, key))).filter(|(_, own, other)| own != other);
        let words = differ.map(|((kind, minor), own, other)| format!("{kind} {minor} {own} instead of {other}"));
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    pub fn get(&self, kind: Kind, minor: i32) -> Option<&Device> {
        self.devices.get(&(kind, minor))
    }

    /// The devices of a kind, by minor number: those that are reported, and those that pods have.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (i32, &Device)> {
        let all = self.devices.range((kind, i32::MIN)..=(kind, i32::MAX));
        all.map(|((_, minor), device)| (*minor, device))
    }

    /// The NUMA nodes of the devices of a kind that report where they are, one for each device.
    pub fn numa_nodes_of(&self, kind: Kind) -> impl Iterator<Item = u32> {
        let places =
            self.of(kind).filter(|(_, device)| device.is_reported).filter_map(|(_, device)| device.place.as_ref());
        places.filter_map(|place| u32::try_from(place.numa_node).ok())
    }

    /// The NUMA nodes that have devices of any kind.
    pub fn numa_nodes(&self) -> NumaMask {
        let known = Kind::ALL.into_iter().flat_map(|kind| self.numa_nodes_of(kind));
        NumaMask::of(known.filter(|numa_node| *numa_node <= NumaMask::NODE_MAX)).unwrap_or_default()
    }

    /// The ids of devices of a kind that are reported as unhealthy.
    pub fn unhealthy(&self, kind: Kind) -> impl Iterator<Item = &str> {
        self.of(kind).filter(|(_, device)| device.is_unhealthy).map(|(_, device)| &*device.id)
    }

    /// Whether a device of a kind is reported as unhealthy.
    pub fn has_unhealthy(&self, kind: Kind) -> bool {
        if kind == Kind::Gpu { self.gpus.has_unhealthy } else { self.unhealthy(kind).next().is_some() }
    }

    /// Whether nothing is known of its devices.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty() && !self.is_reported
    }
}

impl Device {
    /// What pods can have of it now.
    pub fn free(&self) -> DeviceAmounts {
        self.total.left_after(&self.used)
    }

    /// What a pod has of a GPU of which it requests a part: both bytes of its memory and the percentage that they are.
    pub fn complete(&self, request: &DeviceAmounts) -> DeviceAmounts {
        completed(self.total.amount(DeviceResource::GpuMemory), request)
    }

    /// Whether a virtual function belongs to a pod.
    pub fn is_function_in_use(&self, bus_id: &str) -> bool {
        self.functions_in_use.contains_key(bus_id)
    }

    /// Whether a pod has a part of it.
    pub fn is_in_use(&self) -> bool {
        !self.used.is_zero() || !self.functions_in_use.is_empty()
    }

    /// What pods have of it.
    fn used_words(&self) -> String {
        let amounts = self.used.iter().map(|(resource, amount)| format!("{}={amount}", resource.name()));
        let words: Vec<String> = amounts.chain(self.functions_in_use.keys().cloned()).collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(" ") }
    }

    fn forget(&mut self) {
        let used = std::mem::take(&mut self.used);
        let functions_in_use = std::mem::take(&mut self.functions_in_use);
        *self = Self { used, functions_in_use, ..Self::default() };
    }

    fn report(&mut self, info: &DeviceInfo) {
        self.id.clone_from(&info.id);
        (self.is_reported, self.is_unhealthy) = (true, !info.health);
        self.total = if info.health { DeviceAmounts::read(&info.resources) } else { DeviceAmounts::default() };
        self.labels.clone_from(&info.labels);
        self.virtual_functions.clone_from(&info.vf_groups);
        let place = info.topology.as_ref();
        self.place = place.map(|place| Place { numa_node: place.node_id, pcie: place.pcie_id.clone() });
    }

    fn take(&mut self, share: &Share) {
        // Amounts of nothing are not kept, so that a release leaves what was there before.
        self.used = self.used.plus(&share.amounts).without(&DeviceAmounts::default());
        for (_, bus_id) in &share.virtual_functions {
            *self.functions_in_use.entry(bus_id.clone()).or_default() += 1;
        }
    }

    fn give_back(&mut self, share: &Share) {
        self.used = self.used.without(&share.amounts);
        for (_, bus_id) in &share.virtual_functions {
            let pods = self.functions_in_use.get(bus_id).copied().unwrap_or(0);
            match pods {
                2.. => _ = self.functions_in_use.insert(bus_id.clone(), pods - 1),
                _ => _ = self.functions_in_use.remove(bus_id),
            }
        }
    }
}

/// What a pod has of a GPU with so much memory.
pub fn completed(memory: i64, request: &DeviceAmounts) -> DeviceAmounts {
    use DeviceResource::{GpuMemory, GpuMemoryRatio};
    let mut completed = *request;
    match (request.get(GpuMemory), request.get(GpuMemoryRatio)) {
        (None, Some(ratio)) => completed.set(GpuMemory, percent_of(memory, ratio)),
        (Some(bytes), None) if memory > 0 => {
            // As floats, because the last percent depends on it.
            completed.set(GpuMemoryRatio, (bytes as f64 / memory as f64 * 100.0) as i64);
        }
        _ => {}
    }
    completed
}

fn percent_of(amount: i64, percent: i64) -> i64 {
    amount.saturating_mul(percent) / 100
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::devices::testing::{allocation, node};

    #[test]
    fn an_unhealthy_device_and_one_that_is_not_reported_have_nothing_free() {
        let mut node = node("gpu0 gpu1!");
        node.allocate(&allocation("gpu1:50 gpu7:100"));
        let free = |minor| node.get(Kind::Gpu, minor).unwrap().free().amount(DeviceResource::GpuCore);
        assert_eq!([0, 1, 7].map(free), [100, 0, 0]);
        assert!(node.get(Kind::Gpu, 1).unwrap().is_in_use(), "unhealthy as it is");
    }

    #[test]
    fn what_pods_have_outlasts_reports() {
        let mut node = node("gpu0 gpu1");
        node.allocate(&allocation("gpu0:50 gpu1:50"));
        node.report(&koord_scheduler_testing::devices::report("gpu0"));
        assert_eq!(
            node.of(Kind::Gpu).map(|(minor, device)| (minor, device.is_reported)).collect::<Vec<_>>(),
            [(0, true), (1, false)]
        );
        assert_eq!(node.get(Kind::Gpu, 0).unwrap().free().amount(DeviceResource::GpuCore), 50);
        node.release(&allocation("gpu1:50"));
        assert!(node.get(Kind::Gpu, 1).is_none());
        node.withdraw();
        assert!(node.get(Kind::Gpu, 0).unwrap().free().is_zero() && node.is_reported);
    }

    #[test]
    fn what_pods_have_outlasts_their_node() {
        let mut node = node("gpu0 gpu1");
        node.allocate(&allocation("gpu0:50"));
        node.forget();
        assert!(node.get(Kind::Gpu, 0).unwrap().is_in_use() && node.get(Kind::Gpu, 1).is_none());
        node.report(&koord_scheduler_testing::devices::report("gpu0 gpu1"));
        let free = |minor| node.get(Kind::Gpu, minor).unwrap().free().amount(DeviceResource::GpuCore);
        assert_eq!([0, 1].map(free), [50, 100], "the node has come back");
    }

    #[test]
    fn what_pods_have_does_not_depend_on_the_order_in_which_they_came() {
        let (nothing, some, less) = (allocation("gpu7:0"), allocation("gpu7:50"), allocation("gpu7:-50"));
        let mut node = node("gpu0");
        let empty = node.clone();
        node.allocate(&nothing);
        assert_eq!(node, empty, "nothing of a device that is not reported is no device");
        for allocation in [&some, &less] {
            node.allocate(allocation);
        }
        node.release(&some);
        assert_eq!(
            node.get(Kind::Gpu, 7).unwrap().used,
            DeviceAmounts::default().without(&some.of(Kind::Gpu)[0].amounts)
        );
        node.release(&less);
        assert_eq!(node, empty);
    }

    #[test]
    fn memory_and_its_percentage_are_completed_from_each_other() {
        let node = node("gpu0");
        let completed = |resource, amount| {
            let completed = node.get(Kind::Gpu, 0).unwrap().complete(&[(resource, amount)].into_iter().collect());
            serde_json::to_string(&completed.list()).unwrap()
        };
        let memory = completed(DeviceResource::GpuMemory, 27 << 30);
        assert_eq!(
            memory, r#"{"koordinator.sh/gpu-memory":"27Gi","koordinator.sh/gpu-memory-ratio":"33"}"#,
            "33.75 percent"
        );
        let ratio = completed(DeviceResource::GpuMemoryRatio, 30);
        assert_eq!(ratio, r#"{"koordinator.sh/gpu-memory":"24Gi","koordinator.sh/gpu-memory-ratio":"30"}"#);
    }

    proptest! {
        #[test]
        fn what_is_released_is_as_it_was_before(shares in vec((0..4_i32, 1..=100_i64, 0..3_u8), 1..6)) {
            let mut before = node("gpu0 gpu1 rdma0");
            before.allocate(&allocation("gpu0:30"));
            let mut after = before.clone();
            let given: Vec<AllocatedDevices> = shares.iter().map(|(minor, core, function)| {
                let mut given = allocation(&format!("gpu{minor}:{core}"));
                let mut card = Share::new(0, DeviceAmounts::default());
                card.virtual_functions.push((0, function.to_string()));
                given.0.insert(Kind::Rdma, vec![card]);
                given
            }).collect();
            for given in &given {
                after.allocate(given);
            }
            prop_assert!(before != after);
            for given in &given {
                after.release(given);
            }
            prop_assert_eq!(before, after);
        }
    }
}
