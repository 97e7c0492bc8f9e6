//! Every object of ours in the recordings of the original's manager, where they are.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::kinds::{assert_good, encoded_again};

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("KOORD_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    [root.join("tests/data/manager"), shared.join("corpus/manager/cases")]
        .into_iter()
        .filter(|it| it.exists())
        .collect()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "json" || extension == "jsonl") {
            found.push(path);
        }
    }
}

/// A file holds one recording, several by name, or one per line.
fn cases(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "jsonl") {
        return text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    }
    match serde_json::from_str(&text).unwrap() {
        Value::Object(cases) if !cases.contains_key("recorded") => cases.into_iter().map(|(_, case)| case).collect(),
        case => vec![case],
    }
}

/// The places of a recording where objects stand that an API server accepted.
fn objects(case: &Value) -> Vec<&Value> {
    let list = |value: &'static str| case[value].as_array().into_iter().flatten();
    let then = list("then").filter_map(|step| step.get("object"));
    list("given").chain(then).chain(list("recorded")).filter(|object| object["absent"] != true).collect()
}

/// Stands in for the times that recordings leave open.
fn with_times(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("$now") => "2024-01-01T00:00:00Z".into(),
        Value::Array(items) => items.iter().map(with_times).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), with_times(value))).collect::<serde_json::Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

#[test]
fn every_recorded_object_survives_and_passes_its_schema() {
    let mut paths = Vec::new();
    for folder in folders() {
        files(&folder, &mut paths);
    }
    let mut seen = 0;
    for path in paths {
        for case in cases(&path) {
            for object in objects(&case) {
                let object = with_times(object);
                if encoded_again(&object).is_some() {
                    assert_good(&path.display().to_string(), &object);
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 50, "only {seen} objects: where are the recordings?");
}
