//! CPU and memory of applications that run outside of pods.

use std::{path::Path, sync::Arc};

use koord_core::clock::Moment;
use koord_koordlet_system::{
    CgroupPath, Cgroups, KeptFile, Kernel as _, Layout, MemoryStat, QosFolder, Resource, Version, parse_counter,
    parse_cpu_usage_v2_ns,
};
use koord_types::{
    node_slo::{CgroupBase, HostApplicationSpec},
    qos::QosClass,
};

use super::{
    node_resource::NodeUsage,
    pod_resource::{cpus, file},
    reader::{Activity, Reader, Time},
};
use crate::store::{Measure, Store, Subject};

/// Reads the cgroups of the applications that the NodeSLO names. A sample needs CPU time, `memory.stat` and memory usage, and a reading of the CPU time before.
#[derive(Debug)]
pub struct HostApplicationCollector {
    reader: Reader,
    cgroups: Cgroups,
    version: Version,
    /// `None` without a NodeSLO.
    applications: Option<Vec<ApplicationFiles>>,
    usage: Option<NodeUsage>,
}

#[derive(Debug)]
struct ApplicationFiles {
    name: Arc<str>,
    cgroup: CgroupPath,
    cpu: KeptFile,
    memory: KeptFile,
    memory_usage: KeptFile,
    cpu_before: Option<(Moment, u64)>,
}

impl HostApplicationCollector {
    pub fn new(cgroups: Cgroups) -> Self {
        let version = cgroups.layout().version;
        Self { reader: Reader::default(), cgroups, version, applications: None, usage: None }
    }

    /// Whether the applications are known: there is a NodeSLO.
    pub fn is_set(&self) -> bool {
        self.applications.is_some()
    }

    /// Takes the applications that there are now; `None` without a NodeSLO: nothing is collected then. Applications whose cgroup would be outside of the tree
    /// of cgroups are left out.
    pub fn set_applications(&mut self, applications: Option<&[HostApplicationSpec]>) {
        let mut old = self.applications.take().unwrap_or_default();
        let layout = self.cgroups.layout();
        let kept = |spec: &HostApplicationSpec| {
            let cgroup = host_application_cgroup(layout, spec)?;
            let same = old.iter().position(|old| *old.name == *spec.name && old.cgroup == cgroup);
            Some(match same {
                Some(at) => old.swap_remove(at),
                None => ApplicationFiles::new(&self.cgroups, &spec.name, cgroup),
            })
        };
        self.applications = applications.map(|applications| applications.iter().filter_map(kept).collect());
        if self.applications.is_none() {
            self.usage = None;
        }
    }

    /// Takes a sample of each application.
    pub fn collect(&mut self, time: Time<'_>, store: &mut Store) {
        let Some(applications) = &mut self.applications else { return };
        self.reader.begin();
        let (mut cpu_sum, mut memory_sum) = (0.0, 0.0);
        for application in applications {
            let Some(sample) = application.read(&mut self.reader, self.version, time) else { continue };
            let subject = Subject::HostApplication(&application.name);
            cpu_sum += sample.cpu;
            memory_sum += sample.memory;
            store.append(subject, Measure::Cpu, sample.at, sample.cpu);
            store.append(subject, Measure::Memory, sample.at, sample.memory);
            store.append(subject, Measure::MemoryWithPageCache, sample.at, sample.memory_with_page_cache);
        }
        self.usage = Some(NodeUsage { at: time(), cpu: cpu_sum, memory: memory_sum });
        self.reader.end();
    }

    /// The sum of the last round.
    pub fn usage(&self) -> Option<NodeUsage> {
        self.usage
    }

    /// Whether there was a round.
    pub fn has_started(&self) -> bool {
        self.usage.is_some()
    }

    pub fn activity(&self) -> Activity {
        match self.applications {
            Some(_) => self.reader.activity(),
            None => Activity::Degraded {
                reason: "this node has no NodeSLO, which names its host applications".into(),
                remedy: "check that the manager runs and makes a NodeSLO for this node",
            },
        }
    }
}

struct ApplicationSample {
    at: Moment,
    cpu: f64,
    memory: f64,
    memory_with_page_cache: f64,
}

impl ApplicationFiles {
    fn new(cgroups: &Cgroups, name: &str, cgroup: CgroupPath) -> Self {
        Self {
            name: name.into(),
            cpu: file(cgroups, &cgroup, Resource::CpuUsage),
            memory: file(cgroups, &cgroup, Resource::MemoryStat),
            memory_usage: file(cgroups, &cgroup, Resource::MemoryUsage),
            cpu_before: None,
            cgroup,
        }
    }

    fn read(&mut self, reader: &mut Reader, version: Version, time: Time<'_>) -> Option<ApplicationSample> {
        let usage_ns = reader.of_cgroup(&mut self.cpu, |text| match version {
            Version::V1 => parse_counter("cpuacct.usage", text),
            Version::V2 => parse_cpu_usage_v2_ns(text),
        })?;
        let at = time();
        let memory = reader.of_cgroup(&mut self.memory, |text| MemoryStat::parse(version, text))?;
        let usage = reader.of_cgroup(&mut self.memory_usage, |text| parse_counter("memory usage", text))?;
        let (before_at, before) = self.cpu_before.replace((at, usage_ns))?;
        Some(ApplicationSample {
            at,
            cpu: cpus(at, usage_ns, before_at, before)?,
            memory: memory.used_bytes() as f64,
            memory_with_page_cache: usage as f64,
        })
    }
}

