//! The wiring around the controllers of a program.

use std::{
    ops::{Deref, DerefMut},
    process::ExitCode,
    sync::Arc,
};

#[cfg(feature = "configuration")]
use koord_configuration::Configuration;
use koord_resource::rbac::{EVENTS, RbacRule, leader_election};
use koord_runtime::{
    Core,
    clock::{SharedClock, SystemClock},
    lease::LeaderElectionConfig,
    manager::{Manager, Runnable, Settings},
    metrics::{Description, Metrics, PROCESS, RUNTIME, Unit},
    otlp::export,
    recorder::{EventQueue, Recorder},
    trace::Tracer,
};
use kube::Client;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "configuration")]
use crate::ConfigFlag;
use crate::{
    Build, ControllerFlags, ControllerSettings, Dependencies, Setup, flags::from_go, gates::Stage, manifests,
    output::FAILED, plan::PlanFlags, process::run_to_code,
};

/// What every program with controllers may do: leader election in its own namespace with a Lease of this name, and events.
/// [`install`](fn@koord_resource::document::install) grants it by itself.
pub const fn permissions(lease: &'static [&'static str]) -> [RbacRule; 3] {
    let [create, keep] = leader_election(lease);
    [create, keep, EVENTS]
}

/// Every metric of a program whose own ones are these, by name.
pub fn metrics(own: &[&[Description]]) -> Vec<Description> {
    let mut all = [RUNTIME, &PROCESS, &[FEATURES]].iter().chain(own).copied().flatten().copied().collect::<Vec<_>>();
    all.sort_by_key(|description| description.name);
    all
}

/// The feature gates of a program.
const FEATURES: Description = Description::gauge(
    "kubernetes_feature_enabled",
    &["name", "stage"],
    "1 for each feature gate that is on, and 0 for those that are off. The stage is `ALPHA`, `BETA`, or nothing for a stable one.",
)
.unit(Unit::YesNo);

/// A program before its manager runs: a [`Setup`], to which other parts than controllers may be added too, and its cluster.
pub struct Program {
    build: Build,
    setup: Setup,
    client: Client,
    api_host: String,
    events: EventQueue,
}

// === impl Program ===

impl Deref for Program {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.setup
    }
}

impl DerefMut for Program {
    fn deref_mut(&mut self) -> &mut Setup {
        &mut self.setup
    }
}

impl Program {
    /// Sets up metrics, events and traces. Must be called within a tokio runtime.
    pub fn new(
        build: Build,
        settings: ControllerSettings,
        dependencies: Dependencies,
        stop: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let Dependencies { client, api_host, clock, random } = dependencies;
        let metrics = Metrics::new()?;
        metrics.build_info(build.info, build.version)?;
        metrics.watch_process()?;
        let features = metrics.gauge(FEATURES)?;
        for (gate, is_on) in settings.gates.iter() {
            features.with_label_values(&[gate.name, stage(gate.stage)]).set(is_on.into());
        }
        let (recorder, events) = Recorder::new(Arc::clone(&clock));
        let mut core = Core::new(build.field_manager, clock, random, metrics, Arc::new(recorder));
        if let Some(endpoint) = settings.traces.clone() {
            // The spans of webhooks, controllers and other programs are compared with each other: their time is real.
            let clock = SystemClock::shared();
            let (tracer, spans) = Tracer::new(Arc::clone(&clock), core.random().clone(), core.metrics());
            core.trace_by(tracer.clone());
            tokio::spawn(export(endpoint, (build.program, build.version), spans, tracer, clock, stop.clone()));
        }
        Ok(Self { build, setup: Setup::new(core, settings), client, api_host, events })
    }

    /// The manager of everything that was added.
    pub fn manager(self) -> Manager {
        self.manager_timed_by(SystemClock::shared())
    }

    /// The same, whose leases, waits and timeouts follow another clock than the system's: for tests, where the clock of the
    /// dependencies is virtual too.
    pub fn manager_timed_by(self, clock: SharedClock) -> Manager {
        let (namespace, name) = (self.lease_namespace(), self.build.field_manager);
        self.manager_of(clock, |identity| {
            namespace.map(|namespace| LeaderElectionConfig::new(namespace, name, identity))
        })
    }

    /// The manager with a leader election of its own, for this identity; none for a process that leads at once.
    pub fn manager_led_by(self, election: impl FnOnce(String) -> Option<LeaderElectionConfig>) -> Manager {
        self.manager_of(SystemClock::shared(), election)
    }

    fn manager_of(self, clock: SharedClock, election: impl FnOnce(String) -> Option<LeaderElectionConfig>) -> Manager {
        let (core, settings) = self.setup.into_parts();
        let host = host_name(self.build.program);
        let leader_election = election(format!("{host}_{}", core.random().uuid()));
        let settings = Settings {
            requests_per_second: settings.requests_per_second,
            requests_burst: settings.requests_burst,
            leader_election,
            metrics: settings.metrics,
            health: settings.health,
            host,
        };
        Manager::timed_by(clock, core, self.client, self.events, settings).at_host(&self.api_host)
    }
}

