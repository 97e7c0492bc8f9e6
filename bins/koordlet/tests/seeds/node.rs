//! The folder tree of a node: cgroups of pods that come and go, and counters that move with the virtual time.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use koord_koordlet_testing::{Case, Fixtures, Names, Tree, scratch_folder};
use serde_json::Value;
use tempfile::TempDir;

use crate::pods::{Load, Pod};

/// What kind of machine a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) is_v2: bool,
    pub(crate) is_systemd: bool,
    /// Whether it has the files of Anolis.
    pub(crate) is_anolis: bool,
    /// Whether it has `cpu.idle` and bursts.
    pub(crate) is_new: bool,
    pub(crate) cpus: u64,
}

/// Bytes of memory of every machine.
pub(crate) const MEMORY: u64 = 16 << 30;
/// Bytes of page cache of every cgroup.
const CACHE: u64 = 4096;

/// A node, as its files show it.
pub(crate) struct Node {
    folder: TempDir,
    pub(crate) machine: Machine,
    names: Names,
    counters: BTreeMap<String, Vec<Counter>>,
    /// What the node uses beside its pods, in thousandths of a CPU and bytes.
    pub(crate) system: Load,
    stat: Shown,
    best_effort: Option<Counter>,
    /// Thousandths of a CPU times milliseconds.
    used: u64,
    used_by_best_effort: u64,
    now: Duration,
    memory: u64,
}

/// The counters of one cgroup.
struct Counter {
    cpu: Option<Shown>,
    stat: Option<Shown>,
    memory: Option<(Shown, Shown)>,
    load: Load,
    used: u64,
    throttled: u64,
    periods: u64,
    shown_memory: u64,
}

fn case(machine: Machine, pods: Vec<Value>) -> Case {
    Case {
        cgroup: if machine.is_v2 { "v2" } else { "v1" }.to_owned(),
        cgroup_driver: if machine.is_systemd { "systemd" } else { "cgroupfs" }.to_owned(),
        kernel: "plain".to_owned(),
        machine: format!("own{}", machine.cpus),
        pods,
        ..Case::default()
    }
}

/// Files that some kernels have beside the plain ones: after which file, and what they show.
fn further_files(machine: Machine) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut files = Vec::new();
    if machine.is_anolis {
        let memory = if machine.is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
        let cpu = if machine.is_v2 { "cpu.weight" } else { "cpu.shares" };
        files.push((cpu, "cpu.bvt_warp_ns", "0\n"));
        for (name, text) in [
            ("memory.wmark_ratio", "0\n"),
            ("memory.wmark_scale_factor", "50\n"),
            ("memory.wmark_min_adj", "0\n"),
            ("memory.priority", "0\n"),
            ("memory.use_priority_oom", "0\n"),
        ] {
            files.push((memory, name, text));
        }
        if !machine.is_v2 {
            for (name, text) in [
                ("memory.min", "0\n"),
                ("memory.low", "0\n"),
                ("memory.high", "9223372036854771712\n"),
                ("memory.oom.group", "0\n"),
            ] {
                files.push((memory, name, text));
            }
        }
    }
    if machine.is_new && !machine.is_v2 {
        files.push(("cpu.cfs_quota_us", "cpu.cfs_burst_us", "0\n"));
        files.push(("cpu.shares", "cpu.idle", "0\n"));
    }
    files
}

/// The files of the tree with what this kernel has beside them, and without what it lacks.
fn files_of(tree: Tree, machine: Machine) -> BTreeMap<String, String> {
    let mut files = tree.files;
    let further = further_files(machine);
    let mut more = Vec::new();
    for path in files.keys() {
        for (after, name, text) in &further {
            if let Some(folder) = path.strip_suffix(after).filter(|folder| folder.ends_with('/')) {
                more.push((format!("{folder}{name}"), (*text).to_owned()));
            }
        }
    }
    files.extend(more);
    if machine.is_v2 && !machine.is_new {
        files.retain(|path, _| !path.ends_with("/cpu.idle") && !path.ends_with("/cpu.max.burst"));
    }
    files
}

