//! CPU cycles and instructions of containers, counted by the hardware.

use std::{fmt, io, path::Path, sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_framework::Pod;
use koord_koordlet_system::{Cgroups, Kernel as _, Resource, Version};
use koord_scheduling::CpuSet;

use super::{kept_pods::KeptPods, reader::Activity};
use crate::store::{Measure, Store, Subject};

/// Opens hardware counters: `perf_event_open` of a cgroup on one CPU.
pub trait CpuCounters {
    /// Begins to count cycles and instructions of the tasks in a cgroup, while they run on a CPU.
    ///
    /// # Errors
    ///
    /// The cgroup is gone, the kernel allows nothing of the kind, or the hardware has no such counters.
    fn open(&mut self, cgroup: &Path, cpu: u32) -> io::Result<Box<dyn CounterGroup>>;
}

/// Counters of a cgroup on one CPU. They end when it is dropped.
pub trait CounterGroup: fmt::Debug + Send {
    /// What was counted since the group was opened.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    fn read(&mut self) -> io::Result<CounterReading>;
}

/// What a group of counters has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterReading {
    pub cycles: u64,
    pub instructions: u64,
    /// How long the group was to count.
    pub enabled_ns: u64,
    /// How long it counted: the hardware counts in turns when there are more groups than counters.
    pub running_ns: u64,
}

/// Counts cycles and instructions of all containers for a while, again and again.
///
/// A counter's value is count × time enabled ÷ time running, rounded to the nearest, and that of a container is the sum over CPUs. Containers whose counters need
/// more than [`COUNTERS_MAX`] descriptors together are counted one part after the other.
#[derive(Debug)]
pub struct CyclesCollector {
    cgroups: Cgroups,
    interval: Duration,
    window: Duration,
    cpus: CpuSet,
    pods: KeptPods<(), Arc<Path>>,
    counting: Vec<Counting>,
    /// When the counters that are open now are read.
    ends: Option<Moment>,
    /// When the next round begins.
    next: Option<Moment>,
    /// How many containers of the round were counted already.
    counted: usize,
    failure: Option<Arc<str>>,
    has_started: bool,
}

#[derive(Debug)]
struct Counting {
    container: Arc<str>,
    groups: Vec<Box<dyn CounterGroup>>,
}

/// Most groups of counters that are open at a time, one for each container and CPU.
pub const COUNTERS_MAX: usize = 4096;

impl CyclesCollector {
    /// Counts for `window` every `interval`.
    pub fn new(cgroups: Cgroups, interval: Duration, window: Duration) -> Self {
        let (cpus, pods) = (CpuSet::default(), KeptPods::default());
        let (ends, next, failure) = (None, None, None);
        let counting = Vec::new();
        Self { cgroups, interval, window, cpus, pods, counting, ends, next, counted: 0, failure, has_started: false }
    }

    /// Takes the CPUs that are online. Nothing is counted while they are not known.
    pub fn set_cpus(&mut self, cpus: CpuSet) {
        self.cpus = cpus;
    }

    /// Takes the pods that there are now.
    pub fn set_pods(&mut self, pods: &[Arc<Pod>]) {
        let cgroups = &self.cgroups;
        let folder = |cgroup: &koord_koordlet_system::CgroupPath| -> Arc<Path> {
            let folder = cgroups.path(cgroup, Resource::CpuShares).unwrap_or_default();
            let folder = folder.parent().map(Path::to_owned).unwrap_or_default();
            if cgroups.layout().version == Version::V2 {
                return folder.into();
            }
            // The hierarchy of counters has the folders that the one of CPUs has.
            let root = cgroups.folder(&koord_koordlet_system::CgroupPath::root());
            root.with_file_name("perf_event").join(cgroup.as_str()).into()
        };
        self.pods.set(pods, |_, container| container.is_running(), |_| (), folder);
    }

    /// Begins to count, or reads what was counted, when it is time for that.
    pub fn collect(&mut self, now: Moment, counters: &mut dyn CpuCounters, store: &mut Store) {
        if self.ends.is_some_and(|ends| now >= ends) {
            self.read(now, store);
        }
        let is_due = self.next.is_none_or(|next| now >= next) || self.counted > 0;
        if self.ends.is_none() && is_due && !self.cpus.is_empty() {
            self.open(now, counters);
        }
    }

    fn open(&mut self, now: Moment, counters: &mut dyn CpuCounters) {
        if self.counted == 0 {
            self.next = Some(now + self.interval);
            self.failure = None;
        }
        let at_once = (COUNTERS_MAX / self.cpus.len().max(1)).max(1);
        let containers = self.pods.iter().flat_map(|pod| &pod.containers);
        let mut seen = 0;
        for container in containers.skip(self.counted).take(at_once) {
            seen += 1;
            let groups: io::Result<Vec<_>> = self.cpus.iter().map(|cpu| counters.open(&container.kept, cpu)).collect();
            match groups {
                Ok(groups) => self.counting.push(Counting { container: Arc::clone(&container.id), groups }),
                Err(error) if koord_koordlet_system::is_gone(&error) => {}
                Err(error) => {
                    let text = || format!("counters of {} cannot be opened: {error}", container.kept.display()).into();
                    self.failure.get_or_insert_with(text);
                }
            }
        }
        let is_last = seen < at_once;
        self.counted = if is_last { 0 } else { self.counted + seen };
        if !self.counting.is_empty() {
            self.ends = Some(now + self.window);
        }
    }

