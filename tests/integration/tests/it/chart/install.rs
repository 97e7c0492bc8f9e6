//! `helm install`, and what upgrades, rollbacks and uninstalling leave.

use std::collections::BTreeMap;

use anyhow::Result;
use integration::{
    Helm,
    installed::{Process, Reach},
};
use serde_json::Value;

use super::{chart, embedded, real};
use crate::place::{CONFIGURATIONS, Embedded, NAMESPACE, Place, folder};

/// Of each object of a release, by kind and name: its revision.
pub(super) fn revisions(place: &Place, helm: &Helm) -> BTreeMap<String, String> {
    let manifest = helm.run(&["get", "manifest", "koordinator"]).unwrap();
    let list: Value =
        serde_json::from_str(&place.run(&["get", "-f", "-", "-o", "json"], Some(&manifest)).unwrap()).unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    items
        .map(|object| {
            let name = format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]));
            (name, text(&object["metadata"]["resourceVersion"]))
        })
        .collect()
}

/// Certificate authorities of the entries, by name; empty where there is none.
pub(super) fn bundles(place: &Place) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for configuration in place.configurations() {
        for entry in configuration["webhooks"].as_array().into_iter().flatten() {
            let bundle = entry["clientConfig"]["caBundle"].as_str().unwrap_or_default();
            found.insert(entry["name"].as_str().unwrap().to_owned(), bundle.to_owned());
        }
    }
    found
}

pub(super) fn secret(place: &Place) -> Value {
    place.get(&format!("/api/v1/namespaces/{NAMESPACE}/secrets/koordinator-webhook-certs")).unwrap()["data"].clone()
}

/// Objects of kinds that no webhook looks at and no controller removes, one of them in no namespace.
pub(super) const CUSTOM_RESOURCES: &str = r"
apiVersion: config.koordinator.sh/v1alpha1
kind: ClusterColocationProfile
metadata: {name: kept}
spec: {selector: {matchLabels: {of: nobody}}}
---
apiVersion: analysis.koordinator.sh/v1alpha1
kind: Recommendation
metadata: {name: kept, namespace: koordinator-system}
spec: {target: {type: workload, workload: {apiVersion: apps/v1, kind: Deployment, name: web}}}
";

