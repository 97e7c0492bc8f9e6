//! CPU, memory and throttling of pods and their containers.

use std::{sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_framework::{Container, Pod};
use koord_koordlet_system::{
    CgroupPath, Cgroups, KeptFile, Kernel as _, MemoryStat, NumaStat, Resource, Throttling, Version, parse_counter,
    parse_cpu_usage_v2_ns,
};
use koord_types::qos::QosClass;

use super::{
    kept_pods::KeptPods,
    reader::{Activity, Reader, Time},
};
use crate::store::{Measure, Store, Subject};

/// Reads what the cgroups of pods say: `cpuacct.usage`, `cpu.stat`, `memory.stat` and `memory.numa_stat` (v1), or `cpu.stat`, `memory.stat` and
/// `memory.numa_stat` (v2).
///
/// CPUs in use = CPU time since the sample before ÷ time since then. Memory in use = inactive_anon + active_anon + unevictable; with the page cache
/// active_file + inactive_file are added. Throttled = periods throttled ÷ periods, since the sample before.
///
/// Each round reads CPU and memory of each pod. Throttling costs no read of its own on v2, and is read every fifth round of a pod on v1; the NUMA nodes of the
/// memory every ten seconds, a part of the pods in each round. Containers are read where [`ContainerSampling`] asks for them.
#[derive(Debug)]
pub struct PodCollector {
    reader: Reader,
    cgroups: Cgroups,
    version: Version,
    page_bytes: u64,
    with_page_cache: bool,
    sampling: ContainerSampling,
    /// How often the NUMA nodes of a pod's memory are read; `None` on a kernel with one NUMA node or none.
    numa_interval: Option<Duration>,
    pods: KeptPods<PodFiles, GroupFiles>,
    round: usize,
    usage: Option<PodsUsage>,
    /// Bytes of all pods on each NUMA node.
    numa_bytes: Vec<(u32, f64)>,
}

/// Which containers are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerSampling {
    /// None: nothing needs them.
    None,
    /// CPU and throttling of containers with a CPU limit in pods that may burst: those that are neither LSE, LSR nor BE by label.
    #[default]
    Bursting,
    /// CPU, throttling and memory of all containers.
    All,
}

/// What all pods use together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PodsUsage {
    pub at: Moment,
    /// CPUs.
    pub cpu: f64,
    /// Bytes, page cache excluded.
    pub memory: f64,
    /// Whether a pod was seen for the first time, so that its CPUs are not known yet.
    pub has_new_pods: bool,
}

#[derive(Debug)]
struct PodFiles {
    group: GroupFiles,
    numa: KeptFile,
    /// When the NUMA nodes are read again.
    numa_due: Option<Moment>,
    numa_bytes: Vec<(u32, u64)>,
}

#[derive(Debug)]
struct GroupFiles {
    /// `cpuacct.usage` (v1) or `cpu.stat` (v2).
    cpu: KeptFile,
    /// `cpu.stat` (v1).
    throttling: Option<KeptFile>,
    memory: KeptFile,
    cpu_before: Option<(Moment, u64)>,
    throttling_before: Option<Throttling>,
}

/// Rounds of a pod between two readings of its throttling on v1.
const THROTTLING_ROUNDS: usize = 5;
/// Most parts in which the NUMA nodes of all pods are read.
const NUMA_PARTS: u32 = 10;

impl PodCollector {
    /// A collector of a kernel with pages of this size.
    pub fn new(cgroups: Cgroups, page_bytes: u64, sampling: ContainerSampling, with_page_cache: bool) -> Self {
        Self {
            version: cgroups.layout().version,
            reader: Reader::default(),
            cgroups,
            page_bytes,
            with_page_cache,
            sampling,
            numa_interval: None,
            pods: KeptPods::default(),
            round: 0,
            usage: None,
            numa_bytes: Vec::new(),
        }
    }

    /// Says how often the NUMA nodes of memory are read; `None` for never.
    pub fn set_numa_interval(&mut self, interval: Option<Duration>) {
        self.numa_interval = interval;
        self.numa_bytes.clear();
    }

    /// Takes the pods that there are now.
    pub fn set_pods(&mut self, pods: &[Arc<Pod>]) {
        let Self { cgroups, sampling, version, .. } = self;
        self.pods.set(
            pods,
            |pod, container| sampling.wants(pod, container),
            |cgroup| PodFiles {
                group: GroupFiles::new(cgroups, *version, cgroup),
                numa: file(cgroups, cgroup, Resource::MemoryNumaStat),
                numa_due: None,
                numa_bytes: Vec::new(),
            },
            |cgroup| GroupFiles::new(cgroups, *version, cgroup),
        );
    }

