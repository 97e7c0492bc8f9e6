//! How hooks reach containers, and what else of the outside surrounds the agent: calls of container runtimes, the proxy of pod resources, folders of pods.
//!
//! Conversions and answers are functions without a socket: [`nri_create`] and its sisters for NRI, [`proxy_container`] and [`proxy_sandbox`] for the runtime
//! proxy. [`HookCalls`] joins them with the rules of an agent; the tasks beside it keep the sockets.

mod call;
mod nri;
mod proxy;

pub use call::{Called, HookCalls, NodeFolders};
pub(crate) use call::{Done, effects};
pub use nri::{container_adjustment, container_update, nri_container, nri_create, nri_pod, nri_sandbox, nri_update};
pub use proxy::{proxy_container, proxy_sandbox};
