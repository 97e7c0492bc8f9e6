//! A leader that waits until its cache is as new as a write of its own.

use http_body_util::BodyExt as _;
use koord_runtime::key::ObjectKey;

use super::*;

const BARRIER: &str = "/api/v1/namespaces/kube-system/pods/barrier";

fn barrier() -> SyncBarrier {
    let (pod, timeout) = (ObjectKey::new("kube-system", "barrier"), Duration::from_mins(1));
    SyncBarrier { pod, lease: "koord-scheduler".to_owned(), timeout }
}

/// A client whose writes of the barrier say that they have a revision so much later than they have.
fn ahead_by(server: &Server, revisions: u64) -> Client {
    let router = server.router();
    let service = service_fn(move |request: http::Request<Body>| {
        let (is_barrier, router) = (request.uri().path() == BARRIER, router.clone());
        async move {
            let answer = router.oneshot(request).await?;
            if !is_barrier || !answer.status().is_success() {
                return Ok::<_, std::convert::Infallible>(answer);
            }
            let (head, body) = answer.into_parts();
            let mut object: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
            let revision: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            object["metadata"]["resourceVersion"] = json!((revision + revisions).to_string());
            Ok(http::Response::from_parts(head, object.to_string().into()))
        }
    });
    Client::new(service, "default")
}

/// Where a pod is 5 and 70 seconds after a leader has begun, whose writes have these revisions.
async fn places(stage: &Stage, revisions: u64) -> [String; 2] {
    stage.add_node("only", "4");
    stage.add_pod("a", "1");
    let client = ahead_by(&stage.server, revisions);
    let profile = default_profile("koord-scheduler").unwrap();
    let (manager, ..) = stage.program_behind(Some(barrier()), client, profile, "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    let soon = stage.place("a");
    stage.pass(65).await;
    stop.cancel();
    running.await.unwrap().unwrap();
    [soon, stage.place("a")]
}

fn with_barrier() -> Stage {
    let stage = Stage::new();
    let spec = json!({"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": "barrier"}, "spec": spec});
    stage.send(Method::POST, "/api/v1/namespaces/kube-system/pods", &pod);
    stage
}

#[tokio::test(start_paused = true)]
async fn a_leader_decides_when_it_has_seen_its_own_write() {
    let stage = with_barrier();
    assert_eq!(places(&stage, 0).await[0], "only");
    let annotations = &stage.send(Method::GET, BARRIER, &Value::Null)["metadata"]["annotations"];
    let written = annotations["scheduling.koordinator.sh/sync-barrier-koord-scheduler"].as_str().unwrap();
    assert!(written.starts_with("1970-01-01T00:0") && written.ends_with('Z'), "{written}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_cache_is_behind_waits_for_a_minute_at_most() {
    assert_eq!(places(&with_barrier(), 1_000_000).await, ["-", "only"]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_a_pod_to_write_does_not_wait() {
    assert_eq!(places(&Stage::new(), 0).await[0], "only");
}
