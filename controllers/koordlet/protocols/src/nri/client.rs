//! Keeps one connection to the runtime for ever.

use std::{convert::Infallible, future::Future, io, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep, timeout},
};

use super::{
    EventMask, RuntimeInfo,
    connection::{Ended, UpdateCommand, serve},
    handler::NriHandler,
    message::{adjustment::ContainerUpdate, service::UpdateContainersRequest},
};
use crate::{FailurePolicy, backoff::Backoff, call::Calls, ttrpc::Status};

/// Updates that wait for the connection.
const UPDATES_QUEUED_MAX: usize = 16;

/// How to connect, and the limits of a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct NriOptions {
    /// Socket of the runtime, `/var/run/nri/nri.sock` where nothing else is configured.
    pub socket: PathBuf,
    /// Letters, digits and `-_.+`.
    pub plugin_name: String,
    /// Two digits; plugins are called in their order.
    pub plugin_index: String,
    /// Events to subscribe to, where the runtime's configuration of the plugin does not say otherwise.
    pub events: EventMask,
    /// Time to connect, to be configured, and for one write to the socket.
    pub registration_timeout: Duration,
    /// Longest time for one call of the handler; the runtime's own limit, less a tenth, may be shorter.
    pub call_timeout: Duration,
    /// Calls of the handler at a time.
    pub calls_max: usize,
    /// Pods and containers that are accepted in one synchronization.
    pub synchronize_objects_max: usize,
    /// A connection that has stood so long begins the delays of reconnection anew.
    pub established_after: Duration,
    /// Delays between connections.
    pub backoff: Backoff,
    /// What is answered for a handler that does not answer.
    pub failure_policy: FailurePolicy,
}

/// An option that the runtime would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// The name is empty or has other characters.
    #[error("{0:?} is no name of an NRI plugin; use letters, digits and - _ . +")]
    PluginName(String),
    /// The index is not two digits.
    #[error("{0:?} is no index of an NRI plugin; use two digits such as 00")]
    PluginIndex(String),
}

impl NriOptions {
    /// Checks the name and the index of the plugin.
    pub fn validate(&self) -> Result<(), OptionsError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
        if self.plugin_name.is_empty() || !self.plugin_name.chars().all(allowed) {
            return Err(OptionsError::PluginName(self.plugin_name.clone()));
        }
        if self.plugin_index.len() != 2 || !self.plugin_index.chars().all(|c| c.is_ascii_digit()) {
            return Err(OptionsError::PluginIndex(self.plugin_index.clone()));
        }
        Ok(())
    }
}

/// How the connection to the runtime stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    /// No attempt has ended yet.
    Connecting,
    /// The socket does not exist: the runtime is down, too old, or has NRI switched off.
    SocketMissing {
        /// Attempts in a row that failed.
        failures: u32,
    },
    /// The connection was refused, or ended before the plugin was configured.
    Refused {
        /// Why.
        reason: Ended,
        /// Attempts in a row that failed.
        failures: u32,
    },
    /// The runtime has configured the plugin and sends events.
    Connected(RuntimeInfo),
    /// A connection has ended; the next attempt follows.
    Lost {
        /// Why.
        reason: Ended,
        /// Attempts in a row that failed; 1 for a connection that had stood [`NriOptions::established_after`].
        failures: u32,
    },
}

impl ConnectionState {
    /// Whether events arrive.
    pub fn is_connected(&self) -> bool {
        matches!(self, Self::Connected(_))
    }
}

impl std::fmt::Display for ConnectionState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connecting => f.write_str("connecting"),
            Self::SocketMissing { .. } => f.write_str("the runtime's NRI socket does not exist"),
            Self::Refused { reason, .. } | Self::Lost { reason, .. } => reason.fmt(f),
            Self::Connected(runtime) => write!(f, "connected to {} {}", runtime.name, runtime.version),
        }
    }
}

/// Keeps one connection to the runtime and answers its events with a handler.
pub struct NriClient {
    options: NriOptions,
    handler: Arc<dyn NriHandler>,
    calls: Calls,
    state: watch::Sender<ConnectionState>,
    updates: mpsc::Receiver<UpdateCommand>,
}

/// State of a client, and updates through it.
#[derive(Clone)]
pub struct NriHandle {
    state: watch::Receiver<ConnectionState>,
    updates: mpsc::Sender<UpdateCommand>,
}

