//! The loading of NVIDIA's library, against a library that answers as it does; and on a machine with such GPUs against the real one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeMap, fs, path::Path};

use allocations::allocations;
use fake_nvml::{Event, FakeNvml, Gpu as FakeGpu, Process, Sample, Scenario};
use jiff::Timestamp;
use koord_koordlet_devices::{GpuProcess, GpuUsage, Gpus, Health, LIBRARY, NvmlError, ReturnCode, group_usage};
use koord_koordlet_system::HostTree;

const GIB: u64 = 1 << 30;
const XID: u64 = 8;
const GPU_IS_LOST: u32 = 15;
const NOT_SUPPORTED: u32 = 3;
const FUNCTION_NOT_FOUND: u32 = 13;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).unwrap()
}

fn gpu(minor: u32) -> FakeGpu {
    FakeGpu {
        uuid: format!("GPU-{minor}"),
        minor,
        name: "NVIDIA A100-SXM4-40GB".to_owned(),
        bus_id: format!("00000000:{:02X}:00.0", 0x1a + minor),
        memory_total_bytes: 40 * GIB,
        memory_used_bytes: 3 * GIB,
        utilization: 55,
        event_types: XID | 2,
        ..FakeGpu::default()
    }
}

fn machine(count: u32) -> Scenario {
    Scenario { driver_version: "550.54.15".to_owned(), gpus: (0..count).map(gpu).collect(), ..Scenario::default() }
}

fn fault(function: &str, code: u32) -> BTreeMap<String, u32> {
    BTreeMap::from([(function.to_owned(), code)])
}

/// The agent's side of a library, on a machine without sysfs.
struct Agent {
    fake: FakeNvml,
    gpus: Gpus,
}

impl Agent {
    fn on(scenario: &Scenario) -> Self {
        let fake = FakeNvml::new(scenario);
        let gpus = Gpus::new(fake.path());
        Self { fake, gpus }
    }

    fn refresh(&mut self, second: i64) -> Result<(), NvmlError> {
        self.gpus.refresh(&HostTree, Path::new("/nowhere"), at(second))
    }

    /// Minor and reason of each GPU; `""` for a healthy one.
    fn health(&self) -> Vec<(u32, String)> {
        let reason = |health: &Health| match health {
            Health::Healthy => String::new(),
            Health::Unhealthy { reason, .. } => reason.clone(),
        };
        self.gpus.gpus().map(|gpu| (gpu.minor, reason(&gpu.health))).collect()
    }

    fn failures(&self) -> Vec<String> {
        self.gpus.failures().iter().map(ToString::to_string).collect()
    }
}

fn health(reasons: &[&str]) -> Vec<(u32, String)> {
    (0..).zip(reasons.iter().map(|reason| (*reason).to_owned())).collect()
}

#[test]
fn gpus_are_read_with_their_place_in_sysfs() {
    let sys = tempfile::tempdir().unwrap();
    let target = sys.path().join("devices/pci0000:1a/0000:1b:00.0");
    fs::create_dir_all(&target).unwrap();
    fs::write(target.join("numa_node"), "1\n").unwrap();
    fs::create_dir_all(sys.path().join("bus/pci/devices")).unwrap();
    std::os::unix::fs::symlink(&target, sys.path().join("bus/pci/devices/0000:1b:00.0")).unwrap();
    let mut agent = Agent::on(&Scenario { gpus: vec![gpu(1), gpu(0)], ..machine(0) });
    agent.gpus.refresh(&HostTree, sys.path(), at(0)).unwrap();
    assert_eq!(agent.gpus.driver_version(), "550.54.15");
    let gpus: Vec<_> = agent.gpus.gpus().cloned().collect();
    let first = gpus[0].topology.clone().unwrap();
    let second = gpus[1].topology.clone().unwrap();
    assert_eq!((gpus[0].uuid.as_str(), gpus[0].minor, gpus[0].memory_bytes), ("GPU-0", 0, 40 * GIB));
    assert_eq!(gpus[0].model, "NVIDIA A100-SXM4-40GB");
    assert_eq!((first.bus_id.as_str(), first.pcie_id.as_str(), first.node_id), ("0000:1a:00.0", "", 0));
    assert_eq!((second.bus_id.as_str(), second.pcie_id.as_str(), second.node_id), ("0000:1b:00.0", "pci0000:1a", 1));
    assert_eq!((agent.health(), agent.failures()), (health(&["", ""]), vec![]));
}

