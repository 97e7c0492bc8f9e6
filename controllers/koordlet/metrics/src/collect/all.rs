//! All collectors of a node, each at its interval.

use std::{io, sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_framework::Pod;
use koord_koordlet_system::{Cgroups, Layout, Roots, Writer};
use koord_scheduling::CpuSet;
use koord_types::node_slo::HostApplicationSpec;

use super::{
    best_effort::BestEffortCollector,
    cold_pages::ColdPageCollector,
    cycles::{CpuCounters, CyclesCollector},
    host_application::HostApplicationCollector,
    node_resource::NodeCollector,
    pod_resource::{ContainerSampling, PodCollector},
    pressure::PressureCollector,
    reader::{Activity, Time},
    resctrl::ResctrlCollector,
    system::SystemCollector,
};
use crate::store::Store;

/// What is collected, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectorSettings {
    /// Ticks of `/proc/stat` per second.
    pub ticks_per_second: u32,
    pub page_bytes: u64,
    /// Samples that are older are not used to compute what the system uses.
    pub system_outdated: Duration,
    /// Whether memory with the page cache is stored.
    pub with_page_cache: bool,
    pub containers: ContainerSampling,
    /// How often the NUMA nodes of a pod's memory are read.
    pub numa_interval: Duration,
    /// How often cold pages are read; `None` for never.
    pub cold_page_interval: Option<Duration>,
    /// How often pressure is read; `None` for never.
    pub pressure_interval: Option<Duration>,
    /// How often resctrl groups are read; `None` for never.
    pub resctrl_interval: Option<Duration>,
    /// How often cycles and instructions are counted; `None` for never.
    pub cycles_interval: Option<Duration>,
    /// For how long.
    pub cycles_window: Duration,
    /// Series without a sample for this long are dropped: their pods are gone.
    pub forget_after: Duration,
}

/// All collectors of a node.
#[derive(Debug)]
pub struct Collectors {
    pub node: NodeCollector,
    pub pods: PodCollector,
    pub best_effort: BestEffortCollector,
    pub system: SystemCollector,
    pub host_applications: HostApplicationCollector,
    pub cold_pages: Option<ColdPageCollector>,
    pub pressure: Option<PressureCollector>,
    pub resctrl: Option<ResctrlCollector>,
    pub cycles: Option<CyclesCollector>,
    settings: CollectorSettings,
    cold_pages_due: Due,
    pressure_due: Due,
    resctrl_due: Due,
    forget_due: Due,
}

/// When something is done next.
#[derive(Debug, Default)]
struct Due(Option<Moment>);

const FORGET_INTERVAL: Duration = Duration::from_mins(1);

impl Default for CollectorSettings {
    /// As the original agent is set by default.
    fn default() -> Self {
        Self {
            ticks_per_second: 100,
            page_bytes: 4096,
            system_outdated: Duration::from_secs(10),
            with_page_cache: false,
            containers: ContainerSampling::default(),
            numa_interval: Duration::from_secs(10),
            cold_page_interval: None,
            pressure_interval: None,
            resctrl_interval: None,
            cycles_interval: None,
            cycles_window: Duration::from_secs(10),
            forget_after: Duration::from_mins(5),
        }
    }
}

impl Collectors {
    pub fn new(roots: &Roots, layout: Layout, settings: CollectorSettings) -> Self {
        let cgroups = || Cgroups::new(roots.cgroup.clone(), layout);
        let CollectorSettings { page_bytes, containers, with_page_cache, .. } = settings;
        let cycles = |interval| CyclesCollector::new(cgroups(), interval, settings.cycles_window);
        Self {
            node: NodeCollector::new(roots, settings.ticks_per_second, with_page_cache),
            pods: PodCollector::new(cgroups(), page_bytes, containers, with_page_cache),
            best_effort: BestEffortCollector::new(cgroups()),
            system: SystemCollector::new(settings.system_outdated),
            host_applications: HostApplicationCollector::new(cgroups()),
            cold_pages: settings.cold_page_interval.map(|_| ColdPageCollector::new(roots, cgroups())),
            pressure: settings.pressure_interval.map(|_| PressureCollector::new(cgroups())),
            resctrl: settings.resctrl_interval.map(|_| ResctrlCollector::new(roots)),
            cycles: settings.cycles_interval.map(cycles),
            settings,
            cold_pages_due: Due::default(),
            pressure_due: Due::default(),
            resctrl_due: Due::default(),
            forget_due: Due::default(),
        }
    }

