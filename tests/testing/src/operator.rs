//! The operator that a test runs.

use anyhow::Result;
use koord_program::{Build, ControllerSettings, Dependencies, Program, Setup, gates::Gates};
use koord_runtime::{
    clock::SharedClock,
    manager::RunError,
    metrics::{Description, Unit},
    random::Random,
};
use koord_webhook_server::Service;
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The randomness of every operator in a test is the same.
const SEED: u64 = 1;

/// The metric of the version, which every program has.
const INFO: Description =
    Description::gauge("operator_build_info", &["version", "language"], "Always 1; the labels show the version.")
        .unit(Unit::YesNo);

/// What the function gives back that adds an operator's controllers: `()`, or the [`Service`] that answers its reviews.
///
/// Reviews of webhooks and conversions come without a socket, whatever authority the configurations name. Without a service
/// a webhook fails as one that cannot be reached.
pub trait Answers {
    /// The service, if there is one.
    fn service(self) -> Option<Service>;
}

impl Answers for () {
    fn service(self) -> Option<Service> {
        None
    }
}

impl Answers for Service {
    fn service(self) -> Option<Service> {
        Some(self)
    }
}

/// An operator that runs for as long as this is kept.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    /// Runs what `add` adds on the real tasks, without leader election, endpoints and a limit of requests.
    pub(crate) fn begin<A: Answers>(
        name: &'static str,
        (client, clock, gates): (Client, SharedClock, Gates),
        add: impl FnOnce(&mut Setup) -> Result<A>,
    ) -> Result<(Self, Option<Service>)> {
        let build =
            Build { program: name, version: "test", field_manager: name, namespace: "default", gates: &[], info: INFO };
        let settings = ControllerSettings {
            kubeconfig: None,
            namespaces: Vec::new(),
            metrics: None,
            health: None,
            traces: None,
            lease_namespace: None,
            requests_per_second: 0.0,
            requests_burst: 0,
            gates,
        };
        let dependencies = Dependencies {
            client,
            api_host: "cluster".to_owned(),
            clock: SharedClock::clone(&clock),
            random: Random::seeded(SEED),
        };
        let stop = CancellationToken::new();
        let mut program = Program::new(build, settings, dependencies, &stop)?;
        let service = add(&mut program)?.service();
        let task = tokio::spawn(program.manager_timed_by(clock).run(stop.clone()));
        Ok((Self { stop, task }, service))
    }

    /// Stops it, and waits until it has ended.
    pub(crate) async fn stop(mut self) -> Result<()> {
        self.stop.cancel();
        Ok((&mut self.task).await??)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        self.task.abort();
    }
}
