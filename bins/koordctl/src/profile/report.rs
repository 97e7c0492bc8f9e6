//! The report about one pod.

use std::fmt::Write as _;

use koord_program::plan::{Change, changes};
use koord_resource::admission::Denial;
use koord_scheduling::Outcome;
use koord_webhook_handlers::pod::mutate::rehearsal::{Chance, Rehearsal, Tried};
use serde_json::{Value, json};

use super::dependencies::Dependencies;
use crate::{screen::Screen, table};

/// See the module.
pub(super) struct Report<'a> {
    pub(super) shown: &'a str,
    pub(super) namespace: &'a str,
    pub(super) object: &'a Value,
    pub(super) rehearsal: Rehearsal,
    pub(super) dependencies: &'a Dependencies,
}

impl Report<'_> {
    /// What each profile changes, in their order; none for those that do not apply.
    fn changes_by_profile(&self) -> Vec<Option<Vec<Change>>> {
        let mut before = self.object;
        let changed = |tried: &'_ Tried| tried.after.as_ref().map(Result::is_ok);
        let mut all = Vec::new();
        for tried in &self.rehearsal.profiles {
            all.push(match (changed(tried), &tried.after) {
                (Some(true), Some(Ok(after))) => {
                    let found = changes(before, after);
                    before = after;
                    Some(found)
                }
                _ => None,
            });
        }
        all
    }

    /// What the steps behind the profiles change, such as the translation of resources.
    fn following(&self) -> Vec<Change> {
        let last = self.rehearsal.profiles.iter().rev().find_map(|tried| tried.after.as_ref()?.as_ref().ok());
        let outcome = self.rehearsal.outcome.as_ref();
        outcome.map(|outcome| changes(last.unwrap_or(self.object), outcome)).unwrap_or_default()
    }

    fn in_all(&self) -> Vec<Change> {
        self.rehearsal.outcome.as_ref().map(|outcome| changes(self.object, outcome)).unwrap_or_default()
    }

    /// Why the pod would be refused, and what to do about it.
    fn refusal(&self, denial: &Denial) -> String {
        let message = &denial.message;
        let advice = match message {
            text if text.starts_with("PriorityClass.") && self.dependencies.of_files => {
                "; add the PriorityClass to the files that --profiles names"
            }
            text if text.starts_with("PriorityClass.") => "; create the PriorityClass, or fix spec.priorityClassName",
            _ => "",
        };
        format!("{message}{advice}")
    }

    pub(super) fn to_text(&self, screen: Screen) -> String {
        let mut text = format!("{}\n", self.shown);
        let mut order = 0;
        for (tried, changed) in self.rehearsal.profiles.iter().zip(self.changes_by_profile()) {
            let place = if tried.after.is_some() {
                order += 1;
                format!("{order}.")
            } else {
                "-".to_owned()
            };
            // Writing into a String cannot fail.
            let _ = writeln!(text, "\n{place} ClusterColocationProfile {} {}", tried.name, verdict(tried));
            text.push_str(&indented(&self.reasons(tried), screen));
            match (&changed, &tried.after) {
                (Some(changed), _) if changed.is_empty() => text.push_str("   it changes nothing\n"),
                (Some(changed), _) => text.push_str(&indented(&rows(changed), screen)),
                (None, Some(Err(denial))) => {
                    let _ = writeln!(text, "   it cannot be applied: {}", self.refusal(denial));
                }
                (None, _) => {}
            }
        }
        for (title, changed) in [("What follows from it", self.following()), ("In all", self.in_all())] {
            if !changed.is_empty() {
                let _ = write!(text, "\n{title}:\n{}", indented(&rows(&changed), screen));
            }
        }
        match &self.rehearsal.outcome {
            Ok(outcome) if outcome == self.object => text.push_str("\nThe pod stays as it is.\n"),
            Ok(_) => {}
            Err(denial) => {
                let _ = writeln!(text, "\nThe pod is refused: {}", self.refusal(denial));
            }
        }
        for (number, warning) in self.rehearsal.warnings.iter().enumerate() {
            let _ = writeln!(text, "{}Warning: {warning}", if number == 0 { "\n" } else { "" });
        }
        text
    }

    /// Why it matches, or not, and what chance says.
    fn reasons(&self, tried: &Tried) -> Vec<Vec<String>> {
        let row = |what: &str, term: &str, why: String| vec![what.to_owned(), term.to_owned(), why];
        let mut rows = Vec::new();
        for outcome in &tried.selector {
            rows.push(row("selector", &outcome.term, found(outcome, "the pod")));
        }
        if tried.namespace_unknown {
            let why = if self.dependencies.of_files {
                format!("namespace {} is in none of the files; add it to see its labels", self.namespace)
            } else {
                format!("there is no namespace {}", self.namespace)
            };
            rows.push(row("namespaceSelector", "", why));
        }
        for outcome in &tried.namespace_selector {
            rows.push(row("namespaceSelector", &outcome.term, found(outcome, "the namespace")));
        }
        if rows.is_empty() {
            rows.push(row("selector", "", "none, so every pod matches".to_owned()));
        }
        if let Some(chance) = &tried.chance {
            let why = match &chance.percent {
                Err(error) => format!("{error}; write a percentage such as 30%"),
                Ok(percent) => {
                    let each = if chance.differs_by_pod { "; each pod of this template draws for itself" } else { "" };
                    format!("the pod draws {} (0 to 99); below {percent} the profile applies{each}", chance.draw)
                }
            };
            rows.push(row("probability", "", why));
        }
        if tried.skips_resources && tried.matches() {
            let why = "resources of the pod stay as they are".to_owned();
            rows.push(row("annotation", koord_profile::SKIP_UPDATE_RESOURCES, why));
        }
        rows
    }

    pub(super) fn to_json(&self) -> Value {
        let term = |outcome: &Outcome| json!({"term": outcome.term, "found": outcome.found, "holds": outcome.holds});
        let mut profiles = Vec::new();
        for (tried, changed) in self.rehearsal.profiles.iter().zip(self.changes_by_profile()) {
            let mut profile = json!({
                "name": tried.name, "matches": tried.matches(), "applies": tried.after.is_some(),
                "selector": tried.selector.iter().map(term).collect::<Value>(),
                "namespaceSelector": tried.namespace_selector.iter().map(term).collect::<Value>(),
                "namespaceUnknown": tried.namespace_unknown, "skipsResources": tried.skips_resources,
                "changes": changed.as_deref().map(as_json),
            });
            if let Some(chance) = &tried.chance {
                profile["probability"] = json!({
                    "percent": chance.percent.as_ref().ok(), "draw": chance.draw, "favours": chance.favours(),
                    "differsByPod": chance.differs_by_pod, "error": chance.percent.as_ref().err(),
                });
            }
            if let Some(Err(denial)) = &tried.after {
                profile["error"] = self.refusal(denial).into();
            }
            profiles.push(profile);
        }
        json!({
            "pod": self.shown, "profiles": profiles, "following": as_json(&self.following()),
            "changes": as_json(&self.in_all()), "warnings": self.rehearsal.warnings,
            "refused": self.rehearsal.outcome.as_ref().err().map(|denial| self.refusal(denial)),
        })
    }
}

