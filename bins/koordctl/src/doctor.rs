//! `koordctl doctor`: what is wrong with Koordinator in a cluster, and what fixes it.
//!
//! Each check is a file and looks at one thing. What cannot be looked at is a finding too, so that a cluster of which
//! half is missing, or a user who may read little, still gets an answer.

mod allocations;
mod certificates;
mod cluster;
mod configuration;
mod definitions;
mod finding;
mod lease;
mod nodes;
mod objects;
mod obstacle;
mod permissions;
mod server;
mod webhooks;

use std::fmt::Write as _;

use anyhow::{Result, anyhow, ensure};
use koord_manager::GATES;
use koord_program::gates::Gates;
use serde_json::{Value, json};

use self::{
    cluster::Cluster,
    finding::{Finding, Report, Severity},
};
use crate::{
    Answer, FAILED,
    cli::{Check, DoctorArgs, OutputFormat},
    screen::Screen,
};

/// Looks.
pub async fn run(args: &DoctorArgs, screen: Screen) -> Result<Answer> {
    Gates::parse(GATES, &args.feature_gates).map_err(|error| anyhow!("--feature-gates: {error}"))?;
    let wanted = |check: &Check| (args.only.is_empty() || args.only.contains(check)) && !args.skip.contains(check);
    let checks: Vec<Check> = Check::ALL.into_iter().filter(wanted).collect();
    ensure!(!checks.is_empty(), "--skip leaves nothing of --only to look at; leave one of them out");
    let mut findings = Vec::new();
    let mut looked_at = Vec::new();
    match Cluster::reach(args).await {
        Err(finding) => findings.push(*finding),
        Ok(cluster) => {
            for check in checks {
                let mut report = Report::new(check);
                look(check, &cluster, args, &mut report).await;
                findings.extend(report.findings);
                looked_at.push(check);
            }
        }
    }
    // The worst first; of equals in the order of the checks.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let code = match findings.first().map(|finding| finding.severity) {
        None | Some(Severity::Note) => 0,
        Some(Severity::Warning) => 1,
        Some(Severity::Error) => FAILED,
    };
    let text = match args.answer.output {
        OutputFormat::Table => to_text(&findings, &looked_at, screen),
        format => format.document(&to_json(&findings, &looked_at))?,
    };
    Ok(Answer { text, code })
}

async fn look(check: Check, cluster: &Cluster, args: &DoctorArgs, report: &mut Report) {
    match check {
        Check::Server => server::look(cluster, report),
        Check::Definitions => definitions::look(cluster, report).await,
        Check::Webhooks => webhooks::look(cluster, report).await,
        Check::Certificates => certificates::look(cluster, args, report).await,
        Check::Permissions => permissions::look(cluster, args, report).await,
        Check::Lease => lease::look(cluster, report).await,
        Check::Configuration => configuration::look(cluster, args, report).await,
        Check::Objects => objects::look(cluster, args, report).await,
        Check::Nodes => nodes::look(cluster, args, report).await,
        Check::Allocations => allocations::look(cluster, report).await,
    }
}

fn to_json(findings: &[Finding], looked_at: &[Check]) -> Value {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    json!({
        "checks": looked_at.iter().map(|check| check.name()).collect::<Vec<_>>(),
        "errors": count(Severity::Error), "warnings": count(Severity::Warning), "notes": count(Severity::Note),
        "findings": findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
    })
}

fn to_text(findings: &[Finding], looked_at: &[Check], screen: Screen) -> String {
    let mut text = String::new();
    for Finding { check, severity, object, problem, remedy } in findings {
        let _ = writeln!(text, "{:<7}  {:<13}  {object}", severity.word(), check.name());
        let _ = writeln!(text, "{}", screen.wrapped(problem, "    ", "    "));
        let _ = writeln!(text, "{}", screen.wrapped(remedy, "    → ", "      "));
    }
    let names: Vec<&str> = looked_at.iter().map(|check| check.name()).collect();
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let found = format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"));
    let end = match names.as_slice() {
        [] => format!("{found}; nothing else was looked at"),
        names if errors + warnings == 0 => format!("nothing is wrong with: {}", names.join(", ")),
        names => format!("{found}; looked at: {}", names.join(", ")),
    };
    let gap = if names.is_empty() || errors + warnings > 0 { "\n" } else { "" };
    let _ = writeln!(text, "{gap}{}", screen.wrapped(&end, "", "  "));
    text
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