    /// Takes a sample of each pod.
    pub fn collect(&mut self, time: Time<'_>, store: &mut Store) {
        self.reader.begin();
        self.round = self.round.wrapping_add(1);
        let (mut cpu_sum, mut memory_sum, mut has_new_pods) = (0.0, 0.0, false);
        let with_memory_of_containers = self.sampling == ContainerSampling::All;
        for (place, kept) in self.pods.iter_mut().enumerate() {
            let subject = Subject::Pod(&kept.pod.uid);
            let is_throttling_due = self.round.wrapping_add(place).is_multiple_of(THROTTLING_ROUNDS);
            let group = &mut kept.kept.group;
            let Some(cpu) = group.cpu(&mut self.reader, self.version, time, is_throttling_due) else { continue };
            let Some(memory) = group.memory(&mut self.reader, self.version) else { continue };
            let memory_bytes = memory.used_bytes() as f64;
            memory_sum += memory_bytes;
            match cpu.cpus {
                Some(cpus) => {
                    cpu_sum += cpus;
                    store.append(subject, Measure::Cpu, cpu.at, cpus);
                    store.append(subject, Measure::Memory, cpu.at, memory_bytes);
                    if self.with_page_cache {
                        let memory = memory.used_with_page_cache_bytes() as f64;
                        store.append(subject, Measure::MemoryWithPageCache, cpu.at, memory);
                    }
                }
                None => has_new_pods = true,
            }
            if let Some(ratio) = cpu.throttled {
                store.append(subject, Measure::Throttled, cpu.at, ratio);
            }
            if let Some(interval) = self.numa_interval {
                kept.kept.numa(&mut self.reader, (self.version, self.page_bytes), cpu.at, interval, place);
            }
            for container in &mut kept.containers {
                let subject = Subject::Container(&container.id);
                let Some(cpu) = container.kept.cpu(&mut self.reader, self.version, time, true) else { continue };
                if let Some(cpus) = cpu.cpus {
                    store.append(subject, Measure::Cpu, cpu.at, cpus);
                }
                if let Some(ratio) = cpu.throttled {
                    store.append(subject, Measure::Throttled, cpu.at, ratio);
                }
                if with_memory_of_containers && let Some(memory) = container.kept.memory(&mut self.reader, self.version)
                {
                    store.append(subject, Measure::Memory, cpu.at, memory.used_bytes() as f64);
                }
            }
        }
        self.usage = Some(PodsUsage { at: time(), cpu: cpu_sum, memory: memory_sum, has_new_pods });
        self.sum_numa();
        self.reader.end();
    }

    fn sum_numa(&mut self) {
        self.numa_bytes.iter_mut().for_each(|(_, bytes)| *bytes = 0.0);
        for (node, bytes) in self.pods.iter().flat_map(|kept| &kept.kept.numa_bytes) {
            match self.numa_bytes.iter_mut().find(|(known, _)| known == node) {
                Some((_, sum)) => *sum += *bytes as f64,
                None => self.numa_bytes.push((*node, *bytes as f64)),
            }
        }
    }

    /// The sum of the last round; pods that could not be read do not count.
    pub fn usage(&self) -> Option<PodsUsage> {
        self.usage
    }

    /// The memory of all pods on a NUMA node, in bytes, as it was read last.
    pub fn numa_bytes(&self, node: u32) -> f64 {
        self.numa_bytes.iter().find(|(known, _)| *known == node).map_or(0.0, |(_, bytes)| *bytes)
    }

    /// Whether there was a round.
    pub fn has_started(&self) -> bool {
        self.usage.is_some()
    }

    pub fn activity(&self) -> Activity {
        self.reader.activity()
    }
}

impl ContainerSampling {
    fn wants(self, pod: &Pod, container: &Container) -> bool {
        let may_burst = || {
            !matches!(pod.qos_label, Some(QosClass::Lse | QosClass::Lsr | QosClass::Be))
                && container.limit("cpu").is_some_and(|limit| limit > 0)
        };
        container.is_running()
            && match self {
                Self::None => false,
                Self::Bursting => may_burst(),
                Self::All => true,
            }
    }
}

/// What one reading of a group's CPU gives.
struct CpuReading {
    at: Moment,
    /// `None` when the group is seen for the first time, or was made anew.
    cpus: Option<f64>,
    throttled: Option<f64>,
}

