//! A node as files, for tests of collectors.

use std::{fs, path::Path, sync::Arc, time::Duration};

use koord_core::clock::Moment;
use koord_koordlet_framework::{Pod, PodReader};
use koord_koordlet_system::{CgroupPath, Cgroups, Driver, Layout, Resource, Roots, Version};

use crate::store::{Measure, Store, Subject};

/// A folder with the trees of a node.
pub(crate) struct Tree {
    folder: tempfile::TempDir,
    pub(crate) layout: Layout,
}

impl Tree {
    pub(crate) fn new(version: Version) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), layout: Layout::new(version, Driver::Systemd) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn roots(&self) -> Roots {
        let path = |name: &str| self.path().join(name);
        Roots {
            cgroup: path("cgroup"),
            proc: path("proc"),
            sys: path("sys"),
            sys_fs: path("sysfs"),
            var_run: path("var-run"),
            run: path("run"),
            kubelet: path("kubelet"),
        }
    }

    pub(crate) fn cgroups(&self) -> Cgroups {
        Cgroups::new(self.roots().cgroup, self.layout)
    }

    /// Writes a file below the root, with the folders above it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a file of a cgroup.
    pub(crate) fn cgroup(&self, cgroup: &CgroupPath, resource: Resource, text: &str) {
        let path = self.cgroups().path_to_read(cgroup, resource).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn cpu_usage(&self, cgroup: &CgroupPath, usage_ms: u64, periods: u64, throttled: u64) {
        match self.layout.version {
            Version::V1 => {
                self.cgroup(cgroup, Resource::CpuUsage, &format!("{}\n", usage_ms * 1_000_000));
                let text = format!("nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time 0\n");
                self.cgroup(cgroup, Resource::CpuStat, &text);
            }
            Version::V2 => {
                let usage_us = usage_ms * 1000;
                let text = format!(
                    "usage_usec {usage_us}\nuser_usec 0\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec 0\n"
                );
                self.cgroup(cgroup, Resource::CpuStat, &text);
            }
        }
    }

    /// A group with anonymous memory and page cache, each in MiB.
    pub(crate) fn memory(&self, cgroup: &CgroupPath, anonymous_mib: u64, file_mib: u64) {
        let (anonymous, file) = (anonymous_mib << 20, file_mib << 20);
        self.cgroup(cgroup, Resource::MemoryStat, &match self.layout.version {
            Version::V1 => format!(
                "cache 1\ntotal_cache {file}\ntotal_rss {anonymous}\ntotal_inactive_anon 0\ntotal_active_anon {anonymous}\n\
                 total_inactive_file {file}\ntotal_active_file 0\ntotal_unevictable 0\n"
            ),
            Version::V2 => format!(
                "anon {anonymous}\nfile {file}\ninactive_anon 0\nactive_anon {anonymous}\ninactive_file {file}\n\
                 active_file 0\nunevictable 0\n"
            ),
        });
    }

    pub(crate) fn node(&self, ticks: u64, available_gib: u64) {
        let half = ticks / 2;
        self.write(
            "proc/stat",
            &format!(
                "cpu {ticks} 0 0 999 5 0 0 7\ncpu0 {half} 0 0 0 0 0 0 0\ncpu1 {half} 0 0 0 0 0 0 0\nintr 1 2 3\nctxt 5\n"
            ),
        );
        let (total, free, available) = (16 << 20, 8 << 20, available_gib << 20);
        self.write(
            "proc/meminfo",
            &format!("MemTotal: {total} kB\nMemFree: {free} kB\nMemAvailable: {available} kB\n"),
        );
        for node in 0..2 {
            let total = 8 << 20;
            let used = 4 << 20;
            self.write(
                &format!("sys/bus/node/devices/node{node}/meminfo"),
                &format!(
                    "Node {node} MemTotal: {total} kB\nNode {node} MemFree: {used} kB\nNode {node} Active(file): 0 kB\n\
                     Node {node} Inactive(file): 0 kB\nNode {node} SReclaimable: 0 kB\n"
                ),
            );
        }
    }
}

/// A pod of each line: `NAME QOS_LABEL KUBERNETES_QOS RESOURCES`, the resources of its one container as JSON without blanks.
pub(crate) fn pods(layout: Layout, lines: &[&str]) -> Vec<Arc<Pod>> {
    pods_of(layout, lines, 1)
}

/// The same, on a node with cgroup v2.
pub(crate) fn plain_pods(lines: &[&str]) -> Vec<Arc<Pod>> {
    pods(Layout::new(Version::V2, Driver::Systemd), lines)
}

/// The same, with this many equal containers in each.
pub(crate) fn pods_of(layout: Layout, lines: &[&str], containers: usize) -> Vec<Arc<Pod>> {
    let items = lines.iter().map(|line| {
        let mut fields = line.split(' ');
        let [name, qos, class, resources] = std::array::from_fn(|_| fields.next().unwrap_or("{}"));
        let each = |text: &dyn Fn(&str) -> String| {
            let suffixes = (0..containers).map(|container| if container == 0 { String::new() } else { format!("-{container}") });
            suffixes.map(|suffix| text(&suffix)).collect::<Vec<_>>().join(",")
        };
        let specs = each(&|suffix| format!(r#"{{"name":"main{suffix}","resources":{resources}}}"#));
        let statuses = each(&|suffix| {
            format!(r#"{{"name":"main{suffix}","containerID":"containerd://{name}{suffix}","state":{{"running":{{}}}}}}"#)
        });
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"shop","uid":"{name}","creationTimestamp":"2025-01-01T00:00:00Z",
            "labels":{{"koordinator.sh/qosClass":"{qos}"}}}},"spec":{{"containers":[{specs}]}},
            "status":{{"phase":"Running","qosClass":"{class}","containerStatuses":[{statuses}]}}}}"#
        )
    });
    let text = format!(r#"{{"items":[{}]}}"#, items.collect::<Vec<_>>().join(","));
    PodReader::default().read(text.as_bytes(), layout).unwrap().pods
}

pub(crate) fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

/// The youngest value of a series that was taken within the last second.
pub(crate) fn last(store: &Store, subject: Subject<'_>, measure: Measure, now: u64) -> Option<f64> {
    store.last(subject, measure, at(now), Duration::from_millis(999)).map(|sample| sample.value)
}
