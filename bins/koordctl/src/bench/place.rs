//! Where it is measured: an API server and a scheduler in this process, or a cluster.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use koord_program::{Dependencies, gates::Gates};
use koord_runtime::{clock::SystemClock, manager::ListenAddress, random::Random};
use koord_scheduler::{Settings, run_with};
use koord_scheduler_assembly::Configuration;
use koord_scheduler_bench::{RUN_LABEL, Scenario};
use kube::{Api, Client, ResourceExt, api::ListParams};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{BenchArgs, Profile},
    connect,
    names::{few, question},
    up::{
        install,
        server::{Embedded, Place as Port},
    },
    why::configuration,
};

/// Where it is measured.
pub(super) struct Place {
    /// The way to the API server.
    pub(super) client: Client,
    /// What the result calls it.
    pub(super) name: String,
    own: Option<Own>,
}

/// A server and a scheduler of this process.
struct Own {
    server: Embedded,
    scheduler: JoinHandle<Result<()>>,
    stop: CancellationToken,
}

impl Place {
    /// The place that the flags name.
    pub(super) async fn of(args: &BenchArgs, scenario: &Scenario) -> Result<Self> {
        if args.cluster.kubeconfig.is_some() || args.cluster.context.is_some() {
            return Self::cluster(args).await;
        }
        if args.beside_other_nodes {
            bail!("--beside-other-nodes is about a cluster; name it with --kubeconfig or --context");
        }
        let (configuration, gates) = configuration(&args.scheduler)?;
        let names: Vec<&str> = configuration.profiles().iter().map(|profile| &*profile.scheduler_name).collect();
        if !names.contains(&&*scenario.scheduler_name) {
            let wanted = scenario.scheduler_name.as_str();
            let known = question(wanted, names.iter().copied());
            let known = known.unwrap_or_else(|| format!("it has {}", names.join(", ")));
            bail!("the scenario's schedulerName is {wanted:?}, which is no profile of the configuration; {known}");
        }
        Self::embedded(args, configuration, gates).await
    }

    async fn embedded(args: &BenchArgs, mut configuration: Configuration, gates: Gates) -> Result<Self> {
        let clock = SystemClock::shared();
        let seed = 1;
        let server = Embedded::start(
            Port { port: 0, data_dir: None, service_account_admission: false },
            Arc::clone(&clock),
            seed,
        )
        .await?;
        let client = server.client.clone();
        install::definitions(&client, Profile::Hardened, |_| {}).await?;
        install::installation(&client).await?;
        let dependencies = Dependencies {
            client: client.clone(),
            api_host: "in-process".to_owned(),
            clock,
            random: Random::seeded(seed),
        };
        let listen = args.scheduler_addr.map(|address| ListenAddress { address, set_by: "--scheduler-addr" });
        // There is no other replica.
        configuration.values.leader_election.leader_elect = false;
        let settings = Settings { listen, gates, ..Settings::within(configuration) };
        let stop = CancellationToken::new();
        let scheduler = tokio::spawn(run_with(settings, dependencies, stop.clone()));
        Ok(Self { client, name: "embedded".to_owned(), own: Some(Own { server, scheduler, stop }) })
    }

    async fn cluster(args: &BenchArgs) -> Result<Self> {
        if args.scheduler.config.is_some() || !args.scheduler.feature_gates.is_empty() {
            bail!(
                "--config and --feature-gates are those of a scheduler in this process; in a cluster its own scheduler is measured, as it is"
            );
        }
        let server = connect::reach(&args.cluster.flags()).await?;
        let place = Self { client: server.client, name: server.url, own: None };
        place.check_nodes(args).await?;
        Ok(place)
    }

    /// Refuses a cluster whose nodes would take part.
    async fn check_nodes(&self, args: &BenchArgs) -> Result<()> {
        let api = Api::<k8s_openapi::api::core::v1::Node>::all(self.client.clone());
        let nodes = api.list_metadata(&ListParams::default()).await.context("the nodes cannot be listed")?;
        let (earlier, others): (Vec<_>, Vec<_>) =
            nodes.into_iter().partition(|node| node.labels().contains_key(RUN_LABEL));
        if let Some(run) = earlier.iter().filter_map(|node| node.labels().get(RUN_LABEL)).min() {
            bail!(
                "{} nodes of the run {run} are there: another benchmark runs, or one was killed; what it left goes with: kubectl delete nodes,namespaces -l {RUN_LABEL}",
                earlier.len()
            );
        }
        if !others.is_empty() && !args.beside_other_nodes {
            let names: Vec<String> = others.iter().map(ResourceExt::name_any).collect();
            bail!(
                "{} has nodes that are no benchmark's: {}; its scheduler will be under load, and objects are created in it. Say --beside-other-nodes to measure there all the same",
                self.name,
                few(&names)
            );
        }
        Ok(())
    }

    /// Whether everything is gone when this process ends.
    pub(super) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Waits until the scheduler ends by itself, which means that something is wrong; for ever where it is none of ours.
    pub(super) async fn ended(&mut self) -> Result<()> {
        let Some(own) = &mut self.own else { return std::future::pending().await };
        (&mut own.scheduler).await.context("koord-scheduler")?.context("koord-scheduler")?;
        bail!("koord-scheduler ended although nothing had stopped it")
    }

    /// Ends what is ours.
    pub(super) async fn stop(self) {
        if let Some(Own { server, scheduler, stop }) = self.own {
            stop.cancel();
            if !scheduler.is_finished() {
                let _ = scheduler.await;
            }
            server.stop().await;
        }
    }
}
