//! What is written into claims and volumes before a pod is bound, and whether they are bound then.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use koord_core::write::{Action, Write};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    PreBindProgress,
    cluster::{Cluster, Placed},
    object::Objects,
};
use serde_json::{Value, json};
use thiserror::Error;

use super::assumed::{Binding, Provision, VolumesHeld, revision};
use crate::volumes::storage::{BOUND_BY_CONTROLLER, Reach, SELECTED_NODE, annotation, is_fully_bound, volume_of};

/// The message when the claims are not bound in time.
const TIMEOUT: &str = "binding volumes: context deadline exceeded";

/// Why the claims of a pod are not going to be bound.
#[derive(Debug, Error)]
enum BindingError {
    #[error("failed to check binding: could not find v1.PersistentVolume {0:?}")]
    VolumeGone(String),
    #[error("failed to check binding: could not find v1.PersistentVolumeClaim {0:?}")]
    ClaimGone(String),
    #[error("failed to check provisioning pvc: could not find v1.PersistentVolumeClaim {0:?}")]
    ProvisionedClaimGone(String),
    #[error("ClaimRef got reset for pv {0:?}")]
    ClaimRefReset(String),
    /// The provisioner has removed the node from the claim.
    #[error("provisioning failed for PVC {0:?}")]
    ProvisioningFailed(String),
    #[error("the node of the pod is gone")]
    NodeGone,
    #[error("pv {volume:?} node affinity doesn't match node {node:?}: no matching NodeSelectorTerms")]
    OutOfReach { volume: String, node: String },
}

/// The writes from which the binding of the claims follows.
pub(super) fn writes(held: &VolumesHeld, objects: &Objects) -> Vec<Write> {
    let bindings = held.bindings.iter().filter_map(|binding| bind(binding, objects));
    bindings.chain(held.provisions.iter().filter_map(|provision| select(provision, &held.node, objects))).collect()
}

/// Makes a volume that of its claim; nothing where it is that already.
fn bind(binding: &Binding, objects: &Objects) -> Option<Write> {
    let volume = objects.get::<PersistentVolume>(binding.volume.as_str())?;
    let claim = objects.get::<PersistentVolumeClaim>(binding.claim.as_str())?;
    let known = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    if known.is_some_and(|known| known.uid.is_some() && known.uid == claim.metadata.uid) {
        return None;
    }
    let mut metadata = precondition(volume.metadata.uid.as_deref(), &binding.revision);
    // A volume that named the claim before was given to it by its user.
    if known.is_none() {
        metadata["annotations"] = json!({ BOUND_BY_CONTROLLER: "yes" });
    }
    let reference = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "namespace": binding.claim.namespace(), "name": binding.claim.name(),
        "uid": claim.metadata.uid, "resourceVersion": claim.metadata.resource_version,
    });
    let action =
        Action::Patch { subresource: "", patch: json!({"metadata": metadata, "spec": {"claimRef": reference}}) };
    Some(Write { kind: ResourceKind::typed::<PersistentVolume>(), key: binding.volume.clone(), action })
}

/// Names the node for which the volume of a claim is made; nothing where it is named already.
fn select(provision: &Provision, node: &str, objects: &Objects) -> Option<Write> {
    let claim = objects.get::<PersistentVolumeClaim>(provision.claim.as_str())?;
    if annotation(&claim.metadata, SELECTED_NODE) == Some(node) {
        return None;
    }
    let mut metadata = precondition(claim.metadata.uid.as_deref(), &provision.revision);
    metadata["annotations"] = json!({ SELECTED_NODE: node });
    let action = Action::Patch { subresource: "", patch: json!({ "metadata": metadata }) };
    Some(Write { kind: ResourceKind::typed::<PersistentVolumeClaim>(), key: provision.claim.clone(), action })
}

fn precondition(uid: Option<&str>, revision: &str) -> Value {
    json!({"uid": uid, "resourceVersion": revision})
}

/// Whether all claims of a pod are bound.
pub(super) fn prepared(held: &VolumesHeld, placed: &Placed, cluster: &Cluster) -> PreBindProgress {
    let bindings = held.bindings.iter().map(|binding| is_bound(binding, placed, cluster));
    let provisions = held.provisions.iter().map(|provision| is_provided(provision, &held.node, placed, cluster));
    let mut is_pending = false;
    for step in bindings.chain(provisions) {
        match step {
            Ok(is_done) => is_pending |= !is_done,
            Err(error) => return PreBindProgress::Failed(format!("binding volumes: {error}")),
        }
    }
    if is_pending { PreBindProgress::Pending(TIMEOUT.to_owned()) } else { PreBindProgress::Done }
}

fn is_bound(binding: &Binding, placed: &Placed, cluster: &Cluster) -> Result<bool, BindingError> {
    let objects = cluster.objects();
    let Binding { volume: name, claim, revision: base } = binding;
    let volume = objects.get::<PersistentVolume>(name.as_str());
    let volume = volume.ok_or_else(|| BindingError::VolumeGone(name.name().to_owned()))?;
    let claim = objects.get::<PersistentVolumeClaim>(claim.as_str());
    let claim = claim.ok_or_else(|| BindingError::ClaimGone(binding.claim.as_str().to_owned()))?;
    let owner = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref()).and_then(|owner| owner.uid.as_deref());
    let is_owned = owner.is_some_and(|owner| !owner.is_empty());
    // What was written comes with another revision.
    if !is_owned && revision(Some(volume)) == *base {
        return Ok(false);
    }
    reached(volume, name.name(), placed, cluster)?;
    if !is_owned {
        return Err(BindingError::ClaimRefReset(name.name().to_owned()));
    }
    Ok(is_fully_bound(claim))
}

fn is_provided(provision: &Provision, node: &str, placed: &Placed, cluster: &Cluster) -> Result<bool, BindingError> {
    let objects = cluster.objects();
    let claim = objects.get::<PersistentVolumeClaim>(provision.claim.as_str());
    let claim = claim.ok_or_else(|| BindingError::ProvisionedClaimGone(provision.claim.as_str().to_owned()))?;
    if annotation(&claim.metadata, SELECTED_NODE) != Some(node) {
        // What was written comes with another revision. A provisioner that cannot make the volume takes the node away again.
        let is_old = revision(Some(claim)) == provision.revision;
        return if is_old {
            Ok(false)
        } else {
            Err(BindingError::ProvisioningFailed(provision.claim.name().to_owned()))
        };
    }
    let Some(name) = volume_of(claim) else { return Ok(false) };
    let Some(volume) = objects.get::<PersistentVolume>(name) else { return Ok(false) };
    reached(volume, name, placed, cluster)?;
    Ok(is_fully_bound(claim))
}

/// Whether a volume can be reached from the pod's node.
fn reached(volume: &PersistentVolume, name: &str, placed: &Placed, cluster: &Cluster) -> Result<(), BindingError> {
    let Some(node) = cluster.node(placed.row) else { return Err(BindingError::NodeGone) };
    if Reach::of(volume).includes(&node.labels) {
        return Ok(());
    }
    Err(BindingError::OutOfReach { volume: name.to_owned(), node: node.name.to_string() })
}
