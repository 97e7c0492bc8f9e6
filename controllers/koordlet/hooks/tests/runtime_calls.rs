//! Calls of container runtimes with the answers that were recorded, on the machine of the recordings: 8 CPUs, of which the LSR pod has 0 and 4.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;

use koord_koordlet_framework::{CpuPool, Node, NodeSlo, NodeSloReader, NodeTopology};
use koord_koordlet_hooks::{
    Adjustment, DeviceReader, Effect, FailurePolicy, GpuOptions, Hook, KernelSwitches, Mount, Options, ResctrlMachine,
    Response, RuleInputs, Rules, RuntimeContainer, RuntimePod, Stage, Stages, on_container, on_sandbox,
};
use koord_koordlet_system::{
    Driver, Layout, Version,
    resctrl::{CacheMask, Schemata, Vendor},
};
use koord_types::protocol::Labels;
use serde_json::json;

const LAYOUT: Layout = Layout::new(Version::V1, Driver::Systemd);
const EXTENDED: (&str, &str) = (
    "node.koordinator.sh/extended-resource-spec",
    r#"{"containers":{"main":{"requests":{"kubernetes.io/batch-cpu":"1500","kubernetes.io/batch-memory":"1Gi"},"limits":{"kubernetes.io/batch-cpu":"1500","kubernetes.io/batch-memory":"1Gi"}}}}"#,
);
const CPUSET: (&str, &str) = ("scheduling.koordinator.sh/resource-status", r#"{"cpuset":"0,4"}"#);
const BE: &str = "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1.slice";
const LS: &str = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice";
const LSR: &str = "kubepods.slice/kubepods-pod1.slice";
const GIB: i64 = 1 << 30;

struct NoDevices;

impl DeviceReader for NoDevices {
    fn verbs_device(&self, _: &str) -> Option<String> {
        None
    }

    fn numbers(&self, _: &str) -> Option<(u32, u32)> {
        None
    }
}

fn topology() -> Arc<NodeTopology> {
    let pool = |node, cpus: &str| CpuPool { socket: node, node, cpus: cpus.parse().unwrap() };
    Arc::new(NodeTopology { shared_pools: vec![pool(0, "1,5"), pool(1, "2-3,6-7")], ..NodeTopology::default() })
}

fn rules(options: &Options, slo: &serde_json::Value, ratio: Option<&str>) -> Rules {
    let (slo, _): (NodeSlo, _) = NodeSloReader::default().read(slo);
    let annotations =
        ratio.map(|text| Labels::from([("node.koordinator.sh/cpu-normalization-ratio".to_owned(), text.to_owned())]));
    let node = Node { annotations, ..Node::default() };
    let root = Schemata::parse(b"MB:0=100;1=100\nL3:0=7ff;1=7ff\n").unwrap();
    let machine = Arc::new(ResctrlMachine { vendor: Vendor::Intel, ways: CacheMask::parse(b"7ff").unwrap(), root });
    let inputs = RuleInputs {
        options,
        layout: LAYOUT,
        slo: Some(&slo),
        topology: Some(&topology()),
        node: Some(&node),
        switches: KernelSwitches { has_group_identity_file: true, ..KernelSwitches::default() },
        resctrl: Some(&machine),
    };
    Rules::new(inputs, None)
}

fn with_hooks(hooks: &[Hook]) -> Options {
    Options { hooks: hooks.iter().copied().collect(), ..Options::default() }
}

fn pod(qos: &str, cgroup: &str, annotations: &[(&str, &str)]) -> RuntimePod {
    let labels = [("koordinator.sh/qosClass", qos)].into_iter().filter(|(_, text)| !text.is_empty());
    RuntimePod {
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        uid: "1".to_owned(),
        labels: labels.map(|(key, text)| (key.to_owned(), text.to_owned())).collect(),
        annotations: annotations.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect(),
        cgroup_parent: format!("/{cgroup}"),
    }
}

fn main_container() -> RuntimeContainer {
    RuntimeContainer { name: "main".to_owned(), id: "abc".to_owned(), cpu_quota: 200_000 }
}

fn create(rules: &Rules, pod: &RuntimePod) -> Response {
    on_container(Stage::PreCreateContainer, pod, &main_container(), rules, &NoDevices)
}

/// CPUs, shares, quota, memory limit.
fn resources(response: &Response) -> (Option<&str>, Option<i64>, Option<i64>, Option<i64>) {
    let Adjustment { cpuset_cpus, cpu_shares, cpu_quota, memory_limit, .. } = &response.adjustment;
    (cpuset_cpus.as_deref(), *cpu_shares, *cpu_quota, *memory_limit)
}

fn files(response: &Response) -> Vec<String> {
    let constraints = &response.constraints.0;
    let lines = constraints.iter().map(|constraint| format!("{} = {}", constraint.target, constraint.value));
    lines.map(|line| line.rsplit('/').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn containers_are_created_as_recorded() {
    let default = Options::default();
    let normalizes = with_hooks(&[Hook::CpuNormalization]);
    let cfs_quota = json!({"resourceUsedThresholdWithBE": {"cpuSuppressPolicy": "cfsQuota", "enable": true}});
    let keeps_quota = Options { lifts_quota: false, ..Options::default() };
    let none = json!({});
    for (name, options, slo, ratio, pod, expected) in [
        (
            "hookserver-create-be-cfsquota",
            &default,
            &cfs_quota,
            None,
            pod("BE", BE, &[EXTENDED]),
            (None, Some(1536), Some(-1), Some(GIB)),
        ),
        ("hookserver-create-ls", &default, &none, None, pod("LS", LS, &[]), (Some("1,5,2-3,6-7"), None, None, None)),
        (
            "hookserver-create-lsr",
            &default,
            &none,
            None,
            pod("LSR", LSR, &[CPUSET]),
            (Some("0,4"), None, Some(-1), None),
        ),
        ("hookserver-empty", &default, &none, None, pod("", "", &[]), (Some("1,5,2-3,6-7"), None, None, None)),
        (
            "hookserver-v2",
            &default,
            &none,
            None,
            pod("BE", BE, &[EXTENDED]),
            (None, Some(1536), Some(150_000), Some(GIB)),
        ),
        (
            "hookserver-normalization",
            &normalizes,
            &none,
            Some("1.25"),
            pod("LS", LS, &[]),
            (None, None, Some(160_000), None),
        ),
        ("hookserver-normalization", &normalizes, &none, Some("1.25"), pod("LSR", LSR, &[]), (None, None, None, None)),
        ("no ratio", &normalizes, &none, None, pod("LS", LS, &[]), (None, None, None, None)),
        ("nri-create-be-bare", &default, &none, None, pod("BE", BE, &[]), (None, None, None, None)),
        (
            "disable-unset-cpu-quota",
            &keeps_quota,
            &none,
            None,
            pod("LSR", LSR, &[CPUSET]),
            (Some("0,4"), None, None, None),
        ),
        (
            "disable-unset-cpu-quota",
            &keeps_quota,
            &none,
            None,
            pod("LSE", LSR, &[CPUSET]),
            (Some("0,4"), None, None, None),
        ),
    ] {
        let rules = rules(options, slo, ratio);
        for stage in [Stage::PreCreateContainer, Stage::PreUpdateContainerResources] {
            let response = on_container(stage, &pod, &main_container(), &rules, &NoDevices);
            assert_eq!(resources(&response), expected, "{name} {stage}");
            assert_eq!((response.refused.len(), response.constraints.0.len()), (0, 0), "{name} {stage}");
        }
    }
}

#[test]
fn pods_are_started_as_recorded() {
    let default = Options::default();
    let normalizes = with_hooks(&[Hook::CpuNormalization]);
    for (name, options, pod, expected, expected_files) in [
        (
            "hookserver-sandbox-be",
            &default,
            pod("BE", BE, &[EXTENDED]),
            (None, Some(1536), Some(150_000), Some(GIB)),
            vec![
                "cpu.bvt_warp_ns = 0",
                "cpu.shares = 1536",
                "cpu.cfs_quota_us = 150000",
                "memory.limit_in_bytes = 1073741824",
            ],
        ),
        (
            "hookserver-sandbox-lsr",
            &default,
            pod("LSR", LSR, &[CPUSET]),
            (None, None, Some(-1), None),
            vec!["cpu.bvt_warp_ns = 0", "cpu.cfs_quota_us = unlimited"],
        ),
        ("hookserver-normalization", &normalizes, pod("LS", LS, &[]), (None, None, None, None), vec![]),
        ("hookserver-empty", &default, pod("", "", &[]), (None, None, None, None), vec![]),
        (
            "outside of the hierarchy",
            &default,
            pod("BE", "../../etc", &[EXTENDED]),
            (None, Some(1536), Some(150_000), Some(GIB)),
            vec![],
        ),
    ] {
        let response = on_sandbox(
            Stage::PreRunPodSandbox,
            &pod,
            &rules(options, &json!({}), Some("1.25").filter(|_| options == &normalizes)),
        );
        assert_eq!(resources(&response), expected, "{name}");
        assert_eq!(files(&response), expected_files, "{name}");
    }
}

#[test]
fn other_stages_change_nothing() {
    let rules = rules(&Options::default(), &json!({}), None);
    for stage in [Stage::PreStartContainer, Stage::PostStartContainer, Stage::PostStopContainer] {
        let response = on_container(stage, &pod("LS", LS, &[]), &main_container(), &rules, &NoDevices);
        assert_eq!(response, Response::default());
    }
    assert_eq!(on_sandbox(Stage::PostStopPodSandbox, &pod("LS", LS, &[]), &rules), Response::default());
}

#[test]
fn a_disabled_stage_changes_nothing() {
    // The original still changes requests of stages that are disabled.
    let disabled_stages = Stages::parse("PreRunPodSandbox,PreCreateContainer").unwrap();
    let rules = rules(&Options { disabled_stages, ..Options::default() }, &json!({}), None);
    assert_eq!(create(&rules, &pod("LSR", LSR, &[CPUSET])), Response::default());
    assert_eq!(on_sandbox(Stage::PreRunPodSandbox, &pod("BE", BE, &[EXTENDED]), &rules), Response::default());
    let update = on_container(
        Stage::PreUpdateContainerResources,
        &pod("LSR", LSR, &[CPUSET]),
        &main_container(),
        &rules,
        &NoDevices,
    );
    assert_eq!(update.adjustment.cpuset_cpus.as_deref(), Some("0,4"));
}

#[test]
fn an_update_that_no_hook_wants_is_empty() {
    let rules = rules(&with_hooks(&[]), &json!({}), None);
    let update =
        on_container(Stage::PreUpdateContainerResources, &pod("", LS, &[]), &main_container(), &rules, &NoDevices);
    assert!(update.adjustment.is_empty());
}

#[test]
fn a_malformed_annotation_is_an_error_only_when_both_policies_say_so() {
    let malformed = pod("LSR", LSR, &[("scheduling.koordinator.sh/resource-status", "{")]);
    for (failure_policy, plugin_failure_policy, proxy_fails, nri_fails) in [
        (FailurePolicy::Ignore, FailurePolicy::Ignore, false, false),
        (FailurePolicy::Ignore, FailurePolicy::Fail, true, false),
        (FailurePolicy::Fail, FailurePolicy::Ignore, false, false),
        (FailurePolicy::Fail, FailurePolicy::Fail, true, true),
    ] {
        let options = Options { failure_policy, plugin_failure_policy, ..Options::default() };
        let response = create(&rules(&options, &json!({}), None), &malformed);
        assert_eq!(resources(&response), (None, None, None, None));
        assert_eq!(
            (response.proxy_error().is_some(), response.nri_error(&options).is_some()),
            (proxy_fails, nri_fails)
        );
        let refused = response.refused[0].to_string();
        assert!(
            refused.starts_with("pod default/a: scheduling.koordinator.sh/resource-status: \"{\" is wrong"),
            "{refused}"
        );
        assert_eq!(response.refused.len(), 1);
    }
    let bad_cpus = pod("LSR", LSR, &[("scheduling.koordinator.sh/resource-status", r#"{"cpuset":"0-x"}"#)]);
    let response = create(&rules(&Options::default(), &json!({}), None), &bad_cpus);
    assert_eq!((resources(&response), response.refused.len()), ((None, None, None, None), 1));
}

#[test]
fn a_hook_that_fails_ends_the_call() {
    let options = Options { plugin_failure_policy: FailurePolicy::Fail, ..Options::default() };
    let pod = pod("BE", BE, &[("node.koordinator.sh/extended-resource-spec", "{"), CPUSET]);
    let response = create(&rules(&options, &json!({}), None), &pod);
    assert_eq!(response.error.as_ref().map(|error| error.hook), Some(Hook::BatchResource));
    assert_eq!(response.adjustment.cpuset_cpus, None);
    assert_eq!(response.ran, [(Hook::BatchResource, false)]);
    let ignoring = create(&rules_of(&Options::default()), &pod);
    assert_eq!(ignoring.adjustment.cpuset_cpus.as_deref(), Some("0,4"));
    assert_eq!(ignoring.ran, [(Hook::BatchResource, false), (Hook::CpuSetAllocator, true)]);
}

fn rules_of(options: &Options) -> Rules {
    rules(options, &json!({}), None)
}

const LIBRARY: &str = "/root/vgpu/libvgpu.so";

fn gpu(label: bool, gpus: &str, monitors_shared_gpus: bool) -> Response {
    let gpu = GpuOptions { hami_core_library: LIBRARY.into(), monitors_shared_gpus };
    let options = Options { gpu, ..with_hooks(&[Hook::GpuEnvInject]) };
    let mut pod = pod("", LS, &[("scheduling.koordinator.sh/device-allocated", &format!(r#"{{"gpu":{gpus}}}"#))]);
    if label {
        pod.labels.insert("koordinator.sh/gpu-isolation-provider".to_owned(), "HAMi-core".to_owned());
    }
    create(&rules(&options, &json!({}), None), &pod)
}

#[test]
fn gpus_become_environment_and_mounts_as_recorded() {
    let half = r#"[{"minor":2,"resources":{"koordinator.sh/gpu-core":"50","koordinator.sh/gpu-memory":"8Gi","koordinator.sh/gpu-memory-ratio":"50"}}]"#;
    let whole = half.replace("\"50\"", "\"100\"");
    let limited = vec![
        ("CUDA_DEVICE_MEMORY_LIMIT", "8589934592"),
        ("CUDA_DEVICE_SM_LIMIT", "50"),
        ("LD_PRELOAD", LIBRARY),
        ("NVIDIA_VISIBLE_DEVICES", "2"),
    ];
    for (label, gpus, envs, refusals) in [
        (
            false,
            r#"[{"minor":1,"resources":{}},{"minor":0,"resources":{}}]"#,
            vec![("NVIDIA_VISIBLE_DEVICES", "1,0")],
            0,
        ),
        (true, half, limited.clone(), 0),
        (false, half, vec![("NVIDIA_VISIBLE_DEVICES", "2")], 0),
        (true, &whole, vec![("NVIDIA_VISIBLE_DEVICES", "2")], 0),
        (
            true,
            r#"[{"minor":2,"resources":{"koordinator.sh/gpu-core":"50"}}]"#,
            vec![("NVIDIA_VISIBLE_DEVICES", "2")],
            1,
        ),
        (true, "[]", vec![], 0),
    ] {
        let response = gpu(label, gpus, false);
        let found: Vec<(&str, &str)> =
            response.adjustment.envs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!((found, response.refused.len()), (envs.clone(), refusals), "{gpus}");
        let bind = |path: &str| Mount {
            source: path.to_owned(),
            destination: path.to_owned(),
            kind: "bind",
            options: &["rbind"],
        };
        let mounts = if envs == limited { vec![bind(LIBRARY), bind("/tmp/vgpulock")] } else { vec![] };
        assert_eq!(response.adjustment.mounts, mounts, "{gpus}");
    }
    let monitored = gpu(true, half, true);
    assert_eq!(monitored.adjustment.envs["CUDA_DEVICE_MEMORY_SHARED_CACHE"], "/root/vgpu/1_main.cache");
    assert_eq!(monitored.effects, [Effect::RecreateFolder("/root/vgpu/containers/1_main".into())]);
    let mount = &monitored.adjustment.mounts[2];
    assert_eq!((mount.source.as_str(), mount.destination.as_str()), ("/root/vgpu/containers/1_main", "/root/vgpu"));
}

#[test]
fn a_pod_has_its_resctrl_group_from_its_first_to_its_last_stage() {
    let rules = rules(&with_hooks(&[Hook::Resctrl]), &json!({}), None);
    let annotation = r#"{"llc":{"schemata":{"range":[0,40]}},"mb":{"schemata":{"percent":30}}}"#;
    let limited = pod("BE", BE, &[("node.koordinator.sh/resctrl", annotation)]);
    let started = on_sandbox(Stage::PreRunPodSandbox, &limited, &rules);
    let [Effect::EnsureGroup(group)] = started.effects.as_slice() else { panic!() };
    assert_eq!((group.name.as_str(), group.tasks.len()), ("koordlet-1", 0));
    assert_eq!(
        group.schemata.l3_text().unwrap() + &group.schemata.bandwidth_text().unwrap(),
        "L3:0=1f;1=1f;\nMB:0=30;1=30;\n"
    );
    assert_eq!(create(&rules, &limited).adjustment.rdt_class.as_deref(), Some("koordlet-1"));
    let removed = on_sandbox(Stage::PreRemoveRunPodSandbox, &limited, &rules);
    assert_eq!(removed.effects, [Effect::RemoveGroup("koordlet-1".to_owned())]);
    let plain = pod("BE", BE, &[]);
    assert_eq!(on_sandbox(Stage::PreRunPodSandbox, &plain, &rules).effects, []);
    assert!(create(&rules, &plain).adjustment.is_empty());
    let malformed = create(&rules, &pod("BE", BE, &[("node.koordinator.sh/resctrl", "{")]));
    assert_eq!((malformed.adjustment.rdt_class, malformed.refused.len()), (None, 1));
}
