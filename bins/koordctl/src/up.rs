//! `koordctl up`: a small cluster in one process.
//!
//! The parts know each other only through the API server: [`server`] is it, [`furnish`] puts in what an installation consists of, koord-manager
//! and the hollow nodes are clients like any other.

pub mod furnish;
pub mod greeting;
pub mod logs;
pub mod manager;
pub mod progress;
pub mod server;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use envtest::serve::Kubeconfig;
use hollow::{Fleet, Koordlet, Kubelet, Roster};
use jiff::{SignedDuration, Timestamp};
use koord_runtime::clock::{ScaledClock, SharedClock, SystemClock};
use kube::Client;
use manager::{RunningManager, Settings};
use progress::Progress;
use server::Embedded;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::cli::UpArgs;

/// A running cluster on the embedded server.
pub struct Cluster {
    server: Embedded,
    inhabitants: Inhabitants,
    /// Where its kubeconfig is.
    pub kubeconfig: PathBuf,
}

impl Cluster {
    /// Starts everything. The kubeconfig is written last, when what it leads to is complete.
    pub async fn start(args: &UpArgs, progress: &mut Progress) -> Result<Self> {
        let kubeconfig = std::path::absolute(&args.kubeconfig)
            .with_context(|| format!("--kubeconfig {}", args.kubeconfig.display()))?;
        let place = server::Place { port: args.port, data_dir: args.data_dir.clone(), takes_care: !args.no_manager };
        let may_replace = Kubeconfig::check(&kubeconfig, args.force, &place.owner())?;
        manager::checked(&args.feature_gates)?;
        let clock = clock(args.speed);
        progress.step("API server");
        let server = Embedded::start(place, Arc::clone(&clock), args.seed).await?;
        let inhabitants = Inhabitants::settle(&server.client, args, &clock, progress).await?;
        server.kubeconfig.write_when_ready(&kubeconfig, may_replace).await?;
        Ok(Self { server, inhabitants, kubeconfig })
    }

    /// Where clients connect.
    pub fn url(&self) -> &str {
        &self.server.kubeconfig.server
    }

    /// Waits until a part ends by itself, which means that something is wrong.
    pub async fn ended(&mut self) -> Result<()> {
        self.inhabitants.ended().await
    }

    /// Ends everything, the server last, and removes the kubeconfig if it still leads here.
    pub async fn stop(self) {
        self.inhabitants.leave().await;
        remove_if_ours(&self.kubeconfig, &self.server.kubeconfig);
        self.server.stop().await;
    }
}

/// What lives in a cluster, whichever server it has: definitions, an installation, koord-manager and hollow nodes.
pub struct Inhabitants {
    parts: JoinSet<()>,
    manager: Option<RunningManager>,
    _certificates: TempDir,
}

impl Inhabitants {
    /// Moves in. Definitions come first, because everything else needs them.
    pub async fn settle(client: &Client, args: &UpArgs, clock: &SharedClock, progress: &mut Progress) -> Result<Self> {
        progress.step("custom resource definitions");
        let of = koord_api::KINDS.len();
        furnish::definitions(client, args.profile, |done| progress.count(done, of)).await?;
        furnish::installation(client).await?;

        let certificates = TempDir::new().context("no folder for certificates")?;
        let mut manager = if args.no_manager {
            furnish::no_webhooks(client).await?;
            None
        } else {
            progress.step("koord-manager");
            furnish::webhooks(client).await?;
            Some(RunningManager::start(&Settings {
                client,
                clock,
                seed: args.seed,
                feature_gates: &args.feature_gates,
                certificates: certificates.path(),
            })?)
        };

        let mut parts = JoinSet::new();
        progress.step("nodes");
        let fleet = Fleet::drawn(args.seed, args.nodes);
        fleet.register(client, clock, |done| progress.count(done, args.nodes as usize)).await?;
        animate(&mut parts, &fleet, client, &SystemClock::shared(), clock);
        if let Some(manager) = &mut manager {
            progress.step("NodeSLOs and NodeMetrics");
            let of = args.nodes as usize;
            manager.settled(client, of, |made| progress.count(made, of)).await?;
        }
        progress.finish();
        Ok(Self { parts, manager, _certificates: certificates })
    }

