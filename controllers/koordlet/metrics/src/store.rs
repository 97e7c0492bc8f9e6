//! The samples of a node: series by what is measured and of whom.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_core::clock::Moment;

use crate::ring::{Ring, Sample, Window};

/// Of whom something is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject<'a> {
    Node,
    /// What of the node is used neither by pods nor by host applications.
    System,
    /// All BestEffort pods together.
    BestEffort,
    /// A pod, by its uid.
    Pod(&'a str),
    /// A container, by its id with the runtime.
    Container(&'a str),
    /// An application that runs outside of pods, by its name.
    HostApplication(&'a str),
    /// A NUMA node.
    Numa(u32),
    /// What of a NUMA node is used by the system.
    SystemNuma(u32),
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// CPUs in use.
    Cpu,
    /// Bytes in use, page cache excluded.
    Memory,
    /// Bytes in use, page cache included.
    MemoryWithPageCache,
    /// Bytes in use, with the part of the page cache that is used.
    MemoryWithHotPages,
    /// Bytes that were not touched for a while.
    ColdPages,
    /// The share of CFS periods in which a group was throttled, from 0 to 1.
    Throttled,
    /// Thousandths of CPUs that BestEffort pods use.
    BestEffortUsage,
    /// Thousandths of CPUs that BestEffort pods can use as the kernel is set now.
    BestEffortRealLimit,
    /// Thousandths of CPUs that BestEffort pods request.
    BestEffortRequest,
    /// CPU cycles in the window of the collector.
    Cycles,
    /// Instructions in the window of the collector.
    Instructions,
    /// Percent of the cores of the GPU with this minor number.
    GpuCore(u32),
    /// Bytes of memory in use on the GPU with this minor number.
    GpuMemory(u32),
    /// Pressure of a resource over ten seconds, in percent of the time.
    Pressure(PressureOf, PressureDegree),
}

/// The resource that tasks wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PressureOf {
    Cpu,
    Memory,
    Io,
}

/// Whether some tasks wait, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PressureDegree {
    Some,
    Full,
}

/// How long samples are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Of node, system, NUMA nodes and host applications.
    pub node: Duration,
    /// Of pods, and of all BestEffort pods together.
    pub pods: Duration,
    /// Of containers.
    pub containers: Duration,
}

/// The samples of a node.
#[derive(Debug)]
pub struct Store {
    retention: Retention,
    fixed: BTreeMap<(FixedSubject, Measure), Ring>,
    pods: Named,
    containers: Named,
    host_applications: Named,
    /// What a query of an unknown series sees.
    empty: Ring,
}

type Named = BTreeMap<Arc<str>, BTreeMap<Measure, Ring>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FixedSubject {
    Node,
    System,
    BestEffort,
    Numa(u32),
    SystemNuma(u32),
}

impl Default for Retention {
    /// As long as NodeMetric aggregates by default.
    fn default() -> Self {
        Self { node: Duration::from_mins(30), pods: Duration::from_mins(5), containers: Duration::from_secs(20) }
    }
}

impl Default for Store {
    fn default() -> Self {
        Self::new(Retention::default())
    }
}

impl Store {
    pub fn new(retention: Retention) -> Self {
        Self {
            retention,
            fixed: BTreeMap::new(),
            pods: Named::new(),
            containers: Named::new(),
            host_applications: Named::new(),
            empty: Ring::new(Duration::ZERO),
        }
    }

    /// Adds a sample.
    pub fn append(&mut self, subject: Subject<'_>, measure: Measure, at: Moment, value: f64) {
        let sample = Sample { at, value };
        let Retention { node, pods, containers } = self.retention;
        let (named, name, span) = match subject {
            Subject::Pod(uid) => (&mut self.pods, uid, pods),
            Subject::Container(id) => (&mut self.containers, id, containers),
            Subject::HostApplication(name) => (&mut self.host_applications, name, node),
            subject => {
                let Some(subject) = FixedSubject::of(subject) else { return };
                let span = if subject == FixedSubject::BestEffort { pods } else { node };
                let ring = self.fixed.entry((subject, measure)).or_insert_with(|| Ring::new(span));
                return ring.push(sample);
            }
        };
        let series = match named.get_mut(name) {
            Some(series) => series,
            // A name is allocated once.
            None => named.entry(name.into()).or_default(),
        };
        series.entry(measure).or_insert_with(|| Ring::new(span)).push(sample);
    }

    /// The samples of a series from one time to another, both inclusive.
    pub fn window(&self, subject: Subject<'_>, measure: Measure, from: Moment, to: Moment) -> Window<'_> {
        self.ring(subject, measure).unwrap_or(&self.empty).window(from, to)
    }

    /// The youngest sample, when it is not older than `within`.
    pub fn last(&self, subject: Subject<'_>, measure: Measure, now: Moment, within: Duration) -> Option<Sample> {
        self.ring(subject, measure)?.last().filter(|sample| now.since(sample.at) <= within)
    }

    /// The uids of pods with samples, in order.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<str>> {
        self.pods.keys()
    }

    /// The NUMA nodes with samples, in order.
    pub fn numa_nodes(&self) -> Vec<u32> {
        let mut nodes: Vec<u32> = self
            .fixed
            .keys()
            .filter_map(|(subject, _)| if let FixedSubject::Numa(node) = subject { Some(*node) } else { None })
            .collect();
        nodes.dedup();
        nodes
    }

