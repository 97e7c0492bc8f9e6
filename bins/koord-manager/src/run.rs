//! Wires the manager and runs it.

use std::sync::Arc;

use anyhow::Context as _;
use koord_manager_controllers::{
    ConfigSource,
    colocationprofile::{self, ColocationProfileController},
    nodemetric::{self, NodeMetricController},
    noderesource::{self, NodeResourceController, Plugins},
    nodeslo::{self, NodeSloController},
    quotaprofile::{self, QuotaProfileController},
};
use koord_runtime::{
    Core,
    clock::{SharedClock, SystemClock},
    gates::Gates,
    lease::LeaderElectionConfig,
    manager::{Manager, Settings},
    metrics::Metrics,
    otlp::{Endpoint, export},
    random::Random,
    recorder::Recorder,
    trace::Tracer,
};
use koord_webhooks::{Accounts, Retries};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio_util::sync::CancellationToken;

use crate::{
    metrics::BUILD_INFO,
    options::{Checked, Options},
};

/// Writes are made, and requests sent, in this name; and the Lease by which replicas elect their leader has it.
pub const NAME: &str = "koordinator-manager";

/// What a manager takes from outside.
#[derive(Clone)]
pub struct Surroundings {
    /// The way to the API server.
    pub client: Client,
    /// Host and port in the API server's URL, for the metrics.
    pub api_host: String,
    /// The clock of the controllers; leases and timeouts run in real time whatever it shows.
    pub clock: SharedClock,
    /// The source of randomness.
    pub random: Random,
    /// The webhook server's settings.
    pub webhook: koord_webhook::Environment,
}

impl Surroundings {
    /// Those of a process: the API server that the flags or the pod name, the system's clock.
    pub async fn of_process(options: &Options) -> anyhow::Result<Self> {
        let config = match &options.kubeconfig {
            None => Config::infer().await.context(
                "no API server is known: give --kubeconfig, set KUBECONFIG, or run in a pod with a service account",
            )?,
            Some(path) => {
                let read = Kubeconfig::read_from(path);
                let kubeconfig = read.with_context(|| format!("--kubeconfig {}", path.display()))?;
                let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
                config.with_context(|| format!("--kubeconfig {}", path.display()))?
            }
        };
        let api_host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        let client = Client::try_from(config).context("the client for the API server cannot be made")?;
        let webhook = koord_webhook::Environment::read()?;
        Ok(Self { client, api_host, clock: SystemClock::shared(), random: Random::from_os(), webhook })
    }
}

/// Runs the manager of these options until `stop`.
pub async fn run(options: Options, stop: CancellationToken) -> anyhow::Result<()> {
    let surroundings = Surroundings::of_process(&options).await?;
    run_with(options.check()?, surroundings, stop).await
}

/// Runs a manager in given surroundings until `stop`.
pub async fn run_with(checked: Checked, surroundings: Surroundings, stop: CancellationToken) -> anyhow::Result<()> {
    let Surroundings { client, api_host, clock, random, webhook } = surroundings;
    let metrics = Metrics::new()?;
    metrics.build_info(BUILD_INFO, env!("CARGO_PKG_VERSION"))?;
    metrics.watch_process()?;
    let (recorder, waiting) = Recorder::new(Arc::clone(&clock));
    let mut core = Core::new(Arc::clone(&clock), random.clone(), metrics.clone(), Arc::new(recorder));
    core.restrict_to(&checked.options.namespace);
    if let Some(endpoint) = checked.traces.clone() {
        record_traces(&mut core, endpoint, stop.clone());
    }
    add_controllers(&mut core, &checked)?;
    let Checked { options, metrics: metrics_address, health, gates, .. } = checked;
    let retries = options.quota_retries();
    let settings = options.webhook_settings();
    // Connections, certificates and waiting for a cache are between machines, whose time is real.
    let real = SystemClock::shared();
    let webhooks = webhook_server(webhook, &mut core, &gates, &metrics, real, settings, retries)?;

    let host = host_name();
    let identity = format!("{host}_{}", random.uuid());
    let leader_election = options
        .enable_leader_election
        .then(|| LeaderElectionConfig::new(options.leader_election_namespace.clone(), NAME, identity));
    let settings = Settings {
        field_manager: NAME,
        requests_per_second: options.rest_config_qps,
        requests_burst: options.rest_config_burst,
        leader_election,
        metrics: metrics_address,
        health,
        host,
    };
    let manager = Manager::new(core, client, waiting, settings).at_host(&api_host);
    let Some((server, accounts)) = webhooks else {
        return Ok(manager.run(stop).await?);
    };
    manager.health().ready("webhook-ready", server.readiness());
    let api = manager.api().clone();
    accounts.open(Arc::new(api.clone()));
    // Whichever ends first, by an error or by `stop`, ends the other.
    let both = stop.child_token();
    let webhooks =
        async { server.run(api, both.clone()).await.inspect_err(|_| both.cancel()).map_err(anyhow::Error::from) };
    let manager = async { manager.run(both.clone()).await.inspect_err(|_| both.cancel()).map_err(anyhow::Error::from) };
    tokio::try_join!(webhooks, manager)?;
    Ok(())
}

