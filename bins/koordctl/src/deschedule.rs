//! `koordctl deschedule`: what koord-descheduler would do and why, carrying that out, and what it has done.

mod apply;
mod comparison;
mod history;
mod pass;
mod report;
mod why;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use koord_configuration::Source as Text;
use koord_descheduler_assembly::{Configuration, build, snapshot};
use koord_descheduler_framework::{Cluster, Descheduler, Planning};
use koord_program::{files::read_configuration, plan::Source};
use koord_runtime::clock::SystemClock;

use crate::{
    Answer,
    cli::{DescheduleCommand, DeschedulerArgs},
    connect, files,
    screen::Screen,
    why as scheduling,
};

/// Carries out a command about descheduling.
pub async fn run(command: &DescheduleCommand, screen: Screen) -> Result<Answer> {
    match command {
        DescheduleCommand::Plan(args) => pass::plan(args, screen).await,
        DescheduleCommand::Diff(args) => comparison::diff(args, screen).await,
        DescheduleCommand::Apply(args) => apply::apply(args, screen).await,
        DescheduleCommand::Why(args) => why::explain(args, screen).await,
        DescheduleCommand::History(args) => history::show(args, screen).await,
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
    let mut descheduler = build(&Configuration::of_document(file.parse()?, &file)?.values)?.descheduler;
    // Whoever asks for a plan wants to know what it leads to, whether the program looks at that or not.
    for profile in &mut descheduler.profiles {
        if profile.planning == Planning::Off {
            profile.planning = Planning::Report;
        }
    }
    let (source, time) = if args.filename.is_empty() {
        let server = connect::reach(&args.answer.cluster.flags()).await?;
        (Source::Cluster(server.client), server.time)
    } else {
        let mut objects = files::objects(&args.filename)?;
        objects.iter_mut().for_each(scheduling::identify);
        (Source::Files(objects), None)
    };
    let now = args.at.or(time).unwrap_or_else(|| SystemClock::shared().now());
    let cluster = snapshot(&descheduler, source.clone(), now).await?;
    Ok(Subject { descheduler, cluster, source, now })
}
