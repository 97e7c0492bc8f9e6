//! Objects as bytes under one global revision, and the recent past of every kind.
//!
//! A [`Record`] holds an object once, as canonical JSON without its `apiVersion` and `kind` (the *tail*); get, list and
//! watch all send these bytes. Beside them stands what selectors ask for. A [`Collection`] is one kind's objects in key
//! order with a log of recent changes, from which watches resume and past revisions are read.
//!
//! Where a data directory stands behind the store, a change is *hidden* until it is on disk: writers build on it, readers
//! do not see it, and it can be undone.

mod labels;
mod view;

use std::{
    collections::{BTreeMap, VecDeque, btree_map},
    ops::Bound,
    sync::Arc,
};

use bytes::Bytes;

pub use self::{labels::Labels, view::View};

/// One object at one revision.
#[derive(Debug)]
pub struct Record {
    /// The revision at which the object became like this.
    pub revision: u64,
    /// The `apiVersion` it is written in, such as `apps/v1`.
    pub version: Arc<str>,
    /// The object as text.
    pub text: ObjectText,
    /// Its labels.
    pub labels: Labels,
    /// Values of the kind's selectable fields, in the order in which the kind declares them.
    pub fields: Box<[Box<str>]>,
    /// Identities of owners.
    pub owners: Box<[Box<str>]>,
}

/// The text of an object: the line of a watch that reports how it became like this, which every watcher sends, and within
/// it the *tail*, which all answers share.
#[derive(Clone, Debug)]
pub struct ObjectText {
    line: Bytes,
    tail_start: u32,
    tail_end: u32,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was not there before.
    Added,
    /// It was there before.
    Modified,
    /// It is gone; the record is its last state, with the revision of the deletion.
    Deleted,
}

/// One entry of a collection's log.
#[derive(Clone, Debug)]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// Key of the object.
    pub key: Arc<str>,
    /// The object after the change.
    pub new: Arc<Record>,
    /// The object before it.
    pub old: Option<Arc<Record>>,
    /// When, in seconds since 1970.
    pub at_seconds: i64,
}

impl Record {
    /// `"metadata":{…},…}`: the JSON object without its opening brace, `apiVersion` and `kind`.
    pub fn tail(&self) -> &[u8] {
        self.text.tail()
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        let texts = self.fields.iter().chain(&self.owners).map(|text| size_of_val(text) + text.len());
        size_of::<Self>() + self.text.line().len() + self.labels.bytes() + texts.sum::<usize>()
    }
}

impl ObjectText {
    /// A line of a watch, and the place of the tail in it.
    pub fn new(line: Bytes, tail: std::ops::Range<usize>) -> Self {
        Self { line, tail_start: tail.start as u32, tail_end: tail.end as u32 }
    }

    /// A tail without its line, of a kind that is not known.
    pub fn of_tail(tail: Bytes) -> Self {
        let length = tail.len();
        Self::new(tail, 0..length)
    }

    /// The tail.
    pub fn tail(&self) -> &[u8] {
        &self.line[self.tail_start as usize..self.tail_end as usize]
    }

    /// The tail, with a share in the bytes.
    pub fn shared_tail(&self) -> Bytes {
        self.line.slice(self.tail_start as usize..self.tail_end as usize)
    }

    /// The line of a watch; the tail alone where the kind is not known.
    pub fn line(&self) -> &Bytes {
        &self.line
    }
}

impl ChangeKind {
    /// The beginning of the line of a watch.
    pub fn event_prefix(self) -> &'static str {
        match self {
            ChangeKind::Added => r#"{"type":"ADDED","object":"#,
            ChangeKind::Modified => r#"{"type":"MODIFIED","object":"#,
            ChangeKind::Deleted => r#"{"type":"DELETED","object":"#,
        }
    }
}

impl Change {
    /// The revision of the change.
    pub fn revision(&self) -> u64 {
        self.new.revision
    }

