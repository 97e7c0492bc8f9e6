//! One call of the runtime: method and bytes in, bytes out.

use bytes::Bytes;

use super::{
    event::Event,
    handler::NriHandler,
    message::{
        adjustment::ContainerUpdate,
        object::{Container, PodSandbox},
        service::{
            ContainerRequest, CreateContainerResponse, PodSandboxRequest, StateChangeEvent, SynchronizeRequest,
            SynchronizeResponse, UpdateContainerRequest, UpdateContainerResponse,
        },
    },
};
use crate::{
    HandlerError,
    ttrpc::{Status, code, decode},
};

/// A call that a handler answers.
#[derive(Debug)]
pub(crate) enum Call {
    Synchronize(SynchronizeRequest),
    Event(Event, Bytes),
    StateChange(Bytes),
    Shutdown,
}

impl Call {
    /// The call of a method; `None` when there is no such method.
    pub(crate) fn of(method: &str, payload: Bytes) -> Option<Self> {
        match method {
            "StateChange" => Some(Self::StateChange(payload)),
            "Shutdown" => Some(Self::Shutdown),
            method => Event::of_method(method).map(|event| Self::Event(event, payload)),
        }
    }

    /// Calls the handler and encodes its answer. An answer that changes nothing is empty.
    pub(crate) fn answer(self, handler: &dyn NriHandler) -> Result<Bytes, CallError> {
        match self {
            Self::Synchronize(request) => {
                let update = handler.synchronize(request.pods, request.containers)?;
                Ok(encoded(&SynchronizeResponse { update: cleaned(update, None), more: false }))
            }
            Self::Event(event, payload) => event_answer(handler, event, payload),
            Self::StateChange(payload) => {
                let StateChangeEvent { event, pod, container } = decoded("StateChange", payload)?;
                // An event of a later version is not an error.
                Event::of_number(event).map_or(Ok(()), |event| lifecycle(handler, event, pod, container))?;
                Ok(Bytes::new())
            }
            Self::Shutdown => {
                handler.shutdown();
                Ok(Bytes::new())
            }
        }
    }
}

/// Why a call has no answer of the handler.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum CallError {
    /// The handler refuses; its error reaches the runtime.
    #[error(transparent)]
    Refused(#[from] HandlerError),
    /// The request cannot be decoded.
    #[error("{}", .0.message)]
    Malformed(Status),
}

impl From<CallError> for Status {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(HandlerError(text)) => Self::new(code::UNKNOWN, text),
            CallError::Malformed(status) => status,
        }
    }
}

fn event_answer(handler: &dyn NriHandler, event: Event, payload: Bytes) -> Result<Bytes, CallError> {
    match event {
        Event::CreateContainer => {
            let ContainerRequest { pod, container } = decoded("CreateContainer", payload)?;
            let created = handler.create_container(pod.unwrap_or_default(), container.unwrap_or_default())?;
            Ok(encoded(&CreateContainerResponse { adjust: created.adjust, update: cleaned(created.update, None) }))
        }
        Event::UpdateContainer => {
            let UpdateContainerRequest { pod, container, linux_resources } = decoded("UpdateContainer", payload)?;
            let container = container.unwrap_or_default();
            let id = container.id.clone();
            let update =
                handler.update_container(pod.unwrap_or_default(), container, linux_resources.unwrap_or_default())?;
            Ok(encoded(&UpdateContainerResponse { update: cleaned(update, Some(&id)) }))
        }
        Event::RunPodSandbox
        | Event::StopPodSandbox
        | Event::RemovePodSandbox
        | Event::UpdatePodSandbox
        | Event::PostUpdatePodSandbox => {
            let PodSandboxRequest { pod } = decoded(event.as_str(), payload)?;
            lifecycle(handler, event, pod, None)?;
            Ok(Bytes::new())
        }
        _ => {
            let ContainerRequest { pod, container } = decoded(event.as_str(), payload)?;
            lifecycle(handler, event, pod, container)?;
            Ok(Bytes::new())
        }
    }
}

fn lifecycle(
    handler: &dyn NriHandler,
    event: Event,
    pod: Option<PodSandbox>,
    container: Option<Container>,
) -> Result<(), HandlerError> {
    let pod = pod.unwrap_or_default();
    match event {
        Event::RunPodSandbox => handler.run_pod_sandbox(pod),
        Event::RemovePodSandbox => handler.remove_pod_sandbox(pod),
        other => handler.lifecycle(other, pod, container),
    }
}

/// Updates with a container id, without those that change nothing: a runtime finds the container by the id alone, and takes an
/// empty update for one that sets every value to 0.
fn cleaned(updates: Vec<ContainerUpdate>, of: Option<&str>) -> Vec<ContainerUpdate> {
    let mut updates = updates;
    for update in &mut updates {
        if let (true, Some(id)) = (update.container_id.is_empty(), of) {
            id.clone_into(&mut update.container_id);
        }
    }
    updates.retain(|update| !update.is_empty() && !update.container_id.is_empty());
    updates
}

fn decoded<M: prost::Message + Default>(what: &str, payload: Bytes) -> Result<M, CallError> {
    decode(what, payload).map_err(CallError::Malformed)
}

fn encoded(message: &impl prost::Message) -> Bytes {
    message.encode_to_vec().into()
}
