//! The scheduler of an original release is replaced by an upgrade, and comes back by a rollback (`spec/infra.md` 2.1).

use std::path::Path;

use integration::Helm;
use serde_json::Value;

use super::{chart, drills::contents, embedded, install::revisions, original_chart, real};
use crate::place::{NAMESPACE, Place, folder};

/// What both charts have of the scheduler, under the same names.
const SHARED: &[&str] = &[
    "deployment/koord-scheduler",
    "serviceaccount/koord-scheduler",
    "configmap/koord-scheduler-config",
    "clusterrole/koord-scheduler-role",
    "clusterrolebinding/koord-scheduler-rolebinding-custom",
];

/// What the original alone has: roles of Kubernetes, which grant more than is needed.
const THEIRS: &[&str] =
    &["clusterrolebinding/koord-scheduler-rolebinding", "clusterrolebinding/koord-scheduler-rolebinding-volume"];

/// What this chart alone has.
const OURS: &[&str] = &[
    "networkpolicy/koord-scheduler",
    "poddisruptionbudget/koord-scheduler",
    "role/koord-scheduler-role",
    "rolebinding/koord-scheduler-rolebinding",
];

/// Parts that stay as they are.
const OTHERS: &[&str] =
    &["deployment/koord-descheduler", "daemonset/koordlet", "configmap/gpu-shared-resource-templates"];

fn object(place: &Place, name: &str) -> Option<Value> {
    let text = place.run(&["-n", NAMESPACE, "get", name, "-o", "json"], None).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

fn are_there(place: &Place, names: &[&str]) -> Vec<bool> {
    names.iter().map(|name| object(place, name).is_some()).collect()
}

fn uids(place: &Place) -> Vec<Value> {
    contents(place, SHARED).into_iter().map(|(uid, ..)| uid).collect()
}

/// There and back in a cluster where nothing is installed.
fn is_swapped(place: &Place, helm: &Helm, folder: &Path) {
    let (chart, original) = (chart(), original_chart(folder));
    helm.run(&["install", "koordinator", &original, "--set=scheduler.replicas=3"]).unwrap();
    let (before, others) = (contents(place, SHARED), contents(place, OTHERS));
    assert_eq!(are_there(place, THEIRS), [true; 2]);

    // There, with the values that the release has.
    let enabled = "--set=scheduler.enabled=true";
    helm.run(&["upgrade", "koordinator", &chart, "--reuse-values", enabled]).unwrap();
    assert_eq!(uids(place), before.iter().map(|(uid, ..)| uid.clone()).collect::<Vec<_>>(), "something was made anew");
    let deployment = object(place, SHARED[0]).unwrap();
    assert_eq!(deployment["spec"]["selector"]["matchLabels"]["koord-app"], "koord-scheduler");
    assert_eq!(deployment["spec"]["replicas"], 3);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let image = container["image"].as_str().unwrap();
    assert!(image.ends_with(&format!("koord-scheduler:v{}-rust", env!("CARGO_PKG_VERSION"))), "{image}");
    assert!(container["args"].as_array().unwrap().contains(&"--port=10251".into()), "{container}");
    // Lists are merged by their keys: nothing of the original's container is left beside ours.
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 1);
    assert_eq!(container["ports"].as_array().unwrap().len(), 1, "{container}");
    let data = object(place, "configmap/koord-scheduler-config").unwrap()["data"]["koord-scheduler-config"].clone();
    let configuration: Value = serde_saphyr::from_str(data.as_str().unwrap()).unwrap();
    assert_eq!(koord_config::Kind::Scheduler.check(&configuration), []);
    // Both schedulers run for the same Lease, so that one of them works at a time.
    assert_eq!(configuration["leaderElection"]["resourceName"], "koord-scheduler");
    assert_eq!(configuration["leaderElection"]["resourceNamespace"], NAMESPACE);
    assert_eq!(are_there(place, THEIRS), [false; 2]);
    assert_eq!(are_there(place, OURS), [true; 4]);
    assert_eq!(contents(place, OTHERS), others);

    // Again, which changes nothing.
    let settled = revisions(place, helm);
    helm.run(&["upgrade", "koordinator", &chart, "--reuse-values", enabled]).unwrap();
    assert_eq!(revisions(place, helm), settled);

    // And back.
    helm.run(&["rollback", "koordinator", "1"]).unwrap();
    assert_eq!(contents(place, SHARED), before);
    assert_eq!(are_there(place, THEIRS), [true; 2]);
    assert_eq!(are_there(place, OURS), [false; 4]);
    assert_eq!(contents(place, OTHERS), others);
    let restored = object(place, SHARED[0]).unwrap();
    let container = &restored["spec"]["template"]["spec"]["containers"][0];
    assert!(container["livenessProbe"].is_null() && container["securityContext"].is_null(), "{container}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_replaces_the_originals_scheduler_and_a_rollback_brings_it_back() {
    let folder = folder("chart-scheduler");
    let Some((embedded, helm)) = embedded(&folder).await else { return };
    is_swapped(&embedded.place, &helm, &folder);
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_cluster_replaces_the_originals_scheduler_and_takes_it_back() {
    let folder = folder("real-chart-scheduler");
    let Some((real, helm)) = real(&folder).await else { return };
    is_swapped(&real.place, &helm, &folder);
}
