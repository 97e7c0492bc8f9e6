//! koord-manager in the process of `up`: the program's own wiring, with its webhooks on a free port of 127.0.0.1.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use koord_manager::run_with;
use koord_manager_assembly::{Checked, GATES, NO_AUTHORITY, Options, webhook_defaults};
use koord_program::{Dependencies, gates::Gates};
use koord_runtime::{clock::SharedClock, random::Random};
use koord_webhook_handlers::DECLARED_WEBHOOKS;
use koord_webhook_server::Environment;
use kube::Client;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::cli::UpArgs;

pub struct RunningManager {
    stop: CancellationToken,
    running: JoinHandle<Result<()>>,
}

/// What a manager is given.
pub struct Settings<'a> {
    /// The way to the API server.
    pub client: &'a Client,
    /// The clock of the controllers.
    pub clock: &'a SharedClock,
    /// The seed of its randomness.
    pub seed: u64,
    /// The flags that the user may set.
    pub flags: &'a UpArgs,
}

impl RunningManager {
    /// Starts it, without a limit on its requests.
    pub fn start(settings: &Settings) -> Result<Self> {
        let checked = checked(settings.flags)?;
        let dependencies = Dependencies {
            client: settings.client.clone(),
            api_host: "in-process".to_owned(),
            clock: settings.clock.clone(),
            random: Random::seeded(settings.seed),
        };
        let environment = Environment::of(webhook_defaults(), |name| match name {
            "WEBHOOK_HOST" => Some("127.0.0.1".to_owned()),
            "WEBHOOK_PORT" => Some("0".to_owned()),
            _ => None,
        })?;
        let stop = CancellationToken::new();
        let running = tokio::spawn(run_with(checked, dependencies, environment, stop.clone()));
        Ok(Self { stop, running })
    }

    /// Waits until every node has what the controllers make for it and the API server trusts the webhooks.
    pub async fn settled(
        &mut self,
        client: &Client,
        nodes: usize,
        reported: &AtomicUsize,
        mut progress: impl FnMut(usize),
    ) -> Result<()> {
        /// The longest time in which nothing more comes about.
        const STANDSTILL_MAX: Duration = Duration::from_secs(30);
        let mut made = 0;
        let mut since = tokio::time::Instant::now();
        loop {
            if self.running.is_finished() {
                return self.ended().await;
            }
            let now = count(client, "nodeslos").await?.min(count(client, "nodemetrics").await?);
            let now = now.min(reported.load(Ordering::Relaxed));
            if now >= nodes && trusted(client).await? {
                return Ok(());
            }
            if now > made {
                (made, since) = (now, tokio::time::Instant::now());
                progress(made);
            }
            if since.elapsed() > STANDSTILL_MAX {
                bail!(
                    "koord-manager does not settle: {made} of {nodes} nodes have a NodeSLO and a report in their NodeMetric; -v shows what it does"
                );
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until it ends by itself, which it does only when something is wrong.
    pub async fn ended(&mut self) -> Result<()> {
        (&mut self.running).await.context("koord-manager")?.context("koord-manager")?;
        bail!("koord-manager ended although nothing had stopped it")
    }

    /// Stops it, and waits.
    pub async fn stop(self) {
        self.stop.cancel();
        let _ = self.running.await;
    }
}

/// The manager's options by those of `up`. There is nobody here whose objects are from before a rule, so that all rules are enforced.
pub fn checked(UpArgs { feature_gates, declared_webhooks, metrics_addr, .. }: &UpArgs) -> Result<Checked> {
    let metrics = metrics_addr.map_or_else(|| "0".to_owned(), |address| address.to_string());
    let mut arguments = vec![
        "koord-manager".to_owned(),
        format!("--metrics-addr={metrics}"),
        "--health-probe-addr=0".to_owned(),
        "--rest-config-qps=0".to_owned(),
        "--admission-warnings".to_owned(),
        format!("--feature-gates={feature_gates}"),
    ];
    let is_stated = Gates::parse(GATES, feature_gates).is_ok_and(|gates| gates.stated(DECLARED_WEBHOOKS).is_some());
    let by_default = (!is_stated).then_some("enforce");
    let mode = declared_webhooks.as_deref().or(by_default);
    arguments.extend(mode.map(|mode| format!("--declared-webhooks={mode}")));
    Options::from_arguments(arguments).and_then(Options::check).map_err(one_line)
}

/// An error of the command line without its frame, for one of our own.
fn one_line(error: impl std::fmt::Display) -> anyhow::Error {
    let text = error.to_string();
    anyhow::anyhow!("{}", text.trim().trim_start_matches("error: "))
}

/// How many objects of a kind of the slo group there are.
async fn count(client: &Client, plural: &str) -> Result<usize> {
    let list = get(client, &format!("/apis/slo.koordinator.sh/v1alpha1/{plural}?limit=1")).await?;
    let rest = list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
    let first = list["items"].as_array().map_or(0, Vec::len);
    Ok(first + usize::try_from(rest).unwrap_or(usize::MAX - 1))
}

/// Whether every entry of both webhook configurations carries a certificate authority and an address.
async fn trusted(client: &Client) -> Result<bool> {
    let names = webhook_defaults();
    let configurations =
        [("mutatingwebhookconfigurations", names.mutating), ("validatingwebhookconfigurations", names.validating)];
    for (plural, name) in configurations {
        let configuration = get(client, &format!("/apis/admissionregistration.k8s.io/v1/{plural}/{name}")).await?;
        let filled = |entry: &Value| {
            let client = &entry["clientConfig"];
            client["url"].is_string() && client["caBundle"].as_str().is_some_and(|bundle| bundle != NO_AUTHORITY)
        };
        if !configuration["webhooks"].as_array().is_none_or(|entries| entries.iter().all(filled)) {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn get(client: &Client, path: &str) -> Result<Value> {
    Ok(client.request(http::Request::get(path).body(Vec::new())?).await?)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use koord_webhook_handlers::Declared;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn all_rules_are_enforced_unless_a_flag_says_otherwise() {
        let declared = |more: &[&str]| {
            let arguments = ["koordctl", "up"].iter().chain(more);
            let Command::Up(args) = Cli::try_parse_from(arguments).unwrap().command else { panic!("not up") };
            let checked = checked(&args).unwrap();
            (checked.declared_webhooks(), checked.enabled("EnableSyncGPUSharedResource"))
        };
        assert_eq!(declared(&[]), (Declared::Enforce, true));
        assert_eq!(declared(&["--feature-gates=MultiQuotaTree=true"]), (Declared::Enforce, false));
        assert_eq!(declared(&["--feature-gates=DeclaredWebhooks=false"]), (Declared::Off, false));
        assert_eq!(declared(&["--declared-webhooks=warn"]), (Declared::Warn, true));
    }
}
