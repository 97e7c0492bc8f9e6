//! Stops containers: through CRI v1 (containerd, CRI-O, pouch), or through Docker's API.

mod docker;
mod endpoint;
mod stop;

pub use endpoint::{CONTAINERD_SOCKETS, CRIO_SOCKETS, DOCKER_SOCKETS, NoSocket, POUCH_SOCKETS, find_socket};
pub use stop::{ContainerStopper, Protocol, StopContainerRequest, StopError};
