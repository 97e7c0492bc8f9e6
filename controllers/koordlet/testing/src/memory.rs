//! Files that say how much memory is in use.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

use crate::{
    amount::units_of,
    names::{Names, text},
};

/// Page cache of every cgroup, in bytes: it does not count as used.
const CACHE: i128 = 4096;

/// The files for memory in use by `node`, `pod/NAME`, `container/POD/NAME` and `cgroup/FOLDER`. What a pod uses, its first container uses, unless
/// one of its containers is named.
pub(crate) fn memory_files(is_v2: bool, names: &Names, memory: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for (key, amount) in memory {
        if key == "node" {
            files.insert("proc/meminfo".to_owned(), meminfo(amount));
            continue;
        }
        let used = units_of(amount);
        if let Some(name) = key.strip_prefix("pod/") {
            let pod = names.find(name);
            add(&mut files, is_v2, &names.pod(pod), used);
            let first = text(pod, "/status/containerStatuses/0/containerID");
            let is_named = memory.keys().any(|key| key.starts_with(&format!("container/{name}/")));
            if !is_named && !first.is_empty() {
                add(&mut files, is_v2, &names.container(pod, first), used);
            }
        } else if let Some((pod, container)) = key.strip_prefix("container/").and_then(|key| key.split_once('/')) {
            add(&mut files, is_v2, &names.container_named(pod, container), used);
        } else if let Some(folder) = key.strip_prefix("cgroup/") {
            add(&mut files, is_v2, &names.fill(folder), used);
        } else {
            panic!("memory of {key}: say node, pod/NAME, container/POD/NAME or cgroup/FOLDER");
        }
    }
    files
}

fn meminfo(amounts: &Value) -> String {
    let kib = |key: &str| units_of(&amounts[key]) / 1024;
    let (total, available) = (kib("total"), kib("available"));
    let free = if amounts["free"].is_null() { available } else { kib("free") };
    let cached = available - free;
    let mut lines = String::new();
    for (name, amount) in [
        ("MemTotal", total),
        ("MemFree", free),
        ("MemAvailable", available),
        ("Buffers", 0),
        ("Cached", cached),
        ("SwapCached", 0),
        ("Active", 0),
        ("Inactive", 0),
        ("Active(anon)", 0),
        ("Inactive(anon)", 0),
        ("Active(file)", cached),
        ("Inactive(file)", 0),
        ("Unevictable", 0),
        ("SReclaimable", 0),
    ] {
        _ = writeln!(lines, "{:<16}{amount} kB", format!("{name}:"));
    }
    lines + "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n"
}

fn add(files: &mut BTreeMap<String, String>, is_v2: bool, folder: &str, used: i128) {
    let folder = if is_v2 { format!("cgroup/{folder}") } else { format!("cgroup/memory/{folder}") };
    let (usage, numa) = if is_v2 {
        ("memory.current", format!("anon N0={used} N1=0\nfile N0={CACHE} N1=0\n"))
    } else {
        let pages = used / 4096;
        let lines = format!(
            "total={total} N0={total} N1=0\nfile=1 N0=1 N1=0\nanon={pages} N0={pages} N1=0\n",
            total = pages + 1
        );
        ("memory.usage_in_bytes", lines + "unevictable=0 N0=0 N1=0\n")
    };
    files.insert(format!("{folder}/memory.stat"), if is_v2 { stat_v2(used) } else { stat_v1(used) });
    files.insert(format!("{folder}/{usage}"), format!("{}\n", used + CACHE));
    files.insert(format!("{folder}/memory.numa_stat"), numa);
}

fn stat_v2(used: i128) -> String {
    let lines: [(&str, i128); 10] = [
        ("anon", used),
        ("file", CACHE),
        ("kernel_stack", 0),
        ("sock", 0),
        ("shmem", 0),
        ("inactive_anon", 0),
        ("active_anon", used),
        ("inactive_file", CACHE),
        ("active_file", 0),
        ("unevictable", 0),
    ];
    joined("", &lines)
}

fn stat_v1(used: i128) -> String {
    let lines: [(&str, i128); 7] = [
        ("cache", CACHE),
        ("rss", used),
        ("inactive_anon", 0),
        ("active_anon", used),
        ("inactive_file", CACHE),
        ("active_file", 0),
        ("unevictable", 0),
    ];
    joined("", &lines) + &joined("total_", &lines)
}

fn joined(prefix: &str, lines: &[(&str, i128)]) -> String {
    lines.iter().fold(String::new(), |mut text, (name, amount)| {
        _ = writeln!(text, "{prefix}{name} {amount}");
        text
    })
}
