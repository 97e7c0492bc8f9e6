//! One seed: a node under faults, and what has to hold when they have stopped.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use koord_core::random::Random;
use koord_koordlet_resolver::{File, State};
use koord_koordlet_testing::Fixtures;
use serde_json::Value;

use crate::{
    kernel::Health,
    node::Machine,
    pods::{Pod, chance, disabled_slo, malformed_slo, one_of, slo},
    site::{ApiHealth, KubeletHealth, Setting, Site},
};

/// How long faults last.
const STORM_S: u64 = 60;
/// How long the agent has then: a refused value is tried again after at most a minute.
const CALM_S: u64 = 70;
/// How long the agent has for another NodeSLO.
const CHANGE_S: u64 = 25;
/// How long the samples of pods that are gone are kept, and what follows from them.
const FORGET_S: u64 = 660;
const PODS_MAX: usize = 9;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fault {
    WritesRefused,
    ReadOnly,
    DiskFull,
    KubeletDown,
    KubeletMalformed,
    KubeletEmpty,
    KubeletLate,
    ApiAway,
    ApiRefuses,
    FolderHidden,
    FileMissing,
    Garbage,
    ForeignWriter,
    Killed,
    Stopped,
    ClockJump,
    MalformedSlo,
    MissingFolder,
}

/// All of them, in the order in which they are chosen.
pub(crate) const FAULTS: [Fault; 18] = [
    Fault::WritesRefused,
    Fault::ReadOnly,
    Fault::DiskFull,
    Fault::KubeletDown,
    Fault::KubeletMalformed,
    Fault::KubeletEmpty,
    Fault::KubeletLate,
    Fault::ApiAway,
    Fault::ApiRefuses,
    Fault::FolderHidden,
    Fault::FileMissing,
    Fault::Garbage,
    Fault::ForeignWriter,
    Fault::Killed,
    Fault::Stopped,
    Fault::ClockJump,
    Fault::MalformedSlo,
    Fault::MissingFolder,
];

/// What a run was like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) faults: BTreeMap<Fault, u64>,
    pub(crate) evictions: u64,
    /// Writes that were refused, by a fault or by the kernel.
    pub(crate) refusals: u64,
    /// Files that were compared with those of another agent.
    pub(crate) compared: u64,
    pub(crate) hash: u64,
}

/// A fault that lasts, and what it takes to end it.
enum Lasting {
    Kernel,
    Kubelet,
    Api,
    Hidden(String),
    /// A file that is not what it was, with its text.
    File(String, String),
}

struct Scenario<'a> {
    fixtures: &'a Fixtures,
    random: Random,
    site: Site,
    pods: BTreeMap<String, Pod>,
    number: u64,
    lasting: Vec<(u64, Lasting)>,
    second: u64,
    slo: Value,
    /// Files that others have written.
    foreign: BTreeSet<String>,
    report: Report,
}

const GATES: [&str; 16] = [
    "BECPUSuppress",
    "BECPUEvict",
    "CPUEvict",
    "BEMemoryEvict",
    "MemoryEvict",
    "MemoryAllocatableEvict",
    "CPUAllocatableEvict",
    "CPUBurst",
    "SystemConfig",
    "CgroupReconcile",
    "PSICollector",
    "AuditEvents",
    "GroupIdentity",
    "CPUSetAllocator",
    "BatchResource",
    "CPUNormalization",
];

fn setting(random: &Random) -> Setting {
    let gates: Vec<String> = GATES.iter().map(|gate| format!("{gate}={}", chance(random, 70))).collect();
    Setting {
        machine: Machine {
            is_v2: chance(random, 50),
            is_systemd: chance(random, 50),
            is_anolis: chance(random, 40),
            is_new: chance(random, 70),
            cpus: *one_of(random, &[4, 8]),
        },
        gates: gates.join(","),
        only_evicts_by_api: chance(random, 70),
        collect_s: 1 + random.below(2),
    }
}

