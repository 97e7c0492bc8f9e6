//! Quotas in a cluster that does not know them yet.

use std::sync::atomic::{AtomicU64, Ordering};

use koord_config::scheduler::SchedulerConfiguration;
use koord_resource::{
    declare::Profile as Hardening,
    document::{Declared, custom_resource_definition},
};
use koord_scheduler_assembly::build;
use koord_scheduler_runtime::Controllers;
use koord_types::elastic_quota::ElasticQuota;

use super::*;

const QUOTAS: &str = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/kube-system/elasticquotas";

fn profile() -> Profile {
    profile_of(&json!({"preFilter": {"enabled": [{"name": "ElasticQuota"}]}}))
}

fn profile_of(points: &Value) -> Profile {
    let args = json!([{"name": "ElasticQuota", "args": {"quotaGroupNamespace": "kube-system"}}]);
    let profile = json!({"schedulerName": "koord-scheduler", "plugins": points, "pluginConfig": args});
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [profile],
    });
    let profiles = SchedulerConfiguration::of(&document).unwrap().profiles;
    build(&profiles[0].resolved(), &|_| false).unwrap().profile
}

#[tokio::test(start_paused = true)]
async fn quotas_are_made_when_their_definition_is_there_and_not_tried_before() {
    let stage = Stage::new();
    let tries = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&tries);
    let client = client(&stage.server, move |request| {
        let is_try = request.method() == Method::POST && request.uri().path() == QUOTAS;
        counted.fetch_add(u64::from(is_try), Ordering::Relaxed);
        std::future::ready(())
    });
    let (manager, ..) = stage.program(client, profile(), "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.add_node("only", "4");
    stage.add_pod("a", "3");
    stage.pass(600).await;
    assert_eq!(stage.place("a"), "only", "the others work without quotas");
    assert_eq!(tries.load(Ordering::Relaxed), 0);
    let definition = custom_resource_definition(&[Declared::of::<ElasticQuota>()], Hardening::Hardened);
    stage.send(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    stage.pass(200).await;
    let quotas = stage.send(Method::GET, QUOTAS, &Value::Null);
    let mut names: Vec<&str> =
        quotas["items"].as_array().unwrap().iter().filter_map(|quota| quota["metadata"]["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["koordinator-default-quota", "koordinator-root-quota", "koordinator-system-quota"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_controllers_of_a_plugin_can_be_left_to_others() {
    let stage = Stage::new();
    let definition = custom_resource_definition(&[Declared::of::<ElasticQuota>()], Hardening::Hardened);
    stage.send(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    let client = Client::new(stage.server.router(), "default");
    let controllers = Controllers::of(["*".to_owned(), "-ElasticQuota".to_owned()]);
    let (manager, ..) = stage.program_as(|scheduler| scheduler.controlling(controllers), client, profile(), "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.add_node("only", "4");
    stage.add_pod("a", "3");
    stage.pass(200).await;
    assert_eq!(stage.place("a"), "only");
    assert_eq!(stage.send(Method::GET, QUOTAS, &Value::Null)["items"], json!([]), "no quota is made");
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_gang_uses_while_it_is_tried_is_not_written() {
    let stage = Stage::new();
    let definition = custom_resource_definition(&[Declared::of::<ElasticQuota>()], Hardening::Hardened);
    stage.send(Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    let points = json!({"multiPoint": {"enabled": [{"name": "ElasticQuota"}, {"name": "Coscheduling"}]}});
    let (manager, ..) = stage.program(Client::new(stage.server.router(), "default"), profile_of(&points), "one");
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run(stop.clone()));
    stage.add_node("only", "4");
    stage.pass(5).await;
    let status = || stage.send(Method::GET, &format!("{QUOTAS}/koordinator-default-quota"), &Value::Null);
    let member = |name: &str, cpu: &str| {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
        let spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
        let gang = |key: &str| format!("gang.scheduling.koordinator.sh/{key}");
        let annotations = json!({gang("name"): "g", gang("min-available"): "2"});
        json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec})
    };
    for (name, cpu) in [("a", "3"), ("b", "3")] {
        stage.send(Method::POST, PODS, &member(name, cpu));
    }
    stage.pass(5).await;
    assert!(stage.place("b").contains("Insufficient cpu") || stage.place("a").contains("Insufficient cpu"));
    let quota = status();
    assert_eq!(quota["metadata"]["annotations"]["quota.scheduling.koordinator.sh/request"], r#"{"cpu":"6"}"#);
    assert_eq!(quota["status"]["used"], Value::Null);
    stop.cancel();
    running.await.unwrap().unwrap();
}
