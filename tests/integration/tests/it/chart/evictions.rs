//! koord-descheduler at work with nothing but the rights that the chart gives it, where the namespaces of evictions are named.

use std::time::{Duration, Instant};

use http::Request;
use integration::{Helm, installed::config_of};
use koord_configuration::Source;
use koord_descheduler::{Settings, run_with};
use koord_descheduler_assembly::Configuration;
use koord_program::Dependencies;
use kube::Client;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{chart, embedded, real};
use crate::place::{NAMESPACE, Place, folder};

const EVENTUALLY_MAX: Duration = Duration::from_secs(40);
const NAME: &str = "koord-descheduler";

/// Pods that end at once when they are evicted, and jobs that move them.
fn pods_and_jobs() -> String {
    let pod = |namespace: &str, annotations: &Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": namespace, "annotations": annotations},
            "spec": {
                "nodeName": "worker", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
                "containers": [{"name": "main", "image": "none"}],
            },
        })
    };
    let job = |name: &str, namespace: &str| {
        json!({
            "apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "PodMigrationJob", "metadata": {"name": name},
            "spec": {"mode": "EvictDirectly", "podRef": {"namespace": namespace, "name": "web"}},
        })
    };
    let items = json!([
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker"}},
        // It has no owner, for which it would stay otherwise.
        pod("shop", &json!({"descheduler.alpha.kubernetes.io/evict": "true"})),
        pod("default", &json!({})),
        job("in-shop", "shop"),
        job("elsewhere", "default"),
    ]);
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// The configuration of the ConfigMap.
fn configuration(place: &Place) -> Configuration {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}-config");
    let map = place.get(&path).unwrap();
    let text = map["data"][format!("{NAME}-config")].as_str().unwrap();
    let document = serde_saphyr::from_str(text).unwrap();
    Configuration::of_document(&document, &Source::new(NAME, text)).unwrap()
}

fn job(place: &Place, name: &str) -> Value {
    place.get(&format!("/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs/{name}")).unwrap()["status"].clone()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < EVENTUALLY_MAX, "it does not come true that {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn evicts_in_its_namespaces_alone(place: &Place, helm: &Helm) {
    place.run(&["create", "namespace", "shop"], None).unwrap();
    let sets = "--set=descheduler.enabled=true,descheduler.evictionNamespaces={shop}";
    helm.run(&["install", "koordinator", &chart(), sets]).unwrap();
    place.run(&["create", "-f", "-"], Some(&pods_and_jobs())).unwrap();

    let config = config_of(&place.admin, &place.config, NAMESPACE, NAME).await.unwrap();
    let client = Client::try_from(config.clone()).unwrap();
    let stop = CancellationToken::new();
    let dependencies = Dependencies::connected_by(config).unwrap();
    let running =
        tokio::spawn(run_with(Settings::within(configuration(place)).unwrap(), dependencies, None, stop.clone()));
    until("the job in the namespace succeeds", || job(place, "in-shop")["phase"] == "Succeeded").await;
    assert!(place.get("/api/v1/namespaces/shop/pods/web").is_err(), "it is evicted");
    until("the other job ends", || job(place, "elsewhere")["phase"] == "Failed").await;
    assert_eq!(job(place, "elsewhere")["reason"], "ForbiddenMigratePod");
    stop.cancel();
    running.await.unwrap().unwrap();

    // The API server would not let it do so either.
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web", "namespace": "default"}});
    let request =
        Request::post("/api/v1/namespaces/default/pods/web/eviction").header("content-type", "application/json");
    let refused = client.request::<Value>(request.body(eviction.to_string().into_bytes()).unwrap()).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("{refused:?}") };
    assert_eq!(status.code, 403, "{status:?}");
    assert!(place.get("/api/v1/namespaces/default/pods/web").is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_descheduler_evicts_in_the_namespaces_that_are_named_and_may_do_so_in_no_other() {
    let folder = folder("chart-evictions");
    let Some((embedded, helm)) = embedded(&folder).await else { return };
    evicts_in_its_namespaces_alone(&embedded.place, &helm).await;
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_descheduler_on_a_real_server_may_evict_in_the_namespaces_that_are_named_alone() {
    let folder = folder("real-chart-evictions");
    let Some((real, helm)) = real(&folder).await else { return };
    evicts_in_its_namespaces_alone(&real.place, &helm).await;
}
