//! Carrying out a plan that was shown.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use koord_descheduler_framework::Step;
use koord_descheduler_runtime::write;
use koord_program::plan::Source;
use koord_runtime::{random::Random, write::Write};
use kube::Client;

use super::{
    comparison::{differences, shown},
    pass::{planned, planned_document, saved},
};
use crate::{Answer, cli::DescheduleApplyArgs, screen::Screen};

/// What jobs name as their maker.
const MAKER: &str = "koordctl";

/// Carries out a saved plan, if the same plan is still what a pass would do.
pub(super) async fn apply(args: &DescheduleApplyArgs, screen: Screen) -> Result<Answer> {
    let shown_before = saved(&args.plan)?;
    if !args.planned.descheduler.filename.is_empty() {
        bail!("a plan is applied to a cluster, and -f names files; leave -f out");
    }
    let planned = planned(&args.planned).await?;
    let now = planned_document(&planned);
    let differences = differences(&shown_before, &now);
    if !differences.is_empty() {
        let text = format!(
            "nothing was done, because the cluster has changed since the plan was made:\n{}",
            shown(&differences, screen)
        );
        return Ok(Answer::failure(text + "look at a new plan: koordctl deschedule plan\n"));
    }
    let Source::Cluster(client) = &planned.source else { bail!("a plan is applied to a cluster") };
    let random = Random::from_os();
    let steps: Vec<(&Step, Write)> =
        planned.plan.steps.iter().filter_map(|step| Some((step, write(step, || random.uuid(), MAKER)?))).collect();
    let mut text = String::new();
    for (index, (step, write)) in steps.iter().enumerate() {
        match send(client, write).await {
            Ok(()) => _ = writeln!(text, "{}", done(step)),
            Err(error) => {
                let _ = writeln!(text, "{} of {} steps are done; the next one failed: {error}", index, steps.len());
                text += "the rest was not tried: look at a new plan with koordctl deschedule plan\n";
                return Ok(Answer::failure(text));
            }
        }
    }
    if steps.is_empty() {
        text += "the plan has no steps\n";
    }
    Ok(Answer::success(text))
}

fn done(step: &Step) -> String {
    match step {
        Step::Evict(eviction) => {
            let (pod, node) = (&eviction.pod.key, eviction.pod.node.as_deref().unwrap_or("no node"));
            match &eviction.means {
                koord_descheduler_framework::Means::Job { .. } => {
                    format!("{pod} on {node}: a PodMigrationJob was created")
                }
                _ => format!("{pod} on {node}: evicted"),
            }
        }
        Step::Cordon { node } => format!("{node}: cordoned"),
        Step::Uncordon { node } => format!("{node}: uncordoned"),
        Step::SetDeletionCost { pod, cost } => format!("{}: its deletion cost is {cost}", pod.key),
    }
}

/// Sends a write. What the API server refuses is an error with its words.
async fn send(client: &Client, write: &Write) -> Result<()> {
    let request = write.request(MAKER);
    let built = http::Request::builder().method(request.method).uri(&request.uri);
    let built = built.header(http::header::CONTENT_TYPE, request.content_type).body(request.body.into_bytes())?;
    client.request_text(built).await?;
    Ok(())
}
