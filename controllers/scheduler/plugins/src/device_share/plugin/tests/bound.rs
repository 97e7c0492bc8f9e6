//! Devices of pods that are bound, and of such that are not.

use super::*;

fn is_used(scheduler: &Scheduler) -> bool {
    let cluster = scheduler.engine.cluster();
    let devices = cluster.state::<Devices>().unwrap().of(cluster.row("n1").unwrap()).unwrap();
    devices.get(Kind::Gpu, 0).unwrap().is_in_use()
}

#[test]
fn pods_have_devices_while_they_have_a_node() {
    let mut scheduler = Scheduler::of("gpu0@0/0");
    let given = json!({"gpu": [{"minor": 0, "resources": list("gpu-core=100 gpu-memory=80Gi gpu-memory-ratio=100")}]});
    let with_node = |node: Option<&str>| {
        let annotations = json!({"scheduling.koordinator.sh/device-allocated": given});
        let bound = pod("a", &json!({"requests": gpus(1), "node": "n1", "annotations": annotations}));
        Arc::new(Pod { node: node.map(Arc::from), ..Pod::clone(&bound) })
    };
    scheduler.engine.set_pod(with_node(None), scheduler.now);
    assert!(!is_used(&scheduler), "what is written in a pod without a node is not given");
    scheduler.engine.set_pod(with_node(Some("n1")), scheduler.now);
    assert!(is_used(&scheduler));
    scheduler.engine.remove_pod(&Uid::from("a"), scheduler.now);
    scheduler.engine.set_pod(with_node(None), scheduler.now);
    assert!(!is_used(&scheduler), "it has come again under the same name");
}
