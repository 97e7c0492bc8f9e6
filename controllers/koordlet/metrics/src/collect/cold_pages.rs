//! Page cache that was not used for a while, on kernels with kidled.

use std::{io, path::PathBuf, sync::Arc};

use koord_koordlet_framework::{Pod, host_application_cgroup};
use koord_koordlet_system::{
    CgroupPath, Cgroups, KeptFile, Kernel as _, MemInfo, MemoryStat, Resource, Roots, Version, Writer,
    parse_cold_page_bytes,
};
use koord_types::node_slo::HostApplicationSpec;

use super::{
    kept_pods::KeptPods,
    pod_resource::file,
    reader::{Activity, Reader, Time},
};
use crate::store::{Measure, Store, Subject};

/// Reads `memory.idle_page_stats` of the node, of pods and of host applications, on cgroup v1.
///
/// Cold = Σ bytes of the rows cfei, dfei, cfui and dfui from the sixth age on. Hot usage = usage with the page cache − cold, not below 0; both are read one after
/// the other.
#[derive(Debug)]
pub struct ColdPageCollector {
    reader: Reader,
    cgroups: Cgroups,
    version: Version,
    kidled: PathBuf,
    node_cold: KeptFile,
    node_memory: KeptFile,
    pods: KeptPods<ColdFiles, ()>,
    applications: Vec<(Arc<str>, ColdFiles)>,
    /// Whether the kernel looks for idle pages since the agent has turned that on.
    is_set_up: bool,
    has_started: bool,
}

#[derive(Debug)]
struct ColdFiles {
    cold: KeptFile,
    memory: KeptFile,
}

/// Files of kidled, and what is written into them.
const SETTINGS: [(&str, &str); 2] = [("scan_period_in_seconds", "5"), ("use_hierarchy", "1")];

impl ColdPageCollector {
    pub fn new(roots: &Roots, cgroups: Cgroups) -> Self {
        Self {
            reader: Reader::default(),
            version: cgroups.layout().version,
            kidled: roots.sys.join("kernel/mm/kidled"),
            node_cold: file(&cgroups, &CgroupPath::root(), Resource::MemoryIdlePageStats),
            node_memory: KeptFile::new(roots.proc.join("meminfo")),
            pods: KeptPods::default(),
            applications: Vec::new(),
            is_set_up: false,
            has_started: false,
            cgroups,
        }
    }

    /// Makes the kernel look for idle pages every five seconds, of a group with those below it.
    ///
    /// # Errors
    ///
    /// The kernel has no kidled, or refuses. Nothing is collected then.
    pub fn set_up(&mut self, writer: &mut dyn Writer) -> io::Result<()> {
        self.is_set_up = false;
        if self.version == Version::V2 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "cgroup v2 has no memory.idle_page_stats"));
        }
        for (name, value) in SETTINGS {
            writer.write(&self.kidled.join(name), value)?;
        }
        self.is_set_up = true;
        Ok(())
    }

    /// Takes the pods that there are now.
    pub fn set_pods(&mut self, pods: &[Arc<Pod>]) {
        let cgroups = &self.cgroups;
        self.pods.set(pods, |_, _| false, |cgroup| ColdFiles::new(cgroups, cgroup), |_| ());
    }

    /// Takes the host applications that there are now.
    pub fn set_applications(&mut self, applications: &[HostApplicationSpec]) {
        let layout = self.cgroups.layout();
        let files = |spec: &HostApplicationSpec| {
            let cgroup = host_application_cgroup(layout, spec).ok()?;
            Some((spec.name.as_str().into(), ColdFiles::new(&self.cgroups, &cgroup)))
        };
        self.applications = applications.iter().filter_map(files).collect();
    }

    /// Takes a sample, unless the kernel cannot give one.
    pub fn collect(&mut self, time: Time<'_>, store: &mut Store) {
        if !self.is_set_up {
            return;
        }
        let Self { reader, version, .. } = self;
        reader.begin();
        let cold = reader.required(&mut self.node_cold, parse_cold_page_bytes);
        let usage =
            reader.required(&mut self.node_memory, |text| Ok(MemInfo::parse(text)?.used_with_page_cache_bytes()));
        append(store, Subject::Node, cold, usage, time);
        for kept in self.pods.iter_mut() {
            let (cold, usage) = kept.kept.read(reader, *version);
            append(store, Subject::Pod(&kept.pod.uid), cold, usage, time);
        }
        for (name, files) in &mut self.applications {
            let (cold, usage) = files.read(reader, *version);
            append(store, Subject::HostApplication(name), cold, usage, time);
        }
        self.has_started |= cold.is_some();
        reader.end();
    }

    /// Whether there was a sample of the node.
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    pub fn activity(&self) -> Activity {
        if self.is_set_up {
            return self.reader.activity();
        }
        Activity::Degraded {
            reason: format!("{} cannot be set up: this kernel has no kidled", self.kidled.display()).into(),
            remedy: "use a kernel with kidled and cgroup v1, or turn ColdPageCollector off; memory is reported without page cache",
        }
    }
}

