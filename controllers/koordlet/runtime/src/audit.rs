//! The audit: what the agent did to the node, as lines of JSON in files of bounded size, and pages of them, newest first.

mod pages;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use koord_core::clock::Moment;
use serde::Serialize;

pub use self::pages::{Page, PageError};
use self::pages::{PageLimits, Readers};

/// Something that the agent did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    pub created_at: String,
    #[serde(rename = "type")]
    pub type_: Subject,
    /// 0 is most important. It decides what is kept and is not part of what is written, as in files of the original.
    #[serde(skip)]
    pub level: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub container: String,
    pub reason: &'static str,
    pub message: String,
}

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    Node,
    Pod,
    Group,
    Unknown,
}

/// How events are kept.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    pub folder: PathBuf,
    /// Events of higher levels are not kept; 0 keeps all.
    pub verbosity: u32,
    pub bytes_max: u64,
    pub readers_max: usize,
    /// Most events on a page.
    pub page_max: usize,
}

/// The files of the audit.
#[derive(Debug)]
pub struct AuditLog {
    settings: AuditSettings,
    active: Option<Active>,
    readers: Readers,
    /// Why nothing can be written.
    fault: Option<String>,
    /// When writing is tried again.
    retry: Option<Moment>,
}

#[derive(Debug)]
struct Active {
    file: File,
    bytes: u64,
    /// Lines that are not written yet.
    pending: Vec<u8>,
    flush: Option<Moment>,
}

/// A file that is longer gets a name of its own.
const FILE_BYTES_MAX: u64 = 2 << 20;
const FLUSH_AFTER: Duration = Duration::from_secs(5);
const RETRY_AFTER: Duration = Duration::from_mins(1);
/// Lines that wait for more than this are written at once.
const PENDING_BYTES_MAX: usize = 64 << 10;
const ACTIVE: &str = "audit.log";

impl AuditEvent {
    /// An event about the node or a group of its cgroups.
    pub fn of(type_: Subject, level: u32, name: &str, reason: &'static str, message: String, at: Timestamp) -> Self {
        Self {
            created_at: at.to_string(),
            type_,
            level,
            namespace: String::new(),
            name: name.to_owned(),
            container: String::new(),
            reason,
            message,
        }
    }
}

impl AuditLog {
    /// An audit in a folder, which is made when the first event comes.
    pub fn new(settings: AuditSettings) -> Self {
        let AuditSettings { readers_max, page_max, .. } = settings;
        let readers = Readers::new(PageLimits { readers_max, page_max });
        Self { settings, active: None, readers, fault: None, retry: None }
    }

    /// Keeps an event, unless it is of too high a level.
    pub fn record(&mut self, event: &AuditEvent, now: Moment, at: Timestamp) {
        let AuditSettings { verbosity, .. } = self.settings;
        if verbosity != 0 && event.level > verbosity {
            return;
        }
        if let Err(error) = self.append(event, now, at) {
            self.fail(&error, now);
        }
    }

    /// Writes what waits, when it has waited long enough.
    pub fn tick(&mut self, now: Moment) {
        if self.active.as_ref().and_then(|active| active.flush).is_some_and(|flush| flush <= now)
            && let Err(error) = self.flush()
        {
            self.fail(&error, now);
        }
        self.readers.forget_old(now);
    }

    /// Why events are not kept; `None` when they are.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// A page of events, newest first: the first one, or the one that follows the page with this token. `token` makes the token of the next page.
    ///
    /// # Errors
    ///
    /// The token is not known, or the page too large.
    pub fn page(
        &mut self,
        after: Option<&str>,
        size: Option<usize>,
        now: Moment,
        token: impl FnOnce() -> String,
    ) -> Result<Page, PageError> {
        // What waits is part of the first page; a full disk is reported elsewhere.
        if let Err(error) = self.flush() {
            self.fail(&error, now);
        }
        let files = || self.files_newest_first().iter().filter_map(|path| File::open(path).ok()).collect();
        let files = if after.is_none() { files() } else { Vec::new() };
        self.readers.page(after, size, files, now, token)
    }

