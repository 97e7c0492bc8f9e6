//! What the scheduler answers about what it knows.

use koord_scheduler_runtime::Unanswered;

use super::*;

#[tokio::test(start_paused = true)]
async fn the_replica_that_schedules_answers_and_the_others_say_that_they_do_not() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("a", "3");
    let stop = CancellationToken::new();
    let (first, _, leader) = stage.asked("one");
    let one = tokio::spawn(first.run(stop.clone()));
    stage.pass(5).await;
    let (second, _, standby) = stage.asked("two");
    let two = tokio::spawn(second.run(stop.clone()));
    stage.pass(5).await;
    let node = leader.ask("nodes/only").await.unwrap();
    assert_eq!((&node["node"], &node["pods"]), (&json!("only"), &json!(["default/a"])));
    assert_eq!(
        [&node["requested"]["cpu"], &node["allocatable"]["cpu"], &node["remaining"]["cpu"]],
        [&json!(3000), &json!(4000), &json!(1000)]
    );
    let services = leader.ask("__services__").await.unwrap();
    assert_eq!(services["GET"], json!(["/apis/v1/__services__", "/apis/v1/nodes/:nodeName"]));
    for unknown in ["nodes/none", "nodes", "plugins/NodeResourcesFit/x", "plugins/None/x", ""] {
        assert_eq!(leader.ask(unknown).await, Err(Unanswered::Unknown), "{unknown}");
    }
    assert_eq!(standby.ask("nodes/only").await, Err(Unanswered::NotLeading));
    stop.cancel();
    one.await.unwrap().unwrap();
    two.await.unwrap().unwrap();
    assert_eq!(leader.ask("nodes/only").await, Err(Unanswered::NotLeading), "nobody is there any more");
}