/// Runs a seed; the error says what is wrong, with the end of its story.
pub(crate) fn run(seed: u64, fixtures: &Fixtures, with_story: bool) -> Result<Report, String> {
    let random = Random::seeded(seed);
    let setting = setting(&random);
    let site = Site::new(&setting, fixtures, random.clone(), seed, Duration::ZERO);
    let mut scenario = Scenario {
        fixtures,
        site,
        pods: BTreeMap::new(),
        number: 0,
        lasting: Vec::new(),
        second: 0,
        slo: slo(&random),
        foreign: BTreeSet::new(),
        report: Report::default(),
        random,
    };
    let result = scenario.play(&setting, seed);
    let story = &scenario.site.story;
    if with_story {
        println!("{setting:?}\n{}", story.join("\n"));
    }
    let mut hasher = DefaultHasher::new();
    story.hash(&mut hasher);
    let report = Report {
        evictions: scenario.site.evictions,
        refusals: scenario.site.refusals,
        hash: hasher.finish(),
        ..scenario.report
    };
    let last = story.len().saturating_sub(40);
    result.map(|()| report).map_err(|wrong| format!("seed {seed}: {wrong}\n{}", story[last..].join("\n")))
}

impl Scenario<'_> {
    fn play(&mut self, setting: &Setting, seed: u64) -> Result<(), String> {
        // The agent's own pod is always there.
        for _ in 0..3 + self.random.below(4) {
            self.add_pod();
        }
        let spec = self.slo.clone();
        self.site.set_slo(&spec);
        self.site.restart(false);
        while self.second < STORM_S {
            self.second += 1;
            self.act();
            self.site.advance(Duration::from_secs(self.second))?;
        }
        self.calm();
        let mut other = self.other(setting, seed);
        self.change_slo(&mut other, &disabled_slo());
        self.go_on(&mut other, CALM_S)?;
        self.compare(&other, "after faults, with everything disabled")?;
        let last = slo(&self.random);
        self.change_slo(&mut other, &last);
        self.go_on(&mut other, CHANGE_S)?;
        self.compare(&other, "after faults, with another NodeSLO")?;
        if seed.is_multiple_of(25) {
            self.forget(&mut other)?;
        }
        Ok(())
    }

    // === what happens on a node ===

    fn add_pod(&mut self) {
        self.number += 1;
        let pod = Pod::random(&self.random, self.number);
        let (uid, number) = (pod.uid.clone(), self.number);
        self.site.record(|| format!("pod {number} ({uid}) comes: {}", pod.object["metadata"]));
        if self.number > 3 && chance(&self.random, 10) {
            *self.report.faults.entry(Fault::MissingFolder).or_default() += 1;
        } else {
            self.site.node.add(&pod, self.fixtures);
        }
        self.pods.insert(pod.uid.clone(), pod);
        self.pods_changed();
    }

    fn pods_changed(&mut self) {
        self.site.set_pods(&self.pods);
        if chance(&self.random, 50) {
            self.site.see_folder();
        }
    }

    fn any_pod(&self) -> Option<String> {
        let uids: Vec<&String> = self.pods.keys().collect();
        (!uids.is_empty()).then(|| (*one_of(&self.random, &uids)).clone())
    }

    /// One second of the storm.
    fn act(&mut self) {
        let second = self.second;
        let (over, lasting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.lasting).into_iter().partition(|(end, _)| *end <= second);
        self.lasting = lasting;
        for (_, fault) in over {
            self.end(fault);
        }
        for uid in std::mem::take(&mut self.site.evicted) {
            if let Some(pod) = self.pods.get_mut(&uid) {
                pod.begin_to_end(second + 1 + self.random.below(15));
            }
            self.pods_changed();
        }
        let gone: Vec<String> = self
            .pods
            .values()
            .filter(|pod| pod.ends.is_some_and(|end| end <= second))
            .map(|pod| pod.uid.clone())
            .collect();
        for uid in gone {
            self.remove_pod(&uid);
        }
        if self.pods.len() < 2 || self.pods.len() < PODS_MAX && chance(&self.random, 8) {
            self.add_pod();
        }
        if chance(&self.random, 25) {
            self.change_pod();
        }
        if chance(&self.random, 4) {
            self.slo = slo(&self.random);
            let spec = self.slo.clone();
            self.site.record(|| format!("NodeSLO: {spec}"));
            self.site.set_slo(&spec);
        }
        if chance(&self.random, 20) {
            let fault = *one_of(&self.random, &FAULTS);
            self.begin(fault);
        }
    }

    fn remove_pod(&mut self, uid: &str) {
        let Some(pod) = self.pods.remove(uid) else { return };
        self.site.record(|| format!("pod {} is gone", pod.object["metadata"]["name"]));
        self.site.node.hide(&pod, false);
        self.site.node.remove(&pod);
        self.lasting.retain(|(_, fault)| !matches!(fault, Lasting::Hidden(hidden) if hidden == uid));
        self.pods_changed();
    }

    fn change_pod(&mut self) {
        let Some(uid) = self.any_pod() else { return };
        let pod = self.pods.get_mut(&uid).unwrap();
        let name = pod.object["metadata"]["name"].to_string();
        match self.random.below(10) {
            0..5 => {
                pod.use_more_or_less(&self.random);
                self.site.node.set_load(pod);
            }
            5 => {
                pod.annotate(&self.random);
                let annotations = pod.object["metadata"]["annotations"].to_string();
                self.site.record(|| format!("pod {name} has the annotations {annotations}"));
            }
            6 => {
                pod.begin_to_end(self.second + 1 + self.random.below(10));
                self.site.record(|| format!("pod {name} is deleted"));
            }
            7 if !self.site.node.is_hidden(pod) => {
                let before = pod.start_container(&self.random, 0).unwrap();
                self.site.node.remove_container(pod, &before);
                self.site.node.add(pod, self.fixtures);
                self.site.record(|| format!("a container of pod {name} is restarted"));
            }
            8 => self.site.node.system.milli = self.random.below(3000),
            _ => self.site.node.system.bytes = self.random.below(12 << 30),
        }
        self.pods_changed();
    }

    // === faults ===

    fn begin(&mut self, fault: Fault) {
        let end = self.second + 1 + self.random.below(15);
        let lasting = match fault {
            Fault::WritesRefused => {
                self.site.kernel.set(Health::Flaky(10 + self.random.below(80)));
                Some(Lasting::Kernel)
            }
            Fault::ReadOnly | Fault::DiskFull => {
                self.site.kernel.set(Health::Refusing(if fault == Fault::ReadOnly { 30 } else { 28 }));
                Some(Lasting::Kernel)
            }
            Fault::KubeletDown | Fault::KubeletMalformed | Fault::KubeletEmpty | Fault::KubeletLate => {
                self.site.kubelet = match fault {
                    Fault::KubeletDown => KubeletHealth::Down,
                    Fault::KubeletMalformed => KubeletHealth::Malformed,
                    Fault::KubeletEmpty => KubeletHealth::Empty,
                    _ => KubeletHealth::Late,
                };
                Some(Lasting::Kubelet)
            }
            Fault::ApiAway | Fault::ApiRefuses => {
                let code = *one_of(&self.random, &[403, 409, 429, 500]);
                let health = if fault == Fault::ApiAway { ApiHealth::Away } else { ApiHealth::Refusing(code) };
                self.site.set_api(health);
                Some(Lasting::Api)
            }
            Fault::FolderHidden => self.hide_folder(),
            Fault::FileMissing | Fault::Garbage => self.spoil_file(fault),
            Fault::ForeignWriter => {
                self.write_as_another();
                None
            }
            Fault::Killed | Fault::Stopped => {
                self.site.restart(fault == Fault::Stopped);
                None
            }
            Fault::ClockJump => {
                self.site.skew_s += self.random.below(7200).cast_signed() - 3600;
                None
            }
            Fault::MalformedSlo => {
                let spec = malformed_slo(&self.random);
                self.site.set_slo(&spec);
                None
            }
            // Pods come so.
            Fault::MissingFolder => return,
        };
        self.site.record(|| format!("fault: {fault:?}"));
        *self.report.faults.entry(fault).or_default() += 1;
        self.lasting.extend(lasting.map(|lasting| (end, lasting)));
    }

    fn end(&mut self, fault: Lasting) {
        match fault {
            Lasting::Kernel => self.site.kernel.set(Health::Well),
            Lasting::Kubelet => self.site.kubelet = KubeletHealth::Well,
            Lasting::Api => self.site.set_api(ApiHealth::Well),
            Lasting::Hidden(uid) => {
                if let Some(pod) = self.pods.get(&uid) {
                    self.site.node.hide(pod, false);
                }
            }
            Lasting::File(path, text) => {
                let target = self.site.node.root().join(&path);
                let is_spoilt = self.site.node.text(&path).is_none_or(|shown| GARBAGE.contains(&shown.as_str()));
                // A counter is written anew by itself.
                if is_spoilt && target.parent().is_some_and(std::path::Path::exists) {
                    fs::write(target, text).unwrap();
                }
                self.site.node.show_memory();
            }
        }
    }

    fn hide_folder(&mut self) -> Option<Lasting> {
        let uid = self.any_pod()?;
        let pod = &self.pods[&uid];
        if self.site.node.is_hidden(pod) {
            return None;
        }
        self.site.node.hide(pod, true);
        Some(Lasting::Hidden(uid))
    }

    /// A file is gone for a while, or says something that is none of its texts.
    fn spoil_file(&mut self, fault: Fault) -> Option<Lasting> {
        let uid = self.any_pod()?;
        let below = format!("{}/", self.site.node.pod_folder(&self.pods[&uid]));
        let files = if chance(&self.random, 70) { "cgroup" } else { "proc" };
        let files: Vec<String> = (self.site.node.files(files).into_iter())
            .filter(|path| files == "proc" || path.contains(&below))
            .filter(|path| {
                !self.lasting.iter().any(|(_, fault)| matches!(fault, Lasting::File(spoilt, _) if spoilt == path))
            })
            .collect();
        if files.is_empty() {
            return None;
        }
        let path = one_of(&self.random, &files).clone();
        let text = self.site.node.text(&path)? + "\n";
        let target = self.site.node.root().join(&path);
        self.site.record(|| format!("{fault:?} of {path}"));
        if fault == Fault::FileMissing && !path.starts_with("proc") && !is_counter(&path) {
            fs::remove_file(target).unwrap();
        } else {
            fs::write(target, one_of(&self.random, &GARBAGE)).unwrap();
        }
        Some(Lasting::File(path, text))
    }

    /// Another program sets a file that the agent has written.
    fn write_as_another(&mut self) {
        let written: Vec<String> =
            self.site.kernel.written().into_iter().filter(|path| path.starts_with("cgroup/")).collect();
        if written.is_empty() {
            return;
        }
        let path = one_of(&self.random, &written).clone();
        let name = path.rsplit('/').next().unwrap_or_default();
        let text = match name {
            "cpu.max" => one_of(&self.random, &["max 100000", "50000 100000", "200000 100000"]),
            "cpuset.cpus" => one_of(&self.random, &["0", "0-1"]),
            "cpu.idle" | "memory.use_priority_oom" | "memory.oom.group" => one_of(&self.random, &["0", "1"]),
            "cpu.cfs_quota_us" => one_of(&self.random, &["-1", "50000", "200000"]),
            _ => one_of(&self.random, &["0", "1", "2"]),
        };
        let mut kernel = self.site.kernel.clone();
        kernel.set(Health::Well);
        let target = self.site.node.root().join(&path);
        if koord_koordlet_system::Writer::write(&mut kernel, &target, text).is_ok() {
            self.foreign.insert(path.clone());
        }
        kernel.attempts();
        self.site.record(|| format!("another program writes {text} into {path}"));
    }

    // === what has to hold ===

    /// Ends all faults; pods that were to end have ended.
    fn calm(&mut self) {
        self.site.record(|| "faults stop".to_owned());
        let lasting = std::mem::take(&mut self.lasting);
        for (_, fault) in lasting {
            self.end(fault);
        }
        self.site.kernel.set(Health::Well);
        self.site.kubelet = KubeletHealth::Well;
        self.site.set_api(ApiHealth::Well);
        self.site.accepts_evictions = false;
        let evicted = std::mem::take(&mut self.site.evicted);
        let ended: Vec<String> = self
            .pods
            .values()
            .filter(|pod| pod.ends.is_some() || evicted.contains(&pod.uid))
            .map(|pod| pod.uid.clone())
            .collect();
        for uid in ended {
            self.remove_pod(&uid);
        }
        if self.pods.is_empty() {
            self.add_pod();
        }
        for pod in self.pods.values_mut() {
            pod.use_more_or_less(&self.random);
            pod.load.throttled_percent = 0;
            pod.stop_bursting();
            self.site.node.add(pod, self.fixtures);
            self.site.node.set_load(pod);
        }
        self.pods_changed();
    }

    /// An agent that starts on a node as the kubelet has made it.
    fn other(&mut self, setting: &Setting, seed: u64) -> Site {
        let mut other = Site::new(setting, self.fixtures, Random::seeded(seed), seed, self.site.now);
        for pod in self.pods.values() {
            other.node.add(pod, self.fixtures);
            other.node.set_load(pod);
        }
        other.node.system = self.site.node.system;
        other.accepts_evictions = false;
        other.set_pods(&self.pods);
        other.restart(false);
        other
    }

    fn change_slo(&mut self, other: &mut Site, spec: &Value) {
        self.site.record(|| format!("NodeSLO: {spec}"));
        self.site.set_slo(spec);
        other.set_slo(spec);
    }

    fn go_on(&mut self, other: &mut Site, seconds: u64) -> Result<(), String> {
        self.second += seconds;
        let end = Duration::from_secs(self.second);
        self.site.advance(end)?;
        other.advance(end).map_err(|wrong| format!("an agent without faults: {wrong}"))
    }

    /// The values in the tree are those of an agent that has seen nothing but the present.
    fn compare(&mut self, other: &Site, when: &str) -> Result<(), String> {
        let mut paths = self.site.kernel.written();
        paths.extend(other.kernel.written());
        let states = self.site.states();
        let others = other.states();
        let mut differences = Vec::new();
        for path in &paths {
            let (shown, expected) = (self.site.node.text(path), other.node.text(path));
            self.report.compared += 1;
            if shown == expected {
                continue;
            }
            let file = states.get(&self.site.node.root().join(path));
            let is_left = match file {
                // Another program has written it three times.
                Some(file) => matches!(file.state(), State::Foreign { .. }),
                // Nothing is wanted of it. Parameters of the system that are not set any more are left as they are.
                None => self.foreign.contains(path) || path.starts_with("proc/sys/"),
            };
            let expected_state = others.get(&other.node.root().join(path));
            if is_left || self.is_small_change(file.copied(), expected_state.copied()) {
                continue;
            }
            differences.push(format!(
                "{path} says {shown:?}, and {expected:?} where there were no faults\n    here: {}\n    there: {}",
                described(file.copied()),
                described(expected_state.copied())
            ));
        }
        if differences.is_empty() { Ok(()) } else { Err(format!("{when}:\n  {}", differences.join("\n  "))) }
    }

    /// Suppression does not change the quota of BE pods by less than a hundredth of the node.
    fn is_small_change(&self, file: Option<&File>, other: Option<&File>) -> bool {
        let quota = |file: Option<&File>| {
            file?.decision().filter(|decision| decision.strategy == "CPUSuppress")?.value.amount()
        };
        let hundredth = self.site.node.machine.cpus.cast_signed() * 1000;
        quota(file).zip(quota(other)).is_some_and(|(quota, other)| (quota - other).abs() < hundredth)
    }

    /// Nothing is kept of pods that are gone.
    fn forget(&mut self, other: &mut Site) -> Result<(), String> {
        let uids: Vec<String> = self.pods.keys().skip(1).cloned().collect();
        for uid in uids {
            let pod = self.pods.remove(&uid).unwrap();
            self.site.node.remove(&pod);
            other.node.remove(&pod);
        }
        self.pods_changed();
        other.set_pods(&self.pods);
        self.go_on(other, FORGET_S)?;
        let (kept, expected) = (self.site.agent().kept(), other.agent().kept());
        let more: Vec<String> = (kept.iter().zip(&expected))
            .filter(|(kept, expected)| kept != expected)
            .map(|((what, kept), (_, expected))| {
                format!("{what}: {kept}, and {expected} of an agent that has seen fewer pods")
            })
            .collect();
        if more.is_empty() { Ok(()) } else { Err(format!("pods are gone, and the agent keeps {}", more.join("; "))) }
    }
}

fn described(file: Option<&File>) -> String {
    file.map_or_else(
        || "nothing is wanted of it".to_owned(),
        |file| {
            let decision = file.decision().map(|decision| (decision.strategy, decision.value.to_string()));
            format!("{decision:?}, {}", file.state())
        },
    )
}

const GARBAGE: [&str; 5] = ["", "garbage", "18446744073709551616", "-9", "nr_periods x"];

fn is_counter(path: &str) -> bool {
    ["stat", "usage", "current", "usage_in_bytes", "procs", "tasks", "threads"].iter().any(|end| path.ends_with(end))
}
