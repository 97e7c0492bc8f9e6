//! Pods, reservations and gangs whose end would let a pod in: the fewest pods, as an engine without them decides.
//!
//! It is looked for where no preemption helps: what stands in the way has the same or a higher priority, or may not be evicted. An end
//! is tried alone, then two on one node, and gangs as a whole. Of as many pods those go first whose end is known and comes first.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use jiff::Timestamp;
use koord_resource::controller::ResourceKind;
use koord_runtime::uid::Uid;
use koord_scheduler_engine::{Decision, Engine, Outcome};
use koord_scheduler_framework::{
    ReasonCode,
    cluster::{Cluster, Placed},
    columns::Row,
    cycle::OnNode,
    pod::Pod,
};
use koord_scheduler_plugins_koordinator::reservation::lifecycle::expires_at;
use koord_scheduling::count;
use koord_types::{quota, reservation::Reservation};
use serde_json::json;

use super::{
    Unblock,
    change::{Change, Edit},
    deadline, is_of_device,
    quota::exceeded,
    trials::Trials,
};
use crate::{Objects, service};

/// Answers that are given.
const ANSWERS_MAX: usize = 2;
/// Trials for one pod.
const TRIALS_MAX: u32 = 48;
/// Trials for a gang, for each of which the queue is played: as it is, and with eight ends.
const TRIALS_OF_GANG_MAX: u32 = 9;
/// Members of a gang whose end is tried.
const MEMBERS_MAX: usize = 64;
/// What is on a node and is tried in pairs.
const PAIRED_MAX: usize = 24;
/// Nodes on which pairs are tried.
const PAIRED_NODES_MAX: usize = 32;

/// The answers, and what is said where not everything was tried.
#[derive(Default)]
pub(super) struct Ends {
    pub(super) answers: Vec<Unblock>,
    pub(super) limit: Option<String>,
}

/// Something that ends as a whole.
struct Occupant<'e> {
    kind: &'static str,
    /// Such as `pod shop/web-0`.
    name: String,
    pods: Vec<&'e Placed>,
    /// When it ends, as far as the scheduler knows that.
    ends: Option<Timestamp>,
}

/// What would end together.
struct Candidate<'o, 'e> {
    occupants: Vec<&'o Occupant<'e>>,
    /// Whether one of them may be enough.
    is_superfluous: bool,
    /// What is freed of what the pod requests, in thousandths of that.
    freed: i64,
}

/// For which pod it is looked.
struct Search<'e> {
    cluster: &'e Cluster,
    pod: &'e Pod,
    decision: &'e Decision,
    /// Whether the pod is tried in its turn, with its gang.
    in_turn: bool,
}

/// The ends with which a pod would be placed; nothing where preemption helps, or other things keep it from being tried.
pub(super) async fn ends(
    engine: &Engine,
    objects: &mut Objects,
    pod: &Pod,
    decision: &Decision,
    in_turn: bool,
) -> Result<Ends> {
    let may_help = match &decision.outcome {
        Some(Outcome::Refused(refused)) => refused.nominated.is_none() && decision.held.is_none(),
        _ => in_turn && decision.held.as_ref().is_none_or(|(_, reason)| reason.code == ReasonCode::GangRepresented),
    };
    if !may_help {
        return Ok(Ends::default());
    }
    let search = Search { cluster: engine.cluster(), pod, decision, in_turn };
    let occupants = occupants(engine, pod);
    let candidates = search.candidates(&occupants);
    let trials_max = if in_turn { TRIALS_OF_GANG_MAX } else { TRIALS_MAX };
    let mut trials = Trials::of(engine, objects, pod.uid.clone(), trials_max);
    trials.in_turn = in_turn;
    if in_turn && trials.placement(&[]).await?.is_some() {
        return Ok(Ends::default());
    }
    let (mut found, mut fewest, mut tried) = (Ends::default(), usize::MAX, 0);
    for candidate in &candidates {
        if found.answers.len() >= ANSWERS_MAX || candidate.size() > fewest {
            break;
        }
        if trials.is_spent() {
            let all = candidates.len();
            found.limit = Some(format!("only {tried} of {all} ends of pods that might let it in were tried"));
            break;
        }
        tried += 1;
        let changes: Vec<Change> = candidate.occupants.iter().map(|occupant| occupant.change(None)).collect();
        let Some(placement) = trials.placement(&changes.iter().collect::<Vec<_>>()).await? else { continue };
        fewest = candidate.size();
        let mut changes = Vec::new();
        for occupant in &candidate.occupants {
            let expected = occupant.expected(trials.objects).await;
            changes.push(occupant.change(expected));
        }
        found.answers.push(Unblock { changes, placement, nodes: 1 });
    }
    Ok(found)
}

