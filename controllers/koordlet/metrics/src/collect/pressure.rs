//! How long the tasks of pods and containers waited for CPU, memory and I/O.

use std::sync::Arc;

use koord_koordlet_framework::Pod;
use koord_koordlet_system::{CgroupPath, Cgroups, KeptFile, Kernel as _, Pressure, PressureResource, Resource};

use super::{
    kept_pods::KeptPods,
    pod_resource::file,
    reader::{Activity, Reader, Time},
};
use crate::store::{Measure, PressureDegree, PressureOf, Store, Subject};

/// Reads `cpu.pressure`, `memory.pressure` and `io.pressure` of pods and of their containers.
#[derive(Debug)]
pub struct PressureCollector {
    reader: Reader,
    cgroups: Cgroups,
    pods: KeptPods<PressureFiles, PressureFiles>,
    is_supported: Option<bool>,
    has_started: bool,
}

/// The youngest readings of a pod or of one of its containers.
#[derive(Clone, Copy, Debug)]
pub struct PressureReading<'a> {
    pub pod: &'a Arc<Pod>,
    /// The id and the name of the container; `None` of the pod as a whole.
    pub container: Option<(&'a Arc<str>, &'a Arc<str>)>,
    /// Of CPU, memory and I/O, where they could be read.
    pub of: &'a [Option<Pressure>; 3],
}

#[derive(Debug)]
struct PressureFiles {
    files: [KeptFile; 3],
    last: [Option<Pressure>; 3],
}

/// In the order of [`PressureReading::of`].
pub(crate) const RESOURCES: [(PressureOf, PressureResource); 3] = [
    (PressureOf::Cpu, PressureResource::Cpu),
    (PressureOf::Memory, PressureResource::Memory),
    (PressureOf::Io, PressureResource::Io),
];

impl PressureCollector {
    pub fn new(cgroups: Cgroups) -> Self {
        let (pods, reader) = (KeptPods::default(), Reader::default());
        Self { reader, cgroups, pods, is_supported: None, has_started: false }
    }

    /// Takes the pods that there are now.
    pub fn set_pods(&mut self, pods: &[Arc<Pod>]) {
        let cgroups = &self.cgroups;
        let files = |cgroup: &CgroupPath| PressureFiles::new(cgroups, cgroup);
        self.pods.set(pods, |_, container| container.is_running(), files, files);
    }

    /// Takes a sample of each pod and container; none on a kernel without pressure files.
    pub fn collect(&mut self, time: Time<'_>, store: &mut Store) {
        let Self { cgroups, is_supported, .. } = self;
        // A kernel that has pressure files has them all, in each cgroup.
        if !*is_supported.get_or_insert_with(|| cgroups.supports(&cgroups.layout().kubepods(), Resource::CpuPressure)) {
            return;
        }
        self.reader.begin();
        for kept in self.pods.iter_mut() {
            kept.kept.read(&mut self.reader, Subject::Pod(&kept.pod.uid), time, store);
            for container in &mut kept.containers {
                container.kept.read(&mut self.reader, Subject::Container(&container.id), time, store);
            }
        }
        self.has_started = true;
        self.reader.end();
    }

    /// The youngest readings, pods before their containers.
    pub fn readings(&self) -> impl Iterator<Item = PressureReading<'_>> {
        self.pods.iter().flat_map(|kept| {
            let pod = &kept.pod;
            let containers = kept.containers.iter().map(move |container| PressureReading {
                pod,
                container: Some((&container.id, &container.name)),
                of: &container.kept.last,
            });
            [PressureReading { pod, container: None, of: &kept.kept.last }].into_iter().chain(containers)
        })
    }

    /// Whether there was a round.
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    pub fn activity(&self) -> Activity {
        if self.is_supported == Some(false) {
            return Activity::Degraded {
                reason: "this kernel has no cpu.pressure in the cgroup of all pods".into(),
                remedy: "boot with psi=1 and cgroup v2, or on cgroup v1 use a kernel with psi_v1=1",
            };
        }
        self.reader.activity()
    }
}

impl PressureFiles {
    fn new(cgroups: &Cgroups, cgroup: &CgroupPath) -> Self {
        Self { files: RESOURCES.map(|(_, resource)| file(cgroups, cgroup, resource.of_cgroup())), last: [None; 3] }
    }

    fn read(&mut self, reader: &mut Reader, subject: Subject<'_>, time: Time<'_>, store: &mut Store) {
        for ((file, last), (of, resource)) in self.files.iter_mut().zip(&mut self.last).zip(RESOURCES) {
            *last = reader.of_cgroup(file, |text| Pressure::parse(resource, text));
            let Some(pressure) = last else { continue };
            let now = time();
            // Kernels before 5.13 do not know how long all tasks waited for the CPU: that is 0.
            let full = pressure.full.map_or(0.0, |full| full.avg10_percent);
            store.append(subject, Measure::Pressure(of, PressureDegree::Some), now, pressure.some.avg10_percent);
            store.append(subject, Measure::Pressure(of, PressureDegree::Full), now, full);
        }
    }
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::Version;

    use super::*;
    use crate::collect::tree::{Tree, at, last, pods};

    const SOME: &str = "some avg10=1.50 avg60=0.50 avg300=0.25 total=100\n";
    const FULL: &str = "full avg10=0.75 avg60=0.00 avg300=0.00 total=10\n";

    #[test]
    fn a_kernel_that_does_not_know_full_pressure_of_the_cpu_gives_zero() {
        let (tree, mut store) = (Tree::new(Version::V1), Store::default());
        let pods = pods(tree.layout, &["a LS Burstable {}"]);
        let container = pods[0].containers[0].cgroup.clone().unwrap();
        tree.cgroup(&tree.layout.kubepods(), Resource::CpuPressure, SOME);
        for (cgroup, cpu) in [(&pods[0].cgroup, SOME.to_owned()), (&container, format!("{SOME}{FULL}"))] {
            tree.cgroup(cgroup, Resource::CpuPressure, &cpu);
            tree.cgroup(cgroup, Resource::MemoryPressure, &format!("{SOME}{FULL}"));
        }
        let mut collector = PressureCollector::new(tree.cgroups());
        collector.set_pods(&pods);
        collector.collect(&|| at(1), &mut store);
        let pressure = |subject, of, degree| last(&store, subject, Measure::Pressure(of, degree), 1);
        let (pod, container) = (Subject::Pod("a"), Subject::Container("containerd://a"));
        assert_eq!(pressure(pod, PressureOf::Cpu, PressureDegree::Some), Some(1.5));
        assert_eq!(pressure(pod, PressureOf::Cpu, PressureDegree::Full), Some(0.0));
        assert_eq!(pressure(container, PressureOf::Cpu, PressureDegree::Full), Some(0.75));
        assert_eq!(pressure(pod, PressureOf::Memory, PressureDegree::Full), Some(0.75));
        assert_eq!(pressure(pod, PressureOf::Io, PressureDegree::Some), None);
        let full = collector.readings().map(|reading| reading.of[0].is_some_and(|cpu| cpu.full.is_some()));
        assert_eq!(full.collect::<Vec<_>>(), [false, true]);
        assert_eq!(collector.activity(), Activity::Active);
    }

    #[test]
    fn a_kernel_without_pressure_files_is_named() {
        let tree = Tree::new(Version::V1);
        let mut collector = PressureCollector::new(tree.cgroups());
        collector.set_pods(&pods(tree.layout, &["a LS Burstable {}"]));
        collector.collect(&|| at(1), &mut Store::default());
        assert!(!collector.has_started() && matches!(collector.activity(), Activity::Degraded { .. }));
    }
}