    fn read(&mut self, now: Moment, store: &mut Store) {
        self.ends = None;
        for mut counting in self.counting.drain(..) {
            let readings: io::Result<Vec<_>> = counting.groups.iter_mut().map(|group| group.read()).collect();
            match readings {
                Ok(readings) => {
                    let sum = |count: fn(&CounterReading) -> u64| {
                        readings.iter().map(|reading| reading.scaled(count(reading))).sum::<f64>()
                    };
                    let subject = Subject::Container(&counting.container);
                    store.append(subject, Measure::Cycles, now, sum(|reading| reading.cycles));
                    store.append(subject, Measure::Instructions, now, sum(|reading| reading.instructions));
                    self.has_started = true;
                }
                Err(error) => {
                    let text = || format!("counters of {} cannot be read: {error}", counting.container).into();
                    self.failure.get_or_insert_with(text);
                }
            }
        }
    }

    /// Whether something was counted.
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    pub fn activity(&self) -> Activity {
        let reason = match &self.failure {
            Some(failure) => Arc::clone(failure),
            None if self.cpus.is_empty() => "the CPUs of the machine are not known".into(),
            None => return Activity::Active,
        };
        let remedy = "give the agent CAP_PERFMON, and use a machine whose CPU counts cycles and instructions";
        Activity::Degraded { reason, remedy }
    }
}

impl CounterReading {
    /// What the counter would have counted if it had run all the time.
    fn scaled(&self, count: u64) -> f64 {
        if self.running_ns == 0 {
            return 0.0;
        }
        (count as f64 * (self.enabled_ns as f64 / self.running_ns as f64)).round()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::tree::{Tree, at, last, pods};

    /// Counters that count a thousand cycles and half as many instructions, in half of the time.
    #[derive(Default)]
    struct Fixed {
        opened: Vec<String>,
        is_refused: bool,
    }

    #[derive(Debug)]
    struct Group;

    impl CounterGroup for Group {
        fn read(&mut self) -> io::Result<CounterReading> {
            Ok(CounterReading { cycles: 1000, instructions: 500, enabled_ns: 10, running_ns: 5 })
        }
    }

    impl CpuCounters for Fixed {
        fn open(&mut self, cgroup: &Path, cpu: u32) -> io::Result<Box<dyn CounterGroup>> {
            if self.is_refused {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            self.opened.push(format!("{} {cpu}", cgroup.file_name().unwrap().to_string_lossy()));
            Ok(Box::new(Group))
        }
    }

    #[test]
    fn a_window_is_counted_every_interval_and_scaled_to_the_whole_time() {
        for version in [Version::V1, Version::V2] {
            let (tree, mut store, mut counters) = (Tree::new(version), Store::default(), Fixed::default());
            let mut collector = CyclesCollector::new(tree.cgroups(), Duration::from_mins(1), Duration::from_secs(10));
            collector.set_pods(&pods(tree.layout, &["a LS Burstable {}"]));
            collector.collect(at(0), &mut counters, &mut store);
            assert!(counters.opened.is_empty() && matches!(collector.activity(), Activity::Degraded { .. }));
            collector.set_cpus("0-1".parse().unwrap());
            for second in 1..12 {
                collector.collect(at(second), &mut counters, &mut store);
            }
            assert_eq!(counters.opened, ["cri-containerd-a.scope 0", "cri-containerd-a.scope 1"]);
            let container = Subject::Container("containerd://a");
            assert_eq!(last(&store, container, Measure::Cycles, 11), Some(4000.0), "two CPUs, half of the time");
            assert_eq!(last(&store, container, Measure::Instructions, 11), Some(2000.0));
            for second in 12..62 {
                collector.collect(at(second), &mut counters, &mut store);
            }
            assert_eq!((counters.opened.len(), collector.activity()), (4, Activity::Active));
        }
    }

    #[test]
    fn counters_that_are_refused_are_named() {
        let (tree, mut counters) = (Tree::new(Version::V2), Fixed { is_refused: true, ..Fixed::default() });
        let mut collector = CyclesCollector::new(tree.cgroups(), Duration::from_mins(1), Duration::from_secs(10));
        collector.set_pods(&pods(tree.layout, &["a LS Burstable {}"]));
        collector.set_cpus("0".parse().unwrap());
        collector.collect(at(0), &mut counters, &mut Store::default());
        let Activity::Degraded { reason, .. } = collector.activity() else { panic!("not degraded") };
        assert!(reason.contains("cri-containerd-a.scope cannot be opened: permission denied"), "{reason}");
    }

    #[test]
    fn more_containers_than_descriptors_are_counted_in_parts() {
        let (tree, mut store, mut counters) = (Tree::new(Version::V2), Store::default(), Fixed::default());
        let mut collector = CyclesCollector::new(tree.cgroups(), Duration::from_mins(1), Duration::from_secs(10));
        collector.set_pods(&pods(tree.layout, &["a LS Burstable {}", "b LS Burstable {}", "c LS Burstable {}"]));
        collector.set_cpus("0-2047".parse().unwrap());
        collector.collect(at(0), &mut counters, &mut store);
        assert_eq!(counters.opened.len(), 4096);
        collector.collect(at(10), &mut counters, &mut store);
        assert_eq!(counters.opened.len(), 6144, "the third one as soon as the counters of the first two are closed");
        collector.collect(at(20), &mut counters, &mut store);
        assert_eq!(last(&store, Subject::Container("containerd://c"), Measure::Cycles, 20), Some(4_096_000.0));
    }
}
