//! The projected objects of one kind: a state machine that events go into and changes come out of.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    digest::digest_of,
    index::Index,
    intern::Interner,
    key::ObjectKey,
    panics::{PanicGuard, Panicked, Place, Task},
    projection::{DecodeError, Metadata as _, Projection, decode},
    uid::Uid,
};

/// A revision of the API server's store. Kubernetes promises that they are decimal numbers and grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u64);

impl Revision {
    /// Reads a `resourceVersion`.
    pub fn parse(text: &str) -> Result<Self, DecodeError> {
        text.parse()
            .map(Self)
            .map_err(|_| DecodeError::new("metadata.resourceVersion", format_args!("{text:?} is not a decimal number")))
    }
}

/// One object in a cache.
#[derive(Debug)]
pub struct Entry<P> {
    /// Tells apart an object and a later one of the same name.
    pub uid: Uid,
    /// The revision that was seen last.
    pub revision: Revision,
    /// Counts changes of the spec.
    pub generation: i64,
    /// Whether the object is being deleted.
    pub deleting: bool,
    /// What is kept of it.
    pub value: Arc<P>,
}

impl<P> Clone for Entry<P> {
    fn clone(&self) -> Self {
        Self {
            uid: self.uid.clone(),
            revision: self.revision,
            generation: self.generation,
            deleting: self.deleting,
            value: Arc::clone(&self.value),
        }
    }
}

impl<P: PartialEq> Entry<P> {
    fn equals(&self, other: &Self) -> bool {
        let identity = |entry: &Self| (entry.uid.clone(), entry.revision, entry.generation, entry.deleting);
        identity(self) == identity(other) && self.value == other.value
    }
}

/// Something that a controller may want to know: never a mere new revision.
#[derive(Debug)]
pub struct Change<P> {
    /// The object.
    pub key: ObjectKey,
    /// What was known before.
    pub old: Option<Entry<P>>,
    /// What is known now; none after a deletion.
    pub new: Option<Entry<P>>,
    /// Whether something may have been decided about another state than `old`: the object could not be read meanwhile, or the
    /// watch has not shown what this program wrote. Then it matters however alike old and new are.
    pub again: bool,
}

impl<P> Change<P> {
    /// Whether the object came, went, is another of the same name, has to be decided about again, or is different in what
    /// the caller reads of it.
    pub fn matters(&self, is_different: impl FnOnce(&P, &P) -> bool) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => self.again || old.uid != new.uid || is_different(&old.value, &new.value),
            _ => true,
        }
    }
}

/// An object that exists but cannot be decoded. Its last good projection, if there ever was one, stays in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Tells apart an object and a later one of the same name.
    pub uid: Uid,
    /// The revision that cannot be decoded.
    pub revision: Revision,
    /// What is wrong.
    pub reason: DecodeError,
    /// Whether the projection panicked. The object is fine, so it is decoded again with the next list.
    pub panicked: bool,
}

/// What became of one event.
#[derive(Debug)]
pub enum Applied<P> {
    /// The cache shows something else than before.
    Changed(Change<P>),
    /// Nothing that the projection reads has changed, or the event is older than what is known.
    Unchanged,
    /// The object cannot be decoded and was put into quarantine.
    Quarantined(ObjectKey, Quarantined),
}

/// An object that was listed, added or modified, decoded: what goes into a cache.
#[derive(Debug)]
pub struct Decoded<P> {
    key: ObjectKey,
    revision: Revision,
    object: Result<Entry<P>, Quarantined>,
}

/// Figures of a cache, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Objects that are known.
    pub objects: usize,
    /// Objects that cannot be decoded.
    pub quarantined: usize,
    /// Different texts that the objects share.
    pub strings: usize,
}

/// The strings and values that the objects of a cache share. Decoding locks them, reading the cache does not.
pub type SharedStrings = Arc<Mutex<Interner>>;

/// The projected objects of one kind, their indexes, and those that cannot be decoded.
pub struct Cache<P: Projection> {
    objects: BTreeMap<ObjectKey, Entry<P>>,
    index: P::Index,
    quarantine: BTreeMap<ObjectKey, Quarantined>,
    strings: SharedStrings,
    parts: Parts,
    /// Objects that this program created or changed, where nothing newer has been shown yet, with the digest of the patch or
    /// declaration that was carried out last; 0 for another write.
    expected: BTreeMap<ObjectKey, u64>,
    guard: PanicGuard,
}

