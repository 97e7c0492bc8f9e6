//! Pods whose containers are resized while they run.

use super::*;

impl Stage {
    /// What a container of a pod is to request from now on.
    fn resize(&self, pod: &str, cpu: &str) {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
        self.send(Method::PATCH, &format!("{PODS}/{pod}/resize"), &json!({"spec": {"containers": [container]}}));
    }

    /// What the container has, as the kubelet says, with the reason why it has not what it is to have.
    fn has(&self, pod: &str, cpu: &str, pending: Option<&str>) {
        let amounts = json!({ "cpu": cpu });
        let container = json!({
            "name": "c", "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
            "resources": {"requests": amounts}, "allocatedResources": amounts,
        });
        let pending = pending.map(|reason| json!({"type": "PodResizePending", "status": "True", "reason": reason}));
        let conditions: Vec<Value> = pending.into_iter().collect();
        let status = json!({"phase": "Running", "containerStatuses": [container], "conditions": conditions});
        self.send(Method::PATCH, &format!("{PODS}/{pod}/status"), &json!({ "status": status }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_counts_with_what_it_has_until_it_is_smaller_and_then_another_fits() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.add_pod("large", "3");
    stage.pass(5).await;
    stage.has("large", "3", None);
    stage.add_pod("waits", "2");
    stage.pass(5).await;
    let refused = "0/1 nodes are available: 1 Insufficient cpu.";
    assert!(stage.place("waits").starts_with(refused), "{}", stage.place("waits"));
    stage.resize("large", "1");
    stage.pass(60).await;
    assert!(stage.place("waits").starts_with(refused), "the container has three still");
    stage.has("large", "1", None);
    stage.pass(5).await;
    assert_eq!(stage.place("waits"), "only", "it does not wait for the five minutes");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_node_can_never_give_a_pod_does_not_count() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    let stop = CancellationToken::new();
    let running = tokio::spawn(stage.manager("one").run(stop.clone()));
    stage.add_pod("greedy", "1");
    stage.pass(5).await;
    stage.resize("greedy", "4");
    stage.has("greedy", "1", Some("Deferred"));
    stage.add_pod("waits", "2");
    stage.pass(5).await;
    assert!(stage.place("waits").starts_with("0/1 nodes are available: 1 Insufficient cpu."));
    stage.has("greedy", "1", Some("Infeasible"));
    stage.pass(5).await;
    assert_eq!(stage.place("waits"), "only");
    stop.cancel();
    running.await.unwrap().unwrap();
}
