//! Requests and answers of the services `Plugin` and `Runtime`.

use super::{
    adjustment::{ContainerAdjustment, ContainerUpdate},
    object::{Container, PodSandbox},
    resources::LinuxResources,
};

/// Full name of the service that a plugin offers.
pub const PLUGIN: &str = "nri.pkg.api.v1alpha1.Plugin";
/// Full name of the service that a runtime offers.
pub const RUNTIME: &str = "nri.pkg.api.v1alpha1.Runtime";

/// `Runtime.RegisterPlugin`, answered with an empty message.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RegisterPluginRequest {
    /// Name of the plugin.
    #[prost(string, tag = "1")]
    pub plugin_name: String,
    /// Two digits; plugins are called in their order.
    #[prost(string, tag = "2")]
    pub plugin_idx: String,
    /// Version of NRI that the plugin speaks.
    #[prost(string, tag = "3")]
    pub nri_version: String,
}

/// `Runtime.UpdateContainers`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UpdateContainersRequest {
    /// Containers to update.
    #[prost(message, repeated, tag = "1")]
    pub update: Vec<ContainerUpdate>,
}

/// Answer to `Runtime.UpdateContainers`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UpdateContainersResponse {
    /// Containers that could not be updated.
    #[prost(message, repeated, tag = "1")]
    pub failed: Vec<ContainerUpdate>,
}

/// `Plugin.Configure`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ConfigureRequest {
    /// Configuration of this plugin in the runtime's folder; mostly empty.
    #[prost(string, tag = "1")]
    pub config: String,
    /// Name of the runtime.
    #[prost(string, tag = "2")]
    pub runtime_name: String,
    /// Version of the runtime.
    #[prost(string, tag = "3")]
    pub runtime_version: String,
    /// Time for registration, in milliseconds.
    #[prost(int64, tag = "4")]
    pub registration_timeout: i64,
    /// Time for a request, in milliseconds; a plugin that takes longer is disconnected.
    #[prost(int64, tag = "5")]
    pub request_timeout: i64,
    /// Version of NRI that the runtime speaks; empty before 0.11.
    #[prost(string, tag = "6")]
    pub nri_version: String,
}

/// Answer to `Plugin.Configure`.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ConfigureResponse {
    /// Bits of the events that the plugin wants.
    #[prost(int32, tag = "2")]
    pub events: i32,
}

/// `Plugin.Synchronize`: pods and containers that exist, in one or several parts.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SynchronizeRequest {
    /// Pods.
    #[prost(message, repeated, tag = "1")]
    pub pods: Vec<PodSandbox>,
    /// Containers.
    #[prost(message, repeated, tag = "2")]
    pub containers: Vec<Container>,
    /// Whether a further part follows.
    #[prost(bool, tag = "3")]
    pub more: bool,
}

/// Answer to `Plugin.Synchronize`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SynchronizeResponse {
    /// Containers to update; in the answer to the last part only.
    #[prost(message, repeated, tag = "1")]
    pub update: Vec<ContainerUpdate>,
    /// `more` of the request; the runtime disconnects a plugin that does not repeat it.
    #[prost(bool, tag = "2")]
    pub more: bool,
}

/// Requests about a pod: `RunPodSandbox`, `StopPodSandbox`, `RemovePodSandbox`, `UpdatePodSandbox`, `PostUpdatePodSandbox`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PodSandboxRequest {
    /// The pod.
    #[prost(message, optional, tag = "1")]
    pub pod: Option<PodSandbox>,
}

/// Requests about a container: `CreateContainer`, `PostCreateContainer`, `StartContainer`, `PostStartContainer`,
/// `PostUpdateContainer`, `StopContainer`, `RemoveContainer`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ContainerRequest {
    /// Its pod.
    #[prost(message, optional, tag = "1")]
    pub pod: Option<PodSandbox>,
    /// The container.
    #[prost(message, optional, tag = "2")]
    pub container: Option<Container>,
}

/// Answer to `CreateContainer`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct CreateContainerResponse {
    /// Changes of the container.
    #[prost(message, optional, tag = "1")]
    pub adjust: Option<ContainerAdjustment>,
    /// Changes of other containers.
    #[prost(message, repeated, tag = "2")]
    pub update: Vec<ContainerUpdate>,
}

/// `UpdateContainer`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UpdateContainerRequest {
    /// Its pod.
    #[prost(message, optional, tag = "1")]
    pub pod: Option<PodSandbox>,
    /// The container with the resources it has.
    #[prost(message, optional, tag = "2")]
    pub container: Option<Container>,
    /// The resources it shall have.
    #[prost(message, optional, tag = "3")]
    pub linux_resources: Option<LinuxResources>,
}

/// Answer to `UpdateContainer`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct UpdateContainerResponse {
    /// Changes in the place of, or beside, the requested ones.
    #[prost(message, repeated, tag = "1")]
    pub update: Vec<ContainerUpdate>,
}

/// `StateChange`: events that a runtime, or an older one, has no method for.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StateChangeEvent {
    /// Number of the event.
    #[prost(int32, tag = "1")]
    pub event: i32,
    /// The pod.
    #[prost(message, optional, tag = "2")]
    pub pod: Option<PodSandbox>,
    /// The container; absent in events of pods.
    #[prost(message, optional, tag = "3")]
    pub container: Option<Container>,
}
