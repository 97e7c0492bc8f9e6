//! `koordctl plan`: what a koord-manager that starts now would write, or another program made with the library.
//!
//! The manager's controllers are wired here as it wires them; another program is run with `--plan`. How a plan is made of
//! controllers is `koord_program::plan`.

mod program;

use anyhow::{Context as _, Result, anyhow, ensure};
use koord_manager_assembly::{Checked, Options};
use koord_manager_controllers::CONTROLLERS;
use koord_program::{
    plan::{self, Plan, Source},
    screen::is_coloured,
};
use koord_runtime::clock::SystemClock;

use crate::{
    Answer,
    cli::{OutputFormat, PlanArgs},
    connect, files,
    names::question,
    screen::Screen,
};

/// Plans.
pub async fn run(args: &PlanArgs, screen: Screen) -> Result<Answer> {
    match &args.program {
        Some(path) => program::run(path, args, screen).await,
        None => manager(args, screen).await,
    }
}

/// The plan of koord-manager.
async fn manager(args: &PlanArgs, screen: Screen) -> Result<Answer> {
    let checked = options(args)?;
    let (source, time) = if args.filename.is_empty() {
        let server = connect::reach(&args.answer.cluster.flags()).await?;
        (Source::Cluster(server.client), server.time)
    } else {
        (Source::Files(files::objects(&args.filename)?), None)
    };
    let now = args.at.or(time).unwrap_or_else(|| SystemClock::shared().now());
    let (mut core, recorded) = plan::core(koord_manager_assembly::NAME, now)?;
    core.restrict_to(&checked.settings.namespaces);
    koord_manager_assembly::add_controllers(&mut core, &checked)?;
    let plan =
        Plan::of(&core, &recorded, source).await.context("the plan is not known; `koordctl doctor` says more")?;
    let text = match args.answer.output {
        OutputFormat::Table => plan.to_text(is_coloured(), screen),
        format => format.document(&plan.to_json())?,
    };
    Ok(Answer { text, code: plan.code() })
}

/// The flags of the manager whose writes are planned.
fn options(args: &PlanArgs) -> Result<Checked> {
    let names = || CONTROLLERS.iter().map(|spec| spec.name);
    for word in args.controllers.iter().flat_map(|list| list.split(',')).map(str::trim) {
        let name = word.trim_start_matches('-');
        ensure!(
            matches!(name, "*" | "none" | "") || names().any(|known| known == name),
            "--controllers: there is no controller {name:?}; {}",
            question(name, names()).unwrap_or_else(|| format!("there are: {}", names().collect::<Vec<_>>().join(", ")))
        );
    }
    let mut line = vec!["koord-manager".to_owned()];
    line.extend(args.controllers.iter().map(|controllers| format!("--controllers={controllers}")));
    line.extend(args.flags.iter().cloned());
    Options::from_arguments(line).and_then(Options::check).map_err(|error| {
        let text = error.to_string();
        anyhow!("{}", text.trim().trim_start_matches("error: "))
    })
}
