//! Calls of container runtimes to the agent, without sockets.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use koord_core::clock::ManualClock;
use koord_koordlet_hooks::{FailurePolicy, PROXY_CONFIGURATION_FILE, proxy_configuration};
use koord_koordlet_protocols::{
    FailurePolicy as ProtocolPolicy,
    backoff::Backoff,
    hookserver,
    nri::{EventMask, Exchange, NriOptions},
};
use koord_koordlet_resolver::MountedFiles;
use koord_koordlet_runtime::{
    Agent, Input, Settings,
    delivery::{HookCalls, NodeFolders, NriSettings},
};
use koord_koordlet_system::Cgroups;
use koord_koordlet_testing::Setup;
use prost::Message as _;
use tokio::sync::mpsc;

/// The hook server and the connection to NRI of an agent.
pub(crate) struct Calls {
    handler: Arc<HookCalls>,
    clock: Arc<ManualClock>,
    inputs: mpsc::UnboundedReceiver<Input>,
    /// Where the proxy's configuration is written, with its text.
    configuration: Option<(PathBuf, String)>,
    /// Where the runtime listens.
    nri_socket: Option<PathBuf>,
    nri: Exchange,
}

impl Calls {
    pub(crate) fn new(agent: &Agent, settings: &Settings, setup: &Setup, clock: Arc<ManualClock>) -> Self {
        let (sender, inputs) = mpsc::unbounded_channel();
        let cgroups = Cgroups::new(settings.roots.cgroup.clone(), agent.layout());
        let node = NodeFolders {
            files: MountedFiles::new(cgroups, Box::new(setup.kernel.clone())),
            resctrl: settings.roots.sys_fs.join("resctrl"),
            sys: settings.roots.sys.clone(),
        };
        let handler = Arc::new(HookCalls::new(agent.rules(), node, clock.clone(), sender));
        let delivery = &settings.delivery;
        let nri = delivery.nri.as_ref();
        let text = |text: fn(&NriSettings) -> &str| nri.map(text).unwrap_or_default().to_owned();
        let options = NriOptions {
            socket: PathBuf::new(),
            plugin_name: text(|nri| &nri.plugin_name),
            plugin_index: text(|nri| &nri.plugin_index),
            events: EventMask::KOORDLET,
            registration_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(1),
            calls_max: 8,
            synchronize_objects_max: 10_000,
            established_after: Duration::from_secs(6),
            backoff: Backoff { first: Duration::from_secs(1), factor: 2.0, cap: Duration::from_mins(1), jitter: 0.1 },
            failure_policy: match settings.hooks.failure_policy {
                FailurePolicy::Fail => ProtocolPolicy::Fail,
                FailurePolicy::Ignore => ProtocolPolicy::Ignore,
            },
        };
        let configuration = proxy_configuration(&settings.hooks, &delivery.host_endpoint);
        Self {
            nri_socket: nri.map(|nri| nri.socket.clone()),
            nri: Exchange::new(options, handler.clone()),
            configuration: Some((delivery.proxy_configuration.join(PROXY_CONFIGURATION_FILE), configuration)),
            handler,
            clock,
            inputs,
        }
    }

    /// Lets the time of calls follow the time of the agent.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
    }

    /// The proxy may call as soon as the pods of the node are known.
    pub(crate) fn serve(&mut self, agent: &Agent) {
        if !agent.pods().is_empty()
            && let Some((file, text)) = self.configuration.take()
        {
            // A folder that is not there is one of a node without the proxy.
            _ = fs::write(file, text);
        }
    }

    /// What calls have done since it was last asked.
    pub(crate) fn inputs(&mut self) -> Vec<Input> {
        std::iter::from_fn(|| self.inputs.try_recv().ok()).collect()
    }

    pub(crate) fn hook(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>, String> {
        hookserver::answer(&*self.handler, method, request).map_err(|error| error.code_name().to_owned())
    }

    /// The registration, where a runtime listens and pods are known.
    pub(crate) fn registration(&self, agent: &Agent) -> Option<Vec<u8>> {
        let socket = self.nri_socket.as_ref()?;
        (socket.exists() && !agent.pods().is_empty()).then(|| self.nri.registration().encode_to_vec())
    }

    pub(crate) fn nri(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>, i32> {
        let answer = self.nri.call(method, request.to_vec().into());
        answer.map(|bytes| bytes.to_vec()).map_err(|status| status.code)
    }
}