    /// About how much memory it takes. What was there before a modification is in an earlier change, or was there before the log.
    fn bytes(&self) -> usize {
        let gone = self.old.as_ref().filter(|_| self.kind == ChangeKind::Deleted);
        size_of::<Self>() + self.new.bytes() + gone.map_or(0, |old| old.bytes())
    }
}

/// How much of the past a collection keeps.
#[derive(Clone, Copy, Debug)]
pub struct HistoryLimits {
    /// Changes older than this are forgotten.
    pub seconds: i64,
    /// At most so many changes.
    pub changes: usize,
    /// At most so much memory.
    pub bytes: usize,
    /// At most so much memory of all collections together: those give way that have the most.
    pub total_bytes: usize,
}

impl Default for HistoryLimits {
    /// Five minutes, as kube-apiserver compacts, and a bound for bursts.
    fn default() -> Self {
        Self { seconds: 300, changes: 200_000, bytes: 64 << 20, total_bytes: 128 << 20 }
    }
}

/// Which collection holds the objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectionId(u32);

/// Objects of one kind.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    objects: BTreeMap<Arc<str>, Arc<Record>>,
    log: VecDeque<Change>,
    log_bytes: usize,
    /// The newest revision whose change is forgotten.
    forgotten: u64,
}

/// All collections and the revision.
#[derive(Clone, Debug)]
pub struct Store {
    revision: u64,
    /// The newest revision that readers see; none when they see every change at once.
    shown: Option<u64>,
    collections: Vec<Collection>,
    names: Vec<String>,
    limits: HistoryLimits,
}

/// The revision asked for is no longer, or not yet, known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisionError {
    /// It is older than the log.
    Compacted {
        /// The oldest revision from which changes are known.
        oldest: u64,
    },
    /// It is newer than the store.
    Future,
}

// === impl Store ===

impl Store {
    /// An empty store at revision 1, as etcd starts.
    pub fn new(limits: HistoryLimits) -> Self {
        Self { revision: 1, shown: None, collections: Vec::new(), names: Vec::new(), limits }
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The newest revision that readers see.
    pub fn shown(&self) -> u64 {
        self.shown.unwrap_or(self.revision)
    }

    /// From now on changes are hidden until [`Self::show`].
    pub fn hide_changes(&mut self) {
        self.shown = Some(self.revision);
    }

    /// Lets readers see every change up to `revision`.
    pub fn show(&mut self, revision: u64) {
        if let Some(shown) = &mut self.shown {
            *shown = revision.max(*shown);
        }
    }

    /// Undoes every hidden change; gives what was undone, newest first.
    pub fn undo_hidden(&mut self) -> Vec<(CollectionId, Change)> {
        let shown = self.shown();
        let mut undone = Vec::new();
        for (index, collection) in (0..).zip(&mut self.collections) {
            while let Some(change) = collection.log.pop_back_if(|change| change.revision() > shown) {
                collection.log_bytes -= change.bytes();
                match &change.old {
                    Some(old) => collection.objects.insert(Arc::clone(&change.key), Arc::clone(old)),
                    None => collection.objects.remove(&change.key),
                };
                undone.push((CollectionId(index), change));
            }
        }
        undone.sort_by_key(|(_, change)| std::cmp::Reverse(change.revision()));
        undone
    }

    /// One collection as readers see it.
    pub fn view(&self, id: CollectionId) -> View<'_> {
        let (collection, shown) = (self.collection(id), self.shown());
        View::new(collection, collection.log.range(collection.later_than(shown)..))
    }

    /// Continues at a revision that was reached before.
    pub fn restore_revision(&mut self, revision: u64) {
        self.revision = self.revision.max(revision);
    }

    /// The collection of that name (`group/plural`), made when it is new.
    pub fn collection_id(&mut self, name: &str) -> CollectionId {
        if let Some(index) = self.names.iter().position(|known| known == name) {
            return CollectionId(index as u32);
        }
        self.names.push(name.to_owned());
        // Changes before the kind existed are nobody's business: a watch may start at any older revision.
        self.collections.push(Collection::default());
        CollectionId((self.names.len() - 1) as u32)
    }

