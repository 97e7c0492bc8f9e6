//! Which devices are given: to claims that say so, and to claims of pods in their places, before it is seen in the claims.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeSelector;
use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{
    dynamic::{AllocatedDevice, Allocation, DeviceId, ResourceClaim},
    object::{Object, ObjectChange, Objects},
};
use serde_json::Value;

use super::pools::PoolId;

/// What a pod holds of claims that had no devices when its node was chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClaimsHeld(pub(super) Vec<ClaimHeld>);

/// The devices that are to be given to a claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ClaimHeld {
    pub(super) key: ObjectKey,
    pub(super) uid: Uid,
    /// The revision of the claim on which the decision rests.
    pub(super) revision: u64,
    pub(super) given: Given,
}

/// What a claim is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Given {
    pub(super) results: Vec<AllocatedDevice>,
    /// What drivers are told about the devices.
    pub(super) config: Vec<Value>,
    /// The nodes from which the devices can be reached; none where that is every node.
    pub(super) node_selector: Option<NodeSelector>,
}

/// Devices of a pool, each with how many claims have it.
pub(super) type InPool = BTreeMap<Arc<str>, u32>;

/// Which devices are given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ledger {
    claims: BTreeMap<ObjectKey, Record>,
    used: BTreeMap<PoolId, InPool>,
    /// The claims with doubts that end at a time.
    doubts: BTreeMap<Timestamp, BTreeSet<ObjectKey>>,
}

/// A claim that has devices, or may have some soon.
#[derive(Clone, Debug, Default, PartialEq)]
struct Record {
    /// The claim as it is known; none where it is gone.
    uid: Option<Uid>,
    /// Its devices, by what it says.
    allocated: Option<Vec<AllocatedDevice>>,
    /// The revision at which it was last seen to have lost its devices. What was decided before that is over.
    lost: u64,
    /// The pods in their places that want to give it devices.
    held: BTreeMap<Uid, ClaimHeld>,
    /// The pods that wanted to and have lost their places, until when: what they had may be written, and not be seen yet.
    doubtful: BTreeMap<Uid, (ClaimHeld, Timestamp)>,
}

impl Record {
    /// Whether a decision about it still stands: the claim has had no devices since, and is not another one.
    fn counts(&self, held: &ClaimHeld) -> bool {
        self.allocated.is_none() && Some(&held.uid) == self.uid.as_ref() && held.revision >= self.lost
    }

    /// Its devices that no other claim may have.
    fn devices(&self) -> impl Iterator<Item = &AllocatedDevice> {
        self.with(self.held.values().chain(self.doubtful.values().map(|(held, _)| held)))
    }

    /// The same without those that it has perhaps, nor those of which others may have further parts.
    fn exclusive(&self) -> impl Iterator<Item = &AllocatedDevice> {
        self.with(self.held.values()).filter(|device| device.share_id.is_none())
    }

    fn with<'r>(&'r self, held: impl Iterator<Item = &'r ClaimHeld>) -> impl Iterator<Item = &'r AllocatedDevice> {
        let held = held.filter(|held| self.counts(held)).flat_map(|held| &held.given.results);
        let all = self.allocated.iter().flatten().chain(held);
        all.filter(|device| device.admin_access != Some(true))
    }

    fn is_empty(&self) -> bool {
        self.uid.is_none() && self.held.is_empty() && self.doubtful.is_empty()
    }
}

impl Ledger {
    /// The devices of a pool that are given.
    pub(super) fn in_pool(&self, pool: &PoolId) -> Option<&InPool> {
        self.used.get(pool)
    }

    /// Whether a pod other than this one is about to give devices to a claim.
    pub(super) fn is_in_flight(&self, claim: &ObjectKey, but: &Uid) -> bool {
        let record = self.claims.get(claim);
        record.is_some_and(|record| record.held.iter().any(|(pod, held)| pod != but && record.counts(held)))
    }

    /// A claim was added, changed or deleted.
    pub(super) fn changed(&mut self, change: &ObjectChange) {
        let Some(key) = change.key() else { return };
        self.change(key, |record| {
            let had = record.allocated.take().is_some();
            let claim = change.new.as_ref().and_then(|new| Some((new, new.get::<ResourceClaim>()?)));
            let Some((Object { uid, .. }, claim)) = claim else {
                (record.uid, record.lost) = (None, 0);
                return;
            };
            if record.uid.as_ref() != Some(uid) {
                record.lost = 0;
            } else if had && claim.status.allocation.is_none() {
                record.lost = revision(claim);
            }
            record.uid = Some(uid.clone());
            record.allocated = devices_of(claim);
        });
    }

    /// A pod is in its place, with what it holds of claims.
    pub(super) fn hold(&mut self, pod: &Uid, held: &ClaimsHeld) {
        for held in &held.0 {
            self.change(&held.key, |record| _ = record.held.insert(pod.clone(), held.clone()));
        }
    }

    /// A pod is not in its place any more.
    pub(super) fn release(&mut self, pod: &Uid, held: &ClaimsHeld) {
        for held in &held.0 {
            self.change(&held.key, |record| _ = record.held.remove(pod));
        }
    }

    /// A pod has lost its place, perhaps after what it held was written.
    pub(super) fn doubt(&mut self, pod: &Uid, held: &ClaimsHeld, until: Timestamp) {
        for held in &held.0 {
            self.change(&held.key, |record| _ = record.doubtful.insert(pod.clone(), (held.clone(), until)));
            self.doubts.entry(until).or_default().insert(held.key.clone());
        }
    }

