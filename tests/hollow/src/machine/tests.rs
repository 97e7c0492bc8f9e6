use koord_koordlet_system::Resource;
use serde_json::json;

use super::*;
use crate::seed::Seed;

fn pod(name: &str, requests: &serde_json::Value) -> MachinePod {
    let pod = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("u-{name}")},
        "spec": {"containers": [{"name": "a", "resources": {"requests": requests}}]},
        "status": {"phase": "Running", "containerStatuses":
            [{"name": "a", "image": "", "imageID": "", "ready": true, "restartCount": 0, "containerID": "hollow://u/a"}]},
    }))
    .unwrap();
    MachinePod::of(&pod).unwrap()
}

fn machine() -> (tempfile::TempDir, Machine) {
    let folder = tempfile::tempdir().unwrap();
    let mut node = HollowNode::of_fleet(Seed::new(1), 0);
    (node.cpu_milli, node.memory_bytes) = (16_000, 64 << 30);
    let machine = Machine::create(&node, folder.path()).unwrap();
    (folder, machine)
}

/// The cores that a cgroup has used in the ten seconds of its `cpu.stat`.
fn cores_in(machine: &Machine, cgroup: &CgroupPath, run: Duration, before_us: u64) -> (f64, u64) {
    let text = fs::read_to_string(machine.cgroups.path(cgroup, Resource::CpuUsage).unwrap()).unwrap();
    let usage: u64 = text.lines().next().unwrap().strip_prefix("usage_usec ").unwrap().parse().unwrap();
    ((usage - before_us) as f64 / run.as_micros() as f64, usage)
}

#[test]
fn a_best_effort_pod_uses_what_the_quota_of_its_class_leaves() {
    let (_folder, mut machine) = machine();
    let job = pod("job", &json!({"kubernetes.io/batch-cpu": "8000", "kubernetes.io/batch-memory": "1Gi"}));
    let shop = pod("shop", &json!({"cpu": "4", "memory": "8Gi"}));
    let (job_cgroup, shop_cgroup) = (job.cgroup(), shop.cgroup());
    machine.set_pods(vec![job, shop]).unwrap();
    let ten = Duration::from_secs(10);
    machine.advance(ten, 0.5).unwrap();
    let (job_cores, used) = cores_in(&machine, &job_cgroup, ten, 0);
    let shop_cores = cores_in(&machine, &shop_cgroup, ten, 0).0;
    assert!((job_cores - 8.0).abs() < 1e-9 && (shop_cores - 2.0).abs() < 1e-9, "{job_cores} {shop_cores}");
    let class = machine.path(&LAYOUT.qos(QosFolder::BestEffort));
    fs::write(class.join("cpu.max"), "150000").unwrap();
    machine.advance(ten, 0.5).unwrap();
    assert!((cores_in(&machine, &job_cgroup, ten, used).0 - 1.5).abs() < 1e-9);
    assert_eq!(fs::read_to_string(class.join("cpu.max")).unwrap().trim(), "150000 100000");
    let stat = fs::read_to_string(class.join("cpu.stat")).unwrap();
    assert!(stat.contains("nr_periods 200\nnr_throttled 100\n"), "{stat}");
}

#[test]
fn folders_of_pods_come_and_go_with_them() {
    let (_folder, mut machine) = machine();
    let job = pod("job", &json!({"kubernetes.io/batch-cpu": "8000"}));
    let folder = machine.path(&job.containers()[0]);
    machine.set_pods(vec![job.clone()]).unwrap();
    assert!(folder.join("cpu.max").exists());
    machine.set_pods(vec![job]).unwrap();
    machine.advance(Duration::from_secs(1), 0.1).unwrap();
    machine.set_pods(Vec::new()).unwrap();
    assert!(!folder.parent().unwrap().exists());
    machine.advance(Duration::from_secs(1), 0.1).unwrap();
}

#[test]
fn a_shorter_text_leaves_nothing_of_the_longer_one_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "123456\n").unwrap();
    write_over(&path, "9\n").unwrap();
    assert_eq!(fs::read_to_string(path).unwrap().trim(), "9");
}
