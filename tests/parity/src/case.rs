//! Recordings and where they are kept.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

/// One recorded conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The theme, such as `patch`.
    pub group: String,
    /// The name within its group.
    pub name: String,
    pub body: Map<String, Value>,
}

/// Why recordings could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file or folder cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, #[source] io::Error),
    /// The file is not a recording.
    #[error("{0} is not a recording: {1}")]
    Decode(PathBuf, #[source] serde_json::Error),
}

impl Case {
    /// Reads a folder with one folder per group and one file per recording.
    pub fn load_tree(folder: &Path) -> Result<Vec<Case>, LoadError> {
        let mut cases = Vec::new();
        for group in sorted_entries(folder)?.iter().filter(|path| path.is_dir()) {
            for file in sorted_entries(group)?.iter().filter(|path| path.extension().is_some_and(|end| end == "json")) {
                let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                cases.push(Case { group: name(group), name: name(file), body: decode(file)? });
            }
        }
        Ok(cases)
    }

    /// Reads a folder of bundles: one file per group, an object of recordings by name.
    pub fn load_bundles(folder: &Path) -> Result<Vec<Case>, LoadError> {
        let mut cases = Vec::new();
        for file in sorted_entries(folder)? {
            let group = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let bundle: BTreeMap<String, Map<String, Value>> = decode(&file)?;
            cases.extend(bundle.into_iter().map(|(name, body)| Case { group: group.clone(), name, body }));
        }
        Ok(cases)
    }

    /// A text that names the recording in messages.
    pub fn title(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// The steps of one part: `setup`, `steps` or `after`.
    pub(crate) fn part(&self, part: &str) -> &[Value] {
        self.body.get(part).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}

fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let failed = |error| LoadError::Read(folder.to_owned(), error);
    let mut entries = fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    entries.sort();
    Ok(entries)
}

fn decode<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, LoadError> {
    let text = fs::read(file).map_err(|error| LoadError::Read(file.to_owned(), error))?;
    serde_json::from_slice(&text).map_err(|error| LoadError::Decode(file.to_owned(), error))
}
