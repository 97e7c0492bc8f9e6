//! From the original's chart to this one, and back.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use integration::{
    Helm,
    installed::{Process, Reach},
};
use serde_json::{Map, Value, json};

use super::{
    chart, embedded,
    install::{bundles, create_custom_resources, custom_resources_are_there, revisions, secret},
    original_chart, real,
};
use crate::place::{CONFIGURATIONS, NAMESPACE, Place, folder};

/// What the original's manager keeps in its Secret, as it was recorded.
const CERTIFICATES: &str = include_str!("../../../../../webhooks/server/tests/data/secret_of_the_original.json");

/// What belongs to other parts of the original.
const OTHERS: &[&str] = &[
    "deployment/koord-scheduler",
    "deployment/koord-descheduler",
    "daemonset/koordlet",
    "daemonset/koord-device-daemon",
    "serviceaccount/koord-scheduler",
    "serviceaccount/koordlet",
    "configmap/koord-scheduler-config",
    "configmap/gpu-shared-resource-templates",
    "clusterrole/koord-scheduler-role",
    "clusterrole/koordlet-role",
    "clusterrolebinding/koord-descheduler-rolebinding",
];

/// Does to a cluster what the original's manager does when it starts: it stores its certificates, remembers the entries of both configurations
/// in their annotation and lets them trust its authority. Gives the Secret's data, and the authority as entries have it.
fn run_the_original(place: &Place) -> (Value, String) {
    let certificates: BTreeMap<String, String> = serde_json::from_str(CERTIFICATES).unwrap();
    let authority = BASE64.encode(&certificates["ca-cert.pem"]);
    let data: Map<String, Value> =
        certificates.iter().map(|(name, text)| (name.clone(), BASE64.encode(text).into())).collect();
    let patch = json!({"data": data}).to_string();
    place
        .run(&["-n", NAMESPACE, "patch", "secret", "koordinator-webhook-certs", "--type=merge", "-p", &patch], None)
        .unwrap();
    for name in CONFIGURATIONS {
        let configuration = place.get(&format!("/apis/admissionregistration.k8s.io/v1/{name}")).unwrap();
        let template = configuration["webhooks"].to_string();
        let mut entries = configuration["webhooks"].clone();
        for entry in entries.as_array_mut().unwrap() {
            entry["clientConfig"]["caBundle"] = authority.clone().into();
        }
        let patch = json!({"metadata": {"annotations": {"template": template}}, "webhooks": entries}).to_string();
        place.run(&["patch", name, "--type=merge", "-p", &patch], None).unwrap();
    }
    (data.into(), authority)
}

/// Objects: uid and what they are, without what servers count.
pub(super) fn contents(place: &Place, names: &[&str]) -> Vec<(Value, Value, Value)> {
    let get = |name: &&str| {
        let text = place.run(&["-n", NAMESPACE, "get", name, "-o", "json"], None).unwrap();
        let object: Value = serde_json::from_str(&text).unwrap();
        let content = ["spec", "data", "rules", "roleRef", "subjects"].map(|field| object[field].clone());
        (object["metadata"]["uid"].clone(), object["metadata"]["labels"].clone(), content.to_vec().into())
    };
    names.iter().map(get).collect()
}

fn others(place: &Place) -> Vec<(Value, Value, Value)> {
    contents(place, OTHERS)
}

fn other_revisions(place: &Place) -> Vec<String> {
    let revision = |name: &&str| {
        place.run(&["-n", NAMESPACE, "get", name, "-o", "jsonpath={.metadata.resourceVersion}"], None).unwrap()
    };
    OTHERS.iter().map(revision).collect()
}

/// A cluster in which the original was installed, upgraded once, and has run.
struct Before {
    secret: Value,
    authority: String,
    others: Vec<(Value, Value, Value)>,
    other_revisions: Vec<String>,
}

