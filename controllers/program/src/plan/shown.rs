//! A plan as text for people and as JSON for programs.

use std::fmt::Write as _;

use koord_resource::Quantity;
use koord_runtime::{
    effect::Wanted,
    events::{Event, EventType},
    write::Action,
};
use serde_json::{Value, json};

use super::{Change, Plan, Problem, Step};
use crate::{screen::Screen, units};

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

impl Plan {
    /// One line for each write, effect and event, and below a write one for each old and each new value.
    pub fn to_text(&self, coloured: bool, screen: Screen) -> String {
        let mut text = String::new();
        let mut line = |colour: &str, line: String| {
            let line = screen.wrapped(&line, "", "    ");
            // Writing into a String cannot fail.
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
        for (controller, Wanted { name, key, inputs, .. }) in &self.effects {
            line(BOLD, format!("effect {name} {key}: would begin with {inputs}  # {controller}"));
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
        for note in self.notes() {
            line("", format!("note: {note}"));
        }
        text
    }

    /// The same facts for programs, with exact amounts.
    pub fn to_json(&self) -> Value {
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
        let effects = self.effects.iter().map(|(controller, Wanted { name, key, inputs, .. })| {
            json!({
                "controller": controller, "effect": name, "namespace": key.namespace(), "name": key.name(),
                "inputs": inputs,
            })
        });
        let events = self.events.iter().map(|Event { kind, key, type_, reason, message, .. }| {
            json!({
                "type": type_.as_str(), "reason": reason, "kind": kind.kind,
                "namespace": key.namespace(), "name": key.name(), "message": message,
            })
        });
        let problems = self.problems.iter().map(
            |Problem { controller, key, message }| json!({"controller": controller, "key": key, "message": message}),
        );
        json!({
            "at": self.at.to_string(), "writes": steps.collect::<Vec<_>>(), "effects": effects.collect::<Vec<_>>(),
            "events": events.collect::<Vec<_>>(), "problems": problems.collect::<Vec<_>>(), "notes": self.notes(),
        })
    }

    /// What makes the plan less exact than it could be.
    fn notes(&self) -> Vec<String> {
        let Some((kind, key)) = self.unrecorded.first() else { return Vec::new() };
        let others = match self.unrecorded.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        vec![format!(
            "without managedFields ({} {key}{others}) all that is declared counts as new, what was declared before as another's, and \
             lists as replaced; read them with kubectl get --show-managed-fields",
            kind.kind
        )]
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
        Action::Patch { subresource, .. }
        | Action::StrategicPatch { subresource, .. }
        | Action::Update { subresource, .. } => {
            ("change", if subresource.is_empty() { String::new() } else { format!("/{subresource}") })
        }
        Action::Apply { .. } => ("apply", String::new()),
        Action::Delete(_) => ("delete", String::new()),
        Action::Bind { .. } => ("bind", String::new()),
        Action::Evict(_) => ("evict", String::new()),
    }
}
