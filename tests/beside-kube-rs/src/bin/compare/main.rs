//! Measures the operators beside each other and prints one table.

mod measure;
mod process;
mod server;
mod table;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use measure::{Column, measure};
use serde_json::Value;

/// Measures one operator on koord and three ways to write it on kube-rs, on the same objects.
#[derive(Debug, Parser)]
#[command(max_term_width = 120)]
struct Arguments {
    /// Parents, each with four children.
    #[arg(long, default_value_t = 500)]
    parents: usize,
    /// How long it is watched while nothing happens.
    #[arg(long, default_value_t = 10)]
    quiet_s: u64,
    /// Measures this operator alone; may be repeated.
    #[arg(long)]
    only: Vec<String>,
}

/// An operator: its title, program, arguments and sources.
pub struct Operator {
    title: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    sources: &'static [&'static str],
}

macro_rules! sources {
    ($($path:literal),*) => { &[$(include_str!(concat!("../", $path))),*] };
}

const OPERATORS: [Operator; 4] = [
    Operator {
        title: "koord",
        program: "koord-operator",
        arguments: &["--rest-config-qps=0", "--metrics-addr=0", "--health-probe-addr=0"],
        sources: sources!["koord-operator/main.rs", "koord-operator/cache.rs", "koord-operator/controller.rs"],
    },
    Operator {
        title: "kube-rs guide",
        program: "kube-rs-operator",
        arguments: &["guide"],
        sources: sources![
            "kube-rs-operator/main.rs",
            "kube-rs-operator/cache.rs",
            "kube-rs-operator/reconcile.rs",
            "kube-rs-operator/guide.rs"
        ],
    },
    Operator {
        title: "kube-rs tuned",
        program: "kube-rs-operator",
        arguments: &["tuned"],
        sources: sources![
            "kube-rs-operator/main.rs",
            "kube-rs-operator/cache.rs",
            "kube-rs-operator/reconcile.rs",
            "kube-rs-operator/tuned.rs"
        ],
    },
    Operator {
        title: "kube-rs stores",
        program: "kube-rs-operator",
        arguments: &["stores"],
        sources: sources![
            "kube-rs-operator/main.rs",
            "kube-rs-operator/cache.rs",
            "kube-rs-operator/reconcile.rs",
            "kube-rs-operator/tuned.rs",
            "kube-rs-operator/stores.rs"
        ],
    },
];

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(arguments.parents > 0, "--parents must be at least 1");
    let programs = std::env::current_exe()?.parent().context("the program has no folder")?.to_owned();
    let is_wanted =
        |operator: &&Operator| arguments.only.is_empty() || arguments.only.iter().any(|only| only == operator.title);
    let mut columns: Vec<Column> = Vec::new();
    for operator in OPERATORS.iter().filter(is_wanted) {
        let program = programs.join(operator.program);
        let manifests = manifests(&program)?;
        let column = measure(operator, &program, &manifests, arguments.parents, arguments.quiet_s);
        let column = column.await.with_context(|| operator.title.to_owned())?;
        if let Some(first) = columns.first() {
            ensure!(
                first.made == column.made,
                "{} makes other objects: {:#} and {:#}",
                operator.title,
                first.made,
                column.made
            );
        }
        eprintln!("{} is measured; it logged {} lines {}", operator.title, column.said.0, column.said.1);
        columns.push(column);
    }
    ensure!(!columns.is_empty(), "--only names none of {:?}", OPERATORS.map(|operator| operator.title));
    table::print(&columns, arguments.parents, arguments.quiet_s);
    for koord in columns.iter().filter(|column| column.title == OPERATORS[0].title) {
        let idle = [&koord.quiet, &koord.parent_touched, &koord.child_touched, &koord.restart];
        let written = idle.map(|phase| (phase.counts.writes, phase.counts.events));
        // After its restart it writes the event that it leads.
        let wanted = [(0, 0), (0, 0), (0, 0), (0, 1)];
        ensure!(
            written == wanted,
            "the operator on koord writes although nothing differs: {written:?} (objects, events)"
        );
    }
    Ok(())
}

fn manifests(program: &PathBuf) -> Result<Vec<Value>> {
    let output = Command::new(program).arg("manifests").output();
    let output =
        output.with_context(|| format!("{}: build all programs with `cargo build --release`", program.display()))?;
    Ok(envtest::yaml::documents(&String::from_utf8(output.stdout)?)?)
}

/// Lines of sources that are neither blank nor comments.
fn lines(sources: &[&str]) -> usize {
    let lines = sources.iter().flat_map(|source| source.lines()).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// A folder of this run.
fn folder() -> Result<tempfile::TempDir> {
    Ok(tempfile::Builder::new().prefix("beside-kube-rs").tempdir_in(Path::new(&std::env::temp_dir()))?)
}