/// What has a place and may end: pods, reservations, and gangs of several pods.
fn occupants<'e>(engine: &'e Engine, pod: &Pod) -> Vec<Occupant<'e>> {
    let gangs = gangs(engine);
    let gang_of = |pod: &Pod| gangs.get(pod.key.as_str()).map(String::as_str);
    let own_gang = gang_of(pod);
    let mut members = BTreeMap::<&str, Vec<&Placed>>::new();
    let mut all = Vec::new();
    // Pods of a DaemonSet come again.
    for placed in engine.cluster().pods().filter(|placed| !placed.pod.is_of_daemon_set) {
        let gang = gang_of(&placed.pod);
        if gang.is_some() && gang == own_gang {
            continue;
        }
        if let Some(gang) = gang {
            members.entry(gang).or_default().push(placed);
        }
        all.extend(Occupant::of(engine.cluster(), placed));
    }
    let whole = members.into_iter().filter(|(_, pods)| (2..=MEMBERS_MAX).contains(&pods.len()));
    all.extend(whole.map(|(gang, pods)| {
        let name = format!("gang {gang} ({} pods)", pods.len());
        let ends: Option<Vec<Timestamp>> = pods.iter().map(|placed| ends_of(&placed.pod)).collect();
        let ends = ends.and_then(|ends| ends.into_iter().max());
        Occupant { kind: "gangEnded", name, pods, ends }
    }));
    all
}

/// The gang of each pod that is in one.
fn gangs(engine: &Engine) -> BTreeMap<String, String> {
    let gangs = service(engine, "Coscheduling", &["gangs"]).unwrap_or_default();
    let gangs = gangs.as_object().into_iter().flatten();
    let members = gangs.flat_map(|(gang, known)| {
        let pods = known["children"].as_object().into_iter().flat_map(serde_json::Map::keys);
        pods.map(move |pod| (pod.clone(), gang.clone()))
    });
    members.collect()
}

/// When a pod is gone that is being deleted.
fn ends_of(pod: &Pod) -> Option<Timestamp> {
    pod.ends.and_then(|seconds| Timestamp::from_second(seconds).ok())
}

impl<'e> Occupant<'e> {
    /// A pod, or the reservation for which it stands; none of other objects.
    fn of(cluster: &Cluster, placed: &'e Placed) -> Option<Self> {
        let pods = vec![placed];
        let Some(object) = &placed.pod.reservation else {
            let (name, ends) = (format!("pod {}", placed.pod.key), ends_of(&placed.pod));
            return Some(Self { kind: "podEnded", name, pods, ends });
        };
        let reservation = cluster.objects().get::<Reservation>(object.key.as_str())?;
        let name = format!("reservation {}", object.key);
        Some(Self { kind: "reservationEnded", name, pods, ends: expires_at(reservation) })
    }

