//! An agent on a node that is a tree of files, in virtual time.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use koord_core::clock::Moment;
use koord_koordlet_framework::Node;
use koord_koordlet_runtime::{Agent, Effect, Host, Input, Kept as _, KubeletPath, Now, Object, SloObject};
use koord_koordlet_system::Version;
use koord_koordlet_testing::FixtureKernel;
use koordlet::Options;
use serde_json::json;

/// CPUs of the node; it has 64 GiB of memory.
pub(crate) const CPUS: u64 = 16;
const MEMORY_KIB: u64 = 64 << 20;

/// A node with cgroup v2 and the cgroupfs driver: every second pod is a best-effort one, and each has one container.
pub(crate) struct FixtureNode {
    folder: tempfile::TempDir,
    pub(crate) agent: Agent,
    /// The folder of all pods below the root of cgroups.
    kubepods: String,
    /// `cgroupRoot` in the kubelet's configuration.
    pub(crate) kubelet_root: String,
    pods: usize,
    /// CPU time that pods which are not best-effort have used, all together.
    used_us: u64,
    now: Duration,
}

impl FixtureNode {
    /// A node with so many pods below `kubepods`, on which the agent runs with these flags.
    pub(crate) fn new(kubepods: &str, pods: usize, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let root = folder.path();
        let mut arguments = vec!["koordlet".to_owned()];
        for (flag, name) in [
            ("cgroup-root-dir", "cgroup"),
            ("proc-root-dir", "proc"),
            ("sys-root-dir", "sys"),
            ("sys-fs-root-dir", "sys-fs"),
            ("var-run-root-dir", "var-run"),
            ("run-root-dir", "run"),
            ("prediction-checkpoint-filepath", "checkpoints"),
            ("xpu-device-infos-dir", "xpu"),
        ] {
            arguments.push(format!("--{flag}={}/", root.join(name).display()));
        }
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let environment = BTreeMap::from([("NODE_NAME".to_owned(), "node".to_owned())]);
        let settings = Options::from_arguments(arguments).unwrap().check_in(&environment).unwrap().settings();
        make_tree(root, kubepods, pods);
        let start = Now { moment: Moment::default(), time: Timestamp::UNIX_EPOCH };
        let host = Host::discover(&settings.roots, Version::V2);
        let agent = Agent::new(settings, host, Box::new(FixtureKernel::new(root, true, false)), 1, start);
        let mut node = Self {
            folder,
            agent,
            kubepods: kubepods.to_owned(),
            kubelet_root: format!("/{}", kubepods.strip_suffix("kubepods").unwrap()),
            pods,
            used_us: 0,
            now: Duration::ZERO,
        };
        node.count(0);
        node.listed();
        node
    }

    fn listed(&mut self) {
        let node = json!({"metadata": {"name": "node", "uid": "1"}, "status": {
            "capacity": {"cpu": CPUS.to_string(), "memory": format!("{MEMORY_KIB}Ki")},
            "allocatable": {"cpu": CPUS.to_string(), "memory": format!("{MEMORY_KIB}Ki")},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}});
        let slo = json!({"metadata": {"name": "node"}, "spec": {"resourceUsedThresholdWithBE": {
            "enable": true, "cpuSuppressPolicy": "cfsQuota", "cpuSuppressThresholdPercent": 65, "memoryEvictThresholdPercent": 70}}});
        let node = Object::Node(Some(Arc::new(Node::read(&node.to_string()).unwrap())));
        let slo = Object::Slo(Some(Arc::new(SloObject::read(&slo.to_string()).unwrap())));
        for input in [Input::Object(node), Input::Object(slo), Input::Listed] {
            self.agent.handle(input, self.now());
        }
    }

    pub(crate) fn now(&self) -> Now {
        let time = Timestamp::UNIX_EPOCH + jiff::SignedDuration::try_from(self.now).unwrap();
        Now { moment: Moment::at(self.now), time }
    }

    /// The root of cgroups.
    pub(crate) fn cgroups(&self) -> PathBuf {
        self.folder.path().join("cgroup")
    }

    /// A file of the cgroup of best-effort pods.
    pub(crate) fn best_effort(&self, file: &str) -> PathBuf {
        self.cgroups().join(&self.kubepods).join("besteffort").join(file)
    }

    /// The quota of best-effort pods, in cores.
    pub(crate) fn quota(&self) -> Option<f64> {
        let text = fs::read_to_string(self.best_effort("cpu.max")).unwrap();
        text.split(' ').next()?.parse().ok().map(|quota: f64| quota / 100_000.0)
    }

    /// How much memory is available, in percent.
    pub(crate) fn set_available(&self, percent: u64) {
        let text =
            format!("MemTotal: {MEMORY_KIB} kB\nMemFree: {0} kB\nMemAvailable: {0} kB\n", MEMORY_KIB * percent / 100);
        fs::write(self.folder.path().join("proc/meminfo"), text).unwrap();
    }

