//! The GPUs of a node in few words, for pods that do not care which of them they get.

use smallvec::SmallVec;

use super::{
    amounts::{DeviceAmounts, DeviceResource},
    node::{Device, NodeDevices, completed},
    outlook::percent,
    refusal::Refused,
    request::{DeviceRequest, GpuRequest, Kind},
};

/// The GPUs that a node reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gpus {
    /// The distinct states among them: mostly unused ones, so that this is short.
    alike: SmallVec<[Alike; 1]>,
    /// In the order of their minor numbers.
    pub each: Vec<Gpu>,
    /// What all of them have.
    pub total: DeviceAmounts,
    /// What is free of all of them.
    pub free: DeviceAmounts,
    /// Whether one is reported as unhealthy.
    pub has_unhealthy: bool,
}

/// GPUs of which the same is free.
#[derive(Clone, Debug, PartialEq)]
struct Alike {
    count: usize,
    /// The memory of each.
    memory: i64,
    /// Whether they are healthy and have resources.
    have_anything: bool,
    free: DeviceAmounts,
}

/// One of them, in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    pub memory: i64,
    /// What is free of it, in percent: of its cores or of its memory, whichever is less.
    pub free_percent: u8,
}

/// What a pod has of each of its GPUs, by the memory of the model that was asked about last: most GPUs have the same.
pub struct Each<'r> {
    requested: &'r DeviceAmounts,
    completed: Option<(i64, DeviceAmounts)>,
}

impl<'r> Each<'r> {
    pub fn of(request: &'r GpuRequest) -> Self {
        Self { requested: &request.each, completed: None }
    }

    fn on(&mut self, memory: i64) -> &DeviceAmounts {
        if self.completed.as_ref().is_some_and(|(known, _)| *known != memory) {
            self.completed = None;
        }
        let (_, completed) = self.completed.get_or_insert_with(|| (memory, completed(memory, self.requested)));
        completed
    }
}

impl Gpu {
    fn of(device: &Device) -> Self {
        let total = percent(&device.total).unwrap_or(0);
        Self {
            memory: device.total.amount(DeviceResource::GpuMemory),
            free_percent: total.saturating_sub(percent(&device.used).unwrap_or(0)),
        }
    }
}

impl Gpus {
    pub fn of<'d>(devices: impl Iterator<Item = &'d Device>) -> Self {
        let mut gpus = Self::default();
        for device in devices {
            let (gpu, free) = (Gpu::of(device), device.free());
            gpus.total = gpus.total.plus(&device.total);
            gpus.free = gpus.free.plus(&free);
            gpus.each.push(gpu);
            gpus.has_unhealthy |= device.is_unhealthy;
            let have_anything = !device.total.is_zero();
            let is_like = |alike: &&mut Alike| {
                (alike.memory, alike.have_anything) == (gpu.memory, have_anything) && alike.free == free
            };
            match gpus.alike.iter_mut().find(is_like) {
                Some(alike) => alike.count += 1,
                None => gpus.alike.push(Alike { count: 1, memory: gpu.memory, have_anything, free }),
            }
        }
        gpus
    }

    /// Whether so many of them have as much free of each.
    fn have(&self, count: usize, each: &mut Each<'_>, takes_empty: bool) -> bool {
        let fit = self.alike.iter().filter(|alike| alike.fits(each.on(alike.memory), takes_empty));
        fit.map(|alike| alike.count).sum::<usize>() >= count
    }

    /// How many pods get so many of them, one after the other, with as much of each; none where it matters which of them are taken
    /// first: pods that get several leave different parts of them.
    fn capacity(&self, count: usize, each: &DeviceAmounts, takes_empty: bool) -> Option<usize> {
        let mut parts = 0_usize;
        for alike in &self.alike {
            let each = completed(alike.memory, each);
            if !alike.fits(&each, takes_empty) {
                continue;
            }
            let of_each = each.times_in(&alike.free);
            if count > 1 && of_each > 1 {
                return None;
            }
            parts = parts.saturating_add(alike.count.saturating_mul(of_each));
        }
        parts.checked_div(count)
    }
}

impl Alike {
    /// Whether each has this much, which is complete for its memory.
    fn fits(&self, each: &DeviceAmounts, takes_empty: bool) -> bool {
        let fits = self.have_anything && each.fits(&self.free);
        fits && (takes_empty || !self.free.is_zero())
    }
}

impl DeviceRequest {
    /// The GPUs of a pod that requests nothing else, and any of them.
    pub fn any_gpus(&self) -> Option<&GpuRequest> {
        let is_any = |gpus: &&GpuRequest| gpus.scope_level.is_none() && gpus.partition.is_none();
        let wants_others = !self.others.is_empty() || self.joint.is_some() || self.hints.contains_key(&Kind::Gpu);
        self.gpus.as_ref().filter(|_| !wants_others).filter(is_any)
    }
}

impl NodeDevices {
    /// Whether a pod gets [any GPUs](DeviceRequest::any_gpus) of a node that does not keep to partitions: as the allocator says, which also
    /// looks for the best ones.
    pub fn has_any_gpus(&self, request: &GpuRequest, each: &mut Each<'_>) -> Result<(), Refused> {
        let has_scopes = self.has_scopes_for(request);
        if self.gpus.have(request.count, each, has_scopes) { Ok(()) } else { Err(self.too_few(has_scopes)) }
    }

    /// The same after so many pods have got theirs; `None` when only placing them shows it.
    pub fn has_any_gpus_after(&self, request: &GpuRequest, alike: usize) -> Option<Result<(), Refused>> {
        let has_scopes = self.has_scopes_for(request);
        let capacity = self.gpus.capacity(request.count, &request.each, has_scopes)?;
        Some(if alike < capacity { Ok(()) } else { Err(self.too_few(has_scopes)) })
    }

    fn has_scopes_for(&self, request: &GpuRequest) -> bool {
        self.scopes.is_some() && !(request.is_shared && request.count > 1)
    }

    fn too_few(&self, has_scopes: bool) -> Refused {
        match has_scopes {
            _ if self.of(Kind::Gpu).next().is_none() => Refused::NoDevices(Kind::Gpu),
            // Pods have GPUs that are reported no more.
            _ if self.gpus.each.is_empty() => Refused::Devices(Kind::Gpu),
            true => Refused::Gpus,
            false => Refused::Devices(Kind::Gpu),
        }
    }
}