    /// The minor numbers of the GPUs with samples of a subject, in order.
    pub fn gpus(&self, subject: Subject<'_>) -> Vec<u32> {
        let minor = |measure: &Measure| if let Measure::GpuMemory(minor) = measure { Some(*minor) } else { None };
        let named = |series: Option<&BTreeMap<Measure, Ring>>| {
            series.into_iter().flat_map(BTreeMap::keys).filter_map(minor).collect()
        };
        match subject {
            Subject::Pod(uid) => named(self.pods.get(uid)),
            Subject::Container(id) => named(self.containers.get(id)),
            Subject::HostApplication(name) => named(self.host_applications.get(name)),
            subject => {
                let subject = FixedSubject::of(subject);
                let series = self.fixed.keys().filter(|(known, _)| Some(*known) == subject);
                series.filter_map(|(_, measure)| minor(measure)).collect()
            }
        }
    }

    /// Drops series whose youngest sample is older than this.
    pub fn forget_older_than(&mut self, age: Duration, now: Moment) {
        let is_young = |ring: &Ring| ring.last().is_some_and(|last| now.since(last.at) <= age);
        self.fixed.retain(|_, ring| is_young(ring));
        for named in [&mut self.pods, &mut self.containers, &mut self.host_applications] {
            named.retain(|_, series| {
                series.retain(|_, ring| is_young(ring));
                !series.is_empty()
            });
        }
    }

    /// Keeps samples for longer, or shorter, from now on.
    pub fn retain(&mut self, retention: Retention) {
        if retention == self.retention {
            return;
        }
        self.retention = retention;
        for ((subject, _), ring) in &mut self.fixed {
            ring.keep_for(if *subject == FixedSubject::BestEffort { retention.pods } else { retention.node });
        }
        let named = [
            (&mut self.pods, retention.pods),
            (&mut self.containers, retention.containers),
            (&mut self.host_applications, retention.node),
        ];
        for (named, span) in named {
            named.values_mut().flat_map(BTreeMap::values_mut).for_each(|ring| ring.keep_for(span));
        }
    }

    /// How many series there are.
    pub fn series(&self) -> usize {
        let named = [&self.pods, &self.containers, &self.host_applications];
        self.fixed.len() + named.into_iter().flat_map(BTreeMap::values).map(BTreeMap::len).sum::<usize>()
    }

    fn ring(&self, subject: Subject<'_>, measure: Measure) -> Option<&Ring> {
        match subject {
            Subject::Pod(uid) => self.pods.get(uid)?.get(&measure),
            Subject::Container(id) => self.containers.get(id)?.get(&measure),
            Subject::HostApplication(name) => self.host_applications.get(name)?.get(&measure),
            subject => self.fixed.get(&(FixedSubject::of(subject)?, measure)),
        }
    }
}

impl FixedSubject {
    fn of(subject: Subject<'_>) -> Option<Self> {
        match subject {
            Subject::Node => Some(Self::Node),
            Subject::System => Some(Self::System),
            Subject::BestEffort => Some(Self::BestEffort),
            Subject::Numa(node) => Some(Self::Numa(node)),
            Subject::SystemNuma(node) => Some(Self::SystemNuma(node)),
            Subject::Pod(_) | Subject::Container(_) | Subject::HostApplication(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    #[test]
    fn series_are_told_apart_by_subject_and_measure() {
        let mut store = Store::default();
        for (subject, measure, value) in [
            (Subject::Node, Measure::Cpu, 1.0),
            (Subject::System, Measure::Cpu, 2.0),
            (Subject::Pod("a"), Measure::Cpu, 3.0),
            (Subject::Pod("a"), Measure::Memory, 4.0),
            (Subject::Container("a"), Measure::Cpu, 5.0),
            (Subject::Numa(1), Measure::Cpu, 6.0),
        ] {
            store.append(subject, measure, at(10), value);
        }
        let last =
            |subject, measure| store.last(subject, measure, at(11), Duration::from_secs(2)).map(|last| last.value);
        assert_eq!(last(Subject::Node, Measure::Cpu), Some(1.0));
        assert_eq!(last(Subject::Pod("a"), Measure::Cpu), Some(3.0));
        assert_eq!(last(Subject::Container("a"), Measure::Cpu), Some(5.0));
        assert_eq!(last(Subject::Pod("b"), Measure::Cpu), None);
        assert_eq!(store.last(Subject::Node, Measure::Cpu, at(13), Duration::from_secs(2)), None, "too old");
        assert_eq!(store.numa_nodes(), [1]);
    }

    #[test]
    fn gpus_are_series_of_their_users() {
        let mut store = Store::default();
        for (subject, minor) in [(Subject::Node, 1), (Subject::Node, 0), (Subject::Pod("a"), 1)] {
            store.append(subject, Measure::GpuMemory(minor), at(10), 1.0);
            store.append(subject, Measure::GpuCore(minor), at(10), 2.0);
        }
        store.append(Subject::System, Measure::Memory, at(10), 3.0);
        assert_eq!((store.gpus(Subject::Node), store.gpus(Subject::Pod("a"))), (vec![0, 1], vec![1]));
        assert_eq!((store.gpus(Subject::Pod("b")), store.gpus(Subject::System)), (vec![], vec![]));
        let last = store.last(Subject::Pod("a"), Measure::GpuCore(1), at(11), Duration::from_secs(2));
        assert_eq!(last.map(|last| last.value), Some(2.0));
    }

    #[test]
    fn series_of_pods_that_are_gone_are_dropped() {
        let mut store = Store::default();
        store.append(Subject::Pod("old"), Measure::Cpu, at(0), 1.0);
        store.append(Subject::Pod("new"), Measure::Cpu, at(100), 1.0);
        store.forget_older_than(Duration::from_mins(1), at(110));
        assert_eq!(store.pods().map(|uid| &**uid).collect::<Vec<_>>(), ["new"]);
    }
}
