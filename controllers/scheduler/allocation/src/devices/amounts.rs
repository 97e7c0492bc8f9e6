//! Amounts of what devices have, as numbers.

use koord_resource::{Quantity, ResourceList, quantity::Format};
use koord_types::resource_names::{
    FPGA, GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO, HUAWEI_NPU_CORE, HUAWEI_NPU_CPU, HUAWEI_NPU_DVPP, RDMA, current,
};

/// What a pod can have of a device. Other resources of devices play no part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceResource {
    /// Percent of a GPU's cores.
    GpuCore,
    /// Bytes of a GPU's memory.
    GpuMemory,
    /// Percent of a GPU's memory.
    GpuMemoryRatio,
    /// Cores of Huawei's NPU.
    NpuCore,
    /// CPUs of Huawei's NPU.
    NpuCpu,
    /// Video preprocessing of Huawei's NPU, in percent.
    NpuDvpp,
    /// Percent of a network card.
    Rdma,
    /// Percent of an FPGA.
    Fpga,
}

impl DeviceResource {
    const ALL: [(Self, &'static str); 8] = [
        (Self::GpuCore, GPU_CORE),
        (Self::GpuMemory, GPU_MEMORY),
        (Self::GpuMemoryRatio, GPU_MEMORY_RATIO),
        (Self::NpuCore, HUAWEI_NPU_CORE),
        (Self::NpuCpu, HUAWEI_NPU_CPU),
        (Self::NpuDvpp, HUAWEI_NPU_DVPP),
        (Self::Rdma, RDMA),
        (Self::Fpga, FPGA),
    ];

    /// The resource of this name, which may be a deprecated one.
    pub fn of(name: &str) -> Option<Self> {
        let name = current(name);
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(resource, _)| *resource)
    }

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    fn format(self) -> Format {
        if self == Self::GpuMemory { Format::BinarySI } else { Format::DecimalSI }
    }
}

/// An amount of each resource. A resource that is not listed is not limited, other than one of which there is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceAmounts {
    /// By resource; 0 where it is not listed.
    amounts: [i64; 8],
    /// By resource.
    listed: [bool; 8],
}

impl DeviceAmounts {
    /// The amounts of a list of resources.
    pub fn read(list: &ResourceList) -> Self {
        let known = list.iter().filter_map(|(name, amount)| Some((DeviceResource::of(name)?, amount.value())));
        known.collect()
    }

    /// The amounts as a list of resources.
    pub fn list(&self) -> ResourceList {
        let listed =
            DeviceResource::ALL.iter().filter_map(|(resource, name)| Some((resource, *name, self.get(*resource)?)));
        listed.map(|(resource, name, amount)| (name, Quantity::new(amount, resource.format()))).collect()
    }

    /// The amount of a resource, if it is listed.
    pub fn get(&self, resource: DeviceResource) -> Option<i64> {
        self.listed[resource as usize].then_some(self.amount(resource))
    }

    /// The amount of a resource; 0 where it is not listed.
    pub fn amount(&self, resource: DeviceResource) -> i64 {
        self.amounts[resource as usize]
    }

    /// Lists a resource.
    pub fn set(&mut self, resource: DeviceResource, amount: i64) {
        self.amounts[resource as usize] = amount;
        self.listed[resource as usize] = true;
    }

    /// Whether there is nothing.
    pub fn is_zero(&self) -> bool {
        self.amounts == [0; 8]
    }

    /// Whether no resource that both list is more here.
    pub fn fits(&self, free: &Self) -> bool {
        (0..8).all(|at| self.amounts[at] <= free.amounts[at] || !self.listed[at] || !free.listed[at])
    }

    /// How often this [fits](Self::fits), one after the other.
    pub fn times_in(&self, free: &Self) -> usize {
        let counts = |at: &usize| self.listed[*at] && free.listed[*at] && self.amounts[*at] > 0;
        let times = (0..8).filter(counts).map(|at| free.amounts[at] / self.amounts[at]).min();
        times.map_or(usize::MAX, |times| usize::try_from(times).unwrap_or(0))
    }

