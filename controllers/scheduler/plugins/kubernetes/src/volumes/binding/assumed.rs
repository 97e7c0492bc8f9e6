//! What was decided about claims whose pods have their nodes, before it is seen in the objects.

mod audit;

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    Metadata,
    api::core::v1::{PersistentVolume, PersistentVolumeClaim},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use koord_core::key::ObjectKey;
use koord_scheduler_framework::{
    cluster::{Cluster, Mismatch, Placed, state::State},
    object::Objects,
};

use super::find::Found;

/// What a pod holds of claims that were not bound when its node was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct VolumesHeld {
    pub(super) node: Arc<str>,
    /// Volumes that are to be bound to claims.
    pub(super) bindings: Vec<Binding>,
    /// Claims for which a volume is to be made.
    pub(super) provisions: Vec<Provision>,
}

/// A volume that is to be bound to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    pub(super) volume: ObjectKey,
    /// The revision of the volume on which the decision rests.
    pub(super) revision: String,
    pub(super) claim: ObjectKey,
}

/// A claim for which a volume is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Provision {
    pub(super) claim: ObjectKey,
    /// The revision of the claim on which the decision rests.
    pub(super) revision: String,
}

/// What all pods in their places hold, each with the number of pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Assumed {
    /// Volumes with their claims.
    bindings: BTreeMap<ObjectKey, BTreeMap<ObjectKey, u32>>,
    /// Claims with the nodes for which their volumes are made.
    provisions: BTreeMap<ObjectKey, BTreeMap<Arc<str>, u32>>,
}

impl VolumesHeld {
    /// What was found on a node.
    pub(super) fn of(found: &Found, node: &Arc<str>, objects: &Objects) -> Self {
        let bindings = found.bindings.iter().map(|(volume, claim)| {
            let volume = ObjectKey::cluster(volume);
            let revision = revision(objects.get::<PersistentVolume>(volume.as_str()));
            Binding { volume, revision, claim: claim.clone() }
        });
        let provisions = found.provisions.iter().map(|claim| {
            let revision = revision(objects.get::<PersistentVolumeClaim>(claim.as_str()));
            Provision { claim: claim.clone(), revision }
        });
        Self { node: Arc::clone(node), bindings: bindings.collect(), provisions: provisions.collect() }
    }
}

/// The revision of an object; empty where it is gone.
pub(super) fn revision<T: Metadata<Ty = ObjectMeta>>(object: Option<&T>) -> String {
    object.and_then(|object| object.metadata().resource_version.clone()).unwrap_or_default()
}

impl Assumed {
    /// The claim for which a volume is assumed.
    pub(super) fn claim_of(&self, volume: &ObjectKey) -> Option<&ObjectKey> {
        self.bindings.get(volume)?.keys().next()
    }

    fn hold(&mut self, held: &VolumesHeld) {
        for Binding { volume, claim, .. } in &held.bindings {
            add(&mut self.bindings, volume, claim);
        }
        for Provision { claim, .. } in &held.provisions {
            add(&mut self.provisions, claim, &held.node);
        }
    }

    /// The node for which the volume of a claim is assumed to be made.
    pub(super) fn node_of(&self, claim: &ObjectKey) -> Option<&Arc<str>> {
        self.provisions.get(claim)?.keys().next()
    }
}

impl State for Assumed {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn placed(&mut self, _: &Cluster, placed: &Placed) {
        if let Some(held) = placed.holds.get() {
            self.hold(held);
        }
    }

    fn audit_whole(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        self.audit(cluster)
    }

    fn removed(&mut self, _: &Cluster, placed: &Placed) {
        let Some(held) = placed.holds.get::<VolumesHeld>() else { return };
        for Binding { volume, claim, .. } in &held.bindings {
            subtract(&mut self.bindings, volume, claim);
        }
        for Provision { claim, .. } in &held.provisions {
            subtract(&mut self.provisions, claim, &held.node);
        }
    }
}

type Counts<K> = BTreeMap<ObjectKey, BTreeMap<K, u32>>;

fn add<K: Ord + Clone>(counts: &mut Counts<K>, of: &ObjectKey, what: &K) {
    *counts.entry(of.clone()).or_default().entry(what.clone()).or_default() += 1;
}

fn subtract<K: Ord>(counts: &mut Counts<K>, of: &ObjectKey, what: &K) {
    let Some(known) = counts.get_mut(of) else { return };
    if let Some(count) = known.get_mut(what) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            known.remove(what);
        }
    }
    if known.is_empty() {
        counts.remove(of);
    }
}
