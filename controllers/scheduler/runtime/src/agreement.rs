//! Who has just become leader decides nothing before its caches agree with the API server: what the last leader bound counts then.
//!
//! Each collection is asked once for its revision, consistently, when its cache is complete; none waits for another. A cache agrees when
//! its watch has come as far as that, or when it holds the same: of a collection that does not change, a watch says nothing for a minute.
//! Its objects are read while the watch has not come as far. A cache that lacks an object because something panicked never agrees:
//! it is listed anew first.

use std::{
    collections::BTreeSet,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    Watch,
    api::{Api, Part, refused},
    cache::Revision,
    clock::SharedClock,
    key::ObjectKey,
    list,
    reflector::Failure,
};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::feed::{Pods, Watched};

/// How often it is looked how far a watch has come.
pub(crate) const LOOK: Duration = Duration::from_millis(10);
/// The longest pause between two looks at what a cache holds, and how soon a request that has failed is made again the first time. The
/// pause doubles with each failure.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause after a request that was refused or not answered: an API server that works again is asked soon.
const REFUSED_MAX: Duration = Duration::from_secs(1);
/// The longest pause after an answer that cannot be decoded: the next one will hardly be another.
const UNDECODABLE_MAX: Duration = Duration::from_secs(10);
/// Collections that are read at one time.
const READS_MAX: usize = 8;
/// So many times longer is waited while a cache is known to lack something: devices could be allocated twice then.
const LACKING: u32 = 6;
/// How often a collection is fetched anew of which a cache lacks something.
const AGAIN: u32 = 10;
/// Objects of a page.
const PAGE: usize = 500;
/// Pages that are read of a collection: where there are more objects, its watch has to come as far as the first page.
const PAGES_MAX: usize = 50;
/// Of pods, only those without a node are compared: all others have been bound, and their number shows whether some
/// are missing.
const WITHOUT_NODE: &str = "&fieldSelector=spec.nodeName%3D";

/// A collection as it was read.
#[derive(Debug)]
struct Snapshot {
    revision: Revision,
    /// What was read; none where that was not all.
    objects: Option<Objects>,
    /// How many there are in all, of pods.
    pods: usize,
}

type Objects = Vec<(ObjectKey, Revision)>;

/// What reads collections. Cheap to clone.
#[derive(Clone)]
struct Reader {
    clock: SharedClock,
    api: Api,
    /// One for each collection that may be read now.
    slots: Arc<Semaphore>,
    /// Causes of failures that were logged: the collections fail alike.
    logged: Arc<Mutex<BTreeSet<Cause>>>,
}

type Page = list::Page<Item>;

/// Why a collection could not be read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("{0}")]
    ServiceError(String),
    #[error("status {code}: {message}")]
    Refused { code: u16, message: String, retry_after: Option<Duration> },
    #[error("the answer cannot be decoded: {0}")]
    Undecodable(String),
}

/// Failures with one cause are logged once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    ServiceError,
    Status(u16),
    Undecodable,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemMetadata {
    name: String,
    #[serde(default)]
    namespace: String,
    resource_version: String,
}

/// Waits until all caches agree with the API server, or until the time or the lead is over. Says whether the time was enough.
///
/// A watch that has merely not said how far it has come may be quiet, and is waited for until the limit. What was not listed yet, could not
/// be read to compare it, or lacks an object is known to be wrong, and is waited for [`LACKING`] times as long: not for ever, so that
/// a collection that an API server cannot serve does not end all scheduling.
pub(crate) async fn agree(
    caches: &Watched,
    clock: &SharedClock,
    api: &Api,
    end: &CancellationToken,
    limit: Duration,
) -> bool {
    let mut behind: Vec<&'static str> = Vec::new();
    let lacks = AtomicBool::new(true);
    let agreed = async {
        let mut open = read_all(caches, clock, api, &mut behind).await;
        let mut pause = LOOK;
        for looks in 0.. {
            open.retain(|(watch, snapshot)| !snapshot.agrees(watch, &caches.pods));
            let owing: Vec<&Arc<Watch>> = caches.watches.iter().filter(|watch| watch.sink.owes()).collect();
            let lagging = open.iter().map(|(watch, _)| watch);
            behind = lagging.chain(owing.iter().copied()).map(|watch| watch.kind.kind).collect();
            if behind.is_empty() {
                return;
            }
            lacks.store(!owing.is_empty(), Ordering::Relaxed);
            if looks % AGAIN == 0 {
                for watch in &owing {
                    watch.list_again();
                }
            }
            clock.sleep(pause).await;
            pause = PAUSE.min(pause * 2);
        }
    };
    let patience = async {
        let begun = clock.moment();
        clock.sleep(limit).await;
        while lacks.load(Ordering::Relaxed) && clock.moment().since(begun) < limit * LACKING {
            clock.sleep(PAUSE).await;
        }
    };
    let is_over = tokio::select! {
        biased;
        () = end.cancelled() => false,
        () = agreed => false,
        () = patience => true,
    };
    if is_over {
        tracing::warn!(?behind, "caches are behind the API server; pods are scheduled all the same");
    }
    !is_over
}

