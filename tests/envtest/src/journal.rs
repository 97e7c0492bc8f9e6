//! A data directory: objects survive restarts and `kill -9`.
//!
//! One thread owns the file and writes in groups: whatever came while the last group was being synced is the next. A
//! client is answered when its group is on disk. When the disk is full the group stays in memory and is tried again; until
//! it is written, further writes are refused.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tokio::sync::watch;

use crate::status::ApiError;

/// Key: shelf, NUL, key. Value: `apiVersion`, NUL, revision in decimal, NUL, tail.
const OBJECTS: TableDefinition<'static, &str, &[u8]> = TableDefinition::new("objects");
/// Key `revision`: the newest revision.
const META: TableDefinition<'static, &str, u64> = TableDefinition::new("meta");
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// One change to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the shelf.
    pub shelf: String,
    /// Key of the object.
    pub key: String,
    /// The revision of the change.
    pub revision: u64,
    /// The object's `apiVersion` and tail; none when it is gone.
    pub object: Option<(Arc<str>, Bytes)>,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The folder cannot be made.
    #[error("cannot make the data directory {path}: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another server has the file open.
    #[error("{0} is in use by another server; end that, or name another folder with --data-dir")]
    InUse(PathBuf),
    /// The file cannot be opened or read.
    #[error("cannot use {path}: {source}; make room or mend it, or name another folder with --data-dir")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: redb::Error,
    },
    /// The thread that writes cannot be started.
    #[error("cannot start the thread that writes the data directory: {0}")]
    Thread(std::io::Error),
}

#[derive(Clone, Debug, Default)]
struct Progress {
    /// Everything up to this ticket is on disk.
    written: u64,
    /// What the last attempt failed with.
    failure: Option<String>,
}

#[derive(Debug, Default)]
struct Queue {
    entries: Vec<Entry>,
    /// The ticket of the newest entries.
    ticket: u64,
    is_closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    progress: watch::Sender<Progress>,
}

/// The writer of a data directory.
pub struct Journal {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// What a data directory holds.
#[derive(Debug, Default)]
pub struct Contents {
    /// The newest revision.
    pub revision: u64,
    /// All objects.
    pub entries: Vec<Entry>,
}

impl Journal {
    /// Opens or makes the file in `folder` and reads it.
    pub fn open(folder: &Path) -> Result<(Self, Contents), JournalError> {
        std::fs::create_dir_all(folder).map_err(|source| JournalError::Folder { path: folder.to_owned(), source })?;
        let path = folder.join("objects.redb");
        let fails = |source| match source {
            redb::Error::DatabaseAlreadyOpen => JournalError::InUse(path.clone()),
            source => JournalError::File { path: path.clone(), source },
        };
        let database = Database::create(&path).map_err(|error| fails(error.into()))?;
        let contents = read(&database).map_err(fails)?;
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            wake: Condvar::new(),
            progress: watch::channel(Progress::default()).0,
        });
        let writer = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(&database))
            .map_err(JournalError::Thread)?;
        Ok((Self { shared, thread: Some(thread) }, contents))
    }

    /// Queues changes.
    pub(crate) fn append(&self, entries: Vec<Entry>) {
        let mut queue = self.shared.queue.lock();
        queue.entries.extend(entries);
        queue.ticket += 1;
        self.shared.wake.notify_one();
    }

    /// Whether the disk takes no more at the moment.
    pub(crate) fn refusal(&self) -> Option<ApiError> {
        self.shared.progress.borrow().failure.as_deref().map(refusal)
    }

    /// Waits until everything queued so far is on disk.
    pub(crate) async fn flushed(&self) -> Result<(), ApiError> {
        let ticket = self.shared.queue.lock().ticket;
        let mut progress = self.shared.progress.subscribe();
        let seen = progress.wait_for(|progress| progress.written >= ticket || progress.failure.is_some()).await;
        match seen {
            Ok(progress) if progress.written >= ticket => Ok(()),
            Ok(progress) => Err(refusal(progress.failure.as_deref().unwrap_or_default())),
            Err(_) => Err(refusal("the writer has stopped")),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.shared.queue.lock().is_closed = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // The writer finishes its last group; a panic of it is already reported by the standard hook.
            let _ = thread.join();
        }
    }
}