/// What is known of the parts of a cache, each of which a watch of its own feeds: the namespaces that it is restricted to, or
/// one with the empty name for everything.
struct Parts(BTreeMap<Box<str>, Part>);

#[derive(Default)]
struct Part {
    /// While a list comes in: what was there before and has not been listed yet.
    unlisted: Option<BTreeSet<ObjectKey>>,
    /// The newest deletion that was seen. An object that is not known and older than this is gone already.
    deleted: Revision,
    /// Whether one list was completed.
    complete: bool,
}

impl<P: Projection> Default for Cache<P> {
    fn default() -> Self {
        Self::of_program("", PanicGuard::default())
    }
}

impl<P: Projection> Cache<P> {
    /// An empty cache of a program that writes under the name `field_manager`, in which panics are counted.
    pub fn of_program(field_manager: &'static str, guard: PanicGuard) -> Self {
        Self {
            objects: BTreeMap::new(),
            index: P::Index::default(),
            quarantine: BTreeMap::new(),
            strings: Arc::new(Mutex::new(Interner::of_manager(field_manager))),
            parts: Parts::of(&[]),
            expected: BTreeMap::new(),
            guard,
        }
    }

    /// Restricts an empty cache to some namespaces, each with lists and a watch of its own; with none it knows all.
    #[must_use]
    pub fn in_namespaces(self, namespaces: &[String]) -> Self {
        Self { parts: Parts::of(namespaces), ..self }
    }

    /// The object of a key (`namespace/name`, or `name` for cluster scope).
    pub fn get(&self, key: &str) -> Option<&Entry<P>> {
        self.objects.get(key)
    }

