//! The texts of a machine's files.

use std::{fmt::Write as _, time::Duration};

/// Ticks of `/proc/stat` in a second.
const TICKS: u128 = 100;

/// The files of a machine with one NUMA node, and two threads a core, by their paths.
pub(super) fn machine_files(cpus: u64, memory_bytes: u64) -> Vec<(String, String)> {
    let list = format!("0-{}\n", cpus.saturating_sub(1));
    let (cores, kib) = ((cpus / 2).max(1), memory_bytes >> 10);
    let mut files = vec![
        ("proc/stat".to_owned(), proc_stat(cpus, Duration::ZERO, Duration::ZERO)),
        ("proc/meminfo".to_owned(), meminfo(memory_bytes, memory_bytes / 20)),
        ("proc/cmdline".to_owned(), "root=/dev/vda ro\n".to_owned()),
        ("proc/sys/vm/min_free_kbytes".to_owned(), "67584\n".to_owned()),
        ("proc/sys/vm/watermark_scale_factor".to_owned(), "10\n".to_owned()),
        ("sys/devices/system/cpu/online".to_owned(), list.clone()),
        ("sys/devices/system/cpu/smt/active".to_owned(), "1\n".to_owned()),
        ("sys/devices/system/node/online".to_owned(), "0\n".to_owned()),
    ];
    for nodes in ["sys/devices/system/node", "sys/bus/node/devices"] {
        let memory: String =
            [("MemTotal", kib), ("MemFree", kib), ("Active(file)", 0), ("Inactive(file)", 0), ("SReclaimable", 0)]
                .map(|(name, kib)| format!("Node 0 {name}: {kib} kB\n"))
                .concat();
        files.push((format!("{nodes}/node0/meminfo"), memory));
        files.push((format!("{nodes}/node0/cpulist"), list.clone()));
        files.push((format!("{nodes}/node0/hugepages/hugepages-2048kB/nr_hugepages"), "0\n".to_owned()));
    }
    let mut cpuinfo = String::new();
    for cpu in 0..cpus {
        let core = cpu % cores;
        let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        let siblings: Vec<String> =
            (0..cpus).filter(|other| other % cores == core).map(|other| other.to_string()).collect();
        files.push((format!("{topology}/core_id"), format!("{core}\n")));
        files.push((format!("{topology}/physical_package_id"), "0\n".to_owned()));
        files.push((format!("{topology}/thread_siblings_list"), format!("{}\n", siblings.join(","))));
        let _ = write!(
            cpuinfo,
            "processor\t: {cpu}\nvendor_id\t: Hollow\nmodel name\t: Hollow CPU @ 2.00GHz\nphysical id\t: 0\nsiblings\t: {cpus}\ncore id\t\t: {core}\ncpu cores\t: {cores}\nflags\t\t: fpu sse sse2\n\n"
        );
    }
    files.push(("proc/cpuinfo".to_owned(), cpuinfo));
    files
}

/// `/proc/stat` of CPUs that share what was used.
pub(super) fn proc_stat(cpus: u64, used: Duration, passed: Duration) -> String {
    let ticks = |time: Duration| time.as_millis() * TICKS / 1000;
    let all = ticks(passed) * u128::from(cpus);
    let busy = ticks(used).min(all);
    let mut text = format!("cpu  {busy} 0 0 {} 0 0 0 0 0 0\n", all - busy);
    let count = u128::from(cpus.max(1));
    for cpu in 0..cpus {
        let _ = writeln!(text, "cpu{cpu} {} 0 0 {} 0 0 0 0 0 0", busy / count, (all - busy) / count);
    }
    text + "intr 0\nctxt 0\nbtime 1700000000\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n"
}

pub(super) fn meminfo(total: u64, used: u64) -> String {
    let (total, free) = (total >> 10, total.saturating_sub(used) >> 10);
    format!(
        "MemTotal:       {total:>12} kB\nMemFree:        {free:>12} kB\nMemAvailable:   {free:>12} kB\nBuffers:                   0 kB\nCached:                    0 kB\nHugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n"
    )
}

pub(super) fn memory_stat(used: u64) -> String {
    format!(
        "anon {used}\nfile 0\nkernel_stack 0\nsock 0\nshmem 0\ninactive_anon 0\nactive_anon {used}\ninactive_file 0\nactive_file 0\nunevictable 0\n"
    )
}

/// The files of a cgroup that uses nothing and has no limits.
pub(super) fn cgroup_files(cpus: u64) -> Vec<(&'static str, String)> {
    let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    let cpu_stat = "usage_usec 0\nuser_usec 0\nsystem_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\nnr_bursts 0\nburst_usec 0\n";
    [
        ("cgroup.procs", ""),
        ("cgroup.threads", ""),
        ("cgroup.controllers", "cpuset cpu io memory pids\n"),
        ("cpu.stat", cpu_stat),
        ("cpu.max", "max 100000\n"),
        ("cpu.max.burst", "0\n"),
        ("cpu.idle", "0\n"),
        ("cpu.weight", "39\n"),
        ("cpuset.cpus", "\n"),
        ("cpuset.mems", "\n"),
        ("memory.current", "0\n"),
        ("memory.numa_stat", "anon N0=0\nfile N0=0\n"),
        ("memory.max", "max\n"),
        ("memory.min", "0\n"),
        ("memory.low", "0\n"),
        ("memory.high", "max\n"),
        ("memory.oom.group", "0\n"),
        ("cpu.pressure", pressure),
        ("memory.pressure", pressure),
        ("io.pressure", pressure),
    ]
    .into_iter()
    .map(|(name, text)| (name, text.to_owned()))
    .chain([("memory.stat", memory_stat(0)), ("cpuset.cpus.effective", format!("0-{}\n", cpus.saturating_sub(1)))])
    .collect()
}
