//! What decides: plugins, as the scheduling framework of Kubernetes has them, over columns.
//!
//! A plugin looks at a pod once and prepares what it then asks of every node ([`Filter`], [`Score`]). Most of what is
//! prepared depends on the pod's template and the node alone, and says so (`is_local`): then the answers for one pod hold
//! for the next pod of its class, on every node that has not changed.

mod among;
mod attempted;
mod figures;
mod found;
mod plan;
mod profile;
mod reason;
mod upkeep;

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use koord_core::{uid::Uid, write::Write};
use koord_resource::controller::ResourceKind;
use serde_json::Value;

pub(crate) use self::among::Among;
pub use self::{
    attempted::Attempted,
    figures::{Figure, JobMark},
    found::{Alike, Found, Refusals, Searched, Verdict, unavailable},
    plan::Plan,
    profile::{AddError, Profile},
    reason::{Reason, ReasonCode},
    upkeep::Upkeep,
};
use crate::{
    cluster::{Class, Cluster, Placed, state::State},
    columns::Row,
    event::{Event, Events},
    extender::Victims,
    hold::Holds,
    object::Object,
    pod::{Pod, Template},
};

/// The highest score of a node.
pub const SCORE_MAX: i64 = 100;

/// A pod for which a node is wanted.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The pod.
    pub pod: &'a Arc<Pod>,
    /// What it shares with others.
    pub class: &'a Arc<Class>,
    /// All plugins of its profile, for those that work together.
    pub plugins: &'a [Arc<dyn Plugin>],
}

impl<'a> Request<'a> {
    /// What it shares with others, as objects have it.
    pub fn template(&self) -> &'a Arc<Template> {
        self.class.template()
    }

    /// The plugin of this type, if the profile has it.
    pub fn plugin<T: Plugin>(&self) -> Option<&'a T> {
        self.plugins.iter().find_map(|plugin| (&**plugin as &dyn Any).downcast_ref())
    }
}

/// A plugin of the scheduling framework. Every extension point is optional.
///
/// What [`Plugin::filter`] and [`Plugin::score`] prepare for one pod is used for all pods of its class, unless
/// [`Plugin::is_individual`] says that the pod itself matters.
pub trait Plugin: Any + Send + Sync {
    /// Its name, as configurations and metrics have it.
    fn name(&self) -> &'static str;