fn refusal(why: &str) -> ApiError {
    ApiError::new(
        507,
        "InsufficientStorage",
        format!(
            "the data directory cannot be written: {why}; free space there and try again, nothing that was stored is lost"
        ),
    )
}

impl Shared {
    fn run(&self, database: &Database) {
        loop {
            let (entries, ticket) = {
                let mut queue = self.queue.lock();
                while queue.entries.is_empty() {
                    if queue.is_closed {
                        return;
                    }
                    self.wake.wait(&mut queue);
                }
                (std::mem::take(&mut queue.entries), queue.ticket)
            };
            while let Err(error) = write(database, &entries) {
                tracing::error!(%error, "the data directory cannot be written; trying again");
                self.progress.send_modify(|progress| progress.failure = Some(error.to_string()));
                let mut queue = self.queue.lock();
                if queue.is_closed {
                    return;
                }
                self.wake.wait_for(&mut queue, RETRY_EVERY);
            }
            self.progress.send_replace(Progress { written: ticket, failure: None });
        }
    }
}

fn write(database: &Database, entries: &[Entry]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        let mut meta = transaction.open_table(META)?;
        for entry in entries {
            let key = format!("{}\0{}", entry.shelf, entry.key);
            if let Some((version, tail)) = &entry.object {
                let mut value = format!("{version}\0{}\0", entry.revision).into_bytes();
                value.extend_from_slice(tail);
                objects.insert(key.as_str(), value.as_slice())?;
            } else {
                objects.remove(key.as_str())?;
            }
        }
        if let Some(newest) = entries.iter().map(|entry| entry.revision).max() {
            meta.insert("revision", newest)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn read(database: &Database) -> Result<Contents, redb::Error> {
    let mut contents = Contents::default();
    // The tables exist from the first start on.
    write(database, &[])?;
    let transaction = database.begin_read()?;
    if let Some(revision) = transaction.open_table(META)?.get("revision")? {
        contents.revision = revision.value();
    }
    for row in transaction.open_table(OBJECTS)?.iter()? {
        let (key, value) = row?;
        let mut parts = value.value().splitn(3, |byte| *byte == 0);
        let text = |part: Option<&[u8]>| String::from_utf8_lossy(part.unwrap_or_default()).into_owned();
        let (version, revision) = (text(parts.next()), text(parts.next()));
        let tail = Bytes::copy_from_slice(parts.next().unwrap_or_default());
        let Some((shelf, key)) = key.value().split_once('\0') else { continue };
        contents.entries.push(Entry {
            shelf: shelf.to_owned(),
            key: key.to_owned(),
            revision: revision.parse().unwrap_or_default(),
            object: Some((Arc::from(version), tail)),
        });
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, revision: u64, tail: Option<&str>) -> Entry {
        let object = tail.map(|tail| (Arc::from("v1"), Bytes::copy_from_slice(tail.as_bytes())));
        Entry { shelf: "/configmaps".to_owned(), key: key.to_owned(), revision, object }
    }

    #[tokio::test]
    async fn what_was_flushed_is_there_again() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, contents) = Journal::open(folder.path()).unwrap();
        assert_eq!(contents.entries, []);
        journal.append(vec![entry("n/a", 2, Some("\"metadata\":{}}")), entry("n/b", 3, Some("x"))]);
        journal.append(vec![entry("n/b", 4, None)]);
        journal.flushed().await.unwrap();
        drop(journal);
        let (_, contents) = Journal::open(folder.path()).unwrap();
        assert_eq!((contents.revision, contents.entries), (4, vec![entry("n/a", 2, Some("\"metadata\":{}}"))]));
    }

    #[test]
    fn two_servers_cannot_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (_journal, _) = Journal::open(folder.path()).unwrap();
        let Err(error) = Journal::open(folder.path()) else { panic!("the file is locked") };
        assert!(error.to_string().contains("is in use by another server"));
    }
}
