//! `koordctl explain`: how what the manager writes comes about.

use anyhow::Result;
use koord_explain::{amounts, node, quota, slo};
use koord_manager_controllers::noderesource::About;

use crate::{Answer, cli::ExplainCommand, screen::Screen};

pub async fn run(command: &ExplainCommand, screen: Screen) -> Result<Answer> {
    match command {
        ExplainCommand::Slo(args) => slo::explain(&args.options(), screen).await,
        ExplainCommand::Batch(args) => amounts::explain(&args.options(), About::Batch, screen).await,
        ExplainCommand::Mid(args) => amounts::explain(&args.options(), About::Mid, screen).await,
        ExplainCommand::Zone(args) => amounts::explain(&args.options(), About::Zones, screen).await,
        ExplainCommand::Node(args) => node::explain(&args.options(), screen).await,
        ExplainCommand::Quota(args) => quota::explain(&args.options(), screen).await,
    }
}