    /// Lets pods that are not best-effort use CPU time.
    pub(crate) fn count(&mut self, used_us: u64) {
        self.used_us += used_us;
        let ticks = self.used_us / 10_000;
        let text = format!("cpu {ticks} 0 0 999 0 0 0 0\ncpu0 {ticks} 0 0 999 0 0 0 0\n");
        fs::write(self.folder.path().join("proc/stat"), text).unwrap();
        let others = self.pods.div_ceil(2) as u64;
        for number in (0..self.pods).filter(|number| !is_be(*number)) {
            let folder = self.cgroups().join(&self.kubepods).join(pod_folder(number));
            fs::write(folder.join("cpu.stat"), cpu_stat(self.used_us / others)).unwrap();
        }
    }

    /// Goes on by milliseconds, in which pods that are not best-effort use so many cores. The kubelet answers at once.
    pub(crate) fn advance(&mut self, milliseconds: u64, cores: f64) -> Vec<Effect> {
        self.now += Duration::from_millis(milliseconds);
        self.count((cores * milliseconds as f64 * 1000.0) as u64);
        self.run()
    }

    /// Six seconds, in which pods that are not best-effort use two cores. The last round of samples and strategies is at their end.
    pub(crate) fn settle(&mut self) {
        for _ in 0..61 {
            self.advance(100, 2.0);
        }
    }

    /// The agent takes an input, and does what is due.
    pub(crate) fn take(&mut self, input: Input) -> Vec<Effect> {
        self.agent.handle(input, self.now());
        self.run()
    }

    fn run(&mut self) -> Vec<Effect> {
        let (now, mut all) = (self.now(), Vec::new());
        loop {
            let effects = self.agent.run(now, &|| now.moment);
            if effects.is_empty() {
                return all;
            }
            for effect in effects {
                match effect {
                    Effect::AskKubelet(path) => {
                        let input = Input::Kubelet { path, result: Ok(self.answer(path)) };
                        self.agent.handle(input, now);
                    }
                    effect => all.push(effect),
                }
            }
        }
    }

    fn answer(&self, path: KubeletPath) -> Vec<u8> {
        match path {
            KubeletPath::Pods => pods(self.pods),
            KubeletPath::Configuration => {
                json!({"kubeletconfig": {"cgroupRoot": self.kubelet_root, "cgroupDriver": "cgroupfs"}})
                    .to_string()
                    .into()
            }
        }
    }
}

fn is_be(number: usize) -> bool {
    number.is_multiple_of(2)
}

fn pod_folder(number: usize) -> String {
    format!("{}/pod{number}", if is_be(number) { "besteffort" } else { "burstable" })
}

fn cpu_stat(used_us: u64) -> String {
    format!("usage_usec {used_us}\nuser_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n")
}

fn make_tree(root: &Path, kubepods: &str, pods: usize) {
    for folder in ["proc", "sys", "sys-fs", "var-run", "run", "checkpoints", "cgroup"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let kubepods = root.join("cgroup").join(kubepods);
    let pods = (0..pods).map(pod_folder).flat_map(|pod| [pod.clone(), format!("{pod}/c")]);
    for folder in ["", "besteffort", "burstable"].map(str::to_owned).into_iter().chain(pods) {
        let folder = kubepods.join(folder);
        fs::create_dir_all(&folder).unwrap();
        let memory = "anon 8589934592\nfile 0\ninactive_anon 0\nactive_anon 8589934592\ninactive_file 0\nactive_file 0\nunevictable 0\n";
        for (file, text) in [
            ("cpu.stat", cpu_stat(0).as_str()),
            ("memory.stat", memory),
            ("memory.current", "8589934592\n"),
            ("cpu.max", "max 100000\n"),
            ("cpu.weight", "100\n"),
            ("cpuset.cpus", "0-15\n"),
        ] {
            fs::write(folder.join(file), text).unwrap();
        }
    }
    let memory = format!("MemTotal: {MEMORY_KIB} kB\nMemFree: {MEMORY_KIB} kB\nMemAvailable: {MEMORY_KIB} kB\n");
    fs::write(root.join("proc/meminfo"), memory).unwrap();
}

fn pods(count: usize) -> Vec<u8> {
    let pod = |number: usize| {
        let (label, class) = if is_be(number) { ("BE", "BestEffort") } else { ("LS", "Burstable") };
        let batch = json!({"kubernetes.io/batch-cpu": "1000", "kubernetes.io/batch-memory": "1Gi"});
        let resources = if is_be(number) { json!({"requests": batch, "limits": batch}) } else { json!({}) };
        json!({
            "metadata": {"name": format!("pod-{number}"), "namespace": "shop", "uid": number.to_string(),
                "labels": {"koordinator.sh/qosClass": label}},
            "spec": {"containers": [{"name": "main", "resources": resources}], "priority": if is_be(number) { 5500 } else { 9500 }},
            "status": {"phase": "Running", "qosClass": class, "containerStatuses": [
                {"name": "main", "containerID": "containerd://c", "state": {"running": {}}}]},
        })
    };
    json!({"items": (0..count).map(pod).collect::<Vec<_>>()}).to_string().into()
}
