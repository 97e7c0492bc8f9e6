//! What the claims of a pod would be bound to on a node, and why they cannot be.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm},
    storage::v1::{CSIDriver, CSIStorageCapacity, StorageClass},
};
use koord_core::key::ObjectKey;
use koord_resource::Quantity;
use koord_scheduler_framework::{Reason, ReasonCode, cluster::Cluster, node::Node, pod::Pod};
use koord_scheduling::Selector;

use super::{assumed::Assumed, claims};
use crate::volumes::{
    matching::Offers,
    storage::{Reach, SELECTED_NODE, annotation, class_of_claim, parsed, requested, volume_of},
};

/// Why the volumes of a pod keep it from a node: a set of reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Conflicts(u64);

/// The reasons, each with its bit.
const REASONS: [&str; 4] = [
    "node(s) didn't match PersistentVolume's node affinity",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
];

impl Conflicts {
    const OUT_OF_REACH: Self = Self(1);
    const NOTHING_TO_BIND: Self = Self(1 << 1);
    const NO_SPACE: Self = Self(1 << 2);
    const NO_VOLUME: Self = Self(1 << 3);

    /// As the operand of a refusal.
    pub(super) fn bits(self) -> u64 {
        self.0
    }

    /// The reasons in the operand of a refusal.
    pub(super) fn reasons(bits: u64) -> Vec<Reason> {
        let among = (0..).zip(REASONS).filter(|(bit, _)| bits & (1_u64 << bit) != 0);
        among.map(|(_, words)| ReasonCode::VolumeUnavailable.reason(words)).collect()
    }
}

/// What the claims of a pod ask of every node.
pub(super) struct Search {
    /// From where the volumes of bound claims can be reached; none for volumes that do not exist.
    bound: Vec<Option<Reach>>,
    /// Claims that wait for the pod's node, the smallest first.
    delayed: Vec<Delayed>,
}

struct Delayed {
    claim: ObjectKey,
    /// The node for which its volume is being made.
    selected: Option<Arc<str>>,
    offers: Offers,
    provisioner: Option<Provisioner>,
}

/// A place in the topology: by label, the values of which a node has to have one.
type Place = Vec<(String, Vec<String>)>;

/// Who makes volumes of a class.
struct Provisioner {
    /// The places of which a node has to be in one; none for anywhere.
    places: Option<Vec<Place>>,
    /// The nodes for which there is enough space; none where that is not known beforehand.
    space: Option<Vec<Selector>>,
}

/// What the claims of a pod are bound to on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Volumes that exist, with their claims.
    pub(super) bindings: Vec<(Arc<str>, ObjectKey)>,
    /// Claims for which a volume is made.
    pub(super) provisions: Vec<ObjectKey>,
}

impl Found {
    /// Whether all claims are bound already.
    pub(super) fn is_empty(&self) -> bool {
        self.bindings.is_empty() && self.provisions.is_empty()
    }
}

impl Search {
    /// Of a pod; none where it has no claims.
    pub(super) fn of(pod: &Pod, cluster: &Cluster) -> Option<Self> {
        let objects = cluster.objects();
        let claims = claims::of(pod, objects).ok().filter(|claims| !claims.is_empty())?;
        let mut search = Self { bound: Vec::new(), delayed: Vec::new() };
        let mut delayed = Vec::new();
        for claims::Claim { key, object, state } in claims {
            match state {
                claims::State::Bound => {
                    let volume = volume_of(object).and_then(|name| objects.get::<PersistentVolume>(name));
                    search.bound.push(volume.map(Reach::of));
                }
                claims::State::Delayed => delayed.push((requested(object).unwrap_or_default(), key, object)),
                claims::State::Unbound => {}
            }
        }
        delayed.sort_by(|(size, ..), (other, ..)| size.cmp(other));
        search.delayed = delayed.into_iter().map(|(_, key, object)| Delayed::of(key, object, cluster)).collect();
        Some(search)
    }

    /// What the claims are bound to on a node.
    pub(super) fn on(&self, node: &Node) -> Result<Found, Conflicts> {
        let (bound, delayed) = (self.reach(node), self.bind(node));
        match (bound, delayed) {
            (Ok(()), found) => found,
            (Err(conflict), Ok(_)) => Err(conflict),
            (Err(conflict), Err(Conflicts(more))) => Err(Conflicts(conflict.0 | more)),
        }
    }

    /// Whether the volumes of bound claims can be reached.
    fn reach(&self, node: &Node) -> Result<(), Conflicts> {
        for reach in &self.bound {
            let reach = reach.as_ref().ok_or(Conflicts::NO_VOLUME)?;
            if !reach.includes(&node.labels) {
                return Err(Conflicts::OUT_OF_REACH);
            }
        }
        Ok(())
    }