    /// Ends doubts whose time is over. Says whether there were some.
    pub(super) fn settle(&mut self, now: Timestamp) -> bool {
        let mut has_settled = false;
        while let Some(first) = self.doubts.first_entry().filter(|first| *first.key() <= now) {
            for key in first.remove() {
                self.change(&key, |record| record.doubtful.retain(|_, (_, until)| *until > now));
            }
            has_settled = true;
        }
        has_settled
    }

    /// When the next doubt ends.
    pub(super) fn doubts_end(&self) -> Option<Timestamp> {
        self.doubts.first_key_value().map(|(until, _)| *until)
    }

    fn change(&mut self, key: &ObjectKey, change: impl FnOnce(&mut Record)) {
        let mut record = self.claims.remove(key).unwrap_or_default();
        for device in record.devices() {
            let (pool, name) = place(device);
            if let Some(devices) = self.used.get_mut(&pool) {
                let left = devices.get(&name).map_or(0, |count| count.saturating_sub(1));
                if left > 0 {
                    devices.insert(name, left)
                } else {
                    devices.remove(&name)
                };
                if devices.is_empty() {
                    self.used.remove(&pool);
                }
            }
        }
        change(&mut record);
        count(&mut self.used, &record);
        if !record.is_empty() {
            self.claims.insert(key.clone(), record);
        }
    }

    /// Compares what is known of claims with their objects and with what pods in their places hold of them, and sets right what
    /// differs: of which claim, and how.
    pub(super) fn audit_claims(
        &mut self,
        objects: &Objects,
        mut held: BTreeMap<ObjectKey, BTreeMap<Uid, ClaimHeld>>,
    ) -> Vec<(ObjectKey, String)> {
        let known = objects.of::<ResourceClaim>().map(|(key, _)| key);
        let keys: BTreeSet<ObjectKey> = known.chain(self.claims.keys()).chain(held.keys()).cloned().collect();
        let mut wrong = Vec::new();
        for key in keys {
            let (object, held) = (objects.entry::<ResourceClaim>(key.as_str()), held.remove(&key).unwrap_or_default());
            let claim = object.and_then(Object::get::<ResourceClaim>);
            let (uid, allocated) = (claim.and(object).map(|object| object.uid.clone()), claim.and_then(devices_of));
            let nothing = Record::default();
            let cached = self.claims.get(&key).unwrap_or(&nothing);
            if (&cached.uid, &cached.allocated, &cached.held) == (&uid, &allocated, &held) {
                continue;
            }
            let details = if cached.held == held {
                format!("{key} as it was instead of as it is")
            } else {
                format!("{} pods instead of {} hold devices for {key}", cached.held.len(), held.len())
            };
            self.change(&key, |record| (record.uid, record.allocated, record.held) = (uid, allocated, held));
            wrong.push((key, details));
        }
        wrong
    }

    /// Compares which devices are given with what is known of claims, and sets right what differs.
    pub(super) fn audit_used(&mut self) -> Option<String> {
        let used = self.recount();
        if self.used == used {
            return None;
        }
        let devices = |used: &BTreeMap<PoolId, InPool>| used.values().map(BTreeMap::len).sum::<usize>();
        let details = format!("{} devices instead of {}", devices(&self.used), devices(&used));
        self.used = used;
        Some(details)
    }

    /// Devices that several claims have, each with these claims and the pods that want to give it to them.
    pub(super) fn double_allocations(&self) -> BTreeMap<DeviceId, BTreeMap<&ObjectKey, Vec<&Uid>>> {
        let is_crowded = |device: &&AllocatedDevice| {
            let (pool, name) = place(device);
            self.used.get(&pool).and_then(|in_pool| in_pool.get(&name)).is_some_and(|count| *count > 1)
        };
        let mut claims: BTreeMap<DeviceId, BTreeMap<&ObjectKey, Vec<&Uid>>> = BTreeMap::new();
        for (key, record) in &self.claims {
            for AllocatedDevice { device, .. } in record.exclusive().filter(is_crowded) {
                claims.entry(device.clone()).or_default().insert(key, record.held.keys().collect());
            }
        }
        claims.retain(|_, claims| claims.len() > 1);
        claims
    }

    /// What is given, by what is known of each claim.
    pub(super) fn recount(&self) -> BTreeMap<PoolId, InPool> {
        let mut used = BTreeMap::new();
        self.claims.values().for_each(|record| count(&mut used, record));
        used
    }

    /// As if nothing were given.
    #[cfg(test)]
    pub(super) fn lose_count(&mut self) {
        self.used.clear();
    }

    #[cfg(test)]
    pub(super) fn used(&self) -> &BTreeMap<PoolId, InPool> {
        &self.used
    }
}

/// The devices that a claim has, by what it says.
fn devices_of(claim: &ResourceClaim) -> Option<Vec<AllocatedDevice>> {
    claim.status.allocation.as_ref().map(|Allocation { devices, .. }| devices.results.clone())
}

fn count(used: &mut BTreeMap<PoolId, InPool>, record: &Record) {
    for device in record.devices() {
        let (pool, name) = place(device);
        *used.entry(pool).or_default().entry(name).or_default() += 1;
    }
}

fn place(AllocatedDevice { device, .. }: &AllocatedDevice) -> (PoolId, Arc<str>) {
    let pool = PoolId { driver: Arc::clone(&device.driver), pool: Arc::clone(&device.pool) };
    (pool, Arc::clone(&device.device))
}

/// The revision of a claim, as a number.
pub(super) fn revision(claim: &ResourceClaim) -> u64 {
    claim.metadata.resource_version.parse().unwrap_or_default()
}
