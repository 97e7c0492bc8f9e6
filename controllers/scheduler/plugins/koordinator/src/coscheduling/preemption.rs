//! Preemption for all pods of a job at once: which pods of lower priority would be victims, tried and undone (3E.8).
//!
//! Nobody is evicted unless all pods of the job have a place then.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use koord_core::uid::Uid;
use koord_scheduler_framework::{
    Attempted, Profile, Rejection, Request,
    cluster::{Cluster, Placed},
    columns::Row,
    cycle::Rehearsal,
    pod::{Pod, Template},
    preemption::is_unresolvable,
    unavailable,
};
use koord_types::{gang::NetworkTopologySpec, pod_annotations::DISABLE_PREEMPTIBLE, quota::PREEMPTIBLE};
use thiserror::Error;

use super::{
    arrangement::{Arrangement, arrange_in, tree},
    topology::Unplaceable,
};

/// The label that names the job of a pod.
const JOB: &str = "scheduling.koordinator.sh/questioned-object-key";

/// Where the pods of a job go, and who is evicted for them.
#[derive(Debug)]
pub(super) struct Nominations {
    /// The node of each pod.
    pub(super) rows: Vec<(Uid, Row)>,
    /// None where all who would have to go are leaving already.
    pub(super) victims: Vec<Uid>,
}

/// Why the pods of a job cannot preempt.
#[derive(Debug, Error)]
pub(super) enum PreemptionError {
    /// How many nodes refuse a pod of the job, by reason.
    #[error("{}", unavailable(.reasons, *.nodes))]
    Unavailable { reasons: BTreeMap<String, usize>, nodes: usize },
    #[error("{}", .0.message())]
    NoTopology(Rejection),
    #[error(transparent)]
    Unplaceable(#[from] Unplaceable),
}

/// Those on each node who may go for a job.
struct Evictable {
    by_row: BTreeMap<Row, Vec<Placed>>,
    /// Those among them who go anyway.
    leaving: BTreeSet<Uid>,
}

/// Whether a pod may be evicted for one of this priority.
pub(super) fn may_evict(placed: &Placed, priority: i32) -> bool {
    let Template { labels, priority: victim_priority, .. } = &**placed.class.template();
    // A reserve pod is no pod that could be evicted.
    let is_protected = labels.get(DISABLE_PREEMPTIBLE.name()) == Some("true") || placed.pod.is_reservation();
    *victim_priority < priority && !is_protected && labels.get(PREEMPTIBLE.name()) != Some("false")
}

/// Preempts for the pods of a job, the refused one among them. A job with a network topology is placed as that requires.
pub(super) fn preempt(
    request: &Request<'_>,
    attempted: &mut Attempted<'_>,
    pods: &[Arc<Pod>],
    place: Option<&NetworkTopologySpec>,
    planner: &str,
) -> Result<Nominations, PreemptionError> {
    let profile = attempted.profile;
    let candidates = attempted.resolvable(request.pod, &mut profile.prepare(request, attempted.cluster));
    let job: BTreeSet<&Uid> = pods.iter().map(|pod| &pod.uid).collect();
    let evictable = Evictable::on(&candidates, request.template().priority, &job, attempted.cluster);
    let nodes = attempted.cluster.len();
    if candidates.is_empty() {
        return Err(not_helpful(nodes));
    }
    if evictable.by_row.is_empty() {
        let reasons = BTreeMap::from([("no potential victims".to_owned(), candidates.len())]);
        return Err(PreemptionError::Unavailable { reasons, nodes });
    }
    let costs = evictable.costs();
    let place = place.map(|spec| tree(attempted.cluster).map(|tree| (tree, spec)));
    let place = place.transpose().map_err(PreemptionError::NoTopology)?;
    let mut attempt = Attempt { rehearsal: Rehearsal::new(profile, attempted.cluster, pods), planner };
    evictable.all().for_each(|placed| attempt.rehearsal.remove(&placed.pod.uid));
    let rows = match place {
        None => attempt.place_cheaply(profile, candidates, &costs)?,
        Some((tree, spec)) => {
            let score = |row: Row| -costs.get(&row).copied().unwrap_or(0);
            let arrangement = arrange_in(&mut attempt.rehearsal, profile, &tree, spec, score)?;
            attempt.place_as_arranged(&arrangement)?
        }
    };
    let victims = attempt.spare(&rows, &evictable)?;
    let is_of_use = !victims.is_empty() || !evictable.leaving.is_empty();
    let rows = pods.iter().map(|pod| pod.uid.clone()).zip(rows).collect();
    is_of_use.then_some(Nominations { rows, victims }).ok_or_else(|| not_helpful(nodes))
}

/// Whether one of these pods is nominated and waits for victims. That of the refused pod does not count on a node that
/// will not take it.
pub(super) fn waits_for_victims(request: &Request<'_>, attempted: &Attempted<'_>, pods: &[Uid]) -> bool {
    let cluster = &*attempted.cluster;
    let waits = |uid: &Uid| {
        let (Some(pod), Some(row)) = (cluster.pending_pod(uid), cluster.nomination(uid)) else { return false };
        let priority = pod.template.priority;
        let is_lost = || *uid == request.pod.uid && is_unresolvable(request, attempted, row);
        cluster.pods_on(row).any(|placed| may_evict(placed, priority) && cluster.is_evicted(placed)) && !is_lost()
    };
    pods.iter().any(waits)
}

fn not_helpful(nodes: usize) -> PreemptionError {
    let reasons = BTreeMap::from([("Preemption is not helpful for scheduling".to_owned(), nodes)]);
    PreemptionError::Unavailable { reasons, nodes }
}

impl Evictable {
    fn on(rows: &[Row], priority: i32, job: &BTreeSet<&Uid>, cluster: &Cluster) -> Self {
        let on_row = |row: &Row| {
            let may_go = |placed: &&Placed| {
                may_evict(placed, priority) && !cluster.is_spared(placed) && !job.contains(&placed.pod.uid)
            };
            let mut pods: Vec<Placed> = cluster.pods_on(*row).filter(may_go).cloned().collect();
            pods.sort_by(|one, other| importance(one).cmp(&importance(other)));
            (!pods.is_empty()).then_some((*row, pods))
        };
        let by_row: BTreeMap<Row, Vec<Placed>> = rows.iter().filter_map(on_row).collect();
        let leaving = by_row.values().flatten().filter(|placed| placed.pod.deleting || cluster.is_evicted(placed));
        let leaving = leaving.map(|placed| placed.pod.uid.clone()).collect();
        Self { by_row, leaving }
    }

