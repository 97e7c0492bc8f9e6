//! What is known of the devices of the cluster, of who has them, and of what is to be taken from claims.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use koord_core::{key::ObjectKey, uid::Uid, write::Write};
use koord_scheduler_framework::{
    cluster::{Cluster, Mismatch, Placed, state::State},
    columns::Row,
    dynamic::{ResourceClaim, ResourceSlice},
    object::ObjectChange,
    pod::Pod,
};

use super::{
    claims::{self, Claim},
    ledger::Ledger,
    pools::Pools,
    writes,
};

/// The devices of the cluster, and who has them.
#[derive(Clone, Debug, Default)]
pub(super) struct Devices {
    pub(super) pools: Pools,
    pub(super) ledger: Ledger,
    /// Claims that keep their pod from every node, and are to lose their devices: at this revision, if they are idle.
    pub(super) idle_claims: BTreeMap<ObjectKey, (Uid, String)>,
    /// Devices became free because time has passed.
    pub(super) has_freed: bool,
    /// Pods that have lost their places and are not bound since. What says that they may use claims is taken from these once it is seen there.
    displaced: BTreeSet<Uid>,
}

impl Devices {
    /// A pod has lost its place, perhaps after its claims were reserved for it.
    pub(super) fn lost_its_place(&mut self, pod: &Uid) {
        self.displaced.insert(pod.clone());
    }

    /// Whether a claim says that a pod may use it which has lost its place.
    pub(super) fn is_given_back(&self, claim: &Claim<'_>, pod: &Pod) -> bool {
        self.displaced.contains(&pod.uid) && claim.is_reserved_for(pod)
    }

    /// Takes from claims that pods may use them which have lost their places.
    pub(super) fn given_back(&self, cluster: &Cluster) -> Vec<Write> {
        let displaced = self.displaced.iter().filter(|uid| cluster.pod(uid).is_none());
        let pods = displaced.filter_map(|uid| cluster.pending_pod(uid));
        let of = |pod: &Pod| {
            let claims = claims::of(pod, cluster.objects()).unwrap_or_default().into_iter();
            let reserved = claims.filter(|claim| claim.is_reserved_for(pod));
            reserved.map(|claim| writes::give_back(pod, &claim)).collect::<Vec<_>>()
        };
        pods.flat_map(|pod| of(pod)).collect()
    }

    /// Takes their devices from claims that are in the way.
    pub(super) fn deallocations(&self, cluster: &Cluster) -> Vec<Write> {
        let writes = self.idle_claims.iter().filter_map(|(key, (uid, revision))| {
            let entry = cluster.objects().entry::<ResourceClaim>(key.as_str()).filter(|entry| entry.uid == *uid)?;
            let object = entry.get::<ResourceClaim>().filter(|claim| claim.metadata.resource_version == *revision)?;
            Some(writes::deallocate(&Claim { key: key.clone(), uid: &entry.uid, object }))
        });
        writes.collect()
    }
}

impl State for Devices {
    fn copy(&self) -> Box<dyn State> {
        Box::new(self.clone())
    }

    fn pod(&mut self, _: &Cluster, old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) {
        if let Some(pod) = new.or(old).filter(|_| new.is_none_or(|pod| pod.node.is_some())) {
            self.displaced.remove(&pod.uid);
        }
    }

    fn placed(&mut self, _: &Cluster, placed: &Placed) {
        if let Some(held) = placed.holds.get() {
            self.ledger.hold(&placed.pod.uid, held);
        }
    }

    fn removed(&mut self, _: &Cluster, placed: &Placed) {
        if let Some(held) = placed.holds.get() {
            self.ledger.release(&placed.pod.uid, held);
        }
    }

    fn object(&mut self, cluster: &Cluster, change: &ObjectChange) -> Vec<Row> {
        if let Some((_, slice)) = change.of::<ResourceSlice>() {
            self.pools.changed(change, slice, cluster.objects());
        } else if change.of::<ResourceClaim>().is_some() {
            self.ledger.changed(change);
            change.key().map(|key| self.idle_claims.remove(key));
        }
        Vec::new()
    }

    fn audit_whole(&mut self, cluster: &Cluster) -> Vec<Mismatch> {
        self.audit(cluster)
    }

    fn tick(&mut self, _: &Cluster, now: Timestamp) -> Vec<Row> {
        self.has_freed |= self.ledger.settle(now);
        Vec::new()
    }

    fn wake_at(&self) -> Option<Timestamp> {
        self.ledger.doubts_end()
    }
}
