//! Counters that move with the virtual time: CPU time in use, and throttled periods.
//!
//! All arithmetic is exact: a rate is an integer of billionths, and a counter is what has passed at each rate, rounded down once when it is written.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{File, OpenOptions},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    case::Case,
    names::{Names, qos_class, text},
};

/// Billionths in one.
const NANO: u128 = 1_000_000_000;
/// Billionths of a core, times nanoseconds: one core in use for one second.
const CORE_SECOND: u128 = NANO * NANO;
/// What `/proc/stat` shows of each CPU at the start, in ticks of 10 ms.
const TICKS: u128 = 1_000_000;

/// The counters of a node.
#[derive(Debug)]
pub struct Counters {
    root: PathBuf,
    is_v2: bool,
    cpus: u128,
    throttled: BTreeMap<String, u128>,
    by_file: BTreeMap<String, Counter>,
    now: Duration,
}

#[derive(Debug)]
struct Counter {
    file: Option<File>,
    form: Form,
    /// Billionths of a core.
    rate: u128,
    /// Billionths of a core, times nanoseconds.
    used: u128,
    since: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    /// `/proc/stat`.
    Stat { cpus: u128 },
    /// `cpuacct.usage`.
    Usage,
    /// `cpu.stat` of v1, with the throttled share of periods in billionths.
    ThrottledV1(u128),
    /// `cpu.stat` of v2.
    StatV2(u128),
}

impl Counters {
    /// The counters of a case before the start; nothing is written yet.
    pub fn of(case: &Case, names: &Names, root: &Path, cpus: u64) -> Self {
        let folder = |key: &str| match key.strip_prefix("container/").and_then(|key| key.split_once('/')) {
            Some((pod, container)) => names.container_named(pod, container),
            None => names.fill(key),
        };
        let throttled = case.throttle.iter().map(|(key, share)| (folder(key), billionths(*share))).collect();
        let is_v2 = case.is_v2();
        let mut counters = Self {
            root: root.to_owned(),
            is_v2,
            cpus: cpus.into(),
            throttled,
            by_file: BTreeMap::new(),
            now: Duration::ZERO,
        };
        let mut usage = BTreeMap::from([("node".to_owned(), 1.0)]);
        usage.extend(case.cpu.iter().map(|(key, cores)| (key.clone(), *cores)));
        counters.set(names, &usage);
        counters
    }

    /// Sets cores in use, as [`Case::cpu`] names them. The folder of BestEffort pods uses what these pods use; other counters keep their rate.
    pub fn set(&mut self, names: &Names, usage: &BTreeMap<String, f64>) {
        let mut wanted: BTreeMap<String, u128> = BTreeMap::new();
        let mut best_effort = 0;
        for (key, cores) in usage {
            let rate = billionths(*cores);
            if let Some(name) = key.strip_prefix("pod/") {
                let pod = names.find(name);
                wanted.insert(format!("cgroup:{}", names.pod(pod)), rate);
                if qos_class(pod) == "BestEffort" {
                    best_effort += rate;
                }
                let first = text(pod, "/status/containerStatuses/0/containerID");
                if !first.is_empty() && !usage.keys().any(|key| key.starts_with(&format!("container/{name}/"))) {
                    wanted.insert(format!("cgroup:{}", names.container(pod, first)), rate);
                }
            } else if let Some((pod, container)) = key.strip_prefix("container/").and_then(|key| key.split_once('/')) {
                wanted.insert(format!("cgroup:{}", names.container_named(pod, container)), rate);
            } else if let Some(folder) = key.strip_prefix("cgroup/") {
                wanted.insert(format!("cgroup:{}", names.fill(folder)), rate);
            } else if key == "node" {
                wanted.insert(key.clone(), rate);
            }
        }
        wanted.entry(format!("cgroup:{}", names.qos("BestEffort"))).or_insert(best_effort);
        for (key, rate) in wanted {
            self.add(key, rate);
        }
        let throttled: Vec<(String, u128)> =
            self.throttled.iter().map(|(folder, share)| (folder.clone(), *share)).collect();
        for (folder, share) in throttled {
            if !self.is_v2 {
                let path = self.root.join("cgroup/cpu").join(&folder).join("cpu.stat");
                let since = self.now;
                let counter = || Counter::new(&path, Form::ThrottledV1(share), NANO, since);
                self.by_file.entry(format!("throttled:{folder}")).or_insert_with(counter);
            } else if !self.by_file.contains_key(&format!("cgroup:{folder}")) {
                self.add(format!("cgroup:{folder}"), 0);
            }
        }
    }

