//! Wires the descheduler and runs it.

use std::sync::Arc;

use anyhow::Result;
use koord_config::policy::Note;
use koord_descheduler_assembly::{Built, Configuration, LiveScheduler, build};
use koord_descheduler_runtime::{
    ConfigurationChanges, Feed, LateRequester, Measures, Migration, OwnEvents, Passes, Planner, Worker, install,
    install_jobs,
};
use koord_program::{
    ControllerSettings, Dependencies, Program,
    component::{
        api_server, changing_configz, election, program_pod, suggestion, warn_of_configuration, warn_of_flags,
        write_configuration,
    },
    debug,
    gates::Gates,
    serving::{SecurePort, TlsFlags},
};
use koord_runtime::{
    clock::SharedClock,
    key::ObjectKey,
    manager::{ListenAddress, Manager},
    metrics::Exposition,
    otlp::Endpoint,
};
use koord_scheduler_assembly::{Configuration as SchedulerConfiguration, GATES};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    configuration::{configuration_with_text, scheduler_configuration},
    identity::BUILD,
    options::{Checked, listen},
    reload::{ConfigurationFile, arbitration_interval, behaviour, follow, shown},
};

/// Changes of the configuration that wait for the worker, which takes them within a second.
const CHANGES_MAX: usize = 16;

/// How the descheduler runs.
#[derive(Clone, Debug)]
pub struct Settings {
    pub configuration: Configuration,
    /// The configuration of the cluster's scheduler, with which it is planned.
    pub scheduler: SchedulerConfiguration,
    /// Where health is served.
    pub health: Option<ListenAddress>,
    /// Where metrics are served.
    pub metrics: Option<ListenAddress>,
    /// Which metrics are shown.
    pub exposition: Exposition,
    /// Whether evictions and passes are counted under the names of kubernetes-sigs/descheduler.
    pub community_metrics: bool,
    /// How the same is served with TLS.
    pub secure: Option<SecurePort>,
    /// Where traces are sent.
    pub traces: Option<Endpoint>,
    /// Which features are on.
    pub gates: Gates,
    /// The file whose changes are followed; `None` for a configuration that stays.
    pub file: Option<ConfigurationFile>,
    /// The pod in which the program runs; `None` outside of a cluster.
    pub pod: Option<ObjectKey>,
}

impl Settings {
    /// Of a descheduler beside other programs in one process: nothing is served, and requests have no limit.
    ///
    /// # Errors
    ///
    /// The scheduler's configuration that is shipped cannot be read.
    pub fn within(mut configuration: Configuration) -> Result<Self> {
        configuration.values.client_connection.qps = -1.0;
        Ok(Self {
            configuration,
            scheduler: SchedulerConfiguration::shipped_for_all_pods()?,
            health: None,
            metrics: None,
            exposition: Exposition::default(),
            community_metrics: false,
            secure: None,
            traces: None,
            gates: Gates::new(BUILD.gates),
            file: None,
            pod: None,
        })
    }
}

/// Runs the descheduler of these options until `stop`.
pub async fn run(checked: Checked, stop: CancellationToken) -> Result<()> {
    let Checked { options, gates, tls: TlsFlags { policy, unserved_suites }, exposition, traces } = checked;
    if let Some(line) = options.version.line(&BUILD) {
        println!("{line}");
        return Ok(());
    }
    warn_of_flags(&options.without_effect, &unserved_suites);
    let (configuration, text) = configuration_with_text(&options)?;
    let scheduler = scheduler_configuration(&options)?;
    if let Some(file) = &options.write_config_to {
        return write_configuration(&configuration.effective()?, file);
    }
    let (health, metrics) = addresses(&configuration)?;
    // What cannot be built is said before anything is contacted.
    let built = build(&configuration.values)?;
    let settings = Settings {
        health,
        metrics,
        exposition: options.metrics.with_manifest(exposition),
        community_metrics: options.community_metrics,
        secure: options.secure(policy),
        traces,
        gates,
        file: ConfigurationFile::of(&options, text, &configuration, &built),
        pod: program_pod(|variable| std::env::var(variable).ok()),
        configuration,
        scheduler,
    };
    let kubeconfig = settings.configuration.values.client_connection.kubeconfig.clone();
    let dependencies = Dependencies::connected_by(api_server(None, &kubeconfig).await?)?;
    run_descheduler(built, settings, dependencies, None, stop).await
}

/// Where health and metrics are served: by one listener where both addresses are the same.
fn addresses(configuration: &Configuration) -> Result<(Option<ListenAddress>, Option<ListenAddress>)> {
    let values = &configuration.values;
    let health = listen(&values.healthz_bind_address, "healthzBindAddress")?;
    let metrics = listen(&values.metrics_bind_address, "metricsBindAddress")?;
    let is_same = matches!((&health, &metrics), (Some(one), Some(other)) if one.address == other.address);
    Ok((health, if is_same { health } else { metrics }))
}

