//! `koordctl config effective`: the complete configuration of a component, with what its file leaves out.

use anyhow::{Result, bail};
use koord_config::{Kind, Origin, path_text};
use serde_json::Value;

use crate::{
    Answer,
    cli::{ConfigCommand, EffectiveArgs, OutputFormat},
    lint, manifests,
    reviewer::Reviewer,
    screen::Screen,
    table,
};

/// Prints what is in force.
pub fn run(command: &ConfigCommand, screen: Screen) -> Result<Answer> {
    let ConfigCommand::Effective(args) = command;
    effective(args, screen)
}

fn effective(args: &EffectiveArgs, screen: Screen) -> Result<Answer> {
    let files = manifests::read(std::slice::from_ref(&args.file))?;
    let documents: Vec<lint::Parsed<'_>> = files.iter().flat_map(lint::parse).collect();
    let found = documents.iter().find_map(|document| {
        let object = document.objects.as_ref().ok()?.first()?;
        Some((document, object, Kind::of(object)?))
    });
    let wrong: Vec<String> = lint::lint(&files, &Reviewer::new("")?)
        .iter()
        .filter(|finding| finding.is_error)
        .map(ToString::to_string)
        .collect();
    if !wrong.is_empty() {
        return Ok(Answer::failure(wrong.join("\n") + "\n"));
    }
    let Some((document, object, kind)) = found else {
        let known =
            [Kind::Scheduler, Kind::Descheduler].map(|kind| format!("{} of {}", kind.name(), kind.api_version()));
        bail!("{} holds no configuration of a component; one is a {}", args.file.display(), known.join(" or a "));
    };
    let effective = kind.effective(object)?;
    if args.output != OutputFormat::Table {
        return Ok(Answer::success(args.output.document(&effective.value)?));
    }
    let mut rows = vec![["FIELD", "VALUE", "FROM"].map(str::to_owned).to_vec()];
    for (path, origin) in &effective.leaves {
        let from = match origin {
            Origin::Default => "default".to_owned(),
            Origin::Document(path) => format!("line {}", document.line_of(path)),
        };
        rows.push(vec![path_text(path), shown(value_at(&effective.value, path)), from]);
    }
    Ok(Answer::success(table::lines(&rows, screen)))
}

fn value_at<'v>(value: &'v Value, path: &[koord_config::Step]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match step {
        koord_config::Step::Key(key) => value.get(key),
        koord_config::Step::Index(index) => value.get(*index),
    })
}

/// A text without quotes, unless it is empty.
fn shown(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}