/// A stage as Kubernetes names it in metrics.
const fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Alpha => "ALPHA",
        Stage::Beta => "BETA",
        Stage::Stable => "",
    }
}

fn host_name(otherwise: &str) -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
    kernel.ok().filter(|name| !name.is_empty()).unwrap_or_else(|| otherwise.to_owned())
}

/// Reads the command line of a program that has the flags of [`ControllerFlags`] alone, and sets up its logs.
pub fn read_flags(build: &Build, arguments: Vec<String>) -> Result<ControllerSettings, clap::Error> {
    read::<ControllerFlags>(build, &[], arguments)?.check_and_log(build)
}

fn read<F: clap::Args>(build: &Build, variables: &[(&str, &str)], arguments: Vec<String>) -> Result<F, clap::Error> {
    F::from_arg_matches(&command::<F>(build, variables).try_get_matches_from(from_go(arguments))?)
}

/// The command line of a program. What documents the type of its flags is for readers of code.
fn command<F: clap::Args>(build: &Build, variables: &[(&str, &str)]) -> clap::Command {
    let command = clap::Command::new(build.program).version(build.version).args_override_self(true);
    let about = format!("Runs the controllers of {}, version {}", build.program, build.version);
    let mut parts = Vec::new();
    parts.extend(manifests::help(build.program).map(|line| format!("Commands:\n  {line}")));
    if !variables.is_empty() {
        let width = variables.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let lines = variables.iter().map(|(name, meaning)| format!("\n  {name:width$}  {meaning}"));
        parts.push(lines.fold("Environment variables:".to_owned(), |text, line| text + &line));
    }
    F::augment_args(command).about(about).after_help(parts.join("\n\n"))
}

/// The flags of a program that answers `--plan`.
#[derive(clap::Args)]
struct Flags {
    #[command(flatten)]
    program: ControllerFlags,
    #[command(flatten)]
    plan: PlanFlags,
}

/// The same of a program with a configuration file.
#[cfg(feature = "configuration")]
#[derive(clap::Args)]
struct ConfiguredFlags {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    config: ConfigFlag,
}

/// The whole `main` of a program that has controllers and the flags of [`ControllerFlags`] alone: `add` adds them, and returns what
/// runs beside them, such as the `Service` of its webhooks, or `()`. With `--plan` it prints what the controllers would write now
/// ([`plan`](crate::plan)), and nothing runs.
pub fn run_controllers<R: Runnable>(build: Build, add: impl FnOnce(&mut Setup) -> anyhow::Result<R>) -> ExitCode {
    run_command(build, |flags: Flags| Ok((flags, ())), |setup, ()| add(setup))
}

/// As [`run_controllers`], for a program with a configuration file: `--config` names it ([`ConfigFlag`]). It is read and checked
/// before anything else is done; a mistake in it is one of the command line, and the exit code is 2. `add` is given the
/// configuration with all that is not set.
#[cfg(feature = "configuration")]
pub fn run_configured<T: Configuration, R: Runnable>(
    build: Build,
    add: impl FnOnce(&mut Setup, T) -> anyhow::Result<R>,
) -> ExitCode {
    run_command(build, |ConfiguredFlags { flags, config }| Ok((flags, config.read()?)), add)
}

/// Runs or plans what `add` adds, which is given what `split` makes of the flags beside the common ones.
fn run_command<A: clap::Args, C, R: Runnable>(
    build: Build,
    split: impl FnOnce(A) -> Result<(Flags, C), clap::Error>,
    add: impl FnOnce(&mut Setup, C) -> anyhow::Result<R>,
) -> ExitCode {
    let read = |arguments| {
        let (Flags { program, plan }, own) = split(read(&build, R::VARIABLES, arguments)?)?;
        Ok((program.check_and_log(&build)?, own, plan.command()))
    };
    run_to_code(build.program, read, async |(settings, own, command), stop: CancellationToken| {
        let Some(command) = command else {
            return run(build, settings, |setup| add(setup, own), stop).await.map(|()| ExitCode::SUCCESS);
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(ExitCode::from(FAILED)),
            code = command.run(&build, settings, |setup| add(setup, own).map(drop)) => Ok(code),
        }
    })
}

async fn run<R: Runnable>(
    build: Build,
    settings: ControllerSettings,
    add: impl FnOnce(&mut Setup) -> anyhow::Result<R>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let dependencies = Dependencies::of_process(settings.kubeconfig.as_deref()).await?;
    let mut program = Program::new(build, settings, dependencies, &stop)?;
    let open = add(&mut program)?.open(program.core(), build.program, build.namespace)?;
    let mut manager = program.manager();
    R::run_in(open, &mut manager)?;
    Ok(manager.run(stop).await?)
}
