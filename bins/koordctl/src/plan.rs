//! `koordctl plan`: what a koord-manager that starts now would write.
//!
//! The controllers are the manager's, wired as it wires them. Their caches are filled from lists or files instead of
//! watches, and what they decide is compared with what is there instead of being written.

pub(crate) mod changes;
pub(crate) mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    io::IsTerminal as _,
    sync::Arc,
};

use anyhow::{Result, anyhow, ensure};
use jiff::Timestamp;
use koord_manager::{Checked, Options};
use koord_manager_controllers::CONTROLLERS;
use koord_resource::Quantity;
use koord_runtime::{
    Core,
    clock::ManualClock,
    events::{Event, EventSink, EventType},
    metrics::Metrics,
    random::Random,
    write::{Action, Write},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use self::changes::{Change, changes, planned};
use crate::{
    Answer, FAILED,
    cli::{OutputFormat, PlanArgs},
    names::question,
    screen::Screen,
    units,
};

/// Plans.
pub async fn run(args: &PlanArgs, screen: Screen) -> Result<Answer> {
    let checked = options(args)?;
    let source = source::Source::open(args).await?;
    let now = args.at.unwrap_or_else(|| source.time());
    let recorded = Arc::new(Recorded::default());
    let sink: Arc<dyn EventSink> = Arc::clone(&recorded) as _;
    // No decision depends on chance; the runtime wants a source all the same.
    let mut core = Core::new(koord_manager::NAME, ManualClock::new(now), Random::seeded(0), Metrics::new()?, sink);
    core.restrict_to(&checked.settings.namespace);
    koord_manager::add_controllers(&mut core, &checked)?;
    let stored = source::fill(&core, source).await?;
    let (steps, problems) = decide(&core, stored);
    let plan = Plan { steps, problems, events: recorded.take() };
    let text = match args.answer.output {
        OutputFormat::Table => {
            let coloured =
                std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
            plan.to_text(coloured, screen)
        }
        format => format.document(&plan.to_json(now))?,
    };
    let code = match (&plan.problems[..], &plan.steps[..]) {
        ([], []) => 0,
        ([], _) => 1,
        _ => FAILED,
    };
    Ok(Answer { text, code })
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
    line.extend(args.manager_flags.iter().cloned());
    Options::from_arguments(line).and_then(Options::check).map_err(|error| {
        let text = error.to_string();
        anyhow!("{}", text.trim().trim_start_matches("error: "))
    })
}

/// Events of controllers and caches, in order and each once.
#[derive(Default)]
pub(crate) struct Recorded(Mutex<BTreeSet<(&'static str, Event)>>);

impl Recorded {
    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock()).into_iter().map(|(_, event)| event).collect()
    }
}

impl EventSink for Recorded {
    fn record(&self, component: &'static str, event: Event) {
        self.0.lock().insert((component, event));
    }
}

/// One write that would be made.
struct Step {
    controller: &'static str,
    write: Write,
    changes: Vec<Change>,
}

/// Something about which a controller cannot decide.
struct Problem {
    controller: &'static str,
    key: String,
    message: String,
}

/// Everything that would happen.
struct Plan {
    steps: Vec<Step>,
    problems: Vec<Problem>,
    events: Vec<Event>,
}

/// Lets every controller decide about everything that its caches made it look at.
fn decide(core: &Core, mut stored: source::Stored) -> (Vec<Step>, Vec<Problem>) {
    let (mut steps, mut problems) = (Vec::new(), Vec::new());
    for worker in core.workers() {
        let controller = worker.spec().name;
        let mut decided = BTreeMap::new();
        while let Some(attempt) = worker.take() {
            let key = attempt.key().to_string();
            match worker.decide(&attempt) {
                Ok(outcome) => {
                    decided.insert(key, outcome.plan);
                    worker.record(outcome.events);
                }
                Err(error) => problems.push(Problem { controller, key, message: error.to_string() }),
            }
            worker.settle(attempt, Ok(None));
        }
        for write in decided.into_values().flatten() {
            let before = stored.get(write.kind.kind, write.key.as_str());
            let after = planned(&write.action, &before);
            let changes = changes(&before, &after);
            stored.put(write.kind.kind, write.key.as_str(), after);
            steps.push(Step { controller, write, changes });
        }
    }
    (steps, problems)
}

// === impl Plan ===

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

impl Plan {
    fn to_text(&self, coloured: bool, screen: Screen) -> String {
        let mut text = String::new();
        let mut line = |colour: &str, line: String| {
            let line = screen.wrapped(&line, "", "    ");
            let _ = if coloured { writeln!(text, "{colour}{line}{PLAIN}") } else { writeln!(text, "{line}") };
        };
        for Step { controller, write, changes } in &self.steps {
            let (word, part) = words(&write.action);
            line(BOLD, format!("{word} {}{part} {}  # {controller}", write.kind.kind, write.key));
            for Change { path, from, to } in changes {
                let resource = path.trim_end_matches(']');
                let shown = [from, to].map(|value| value.as_ref().map(|value| in_units(resource, value)));
                // What looks equal in units is shown as it is written.
                let exact = [from, to].map(|value| value.as_ref().map(Value::to_string));
                let [from, to] = if shown[0] == shown[1] { exact } else { shown };
                for (sign, colour, value) in [("-", RED, from), ("+", GREEN, to)] {
                    if let Some(value) = value {
                        line(colour, format!("{sign} {path}: {value}"));
                    }
                }
            }
        }
        for Event { kind, key, type_, reason, message, .. } in &self.events {
            let type_ = match type_ {
                EventType::Normal => "event",
                EventType::Warning => "warning",
            };
            line("", format!("{type_} {reason} on {} {key}: {message}", kind.kind));
        }
        for Problem { controller, key, message } in &self.problems {
            line(RED, format!("{controller} cannot decide about {key}: {message}"));
        }
        text
    }

    fn to_json(&self, now: Timestamp) -> Value {
        let steps = self.steps.iter().map(|Step { controller, write, changes }| {
            let (word, _) = words(&write.action);
            let mut json = json!({
                "controller": controller, "action": word, "apiVersion": write.kind.api_version(),
                "kind": write.kind.kind, "namespace": write.key.namespace(), "name": write.key.name(),
            });
            if let Action::Patch { subresource, .. } = write.action {
                json["subresource"] = subresource.into();
            }
            json["changes"] =
                changes.iter().map(|Change { path, from, to }| json!({"path": path, "from": from, "to": to})).collect();
            json
        });
        let events = self.events.iter().map(|Event { kind, key, type_, reason, message, .. }| {
            json!({
                "type": format!("{type_:?}"), "reason": reason, "kind": kind.kind,
                "namespace": key.namespace(), "name": key.name(), "message": message,
            })
        });
        let problems = self.problems.iter().map(
            |Problem { controller, key, message }| json!({"controller": controller, "key": key, "message": message}),
        );
        json!({
            "at": now.to_string(), "writes": steps.collect::<Vec<_>>(), "events": events.collect::<Vec<_>>(),
            "problems": problems.collect::<Vec<_>>(),
        })
    }
}

/// A value, in human units where it is an amount of bytes.
fn in_units(resource: &str, value: &Value) -> String {
    let amount = value.as_str().and_then(|text| text.parse::<Quantity>().ok());
    let shown = amount.map(|amount| units::amount(resource, &amount));
    // Everything else stays as it is written.
    shown.filter(|shown| shown.ends_with('i')).map_or_else(|| value.to_string(), |shown| format!("{shown:?}"))
}

/// What a write does, and to which part.
fn words(action: &Action) -> (&'static str, String) {
    match action {
        Action::Create(_) => ("create", String::new()),
        Action::Patch { subresource: "", .. } | Action::Update { subresource: "", .. } => ("change", String::new()),
        Action::Patch { subresource, .. } | Action::Update { subresource, .. } => ("change", format!("/{subresource}")),
        Action::Apply { .. } => ("apply", String::new()),
        Action::Delete(_) => ("delete", String::new()),
        Action::Bind { .. } => ("bind", String::new()),
        Action::Evict(_) => ("evict", String::new()),
    }
}
