//! CPUs that BestEffort pods use, can use and request.

use std::{sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_framework::Pod;
use koord_koordlet_system::{
    CgroupPath, Cgroups, CpuMax, KeptFile, Kernel as _, QosFolder, Resource, Version, parse_counter, parse_cpu_list,
    parse_cpu_usage_v2_ns, parse_limit,
};

use super::{
    kept_pods::KeptPods,
    pod_resource::file,
    reader::{Activity, Reader, Time},
};
use crate::store::{Measure, Store, Subject};

/// Reads the group of BestEffort pods; all amounts are thousandths of CPUs.
///
/// Usage = ⌊CPU time in whole milliseconds ÷ milliseconds since the sample before × 1000⌋. Real limit = the least of the CFS quota, when there is one, and the
/// smallest set of CPUs among the group and the containers in it. Request = Σ batch-cpu of pods whose label says BE. The CPUs of the group are read each round,
/// those of containers once and then every ten seconds.
#[derive(Debug)]
pub struct BestEffortCollector {
    reader: Reader,
    cgroups: Cgroups,
    version: Version,
    usage: KeptFile,
    usage_before: Option<(Moment, u64)>,
    cpus: CpusFile,
    quota: KeptFile,
    /// Of v1; v2 has it in the file of the quota.
    period: KeptFile,
    pods: KeptPods<(), CpusFile>,
    request_milli: i64,
    has_started: bool,
}

/// A list of CPUs that is read again and again and seldom changes.
#[derive(Debug)]
struct CpusFile {
    file: KeptFile,
    text: Vec<u8>,
    /// How many CPUs the text names; 0 means that it says nothing.
    count: usize,
    due: Option<Moment>,
}

const CONTAINERS_INTERVAL: Duration = Duration::from_secs(10);

impl BestEffortCollector {
    pub fn new(cgroups: Cgroups) -> Self {
        let group = cgroups.layout().qos(QosFolder::BestEffort);
        Self {
            reader: Reader::default(),
            version: cgroups.layout().version,
            usage: file(&cgroups, &group, Resource::CpuUsage),
            usage_before: None,
            cpus: CpusFile::new(&cgroups, &group),
            quota: file(&cgroups, &group, Resource::CpuQuota),
            period: file(&cgroups, &group, Resource::CpuPeriod),
            pods: KeptPods::default(),
            request_milli: 0,
            has_started: false,
            cgroups,
        }
    }

    /// Takes the pods that there are now.
    pub fn set_pods(&mut self, pods: &[Arc<Pod>]) {
        let cgroups = &self.cgroups;
        let in_group = pods.iter().filter(|pod| pod.folder() == QosFolder::BestEffort);
        self.pods.set(in_group, |_, container| container.is_running(), |_| (), |cgroup| CpusFile::new(cgroups, cgroup));
        let requests = pods.iter().filter(|pod| pod.is_labelled_be()).map(|pod| pod.batch_cpu_request());
        self.request_milli = requests.fold(0, i64::saturating_add);
    }

    /// Takes a sample.
    pub fn collect(&mut self, time: Time<'_>, store: &mut Store) {
        self.reader.begin();
        let version = self.version;
        let usage_ns = self.reader.of_cgroup(&mut self.usage, |text| match version {
            Version::V1 => parse_counter("cpuacct.usage", text),
            Version::V2 => parse_cpu_usage_v2_ns(text),
        });
        let now = time();
        if let Some(usage_ns) = usage_ns
            && let Some((before_at, before)) = self.usage_before.replace((now, usage_ns))
            && let Some(milli) = milli_cpu(now, usage_ns, before_at, before)
        {
            store.append(Subject::BestEffort, Measure::BestEffortUsage, now, milli);
        }
        if let Some(limit_milli) = self.limit_milli(now) {
            store.append(Subject::BestEffort, Measure::BestEffortRealLimit, now, limit_milli);
        }
        store.append(Subject::BestEffort, Measure::BestEffortRequest, now, self.request_milli as f64);
        self.has_started = true;
        self.reader.end();
    }

    fn limit_milli(&mut self, now: Moment) -> Option<f64> {
        self.cpus.read(&mut self.reader);
        for container in self.pods.iter_mut().flat_map(|pod| &mut pod.containers) {
            let cpus = &mut container.kept;
            if cpus.due.is_none_or(|due| now >= due) {
                cpus.read(&mut self.reader);
                cpus.due = Some(now + CONTAINERS_INTERVAL);
            }
        }
        let containers = self.pods.iter().flat_map(|pod| &pod.containers).map(|container| container.kept.count);
        let smallest = containers.chain([self.cpus.count]).filter(|count| *count > 0).min();
        let by_cpus = smallest.map(|count| count as f64 * 1000.0);
        match (by_cpus, self.quota_milli()) {
            (Some(cpus), Some(quota)) => Some(cpus.min(quota)),
            (cpus, quota) => cpus.or(quota),
        }
    }

    /// `None` without a quota.
    fn quota_milli(&mut self) -> Option<f64> {
        let (quota_us, period_us) = match self.version {
            Version::V1 => {
                let quota = self.reader.of_cgroup(&mut self.quota, |text| parse_limit("cpu.cfs_quota_us", text));
                let period = self.reader.of_cgroup(&mut self.period, |text| parse_counter("cpu.cfs_period_us", text));
                (quota??, period?)
            }
            Version::V2 => {
                let max = self.reader.of_cgroup(&mut self.quota, CpuMax::parse)?;
                (max.quota_us?, max.period_us)
            }
        };
        quota_us.saturating_mul(1000).checked_div(period_us).map(|milli| milli as f64)
    }

    /// Whether there was a round.
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    pub fn activity(&self) -> Activity {
        self.reader.activity()
    }
}

fn milli_cpu(at: Moment, usage_ns: u64, before_at: Moment, before_ns: u64) -> Option<f64> {
    let passed_ms = at.since(before_at).as_millis();
    let used_ms = usage_ns.checked_sub(before_ns).filter(|_| passed_ms > 0)? / 1_000_000;
    Some((used_ms as f64 / passed_ms as f64 * 1000.0).floor())
}

impl CpusFile {
    fn new(cgroups: &Cgroups, cgroup: &CgroupPath) -> Self {
        Self { file: file(cgroups, cgroup, Resource::Cpuset), text: Vec::new(), count: 0, due: None }
    }

    fn read(&mut self, reader: &mut Reader) {
        let Self { file, text: known, count, .. } = self;
        let read = reader.of_cgroup(file, |text| {
            if text != known {
                *count = parse_cpu_list("cpuset.cpus", text)?.len();
                known.clear();
                known.extend_from_slice(text);
            }
            Ok(())
        });
        if read.is_none() {
            known.clear();
            *count = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::tree::{Tree, at, last, pods};

    #[test]
    fn the_real_limit_is_the_quota_or_the_smallest_set_of_cpus() {
        for (version, group, container, quota, limit) in [
            (Version::V1, "0-7", "0-7", "-1", Some(8000.0)),
            (Version::V1, "0-7", "0-3", "-1", Some(4000.0)),
            (Version::V1, "0-7", "", "250000", Some(2500.0)),
            (Version::V2, "0-7", "2,4-5", "max 100000", Some(3000.0)),
            (Version::V2, "0-7", "0-7", "150000 100000", Some(1500.0)),
            (Version::V2, "", "", "max 100000", None),
        ] {
            let (tree, mut store) = (Tree::new(version), Store::default());
            let pods = pods(tree.layout, &["a BE BestEffort {}"]);
            let be = tree.layout.qos(QosFolder::BestEffort);
            tree.cgroup(&be, Resource::Cpuset, &format!("{group}\n"));
            tree.cgroup(pods[0].containers[0].cgroup.as_ref().unwrap(), Resource::Cpuset, &format!("{container}\n"));
            tree.cgroup(&be, Resource::CpuQuota, &format!("{quota}\n"));
            if version == Version::V1 {
                tree.cgroup(&be, Resource::CpuPeriod, "100000\n");
            }
            let mut collector = BestEffortCollector::new(tree.cgroups());
            collector.set_pods(&pods);
            collector.collect(&|| at(1), &mut store);
            let read = last(&store, Subject::BestEffort, Measure::BestEffortRealLimit, 1);
            assert_eq!(read, limit, "{version:?} {group:?} {container:?} {quota:?}");
        }
    }

    #[test]
    fn usage_is_cut_to_whole_thousandths_and_requests_are_those_of_labelled_pods() {
        let (tree, mut store) = (Tree::new(Version::V1), Store::default());
        let request = r#"{"requests":{"kubernetes.io/batch-cpu":"1500"}}"#;
        let lines = [format!("a BE BestEffort {request}"), format!("b LS BestEffort {request}")];
        let mut collector = BestEffortCollector::new(tree.cgroups());
        collector.set_pods(&pods(tree.layout, &[&lines[0], &lines[1]]));
        let be = tree.layout.qos(QosFolder::BestEffort);
        for (second, ns) in [(1, 0_u64), (4, 1_000_999_999)] {
            tree.cgroup(&be, Resource::CpuUsage, &format!("{ns}\n"));
            collector.collect(&|| at(second), &mut store);
        }
        assert_eq!(last(&store, Subject::BestEffort, Measure::BestEffortUsage, 4), Some(333.0));
        assert_eq!(last(&store, Subject::BestEffort, Measure::BestEffortRequest, 4), Some(1500.0));
    }
}
