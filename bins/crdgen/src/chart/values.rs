//! The table of the chart's values, out of the file that operators read: its keys, its defaults and its comments.

use std::fmt::Write as _;

use serde_json::Value;

/// Rows of a Markdown table: key, default, meaning. `text` is the file, `values` what it says.
pub(super) fn table(text: &str, values: &Value) -> String {
    let mut table = "| value | default | meaning |\n|---|---|---|\n".to_owned();
    // Indentation and name of the keys around a line.
    let mut around: Vec<(usize, &str)> = Vec::new();
    let mut meaning = String::new();
    for line in text.lines() {
        let (indentation, line) = (line.len() - line.trim_start().len(), line.trim());
        if let Some(comment) = line.strip_prefix('#') {
            meaning = format!("{meaning} {}", comment.trim());
            continue;
        }
        let key = line.split_once(':').map(|(key, _)| key).filter(|_| !line.starts_with('-'));
        let Some(key) = key else {
            // An empty line separates a comment from what it does not explain.
            meaning.clear();
            continue;
        };
        around.retain(|(outer, _)| *outer < indentation);
        around.push((indentation, key));
        let path: Vec<&str> = around.iter().map(|(_, key)| *key).collect();
        let value = path.iter().try_fold(values, |value, key| value.get(key)).unwrap_or(&Value::Null);
        let is_section = value.as_object().is_some_and(|fields| !fields.is_empty());
        let meaning = std::mem::take(&mut meaning).trim().replace('|', "\\|");
        if is_section && meaning.is_empty() {
            continue;
        }
        let default = if is_section { String::new() } else { format!("`{value}`") };
        let _ = writeln!(table, "| `{}` | {default} | {meaning} |", path.join("."));
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
