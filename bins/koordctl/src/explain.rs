//! `koordctl explain`: how what the manager writes comes about.
//!
//! The numbers come from the manager's own functions, fed with objects of a cluster or of files.

mod objects;
pub(crate) mod quota;
mod slo;

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use koord_manager_controllers::noderesource::{
    About, Caches, Explanation, Facts, Plugins, explain,
    waterfall::{Operation, Term},
};
use serde_json::{Value, json};

use self::objects::Objects;
use crate::{
    Answer,
    cli::{ExplainArgs, ExplainCommand, OutputFormat},
};

/// Explains.
pub async fn run(command: &ExplainCommand) -> Result<Answer> {
    match command {
        ExplainCommand::Slo(args) => slo::explain(&Objects::gather(args).await?, args),
        ExplainCommand::Batch(args) => amounts(&Objects::gather(args).await?, args, About::Batch),
        ExplainCommand::Mid(args) => amounts(&Objects::gather(args).await?, args, About::Mid),
        ExplainCommand::Zone(args) => amounts(&Objects::gather(args).await?, args, About::Zones),
        ExplainCommand::Quota(args) => quota::run(args).await,
    }
}

fn amounts(objects: &Objects, args: &ExplainArgs, about: About) -> Result<Answer> {
    let node = args.node.as_str();
    let caches = Caches {
        nodes: &objects.nodes,
        metrics: &objects.metrics,
        pods: &objects.pods,
        topologies: &objects.topologies,
        devices: &objects.devices,
    };
    let config = objects.configuration()?;
    let facts = Facts::of(&caches, node, &config, objects.now)
        .with_context(|| format!("the node {node} says neither capacity nor allocatable; does its kubelet run?"))?;
    let explanations = explain(&facts, &Plugins::default(), about);
    if explanations.is_empty() {
        bail!("the NodeResourceTopology of {node} names no zone with CPU or memory, so that nothing is written there");
    }
    Ok(Answer::success(match args.answer.output {
        OutputFormat::Json => {
            let amounts: Vec<Value> = explanations.iter().map(Explanation::to_json).collect();
            pretty(&json!({"node": node, "amounts": amounts}))?
        }
        OutputFormat::Table => {
            let texts: Vec<String> = explanations.iter().map(|explanation| table(node, explanation)).collect();
            texts.join("\n")
        }
    }))
}

pub(crate) fn pretty(value: &Value) -> Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(value)?))
}

fn table(node: &str, explanation: &Explanation) -> String {
    let mut text = String::new();
    let amount = explanation.amount.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
    let _ = write!(text, "{} on {node}: {amount}", explanation.resource);
    if let Some(reset) = explanation.reset {
        let _ = write!(text, ", because {reset}");
    }
    text.push('\n');
    let shown = |term: &Term| explanation.native.quantity(term.amount).to_string();
    let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or_default();
    let number = widest(&mut explanation.terms.iter().map(|term| shown(term).len()));
    let what = widest(&mut explanation.terms.iter().map(|term| term.what.len()));
    for term in &explanation.terms {
        let sign = match term.operation {
            Operation::Start => ' ',
            Operation::Part => '·',
            Operation::Minus => '-',
            Operation::Plus => '+',
            Operation::AtLeast => '≥',
            Operation::AtMost => '≤',
            Operation::Times => '×',
            Operation::Nothing | Operation::Result => '=',
        };
        // Parts stand to the right of what they add up to.
        let (left, right) = if term.operation == Operation::Part { (4, 0) } else { (0, 4) };
        let source = format!("{} {}", term.source.object, term.source.field);
        let amount = format!("{:left$}{sign} {:>number$}{:right$}", "", shown(term), "");
        let line = format!("  {amount}  {:<what$}  {}", term.what, source.trim());
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