/// Has traces recorded, and sent to the collector in the background.
fn record_traces(core: &mut Core, endpoint: Endpoint, stop: CancellationToken) {
    // Spans of the webhooks and of the controllers lie side by side, and beside those of other programs.
    let clock = SystemClock::shared();
    let (tracer, spans) = Tracer::new(Arc::clone(&clock), core.random().clone(), core.metrics());
    core.trace_by(tracer.clone());
    let service = ("koord-manager", env!("CARGO_PKG_VERSION"));
    tokio::spawn(export(endpoint, service, spans, tracer, clock, stop));
}

/// Adds every controller that the flags and gates let run.
pub fn add_controllers(core: &mut Core, checked: &Checked) -> anyhow::Result<()> {
    let Checked { options, gates, .. } = checked;
    let source = ConfigSource { namespace: options.config_namespace.clone(), name: options.slo_config_name.clone() };
    let profiles = ColocationProfileController::SPEC;
    if options.runs(profiles.name) && profiles.gate.is_none_or(|gate| gates.enabled(gate)) {
        let settings = options.colocation_profiles();
        core.add(profiles, colocationprofile::COMPONENT, |wiring| ColocationProfileController::wire(wiring, settings))?;
    }
    if options.runs(NodeMetricController::SPEC.name) {
        core.add(NodeMetricController::SPEC, nodemetric::COMPONENT, |wiring| {
            NodeMetricController::wire(wiring, &source)
        })?;
    }
    if options.runs(NodeResourceController::SPEC.name) {
        let plugins = Plugins::chosen(&options.noderesource_plugins, gates.enabled("EnableSyncGPUSharedResource"));
        core.add(NodeResourceController::SPEC, noderesource::COMPONENT, |wiring| {
            NodeResourceController::wire(wiring, &source, plugins)
        })?;
    }
    if options.runs(NodeSloController::SPEC.name) {
        core.add(NodeSloController::SPEC, nodeslo::COMPONENT, |wiring| NodeSloController::wire(wiring, &source))?;
    }
    if options.runs(QuotaProfileController::SPEC.name) {
        core.add(QuotaProfileController::SPEC, quotaprofile::COMPONENT, QuotaProfileController::wire)?;
    }
    Ok(())
}

/// The webhook server with every handler whose gate is on; none when the gate of the whole framework is off.
fn webhook_server(
    environment: koord_webhook::Environment,
    core: &mut Core,
    gates: &Gates,
    metrics: &Metrics,
    clock: SharedClock,
    settings: koord_webhooks::Settings,
    retries: Retries,
) -> anyhow::Result<Option<(koord_webhook::Server, Arc<Accounts>)>> {
    if !gates.enabled("WebhookFramework") {
        return Ok(None);
    }
    let counters = koord_webhook::Metrics::register(metrics)?;
    let ctx = Arc::new(koord_webhooks::Ctx::watch(core, |gate| gates.enabled(gate), settings));
    let builder = koord_webhook::ServiceBuilder::new(counters, Arc::clone(&clock)).traced(core.tracer().clone());
    let builder = koord_webhooks::serve(builder, &ctx, |gate| gates.enabled(gate));
    let accounts = Accounts::new(ctx, retries, core.random().clone());
    let service = accounts.settle(builder).build();
    let server = koord_webhook::Server::open(environment, service, clock)?;
    server.watch(core);
    Ok(Some((server, accounts)))
}

fn host_name() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
    kernel.ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "koord-manager".to_owned())
}
