//! `koordctl deschedule`: what koord-descheduler would do, and why.

use std::{fmt::Write as _, path::PathBuf};

use anyhow::{Context as _, Result, anyhow};
use jiff::Timestamp;
use koord_configuration::Source as Text;
use koord_descheduler_assembly::{Configuration, build, snapshot};
use koord_descheduler_framework::{Cluster, Descheduler, Input, Memory, Plan, Step, Verdict, VerdictScope};
use koord_descheduler_planning::{Followed, Rehearsal, Successor, follow};
use koord_program::{files::read_configuration, plan::Source};
use koord_runtime::{clock::SystemClock, key::ObjectKey};
use serde_json::{Value, json};

use crate::{
    Answer,
    cli::{
        ClusterArgs, DescheduleCommand, DeschedulePlanArgs, DescheduleWhyArgs, DeschedulerArgs, OutputFormat,
        SchedulerArgs,
    },
    connect, files,
    names::question,
    screen::Screen,
    table, why,
};

/// Carries out a command about descheduling.
pub async fn run(command: &DescheduleCommand, screen: Screen) -> Result<Answer> {
    match command {
        DescheduleCommand::Plan(args) => plan(args, screen).await,
        DescheduleCommand::Why(args) => explain(args, screen).await,
    }
}

/// A descheduler, and the cluster that it would see.
struct Subject {
    descheduler: Descheduler,
    cluster: Cluster,
    source: Source,
    now: Timestamp,
}

async fn subject(args: &DeschedulerArgs) -> Result<Subject> {
    let text = read_configuration(&args.config)
        .with_context(|| format!("--config {} cannot be read", args.config.display()))?;
    let name = args.config.display().to_string();
    let file = Text::new(&name, &text);
    let descheduler = build(&Configuration::of_document(file.parse()?, &file)?.values)?.descheduler;
    let (source, time) = objects(&args.filename, &args.answer.cluster).await?;
    let now = args.at.or(time).unwrap_or_else(|| SystemClock::shared().now());
    let cluster = snapshot(&descheduler, source.clone(), now).await?;
    Ok(Subject { descheduler, cluster, source, now })
}

/// The objects of files, or of a cluster where there are none, and the time of its server.
pub(crate) async fn objects(files: &[PathBuf], cluster: &ClusterArgs) -> Result<(Source, Option<Timestamp>)> {
    if files.is_empty() {
        let server = connect::reach(&cluster.flags()).await?;
        return Ok((Source::Cluster(server.client), server.time));
    }
    let mut objects = files::objects(files)?;
    objects.iter_mut().for_each(why::identify);
    Ok((Source::Files(objects), None))
}

async fn plan(args: &DeschedulePlanArgs, screen: Screen) -> Result<Answer> {
    let Subject { descheduler, cluster, source, now } = subject(&args.descheduler).await?;
    let plan = descheduler.pass(&Input::new(&cluster, &Memory::default(), now));
    let (skipped, errors) = (plan.skipped, errors(&plan));
    let scheduler = SchedulerArgs { config: args.scheduler_config.clone(), feature_gates: args.feature_gates.clone() };
    let (configuration, gates) = why::configuration(&scheduler)?;
    let engine = koord_scheduler_assembly::snapshot(&configuration, &gates, source, now).await?;
    let steps = follow(plan, &cluster, Some(Rehearsal::of(&engine)));
    let objections = steps.iter().filter(|followed| followed.objection.is_some()).count();
    let text = match args.descheduler.answer.output {
        OutputFormat::Table => shown(&steps, skipped.map(|skipped| skipped.to_string()), &errors, screen),
        format => format.document(&json!({
            "at": now.to_string(),
            "skipped": skipped.map(|skipped| skipped.to_string()),
            "errors": errors,
            "steps": steps.iter().map(Followed::document).collect::<Vec<_>>(),
        }))?,
    };
    Ok(if objections == 0 && errors.is_empty() { Answer::success(text) } else { Answer::failure(text) })
}

/// Strategies that could not do their work.
fn errors(plan: &Plan) -> Vec<String> {
    let error = |(profile, strategy, error): &(std::sync::Arc<str>, &'static str, _)| {
        format!("the strategy {strategy} of the profile {profile} failed: {error}")
    };
    plan.errors.iter().map(error).collect()
}

