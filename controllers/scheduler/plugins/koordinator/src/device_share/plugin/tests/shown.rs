//! What is answered about the devices of nodes.

use koord_scheduler_framework::ServiceEndpoint as _;

use super::*;

#[test]
fn the_devices_of_nodes_are_shown_with_who_has_them() {
    let mut scheduler = Scheduler::of("gpu0@0/a gpu1!@0/a");
    scheduler.labelled("n2", "", &json!({}));
    assert_eq!(scheduler.schedule("a", &share(30)), "a on n1: gpu0:30");
    let plugin = DeviceShare::default();
    let shown = |path: &[&str]| plugin.serve(path, &Query::default(), scheduler.engine.cluster());
    let node = shown(&["nodeDeviceSummaries", "n1"]).unwrap();
    let members: Vec<&String> = node.as_object().unwrap().keys().collect();
    let own = ["allocateSet", "deviceFree", "deviceFreeDetail", "deviceTotal", "deviceTotalDetail", "deviceUsed"];
    assert_eq!(members, own.into_iter().chain(["deviceUsedDetail", "devices"]).collect::<Vec<_>>());
    assert_eq!(node["deviceUsedDetail"]["gpu"].as_object().unwrap().len(), 1, "nobody uses the other one");
    let core = |amounts: &Value| amounts["koordinator.sh/gpu-core"].clone();
    assert_eq!([&node["deviceTotal"], &node["deviceUsed"], &node["deviceFree"]].map(core), ["100", "30", "70"]);
    assert_eq!(core(&node["deviceFreeDetail"]["gpu"]["0"]), "70");
    assert_eq!(node["deviceTotalDetail"]["gpu"]["1"], json!({}), "it is not healthy");
    assert_eq!(
        (&node["devices"]["gpu"]["0"]["pcie"], &node["devices"]["gpu"]["1"]["isHealthy"]),
        (&json!("a"), &json!(false))
    );
    assert_eq!(core(&node["allocateSet"]["gpu"]["ns/a"]["0"]), "30");
    assert_eq!(shown(&["nodeDeviceSummaries"]).unwrap(), json!({"n1": node}));
    let none = ServiceError::NotFound("cannot find node n2".to_owned());
    assert_eq!(shown(&["nodeDeviceSummaries", "n2"]), Err(none), "it has none");
    scheduler.remove("a");
    let node = plugin.serve(&["nodeDeviceSummaries", "n1"], &Query::default(), scheduler.engine.cluster()).unwrap();
    let nothing = json!({});
    assert_eq!([&node["deviceUsed"], &node["deviceUsedDetail"], &node["allocateSet"]["gpu"]], [&nothing; 3]);
}
