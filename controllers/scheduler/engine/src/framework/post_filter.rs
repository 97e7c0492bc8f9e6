//! PostFilter: what is done for a pod that no node takes, such as preemption.

use koord_core::uid::Uid;

use super::{Found, Profile, Request};
use crate::{cluster::Cluster, columns::Row, extender::Victims, pod::Pod};

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
    /// The cluster.
    pub cluster: &'a mut Cluster,
    /// The profile of the pod.
    pub profile: &'a Profile,
    /// What was found.
    pub found: &'a Found,
    /// Gives a number below its argument.
    pub draw: &'a mut dyn FnMut(u32) -> u32,
}

/// The result of PostFilter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostFilterResult {
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
        /// For whom they are evicted: what the pods are together, or the pod that goes alone.
        preemptor: String,
        /// The words that are added to the message where nobody is evicted.
        words: String,
    },
}
