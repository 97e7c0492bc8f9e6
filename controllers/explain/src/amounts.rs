//! What batch and mid pods may use of a node and of its NUMA zones, term by term.

use anyhow::{Context as _, Result, bail};
use koord_manager_controllers::{
    amount::{Amount, Native},
    noderesource::{
        self, About, Caches, Explanation, Facts, Plugins,
        waterfall::{Operation, Term},
    },
};
use koord_program::{
    output::{Answer, OutputFormat},
    screen::Screen,
    table, units,
};
use serde_json::{Value, json};

use crate::{NodeOptions, objects::Objects};

/// What may be used of a node.
pub async fn explain(options: &NodeOptions<'_>, about: About, screen: Screen) -> Result<Answer> {
    let objects = &Objects::gather(options).await?;
    let node = options.node;
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
    let explanations = noderesource::explain(&facts, &Plugins::default(), about);
    if explanations.is_empty() {
        bail!("the NodeResourceTopology of {node} names no zone with CPU or memory, so that nothing is written there");
    }
    Ok(Answer::success(match options.output {
        OutputFormat::Table => {
            let texts: Vec<String> =
                explanations.iter().map(|explanation| waterfall(node, explanation, screen)).collect();
            texts.join("\n")
        }
        format => {
            let amounts: Vec<Value> = explanations.iter().map(Explanation::to_json).collect();
            format.document(&json!({"node": node, "amounts": amounts}))?
        }
    }))
}

fn waterfall(node: &str, explanation: &Explanation, screen: Screen) -> String {
    let shown = |amount: Amount| match explanation.native {
        Native::Memory => units::bytes(amount.units()),
        Native::Cpu => explanation.native.quantity(amount).to_string(),
    };
    let name = &explanation.resource;
    let amount = explanation.amount.as_ref().map_or_else(|| "none".to_owned(), |amount| shown(Amount::from(amount)));
    let reset = explanation.reset.map(|reset| format!(", because {reset}")).unwrap_or_default();
    let number = explanation.terms.iter().map(|term| shown(term.amount).len()).max().unwrap_or_default();
    let row = |term: &Term| {
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
        vec![
            format!("  {:left$}{sign} {:>number$}{:right$}", "", shown(term.amount), ""),
            term.what.to_string(),
            source.trim().to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = explanation.terms.iter().map(row).collect();
    let head = screen.wrapped(&format!("{name} on {node}: {amount}{reset}"), "", "  ");
    format!("{head}\n{}", table::lines(&rows, screen))
}