    /// All objects in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Entry<P>)> {
        self.objects.iter()
    }

    /// The keys of all objects, in order.
    pub fn keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.objects.keys()
    }

    /// The objects of a namespace, in the order of their names.
    pub fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = (&ObjectKey, &Entry<P>)> {
        let prefix = format!("{namespace}/");
        let start = (Bound::Included(prefix.as_str()), Bound::Unbounded);
        self.objects.range::<str, _>(start).take_while(move |(key, _)| key.as_str().starts_with(&prefix))
    }

    /// How many objects are known.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether no object is known.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The secondary indexes.
    pub fn index(&self) -> &P::Index {
        &self.index
    }

    /// Why an object cannot be read, if that is so.
    pub fn quarantined(&self, key: &str) -> Option<&Quarantined> {
        self.quarantine.get(key)
    }

    /// How many objects cannot be read.
    pub fn quarantine_len(&self) -> usize {
        self.quarantine.len()
    }

    /// How much there is.
    pub fn sizes(&self) -> Sizes {
        Sizes { objects: self.len(), quarantined: self.quarantine.len(), strings: self.strings.lock().len() }
    }

    /// How much there is in one of several namespaces. What all of them share is counted with the first.
    pub fn sizes_of(&self, namespace: &str) -> Sizes {
        let is_first = self.parts.0.keys().next().is_some_and(|first| &**first == namespace);
        Sizes {
            objects: self.in_namespace(namespace).count(),
            quarantined: self.quarantine.keys().filter(|key| key.namespace() == namespace).count(),
            strings: if is_first { self.strings.lock().len() } else { 0 },
        }
    }

    /// An object was listed, added or modified. Gives the object's revision and what became of it; an error
    /// means that not even its name can be decoded.
    pub fn upsert(&mut self, raw: &str) -> Result<(Revision, Applied<P>), DecodeError> {
        let decoded = Decoded::read(raw, &mut self.strings.lock(), &self.guard)?;
        Ok((decoded.revision, self.apply(decoded)))
    }

    /// The same for an object that was decoded with the strings of this cache ([`Cache::strings`]).
    pub fn apply(&mut self, decoded: Decoded<P>) -> Applied<P> {
        let Decoded { key, revision, object } = decoded;
        match object {
            Ok(entry) => self.insert(key, entry),
            Err(quarantined) => self.quarantine(key, Quarantined { revision, ..quarantined }),
        }
    }

    /// What the objects share.
    pub fn strings(&self) -> &SharedStrings {
        &self.strings
    }

    /// Whether there are objects that only a new list can bring back.
    pub fn wants_list(&self) -> bool {
        self.quarantine.values().any(|quarantined| quarantined.panicked)
    }

    /// Whether every part was listed.
    pub fn is_complete(&self) -> bool {
        self.parts.0.values().all(|part| part.complete)
    }

    /// Whether a part was listed; see [`Cache::begin_list`].
    pub fn is_listed(&self, part: &str) -> bool {
        self.parts.0.get(part).is_some_and(|part| part.complete)
    }

    fn quarantine(&mut self, key: ObjectKey, quarantined: Quarantined) -> Applied<P> {
        if self.parts.listed(&key).is_none() {
            return Applied::Unchanged;
        }
        self.expected.remove(&key);
        let known = self.quarantine.insert(key.clone(), quarantined.clone());
        if known.is_some_and(|known| known == quarantined) {
            return Applied::Unchanged;
        }
        Applied::Quarantined(key, quarantined)
    }

    /// An object was deleted.
    pub fn remove(&mut self, raw: &str) -> Result<(Revision, Applied<P>), DecodeError> {
        let Named { metadata } = decode(raw)?;
        let (key, revision) = metadata.identify()?;
        if let Some(part) = self.parts.holding_mut(&key) {
            part.deleted = part.deleted.max(revision);
        }
        // An old deletion that is delivered again must not take the object that has come since.
        let known = self.objects.get(&key).map(|entry| entry.revision);
        let known = known.max(self.quarantine.get(&key).map(|quarantined| quarantined.revision));
        let applied = match known {
            Some(known) if known > revision => Applied::Unchanged,
            _ => self.drop_key(key),
        };
        self.strings.lock().passed(raw.len(), true);
        Ok((revision, applied))
    }

    /// This program created or changed an object. When the watch breaks before it has shown that, others may have deleted the
    /// object meanwhile, or changed it back to what is in the cache. The list that follows reports either as a change: the
    /// controller that wants the object otherwise must decide again.
    pub fn expect_write(&mut self, key: &ObjectKey) {
        self.expect(key, 0);
    }

    /// The same of a patch with a resourceVersion, which is not carried out twice.
    pub fn expect_patch(&mut self, key: &ObjectKey, patch: &Value) {
        self.expect(key, digest_of(patch.to_string().as_bytes()));
    }

    fn expect(&mut self, key: &ObjectKey, carried_out: u64) {
        // No watch shows what is in a namespace that the cache is not about.
        if self.parts.holding(key).is_some() {
            self.expected.insert(key.clone(), carried_out);
        }
    }

    /// Whether the patch (with its resourceVersion) or declaration of this digest was the last that this program carried out, and
    /// the watch has shown nothing newer of the object.
    pub(crate) fn is_carried_out(&self, key: &str, digest: u64) -> bool {
        self.expected.get(key) == Some(&digest)
    }

    /// This program applied a declaration, which is `wanted` without its identity, and this object is the API server's answer. See
    /// [`Cache::expect_write`].
    pub fn applied(&mut self, key: &ObjectKey, wanted: &Value, answer: &str) {
        // An answer that cannot be read is one that the watch shows as well.
        let decoded = Decoded::read(answer, &mut self.strings.lock(), &self.guard);
        let deleted = self.parts.holding(key).map(|part| part.deleted).unwrap_or_default();
        let shown = self.objects.get(key).map_or(deleted, |known| known.revision);
        // Where the watch was faster, others may have changed or deleted the object since.
        if decoded.as_ref().map_or(true, |answered| answered.revision > shown) {
            self.expect(key, digest_of(wanted.to_string().as_bytes()));
        }
        if let Ok(Decoded { object: Ok(entry), .. }) = decoded {
            let index = &mut self.index;
            let _ = self.guard.catch(Place::Projection, Task("watch", P::KIND.kind), || {
                index.applied(key, wanted, &entry.value);
            });
        }
    }

    /// A whole list follows: what it does not name will be gone at [`Cache::end_list`]. `part` is one of the namespaces that
    /// the cache is restricted to, and empty for one that is not restricted.
    /// With `forget_revisions`, also older revisions are accepted: the server was restored from a backup.
    pub fn begin_list(&mut self, part: &str, forget_revisions: bool) {
        let is_of = |key: &&ObjectKey| part.is_empty() || key.namespace() == part;
        let known = self.objects.keys().chain(self.quarantine.keys()).filter(is_of);
        let unlisted = Some(known.cloned().collect());
        let Some(state) = self.parts.0.get_mut(part) else { return };
        state.unlisted = unlisted;
        if forget_revisions {
            state.deleted = Revision::default();
            let objects = self.objects.iter_mut().filter(|(key, _)| is_of(key));
            objects.for_each(|(_, entry)| entry.revision = Revision::default());
            let expected = self.expected.iter_mut().filter(|(key, _)| is_of(key));
            expected.for_each(|(_, carried_out)| *carried_out = 0);
        }
    }

    /// The list of a part is complete.
    pub fn end_list(&mut self, part: &str) -> Vec<Change<P>> {
        let Some(state) = self.parts.0.get_mut(part) else { return Vec::new() };
        state.complete = true;
        let mut gone = state.unlisted.take().unwrap_or_default();
        let is_known = |key: &ObjectKey| self.objects.contains_key(key) || self.quarantine.contains_key(key);
        let is_of = |key: &ObjectKey| part.is_empty() || key.namespace() == part;
        gone.extend(self.expected.keys().filter(|key| is_of(key) && !is_known(key)).cloned());
        let gone = gone.into_iter().map(|key| self.drop_key(key));
        let gone = gone.filter_map(|applied| if let Applied::Changed(change) = applied { Some(change) } else { None });
        let gone = gone.collect();
        // A list comes in the order of the keys, which leaves the nodes of the tree half empty; made at once, they are full.
        self.objects = std::mem::take(&mut self.objects).into_iter().collect();
        gone
    }

    /// The keys of the objects that this cache and another know differently. What cannot be read counts by its
    /// revision alone: which value of it was good last is a matter of who was there.
    pub fn differences(&self, other: &Self) -> Vec<ObjectKey> {
        let keys = |cache: &Self| -> BTreeSet<ObjectKey> {
            cache.objects.keys().chain(cache.quarantine.keys()).cloned().collect()
        };
        let differs = |key: &ObjectKey| match (self.quarantine.get(key), other.quarantine.get(key)) {
            (None, None) => match (self.objects.get(key), other.objects.get(key)) {
                (Some(one), Some(another)) => !one.equals(another),
                _ => true,
            },
            (one, another) => one != another,
        };
        keys(self).union(&keys(other)).filter(|key| differs(key)).cloned().collect()
    }

    fn insert(&mut self, key: ObjectKey, entry: Entry<P>) -> Applied<P> {
        let Some(part) = self.parts.listed(&key) else { return Applied::Unchanged };
        // Events of a watch come in order, those of a list do not: only there an old revision may be news.
        let is_listing = part.unlisted.is_some();
        if !is_listing && entry.revision < part.deleted && !self.objects.contains_key(&key) {
            return Applied::Unchanged;
        }
        let mut again = match self.quarantine.get(&key) {
            Some(quarantined) if quarantined.revision > entry.revision => return Applied::Unchanged,
            Some(_) => self.quarantine.remove(&key).is_some(),
            None => false,
        };
        let known = self.objects.get_mut(&key);
        let old = known.as_ref().map(|known| Arc::clone(&known.value));
        if let Some(known) = known {
            if entry.revision < known.revision {
                return Applied::Unchanged;
            }
            let same = known.uid == entry.uid && known.deleting == entry.deleting && known.value == entry.value;
            let is_newer = entry.revision > known.revision;
            again |= is_listing && is_newer && self.expected.contains_key(&key);
            if is_newer {
                self.expected.remove(&key);
            }
            if same && !again {
                known.revision = entry.revision;
                known.generation = entry.generation;
                return Applied::Unchanged;
            }
        }
        if let Err(panicked) = self.index_again(&key, old.as_deref(), Some(&entry.value)) {
            return self.quarantine(key, Quarantined::by_panic(entry.uid, entry.revision, &panicked));
        }
        self.expected.remove(&key);
        let old = self.objects.insert(key.clone(), entry.clone());
        Applied::Changed(Change { key, old, new: Some(entry), again })
    }

    /// Brings the index from the old value of an object to its new one. When a term panics, the index is made anew of
    /// the objects that the cache holds.
    fn index_again(&mut self, key: &ObjectKey, old: Option<&P>, new: Option<&P>) -> Result<(), Panicked> {
        let index = &mut self.index;
        let changed = self.guard.catch(Place::Projection, Task("watch", P::KIND.kind), || {
            if let Some(old) = old {
                index.remove(key, old);
            }
            if let Some(new) = new {
                index.insert(key, new);
            }
        });
        changed.inspect_err(|_| {
            self.index = P::Index::default();
            self.objects.iter().for_each(|(key, entry)| self.index.insert(key, &entry.value));
        })
    }

    fn drop_key(&mut self, key: ObjectKey) -> Applied<P> {
        let quarantined = self.quarantine.remove(&key);
        let old = self.objects.remove(&key);
        let expected = self.expected.remove(&key).is_some();
        if let Some(entry) = &old {
            // The object is gone whatever becomes of the index, which is made anew when a term panics.
            let _ = self.index_again(&key, Some(&entry.value), None);
        }
        if old.is_none() && quarantined.is_none() && !expected {
            return Applied::Unchanged;
        }
        Applied::Changed(Change { key, old, new: None, again: false })
    }
}

