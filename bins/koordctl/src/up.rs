//! `koordctl up`: a small cluster in one process.
//!
//! The parts communicate only through the API server ([`server`]): [`install`] creates the objects of an installation; koord-manager
//! and the hollow nodes are clients like any other.

pub mod descheduler;
pub mod greeting;
pub mod install;
pub mod logs;
pub mod manager;
pub mod node_agent;
pub mod progress;
pub mod scenario;
pub mod scheduler;
pub mod server;
pub mod time;

use std::{
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicUsize},
};

use anyhow::{Context as _, Result};
use envtest::serve::Kubeconfig;
use hollow::{Fleet, Koordlet, Kubelet, ReplicaSets, Roster};
use koord_program::TerminationSignals;
use koord_runtime::clock::{SharedClock, SystemClock};
use kube::Client;
use manager::{RunningManager, Settings};
use progress::Progress;
use scenario::{Player, Scenario, play};
use server::Embedded;
use time::ClusterTime;
use tokio::task::{JoinHandle, JoinSet};

use crate::{Answer, cli::UpArgs, screen::Screen};

/// A running cluster on the embedded server.
pub struct Cluster {
    server: Embedded,
    components: Components,
    time: Arc<ClusterTime>,
    remembering: JoinSet<()>,
    /// Where its kubeconfig is.
    pub kubeconfig: PathBuf,
    /// Where its scheduler answers over HTTP; none where it has none.
    pub scheduler: Option<SocketAddr>,
}

impl Cluster {
    /// Starts everything. The kubeconfig is written last, when what it leads to is complete.
    pub async fn start(args: &UpArgs, progress: &mut Progress) -> Result<Self> {
        let kubeconfig = std::path::absolute(&args.kubeconfig)
            .with_context(|| format!("--kubeconfig {}", args.kubeconfig.display()))?;
        let place = server::Place {
            port: args.port,
            data_dir: args.data_dir.clone(),
            service_account_admission: args.service_account_admission,
        };
        let may_replace = Kubeconfig::check(&kubeconfig, args.force, &place.owner())?;
        manager::checked(args)?;
        args.node_agent.as_deref().map_or(Ok(()), node_agent::check)?;
        descheduler::configuration(args.descheduler_config.as_deref())?;
        let time = Arc::new(ClusterTime::begin(args.speed(), args.data_dir.as_deref())?);
        progress.step("API server");
        let server = Embedded::start(place, Arc::clone(&time.clock), args.seed).await?;
        let mut remembering = JoinSet::new();
        remembering.spawn(Arc::clone(&time).remember());
        let scheduler = if args.no_scheduler { None } else { scheduler::address(args.scheduler_addr, args.port)? };
        let args = &UpArgs { scheduler_addr: scheduler, ..args.clone() };
        let components = Components::start(&server.client, args, &time.clock, progress).await?;
        server.kubeconfig.write_when_ready(&kubeconfig, may_replace).await?;
        Ok(Self { server, components, time, remembering, kubeconfig, scheduler })
    }

    /// A client of it without a socket.
    pub fn client(&self) -> &Client {
        &self.server.client
    }

    pub fn time(&self) -> &ClusterTime {
        &self.time
    }

    /// Where koordlet answers; none where it does not run.
    pub fn node_agent(&self) -> Option<SocketAddr> {
        self.components.node_agent_address
    }

    pub fn url(&self) -> &str {
        &self.server.kubeconfig.server
    }

    /// Waits until a part ends by itself, which means that something is wrong.
    pub async fn ended(&mut self) -> Result<()> {
        self.components.ended().await
    }

    /// Ends everything, the server last, and removes the kubeconfig if it still leads here.
    pub async fn stop(mut self) {
        self.components.stop().await;
        remove_if_ours(&self.kubeconfig, &self.server.kubeconfig);
        self.server.stop().await;
        self.remembering.shutdown().await;
        self.time.stop();
    }
}

