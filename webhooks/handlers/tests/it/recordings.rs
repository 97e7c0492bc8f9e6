//! Recordings of the original's answers: the shared folder where it exists, and our own selection always.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

/// One recorded review.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Recording {
    pub(crate) group: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) feature_gates: String,
    #[serde(default)]
    pub(crate) flags: Vec<String>,
    #[serde(default)]
    pub(crate) given: Vec<Value>,
    #[serde(default)]
    pub(crate) prior: Vec<Value>,
    #[serde(default)]
    pub(crate) review: Value,
    #[serde(default)]
    pub(crate) raw: Value,
    #[serde(default)]
    pub(crate) debug_path: Option<String>,
    #[serde(default)]
    pub(crate) debug_keep: Vec<String>,
    pub(crate) recorded: Value,
}

impl Recording {
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }
}

/// The groups that this crate answers.
pub(crate) const GROUPS: [&str; 8] =
    ["configmap", "elasticquota", "node", "pod-binding", "pod-mutate", "pod-validate", "protocol", "reservation"];

/// The shared recordings; none in a clone without them.
pub(crate) fn shared() -> Vec<Recording> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let home = env::var_os("KOORD_SHARED").map_or(beside, PathBuf::from).join("corpus/manager/cases");
    GROUPS.iter().flat_map(|group| folder(&home.join(group))).collect()
}

fn folder(path: &Path) -> Vec<Recording> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().filter_map(|file| read(&fs::read_to_string(file).unwrap())).collect()
}

/// Our selection: one file per group, recordings by name.
pub(crate) fn own() -> Vec<Recording> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/manager");
    let read = |group: &str| {
        let text = fs::read_to_string(home.join(format!("{group}.json"))).unwrap();
        let bundle: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
        bundle.into_values().map(|recording| serde_json::from_value(recording).unwrap()).collect::<Vec<Recording>>()
    };
    GROUPS.iter().flat_map(|group| read(group)).collect()
}

/// Recordings of controllers have another shape.
fn read(text: &str) -> Option<Recording> {
    let value: Value = serde_json::from_str(text).unwrap();
    (value["kind"] == "webhook").then(|| serde_json::from_value(value).unwrap())
}
