//! One hook without a server, for simulations.

use prost::Message;

use super::server::{ContainerStage, HookHandler, PodStage};
use crate::HandlerError;

/// Why a hook has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The service has no such method.
    #[error("the hook service has no method {0}")]
    UnknownMethod(String),
    /// The request cannot be decoded.
    #[error("the request cannot be decoded: {0}")]
    Malformed(String),
    /// The handler refuses.
    #[error(transparent)]
    Refused(#[from] HandlerError),
}

impl CallError {
    /// The name of its code in gRPC.
    pub fn code_name(&self) -> &'static str {
        match self {
            Self::UnknownMethod(_) => "UNIMPLEMENTED",
            Self::Malformed(_) => "INTERNAL",
            Self::Refused(_) => "UNKNOWN",
        }
    }
}

/// A call of the hook service: name of the method and encoded request, encoded answer. The handler runs in the caller's thread.
pub fn answer(handler: &dyn HookHandler, method: &str, request: &[u8]) -> Result<Vec<u8>, CallError> {
    if let Some(stage) = PodStage::ALL.into_iter().find(|stage| stage.method() == method) {
        return Ok(handler.pod_sandbox(stage, decode(request)?)?.encode_to_vec());
    }
    if let Some(stage) = ContainerStage::ALL.into_iter().find(|stage| stage.method() == method) {
        return Ok(handler.container(stage, decode(request)?)?.encode_to_vec());
    }
    Err(CallError::UnknownMethod(method.to_owned()))
}

fn decode<M: Message + Default>(request: &[u8]) -> Result<M, CallError> {
    M::decode(request).map_err(|error| CallError::Malformed(error.to_string()))
}
