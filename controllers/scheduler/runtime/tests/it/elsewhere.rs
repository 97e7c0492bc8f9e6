//! Another program that binds pods of this scheduler's name.

use koord_runtime::metrics::Audience;

use super::*;

impl Stage {
    /// Another program binds a pod.
    fn bind(&self, pod: &str, node: &str) {
        let target = json!({"apiVersion": "v1", "kind": "Node", "name": node});
        self.send(
            Method::POST,
            &format!("{PODS}/{pod}/binding"),
            &json!({"metadata": {"name": pod}, "target": target}),
        );
    }

    fn warnings(&self) -> Vec<String> {
        let events = self.send(Method::GET, "/api/v1/namespaces/default/events", &Value::Null);
        let own = events["items"].as_array().unwrap().iter().filter(|event| event["reason"] == "BoundElsewhere");
        own.map(|event| event["involvedObject"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_another_program_binds_is_counted_and_reported_once() {
    let stage = Stage::new();
    stage.add_node("only", "4");
    for pod in ["early", "large", "larger"] {
        stage.add_pod(pod, "8");
    }
    let stop = CancellationToken::new();
    let (manager, metrics, reader) = stage.program_with_reader("one");
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(10).await;
    let count = || {
        let text = metrics.text(&[Audience::Runtime]);
        let line = text.lines().find(|line| line.starts_with("koord_scheduler_foreign_bindings_total"));
        line.unwrap_or("-").to_owned()
    };
    let counted =
        |times: u32| format!(r#"koord_scheduler_foreign_bindings_total{{profile="koord-scheduler"}} {times}"#);
    let text = metrics.text(&[Audience::Runtime]);
    assert!(text.lines().any(|line| line == "koord_scheduler_deciding 1"), "{text}");
    stage.bind("early", "only");
    stage.pass(40).await;
    assert_eq!((count(), stage.warnings()), (counted(0), Vec::new()), "the last leader may have done it");
    stage.bind("large", "only");
    stage.pass(2).await;
    stage.bind("larger", "only");
    stage.pass(2).await;
    assert_eq!((count(), stage.warnings()), (counted(2), vec!["large".to_owned()]), "once an hour");
    let attempts = reader.get("verdicts/default/larger").await.unwrap()["attempts"].clone();
    assert_eq!(
        [&attempts[0]["result"], &attempts[0]["node"], &attempts[0]["code"], &attempts[1]["result"]],
        [&json!("boundElsewhere"), &json!("only"), &json!("BoundElsewhere"), &json!("refused")]
    );
    stage.add_node("roomy", "8");
    stage.add_pod("ours", "8");
    stage.pass(5).await;
    assert_eq!((stage.place("ours"), count()), ("roomy".to_owned(), counted(2)));
    // A pod that names its node itself has never waited.
    let spec =
        json!({"schedulerName": "koord-scheduler", "nodeName": "roomy", "containers": [{"name": "c", "image": "i"}]});
    stage.send(Method::POST, PODS, &json!({"metadata": {"name": "placed"}, "spec": spec}));
    stage.pass(5).await;
    assert_eq!(count(), counted(2));
    stop.cancel();
    running.await.unwrap().unwrap();
    stage.pass(2).await;
}