    /// The sum over the resources of either list.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        self.combined(other, |this, other| (this.1 | other.1, this.0.saturating_add(other.0)))
    }

    /// What is left of the resources listed here, not below 0.
    #[must_use]
    pub fn left_after(&self, used: &Self) -> Self {
        self.combined(used, |this, used| (this.1, this.0.saturating_sub(used.0).max(0)))
    }

    /// At most the other amount of each resource that is listed here: nothing of one that is not listed there.
    #[must_use]
    pub fn limited_to(&self, most: &Self) -> Self {
        self.combined(most, |this, most| (this.1, this.0.min(most.0)))
    }

    /// Takes amounts off a sum of which they are a part. A resource of which nothing remains is no longer listed.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        self.combined(part, |this, part| {
            let remaining = this.0.saturating_sub(part.0);
            (remaining != 0, remaining)
        })
    }

    /// The same, with amounts from 0 to this one.
    #[must_use]
    pub fn within(&self, max: i64) -> Self {
        self.combined(self, |this, _| (this.1, this.0.clamp(0, max)))
    }

    pub fn iter(&self) -> impl Iterator<Item = (DeviceResource, i64)> + '_ {
        DeviceResource::ALL.iter().filter_map(|(resource, _)| Some((*resource, self.get(*resource)?)))
    }

    /// Each resource by what both have of it: an amount, and whether it is listed.
    fn combined(&self, other: &Self, operation: impl Fn((i64, bool), (i64, bool)) -> (bool, i64)) -> Self {
        let mut result = Self::default();
        for at in 0..8 {
            let (is_listed, amount) =
                operation((self.amounts[at], self.listed[at]), (other.amounts[at], other.listed[at]));
            (result.listed[at], result.amounts[at]) = (is_listed, if is_listed { amount } else { 0 });
        }
        result
    }
}

impl FromIterator<(DeviceResource, i64)> for DeviceAmounts {
    fn from_iter<I: IntoIterator<Item = (DeviceResource, i64)>>(listed: I) -> Self {
        let mut amounts = Self::default();
        listed.into_iter().for_each(|(resource, amount)| amounts.set(resource, amount));
        amounts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(text: &str) -> DeviceAmounts {
        DeviceAmounts::read(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn lists_are_read_by_old_and_new_names_and_written_as_the_original_does() {
        let read = amounts(r#"{"kubernetes.io/gpu-core":"50","koordinator.sh/gpu-memory":"42949672960","cpu":"1"}"#);
        let written = serde_json::to_string(&read.list()).unwrap();
        assert_eq!(written, r#"{"koordinator.sh/gpu-core":"50","koordinator.sh/gpu-memory":"40Gi"}"#);
        assert_eq!((read.amount(DeviceResource::GpuCore), read.get(DeviceResource::Rdma)), (50, None));
    }

    #[test]
    fn what_a_device_does_not_list_is_not_limited() {
        let request = amounts(r#"{"koordinator.sh/gpu-core":"50","koordinator.sh/gpu-memory-ratio":"50"}"#);
        assert!(request.fits(&amounts(r#"{"koordinator.sh/gpu-memory-ratio":"50"}"#)));
        assert!(!request.fits(&amounts(r#"{"koordinator.sh/gpu-memory-ratio":"49"}"#)));
        assert!(DeviceAmounts::default().is_zero() && !request.is_zero());
    }

    #[test]
    fn nothing_is_left_below_zero() {
        let total = amounts(r#"{"koordinator.sh/rdma":"100"}"#);
        let used = amounts(r#"{"koordinator.sh/rdma":"130","koordinator.sh/fpga":"1"}"#);
        assert_eq!(total.left_after(&used), amounts(r#"{"koordinator.sh/rdma":"0"}"#));
        assert_eq!(total.plus(&used).without(&used), total);
        assert_eq!(total.limited_to(&used), total);
        assert_eq!(used.limited_to(&total), amounts(r#"{"koordinator.sh/rdma":"100","koordinator.sh/fpga":"0"}"#));
    }
}
