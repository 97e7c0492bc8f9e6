//! What a check finds.

use serde_json::{Value, json};

use super::obstacle::Obstacle;
use crate::cli::Check;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Good to know.
    Note,
    /// Something is not as expected, or could not be checked.
    Warning,
    /// Something does not work.
    Error,
}

impl Severity {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) check: Check,
    pub(super) severity: Severity,
    /// Kind and name.
    pub(super) object: String,
    pub(super) problem: String,
    /// What to do, with the command where there is one.
    pub(super) remedy: String,
}

impl Finding {
    pub(super) fn to_json(&self) -> Value {
        let Self { check, severity, object, problem, remedy } = self;
        json!({
            "check": check.name(), "severity": severity.word(), "object": object, "problem": problem, "remedy": remedy,
        })
    }
}

/// What one check has found.
pub(super) struct Report {
    check: Check,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(check: Check) -> Self {
        Self { check, findings: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        severity: Severity,
        object: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (check, object) = (self.check, object.into());
        self.findings.push(Finding { check, severity, object, problem: problem.into(), remedy: remedy.into() });
    }

    pub(super) fn error(&mut self, object: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Error, object, problem, remedy);
    }

    pub(super) fn warning(&mut self, object: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Warning, object, problem, remedy);
    }

    pub(super) fn note(&mut self, object: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) {
        self.add(Severity::Note, object, problem, remedy);
    }

    /// What was read; what could not be is a finding.
    pub(super) fn read<T>(&mut self, read: Result<T, Obstacle>) -> Option<T> {
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
