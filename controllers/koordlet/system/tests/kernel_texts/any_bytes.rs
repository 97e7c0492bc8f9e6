//! No text ends the agent: arbitrary bytes, and lines of the kernel that are cut, mixed and spoilt.

use std::path::PathBuf;

use koord_koordlet_system::{
    CommandOutput, CpuInfo, CpuManagerState, DeviceNumber, Disks, KubeletProcess, Machine, NumaNodes, RecordedTree,
    Roots, configured_cgroup_driver, parse_cpu_list,
    resctrl::{CacheMask, Schemata, monitored_l3},
};
use proptest::{collection::vec, prelude::*, sample::select};

use crate::no_allocations::read_as_everything;

/// Pieces of which texts of the kernel consist.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "cpu",
        "cpu0",
        "cpu4294967295",
        " ",
        "\n",
        ":",
        "=",
        "-",
        ",",
        ";",
        "\0",
        "/",
        "0",
        "7",
        "max",
        "-1",
        "kB",
        "Node",
        "MemTotal",
        "MemFree",
        "MemAvailable",
        "18446744073709551615",
        "99999999999999999999",
        "nr_periods",
        "nr_throttled",
        "total_rss",
        "total=",
        "N0=",
        "N1=",
        "anon ",
        "file ",
        "some ",
        "full ",
        "avg10=",
        "avg60=",
        "avg300=",
        "1.00",
        "total",
        "cfei",
        "L3:",
        "MB:",
        "NAME=\"",
        "TYPE=\"disk\"",
        "MAJ:MIN=\"",
        "\"",
        "\\040",
        ")",
        "(",
        "{",
        "}",
        "entries",
        "cgroupDriver:",
        "\u{e9}",
        "mon_L3_",
    ];
    vec(select(words.to_vec()), 0..60).prop_map(|words| words.concat().into_bytes())
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..200), pieces()]
}

fn roots() -> Roots {
    Roots { proc: "/proc".into(), sys: "/sys".into(), sys_fs: "/sys/fs".into(), ..Roots::host() }
}

/// The files that discovery reads.
const FILES: [&str; 26] = [
    "/proc/cpuinfo",
    "/proc/1/mountinfo",
    "/proc/1/cmdline",
    "/sys/fs/resctrl/info/L3/cbm_mask",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/smt/active",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/cpu0/topology/core_id",
    "/sys/devices/system/cpu/cpu0/topology/physical_package_id",
    "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
    "/sys/devices/system/cpu/cpu0/cache/index3/level",
    "/sys/devices/system/cpu/cpu0/cache/index3/id",
    "/sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
    "/sys/devices/system/node/node0/cpulist",
    "/sys/devices/system/node/has_generic_initiator",
    "/sys/devices/system/node/has_cpu",
    "/sys/bus/node/devices/node0/cpulist",
    "/sys/bus/node/devices/node0/meminfo",
    "/sys/bus/node/devices/node0/distance",
    "/sys/bus/node/devices/node0/hugepages/hugepages-2048kB/nr_hugepages",
    "/sys/block/vda/dev",
    "/sys/block/vda/vda1/dev",
    "/sys/block/vda/vda1/partition",
    "/sys/block/dm-0/dev",
    "/sys/block/dm-0/dm/name",
    "/sys/block/dm-0/slaves/dm-0/dev",
];

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in texts()) {
        read_as_everything(&text);
        let _ = parse_cpu_list("file", &text);
        if let Ok(schemata) = Schemata::parse(&text) {
            let again = schemata.l3_text().unwrap_or_default() + &schemata.bandwidth_text().unwrap_or_default();
            prop_assert_eq!(Schemata::parse(again.as_bytes()), Ok(schemata));
        }
        if let Ok(mask) = CacheMask::parse(&text) {
            prop_assert!(mask.range(0, 100).is_ok());
        }
        let _ = (CpuInfo::parse(&text), CpuManagerState::parse(&text), configured_cgroup_driver(&text));
        let string = String::from_utf8_lossy(&text);
        let _ = (string.parse::<DeviceNumber>(), monitored_l3(&string));
        let _ = Disks::of_commands(CommandOutput { lsblk: &string, vgs: &string, lvs: &string, findmnt: &string });
    }

    #[test]
    fn any_part_of_a_cache_has_ways_within_it(ways in 1..=64_u32, start in -10..110_i64, end in -10..110_i64) {
        let whole = u64::MAX >> (64 - ways);
        let mask = CacheMask::parse(format!("{whole:x}").as_bytes()).unwrap();
        if let Ok(bits) = mask.range(start, end) {
            prop_assert!(bits != 0 && bits & !whole == 0);
            // Contiguous, as the kernel wants it.
            let shifted = bits >> bits.trailing_zeros();
            prop_assert_eq!(shifted & shifted.wrapping_add(1), 0);
        }
    }

    #[test]
    fn any_machine_is_discovered(contents in vec(texts(), FILES.len())) {
        let tree: RecordedTree = FILES.iter().map(PathBuf::from).zip(contents).collect();
        let machine = Machine::discover(&tree, &roots());
        prop_assert_eq!(machine.topology.counts()[3], machine.l3_of_cpus.len());
        let _ = NumaNodes::discover(&tree, &roots());
        let disks = Disks::discover(&tree, &roots());
        let _ = (disks.of_device("/dev/vda1"), disks.of_device("/dev/dm-0"), disks.of_mount_point("/"));
        if let Some(kubelet) = KubeletProcess::find(&tree, &roots().proc) {
            let _ = (kubelet.cgroup_driver(), kubelet.configuration_file());
        }
    }
}