    /// Name of a collection.
    pub fn collection_name(&self, id: CollectionId) -> &str {
        &self.names[id.0 as usize]
    }

    /// One collection.
    pub fn collection(&self, id: CollectionId) -> &Collection {
        &self.collections[id.0 as usize]
    }

    /// All collections in the order of their making.
    pub fn collection_ids(&self) -> impl Iterator<Item = CollectionId> + use<> {
        (0..self.collections.len() as u32).map(CollectionId)
    }

    /// Takes the next revision; the write that asked for it must follow.
    pub fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    /// Writes an object and logs the change.
    pub fn put(&mut self, id: CollectionId, key: &str, record: Record, now_seconds: i64) {
        let (limits, shown) = (self.limits, self.shown());
        let collection = &mut self.collections[id.0 as usize];
        let new = Arc::new(record);
        let (key, old) = match collection.objects.get_key_value(key) {
            Some((known, old)) => (Arc::clone(known), Some(Arc::clone(old))),
            None => (Arc::from(key), None),
        };
        collection.objects.insert(Arc::clone(&key), Arc::clone(&new));
        let kind = if old.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        collection.remember(Change { kind, key, new, old, at_seconds: now_seconds }, limits, shown);
        self.keep_within_total();
    }

    /// Puts an object back without logging it, as when a data directory is read.
    pub fn restore(&mut self, id: CollectionId, key: &str, record: Record) {
        let revision = record.revision;
        let collection = &mut self.collections[id.0 as usize];
        collection.forgotten = collection.forgotten.max(revision);
        collection.objects.insert(Arc::from(key), Arc::new(record));
        self.restore_revision(revision);
    }

    /// Removes an object; `last` is its final state with the revision of the deletion.
    pub fn remove(&mut self, id: CollectionId, key: &str, last: Record, now_seconds: i64) {
        let (limits, shown) = (self.limits, self.shown());
        let collection = &mut self.collections[id.0 as usize];
        if let Some((key, old)) = collection.objects.remove_entry(key) {
            let change =
                Change { kind: ChangeKind::Deleted, key, new: Arc::new(last), old: Some(old), at_seconds: now_seconds };
            collection.remember(change, limits, shown);
        }
        self.keep_within_total();
    }

    /// Forgets the oldest changes of whichever collection has the most, until all of them are within the limit.
    fn keep_within_total(&mut self) {
        let (limit, shown) = (self.limits.total_bytes, self.shown());
        let mut total: usize = self.collections.iter().map(|collection| collection.log_bytes).sum();
        while total > limit {
            let can_forget =
                |collection: &&mut Collection| collection.log.front().is_some_and(|oldest| oldest.revision() <= shown);
            let most = self.collections.iter_mut().filter(can_forget).max_by_key(|collection| collection.log_bytes);
            let Some(most) = most else { return };
            total -= most.log_bytes;
            most.forget_oldest();
            total += most.log_bytes;
        }
    }

    /// Forgets every change up to and including `revision`, as far as readers see.
    pub fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.shown());
        for collection in &mut self.collections {
            while collection.log.front().is_some_and(|change| change.revision() <= revision) {
                collection.forget_oldest();
            }
            collection.forgotten = collection.forgotten.max(revision);
        }
    }

    /// Forgets changes that are older than the limits allow.
    pub fn forget_old(&mut self, now_seconds: i64) {
        let (limits, shown) = (self.limits, self.shown());
        for collection in &mut self.collections {
            collection.trim(limits, now_seconds, shown);
        }
    }
}

// === impl Collection ===

