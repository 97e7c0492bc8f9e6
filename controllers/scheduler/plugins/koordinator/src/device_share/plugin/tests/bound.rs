//! Devices of pods that are bound, and of such that are not.

use koord_scheduler_framework::{AttemptState, pod::Reference};

use super::*;

const ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";

/// A pod that runs on a node, and what is written in it.
fn running(annotations: &Value) -> Arc<Pod> {
    pod("a", &json!({"requests": gpus(1), "node": "n1", "annotations": annotations}))
}

/// The annotations of a pod that has the first GPU.
fn given() -> Value {
    let resources = list("gpu-core=100 gpu-memory=80Gi gpu-memory-ratio=100");
    json!({ALLOCATED: {"gpu": [{"minor": 0, "resources": resources}]}})
}

fn is_used(scheduler: &Scheduler) -> bool {
    let cluster = scheduler.engine.cluster();
    let devices = cluster.state::<Devices>().unwrap().of(cluster.row("n1").unwrap()).unwrap();
    devices.get(Kind::Gpu, 0).unwrap().is_in_use()
}

#[test]
fn pods_have_devices_while_they_have_a_node() {
    let mut scheduler = Scheduler::of("gpu0@0/0");
    let with_node = |node: Option<&str>| Arc::new(Pod { node: node.map(Arc::from), ..Pod::clone(&running(&given())) });
    scheduler.engine.set_pod(with_node(None), scheduler.now);
    assert!(!is_used(&scheduler), "what is written in a pod without a node is not given");
    scheduler.engine.set_pod(with_node(Some("n1")), scheduler.now);
    assert!(is_used(&scheduler));
    scheduler.engine.remove_pod(&Uid::from("a"), scheduler.now);
    scheduler.engine.set_pod(with_node(None), scheduler.now);
    assert!(!is_used(&scheduler), "it has come again under the same name");
}

#[test]
fn devices_that_a_pod_no_longer_names_are_free() {
    let mut scheduler = Scheduler::of("gpu0@0/0");
    let used = [given(), json!({ALLOCATED: "{"}), given(), json!({})].map(|annotations| {
        scheduler.engine.set_pod(running(&annotations), scheduler.now);
        is_used(&scheduler)
    });
    assert_eq!(used, [true, true, true, false], "what cannot be read changes nothing");
    let mut restarted = Scheduler::of("gpu0@0/0");
    restarted.engine.set_pod(running(&json!({ALLOCATED: "{"})), restarted.now);
    assert!(!is_used(&restarted), "nothing was known of it before");
}

#[test]
fn devices_of_an_annotation_that_cannot_be_read_are_free_when_the_pod_ends() {
    let mut scheduler = Scheduler::of("gpu0@0/0");
    for annotations in [given(), json!({ALLOCATED: "{"})] {
        scheduler.engine.set_pod(running(&annotations), scheduler.now);
    }
    scheduler.engine.remove_pod(&Uid::from("a"), scheduler.now);
    assert!(!is_used(&scheduler));
}

#[test]
fn a_node_that_reports_no_devices_gives_none_while_its_pods_have_some() {
    let mut scheduler = Scheduler::new(DeviceShare::default());
    scheduler.labelled("n1", FOUR, &json!({}));
    scheduler.engine.set_pod(running(&given()), scheduler.now);
    assert_eq!(scheduler.schedule("p", &gpus(1)), unavailable("p", "1 Insufficient gpu devices"));
    assert_eq!(scheduler.schedule("q", &share(50)), unavailable("q", "1 Insufficient gpu devices"));
    scheduler.remove("q");
    scheduler.remove("a");
    assert_eq!(scheduler.next().unwrap(), "p on n1: -", "nothing is known of its devices any more");
}

#[test]
fn nothing_is_written_for_the_device_plugin_of_a_reservation() {
    let mut scheduler = Scheduler::of("gpu0@0/0");
    let plugin = DeviceShare::with_gates(&DeviceShareArgs::default(), &|gate| gate == "DevicePluginAdaption");
    scheduler.engine.set_pod(running(&given()), scheduler.now);
    let cluster = scheduler.engine.cluster();
    let written = |placed: &Placed| {
        let mut patch = Patch::default();
        let request = Request { pod: &placed.pod, class: &placed.class, plugins: &[], state: &AttemptState::default() };
        plugin.pre_bind(&request, placed, cluster, &mut patch);
        patch.annotations.into_keys().collect::<Vec<_>>()
    };
    let placed = cluster.pod(&Uid::from("a")).unwrap();
    let names = ["bind-timestamp", "device-allocated", "gpu-minors"];
    assert_eq!(written(placed), names.map(|name| format!("scheduling.koordinator.sh/{name}")));
    let reference = Reference { kind: ResourceKind::POD, key: ObjectKey::cluster("r") };
    let reserve_pod = Pod { reservation: Some(Arc::new(reference)), ..Pod::clone(&placed.pod) };
    let placed = Placed { pod: Arc::new(reserve_pod), ..placed.clone() };
    assert_eq!(written(&placed), [ALLOCATED]);
}