/// Reads all collections, each when its cache is complete. Gives those with which their caches do not agree yet; `unread` has the kinds
/// of the others meanwhile.
async fn read_all(
    caches: &Watched,
    clock: &SharedClock,
    api: &Api,
    unread: &mut Vec<&'static str>,
) -> Vec<(Arc<Watch>, Snapshot)> {
    let (clock, slots) = (Arc::clone(clock), Arc::new(Semaphore::new(READS_MAX)));
    let reader = Reader { clock, api: api.clone(), slots, logged: Arc::default() };
    let (mut reads, mut open) = (JoinSet::new(), Vec::new());
    for watch in &caches.watches {
        unread.push(watch.kind.kind);
        let (reader, watch) = (reader.clone(), Arc::clone(watch));
        reads.spawn(async move {
            let snapshot = reader.read(&watch).await;
            (watch, snapshot)
        });
    }
    while let Some(read) = reads.join_next().await {
        let (watch, snapshot) = read.unwrap_or_else(|error| resume_unwind(error.into_panic()));
        if let Some(at) = unread.iter().position(|kind| *kind == watch.kind.kind) {
            unread.swap_remove(at);
        }
        open.extend(snapshot.map(|snapshot| (watch, snapshot)));
    }
    open
}

impl Reader {
    /// What the collection of a watch is when the cache is complete; none where the watch has come as far already, or the API server does
    /// not serve it any more.
    async fn read(&self, watch: &Watch) -> Option<Snapshot> {
        while !watch.is_complete() {
            self.clock.sleep(LOOK).await;
        }
        let mut failures = 0;
        while watch.idle().is_none() {
            let error = match self.snapshot(watch).await {
                Ok(snapshot) => return snapshot,
                Err(_) if watch.idle().is_some() => break,
                Err(error) => error,
            };
            self.report(watch, &error);
            // A request that fails is made again until it succeeds.
            self.clock.sleep(error.pause(failures)).await;
            failures += 1;
        }
        None
    }

    fn report(&self, watch: &Watch, error: &ReadError) {
        let kind = watch.kind.kind;
        if self.logged.lock().insert(error.cause()) {
            tracing::warn!(%error, kind, "what a cache is compared with could not be read; the request is made again");
        } else {
            tracing::debug!(%error, kind, "what a cache is compared with could not be read");
        }
    }

    async fn snapshot(&self, watch: &Watch) -> Result<Option<Snapshot>, ReadError> {
        let _slot = self.slots.acquire().await;
        let selected = match watch.selection.fields.as_str() {
            "" => String::new(),
            fields => format!("&fieldSelector={}", fields.replace('=', "%3D")),
        };
        let first = self.page(watch, 1, &selected, "").await?;
        let revision = revision(&first.metadata.resource_version)?;
        let pods = first.items.len() + first.metadata.remaining_item_count;
        // A look at the watch before the objects are read.
        tokio::select! {
            biased;
            () = self.reached(watch, revision) => Ok(None),
            objects = self.objects(watch, &selected, first) => Ok(Some(Snapshot { revision, objects: objects?, pods })),
        }
    }

    /// Waits until a watch has come as far.
    async fn reached(&self, watch: &Watch, revision: Revision) {
        while watch.revision() < revision {
            self.clock.sleep(LOOK).await;
        }
    }