impl GroupFiles {
    fn new(cgroups: &Cgroups, version: Version, cgroup: &CgroupPath) -> Self {
        Self {
            cpu: file(cgroups, cgroup, Resource::CpuUsage),
            throttling: (version == Version::V1).then(|| file(cgroups, cgroup, Resource::CpuStat)),
            memory: file(cgroups, cgroup, Resource::MemoryStat),
            cpu_before: None,
            throttling_before: None,
        }
    }

    /// Reads the CPU time, and how often the group was throttled where that is due or costs nothing.
    fn cpu(
        &mut self,
        reader: &mut Reader,
        version: Version,
        time: Time<'_>,
        is_throttling_due: bool,
    ) -> Option<CpuReading> {
        let (usage_ns, throttling) = match version {
            Version::V1 => {
                let usage = reader.of_cgroup(&mut self.cpu, |text| parse_counter("cpuacct.usage", text))?;
                (usage, None)
            }
            // A group without the CPU controller has no periods.
            Version::V2 => reader.of_cgroup(&mut self.cpu, |text| {
                Ok((parse_cpu_usage_v2_ns(text)?, Throttling::parse(version, text).ok()))
            })?,
        };
        let at = time();
        let throttling = match &mut self.throttling {
            Some(file) if is_throttling_due || self.throttling_before.is_none() => {
                reader.of_cgroup(file, |text| Throttling::parse(version, text))
            }
            _ => throttling,
        };
        let throttled = throttling.and_then(|now| {
            let before = self.throttling_before.replace(now)?;
            Some(now.ratio_since(&before))
        });
        let cpus = self
            .cpu_before
            .replace((at, usage_ns))
            .and_then(|(before_at, before)| cpus(at, usage_ns, before_at, before));
        Some(CpuReading { at, cpus, throttled })
    }

    fn memory(&mut self, reader: &mut Reader, version: Version) -> Option<MemoryStat> {
        reader.of_cgroup(&mut self.memory, |text| MemoryStat::parse(version, text))
    }
}

/// CPUs in use between two readings of CPU time in nanoseconds; `None` when no time has passed, or the counter went backwards.
pub(super) fn cpus(at: Moment, usage_ns: u64, before_at: Moment, before_ns: u64) -> Option<f64> {
    let ns = at.since(before_at).as_nanos();
    usage_ns.checked_sub(before_ns).filter(|_| ns > 0).map(|used| used as f64 / ns as f64)
}

impl PodFiles {
    fn numa(
        &mut self,
        reader: &mut Reader,
        (version, page_bytes): (Version, u64),
        now: Moment,
        interval: Duration,
        place: usize,
    ) {
        if self.numa_due.is_some_and(|due| now < due) {
            return;
        }
        let Self { numa, numa_bytes, .. } = self;
        reader.of_cgroup(numa, |text| {
            let stat = NumaStat::parse(version, text, page_bytes)?;
            numa_bytes.clear();
            numa_bytes.extend(stat.bytes());
            Ok(())
        });
        // The first time all pods are read at once, later each with its part.
        let part = place as u32 % NUMA_PARTS + 1;
        let wait = if self.numa_due.is_none() { interval * part / NUMA_PARTS } else { interval };
        self.numa_due = Some(now + wait);
    }
}