impl Node {
    pub(crate) fn new(machine: Machine, fixtures: &Fixtures, now: Duration) -> Self {
        let folder = scratch_folder();
        let root = folder.path().join("root");
        let case = case(machine, Vec::new());
        let mut tree = Tree::of(&case, fixtures);
        tree.files = files_of(tree.clone(), machine);
        tree.write(&root);
        for name in ["hidden", "work/checkpoints", "work/audit"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let stat = Shown::open(&root.join("proc/stat")).unwrap();
        let mut node = Self {
            folder,
            machine,
            names: Names::of(&case),
            counters: BTreeMap::new(),
            system: Load::default(),
            stat,
            best_effort: None,
            used: 0,
            used_by_best_effort: 0,
            now,
            memory: 0,
        };
        node.best_effort = Some(node.counter(node.names.qos("BestEffort"), Load::default()));
        node
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The folder of a pod below the root of its hierarchy.
    pub(crate) fn pod_folder(&self, pod: &Pod) -> String {
        self.names.pod(&pod.object)
    }

    fn hierarchies(&self) -> &'static [&'static str] {
        if self.machine.is_v2 { &[""] } else { &["cpu", "cpuset", "cpuacct", "memory"] }
    }

    fn in_hierarchy(&self, hierarchy: &str, folder: &str) -> PathBuf {
        self.root().join("cgroup").join(hierarchy).join(folder)
    }

    /// Makes the folders of a pod and its containers that are not there.
    pub(crate) fn add(&mut self, pod: &Pod, fixtures: &Fixtures) {
        let case = case(self.machine, vec![pod.object.clone()]);
        let tree = Tree::of(&Case { sandboxes: false, ..case }, fixtures);
        let below = format!("{}/", self.pod_folder(pod));
        let root = self.root();
        for (path, text) in files_of(tree, self.machine).iter().filter(|(path, _)| path.contains(&below)) {
            let target = root.join(path);
            if !target.exists() {
                fs::create_dir_all(target.parent().unwrap()).unwrap();
                fs::write(target, text).unwrap();
            }
        }
        let mut counters = vec![self.counter(&self.pod_folder(pod), pod.load)];
        let containers = pod.container_ids();
        for id in &containers {
            let load = pod.load.shared_by(containers.len() as u64);
            counters.push(self.counter(&self.names.container(&pod.object, id), load));
        }
        if let Some(before) = self.counters.remove(&pod.uid) {
            // What the pod has used, it has used whatever its containers are.
            for (counter, before) in counters.iter_mut().zip(before).take(1) {
                counter.used = before.used;
            }
        }
        self.counters.insert(pod.uid.clone(), counters);
    }

    /// Removes the folders of a pod, or of those of its containers that are none any more.
    pub(crate) fn remove(&mut self, pod: &Pod) {
        self.counters.remove(&pod.uid);
        for hierarchy in self.hierarchies() {
            _ = fs::remove_dir_all(self.in_hierarchy(hierarchy, &self.pod_folder(pod)));
        }
    }

    pub(crate) fn remove_container(&self, pod: &Pod, id: &str) {
        for hierarchy in self.hierarchies() {
            _ = fs::remove_dir_all(self.in_hierarchy(hierarchy, &self.names.container(&pod.object, id)));
        }
    }

    /// Hides the folders of a pod, or shows them again.
    pub(crate) fn hide(&self, pod: &Pod, is_hidden: bool) {
        for hierarchy in self.hierarchies() {
            let shown = self.in_hierarchy(hierarchy, &self.pod_folder(pod));
            let hidden = self.folder.path().join("hidden").join(format!("{hierarchy}{}", pod.uid));
            _ = if is_hidden { fs::rename(shown, hidden) } else { fs::rename(hidden, shown) };
        }
    }

    pub(crate) fn is_hidden(&self, pod: &Pod) -> bool {
        let first = self.hierarchies()[0];
        self.folder.path().join("hidden").join(format!("{first}{}", pod.uid)).exists()
    }

    pub(crate) fn set_load(&mut self, pod: &Pod) {
        for (index, counter) in self.counters.get_mut(&pod.uid).into_iter().flatten().enumerate() {
            let shares = if index == 0 { 1 } else { pod.container_ids().len() as u64 };
            counter.load = pod.load.shared_by(shares);
        }
    }

    fn counter(&self, folder: &str, load: Load) -> Counter {
        let open = |hierarchy: &str, name: &str| {
            let folder = self.in_hierarchy(if self.machine.is_v2 { "" } else { hierarchy }, folder);
            Shown::open(&folder.join(name))
        };
        let (usage, stat) =
            if self.machine.is_v2 { ("cpu.stat", None) } else { ("cpuacct.usage", open("cpu", "cpu.stat")) };
        let current = if self.machine.is_v2 { "memory.current" } else { "memory.usage_in_bytes" };
        Counter {
            cpu: open("cpuacct", usage),
            stat,
            memory: open("memory", "memory.stat").zip(open("memory", current)),
            load,
            used: 0,
            throttled: 0,
            periods: 0,
            shown_memory: u64::MAX,
        }
    }

    /// Moves all counters to a time.
    pub(crate) fn advance(&mut self, now: Duration) {
        let passed = u64::try_from(now.saturating_sub(self.now).as_millis()).unwrap();
        self.now = now;
        let is_v2 = self.machine.is_v2;
        let (mut milli, mut bytes, mut best_effort) = (self.system.milli, self.system.bytes, 0);
        for counters in self.counters.values_mut() {
            let load = counters.first().map(|counter| counter.load).unwrap_or_default();
            (milli, bytes) = (milli + load.milli, bytes + load.bytes);
            best_effort += if load.is_best_effort { load.milli } else { 0 };
            for counter in counters {
                counter.advance(passed, is_v2);
            }
        }
        self.used += milli * passed;
        self.used_by_best_effort += best_effort * passed;
        if let Some(counter) = &mut self.best_effort {
            counter.load.milli = best_effort;
            counter.advance(passed, is_v2);
        }
        self.stat.put(proc_stat(self.used, u64::try_from(now.as_millis()).unwrap(), self.machine.cpus));
        if self.memory != bytes {
            self.memory = bytes;
            self.show_memory();
        }
    }

    /// Writes what the node uses of its memory.
    pub(crate) fn show_memory(&self) {
        let available = MEMORY.saturating_sub(self.memory) >> 10;
        let text = format!(
            "MemTotal:       {} kB\nMemFree:        {available} kB\nMemAvailable:   {available} kB\nBuffers:        0 kB\nCached:         0 kB\nHugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB\n",
            MEMORY >> 10
        );
        fs::write(self.root().join("proc/meminfo"), text).unwrap();
    }

    /// The bytes in use.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    /// What a file below the root says.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root().join(path)).ok().map(|text| text.trim().to_owned())
    }

