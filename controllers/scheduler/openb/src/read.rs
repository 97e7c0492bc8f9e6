//! The lines of the files. Columns are found by their names, because not every file has all of them.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use csv::{ErrorKind, Reader, StringRecord};
use serde::{Deserialize, de::DeserializeOwned};

use super::Request;

/// A node of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    /// CPU, in thousandths.
    pub cpu_milli: i64,
    /// Memory, in MiB.
    pub memory_mib: i64,
    /// How many GPUs.
    pub gpus: i64,
    pub model: String,
}

/// A pod of a trace. Times are seconds since the trace begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    pub request: Request,
    /// When it came.
    pub created_s: u64,
    /// How long it ran; none where the file does not say it.
    pub lasted_s: Option<u64>,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not there, or may not be read.
    #[error("{} cannot be read", file.display())]
    File {
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line of it is not what it should be.
    #[error("{}:{line}: {problem}", file.display())]
    Line {
        file: PathBuf,
        /// Its line, from 1.
        line: u64,
        /// What is wrong there.
        problem: String,
    },
}

/// What a line of a file is read as.
pub trait Line: Sized {
    #[doc(hidden)]
    type Columns: DeserializeOwned;
    #[doc(hidden)]
    fn of(columns: Self::Columns) -> Result<Self, String>;
}

#[derive(Deserialize)]
#[doc(hidden)]
pub struct NodeColumns {
    #[serde(default)]
    sn: String,
    cpu_milli: i64,
    memory_mib: i64,
    gpu: i64,
    model: String,
}

#[derive(Deserialize)]
#[doc(hidden)]
pub struct PodColumns {
    #[serde(default)]
    name: String,
    cpu_milli: i64,
    memory_mib: i64,
    num_gpu: i64,
    #[serde(default)]
    gpu_milli: Option<i64>,
    #[serde(default)]
    gpu_spec: String,
    #[serde(default)]
    creation_time: u64,
    #[serde(default)]
    deletion_time: Option<u64>,
    #[serde(default)]
    scheduled_time: Option<u64>,
}

impl Line for Node {
    type Columns = NodeColumns;

    fn of(columns: NodeColumns) -> Result<Self, String> {
        let NodeColumns { sn: name, cpu_milli, memory_mib, gpu: gpus, model } = columns;
        not_negative([("cpu_milli", cpu_milli), ("memory_mib", memory_mib), ("gpu", gpus)])?;
        Ok(Self { name, cpu_milli, memory_mib, gpus, model })
    }
}

impl Line for Pod {
    type Columns = PodColumns;

    fn of(columns: PodColumns) -> Result<Self, String> {
        let PodColumns { name, cpu_milli, memory_mib, num_gpu: gpus, gpu_spec, creation_time, .. } = columns;
        let each_milli = if gpus == 0 { 0 } else { columns.gpu_milli.unwrap_or(1000) };
        not_negative([
            ("cpu_milli", cpu_milli),
            ("memory_mib", memory_mib),
            ("num_gpu", gpus),
            ("gpu_milli", each_milli),
        ])?;
        if each_milli > 1000 {
            return Err(format!("gpu_milli is the share of one GPU and at most 1000, not {each_milli}"));
        }
        let models = if gpus == 0 { "" } else { &gpu_spec };
        let models = models.split('|').filter(|model| !model.is_empty()).map(str::to_owned).collect();
        let began = columns.scheduled_time.unwrap_or(creation_time).max(creation_time);
        let lasted_s = columns.deletion_time.map(|end| end.saturating_sub(began));
        let request = Request { cpu_milli, memory_mib, gpus, each_milli, models };
        Ok(Self { name, request, created_s: creation_time, lasted_s })
    }
}

fn not_negative<const N: usize>(values: [(&str, i64); N]) -> Result<(), String> {
    match values.iter().find(|(_, value)| *value < 0) {
        Some((name, value)) => Err(format!("{name} must be 0 or more, not {value}")),
        None => Ok(()),
    }
}

