//! What plugins answer about a pod as a whole.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_core::{uid::Uid, write::Write};

use super::{JobMark, Reason};
use crate::{columns::Row, extender::Victims, pod::Pod};

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
pub enum ReservePodState {
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

/// The result of Permit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermitResult {
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
    /// How long [`Plugin::prepared`](super::Plugin::prepared) may take after these writes; none where nobody waits.
    pub wait: Option<Duration>,
}

/// Whether what was written before a binding has taken effect.
#[derive(Clone, Debug, PartialEq)]
pub enum PreBindProgress {
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