    /// The kinds of objects beside nodes and pods that it reads.
    fn reads(&self) -> &'static [ResourceKind] {
        &[]
    }

    /// The only objects that it reads of a kind, by name; all of them where none is named.
    fn reads_only(&self) -> Vec<(ResourceKind, String)> {
        Vec::new()
    }

    /// What it keeps about the cluster.
    fn state(&self) -> Option<Box<dyn State>> {
        None
    }

    /// PreEnqueue: whether the pod may be scheduled at all now; the reason otherwise.
    fn pre_enqueue(&self, _pod: &Pod, _cluster: &Cluster) -> Result<(), Reason> {
        Ok(())
    }

    /// Whether it wakes the pods by itself that [`Plugin::pre_enqueue`] holds back, by [`Orders::activate`], as soon as they may be
    /// scheduled. Otherwise it is asked about each of them whenever something happens.
    fn wakes(&self) -> bool {
        false
    }

    /// NextPod: the pod to be tried next, before the order of the queue.
    fn next_pod(&self, _cluster: &Cluster) -> Option<Uid> {
        None
    }

    /// The pod that [`Plugin::next_pod`] wants is not in the queue, or another plugin holds it back.
    fn not_there(&self, _uid: &Uid, _cluster: &mut Cluster, _orders: &mut Orders) {}

    /// PreFilter, as far as it is about the pod and the cluster as a whole. It is asked in every attempt.
    fn admit(&self, _request: &Request<'_>, _cluster: &Cluster) -> Result<(), Rejection> {
        Ok(())
    }

    /// FindOneNode, PreferNodes: where the pod is to go. It is asked in every attempt, after [`Plugin::admit`]; of plugins that
    /// only prefer nodes the first counts.
    fn plan(&self, _request: &Request<'_>, _profile: &Profile, _cluster: &mut Cluster) -> Plan {
        Plan::Any
    }

    /// Whether the room that is being made for another pod is meant for this one too.
    fn shares_room(&self, _pod: &Pod, _other: &Pod, _cluster: &Cluster) -> bool {
        false
    }

    /// Whether answers for this pod do not hold for others of its class.
    fn is_individual(&self, _pod: &Pod, _cluster: &Cluster) -> bool {
        false
    }

    /// The pods that are not there for this one while a node is looked for, and while it is given something there: what they hold
    /// is meant for it.
    fn hides(&self, _request: &Request<'_>, _cluster: &Cluster) -> Vec<Uid> {
        Vec::new()
    }

    /// Whether others may be asked about this pod while a node is looked for ([`crate::extender`]).
    fn consults(&self, _pod: &Pod) -> bool {
        false
    }

    /// Whether others are to be asked about the nodes that take the pod before one of them is chosen.
    fn asks(&self, _request: &Request<'_>, _cluster: &Cluster) -> bool {
        false
    }

    /// PreFilter: what is asked of every node. Without a word about this pod there is nothing to ask.
    fn filter(&self, _request: &Request<'_>, _cluster: &Cluster) -> PreFilter {
        PreFilter::Skip
    }

    /// PreScore: how nodes are compared; none where all of them are alike to this plugin.
    fn score(&self, _request: &Request<'_>, _cluster: &Cluster) -> Option<Box<dyn Score>> {
        None
    }

    /// Changes whenever PreFilter or PreScore may say something else about a class for other reasons than what has changed
    /// on single rows.
    fn epoch(&self, _cluster: &Cluster) -> u64 {
        0
    }

    /// Topology keys that the plugin asks about whatever pods say.
    fn topology_keys(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// The reasons of a refusal, as events and conditions show them.
    fn reasons(&self, _refusal: &Refusal, _cluster: &Cluster) -> Vec<Reason> {
        Vec::new()
    }

    /// How old what was measured of a node is by which this decides; none where nothing is, or nobody knows.
    fn input_age(&self, _cluster: &Cluster, _row: Row) -> Option<Duration> {
        None
    }

    /// Whether a refusal is one of Reserve that is only known earlier, so that other nodes can be tried. Where no other node
    /// takes the pod, it is all that is said, and no room is made.
    fn is_of_reserve(&self, _refusal: &Refusal) -> bool {
        false
    }

    /// PostFilter: what is done for a pod that no node takes. Plugins are asked in order until one has an answer.
    fn post_filter(&self, _request: &Request<'_>, _attempted: &mut Attempted<'_>) -> PostFilter {
        PostFilter::Nothing(String::new())
    }

    /// Reserve: decides what the pod is given on the node that was chosen. Earlier plugins' holds are there already.
    fn reserve(&self, _: &Request<'_>, _: &Cluster, _: Row, _holds: &mut Holds) -> Result<(), Rejection> {
        Ok(())
    }

    /// Permit: whether the pod, which is in its place, is bound at once.
    fn permit(&self, _request: &Request<'_>, _cluster: &mut Cluster, _orders: &mut Orders) -> Permit {
        Permit::Allow
    }

    /// Unreserve: a pod that was in its place is not to be bound after all, and is gone from there.
    fn unreserved(&self, _placed: &Placed, _cluster: &mut Cluster, _orders: &mut Orders) {}

    /// After an attempt in which the pod was refused.
    fn refused(&self, _request: &Request<'_>, _found: &Found, _cluster: &mut Cluster, _orders: &mut Orders) {}

    /// What there is to be ordered after time has passed or something has changed.
    fn settle(&self, _cluster: &mut Cluster, _orders: &mut Orders) {}

    /// What is to be written beside attempts: the status of objects that it looks after, and what it makes or deletes. It is
    /// asked on the leader, after changes and at the times that it names.
    fn upkeep(&self, _cluster: &Cluster) -> Upkeep {
        Upkeep::default()
    }

    /// The pod that is placed in the place of an object which the plugin reads.
    fn stand_in(&self, _object: &Object) -> StandIn {
        StandIn::None
    }

    /// Bind: how it is written that a pod which stands for an object has its node.
    fn bind(&self, _request: &Request<'_>, _placed: &Placed, _cluster: &Cluster) -> Option<Write> {
        None
    }

    /// What is said of a pod that no node takes, for this message, beside the event and the condition of every pod.
    fn explain(&self, _pod: &Pod, _message: &str, _cluster: &Cluster) -> Explanation {
        Explanation::default()
    }

    /// PreBind: what is written into the pod before it is bound.
    fn pre_bind(&self, _request: &Request<'_>, _placed: &Placed, _cluster: &Cluster, _patch: &mut Patch) {}

    /// Whether what was written into other objects before the binding has taken effect. It is asked after every change of an
    /// object while the pod waits for it ([`Patch::wait`]).
    fn prepared(&self, _placed: &Placed, _cluster: &Cluster) -> Prepared {
        Prepared::Done
    }

    /// What a pod that runs was given, by what is written in it.
    fn given(&self, _pod: &Pod, _holds: &mut Holds) {}

    /// Amounts for metrics, read once in a while.
    fn figures(&self, _cluster: &Cluster) -> Vec<Figure> {
        Vec::new()
    }

    /// The paths that [`Plugin::service`] answers; `:name` stands for a part that varies.
    fn services(&self) -> &'static [&'static str] {
        &[]
    }

    /// What it knows, for people; none where it knows nothing of this path.
    fn service(&self, _path: &[&str], _cluster: &Cluster) -> Option<Value> {
        None
    }

    /// The events after which a pod that this plugin refused may fit.
    fn events(&self) -> Events {
        Events::ALL
    }

    /// Whether a pod that this plugin refused may fit after such an event.
    fn may_help(&self, _pod: &Pod, _event: &Event, _cluster: &Cluster) -> bool {
        true
    }
}

/// How final a rejection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The removal of pods may help.
    Unschedulable,
    /// The removal of pods does not help.
    Unresolvable,
    /// Something is wrong that has to do with neither the pod nor the cluster.
    Error,
}