/// The lines of a file.
pub fn read<T: Line>(file: &Path) -> Result<Vec<T>, ReadError> {
    let opened = File::open(file).map_err(|source| ReadError::File { file: file.to_owned(), source })?;
    let mut reader = Reader::from_reader(opened);
    let headers = reader.headers().cloned();
    let headers = headers.map_err(|error| broken(file, 1, error, &StringRecord::new()))?;
    let mut lines = Vec::new();
    let mut record = StringRecord::new();
    loop {
        let line = reader.position().line();
        match reader.read_record(&mut record) {
            Ok(false) => return Ok(lines),
            Ok(true) => {}
            Err(error) => return Err(broken(file, line, error, &headers)),
        }
        let line = record.position().map_or(line, csv::Position::line);
        let columns = record.deserialize(Some(&headers)).map_err(|error| broken(file, line, error, &headers))?;
        let wrong = |problem| ReadError::Line { file: file.to_owned(), line, problem };
        lines.push(T::of(columns).map_err(wrong)?);
    }
}

/// What is wrong with a line, in the words of its columns.
fn broken(file: &Path, line: u64, error: csv::Error, headers: &StringRecord) -> ReadError {
    let problem = match error.into_kind() {
        ErrorKind::Io(source) => return ReadError::File { file: file.to_owned(), source },
        ErrorKind::Deserialize { err, .. } => {
            match err.field().and_then(|field| headers.get(usize::try_from(field).ok()?)) {
                Some(column) => format!("{column}: {}", err.kind()),
                None => err.kind().to_string(),
            }
        }
        ErrorKind::UnequalLengths { expected_len, len, .. } => format!("{len} columns, not {expected_len}"),
        ErrorKind::Utf8 { .. } => "no text in UTF-8".to_owned(),
        _ => "no line of CSV".to_owned(),
    };
    ReadError::Line { file: file.to_owned(), line, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";

    fn pods(lines: &str) -> Result<Vec<Pod>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pods.csv");
        std::fs::write(&file, format!("{PODS}{lines}")).unwrap();
        read(&file).map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
    }

    #[test]
    fn a_line_is_a_pod_with_its_times() {
        let read = pods("a,6000,12288,2,460,V100M16|T4,LS,Running,10,110,20\nb,1,1,0,0,T4,BE,Pending,7,,\n").unwrap();
        let models = vec!["V100M16".to_owned(), "T4".to_owned()];
        let request = Request { cpu_milli: 6000, memory_mib: 12288, gpus: 2, each_milli: 460, models };
        let of = |name: &str, request, created_s, lasted_s| Pod { name: name.to_owned(), request, created_s, lasted_s };
        assert_eq!(read[0], of("a", request, 10, Some(90)));
        let without = Request { cpu_milli: 1, memory_mib: 1, ..Request::default() };
        assert_eq!(read[1], of("b", without, 7, None), "models say nothing where no GPU is requested");
    }

    #[test]
    fn what_is_wrong_is_told_with_file_and_line() {
        let good = "a,1,1,0,0,,LS,Running,0,1,0\n";
        for (line, says) in [
            ("b,much,1,0,0,,LS,Running,0,1,0\n", "pods.csv:3: cpu_milli: invalid digit found in string"),
            ("b,1,1\n", "pods.csv:3: 3 columns, not 11"),
            ("b,1,-1,0,0,,LS,Running,0,1,0\n", "pods.csv:3: memory_mib must be 0 or more, not -1"),
            (
                "b,1,1,1,1001,,LS,Running,0,1,0\n",
                "pods.csv:3: gpu_milli is the share of one GPU and at most 1000, not 1001",
            ),
        ] {
            assert_eq!(pods(&format!("{good}{line}")).unwrap_err(), says);
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes.csv");
        std::fs::write(&file, "sn,cpu_milli\nn,1\n").unwrap();
        let error = read::<Node>(&file).unwrap_err().to_string();
        assert!(error.ends_with("nodes.csv:2: missing field `memory_mib`"), "{error}");
        let error = read::<Node>(&folder.path().join("none.csv")).unwrap_err().to_string();
        assert!(error.ends_with("none.csv cannot be read"), "{error}");
    }
}
