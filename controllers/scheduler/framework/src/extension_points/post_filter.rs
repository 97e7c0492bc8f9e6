//! PostFilter: what is done for a pod that no node takes, such as preemption.

use koord_core::uid::Uid;

use super::{Found, Profile, Request};
use crate::{
    cluster::{Cluster, Placed},
    columns::Row,
    extender::Victims,
    pod::Pod,
};

/// Makes a pod schedulable that no node takes.
pub trait PostFilter: Send + Sync + 'static {
    /// Plugins are called in order until one has an answer.
    fn post_filter(&self, request: &Request<'_>, attempted: &mut Attempted<'_>) -> PostFilterResult;

    /// Whether [`PostFilter::post_filter`] preempts for pods that the plugin itself rejected as a whole: it knows which pods may be victims
    /// then, and other plugins leave it to this one.
    fn preempts_for_rejected(&self) -> bool {
        true
    }

    /// Whether the node that `other` is nominated to is meant for this pod too.
    fn shares_nomination(&self, _pod: &Pod, _other: &Pod, _cluster: &Cluster) -> bool {
        false
    }
}

/// An attempt in which no node took the pod.
pub struct Attempted<'a> {
    pub cluster: &'a mut Cluster,
    /// The profile of the pod.
    pub profile: &'a Profile,
    pub found: &'a Found,
    /// Gives a number below its argument.
    pub draw: &'a mut dyn FnMut(u32) -> u32,
}

/// A candidate of preemption: a node with the victims without which it takes the pod.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub row: Row,
    /// The victims, most important first.
    pub victims: Vec<Placed>,
    /// How many of them break a PodDisruptionBudget.
    pub violations: usize,
}

/// The result of PostFilter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostFilterResult {
    /// Nothing is done; the next plugin is called. The text is added to the message, and a nomination stays.
    Nothing(String),
    /// There is no candidate; the next plugin is called. The text is added to the message, and the nomination of the pod ends.
    NoCandidate(String),
    /// Nothing can be done by any plugin. This text alone is added to the message, and a nomination stays.
    Stop(String),
    /// The pod is nominated to a node.
    Nominate {
        row: Row,
        /// The victims, which are evicted in this order.
        victims: Vec<Uid>,
    },
    /// Extenders are called about these victims first.
    CallExtenders(Victims),
    /// Pods that are placed together are nominated. Without victims they are already, and the next plugin is called.
    Together {
        /// The pods, each with its node.
        nominations: Vec<(Uid, Row)>,
        /// The victims, which are evicted in this order.
        victims: Vec<Uid>,
        /// The preemptor: what the pods are together, or the pod that goes alone.
        preemptor: String,
        /// The text that is added to the message when no pod is evicted.
        words: String,
    },
}