    /// The objects that are compared, of a collection that begins with this page of one object; none where there are too many.
    async fn objects(&self, watch: &Watch, selected: &str, first: Page) -> Result<Option<Objects>, ReadError> {
        let is_of_pods = watch.kind == ResourceKind::POD;
        let selected = if is_of_pods { WITHOUT_NODE } else { selected };
        let is_all = !is_of_pods && first.metadata.token.is_empty();
        let mut page = if is_all { first } else { self.page(watch, PAGE, selected, "").await? };
        let mut objects = Vec::new();
        for read in 1.. {
            for Item { metadata } in page.items {
                let key = ObjectKey::new(&metadata.namespace, &metadata.name);
                objects.push((key, revision(&metadata.resource_version)?));
            }
            if page.metadata.token.is_empty() {
                return Ok(Some(objects));
            }
            if read == PAGES_MAX {
                break;
            }
            page = self.page(watch, PAGE, selected, &page.metadata.token).await?;
        }
        Ok(None)
    }

    async fn page(&self, watch: &Watch, limit: usize, selected: &str, token: &str) -> Result<Page, ReadError> {
        let token = if token.is_empty() { String::new() } else { format!("&continue={}", encoded(token)) };
        let uri = format!("{}?limit={limit}{selected}{token}", watch.path());
        let answer = self.api.list(uri, Part::Metadata).await;
        let answer = answer.map_err(|failure| ReadError::ServiceError(failure.message))?;
        if !answer.is_success() {
            let Failure { message, retry_after, .. } = refused(&answer);
            return Err(ReadError::Refused { code: answer.code, message, retry_after });
        }
        Page::parse(&answer.body).map_err(|error| ReadError::Undecodable(error.to_string()))
    }
}

// === impl ReadError ===

impl ReadError {
    fn cause(&self) -> Cause {
        match self {
            Self::ServiceError(_) => Cause::ServiceError,
            Self::Refused { code, .. } => Cause::Status(*code),
            Self::Undecodable(_) => Cause::Undecodable,
        }
    }

    /// How long it is waited after this failure, which comes after so many others.
    fn pause(&self, failures: u32) -> Duration {
        let doubled = PAUSE.saturating_mul(1 << failures.min(16));
        match self {
            Self::ServiceError(_) => doubled.min(REFUSED_MAX),
            Self::Refused { retry_after, .. } => doubled.min(REFUSED_MAX).max(retry_after.unwrap_or_default()),
            Self::Undecodable(_) => doubled.min(UNDECODABLE_MAX),
        }
    }
}

fn revision(text: &str) -> Result<Revision, ReadError> {
    Revision::parse(text).map_err(|error| ReadError::Undecodable(error.to_string()))
}

fn encoded(token: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    token.bytes().map(byte).collect()
}

impl Snapshot {
    fn agrees(&self, watch: &Watch, pods: &Pods) -> bool {
        watch.revision() >= self.revision
            || self.objects.as_ref().is_some_and(|objects| self.is_held(objects, watch, pods))
    }

    /// Whether a cache holds just these objects, none of them older.
    fn is_held(&self, objects: &[(ObjectKey, Revision)], watch: &Watch, pods: &Pods) -> bool {
        let sizes = watch.sink.sizes();
        let all = sizes.objects + sizes.quarantined;
        let is_complete = if watch.kind == ResourceKind::POD {
            all == self.pods && pods.without_node() == objects.len()
        } else {
            all == objects.len()
        };
        is_complete && objects.iter().all(|(key, revision)| watch.sink.holds(key, *revision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_failures_back_off() {
        let pauses = |error: &ReadError| [0, 1, 3, 7, 40].map(|failures| error.pause(failures).as_millis());
        assert_eq!(pauses(&ReadError::ServiceError(String::new())), [100, 200, 800, 1000, 1000]);
        assert_eq!(pauses(&ReadError::Undecodable(String::new())), [100, 200, 800, 10_000, 10_000]);
        let message = String::new();
        let refused = |retry_after| ReadError::Refused { code: 429, message: message.clone(), retry_after };
        assert_eq!(pauses(&refused(None)), [100, 200, 800, 1000, 1000]);
        assert_eq!(pauses(&refused(Some(Duration::from_secs(2)))), [2000; 5], "the API server says when");
    }

    #[test]
    fn a_token_is_part_of_a_query() {
        assert_eq!(encoded("to/ken=_1"), "to%2Fken%3D_1");
    }
}
