//! `koordctl convert`: a policy of kubernetes-sigs/descheduler as a DeschedulerConfiguration, and what is different with that.

mod check;

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result, anyhow, bail};
use koord_config::{
    Kind,
    policy::{Consequence, Evictor, Note, election_note, interval_note, translate},
};
use koord_configuration::{Problem, Source, path_text};
use koord_program::files::{CONFIGURATION_BYTES_MAX, read_configuration};
use koord_resource::{
    Duration,
    yaml::{read_text_up_to, to_text},
};
use serde_json::{Value, json};

use crate::{
    Answer,
    cli::{ConvertArgs, OutputFormat, PolicyEvictor},
    screen::Screen,
};

/// A policy, and where it stands.
struct Policy {
    /// The name by which messages refer to it.
    name: String,
    text: String,
    document: Value,
}

/// Converts a policy, or compares it with its configuration.
pub async fn run(args: &ConvertArgs, screen: Screen) -> Result<Answer> {
    let policy = read(&args.file)?;
    let source = Source::new(&policy.name, &policy.text);
    let evictor = match args.evictor {
        PolicyEvictor::DefaultEvictor => Evictor::DefaultEvictor,
        PolicyEvictor::MigrationController => Evictor::MigrationController,
    };
    let mut translation = translate(&policy.document, evictor).map_err(|problems| source.error(problems))?;
    let configuration = &mut translation.document;
    if let Some(interval) = args.descheduling_interval {
        configuration["deschedulingInterval"] = json!(Duration::from(interval));
    }
    if args.dry_run {
        configuration["dryRun"] = true.into();
    }
    let is_faithful = translation.notes.iter().all(|note| note.consequence == Consequence::Unused);
    let process = [interval_note(configuration), election_note(configuration)];
    let notes: Vec<Note> = translation.notes.into_iter().chain(process.into_iter().flatten()).collect();
    if args.check {
        return check::run(args, &policy, &translation.document, screen).await;
    }
    let text = match args.answer.output {
        OutputFormat::Json => {
            let notes: Vec<Value> = notes.iter().map(|note| note_document(note, &source)).collect();
            args.answer.output.document(&json!({"configuration": translation.document, "notes": notes}))?
        }
        OutputFormat::Table | OutputFormat::Yaml => {
            // Who closed the standard error wants no report.
            let _ = io::stderr().write_all(report(&notes, &source).as_bytes());
            to_text(&translation.document)
        }
    };
    Ok(if is_faithful { Answer::success(text) } else { Answer::failure(text) })
}

/// Reads the policy of a file, which may be in a ConfigMap.
fn read(file: &Path) -> Result<Policy> {
    let name = file.display().to_string();
    let text = if file == Path::new("-") {
        read_text_up_to(CONFIGURATION_BYTES_MAX, io::stdin()).context("standard input cannot be read")?
    } else {
        read_configuration(file).with_context(|| format!("{name} cannot be read"))?
    };
    let document = Source::new(&name, &text).parse()?;
    let is_policy = |document: &Value| matches!(Kind::of(document), Some(Kind::PolicyV1alpha1 | Kind::PolicyV1alpha2));
    if document["kind"] == "ConfigMap" {
        let entries = document["data"].as_object().into_iter().flatten();
        let mut policies = entries.filter_map(|(key, value)| {
            let (name, text) = (format!("{name}, data[{key}]"), value.as_str()?.to_owned());
            let document = Source::new(&name, &text).parse().ok().filter(is_policy)?;
            Some(Policy { name, text, document })
        });
        return match (policies.next(), policies.next()) {
            (Some(policy), None) => Ok(policy),
            (None, _) => {
                bail!("{name} is a ConfigMap without a DeschedulerPolicy in its data; name the file of the policy")
            }
            (Some(_), Some(_)) => {
                bail!("{name} is a ConfigMap with several policies; write the one to convert into a file")
            }
        };
    }
    if Kind::of(&document) == Some(Kind::Descheduler) {
        bail!(
            "{name} is a DeschedulerConfiguration already; koordctl config effective -f {name} shows it with every default"
        );
    }
    Ok(Policy { name, text, document })
}

/// A note for people: where it stands, what happens to it, and what to do.
fn report(notes: &[Note], source: &Source<'_>) -> String {
    let mut text = String::new();
    for Note { consequence, problem } in notes {
        let (file, line) = place(problem, source);
        let place = if problem.path.is_empty() { file } else { format!("{file}:{line}") };
        let _ = writeln!(text, "{place}: {}: {problem}", consequence.name());
        if let Some(remedy) = &problem.suggestion {
            let _ = writeln!(text, "    {remedy}");
        }
    }
    text
}

fn note_document(Note { consequence, problem }: &Note, source: &Source<'_>) -> Value {
    let (_, line) = place(problem, source);
    json!({
        "consequence": consequence.name(), "path": path_text(&problem.path),
        "line": (!problem.path.is_empty()).then_some(line), "message": problem.message, "remedy": problem.suggestion,
    })
}

/// Name and line of the text.
fn place(problem: &Problem, source: &Source<'_>) -> (String, usize) {
    let error = source.error(vec![problem.clone()]);
    let line = error.problems.first().map_or(0, |(line, _)| *line);
    (error.name, line)
}

/// A DeschedulerConfiguration of a file.
fn configuration(file: &Path) -> Result<Policy> {
    let name = file.display().to_string();
    let text = read_configuration(file).with_context(|| format!("--config {name} cannot be read"))?;
    let document = Source::new(&name, &text).parse()?;
    match Kind::of(&document) {
        Some(Kind::Descheduler) => Ok(Policy { name, text, document }),
        _ => Err(anyhow!("--config {name} is no DeschedulerConfiguration of {}", Kind::Descheduler.api_version())),
    }
}
