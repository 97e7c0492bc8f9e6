//! A data directory: objects survive restarts and `kill -9`.
//!
//! One thread owns the file and writes in groups: whatever came while the last group was being synced is the next. Readers
//! see a change, and its writer is answered, when its group is on disk. A group that the disk does not take is undone in
//! memory, with all that was built on it, and its writers are refused; so is every further write until the disk takes
//! some again.

mod disk;

use std::{
    fs::{DirBuilder, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

use self::disk::Disk;
use crate::status::ApiError;

const RETRY_EVERY: Duration = Duration::from_secs(1);

/// One change to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the collection.
    pub collection: String,
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
    #[error("cannot use {path}: {source}; make room or repair it, or name another folder with --data-dir")]
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

/// What a data directory holds.
#[derive(Debug, Default)]
pub struct Contents {
    /// The newest revision.
    pub revision: u64,
    /// All objects.
    pub entries: Vec<Entry>,
}

/// The objects in memory, as the writer of the disk speaks to them.
pub(crate) trait Memory: Send + Sync {
    /// Everything up to `revision` is on disk.
    fn show(&self, revision: u64);
    /// Undoes what is not on disk and refuses what is queued, in one step. Gives the entries that put the disk back, should
    /// it have kept a part.
    fn undo(&self, why: &Arc<str>) -> Vec<Entry>;
}

/// What became of a group: nothing yet, written, or refused with the reason.
type Fate = Option<Result<(), Arc<str>>>;

/// A change on its way to the disk.
#[must_use]
#[derive(Debug)]
pub(crate) struct Receipt(watch::Receiver<Fate>);

#[derive(Debug, Default)]
struct Queue {
    entries: Vec<Entry>,
    /// Decides the fate of `entries`.
    fate: watch::Sender<Fate>,
    /// Fate of the group that is being written.
    in_flight: Option<watch::Receiver<Fate>>,
    /// Why the disk takes nothing at the moment.
    failure: Option<Arc<str>>,
    is_closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    memory: OnceLock<Weak<dyn Memory>>,
}

/// The writer of a data directory.
pub struct Journal {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

// === impl Receipt ===

impl Receipt {
    /// Waits until the change is on disk, or is undone.
    pub(crate) async fn settled(mut self) -> Result<(), ApiError> {
        let fate = self.0.wait_for(Option::is_some).await;
        match fate.as_deref() {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(Some(Err(why))) => Err(refusal(why)),
            _ => Err(refusal("the writer has stopped")),
        }
    }
}

/// Makes an empty file if there is none, and takes it from everybody but its owner.
fn private(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

// === impl Journal ===

impl Journal {
    /// Opens or makes the file in `folder` and reads it. Secrets are among the objects: nobody else may read it.
    pub fn open(folder: &Path) -> Result<(Self, Contents), JournalError> {
        let path = folder.join("objects.redb");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder).and_then(|()| private(&path));
        made.map_err(|source| JournalError::Folder { path: folder.to_owned(), source })?;
        let file = path.clone();
        Self::open_with(&path, Box::new(move || redb::Database::create(&file)))
    }

    fn open_with(path: &Path, open: disk::Open) -> Result<(Self, Contents), JournalError> {
        let fails = |source| match source {
            redb::Error::DatabaseAlreadyOpen => JournalError::InUse(path.to_owned()),
            source => JournalError::File { path: path.to_owned(), source },
        };
        let (disk, contents) = Disk::open(open).map_err(fails)?;
        let shared = Arc::<Shared>::default();
        let writer = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(disk))
            .map_err(JournalError::Thread)?;
        Ok((Self { shared, thread: Some(thread) }, contents))
    }

    /// Says whose changes these are; nothing is written before.
    pub(crate) fn serve(&self, memory: Weak<dyn Memory>) {
        // A journal serves one memory; a second has nothing to ask for.
        let _ = self.shared.memory.set(memory);
        self.shared.wake.notify_one();
    }

    /// Queues changes.
    pub(crate) fn append(&self, entries: Vec<Entry>) -> Receipt {
        let mut queue = self.shared.queue.lock();
        queue.entries.extend(entries);
        self.shared.wake.notify_one();
        Receipt(queue.fate.subscribe())
    }

    /// A receipt for what was decided now, by all that is queued; none when everything is on disk.
    pub(crate) fn receipt(&self) -> Option<Receipt> {
        let queue = self.shared.queue.lock();
        if queue.entries.is_empty() {
            return queue.in_flight.clone().map(Receipt);
        }
        Some(Receipt(queue.fate.subscribe()))
    }

    /// Gives up everything queued; called while nothing can be queued.
    pub(crate) fn refuse_queued(&self, why: &Arc<str>) {
        let mut queue = self.shared.queue.lock();
        queue.entries.clear();
        std::mem::take(&mut queue.fate).send_replace(Some(Err(Arc::clone(why))));
    }

    /// Whether the disk takes no more at the moment.
    pub(crate) fn refusal(&self) -> Option<ApiError> {
        self.shared.queue.lock().failure.as_deref().map(refusal)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.shared.queue.lock().is_closed = true;
        self.shared.wake.notify_one();
        // The writer itself may be the last who held the server.
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != std::thread::current().id()) {
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

// === impl Shared ===

impl Shared {
    fn run(&self, mut disk: Disk) {
        while let Some((entries, fate)) = self.next_group() {
            let newest = entries.iter().map(|entry| entry.revision).max().unwrap_or_default();
            match disk.write(&entries) {
                Ok(()) => {
                    if let Some(memory) = self.memory() {
                        memory.show(newest);
                    }
                    self.queue.lock().in_flight = None;
                    fate.send_replace(Some(Ok(())));
                }
                Err(error) => self.recover(&mut disk, &error, &fate),
            }
        }
    }

    fn memory(&self) -> Option<Arc<dyn Memory>> {
        self.memory.get().and_then(Weak::upgrade)
    }

    /// Waits for changes; none when the journal is closed and everything is written.
    fn next_group(&self) -> Option<(Vec<Entry>, watch::Sender<Fate>)> {
        let mut queue = self.queue.lock();
        while queue.entries.is_empty() || (self.memory.get().is_none() && !queue.is_closed) {
            if queue.is_closed {
                return None;
            }
            self.wake.wait(&mut queue);
        }
        let fate = std::mem::take(&mut queue.fate);
        queue.in_flight = Some(fate.subscribe());
        Some((std::mem::take(&mut queue.entries), fate))
    }

    /// Undoes the group and all that was built on it, then tries until the disk takes writes again.
    fn recover(&self, disk: &mut Disk, error: &redb::Error, fate: &watch::Sender<Fate>) {
        tracing::error!(%error, "the data directory cannot be written; writes are refused until it can be");
        let why: Arc<str> = Arc::from(error.to_string());
        self.queue.lock().failure = Some(Arc::clone(&why));
        let mut undone = self.memory().map(|memory| memory.undo(&why)).unwrap_or_default();
        self.queue.lock().in_flight = None;
        fate.send_replace(Some(Err(Arc::clone(&why))));
        loop {
            {
                let mut queue = self.queue.lock();
                if !queue.is_closed {
                    self.wake.wait_for(&mut queue, RETRY_EVERY);
                }
                if queue.is_closed {
                    return;
                }
            }
            if let Err(error) = disk.reopen(&undone) {
                tracing::debug!(%error, "the data directory still cannot be written");
            } else {
                self.queue.lock().failure = None;
                tracing::info!("the data directory can be written again");
                return;
            }
            // What slipped in between the refusals.
            undone.extend(self.memory().map(|memory| memory.undo(&why)).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests;