    fn add(&mut self, key: String, rate: u128) {
        if let Some(counter) = self.by_file.get_mut(&key) {
            counter.rate = rate;
            return;
        }
        let cgroups = self.root.join("cgroup");
        let counter = match key.strip_prefix("cgroup:") {
            None => Counter::new(&self.root.join("proc/stat"), Form::Stat { cpus: self.cpus }, rate, self.now),
            Some(folder) if self.is_v2 => {
                let share = self.throttled.get(folder).copied().unwrap_or_default();
                Counter::new(&cgroups.join(folder).join("cpu.stat"), Form::StatV2(share), rate, self.now)
            }
            Some(folder) => {
                Counter::new(&cgroups.join("cpuacct").join(folder).join("cpuacct.usage"), Form::Usage, rate, self.now)
            }
        };
        self.by_file.insert(key, counter);
    }

    /// Writes all counters as they are at a time since the start.
    pub fn advance(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.now).as_nanos();
        self.now = now;
        for counter in self.by_file.values_mut() {
            counter.used += passed * counter.rate;
            counter.write(now);
        }
    }
}

impl Counter {
    /// A file that is not there is not counted.
    fn new(path: &Path, form: Form, rate: u128, since: Duration) -> Self {
        Self { file: OpenOptions::new().write(true).open(path).ok(), form, rate, used: 0, since }
    }

    fn write(&self, now: Duration) {
        let Some(file) = &self.file else { return };
        let text = self.text(now);
        file.write_all_at(text.as_bytes(), 0).unwrap();
        file.set_len(text.len() as u64).unwrap();
    }

    fn text(&self, now: Duration) -> String {
        let used = self.used;
        match self.form {
            Form::Usage => format!("{}\n", 1_000_000_000_000 + used / NANO),
            Form::ThrottledV1(share) => format!(
                "nr_periods {}\nnr_throttled {}\nthrottled_time {}\n",
                1000 + used * 10 / CORE_SECOND,
                1000 + used * 10 * share / (CORE_SECOND * NANO),
                1_000_000_000 + used * 1_000_000 / CORE_SECOND,
            ),
            Form::StatV2(share) => {
                let usage = 1_000_000_000 + used / (NANO * 1000);
                let passed = now.saturating_sub(self.since).as_nanos();
                format!(
                    "usage_usec {usage}\nuser_usec {usage}\nsystem_usec 1000000\nnr_periods {}\nnr_throttled {}\nthrottled_usec {}\nnr_bursts 0\nburst_usec 0\n",
                    1000 + passed * 10 / NANO,
                    1000 + passed * 10 * share / CORE_SECOND,
                    1_000_000 + passed * 1000 / NANO,
                )
            }
            Form::Stat { cpus } => stat(cpus, used * 100 / CORE_SECOND / cpus.max(1)),
        }
    }
}

/// `/proc/stat` after this many ticks of each CPU.
fn stat(cpus: u128, ticks: u128) -> String {
    let mut lines = format!("cpu  {} 0 {TICKS} {} 0 0 0 0 0 0\n", (TICKS + ticks) * cpus, TICKS * cpus * 10);
    for cpu in 0..cpus {
        _ = writeln!(lines, "cpu{cpu} {} 0 {} {} 0 0 0 0 0 0", TICKS + ticks, TICKS / cpus, TICKS * 10);
    }
    lines + "intr 0\nctxt 0\nbtime 1700000000\nprocesses 1000\nprocs_running 1\nprocs_blocked 0\n"
}

