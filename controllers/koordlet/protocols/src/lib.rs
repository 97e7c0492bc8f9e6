//! Wire protocols of the node agent, without policy: frames become typed requests, a handler answers them, answers become frames.
//!
//! - [`nri`]: the plugin side of the Node Resource Interface of containerd and CRI-O, over its multiplexed ttrpc connection.
//! - [`hookserver`]: the hooks that koord-runtime-proxy calls over gRPC.
//! - [`podresources`]: the kubelet's pod resources, forwarded with devices added.
//! - [`cri`]: stops a container through CRI or through Docker.
//!
//! Quality of service classes, cgroup files and annotations are not known here. Nothing here ends the process: a missing socket, a
//! refused connection and a malformed frame are values. Read [`nri::NriHandler`], [`nri::NriClient`] and
//! [`hookserver::HookServer`] first.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod authority;
pub mod backoff;
mod buffer;
mod call;
pub mod cri;
mod grpc;
pub mod hookserver;
pub mod listen;
pub mod mux;
pub mod nri;
pub mod podresources;
pub mod ttrpc;

pub use call::{FailurePolicy, HandlerError};
