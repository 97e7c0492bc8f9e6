//! `koordctl deschedule`: what koord-descheduler would do and why, carrying that out, and what it has done.

mod apply;
mod comparison;
mod history;
mod pass;
mod report;
mod why;

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result, anyhow};
use jiff::Timestamp;
use koord_configuration::Source as Text;
use koord_descheduler_assembly::{Configuration, build, snapshot};
use koord_descheduler_framework::{Cluster, Descheduler, Input, Memory, Planning};
use koord_descheduler_runtime::measure;
use koord_program::{files::read_configuration, plan::Source};
use koord_runtime::{api::Api, clock::SystemClock, metrics::Metrics};

use crate::{
    Answer,
    cli::{ClusterArgs, DescheduleCommand, DeschedulerArgs},
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
    /// Usage that strategies go by and that is not known.
    unmeasured: Vec<String>,
    source: Source,
    now: Timestamp,
}

impl Subject {
    /// What strategies remember after all passes but the last, in which the cluster was as it is now.
    fn memory(&self, passes: u32) -> Memory {
        let mut memory = Memory::default();
        for _ in 1..passes {
            memory = self.descheduler.pass(&Input::new(&self.cluster, &memory, self.now)).memory;
        }
        memory
    }
}

/// The name of the ConfigMap with the configuration of an installed descheduler, and of its entry.
pub(crate) const CONFIG_MAP: &str = "koord-descheduler-config";

async fn subject(args: &DeschedulerArgs) -> Result<Subject> {
    let (source, time) = objects(&args.filename, &args.answer.cluster).await?;
    let configuration = configuration(args, &source).await?.values;
    let mut descheduler = build(&configuration)?.descheduler;
    // A plan shows what it leads to, whether the program looks at that or not.
    for profile in &mut descheduler.profiles {
        if profile.planning == Planning::Off {
            profile.planning = Planning::Report;
        }
    }
    let clock = SystemClock::shared();
    let now = args.at.or(time).unwrap_or_else(|| clock.now());
    let mut cluster = snapshot(&descheduler, source.clone(), now).await?;
    let mut unmeasured = Vec::new();
    if let Source::Cluster(client) = &source {
        let requests = Metrics::new()?.requests();
        let api = Api::new(client.clone(), Arc::clone(&clock), requests, "koordctl", (0.0, 0));
        (cluster, unmeasured) = measure(&api, (&descheduler, cluster), configuration.prometheus(), &*clock).await;
    }
    Ok(Subject { descheduler, cluster, unmeasured, source, now })
}

/// The objects of files, or of a cluster where there are none, and the time of its server.
pub(crate) async fn objects(files: &[PathBuf], cluster: &ClusterArgs) -> Result<(Source, Option<Timestamp>)> {
    if files.is_empty() {
        let server = connect::reach(&cluster.flags()).await?;
        return Ok((Source::Cluster(server.client), server.time));
    }
    let mut objects = files::objects(files)?;
    objects.iter_mut().for_each(scheduling::identify);
    Ok((Source::Files(objects), None))
}

/// The configuration of `--config`, or of the installed descheduler.
async fn configuration(args: &DeschedulerArgs, source: &Source) -> Result<Configuration> {
    let (name, text) = if let Some(file) = &args.config {
        let name = file.display().to_string();
        let text = read_configuration(file).with_context(|| format!("--config {name} cannot be read"))?;
        (name, text)
    } else {
        let namespace = &args.system_namespace;
        let found = history::config_map(source, namespace, CONFIG_MAP).await?;
        let text = found.as_ref().and_then(|object| object["data"][CONFIG_MAP].as_str());
        let text = text.ok_or_else(|| {
            anyhow!(
                "there is no ConfigMap {CONFIG_MAP} with an entry of that name in {namespace}; \
                     name the configuration of the descheduler with --config, or its namespace with --system-namespace"
            )
        })?;
        (format!("ConfigMap {namespace}/{CONFIG_MAP}"), text.to_owned())
    };
    let file = Text::new(&name, &text);
    Configuration::of_document(&file.parse()?, &file)
}