    fn all(&self) -> impl Iterator<Item = &Placed> {
        self.by_row.values().flatten()
    }

    /// What it costs to empty a node: over the jobs on it, the rank of their highest priority among all priorities.
    fn costs(&self) -> BTreeMap<Row, i64> {
        let priorities: BTreeSet<i32> = self.all().map(|placed| placed.pod.template.priority).collect();
        let ranks: BTreeMap<i32, i64> = priorities.into_iter().zip(0..).collect();
        let cost = |pods: &[Placed]| -> i64 {
            // The most important of a job comes last.
            let jobs: BTreeMap<&str, i32> =
                pods.iter().rev().map(|placed| (job_of(placed), placed.pod.template.priority)).collect();
            jobs.values().filter_map(|priority| ranks.get(priority)).sum()
        };
        self.by_row.iter().map(|(row, pods)| (*row, cost(pods))).collect()
    }
}

/// The order in which pods are spared: the highest priority first, then by job and name, whatever the namespace.
fn importance(placed: &Placed) -> (Reverse<i32>, &str, &str, &str) {
    let key = &placed.pod.key;
    (Reverse(placed.pod.template.priority), job_of(placed), key.name(), key.namespace())
}

fn job_of(placed: &Placed) -> &str {
    placed.class.template().labels.get(JOB).unwrap_or_default()
}

/// A rehearsal of a job without those who may go for it.
struct Attempt<'c> {
    rehearsal: Rehearsal<'c>,
    /// The plugin that decides; it admits the job's pods itself.
    planner: &'c str,
}

