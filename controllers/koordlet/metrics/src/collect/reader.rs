//! Reading the files of a collector, and what could not be read.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use koord_core::clock::Moment;
use koord_koordlet_system::{KeptFile, ParseError, is_gone};

/// Gives the time. It is asked for with each file that is read, so that a sample carries the time at which it was taken.
pub type Time<'a> = &'a dyn Fn() -> Moment;

/// Whether something is collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It is switched off.
    Off,
    /// All that there is to collect is collected.
    Active,
    /// Some of it, or all, is missing.
    Degraded {
        /// What is missing, with the file.
        reason: Arc<str>,
        /// What can be done about it.
        remedy: &'static str,
    },
}

/// The buffer into which files are read, and what could not be read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
    /// Of the files that failed in the current round, or the last one, the first.
    fault: Option<Fault>,
    /// How many failed in the current round.
    failed: usize,
}

/// A file that cannot be read or is not understood.
#[derive(Debug)]
struct Fault {
    path: PathBuf,
    problem: Problem,
}

/// What is wrong with a file. It holds no memory of its own, so that the same fault of the next round costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    Os(i32),
    Io(io::ErrorKind),
    Text(ParseError),
}

const REMEDY: &str = "check that the file is there, can be read by the agent, and is what a kernel writes";

impl Reader {
    /// A round of samples begins.
    pub(crate) fn begin(&mut self) {
        self.failed = 0;
    }

    /// The round has ended: a fault of an earlier round that did not happen again is over.
    pub(crate) fn end(&mut self) {
        if self.failed == 0 {
            self.fault = None;
        }
    }

    /// Reads a file that must be there; `None` when it cannot be read or understood.
    pub(crate) fn required<T>(
        &mut self,
        file: &mut KeptFile,
        parse: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    ) -> Option<T> {
        let problem = match file.read(&mut self.buffer) {
            Ok(text) => match parse(text) {
                Ok(value) => return Some(value),
                Err(error) => Problem::Text(error),
            },
            Err(error) => error.raw_os_error().map_or(Problem::Io(error.kind()), Problem::Os),
        };
        self.note(file.path(), problem);
        None
    }

    /// The same, of a file that may be gone: its cgroup has ended, or is not there yet.
    pub(crate) fn of_cgroup<T>(
        &mut self,
        file: &mut KeptFile,
        parse: impl FnOnce(&[u8]) -> Result<T, ParseError>,
    ) -> Option<T> {
        let problem = match file.read(&mut self.buffer) {
            Ok(text) => match parse(text) {
                Ok(value) => return Some(value),
                Err(error) => Problem::Text(error),
            },
            Err(error) if is_gone(&error) => return None,
            Err(error) => error.raw_os_error().map_or(Problem::Io(error.kind()), Problem::Os),
        };
        self.note(file.path(), problem);
        None
    }

    fn note(&mut self, path: &Path, problem: Problem) {
        self.failed += 1;
        if self.failed > 1 {
            return;
        }
        match &mut self.fault {
            Some(fault) if fault.path == path => fault.problem = problem,
            fault => *fault = Some(Fault { path: path.to_owned(), problem }),
        }
    }

    /// Active, or degraded by the first file that failed in the last round.
    pub(crate) fn activity(&self) -> Activity {
        match &self.fault {
            None => Activity::Active,
            Some(fault) => {
                let others =
                    if self.failed > 1 { format!(", and {} other files", self.failed - 1) } else { String::new() };
                let reason = format!("{}: {}{others}", fault.path.display(), fault.problem);
                Activity::Degraded { reason: reason.into(), remedy: REMEDY }
            }
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Os(code) => write!(f, "{}", io::Error::from_raw_os_error(*code)),
            Self::Io(kind) => write!(f, "{kind}"),
            Self::Text(error) => write!(f, "{error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use koord_koordlet_system::parse_counter;

    use super::*;

    #[test]
    fn a_file_that_is_wrong_is_named_until_it_is_right_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpuacct.usage");
        let (mut reader, mut file) = (Reader::default(), KeptFile::new(path.clone()));
        let mut round = |reader: &mut Reader| {
            reader.begin();
            let value = reader.of_cgroup(&mut file, |text| parse_counter("cpuacct.usage", text));
            reader.end();
            value
        };
        assert_eq!((round(&mut reader), reader.activity()), (None, Activity::Active), "not there yet");
        fs::write(&path, "many\n").unwrap();
        assert_eq!(round(&mut reader), None);
        let Activity::Degraded { reason, .. } = reader.activity() else { panic!("not degraded") };
        assert!(reason.starts_with(&*path.to_string_lossy()) && reason.contains("many"), "{reason}");
        fs::write(&path, "12\n").unwrap();
        assert_eq!((round(&mut reader), reader.activity()), (Some(12), Activity::Active));
        assert_eq!(reader.required(&mut KeptFile::new(folder.path().join("missing")), |_| Ok(())), None);
        assert!(matches!(reader.activity(), Activity::Degraded { .. }));
    }
}