/// Runs a descheduler with given dependencies until `stop`. Where time is virtual, the clock of the dependencies times leases, too.
pub async fn run_with(
    settings: Settings,
    dependencies: Dependencies,
    timed_by: Option<SharedClock>,
    stop: CancellationToken,
) -> Result<()> {
    let built = build(&settings.configuration.values)?;
    Box::pin(run_descheduler(built, settings, dependencies, timed_by, stop)).await
}

async fn run_descheduler(
    Built { descheduler, migration }: Built,
    settings: Settings,
    dependencies: Dependencies,
    timed_by: Option<SharedClock>,
    stop: CancellationToken,
) -> Result<()> {
    report(&settings);
    // The program may end by itself, beside others in one process.
    let stop = stop.child_token();
    let Settings {
        configuration,
        scheduler,
        health,
        metrics,
        exposition,
        community_metrics,
        secure,
        traces,
        gates,
        file,
        pod,
    } = settings;
    let shown = shown(&configuration.effective()?);
    let ends_after_a_pass = configuration.ends_after_a_pass();
    let values = configuration.values;
    let program = ControllerSettings::of_component(&values.client_connection, gates.clone());
    let program = ControllerSettings { metrics, health, traces, ..program };
    let clock = Arc::clone(&dependencies.clock);
    let mut program = Program::new(BUILD, program, dependencies, &stop)?;
    let core = program.core();
    core.metrics().show(exposition)?;
    let reads = descheduler.reads();
    let feed = if file.is_some() { Feed::that_grows(core, &reads) } else { Feed::of(core, &reads) };
    let interval = values.descheduling_interval.to_std().unwrap_or_default();
    let planner = if descheduler.is_planning() {
        let scheduler = LiveScheduler::new(core, &scheduler, &Gates::new(GATES))?;
        Some(Box::new(scheduler) as Box<dyn Planner>)
    } else {
        None
    };
    let passes = Passes::new(descheduler, interval, planner);
    let measures = if community_metrics {
        Measures::with_community_names(core.metrics(), BUILD.version)?
    } else {
        Measures::new(core.metrics())?
    };
    let requester = LateRequester::default();
    let migration = match migration {
        Some((plugin, args)) => {
            let migration = Migration::new(plugin, arbitration_interval(&args));
            let drops_claims = gates.enabled("DisablePVCReservation");
            install_jobs(core, (&args, drops_claims), (&migration, &passes), &requester, &measures)?;
            Some(migration)
        }
        None => None,
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let lease = &values.leader_election;
    let lease = ObjectKey::new(&text(&lease.resource_namespace), &text(&lease.resource_name));
    let own_events = OwnEvents::new(Arc::clone(core.events()), pod, lease);
    let worker = Worker::new(passes, migration, feed, core, measures, own_events, behaviour(&values));
    let (changed, changes) = mpsc::channel(CHANGES_MAX);
    let worker = worker.with_changes(ConfigurationChanges { changes, shown: Arc::clone(&shown) });
    let worker = if ends_after_a_pass { worker.ending_after_a_pass(stop.clone()) } else { worker };
    let mut manager: Manager = match timed_by {
        Some(clock) => program.manager_timed_by(clock),
        None => program.manager_led_by(|identity| election(&values.leader_election, identity)),
    };
    requester.connect(manager.leader_api());
    install(worker, &mut manager);
    if let Some(file) = file {
        let clock = Arc::clone(&clock);
        manager.on_every_replica("configuration", move |_, end| {
            follow(file.clone(), Arc::clone(&clock), changed.clone(), end)
        });
    }
    let further = changing_configz(move || Arc::clone(&shown.read())).merge(debug::routes(values.enable_profiling));
    if let Some(secure) = secure {
        secure.run_in(manager.endpoints().merge(further.clone()), clock, &mut manager)?;
    }
    manager.serve_also(further);
    Ok(manager.run(stop).await?)
}

/// Reports what of the configuration has no effect, or another one than with kubernetes-sigs/descheduler.
fn report(Settings { configuration, gates, .. }: &Settings) {
    for Note { consequence, problem } in configuration.notes() {
        tracing::warn!(
            consequence = consequence.name(),
            "the policy of kubernetes-sigs/descheduler means something else here: {problem}{}",
            suggestion(problem)
        );
    }
    warn_of_configuration(&configuration.warnings());
    gates.warn_without_effect();
}

#[cfg(test)]
mod tests {
    use koord_configuration::Source;
    use serde_json::json;

    use super::*;

    #[test]
    fn health_and_metrics_at_one_address_have_one_listener() {
        let served = |health: &str, metrics: &str| {
            let document = json!({
                "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerConfiguration",
                "healthzBindAddress": health, "metricsBindAddress": metrics,
            });
            addresses(&Configuration::of_document(&document, &Source::new("config", "")).unwrap()).unwrap()
        };
        let (health, metrics) = served("127.0.0.1:5", "127.0.0.1:5");
        assert!(health == metrics && health.is_some());
        let (health, metrics) = served("127.0.0.1:5", "127.0.0.1:6");
        assert_ne!(health, metrics);
        assert_eq!(served("127.0.0.1:0", "127.0.0.1:6").0, None);
    }
}
