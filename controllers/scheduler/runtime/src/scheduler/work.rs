//! Writes that follow from attempts.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use koord_resource::controller::ResourceKind;
use koord_runtime::{
    api::Priority,
    key::ObjectKey,
    uid::Uid,
    write::{Action, Deletion, Write},
};
use koord_scheduler_engine::{Attempt, Outcome};
use koord_scheduler_framework::{Patch, cluster::Cluster, pod::Pod};
use koord_types::reservation::{Reservation, ReservationPhase};
use serde_json::json;

use crate::{extender::Webhook, report};

/// The object of a write.
pub(super) type Subject = (ResourceKind, ObjectKey);

pub(super) fn subject(write: &Write) -> Subject {
    (write.kind, write.key.clone())
}

/// A write that follows from an attempt.
#[derive(Debug)]
pub struct Work {
    /// What is to be sent.
    pub write: Write,
    pub(super) purpose: Purpose,
}

/// What a write is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// The write of another object of this index, before that.
    Prepare(Box<Attempt>, usize),
    /// A write of this plugin to another object before the binding of this pod, found out while that was prepared.
    Lock(&'static str, Uid),
    /// What a pod is given, written before it is bound where the binding cannot carry it; and the Reservation as the answer to that write has
    /// it, for a reserve pod.
    Give(Box<Attempt>, OnceLock<Box<Reservation>>),
    /// The binding of this attempt.
    Bind(Box<Attempt>),
    /// The same, by a webhook.
    BindBy(Arc<Webhook>, Box<Attempt>),
    /// On which node a pod is expected, while its binding takes time.
    Expect,
    /// An urgent write of a plugin.
    Hurry,
    /// A status update of a plugin.
    Keep,
    /// Why a pod has no node, and its nominated node.
    Explain,
    /// Why a pod is not tried.
    Held,
    /// Sets the condition of a victim; its deletion follows.
    Condemn { victim: Arc<Pod>, preemptor: Arc<Pod>, message: String },
    /// The deletion of such a pod.
    Evict { victim: Arc<Pod>, preemptor: Arc<Pod>, message: String },
}

impl Purpose {
    /// How long the write may wait behind others.
    pub(super) fn priority(&self) -> Priority {
        match self {
            Self::Prepare(..) | Self::Lock(..) | Self::Give(..) | Self::Bind(_) | Self::BindBy(..) | Self::Expect => {
                Priority::Urgent
            }
            Self::Hurry | Self::Keep | Self::Condemn { .. } | Self::Evict { .. } => Priority::Normal,
            Self::Explain | Self::Held => Priority::Background,
        }
    }

    /// Whether no binding waits for the write, and those of the same purpose may be many at once.
    pub(super) fn is_in_background(&self) -> bool {
        matches!(self, Self::Keep | Self::Explain | Self::Held)
    }

    /// The attempt whose pod is to be bound; none of writes beside bindings.
    pub(super) fn binding(&self) -> Option<&Attempt> {
        match self {
            Self::Prepare(attempt, _) | Self::Give(attempt, _) | Self::Bind(attempt) | Self::BindBy(_, attempt) => {
                Some(attempt.as_ref())
            }
            _ => None,
        }
    }

    /// The extension point that the write is, and the pod for which it is; none of writes beside bindings.
    pub(super) fn part(&self) -> Option<(&'static str, &Pod)> {
        match self {
            Self::Prepare(attempt, _) | Self::Give(attempt, _) => Some(("PreBind", &attempt.pod)),
            Self::Bind(attempt) | Self::BindBy(_, attempt) => Some(("Bind", &attempt.pod)),
            _ => None,
        }
    }

    /// Keeps the Reservation that the body of the answer to the write has, if a write of the same Reservation follows.
    pub(super) fn answered(&self, body: &str) {
        if let Self::Give(attempt, answered) = self
            && attempt.pod.is_reservation()
            && let Ok(reservation) = serde_json::from_str::<Reservation>(body)
        {
            _ = answered.set(Box::new(reservation));
        }
    }
}