    /// Prepares the kernel where a collector needs that.
    ///
    /// # Errors
    ///
    /// The kernel cannot find cold pages, or refuses to. The other collectors work without.
    pub fn set_up(&mut self, writer: &mut dyn Writer) -> io::Result<()> {
        self.cold_pages.as_mut().map_or(Ok(()), |cold_pages| cold_pages.set_up(writer))
    }

    /// Takes the CPUs and NUMA nodes of the machine.
    pub fn set_machine<'a>(&mut self, cpus: &CpuSet, numa_nodes: impl IntoIterator<Item = (u32, &'a CpuSet)>) {
        let mut has_numa = false;
        self.node.set_numa_nodes(numa_nodes.into_iter().inspect(|_| has_numa = true));
        self.pods.set_numa_interval(has_numa.then_some(self.settings.numa_interval));
        if let Some(cycles) = &mut self.cycles {
            cycles.set_cpus(cpus.clone());
        }
    }

    /// Takes the pods that there are now.
    pub fn set_pods(&mut self, pods: &[Arc<Pod>]) {
        self.pods.set_pods(pods);
        self.best_effort.set_pods(pods);
        self.cold_pages.iter_mut().for_each(|collector| collector.set_pods(pods));
        self.pressure.iter_mut().for_each(|collector| collector.set_pods(pods));
        self.cycles.iter_mut().for_each(|collector| collector.set_pods(pods));
    }

    /// Takes the host applications of the NodeSLO; `None` without one.
    pub fn set_applications(&mut self, applications: Option<&[HostApplicationSpec]>) {
        self.host_applications.set_applications(applications);
        if let Some(cold_pages) = &mut self.cold_pages {
            cold_pages.set_applications(applications.unwrap_or_default());
        }
    }

    /// Takes the samples of one round, which is called at the interval of samples, a second by default. `None` counts no cycles.
    pub fn collect(&mut self, time: Time<'_>, counters: Option<&mut dyn CpuCounters>, store: &mut Store) {
        self.node.collect(time, store);
        self.pods.collect(time, store);
        self.best_effort.collect(time, store);
        self.host_applications.collect(time, store);
        let now = time();
        self.system.collect(now, &self.node, &self.pods, &self.host_applications, store);
        let settings = &self.settings;
        if let (Some(collector), Some(interval)) = (&mut self.cold_pages, settings.cold_page_interval)
            && self.cold_pages_due.is_now(now, interval)
        {
            collector.collect(time, store);
        }
        if let (Some(collector), Some(interval)) = (&mut self.pressure, settings.pressure_interval)
            && self.pressure_due.is_now(now, interval)
        {
            collector.collect(time, store);
        }
        if let (Some(collector), Some(interval)) = (&mut self.resctrl, settings.resctrl_interval)
            && self.resctrl_due.is_now(now, interval)
        {
            collector.collect();
        }
        if let (Some(collector), Some(counters)) = (&mut self.cycles, counters) {
            collector.collect(time(), counters, store);
        }
        if self.forget_due.is_now(now, FORGET_INTERVAL) {
            store.forget_older_than(settings.forget_after, now);
        }
    }

    /// Whether each collector that other parts of the agent wait for has had its first sample. Nothing waits for what the system uses while there is no
    /// NodeSLO to name host applications.
    pub fn has_started(&self) -> bool {
        self.node.has_started()
            && self.pods.has_started()
            && self.best_effort.has_started()
            && (self.system.has_started() || !self.host_applications.is_set())
    }

    /// All collectors by name, with what they lack.
    pub fn activities(&self, now: Moment) -> [(&'static str, Activity); 9] {
        let optional = |activity: Option<Activity>| activity.unwrap_or(Activity::Off);
        [
            ("node", self.node.activity()),
            ("pods", self.pods.activity()),
            ("best-effort", self.best_effort.activity()),
            ("host-applications", self.host_applications.activity()),
            ("system", self.system.activity(now)),
            ("cold-pages", optional(self.cold_pages.as_ref().map(ColdPageCollector::activity))),
            ("pressure", optional(self.pressure.as_ref().map(PressureCollector::activity))),
            ("resctrl", optional(self.resctrl.as_ref().map(ResctrlCollector::activity))),
            ("cycles", optional(self.cycles.as_ref().map(CyclesCollector::activity))),
        ]
    }
}

