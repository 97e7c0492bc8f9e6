//! CPU and memory of the node and of its NUMA nodes.

use koord_core::clock::Moment;
use koord_koordlet_system::{KeptFile, MemInfo, NumaMemInfo, ProcStat, Roots};
use koord_scheduling::{CPU_MAX, CpuSet};

use super::reader::{Activity, Reader, Time};
use crate::store::{Measure, Store, Subject};

/// Reads `/proc/stat`, `/proc/meminfo` and the meminfo of NUMA nodes.
///
/// CPUs in use = ticks of user, nice, system, irq and softirq since the sample before ÷ (seconds since then × ticks per second). Memory in use =
/// (MemTotal − MemAvailable) of the node, MemTotal − (MemFree + Active(file) + Inactive(file) + SReclaimable) of a NUMA node. The first round only counts ticks.
#[derive(Debug)]
pub struct NodeCollector {
    reader: Reader,
    stat: KeptFile,
    meminfo: KeptFile,
    roots: Roots,
    ticks_per_second: f64,
    with_page_cache: bool,
    /// When the ticks before were read, and how many they were.
    before: Option<(Moment, u64)>,
    numa: Vec<NumaFiles>,
    /// The place in `numa` of each CPU.
    numa_of_cpus: Vec<Option<usize>>,
    /// Ticks of each CPU, of the round before and of this one.
    cpus_before: Vec<Option<u64>>,
    cpus_now: Vec<Option<u64>>,
    usage: Option<NodeUsage>,
    numa_usage: Vec<NumaUsage>,
}

/// What the node uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeUsage {
    pub at: Moment,
    /// CPUs.
    pub cpu: f64,
    /// Bytes, page cache excluded.
    pub memory: f64,
}

/// What a NUMA node uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumaUsage {
    pub at: Moment,
    pub node: u32,
    /// CPUs; `None` without two samples of its CPUs.
    pub cpu: Option<f64>,
    /// Bytes, page cache excluded.
    pub memory: f64,
}

#[derive(Debug)]
struct NumaFiles {
    node: u32,
    meminfo: KeptFile,
    /// Ticks of its CPUs since the sample before; `None` when no CPU has two samples.
    ticks: Option<u64>,
}

impl NodeCollector {
    /// A collector for a kernel with this many ticks per second (`CLK_TCK`; 100 on nearly all). With the page cache, the memory that includes it is stored too.
    pub fn new(roots: &Roots, ticks_per_second: u32, with_page_cache: bool) -> Self {
        Self {
            reader: Reader::default(),
            stat: KeptFile::new(roots.proc.join("stat")),
            meminfo: KeptFile::new(roots.proc.join("meminfo")),
            roots: roots.clone(),
            ticks_per_second: f64::from(ticks_per_second.max(1)),
            with_page_cache,
            before: None,
            numa: Vec::new(),
            numa_of_cpus: Vec::new(),
            cpus_before: Vec::new(),
            cpus_now: Vec::new(),
            usage: None,
            numa_usage: Vec::new(),
        }
    }

    /// Takes the NUMA nodes with their CPUs; none of a kernel without NUMA.
    pub fn set_numa_nodes<'a>(&mut self, nodes: impl IntoIterator<Item = (u32, &'a CpuSet)>) {
        self.numa.clear();
        self.numa_usage.clear();
        self.numa_of_cpus.clear();
        for (node, cpus) in nodes {
            let path = self.roots.sys.join(format!("bus/node/devices/node{node}/meminfo"));
            for cpu in cpus.iter() {
                *place(&mut self.numa_of_cpus, cpu) = Some(self.numa.len());
            }
            self.numa.push(NumaFiles { node, meminfo: KeptFile::new(path), ticks: None });
        }
        self.cpus_before.clear();
    }

    /// Takes a sample.
    pub fn collect(&mut self, time: Time<'_>, store: &mut Store) {
        self.reader.begin();
        let memory = self.reader.required(&mut self.meminfo, MemInfo::parse);
        if let (Some((at, cpu, seconds)), Some(memory)) = (self.cpu(time), memory) {
            let memory_bytes = memory.used_bytes() as f64;
            self.usage = Some(NodeUsage { at, cpu, memory: memory_bytes });
            store.append(Subject::Node, Measure::Cpu, at, cpu);
            store.append(Subject::Node, Measure::Memory, at, memory_bytes);
            if self.with_page_cache {
                let memory = memory.used_with_page_cache_bytes() as f64;
                store.append(Subject::Node, Measure::MemoryWithPageCache, at, memory);
            }
            self.numa(at, seconds, store);
        }
        self.reader.end();
    }

    /// When `/proc/stat` was read, the CPUs in use since it was read before, and the seconds in between.
    fn cpu(&mut self, time: Time<'_>) -> Option<(Moment, f64, f64)> {
        let Self { reader, numa_of_cpus, cpus_now, numa, .. } = self;
        cpus_now.clear();
        let ticks = reader.required(&mut self.stat, |text| {
            let stat = ProcStat::parse(text)?;
            if !numa.is_empty() {
                for cpu in stat.cpus().map_while(Result::ok).filter(|cpu| cpu.cpu <= CPU_MAX) {
                    *place(cpus_now, cpu.cpu) = Some(cpu.busy_ticks);
                }
            }
            Ok(stat.busy_ticks)
        })?;
        let at = time();
        for numa in numa.iter_mut() {
            numa.ticks = None;
        }
        for ((now, before), node) in cpus_now.iter().zip(&self.cpus_before).zip(&*numa_of_cpus) {
            // A CPU that was not there before, or whose ticks go backwards, does not count.
            let ticks = now.zip(*before).and_then(|(now, before)| now.checked_sub(before));
            if let (Some(ticks), Some(numa)) = (ticks, node.and_then(|node| numa.get_mut(node))) {
                numa.ticks = Some(numa.ticks.unwrap_or(0).saturating_add(ticks));
            }
        }
        std::mem::swap(&mut self.cpus_before, &mut self.cpus_now);
        let (before_at, before) = self.before.replace((at, ticks))?;
        let seconds = at.since(before_at).as_secs_f64();
        let ticks = ticks.checked_sub(before).filter(|_| seconds > 0.0)?;
        Some((at, ticks as f64 / (seconds * self.ticks_per_second), seconds))
    }

    fn numa(&mut self, at: Moment, seconds: f64, store: &mut Store) {
        self.numa_usage.clear();
        for numa in &mut self.numa {
            let Some(memory) = self.reader.required(&mut numa.meminfo, NumaMemInfo::parse) else { continue };
            let cpu = numa.ticks.map(|ticks| ticks as f64 / (seconds * self.ticks_per_second));
            let usage = NumaUsage { at, node: numa.node, cpu, memory: memory.used_bytes() as f64 };
            if let Some(cpu) = cpu {
                store.append(Subject::Numa(numa.node), Measure::Cpu, at, cpu);
            }
            store.append(Subject::Numa(numa.node), Measure::Memory, at, usage.memory);
            self.numa_usage.push(usage);
        }
    }

    /// The sample of the last round that had one.
    pub fn usage(&self) -> Option<NodeUsage> {
        self.usage
    }

    /// The samples of NUMA nodes of that round, in their order.
    pub fn numa_usage(&self) -> &[NumaUsage] {
        &self.numa_usage
    }

    /// Whether there was a sample.
    pub fn has_started(&self) -> bool {
        self.usage.is_some()
    }

    pub fn activity(&self) -> Activity {
        self.reader.activity()
    }
}

