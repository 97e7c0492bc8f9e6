//! How hooks reach containers, and what else of the outside surrounds the agent: calls of container runtimes, the proxy of pod resources, folders of pods.
//!
//! Conversions and answers are functions without a socket: [`nri_create`] and its sisters for NRI, [`proxy_container`] and [`proxy_sandbox`] for the runtime
//! proxy. [`HookCalls`] joins them with the rules of an agent; the tasks beside it keep the sockets.

mod call;
mod hook_server;
mod nri;
mod nri_client;
mod pod_folders;
mod pod_resources;
mod proxy;
mod report;
mod settings;

use std::sync::Arc;

use koord_core::random::Random;
use koord_koordlet_hooks::Options;
pub use koord_koordlet_protocols::listen::ListenAddress as HookServerAddress;
use koord_runtime::{clock::SharedClock, manager::Manager};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use call::{Called, HookCalls, NodeFolders};
pub(crate) use call::{Done, effects};
pub use nri::{container_adjustment, container_update, nri_container, nri_create, nri_pod, nri_sandbox, nri_update};
pub use pod_folders::PodFolders;
pub use proxy::{proxy_container, proxy_sandbox};
pub use settings::{DeliverySettings, NriSettings, PodResourcesSettings};

use crate::{agent::Agent, exchange::Input};

/// What the connections of the node are made of.
pub struct Connections {
    pub settings: DeliverySettings,
    /// What flags and gates say for runtime hooks.
    pub hooks: Options,
    /// Whether nothing of the node is changed: then no runtime is answered.
    pub only_observes: bool,
    pub node: NodeFolders,
    pub pod_folders: PodFolders,
    pub agent: Arc<Mutex<Agent>>,
    /// Where the agent takes what comes from outside.
    pub inputs: mpsc::UnboundedSender<Input>,
    pub clock: SharedClock,
    pub random: Random,
}

/// What tasks share.
struct Shared {
    settings: DeliverySettings,
    hooks: Options,
    only_observes: bool,
    calls: Arc<HookCalls>,
    agent: Arc<Mutex<Agent>>,
    inputs: mpsc::UnboundedSender<Input>,
    clock: SharedClock,
    random: Random,
}

/// Gives the tasks of all connections to the manager: NRI, the hook server, the proxy of pod resources and the watch of pod folders. What cannot be had is a
/// degraded capability and is tried again.
pub fn install(connections: Connections, manager: &mut Manager) {
    let Connections { settings, hooks, only_observes, node, pod_folders, agent, inputs, clock, random } = connections;
    let rules = agent.lock().rules();
    let calls = Arc::new(HookCalls::new(rules, node, Arc::clone(&clock), inputs.clone()));
    let shared = Arc::new(Shared { settings, hooks, only_observes, calls, agent, inputs, clock, random });
    let of_task = Arc::clone(&shared);
    manager.on_every_replica("NRI", move |_, end| until(end.clone(), nri_client::run(Arc::clone(&of_task), end)));
    let of_task = Arc::clone(&shared);
    manager.on_every_replica("hook server", move |_, end| until(end.clone(), hook_server::run(Arc::clone(&of_task), end)));
    let of_task = Arc::clone(&shared);
    manager.on_every_replica("pod resources", move |_, end| until(end.clone(), pod_resources::run(Arc::clone(&of_task), end)));
    manager.on_every_replica("pod folders", move |_, end| {
        let run = pod_folders::run(pod_folders.clone(), Arc::clone(&shared.clock), shared.inputs.clone(), end.clone());
        until(end, run)
    });
}

/// A connection that is switched off has nothing to do; its task ends with the others.
async fn until(end: CancellationToken, run: impl Future<Output = ()>) {
    run.await;
    end.cancelled().await;
}
