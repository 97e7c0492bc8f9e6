//! `koordctl convert --check`: which pods one pass would evict with the policy and with the configuration.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::Result;
use jiff::Timestamp;
use koord_configuration::Source as Text;
use koord_descheduler_assembly::{Configuration, build, snapshot};
use koord_descheduler_framework::{Input, Memory, Step};
use koord_program::plan::Source;
use koord_runtime::clock::SystemClock;
use serde_json::{Value, json};

use super::{Policy, configuration};
use crate::{
    Answer,
    cli::{ConvertArgs, OutputFormat},
    deschedule::objects,
    screen::Screen,
    table,
};

/// What a pass would do.
struct Pass {
    /// By pod, the strategy that evicts it.
    evictions: BTreeMap<String, &'static str>,
    /// Why nothing is looked at, and what failed.
    errors: BTreeSet<String>,
}

/// Compares a policy with the configuration that it became, or with that of `--config`.
pub(super) async fn run(args: &ConvertArgs, policy: &Policy, converted: &Value, screen: Screen) -> Result<Answer> {
    let other = match &args.config {
        Some(file) => {
            let Policy { name, text, document } = configuration(file)?;
            Configuration::of_document(&document, &Text::new(&name, &text))?
        }
        None => Configuration::of_document(converted, &Text::new("the configuration", ""))?,
    };
    let own = Configuration::of_document(&policy.document, &Text::new(&policy.name, &policy.text))?;
    let (source, time) = objects(&args.snapshot, &args.answer.cluster).await?;
    let now = args.at.or(time).unwrap_or_else(|| SystemClock::shared().now());
    let own = pass(&own, source.clone(), now).await?;
    let other = pass(&other, source, now).await?;
    let differences: Vec<(&String, Option<&'static str>, Option<&'static str>)> = own
        .evictions
        .keys()
        .chain(other.evictions.keys())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|pod| (pod, own.evictions.get(pod).copied(), other.evictions.get(pod).copied()))
        .filter(|(_, own, other)| own != other)
        .collect();
    let errors: Vec<&String> = own.errors.union(&other.errors).collect();
    let is_same = differences.is_empty() && own.errors == other.errors;
    let text = match args.answer.output {
        OutputFormat::Table => {
            let mut lines = errors.iter().map(|error| screen.wrapped(error, "", "  ") + "\n").collect::<String>();
            if is_same {
                let _ = writeln!(lines, "both evict the same pods: {}", own.evictions.len());
            } else {
                let header = ["POD", "POLICY", "CONFIGURATION"].map(str::to_owned).to_vec();
                let strategy = |strategy: Option<&str>| strategy.unwrap_or("stays").to_owned();
                let rows =
                    differences.iter().map(|(pod, own, other)| vec![(*pod).clone(), strategy(*own), strategy(*other)]);
                let _ = write!(
                    lines,
                    "the policy evicts {} pods, the configuration {}\n\n{}",
                    own.evictions.len(),
                    other.evictions.len(),
                    table::lines(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), screen)
                );
            }
            lines
        }
        format => format.document(&json!({
            "at": now.to_string(),
            "same": is_same,
            "evictions": {"policy": own.evictions, "configuration": other.evictions},
            "differences": differences
                .iter()
                .map(|(pod, own, other)| json!({"pod": pod, "policy": own, "configuration": other}))
                .collect::<Vec<_>>(),
            "errors": errors,
        }))?,
    };
    Ok(if is_same { Answer::success(text) } else { Answer::failure(text) })
}

/// The first pass of a configuration. Nothing is written.
async fn pass(configuration: &Configuration, source: Source, now: Timestamp) -> Result<Pass> {
    let descheduler = build(&configuration.values)?.descheduler;
    let cluster = snapshot(&descheduler, source, now).await?;
    let plan = descheduler.pass(&Input::new(&cluster, &Memory::default(), now));
    let evictions = plan.steps.iter().filter_map(Step::eviction);
    let failed = plan.errors.iter().map(|(_, strategy, error)| format!("the strategy {strategy} failed: {error}"));
    let skipped = plan.skipped.iter().map(|skipped| format!("nothing is descheduled: {skipped}"));
    Ok(Pass {
        evictions: evictions.map(|eviction| (eviction.pod.key.to_string(), eviction.plugin)).collect(),
        errors: failed.chain(skipped).collect(),
    })
}