fn verdict(tried: &Tried) -> &'static str {
    match &tried.chance {
        _ if tried.after.is_some() => "applies",
        _ if !tried.matches() => "does not match",
        Some(Chance { percent: Err(_), .. }) => "matches, but its probability is invalid",
        Some(chance) if !chance.favours() => "matches, but chance is against it",
        _ => "matches, but the pod is refused before",
    }
}

fn found(outcome: &Outcome, whose: &str) -> String {
    match &outcome.found {
        _ if outcome.holds => "holds".to_owned(),
        Some(value) => format!("does not hold: {whose} has {}={value}", outcome.key),
        None => format!("does not hold: {whose} has no label {}", outcome.key),
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn rows(changed: &[Change]) -> Vec<Vec<String>> {
    let row = |change: &Change| {
        let (sign, values) = match (&change.from, &change.to) {
            (Some(from), Some(to)) => ("~", format!("{} → {}", shown(from), shown(to))),
            (Some(from), None) => ("-", shown(from)),
            (None, to) => ("+", to.as_ref().map(shown).unwrap_or_default()),
        };
        vec![format!("{sign} {}", change.path), values]
    };
    changed.iter().map(row).collect()
}

fn indented(rows: &[Vec<String>], screen: Screen) -> String {
    table::lines(rows, screen.beside(3)).lines().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "   {line}");
        text
    })
}

fn as_json(changed: &[Change]) -> Value {
    changed.iter().map(|change| json!({"path": change.path, "from": change.from, "to": change.to})).collect()
}
