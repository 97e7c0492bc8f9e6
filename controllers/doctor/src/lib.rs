//! What is wrong with Koordinator in a cluster, and what fixes it: `koordctl doctor`.
//!
//! Each check is a file and looks at one thing. What cannot be looked at is a finding too, so that a cluster of which
//! half is missing, or a user who may read little, still gets an answer.
//!
//! Read first: [`Check`] (what is looked at), [`run`].
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod allocations;
mod certificates;
mod cluster;
mod configuration;
mod definitions;
mod descheduler;
mod lease;
mod nodes;
mod objects;
mod options;
mod permissions;
mod server;
mod webhooks;

use anyhow::{Result, anyhow, ensure};
use koord_manager_assembly::GATES;
use koord_program::{
    findings::{Findings, Report},
    gates::Gates,
    output::{Answer, OutputFormat},
    screen::Screen,
};

use self::cluster::Cluster;
pub use self::options::{Check, Options};

/// Makes the checks, one after the other.
pub async fn run(options: &Options<'_>, screen: Screen) -> Result<Answer> {
    Gates::parse(GATES, options.feature_gates).map_err(|error| anyhow!("--feature-gates: {error}"))?;
    let wanted =
        |check: &Check| (options.only.is_empty() || options.only.contains(check)) && !options.skip.contains(check);
    let checks: Vec<Check> = Check::ALL.into_iter().filter(wanted).collect();
    ensure!(!checks.is_empty(), "--skip leaves nothing of --only to look at; leave one of them out");
    let (mut findings, mut looked_at) = (Vec::new(), Vec::new());
    match Cluster::reach(options).await {
        Err(finding) => findings.push(*finding),
        Ok(cluster) => {
            for check in checks {
                let mut report = Report::new(check.name());
                look(check, &cluster, options, &mut report).await;
                findings.extend(report.findings);
                looked_at.push(check.name());
            }
        }
    }
    let found = Findings::of(findings, looked_at);
    let text = match options.output {
        OutputFormat::Table => found.to_text(screen),
        format => format.document(&found.to_json())?,
    };
    Ok(Answer { text, code: found.code() })
}

async fn look(check: Check, cluster: &Cluster, options: &Options<'_>, report: &mut Report) {
    match check {
        Check::Server => server::look(cluster, report),
        Check::Definitions => definitions::look(cluster, report).await,
        Check::Webhooks => webhooks::look(cluster, report).await,
        Check::Certificates => certificates::look(cluster, options, report).await,
        Check::Permissions => permissions::look(cluster, options, report).await,
        Check::Lease => lease::look(cluster, report).await,
        Check::Configuration => configuration::look(cluster, options, report).await,
        Check::Objects => objects::look(cluster, options, report).await,
        Check::Nodes => nodes::look(cluster, options, report).await,
        Check::Allocations => allocations::look(cluster, report).await,
        Check::Descheduler => descheduler::look(cluster, report).await,
    }
}