impl Before {
    async fn arrange(place: &Place, helm: &Helm, original: &str) -> Self {
        helm.run(&["install", "koordinator", original]).unwrap();
        create_custom_resources(place).await.unwrap();
        run_the_original(place);
        helm.run(&["upgrade", "koordinator", original]).unwrap();
        let (secret, authority) = run_the_original(place);
        // A change that the operator has made by hand, as its documentation shows.
        place.configure(r#"{"colocation-config": "{\"enable\": true, \"cpuReclaimThresholdPercent\": 70}"}"#).unwrap();
        Self { secret, authority, others: others(place), other_revisions: other_revisions(place) }
    }

    /// Nothing that ran is touched but the manager, and every entry that was trusted is.
    fn check_upgraded(&self, place: &Place) {
        assert_eq!(secret(place), self.secret);
        for (name, bundle) in bundles(place) {
            assert_eq!(bundle, self.authority, "{name}");
        }
        assert_eq!(other_revisions(place), self.other_revisions);
        assert!(custom_resources_are_there(place));
        let data = place.get(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps/slo-controller-config")).unwrap();
        assert!(data["data"]["colocation-config"].as_str().unwrap().contains("cpuReclaimThresholdPercent"));
        assert_eq!(data["metadata"]["labels"]["koordinator.sh/configmap-type"], "slo-controller-config");
        let manager = place.get(&format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/koord-manager")).unwrap();
        let image = &manager["spec"]["template"]["spec"]["containers"][0]["image"];
        assert!(image.as_str().unwrap().ends_with(&format!(":v{}-rust", env!("CARGO_PKG_VERSION"))), "{image}");
        assert!(place.run(&["-n", NAMESPACE, "get", "role/koord-leader-election-role"], None).is_err());
    }

    /// The original's manager finds everything as it needs it.
    fn check_rolled_back(&self, place: &Place) {
        assert_eq!(others(place), self.others);
        assert!(custom_resources_are_there(place));
        let manager = place.get(&format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/koord-manager")).unwrap();
        let container = &manager["spec"]["template"]["spec"]["containers"][0];
        assert!(container["image"].as_str().unwrap().ends_with(":v1.8.0"));
        assert!(
            container["livenessProbe"].is_null()
                && container["securityContext"].is_null()
                && container["volumeMounts"].is_null()
        );
        place.run(&["-n", NAMESPACE, "get", "role/koord-leader-election-role"], None).unwrap();
        for ours in ["role/koord-manager-role", "poddisruptionbudget/koord-manager", "networkpolicy/koord-manager"] {
            assert!(place.run(&["-n", NAMESPACE, "get", ours], None).is_err(), "{ours}");
        }
        let namespace = place.get(&format!("/api/v1/namespaces/{NAMESPACE}")).unwrap();
        assert!(namespace["metadata"]["annotations"]["helm.sh/resource-policy"].is_null());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_goes_from_the_original_to_this_manager_and_back() {
    let folder = folder("chart-drill");
    let Some((embedded, helm)) = embedded(&folder).await else { return };
    let (place, chart, original) = (&embedded.place, chart(), original_chart(&folder));
    let before = Before::arrange(place, &helm, &original).await;
    let start = async || {
        let process = Process::described(&place.admin, NAMESPACE, "koord-manager").await.unwrap();
        let mut manager = process.start(&place.admin, &place.config, Reach::Service(embedded.port)).await.unwrap();
        manager.until("the webhooks are trusted", || async { Ok(place.trusted()) }).await.unwrap();
        manager.until_ready().await.unwrap();
        manager
    };

    // There. `--reuse-values` brings everything that the original's chart says, its image among it.
    helm.run(&["upgrade", "koordinator", &chart, "--reuse-values"]).unwrap();
    before.check_upgraded(place);
    let manager = start().await;
    // This manager goes on with the original's authority: nobody needs to trust another.
    before.check_upgraded(place);
    let settled = revisions(place, &helm);
    helm.run(&["upgrade", "koordinator", &chart, "--reuse-values"]).unwrap();
    assert_eq!(revisions(place, &helm), settled);

    // Back to the first release, which had no certificates yet; this manager still runs when helm does that.
    helm.run(&["rollback", "koordinator", "1"]).unwrap();
    let mut manager = manager;
    let is_restored = || async {
        Ok(secret(place) == before.secret && bundles(place).values().all(|bundle| *bundle == before.authority))
    };
    manager.until("the original finds its certificates, and is trusted", is_restored).await.unwrap();
    manager.stop().await.unwrap();
    before.check_rolled_back(place);
    // The original's flags, environment and roles, for which this program stands in.
    start().await.stop().await.unwrap();
    assert_eq!(secret(place), before.secret);

    // There again with its own values, and away.
    helm.run(&["upgrade", "koordinator", &chart, "--reset-values"]).unwrap();
    assert_eq!(secret(place), before.secret);
    assert!(bundles(place).values().all(|bundle| *bundle == before.authority));
    helm.run(&["uninstall", "koordinator"]).unwrap();
    assert!(custom_resources_are_there(place));
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_original_brought_is_let_go_of_and_not_deleted() {
    let folder = folder("chart-let-go");
    let Some((embedded, helm)) = embedded(&folder).await else { return };
    let place = &embedded.place;
    let before = Before::arrange(place, &helm, &original_chart(&folder)).await;
    let values = "--set=crds.managed=false,installation.createNamespace=false";
    // With the first upgrade helm would delete what it no longer sees; from the second on it keeps it.
    for _ in 0..3 {
        helm.run(&["upgrade", "koordinator", &chart(), values]).unwrap();
        before.check_upgraded(place);
    }
    let manifest = helm.run(&["get", "manifest", "koordinator"]).unwrap();
    assert!(!manifest.contains("kind: CustomResourceDefinition") && !manifest.contains("kind: Namespace"));
    embedded.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_cluster_goes_from_the_original_and_back() {
    let folder = folder("real-chart-drill");
    let Some((real, helm)) = real(&folder).await else { return };
    let place = &real.place;
    let (chart, original) = (chart(), original_chart(&folder));
    let before = Before::arrange(place, &helm, &original).await;
    helm.run(&["upgrade", "koordinator", &chart, "--reuse-values"]).unwrap();
    before.check_upgraded(place);
    let settled = revisions(place, &helm);
    helm.run(&["upgrade", "koordinator", &chart, "--reuse-values"]).unwrap();
    assert_eq!(revisions(place, &helm), settled);
    helm.run(&["rollback", "koordinator", "2"]).unwrap();
    assert_eq!(secret(place), before.secret);
    before.check_rolled_back(place);
    helm.run(&["upgrade", "koordinator", &chart]).unwrap();
    helm.run(&["uninstall", "koordinator"]).unwrap();
    assert!(custom_resources_are_there(place));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_release_takes_the_original_over_when_it_is_told_to() {
    let folder = folder("chart-take-over");
    let Some((embedded, helm)) = embedded(&folder).await else { return };
    let place = &embedded.place;
    let before = Before::arrange(place, &helm, &original_chart(&folder)).await;
    let refused = helm.try_run(&["install", "koord-manager", &chart()]).unwrap();
    assert!(refused.code != 0 && refused.stderr.contains("invalid ownership metadata"), "{}", refused.stderr);
    // Ports are merged by their number: another one would stand beside the original's, under the same name.
    helm.run(&["install", "koord-manager", &chart(), "--take-ownership", "--set=manager.webhook.port=9876"]).unwrap();
    assert_eq!(secret(place), before.secret);
    for (name, bundle) in bundles(place) {
        assert_eq!(bundle, before.authority, "{name}");
    }
    assert_eq!(other_revisions(place), before.other_revisions);
    embedded.stop().await;
}
