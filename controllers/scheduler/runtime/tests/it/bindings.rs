//! What is written to bind a pod.

use koord_config::scheduler::SchedulerConfiguration;
use koord_scheduler_plugins::build;
use parking_lot::Mutex;

use super::*;

fn gangs() -> Profile {
    const SHIPPED: &str = include_str!("../../../../../bins/koord-scheduler/koord-scheduler.config.yaml");
    let configuration = SchedulerConfiguration::of(&koord_resource::yaml::parse(SHIPPED).unwrap()).unwrap();
    build(&configuration.profiles[0].resolved(), &|_| false).unwrap().profile
}

impl Stage {
    fn add_member(&self, name: &str, annotations: &Value) {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}});
        let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
        let metadata = json!({"name": name, "annotations": annotations});
        self.send(Method::POST, PODS, &json!({"metadata": metadata, "spec": spec}));
    }
}

#[tokio::test(start_paused = true)]
async fn annotations_are_written_by_the_binding_and_what_it_cannot_write_before() {
    const COUNT: &str = "scheduling.koordinator.sh/bind-gang-member-count";
    let stage = Stage::new();
    stage.add_node("only", "8");
    let gang = json!({"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"});
    stage.add_member("a", &gang);
    stage.add_member("b", &gang);
    // An annotation of an earlier life is to be removed, which no binding does.
    stage.add_member("alone", &json!({COUNT: "7"}));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let client = client(&stage.server, move |request| {
        if request.method() != Method::GET && request.uri().path().starts_with(PODS) {
            let path = request.uri().path().trim_start_matches(PODS).to_owned();
            seen.lock().push(format!("{} {path}", request.method()));
        }
        async {}
    });
    let stop = CancellationToken::new();
    let (manager, ..) = stage.program(client, gangs(), "one");
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.pass(5).await;
    assert_eq!(["a", "b", "alone"].map(|name| stage.place(name)), ["only"; 3].map(str::to_owned));
    let annotation = |name: &str| {
        stage.send(Method::GET, &format!("{PODS}/{name}"), &Value::Null)["metadata"]["annotations"][COUNT].clone()
    };
    assert_eq!(["a", "b", "alone"].map(annotation), [json!("2"), json!("2"), Value::Null]);
    let mut requests = requests.lock().clone();
    requests.sort();
    assert_eq!(requests, ["PATCH /alone", "POST /a/binding", "POST /alone/binding", "POST /b/binding"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}
