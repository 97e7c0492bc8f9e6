//! One connection: reads, calls the handler, writes answers, until one side ends it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{
    NriOptions, RuntimeInfo,
    dispatch::{Call, CallError},
    handler::NriHandler,
    message::service::UpdateContainersRequest,
    session::{Session, Todo, UpdateReply},
};
use crate::{
    FailurePolicy,
    call::{Calls, Unanswered},
    mux::FrameError,
    ttrpc::{Status, code},
};

/// Why a connection to the runtime ended, or could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The runtime closed it. Before registration: NRI may be switched off, or another plugin has taken its place.
    #[error("the runtime closed the connection")]
    Closed,
    /// Reading or writing failed.
    #[error("the connection failed: {0}")]
    Io(String),
    /// The runtime sent what the protocol does not allow.
    #[error("the runtime broke the protocol: {0}")]
    Malformed(#[from] FrameError),
    /// The runtime refused the plugin.
    #[error("the runtime refused the plugin: {0}")]
    Refused(Status),
    /// The runtime did not configure the plugin in time.
    #[error("the runtime did not configure the plugin within {0:?}")]
    NotConfigured(Duration),
    /// The runtime does not read.
    #[error("the runtime did not read an answer within {0:?}")]
    Stalled(Duration),
}

/// An unsolicited update for the runtime.
pub(super) struct UpdateCommand {
    pub(super) request: UpdateContainersRequest,
    pub(super) reply: UpdateReply,
}

/// Serves one connection. `on_configured` is called once, when the runtime has configured the plugin.
pub(super) async fn serve<S: AsyncRead + AsyncWrite>(
    stream: S,
    options: &NriOptions,
    handler: &Arc<dyn NriHandler>,
    calls: &Calls,
    updates: &mut mpsc::Receiver<UpdateCommand>,
    on_configured: impl FnOnce(&RuntimeInfo),
) -> Ended {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut session = Session::new(options.events, options.synchronize_objects_max);
    session.register(&options.plugin_name, &options.plugin_index);
    let mut on_configured = Some(on_configured);
    let mut running = FuturesUnordered::new();
    let configured_by = sleep(options.registration_timeout);
    tokio::pin!(configured_by);
    loop {
        if !session.out.is_empty() {
            match timeout(options.registration_timeout, writer.write_all_buf(&mut session.out)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Ended::Io(error.to_string()),
                Err(_) => return Ended::Stalled(options.registration_timeout),
            }
        }
        if let Some(status) = session.refused.take() {
            return Ended::Refused(status);
        }
        if let Some(runtime) = &session.runtime
            && let Some(report) = on_configured.take()
        {
            report(runtime);
        }
        tokio::select! {
            read = reader.read_buf(session.frames.buffer()) => match read {
                Ok(0) => return Ended::Closed,
                Ok(_) => match session.receive() {
                    Ok(todo) => running.extend(todo.into_iter().map(|todo| run(todo, options, handler, calls))),
                    Err(error) => return Ended::Malformed(error),
                },
                Err(error) => return Ended::Io(error.to_string()),
            },
            Some((stream, answer)) = running.next() => session.answer(stream, answer),
            Some(update) = updates.recv(), if on_configured.is_none() => session.update_containers(&update.request, update.reply),
            () = &mut configured_by, if on_configured.is_some() => return Ended::NotConfigured(options.registration_timeout),
        }
    }
}

/// The answer to one call.
async fn run(
    todo: Todo,
    options: &NriOptions,
    handler: &Arc<dyn NriHandler>,
    calls: &Calls,
) -> (u32, Result<Bytes, Status>) {
    let Todo { stream, call, limit } = todo;
    // A tenth of the runtime's time is left for the answer to arrive.
    let limit = limit.map_or(options.call_timeout, |limit| options.call_timeout.min(limit / 10 * 9));
    let name = call.name();
    let handler = Arc::clone(handler);
    let (failure, status) = match calls.call(limit, move || call.answer(&*handler)).await {
        Ok(Ok(answer)) => return (stream, Ok(answer)),
        Ok(Err(error @ CallError::Refused(_))) => return (stream, Err(error.into())),
        Ok(Err(error)) => (error.to_string(), Status::from(error)),
        Err(unanswered) => (unanswered.to_string(), status_of(unanswered)),
    };
    match options.failure_policy {
        FailurePolicy::Fail => {
            tracing::warn!(call = name, "NRI: {failure}; the request fails");
            (stream, Err(status))
        }
        FailurePolicy::Ignore => {
            tracing::warn!(call = name, "NRI: {failure}; nothing is changed");
            (stream, Ok(Bytes::new()))
        }
    }
}

fn status_of(unanswered: Unanswered) -> Status {
    let code = match unanswered {
        Unanswered::TooLate(_) => code::DEADLINE_EXCEEDED,
        Unanswered::Panicked => code::INTERNAL,
        Unanswered::TooMany => code::RESOURCE_EXHAUSTED,
    };
    Status::new(code, unanswered.to_string())
}

impl Call {
    fn name(&self) -> &'static str {
        match self {
            Self::Synchronize(_) => "Synchronize",
            Self::Event(event, _) => event.as_str(),
            Self::StateChange(_) => "StateChange",
            Self::Shutdown => "Shutdown",
        }
    }
}
