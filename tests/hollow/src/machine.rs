//! A machine that is files: what a kernel would show of a hollow node, for a node agent that measures and enforces. Its CPUs are given out in [`cpu`], by the
//! limits that the agent writes.
//!
//! It has cgroups of the second version below `cgroup/`, with the folders that a kubelet makes for its pods, one NUMA node, and two threads a core.

pub mod cpu;
mod files;
mod pods;

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use koord_koordlet_system::{CgroupPath, Cgroups, Driver, Layout, QosFolder, Version};

pub use self::pods::{MachinePod, pod_list};
use self::{
    cpu::{Demand, share_out},
    files::{cgroup_files, machine_files, memory_stat, proc_stat},
};
use crate::{
    node::HollowNode,
    report::{held_memory, system_cpu},
};

/// How the folders of pods are named.
pub const LAYOUT: Layout = Layout::new(Version::V2, Driver::Systemd);

/// The period of CFS quotas.
const PERIOD: Duration = Duration::from_millis(100);

/// A machine, and the pods that run on it.
#[derive(Debug)]
pub struct Machine {
    folder: PathBuf,
    cgroups: Cgroups,
    cpus: u64,
    memory_bytes: u64,
    pods: BTreeMap<String, MachinePod>,
    counters: BTreeMap<CgroupPath, Counter>,
    /// CPU time that was used on all CPUs.
    used: Duration,
    passed: Duration,
}

/// What a cgroup has used.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    used: Duration,
    throttled_periods: f64,
    passed: Duration,
}

impl Machine {
    /// Makes the files of a node below a folder, which is empty or not there.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn create(node: &HollowNode, folder: &Path) -> io::Result<Self> {
        let cpus = node.cpu_milli / 1000;
        for (path, text) in machine_files(cpus, node.memory_bytes) {
            write_new(&folder.join(path), &text)?;
        }
        for empty in ["sysfs", "var-run", "run", "kubelet", "hookserver", "prediction-checkpoints", "xpu"] {
            fs::create_dir_all(folder.join(empty))?;
        }
        let machine = Self {
            cgroups: Cgroups::new(folder.join("cgroup"), LAYOUT),
            folder: folder.to_owned(),
            cpus,
            memory_bytes: node.memory_bytes,
            pods: BTreeMap::new(),
            counters: BTreeMap::new(),
            used: Duration::ZERO,
            passed: Duration::ZERO,
        };
        machine.make(&CgroupPath::root(), &[])?;
        for folder in QosFolder::ALL {
            let given: &[(&str, String)] =
                if folder == QosFolder::BestEffort { &[("cpu.weight", "1\n".to_owned())] } else { &[] };
            machine.make(&LAYOUT.qos(folder), given)?;
        }
        Ok(machine)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes the pods that run now: makes folders for those that have come, and removes those of pods that are gone.
    ///
    /// # Errors
    ///
    /// A folder cannot be made or removed.
    pub fn set_pods(&mut self, pods: Vec<MachinePod>) -> io::Result<()> {
        let mut gone = std::mem::take(&mut self.pods);
        for pod in pods {
            if gone.remove(&pod.uid).is_none() {
                self.make(&pod.cgroup(), &pod.given())?;
                for container in pod.containers() {
                    self.make(&container, &pod.given())?;
                }
            }
            self.pods.insert(pod.uid.clone(), pod);
        }
        for pod in gone.into_values() {
            let cgroup = pod.cgroup();
            self.counters.retain(|counted, _| !counted.is_within(&cgroup));
            fs::remove_dir_all(self.path(&cgroup))?;
        }
        Ok(())
    }