fn shown(steps: &[Followed], skipped: Option<String>, errors: &[String], screen: Screen) -> String {
    let mut text = String::new();
    for error in errors {
        text += &screen.wrapped(error, "", "  ");
        text.push('\n');
    }
    if let Some(skipped) = skipped {
        return text + &format!("nothing is descheduled: {skipped}\n");
    }
    if steps.is_empty() {
        return text + "no pod would be evicted\n";
    }
    let header = ["STEP", "POD", "FROM", "TO", "STRATEGY", "WHY"].map(str::to_owned).to_vec();
    let rows = steps.iter().enumerate().map(|(index, followed)| row(index + 1, followed));
    text += &table::lines(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), screen);
    let objections: Vec<String> = steps
        .iter()
        .enumerate()
        .filter_map(|(index, followed)| Some(format!("step {}: {}", index + 1, followed.objection.as_ref()?)))
        .collect();
    if !objections.is_empty() {
        let _ = writeln!(text, "\n{} of {} steps are not worth it:", objections.len(), steps.len());
        for objection in objections {
            text += &screen.wrapped(&objection, "  ", "    ");
            text.push('\n');
        }
    }
    text
}

fn row(number: usize, followed: &Followed) -> Vec<String> {
    let to = match &followed.successor {
        Some(Successor::On(node) | Successor::ComesBack(node)) => node.to_string(),
        Some(Successor::Pending(_)) => "pending".to_owned(),
        Some(Successor::None) => "gone".to_owned(),
        Some(Successor::Unknown(_)) => "unknown".to_owned(),
        None => "-".to_owned(),
    };
    let [pod, from, strategy, why] = match &followed.step {
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

async fn explain(args: &DescheduleWhyArgs, screen: Screen) -> Result<Answer> {
    let Subject { descheduler, cluster, now, .. } = subject(&args.descheduler).await?;
    let key = ObjectKey::new(&args.namespace, &args.pod);
    let Some(id) = cluster.pod_id(key.as_str()) else {
        let names = cluster.pods().filter(|(_, pod)| pod.namespace() == args.namespace);
        let similar = question(&args.pod, names.map(|(_, pod)| pod.key.name()));
        let hint = similar.map(|similar| format!("; {similar}")).unwrap_or_default();
        return Err(anyhow!("there is no pod {key}{hint}"));
    };
    let memory = Memory::default();
    let input = Input { verdicts_of: VerdictScope::Pod(&key), ..Input::new(&cluster, &memory, now) };
    let plan = descheduler.pass(&input);
    let of_pod = plan.steps.iter().filter_map(Step::eviction).find(|eviction| eviction.pod.key == key);
    let text = match args.descheduler.answer.output {
        OutputFormat::Table => {
            let mut text = String::new();
            if let Some(skipped) = &plan.skipped {
                let _ = writeln!(text, "nothing is descheduled: {skipped}");
            }
            match of_pod {
                Some(eviction) => {
                    let why = format!("{key} would be evicted by {}: {}", eviction.plugin, eviction.reason);
                    text += &(screen.wrapped(&why, "", "  ") + "\n");
                }
                None => _ = writeln!(text, "{key} would stay"),
            }
            if cluster.pod(id).is_some_and(|pod| pod.node.is_none()) {
                text += "it has no node, so no strategy looks at it\n";
            }
            text + &verdicts(&plan.verdicts, screen)
        }
        format => format.document(&json!({
            "pod": key.as_str(),
            "evicted": of_pod.map(|eviction| json!({"strategy": eviction.plugin, "reason": eviction.reason.document()})),
            "left": plan.verdicts.iter().map(document).collect::<Vec<_>>(),
        }))?,
    };
    Ok(if of_pod.is_none() { Answer::success(text) } else { Answer::failure(text) })
}

/// Why strategies leave the pod, each with what would change that.
fn verdicts(verdicts: &[Verdict], screen: Screen) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let header = ["PROFILE", "STRATEGY", "LEAVES IT BECAUSE", "WHAT WOULD CHANGE THAT"].map(str::to_owned).to_vec();
    let rows = verdicts.iter().map(|verdict| {
        let (profile, strategy) = (verdict.profile.to_string(), verdict.plugin.to_owned());
        vec![profile, strategy, verdict.refusal.to_string(), verdict.refusal.code.remedy().to_owned()]
    });
    format!("\n{}", table::lines(&std::iter::once(header).chain(rows).collect::<Vec<_>>(), screen))
}

fn document(verdict: &Verdict) -> Value {
    json!({"profile": verdict.profile, "strategy": verdict.plugin, "reason": verdict.refusal.reason().document()})
}
