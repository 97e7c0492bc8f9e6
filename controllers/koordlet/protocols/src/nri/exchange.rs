//! The protocol without a connection: for simulations, which have no sockets and a time of their own, and for fuzzing.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes};

use super::{
    EventMask, NriOptions, RuntimeInfo,
    dispatch::CallError,
    handler::NriHandler,
    message::service::RegisterPluginRequest,
    session::{Called, NRI_VERSION, Session},
};
use crate::{FailurePolicy, mux::FrameError, ttrpc::Status};

/// A plugin that is called directly. The handler runs in the caller's thread, without a limit of time.
pub struct Exchange {
    options: NriOptions,
    handler: Arc<dyn NriHandler>,
    session: Session,
}

impl Exchange {
    /// A plugin that is about to register.
    pub fn new(options: NriOptions, handler: Arc<dyn NriHandler>) -> Self {
        let session = Session::new(options.events, options.synchronize_objects_max);
        Self { options, handler, session }
    }

    /// What the plugin sends first.
    pub fn registration(&self) -> RegisterPluginRequest {
        RegisterPluginRequest {
            plugin_name: self.options.plugin_name.clone(),
            plugin_idx: self.options.plugin_index.clone(),
            nri_version: NRI_VERSION.to_owned(),
        }
    }

    /// A call of the service `Plugin`: name of the method and encoded request, encoded answer.
    pub fn call(&mut self, method: &str, request: Bytes) -> Result<Bytes, Status> {
        match self.session.call_of(method, request)? {
            Called::Answered(answer) => Ok(answer),
            Called::Call(call) => match call.answer(&*self.handler) {
                Err(CallError::Malformed(_)) if self.options.failure_policy == FailurePolicy::Ignore => {
                    Ok(Bytes::new())
                }
                answer => answer.map_err(Status::from),
            },
        }
    }

    /// What the runtime would write to the socket; returns what the plugin would. After an error the connection is closed.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Bytes, FrameError> {
        self.session.frames.buffer().put_slice(bytes);
        for todo in self.session.receive()? {
            let answer = todo.call.answer(&*self.handler).map_err(Status::from);
            self.session.answer(todo.stream, answer);
        }
        Ok(self.session.out.split().freeze())
    }

    /// The runtime, once it has configured the plugin.
    pub fn runtime(&self) -> Option<&RuntimeInfo> {
        self.session.runtime.as_ref()
    }

    /// The events that the runtime shall send: those of its configuration, or of the options.
    pub fn events(&self) -> EventMask {
        self.runtime().map_or(self.options.events, |runtime| runtime.events)
    }
}