/// What runs in a cluster, on either server: CRDs, an installation, koord-manager and hollow nodes.
pub struct Components {
    parts: JoinSet<()>,
    manager: Option<RunningManager>,
    scheduler: Option<JoinHandle<Result<()>>>,
    descheduler: Option<JoinHandle<Result<()>>>,
    node_agent: Option<JoinHandle<Result<()>>>,
    node_agent_address: Option<SocketAddr>,
}

impl Components {
    /// Installs and starts everything, the CRDs first, because everything else needs them.
    pub async fn start(client: &Client, args: &UpArgs, clock: &SharedClock, progress: &mut Progress) -> Result<Self> {
        progress.step("custom resource definitions");
        let of = koord_types::KINDS.len();
        install::definitions(client, args.profile, |done| progress.count(done, of)).await?;
        install::installation(client).await?;
        install::permissions(client).await?;

        let mut manager = if args.no_manager {
            install::no_webhooks(client).await?;
            None
        } else {
            progress.step("koord-manager");
            install::webhooks(client).await?;
            install::no_lease(client).await?;
            Some(RunningManager::start(&Settings { client, clock, seed: args.seed, flags: args })?)
        };

        let mut parts = JoinSet::new();
        progress.step("nodes");
        let fleet = Fleet::drawn(args.seed, args.nodes);
        fleet.register(client, clock, |done| progress.count(done, args.nodes as usize)).await?;
        let agent = args.node_agent.as_deref().zip(fleet.nodes().first());
        let hollow = agent.map_or_else(|| fleet.clone(), |(_, node)| fleet.without(&node.name));
        let reported = run_nodes(&mut parts, &fleet, &hollow, client, &SystemClock::shared(), clock);
        let (node_agent, node_agent_address) = match agent {
            Some((folder, node)) => {
                let (running, address) = node_agent::start(node, folder, client, clock, args.seed).await?;
                (Some(running), Some(address))
            }
            None => (None, None),
        };
        if let Some(manager) = &mut manager {
            progress.step("NodeSLOs and NodeMetrics");
            let of = hollow.nodes().len();
            manager.settled(client, of, &reported, |made| progress.count(made, of)).await?;
        }
        let scheduler = (!args.no_scheduler)
            .then(|| tokio::spawn(scheduler::run(client.clone(), Arc::clone(clock), args.seed, args.scheduler_addr)));
        parts.spawn(ReplicaSets::new(client.clone()).run());
        let descheduler = if args.no_descheduler {
            None
        } else {
            let file = args.descheduler_config.as_deref();
            let configuration = descheduler::configuration(file)?;
            install::replace(client, descheduler::config_map(file)?).await?;
            Some(tokio::spawn(descheduler::run(client.clone(), Arc::clone(clock), args.seed, configuration)))
        };
        let pods_per_node = args.pods_per_node();
        if pods_per_node > 0 && args.nodes > 0 {
            progress.step("production pods");
            let of = args.nodes as usize * pods_per_node as usize;
            install::workload_namespace(client).await?;
            fleet.populate(client, pods_per_node, |done| progress.count(done, of)).await?;
        }
        progress.finish();
        Ok(Self { parts, manager, scheduler, descheduler, node_agent, node_agent_address })
    }

    /// Waits until a part ends by itself, which means that something is wrong; for ever, if nothing is.
    pub async fn ended(&mut self) -> Result<()> {
        let manager = async {
            match &mut self.manager {
                Some(manager) => manager.ended().await,
                None => std::future::pending().await,
            }
        };
        let scheduler = ended(&mut self.scheduler, "koord-scheduler");
        let descheduler = ended(&mut self.descheduler, "koord-descheduler");
        let node_agent = ended(&mut self.node_agent, "koordlet");
        tokio::select! { ended = manager => ended, ended = scheduler => ended, ended = descheduler => ended, ended = node_agent => ended }
    }

