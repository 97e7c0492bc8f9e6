//! What is read every second of every pod allocates no memory, be it understood or not.

use std::hint::black_box;

use allocations::allocations;
use koord_koordlet_system::{
    CpuMax, MemInfo, MemoryStat, NumaMemInfo, NumaStat, Pressure, PressureResource, ProcStat, Throttling, Version,
    parse_cold_page_bytes, parse_counter, parse_cpu_list, parse_cpu_usage_v2_ns, parse_ids, parse_limit, parse_number,
    parse_start_time,
    resctrl::{Schemata, parse_monitored_value},
};

/// Reads a text as each kind of file that is read often; returns how many understood it.
pub(crate) fn read_as_everything(text: &[u8]) -> usize {
    let stat = ProcStat::parse(text).ok();
    let cpus = stat.is_some_and(|stat| stat.cpus().filter(|cpu| black_box(cpu).is_err()).count() == 0);
    let numa = |version| {
        let stat = NumaStat::parse(version, text, 4096).ok();
        stat.is_some_and(|stat| stat.bytes().map(black_box).count() < usize::MAX)
    };
    let pressure = [PressureResource::Cpu, PressureResource::Memory, PressureResource::Io]
        .map(|resource| Pressure::parse(resource, text).is_ok());
    let both = [Version::V1, Version::V2];
    let understood = [
        cpus,
        MemInfo::parse(text).is_ok_and(|memory| black_box(memory.used_bytes()) < u64::MAX),
        NumaMemInfo::parse(text).is_ok_and(|memory| black_box(memory.used_bytes()) < u64::MAX),
        both.into_iter().any(|version| Throttling::parse(version, text).is_ok()),
        parse_cpu_usage_v2_ns(text).is_ok(),
        both.into_iter().any(|version| MemoryStat::parse(version, text).is_ok()),
        both.into_iter().any(numa),
        pressure.contains(&true),
        parse_cold_page_bytes(text).is_ok(),
        CpuMax::parse(text).is_ok(),
        parse_counter("file", text).is_ok(),
        parse_number("file", text).is_ok(),
        parse_limit("file", text).is_ok(),
        parse_ids("file", text).filter(|id| black_box(id).is_err()).count() == 0,
        parse_start_time(text).is_ok(),
        parse_monitored_value("file", text).is_ok(),
    ];
    understood.into_iter().filter(|understood| *understood).count()
}

const TEXTS: [&str; 13] = [
    "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 1\n",
    "MemTotal: 10 kB\nMemFree: 1 kB\nMemAvailable: 2 kB\nActive(file): 1 kB\nInactive(file): 1 kB\nSReclaimable: 1 kB\n",
    "usage_usec 1\nnr_periods 10\nnr_throttled 3\nthrottled_usec 500\n",
    "nr_periods 10\nnr_throttled 3\nthrottled_time 500\n",
    "anon 1\nfile 2\ninactive_anon 1\nactive_anon 1\ninactive_file 1\nactive_file 1\nunevictable 1\n",
    "total=3 N0=1 N1=2\nfile=0 N0=0 N1=0\n",
    "anon N0=1 N1=2 N2=3\nfile N0=1 N1=2 N2=3\n",
    "some avg10=1.50 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=1\n",
    "max 100000\n",
    "1000000000000\n",
    "-1\n",
    "101\n102\n103\n",
    "1 (a b) S 1 12 12 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 358123 1000 10\n",
];

#[test]
fn texts_that_are_read_every_second_allocate_nothing() {
    for text in TEXTS {
        let (count, understood) = allocations(|| read_as_everything(text.as_bytes()));
        assert_eq!(count, 0, "{text:?}");
        assert!(understood > 0, "{text:?}");
    }
}

#[test]
fn texts_that_are_not_understood_allocate_nothing_either() {
    for text in ["", "nonsense\n", "cpu 1\n", "nr_periods x\n", "some avg10=x\n", "total=x N0=1\n"] {
        assert_eq!(allocations(|| read_as_everything(text.as_bytes())).0, 0, "{text:?}");
    }
}

#[test]
fn schemata_of_eight_domains_and_lists_of_256_cpus_allocate_nothing() {
    let schemata = "    MB:0=100;1=100;2=100;3=100;4=100;5=100;6=100;7=100\n    L3:0=7ff;1=7ff;2=7ff;3=7ff;4=7ff;5=7ff;6=7ff;7=7ff\n";
    let (count, parsed) = allocations(|| Schemata::parse(schemata.as_bytes()));
    assert_eq!((count, parsed.unwrap().l3.domains().count()), (0, 8));
    let (count, cpus) = allocations(|| parse_cpu_list("cpuset.cpus", b"0-95,128-255\n"));
    assert_eq!((count, cpus.unwrap().len()), (0, 224));
}
