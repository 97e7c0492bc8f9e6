//! The complete configuration of a component, with the line that sets each value.

use anyhow::Result;
use koord_config::Kind;
use koord_configuration::{LeaderElection, Origin, Step, path_text};
use serde_json::Value;

use crate::{Answer, cli::OutputFormat, screen::Screen, table};

pub(super) fn effective(
    document: &koord_lint::Parsed<'_>,
    object: &Value,
    kind: Kind,
    output: OutputFormat,
    screen: Screen,
) -> Result<Answer> {
    let effective = kind.effective(&LeaderElection::without_unset(object))?;
    if output != OutputFormat::Table {
        return Ok(Answer::success(output.document(&effective.value)?));
    }
    let mut rows = vec![["FIELD", "VALUE", "FROM"].map(str::to_owned).to_vec()];
    for (path, origin) in &effective.leaves {
        let from = match origin {
            Origin::Default => "default".to_owned(),
            Origin::Document(path) => format!("line {}", document.line_of(path)),
        };
        let value = value_at(&effective.value, path).map(super::shown).unwrap_or_default();
        rows.push(vec![path_text(path), value, from]);
    }
    Ok(Answer::success(table::lines(&rows, screen)))
}

fn value_at<'v>(value: &'v Value, path: &[Step]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(*index),
    })
}