/// Definitions are served a moment after they are made.
pub(super) async fn create_custom_resources(place: &Place) -> Result<()> {
    let mut last = Ok(String::new());
    for _ in 0..100 {
        last = place.run(&["apply", "-f", "-"], Some(CUSTOM_RESOURCES));
        if last.is_ok() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    last.map(drop)
}

pub(super) fn custom_resources_are_there(place: &Place) -> bool {
    place.run(&["get", "clustercolocationprofile/kept"], None).is_ok()
        && place.run(&["-n", NAMESPACE, "get", "recommendation/kept"], None).is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chart_works_with_exactly_the_rights_that_it_gives() {
    let folder = folder("chart-install");
    let Some((embedded, helm)) = embedded(&folder).await else { return };
    let chart = chart();
    let notes = helm.run(&["install", "koordinator", &chart, "--set=deviceDaemon.log.level=2"]).unwrap();
    assert!(
        notes.contains("vpod.koordinator.sh") && notes.contains("The values of deviceDaemon have no effect"),
        "{notes}"
    );
    let mut user = String::new();
    for gates in ["", "AllAlpha=true"] {
        helm.run(&["upgrade", "koordinator", &chart, &format!("--set=featureGates={gates}")]).unwrap();
        let works = embedded.place.works("", Reach::Service(embedded.port)).await;
        user = works.unwrap_or_else(|error| panic!("{gates:?}: {error:#}"));
    }
    profiles_reach_waiting_pods(&embedded, &helm).await.unwrap();
    embedded.compare_rights(&user);
    embedded.stop().await;
}

/// Where its gate is on, the controller of profiles changes pods that are there already, with a role of its own.
async fn profiles_reach_waiting_pods(embedded: &Embedded, helm: &Helm) -> Result<()> {
    let place = &embedded.place;
    // Before the profile and without a manager: nothing changes the pod when it is made.
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: waiting, namespace: default, labels: {waits: 'true'}}\nspec:\n  \
               containers: [{name: main, image: main}]\n";
    place.run(&["create", "-f", "-"], Some(pod))?;
    let profile = "apiVersion: config.koordinator.sh/v1alpha1\nkind: ClusterColocationProfile\n\
                   metadata: {name: waiting, labels: {config.koordinator.sh/controller-managed: 'true'}}\n\
                   spec: {selector: {matchLabels: {waits: 'true'}}, labels: {mutated: by-profile}}\n";
    place.run(&["create", "-f", "-"], Some(profile))?;
    let extra = "--set=manager.extraArgs={--colocation-profile-reconcile-interval=1s},manager.admissionWarnings=true";
    helm.run(&["upgrade", "koordinator", &chart(), "--set=featureGates=AllAlpha=true", extra])?;
    let process = Process::described(&place.admin, NAMESPACE, "koord-manager").await?;
    let mut manager = process.start(&place.admin, &place.config, Reach::Service(embedded.port)).await?;
    let mutated = |pod: &Value| pod["metadata"]["labels"]["mutated"] == "by-profile";
    let is_mutated = || async { Ok(place.is("/api/v1/namespaces/default/pods/waiting", mutated)) };
    manager.until("the profile reaches the pod", is_mutated).await?;
    manager.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chart_works_on_a_real_server() {
    let folder = folder("real-chart-install");
    let Some((real, helm)) = real(&folder).await else { return };
    let place = &real.place;
    helm.run(&["install", "koordinator", &chart()]).unwrap();
    let before = revisions(place, &helm);
    helm.run(&["upgrade", "koordinator", &chart()]).unwrap();
    assert_eq!(revisions(place, &helm), before);
    place.works("", Reach::Loopback).await.unwrap();
    create_custom_resources(place).await.unwrap();
    helm.run(&["uninstall", "koordinator"]).unwrap();
    assert!(custom_resources_are_there(place));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_manager_and_operators_have_written_stays() {
    let folder = folder("chart-upgrades");
    let Some((embedded, helm)) = embedded(&folder).await else { return };
    let (place, chart) = (&embedded.place, chart());
    let upgrade = |set: &str| helm.run(&["upgrade", "koordinator", &chart, "--set", set]).unwrap();
    helm.run(&["install", "koordinator", &chart]).unwrap();
    create_custom_resources(place).await.unwrap();
    let start = async || {
        let process = Process::described(&place.admin, NAMESPACE, "koord-manager").await.unwrap();
        let mut manager = process.start(&place.admin, &place.config, Reach::Service(embedded.port)).await.unwrap();
        manager.until("the webhooks are trusted", || async { Ok(place.trusted()) }).await.unwrap();
        manager.until_ready().await.unwrap();
        manager
    };
    let manager = start().await;
    let (trusted, certificates) = (bundles(place), secret(place));
    // Five that deny or change, and four that warn.
    assert_eq!(trusted.len(), 9, "{trusted:?}");
    place.configure(r#"{"colocation-config": "{\"enable\": false}", "resource-qos-config": "{}"}"#).unwrap();

    // Nothing changes, and nothing is written.
    let before = revisions(place, &helm);
    upgrade("scheduler.replicas=3");
    assert_eq!(revisions(place, &helm), before);
    manager.stop().await.unwrap();

    // A gate brings an entry; the others keep what they have.
    upgrade("featureGates=NodeValidatingWebhook=true");
    let more = bundles(place);
    assert_eq!(more.get("vnode.koordinator.sh").map(String::as_str), Some(""));
    assert!(trusted.iter().all(|(name, bundle)| more.get(name) == Some(bundle)));
    let manager = start().await;
    assert!(bundles(place).values().all(|bundle| Some(bundle) == trusted.values().next()));
    let before = revisions(place, &helm);
    upgrade("featureGates=NodeValidatingWebhook=true");
    assert_eq!(revisions(place, &helm), before);
    manager.stop().await.unwrap();

    // It goes with its gate, also by a rollback.
    helm.run(&["rollback", "koordinator", "1"]).unwrap();
    assert_eq!((bundles(place), secret(place)), (trusted.clone(), certificates.clone()));
    upgrade("featureGates=");
    assert_eq!((bundles(place), secret(place)), (trusted, certificates));

    // A key that values name is the chart's, the others are the operator's.
    place.configure(r#"{"resource-qos-config": "{}"}"#).unwrap();
    upgrade(r#"sloControllerConfig.colocation-config=\{\"enable\": true\}"#);
    let data =
        place.get(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/slo-controller-config")).unwrap()["data"].clone();
    assert_eq!(
        (&data["colocation-config"], &data["resource-qos-config"]),
        (&r#"{"enable": true}"#.into(), &"{}".into())
    );

    // What operators have made stays for the next release.
    helm.run(&["uninstall", "koordinator"]).unwrap();
    assert!(custom_resources_are_there(place));
    assert!(place.get(&format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/koord-manager")).is_err());
    assert!(place.get(&format!("/apis/admissionregistration.k8s.io/v1/{}", CONFIGURATIONS[0])).is_err());
    helm.run(&["install", "koordinator", &chart]).unwrap();
    assert!(custom_resources_are_there(place));
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_shall_go_goes() {
    let folder = folder("chart-goes");
    let Some((embedded, helm)) = embedded(&folder).await else { return };
    helm.run(&["install", "koordinator", &chart(), "--set=crds.keep=false"]).unwrap();
    create_custom_resources(&embedded.place).await.unwrap();
    helm.run(&["uninstall", "koordinator"]).unwrap();
    for path in [
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clustercolocationprofiles.config.koordinator.sh",
        "/api/v1/namespaces/koordinator-system",
    ] {
        let mut found = Ok(Value::Null);
        for _ in 0..100 {
            found = embedded.place.get(path);
            if found.is_err() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert!(found.is_err(), "{path} is still there");
    }
    embedded.stop().await;
}