/// A file of a cgroup that stays open. Where this version of cgroups has none, it is one that is never there.
pub(super) fn file(cgroups: &Cgroups, cgroup: &CgroupPath, resource: Resource) -> KeptFile {
    KeptFile::new(cgroups.path_to_read(cgroup, resource).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::QosFolder;

    use super::*;
    use crate::collect::tree::{Tree, at, last, pods};

    const LS: &str = r#"a LS Burstable {"limits":{"cpu":"2"}}"#;

    #[test]
    fn pods_and_bursting_containers_are_sampled_on_both_versions() {
        for version in [Version::V1, Version::V2] {
            let (tree, mut store) = (Tree::new(version), Store::default());
            let pods = pods(tree.layout, &[LS, "b BE BestEffort {}"]);
            let mut collector = PodCollector::new(tree.cgroups(), 4096, ContainerSampling::Bursting, true);
            collector.set_pods(&pods);
            let container = pods[0].containers[0].cgroup.clone().unwrap();
            for (second, usage_ms, periods, throttled) in [(5, 1000, 100, 10), (6, 1500, 110, 14), (10, 3500, 150, 34)]
            {
                for cgroup in [&pods[0].cgroup, &pods[1].cgroup, &container] {
                    tree.cpu_usage(cgroup, usage_ms, periods, throttled);
                    tree.memory(cgroup, 256, 4);
                }
                for tick in second..second + if second == 6 { 4 } else { 1 } {
                    collector.collect(&|| at(tick), &mut store);
                }
            }
            let mib = |mib: u64| (mib << 20) as f64;
            for (subject, measure, value) in [
                (Subject::Pod("a"), Measure::Cpu, 2.0),
                (Subject::Pod("a"), Measure::Memory, mib(256)),
                (Subject::Pod("b"), Measure::MemoryWithPageCache, mib(260)),
                (Subject::Container("containerd://a"), Measure::Cpu, 2.0),
                (Subject::Container("containerd://a"), Measure::Throttled, 0.5),
            ] {
                assert_eq!(last(&store, subject, measure, 10), Some(value), "{version:?} {subject:?} {measure:?}");
            }
            assert_eq!(last(&store, Subject::Container("containerd://b"), Measure::Cpu, 10), None);
            let usage = collector.usage().unwrap();
            assert_eq!((usage.cpu, usage.memory, usage.has_new_pods), (4.0, mib(512), false));
            assert!(store.window(Subject::Pod("a"), Measure::Throttled, at(0), at(10)).count() > 0);
        }
    }

    #[test]
    fn a_pod_that_vanishes_and_one_that_cannot_be_read_harm_no_other() {
        let (tree, mut store) = (Tree::new(Version::V2), Store::default());
        let pods = pods(tree.layout, &["a LS Burstable {}", "b LS Burstable {}", "c LS Burstable {}"]);
        let mut collector = PodCollector::new(tree.cgroups(), 4096, ContainerSampling::None, false);
        collector.set_pods(&pods);
        for second in 1..3 {
            for (pod, usage_ms) in pods.iter().zip([second * 500, second * 100, 9000 - second * 1000]) {
                tree.cpu_usage(&pod.cgroup, usage_ms, 0, 0);
                tree.memory(&pod.cgroup, 1, 0);
            }
            tree.cgroup(&pods[1].cgroup, Resource::MemoryStat, "anon 1\n");
            collector.collect(&|| at(second), &mut store);
        }
        assert_eq!(last(&store, Subject::Pod("a"), Measure::Cpu, 2), Some(0.5));
        assert_eq!(last(&store, Subject::Pod("b"), Measure::Cpu, 2), None, "its memory is not understood");
        assert_eq!(last(&store, Subject::Pod("c"), Measure::Cpu, 2), None, "its counter went backwards");
        assert!(matches!(collector.activity(), Activity::Degraded { .. }));
        std::fs::remove_dir_all(tree.roots().cgroup.join(pods[1].cgroup.as_str())).unwrap();
        // A descriptor of a file that is not the kernel's goes on working: only the new list lets it go.
        collector.set_pods(&pods[..1]);
        collector.collect(&|| at(3), &mut store);
        assert_eq!((collector.activity(), collector.usage().unwrap().cpu), (Activity::Active, 0.0));
    }

    #[test]
    fn memory_of_numa_nodes_is_read_at_once_and_then_in_parts() {
        let tree = Tree::new(Version::V2);
        let pods = pods(tree.layout, &["a LS Burstable {}", "b LS Burstable {}"]);
        let mut collector = PodCollector::new(tree.cgroups(), 4096, ContainerSampling::None, false);
        collector.set_numa_interval(Some(Duration::from_secs(10)));
        collector.set_pods(&pods);
        let numa = |bytes: u64| {
            for pod in &pods {
                let text = format!("anon N0={bytes} N1=0\nfile N0=0 N1=1\n");
                tree.cgroup(&pod.cgroup, Resource::MemoryNumaStat, &text);
            }
        };
        for pod in &pods {
            tree.cpu_usage(&pod.cgroup, 0, 0, 0);
            tree.memory(&pod.cgroup, 1, 0);
        }
        let mut sums = Vec::new();
        for second in 0..4 {
            numa(100 * (second + 1));
            collector.collect(&|| at(second), &mut Store::default());
            sums.push((collector.numa_bytes(0), collector.numa_bytes(1)));
        }
        assert_eq!(sums, [(200.0, 2.0), (300.0, 2.0), (500.0, 2.0), (500.0, 2.0)]);
        assert_eq!(tree.layout.pod(QosFolder::Burstable, "a"), pods[0].cgroup);
    }
}
