//! The statuses of PodGroups that are to be written: each follows its pods when one of them, or the PodGroup, is added or changes (3E.9), and a
//! while after one of them has gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{cluster::Cluster, pod::Pod};
use koord_types::pod_group::{PodGroup, PodGroupStatus};

use super::{
    gangs::Gangs,
    pod_group::{Counts, is_abandoned, status},
};

/// A pod that has gone counts for so long: one that takes its place is there by then, and a group that ends is not written about pod
/// by pod.
pub(super) const GONE_AFTER: Duration = Duration::from_secs(30);

/// The computed statuses, and the PodGroups that are due.
#[derive(Clone, Debug, Default)]
pub(super) struct Statuses {
    /// As of the last look; that of the object where there was none since it changed.
    computed: BTreeMap<ObjectKey, PodGroupStatus>,
    /// From when on.
    due: BTreeMap<ObjectKey, Timestamp>,
    /// The same by time: it is read before every attempt.
    by_time: BTreeSet<(Timestamp, ObjectKey)>,
}

impl Statuses {
    /// A member of this gang was added or has changed.
    pub(super) fn member_changed(&mut self, gang: &ObjectKey, now: Timestamp) {
        if self.due.get(gang).is_none_or(|due| now < *due) {
            self.forget(gang);
            self.due.insert(gang.clone(), now);
            self.by_time.insert((now, gang.clone()));
        }
    }

    /// A member of this gang has gone.
    pub(super) fn member_gone(&mut self, gang: &ObjectKey, now: Timestamp) {
        self.member_changed(gang, now.saturating_add(GONE_AFTER).unwrap_or(now));
    }

    /// A PodGroup was added or changed, or is gone.
    pub(super) fn changed(&mut self, key: &ObjectKey, is_there: bool, now: Timestamp) {
        self.computed.remove(key);
        if is_there {
            self.member_changed(key, now);
        } else {
            self.forget(key);
        }
    }

    fn forget(&mut self, gang: &ObjectKey) {
        if let Some(due) = self.due.remove(gang) {
            self.by_time.remove(&(due, gang.clone()));
        }
    }

    /// The status of a PodGroup that is to be written.
    pub(super) fn status(&self, key: &ObjectKey, group: &PodGroup, gangs: &Gangs, cluster: &Cluster) -> PodGroupStatus {
        let known = self.computed.get(key).unwrap_or(&group.status);
        let is_due = self.due.get(key).is_some_and(|due| *due <= cluster.time());
        if is_due { looked_at(known, key, group, gangs, cluster) } else { known.clone() }
    }

    /// What a look at the PodGroups that are due gives.
    pub(super) fn look(&self, gangs: &Gangs, cluster: &Cluster) -> Vec<(ObjectKey, PodGroupStatus)> {
        let group = |key: &ObjectKey| cluster.objects().get::<PodGroup>(key.as_str());
        let due = self.by_time.iter().take_while(|(due, _)| *due <= cluster.time());
        let due = due.filter_map(|(_, key)| Some((key, group(key)?)));
        due.map(|(key, group)| (key.clone(), self.status(key, group, gangs, cluster))).collect()
    }

    /// What a look gave is wanted, and nothing is due any more.
    pub(super) fn looked(&mut self, seen: Vec<(ObjectKey, PodGroupStatus)>, now: Timestamp) {
        while let Some((_, key)) = self.by_time.first().filter(|(due, _)| *due <= now).cloned() {
            self.forget(&key);
        }
        self.computed.extend(seen);
    }

    /// When there is anything to look at.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(due, _)| *due)
    }
}

/// The status that follows from another one with the pods as they are now.
fn looked_at(
    known: &PodGroupStatus,
    key: &ObjectKey,
    group: &PodGroup,
    gangs: &Gangs,
    cluster: &Cluster,
) -> PodGroupStatus {
    let now = cluster.time();
    let created = group.metadata.creation_timestamp.as_ref().map_or(now, |created| created.0);
    if is_abandoned(known, group.spec.min_member, created) {
        return known.clone();
    }
    let pod = |uid: &Uid| cluster.pod(uid).map(|placed| &placed.pod).or_else(|| cluster.pending_pod(uid));
    let pods: Vec<&Pod> = gangs.members(key).filter_map(|(uid, _)| pod(uid)).map(|pod| &**pod).collect();
    let count = |counts: &dyn Fn(&Pod) -> bool| {
        i32::try_from(pods.iter().filter(|pod| counts(pod)).count()).unwrap_or(i32::MAX)
    };
    let counts = Counts {
        members: count(&|_| true),
        scheduled: count(&|pod| pod.node.is_some()),
        running: count(&|pod| pod.is_running),
    };
    let first = pods.iter().min_by_key(|pod| &pod.key);
    let owners = first.map(|pod| owners(pod)).unwrap_or_default();
    let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
    status(known, group.spec.min_member, counts, &owners, second.into())
}

/// The owners of a pod, sorted.
fn owners(pod: &Pod) -> String {
    let mut owners: Vec<String> =
        pod.owners().map(|(owner, _)| format!("{}/{}", pod.key.namespace(), owner.name)).collect();
    owners.sort_unstable();
    owners.join(",")
}
