//! What the scheduler answers about what it knows.

use koord_scheduler_runtime::ReadError;

use super::*;

#[tokio::test(start_paused = true)]
async fn the_leader_can_be_read_and_other_replicas_report_that_they_do_not_lead() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("a", "3");
    let stop = CancellationToken::new();
    let (first, _, leader) = stage.program_with_reader("one");
    let one = tokio::spawn(first.run(stop.clone()));
    stage.pass(5).await;
    let (second, _, standby) = stage.program_with_reader("two");
    let two = tokio::spawn(second.run(stop.clone()));
    stage.pass(5).await;
    let node = leader.get("nodes/only").await.unwrap();
    let only = &node["pods"].as_array().unwrap()[..];
    let [pod] = only else { panic!("{node}") };
    assert_eq!(
        (&node["node"]["metadata"]["name"], &pod["Pod"]["metadata"]["name"], &pod["Pod"]["spec"]["nodeName"]),
        (&json!("only"), &json!("a"), &json!("only"))
    );
    assert_eq!(
        [&node["requested"]["MilliCPU"], &node["allocatable"]["MilliCPU"], &node["remaining"]["MilliCPU"]],
        [&json!(3000), &json!(4000), &json!(1000)]
    );
    assert!(node["generation"].as_u64() > Some(0) && node.get("podsWithAffinity").is_none(), "{node}");
    let services = leader.get("__services__").await.unwrap();
    let own = ["__services__", "nodes/:nodeName", "queue", "queue/:namespace/:podName", "verdicts/:namespace/:podName"];
    assert_eq!(services["GET"], json!(own.map(|path| format!("/apis/v1/{path}"))));
    let none = ReadError::NotFound("cannot find node none".to_owned());
    assert_eq!(leader.get("nodes/none").await, Err(none));
    for unknown in ["nodes", "plugins/NodeResourcesFit/x", "plugins/None/x", ""] {
        assert_eq!(leader.get(unknown).await, Err(ReadError::Unknown), "{unknown}");
    }
    assert_eq!(standby.get("nodes/only").await, Err(ReadError::NotLeading));
    stop.cancel();
    one.await.unwrap().unwrap();
    two.await.unwrap().unwrap();
    assert_eq!(leader.get("nodes/only").await, Err(ReadError::NotLeading), "nobody is there any more");
}

#[tokio::test(start_paused = true)]
async fn the_queue_says_where_a_pod_stands_and_what_it_waits_for() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("large", "8");
    let gate = json!([{"name": "example.com/gate"}]);
    let spec = json!({"schedulerName": "koord-scheduler", "containers": [{"name": "c", "image": "i"}], "schedulingGates": gate});
    stage.send(Method::POST, PODS, &json!({"metadata": {"name": "gated"}, "spec": spec}));
    let unowned = json!({"schedulerName": "koord-schedular", "containers": [{"name": "c", "image": "i"}]});
    stage.send(Method::POST, PODS, &json!({"metadata": {"name": "misspelt"}, "spec": unowned}));
    let stop = CancellationToken::new();
    let (manager, _, reader) = stage.program_with_reader("one");
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    let large = reader.get("queue/default/large").await.unwrap();
    assert_eq!(
        [&large["queue"], &large["position"], &large["attempts"], &large["plugins"]],
        [&json!("unschedulable"), &json!(1), &json!(1), &json!(["NodeResourcesFit"])]
    );
    let wakes = large["wakesOn"].as_array().unwrap();
    assert!(wakes.contains(&json!("Node/Add")) && wakes.contains(&json!("AssignedPod/Delete")), "{wakes:?}");
    let gated = reader.get("queue/default/gated").await.unwrap();
    assert_eq!((&gated["queue"], &gated["plugins"]), (&json!("gated"), &json!(["SchedulingGates"])));
    assert!(gated["reason"].as_str().unwrap().contains("example.com/gate"), "{gated}");
    let not_tried = reader.get("verdicts/default/gated").await.unwrap()["notTried"].clone();
    assert_eq!(
        (&not_tried["plugin"], &not_tried["reason"]["code"]),
        (&json!("SchedulingGates"), &json!("SchedulingGated"))
    );
    let misspelt = reader.get("verdicts/default/misspelt").await.unwrap();
    let operands = json!({"schedulerName": "koord-schedular", "profiles": "koord-scheduler"});
    assert_eq!(
        [&misspelt["notTried"]["reason"]["code"], &misspelt["notTried"]["reason"]["operands"], &misspelt["attempts"]],
        [&json!("SchedulerMismatch"), &operands, &json!([])]
    );
    let list = reader.get("queue").await.unwrap();
    assert_eq!((&list["unschedulable"], &list["gated"], &list["notShown"]), (&json!(1), &json!(1), &json!(0)));
    let pods: Vec<&Value> = list["pods"].as_array().unwrap().iter().map(|pod| &pod["pod"]).collect();
    assert_eq!(pods, [&json!("default/large"), &json!("default/gated")]);
    stage.add_node("another", "16");
    stage.pass(5).await;
    assert_eq!(reader.get("queue/default/large").await, Err(ReadError::Unknown), "it has its node");
    let verdicts = reader.get("verdicts/default/large").await.unwrap();
    let [placed, refused] = &verdicts["attempts"].as_array().unwrap()[..] else { panic!("{verdicts}") };
    assert_eq!(
        (&placed["result"], &placed["node"], &placed["attempt"]),
        (&json!("placed"), &json!("another"), &json!(2))
    );
    let reason = json!({"code": "InsufficientResources", "text": "Insufficient cpu", "operands": {"resource": "cpu"}});
    let by = json!({"plugin": "NodeResourcesFit", "nodes": 1, "example": "only", "inputAgeSeconds": null, "reasons": [reason]});
    assert_eq!((&refused["result"], &refused["refusedBy"]), (&json!("refused"), &json!([by])));
    stage.send(Method::DELETE, "/api/v1/namespaces/default/pods/large?gracePeriodSeconds=0", &json!(null));
    stage.pass(5).await;
    assert_eq!(reader.get("verdicts/default/large").await.unwrap(), verdicts, "what is gone is still told");
    assert_eq!(reader.get("verdicts/default/none").await, Err(ReadError::Unknown));
    stop.cancel();
    running.await.unwrap().unwrap();
}