    /// Waits until a part ends by itself, which means that something is wrong; for ever, if nothing is.
    pub async fn ended(&mut self) -> Result<()> {
        match &mut self.manager {
            Some(manager) => manager.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Moves out: nothing is written any more.
    pub async fn leave(mut self) {
        if let Some(manager) = self.manager {
            manager.stop().await;
        }
        self.parts.shutdown().await;
    }
}

/// Lets the nodes live. Leases are real time, as everything that others wait for; what is reported is the cluster's time.
fn animate(parts: &mut JoinSet<()>, fleet: &Fleet, client: &Client, real: &SharedClock, scaled: &SharedClock) {
    let roster = Roster::default();
    let kubelet = Kubelet::new(fleet.clone(), client.clone(), Arc::clone(scaled), roster.clone());
    let koordlet = Koordlet::new(fleet.clone(), client.clone(), Arc::clone(scaled), roster);
    parts.spawn(fleet.clone().keep_alive(client.clone(), Arc::clone(real)));
    parts.spawn(kubelet.run());
    parts.spawn(koordlet.run());
}

/// The cluster's clock. A fast one starts so far in the past that it meets the present after a day.
pub fn clock(speed: f64) -> SharedClock {
    let system = SystemClock::shared();
    if (speed - 1.0).abs() < f64::EPSILON {
        return system;
    }
    ScaledClock::shared(start_of_time(system.now(), speed), speed)
}

fn start_of_time(now: Timestamp, speed: f64) -> Timestamp {
    const DAY_S: f64 = 86_400.0;
    let ahead_s = DAY_S * (speed - 1.0).max(0.0);
    now.checked_sub(SignedDuration::from_secs(ahead_s as i64)).unwrap_or(Timestamp::UNIX_EPOCH)
}

fn remove_if_ours(file: &Path, ours: &Kubeconfig) {
    if std::fs::read_to_string(file).is_ok_and(|text| text == ours.to_text()) {
        // A file that cannot be removed leads nowhere; the next start says that it is in the way.
        let _ = std::fs::remove_file(file);
    }
}

/// Runs a cluster until ctrl-C.
pub async fn run(args: &UpArgs) -> Result<()> {
    logs::init(args.verbose);
    let mut interrupted = Interrupt::listen()?;
    let mut progress = Progress::shown();
    let mut cluster = tokio::select! {
        biased;
        () = interrupted.wait() => return Ok(()),
        cluster = Cluster::start(args, &mut progress) => cluster?,
    };
    drop(progress);
    // Whoever reads this may have stopped reading; the cluster goes on.
    let _ = writeln!(std::io::stdout(), "{}", greeting::greeting(args, cluster.url(), &cluster.kubeconfig));
    let result = tokio::select! {
        biased;
        () = interrupted.wait() => Ok(()),
        result = cluster.ended() => result,
    };
    let _ = writeln!(std::io::stderr(), "stopping");
    cluster.stop().await;
    result
}

/// ctrl-C, or the polite signal of a process manager.
struct Interrupt {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Interrupt {
    fn listen() -> Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
                .context("signals cannot be listened for")?,
        })
    }

    async fn wait(&mut self) {
        #[cfg(unix)]
        tokio::select! { biased; _ = tokio::signal::ctrl_c() => {}, _ = self.terminate.recv() => {} }
        #[cfg(not(unix))]
        let _ = tokio::signal::ctrl_c().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_clock_meets_the_present_after_a_day() {
        let now: Timestamp = "2026-03-04T00:00:00Z".parse().unwrap();
        for speed in [1.0, 2.0, 60.0] {
            let start = start_of_time(now, speed);
            let shown_after_a_day = start + SignedDuration::from_secs((86_400.0 * speed) as i64);
            assert_eq!(shown_after_a_day, now + SignedDuration::from_hours(24), "{speed}");
        }
        assert_eq!(start_of_time(now, 0.5), now);
        assert!(start_of_time(now, 10_000.0) < now);
    }
}
