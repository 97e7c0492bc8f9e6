//! The reservations that pods of a class match, kept from one pod to the next and repaired with what has changed.

mod unused;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use koord_core::uid::Uid;
use koord_scheduler_framework::{
    Request,
    cluster::{ClassId, Cluster, ReservedId},
    columns::Row,
    node::Node,
};
use parking_lot::Mutex;

pub use self::unused::Unused;
use super::{Known, ReservationCache, ReservationMatch, ReservationSelector, Summary, node_of};

/// The reservations that a pod matches, by row and uid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched(Arc<[(Row, Uid)]>);

/// A pod that asks which reservations it matches.
#[derive(Clone, Copy)]
pub struct ReservationQuery<'a> {
    pub request: &'a Request<'a>,
    pub selector: &'a ReservationSelector,
    pub cluster: &'a Cluster,
    /// Whether labels of a node count where its reservations have none of the key.
    pub has_node_labels: bool,
}

/// The nodes whose reservations count: those that the pod's scheduling hint names, or that of the reservation that it names, or
/// all (3C.5).
struct Scope<'a> {
    hinted: Vec<String>,
    named: Option<&'a str>,
}

/// The last changes of reservations, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    uids: VecDeque<Uid>,
    /// The position of the first of them.
    start: u64,
}

/// What the classes that asked lately match.
#[derive(Debug, Default)]
pub(super) struct Matching(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    classes: BTreeMap<(ClassId, bool), OfClass>,
    last_query: u64,
}

/// What the pods of a class match that no reservation names.
#[derive(Debug)]
struct OfClass {
    _id: ReservedId,
    /// The changes up to here are in it.
    position: u64,
    last_query: u64,
    matched: Matched,
}

// === impl Matched ===

impl Matched {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in order.
    pub fn all(&self) -> &Arc<[(Row, Uid)]> {
        &self.0
    }

    /// Those of each row.
    pub fn by_row(&self) -> impl Iterator<Item = &[(Row, Uid)]> {
        self.0.chunk_by(|(one, _), (other, _)| one == other)
    }

    /// The rows on which there are any, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.by_row().filter_map(|on_row| on_row.first().map(|(row, _)| *row))
    }

    /// Those of a row.
    pub fn on(&self, row: Row) -> impl Iterator<Item = &Uid> {
        let begin = self.0.partition_point(|(at, _)| *at < row);
        self.0[begin..].iter().take_while(move |(at, _)| *at == row).map(|(_, uid)| uid)
    }

    /// Each of these, in the order of their uids, is matched on this row now, or not at all.
    fn repair(&mut self, changes: &[(&Uid, Option<Row>)]) {
        if self.is_empty() && changes.iter().all(|(_, row)| row.is_none()) {
            return;
        }
        let is_same = |(_, uid): &&(Row, Uid)| changes.binary_search_by(|(changed, _)| (*changed).cmp(uid)).is_err();
        let mut all: Vec<(Row, Uid)> = self.0.iter().filter(is_same).cloned().collect();
        for (row, uid) in changes.iter().filter_map(|(uid, row)| Some(((*row)?, *uid))) {
            let at = all.partition_point(|(known, other)| (*known, other) < (row, uid));
            all.insert(at, (row, uid.clone()));
        }
        if *all != *self.0 {
            self.0 = all.into();
        }
    }
}

impl FromIterator<(Row, Uid)> for Matched {
    fn from_iter<I: IntoIterator<Item = (Row, Uid)>>(matched: I) -> Self {
        let mut all: Vec<(Row, Uid)> = matched.into_iter().collect();
        all.sort_unstable();
        Self(all.into())
    }
}

// === impl Asks ===

impl<'a> ReservationQuery<'a> {
    fn scope(&self) -> Scope<'a> {
        let mut sources = self.request.each(|plugin| &plugin.scheduling_hint);
        let hinted = sources.next().map_or_else(Vec::new, |hints| hints.hinted_nodes(self.request.template()));
        let named = self.selector.name().filter(|_| hinted.is_empty()).and_then(|name| node_of(name, self.cluster));
        Scope { hinted, named }
    }

    /// Whether the pod selects a node.
    fn selects(&self, node: &Node) -> bool {
        self.request.template().affinity.selects(&node.name, |key| node.labels.get(key))
    }

    /// What is to be said about a reservation on its node, where it is asked about.
    fn about(&self, known: &Known, row: Row, node: &Node) -> Option<(Row, ReservationMatch)> {
        let template = self.request.template();
        if !self.selects(node) {
            return None;
        }
        let labels = if self.has_node_labels { &node.labels } else { &known.info.labels };
        Some((row, self.selector.accepts(&template.requests, &known.info, &known.allocatable, labels)))
    }
}

impl Scope<'_> {
    fn has(&self, node: &str) -> bool {
        self.named.is_none_or(|named| named == node)
            && (self.hinted.is_empty() || self.hinted.iter().any(|hinted| hinted == node))
    }
}

// === impl Changes ===

impl Changes {
    /// Who is further behind matches all reservations again, which is not much more work.
    const CHANGES_MAX: usize = 256;

    pub(super) fn note(&mut self, uid: &Uid) {
        if self.uids.len() == Self::CHANGES_MAX {
            self.uids.pop_front();
            self.start += 1;
        }
        self.uids.push_back(uid.clone());
    }