    /// The end, as an edit of each object.
    fn change(&self, expected: Option<Timestamp>) -> Change {
        let edits = self.pods.iter().map(|placed| {
            let (kind, key, phase) = match &placed.pod.reservation {
                Some(object) => (object.kind, object.key.clone(), "Failed"),
                None => (ResourceKind::POD, placed.pod.key.clone(), "Succeeded"),
            };
            Edit { kind, key, path: "/status/phase".to_owned(), value: json!(phase) }
        });
        let when = expected.map(|at| format!(" (expected by {at})")).unwrap_or_default();
        let pods = self.pods.iter().filter(|placed| !placed.pod.is_reservation());
        let ended: Vec<Uid> = pods.map(|placed| placed.pod.uid.clone()).collect();
        let change = Change::of(self.kind, format!("{} ended{when}", self.name), edits.collect());
        Change { ended, expected_at: expected, ..change }
    }

    /// When it ends at the latest; none where that is not known of each of its pods.
    async fn expected(&self, objects: &mut Objects) -> Option<Timestamp> {
        if self.ends.is_some() {
            return self.ends;
        }
        let mut last: Option<Timestamp> = None;
        for placed in &self.pods {
            if placed.pod.is_reservation() {
                return None;
            }
            let known = [ends_of(&placed.pod), deadline::of_pod(objects, &placed.pod.key).await];
            last = last.max(Some(known.into_iter().flatten().min()?));
        }
        last
    }

    /// Its pods on a node.
    fn on(&self, row: Row) -> impl Iterator<Item = &'e Placed> {
        self.pods.iter().copied().filter(move |placed| placed.row == row)
    }
}

impl Candidate<'_, '_> {
    /// How many pods end.
    fn size(&self) -> usize {
        self.occupants.iter().map(|occupant| occupant.pods.len()).sum()
    }

    /// The last of the ends; none where one is not known.
    fn ends(&self) -> Option<Timestamp> {
        let ends: Option<Vec<Timestamp>> = self.occupants.iter().map(|occupant| occupant.ends).collect();
        ends?.into_iter().max()
    }

    fn names(&self) -> Vec<&str> {
        self.occupants.iter().map(|occupant| &*occupant.name).collect()
    }
}

impl<'e> Search<'e> {
    /// The ends that may help, in the order in which they are tried.
    fn candidates<'o>(&self, occupants: &'o [Occupant<'e>]) -> Vec<Candidate<'o, 'e>> {
        let mut all: Vec<Candidate<'o, 'e>> = match &self.decision.rejected {
            _ if self.in_turn => occupants.iter().map(|occupant| self.candidate(vec![occupant], false)).collect(),
            Some(("ElasticQuota", rejection)) => self.of_quota(occupants, &exceeded(&rejection.message())),
            Some(_) => Vec::new(),
            None => self.of_nodes(occupants),
        };
        all.sort_by_cached_key(|one| {
            let freed = if self.in_turn { -one.freed } else { one.freed };
            let ends = one.ends();
            (one.size(), one.is_superfluous, ends.is_none(), ends, freed, one.names().join(" "))
        });
        all
    }