    /// Binds the claims that wait: to volumes that exist where there are any, or to new ones.
    fn bind(&self, node: &Node) -> Result<Found, Conflicts> {
        let (selected, free): (Vec<&Delayed>, Vec<&Delayed>) =
            self.delayed.iter().partition(|claim| claim.selected.is_some());
        if selected.iter().any(|claim| claim.selected.as_ref() != Some(&node.name)) {
            return Err(Conflicts::NOTHING_TO_BIND);
        }
        let (mut found, mut taken) = (Found::default(), BTreeSet::new());
        let mut provisioned = selected;
        for claim in free {
            match claim.offers.on(node, &taken) {
                Some(volume) => {
                    taken.insert(Arc::clone(volume));
                    found.bindings.push((Arc::clone(volume), claim.claim.clone()));
                }
                None => provisioned.push(claim),
            }
        }
        for claim in provisioned {
            let provisioner = claim.provisioner.as_ref().ok_or(Conflicts::NOTHING_TO_BIND)?;
            provisioner.can_provide(node)?;
            found.provisions.push(claim.claim.clone());
        }
        Ok(found)
    }
}

impl Delayed {
    fn of(key: ObjectKey, claim: &PersistentVolumeClaim, cluster: &Cluster) -> Self {
        let (objects, assumed) = (cluster.objects(), cluster.state::<Assumed>());
        let stated = || annotation(&claim.metadata, SELECTED_NODE).map(Arc::from);
        let selected = assumed.and_then(|assumed| assumed.node_of(&key)).cloned().or_else(stated);
        let volumes = objects.of::<PersistentVolume>().map(|(name, volume)| {
            let claim = assumed.and_then(|assumed| assumed.claim_of(name));
            (name, volume, claim)
        });
        let offers = Offers::of(&key, claim, volumes);
        let class = objects.get::<StorageClass>(class_of_claim(claim));
        let provisioner = class.and_then(|class| Provisioner::of(class, claim, cluster));
        Self { claim: key, selected, offers, provisioner }
    }
}

impl Provisioner {
    /// Of a class; none where its volumes are made by hand.
    fn of(class: &StorageClass, claim: &PersistentVolumeClaim, cluster: &Cluster) -> Option<Self> {
        const BY_HAND: &str = "kubernetes.io/no-provisioner";
        if class.provisioner.is_empty() || class.provisioner == BY_HAND {
            return None;
        }
        let places = class.allowed_topologies.as_ref().filter(|terms| !terms.is_empty());
        let objects = cluster.objects();
        let driver = objects.get::<CSIDriver>(&class.provisioner);
        let is_known = driver.is_some_and(|driver| driver.spec.storage_capacity == Some(true));
        let space = requested(claim).filter(|_| is_known).map(|size| {
            let name = class.metadata.name.as_deref().unwrap_or_default();
            let capacities = objects.of::<CSIStorageCapacity>().map(|(_, capacity)| capacity);
            let enough = |capacity: &&CSIStorageCapacity| {
                capacity.storage_class_name == name && volume_limit(capacity).is_some_and(|limit| limit >= size)
            };
            capacities
                .filter(enough)
                .filter_map(|capacity| Selector::stored(capacity.node_topology.as_ref()?))
                .collect()
        });
        Some(Self { places: places.map(|terms| terms.iter().map(place).collect()), space })
    }

    fn can_provide(&self, node: &Node) -> Result<(), Conflicts> {
        let is_in = |(key, values): &(String, Vec<String>)| {
            node.labels.get(key).is_some_and(|value| values.iter().any(|known| known == value))
        };
        // A place without labels is nowhere.
        let is_there = |place: &Vec<(String, Vec<String>)>| !place.is_empty() && place.iter().all(is_in);
        if self.places.as_ref().is_some_and(|places| !places.iter().any(is_there)) {
            return Err(Conflicts::NOTHING_TO_BIND);
        }
        let has_space = |selector: &Selector| selector.selects(|key| node.labels.get(key));
        if self.space.as_ref().is_some_and(|space| !space.iter().any(has_space)) {
            return Err(Conflicts::NO_SPACE);
        }
        Ok(())
    }
}

fn place(term: &TopologySelectorTerm) -> Vec<(String, Vec<String>)> {
    let labels = term.match_label_expressions.iter().flatten();
    labels.map(|label| (label.key.clone(), label.values.clone())).collect()
}

/// The size of the largest volume that can be made, as far as it is known.
pub(super) fn volume_limit(capacity: &CSIStorageCapacity) -> Option<Quantity> {
    capacity.maximum_volume_size.as_ref().or(capacity.capacity.as_ref()).and_then(parsed)
}
