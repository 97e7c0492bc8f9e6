//! `PROGRAM --plan`: the plan of a program that is made with this library.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::ArgAction;
use jiff::Timestamp;
use koord_runtime::clock::SystemClock;

use super::{Plan, Source};
use crate::{
    Build, ControllerSettings, Dependencies, Setup,
    error_text::in_words,
    files,
    flags::time,
    kubeconfig::Selection,
    output::{FAILED, OutputFormat, print},
    screen::{Screen, is_coloured},
};

/// The flags of the plan. Go's programs write short flags with one dash or two, as all others.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PlanFlags {
    /// Print what the controllers would write now, and end. The cluster is only read: nothing is written, served or begun. Exit
    /// code: 0 when nothing would be done, 1 when something would, 2 when it cannot be determined.
    #[arg(long, help_heading = "Plan")]
    plan: bool,
    /// With --plan: files with the objects instead of a cluster: YAML or JSON, also lists and folders; - for standard input.
    #[arg(short, long, alias = "f", value_name = "FILE", num_args = 1.., action = ArgAction::Append, help_heading = "Plan",
          requires = "plan", conflicts_with_all = ["kubeconfig", "context"])]
    filename: Vec<PathBuf>,
    /// With --plan: how it is written.
    #[arg(
        short,
        long,
        alias = "o",
        value_enum,
        default_value_t,
        hide_possible_values = false,
        help_heading = "Plan",
        requires = "plan"
    )]
    output: OutputFormat,
    /// With --plan: the time for which it is planned, such as 2026-01-02T03:04:05Z; without it now.
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Plan", requires = "plan")]
    at: Option<Timestamp>,
    /// With --plan: the context of the kubeconfig; without it the current one.
    #[arg(long, value_name = "NAME", help_heading = "Plan", requires = "plan")]
    context: Option<String>,
}

/// What is planned, and how it is shown.
#[derive(Debug)]
pub(crate) struct Command {
    flags: PlanFlags,
}

impl PlanFlags {
    /// The command, where a plan is asked for.
    pub(crate) fn command(self) -> Option<Command> {
        self.plan.then_some(Command { flags: self })
    }
}

impl Command {
    /// Prints the plan of a program whose controllers `add` adds. Gives its exit code.
    pub(crate) async fn run(
        self,
        build: &Build,
        settings: ControllerSettings,
        add: impl FnOnce(&mut Setup) -> Result<()>,
    ) -> ExitCode {
        let PlanFlags { output, .. } = self.flags;
        match self.plan(build, settings, add).await {
            Ok((text, code)) => print(build.program, &text, code),
            Err(error) => {
                let why = in_words(&error);
                eprintln!("{}: {why}", build.program);
                print(build.program, &output.error(&why), FAILED)
            }
        }
    }

    async fn plan(
        self,
        build: &Build,
        settings: ControllerSettings,
        add: impl FnOnce(&mut Setup) -> Result<()>,
    ) -> Result<(String, u8)> {
        let PlanFlags { filename, output, at, context, .. } = self.flags;
        let (core, recorded) = super::core(build.field_manager, at.unwrap_or_else(|| SystemClock::shared().now()))?;
        let mut setup = Setup::new(core, settings);
        add(&mut setup)?;
        let plan = if filename.is_empty() {
            let selection = Selection { file: setup.kubeconfig(), context: context.as_deref() };
            let Dependencies { client, api_host, .. } = Dependencies::selected_by(&selection).await?;
            let plan = Plan::of(setup.core(), &recorded, Source::Cluster(client)).await;
            plan.with_context(|| format!("the plan is not known, since {api_host} cannot be read"))?
        } else {
            Plan::of(setup.core(), &recorded, Source::Files(files::objects(&filename)?)).await?
        };
        let text = match output {
            OutputFormat::Table => plan.to_text(is_coloured(), Screen::of_stdout()),
            format => format.document(&plan.to_json())?,
        };
        Ok((text, plan.code()))
    }
}
