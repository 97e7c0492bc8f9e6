//! Small machines, and odd ones.

use super::*;
use crate::file_tree::RecordedTree;

fn roots() -> Roots {
    Roots { proc: "/proc".into(), sys: "/sys".into(), sys_fs: "/sys/fs".into(), ..Roots::host() }
}

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// A machine as files.
fn tree<'a>(files: impl IntoIterator<Item = (String, &'a str)>) -> RecordedTree {
    files.into_iter().map(|(path, text)| (path, format!("{text}\n"))).collect()
}

fn cpu(id: u32, files: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    files.iter().map(|(name, text)| (format!("{CPU}/cpu{id}/{name}"), *text)).collect()
}

/// CPU, NUMA node, socket, core and L3 cache, as `lscpu` shows them.
fn rows(machine: &Machine) -> Vec<[u32; 5]> {
    let cpus = machine.topology.cpus().iter().filter_map(|cpu| machine.topology.get(cpu));
    cpus.map(|cpu| [cpu.id, cpu.node, cpu.socket, cpu.core, machine.l3_of_cpus[&cpu.id]]).collect()
}

/// Two sockets with a NUMA node each and two cores in each; the kernel numbers cores in each socket from 0, and leaves gaps.
fn two_sockets() -> Vec<(String, &'static str)> {
    let cpus = (0..8_u32).flat_map(|id| {
        let (core, socket) = (id % 2, id % 4 / 2);
        let siblings = ["0,4", "1,5", "2,6", "3,7"][id as usize % 4];
        let shared = ["0-1,4-5", "2-3,6-7"][socket as usize];
        cpu(
            id,
            &[
                ("topology/core_id", ["0", "8"][core as usize]),
                ("topology/physical_package_id", ["0", "1"][socket as usize]),
                ("topology/thread_siblings_list", siblings),
                ("cache/index0/level", "1"),
                ("cache/index2/level", "2"),
                ("cache/index3/level", "3"),
                ("cache/index3/shared_cpu_list", shared),
            ],
        )
    });
    let machine = [
        (format!("{CPU}/online"), "0-7"),
        (format!("{CPU}/smt/active"), "1"),
        (format!("{NODE}/node0/cpulist"), "0-1,4-5"),
        (format!("{NODE}/node1/cpulist"), "2-3,6-7"),
        (
            "/proc/cpuinfo".to_owned(),
            "vendor_id\t: GenuineIntel\nmodel name\t: Example CPU @ 2.50GHz\nflags\t\t: cat_l3 mba",
        ),
    ];
    cpus.chain(machine).collect()
}

fn expected_of_two_sockets() -> Vec<[u32; 5]> {
    (0..8).map(|id| [id, id % 4 / 2, id % 4 / 2, id % 4, id % 4 / 2]).collect()
}

#[test]
fn cores_are_numbered_across_sockets_in_the_order_of_the_cpus() {
    let machine = Machine::discover(&tree(two_sockets()), &roots());
    assert_eq!(rows(&machine), expected_of_two_sockets());
    assert_eq!(machine.topology.counts(), [4, 2, 2, 8]);
    assert!(machine.has_hyper_threading && !machine.has_turbo && machine.skipped.is_empty());
    assert_eq!((machine.info.vendor_id.as_str(), machine.l3_mask.as_str()), ("GenuineIntel", ""));
    let caches: Vec<_> = machine.l3_caches().into_iter().map(|(id, cpus)| (id, cpus.to_string())).collect();
    assert_eq!(caches, [(0, "0-1,4-5".to_owned()), (1, "2-3,6-7".to_owned())]);
}

#[test]
fn cores_are_told_apart_by_their_numbers_where_siblings_are_not_listed() {
    let files = two_sockets().into_iter().filter(|(path, _)| !path.ends_with("siblings_list"));
    assert_eq!(rows(&Machine::discover(&tree(files), &roots())), expected_of_two_sockets());
}

#[test]
fn the_number_of_a_cache_is_that_of_the_kernel() {
    let ids = (0..8_u32).map(|id| (format!("{CPU}/cpu{id}/cache/index3/id"), ["4", "9"][id as usize % 4 / 2]));
    let machine = Machine::discover(&tree(two_sockets().into_iter().chain(ids)), &roots());
    assert_eq!(machine.l3_caches().into_keys().collect::<Vec<_>>(), [4, 9]);
}