/// Why a pod is rejected as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// How final it is.
    pub code: Code,
    /// The reasons.
    pub reasons: Vec<Reason>,
}

impl Rejection {
    /// The removal of pods may help.
    pub fn unschedulable(reasons: impl Into<Vec<Reason>>) -> Self {
        Self { code: Code::Unschedulable, reasons: reasons.into() }
    }

    /// The removal of pods does not help.
    pub fn unresolvable(reasons: impl Into<Vec<Reason>>) -> Self {
        Self { code: Code::Unresolvable, reasons: reasons.into() }
    }

    /// Something is wrong that has to do with neither the pod nor the cluster.
    pub fn error(reasons: impl Into<Vec<Reason>>) -> Self {
        Self { code: Code::Error, reasons: reasons.into() }
    }

    /// The words.
    pub fn message(&self) -> String {
        Reason::joined(&self.reasons)
    }
}

/// What is said of a pod that no node takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation {
    /// For a pod that stands for an object: what is written there; none where it says so already.
    pub write: Option<Write>,
    /// Further events: their reasons and messages.
    pub events: Vec<(&'static str, String)>,
}

/// The pod that is placed in the place of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StandIn {
    /// The object has nothing to do with pods.
    #[default]
    None,
    /// The object has no pod now.
    Gone,
    /// The pod, with the uid of the object.
    Pod(Arc<Pod>),
}

/// The result of PostFilter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostFilter {
    /// Nothing is done; the next plugin is asked. The words are added to the message. Where room is being made for the pod
    /// already, that stays so.
    Nothing(String),
    /// No room can be made; the next plugin is asked. The words are added to the message, and the pod is nominated no longer.
    NoRoom(String),
    /// Nothing can be done by any plugin. These words alone are added to the message. Where room is being made for the pod already,
    /// that stays so.
    Stop(String),
    /// Room is made on a node.
    Nominate {
        /// The node.
        row: Row,
        /// The pods that are evicted for it, in this order.
        victims: Vec<Uid>,
    },
    /// Others are asked first about these victims.
    Ask(Victims),
    /// Room is made for pods that go together. Without victims it is being made already, and the next plugin is asked.
    Together {
        /// The pods, each with the node on which its room is.
        rooms: Vec<(Uid, Row)>,
        /// The pods that are evicted for them, in this order.
        victims: Vec<Uid>,
        /// The words that are added to the message where nobody is evicted.
        words: String,
    },
}

