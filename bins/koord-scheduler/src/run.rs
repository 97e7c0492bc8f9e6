//! Wires the scheduler and runs it.

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use koord_configuration::LeaderElection;
use koord_program::{
    ControllerSettings, Dependencies, Program,
    component::{
        api_server, configz, election, program_pod, warn_of_configuration, warn_of_flags, write_configuration,
    },
    gates::Gates,
    serving::{SecurePort, TlsFlags},
};
use koord_runtime::{key::ObjectKey, manager::ListenAddress, otlp::Endpoint};
use koord_scheduler_assembly::{BuiltProfile, Configuration, extended_profiles, gates, timings, webhooks};
use koord_scheduler_engine::{Engine, queue::Timings};
use koord_scheduler_framework::Profile;
use koord_scheduler_plugins_koordinator::elastic_quota::HookFactories;
use koord_scheduler_runtime::{
    AuditorSettings, Controllers, Dumps, Measures, Monitoring, Scheduler, SyncBarrier, explain, feed::Feed, install,
};
use tokio_util::sync::CancellationToken;

use crate::{
    Exposition, configuration::with_hooks, debug, hooks::Stopwatch, identity::BUILD, options::Checked,
    plugins::Plugins, resources, services,
};

/// How long a new leader waits for its caches to agree with the API server, where it can read all of them.
const AGREEMENT_MAX: Duration = Duration::from_secs(10);

/// How the scheduler runs.
#[derive(Clone, Debug)]
pub struct Settings {
    pub configuration: Configuration,
    /// Where health and metrics are served.
    pub listen: Option<ListenAddress>,
    /// Which metrics are shown.
    pub exposition: Exposition,
    /// How the same is served with TLS.
    pub secure: Option<SecurePort>,
    /// Whether what changes the program, or shows what users have, is served without TLS too, to everybody.
    pub has_insecure_debug: bool,
    /// Where traces are sent.
    pub traces: Option<Endpoint>,
    /// How long a pod that was refused waits for an event that may help.
    pub parked_max: Duration,
    /// Plugins whose controllers run.
    pub controllers: Controllers,
    /// What lasts for too long.
    pub monitoring: Monitoring,
    /// Whether ScheduleExplanations are written for pods and gangs that wait.
    pub explain_waiting: bool,
    /// What is logged of attempts.
    pub dumps: Dumps,
    /// How workloads are audited; none where they are not.
    pub auditor: Option<AuditorSettings>,
    /// The pod that a new leader writes and waits for, and how long at most; none where it does not.
    pub barrier: Option<(ObjectKey, Duration)>,
    /// The pod in which the scheduler runs, which it never evicts.
    pub scheduler_pod: Option<ObjectKey>,
    /// Which features are on.
    pub gates: Gates,
    /// The hooks of quotas that the configuration may name.
    pub hooks: HookFactories,
}

impl Settings {
    /// Of a scheduler beside others in one process: nothing is served, or all of it where somebody names an address, and requests
    /// have no limit.
    pub fn within(mut configuration: Configuration) -> Self {
        configuration.values.client_connection.qps = -1.0;
        let parked_max = Timings::default().parked_max;
        let (monitoring, gates) = (Monitoring::default(), Gates::new(BUILD.gates));
        let (listen, secure, barrier, scheduler_pod, explain_waiting) = (None, None, None, None, false);
        let (controllers, dumps, auditor) = (Controllers::default(), Dumps::default(), None);
        Self {
            configuration,
            listen,
            exposition: Exposition::default(),
            secure,
            has_insecure_debug: true,
            traces: None,
            parked_max,
            controllers,
            monitoring,
            explain_waiting,
            dumps,
            auditor,
            barrier,
            scheduler_pod,
            gates,
            hooks: HookFactories::new(),
        }
    }
}

/// Runs the scheduler of these options until `stop`.
pub async fn run(checked: Checked, stop: CancellationToken) -> Result<()> {
    run_with_plugins(Plugins::default(), checked, stop).await
}

/// Runs the scheduler of these options with further plugins until `stop`.
pub(crate) async fn run_with_plugins(plugins: Plugins, checked: Checked, stop: CancellationToken) -> Result<()> {
    let Checked { options, gates, tls: TlsFlags { policy, unserved_suites }, auditor, exposition, traces } = checked;
    if let Some(line) = options.version.line(&BUILD) {
        println!("{line}");
        return Ok(());
    }
    warn_of_flags(&options.without_effect, &unserved_suites);
    let configuration = with_hooks(&options, plugins.hooks.factories())?;
    if let Some(file) = &options.write_config_to {
        return write_configuration(&configuration.effective()?, file);
    }
    let settings = Settings {
        configuration,
        listen: options.listen(),
        exposition: options.metrics.with_manifest(exposition),
        secure: options.secure(policy),
        has_insecure_debug: options.insecure_debug,
        traces,
        parked_max: options.pod_max_in_unschedulable_pods_duration,
        controllers: options.controllers(),
        explain_waiting: options.explain_waiting,
        dumps: options.dumps(),
        auditor,
        monitoring: Monitoring { period: options.scheduler_monitor_period, timeout: options.scheduling_timeout },
        barrier: gates.enabled("SyncBarrier").then(|| options.barrier()),
        scheduler_pod: program_pod(|variable| std::env::var(variable).ok()),
        gates,
        hooks: plugins.hooks.factories().clone(),
    };
    // What cannot be built is said before anything is contacted.
    let mut profiles = extended_profiles(&settings.configuration, &settings.gates, &settings.hooks)?;
    profiles.iter_mut().try_for_each(|built| plugins.add_to(&mut built.profile))?;
    let dependencies = Dependencies::connected_by(
        api_server(options.master.as_deref(), &settings.configuration.values.client_connection.kubeconfig).await?,
    )?;
    Box::pin(run_profiles(profiles, settings, plugins.hooks.stopwatch(), dependencies, stop)).await
}