impl Parts {
    fn of(namespaces: &[String]) -> Self {
        let names = namespaces.iter().map(|namespace| namespace.as_str().into());
        let mut parts: BTreeMap<Box<str>, Part> = names.map(|name| (name, Part::default())).collect();
        if parts.is_empty() {
            parts.insert("".into(), Part::default());
        }
        Self(parts)
    }

    fn holding(&self, key: &ObjectKey) -> Option<&Part> {
        self.0.get("").or_else(|| self.0.get(key.namespace()))
    }

    fn holding_mut(&mut self, key: &ObjectKey) -> Option<&mut Part> {
        let name = if self.0.contains_key("") { "" } else { key.namespace() };
        self.0.get_mut(name)
    }

    /// The part of an object that was listed, or came in another way; none where the cache is restricted to other namespaces.
    fn listed(&mut self, key: &ObjectKey) -> Option<&Part> {
        let part = self.holding_mut(key)?;
        if let Some(unlisted) = &mut part.unlisted {
            unlisted.remove(key);
        }
        Some(part)
    }
}

impl Quarantined {
    fn by_panic(uid: Uid, revision: Revision, panicked: &Panicked) -> Self {
        let reason = DecodeError::new("object", format_args!("the projection {panicked}"));
        Self { uid, revision, reason, panicked: true }
    }
}

