//! PreBind: what is written before a pod is bound.

use std::{collections::BTreeMap, time::Duration};

use koord_core::write::Write;

use super::Request;
use crate::cluster::{Cluster, Placed};

/// Writes what the pod was given, before it is bound.
pub trait PreBind: Send + Sync + 'static {
    /// Adds what is to be written into the pod, and into other objects before that.
    fn pre_bind(&self, request: &Request<'_>, placed: &Placed, cluster: &Cluster, patch: &mut Patch);

    /// Whether what was written into other objects has taken effect. It is called after every change of an object while the pod waits
    /// for it ([`Patch::wait`]).
    fn pre_bind_progress(&self, _placed: &Placed, _cluster: &Cluster) -> PreBindProgress {
        PreBindProgress::Done
    }
}

/// What is written before a pod is bound: into the pod, and before that into other objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// Annotations; none removes one.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Labels; none removes one.
    pub labels: BTreeMap<String, Option<String>>,
    /// Writes of other objects, in this order, with the plugins that need them.
    pub writes: Vec<(&'static str, Write)>,
    /// How long [`PreBind::pre_bind_progress`] may take after these writes; `None` when binding does not wait.
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
