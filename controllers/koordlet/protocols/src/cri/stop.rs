//! One call: stop a container.

use std::{path::PathBuf, time::Duration};

use http::uri::PathAndQuery;
use tonic::{Code, Status, transport::Channel};
use tonic_prost::ProstCodec;

use super::docker;
use crate::grpc;

/// Longest message.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
const STOP_CONTAINER: &str = "/runtime.v1.RuntimeService/StopContainer";

/// How a runtime is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// CRI v1 over gRPC.
    Cri,
    /// Docker's API over HTTP.
    Docker,
}

/// `StopContainer` of CRI v1, answered with an empty message.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct StopContainerRequest {
    /// Id of the container without the name of the runtime.
    #[prost(string, tag = "1")]
    pub container_id: String,
    /// Seconds between SIGTERM and SIGKILL; 0 kills at once.
    #[prost(int64, tag = "2")]
    pub timeout: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
struct StopContainerResponse {}

/// Why a container was not stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StopError {
    /// The runtime cannot be reached.
    #[error("the runtime at {} cannot be reached: {reason}", .socket.display())]
    Unreachable {
        /// Its socket.
        socket: PathBuf,
        /// Why.
        reason: String,
    },
    /// The runtime did not answer in time.
    #[error("the runtime at {} did not answer within {limit:?}", .socket.display())]
    TooLate {
        /// Its socket.
        socket: PathBuf,
        /// The time for the call.
        limit: Duration,
    },
    /// The runtime does not know the container.
    #[error("the runtime does not know container {0}")]
    NotFound(String),
    /// The runtime refused.
    #[error("the runtime refused to stop container {container}: {reason}")]
    Refused {
        /// Id of the container.
        container: String,
        /// What the runtime answered.
        reason: String,
    },
}

/// Stops containers of one runtime.
#[derive(Debug, Clone)]
pub struct ContainerStopper {
    socket: PathBuf,
    call_timeout: Duration,
    transport: Transport,
}

#[derive(Debug, Clone)]
enum Transport {
    Cri(Channel),
    Docker,
}

impl ContainerStopper {
    /// A client that connects with its first call, and again after the connection was lost. Must be made within a tokio runtime.
    pub fn new(protocol: Protocol, socket: PathBuf, call_timeout: Duration) -> Self {
        let transport = match protocol {
            Protocol::Cri => Transport::Cri(grpc::channel(socket.clone(), call_timeout)),
            Protocol::Docker => Transport::Docker,
        };
        Self { socket, call_timeout, transport }
    }

    /// Stops a container: SIGTERM, and SIGKILL after `grace_seconds`; with 0 at once. A container that has stopped is not an error.
    pub async fn stop_container(&self, id: &str, grace_seconds: u32) -> Result<(), StopError> {
        // The runtime answers when the container has stopped.
        let limit = self.call_timeout + Duration::from_secs(grace_seconds.into());
        match &self.transport {
            Transport::Cri(channel) => {
                let request = StopContainerRequest { container_id: id.to_owned(), timeout: grace_seconds.into() };
                let codec = ProstCodec::<StopContainerRequest, StopContainerResponse>::default();
                let path = PathAndQuery::from_static(STOP_CONTAINER);
                let answer = grpc::unary(channel.clone(), path, codec, request, MESSAGE_BYTES_MAX, limit).await;
                answer.map(|_| ()).map_err(|status| self.of_status(id, limit, &status))
            }
            Transport::Docker => docker::stop(&self.socket, id, grace_seconds, limit).await,
        }
    }

    fn of_status(&self, id: &str, limit: Duration, status: &Status) -> StopError {
        match status.code() {
            Code::NotFound => StopError::NotFound(id.to_owned()),
            Code::DeadlineExceeded => StopError::TooLate { socket: self.socket.clone(), limit },
            Code::Unavailable => {
                StopError::Unreachable { socket: self.socket.clone(), reason: status.message().to_owned() }
            }
            _ => StopError::Refused { container: id.to_owned(), reason: status.message().to_owned() },
        }
    }
}
