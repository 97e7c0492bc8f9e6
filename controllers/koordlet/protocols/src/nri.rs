//! The plugin side of the Node Resource Interface (NRI), version 0.12 and its older forms, as containerd 1.7 and 2 and CRI-O offer it.
//!
//! [`NriClient`] keeps one connection to the runtime for ever: it registers the plugin, is configured and synchronized, and calls
//! an [`NriHandler`] for each event. [`ConnectionState`] says how it stands.

mod client;
mod connection;
mod dispatch;
mod event;
mod exchange;
mod handler;
pub mod message;
mod session;
mod synchronize;

pub use client::{ConnectionState, NriClient, NriHandle, NriOptions, OptionsError, UpdateError};
pub use connection::Ended;
pub use event::{ConfigurationError, Event, EventMask};
pub use exchange::Exchange;
pub use handler::{Creation, NriHandler};
pub use message::{
    adjustment::{
        ContainerAdjustment, ContainerUpdate, KeyValue, LinuxContainerAdjustment, LinuxContainerUpdate, LinuxRdt,
    },
    object::{Container, LinuxContainer, LinuxDevice, LinuxPodSandbox, Mount, PodSandbox},
    resources::{
        HugepageLimit, LinuxCpu, LinuxMemory, LinuxPids, LinuxResources, OptionalBool, OptionalI64, OptionalString,
        OptionalStrings, OptionalU32, OptionalU64,
    },
};
pub use session::RuntimeInfo;