    /// Lets the pods run for some time at a share of the load that production pods have at most. Pods of the best-effort class use all that they request.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub fn advance(&mut self, time: Duration, share: f64) -> io::Result<()> {
        self.passed += time;
        self.complete_quotas()?;
        let best_effort = self.limit(&LAYOUT.qos(QosFolder::BestEffort));
        let pods: Vec<MachinePod> = self.pods.values().cloned().collect();
        let demands: Vec<Demand> = pods.iter().map(|pod| self.demand(pod, share)).collect();
        let system = self.cpus as f64 * system_cpu(share);
        let given = share_out(self.cpus as f64 - system, best_effort, &demands);
        let mut classes: BTreeMap<QosFolder, f64> = BTreeMap::new();
        for ((pod, cores), demand) in pods.iter().zip(&given).zip(&demands) {
            *classes.entry(pod.folder).or_default() += cores;
            let is_throttled = demand.cores > demand.limit;
            for cgroup in [pod.cgroup()].into_iter().chain(pod.containers()) {
                self.count(&cgroup, time, *cores, is_throttled)?;
            }
        }
        let of = |folder: QosFolder| classes.get(&folder).copied().unwrap_or_default();
        let wanted: f64 = demands.iter().filter(|demand| demand.is_best_effort).map(|demand| demand.cores).sum();
        for folder in [QosFolder::Burstable, QosFolder::BestEffort] {
            let is_throttled = folder == QosFolder::BestEffort && wanted > best_effort;
            self.count(&LAYOUT.qos(folder), time, of(folder), is_throttled)?;
        }
        let all: f64 = given.iter().sum();
        self.count(&LAYOUT.kubepods(), time, all, false)?;
        self.count(&CgroupPath::root(), time, all + system, false)?;
        self.used += time.mul_f64(all + system);
        write_over(&self.folder.join("proc/stat"), &proc_stat(self.cpus, self.used, self.passed))?;
        let in_use = self.memory_bytes / 20 + self.memory_in_use(share)?;
        write_over(&self.folder.join("proc/meminfo"), &files::meminfo(self.memory_bytes, in_use))
    }

    /// A quota that was written without its period gets the usual one, as the kernel shows it.
    fn complete_quotas(&self) -> io::Result<()> {
        let pods = self.pods.values().flat_map(|pod| [pod.cgroup()].into_iter().chain(pod.containers()));
        for cgroup in QosFolder::ALL.map(|folder| LAYOUT.qos(folder)).into_iter().chain(pods) {
            let path = self.path(&cgroup).join("cpu.max");
            let text = fs::read_to_string(&path)?;
            if let [quota] = text.split_whitespace().collect::<Vec<_>>()[..] {
                let quota = if quota == "-1" { "max" } else { quota };
                write_over(&path, &format!("{quota} {}\n", PERIOD.as_micros()))?;
            }
        }
        Ok(())
    }

    fn demand(&self, pod: &MachinePod, share: f64) -> Demand {
        let limits = [pod.cgroup()].into_iter().chain(pod.containers()).map(|cgroup| self.limit(&cgroup));
        let busy = if pod.is_best_effort() { 1.0 } else { share };
        Demand {
            cores: pod.request_milli as f64 / 1000.0 * busy,
            limit: limits.fold(f64::INFINITY, f64::min),
            is_best_effort: pod.is_best_effort(),
        }
    }

    /// The cores that the files of a cgroup leave it: its quota, and its CPUs.
    fn limit(&self, cgroup: &CgroupPath) -> f64 {
        let folder = self.path(cgroup);
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let quota = text("cpu.max").split_whitespace().next().and_then(|quota| quota.parse::<f64>().ok());
        let quota = quota.map_or(f64::INFINITY, |micros| micros / PERIOD.as_micros() as f64);
        let cpus = text("cpuset.cpus").trim().parse::<koord_scheduling::CpuSet>();
        let cpus = cpus.ok().filter(|cpus| !cpus.is_empty()).map_or(f64::INFINITY, |cpus| cpus.len() as f64);
        quota.min(cpus)
    }

    /// What pods hold of memory. Production pods hold more when they are busy.
    fn memory_in_use(&self, share: f64) -> io::Result<u64> {
        let mut all = 0;
        for pod in self.pods.values() {
            let held = if pod.is_best_effort() { 0.8 } else { held_memory(share) };
            let bytes = (pod.memory_bytes as f64 * held) as u64;
            all += bytes;
            for cgroup in [pod.cgroup()].into_iter().chain(pod.containers()) {
                let folder = self.path(&cgroup);
                write_over(&folder.join("memory.current"), &format!("{bytes}\n"))?;
                write_over(&folder.join("memory.stat"), &memory_stat(bytes))?;
            }
        }
        Ok(all)
    }

    fn count(&mut self, cgroup: &CgroupPath, time: Duration, cores: f64, is_throttled: bool) -> io::Result<()> {
        let counter = self.counters.entry(cgroup.clone()).or_default();
        counter.passed += time;
        counter.used += time.mul_f64(cores.max(0.0));
        if is_throttled {
            counter.throttled_periods += time.as_secs_f64() / PERIOD.as_secs_f64();
        }
        let usage = counter.used.as_micros();
        let text = format!(
            "usage_usec {usage}\nuser_usec {usage}\nsystem_usec 0\nnr_periods {}\nnr_throttled {}\nthrottled_usec {}\nnr_bursts 0\nburst_usec 0\n",
            counter.passed.as_millis() / PERIOD.as_millis(),
            counter.throttled_periods as u64,
            (counter.throttled_periods * PERIOD.as_micros() as f64) as u64,
        );
        write_over(&self.path(cgroup).join("cpu.stat"), &text)
    }

    fn make(&self, cgroup: &CgroupPath, given: &[(&str, String)]) -> io::Result<()> {
        let folder = self.path(cgroup);
        for (name, text) in cgroup_files(self.cpus) {
            let given = given.iter().find(|(given, _)| *given == name);
            write_new(&folder.join(name), given.map_or(&text, |(_, text)| text))?;
        }
        Ok(())
    }

    fn path(&self, cgroup: &CgroupPath) -> PathBuf {
        self.cgroups.folder(cgroup)
    }
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// Writes in place: readers keep descriptors, and must not find an empty file. A shorter text is padded with newlines.
fn write_over(path: &Path, text: &str) -> io::Result<()> {
    let file: File = OpenOptions::new().write(true).open(path)?;
    let length = usize::try_from(file.metadata()?.len()).unwrap_or_default().max(text.len());
    let mut bytes = Vec::from(text);
    bytes.resize(length, b'\n');
    file.write_all_at(&bytes, 0)
}

#[cfg(test)]
mod tests;
