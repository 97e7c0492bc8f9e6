//! NUMA nodes with devices.

use koord_core::key::ObjectKey;
use koord_scheduler_framework::{AttemptState, Score as _, object::Object};
use koord_scheduler_testing::devices::report;

use super::{world::requesting, *};
use crate::DeviceShare;

/// Two GPUs on each of two NUMA nodes.
fn with_gpus(policy: &str) -> World {
    let gpus = json!({"cpu": "16", "memory": "64Gi", "pods": "110", "koordinator.sh/gpu": "400"});
    let mut world = World::of(&[Machine { allocatable: gpus, ..Machine::labelled(KEEP, policy) }]);
    world.report_gpus("n1", &[0, 0, 1, 1]);
    world
}

#[test]
fn cpus_and_devices_come_from_the_same_numa_node() {
    for policy in ["SingleNUMANode", "Restricted", "BestEffort"] {
        let mut world = with_gpus(policy);
        let first = format!("{} GPUs 0 1", shares("", &[(0, "1", "1Gi")]));
        let second = format!("{} GPUs 2 3", shares("", &[(1, "4", "1Gi")]));
        assert_eq!(world.create_with_gpus("a", "1", "200"), first, "{policy}");
        assert_eq!(world.create_with_gpus("p", "4", "200"), second, "{policy}");
    }
}

#[test]
fn cpus_and_devices_on_different_numa_nodes_are_refused() {
    let mut world = with_gpus("SingleNUMANode");
    assert_eq!(world.create_with_gpus("a", "1", "200"), format!("{} GPUs 0 1", shares("", &[(0, "1", "1Gi")])));
    assert_eq!(world.create("b", ("LS", "6", &[])), shares("", &[(1, "6", "1Gi")]));
    let unaligned = "Unaligned NUMA Hint cause cpu prefer [01] among [01 11],\
                     gpu prefer [10] among [10 11],memory prefer [01] among [01 11]";
    assert_eq!(world.create_with_gpus("p", "4", "100"), refused(unaligned));
    // A device that is reported later wakes the pod.
    world.now = world.now + Duration::from_secs(20);
    world.report_gpus("n1", &[0, 0, 1, 1, 0]);
    assert_eq!(world.tried(), format!("{} GPUs 4", shares("", &[(0, "4", "1Gi")])));
}

#[test]
fn shares_of_gpus_are_alike_until_the_numa_node_is_chosen() {
    let mut world = with_gpus("SingleNUMANode");
    let pods = [("a", "60", 0, 0), ("b", "50", 0, 1), ("c", "100", 1, 2), ("d", "30", 0, 0)];
    for (name, percent, numa_node, gpu) in pods {
        // For the last one there is an idle GPU on the second NUMA node.
        let expected = format!("{} GPUs {gpu}", shares("", &[(numa_node, "1", "1Gi")]));
        assert_eq!(world.create_with_gpus(name, "1", percent), expected, "{name}");
    }
}

#[test]
fn gpus_are_rated_on_the_numa_nodes_that_were_found_for_the_pod() {
    let mut world = with_gpus("SingleNUMANode");
    assert_eq!(world.create_with_gpus("a", "1", "100"), format!("{} GPUs 0", shares("", &[(0, "1", "1Gi")])));
    assert_eq!(world.create("b", ("LS", "6", &[])), shares("", &[(1, "6", "1Gi")]));
    let requests = json!({"cpu": "4", "memory": "1Gi", "koordinator.sh/gpu": "100"});
    let pod = requesting("p", ("LS", &[]), 9500, &requests, None);
    let mut cluster = world.engine.cluster().clone();
    let (class, row) = (cluster.class(&pod.template), cluster.row("n1").unwrap());
    let numa = Arc::new(NodeNumaResource::new(NodeNumaResourceArgs::default())).register();
    let score = |plugins: &[Registration], aligns: bool| {
        let args = json!({"disableDeviceNUMATopologyAlignment": !aligns});
        let request = Request { pod: &pod, class: &class, plugins, state: &AttemptState::default() };
        let plugin = DeviceShare::new(&serde_json::from_value(args).unwrap());
        plugin.prepare_score(&request, &cluster).unwrap().score(&cluster, row)
    };
    // Of 200 percent and 160 GiB on NUMA node 0, which has the CPUs: 200 and 80; of all 400 and 320: 200 and 80.
    assert_eq!(score(std::slice::from_ref(&numa), true), 50 / 2);
    assert_eq!(
        (score(std::slice::from_ref(&numa), false), score(&[], true)),
        (i64::midpoint(50, 75), i64::midpoint(50, 75))
    );
}

#[test]
fn numa_hints_are_those_of_the_joint_devices_that_reserve_takes() {
    let tried = |devices: &str, used: &[usize]| {
        let allocatable = json!({"cpu": "16", "memory": "64Gi", "pods": "110", "koordinator.sh/gpu-core": "300",
            "koordinator.sh/gpu-memory-ratio": "300", "koordinator.sh/rdma": "100"});
        let mut world = World::of(&[Machine { allocatable, ..Machine::labelled(KEEP, "SingleNUMANode") }]);
        let key = ObjectKey::cluster("n1");
        world.engine.set_object(Object::new(key, Uid::from("n1"), false, Arc::new(report(devices))), world.now);
        let share = |percent: &str| {
            json!({"cpu": "1", "memory": "1Gi", "koordinator.sh/gpu-core": percent,
                "koordinator.sh/gpu-memory-ratio": percent})
        };
        for minor in used {
            let resources = json!({"koordinator.sh/gpu-core": "40", "koordinator.sh/gpu-memory": "32Gi",
                "koordinator.sh/gpu-memory-ratio": "40"});
            let given = json!({"gpu": [{"minor": minor, "resources": resources}]}).to_string();
            let given = [("scheduling.koordinator.sh/device-allocated", &*given)];
            let running = requesting(&format!("a{minor}"), ("LS", &given), 9500, &share("40"), Some("n1"));
            world.engine.set_pod(running, world.now);
        }
        let mut requests = share("50");
        requests["koordinator.sh/rdma"] = json!("100");
        let joint = json!({"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}).to_string();
        let joint = [("scheduling.koordinator.sh/device-joint-allocate", &*joint)];
        world.engine.set_pod(requesting("p", ("LS", &joint), 9500, &requests, None), world.now);
        world.tried()
    };
    // Of GPUs on switches that are in use the emptiest is taken, and not the first one, which has no card near it.
    let near = tried("gpu0@0/0 gpu1@0/1 gpu2@0/1 rdma0@0/1", &[0, 2]);
    assert_eq!(near, format!("{} GPUs 1", shares("", &[(0, "1", "1Gi")])));
    // A switch in use goes before one that is not, as in the original, whatever is near its GPUs.
    let apart = tried("gpu0@0/0 gpu1@0/1 rdma0@0/1", &[0]);
    assert!(apart.contains("node(s) Device Joint-Allocate rules violation"), "{apart}");
}
