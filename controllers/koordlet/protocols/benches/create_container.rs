//! What a plugin of NRI adds to the start of a container: `cargo bench -p koord-koordlet-protocols`.
//!
//! A runtime on a thread of its own sends `CreateContainer` over a unix socket, one after the other, with a pod and container of a usual size; the handler
//! returns an adjustment at once. The floor is the same socket with a thread that sends back as many bytes. The exit code is 1 where a goal was missed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

#[path = "../tests/it/fake_runtime.rs"]
#[allow(dead_code, reason = "the tests use all of it")]
mod fake_runtime;

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream as Blocking,
    process::ExitCode,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use fake_runtime::FakeRuntime;
use goals::{Chosen, Floor};
use koord_koordlet_protocols::{
    FailurePolicy, HandlerError,
    backoff::Backoff,
    nri::{
        ConnectionState, Container, ContainerAdjustment, ContainerUpdate, Creation, EventMask,
        LinuxContainerAdjustment, LinuxCpu, LinuxResources, Mount, NriClient, NriHandler, NriOptions, PodSandbox,
        message::service::{ContainerRequest, CreateContainerResponse},
    },
};
use prost::Message as _;
use tokio::{net::UnixStream, runtime};

const CALLS: usize = 5000;
const WARM_UP: usize = 200;

fn main() -> ExitCode {
    Chosen::run(|chosen| {
        const NAME: &str = "NRI CreateContainer, p99";
        if !chosen.has(NAME) {
            return;
        }
        let request = request();
        let floor = percentiles(echo(request.len()));
        let taken = percentiles(created(&request));
        println!(
            "request of {} bytes; p50 {:?}, p99 {:?}, p99.9 {:?}; floor p50 {:?}",
            request.len(),
            taken[0],
            taken[1],
            taken[2],
            floor[0]
        );
        chosen.above(Floor::Measured(floor[1])).took(Duration::from_millis(1), NAME, taken[1]);
    })
}

struct Adjusts;

impl NriHandler for Adjusts {
    fn run_pod_sandbox(&self, _: PodSandbox) -> Result<(), HandlerError> {
        Ok(())
    }

    fn remove_pod_sandbox(&self, _: PodSandbox) -> Result<(), HandlerError> {
        Ok(())
    }

    fn create_container(&self, _: PodSandbox, _: Container) -> Result<Creation, HandlerError> {
        let cpu =
            LinuxCpu { cpus: "0-3".into(), shares: Some(2048.into()), quota: Some((-1).into()), ..Default::default() };
        let resources = Some(LinuxResources { cpu: Some(cpu), ..Default::default() });
        let linux = Some(LinuxContainerAdjustment { resources, ..Default::default() });
        Ok(Creation { adjust: Some(ContainerAdjustment { linux, ..Default::default() }), update: Vec::new() })
    }

    fn update_container(
        &self,
        _: PodSandbox,
        _: Container,
        _: LinuxResources,
    ) -> Result<Vec<ContainerUpdate>, HandlerError> {
        Ok(Vec::new())
    }
}

/// A pod and container as containerd sends them.
fn request() -> Vec<u8> {
    let map = |count: usize, length: usize| {
        (0..count).map(|n| (format!("example.com/name-{n}"), "v".repeat(length))).collect()
    };
    let pod = PodSandbox {
        name: "p".into(),
        uid: "u".repeat(36),
        labels: map(12, 16),
        annotations: map(8, 200),
        ..Default::default()
    };
    let mount = |n| Mount {
        destination: format!("/mnt/{n}"),
        source: format!("/var/lib/kubelet/pods/{n}"),
        ..Default::default()
    };
    let container = Container {
        id: "c".repeat(64),
        name: "main".into(),
        env: (0..40).map(|n| format!("SERVICE_{n}_PORT=tcp://10.0.0.{n}:443")).collect(),
        mounts: (0..12).map(mount).collect(),
        annotations: map(6, 30),
        ..Default::default()
    };
    ContainerRequest { pod: Some(pod), container: Some(container) }.encode_to_vec()
}

/// The time of each call.
fn created(request: &[u8]) -> Vec<Duration> {
    let (plugin, runtime) = Blocking::pair().unwrap();
    let plugin_thread = thread::spawn(move || {
        runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let mut plugin = Some(asynchronous(plugin));
            let connect = || {
                let given = plugin.take();
                async move {
                    match given {
                        Some(stream) => Ok(stream),
                        None => std::future::pending().await,
                    }
                }
            };
            let (client, handle) = NriClient::new(options(), Arc::new(Adjusts)).unwrap();
            let mut state = handle.state();
            // Ends when the connection does.
            let ended = async {
                state.wait_for(ConnectionState::is_connected).await.unwrap();
                state.wait_for(|state| !state.is_connected()).await.unwrap();
            };
            tokio::select! {
                never = client.run_with(connect, || 0.0) => match never {},
                () = ended => {}
            }
        });
    });
    let times = runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let mut runtime = FakeRuntime::new(asynchronous(runtime));
        runtime.greet().await;
        let mut times = Vec::with_capacity(CALLS);
        for call in 0..WARM_UP + CALLS {
            let begin = Instant::now();
            let answer = runtime.call_bytes("CreateContainer", request.to_vec()).await.unwrap();
            if call >= WARM_UP {
                times.push(begin.elapsed());
            }
            assert!(CreateContainerResponse::decode(answer).unwrap().adjust.is_some());
        }
        times
    });
    plugin_thread.join().unwrap();
    times
}

/// The time in which a thread sends as many bytes back.
fn echo(bytes: usize) -> Vec<Duration> {
    let (mut near, mut far) = Blocking::pair().unwrap();
    let thread = thread::spawn(move || {
        let mut message = vec![0; bytes];
        while far.read_exact(&mut message).is_ok() {
            far.write_all(&message).unwrap();
        }
    });
    let mut message = vec![0; bytes];
    let times = (0..CALLS).map(|_| {
        let begin = Instant::now();
        near.write_all(&message).unwrap();
        near.read_exact(&mut message).unwrap();
        begin.elapsed()
    });
    let times = times.collect();
    drop(near);
    thread.join().unwrap();
    times
}

/// The 50th, 99th and 99.9th of a hundred.
fn percentiles(mut times: Vec<Duration>) -> [Duration; 3] {
    times.sort_unstable();
    [500, 990, 999].map(|per_thousand| times[times.len() * per_thousand / 1000])
}

fn asynchronous(stream: Blocking) -> UnixStream {
    stream.set_nonblocking(true).unwrap();
    UnixStream::from_std(stream).unwrap()
}

fn options() -> NriOptions {
    let second = Duration::from_secs(1);
    NriOptions {
        socket: "/nonexistent".into(),
        plugin_name: "bench".into(),
        plugin_index: "00".into(),
        events: EventMask::KOORDLET,
        registration_timeout: 5 * second,
        call_timeout: second,
        calls_max: 8,
        synchronize_objects_max: 1000,
        established_after: second,
        backoff: Backoff { first: second, factor: 1.0, cap: second, jitter: 0.0 },
        failure_policy: FailurePolicy::Fail,
    }
}