    fn append(&mut self, event: &AuditEvent, now: Moment, at: Timestamp) -> io::Result<()> {
        if self.retry.is_some_and(|retry| retry > now) {
            return Ok(());
        }
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let active = match &mut self.active {
            Some(active) => active,
            none => none.insert(Active::open(&self.settings.folder)?),
        };
        active.bytes += line.len() as u64;
        active.pending.extend(line);
        active.flush.get_or_insert(now + FLUSH_AFTER);
        let is_full = active.bytes >= FILE_BYTES_MAX;
        if is_full || active.pending.len() >= PENDING_BYTES_MAX {
            self.flush()?;
        }
        if is_full {
            self.rotate(at)?;
        }
        self.fault = None;
        self.retry = None;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(active) = &mut self.active else { return Ok(()) };
        let pending = std::mem::take(&mut active.pending);
        active.flush = None;
        active.file.write_all(&pending)
    }

    fn rotate(&mut self, at: Timestamp) -> io::Result<()> {
        self.active = None;
        let folder = &self.settings.folder;
        let time = at.strftime("%Y-%m-%d-%H-%M-%S").to_string();
        // Numbers of the same second grow, also when files of it were removed.
        let same_second = self.files_newest_first().iter().map(|path| order(path)).find(|(of, _)| of.ends_with(&time));
        let number = same_second.map_or(0, |(_, number)| number + 1);
        fs::rename(folder.join(ACTIVE), folder.join(format!("audit-{time}-{number}.log")))?;
        let kept = usize::try_from(self.settings.bytes_max / FILE_BYTES_MAX).unwrap_or(usize::MAX).max(1);
        for path in self.files_newest_first().iter().skip(kept.saturating_sub(1)) {
            fs::remove_file(path)?;
        }
        Ok(())
    }

    /// The active file, then the others by the time in their names.
    fn files_newest_first(&self) -> Vec<PathBuf> {
        let folder = &self.settings.folder;
        let mut old: Vec<PathBuf> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| is_rotated(path))
            .collect();
        old.sort_by_cached_key(|path| std::cmp::Reverse(order(path)));
        let active = folder.join(ACTIVE);
        let active = active.exists().then_some(active);
        active.into_iter().chain(old).collect()
    }

    fn fail(&mut self, error: &io::Error, now: Moment) {
        let fault = format!("{}: {error}", self.settings.folder.display());
        if self.fault.as_ref() != Some(&fault) {
            tracing::warn!(
                fault,
                "audit events are lost; make room, or set --audit-log-dir to a folder that can be written"
            );
        }
        self.fault = Some(fault);
        self.active = None;
        self.retry = Some(now + RETRY_AFTER);
    }
}

impl Active {
    fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let file = OpenOptions::new().create(true).append(true).open(folder.join(ACTIVE))?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes, pending: Vec::new(), flush: None })
    }
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn is_rotated(path: &Path) -> bool {
    name(path).starts_with("audit-") && path.extension().is_some_and(|extension| extension == "log")
}