/// Runs a scheduler with given dependencies until `stop`.
pub async fn run_with(settings: Settings, dependencies: Dependencies, stop: CancellationToken) -> Result<()> {
    let profiles = extended_profiles(&settings.configuration, &settings.gates, &settings.hooks)?;
    Box::pin(run_profiles(profiles, settings, &Stopwatch::default(), dependencies, stop)).await
}

async fn run_profiles(
    profiles: Vec<BuiltProfile>,
    settings: Settings,
    stopwatch: &Stopwatch,
    dependencies: Dependencies,
    stop: CancellationToken,
) -> Result<()> {
    report(&profiles, &settings);
    let Settings { configuration, listen, exposition, secure, has_insecure_debug, traces, .. } = settings;
    let Settings {
        parked_max,
        monitoring,
        controllers,
        explain_waiting,
        dumps,
        auditor,
        barrier,
        scheduler_pod,
        gates,
        ..
    } = settings;
    let configz = configz(&configuration.effective()?);
    let (webhooks, transformers) = (webhooks(&configuration)?, gates::transformers(&gates));
    let policy = gates::policy(&gates, scheduler_pod);
    let values = configuration.values;
    let program = ControllerSettings::of_component(&values.client_connection, gates);
    let program = ControllerSettings { metrics: listen, health: listen, traces, ..program };
    let timings = timings(&values, parked_max);
    let clock = Arc::clone(&dependencies.clock);
    let mut program = Program::new(BUILD, program, dependencies, &stop)?;
    let core = program.core();
    core.metrics().show(exposition)?;
    let profiles: Vec<Profile> = profiles.into_iter().map(|built| built.profile).collect();
    let engine = Engine::new(profiles, timings, core.random().clone()).with_policy(policy);
    let mut feed = Feed::transforming(core, &engine.reads(), transformers);
    feed.keep_objects(core, &webhooks);
    let measures = Measures::of(&engine, core.metrics())?;
    stopwatch.start(measures.hook_latency(), Arc::clone(&clock));
    let scheduler = Scheduler::new(engine, feed, Arc::clone(core.events()), Arc::clone(&clock));
    let scheduler = scheduler.measured_by(measures).traced(core.tracer().clone()).monitored(monitoring);
    let scheduler = scheduler.extended_by(webhooks);
    let scheduler = scheduler.behind(barrier.and_then(|barrier| sync_barrier(barrier, &values.leader_election)));
    let is_elected = values.leader_election.leader_elect;
    let scheduler =
        scheduler.agreeing(is_elected.then_some(AGREEMENT_MAX)).controlling(controllers).dumping(dumps.clone());
    let scheduler = match auditor {
        Some(auditor) => scheduler.auditing_workloads(auditor, core.metrics())?,
        None => scheduler,
    };
    explain(core, scheduler.reader(), transformers, explain_waiting);
    let debug = debug::routes(dumps, values.enable_profiling);
    let services = services::routes(scheduler.reader()).merge(resources::routes(scheduler.reader()));
    let mut manager = program.manager_led_by(|identity| election(&values.leader_election, identity));
    install(scheduler, Arc::clone(&clock), &mut manager);
    let guarded = configz.merge(services).merge(debug);
    if let Some(secure) = secure {
        secure.run_in(manager.endpoints().merge(guarded.clone()), clock, &mut manager)?;
    }
    manager.serve_also(if has_insecure_debug { guarded } else { debug::guards() });
    Ok(manager.run(stop).await?)
}

/// Says what of the configuration has no effect.
fn report(profiles: &[BuiltProfile], Settings { configuration, gates, controllers, .. }: &Settings) {
    warn_of_configuration(&configuration.warnings());
    for BuiltProfile { profile, idle } in profiles {
        for idle in idle {
            tracing::warn!(profile = &*profile.scheduler, "{idle}");
        }
    }
    gates.warn_without_effect();
    let is_known =
        |name: &str| profiles.iter().flat_map(|built| &built.profile.plugins).any(|plugin| plugin.name() == name);
    for name in controllers.names().filter(|name| !is_known(name)) {
        tracing::warn!(name, "--controller-plugins names a plugin that no profile has");
    }
}

/// What this replica waits for when it becomes leader; none where it leads at once.
fn sync_barrier((pod, timeout): (ObjectKey, Duration), election: &LeaderElection) -> Option<SyncBarrier> {
    let lease = election.resource_name.clone().unwrap_or_default();
    election.leader_elect.then_some(SyncBarrier { pod, lease, timeout })
}
