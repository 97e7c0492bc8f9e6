//! Which schedulers place pods in a cluster, what can go wrong between them, and what avoids it: `koordctl coexist`.
//!
//! What of the cluster matters is read once, into a `World`. Each check is a function of that, and looks at one thing.
//!
//! Read first: [`Options`], [`check`].
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod allocations;
mod census;
mod gangs;
mod leases;
mod membership;
mod pods;
mod priorities;
mod webhooks;
mod world;

use std::path::PathBuf;

use anyhow::Result;
use jiff::Timestamp;
use koord_program::{
    connect::{self, ClusterFlags},
    files,
    findings::{Finding, Findings, Report},
    output::{Answer, OutputFormat},
    screen::Screen,
    table,
};
use koord_scheduler_assembly::Configuration;
use serde_json::{Value, json};

use self::{
    census::{Census, Share},
    world::World,
};

/// The schedulerName of the configuration that Koordinator ships, and the name of its Lease.
const KOORD_SCHEDULER: &str = "koord-scheduler";
/// The schedulerName of pods that name none: kube-scheduler's.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Shared nodes that a table shows; `-o json` has all of them.
const SHOWN_MAX: usize = 20;

/// A check, by its name.
type Check = (&'static str, fn(&Situation<'_>, &mut Report));

const CHECKS: [Check; 6] = [
    ("schedulers", census::look),
    ("leases", leases::look),
    ("pods", pods::look),
    ("allocations", allocations::look),
    ("priorities", priorities::look),
    ("webhooks", webhooks::look),
];

/// Which cluster is looked at, beside which koord-scheduler, and how the answer is written.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Files with the objects; those of a cluster where it is empty.
    pub files: &'a [PathBuf],
    /// The configuration of koord-scheduler; `None` where it has the names of the one that is shipped.
    pub configuration: Option<&'a Configuration>,
    /// The time by which leases and waiting pods are judged; `None` for the server's.
    pub at: Option<Timestamp>,
    pub cluster: ClusterFlags<'a>,
    pub output: OutputFormat,
}

/// What koord-scheduler serves, by its configuration.
struct Ours {
    /// The schedulerNames of its profiles.
    names: Vec<String>,
    /// Namespace and name of its Lease; none where it leads without one.
    lease: Option<(String, String)>,
}

/// What the checks look at.
struct Situation<'w> {
    world: &'w World,
    ours: &'w Ours,
    census: Census<'w>,
    now: Timestamp,
}

// === impl Ours ===

impl Ours {
    fn of(configuration: Option<&Configuration>) -> Self {
        let Some(configuration) = configuration else {
            let lease = ("koordinator-system".to_owned(), KOORD_SCHEDULER.to_owned());
            return Self { names: vec![KOORD_SCHEDULER.to_owned()], lease: Some(lease) };
        };
        let election = &configuration.values.leader_election;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let lease = (text(&election.resource_namespace), text(&election.resource_name));
        Self {
            names: configuration.profiles().iter().map(|profile| profile.scheduler_name.clone()).collect(),
            lease: election.leader_elect.then_some(lease),
        }
    }

    fn serves(&self, scheduler: &str) -> bool {
        self.names.iter().any(|name| name == scheduler)
    }
}

// === impl Situation ===

impl<'w> Situation<'w> {
    fn of(world: &'w World, ours: &'w Ours, now: Timestamp) -> Self {
        Self { world, ours, census: Census::of(world, ours), now }
    }

    /// What the checks find.
    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, look) in CHECKS {
            let mut report = Report::new(name);
            look(self, &mut report);
            findings.extend(report.findings);
        }
        findings
    }
}

/// What is found of the schedulers of a cluster, or of objects in files.
pub async fn check(options: &Options<'_>, screen: Screen) -> Result<Answer> {
    let ours = Ours::of(options.configuration);
    let mut unread = Report::new("cluster");
    let (world, time) = if options.files.is_empty() {
        let server = connect::reach(&options.cluster).await?;
        (World::of_cluster(&server.client, &mut unread).await, server.time)
    } else {
        (World::of_objects(&files::objects(options.files)?), None)
    };
    let now = options.at.or(time).unwrap_or_else(Timestamp::now);
    let situation = Situation::of(&world, &ours, now);
    let mut findings = unread.findings;
    findings.extend(situation.findings());
    let found = Findings::of(findings, CHECKS.iter().map(|(name, _)| *name).collect());
    let text = match options.output {
        OutputFormat::Table => format!("{}\n{}", to_text(&situation, screen), found.to_text(screen)),
        format => {
            let mut document = to_json(&situation);
            if let (Value::Object(all), Value::Object(found)) = (&mut document, found.to_json()) {
                all.extend(found);
            }
            format.document(&document)?
        }
    };
    Ok(Answer { text, code: found.code() })
}

fn to_json(Situation { ours, census, .. }: &Situation<'_>) -> Value {
    let scheduler = |(name, share): (&&str, &Share<'_>)| {
        json!({
            "name": name, "isOurs": ours.serves(name), "pods": share.pods, "daemonSetPods": share.daemons,
            "waiting": share.waiting, "nodes": share.nodes.len(), "sharedNodes": census.shared_by(name),
        })
    };
    let node = |(name, pods): (&&str, &census::Counts<'_>)| json!({"name": name, "pods": pods});
    json!({
        "schedulers": census.schedulers.iter().map(scheduler).collect::<Vec<_>>(),
        "sharedNodes": census.shared.iter().map(node).collect::<Vec<_>>(),
    })
}

fn to_text(Situation { ours, census, .. }: &Situation<'_>, screen: Screen) -> String {
    let words = |words: [&str; 7]| words.map(str::to_owned).to_vec();
    let mut rows =
        vec![words(["SCHEDULER", "KOORDINATOR", "PODS", "OF DAEMONSETS", "WAITING", "NODES", "SHARED NODES"])];
    for (name, share) in &census.schedulers {
        let numbers = [share.pods, share.daemons, share.waiting, share.nodes.len(), census.shared_by(name)];
        let is_ours = if ours.serves(name) { "yes" } else { "no" };
        rows.push([(*name).to_owned(), is_ours.to_owned()].into_iter().chain(numbers.map(|n| n.to_string())).collect());
    }
    let mut text = table::lines(&rows, screen);
    if census.shared.is_empty() {
        return text;
    }
    let mut rows = vec![vec!["SHARED NODE".to_owned(), "PODS".to_owned()]];
    for (node, pods) in census.shared.iter().take(SHOWN_MAX) {
        let pods: Vec<String> = pods.iter().map(|(scheduler, count)| format!("{scheduler} {count}")).collect();
        rows.push(vec![(*node).to_owned(), pods.join(", ")]);
    }
    if census.shared.len() > SHOWN_MAX {
        rows.push(vec!["…".to_owned(), format!("{} nodes in all", census.shared.len())]);
    }
    text.push('\n');
    text.push_str(&table::lines(&rows, screen));
    text
}

#[cfg(test)]
mod tests;
