//! Containers are stopped by the runtime that runs them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use koord_koordlet_protocols::cri::{
    CONTAINERD_SOCKETS, CRIO_SOCKETS, ContainerStopper, DOCKER_SOCKETS, POUCH_SOCKETS, Protocol, find_socket,
};
use koord_koordlet_system::{ContainerId, Runtime};

/// Where runtimes listen, when not at a usual place.
#[derive(Clone, Debug, Default)]
pub struct RuntimeEndpoints {
    pub containerd: PathBuf,
    pub docker: PathBuf,
    pub pouch: PathBuf,
}

/// The runtimes of the node.
#[derive(Clone, Debug)]
pub struct Runtimes {
    run: PathBuf,
    endpoints: RuntimeEndpoints,
}

const CALL_TIMEOUT: Duration = Duration::from_secs(5);

impl Runtimes {
    /// Runtimes whose sockets are below this folder.
    pub fn new(run: &Path, endpoints: RuntimeEndpoints) -> Self {
        Self { run: run.to_owned(), endpoints }
    }

    /// How the runtime of a container is spoken to, and at which socket.
    ///
    /// # Errors
    ///
    /// The runtime has no socket.
    pub fn endpoint(&self, container: &ContainerId) -> Result<(Protocol, PathBuf), String> {
        let RuntimeEndpoints { containerd, docker, pouch } = &self.endpoints;
        let (protocol, sockets, configured): (_, &[&str], _) = match container.runtime {
            Runtime::Containerd => (Protocol::Cri, &CONTAINERD_SOCKETS, Some(containerd)),
            Runtime::Crio => (Protocol::Cri, &CRIO_SOCKETS, None),
            Runtime::Pouch => (Protocol::Cri, &POUCH_SOCKETS, Some(pouch)),
            Runtime::Docker => (Protocol::Docker, &DOCKER_SOCKETS, Some(docker)),
        };
        let socket = find_socket(&self.run, sockets, configured.map(PathBuf::as_path));
        Ok((protocol, socket.map_err(|error| error.to_string())?))
    }

    /// Stops a container at once.
    ///
    /// # Errors
    ///
    /// Its runtime has no socket, or does not stop it.
    pub async fn stop(&self, container: &ContainerId) -> Result<(), String> {
        let (protocol, socket) = self.endpoint(container)?;
        // Evictions are rare: a connection is not kept for them.
        let stopper = ContainerStopper::new(protocol, socket, CALL_TIMEOUT);
        stopper.stop_container(&container.id, 0).await.map_err(|error| error.to_string())
    }
}
