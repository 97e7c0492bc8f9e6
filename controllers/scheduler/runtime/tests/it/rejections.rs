//! Pods that their nodes reject.

use koord_runtime::metrics::Audience;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_node_that_rejects_a_pod_is_avoided_and_tried_again_and_counted() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    stage.add_pod("a", "2");
    let (stop, (manager, metrics)) = (CancellationToken::new(), stage.measured("one"));
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    assert_eq!(stage.place("a"), "only");
    let rejected = json!({"status": {"phase": "Failed", "reason": "OutOfcpu", "message": "not enough"}});
    stage.send(Method::PATCH, &format!("{PODS}/a/status"), &rejected);
    stage.pass(1).await;
    stage.add_pod("again", "2");
    stage.add_pod("small", "1");
    stage.pass(5).await;
    let refused = "0/1 nodes are available: 1 node(s) have just rejected a pod that requests no more.";
    assert!(stage.place("again").starts_with(refused), "{}", stage.place("again"));
    assert_eq!(stage.place("small"), "only", "it requests less");
    let text = metrics.text(&[Audience::Runtime]);
    let line = r#"koord_scheduler_node_conflicts_total{profile="koord-scheduler",resource="cpu"} 1"#;
    assert!(text.lines().any(|known| known == line), "{text}");
    stage.pass(30).await;
    assert_eq!(stage.place("again"), "only");
    stop.cancel();
    running.await.unwrap().unwrap();
}
