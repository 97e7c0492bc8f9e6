//! What the API server and Koordinator's webhooks would say of files, without a cluster: `koordctl lint`.
//!
//! The rules are not written again here: schemas come from the declared types, and the handlers are those that
//! koord-manager serves, which know of a cluster only what stands in the files. Configurations of components and the flags of
//! koord-manager in a Deployment are read as the programs read them.
//!
//! Read first: [`lint()`] (everything to change in files), [`Finding`], [`configuration`] (slo-controller-config alone).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod configuration;
mod document;
mod flags;
mod parsed;
mod quotas;
#[cfg(test)]
mod tests;

use std::{fmt, fmt::Write as _, path::PathBuf};

use anyhow::{Result, ensure};
use koord_manager_assembly::reviewer::Reviewer;
use koord_program::{
    files::{self, File},
    output::{Answer, OutputFormat},
};
use serde_json::{Value, json};

use self::document::Document;
pub use self::parsed::{Parsed, parse};

/// Which files are looked at, and how the answer is written.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Files of YAML or JSON, also lists and folders; `-` is standard input.
    pub files: &'a [PathBuf],
    /// Feature gates of koord-manager, of which some decide what is refused.
    pub feature_gates: &'a str,
    pub output: OutputFormat,
}

/// One thing to change in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Kind and name of the object.
    pub object: String,
    /// Whether it would be refused or not understood; otherwise it has no effect.
    pub is_error: bool,
    pub message: String,
    /// What would be right, where that is known.
    pub suggestion: Option<String>,
}

impl Finding {
    fn to_json(&self) -> Value {
        let Finding { file, line, object, is_error, message, suggestion } = self;
        json!({
            "file": file, "line": line, "object": object, "severity": if *is_error { "error" } else { "warning" },
            "message": message, "suggestion": suggestion,
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { file, line, object, is_error, message, suggestion } = self;
        let warning = if *is_error { "" } else { "warning: " };
        write!(f, "{file}:{line}: {object}: {warning}{message}")?;
        suggestion.iter().try_for_each(|suggestion| write!(f, "\n    {suggestion}"))
    }
}

/// Looks at files, folders and standard input.
pub fn run(options: &Options<'_>) -> Result<Answer> {
    let reviewer = Reviewer::new(options.feature_gates)?.enforcing();
    let files = files::read(options.files)?;
    // A pipe whose other end has failed brings nothing either.
    ensure!(
        files.iter().flat_map(parse).any(|parsed| parsed.objects.map_or(true, |objects| !objects.is_empty())),
        "there is no object in {}",
        options.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
    );
    let findings = lint(&files, &reviewer);
    let mut text = String::new();
    match options.output {
        OutputFormat::Table => findings.iter().try_for_each(|finding| writeln!(text, "{finding}"))?,
        format => {
            let list: Vec<Value> = findings.iter().map(Finding::to_json).collect();
            text = format.document(&json!({ "findings": list }))?;
        }
    }
    let is_right = findings.iter().all(|finding| !finding.is_error);
    Ok(if is_right { Answer::success(text) } else { Answer::failure(text) })
}

/// Everything to change in files of YAML or JSON documents. What the objects say of each other counts across files.
pub fn lint(files: &[File], reviewer: &Reviewer) -> Vec<Finding> {
    let parsed: Vec<Parsed<'_>> = files.iter().flat_map(parse).collect();
    let objects = || parsed.iter().filter_map(|parsed| parsed.objects.as_ref().ok()).flatten();
    for object in objects().filter(|object| object["kind"] != "ElasticQuota") {
        let mut object = object.clone();
        let is_pod = object["kind"] == "Pod";
        files::as_stored(&mut object, is_pod);
        // An object that cannot be read is found below.
        let _ = reviewer.know(object["kind"].as_str().unwrap_or_default(), &object.to_string());
    }
    let quotas: Vec<&Value> = objects().filter(|object| object["kind"] == "ElasticQuota").collect();
    let has_quotas = !quotas.is_empty();
    let mut refusals = quotas::refusals(reviewer, &quotas).into_iter();
    let mut findings = Vec::new();
    for parsed in &parsed {
        let mut document = Document::of(parsed);
        if parsed.is_surplus {
            document.unreadable("more than one document, where one is expected".to_owned());
        }
        if parsed.is_page {
            document.page();
        }
        match &parsed.objects {
            Err(error) => document.unreadable(error.clone()),
            Ok(objects) => {
                for object in objects {
                    let refusal = if object["kind"] == "ElasticQuota" { refusals.next().flatten() } else { None };
                    document.object(object, reviewer, refusal, has_quotas);
                }
            }
        }
        findings.extend(document.into_findings());
    }
    findings
}
