//! Nodes, pods and allocations in few words, with devices as [`koord_scheduler_testing::devices`] has them.

use std::collections::BTreeMap;

use koord_resource::ResourceList;
use koord_scheduler_framework::NumaHint;
use koord_scheduler_testing::devices::{list, numbered, report};
use koord_scheduling::NumaMask;
use koord_types::device::Device as ApiDevice;
use serde_json::Value;

use super::*;

const GPU_MEMORY: i64 = 80 << 30;

/// A node and what is tried on it.
pub(crate) struct Case {
    report: ApiDevice,
    used: String,
    labels: [String; 3],
    scorer: DeviceScorer,
    numa_nodes: Option<NumaMask>,
    is_reserving: bool,
}

impl Case {
    pub(crate) fn new(devices: &str) -> Self {
        Self {
            report: report(devices),
            used: String::new(),
            labels: Default::default(),
            scorer: DeviceScorer::default(),
            numa_nodes: None,
            is_reserving: true,
        }
    }

    /// Pods have these devices.
    pub(crate) fn used(mut self, used: &str) -> Self {
        used.clone_into(&mut self.used);
        self
    }

    /// A label of the report.
    pub(crate) fn labelled(mut self, name: &str, value: &str) -> Self {
        self.report.metadata.labels.get_or_insert_default().insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn partitions(mut self, table: &Value) -> Self {
        let name = "scheduling.koordinator.sh/gpu-partitions".to_owned();
        self.report.metadata.annotations.get_or_insert_default().insert(name, table.to_string());
        self
    }

    /// Labels of the node: vendor and model of its GPUs, and its policy.
    pub(crate) fn on_node(mut self, vendor: &str, model: &str, policy: &str) -> Self {
        self.labels = [vendor, model, policy].map(str::to_owned);
        self
    }

    pub(crate) fn packing(mut self) -> Self {
        let weights = [("koordinator.sh/gpu-memory-ratio", 1), ("koordinator.sh/gpu-memory", 1)];
        self.scorer = DeviceScorer::new(Preference::MostAllocated, weights);
        self
    }

    pub(crate) fn on_numa_nodes(mut self, numa_nodes: &[u32]) -> Self {
        self.numa_nodes = NumaMask::of(numa_nodes.iter().copied());
        self
    }

    pub(crate) fn before_reserving(mut self) -> Self {
        self.is_reserving = false;
        self
    }

    /// What a pod gets: `gpu0 rdma1:10+f1`, or why it gets nothing.
    pub(crate) fn allocate(&self, pod: &Value) -> String {
        self.with(pod, |allocator| match allocator.allocate(&DeviceLimits::default()) {
            Ok(allocation) => written(&allocation),
            Err(refused) => said(refused),
        })
    }

    pub(crate) fn score(&self, pod: &Value) -> i64 {
        self.with(pod, |allocator| allocator.score(&DeviceLimits::default()))
    }

    /// The sets of NUMA nodes that do: `+` after those that are preferred, then their score.
    pub(crate) fn numa_hints(&self, pod: &Value) -> String {
        let hint = |hint: &NumaHint| {
            let score = if hint.score == 0 { String::new() } else { hint.score.to_string() };
            format!("{}{}{score}", hint.nodes, if hint.is_preferred { "+" } else { "" })
        };
        self.with(pod, |allocator| match numa_hints(allocator, u32::MAX, &DeviceLimits::default()) {
            Ok((_, hints)) => hints.iter().map(hint).collect::<Vec<_>>().join(" "),
            Err(refused) => said(refused),
        })
    }

    fn with<T>(&self, pod: &Value, ask: impl FnOnce(&Allocator<'_>) -> T) -> T {
        let mut node = NodeDevices::default();
        node.report(&self.report);
        node.allocate(&allocation(&self.used));
        let request = request(pod);
        let gpus = request.gpus.as_ref();
        let templates = gpus.and_then(|gpus| templates().needed(gpus, &[DeviceResource::NpuCore]));
        let [vendor, model, policy] = &self.labels;
        ask(&Allocator {
            node: &node,
            labels: NodeLabels { vendor, model, honors_partitions: policy == "Honor" },
            request: &request,
            scorer: &self.scorer,
            templates: templates.as_ref(),
            numa_nodes: self.numa_nodes,
            is_reserving: self.is_reserving,
        })
    }
}

pub(crate) fn node(devices: &str) -> NodeDevices {
    let mut node = NodeDevices::default();
    node.report(&report(devices));
    node
}

pub(crate) fn templates() -> GpuTemplates {
    let resources = |core: &str| -> ResourceList {
        let text = format!("huawei.com/npu-core={core} huawei.com/npu-cpu=1 gpu-memory=8Gi");
        serde_json::from_value(list(&text)).unwrap()
    };
    let named =
        |names: &[(&str, &str)]| names.iter().map(|(name, core)| ((*name).to_owned(), resources(core))).collect();
    GpuTemplates::new(&BTreeMap::from([
        ("huawei-Ascend-910B3".to_owned(), named(&[("small", "3"), ("large", "6")])),
        ("huawei-Ascend-910B4".to_owned(), named(&[("one", "3"), ("other", "3")])),
    ]))
}

pub(crate) fn request(pod: &Value) -> DeviceRequest {
    read(pod).unwrap().unwrap()
}

pub(crate) fn rejected(pod: &Value) -> String {
    read(pod).unwrap_err().to_string()
}

fn read(pod: &Value) -> Result<Option<DeviceRequest>, InvalidDevices> {
    let requests = serde_json::from_value(pod["requests"].clone()).unwrap();
    let annotations =
        [("device-allocate-hint", "hints"), ("device-joint-allocate", "joint"), ("gpu-partition-spec", "partition")];
    let written = annotations.iter().filter(|(_, member)| !pod[*member].is_null());
    let written: BTreeMap<String, String> =
        written.map(|(name, member)| (format!("scheduling.koordinator.sh/{name}"), pod[*member].to_string())).collect();
    DeviceRequest::read(&requests, |name| pod["labels"][name].as_str(), |name| written.get(name).map(String::as_str))
}

/// `gpu0 gpu1:50 rdma0:10+f1`: devices, with the percentage and the virtual functions where it is not all of them.
pub(crate) fn allocation(text: &str) -> AllocatedDevices {
    let mut allocation = AllocatedDevices::default();
    for word in text.split_whitespace() {
        let mut parts = word.split('+');
        let (device, percent) = parts.next().map(|device| device.split_once(':').unwrap_or((device, "100"))).unwrap();
        let (type_, minor) = numbered(device);
        let (kind, percent) = (kind(type_), percent.parse::<i64>().unwrap());
        let amounts = match kind {
            Kind::Gpu => [
                (DeviceResource::GpuCore, percent),
                (DeviceResource::GpuMemory, GPU_MEMORY * percent / 100),
                (DeviceResource::GpuMemoryRatio, percent),
            ]
            .into_iter()
            .collect(),
            Kind::Rdma => [(DeviceResource::Rdma, percent)].into_iter().collect(),
            Kind::Fpga => [(DeviceResource::Fpga, percent)].into_iter().collect(),
        };
        let mut share = Share::new(minor, amounts);
        share.virtual_functions = parts.map(|bus_id| (0, bus_id.to_owned())).collect();
        allocation.0.entry(kind).or_default().push(share);
    }
    allocation
}

fn written(allocation: &AllocatedDevices) -> String {
    let share = |(kind, share): (Kind, &Share)| {
        let percent = match kind {
            Kind::Gpu => share.amounts.amount(DeviceResource::GpuMemoryRatio),
            Kind::Rdma => share.amounts.amount(DeviceResource::Rdma),
            Kind::Fpga => share.amounts.amount(DeviceResource::Fpga),
        };
        let percent = if kind == Kind::Gpu && percent == 100 { String::new() } else { format!(":{percent}") };
        let functions = share.virtual_functions.iter().map(|(_, bus_id)| format!("+{bus_id}"));
        let template = share.template.iter().map(|name| format!("#{name}"));
        format!("{kind}{}{percent}{}", share.minor, functions.chain(template).collect::<String>())
    };
    allocation.iter().map(share).collect::<Vec<_>>().join(" ")
}

fn said(refused: Refused) -> String {
    format!("{} {refused}", if refused.is_resolvable() { "U" } else { "UU" })
}

fn kind(type_: &str) -> Kind {
    Kind::ALL.into_iter().find(|kind| kind.to_string() == type_).unwrap()
}