/// The cgroup of an application: where its path says, else `host-latency-sensitive/NAME` for LSE, LSR and LS, `host-best-effort/NAME` for BE, and `NAME` for
/// others. `None` for a path with `..` in it, and for one that is empty.
pub fn host_application_cgroup(layout: Layout, application: &HostApplicationSpec) -> Option<CgroupPath> {
    let (base, path) = if let Some(path) = &application.cgroup_path {
        let base = match path.base {
            Some(CgroupBase::Kubepods) => layout.qos(QosFolder::Guaranteed),
            Some(CgroupBase::KubepodsBurstable) => layout.qos(QosFolder::Burstable),
            Some(CgroupBase::KubepodsBesteffort) => layout.qos(QosFolder::BestEffort),
            Some(CgroupBase::CgroupRoot | CgroupBase::Other(_)) | None => CgroupPath::root(),
        };
        (base, Path::new(path.parent_dir.trim_start_matches('/')).join(path.relative_path.trim_start_matches('/')))
    } else {
        let base = match application.qos {
            Some(QosClass::Lse | QosClass::Lsr | QosClass::Ls) => CgroupPath::new("host-latency-sensitive"),
            Some(QosClass::Be) => CgroupPath::new("host-best-effort"),
            _ => CgroupPath::root(),
        };
        (base, application.name.trim_start_matches('/').into())
    };
    let is_plain =
        path.components().all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
    let cgroup = base.child(path.to_str()?.trim_matches('/'));
    (is_plain && !cgroup.as_str().is_empty()).then_some(cgroup)
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::Driver;

    use super::*;
    use crate::{
        collect::{
            node_resource::NodeCollector,
            pod_resource::{ContainerSampling, PodCollector},
            system::SystemCollector,
            tree::{Tree, at, last, pods},
        },
        store::Store,
    };

    fn application(text: &str) -> HostApplicationSpec {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_cgroup_follows_from_the_path_or_from_the_class() {
        let layout = Layout::new(Version::V2, Driver::Cgroupfs);
        for (text, cgroup) in [
            (r#"{"name":"a","qos":"LS"}"#, Some("host-latency-sensitive/a")),
            (r#"{"name":"a","qos":"LSR"}"#, Some("host-latency-sensitive/a")),
            (r#"{"name":"a","qos":"BE"}"#, Some("host-best-effort/a")),
            (r#"{"name":"a","qos":"SYSTEM"}"#, Some("a")),
            (
                r#"{"name":"a","qos":"BE","cgroupPath":{"base":"CgroupRoot","parentDir":"x","relativePath":"y"}}"#,
                Some("x/y"),
            ),
            (
                r#"{"name":"a","cgroupPath":{"base":"KubepodsBesteffort","relativePath":"y/"}}"#,
                Some("kubepods/besteffort/y"),
            ),
            (r#"{"name":"a","cgroupPath":{"base":"Kubepods","parentDir":"/x/"}}"#, Some("kubepods/x")),
            (r#"{"name":"a","cgroupPath":{"base":"Kubepods","parentDir":"../x"}}"#, None),
            (r#"{"name":""}"#, None),
        ] {
            let found = host_application_cgroup(layout, &application(text));
            assert_eq!(found.as_ref().map(CgroupPath::as_str), cgroup, "{text}");
        }
    }

    #[test]
    fn the_system_is_the_node_without_pods_and_applications() {
        let (tree, mut store) = (Tree::new(Version::V1), Store::default());
        let pods = pods(tree.layout, &["a LS Burstable {}"]);
        let mut node = NodeCollector::new(&tree.roots(), 100, false);
        let mut of_pods = PodCollector::new(tree.cgroups(), 4096, ContainerSampling::None, false);
        let mut applications = HostApplicationCollector::new(tree.cgroups());
        let mut system = SystemCollector::new(std::time::Duration::from_secs(10));
        of_pods.set_pods(&pods);
        let app = CgroupPath::new("host-latency-sensitive/app");
        let mut round = |second: u64, applications: &mut HostApplicationCollector, store: &mut Store| {
            tree.node(second * 400, 10);
            for (cgroup, usage_ms) in [(&pods[0].cgroup, second * 1000), (&app, second * 500)] {
                tree.cpu_usage(cgroup, usage_ms, 0, 0);
                tree.memory(cgroup, 512, 4);
                tree.cgroup(cgroup, Resource::MemoryUsage, "600000000\n");
            }
            node.collect(&|| at(second), store);
            of_pods.collect(&|| at(second), store);
            applications.collect(&|| at(second), store);
            system.collect(at(second), &node, &of_pods, applications, store);
            system.activity(at(second))
        };
        round(1, &mut applications, &mut store);
        assert!(matches!(round(2, &mut applications, &mut store), Activity::Degraded { .. }), "without a NodeSLO");
        applications.set_applications(Some(&[
            application(r#"{"name":"app","qos":"LS"}"#),
            application(r#"{"name":"missing"}"#),
        ]));
        round(3, &mut applications, &mut store);
        assert_eq!(round(4, &mut applications, &mut store), Activity::Active);
        assert_eq!(last(&store, Subject::HostApplication("app"), Measure::Cpu, 4), Some(0.5));
        assert_eq!(last(&store, Subject::HostApplication("app"), Measure::MemoryWithPageCache, 4), Some(6e8));
        assert_eq!(last(&store, Subject::HostApplication("missing"), Measure::Cpu, 4), None);
        assert_eq!(last(&store, Subject::System, Measure::Cpu, 4), Some(2.5));
        assert_eq!(last(&store, Subject::System, Measure::Memory, 4), Some((5_u64 << 30) as f64));
        // More than the node uses is nothing, not less than nothing.
        tree.cpu_usage(&app, 10_000, 0, 0);
        applications.collect(&|| at(5), &mut store);
        system.collect(at(5), &node, &of_pods, &applications, &mut store);
        assert_eq!(applications.usage().unwrap().cpu, 8.0);
    }
}
