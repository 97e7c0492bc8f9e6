//! Checkpoints of models as files, one for each model, in the format of the original agent.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use koord_resource::go_json::{self, DecodeError};
use serde::{Deserialize, Serialize};

use super::histogram::HistogramError;

/// A model as it stands in its file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The pod, or the item of the node, that the model is of.
    #[serde(rename = "UID", default)]
    pub uid: String,
    #[serde(rename = "CPU", default)]
    pub cpu: Option<HistogramCheckpoint>,
    #[serde(rename = "Memory", default)]
    pub memory: Option<HistogramCheckpoint>,
    #[serde(rename = "LastUpdated", default, with = "time")]
    pub last_updated: Option<Timestamp>,
}

/// A histogram in a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HistogramCheckpoint {
    /// When a value has the weight 1.
    #[serde(rename = "referenceTimestamp", default, with = "time")]
    pub reference: Option<Timestamp>,
    /// Weights of buckets relative to each other.
    #[serde(rename = "bucketWeights", default, with = "buckets", skip_serializing_if = "BTreeMap::is_empty")]
    pub bucket_weights: BTreeMap<i64, u32>,
    /// The sum of the weights themselves.
    #[serde(rename = "totalWeight", default, skip_serializing_if = "is_zero")]
    pub total_weight: f64,
}

/// The folder of checkpoints.
#[derive(Clone, Debug)]
pub struct CheckpointFolder {
    path: PathBuf,
}

/// Why a checkpoint was not read, written or removed.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("{path}: {source}; models begin anew after a restart while checkpoints cannot be written")]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} is removed: it is no checkpoint: {source}")]
    Json {
        path: PathBuf,
        #[source]
        source: DecodeError,
    },
    #[error("{path} is removed: {resource}: {source}")]
    Histogram {
        path: PathBuf,
        /// `CPU` or `Memory`.
        resource: &'static str,
        #[source]
        source: HistogramError,
    },
    #[error("{uid:?} cannot be the name of a checkpoint file")]
    Name { uid: String },
}

/// The suffix of files that are being written.
const TEMPORARY: &str = ".tmp";

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

impl CheckpointFolder {
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Reads all checkpoints by the name of their file, which is the uid. What was being written when the agent ended, and what is no checkpoint, is removed.
    /// A folder that is not there has none.
    pub fn read_all(&self) -> (Vec<(String, Checkpoint)>, Vec<CheckpointError>) {
        let (mut checkpoints, mut errors) = (Vec::new(), Vec::new());
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(source) if source.kind() == io::ErrorKind::NotFound => return (checkpoints, errors),
            Err(source) => return (checkpoints, vec![CheckpointError::Io { path: self.path.clone(), source }]),
        };
        let files = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
        let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        for name in names {
            let path = self.path.join(&name);
            if name.ends_with(TEMPORARY) {
                errors.extend(remove(&path).err());
                continue;
            }
            match koord_koordlet_system::read(&path) {
                Err(source) => errors.push(CheckpointError::Io { path, source }),
                Ok(text) => match go_json::from_str(&String::from_utf8_lossy(&text)) {
                    Ok(checkpoint) => checkpoints.push((name, checkpoint)),
                    Err(source) => {
                        errors.extend(remove(&path).err());
                        errors.push(CheckpointError::Json { path, source });
                    }
                },
            }
        }
        (checkpoints, errors)
    }

    /// Writes a checkpoint to a file beside, and renames it: what was there before stays whole.
    ///
    /// # Errors
    ///
    /// The uid is no name of a file, or the file cannot be written.
    pub fn write(&self, uid: &str, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let path = self.file(uid)?;
        let beside = self.path.join(format!("{uid}{TEMPORARY}"));
        let text = serde_json::to_vec(checkpoint).map_err(io::Error::from);
        let written = text.and_then(|text| fs::write(&beside, text)).and_then(|()| fs::rename(&beside, &path));
        written.map_err(|source| {
            // What is left of it would be removed at the next start, too.
            let _ = fs::remove_file(&beside);
            CheckpointError::Io { path, source }
        })
    }

    /// Removes a checkpoint; one that is not there is no error.
    ///
    /// # Errors
    ///
    /// The file cannot be removed.
    pub fn remove(&self, uid: &str) -> Result<(), CheckpointError> {
        remove(&self.file(uid)?)
    }

    pub(super) fn file(&self, uid: &str) -> Result<PathBuf, CheckpointError> {
        if uid.is_empty() || uid.starts_with('.') || uid.contains(['/', '\0']) || uid.ends_with(TEMPORARY) {
            return Err(CheckpointError::Name { uid: uid.to_owned() });
        }
        Ok(self.path.join(uid))
    }
}

fn remove(path: &Path) -> Result<(), CheckpointError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(CheckpointError::Io { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Times of whole seconds; `null` is no time, and so is the beginning of year 1, as the original writes it.
mod time {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde hands out references")]
    pub(super) fn serialize<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
        let time = Option::<Timestamp>::deserialize(deserializer)?;
        Ok(time.filter(|time| time.as_second() > -super::super::histogram::YEAR_1_SECONDS))
    }
}

/// Numbers of buckets, which are texts in JSON.
mod buckets {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(weights: &BTreeMap<i64, u32>, serializer: S) -> Result<S::Ok, S::Error> {
        weights.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<i64, u32>, D::Error> {
        let weights = Option::<BTreeMap<String, u32>>::deserialize(deserializer)?.unwrap_or_default();
        let number = |(bucket, weight): (String, u32)| {
            let number =
                bucket.parse().map_err(|_| D::Error::custom(format!("{bucket:?} is no number of a bucket")))?;
            Ok((number, weight))
        };
        weights.into_iter().map(number).collect()
    }
}