impl<P: Projection> Decoded<P> {
    /// Decodes an object; an error means that not even its name can be decoded.
    pub fn read(raw: &str, strings: &mut Interner, guard: &PanicGuard) -> Result<Self, DecodeError> {
        let read = Self::read_with(raw, strings, guard);
        strings.passed(raw.len(), false);
        read
    }

    fn read_with(raw: &str, strings: &mut Interner, guard: &PanicGuard) -> Result<Self, DecodeError> {
        let projected = guard.catch(Place::Projection, Task("watch", P::KIND.kind), || Self::project(raw, strings));
        let quarantined = match projected {
            Ok(Ok((key, entry))) => return Ok(Self { key, revision: entry.revision, object: Ok(entry) }),
            Ok(Err(reason)) => {
                Quarantined { uid: Uid::default(), revision: Revision::default(), reason, panicked: false }
            }
            Err(panicked) => Quarantined::by_panic(Uid::default(), Revision::default(), &panicked),
        };
        let Named { metadata } = decode(raw)?;
        let (key, revision) = metadata.identify()?;
        let uid = Uid::from(&*metadata.uid);
        Ok(Self { key, revision, object: Err(Quarantined { uid, revision, ..quarantined }) })
    }

    /// The revision of the object.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    fn project(raw: &str, strings: &mut Interner) -> Result<(ObjectKey, Entry<P>), DecodeError> {
        let wire: P::Wire<'_> = decode(raw)?;
        let metadata = wire.metadata();
        let (name, namespace) = (Cow::Borrowed(&*metadata.name), Cow::Borrowed(&*metadata.namespace));
        let resource_version = Cow::Borrowed(&*metadata.resource_version);
        let identity = Identity { name, namespace, uid: Cow::Borrowed(&*metadata.uid), resource_version };
        let (key, revision) = identity.identify()?;
        let (uid, generation) = (Uid::from(&*metadata.uid), metadata.generation);
        let deleting = metadata.deletion_timestamp.is_some();
        let value = P::project(wire, strings)?.shared(&key, &uid, strings);
        Ok((key, Entry { uid, revision, generation, deleting, value }))
    }
}

