//! A handler that records its calls, and a client over connections that a test hands out.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use koord_koordlet_protocols::{
    FailurePolicy, HandlerError,
    backoff::Backoff,
    nri::{
        ConnectionState, Container, ContainerUpdate, Creation, Event, EventMask, LinuxResources, NriClient, NriHandle,
        NriHandler, NriOptions, PodSandbox,
    },
};
use tokio::{
    io::DuplexStream,
    sync::{Mutex as AsyncMutex, mpsc},
};

type Create = Box<dyn Fn(&Container) -> Result<Creation, HandlerError> + Send + Sync>;
type Update = Box<dyn Fn(&LinuxResources) -> Result<Vec<ContainerUpdate>, HandlerError> + Send + Sync>;

/// Records calls as texts.
pub(crate) struct Recorder {
    pub(crate) create: Create,
    pub(crate) update: Update,
    pub(crate) calls: Mutex<Vec<String>>,
}

impl Default for Recorder {
    fn default() -> Self {
        Self {
            create: Box::new(|_| Ok(Creation::default())),
            update: Box::new(|_| Ok(Vec::new())),
            calls: Mutex::default(),
        }
    }
}

impl Recorder {
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }

    fn record(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }
}

impl NriHandler for Recorder {
    fn synchronize(
        &self,
        pods: Vec<PodSandbox>,
        containers: Vec<Container>,
    ) -> Result<Vec<ContainerUpdate>, HandlerError> {
        self.record(format!("synchronize {} {}", pods.len(), containers.len()));
        Ok(Vec::new())
    }

    fn run_pod_sandbox(&self, pod: PodSandbox) -> Result<(), HandlerError> {
        self.record(format!("run {}", pod.name));
        Ok(())
    }

    fn remove_pod_sandbox(&self, pod: PodSandbox) -> Result<(), HandlerError> {
        self.record(format!("remove {}", pod.name));
        Ok(())
    }

    fn create_container(&self, pod: PodSandbox, container: Container) -> Result<Creation, HandlerError> {
        self.record(format!("create {}/{}", pod.name, container.name));
        (self.create)(&container)
    }

    fn update_container(
        &self,
        pod: PodSandbox,
        container: Container,
        requested: LinuxResources,
    ) -> Result<Vec<ContainerUpdate>, HandlerError> {
        self.record(format!("update {}/{}", pod.name, container.name));
        (self.update)(&requested)
    }

    fn lifecycle(&self, event: Event, pod: PodSandbox, container: Option<Container>) -> Result<(), HandlerError> {
        let container = container.map(|container| container.name).unwrap_or_default();
        self.record(format!("{} {}/{container}", event.as_str(), pod.name));
        Ok(())
    }

    fn shutdown(&self) {
        self.record("shutdown".into());
    }
}

pub(crate) fn options() -> NriOptions {
    NriOptions {
        socket: "/nonexistent/nri.sock".into(),
        plugin_name: "koordlet_nri".into(),
        plugin_index: "00".into(),
        events: EventMask::KOORDLET,
        registration_timeout: Duration::from_secs(5),
        call_timeout: Duration::from_secs(1),
        calls_max: 8,
        synchronize_objects_max: 10_000,
        established_after: Duration::from_secs(6),
        backoff: Backoff { first: Duration::from_secs(1), factor: 2.0, cap: Duration::from_mins(1), jitter: 0.1 },
        failure_policy: FailurePolicy::Ignore,
    }
}

/// A running client; connections come from the test.
pub(crate) struct Running {
    pub(crate) handle: NriHandle,
    connections: mpsc::Sender<io::Result<DuplexStream>>,
    task: tokio::task::JoinHandle<std::convert::Infallible>,
}

impl Running {
    pub(crate) fn new(options: NriOptions, handler: Arc<dyn NriHandler>) -> Self {
        let (client, handle) = NriClient::new(options, handler).unwrap();
        let (connections, given) = mpsc::channel(1);
        let given = Arc::new(AsyncMutex::new(given));
        let connect = move || {
            let given = Arc::clone(&given);
            async move { given.lock().await.recv().await.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into())) }
        };
        Self { handle, connections, task: tokio::spawn(client.run_with(connect, || 0.0)) }
    }

    /// Gives the client its next connection and returns the other end.
    pub(crate) async fn connect(&self) -> DuplexStream {
        let (plugin, runtime) = tokio::io::duplex(1 << 20);
        self.connections.send(Ok(plugin)).await.unwrap();
        runtime
    }

    /// Lets the next attempt fail.
    pub(crate) async fn fail(&self, kind: io::ErrorKind) {
        self.connections.send(Err(kind.into())).await.unwrap();
    }

    /// Waits for a state.
    pub(crate) async fn until(&self, wanted: impl FnMut(&ConnectionState) -> bool) -> ConnectionState {
        self.handle.state().wait_for(wanted).await.unwrap().clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