/// The place of a CPU, which is made when it is not there.
fn place<T: Default + Clone>(places: &mut Vec<T>, cpu: u32) -> &mut T {
    let at = cpu.min(CPU_MAX) as usize;
    if places.len() <= at {
        places.resize(at + 1, T::default());
    }
    &mut places[at]
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::Version;

    use super::*;
    use crate::collect::tree::{Tree, at, last};

    #[test]
    fn cpus_in_use_are_ticks_by_time_and_memory_is_what_is_not_available() {
        let (tree, mut store) = (Tree::new(Version::V1), Store::default());
        let mut node = NodeCollector::new(&tree.roots(), 100, true);
        let cpus: [CpuSet; 2] = ["0".parse().unwrap(), "1".parse().unwrap()];
        node.set_numa_nodes((0..).zip(&cpus));
        tree.node(1000, 10);
        node.collect(&|| at(10), &mut store);
        assert!(!node.has_started(), "the first round counts ticks alone");
        // 400 ticks of 10 ms in 2 s are 2 CPUs.
        tree.node(1400, 10);
        node.collect(&|| at(12), &mut store);
        let gib = |gib: u64| (gib << 30) as f64;
        for (subject, measure, value) in [
            (Subject::Node, Measure::Cpu, 2.0),
            (Subject::Node, Measure::Memory, gib(6)),
            (Subject::Node, Measure::MemoryWithPageCache, gib(8)),
            (Subject::Numa(0), Measure::Cpu, 1.0),
            (Subject::Numa(1), Measure::Cpu, 1.0),
            (Subject::Numa(1), Measure::Memory, gib(4)),
        ] {
            assert_eq!(last(&store, subject, measure, 12), Some(value), "{subject:?} {measure:?}");
        }
        assert_eq!((node.numa_usage().len(), node.activity()), (2, Activity::Active));
        // Ticks that go backwards give no sample, and count from there.
        tree.node(100, 10);
        node.collect(&|| at(13), &mut store);
        assert_eq!(last(&store, Subject::Node, Measure::Cpu, 13), None);
        tree.node(200, 10);
        node.collect(&|| at(14), &mut store);
        assert_eq!(last(&store, Subject::Node, Measure::Cpu, 14), Some(1.0));
    }

    #[test]
    fn without_numa_files_the_node_is_sampled_all_the_same() {
        let (tree, mut store) = (Tree::new(Version::V1), Store::default());
        let mut node = NodeCollector::new(&tree.roots(), 100, false);
        let cpus: CpuSet = "0-1".parse().unwrap();
        node.set_numa_nodes([(7, &cpus)]);
        for (second, ticks) in [(1, 0), (2, 100)] {
            tree.node(ticks, 10);
            node.collect(&|| at(second), &mut store);
        }
        assert_eq!(last(&store, Subject::Node, Measure::Cpu, 2), Some(1.0));
        assert!(store.numa_nodes().is_empty() && matches!(node.activity(), Activity::Degraded { .. }));
        tree.write("proc/stat", "cpu 1 2 3\n");
        node.collect(&|| at(3), &mut store);
        let Activity::Degraded { reason, .. } = node.activity() else { panic!("not degraded") };
        assert!(reason.contains("proc/stat"), "{reason}");
    }
}
