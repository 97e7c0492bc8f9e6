//! What hooks add to the start of a container besides the wire: `cargo bench -p koord-koordlet-runtime`.
//!
//! A batch pod with limits in its annotation, rules as of a default installation. Its sandbox gets three files written, its container an adjustment. A
//! round of the agent delays none of it: calls take no lock of the agent. The floor is a write of as many files. The exit code is 1 where a goal was missed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwapOption;
use goals::{Chosen, Floor};
use koord_koordlet_hooks::{HostDevices, KernelSwitches, Options, RuleInputs, Rules};
use koord_koordlet_protocols::nri::{
    Container, LinuxContainer, LinuxCpu, LinuxPodSandbox, LinuxResources, NriHandler as _, PodSandbox,
};
use koord_koordlet_resolver::MountedFiles;
use koord_koordlet_runtime::delivery::{HookCalls, NodeFolders, nri_create};
use koord_koordlet_system::{Cgroups, Driver, KernelWriter, Layout, Version};
use koord_runtime::clock::SystemClock;
use tokio::sync::mpsc;

const CALLS: usize = 5000;
const POD: &str = "kubepods/besteffort/pod8b54ed9a-7abe-1eed-7bd2-2c90a211d224";
const LAYOUT: Layout = Layout::new(Version::V1, Driver::Cgroupfs);
const FILES: [(&str, &str); 3] = [
    ("cpu/cpu.shares", "2\n"),
    ("cpu/cpu.cfs_quota_us", "-1\n"),
    ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
];

fn main() -> ExitCode {
    Chosen::run(|chosen| {
        const DECISION: &str = "hooks of a container, decision, p99";
        const CREATION: &str = "hooks of a container, handler, p99";
        const SANDBOX: &str = "hooks of a sandbox, handler with its files, p99";
        if !chosen.has(DECISION) && !chosen.has(CREATION) && !chosen.has(SANDBOX) {
            return;
        }
        // Files of cgroups are in memory, too.
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let files = prepare(root.path());
        let rules = Arc::new(rules());
        let devices = HostDevices { sys: root.path().to_owned() };
        let decision = percentiles(|| {
            let (pod, container) = (pod(), container());
            let begin = Instant::now();
            assert!(nri_create(pod, container, &rules, &devices).0.is_some());
            begin.elapsed()
        });
        let (inputs, mut taken) = mpsc::unbounded_channel();
        let node = NodeFolders {
            files: MountedFiles::new(Cgroups::new(root.path().to_owned(), LAYOUT), Box::new(KernelWriter)),
            resctrl: root.path().join("resctrl"),
            sys: root.path().to_owned(),
        };
        let calls = HookCalls::new(Arc::new(ArcSwapOption::from(Some(rules))), node, SystemClock::shared(), inputs);
        let creation = percentiles(|| {
            let (pod, container) = (pod(), container());
            let begin = Instant::now();
            assert!(calls.create_container(pod, container).unwrap().adjust.is_some());
            let time = begin.elapsed();
            drop(taken.try_recv());
            time
        });
        let sandbox = percentiles(|| {
            reset(&files);
            let pod = pod();
            let begin = Instant::now();
            calls.run_pod_sandbox(pod).unwrap();
            let time = begin.elapsed();
            drop(taken.try_recv());
            time
        });
        assert_eq!(fs::read_to_string(&files[0].0).unwrap(), "1536");
        let floor = percentiles(|| {
            let begin = Instant::now();
            reset(&files);
            begin.elapsed()
        });
        for (name, [p50, p99, p999]) in
            [("decision", decision), ("handler", creation), ("sandbox", sandbox), ("three files", floor)]
        {
            println!("{name:12} p50 {p50:?}, p99 {p99:?}, p99.9 {p999:?}");
        }
        let limit = Duration::from_millis(1);
        chosen.above(Floor::Measured(floor[1])).took(limit, SANDBOX, sandbox[1]);
        chosen.above(Floor::Measured(decision[1])).took(limit, CREATION, creation[1]);
        chosen.took(limit, DECISION, decision[1]);
    })
}

fn rules() -> Rules {
    let options = Options::default();
    let inputs = RuleInputs {
        options: &options,
        layout: LAYOUT,
        slo: None,
        topology: None,
        node: None,
        switches: KernelSwitches::default(),
        resctrl: None,
    };
    Rules::new(inputs, None)
}

/// A pod as containerd sends it.
fn pod() -> PodSandbox {
    const LIMITS: &str = r#"{"containers":{"main":{"requests":{"kubernetes.io/batch-cpu":"1500","kubernetes.io/batch-memory":"1Gi"},"limits":{"kubernetes.io/batch-cpu":"1500","kubernetes.io/batch-memory":"1Gi"}}}}"#;
    let mut annotations: std::collections::BTreeMap<String, String> =
        (0..8).map(|n| (format!("example.com/name-{n}"), "v".repeat(200))).collect();
    annotations.insert("node.koordinator.sh/extended-resource-spec".into(), LIMITS.into());
    let linux = LinuxPodSandbox { cgroup_parent: format!("/{POD}"), ..LinuxPodSandbox::default() };
    PodSandbox {
        name: "batch-0".into(),
        namespace: "default".into(),
        uid: "8b54ed9a-7abe-1eed-7bd2-2c90a211d224".into(),
        labels: [("koordinator.sh/qosClass".to_owned(), "BE".to_owned())].into(),
        annotations,
        linux: Some(linux),
        ..PodSandbox::default()
    }
}

fn container() -> Container {
    let cpu = LinuxCpu { shares: Some(2.into()), quota: Some(0.into()), ..LinuxCpu::default() };
    let resources = Some(LinuxResources { cpu: Some(cpu), ..LinuxResources::default() });
    Container {
        id: "c".repeat(64),
        name: "main".into(),
        env: (0..40).map(|n| format!("SERVICE_{n}_PORT=tcp://10.0.0.{n}:443")).collect(),
        linux: Some(LinuxContainer { resources, ..LinuxContainer::default() }),
        ..Container::default()
    }
}

fn prepare(root: &Path) -> Vec<(PathBuf, &'static str)> {
    let files = FILES.map(|(file, text)| {
        let (hierarchy, name) = file.split_once('/').unwrap();
        let folder = root.join(hierarchy).join(POD);
        fs::create_dir_all(&folder).unwrap();
        (folder.join(name), text)
    });
    for (file, text) in &files {
        fs::write(file, text).unwrap();
    }
    files.into()
}

fn reset(files: &[(PathBuf, &str)]) {
    for (file, text) in files {
        fs::write(file, text).unwrap();
    }
}

/// The 50th, 99th and 99.9th of a hundred calls.
fn percentiles(mut call: impl FnMut() -> Duration) -> [Duration; 3] {
    let mut times: Vec<Duration> = (0..CALLS).map(|_| call()).collect();
    times.sort_unstable();
    [500, 990, 999].map(|per_thousand| times[times.len() * per_thousand / 1000])
}
