//! The claims of a pod, as they are known.

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{
    dynamic::{PodResourceClaim, ResourceClaim},
    object::Objects,
    pod::Pod,
};

/// A claim of a pod.
#[derive(Clone, Debug)]
pub(super) struct Claim<'o> {
    pub(super) key: ObjectKey,
    pub(super) uid: &'o Uid,
    pub(super) object: &'o ResourceClaim,
}

impl Claim<'_> {
    /// Whether a pod may use what the claim was given.
    pub(super) fn is_reserved_for(&self, pod: &Pod) -> bool {
        self.object.status.reserved_for.iter().any(|consumer| Uid::from(&*consumer.uid) == pod.uid)
    }

    /// Whether it has devices.
    pub(super) fn is_allocated(&self) -> bool {
        self.object.status.allocation.is_some()
    }

    /// Whether nobody uses it, but this pod perhaps.
    pub(super) fn is_idle_but_for(&self, pod: &Pod) -> bool {
        self.object.status.reserved_for.len() == usize::from(self.is_reserved_for(pod))
    }
}

/// The claims of a pod, in their order; or why it cannot be placed now.
pub(super) fn of<'o>(pod: &Pod, objects: &'o Objects) -> Result<Vec<Claim<'o>>, String> {
    if pod.is_reservation() && pod.has_resource_claims() {
        return Err("a Reservation cannot have resource claims".to_owned());
    }
    let claims = pod.resource_claims()?.into_iter().map(|PodResourceClaim { key, is_generated }| {
        let found = objects.entry::<ResourceClaim>(key.as_str());
        let (entry, object) = found
            .and_then(|entry| Some((entry, entry.get::<ResourceClaim>()?)))
            .ok_or_else(|| format!("could not find ResourceClaim {:?}", key.as_str()))?;
        if entry.deleting {
            return Err(format!("resourceclaim {:?} is being deleted", key.name()));
        }
        let mut owners = object.metadata.owner_references.iter();
        let is_owner = owners.any(|owner| owner.controller == Some(true) && Uid::from(&*owner.uid) == pod.uid);
        if is_generated && !is_owner {
            return Err(format!("ResourceClaim {key} was not created for pod {} (pod is not owner)", pod.key));
        }
        Ok(Claim { key, uid: &entry.uid, object })
    });
    claims.collect()
}
