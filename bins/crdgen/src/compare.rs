//! Definitions held against others, and texts against files.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result, bail};
use koord_resource::document::difference::{differences, differences_of};
use serde_json::{Map, Value};
use similar::TextDiff;

/// The annotation that names the generator.
const GENERATOR: &str = "controller-gen.kubebuilder.io/version";

/// How our definitions differ from those in the YAML and JSON files of a folder: one line per place, nothing when equal.
pub fn with_folder(ours: &[Value], folder: &Path) -> Result<String> {
    let theirs = read_folder(folder)?;
    let ours = by_name(ours.to_vec());
    let mut text = String::new();
    for (name, wanted) in &ours {
        let Some(present) = theirs.get(name) else {
            let _ = writeln!(text, "{name}: the folder lacks it");
            continue;
        };
        for difference in differences(present, wanted) {
            let _ = writeln!(text, "{name}: {}", difference.in_words("the folder"));
        }
        for part in ["annotations", "labels"] {
            let path = format!("metadata.{part}");
            for difference in differences_of(&path, &texts_of(present, part), &texts_of(wanted, part)) {
                let _ = writeln!(text, "{name}: {}", difference.in_words("the folder"));
            }
        }
    }
    for name in theirs.keys().filter(|name| !ours.contains_key(*name)) {
        let _ = writeln!(text, "{name}: only the folder has it");
    }
    Ok(text)
}

/// A unified difference between a file and what it should be; nothing when they are equal.
pub fn texts(path: &str, present: &str, wanted: &str) -> String {
    if present == wanted {
        return String::new();
    }
    let difference = TextDiff::from_lines(present, wanted);
    difference.unified_diff().header(path, &format!("{path} (as it should be)")).to_string()
}

fn by_name(definitions: Vec<Value>) -> BTreeMap<String, Value> {
    let name = |definition: &Value| definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    definitions.into_iter().map(|definition| (name(&definition), definition)).collect()
}

fn read_folder(folder: &Path) -> Result<BTreeMap<String, Value>> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut definitions = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if !matches!(extension, Some("yaml" | "yml" | "json")) {
            continue;
        }
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| format!("{} is no YAML", path.display()))?;
        definitions.extend(documents.into_iter().filter(|document| document["kind"] == "CustomResourceDefinition"));
    }
    if definitions.is_empty() {
        bail!("{} has no file with a CustomResourceDefinition", folder.display());
    }
    Ok(by_name(definitions))
}

/// Annotations or labels, but for the generator's.
fn texts_of(definition: &Value, part: &str) -> Value {
    let mut texts = definition["metadata"][part].as_object().cloned().unwrap_or_else(Map::new);
    texts.remove(GENERATOR);
    Value::Object(texts)
}