/// Why containers were not updated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// There is no connection, or it ended before the answer.
    #[error("there is no connection to the runtime")]
    NotConnected,
    /// The runtime did not answer in time.
    #[error("the runtime did not answer within {0:?}")]
    TooLate(Duration),
    /// The runtime refused.
    #[error("the runtime refused the updates: {0}")]
    Refused(Status),
}

impl NriHandle {
    /// The state, and its changes.
    pub fn state(&self) -> watch::Receiver<ConnectionState> {
        self.state.clone()
    }

    /// Asks the runtime to update containers outside of an event. Returns those that it could not update. Updates without an id,
    /// or that change nothing, are not sent.
    pub async fn update_containers(
        &self,
        updates: Vec<ContainerUpdate>,
        limit: Duration,
    ) -> Result<Vec<ContainerUpdate>, UpdateError> {
        let mut update = updates;
        update.retain(|update| !update.is_empty() && !update.container_id.is_empty());
        if update.is_empty() {
            return Ok(Vec::new());
        }
        if !self.state.borrow().is_connected() {
            return Err(UpdateError::NotConnected);
        }
        let (reply, answer) = oneshot::channel();
        let command = UpdateCommand { request: UpdateContainersRequest { update }, reply };
        let answered = timeout(limit, async {
            self.updates.send(command).await.map_err(|_| UpdateError::NotConnected)?;
            answer.await.map_err(|_| UpdateError::NotConnected)
        });
        let response = answered.await.map_err(|_| UpdateError::TooLate(limit))??.map_err(UpdateError::Refused)?;
        Ok(response.failed)
    }
}

impl NriClient {
    /// A client that connects when it runs.
    pub fn new(options: NriOptions, handler: Arc<dyn NriHandler>) -> Result<(Self, NriHandle), OptionsError> {
        options.validate()?;
        let (state, observed) = watch::channel(ConnectionState::Connecting);
        let (sender, updates) = mpsc::channel(UPDATES_QUEUED_MAX);
        let calls = Calls::new(options.calls_max);
        Ok((Self { options, handler, calls, state, updates }, NriHandle { state: observed, updates: sender }))
    }

    /// Connects to the socket again and again. `random` gives numbers from 0 to 1. Drop the future to disconnect.
    pub async fn run(self, random: impl FnMut() -> f64 + Send) -> Infallible {
        let socket = self.options.socket.clone();
        self.run_with(|| UnixStream::connect(socket.clone()), random).await
    }

    /// [`Self::run`] over connections of another kind.
    pub async fn run_with<C, F, S>(mut self, mut connect: C, mut random: impl FnMut() -> f64 + Send) -> Infallible
    where
        C: FnMut() -> F,
        F: Future<Output = io::Result<S>>,
        S: AsyncRead + AsyncWrite,
    {
        let mut failures: u32 = 0;
        loop {
            let connected = timeout(self.options.registration_timeout, connect()).await;
            let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            failures = failures.saturating_add(1);
            let state = match connected {
                Ok(stream) => {
                    let (reason, configured_at) = self.serve(stream).await;
                    match configured_at {
                        Some(at) => {
                            if at.elapsed() >= self.options.established_after {
                                failures = 1;
                            }
                            ConnectionState::Lost { reason, failures }
                        }
                        None => ConnectionState::Refused { reason, failures },
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => ConnectionState::SocketMissing { failures },
                Err(error) => ConnectionState::Refused { reason: Ended::Io(error.to_string()), failures },
            };
            if failures == 1 {
                tracing::warn!("NRI: {state}; connecting again");
            }
            self.state.send_replace(state);
            sleep(self.options.backoff.delay(failures, random())).await;
        }
    }

    /// Serves one connection. Returns why it ended and when the plugin was configured.
    async fn serve(&mut self, stream: impl AsyncRead + AsyncWrite) -> (Ended, Option<Instant>) {
        // Updates that were meant for an earlier connection are dropped, which their callers see.
        while self.updates.try_recv().is_ok() {}
        let mut configured_at = None;
        let on_configured = |runtime: &RuntimeInfo| {
            configured_at = Some(Instant::now());
            if let Some(error) = &runtime.configuration_error {
                tracing::warn!("NRI: {error}");
            }
            tracing::info!("NRI: connected to {} {} for {}", runtime.name, runtime.version, runtime.events);
            self.state.send_replace(ConnectionState::Connected(runtime.clone()));
        };
        let ended = serve(stream, &self.options, &self.handler, &self.calls, &mut self.updates, on_configured).await;
        (ended, configured_at)
    }
}
