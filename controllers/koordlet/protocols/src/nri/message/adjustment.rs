//! What a plugin changes: a container that is being created, or containers that exist.

use std::collections::BTreeMap;

use super::{
    object::{LinuxDevice, Mount},
    resources::{LinuxResources, OptionalBool, OptionalI64, OptionalString, OptionalStrings},
};

/// Changes of a container that is being created.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerAdjustment {
    /// Annotations to set; a name that begins with `-` removes one.
    #[prost(btree_map = "string, string", tag = "2")]
    pub annotations: BTreeMap<String, String>,
    /// Mounts to add.
    #[prost(message, repeated, tag = "3")]
    pub mounts: Vec<Mount>,
    /// Variables to set.
    #[prost(message, repeated, tag = "4")]
    pub env: Vec<KeyValue>,
    /// Devices, resources and cgroup.
    #[prost(message, optional, tag = "6")]
    pub linux: Option<LinuxContainerAdjustment>,
    /// Command line in the place of the image's.
    #[prost(string, repeated, tag = "9")]
    pub args: Vec<String>,
}

/// Changes of devices, resources and cgroup.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxContainerAdjustment {
    /// Devices to add.
    #[prost(message, repeated, tag = "1")]
    pub devices: Vec<LinuxDevice>,
    /// Resources to set.
    #[prost(message, optional, tag = "2")]
    pub resources: Option<LinuxResources>,
    /// Cgroup.
    #[prost(string, tag = "3")]
    pub cgroups_path: String,
    /// OOM score adjustment.
    #[prost(message, optional, tag = "4")]
    pub oom_score_adj: Option<OptionalI64>,
    /// Group of resctrl; runtimes before NRI 0.11 know [`LinuxResources::rdt_class`] alone.
    #[prost(message, optional, tag = "11")]
    pub rdt: Option<LinuxRdt>,
}

/// A group of resctrl.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxRdt {
    /// Name of the group.
    #[prost(message, optional, tag = "1")]
    pub clos_id: Option<OptionalString>,
    /// Lines of its schemata.
    #[prost(message, optional, tag = "2")]
    pub schemata: Option<OptionalStrings>,
    /// Whether a monitoring group is made.
    #[prost(message, optional, tag = "3")]
    pub enable_monitoring: Option<OptionalBool>,
    /// Removes what was set before.
    #[prost(bool, tag = "4")]
    pub remove: bool,
}

/// A variable of the environment.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct KeyValue {
    /// Name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// Changes of a container that exists.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerUpdate {
    /// Id of the container.
    #[prost(string, tag = "1")]
    pub container_id: String,
    /// Resources to set.
    #[prost(message, optional, tag = "2")]
    pub linux: Option<LinuxContainerUpdate>,
    /// Whether the request goes on when this update fails.
    #[prost(bool, tag = "3")]
    pub ignore_failure: bool,
}

impl ContainerUpdate {
    /// An update that sets resources of a container.
    pub fn resources(container_id: impl Into<String>, resources: LinuxResources) -> Self {
        Self {
            container_id: container_id.into(),
            linux: Some(LinuxContainerUpdate { resources: Some(resources) }),
            ignore_failure: false,
        }
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.linux
            .as_ref()
            .and_then(|linux| linux.resources.as_ref())
            .is_none_or(|set| *set == LinuxResources::default())
    }
}

/// Changes of resources.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct LinuxContainerUpdate {
    /// Resources to set.
    #[prost(message, optional, tag = "1")]
    pub resources: Option<LinuxResources>,
}
