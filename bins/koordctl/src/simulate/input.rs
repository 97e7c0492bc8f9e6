//! What is simulated: objects of a cluster or of files, and pods of a trace.

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use koord_program::plan::Source;
use koord_runtime::clock::SystemClock;
use koord_scheduler_assembly::snapshot;
use koord_scheduler_simulator::{Replay, Scenario, Trace};
use koord_scheduler_what_if::Objects;
use kube::Client;
use serde_json::Value;

use crate::{
    cli::{SchedulerArgs, SimulateArgs},
    connect, files,
    why::{configuration, prioritize},
};

/// What is simulated, whichever scheduler it is.
pub(super) struct Input<'a> {
    args: &'a SimulateArgs,
    objects: Vec<Value>,
    trace: Option<Trace>,
    /// When it begins, where that is known.
    start: Option<Timestamp>,
    now: Timestamp,
}

impl<'a> Input<'a> {
    pub(super) async fn of(args: &'a SimulateArgs) -> Result<Self> {
        let trace = args.trace.as_ref().map(|trace| Trace::read(&trace.0)).transpose()?;
        let now = SystemClock::shared().now();
        let (mut objects, mut known, time) = if !args.filename.is_empty() || trace.is_some() {
            (files::objects(&args.filename)?, Objects::of_files(&[]), None)
        } else {
            let server = connect::reach(&args.answer.cluster.flags()).await?;
            let time = server.time.unwrap_or(now);
            (of_cluster(args, &server.client, time).await?, Objects::of_cluster(server.client), Some(time))
        };
        objects.extend(files::objects(&args.add)?);
        complete(&mut objects, &mut known).await?;
        Ok(Self { args, objects, trace, start: args.at.or(time), now })
    }

    /// The scenario of a scheduler: pods of a trace name it.
    pub(super) fn scenario(&self, scheduler: &str) -> Result<Scenario> {
        let Self { args, objects, trace, start, now } = self;
        let scenario = match trace {
            None => Scenario::of(objects.clone(), *start, *now)?,
            Some(trace) => {
                let count = |count: Option<u32>| count.and_then(|count| usize::try_from(count).ok());
                trace.scenario(Replay {
                    nodes_max: count(args.nodes),
                    pods_max: count(args.pods),
                    demand_percent: args.demand.map(|percent| percent.0),
                    seed: args.seed,
                    scheduler: scheduler.to_owned(),
                    start: start.unwrap_or(Timestamp::UNIX_EPOCH),
                    further: objects.clone(),
                })?
            }
        };
        Ok(Scenario { until: args.until.or(scenario.until), seed: args.seed, ..scenario })
    }
}

/// All that a scheduler reads of a cluster.
async fn of_cluster(args: &SimulateArgs, client: &Client, now: Timestamp) -> Result<Vec<Value>> {
    let scheduler = SchedulerArgs { config: None, feature_gates: args.feature_gates.clone() };
    let (configuration, gates) = configuration(&scheduler)?;
    let engine = snapshot(&configuration, &gates, Source::Files(Vec::new()), now).await?;
    koord_scheduler_assembly::objects(&engine.reads(), client, now).await
}

/// Pods of files have the priority of their class.
pub(crate) async fn complete(objects: &mut [Value], known: &mut Objects) -> Result<()> {
    for class in objects.iter().filter(|object| object["kind"] == "PriorityClass") {
        known.add(class.clone());
    }
    for pod in objects.iter_mut().filter(|object| object["kind"] == "Pod") {
        let Some(name) = pod["metadata"]["name"].as_str().map(str::to_owned) else {
            bail!("a pod has no name; write metadata.name into it")
        };
        prioritize(pod, known).await.with_context(|| format!("pod {name}"))?;
    }
    Ok(())
}
