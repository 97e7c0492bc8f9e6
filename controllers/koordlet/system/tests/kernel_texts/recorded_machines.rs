//! The recorded machines, where they are: `$KOORD_SHARED`, or the folder `shared` beside the repository.

use std::path::{Path, PathBuf};

use koord_koordlet_system::{
    CommandOutput, Disks, Machine, MemInfo, NumaNodes, RecordedTree, Roots,
    resctrl::{CacheMask, Schemata, supported_vendor},
};
use serde_json::Value;

fn recordings() -> Option<PathBuf> {
    let shared = std::env::var_os("KOORD_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared"));
    Some(shared.join("corpus/koordlet")).filter(|folder| folder.is_dir())
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Files of the tree, whose paths begin with `proc/`, `sys/` or `sysfs/`.
fn tree(recorded: &Value) -> RecordedTree {
    let files = recorded["files"].as_object().into_iter().flatten();
    files.filter_map(|(path, text)| Some((Path::new("/").join(path), text.as_str()?))).collect()
}

fn roots() -> Roots {
    Roots { proc: "/proc".into(), sys: "/sys".into(), sys_fs: "/sysfs".into(), ..Roots::host() }
}

/// CPU, NUMA node, socket and core of the recorded `lscpu -e=CPU,NODE,SOCKET,CORE,CACHE,ONLINE`.
fn lscpu(text: &str) -> Vec<[u32; 4]> {
    let row = |line: &str| {
        let mut columns = line.split_whitespace().map(|column| column.parse().unwrap_or(u32::MAX));
        [(); 4].map(|()| columns.next().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn cpus_of_recorded_machines_are_those_of_lscpu() {
    let Some(recordings) = recordings() else {
        programs::skipped("recorded machines", "they are not beside the repository");
        return;
    };
    for (name, cpus, nodes, hyper_threads, vendor) in [
        ("t4", 4, 1, false, "GenuineIntel"),
        ("t8", 8, 2, true, "GenuineIntel"),
        ("t16", 16, 2, true, "GenuineIntel"),
        ("t80", 80, 2, true, "GenuineIntel"),
        ("rdt8", 8, 2, true, "GenuineIntel"),
        ("amd8", 8, 2, true, "AuthenticAMD"),
    ] {
        let recorded = json(&recordings.join(format!("fixtures/machine-{name}.json")));
        let tree = tree(&recorded);
        let machine = Machine::discover(&tree, &roots());
        let places = machine.topology.cpus().iter().filter_map(|cpu| machine.topology.get(cpu));
        let rows: Vec<_> = places.map(|cpu| [cpu.id, cpu.node, cpu.socket, cpu.core]).collect();
        assert_eq!(rows, lscpu(recorded["commands"]["lscpu"].as_str().unwrap()), "{name}");
        assert_eq!((rows.len(), machine.has_hyper_threading), (cpus, hyper_threads), "{name}");
        assert_eq!(machine.info.vendor_id, vendor, "{name}");
        assert!(machine.info.model_name.starts_with("Example CPU"), "{name}");
        assert_eq!(supported_vendor(&machine.info).is_ok(), matches!(name, "rdt8" | "amd8"), "{name}");
        assert!(machine.skipped.is_empty(), "{name} {:?}", machine.skipped);

        let numa = NumaNodes::discover(&tree, &roots()).unwrap();
        assert!(numa.skipped.is_empty(), "{name} {:?}", numa.skipped);
        let cpus_of_nodes: Vec<_> = numa.nodes.iter().map(|node| (node.id, node.cpus.clone())).collect();
        let cpus_by_topology: Vec<_> = machine.topology.nodes().map(|(node, cpus)| (node, cpus.clone())).collect();
        assert_eq!(cpus_of_nodes, cpus_by_topology, "{name}");
        assert_eq!(numa.nodes.len(), nodes, "{name}");
        let memory = MemInfo::parse(&tree.0[Path::new("/proc/meminfo")]).unwrap();
        let of_nodes = numa.nodes.iter().filter_map(|node| node.memory).map(|memory| memory.total_bytes());
        assert_eq!(of_nodes.sum::<u64>(), memory.total_bytes(), "{name}");
    }
}

#[test]
fn resctrl_of_the_recorded_machine_is_read() {
    let Some(recordings) = recordings() else {
        programs::skipped("recorded machines", "they are not beside the repository");
        return;
    };
    let tree = tree(&json(&recordings.join("fixtures/extra-resctrl.json")));
    assert_eq!(Machine::discover(&tree, &roots()).l3_mask, "7ff");
    assert_eq!(CacheMask::parse(b"7ff").unwrap().range(0, 30), Ok(0xf));
    let schemata = Schemata::parse(&tree.0[Path::new("/sysfs/resctrl/LSR/schemata")]).unwrap();
    assert_eq!((schemata.l3.to_string().as_str(), schemata.bandwidth.get(1)), ("0=7ff 1=7ff", Some(100)));
}

#[test]
fn disks_of_recorded_cases_are_those_that_were_limited() {
    let Some(recordings) = recordings() else {
        programs::skipped("recorded machines", "they are not beside the repository");
        return;
    };
    let mut count = 0;
    for (name, number) in [
        ("be-device", Some("253:0")),
        ("be-partition", Some("253:0")),
        ("be-vg", Some("253:16")),
        ("be-unknown-disk", None),
    ] {
        let case = json(&recordings.join(format!("cases/blkio/blkio-{name}.json")));
        let command = |name: &str| case["commands"][name].as_str().unwrap_or_default();
        let disks = Disks::of_commands(CommandOutput {
            lsblk: command("lsblk"),
            vgs: command("vgs"),
            lvs: command("lvs"),
            findmnt: command("findmnt"),
        });
        let block = &case["objects"][0]["spec"]["resourceQOSStrategy"]["beClass"]["blkioQOS"]["blocks"][0];
        let disk = block["name"].as_str().unwrap();
        let found = match block["type"].as_str() {
            Some("volumegroup") => disks.of_volume_group(disk).next(),
            _ => disks.of_device(disk),
        };
        assert_eq!(found.map(|number| number.to_string()).as_deref(), number, "{name}");
        let written = case["recorded"]["files"].as_object().into_iter().flatten();
        for (_, text) in written.filter_map(|(path, text)| Some((path, text.as_str()?))) {
            assert!(text.starts_with(&format!("{} ", number.unwrap_or_default())), "{name}");
            count += 1;
        }
    }
    assert_eq!(count, 5 + 2 + 2);
}