impl Collection {
    /// The object of that key.
    pub fn get(&self, key: &str) -> Option<&Arc<Record>> {
        self.objects.get(key)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Objects whose key starts with `prefix` and is greater than or equal to `start`, in key order.
    pub fn range<'a>(
        &'a self,
        prefix: &'a str,
        start: &str,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Record>)> + use<'a> {
        let from = if start > prefix { start } else { prefix };
        let range: btree_map::Range<'a, Arc<str>, Arc<Record>> =
            self.objects.range::<str, _>((Bound::Included(from), Bound::Unbounded));
        range.take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// The objects as they were at `revision`.
    pub fn at(&self, revision: u64) -> Result<View<'_>, RevisionError> {
        self.check(revision)?;
        Ok(View::new(self, self.log.range(self.later_than(revision)..)))
    }

    /// The change that has this revision; none when it is not, or no longer, in the log.
    pub fn change_at(&self, revision: u64) -> Option<&Change> {
        let index = self.log.partition_point(|change| change.revision() < revision);
        self.log.get(index).filter(|change| change.revision() == revision)
    }

    /// Changes after `revision`, oldest first.
    pub fn changes_after(&self, revision: u64) -> Result<impl Iterator<Item = &Change>, RevisionError> {
        self.check(revision)?;
        Ok(self.log.range(self.later_than(revision)..))
    }

    /// Where in the log the changes after `revision` begin.
    fn later_than(&self, revision: u64) -> usize {
        if self.log.back().is_none_or(|change| change.revision() <= revision) {
            return self.log.len();
        }
        self.log.partition_point(|change| change.revision() <= revision)
    }

    fn check(&self, revision: u64) -> Result<(), RevisionError> {
        if revision < self.forgotten { Err(RevisionError::Compacted { oldest: self.forgotten }) } else { Ok(()) }
    }

    fn remember(&mut self, change: Change, limits: HistoryLimits, shown: u64) {
        let now = change.at_seconds;
        self.log_bytes += change.bytes();
        self.log.push_back(change);
        self.trim(limits, now, shown);
    }

    fn trim(&mut self, limits: HistoryLimits, now_seconds: i64, shown: u64) {
        while let Some(oldest) = self.log.front().filter(|oldest| oldest.revision() <= shown) {
            let too_old = now_seconds.saturating_sub(oldest.at_seconds) > limits.seconds;
            if !too_old && self.log.len() <= limits.changes && self.log_bytes <= limits.bytes {
                break;
            }
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(change) = self.log.pop_front() {
            self.log_bytes -= change.bytes();
            self.forgotten = self.forgotten.max(change.revision());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(revision: u64, text: &str) -> Record {
        Record {
            revision,
            version: Arc::from("v1"),
            text: ObjectText::of_tail(Bytes::copy_from_slice(text.as_bytes())),
            labels: Labels::default(),
            fields: Box::default(),
            owners: Box::default(),
        }
    }

    fn store_with(keys: &[&str]) -> (Store, CollectionId) {
        let mut store = Store::new(HistoryLimits::default());
        let id = store.collection_id("/configmaps");
        for key in keys {
            let revision = store.next_revision();
            store.put(id, key, record(revision, key), 0);
        }
        (store, id)
    }

    #[test]
    fn a_namespace_is_a_contiguous_range() {
        let (store, id) = store_with(&["a/x", "a-b/x", "a/y", "b/z"]);
        let keys: Vec<&str> = store.collection(id).range("a/", "").map(|(key, _)| key.as_ref()).collect();
        assert_eq!(keys, ["a/x", "a/y"]);
        let keys: Vec<&str> = store.collection(id).range("", "a/y").map(|(key, _)| key.as_ref()).collect();
        assert_eq!(keys, ["a/y", "b/z"]);
    }

    #[test]
    fn the_past_is_the_present_with_later_changes_undone() {
        let (mut store, id) = store_with(&["n/a", "n/b"]);
        let then = store.revision();
        let revision = store.next_revision();
        store.remove(id, "n/a", record(revision, "n/a"), 0);
        let revision = store.next_revision();
        store.put(id, "n/c", record(revision, "n/c"), 0);
        let past = store.collection(id).at(then).unwrap();
        assert_eq!(past.range("n/", "").map(|(key, _)| key.as_ref()).collect::<Vec<&str>>(), ["n/a", "n/b"]);
        assert!(past.get("n/a").is_some() && past.get("n/c").is_none());
        assert_eq!(past.range("n/", "n/b").count(), 1);
    }

    #[test]
    fn a_compacted_revision_cannot_be_resumed() {
        let (mut store, id) = store_with(&["n/a", "n/b", "n/c"]);
        store.compact(3);
        assert_eq!(store.collection(id).changes_after(2).err(), Some(RevisionError::Compacted { oldest: 3 }));
        assert_eq!(store.collection(id).changes_after(3).unwrap().count(), 1);
    }

    #[test]
    fn old_changes_are_forgotten_by_age() {
        let (mut store, id) = store_with(&["n/a"]);
        store.forget_old(301);
        assert!(store.collection(id).changes_after(1).is_err());
        assert_eq!(store.collection(id).len(), 1);
    }

    /// What a log holds that begins with these changes.
    fn log_of(store: &Store, id: CollectionId) -> (usize, usize) {
        let log = &store.collection(id).log;
        (log.len(), log.iter().map(Change::bytes).sum())
    }

    #[test]
    fn the_past_is_bounded_by_all_that_it_holds() {
        let limits = HistoryLimits { bytes: 1 << 20, total_bytes: 3 << 19, ..HistoryLimits::default() };
        let mut store = Store::new(limits);
        let (pods, others) = (store.collection_id("/pods"), store.collection_id("/configmaps"));
        let labels: Vec<(String, String)> = (0..1000).map(|key| (format!("k{key}"), "v".to_owned())).collect();
        let large = |revision| {
            let labels = labels.iter().map(|(key, value)| (&**key, &**value)).collect();
            Record { labels, ..record(revision, &"x".repeat(20_000)) }
        };
        for object in 0..100 {
            let (key, revision) = (format!("n/{object}"), store.next_revision());
            store.put(others, &key, large(revision), 0);
        }
        for object in 0..200 {
            let (key, revision) = (format!("n/{object}"), store.next_revision());
            store.put(pods, &key, large(revision), 0);
            let revision = store.next_revision();
            store.remove(pods, &key, large(revision), 0);
        }
        let ((count, of_pods), (kept, of_others)) = (log_of(&store, pods), log_of(&store, others));
        assert_eq!((store.collection(pods).log_bytes, store.collection(others).log_bytes), (of_pods, of_others));
        assert!(of_pods <= 1 << 20 && of_pods + of_others <= 3 << 19 && of_pods + of_others > 1 << 20, "{of_pods}");
        assert!(count > 10 && kept > 10, "{count} {kept}");
        assert!(store.collection(pods).changes_after(store.revision() - 1).is_ok());
    }

    #[test]
    fn hidden_changes_are_not_read_and_can_be_undone() {
        let (mut store, id) = store_with(&["n/a", "n/b"]);
        store.hide_changes();
        let shown = store.shown();
        for (key, text) in [("n/a", "new"), ("n/c", "new"), ("n/c", "newer")] {
            let revision = store.next_revision();
            store.put(id, key, record(revision, text), 0);
        }
        let revision = store.next_revision();
        store.remove(id, "n/b", record(revision, "n/b"), 0);
        let seen = |store: &Store| -> Vec<String> {
            let text = |record: &Record| String::from_utf8(record.tail().to_vec()).unwrap();
            store.view(id).range("n/", "").map(|(key, record)| format!("{key}={}", text(record))).collect()
        };
        assert_eq!(seen(&store), ["n/a=n/a", "n/b=n/b"]);
        store.show(shown + 2);
        assert_eq!(seen(&store), ["n/a=new", "n/b=n/b", "n/c=new"]);
        store.forget_old(1_000);
        let undone: Vec<u64> = store.undo_hidden().iter().map(|(_, change)| change.revision()).collect();
        assert_eq!(undone, [shown + 4, shown + 3]);
        assert_eq!(seen(&store), ["n/a=new", "n/b=n/b", "n/c=new"]);
        assert_eq!(store.collection(id).len(), 3);
        let revision = store.next_revision();
        assert!(revision > shown + 4, "a revision is never given twice");
    }
}
