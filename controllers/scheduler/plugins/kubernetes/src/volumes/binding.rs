//! VolumeBinding: a pod runs where its volumes can be reached. Claims that wait for their first pod are bound when it has its
//! node: to volumes that exist, or to volumes that are made for the node.

mod assumed;
mod claims;
mod find;
mod prepare;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::{CSIDriver, CSIStorageCapacity, StorageClass},
};
use koord_config::scheduler::VolumeBindingArgs;
use koord_resource::controller::ResourceKind;
use koord_scheduler_framework::{
    EnqueueExtensions, Filter, NodeFilter, Patch, Plugin, PluginState, PreBind, PreBindProgress, PreFilter,
    PreparedFilter, Reason, ReasonCode, Refusal, Registration, Rejection, Request, Reserve, SchedulingSignature,
    cluster::{Cluster, Placed, state::State},
    columns::Row,
    event::{Event, Events},
    hold::Holds,
    node::Node,
    object::ObjectChange,
    pod::Pod,
};

use self::{
    assumed::{Assumed, VolumesHeld},
    find::{Conflicts, Search, volume_limit},
};
use super::storage::is_claim_of;

/// Refuses nodes where a volume of the pod cannot be reached or made, and binds the claims that wait for the pod's node.
#[derive(Clone, Copy, Debug)]
pub struct VolumeBinding {
    /// How long it may take until the claims of a pod are bound.
    timeout: Duration,
}

impl VolumeBinding {
    /// With these arguments.
    pub fn new(args: &VolumeBindingArgs) -> Self {
        Self { timeout: Duration::from_secs(u64::try_from(args.bind_timeout_seconds).unwrap_or_default()) }
    }
}

impl Plugin for VolumeBinding {
    fn name(&self) -> &'static str {
        "VolumeBinding"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .reads(
                const {
                    &[
                        ResourceKind::typed::<PersistentVolumeClaim>(),
                        ResourceKind::typed::<PersistentVolume>(),
                        ResourceKind::typed::<StorageClass>(),
                        ResourceKind::typed::<CSIDriver>(),
                        ResourceKind::typed::<CSIStorageCapacity>(),
                    ]
                },
            )
            .enqueue_extensions(&self)
            .pre_filter(&self)
            .filter(&self)
            .reserve(&self)
            .pre_bind(&self)
            .state(&self)
            .scheduling_signature(&self)
    }
}

impl EnqueueExtensions for VolumeBinding {
    fn events_to_register(&self) -> Events {
        Events::NODE_ADDED | Events::NODE_LABELS | Events::POD_REMOVED | Events::OBJECTS
    }

    fn is_helped_by(&self, pod: &Pod, event: &Event, _: &Cluster) -> bool {
        match event {
            // Its volumes may have been assumed for claims that no pod waits for now.
            Event::PodRemoved(gone) => gone.has_claims(),
            Event::Object(change) => may_help(change) || is_claim_of(pod, event, false),
            _ => true,
        }
    }
}

impl PreFilter for VolumeBinding {
    fn pre_filter(&self, request: &Request<'_>, cluster: &Cluster) -> Result<(), Rejection> {
        let claims = claims::of(request.pod, cluster.objects())?;
        if claims.iter().any(|claim| claim.state == claims::State::Unbound) {
            return Err(Rejection::unresolvable(
                ReasonCode::ClaimUnbound.reason("pod has unbound immediate PersistentVolumeClaims"),
            ));
        }
        Ok(())
    }
}

impl Filter for VolumeBinding {
    fn prepare_filter(&self, request: &Request<'_>, cluster: &Cluster) -> PreparedFilter {
        match Search::of(request.pod, cluster) {
            Some(search) => PreparedFilter::Nodes(Box::new(search)),
            None => PreparedFilter::Skip,
        }
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<Reason> {
        Conflicts::reasons(refusal.operand)
    }
}

impl Reserve for VolumeBinding {
    fn reserve(&self, request: &Request<'_>, cluster: &Cluster, row: Row, holds: &mut Holds) -> Result<(), Rejection> {
        let (Some(search), Some(node)) = (Search::of(request.pod, cluster), cluster.node(row)) else { return Ok(()) };
        let refused = |conflicts: Conflicts| Rejection::unresolvable(Conflicts::reasons(conflicts.bits()));
        let found = search.on(node).map_err(refused)?;
        if !found.is_empty() {
            holds.set(VolumesHeld::of(&found, &node.name, cluster.objects()));
        }
        Ok(())
    }
}

impl PreBind for VolumeBinding {
    fn pre_bind(&self, _: &Request<'_>, placed: &Placed, cluster: &Cluster, patch: &mut Patch) {
        if let Some(held) = placed.holds.get::<VolumesHeld>() {
            let writes = prepare::writes(held, cluster.objects()).into_iter();
            patch.writes.extend(writes.map(|write| (self.name(), write)));
            patch.wait = Some(patch.wait.map_or(self.timeout, |wait| wait.max(self.timeout)));
        }
    }

    fn pre_bind_progress(&self, placed: &Placed, cluster: &Cluster) -> PreBindProgress {
        let held = placed.holds.get::<VolumesHeld>();
        held.map_or(PreBindProgress::Done, |held| prepare::prepared(held, placed, cluster))
    }
}

impl PluginState for VolumeBinding {
    fn state(&self) -> Box<dyn State> {
        Box::new(Assumed::default())
    }
}

impl SchedulingSignature for VolumeBinding {
    fn is_individual(&self, pod: &Pod, _: &Cluster) -> bool {
        pod.has_claims()
    }
}

/// Whether a change of an object that is not the pod's own may help.
fn may_help(change: &ObjectChange) -> bool {
    if let Some((old, new)) = change.of::<StorageClass>() {
        return new.is_some_and(|new| old.is_none_or(|old| old.allowed_topologies != new.allowed_topologies));
    }
    if let Some((_, new)) = change.of::<PersistentVolume>() {
        return new.is_some();
    }
    if let Some((old, new)) = change.of::<CSIDriver>() {
        let is_limited =
            |driver: Option<&CSIDriver>| driver.is_some_and(|driver| driver.spec.storage_capacity == Some(true));
        return is_limited(old) && !is_limited(new);
    }
    if let Some((old, new)) = change.of::<CSIStorageCapacity>() {
        return new.is_some() && (old.is_none() || new.and_then(volume_limit) > old.and_then(volume_limit));
    }
    false
}

impl NodeFilter for Search {
    fn filter(&self, cluster: &Cluster, row: Row) -> Result<(), Refusal> {
        let Some(node): Option<&Arc<Node>> = cluster.node(row) else { return Ok(()) };
        let refusal = |conflicts: Conflicts| Refusal { reason: 0, resolvable: false, operand: conflicts.bits() };
        self.on(node).map(drop).map_err(refusal)
    }
}

#[cfg(test)]
mod tests;