/// The result of Permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// The pod is bound.
    Allow,
    /// The pod stays where it is, unbound, until [`Orders`] say more or the time is over.
    Wait(Duration),
    /// The pod is not bound.
    Reject(Reason),
}

/// What a plugin orders for other pods.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    /// Pods that wait in their place and are bound now.
    pub allow: Vec<Uid>,
    /// Pods that wait in their place and give it back, with the reason.
    pub reject: Vec<(Uid, Reason)>,
    /// The same of pods that never mattered to others: nothing else was tried while they were there, so that their leaving
    /// helps no pod.
    pub withdraw: Vec<(Uid, Reason)>,
    /// Pods in the queue that are tried next.
    pub activate: Vec<Uid>,
    /// Jobs that begin or end now, for metrics.
    pub marks: Vec<JobMark>,
}

/// What is written before a pod is bound: into the pod, and before that into other objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// Annotations; none removes one.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Labels; none removes one.
    pub labels: BTreeMap<String, Option<String>>,
    /// Writes of other objects, in this order, with the plugins that want them.
    pub writes: Vec<(&'static str, Write)>,
    /// How long [`Plugin::prepared`] may take after these writes; none where nobody waits.
    pub wait: Option<Duration>,
}

/// Whether what was written before a binding has taken effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Prepared {
    /// The pod can be bound.
    Done,
    /// Not yet. These are the words if the time runs out.
    Pending(String),
    /// Not yet: this is to be written first, by the plugin of this name. It is sent once, and not while another pod's write of the
    /// object has not taken effect.
    Write(&'static str, Write),
    /// It will not, and why.
    Failed(String),
}

impl Patch {
    /// Whether there is nothing to write into the pod.
    pub fn is_empty(&self) -> bool {
        self.annotations.is_empty() && self.labels.is_empty()
    }

    /// Writes an annotation.
    pub fn annotate(&mut self, name: &str, value: impl Into<String>) {
        self.annotations.insert(name.to_owned(), Some(value.into()));
    }
}

/// The result of PreFilter.
pub enum PreFilter {
    /// Every node will do.
    Skip,
    /// Each node is asked.
    Nodes(Box<dyn Filter>),
    /// The nodes of these names are asked; all others are left out before anybody is asked about them.
    Among(BTreeSet<Box<str>>, Option<Box<dyn Filter>>),
    /// No node will do.
    None(Refusal),
}

/// What a plugin asks of a node for one pod, or for all pods of a class.
pub trait Filter: Send + Sync {
    /// Whether the pod may run there.
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal>;

    /// Whether the answer depends on the class and the node alone, not on other nodes and not on when it is asked.
    fn is_local(&self) -> bool {
        true
    }

    /// Whether this holds for as long as [`Filter::refresh`] is called for every row that has changed. It is prepared again
    /// for every pod otherwise.
    fn follows_rows(&self) -> bool {
        self.is_local()
    }

    /// Whether what this answered for the last pod of the class holds for this pod on rows that have not changed, although it is
    /// prepared again for every pod. Rows on which something else is hidden count as changed.
    fn inherits(&self) -> bool {
        false
    }

    /// A row has changed after this was prepared: its node, or the pods on it. Only what is summed over rows is affected.
    fn refresh(&mut self, _cluster: &Cluster, _row: Row) {}

    /// A pod was placed in this cluster, or removed from it, after this was prepared.
    fn changed(&mut self, cluster: &Cluster, placed: &Placed, _is_added: bool) {
        self.refresh(cluster, placed.row);
    }
}

