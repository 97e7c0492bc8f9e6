//! Keeps the agent registered with NRI.

use std::{path::Path, sync::Arc, time::Duration};

use koord_core::random::Random;
use koord_koordlet_hooks::FailurePolicy;
use koord_koordlet_protocols::nri::{ConnectionState, EventMask, NriClient, NriOptions};
use tokio_util::sync::CancellationToken;

use super::{Shared, call::failure_policy, report::Report};
use crate::{capability::State, settings::NriSettings};

pub(super) const FEATURE: &str = "NRI";
/// Runtimes disconnect a plugin that takes two seconds.
const CALL_TIMEOUT: Duration = Duration::from_millis(1500);
const CALLS_MAX: usize = 64;
const SYNCHRONIZED_MAX: usize = 100_000;

/// Connects again and again until the end.
pub(super) async fn run(shared: Arc<Shared>, end: CancellationToken) {
    let mut report = Report::of(FEATURE, &shared.inputs);
    let Some(nri) = shared.settings.nri.as_ref().filter(|_| !shared.only_observes) else { return report.off() };
    let random = shared.random.clone();
    let (client, handle) =
        match NriClient::new(options(nri, shared.hooks.failure_policy), Arc::clone(&shared.calls) as Arc<_>) {
            Ok(client) => client,
            Err(error) => {
                return report
                    .degraded(error, "correct --runtime-hooks-nri-plugin-name or --runtime-hooks-nri-plugin-index");
            }
        };
    let mut states = handle.state();
    let reports = async {
        loop {
            if let Some(state) = state(&states.borrow_and_update(), &nri.socket) {
                report.set(state);
            }
            if states.changed().await.is_err() {
                return std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        () = end.cancelled() => {}
        never = client.run(move || fraction(&random)) => match never {},
        () = reports => {}
    }
}

/// A number from 0 to 1.
fn fraction(random: &Random) -> f64 {
    random.below(1001) as f64 / 1000.0
}

fn options(nri: &NriSettings, policy: FailurePolicy) -> NriOptions {
    NriOptions {
        socket: nri.socket.clone(),
        plugin_name: nri.plugin_name.clone(),
        plugin_index: nri.plugin_index.clone(),
        events: EventMask::KOORDLET,
        registration_timeout: nri.connect_timeout,
        call_timeout: CALL_TIMEOUT,
        calls_max: CALLS_MAX,
        synchronize_objects_max: SYNCHRONIZED_MAX,
        established_after: nri.connect_timeout,
        backoff: nri.backoff(),
        failure_policy: failure_policy(policy),
    }
}

/// How the feature fares; `None` before the first attempt has ended.
fn state(connection: &ConnectionState, socket: &Path) -> Option<State> {
    let degraded = |reason: String, remedy: &str| {
        let remedy = format!(
            "{remedy}; it is connected again and again, and meanwhile hooks reach containers that run by the reconciler"
        );
        Some(State::Degraded { reason, remedy })
    };
    let socket = socket.display();
    match connection {
        ConnectionState::Connecting => None,
        ConnectionState::Connected(_) => Some(State::Active),
        ConnectionState::SocketMissing { .. } => degraded(
            format!("the socket {socket} of the container runtime does not exist"),
            "start containerd 1.7 or CRI-O 1.26 or later with NRI enabled, and mount the folder of its socket",
        ),
        ConnectionState::Refused { reason, .. } => degraded(
            format!("{socket}: {reason}"),
            "see the log of the container runtime, and whether NRI is enabled there",
        ),
        ConnectionState::Lost { reason, .. } => {
            degraded(format!("{socket}: {reason}"), "none, if the container runtime is being restarted")
        }
    }
}

#[cfg(test)]
mod tests {
    use koord_koordlet_protocols::nri::Ended;

    use super::{super::testing, *};

    #[tokio::test(start_paused = true)]
    async fn a_socket_that_is_missing_is_reported_and_awaited() {
        let root = tempfile::tempdir().unwrap();
        let (shared, mut taken) = testing::shared(root.path());
        let end = CancellationToken::new();
        let task = tokio::spawn(run(shared, end.clone()));
        let missing = testing::report(&mut taken, FEATURE).await;
        assert!(missing.ends_with("nri.sock of the container runtime does not exist"), "{missing}");
        let runtime = tokio::net::UnixListener::bind(root.path().join("nri.sock")).unwrap();
        let (stream, _) = runtime.accept().await.unwrap();
        drop(stream);
        let refused = testing::report(&mut taken, FEATURE).await;
        assert!(refused.contains("nri.sock: "), "{refused}");
        end.cancel();
        task.await.unwrap();
    }

    #[test]
    fn a_connection_that_cannot_be_made_is_named_with_its_socket() {
        let text = |connection| match state(&connection, Path::new("/run/nri.sock")) {
            Some(State::Degraded { reason, .. }) => reason,
            other => format!("{other:?}"),
        };
        for (connection, expected) in [
            (ConnectionState::Connecting, "None"),
            (
                ConnectionState::SocketMissing { failures: 1 },
                "the socket /run/nri.sock of the container runtime does not exist",
            ),
            (
                ConnectionState::Refused { reason: Ended::Closed, failures: 1 },
                "/run/nri.sock: the runtime closed the connection",
            ),
            (
                ConnectionState::Lost { reason: Ended::Closed, failures: 9 },
                "/run/nri.sock: the runtime closed the connection",
            ),
        ] {
            assert_eq!(text(connection), expected);
        }
    }
}
