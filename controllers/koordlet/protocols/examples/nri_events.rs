//! Registers with a container runtime and prints what it sends, until it is ended: `cargo run -p koord-koordlet-protocols --example nri_events
//! [SOCKET]`. Containers that are created get the variable `NRI_EVENTS=seen` and half of the CPU weight that they ask for.
#![allow(clippy::print_stdout)]

use std::{env, io::Write as _, process::ExitCode, sync::Arc, time::Duration};

use koord_koordlet_protocols::{
    FailurePolicy, HandlerError,
    backoff::Backoff,
    nri::{
        Container, ContainerAdjustment, ContainerUpdate, Creation, EventMask, KeyValue, LinuxContainerAdjustment,
        LinuxCpu, LinuxResources, NriClient, NriHandler, NriOptions, PodSandbox,
    },
};

struct Printer;

impl NriHandler for Printer {
    fn synchronize(
        &self,
        pods: Vec<PodSandbox>,
        containers: Vec<Container>,
    ) -> Result<Vec<ContainerUpdate>, HandlerError> {
        say(&format!("Synchronize: {} pods, {} containers", pods.len(), containers.len()));
        Ok(Vec::new())
    }

    fn run_pod_sandbox(&self, pod: PodSandbox) -> Result<(), HandlerError> {
        let cgroup = pod.linux.as_ref().map_or("", |linux| &linux.cgroup_parent);
        say(&format!("RunPodSandbox {}/{} in {cgroup}", pod.namespace, pod.name));
        Ok(())
    }

    fn remove_pod_sandbox(&self, pod: PodSandbox) -> Result<(), HandlerError> {
        say(&format!("RemovePodSandbox {}/{}", pod.namespace, pod.name));
        Ok(())
    }

    fn create_container(&self, pod: PodSandbox, container: Container) -> Result<Creation, HandlerError> {
        say(&format!("CreateContainer {}/{}/{}", pod.namespace, pod.name, container.name));
        let resources = halved(container.linux.and_then(|linux| linux.resources).as_ref());
        let adjust = ContainerAdjustment {
            env: vec![KeyValue { key: "NRI_EVENTS".into(), value: "seen".into() }],
            linux: Some(LinuxContainerAdjustment { resources, ..Default::default() }),
            ..Default::default()
        };
        Ok(Creation { adjust: Some(adjust), update: Vec::new() })
    }

    fn update_container(
        &self,
        pod: PodSandbox,
        container: Container,
        requested: LinuxResources,
    ) -> Result<Vec<ContainerUpdate>, HandlerError> {
        say(&format!("UpdateContainer {}/{}/{}", pod.namespace, pod.name, container.name));
        // The id of this container is added.
        Ok(halved(Some(&requested)).map(|resources| ContainerUpdate::resources("", resources)).into_iter().collect())
    }

    fn shutdown(&self) {
        say("Shutdown");
    }
}

fn halved(resources: Option<&LinuxResources>) -> Option<LinuxResources> {
    let shares = resources?.cpu.as_ref()?.shares?.value / 2;
    let cpu = LinuxCpu { shares: Some(shares.into()), ..Default::default() };
    Some(LinuxResources { cpu: Some(cpu), ..Default::default() })
}

/// Prints a line; whoever has closed the output does not need it.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = NriOptions {
        socket: env::args().nth(1).unwrap_or_else(|| "/var/run/nri/nri.sock".into()).into(),
        plugin_name: "nri_events".into(),
        plugin_index: "10".into(),
        events: EventMask::KOORDLET,
        registration_timeout: Duration::from_secs(5),
        call_timeout: Duration::from_secs(1),
        calls_max: 8,
        synchronize_objects_max: 100_000,
        established_after: Duration::from_secs(6),
        backoff: Backoff { first: Duration::from_secs(1), factor: 2.0, cap: Duration::from_mins(1), jitter: 0.0 },
        failure_policy: FailurePolicy::Ignore,
    };
    let (client, handle) = match NriClient::new(options, Arc::new(Printer)) {
        Ok(made) => made,
        Err(error) => {
            say(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    let mut state = handle.state();
    let states = async {
        while state.changed().await.is_ok() {
            let text = state.borrow_and_update().to_string();
            say(&text);
        }
    };
    tokio::select! {
        never = client.run(|| 0.0) => match never {},
        () = states => ExitCode::SUCCESS,
    }
}
