//! What checks find, and how it is shown.

use std::{cmp::Reverse, fmt::Write as _};

use serde_json::{Value, json};

use crate::{obstacle::Obstacle, output::FAILED, screen::Screen};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Note,
    /// Something is not as expected, or could not be checked.
    Warning,
    /// Something does not work.
    Error,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The check that found it.
    pub check: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Kind and name.
    pub object: String,
    /// What is wrong.
    pub problem: String,
    /// What to do, with the command where there is one.
    pub remedy: String,
}

impl Finding {
    fn to_json(&self) -> Value {
        let Self { check, severity, object, problem, remedy } = self;
        json!({
            "check": check, "severity": severity.word(), "object": object, "problem": problem, "remedy": remedy,
        })
    }
}

/// What one check has found.
pub struct Report {
    check: &'static str,
    /// In the order in which they were found.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Nothing yet.
    pub fn new(check: &'static str) -> Self {
        Self { check, findings: Vec::new() }
    }

    /// Adds a finding about an object.
    pub fn add(
        &mut self,
        severity: Severity,
        object: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (check, object) = (self.check, object.into());
        self.findings.push(Finding { check, severity, object, problem: problem.into(), remedy: remedy.into() });
    }

    /// Adds that something does not work.
    pub fn error(&mut self, object: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Error, object, problem, remedy);
    }

    /// Adds that something is not as expected.
    pub fn warning(&mut self, object: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Warning, object, problem, remedy);
    }

    /// Adds something that is good to know.
    pub fn note(&mut self, object: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Note, object, problem, remedy);
    }

    /// What was read; what could not be is a finding.
    pub fn read<T>(&mut self, read: Result<T, Obstacle>) -> Option<T> {
        read.map_err(|obstacle| self.obstacle(&obstacle)).ok()
    }

    fn obstacle(&mut self, Obstacle { path, message, forbidden, missing }: &Obstacle) {
        let otherwise = "ask as a user who may read it (--context, --kubeconfig), or skip this check (--skip)";
        let remedy = match (missing, forbidden) {
            (Some(rules), _) => format!("grant {rules}, {otherwise}"),
            (None, true) => otherwise.to_owned(),
            (None, false) => "see whether the API server is well: kubectl get --raw /readyz?verbose".to_owned(),
        };
        self.warning(path.clone(), format!("cannot be looked at: {message}"), remedy);
    }
}

/// All that was found, the worst first, and the checks that were made.
pub struct Findings {
    list: Vec<Finding>,
    looked_at: Vec<&'static str>,
}

impl Findings {
    /// What was found in the order of the checks.
    pub fn of(mut list: Vec<Finding>, looked_at: Vec<&'static str>) -> Self {
        list.sort_by_key(|finding| Reverse(finding.severity));
        Self { list, looked_at }
    }

    /// The exit code: 0 when nothing is wrong, 1 when there are warnings, 2 when there are errors.
    pub fn code(&self) -> u8 {
        match self.list.first().map(|finding| finding.severity) {
            None | Some(Severity::Note) => 0,
            Some(Severity::Warning) => 1,
            Some(Severity::Error) => FAILED,
        }
    }

    fn count(&self, severity: Severity) -> usize {
        self.list.iter().filter(|finding| finding.severity == severity).count()
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        json!({
            "checks": self.looked_at,
            "errors": self.count(Severity::Error), "warnings": self.count(Severity::Warning),
            "notes": self.count(Severity::Note),
            "findings": self.list.iter().map(Finding::to_json).collect::<Vec<_>>(),
        })
    }

    /// For people.
    pub fn to_text(&self, screen: Screen) -> String {
        let mut text = String::new();
        for Finding { check, severity, object, problem, remedy } in &self.list {
            let _ = writeln!(text, "{:<7}  {check:<13}  {object}", severity.word());
            let _ = writeln!(text, "{}", screen.wrapped(problem, "    ", "    "));
            let _ = writeln!(text, "{}", screen.wrapped(remedy, "    → ", "      "));
        }
        let (errors, warnings) = (self.count(Severity::Error), self.count(Severity::Warning));
        let found = format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"));
        let names = self.looked_at.join(", ");
        let end = match names.as_str() {
            "" => format!("{found}; nothing else was looked at"),
            names if errors + warnings == 0 => format!("nothing is wrong with: {names}"),
            names => format!("{found}; looked at: {names}"),
        };
        let gap = if names.is_empty() || errors + warnings > 0 { "\n" } else { "" };
        let _ = writeln!(text, "{gap}{}", screen.wrapped(&end, "", "  "));
        text
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
