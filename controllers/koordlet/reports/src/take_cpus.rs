//! Which CPUs are reserved when only their number is given: those that the kubelet would take.

use koord_scheduling::{CpuSet, CpuTopology};

/// Takes CPUs for a reservation: whole sockets, then whole NUMA nodes, then whole cores, then single CPUs of the cores with the fewest free ones. Fewer than
/// `count` when there are not as many.
pub(crate) fn take_cpus(topology: &CpuTopology, mut free: CpuSet, count: usize) -> CpuSet {
    let mut taken = CpuSet::default();
    let groups: [Vec<&CpuSet>; 3] = [
        topology.sockets().map(|(_, cpus)| cpus).collect(),
        topology.nodes().map(|(_, cpus)| cpus).collect(),
        topology.cores().map(|(_, cpus)| cpus).collect(),
    ];
    for groups in &groups {
        for group in groups {
            if !group.is_empty() && group.is_subset(&free) && taken.len() + group.len() <= count {
                taken.insert_all(group);
                free.remove_all(group);
            }
        }
    }
    let [_, _, cores] = groups;
    let mut cores: Vec<CpuSet> = cores.into_iter().map(|core| core.intersection(&free)).collect();
    cores.retain(|core| !core.is_empty());
    // Cores of which least is free come first, so that whole ones stay whole.
    cores.sort_by_key(|core| (core.len(), core.iter().next()));
    for cpu in cores.iter().flat_map(CpuSet::iter) {
        if taken.len() >= count {
            break;
        }
        taken.insert(cpu);
    }
    taken
}

#[cfg(test)]
mod tests {
    use koord_scheduling::Cpu;

    use super::*;

    #[test]
    fn whole_sockets_then_cores_then_threads_are_taken() {
        let cpu = |id| Cpu { id, core: id % 4, node: id % 4 / 2, socket: id % 4 / 2 };
        let topology: CpuTopology = (0..8).map(cpu).collect();
        for (free, count, taken) in [
            ("0-7", 0, ""),
            ("0-7", 1, "0"),
            ("0-7", 2, "0,4"),
            ("0-7", 3, "0-1,4"),
            ("0-7", 5, "0-2,4-5"),
            ("1-7", 1, "4"),
            ("0-7", 9, "0-7"),
        ] {
            assert_eq!(take_cpus(&topology, free.parse().unwrap(), count).to_string(), taken, "{count} of {free}");
        }
    }
}
