//! The table of the chart's values, out of the file that operators read: its keys, its defaults and its comments.

use std::fmt::Write as _;

use serde_json::Value;

/// A line of a YAML file in block style.
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    /// How many spaces it begins with.
    pub(super) indentation: usize,
    /// The keys down to this line: its own, or the one that it belongs to.
    pub(super) path: Vec<&'t str>,
    /// Whether it begins a key.
    pub(super) is_key: bool,
}

/// The lines of a file with the keys around them.
pub(super) fn keys(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut around: Vec<(usize, &str)> = Vec::new();
    text.lines().map(move |text| {
        let line = text.trim();
        let indentation = text.len() - text.trim_start().len();
        let is_key = !line.starts_with(['#', '-']) && line.contains(':');
        if let Some((key, _)) = line.split_once(':').filter(|_| is_key) {
            around.retain(|(outer, _)| *outer < indentation);
            around.push((indentation, key));
        }
        Line { text, indentation, path: around.iter().map(|(_, key)| *key).collect(), is_key }
    })
}

/// Rows of a Markdown table: key, default, meaning. `text` is the file, `values` what it says.
pub(super) fn table(text: &str, values: &Value) -> String {
    let mut table = "| value | default | meaning |\n|---|---|---|\n".to_owned();
    let mut meaning = String::new();
    for line in keys(text) {
        if let Some(comment) = line.text.trim().strip_prefix('#') {
            meaning = format!("{meaning} {}", comment.trim());
            continue;
        }
        if !line.is_key {
            // An empty line separates a comment from what it does not explain.
            meaning.clear();
            continue;
        }
        let value = line.path.iter().try_fold(values, |value, key| value.get(key)).unwrap_or(&Value::Null);
        let is_section = value.as_object().is_some_and(|fields| !fields.is_empty());
        let meaning = std::mem::take(&mut meaning).trim().replace('|', "\\|");
        if is_section && meaning.is_empty() {
            continue;
        }
        let default = if is_section { String::new() } else { format!("`{value}`") };
        let _ = writeln!(table, "| `{}` | {default} | {meaning} |", line.path.join("."));
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_has_the_comment_above_its_key() {
        let text = "# About the file.\n\n# How many.\nreplicas: 2\nimage:\n  # Where from,\n  # with its path.\n  name: a\n  tag: \"\"\n\
                    # A section.\nlimits:\n  cpu: [1]\n";
        let values = json!({"replicas": 2, "image": {"name": "a", "tag": ""}, "limits": {"cpu": [1]}});
        let rows: Vec<String> = table(text, &values).lines().skip(2).map(str::to_owned).collect();
        assert_eq!(
            rows,
            [
                "| `replicas` | `2` | How many. |",
                "| `image.name` | `\"a\"` | Where from, with its path. |",
                "| `image.tag` | `\"\"` |  |",
                "| `limits` |  | A section. |",
                "| `limits.cpu` | `[1]` |  |",
            ]
        );
    }
}