impl ColdFiles {
    fn new(cgroups: &Cgroups, cgroup: &CgroupPath) -> Self {
        Self {
            cold: file(cgroups, cgroup, Resource::MemoryIdlePageStats),
            memory: file(cgroups, cgroup, Resource::MemoryStat),
        }
    }

    fn read(&mut self, reader: &mut Reader, version: Version) -> (Option<u64>, Option<u64>) {
        let cold = reader.of_cgroup(&mut self.cold, parse_cold_page_bytes);
        let usage = |text: &[u8]| Ok(MemoryStat::parse(version, text)?.used_with_page_cache_bytes());
        let usage = cold.and_then(|_| reader.of_cgroup(&mut self.memory, usage));
        (cold, usage)
    }
}

fn append(store: &mut Store, subject: Subject<'_>, cold: Option<u64>, usage: Option<u64>, time: Time<'_>) {
    let (Some(cold), Some(usage)) = (cold, usage) else { return };
    let now = time();
    store.append(subject, Measure::ColdPages, now, cold as f64);
    store.append(subject, Measure::MemoryWithHotPages, now, usage.saturating_sub(cold) as f64);
}

#[cfg(test)]
mod tests {
    use koord_koordlet_system::{KernelWriter, ObservingWriter};

    use super::*;
    use crate::collect::tree::{Tree, at, last, pods};

    /// 114688 cold bytes, as in the recorded case `nodemetric-cold-page`.
    fn idle_page_stats() -> String {
        let comments = "# kidled\n".repeat(13);
        let zero = |name: &str| format!("{name} 0 0 0 0 0 0 0 0\n");
        let rows = [
            zero("csei"),
            zero("dsei"),
            "cfei 100 200 300 400 500 4096 8192 16384\n".to_owned(),
            "dfei 200 400 600 800 1000 8192 16384 32768\n".to_owned(),
            zero("csui"),
            zero("dsui"),
            "cfui 100 200 300 400 500 4096 8192 16384\n".to_owned(),
            zero("dfui"),
        ];
        comments + &rows.concat() + &(0..10).map(|row| zero(&format!("x{row}"))).collect::<String>()
    }

    #[test]
    fn hot_usage_is_what_is_not_cold() {
        let (tree, mut store) = (Tree::new(Version::V1), Store::default());
        let pods = pods(tree.layout, &["a LS Burstable {}", "b LS Burstable {}"]);
        let mut collector = ColdPageCollector::new(&tree.roots(), tree.cgroups());
        collector.set_pods(&pods);
        tree.node(0, 10);
        collector.collect(&|| at(1), &mut store);
        assert!(!collector.has_started() && matches!(collector.activity(), Activity::Degraded { .. }));
        assert!(collector.set_up(&mut KernelWriter).is_err(), "no kidled");
        for (name, _) in SETTINGS {
            tree.write(&format!("sys/kernel/mm/kidled/{name}"), "0\n");
        }
        assert!(collector.set_up(&mut ObservingWriter).is_err());
        collector.set_up(&mut KernelWriter).unwrap();
        assert_eq!(
            std::fs::read_to_string(tree.path().join("sys/kernel/mm/kidled/scan_period_in_seconds")).unwrap(),
            "5"
        );
        for cgroup in [&CgroupPath::root(), &pods[0].cgroup, &pods[1].cgroup] {
            tree.cgroup(cgroup, Resource::MemoryIdlePageStats, &idle_page_stats());
        }
        tree.memory(&pods[0].cgroup, 100, 0);
        tree.memory(&pods[1].cgroup, 0, 0);
        collector.collect(&|| at(2), &mut store);
        for (subject, hot) in [
            (Subject::Node, (8_u64 << 30) - 114_688),
            (Subject::Pod("a"), (100 << 20) - 114_688),
            (Subject::Pod("b"), 0),
        ] {
            assert_eq!(last(&store, subject, Measure::ColdPages, 2), Some(114_688.0));
            assert_eq!(last(&store, subject, Measure::MemoryWithHotPages, 2), Some(hot as f64), "{subject:?}");
        }
        assert_eq!((collector.has_started(), collector.activity()), (true, Activity::Active));
    }
}
