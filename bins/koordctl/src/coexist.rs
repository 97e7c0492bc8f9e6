//! `koordctl coexist check`: which schedulers place pods in a cluster, what can go wrong between them, what avoids it.

use anyhow::Result;
use koord_scheduler_coexist::check;

use crate::{
    Answer,
    cli::{CoexistCommand, SchedulerArgs},
    screen::Screen,
    why,
};

/// Carries out a command about schedulers that run beside each other.
pub async fn run(command: &CoexistCommand, screen: Screen) -> Result<Answer> {
    let CoexistCommand::Check(args) = command;
    let configuration = match &args.config {
        None => None,
        Some(config) => {
            let args = SchedulerArgs { config: Some(config.clone()), feature_gates: String::new() };
            Some(why::configuration(&args)?.0)
        }
    };
    check(&args.options(configuration.as_ref()), screen).await
}
