//! The hooks of koord-runtime-proxy: service `runtime.v1alpha1.RuntimeHookService` on a socket or a port.

mod answer;
mod descriptor;
pub mod message;
mod server;

pub use answer::{CallError, answer};
pub use message::{
    ContainerMetadata, ContainerResourceHookRequest, ContainerResourceHookResponse, HugepageLimit,
    LinuxContainerResources, PodSandboxHookRequest, PodSandboxHookResponse, PodSandboxMetadata,
};
pub use server::{ContainerStage, HookHandler, HookOptions, HookServer, PodStage, SERVICE, ServeError};