impl Due {
    /// Whether it is time, which moves the time on by the interval.
    fn is_now(&mut self, now: Moment, interval: Duration) -> bool {
        // A round that comes a little early is in time: rounds of a second are not exactly a second apart.
        const EARLY: Duration = Duration::from_millis(100);
        let is_now = self.0.is_none_or(|due| now + EARLY >= due);
        if is_now {
            self.0 = Some(now + interval);
        }
        is_now
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, fs};

    use allocations::allocations;
    use koord_koordlet_system::{KernelWriter, Resource, Version};

    use super::*;
    use crate::{
        collect::tree::{Tree, pods_of},
        store::{Retention, Store, Subject},
    };

    const SECOND: Duration = Duration::from_secs(1);

    /// 110 pods with two containers each, all of which may burst.
    fn full_node(tree: &Tree, settings: CollectorSettings) -> Collectors {
        let lines: Vec<String> =
            (0..110).map(|pod| format!(r#"pod-{pod} LS Burstable {{"limits":{{"cpu":"2"}}}}"#)).collect();
        let pods = pods_of(tree.layout, &lines.iter().map(String::as_str).collect::<Vec<_>>(), 2);
        let mut groups = vec![tree.layout.qos(koord_koordlet_system::QosFolder::BestEffort)];
        for pod in &pods {
            groups.push(pod.cgroup.clone());
            groups.extend(pod.containers.iter().filter_map(|container| container.cgroup.clone()));
        }
        let pressure =
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        for group in &groups {
            tree.cpu_usage(group, 1, 1, 0);
            tree.memory(group, 100, 10);
            tree.cgroup(group, Resource::Cpuset, "0-1\n");
            let numa = match tree.layout.version {
                Version::V1 => "total=2 N0=1 N1=1\n",
                Version::V2 => "anon N0=1 N1=1\nfile N0=1 N1=1\n",
            };
            tree.cgroup(group, Resource::MemoryNumaStat, numa);
            for resource in [Resource::CpuPressure, Resource::MemoryPressure, Resource::IoPressure] {
                tree.cgroup(group, resource, pressure);
            }
        }
        tree.cgroup(&tree.layout.kubepods(), Resource::CpuPressure, pressure);
        tree.node(100, 10);
        let mut collectors = Collectors::new(&tree.roots(), tree.layout, settings);
        let cpus: [CpuSet; 2] = ["0".parse().unwrap(), "1".parse().unwrap()];
        collectors.set_machine(&"0-1".parse().unwrap(), (0..).zip(&cpus));
        collectors.set_pods(&pods);
        collectors.set_applications(Some(&[]));
        // Without kidled this is refused.
        assert_eq!(collectors.set_up(&mut KernelWriter).is_ok(), settings.cold_page_interval.is_none());
        collectors
    }

    /// How often this thread has read; `None` where the kernel does not count that.
    fn reads() -> Option<u64> {
        let text = fs::read_to_string("/proc/thread-self/io").ok()?;
        text.lines().find_map(|line| line.strip_prefix("syscr: ")?.parse().ok())
    }

    #[test]
    fn nothing_waits_for_the_use_of_the_system_while_there_is_no_nodeslo() {
        let tree = Tree::new(Version::V1);
        let mut collectors = full_node(&tree, CollectorSettings::default());
        let mut store = Store::default();
        let mut round = |collectors: &mut Collectors, second| {
            collectors.collect(&|| Moment::at(second * SECOND), None, &mut store);
            collectors.has_started()
        };
        collectors.set_applications(None);
        let started = [1, 2].map(|second| round(&mut collectors, second));
        assert_eq!((started, collectors.system.has_started()), ([false, true], false));
        collectors.set_applications(Some(&[]));
        assert!(!collectors.has_started());
    }

    #[test]
    fn rounds_of_the_same_pods_allocate_nothing_and_read_little() {
        for (version, reads_max) in [(Version::V1, 800), (Version::V2, 600)] {
            let tree = Tree::new(version);
            let settings = CollectorSettings {
                pressure_interval: Some(10 * SECOND),
                cold_page_interval: Some(5 * SECOND),
                with_page_cache: true,
                ..CollectorSettings::default()
            };
            let mut collectors = full_node(&tree, settings);
            let span = 20 * SECOND;
            let mut store = Store::new(Retention { node: span, pods: span, containers: span });
            let now = Cell::new(Moment::default());
            let mut rounds = |count: u32| {
                for _ in 0..count {
                    now.set(now.get() + SECOND);
                    collectors.collect(&|| now.get(), None, &mut store);
                }
            };
            rounds(45);
            assert_eq!(allocations(|| rounds(20)).0, 0, "{version:?}");
            if let Some(before) = reads() {
                rounds(10);
                let each = (reads().unwrap() - before) / 10;
                assert!((300..=reads_max).contains(&each), "{version:?}: {each} reads in a round");
            }
            assert!(collectors.has_started());
            let activities = collectors.activities(now.get());
            let not_active = activities.iter().filter(|(_, activity)| *activity != Activity::Active);
            let not_active: Vec<&str> = not_active.map(|(name, _)| *name).collect();
            assert_eq!(not_active, ["cold-pages", "resctrl", "cycles"], "{activities:?}");
        }
    }

    #[test]
    fn samples_of_ten_thousand_pods_that_came_and_went_are_not_held() {
        use crate::Measure::{Cpu, Memory, Throttled};
        let before = allocations::held();
        let mut store = Store::default();
        let mut sample = |second: u64| {
            let now = Moment::at(Duration::from_secs(second));
            for place in 0..110 {
                // Each pod is replaced after 950 seconds.
                let pod = format!("pod-{place}-{}", (second + place * 8) / 950);
                for measure in [Cpu, Memory, Throttled] {
                    store.append(Subject::Pod(&pod), measure, now, 1.0);
                }
                for container in 0..2 {
                    let container = format!("containerd://{pod}-{container}");
                    store.append(Subject::Container(&container), Cpu, now, 1.0);
                    store.append(Subject::Container(&container), Throttled, now, 1.0);
                }
            }
            store.append(Subject::Node, Cpu, now, 1.0);
            store.forget_older_than(Duration::from_mins(5), now);
        };
        let held = || allocations::held() - before;
        (0..1200).for_each(&mut sample);
        let full = held();
        assert!(full < 6 << 20, "{full} bytes");
        // The rest of the day goes by with a sample every minute.
        (20..24 * 60).map(|minute| minute * 60).for_each(&mut sample);
        let (day, end) = (held(), 24 * 3600);
        (end..end + 1200).for_each(&mut sample);
        assert!(day <= full && held() <= full + full / 20, "{} bytes after a day, {full} before", held());
    }
}