    /// The paths below a folder of the tree, which begins below the root.
    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        fn collect(folder: &Path, root: &Path, found: &mut Vec<String>) {
            let mut entries: Vec<PathBuf> =
                fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
            entries.sort();
            for path in entries {
                if path.is_dir() {
                    collect(&path, root, found);
                } else {
                    found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        let (root, mut found) = (self.root(), Vec::new());
        collect(&root.join(folder), &root, &mut found);
        found
    }
}

impl Counter {
    fn advance(&mut self, passed: u64, is_v2: bool) {
        let Load { milli, bytes, throttled_percent, .. } = self.load;
        self.used += milli * passed;
        self.periods += passed;
        self.throttled += passed * throttled_percent / 100;
        // Thousandths of a CPU for a millisecond are a microsecond.
        let used_us = self.used;
        let (periods, throttled) = (self.periods / 100, self.throttled / 100);
        if let Some(file) = &mut self.cpu {
            let text = if is_v2 {
                format!(
                    "usage_usec {used_us}\nuser_usec {used_us}\nsystem_usec 0\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec {}\nnr_bursts 0\nburst_usec 0\n",
                    throttled * 1000
                )
            } else {
                format!("{}\n", used_us * 1000)
            };
            file.put(text);
        }
        if let Some(file) = &mut self.stat {
            file.put(format!("nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time {}\n", throttled * 1000));
        }
        if let Some((stat, current)) = self.memory.as_mut().filter(|_| self.shown_memory != bytes) {
            let mut lines = String::new();
            let (used, cache) = if is_v2 { ("anon", "file") } else { ("rss", "cache") };
            for prefix in if is_v2 { &[""][..] } else { &["", "total_"][..] } {
                for (name, amount) in [
                    (cache, CACHE),
                    (used, bytes),
                    ("inactive_anon", 0),
                    ("active_anon", bytes),
                    ("inactive_file", CACHE),
                    ("active_file", 0),
                    ("unevictable", 0),
                ] {
                    _ = writeln!(lines, "{prefix}{name} {amount}");
                }
            }
            stat.put(lines);
            current.put(format!("{}\n", bytes + CACHE));
            self.shown_memory = bytes;
        }
    }
}

/// A file that is written again and again.
struct Shown {
    file: File,
    text: String,
}

impl Shown {
    fn open(path: &Path) -> Option<Self> {
        Some(Self { file: OpenOptions::new().write(true).open(path).ok()?, text: String::new() })
    }

    fn put(&mut self, text: String) {
        if text == self.text && !text.is_empty() {
            return;
        }
        self.file.write_all_at(text.as_bytes(), 0).unwrap();
        if text.len() < self.text.len() || self.text.is_empty() {
            self.file.set_len(text.len() as u64).unwrap();
        }
        self.text = text;
    }
}

/// `/proc/stat` after a use of thousandths of CPUs times milliseconds.
fn proc_stat(used: u64, passed_ms: u64, cpus: u64) -> String {
    // A tick is ten milliseconds.
    let user = used / 10_000;
    let idle = (passed_ms * cpus / 10).saturating_sub(user);
    let mut text = format!("cpu  {user} 0 0 {idle} 0 0 0 0 0 0\n");
    for cpu in 0..cpus {
        _ = writeln!(text, "cpu{cpu} {} 0 0 {} 0 0 0 0 0 0", user / cpus, idle / cpus);
    }
    text + "intr 0\nctxt 0\nbtime 1700000000\nprocesses 1000\nprocs_running 1\nprocs_blocked 0\n"
}
