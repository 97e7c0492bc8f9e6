//! Connections that end, are refused, or never begin. Time is virtual.

use std::{io, sync::Arc, time::Duration};

use koord_koordlet_protocols::{
    mux::FrameError,
    nri::{ConnectionState, Ended, NriClient, NriOptions, OptionsError},
    ttrpc::{Status, code},
};
use tokio::{net::UnixListener, time::Instant};

use crate::{
    fake_runtime::FakeRuntime,
    recorder::{Recorder, Running, options},
};

fn running() -> Running {
    Running::new(options(), Arc::new(Recorder::default()))
}

fn failures(state: &ConnectionState) -> Option<u32> {
    match state {
        ConnectionState::SocketMissing { failures }
        | ConnectionState::Refused { failures, .. }
        | ConnectionState::Lost { failures, .. } => Some(*failures),
        ConnectionState::Connecting | ConnectionState::Connected(_) => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_socket_is_tried_for_ever_with_growing_delays() {
    let running = running();
    let begin = Instant::now();
    let mut at = Vec::new();
    for attempt in 1..=9 {
        running.fail(io::ErrorKind::NotFound).await;
        let state = running.until(|state| failures(state) == Some(attempt)).await;
        assert_eq!(state, ConnectionState::SocketMissing { failures: attempt });
        at.push(begin.elapsed().as_secs());
    }
    assert_eq!(at, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    let mut runtime = FakeRuntime::new(running.connect().await);
    runtime.greet().await;
    running.until(ConnectionState::is_connected).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_is_not_a_missing_socket() {
    let running = running();
    running.fail(io::ErrorKind::ConnectionRefused).await;
    let state = running.until(|state| failures(state) == Some(1)).await;
    assert!(matches!(state, ConnectionState::Refused { reason: Ended::Io(_), .. }), "{state}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_registration_has_the_reason_of_the_runtime() {
    let running = running();
    let mut runtime = FakeRuntime::new(running.connect().await);
    let (stream, _) = runtime.next_request().await;
    let status = Status::new(code::UNKNOWN, "invalid plugin index");
    runtime.answer(stream, Err(status.clone())).await;
    let state = running.until(|state| failures(state) == Some(1)).await;
    assert_eq!(state, ConnectionState::Refused { reason: Ended::Refused(status), failures: 1 });
    runtime.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_does_not_configure_is_left() {
    let running = running();
    let mut runtime = FakeRuntime::new(running.connect().await);
    runtime.accept_registration().await;
    let state = running.until(|state| failures(state) == Some(1)).await;
    let reason = Ended::NotConfigured(Duration::from_secs(5));
    assert_eq!(state, ConnectionState::Refused { reason, failures: 1 });
    runtime.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_plugin_registers_again_after_the_runtime_went_away() {
    let running = running();
    for round in 0..3 {
        let mut runtime = FakeRuntime::new(running.connect().await);
        let (registration, _) = runtime.greet().await;
        assert_eq!(registration.plugin_name, "koordlet_nri");
        running.until(ConnectionState::is_connected).await;
        tokio::time::advance(Duration::from_secs(6)).await;
        let gone = Instant::now();
        drop(runtime);
        let state = running.until(|state| !state.is_connected()).await;
        assert_eq!(state, ConnectionState::Lost { reason: Ended::Closed, failures: 1 }, "round {round}");
        assert!(gone.elapsed() < Duration::from_millis(10));
    }
}

#[tokio::test(start_paused = true)]
async fn connections_that_do_not_last_count_as_failures() {
    let running = running();
    for round in 1..=3 {
        let mut runtime = FakeRuntime::new(running.connect().await);
        runtime.greet().await;
        drop(runtime);
        let state = running.until(|state| failures(state) == Some(round)).await;
        assert_eq!(state, ConnectionState::Lost { reason: Ended::Closed, failures: round });
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_one_connection_at_a_time() {
    let running = running();
    let mut runtime = FakeRuntime::new(running.connect().await);
    runtime.greet().await;
    let second = running.connect().await;
    // The second lies ready and is not taken while the first stands.
    tokio::time::advance(Duration::from_hours(1)).await;
    let mut second = FakeRuntime::new(second);
    let registered = tokio::time::timeout(Duration::from_hours(1), second.next_request()).await;
    assert!(registered.is_err());
    drop(runtime);
    second.greet().await;
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_is_too_long_ends_the_connection() {
    let running = running();
    let mut runtime = FakeRuntime::new(running.connect().await);
    runtime.greet().await;
    running.until(ConnectionState::is_connected).await;
    runtime.write_raw(&[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]).await;
    let ConnectionState::Lost { reason: Ended::Malformed(error), .. } =
        running.until(|state| !state.is_connected()).await
    else {
        panic!()
    };
    assert!(matches!(error, FrameError::TooLong { connection: 1, length: u32::MAX, .. }));
    runtime.closed().await;
}

#[tokio::test(start_paused = true)]
async fn noise_does_not_end_the_client() {
    let running = running();
    for attempt in 1..=3 {
        let mut runtime = FakeRuntime::new(running.connect().await);
        runtime.write_raw(&[0x5a; 4096]).await;
        running.until(|state| failures(state) == Some(attempt)).await;
    }
    FakeRuntime::new(running.connect().await).greet().await;
}

#[tokio::test]
async fn a_socket_that_appears_later_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nri.sock");
    let mut options = NriOptions { socket: socket.clone(), ..options() };
    options.backoff.first = Duration::from_millis(1);
    options.backoff.cap = Duration::from_millis(1);
    let (client, handle) = NriClient::new(options, Arc::new(Recorder::default())).unwrap();
    let task = tokio::spawn(client.run(|| 0.5));
    let mut state = handle.state();
    state.wait_for(|state| matches!(state, ConnectionState::SocketMissing { .. })).await.unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let mut runtime = FakeRuntime::new(listener.accept().await.unwrap().0);
    runtime.greet().await;
    state.wait_for(ConnectionState::is_connected).await.unwrap();
    task.abort();
}

#[test]
fn names_that_a_runtime_refuses_are_errors_before_it_is_asked() {
    let refused = |options| NriClient::new(options, Arc::new(Recorder::default())).err();
    let index = |index: &str| NriOptions { plugin_index: index.into(), ..options() };
    let name = |name: &str| NriOptions { plugin_name: name.into(), ..options() };
    for bad in ["", "0", "000", "0a", "é"] {
        assert_eq!(refused(index(bad)), Some(OptionsError::PluginIndex(bad.into())));
    }
    for bad in ["", "a b", "a/b", "é"] {
        assert_eq!(refused(name(bad)), Some(OptionsError::PluginName(bad.into())));
    }
    assert_eq!(refused(name("a-b_c.d+1")), None);
}
