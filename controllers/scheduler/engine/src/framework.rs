//! What decides: plugins, as the scheduling framework of Kubernetes has them, over columns.
//!
//! A plugin looks at a pod once and prepares what it then asks of every node ([`NodeFilter`], [`NodeScore`]). Most of what is
//! prepared depends on the pod's template and the node alone, and says so (`is_local`): then the answers for one pod hold
//! for the next pod of its class, on every node that has not changed.

mod among;
mod answers;
mod attempted;
mod figures;
mod found;
mod given_twice;
mod marks;
mod nodes;
mod plan;
mod profile;
mod query;
mod reason;
mod upkeep;

use std::{any::Any, sync::Arc, time::Duration};

use koord_core::{uid::Uid, write::Write};
use koord_resource::controller::ResourceKind;
use serde_json::Value;

pub(crate) use self::among::Among;
pub use self::{
    answers::{
        Code, Explanation, Orders, Patch, PermitResult, PostFilterResult, PreBindProgress, Rejection, ReservePodState,
    },
    attempted::Attempted,
    figures::{Figure, JobMark, Workload},
    found::{Alike, Found, Refusals, Searched, Verdict, abridged, unavailable},
    given_twice::GivenTwice,
    marks::SignatureFields,
    nodes::{
        NodeFilter, NodeScore, PreparedFilter, Refusal, Scale, as_it_is, highest_is_best, lowest_is_best, normalize,
        score_of_node, share,
    },
    plan::Plan,
    profile::{AddError, Profile},
    query::{NoAnswer, Query},
    reason::{Operands, Reason, ReasonCode},
    upkeep::Upkeep,
};
use crate::{
    cluster::{Class, Cluster, Hidden, Placed, state::State},
    columns::Row,
    event::{Event, Events},
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

    /// The pod that is tried in the place of one that [`Plugin::pre_enqueue`] holds back: what may help the one has the other tried.
    fn tried_instead(&self, _pod: &Pod, _cluster: &Cluster) -> Option<Uid> {
        None
    }

    /// NextPod: the pod to be tried next, before the order of the queue.
    fn next_pod(&self, _cluster: &Cluster) -> Option<Uid> {
        None
    }

    /// The pod that [`Plugin::next_pod`] wants is not in the queue, or another plugin holds it back.
    fn not_there(&self, _uid: &Uid, _cluster: &mut Cluster, _orders: &mut Orders) {}

    /// BeforePreFilter: the same as [`Plugin::admit`], and all plugins are asked before any of them is asked that. The first one that
    /// rejects the pod ends the attempt, whatever its code.
    fn screen(&self, _request: &Request<'_>, _cluster: &Cluster) -> Result<(), Rejection> {
        Ok(())
    }

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
    /// is meant for it. None where all are there.
    fn hides(&self, _request: &Request<'_>, _cluster: &Cluster) -> Option<Hidden> {
        None
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
    fn filter(&self, _request: &Request<'_>, _cluster: &Cluster) -> PreparedFilter {
        PreparedFilter::Skip
    }

    /// Whether [`Plugin::filter`] may name the only nodes that are asked ([`PreparedFilter::Among`]): who does is asked about a pod that
    /// another plugin rejects in PreFilter too, for that no node is left over may come before that.
    fn names_nodes(&self) -> bool {
        false
    }

    /// The code of a node that is left out because [`Plugin::filter`] has not named it.
    fn code_of_unnamed(&self) -> ReasonCode {
        ReasonCode::NodeNameMismatch
    }

    /// PreScore: how nodes are compared; none where all of them are alike to this plugin.
    fn score(&self, _request: &Request<'_>, _cluster: &Cluster) -> Option<Box<dyn NodeScore>> {
        None
    }

    /// What distinguishes workloads by which [`Plugin::filter`] and [`Plugin::score`] may say something else, where they have something
    /// to say: pods of workloads that no plugin tells apart share answers.
    fn marks(&self) -> SignatureFields {
        SignatureFields::All
    }

    /// Changes whenever PreFilter or PreScore may say something else about a class for other reasons than what has changed
    /// on single rows.
    fn epoch(&self, _cluster: &Cluster) -> u64 {
        0
    }

    /// The same of PreScore alone: what PreFilter says still holds then.
    fn score_epoch(&self, _cluster: &Cluster) -> u64 {
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

    /// What is known of the refusal of one node beside its reasons: operands that these lack. It is asked when a pod is refused, about
    /// one node of those that are refused alike.
    fn details(&self, _refusal: &Refusal, _request: &Request<'_>, _cluster: &Cluster, _row: Row) -> Operands {
        Operands::new()
    }

    /// What is worth knowing about a pod, though nothing refuses it for that. It is asked by who asks why.
    fn remarks(&self, _request: &Request<'_>, _cluster: &Cluster) -> Vec<Reason> {
        Vec::new()
    }

    /// How old what was measured of a node is by which this decides; none where nothing is, or nobody knows.
    fn input_age(&self, _cluster: &Cluster, _row: Row) -> Option<Duration> {
        None
    }

    /// Whether what was measured of a node, and this decides by, is too old to be trusted.
    fn is_input_stale(&self, _cluster: &Cluster, _row: Row) -> bool {
        false
    }

    /// Whether a refusal is one of Reserve that is only known earlier, so that other nodes can be tried. Where no other node
    /// takes the pod, it is all that is said, and no room is made.
    fn is_of_reserve(&self, _refusal: &Refusal) -> bool {
        false
    }

    /// PostFilter: what is done for a pod that no node takes. Plugins are asked in order until one has an answer.
    fn post_filter(&self, _request: &Request<'_>, _attempted: &mut Attempted<'_>) -> PostFilterResult {
        PostFilterResult::Nothing(String::new())
    }

    /// Whether its [`Plugin::post_filter`] makes room for pods that it refused as a whole: it knows which pods may go for them, and
    /// others leave it to it.
    fn makes_room(&self) -> bool {
        true
    }

    /// Reserve: decides what the pod is given on the node that was chosen. Earlier plugins' holds are there already.
    fn reserve(&self, _: &Request<'_>, _: &Cluster, _: Row, _holds: &mut Holds) -> Result<(), Rejection> {
        Ok(())
    }

    /// Permit: whether the pod, which is in its place, is bound at once.
    fn permit(&self, _request: &Request<'_>, _cluster: &mut Cluster, _orders: &mut Orders) -> PermitResult {
        PermitResult::Allow
    }

    /// The reason of a pod that has waited for so long after [`Plugin::permit`], with this text.
    fn timed_out(&self, _pod: &Pod, _cluster: &Cluster, waited: &str, text: String) -> Reason {
        ReasonCode::PermitTimeout.says(text).with("waited", waited)
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

    /// What of [`Plugin::upkeep`] does not wait until that is asked again: writes about what has changed since this was asked. It
    /// is asked on the leader, after every change.
    fn urgent(&self, _cluster: &mut Cluster) -> Vec<Write> {
        Vec::new()
    }

    /// The pod that is placed in the place of an object which the plugin reads.
    fn stand_in(&self, _object: &Object) -> ReservePodState {
        ReservePodState::None
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
    fn prepared(&self, _placed: &Placed, _cluster: &Cluster) -> PreBindProgress {
        PreBindProgress::Done
    }

    /// What a pod that runs was given, by what is written in it.
    fn given(&self, _pod: &Pod, _holds: &mut Holds) {}

    /// A pod that has its place is known differently. `holds` are those that it had, with what [`Plugin::given`] says now.
    fn changed(&self, _was: &Placed, _pod: &Pod, _holds: &mut Holds) {}

    /// What it has given of a node to more pods than may have it; without a row, what belongs to no single node. It is asked by an
    /// audit, which sets nothing right: the pods have it.
    fn given_twice(&self, _cluster: &Cluster, _row: Option<Row>) -> Vec<GivenTwice> {
        Vec::new()
    }

    /// Amounts for metrics, read once in a while.
    fn figures(&self, _cluster: &Cluster) -> Vec<Figure> {
        Vec::new()
    }

    /// The pods that a pod is scheduled together with; none where it goes alone.
    fn workload(&self, _pod: &Pod, _cluster: &Cluster) -> Option<Workload> {
        None
    }

    /// The paths that [`Plugin::service`] answers; `:name` stands for a part that varies.
    fn services(&self) -> &'static [&'static str] {
        &[]
    }

    /// What it knows, for people, in the shape that the original gives it.
    fn service(&self, _path: &[&str], _query: &Query, _cluster: &Cluster) -> Result<Value, NoAnswer> {
        Err(NoAnswer::UnknownPath)
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