/// How a plugin compares nodes for one pod, or for all pods of a class.
pub trait Score: Send + Sync {
    /// Whether this holds for as long as [`Score::refresh`] is called for every row that has changed. It is prepared again for
    /// every pod otherwise.
    fn follows_rows(&self) -> bool {
        self.is_local() || self.is_scaled()
    }

    /// A row has changed after this was prepared: its node, or the pods on it. Only what is summed over rows is affected.
    fn refresh(&mut self, _cluster: &Cluster, _row: Row) {}

    /// These are the nodes that passed all filters. Only a score that is not local is given them.
    fn compare(&mut self, _cluster: &Cluster, _rows: &[Row]) {}

    /// The score of a node that passed all filters: from 0 to [`SCORE_MAX`], unless [`Score::normalize`] brings it there.
    fn score(&self, cluster: &Cluster, row: Row) -> i64;

    /// Brings the scores of all nodes that passed between 0 and [`SCORE_MAX`].
    fn normalize(&self, scores: &mut [i64]) {
        let highest = scores.iter().copied().max().unwrap_or(0);
        for score in scores {
            *score = self.scaled(*score, highest);
        }
    }

    /// Whether the score depends on the class and the node alone, and all that other nodes change is [`Score::scaled`]. It is kept by row.
    fn is_scaled(&self) -> bool {
        false
    }

    /// The normalised score of a node, where the highest score of all nodes that passed is enough to know it.
    fn scaled(&self, score: i64, _highest: i64) -> i64 {
        score
    }

    /// Whether the scores of [`Score::rows`] that this gave for the last pod of the class hold for this pod on rows that have not changed,
    /// as with [`Filter::inherits`].
    fn inherits(&self) -> bool {
        false
    }

    /// Whether the score depends on the class and the node alone: nothing is normalised, and no other node counts.
    fn is_local(&self) -> bool;

    /// The only rows whose score is not 0, and over which alone scores are normalised; none where all rows are compared.
    fn rows(&self, _cluster: &Cluster) -> Option<Vec<Row>> {
        None
    }

    /// The score of every node, normalised, where all are alike in this cluster now.
    fn uniform(&self, _cluster: &Cluster) -> Option<i64> {
        None
    }
}

/// Why a plugin refuses a node, in as few bytes as the answer for thousands of nodes allows. The plugin makes words of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// Which of the plugin's reasons.
    pub reason: u16,
    /// Whether the removal of pods from the node may help (`Unschedulable`, not `UnschedulableAndUnresolvable`).
    pub resolvable: bool,
    /// What belongs to the reason: a number, or a set of bits.
    pub operand: u64,
}

impl Refusal {
    /// A reason that the removal of pods may resolve.
    pub const fn resolvable(reason: u16, operand: u64) -> Self {
        Self { reason, resolvable: true, operand }
    }

    /// A reason that lies in the node.
    pub const fn unresolvable(reason: u16) -> Self {
        Self { reason, resolvable: false, operand: 0 }
    }
}

/// Scales scores so that the highest becomes [`SCORE_MAX`]; with `reverse` the lowest scores become the highest. Scores that
/// are all 0 stay, and become [`SCORE_MAX`] when reversed.
pub fn default_normalize(scores: &mut [i64], reverse: bool) {
    let highest = scores.iter().copied().max().unwrap_or(0);
    for score in scores {
        *score = default_scaled(*score, highest, reverse);
    }
}

/// One score among those of [`default_normalize`], by the highest of them.
pub fn default_scaled(score: i64, highest: i64, reverse: bool) -> i64 {
    let scaled = if highest == 0 { 0 } else { SCORE_MAX * score / highest };
    if reverse { SCORE_MAX - scaled } else { scaled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalised_scores_keep_their_order_or_turn_it_round() {
        let normalized = |mut scores: Vec<i64>, reverse| {
            default_normalize(&mut scores, reverse);
            scores
        };
        assert_eq!(normalized(vec![0, 1, 3], false), [0, 33, 100]);
        assert_eq!(normalized(vec![0, 1, 3], true), [100, 67, 0]);
        assert_eq!((normalized(vec![0, 0], false), normalized(vec![0, 0], true)), (vec![0, 0], vec![100, 100]));
    }
}
