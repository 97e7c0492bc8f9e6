//! `koordctl simulate`: what the scheduler makes of pods in virtual time, under one configuration or several.
//!
//! The simulation is [`koord_scheduler_simulator::run`]; here are what goes in and how it is shown.

mod input;
mod progress;
mod report;
mod summary;

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use koord_program::gates::Gates;
use koord_runtime::{clock::SystemClock, random::Random};
use koord_scheduler_assembly::{Configuration, engine, transformers};
use koord_scheduler_simulator::Outcome;
use serde_json::{Value, json};

pub(crate) use self::input::complete;
use self::{input::Input, progress::Bar};
use crate::{
    Answer,
    cli::{OutputFormat, SchedulerArgs, SimulateArgs},
    screen::Screen,
    target::Target,
    why::configuration,
};

/// What came of one configuration.
struct Run {
    /// The configuration, as it was named.
    config: String,
    outcome: Outcome,
    /// How long it took.
    took: Duration,
}

/// What was simulated, for all configurations alike.
struct Played {
    nodes: usize,
    pods: usize,
    seed: u64,
}

/// Simulates.
pub async fn run(args: &SimulateArgs, screen: Screen) -> Result<Answer> {
    let configurations = configurations(&args.config, &args.feature_gates)?;
    let report = args.report.as_deref().map(|file| Target::of(file, "--report", args.force)).transpose()?;
    let input = Input::of(args).await?;
    let (clock, mut runs) = (SystemClock::shared(), Vec::new());
    let mut played = Played { nodes: 0, pods: 0, seed: args.seed };
    for (name, configuration, gates) in configurations {
        let scheduler = configuration.profiles().first().map_or("", |profile| &profile.scheduler_name);
        let scenario = input.scenario(scheduler)?;
        (played.nodes, played.pods) = (scenario.nodes(), scenario.arrivals.len());
        let transformers = transformers(&gates);
        let engine = engine(&configuration, &gates, Random::seeded(args.seed))?;
        let bar = Bar::shown(&name, scenario.arrivals.len());
        let began = clock.moment();
        let outcome = koord_scheduler_simulator::run(engine, transformers, &scenario, |progress| bar.show(progress))?;
        runs.push(Run { config: name, outcome, took: clock.moment().since(began) });
    }
    if let Some(target) = report {
        target.write(&report::page(&played, &runs))?;
    }
    let text = match args.answer.output {
        OutputFormat::Table => summary::text(&played, &runs, args.report.as_deref(), screen),
        format => format.document(&document(&played, &runs)?)?,
    };
    let is_waiting = runs.iter().any(|run| run.outcome.pods.waiting > 0);
    Ok(Answer { text, code: u8::from(is_waiting) })
}

/// The configurations, each by the name of its file.
pub(crate) fn configurations(files: &[PathBuf], feature_gates: &str) -> Result<Vec<(String, Configuration, Gates)>> {
    let files: Vec<_> = if files.is_empty() { vec![None] } else { files.iter().cloned().map(Some).collect() };
    let of = |file: Option<PathBuf>| {
        let name = file.as_ref().map_or_else(|| "shipped".to_owned(), |file| file.display().to_string());
        let scheduler = SchedulerArgs { config: file, feature_gates: feature_gates.to_owned() };
        let (configuration, gates) = configuration(&scheduler)?;
        Ok((name, configuration, gates))
    };
    files.into_iter().map(of).collect()
}

/// The answer for programs.
fn document(played: &Played, runs: &[Run]) -> Result<Value> {
    let of = |run: &Run| {
        let mut document = serde_json::to_value(&run.outcome).context("the outcome")?;
        document["config"] = json!(run.config);
        document["wall"] = json!({"seconds": run.took.as_secs_f64(), "attemptsPerSecond": run.per_second()});
        Ok(document)
    };
    let runs = runs.iter().map(of).collect::<Result<Vec<Value>>>()?;
    Ok(json!({
        "scenario": {"nodes": played.nodes, "pods": played.pods, "seed": played.seed},
        "runs": runs,
    }))
}

impl Run {
    /// Attempts for each second that the simulation took.
    fn per_second(&self) -> f64 {
        let seconds = self.took.as_secs_f64();
        if seconds > 0.0 { (self.outcome.decisions.attempts as f64 / seconds).round() } else { 0.0 }
    }
}
