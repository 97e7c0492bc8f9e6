//! What comes to the agent from outside, and what it asks of the outside.

use std::sync::Arc;

use koord_koordlet_framework::Node;
use koord_koordlet_system::{ContainerId, PressureResource};
use koord_runtime::{events::Event, write::Write};

use crate::{
    called::Called,
    capability::State,
    objects::{ClaimObject, DeviceObject, MetricObject, SloObject, TopologyObject},
};

/// Something from outside.
#[derive(Clone, Debug)]
pub enum Input {
    /// What the kubelet answered.
    Kubelet { path: KubeletPath, result: Result<Vec<u8>, KubeletFailure> },
    /// The state of an object of this node; `None` when there is none.
    Object(Object),
    /// All objects of the node are known now.
    Listed,
    /// A write of the agent was answered, with the HTTP status and the body, or failed.
    Written { id: u64, result: Result<(u16, String), String> },
    /// A container was stopped, or was not.
    Stopped { id: u64, result: Result<(), String> },
    /// A folder of a pod has come or gone.
    PodFolder,
    /// Tasks wait for this resource for longer than the trigger in the kernel allows.
    Pressure(PressureResource),
    /// A container runtime was answered.
    Called(Box<Called>),
    /// How a feature outside of the agent fares.
    Capability { feature: &'static str, state: State },
}

/// Why the kubelet gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletFailure {
    /// The HTTP status; `None` where there was no answer.
    pub status: Option<u16>,
    pub reason: String,
}

/// An object of this node.
#[derive(Clone, Debug)]
pub enum Object {
    Node(Option<Arc<Node>>),
    Metric(Option<Arc<MetricObject>>),
    Slo(Option<Arc<SloObject>>),
    Topology(Option<Arc<TopologyObject>>),
    Device(Option<Arc<DeviceObject>>),
    Claim(Arc<ClaimObject>),
}

/// What the kubelet is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeletPath {
    Pods,
    Configuration,
}

/// Something that is asked of the outside.
#[derive(Clone, Debug)]
pub enum Effect {
    AskKubelet(KubeletPath),
    /// A write to the API server; its answer comes with the same id.
    Write {
        id: u64,
        write: Write,
    },
    Event(Event),
    /// A container is stopped at once; the answer comes with the same id.
    StopContainer {
        id: u64,
        container: ContainerId,
    },
}

impl KubeletPath {
    pub const fn as_str(self) -> &'static str {
        match self {
            // The kubelet answers the path without the last slash with a redirect.
            Self::Pods => "/pods/",
            Self::Configuration => "/configz",
        }
    }
}