    fn end(&self) -> u64 {
        self.start + self.uids.len() as u64
    }

    /// What has changed since, once each; none where that is too long ago to be known.
    fn since(&self, position: u64) -> Option<Vec<&Uid>> {
        let skipped = usize::try_from(position.checked_sub(self.start)?).ok()?;
        let mut uids: Vec<&Uid> = self.uids.iter().skip(skipped).collect();
        uids.sort_unstable();
        uids.dedup();
        Some(uids)
    }
}

// === impl Matching ===

/// A copy remembers nothing.
impl Clone for Matching {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Matching {
    /// Classes that are kept: as many as the engine keeps answers for in a large cluster.
    const CLASSES_MAX: usize = 64;

    fn of(&self, cache: &ReservationCache, query: &ReservationQuery<'_>) -> Matched {
        let (class, mut known) = (query.request.class, self.0.lock());
        let key = (class.id(), query.has_node_labels);
        known.last_query += 1;
        let (last_query, position) = (known.last_query, cache.changes.end());
        if let Some(of_class) = known.classes.get_mut(&key)
            && let Some(changed) = cache.changes.since(of_class.position)
        {
            let scope = query.scope();
            let changed = changed.into_iter().map(|uid| (uid, cache.matches(uid, query, &scope)));
            of_class.matched.repair(&changed.collect::<Vec<_>>());
            (of_class.position, of_class.last_query) = (position, last_query);
            return of_class.matched.clone();
        }
        let matched = cache.matched_anew(query);
        if known.classes.len() >= Self::CLASSES_MAX {
            let oldest = known.classes.iter().min_by_key(|(_, of_class)| of_class.last_query).map(|(key, _)| *key);
            oldest.map(|key| known.classes.remove(&key));
        }
        known.classes.insert(key, OfClass { _id: class.reserve_id(), position, last_query, matched: matched.clone() });
        matched
    }
}

// === impl ReservationCache ===

impl ReservationCache {
    /// The reservations that a pod matches.
    pub fn matched(&self, query: &ReservationQuery<'_>) -> Matched {
        let scope = query.scope();
        let is_alone = !scope.hinted.is_empty() || query.selector.name().is_some() || self.names(query.request.pod);
        if self.is_empty() {
            Matched::default()
        } else if is_alone {
            self.matched_anew(query)
        } else {
            self.matching.of(self, query)
        }
    }

    /// The same, whatever is known of other pods.
    pub fn matched_anew(&self, query: &ReservationQuery<'_>) -> Matched {
        let scope = query.scope();
        let matched =
            self.queried(query).into_iter().filter_map(|uid| Some((self.matches(uid, query, &scope)?, uid.clone())));
        matched.collect()
    }

    /// How many reservations a pod matches, and why not the others.
    pub fn summary(&self, query: &ReservationQuery<'_>) -> Summary {
        let (mut summary, scope) = (Summary::default(), query.scope());
        for uid in self.queried(query) {
            if let Some((_, verdict)) = self.about(uid, query, &scope) {
                summary.count(&verdict, query.selector);
            }
        }
        summary
    }

    /// Whether a reservation that takes further owners has any already, on a node that a pod may use.
    pub fn is_shared(&self, query: &ReservationQuery<'_>) -> bool {
        let scope = query.scope();
        let is_near = |(_, node): (Row, &Arc<Node>)| scope.has(&node.name) && query.selects(node);
        let mut shared = self.shared.iter().filter_map(|uid| self.infos.get(uid));
        shared.any(|known| known.node(query.cluster).is_some_and(is_near))
    }

    /// A reservation, or who uses it, has changed: it takes further owners and has some, or not.
    pub fn note_shared(&mut self, uid: &Uid) {
        if self.info(uid).is_some_and(|info| info.is_matchable() && info.assigned_count() > 0) {
            self.shared.insert(uid.clone());
        } else {
            self.shared.remove(uid);
        }
    }

    /// The reservations about which something may be said to a pod.
    fn queried(&self, query: &ReservationQuery<'_>) -> Vec<&Uid> {
        if query.selector.is_ignoring { self.infos.keys().collect() } else { self.candidates(query.request.pod) }
    }

    /// The row of a reservation, if a pod matches it.
    fn matches(&self, uid: &Uid, query: &ReservationQuery<'_>, scope: &Scope<'_>) -> Option<Row> {
        let about = self.about(uid, query, scope);
        about
            .filter(|(_, verdict)| matches!(verdict, ReservationMatch::Matched | ReservationMatch::Ignored))
            .map(|(row, _)| row)
    }

    /// What is to be said about a reservation to a pod that may use it or ignores all, where it is asked about.
    fn about(&self, uid: &Uid, query: &ReservationQuery<'_>, scope: &Scope<'_>) -> Option<(Row, ReservationMatch)> {
        let known = self.infos.get(uid)?;
        let owners = known.info.owners.as_ref();
        if !query.selector.is_ignoring && !owners.is_some_and(|owners| owners.match_pod(query.request.pod)) {
            return None;
        }
        let (row, node) = known.node(query.cluster).filter(|(_, node)| scope.has(&node.name))?;
        query.about(known, row, node)
    }
}

#[cfg(test)]
mod tests;
