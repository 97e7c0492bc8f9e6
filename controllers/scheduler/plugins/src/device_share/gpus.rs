//! The GPUs of a node in few words, for pods that do not care which of them they get.

use super::{
    amounts::{Amounts, DeviceResource},
    node::{Device, NodeDevices, completed},
    refusal::Refused,
    request::{DeviceRequest, GpuRequest, Kind},
};

/// The GPUs that a node reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Gpus {
    each: Vec<Gpu>,
    /// What all of them have.
    pub(super) total: Amounts,
    /// What is free of all of them.
    pub(super) free: Amounts,
}

#[derive(Clone, Debug, PartialEq)]
struct Gpu {
    /// Its memory.
    memory: i64,
    /// Whether it is healthy and has resources.
    has_anything: bool,
    free: Amounts,
}

impl Gpus {
    pub(super) fn of<'d>(devices: impl Iterator<Item = &'d Device>) -> Self {
        let mut gpus = Self::default();
        for device in devices {
            let free = device.free();
            gpus.total = gpus.total.plus(&device.total);
            gpus.free = gpus.free.plus(&free);
            let (memory, has_anything) = (device.total.amount(DeviceResource::GpuMemory), !device.total.is_zero());
            gpus.each.push(Gpu { memory, has_anything, free });
        }
        gpus
    }

    /// Whether so many of them have as much free of each.
    fn have(&self, count: usize, each: &Amounts, takes_empty: bool) -> bool {
        let (mut memory, mut needed) = (None, *each);
        let mut has_enough = |gpu: &&Gpu| {
            // Mostly all GPUs of a node have the same memory.
            if memory != Some(gpu.memory) {
                (memory, needed) = (Some(gpu.memory), completed(gpu.memory, each));
            }
            gpu.has_anything && needed.fits(&gpu.free) && (takes_empty || !gpu.free.is_zero())
        };
        count == 0 || self.each.iter().filter(|gpu| has_enough(gpu)).nth(count - 1).is_some()
    }
}

impl DeviceRequest {
    /// The GPUs of a pod that wants nothing else, and any of them.
    pub(super) fn any_gpus(&self) -> Option<&GpuRequest> {
        let is_any = |gpus: &&GpuRequest| gpus.scope_level.is_none() && gpus.partition.is_none();
        let wants_others = !self.others.is_empty() || self.joint.is_some() || self.hints.contains_key(&Kind::Gpu);
        self.gpus.as_ref().filter(|_| !wants_others).filter(is_any)
    }
}

impl NodeDevices {
    /// Whether a pod gets [any GPUs](DeviceRequest::any_gpus) of a node that does not keep to partitions: as the allocator says, which also
    /// looks for the best ones.
    pub(super) fn has_any_gpus(&self, request: &GpuRequest) -> Result<(), Refused> {
        let GpuRequest { count, each, is_shared, .. } = request;
        if self.gpus.each.is_empty() {
            return Err(Refused::NoDevices(Kind::Gpu));
        }
        let has_scopes = self.scopes.is_some() && !(*is_shared && *count > 1);
        if self.gpus.have(*count, each, has_scopes) {
            return Ok(());
        }
        Err(if has_scopes { Refused::Gpus } else { Refused::Devices(Kind::Gpu) })
    }
}
