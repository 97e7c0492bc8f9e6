//! What the library answers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a function returns: 0 for success, or one of NVIDIA's error numbers.
pub type Code = u32;

/// A machine with GPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scenario {
    /// What `nvmlSystemGetDriverVersion` answers.
    pub driver_version: String,
    pub gpus: Vec<Gpu>,
    /// Events that have not been fetched yet, in their order. An event is fetched once, and only after events of its GPU were registered.
    pub events: Vec<Event>,
    /// Functions that fail, by name, with what they return.
    pub faults: BTreeMap<String, Code>,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    pub uuid: String,
    pub minor: u32,
    pub name: String,
    /// As NVIDIA writes it: `00000000:1A:00.0`.
    pub bus_id: String,
    pub memory_total_bytes: u64,
    pub memory_used_bytes: u64,
    /// Percent of the time in which a kernel ran.
    pub utilization: u32,
    pub processes: Vec<Process>,
    pub samples: Vec<Sample>,
    /// What the driver recommends, by NVIDIA's numbers; `None` for a driver that has no recommendations.
    pub recovery_action: Option<u32>,
    /// Kinds of events that are supported, as a bit mask; 8 is XIDs.
    pub event_types: u64,
    /// Functions that fail for this GPU.
    pub faults: BTreeMap<String, Code>,
}

/// A process that computes on a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// `None` where the driver does not know.
    pub memory_bytes: Option<u64>,
}

/// What a process used of the GPU's cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    pub pid: u32,
    /// Microseconds since 1970.
    pub time_us: u64,
    pub core_percent: u32,
}

/// An XID event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Place of the GPU in [`Scenario::gpus`].
    pub gpu: usize,
    pub xid: u64,
}
