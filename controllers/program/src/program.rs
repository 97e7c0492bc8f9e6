//! The wiring around the controllers of a program.

use std::{process::ExitCode, sync::Arc};

use clap::FromArgMatches as _;
use koord_resource::{controller::ControllerSpec, rbac::RbacRule};
use koord_runtime::{
    Core,
    clock::SystemClock,
    lease::LeaderElectionConfig,
    manager::{Manager, Settings},
    metrics::{Description, Metrics, PROCESS, RUNTIME},
    otlp::export,
    recorder::{EventQueue, Recorder},
    trace::Tracer,
};
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::{
    ControllerFlags, ControllerSettings, Dependencies,
    flags::from_go,
    gates::{Gate, Gates},
    logs, run,
};

/// Which program runs, and the names by which a cluster knows it.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The program, in messages and traces.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The name of its field manager and of the Lease that its replicas share.
    pub field_manager: &'static str,
    /// The namespace that it is usually installed in.
    pub namespace: &'static str,
    /// The feature gates that it knows.
    pub gates: &'static [Gate],
    /// The metric that shows its version: a gauge with the labels `version` and `language`.
    pub info: Description,
}

/// What every program with controllers may do: leader election in its own namespace, and events.
pub const PERMISSIONS: [RbacRule; 2] = [
    RbacRule {
        group: "coordination.k8s.io",
        resource: "leases",
        names: &[],
        urls: &[],
        verbs: &["create", "get", "update"],
        namespace: Some("."),
    },
    // Where a role of an older installation grants events of the core group alone, that group is used.
    RbacRule {
        group: "events.k8s.io",
        resource: "events",
        names: &[],
        urls: &[],
        verbs: &["create", "patch"],
        namespace: None,
    },
];

/// What a program may do that runs these controllers: their own rules, and [`PERMISSIONS`].
pub fn permissions<'c>(controllers: impl IntoIterator<Item = &'c ControllerSpec>) -> Vec<RbacRule> {
    controllers.into_iter().flat_map(ControllerSpec::rbac_rules).chain(PERMISSIONS).collect()
}

/// Every metric of a program whose own ones are these, by name.
pub fn metrics(own: &[&[Description]]) -> Vec<Description> {
    let mut all = [RUNTIME, &PROCESS].iter().chain(own).copied().flatten().copied().collect::<Vec<_>>();
    all.sort_by_key(|description| description.name);
    all
}

/// A program before its manager runs: controllers and other parts are added to its [`Core`].
pub struct Program {
    build: Build,
    settings: ControllerSettings,
    core: Core,
    metrics: Metrics,
    client: Client,
    api_host: String,
    events: EventQueue,
}

// === impl Program ===

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
        let (recorder, events) = Recorder::new(Arc::clone(&clock));
        let mut core = Core::new(build.field_manager, clock, random, metrics.clone(), Arc::new(recorder));
        core.restrict_to(&settings.namespace);
        if let Some(endpoint) = settings.traces.clone() {
            // The spans of webhooks, controllers and other programs are compared with each other: their time is real.
            let clock = SystemClock::shared();
            let (tracer, spans) = Tracer::new(Arc::clone(&clock), core.random().clone(), core.metrics());
            core.trace_by(tracer.clone());
            tokio::spawn(export(endpoint, (build.program, build.version), spans, tracer, clock, stop.clone()));
        }
        Ok(Self { build, settings, core, metrics, client, api_host, events })
    }

    /// What watches, caches and controllers are added to.
    pub fn core(&mut self) -> &mut Core {
        &mut self.core
    }

    /// Which features are on.
    pub fn gates(&self) -> &Gates {
        &self.settings.gates
    }

    /// Its metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The manager of everything that was added.
    pub fn manager(self) -> Manager {
        let host = host_name(self.build.program);
        let identity = format!("{host}_{}", self.core.random().uuid());
        let lease = |namespace| LeaderElectionConfig::new(namespace, self.build.field_manager, identity);
        let settings = Settings {
            requests_per_second: self.settings.requests_per_second,
            requests_burst: self.settings.requests_burst,
            leader_election: self.settings.lease_namespace.map(lease),
            metrics: self.settings.metrics,
            health: self.settings.health,
            host,
        };
        Manager::new(self.core, self.client, self.events, settings).at_host(&self.api_host)
    }
}

fn host_name(otherwise: &str) -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
    kernel.ok().filter(|name| !name.is_empty()).unwrap_or_else(|| otherwise.to_owned())
}

/// Reads the command line of a program that has the flags of [`ControllerFlags`] alone, and sets up its logs.
pub fn read_flags(build: &Build, arguments: Vec<String>) -> Result<ControllerSettings, clap::Error> {
    let command = clap::Command::new(build.program).version(build.version).args_override_self(true);
    let matches = <ControllerFlags as clap::Args>::augment_args(command).try_get_matches_from(from_go(arguments))?;
    let flags = ControllerFlags::from_arg_matches(&matches)?;
    // A crate's name has underscores where its program's has dashes.
    logs::init(&flags.log_filter(&[&build.program.replace('-', "_")]));
    flags.check(build)
}

/// The whole `main` of a program that has controllers and the flags of [`ControllerFlags`] alone: `add` adds them.
pub fn run_controllers(build: Build, add: impl FnOnce(&mut Program) -> anyhow::Result<()>) -> ExitCode {
    let read = |arguments| read_flags(&build, arguments);
    run(build.program, read, async |settings: ControllerSettings, stop| {
        let dependencies = Dependencies::of_process(settings.kubeconfig.as_deref()).await?;
        let mut program = Program::new(build, settings, dependencies, &stop)?;
        add(&mut program)?;
        Ok(program.manager().run(stop).await?)
    })
}