impl Attempt<'_> {
    /// Puts each pod on the cheapest of these rows that takes it, beside those before it.
    fn place_cheaply(
        &mut self,
        profile: &Profile,
        mut rows: Vec<Row>,
        costs: &BTreeMap<Row, i64>,
    ) -> Result<Vec<Row>, PreemptionError> {
        let cluster = self.rehearsal.cluster();
        // A node without victims comes before one whose pods cost nothing because they are the least important ones.
        let cost = |row: Row| costs.get(&row).map_or((0, false), |cost| (*cost, true));
        rows.sort_by_cached_key(|row| (cost(*row), cluster.node(*row).map(|node| Arc::clone(&node.name))));
        let (pods, nodes) = (self.rehearsal.pods().len(), self.rehearsal.cluster().len());
        let mut places = Vec::new();
        for pod in 0..pods {
            let mut reasons = BTreeMap::<String, usize>::new();
            let rejected = |rejection: Rejection| PreemptionError::Unavailable {
                reasons: BTreeMap::from([(rejection.message(), nodes)]),
                nodes,
            };
            self.rehearsal.admit(pod, self.planner).map_err(rejected)?;
            let place = rows.iter().copied().find(|row| {
                let refused = match self.rehearsal.takes(pod, *row) {
                    Ok(()) => self.rehearsal.place(pod, *row).err().map(|rejection| rejection.reasons),
                    Err(verdict) => Some(profile.reasons(&verdict, self.rehearsal.cluster())),
                };
                let is_taken = refused.is_none();
                refused.into_iter().flatten().for_each(|reason| *reasons.entry(reason.text).or_default() += 1);
                is_taken
            });
            places.push(place.ok_or(PreemptionError::Unavailable { reasons, nodes })?);
        }
        Ok(places)
    }

    fn place_as_arranged(&mut self, arrangement: &Arrangement) -> Result<Vec<Row>, PreemptionError> {
        let cluster = self.rehearsal.cluster();
        let row = |pod: &Arc<Pod>| arrangement.get(&pod.uid).and_then(|node| cluster.row(node));
        let rows: Option<Vec<Row>> = self.rehearsal.pods().map(row).collect();
        let rows = rows.ok_or_else(|| not_helpful(cluster.len()))?;
        if self.places(&rows, |_| true) { Ok(rows) } else { Err(not_helpful(self.rehearsal.cluster().len())) }
    }

    /// Puts the pods whose row is among these in their places, one after the other.
    fn places(&mut self, rows: &[Row], is_among: impl Fn(Row) -> bool) -> bool {
        let mut pods = rows.iter().copied().enumerate().filter(|(_, row)| is_among(*row));
        pods.all(|(pod, row)| {
            self.rehearsal.admit(pod, self.planner).is_ok()
                && self.rehearsal.takes(pod, row).is_ok()
                && self.rehearsal.place(pod, row).is_ok()
        })
    }

    fn displace(&mut self, rows: &[Row], is_among: impl Fn(Row) -> bool) {
        let pods = self.rehearsal.pods().zip(rows).filter(|(_, row)| is_among(**row));
        for uid in pods.map(|(pod, _)| pod.uid.clone()).collect::<Vec<_>>() {
            self.rehearsal.remove(&uid);
        }
    }

    /// Those without whom the job does not fit where it is: the others stay.
    fn spare(&mut self, rows: &[Row], evictable: &Evictable) -> Result<Vec<Uid>, PreemptionError> {
        let is_used = |row: &Row| rows.contains(row);
        let unused = evictable.by_row.iter().filter(|(row, _)| !is_used(row));
        unused.flat_map(|(_, pods)| pods).for_each(|placed| self.rehearsal.put_back(placed));
        let mut victims = Vec::new();
        for placed in evictable.by_row.iter().filter(|(row, _)| is_used(row)).flat_map(|(_, pods)| pods) {
            if evictable.leaving.contains(&placed.pod.uid) {
                continue;
            }
            let point = self.rehearsal.point();
            let is_there = |row: Row| row == placed.row;
            self.displace(rows, is_there);
            self.rehearsal.put_back(placed);
            if !self.places(rows, is_there) {
                self.rehearsal.back_to(point);
                victims.push(placed.pod.uid.clone());
            }
        }
        // Those who stay may be in the way of pods on other nodes.
        self.displace(rows, |_| true);
        if self.places(rows, |_| true) { Ok(victims) } else { Err(not_helpful(self.rehearsal.cluster().len())) }
    }
}
