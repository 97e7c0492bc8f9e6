//! What processes use of GPUs, and the sums for devices, pods and containers.

/// What a GPU does, as one sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuActivity {
    pub minor: u32,
    /// The processes that compute on it, by id.
    pub processes: Vec<GpuProcess>,
    /// Percent of the cores of the whole GPU; only where it is not known by process.
    pub core_percent: Option<u32>,
    /// Bytes of the whole GPU in use; only where processes are not known.
    pub memory_bytes: Option<u64>,
}

/// A process on a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuProcess {
    pub pid: u32,
    /// Percent of the GPU's cores; 0 for a process without a sample.
    pub core_percent: u32,
    pub memory_bytes: u64,
}

/// The memory of a process on a GPU, as the driver lists it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    pub pid: u32,
    pub memory_bytes: u64,
}

/// What a process used of a GPU's cores, as the driver has sampled it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessSample {
    pub pid: u32,
    /// Microseconds since 1970.
    pub time_us: u64,
    pub core_percent: u32,
}

/// What a device, pod or container uses of one GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuUsage {
    /// The minor number of the GPU.
    pub minor: u32,
    /// Percent of its cores.
    pub core_percent: u64,
    pub memory_bytes: u64,
}

/// Joins the two lists by process, into a list that is used again. Of several samples of a process the youngest counts; memory of a process that is listed
/// more than once is added up. Samples of other processes, which have ended or do not compute, are left out.
pub fn merged_processes(memory: &[ProcessMemory], samples: &[ProcessSample], processes: &mut Vec<GpuProcess>) {
    processes.clear();
    processes.extend(memory.iter().map(|&ProcessMemory { pid, memory_bytes }| GpuProcess {
        pid,
        core_percent: 0,
        memory_bytes,
    }));
    processes.sort_unstable_by_key(|process| process.pid);
    processes.dedup_by(|next, first| {
        let is_same = next.pid == first.pid;
        if is_same {
            first.memory_bytes = first.memory_bytes.saturating_add(next.memory_bytes);
        }
        is_same
    });
    for process in processes {
        let of_process = samples.iter().filter(|sample| sample.pid == process.pid);
        process.core_percent = of_process.max_by_key(|sample| sample.time_us).map_or(0, |sample| sample.core_percent);
    }
}

impl GpuActivity {
    /// What is used of the device: the sum over its processes, and the amounts of the whole device where processes are not known.
    pub fn usage(&self) -> GpuUsage {
        let sum = self.sum(|_| true);
        GpuUsage {
            core_percent: self.core_percent.map_or(sum.core_percent, u64::from),
            memory_bytes: self.memory_bytes.unwrap_or(sum.memory_bytes),
            ..sum
        }
    }

    fn sum(&self, wanted: impl Fn(u32) -> bool) -> GpuUsage {
        let processes = self.processes.iter().filter(|process| wanted(process.pid));
        processes.fold(GpuUsage { minor: self.minor, ..GpuUsage::default() }, |sum, process| GpuUsage {
            core_percent: sum.core_percent.saturating_add(u64::from(process.core_percent)),
            memory_bytes: sum.memory_bytes.saturating_add(process.memory_bytes),
            ..sum
        })
    }
}

/// What the processes of a pod or container use of each GPU that one of them computes on. The processes are the ones of its cgroup.
pub fn group_usage(activities: &[GpuActivity], pids: &[u32]) -> impl Iterator<Item = GpuUsage> {
    let on = |activity: &&GpuActivity| activity.processes.iter().any(|process| pids.contains(&process.pid));
    activities.iter().filter(on).map(|activity| activity.sum(|pid| pids.contains(&pid)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn merged(memory: &[(u32, u64)], samples: &[(u32, u64, u32)]) -> Vec<GpuProcess> {
        let memory = memory.iter().map(|&(pid, memory_bytes)| ProcessMemory { pid, memory_bytes });
        let samples = samples.iter().map(|&(pid, time_us, core_percent)| ProcessSample { pid, time_us, core_percent });
        let mut processes = vec![GpuProcess { pid: 9, core_percent: 9, memory_bytes: 9 }];
        merged_processes(&memory.collect::<Vec<_>>(), &samples.collect::<Vec<_>>(), &mut processes);
        processes
    }

    fn activity(minor: u32, processes: Vec<GpuProcess>) -> GpuActivity {
        GpuActivity { minor, processes, ..GpuActivity::default() }
    }

    #[test]
    fn memory_of_processes_without_a_sample_counts() {
        let listed: Vec<(u32, u64)> = (100..105).map(|pid| (pid, GIB)).collect();
        let gpu = activity(0, merged(&listed, &[(100, 5, 40)]));
        assert_eq!(gpu.usage(), GpuUsage { minor: 0, core_percent: 40, memory_bytes: 5 * GIB });
        let of_one = group_usage(std::slice::from_ref(&gpu), &[100]).collect::<Vec<_>>();
        assert_eq!(of_one, [GpuUsage { minor: 0, core_percent: 40, memory_bytes: GIB }]);
    }

    #[test]
    fn the_youngest_sample_of_a_process_counts_and_those_of_others_do_not() {
        let processes = merged(&[(2, 10), (1, 20), (2, 5)], &[(1, 7, 30), (1, 9, 10), (1, 8, 20), (3, 9, 50)]);
        let process = |pid, core_percent, memory_bytes| GpuProcess { pid, core_percent, memory_bytes };
        assert_eq!(processes, [process(1, 10, 20), process(2, 0, 15)]);
    }

    #[test]
    fn a_pod_has_the_sums_of_its_processes_on_each_gpu_that_it_uses() {
        let gpus = [
            activity(0, merged(&[(1, 10), (2, 20), (3, 40)], &[(1, 1, 5), (3, 1, 50)])),
            activity(1, merged(&[(3, 1)], &[(3, 1, 7)])),
            activity(2, merged(&[(4, 1)], &[])),
        ];
        let usage = |minor, core_percent, memory_bytes| GpuUsage { minor, core_percent, memory_bytes };
        for (pids, expected) in [
            (&[1, 2][..], vec![usage(0, 5, 30)]),
            (&[3, 7], vec![usage(0, 50, 40), usage(1, 7, 1)]),
            (&[4], vec![usage(2, 0, 1)]),
            (&[], vec![]),
        ] {
            assert_eq!(group_usage(&gpus, pids).collect::<Vec<_>>(), expected, "{pids:?}");
        }
    }

    #[test]
    fn a_gpu_that_does_not_tell_its_processes_apart_has_the_amounts_of_the_whole() {
        let gpu =
            GpuActivity { minor: 3, core_percent: Some(80), memory_bytes: Some(7 * GIB), ..GpuActivity::default() };
        assert_eq!(gpu.usage(), GpuUsage { minor: 3, core_percent: 80, memory_bytes: 7 * GIB });
        assert_eq!(group_usage(&[gpu], &[1]).count(), 0);
    }

    #[test]
    fn sums_do_not_overflow() {
        let gpu = activity(0, merged(&[(1, u64::MAX), (2, 1), (2, u64::MAX)], &[]));
        assert_eq!(gpu.usage().memory_bytes, u64::MAX);
    }
}
