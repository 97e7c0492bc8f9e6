//! The claims of a pod, as they are known.

use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{
    dynamic::{PodResourceClaim, ResourceClaim},
    object::Objects,
    pod::{ClaimNameError, Pod},
};
use thiserror::Error;

/// Why a pod cannot be placed until its claims change.
#[derive(Debug, Error)]
pub(super) enum ClaimError {
    #[error("a Reservation cannot have resource claims")]
    Reservation,
    #[error(transparent)]
    Name(#[from] ClaimNameError),
    #[error("could not find ResourceClaim {:?}", .0.as_str())]
    NotFound(ObjectKey),
    #[error("resourceclaim {:?} is being deleted", .0.name())]
    Deleting(ObjectKey),
    #[error("ResourceClaim {claim} was not created for pod {pod} (pod is not owner)")]
    NotOwned { claim: ObjectKey, pod: ObjectKey },
    #[error("resource claim {0} is still reserved for an earlier attempt")]
    StillReserved(ObjectKey),
    #[error("resource claim {0} is in the process of being allocated")]
    BeingAllocated(ObjectKey),
}

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

    /// Whether no pod uses it, except perhaps this one.
    pub(super) fn is_idle_but_for(&self, pod: &Pod) -> bool {
        self.object.status.reserved_for.len() == usize::from(self.is_reserved_for(pod))
    }
}

/// The claims of a pod, in their order.
pub(super) fn of<'o>(pod: &Pod, objects: &'o Objects) -> Result<Vec<Claim<'o>>, ClaimError> {
    if pod.is_reservation() && pod.has_resource_claims() {
        return Err(ClaimError::Reservation);
    }
    let claims = pod.resource_claims()?.into_iter().map(|PodResourceClaim { key, is_generated }| {
        let found = objects.entry::<ResourceClaim>(key.as_str());
        let (entry, object) = found
            .and_then(|entry| Some((entry, entry.get::<ResourceClaim>()?)))
            .ok_or_else(|| ClaimError::NotFound(key.clone()))?;
        if entry.deleting {
            return Err(ClaimError::Deleting(key));
        }
        let mut owners = object.metadata.owner_references.iter();
        let is_owner = owners.any(|owner| owner.controller == Some(true) && Uid::from(&*owner.uid) == pod.uid);
        if is_generated && !is_owner {
            return Err(ClaimError::NotOwned { claim: key, pod: pod.key.clone() });
        }
        Ok(Claim { key, uid: &entry.uid, object })
    });
    claims.collect()
}
