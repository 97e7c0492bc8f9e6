//! The claims of a pod: which of them are bound, which wait for the pod, and which should be bound by now.

use k8s_openapi::{
    api::{core::v1::PersistentVolumeClaim, storage::v1::StorageClass},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use koord_core::{key::ObjectKey, uid::Uid};
use koord_scheduler_framework::{ReasonCode, Rejection, object::Objects, pod::Pod};

use crate::volumes::storage::{class_of_claim, is_fully_bound, stored, volume_of, waits_for_consumer};

/// A claim of a pod.
pub(super) struct Claim<'a> {
    pub(super) key: ObjectKey,
    pub(super) object: &'a PersistentVolumeClaim,
    pub(super) state: State,
}

/// How far a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Claim and volume are bound to each other.
    Bound,
    /// It is bound when its pod has a node.
    Delayed,
    /// It is bound without its pod, but not yet.
    Unbound,
}

/// The claims of a pod, in the order of its volumes; refused where one is missing or cannot be used.
pub(super) fn of<'a>(pod: &Pod, objects: &'a Objects) -> Result<Vec<Claim<'a>>, Rejection> {
    let mut claims = Vec::new();
    for claim in pod.claims() {
        let name = claim.key.name();
        let object = stored(&claim, objects).ok_or_else(|| {
            Rejection::unresolvable(ReasonCode::VolumeNotFound.reason(if claim.is_ephemeral {
                format!("waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}")
            } else {
                format!("persistentvolumeclaim {name:?} not found")
            }))
        })?;
        if object.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Lost") {
            let volume = volume_of(object).unwrap_or_default();
            let message = format!("persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}");
            return Err(invalid(message));
        }
        if object.metadata.deletion_timestamp.is_some() {
            return Err(invalid(format!("persistentvolumeclaim {name:?} is being deleted")));
        }
        if claim.is_ephemeral && !is_controlled_by(&object.metadata, pod) {
            let (claim, pod) = (&claim.key, &pod.key);
            let message = format!("PVC {claim} was not created for pod {pod} (pod is not owner)");
            return Err(invalid(message));
        }
        claims.push((claim.key, object));
    }
    claims.into_iter().map(|(key, object)| Ok(Claim { key, object, state: state(object, objects)? })).collect()
}

/// The claim is there, but cannot be used.
fn invalid(message: String) -> Rejection {
    Rejection::unresolvable(ReasonCode::VolumeInvalid.reason(message))
}

fn state(claim: &PersistentVolumeClaim, objects: &Objects) -> Result<State, Rejection> {
    if is_fully_bound(claim) {
        return Ok(State::Bound);
    }
    let name = class_of_claim(claim);
    let Some(class) = objects.get::<StorageClass>(name) else { return Ok(State::Unbound) };
    if class.volume_binding_mode.is_none() {
        let message = format!("VolumeBindingMode not set for StorageClass {name:?}");
        return Err(Rejection::error(ReasonCode::VolumeInvalid.reason(message)));
    }
    // A claim that names its volume itself is bound without its pod.
    let is_delayed = waits_for_consumer(class) && volume_of(claim).is_none();
    Ok(if is_delayed { State::Delayed } else { State::Unbound })
}

fn is_controlled_by(metadata: &ObjectMeta, pod: &Pod) -> bool {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true) && pod.uid == Uid::from(&*owner.uid))
}
