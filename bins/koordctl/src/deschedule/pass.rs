//! The first pass of a descheduler, with what becomes of it.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, anyhow, bail};
use jiff::Timestamp;
use koord_descheduler_framework::{Cluster, Eviction, Input, Plan, Step, Successor};
use koord_descheduler_planning::{EvictedAgain, Foresight, document, eviction_document, plan as follow};
use koord_program::{files::read_configuration, plan::Source};
use koord_resource::yaml::parse;
use serde_json::{Value, json};

use super::{Subject, history, report, scheduling, subject};
use crate::{
    Answer,
    cli::{DeschedulePlanArgs, ForesightArgs, OutputFormat, PlannedArgs, SchedulerArgs},
    screen::Screen,
    table,
};

/// A plan, and the cluster that it is about.
pub(super) struct Planned {
    pub(super) plan: Plan,
    /// Usage that strategies go by and that is not known.
    pub(super) unmeasured: Vec<String>,
    pub(super) cluster: Cluster,
    pub(super) source: Source,
    pub(super) now: Timestamp,
}

/// Computes the plan of these options.
pub(super) async fn planned(args: &PlannedArgs) -> Result<Planned> {
    let subject = subject(&args.descheduler).await?;
    let memory = subject.memory(args.descheduler.passes);
    let Subject { descheduler, cluster, unmeasured, source, now } = subject;
    let ForesightArgs { scheduler_config, feature_gates } = args.foresight.clone();
    let scheduler = SchedulerArgs { config: scheduler_config, feature_gates };
    let (configuration, gates) = scheduling::configuration(&scheduler)?;
    let engine = koord_scheduler_assembly::snapshot(&configuration, &gates, source.clone(), now).await?;
    let history = history::of_source(&source, &args.descheduler.system_namespace).await?;
    let input = Input::new(&cluster, &memory, now);
    let foresight = Foresight { scheduler: Some(&engine), history: &history };
    let plan = follow(&descheduler, &input, foresight, &mut EvictedAgain::default());
    Ok(Planned { plan, unmeasured, cluster, source, now })
}

pub(super) async fn plan(args: &DeschedulePlanArgs, screen: Screen) -> Result<Answer> {
    let planned = planned(&args.planned).await?;
    let errors = errors(&planned);
    if let Some(file) = &args.html {
        std::fs::write(file, report::page(&planned))
            .with_context(|| format!("--html {} cannot be written", file.display()))?;
    }
    let text = match args.planned.descheduler.answer.output {
        OutputFormat::Table => shown(&planned.plan, &errors, screen),
        format => format.document(&planned_document(&planned))?,
    };
    let is_fine = objections(&planned.plan).next().is_none() && errors.is_empty();
    Ok(if is_fine { Answer::success(text) } else { Answer::failure(text) })
}

/// A plan as it is saved.
pub(super) fn planned_document(planned: &Planned) -> Value {
    let Planned { plan, cluster, now, .. } = planned;
    json!({
        "at": now.to_string(),
        "skipped": plan.skipped.map(|skipped| skipped.to_string()),
        "errors": errors(planned),
        "steps": plan.steps.iter().map(|step| document(step, cluster)).collect::<Vec<_>>(),
        "spared": plan.spared.iter().map(|eviction| eviction_document(eviction, cluster)).collect::<Vec<_>>(),
    })
}

/// Evictions that take place although they are not worth it, with the numbers of their steps.
fn objections(plan: &Plan) -> impl Iterator<Item = (usize, String)> {
    plan.steps.iter().enumerate().filter_map(|(index, step)| {
        let objection = step.eviction()?.outlook.objection.as_ref()?;
        Some((index + 1, objection.to_string()))
    })
}

/// Why strategies could not do their work.
pub(super) fn errors(Planned { plan, unmeasured, .. }: &Planned) -> Vec<String> {
    let error = |(profile, strategy, error): &(std::sync::Arc<str>, &'static str, _)| {
        format!("the strategy {strategy} of the profile {profile} failed: {error}")
    };
    unmeasured.iter().cloned().chain(plan.errors.iter().map(error)).collect()
}