#[test]
fn a_missing_library_is_an_error_with_a_remedy() {
    let mut gpus = Gpus::new("/nowhere/libnvidia-ml.so.1");
    let error = gpus.refresh(&HostTree, Path::new("/sys"), at(0)).unwrap_err();
    assert!(error.to_string().contains("/nowhere/libnvidia-ml.so.1"), "{error}");
    assert!(error.remedy().contains("install NVIDIA's driver"));
    assert_eq!((gpus.gpus().count(), gpus.fetch_xids(at(0)).unwrap(), gpus.sample(at(0)).len()), (0, vec![], 0));
}

#[test]
fn a_library_without_the_functions_is_an_error_that_names_one() {
    // Some other library, which every program is linked with.
    let mut gpus = Gpus::new("libc.so.6");
    match gpus.refresh(&HostTree, Path::new("/sys"), at(0)) {
        Err(NvmlError::NoFunction { function }) => assert_eq!(function, "nvmlInit_v2"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_driver_that_is_not_there_is_tried_again_once_a_minute() {
    let mut agent = Agent::on(&Scenario { faults: fault("nvmlInit_v2", 9), ..machine(1) });
    let error = agent.refresh(0).unwrap_err();
    assert_eq!(error.to_string(), "nvmlInit_v2: the driver is not loaded (code 9)");
    assert_eq!(error.remedy(), "load the kernel module: modprobe nvidia");
    agent.fake.set(&machine(1));
    assert_eq!(agent.refresh(59), Err(error));
    assert_eq!((agent.refresh(60), agent.health()), (Ok(()), health(&[""])));
}

#[test]
fn a_gpu_that_fails_at_the_start_harms_itself_alone() {
    for function in
        ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID", "nvmlDeviceGetMinorNumber", "nvmlDeviceGetMemoryInfo"]
    {
        let mut scenario = machine(3);
        scenario.gpus[1].faults = fault(function, GPU_IS_LOST);
        let mut agent = Agent::on(&scenario);
        agent.refresh(0).unwrap();
        assert_eq!(agent.health(), [(0, String::new()), (2, String::new())], "{function}");
        let failure = format!("GPU 1: {function}: the GPU has fallen off the bus or is otherwise lost (code 15)");
        assert_eq!(agent.failures(), [failure]);
        agent.fake.set(&machine(3));
        agent.refresh(1).unwrap();
        assert_eq!((agent.health(), agent.failures()), (health(&["", "", ""]), vec![]), "{function}");
    }
}

#[test]
fn what_is_not_needed_of_a_gpu_may_fail() {
    let mut scenario = machine(1);
    scenario.gpus[0].faults = BTreeMap::from([
        ("nvmlDeviceGetName".to_owned(), 999),
        ("nvmlDeviceGetPciInfo_v3".to_owned(), FUNCTION_NOT_FOUND),
    ]);
    scenario.faults = fault("nvmlSystemGetDriverVersion", 999);
    let mut agent = Agent::on(&scenario);
    agent.refresh(0).unwrap();
    let gpu = agent.gpus.gpus().next().unwrap().clone();
    assert_eq!((gpu.model.as_str(), gpu.topology, gpu.health), ("", None, Health::Healthy));
    assert_eq!(
        agent.failures(),
        [
            "GPU 0: nvmlDeviceGetName: an unknown error of the driver (code 999)",
            "GPU 0: nvmlDeviceGetPciInfo_v3: the driver has no such function (code 13)"
        ]
    );
}

#[test]
fn a_gpu_that_is_lost_is_unhealthy_and_healthy_again_after_its_reset() {
    let mut agent = Agent::on(&machine(2));
    agent.refresh(0).unwrap();
    let mut broken = machine(2);
    broken.gpus[0].faults = fault("*", GPU_IS_LOST);
    agent.fake.set(&broken);
    agent.refresh(10).unwrap();
    assert_eq!(agent.health(), health(&["DeviceLost", ""]));
    let lost = agent.gpus.gpus().next().unwrap().clone();
    assert_eq!((lost.uuid.as_str(), lost.memory_bytes), ("GPU-0", 40 * GIB), "what was known of it stays");
    let Health::Unhealthy { message, .. } = lost.health else { panic!("it is unhealthy") };
    assert!(message.contains("reset the GPU"), "{message}");
    assert_eq!(agent.fake.sessions(), 1);
    agent.refresh(70).unwrap();
    assert_eq!((agent.health(), agent.fake.sessions()), (health(&["DeviceLost", ""]), 1), "in a new session too");
    agent.fake.set(&machine(2));
    agent.refresh(80).unwrap();
    assert_eq!(agent.health(), health(&["", ""]));
}

#[test]
fn gpus_of_a_driver_that_vanishes_are_unhealthy_until_it_is_back() {
    let mut agent = Agent::on(&machine(2));
    agent.refresh(0).unwrap();
    agent.fake.set(&Scenario { faults: fault("nvmlDeviceGetCount_v2", 9), ..machine(2) });
    assert!(agent.refresh(10).is_err());
    assert_eq!(agent.health(), health(&["DeviceQueryFailed", "DeviceQueryFailed"]));
    assert_eq!(agent.fake.sessions(), 0);
    agent.fake.set(&machine(2));
    assert_eq!((agent.refresh(60), agent.health()), (Ok(()), health(&["", ""])));
}

#[test]
fn a_gpu_that_was_added_or_removed_is_noticed() {
    let mut agent = Agent::on(&machine(1));
    agent.refresh(0).unwrap();
    agent.fake.set(&machine(2));
    agent.refresh(1).unwrap();
    assert_eq!(agent.health(), health(&["", ""]));
    agent.fake.set(&machine(1));
    agent.refresh(2).unwrap();
    assert_eq!(agent.health(), health(&[""]));
}

#[test]
fn a_lost_gpu_stays_although_new_sessions_do_not_list_it() {
    let mut agent = Agent::on(&machine(2));
    agent.refresh(0).unwrap();
    let mut broken = machine(2);
    broken.gpus[1].faults = fault("*", GPU_IS_LOST);
    agent.fake.set(&broken);
    agent.refresh(1).unwrap();
    agent.fake.set(&machine(1));
    agent.refresh(61).unwrap();
    assert_eq!(agent.health(), health(&["", "DeviceLost"]));
    let replaced = FakeGpu { uuid: "GPU-new".to_owned(), ..gpu(1) };
    agent.fake.set(&Scenario { gpus: vec![gpu(0), replaced], ..machine(0) });
    agent.refresh(62).unwrap();
    assert_eq!(agent.health(), health(&["", ""]), "another GPU has its number");
}

#[test]
fn a_session_begins_anew_while_a_gpu_was_never_read() {
    let mut broken = machine(2);
    broken.gpus[1].faults = fault("*", GPU_IS_LOST);
    let mut agent = Agent::on(&broken);
    agent.refresh(0).unwrap();
    agent.fake.set(&Scenario { faults: fault("nvmlInit_v2", 9), ..broken });
    agent.refresh(59).unwrap();
    assert!(agent.refresh(60).is_err(), "the new session fails");
}

#[test]
fn critical_errors_make_a_gpu_unhealthy_and_those_of_programs_do_not() {
    let event = |gpu, xid| Event { gpu, xid };
    let mut agent = Agent::on(&machine(3));
    agent.refresh(0).unwrap();
    assert_eq!(agent.gpus.fetch_xids(at(1)).unwrap(), [], "it does not wait");
    agent.fake.set(&Scenario { events: vec![event(0, 31), event(1, 79), event(1, 48), event(2, 109)], ..machine(3) });
    let events = agent.gpus.fetch_xids(at(2)).unwrap();
    let events: Vec<_> = events.iter().map(|event| (event.uuid.as_deref(), event.xid, event.is_critical)).collect();
    assert_eq!(
        events,
        [(Some("GPU-0"), 31, false), (Some("GPU-1"), 79, true), (Some("GPU-1"), 48, true), (Some("GPU-2"), 109, false)]
    );
    assert_eq!(agent.health(), health(&["", "Xid79", ""]));
    let message = agent.gpus.gpus().nth(1).unwrap().health.clone();
    assert_eq!(message, Health::unhealthy("Xid79", "critical error XID 79 at 2026-01-01T00:00:02Z"));
    agent.refresh(10_000).unwrap();
    assert_eq!(agent.health(), health(&["", "Xid79", ""]), "this driver recommends nothing");
}

#[test]
fn a_gpu_is_healthy_again_when_its_driver_needs_no_recovery_for_a_minute() {
    let machine = |action, events: Vec<Event>| {
        let mut scenario = Scenario { events, ..machine(1) };
        scenario.gpus[0].recovery_action = Some(action);
        scenario
    };
    let mut agent = Agent::on(&machine(1, vec![Event { gpu: 0, xid: 94 }]));
    agent.refresh(0).unwrap();
    agent.gpus.fetch_xids(at(0)).unwrap();
    agent.refresh(61).unwrap();
    assert_eq!(agent.health(), health(&["Xid94"]), "a reset is needed");
    agent.fake.set(&machine(0, vec![Event { gpu: 0, xid: 94 }]));
    agent.gpus.fetch_xids(at(62)).unwrap();
    agent.refresh(121).unwrap();
    assert_eq!(agent.health(), health(&["Xid94"]), "the last error is too young");
    agent.refresh(122).unwrap();
    assert_eq!(agent.health(), health(&[""]));
}

#[test]
fn gpus_without_reports_of_errors_are_unhealthy_and_a_driver_without_them_is_not_their_fault() {
    let mut scenario = machine(2);
    scenario.gpus[1].event_types = 2;
    let mut agent = Agent::on(&scenario);
    agent.refresh(0).unwrap();
    assert_eq!(agent.health(), health(&["", "DeviceHealthCheckNotSupported"]));
    assert_eq!(agent.gpus.events_error(), None);

    let mut agent = Agent::on(&Scenario { faults: fault("nvmlEventSetCreate", 999), ..machine(2) });
    agent.refresh(0).unwrap();
    assert_eq!(agent.health(), health(&["", ""]));
    let error = agent.gpus.events_error().unwrap().to_string();
    assert_eq!(error, "nvmlEventSetCreate: an unknown error of the driver (code 999)");
    assert_eq!(agent.gpus.fetch_xids(at(1)).unwrap(), []);
}

fn busy() -> Scenario {
    let now_us = u64::try_from(at(10).as_microsecond()).unwrap();
    let mut scenario = machine(2);
    scenario.gpus[0].processes = (100..105).map(|pid| Process { pid, memory_bytes: Some(GIB) }).collect();
    scenario.gpus[0].samples = vec![
        Sample { pid: 100, time_us: now_us - 500_000, core_percent: 30 },
        Sample { pid: 100, time_us: now_us - 100_000, core_percent: 40 },
        Sample { pid: 101, time_us: now_us - 9_000_000, core_percent: 99 },
    ];
    scenario.gpus[1].processes = vec![Process { pid: 104, memory_bytes: None }];
    scenario
}

#[test]
fn processes_without_a_young_sample_use_memory_and_no_cores() {
    let mut agent = Agent::on(&busy());
    agent.refresh(0).unwrap();
    let activities = agent.gpus.sample(at(10)).to_vec();
    let usage = |minor, core_percent, memory_bytes| GpuUsage { minor, core_percent, memory_bytes };
    let devices: Vec<_> = activities.iter().map(koord_koordlet_devices::GpuActivity::usage).collect();
    assert_eq!(devices, [usage(0, 40, 5 * GIB), usage(1, 0, 0)]);
    let of_pod: Vec<_> = group_usage(&activities, &[100, 104]).collect();
    assert_eq!(of_pod, [usage(0, 40, 2 * GIB), usage(1, 0, 0)]);
    let (count, ()) = allocations(|| {
        agent.gpus.sample(at(10));
    });
    assert_eq!((count, agent.failures()), (0, vec![]), "the lists are used again");
}

#[test]
fn many_processes_are_read_whole() {
    let mut scenario = machine(1);
    scenario.gpus[0].processes = (0..1000).map(|pid| Process { pid, memory_bytes: Some(1) }).collect();
    let mut agent = Agent::on(&scenario);
    agent.refresh(0).unwrap();
    assert_eq!(agent.gpus.sample(at(10))[0].usage().memory_bytes, 1000);
}

#[test]
fn older_drivers_list_processes_by_older_functions() {
    for missing in [
        &["nvmlDeviceGetComputeRunningProcesses_v3"][..],
        &["nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"],
    ] {
        let mut scenario = busy();
        scenario.faults = missing.iter().map(|function| ((*function).to_owned(), FUNCTION_NOT_FOUND)).collect();
        let mut agent = Agent::on(&scenario);
        agent.refresh(0).unwrap();
        let processes = agent.gpus.sample(at(10))[0].processes.clone();
        assert_eq!(processes.len(), 5, "{missing:?}");
        assert_eq!(processes[0], GpuProcess { pid: 100, core_percent: 40, memory_bytes: GIB });
    }
}

#[test]
fn a_gpu_that_does_not_know_processes_reports_the_whole_and_one_that_fails_is_left_out() {
    let mut scenario = busy();
    scenario.gpus[0].faults = BTreeMap::from([
        ("nvmlDeviceGetProcessUtilization".to_owned(), NOT_SUPPORTED),
        ("nvmlDeviceGetComputeRunningProcesses_v3".to_owned(), NOT_SUPPORTED),
    ]);
    let mut agent = Agent::on(&scenario);
    agent.refresh(0).unwrap();
    assert_eq!(agent.gpus.sample(at(10))[0].usage(), GpuUsage { minor: 0, core_percent: 55, memory_bytes: 3 * GIB });
    scenario.gpus[0].faults = fault("*", GPU_IS_LOST);
    agent.fake.set(&scenario);
    let minors: Vec<_> = agent.gpus.sample(at(11)).iter().map(|activity| activity.minor).collect();
    assert_eq!(minors, [1]);
    assert_eq!(
        agent.failures(),
        ["GPU 0: nvmlDeviceGetMemoryInfo: the GPU has fallen off the bus or is otherwise lost (code 15)"]
    );
}

#[test]
fn the_session_ends_with_the_agent() {
    let mut agent = Agent::on(&machine(1));
    agent.refresh(0).unwrap();
    assert_eq!(agent.fake.sessions(), 1);
    drop(agent.gpus);
    assert_eq!(agent.fake.sessions(), 0);
}

#[test]
fn codes_are_in_words() {
    assert_eq!(ReturnCode::TIMEOUT.to_string(), "no event within the time (code 10)");
}

#[test]
fn a_real_gpu_answers() {
    let mut gpus = Gpus::new(LIBRARY);
    let now = Timestamp::now();
    if let Err(error) = gpus.refresh(&HostTree, Path::new("/sys"), now) {
        programs::skipped("a GPU of NVIDIA", &error.to_string());
        return;
    }
    for gpu in gpus.gpus() {
        println!("{gpu:?}");
        assert!(gpu.uuid.starts_with("GPU-") && gpu.memory_bytes > 0 && !gpu.model.is_empty());
    }
    println!("driver {}, failures {:?}", gpus.driver_version(), gpus.failures());
    assert!(gpus.fetch_xids(now).is_ok());
    println!("{:?}", gpus.sample(Timestamp::now()));
}