/// Cores or shares in billionths.
fn billionths(amount: f64) -> u128 {
    (amount * NANO as f64).round() as u128
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn case(version: &str) -> Case {
        let text = format!(
            r#"{{"cgroup": "{version}", "cpu": {{"node": 3.3, "pod/be": 0.3, "cgroup/app": 1}}, "throttle": {{"app": 0.5}}, "pods": [
                {{"metadata": {{"name": "be", "uid": "u"}}, "status": {{"qosClass": "BestEffort", "containerStatuses": [{{"name": "c", "containerID": "containerd://1"}}]}}}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_third_of_a_core_moves_exactly_however_often_it_is_written() {
        let (case, root) = (case("v1"), tempfile::tempdir().unwrap());
        let names = Names::of(&case);
        let pod = "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podu.slice";
        let usage = |folder: &str| root.path().join("cgroup/cpuacct").join(folder).join("cpuacct.usage");
        for folder in [pod, "app", "kubepods.slice/kubepods-besteffort.slice"] {
            fs::create_dir_all(root.path().join("cgroup/cpuacct").join(folder)).unwrap();
            fs::write(usage(folder), "").unwrap();
        }
        fs::create_dir_all(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/stat"), "long".repeat(500)).unwrap();
        fs::create_dir_all(root.path().join("cgroup/cpu/app")).unwrap();
        fs::write(root.path().join("cgroup/cpu/app/cpu.stat"), "").unwrap();
        let mut counters = Counters::of(&case, &names, root.path(), 4);
        for step in 0..=3000 {
            counters.advance(Duration::from_nanos(3_333_333 * step + 1));
        }
        counters.advance(Duration::from_secs(10));
        let read = |path: PathBuf| fs::read_to_string(path).unwrap();
        assert_eq!(read(usage(pod)), "1003000000000\n");
        assert_eq!(read(usage("kubepods.slice/kubepods-besteffort.slice")), "1003000000000\n");
        assert_eq!(read(usage("app")), "1010000000000\n");
        // 33 core seconds are 3300 ticks, 825 of each of four CPUs.
        assert!(
            read(root.path().join("proc/stat"))
                .starts_with("cpu  4003300 0 1000000 40000000 0 0 0 0 0 0\ncpu0 1000825 0 ")
        );
        assert!(read(root.path().join("proc/stat")).ends_with("procs_blocked 0\n"));
        assert_eq!(
            read(root.path().join("cgroup/cpu/app/cpu.stat")),
            "nr_periods 1100\nnr_throttled 1050\nthrottled_time 1010000000\n"
        );
        // A rate that is not named again keeps, except that of the folder of BestEffort pods, which is their sum.
        counters.set(&names, &BTreeMap::from([("cgroup/app".to_owned(), 0.0)]));
        counters.advance(Duration::from_secs(20));
        assert_eq!(read(usage(pod)), "1006000000000\n");
        assert_eq!(read(usage("kubepods.slice/kubepods-besteffort.slice")), "1003000000000\n");
        assert_eq!(read(usage("app")), "1010000000000\n");
    }

    #[test]
    fn the_unified_hierarchy_has_usage_and_throttling_in_one_file() {
        let (case, root) = (case("v2"), tempfile::tempdir().unwrap());
        let path = root.path().join("cgroup/app/cpu.stat");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        let mut counters = Counters::of(&case, &Names::of(&case), root.path(), 4);
        counters.advance(Duration::from_secs(2));
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "usage_usec 1002000000\nuser_usec 1002000000\nsystem_usec 1000000\nnr_periods 1020\nnr_throttled 1010\nthrottled_usec 1002000\nnr_bursts 0\nburst_usec 0\n"
        );
    }
}