fn shown(plan: &Plan, errors: &[String], screen: Screen) -> String {
    let mut text = String::new();
    for error in errors {
        text += &screen.wrapped(error, "", "  ");
        text.push('\n');
    }
    if let Some(skipped) = plan.skipped {
        return text + &format!("nothing is descheduled: {skipped}\n");
    }
    if plan.steps.is_empty() {
        text += "no pod would be evicted\n";
    } else {
        let header = ["STEP", "POD", "FROM", "TO", "STRATEGY", "WHY"].map(str::to_owned).to_vec();
        let rows = plan.steps.iter().enumerate().map(|(index, step)| row(index + 1, step));
        text += &table::lines(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), screen);
    }
    let objections: Vec<(usize, String)> = objections(plan).collect();
    if !objections.is_empty() {
        let _ = writeln!(text, "\n{} of {} steps are not worth it:", objections.len(), plan.steps.len());
        for (step, objection) in objections {
            text += &screen.wrapped(&format!("step {step}: {objection}"), "  ", "    ");
            text.push('\n');
        }
    }
    if !plan.spared.is_empty() {
        text += "\nPods that stay because their eviction is not worth it:\n";
        let header = ["POD", "NODE", "STRATEGY", "NOT WORTH IT BECAUSE"].map(str::to_owned).to_vec();
        let rows = plan.spared.iter().map(spared_row);
        text += &table::lines(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), screen);
    }
    text
}

fn spared_row(eviction: &Eviction) -> Vec<String> {
    let node = eviction.pod.node.as_deref().unwrap_or("-").to_owned();
    let objection = eviction.outlook.objection.as_ref().map(ToString::to_string).unwrap_or_default();
    vec![eviction.pod.key.to_string(), node, eviction.plugin.to_owned(), objection]
}

/// Where the successor of an evicted pod would be.
pub(super) fn destination(successor: Option<&Successor>) -> String {
    match successor {
        Some(Successor::On(node) | Successor::ComesBack(node)) => node.to_string(),
        Some(Successor::Pending(_)) => "pending".to_owned(),
        Some(Successor::None) => "gone".to_owned(),
        Some(Successor::Unknown(_)) => "unknown".to_owned(),
        None => "-".to_owned(),
    }
}

fn row(number: usize, step: &Step) -> Vec<String> {
    let to = destination(step.eviction().and_then(|eviction| eviction.outlook.successor.as_ref()));
    let [pod, from, strategy, why] = match step {
        Step::Evict(eviction) => {
            let from = eviction.pod.node.as_deref().unwrap_or("-").to_owned();
            [eviction.pod.key.to_string(), from, eviction.plugin.to_owned(), eviction.reason.text.clone()]
        }
        Step::Cordon { node } => ["-".to_owned(), node.to_string(), "-".to_owned(), "the node is cordoned".to_owned()],
        Step::Uncordon { node } => {
            ["-".to_owned(), node.to_string(), "-".to_owned(), "the node is uncordoned".to_owned()]
        }
        Step::SetDeletionCost { pod, cost } => {
            let from = pod.node.as_deref().unwrap_or("-").to_owned();
            [pod.key.to_string(), from, "-".to_owned(), format!("its deletion cost becomes {cost}")]
        }
    };
    vec![number.to_string(), pod, from, to, strategy, why]
}

/// A plan that was saved with `-o json`.
pub(super) fn saved(file: &std::path::Path) -> Result<Value> {
    const REMEDY: &str = "save one with `koordctl deschedule plan -o json`";
    let name = file.display();
    let text = read_configuration(file).with_context(|| format!("the plan {name} cannot be read"))?;
    let plan = parse(&text).map_err(|error| anyhow!("{name} is no plan: {error}; {REMEDY}"))?;
    if !plan["steps"].is_array() || !plan["at"].is_string() {
        bail!("{name} is no plan: it has no steps; {REMEDY}");
    }
    Ok(plan)
}