    /// Stops everything: nothing is written any more.
    pub async fn stop(mut self) {
        for program in [self.scheduler, self.descheduler, self.node_agent].into_iter().flatten() {
            program.abort();
        }
        if let Some(manager) = self.manager {
            manager.stop().await;
        }
        self.parts.shutdown().await;
    }
}

/// Waits until a program ends by itself; for ever where it does not run.
async fn ended(program: &mut Option<JoinHandle<Result<()>>>, name: &'static str) -> Result<()> {
    match program {
        Some(program) => program.await.context(name)?.context(name),
        None => std::future::pending().await,
    }
}

/// Runs the hollow nodes, of which some report their load, and returns the number of those that have. Leases are real time, as everything that others wait for; what is reported is the cluster's time.
fn run_nodes(
    parts: &mut JoinSet<()>,
    fleet: &Fleet,
    reporting: &Fleet,
    client: &Client,
    real: &SharedClock,
    scaled: &SharedClock,
) -> Arc<AtomicUsize> {
    let roster = Roster::default();
    let kubelet = Kubelet::new(fleet.clone(), client.clone(), Arc::clone(scaled), roster.clone());
    let koordlet = Koordlet::new(reporting.clone(), client.clone(), Arc::clone(scaled), roster);
    parts.spawn(fleet.clone().keep_alive(client.clone(), Arc::clone(real)));
    parts.spawn(kubelet.run());
    let reported = koordlet.answered();
    parts.spawn(koordlet.run());
    reported
}

fn remove_if_ours(file: &Path, ours: &Kubeconfig) {
    if std::fs::read_to_string(file).is_ok_and(|text| text == ours.to_text()) {
        // A file that cannot be removed leads nowhere; the next start says that it is in the way.
        let _ = std::fs::remove_file(file);
    }
}

/// Runs a cluster until ctrl-C, or plays a scenario in it.
pub async fn run(args: &UpArgs, screen: Screen) -> Result<Answer> {
    let Some(name) = &args.scenario else { return run_cluster(args, None, screen).await };
    if name == scenario::LIST {
        return Ok(Answer::success(scenario::list()?));
    }
    let scenario = scenario::find(name)?;
    run_cluster(&scenario.arguments(args)?, Some(scenario), screen).await
}

async fn run_cluster(args: &UpArgs, scenario: Option<Scenario>, screen: Screen) -> Result<Answer> {
    logs::init(args.verbose);
    koord_listen::raise_open_files();
    let mut signals = TerminationSignals::listen()?;
    let mut progress = Progress::shown();
    let mut cluster = tokio::select! {
        biased;
        () = signals.received() => return Ok(Answer::success("")),
        cluster = Cluster::start(args, &mut progress) => cluster?,
    };
    drop(progress);
    // Whoever reads this may have stopped reading; the cluster goes on.
    let ahead = cluster.time().is_ahead();
    let at = greeting::Place {
        server: cluster.url(),
        kubeconfig: &cluster.kubeconfig,
        scheduler: cluster.scheduler,
        node_agent: cluster.node_agent(),
    };
    let greeting = greeting::greeting(args, &at, ahead, screen);
    let _ = writeln!(std::io::stdout(), "{greeting}");
    let player = Player {
        client: cluster.client().clone(),
        clock: Arc::clone(&cluster.time().clock),
        kubeconfig: cluster.kubeconfig.clone(),
        speed: args.speed(),
        screen,
    };
    let playing = async {
        match scenario {
            Some(scenario) => play(&scenario, &player, args.step).await,
            None => std::future::pending().await,
        }
    };
    let result = tokio::select! {
        biased;
        () = signals.received() => Ok(()),
        result = cluster.ended() => result,
        result = playing => result,
    };
    let _ = writeln!(std::io::stderr(), "stopping");
    cluster.stop().await;
    result.map(|()| Answer::success(""))
}