/// The time in the name of a file, and its number among those of the same second.
fn order(path: &Path) -> (String, u32) {
    let stem = name(path).trim_end_matches(".log");
    let (time, number) = stem.rsplit_once('-').unwrap_or((stem, ""));
    (time.to_owned(), number.parse().unwrap_or_default())
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        // No receiver is left.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    fn event(number: usize, level: u32) -> AuditEvent {
        AuditEvent::of(
            Subject::Node,
            level,
            "n",
            "Test",
            format!("{number} {}", "x".repeat(100)),
            Timestamp::UNIX_EPOCH,
        )
    }

    fn audit(folder: &Path) -> AuditLog {
        AuditLog::new(AuditSettings {
            folder: folder.to_owned(),
            verbosity: 3,
            bytes_max: 6 << 20,
            readers_max: 4,
            page_max: 2048,
        })
    }

    fn messages(page: &Page) -> Vec<String> {
        page.events
            .iter()
            .map(|event| event["message"].as_str().unwrap().split(' ').next().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn pages_go_from_the_newest_event_to_the_oldest() {
        let folder = tempfile::tempdir().unwrap();
        let mut audit = audit(&folder.path().join("new"));
        for number in 0..5 {
            audit.record(&event(number, 1), at(0), Timestamp::UNIX_EPOCH);
        }
        audit.record(&event(9, 4), at(0), Timestamp::UNIX_EPOCH);
        let first = audit.page(None, Some(2), at(1), || "one".to_owned()).unwrap();
        assert_eq!((messages(&first), first.next.as_deref()), (vec!["4".to_owned(), "3".to_owned()], Some("one")));
        audit.record(&event(5, 1), at(1), Timestamp::UNIX_EPOCH);
        let second = audit.page(Some("one"), Some(100), at(2), || "two".to_owned()).unwrap();
        assert_eq!((messages(&second), second.next), (vec!["2".to_owned(), "1".to_owned(), "0".to_owned()], None));
        assert_eq!(audit.page(Some("one"), None, at(3), String::new).unwrap_err(), PageError::UnknownToken);
        assert_eq!(audit.page(None, Some(5000), at(3), String::new).unwrap_err(), PageError::TooLarge { most: 2048 });
    }

    #[test]
    fn files_are_bounded_and_the_newest_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut audit = audit(folder.path());
        for number in 0..60_000 {
            audit.record(&event(number, 0), at(0), Timestamp::UNIX_EPOCH);
        }
        audit.tick(at(10));
        let files = audit.files_newest_first();
        let bytes: u64 = files.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
        assert!(files.len() == 3 && bytes <= 6 << 20, "{files:?} {bytes}");
        let page = audit.page(None, Some(1), at(11), || "t".to_owned()).unwrap();
        assert_eq!(messages(&page), ["59999"]);
        let mut token = page.next;
        let mut oldest = Vec::new();
        while let Some(after) = token {
            let page = audit.page(Some(&after), Some(2048), at(12), || format!("{after}+")).unwrap();
            oldest = messages(&page);
            token = page.next;
        }
        let oldest: usize = oldest.last().unwrap().parse().unwrap();
        assert!((20_000..50_000).contains(&oldest), "{oldest}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_a_fault_and_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let mut audit = audit(&folder.path().join("file/audit"));
        audit.record(&event(1, 0), at(0), Timestamp::UNIX_EPOCH);
        assert!(audit.fault().is_some_and(|fault| fault.contains("Not a directory")), "{:?}", audit.fault());
        fs::remove_file(folder.path().join("file")).unwrap();
        audit.record(&event(2, 0), at(30), Timestamp::UNIX_EPOCH);
        assert!(audit.fault().is_some());
        audit.record(&event(3, 0), at(61), Timestamp::UNIX_EPOCH);
        assert_eq!(audit.fault(), None);
    }

    #[test]
    fn the_oldest_reader_gives_way_and_an_idle_one_ends() {
        let folder = tempfile::tempdir().unwrap();
        let mut audit = audit(folder.path());
        for number in 0..10 {
            audit.record(&event(number, 0), at(0), Timestamp::UNIX_EPOCH);
        }
        for reader in 0..5 {
            audit.page(None, Some(1), at(reader), || reader.to_string()).unwrap();
        }
        assert_eq!(audit.page(Some("0"), None, at(6), String::new).unwrap_err(), PageError::UnknownToken);
        assert!(audit.page(Some("1"), Some(1), at(6), || "1".to_owned()).is_ok());
        audit.tick(at(1000));
        assert_eq!(audit.page(Some("4"), None, at(1000), String::new).unwrap_err(), PageError::UnknownToken);
    }
}