/// What distinguishes objects: all that is read of one that is malformed or gone.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    metadata: Identity<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Identity<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
}

impl Identity<'_> {
    fn identify(&self) -> Result<(ObjectKey, Revision), DecodeError> {
        if self.name.is_empty() {
            return Err(DecodeError::new("metadata.name", "is absent"));
        }
        Ok((ObjectKey::new(&self.namespace, &self.name), Revision::parse(&self.resource_version)?))
    }
}

#[cfg(test)]
mod tests {
    use koord_resource::controller::ResourceKind;

    use super::*;
    use crate::{
        index::{By, Term},
        projection::WireObject,
    };

    #[derive(Debug, PartialEq)]
    struct PodView {
        node: Arc<str>,
    }

    #[derive(Deserialize)]
    struct PodMembers<'a> {
        #[serde(borrow, default)]
        spec: SpecWire<'a>,
    }

    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct SpecWire<'a> {
        #[serde(borrow)]
        node_name: std::borrow::Cow<'a, str>,
    }

    struct ByNode;

    impl Term<PodView> for ByNode {
        type Value = Arc<str>;

        fn terms(_: &ObjectKey, object: &PodView, found_by: &mut dyn FnMut(Arc<str>)) {
            found_by(Arc::clone(&object.node));
        }
    }

    impl Projection for PodView {
        const KIND: ResourceKind = ResourceKind::POD;
        type Wire<'a> = WireObject<'a, PodMembers<'a>>;
        type Index = By<Self, ByNode>;

        fn project(wire: Self::Wire<'_>, strings: &mut Interner) -> Result<Self, DecodeError> {
            Ok(Self { node: strings.intern(&wire.members.spec.node_name) })
        }
    }

    fn pod(name: &str, uid: &str, revision: u64, node: &str) -> String {
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"d","uid":"{uid}","resourceVersion":"{revision}"}},"spec":{{"nodeName":"{node}"}}}}"#
        )
    }

    fn shown(applied: &Applied<PodView>) -> String {
        match applied {
            Applied::Changed(change) => {
                let node = |entry: &Option<Entry<PodView>>| {
                    entry.as_ref().map_or("-".to_owned(), |entry| entry.value.node.to_string())
                };
                format!("{}: {} -> {}", change.key, node(&change.old), node(&change.new))
            }
            Applied::Unchanged => "unchanged".to_owned(),
            Applied::Quarantined(key, quarantined) => format!("{key} quarantined: {}", quarantined.reason),
        }
    }

    fn on_node(cache: &Cache<PodView>, node: &str) -> Vec<String> {
        cache.index().get(node).map(ToString::to_string).collect()
    }

    #[test]
    fn a_cache_reports_changes_and_keeps_its_index() {
        let mut cache = Cache::<PodView>::default();
        let mut put = |raw: &str| shown(&cache.upsert(raw).unwrap().1);
        assert_eq!(put(&pod("a", "1", 5, "n1")), "d/a: - -> n1");
        assert_eq!(put(&pod("a", "1", 6, "n1")), "unchanged");
        assert_eq!(put(&pod("a", "1", 4, "n9")), "unchanged", "an older event is delivered again");
        assert_eq!(put(&pod("a", "1", 7, "n2")), "d/a: n1 -> n2");
        assert_eq!(put(&pod("a", "2", 9, "n2")), "d/a: n2 -> n2", "another object of the same name");
        assert_eq!((on_node(&cache, "n1").len(), on_node(&cache, "n2")), (0, vec!["d/a".to_owned()]));
        assert_eq!(shown(&cache.remove(&pod("a", "1", 8, "n2")).unwrap().1), "unchanged", "the deletion of the first");
        assert_eq!(shown(&cache.remove(&pod("a", "2", 10, "n2")).unwrap().1), "d/a: n2 -> -");
        assert!(cache.is_empty() && on_node(&cache, "n2").is_empty());
        let again = shown(&cache.upsert(&pod("a", "2", 9, "n2")).unwrap().1);
        assert_eq!(again, "unchanged", "what was deleted does not come back because an event is delivered again");
        cache.begin_list("", false);
        assert_eq!(shown(&cache.upsert(&pod("b", "3", 3, "n2")).unwrap().1), "d/b: - -> n2", "a list is in no order");
    }

    /// Whether a listener decides again that looks at no field.
    fn matters_to_a_filter(applied: &Applied<PodView>) -> bool {
        matches!(applied, Applied::Changed(change) if change.matters(|_, _| false))
    }

    #[test]
    fn a_malformed_object_is_quarantined_by_name_and_the_last_good_value_stays() {
        let mut cache = Cache::<PodView>::default();
        cache.upsert(&pod("a", "1", 5, "n1")).unwrap();
        let bad = pod("a", "1", 6, "n2").replace(r#""n2""#, "{}");
        let (revision, applied) = cache.upsert(&bad).unwrap();
        assert_eq!(revision, Revision(6));
        assert!(shown(&applied).starts_with("d/a quarantined: object: invalid type: map"), "{}", shown(&applied));
        assert_eq!(shown(&cache.upsert(&bad).unwrap().1), "unchanged", "reported once");
        assert_eq!(cache.get("d/a").unwrap().value.node.as_ref(), "n1");
        assert!(cache.quarantined("d/a").is_some());
        let recovered = cache.upsert(&pod("a", "1", 7, "n1")).unwrap().1;
        assert_eq!(shown(&recovered), "d/a: n1 -> n1", "recovery is a change");
        assert!(matters_to_a_filter(&recovered), "what was decided meanwhile was decided about something else");
        assert!(!matters_to_a_filter(&cache.upsert(&pod("a", "1", 8, "n2")).unwrap().1));
        assert_eq!(cache.quarantine_len(), 0);
        assert!(cache.upsert(r#"{"metadata":{"name":7}}"#).is_err(), "without a name there is nothing to set aside");
    }

    #[test]
    fn caches_are_compared_object_by_object() {
        let mut one = Cache::<PodView>::default();
        one.upsert(&pod("a", "1", 5, "n1")).unwrap();
        one.upsert(&pod("b", "2", 6, "n1")).unwrap();
        let differences = |one: &Cache<PodView>, other: &Cache<PodView>| -> Vec<String> {
            one.differences(other).iter().map(ToString::to_string).collect()
        };
        let mut other = Cache::<PodView>::default();
        assert_eq!(differences(&one, &other), ["d/a", "d/b"]);
        other.upsert(&pod("b", "2", 6, "n1")).unwrap();
        other.upsert(&pod("a", "1", 5, "n2")).unwrap();
        assert_eq!(differences(&one, &other), ["d/a"]);
        let bad = pod("a", "1", 7, "n2").replace(r#""n2""#, "{}");
        one.upsert(&bad).unwrap();
        assert_eq!(differences(&one, &other), ["d/a"]);
        other.upsert(&bad).unwrap();
        assert_eq!(differences(&one, &other), [""; 0], "both know that it cannot be read");
    }

    #[test]
    fn what_a_list_does_not_name_is_gone() {
        let mut cache = Cache::<PodView>::default();
        cache.upsert(&pod("a", "1", 5, "n1")).unwrap();
        cache.upsert(&pod("b", "2", 6, "n1")).unwrap();
        cache.upsert(r#"{"metadata":{"name":"c","resourceVersion":"7"},"spec":{"nodeName":{}}}"#).unwrap();
        cache.begin_list("", false);
        cache.upsert(&pod("b", "2", 6, "n1")).unwrap();
        let gone: Vec<String> = cache.end_list("").iter().map(|change| change.key.to_string()).collect();
        assert_eq!(gone, ["c", "d/a"]);
        assert_eq!(on_node(&cache, "n1"), ["d/b"]);
    }

    #[test]
    fn what_was_made_and_is_gone_before_it_was_seen_is_a_change() {
        let mut cache = Cache::<PodView>::default();
        let key = ObjectKey::new("d", "a");
        cache.expect_write(&key);
        cache.begin_list("", false);
        assert_eq!(cache.end_list("").iter().map(|change| change.key.to_string()).collect::<Vec<_>>(), ["d/a"]);
        cache.begin_list("", false);
        assert!(cache.end_list("").is_empty(), "it is reported once");

        cache.expect_write(&key);
        assert_eq!(shown(&cache.remove(&pod("a", "1", 8, "n1")).unwrap().1), "d/a: - -> -");
        cache.expect_write(&key);
        cache.upsert(&pod("a", "2", 9, "n1")).unwrap();
        cache.expect_write(&key);
        cache.begin_list("", false);
        cache.upsert(&pod("a", "2", 9, "n1")).unwrap();
        assert!(cache.end_list("").is_empty(), "it is there");
    }

    #[test]
    fn what_was_changed_and_changed_back_before_it_was_seen_is_a_change() {
        let key = ObjectKey::new("d", "a");
        let listed = |cache: &mut Cache<PodView>, revision| {
            cache.begin_list("", false);
            let applied = cache.upsert(&pod("a", "1", revision, "n1")).unwrap().1;
            assert!(cache.end_list("").is_empty());
            assert_eq!(matches!(applied, Applied::Changed(_)), matters_to_a_filter(&applied));
            matters_to_a_filter(&applied)
        };
        let mut cache = Cache::<PodView>::default();
        cache.upsert(&pod("a", "1", 5, "n1")).unwrap();
        assert!(!listed(&mut cache, 6), "nobody here wrote it");
        cache.expect_write(&key);
        assert!(!listed(&mut cache, 6), "the list is older than the write");
        assert!(listed(&mut cache, 8));
        assert!(!listed(&mut cache, 9), "it is reported once");
        cache.expect_write(&key);
        cache.upsert(&pod("a", "1", 10, "n2")).unwrap();
        cache.upsert(&pod("a", "1", 11, "n1")).unwrap();
        assert!(!listed(&mut cache, 12), "the watch showed it");
    }

    #[test]
    fn each_namespace_has_lists_and_deletions_of_its_own() {
        let mut cache = Cache::<PodView>::default().in_namespaces(&["d".to_owned(), "e".to_owned()]);
        let pod_of = |namespace: &str, name: &str, revision: u64| {
            pod(name, name, revision, "n1").replace(r#""namespace":"d""#, &format!(r#""namespace":"{namespace}""#))
        };
        let put = |cache: &mut Cache<PodView>, namespace: &str, name: &str, revision| {
            shown(&cache.upsert(&pod_of(namespace, name, revision)).unwrap().1)
        };
        cache.begin_list("d", false);
        put(&mut cache, "d", "a", 5);
        assert!(cache.end_list("d").is_empty() && !cache.is_complete());
        cache.begin_list("e", false);
        put(&mut cache, "e", "b", 6);
        put(&mut cache, "e", "c", 6);
        assert!(cache.end_list("e").is_empty(), "the list of one namespace does not end what the other has");
        assert!(cache.is_complete() && cache.len() == 3);

        cache.remove(&pod_of("d", "a", 20)).unwrap();
        assert_eq!(put(&mut cache, "e", "late", 15), "e/late: - -> n1", "watches do not wait for each other");
        assert_eq!(put(&mut cache, "d", "late", 15), "unchanged", "the one of this namespace had shown more");
        assert_eq!(put(&mut cache, "f", "x", 30), "unchanged", "nobody watches this namespace");

        cache.expect_write(&ObjectKey::new("f", "y"));
        cache.expect_write(&ObjectKey::new("d", "y"));
        cache.begin_list("e", false);
        put(&mut cache, "e", "late", 15);
        let gone: Vec<String> = cache.end_list("e").iter().map(|change| change.key.to_string()).collect();
        assert_eq!(gone, ["e/b", "e/c"]);
        cache.begin_list("d", true);
        let gone: Vec<String> = cache.end_list("d").iter().map(|change| change.key.to_string()).collect();
        assert_eq!(gone, ["d/y"], "what was written and never shown; elsewhere nothing is expected");
        assert_eq!(put(&mut cache, "d", "late", 15), "d/late: - -> n1", "revisions of this namespace are forgotten");
        assert_eq!(put(&mut cache, "e", "late", 14), "unchanged", "and of no other");
    }
}
