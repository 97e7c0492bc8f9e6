//! Replicas that take turns.

use tokio::sync::watch;

use super::*;

/// A client whose requests of this method and path arrive when the gate is open. The second value says when one waits.
fn held_back(server: &Server, method: Method, path: String) -> (Client, watch::Sender<bool>, watch::Receiver<bool>) {
    let (gate, open) = watch::channel(false);
    let (arriving, waits) = watch::channel(false);
    let arriving = Arc::new(arriving);
    let client = client(server, move |request| {
        let is_held = request.method() == method && request.uri().path() == path;
        let (arriving, mut open) = (Arc::clone(&arriving), open.clone());
        async move {
            if is_held {
                arriving.send_replace(true);
                open.wait_for(|is_open| *is_open).await.unwrap();
            }
        }
    });
    (client, gate, waits)
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_takes_over_knows_what_is_bound() {
    let stage = Stage::new();
    stage.add_node("only", "2");
    let (first, second) = (CancellationToken::new(), CancellationToken::new());
    let one = tokio::spawn(stage.manager("one").run(first.clone()));
    stage.pass(5).await;
    let two = tokio::spawn(stage.manager("two").run(second.clone()));
    stage.add_pod("a", "1");
    stage.pass(5).await;
    assert_eq!(stage.place("a"), "only");
    first.cancel();
    one.await.unwrap().unwrap();
    stage.add_pod("b", "1");
    stage.add_pod("c", "1");
    stage.pass(20).await;
    let places = ["b", "c"].map(|name| stage.place(name));
    let refused = "0/1 nodes are available: 1 Insufficient cpu.";
    assert!(places.contains(&"only".to_owned()) && places.iter().any(|place| place.starts_with(refused)), "{places:?}");
    second.cancel();
    two.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_decided_before_another_led_is_forgotten() {
    let stage = Stage::new();
    stage.add_node("only", "2");
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    stage.send(Method::POST, "/apis/scheduling.k8s.io/v1/priorityclasses", &class);
    let (client, gate, mut waits) = held_back(&stage.server, Method::PATCH, format!("{PODS}/low/status"));
    let (manager, _, _) = stage.program(client, default_profile("koord-scheduler").unwrap(), "one");
    let leading = manager.leading();
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.add_pod("low", "2");
    stage.pass(5).await;
    assert_eq!(stage.place("low"), "only");

    // The other pod is to go for this one; the first word of that is on its way when another replica takes the Lease.
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}});
    let spec = json!({"schedulerName": "koord-scheduler", "priorityClassName": "high", "containers": [container]});
    stage.send(Method::POST, PODS, &json!({"metadata": {"name": "high"}, "spec": spec}));
    waits.wait_for(|waits| *waits).await.unwrap();
    let now = stage.clock.now();
    let taken = json!({"holderIdentity": "another", "leaseDurationSeconds": 1, "renewTime": format!("{now:.6}")});
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/koord-scheduler";
    stage.send(Method::PATCH, lease, &json!({ "spec": taken }));
    let mut lost = leading.clone();
    lost.wait_for(|leads| !leads).await.unwrap();
    stage.send(Method::DELETE, &format!("{PODS}/high"), &json!({"gracePeriodSeconds": 0}));
    gate.send_replace(true);
    stage.pass(60).await;
    assert!(*leading.borrow(), "nobody else wants to lead");
    let low = stage.send(Method::GET, &format!("{PODS}/low"), &Value::Null);
    assert_eq!(low["metadata"]["deletionTimestamp"], Value::Null, "nobody needs its place any more");
    stage.add_pod("next", "1");
    stage.pass(5).await;
    assert!(stage.place("next").starts_with("0/1 nodes are available: 1 Insufficient cpu."), "it still schedules");
    stop.cancel();
    running.await.unwrap().unwrap();
}
