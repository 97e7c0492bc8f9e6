//! A node's devices as the owner of a reservation sees them, and as others see them (`spec/scheduler.md` 3F.5).

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use koord_scheduler_allocation::{
    Choice, ReservationRequirement, ReservedResources, choices,
    devices::{
        allocate::DeviceLimits, allocation::AllocatedDevices, amounts::DeviceAmounts, node::NodeDevices,
        refusal::Refused, request::Kind,
    },
    reserved,
};
use koord_scheduler_framework::{AllocationSource, cluster::Cluster, columns::Row};

/// A way to take devices of a node: the devices as they are then, and which of them the pod keeps to.
pub(super) struct NodeView<'a> {
    pub(super) node: Cow<'a, NodeDevices>,
    pub(super) limits: DeviceLimits,
    /// Devices all of which must be taken.
    required: BTreeSet<(Kind, i32)>,
}

/// What a reservation has, and what its owners do not use of it.
struct Held<'l, 'c> {
    resources: &'l ReservedResources<'c>,
    rest: AllocatedDevices,
    /// What the owners use of it, which counts twice while the reservation is not hidden.
    used: AllocatedDevices,
}

/// The ways in which a pod may take devices of a node; the first that has enough counts.
pub(super) fn node_views<'a>(
    cluster: &'a Cluster,
    row: Row,
    node: &'a NodeDevices,
    requirement: &ReservationRequirement,
    source: &AllocationSource,
) -> Vec<NodeView<'a>> {
    let reserved = reserved(cluster, row);
    let held: Vec<Held<'_, '_>> = reserved.iter().filter_map(Held::of).collect();
    choices(&reserved, requirement, source).into_iter().map(|choice| view(node, &held, &choice)).collect()
}

fn view<'a>(node: &'a NodeDevices, held: &[Held<'_, '_>], choice: &Choice<'_, '_>) -> NodeView<'a> {
    let is_chosen =
        |held: &&Held<'_, '_>| choice.reserved.iter().any(|resources| std::ptr::eq(*resources, held.resources));
    let mut seen = Cow::Borrowed(node);
    for other in held.iter().filter(|held| !is_chosen(held)) {
        if other.resources.is_restored {
            seen.to_mut().allocate(&other.rest);
        } else if !other.resources.owners.is_empty() {
            seen.to_mut().release(&other.used);
        }
    }
    let (mut limits, mut required) = (DeviceLimits::default(), BTreeSet::new());
    for held in held.iter().filter(is_chosen) {
        let shares = || held.rest.iter().map(|(kind, share)| ((kind, share.minor), share));
        limits.preferred.extend(shares().filter(|(_, share)| !share.amounts.is_zero()).map(|(device, _)| device));
        if held.resources.info.is_none() {
            required.extend(shares().map(|(device, _)| device));
        } else if choice.is_only {
            let only: &mut BTreeMap<(Kind, i32), DeviceAmounts> = limits.only.get_or_insert_default();
            for (device, share) in shares() {
                let most = only.entry(device).or_default();
                *most = most.plus(&share.amounts);
            }
        }
    }
    NodeView { node: seen, limits, required }
}

impl NodeView<'_> {
    /// Whether it does not leave open which devices are taken.
    pub(super) fn requires_devices(&self) -> bool {
        !self.required.is_empty()
    }

    /// The devices, if they are all that must be taken.
    pub(super) fn complete(&self, allocation: AllocatedDevices) -> Result<AllocatedDevices, Refused> {
        let is_missing = |(kind, minor): &&(Kind, i32)| allocation.of(*kind).iter().all(|share| share.minor != *minor);
        match self.required.iter().find(is_missing) {
            None => Ok(allocation),
            Some((Kind::Gpu, _)) => Err(Refused::Gpus),
            Some((kind, _)) => Err(Refused::Devices(*kind)),
        }
    }
}

impl<'l, 'c> Held<'l, 'c> {
    fn of(resources: &'l ReservedResources<'c>) -> Option<Self> {
        let all: &AllocatedDevices = resources.holder.holds.get()?;
        let owners: Vec<&AllocatedDevices> = resources.owners.iter().filter_map(|owner| owner.holds.get()).collect();
        let used = all.shared_with(&owners);
        Some(Self { resources, rest: all.without(&used), used })
    }
}
