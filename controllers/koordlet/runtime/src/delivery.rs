//! How hooks reach containers, and what else of the outside surrounds the agent: calls of container runtimes, the proxy of pod resources, folders of pods, triggers for
//! pressure.
//!
//! Conversions and answers are functions without a socket: [`nri_create`] and its sisters for NRI, [`proxy_container`] and [`proxy_sandbox`] for the runtime
//! proxy. [`HookCalls`] joins them with the rules of an agent; the tasks beside it keep the sockets.

mod call;
mod hook_server;
mod nri;
mod nri_client;
mod pod_folders;
mod pod_resources;
mod pressure_triggers;
mod proxy;
mod report;

use std::sync::Arc;

use koord_core::random::Random;
use koord_koordlet_framework::Pod;
use koord_koordlet_hooks::Options;
pub use koord_koordlet_protocols::listen::ListenAddress as HookServerAddress;
use koord_runtime::{clock::SharedClock, manager::Manager};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use call::{HookCalls, NodeFolders};
pub use nri::{container_adjustment, container_update, nri_container, nri_create, nri_pod, nri_sandbox, nri_update};
pub use pod_folders::PodFolders;
pub use pressure_triggers::{PressureFiles, watch_pressure};
pub use proxy::{proxy_container, proxy_sandbox};

use crate::{agent::Agent, exchange::Input};
pub use crate::{
    called::Called,
    settings::{DeliverySettings, NriSettings, PodResourcesSettings},
};

/// What the connections of the node are made of.
pub struct Connections {
    pub settings: DeliverySettings,
    /// What flags and gates say for runtime hooks.
    pub hooks: Options,
    /// Whether nothing of the node is changed: then no runtime is answered.
    pub only_observes: bool,
    pub node: NodeFolders,
    pub pod_folders: PodFolders,
    pub pressure_files: PressureFiles,
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
    /// The pods of the node as they are now.
    pods: Box<dyn Fn() -> Arc<[Arc<Pod>]> + Send + Sync>,
    inputs: mpsc::UnboundedSender<Input>,
    clock: SharedClock,
    random: Random,
}

/// Gives the tasks of all connections to the manager: NRI, the hook server, the proxy of pod resources, the watch of pod folders and triggers for pressure. What cannot be had is a
/// degraded capability and is tried again.
pub fn install(connections: Connections, manager: &mut Manager) {
    let Connections { settings, hooks, only_observes, node, pod_folders, pressure_files, agent, inputs, clock, random } =
        connections;
    let rules = agent.lock().rules();
    let calls = Arc::new(HookCalls::new(rules, node, Arc::clone(&clock), inputs.clone()));
    let pods = Box::new(move || Arc::clone(agent.lock().pods()));
    let shared = Arc::new(Shared { settings, hooks, only_observes, calls, pods, inputs, clock, random });
    let of_task = Arc::clone(&shared);
    manager.on_every_replica("NRI", move |_, end| until(end.clone(), nri_client::run(Arc::clone(&of_task), end)));
    let of_task = Arc::clone(&shared);
    manager
        .on_every_replica("hook server", move |_, end| until(end.clone(), hook_server::run(Arc::clone(&of_task), end)));
    let of_task = Arc::clone(&shared);
    manager.on_every_replica("pod resources", move |_, end| {
        until(end.clone(), pod_resources::run(Arc::clone(&of_task), end))
    });
    let of_task = Arc::clone(&shared);
    manager.on_every_replica("pressure triggers", move |_, end| {
        let run = pressure_triggers::run(Arc::clone(&of_task), pressure_files.clone(), end.clone());
        until(end, run)
    });
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

#[cfg(test)]
mod testing {
    use std::{path::Path, sync::Arc, time::Duration};

    use arc_swap::ArcSwapOption;
    use koord_core::random::Random;
    use koord_koordlet_framework::read_pod;
    use koord_koordlet_hooks::{KernelSwitches, Options, RuleInputs, Rules};
    use koord_koordlet_protocols::listen::ListenAddress;
    use koord_koordlet_resolver::MountedFiles;
    use koord_koordlet_system::{Cgroups, Driver, KernelWriter, Layout, Version};
    use koord_runtime::clock::SystemClock;
    use tokio::sync::mpsc;

    use super::{DeliverySettings, HookCalls, NodeFolders, NriSettings, PodResourcesSettings, Shared};
    use crate::{capability::State, exchange::Input};

    /// Calls on a tree of files, by the rules of a default installation without a NodeSLO.
    pub(super) fn calls(root: &Path, options: Option<&Options>) -> (HookCalls, mpsc::UnboundedReceiver<Input>) {
        let layout = Layout::new(Version::V1, Driver::Cgroupfs);
        let rules = options.map(|options| {
            let (slo, topology, node, resctrl) = (None, None, None, None);
            let switches = KernelSwitches::default();
            Arc::new(Rules::new(RuleInputs { options, layout, slo, topology, node, switches, resctrl }, None))
        });
        let node = NodeFolders {
            files: MountedFiles::new(Cgroups::new(root.to_owned(), layout), Box::new(KernelWriter)),
            resctrl: root.join("resctrl"),
            sys: root.to_owned(),
        };
        let (inputs, taken) = mpsc::unbounded_channel();
        (HookCalls::new(Arc::new(ArcSwapOption::from(rules)), node, SystemClock::shared(), inputs), taken)
    }

    /// What tasks share, with every socket below this folder.
    pub(super) fn shared(root: &Path) -> (Arc<Shared>, mpsc::UnboundedReceiver<Input>) {
        let (inputs, taken) = mpsc::unbounded_channel();
        let second = Duration::from_secs(1);
        let pod = r#"{"metadata":{"name":"a","namespace":"default","uid":"1"},"spec":{"containers":[]},"status":{}}"#;
        let pod = read_pod(pod, Layout::new(Version::V1, Driver::Cgroupfs)).unwrap();
        let pods: Arc<[_]> = Arc::new([Arc::new(pod)]);
        let settings = DeliverySettings {
            nri: Some(NriSettings {
                socket: root.join("nri.sock"),
                plugin_name: "koordlet_nri".to_owned(),
                plugin_index: "00".to_owned(),
                connect_timeout: second,
                first_pause: second,
                pauses_max: 10,
                pause_factor: 2.0,
                pause_cap: second,
            }),
            hook_server: ListenAddress::Unix(root.join("koordlet/koordlet.sock")),
            host_endpoint: "/run/koordlet.sock".to_owned(),
            proxy_configuration: root.join("hookserver.d"),
            terway: root.join("terway"),
            pod_resources: Some(PodResourcesSettings {
                folder: root.join("koordlet/pod-resources"),
                kubelet: root.join("kubelet.sock"),
            }),
            pressure_triggers: true,
        };
        let shared = Shared {
            settings,
            hooks: Options::default(),
            only_observes: false,
            calls: Arc::new(calls(root, Some(&Options::default())).0),
            pods: Box::new(move || Arc::clone(&pods)),
            inputs,
            clock: SystemClock::shared(),
            random: Random::seeded(1),
        };
        (Arc::new(shared), taken)
    }

    /// The next report of a feature, as text.
    pub(super) async fn report(taken: &mut mpsc::UnboundedReceiver<Input>, of: &str) -> String {
        loop {
            match taken.recv().await {
                Some(Input::Capability { feature, state }) if feature == of => {
                    return match state {
                        State::Degraded { reason, .. } => reason,
                        state => state.to_string(),
                    };
                }
                Some(_) => {}
                None => return "the task has ended".to_owned(),
            }
        }
    }
}
