//! The Device object of the node: what it says, and how the live one becomes that.

mod change;
mod names;

use std::collections::BTreeMap;

use koord_resource::{Quantity, ResourceList, quantity::Format};
use koord_types::{
    device::DeviceType,
    device_protocol::GPU_PARTITIONS,
    node_annotations::{GPU_DRIVER_VERSION, GPU_MODEL, GPU_PARTITION_POLICY, GPU_VENDOR},
    protocol::Labels,
    resource_names::{GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO, RDMA},
};

use self::names::label_value;
use crate::{
    found::{FoundDevice, VirtualFunctions},
    nvml::{Gpu, Gpus},
    rdma::{RdmaCard, RdmaCards},
    xpu::{XpuDevice, partition_policy, partitions},
};

pub use change::DeviceChange;

/// What the report is made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    /// Devices of device files, sorted by uuid. Where there are any, GPUs of NVIDIA are not reported.
    pub xpu: &'a [&'a XpuDevice],
    /// `None` while they are not looked for: the gate is off, or device files are the only source.
    pub gpus: Option<&'a Gpus>,
    /// `None` while they are not looked for.
    pub rdma: Option<&'a RdmaCards>,
}

/// What the Device object says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceReport {
    /// By type, then by minor number.
    pub devices: Vec<FoundDevice>,
    /// Labels that the object has, or has not; others stay as they are.
    pub labels: BTreeMap<&'static str, Option<String>>,
    /// The same for annotations.
    pub annotations: BTreeMap<&'static str, Option<String>>,
}

const VENDOR_NVIDIA: &str = "nvidia";
const WHOLE: i64 = 100;

impl DeviceReport {
    /// The devices of all sources. GPUs are of one source: device files, or NVIDIA's library.
    pub fn of(sources: &Sources<'_>) -> Self {
        let mut report = Self::default();
        let gpus: Vec<&Gpu> = sources.gpus.into_iter().flat_map(Gpus::gpus).collect();
        match (sources.xpu, gpus.as_slice()) {
            ([], []) => report.set_gpu_labels("", "", ""),
            ([], gpus) => report.add_gpus(gpus, sources.gpus.map_or("", Gpus::driver_version)),
            (xpu, _) => report.add_xpu(xpu),
        }
        report.devices.extend(sources.rdma.iter().flat_map(|rdma| &rdma.cards).map(of_card));
        report.devices.sort_by(|one, other| {
            (one.type_.as_str(), one.minor, &one.id).cmp(&(other.type_.as_str(), other.minor, &other.id))
        });
        report
    }

    fn add_xpu(&mut self, devices: &[&XpuDevice]) {
        self.devices.extend(devices.iter().map(|device| of_xpu(device)));
        if let Some(first) = devices.first() {
            self.set_gpu_labels(&first.vendor, &first.model, "");
        }
        let mut set = Labels::new();
        if let Some(policy) = partition_policy(devices) {
            GPU_PARTITION_POLICY.set(&mut set, &policy);
        }
        if let Some(partitions) = partitions(devices) {
            GPU_PARTITIONS.set(&mut set, &partitions);
        }
        let (policy, partitions) = (GPU_PARTITION_POLICY.name(), GPU_PARTITIONS.name());
        self.labels.insert(policy, set.remove(policy));
        self.annotations.insert(partitions, set.remove(partitions));
    }

    /// Partitions of NVIDIA's GPUs are the administrator's: they are not known here, and stay as they are.
    fn add_gpus(&mut self, gpus: &[&Gpu], driver_version: &str) {
        self.devices.extend(gpus.iter().map(|gpu| of_gpu(gpu)));
        let mut models = gpus.iter().map(|gpu| gpu.model.as_str()).filter(|model| !model.is_empty());
        let model = models.next().filter(|first| models.all(|model| model == *first)).unwrap_or_default();
        let model = model.strip_prefix("NVIDIA ").unwrap_or(model);
        self.set_gpu_labels(VENDOR_NVIDIA, model, driver_version);
        if model.is_empty() {
            // Nodes with GPUs of several models have the label, without a value.
            self.labels.insert(GPU_MODEL.name(), Some(String::new()));
        }
    }

    /// Labels without a value are taken away.
    fn set_gpu_labels(&mut self, vendor: &str, model: &str, driver_version: &str) {
        let labels =
            [(GPU_VENDOR.name(), vendor), (GPU_MODEL.name(), model), (GPU_DRIVER_VERSION.name(), driver_version)];
        for (name, value) in labels {
            self.labels.insert(name, Some(label_value(value)).filter(|value| !value.is_empty()));
        }
    }
}

fn of_xpu(device: &XpuDevice) -> FoundDevice {
    FoundDevice {
        type_: DeviceType::Gpu,
        id: device.uuid.clone(),
        minor: device.minor,
        resources: device.resources.clone(),
        topology: device.topology.clone(),
        health: device.health.clone(),
        virtual_functions: VirtualFunctions::default(),
    }
}

fn of_gpu(gpu: &Gpu) -> FoundDevice {
    let memory = Quantity::bytes(i64::try_from(gpu.memory_bytes).unwrap_or(i64::MAX));
    FoundDevice {
        type_: DeviceType::Gpu,
        id: gpu.uuid.clone(),
        minor: i32::try_from(gpu.minor).unwrap_or(i32::MAX),
        resources: [(GPU_CORE, whole()), (GPU_MEMORY, memory), (GPU_MEMORY_RATIO, whole())].into_iter().collect(),
        topology: gpu.topology.clone(),
        health: gpu.health.clone(),
        virtual_functions: VirtualFunctions::default(),
    }
}

fn of_card(card: &RdmaCard) -> FoundDevice {
    FoundDevice {
        type_: DeviceType::Rdma,
        id: card.address.to_string(),
        minor: card.minor,
        resources: ResourceList::from_iter([(RDMA, whole())]),
        topology: Some(card.topology.clone()),
        health: card.health.clone(),
        virtual_functions: card.virtual_functions.clone(),
    }
}

fn whole() -> Quantity {
    Quantity::new(WHOLE, Format::DecimalSI)
}