pub(super) fn give(attempt: Box<Attempt>) -> Work {
    let Patch { annotations, labels, .. } = match &attempt.outcome {
        Outcome::Bind { patch, .. } => patch.clone(),
        _ => Patch::default(),
    };
    let mut metadata = json!({ "uid": attempt.pod.uid });
    for (name, values) in [("annotations", annotations), ("labels", labels)] {
        if !values.is_empty() {
            metadata[name] = json!(values);
        }
    }
    let action = Action::Patch { subresource: "", patch: json!({ "metadata": metadata }) };
    let (kind, key) = report::subject(&attempt.pod);
    Work { write: Write { kind, key: key.clone(), action }, purpose: Purpose::Give(attempt, OnceLock::new()) }
}

/// What the binding of a pod writes into it: annotations, where nothing else is to be written there. The API server stores them together with
/// the node; it takes no labels from a binding, and removes nothing.
pub(super) fn given_with_binding(patch: &Patch) -> Option<BTreeMap<String, String>> {
    let annotations = patch.annotations.iter().map(|(key, value)| Some((key.clone(), value.clone()?)));
    patch.labels.is_empty().then(|| annotations.collect()).flatten()
}

pub(super) fn bind(attempt: Box<Attempt>) -> Work {
    if let Outcome::Bind { instead: Some((_, write)), .. } = &attempt.outcome {
        return Work { write: write.clone(), purpose: Purpose::Bind(attempt) };
    }
    let (node, annotations) = match &attempt.outcome {
        Outcome::Bind { node, patch, .. } => (node.to_string(), given_with_binding(patch).unwrap_or_default()),
        _ => Default::default(),
    };
    let action = Action::Bind { uid: attempt.pod.uid.clone(), node, annotations };
    let write = Write { kind: ResourceKind::POD, key: attempt.pod.key.clone(), action };
    Work { write, purpose: Purpose::Bind(attempt) }
}

/// A Reservation is bound as it is known: what others have written into it since, such as its end, is not undone. The write of its
/// annotations before the binding has changed its resourceVersion; the one that was answered is used where the answer has the known status.
pub(super) fn as_known(mut write: Write, pod: &Pod, cluster: &Cluster, answered: Option<&Reservation>) -> Write {
    let known = known(pod, cluster);
    let object = match (known, answered) {
        (Some(known), Some(answered)) if known.status == answered.status => Some(answered),
        _ => known,
    };
    let revision = object.and_then(|object| object.metadata.resource_version.as_deref());
    if let (Action::Patch { patch, .. }, Some(revision)) = (&mut write.action, revision) {
        patch["metadata"]["resourceVersion"] = revision.into();
    }
    write
}

/// Whether a Reservation is known to have the node of this attempt: an earlier try, whose result was lost, has bound it.
pub(super) fn is_bound_already(attempt: &Attempt, cluster: &Cluster) -> bool {
    let Outcome::Bind { node, .. } = &attempt.outcome else { return false };
    known(&attempt.pod, cluster).is_some_and(|object| {
        object.status.phase == Some(ReservationPhase::Available) && object.status.node_name == **node
    })
}

/// The Reservation of a reserve pod, as it is known.
fn known<'c>(pod: &Pod, cluster: &'c Cluster) -> Option<&'c Reservation> {
    let reference = pod.reservation.as_ref()?;
    let entry = cluster.objects().entry::<Reservation>(reference.key.as_str()).filter(|entry| entry.uid == pod.uid)?;
    entry.get::<Reservation>()
}

/// The plugin that binds the pod of this attempt.
pub(super) fn plugin_that_binds(attempt: &Attempt) -> &'static str {
    match &attempt.outcome {
        Outcome::Bind { instead: Some((plugin, _)), .. } => plugin,
        _ => "DefaultBinder",
    }
}

pub(super) fn evict(victim: Arc<Pod>, preemptor: Arc<Pod>, message: String) -> Work {
    let action = Action::Delete(Deletion::of(victim.uid.clone()));
    let write = Write { kind: ResourceKind::POD, key: victim.key.clone(), action };
    Work { write, purpose: Purpose::Evict { victim, preemptor, message } }
}
