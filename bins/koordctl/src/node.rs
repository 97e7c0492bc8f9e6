//! `koordctl node`: what koordlet does on a node, why, and whether the kernel has it. The answers come from the agent on that node.

mod agent;
mod files;
mod status;

use anyhow::{Result, bail};
use koord_koordlet_state::{FILES_PATH, NodeFiles, NodeStatus, STATUS_PATH};
use serde::Serialize;

use self::agent::ask;
use crate::{
    Answer,
    cli::{NodeArgs, NodeCommand, NodeExplainArgs, OutputFormat},
    names::{few, question},
    screen::Screen,
};

/// Carries out a command about a node.
pub async fn run(command: &NodeCommand, screen: Screen) -> Result<Answer> {
    match command {
        NodeCommand::Status(args) => status(args, screen).await,
        NodeCommand::Explain(args) => explain(args, screen).await,
        NodeCommand::Audit(args) => audit(args, screen).await,
    }
}

async fn status(args: &NodeArgs, screen: Screen) -> Result<Answer> {
    let status: NodeStatus = ask(&args.node, &args.agent, STATUS_PATH).await?;
    is_of_node(&args.node, &status.node)?;
    let text = written(args.agent.answer.output, &status, || status::table(&status, screen))?;
    Ok(Answer { text, code: u8::from(status::is_degraded(&status)) })
}

async fn explain(args: &NodeExplainArgs, screen: Screen) -> Result<Answer> {
    let (namespace, name) = &args.pod;
    let path = format!("{FILES_PATH}?pod={namespace}/{name}");
    let files: NodeFiles = ask(&args.node, &args.agent, &path).await?;
    is_of_node(&args.node, &files.node)?;
    let Some(pod) = files.pod(namespace, name) else {
        let known: Vec<String> = files.pods.iter().map(koord_koordlet_state::NodePod::key).collect();
        let meant = question(&format!("{namespace}/{name}"), known.iter().map(String::as_str));
        let remedy = meant.unwrap_or_else(|| format!("it knows {}", few(&known)));
        bail!("koordlet on {} knows no pod {namespace}/{name}; {remedy}", args.node)
    };
    let text = written(args.agent.answer.output, &files, || files::explained(&files, pod, screen))?;
    Ok(Answer { text, code: u8::from(files::differs(&files)) })
}

async fn audit(args: &NodeArgs, screen: Screen) -> Result<Answer> {
    let files: NodeFiles = ask(&args.node, &args.agent, FILES_PATH).await?;
    is_of_node(&args.node, &files.node)?;
    let text = written(args.agent.answer.output, &files, || files::audited(&files, screen))?;
    Ok(Answer { text, code: u8::from(files::differs(&files)) })
}

/// An address may lead to another node.
fn is_of_node(asked: &str, answered: &str) -> Result<()> {
    if asked != answered {
        bail!("this koordlet runs on {answered}, not on {asked}; name another with --address")
    }
    Ok(())
}

fn written(format: OutputFormat, document: &impl Serialize, table: impl FnOnce() -> String) -> Result<String> {
    match format {
        OutputFormat::Table => Ok(table()),
        format => format.document(&serde_json::to_value(document)?),
    }
}
