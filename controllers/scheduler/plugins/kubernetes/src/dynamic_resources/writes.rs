//! What is written into claims: the devices that they are given, who may use them, and that they have none any more.

use koord_core::{
    key::ObjectKey,
    write::{Action, Write},
};
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{dynamic::ResourceClaim, pod::Pod};
use serde_json::{Value, json};

use super::{
    claims::Claim,
    ledger::{ClaimHeld, Given},
};

/// Keeps a claim with devices from being deleted while a pod may use them.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// The writes after which a pod may use a claim, in their order; none where it may already. The finalizer is not part of the
/// status, so it is a write of its own where it is missing. The first write rests on the revision that was decided about;
/// afterwards the API server refuses other devices than those that the claim has.
pub(super) fn reserve(pod: &Pod, claim: &Claim<'_>, held: Option<&ClaimHeld>) -> Vec<Write> {
    if claim.is_reserved_for(pod) && held.is_none() {
        return Vec::new();
    }
    let mut writes = Vec::new();
    let consumer = json!({"resource": "pods", "name": pod.key.name(), "uid": pod.uid});
    let mut status = json!({ "reservedFor": [consumer] });
    let mut metadata = json!({ "uid": claim.uid });
    if let Some(held) = held {
        status["allocation"] = allocation(&held.given);
        let revision = &claim.object.metadata.resource_version;
        let mut finalizers = claim.object.metadata.finalizers.clone();
        if finalizers.iter().any(|known| known == FINALIZER) {
            metadata["resourceVersion"] = json!(revision);
        } else {
            finalizers.push(FINALIZER.to_owned());
            let patch = json!({"metadata": {"uid": claim.uid, "resourceVersion": revision, "finalizers": finalizers}});
            writes.push(write(&claim.key, Action::Patch { subresource: "", patch }));
        }
    }
    let patch = json!({"metadata": metadata, "status": status});
    writes.push(write(&claim.key, Action::StrategicPatch { subresource: "status", patch }));
    writes
}

/// Takes from a claim that a pod may use it. It keeps its devices.
pub(super) fn give_back(pod: &Pod, claim: &Claim<'_>) -> Write {
    let consumer = json!({"$patch": "delete", "uid": pod.uid});
    let patch = json!({"metadata": {"uid": claim.uid}, "status": {"reservedFor": [consumer]}});
    write(&claim.key, Action::StrategicPatch { subresource: "status", patch })
}

/// Takes its devices from an idle claim.
pub(super) fn deallocate(claim: &Claim<'_>) -> Write {
    let metadata = json!({"uid": claim.uid, "resourceVersion": claim.object.metadata.resource_version});
    let patch = json!({"metadata": metadata, "status": {"allocation": null, "reservedFor": null, "devices": null}});
    write(&claim.key, Action::Patch { subresource: "status", patch })
}

fn allocation(given: &Given) -> Value {
    let mut devices = json!({ "results": given.results });
    if !given.config.is_empty() {
        devices["config"] = json!(given.config);
    }
    let mut allocation = json!({ "devices": devices });
    if let Some(selector) = &given.node_selector {
        allocation["nodeSelector"] = json!(selector);
    }
    allocation
}

fn write(key: &ObjectKey, action: Action) -> Write {
    Write { kind: ResourceKind::typed::<ResourceClaim>(), key: key.clone(), action }
}