    fn candidate<'o>(&self, occupants: Vec<&'o Occupant<'e>>, is_superfluous: bool) -> Candidate<'o, 'e> {
        let freed = self.pod.template.requests.iter().map(|(name, amount)| {
            let (requested, freed) = (count(name, amount).max(1), freed(&occupants, name, |_| true));
            i64::try_from(i128::from(freed) * 1000 / i128::from(requested)).unwrap_or(i64::MAX)
        });
        let freed = freed.fold(0, i64::saturating_add);
        Candidate { occupants, is_superfluous, freed }
    }

    /// What uses what the quota of the pod has not left.
    fn of_quota<'o>(&self, occupants: &'o [Occupant<'e>], exceeded: &[String]) -> Vec<Candidate<'o, 'e>> {
        let quota_of = |pod: &Pod| {
            let label = pod.template.labels.get(quota::NAME).map(str::to_owned);
            label.unwrap_or_else(|| pod.key.namespace().to_owned())
        };
        let own_quota = quota_of(self.pod);
        let is_alike = |occupant: &&Occupant<'_>| {
            occupant.pods.iter().all(|placed| quota_of(&placed.pod) == own_quota)
                && exceeded.iter().all(|name| freed(&[*occupant], name, |_| true) > 0)
        };
        occupants.iter().filter(is_alike).map(|occupant| self.candidate(vec![occupant], false)).collect()
    }

    /// What is in the way on nodes where evictions might help.
    fn of_nodes<'o>(&self, occupants: &'o [Occupant<'e>]) -> Vec<Candidate<'o, 'e>> {
        let mut on_rows = BTreeMap::<Row, Vec<&'o Occupant<'e>>>::new();
        for occupant in occupants {
            let rows: BTreeSet<Row> = occupant.pods.iter().map(|placed| placed.row).collect();
            for row in rows {
                on_rows.entry(row).or_default().push(occupant);
            }
        }
        let may_help = |on: &&OnNode| !on.refusals.is_empty() && on.refusals.iter().all(|one| one.resolvable);
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for (number, on) in self.decision.nodes.iter().filter(may_help).enumerate() {
            let Some(row) = self.cluster.row(&on.node) else { continue };
            let here = on_rows.get(&row).map(Vec::as_slice).unwrap_or_default();
            let (enough, short): (Vec<_>, Vec<_>) =
                here.iter().copied().partition(|occupant| self.is_enough(on, row, &[*occupant]));
            // A gang is on several nodes.
            let new = enough.iter().filter(|occupant| seen.insert(occupant.name.clone()));
            all.extend(new.map(|occupant| self.candidate(vec![*occupant], false)));
            if number >= PAIRED_NODES_MAX {
                continue;
            }
            let single = |occupants: &[&'o Occupant<'e>]| -> Vec<&'o Occupant<'e>> {
                occupants.iter().copied().filter(|occupant| occupant.pods.len() == 1).take(PAIRED_MAX).collect()
            };
            let (enough, short) = (single(&enough), single(&short));
            let paired: Vec<&'o Occupant<'e>> = short.iter().chain(&enough).copied().collect();
            for (index, first) in paired.iter().copied().enumerate() {
                let others = paired.iter().copied().skip(index + 1);
                for second in others.filter(|second| self.is_enough(on, row, &[first, *second])) {
                    let is_superfluous = [first, second].iter().any(|one| self.is_enough(on, row, &[*one]));
                    all.push(self.candidate(vec![first, second], is_superfluous));
                }
            }
        }
        all
    }

    /// Whether the end of these may remove what the plugins have against a node, as far as that is seen without a trial.
    fn is_enough(&self, on: &OnNode, row: Row, ending: &[&Occupant<'e>]) -> bool {
        let template = &self.pod.template;
        on.refusals.iter().all(|refusal| match refusal.plugin {
            "NodeResourcesFit" => template.requests.iter().all(|(name, amount)| {
                let Some(id) = self.cluster.resources().get(name) else { return count(name, amount) <= 0 };
                let missing = count(name, amount) + self.cluster.requested(id, row) - self.cluster.allocatable(id, row);
                missing <= 0 || missing <= freed(ending, name, |placed| placed.row == row)
            }),
            "NodePorts" => {
                let mut placed = ending.iter().flat_map(|occupant| occupant.on(row));
                placed.any(|placed| placed.pod.template.host_ports.conflict(&template.host_ports))
            }
            "DeviceShare" => ending.iter().flat_map(|occupant| occupant.on(row)).any(|placed| {
                let mut requests = placed.pod.template.requests.iter();
                requests.any(|(name, _)| is_of_device(name))
            }),
            _ => true,
        })
    }
}

/// How much of a resource ends with these, of their pods that count.
fn freed(ending: &[&Occupant<'_>], name: &str, counts: impl Fn(&Placed) -> bool) -> i64 {
    let pods = ending.iter().flat_map(|occupant| occupant.pods.iter().copied()).filter(|placed| counts(placed));
    let amounts = pods.filter_map(|placed| placed.pod.template.requests.get(name));
    amounts.map(|amount| count(name, amount)).fold(0, i64::saturating_add)
}