#[test]
fn offline_cpus_are_left_out() {
    let files = two_sockets().into_iter().map(|(path, text)| {
        let text = if path.ends_with("cpu/online") { "0-2,4-7" } else { text };
        (path, text)
    });
    let machine = Machine::discover(&tree(files), &roots());
    assert_eq!(machine.topology.cpus().to_string(), "0-2,4-7");
    let cores: Vec<_> = machine.topology.cores().map(|(core, cpus)| (core, cpus.to_string())).collect();
    assert_eq!(cores, [(0, "0,4"), (1, "1,5"), (2, "2,6"), (3, "7")].map(|(core, cpus)| (core, cpus.to_owned())));
}

#[test]
fn turbo_and_the_mask_of_the_cache_are_read_where_they_are() {
    let more = [(format!("{CPU}/intel_pstate/no_turbo"), "0"), ("/sys/fs/resctrl/info/L3/cbm_mask".to_owned(), "7ff")];
    let machine = Machine::discover(&tree(two_sockets().into_iter().chain(more)), &roots());
    assert!(machine.has_turbo);
    assert_eq!(machine.l3_mask, "7ff");
    let off = [(format!("{CPU}/intel_pstate/no_turbo"), "1")];
    assert!(!Machine::discover(&tree(two_sockets().into_iter().chain(off)), &roots()).has_turbo);
}

#[test]
fn a_virtual_machine_of_arm64_has_cpus_though_the_kernel_says_nothing_of_them() {
    let files = [(format!("{CPU}/online"), "0-1"), (format!("{CPU}/cpu0/topology/physical_package_id"), "-1")];
    let machine = Machine::discover(&tree(files), &roots());
    assert_eq!(rows(&machine), [[0, 0, 0, 0, 0], [1, 0, 0, 1, 0]]);
    assert!(!machine.has_hyper_threading && machine.skipped.is_empty());
    assert_eq!(machine.info, CpuInfo::default());
}

#[test]
fn a_machine_without_a_list_of_online_cpus_has_those_with_a_folder() {
    let cpus = [2, 10, 0].into_iter().flat_map(|id| {
        cpu(id, &[("topology/core_id", "0"), ("topology/physical_package_id", ["0", "1"][usize::from(id == 10)])])
    });
    let machine = Machine::discover(&tree(cpus), &roots());
    assert_eq!(rows(&machine), [[0, 0, 0, 0, 0], [2, 0, 0, 0, 0], [10, 0, 1, 1, 0]]);
    assert!(machine.has_hyper_threading, "two CPUs in a core");
    let nothing = Machine::discover(&RecordedTree::default(), &roots());
    assert!(nothing.topology.cpus().is_empty() && nothing.skipped.is_empty());
}

#[test]
fn large_and_small_cores_have_numbers_of_their_own() {
    let siblings = ["0-1", "0-1", "2", "3"];
    let cpus = (0..4_u32).flat_map(|id| cpu(id, &[("topology/core_cpus_list", siblings[id as usize])]));
    let machine = Machine::discover(&tree(cpus), &roots());
    assert_eq!(rows(&machine), [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [2, 0, 0, 1, 0], [3, 0, 0, 2, 0]]);
}

#[test]
fn a_malformed_file_harms_itself_alone_and_is_named() {
    let malformed = ["cpu3/topology/thread_siblings_list", "cpu3/topology/physical_package_id", "smt/active"];
    let files = two_sockets().into_iter().map(|(path, text)| {
        let text = if malformed.iter().any(|name| path == format!("{CPU}/{name}")) { "x" } else { text };
        (path, text)
    });
    let machine = Machine::discover(&tree(files), &roots());
    assert_eq!(machine.topology.counts(), [5, 2, 3, 8], "CPU 3 has neither its sibling nor its socket");
    assert!(machine.has_hyper_threading);
    let skipped: Vec<_> = machine.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(
        skipped,
        [
            format!(
                "{CPU}/cpu3/topology/physical_package_id: topology/physical_package_id: value is \"x\", not a number or -1"
            ),
            format!(
                "{CPU}/cpu3/topology/thread_siblings_list: topology of a CPU: CPUs is \"x\", not a list such as 0-3,8"
            ),
            format!("{CPU}/smt/active: a switch of the CPU: value is \"x\", not a number from 0 to 4294967295"),
        ]
    );
}
