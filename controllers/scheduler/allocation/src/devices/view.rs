//! A node's devices as one pod may use them.

use koord_scheduling::NumaMask;

use super::{
    allocate::DeviceLimits,
    amounts::DeviceAmounts,
    node::{Device, NodeDevices},
    request::{DeviceRequest, Kind},
};

/// A device that a pod may have.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub minor: i32,
    pub device: &'a Device,
    /// What the pod can have of it.
    pub free: DeviceAmounts,
    /// Whether others have a part of it.
    pub is_used: bool,
}

/// The devices of one kind that a pod may have, by minor number: those on the NUMA nodes, if given, that it selects.
pub fn of<'a>(
    node: &'a NodeDevices,
    kind: Kind,
    request: &DeviceRequest,
    numa_nodes: Option<NumaMask>,
    limits: &DeviceLimits,
) -> Vec<Seen<'a>> {
    let selector = request.hints.get(&kind).and_then(|hint| hint.selector.as_ref());
    let only = limits.only.as_ref().filter(|only| only.keys().any(|(limited, _)| *limited == kind));
    let seen = node.of(kind).filter_map(|(minor, device)| {
        let is_selected =
            selector.is_none_or(|selector| selector.selects(|key| device.labels.get(key).map(String::as_str)));
        if !device.is_reported || !is_selected || numa_nodes.is_some_and(|nodes| !is_near(device, nodes)) {
            return None;
        }
        let mut free = device.free();
        if let Some(only) = only {
            free = free.limited_to(only.get(&(kind, minor))?);
        }
        Some(Seen { minor, device, free, is_used: !device.used.is_zero() })
    });
    seen.collect()
}

impl Seen<'_> {
    /// What the pod would have of it; none where that is too much.
    pub fn share(&self, each: &DeviceAmounts) -> Option<DeviceAmounts> {
        let completed = self.device.complete(each);
        (self.has_anything() && completed.fits(&self.free)).then_some(completed)
    }

    /// Whether it is healthy and has resources.
    pub fn has_anything(&self) -> bool {
        !self.device.total.is_zero()
    }

    pub fn pcie(&self) -> Option<&str> {
        self.device.place.as_ref().map(|place| place.pcie.as_str())
    }
}

fn is_near(device: &Device, nodes: NumaMask) -> bool {
    device.place.as_ref().is_some_and(|place| {
        place.numa_node == -1 || u32::try_from(place.numa_node).is_ok_and(|numa_node| nodes.contains(numa_node))
    })
}
