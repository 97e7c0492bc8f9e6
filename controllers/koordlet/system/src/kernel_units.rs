//! The units in which the kernel counts time and memory.

/// Units that differ between kernels. They are passed to what computes with counters, so that a recorded machine has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelUnits {
    /// Ticks of `/proc/stat` in a second.
    pub ticks_per_second: u64,
    /// Bytes of a page, in which cgroup v1 counts `memory.numa_stat`.
    pub page_bytes: u64,
}

impl KernelUnits {
    /// Those of the kernel that runs this process.
    pub fn of_this_kernel() -> Self {
        let page_bytes = rustix::param::page_size() as u64;
        Self { ticks_per_second: rustix::param::clock_ticks_per_second(), page_bytes }
    }
}

impl Default for KernelUnits {
    /// Those of most machines: 100 ticks in a second and pages of 4 KiB.
    fn default() -> Self {
        Self { ticks_per_second: 100, page_bytes: 4096 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernel_has_pages_of_a_power_of_two() {
        let units = KernelUnits::of_this_kernel();
        assert!(units.page_bytes.is_power_of_two() && units.page_bytes >= 4096);
        assert!(units.ticks_per_second >= 1);
    }
}
