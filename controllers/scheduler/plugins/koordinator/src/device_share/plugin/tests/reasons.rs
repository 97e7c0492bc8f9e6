//! The codes and details of refusals.

use super::*;
use koord_scheduler_framework::AttemptState;

#[test]
fn a_refusal_names_unhealthy_devices_and_gpus_that_are_given_out_in_parts() {
    let mut scheduler = Scheduler::of("gpu0 gpu1!");
    scheduler.node("n2", "gpu0");
    scheduler.schedule("a", &gpus(1));
    scheduler.schedule("b", &gpus(1));
    let mut parts = json!({"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/mig-1g.10gb": "7"});
    for name in ["gpu", "gpu-core", "gpu-memory-ratio", "gpu-memory"] {
        parts[format!("koordinator.sh/{name}")] = json!("1000Gi");
    }
    let node = json!({"status": {"allocatable": parts}});
    scheduler.engine.set_node(koord_scheduler_testing::node("n3", &node), scheduler.now);
    scheduler.report("n3", "rdma0");
    // NodeResourcesFit refuses the others first.
    let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(DeviceShare::default())];
    let alone = Profile { filters: vec![0], ..Profile::of("test", plugins) };
    let request_of = pod("c", &json!({ "requests": gpus(1) }));
    let mut cluster = scheduler.engine.cluster().clone();
    let class = cluster.class(&request_of.template);
    let request = Request { pod: &request_of, class: &class, plugins: &alone.plugins, state: &AttemptState::default() };
    let said = alone.everywhere(&request, &cluster).into_iter().map(|on| {
        let reason = &on.refusals[0].reasons[0];
        format!("{}: {}: {reason}", on.node, koord_scheduler_testing::code(reason))
    });
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            "n1: DeviceUnhealthy device=gpu uuid=GPU-1: Insufficient gpu devices",
            "n2: DeviceUnavailable device=gpu: Insufficient gpu devices",
            "n3: DeviceUnmanaged device=gpu mig=nvidia.com/mig-1g.10gb: Insufficient gpu devices",
        ]
    );
}

#[test]
fn an_annotation_that_cannot_be_read_is_named_for_programs() {
    for name in ["device-allocate-hint", "device-joint-allocate", "gpu-partition-spec", "device-allocated"] {
        let key = format!("scheduling.koordinator.sh/{name}");
        let key = key.as_str();
        let mut scheduler = Scheduler::of("gpu0@0/0");
        let annotations = json!({key: "{bad"});
        scheduler.engine.set_pod(pod("p", &json!({"requests": gpus(1), "annotations": annotations})), scheduler.now);
        let why = scheduler.engine.why(&Uid::from("p"), scheduler.now).unwrap();
        let (plugin, rejection) = why.decision.unwrap().rejected.unwrap();
        assert_eq!((plugin, rejection.reasons[0].operand("annotation")), ("DeviceShare", Some(key)));
    }
}
