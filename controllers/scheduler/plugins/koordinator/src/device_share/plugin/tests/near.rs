//! Devices near each other.

use super::*;

#[test]
fn a_node_where_no_card_is_near_the_best_gpu_is_refused_before_it_is_chosen() {
    let mut scheduler = Scheduler::new(DeviceShare::default());
    scheduler.node("n1", "gpu0@0/0 rdma0@0/0 gpu1@0/1 gpu2@0/1");
    scheduler.node("n2", "gpu0@0/0 rdma0@0/0");
    for (name, node, minor, percent) in [("a", "n1", 0, 40), ("b", "n1", 2, 40), ("c", "n2", 0, 60)] {
        let memory = percent * 80 / 100;
        let resources = list(&format!("gpu-core={percent} gpu-memory={memory}Gi gpu-memory-ratio={percent}"));
        let given = json!({"gpu": [{"minor": minor, "resources": resources}]});
        let annotations = json!({"scheduling.koordinator.sh/device-allocated": given});
        let running = json!({"requests": share(percent), "node": node, "annotations": annotations});
        scheduler.engine.set_pod(pod(name, &running), scheduler.now);
    }
    let mut requests = share(30);
    requests["koordinator.sh/rdma"] = json!("10");
    let joint = json!({"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"});
    let annotations = json!({"scheduling.koordinator.sh/device-joint-allocate": joint});
    let spec = json!({"requests": requests, "annotations": annotations});
    // On n1, which is emptier, GPU 1 is the emptiest.
    assert_eq!(scheduler.schedule_with("p", &spec), "p on n2: gpu0:30 rdma0:10");
}
