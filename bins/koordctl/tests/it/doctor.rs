//! `koordctl doctor`: nothing to find in a healthy cluster, and each thing that can be wrong is found.

mod descheduler;
mod installation;
mod objects;
mod server;
mod webhooks;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use jiff::{SignedDuration, Timestamp};
use koord_webhook_server::certificates::{CertificateSet, decide, ends_at};
use koordctl::Answer;
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    peer::{answers, kubeconfig, presented},
    program::{Api, Up, folder, koordctl},
};

const SYSTEM: &str = "koordinator-system";
const SERVICE: &str = "koordinator-webhook-service";
const HOST: &str = "koordinator-webhook-service.koordinator-system.svc";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const MUTATING_NAME: &str = "koordinator-mutating-webhook-configuration";
const VALIDATING_NAME: &str = "koordinator-validating-webhook-configuration";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/koordinator-system/leases";
const QUOTAS: &str = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas";

fn certificates(now: Timestamp) -> CertificateSet {
    decide(None, HOST, false, now).unwrap().set
}

fn secret(set: &CertificateSet) -> Value {
    let data = set.entries().into_iter().map(|(name, bytes)| (name, Value::from(BASE64.encode(bytes))));
    json!({
        "metadata": {"name": "koordinator-webhook-certs", "namespace": SYSTEM},
        "data": Value::Object(data.collect()),
    })
}

/// Where objects of the kinds in `config` live.
fn path(object: &Value) -> String {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    match object["kind"].as_str().unwrap() {
        "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
        "Service" => format!("/api/v1/namespaces/{namespace}/services"),
        "ClusterRole" => format!("{rbac}/clusterroles"),
        "ClusterRoleBinding" => format!("{rbac}/clusterrolebindings"),
        "Role" => format!("{rbac}/namespaces/{namespace}/roles"),
        "RoleBinding" => format!("{rbac}/namespaces/{namespace}/rolebindings"),
        "MutatingWebhookConfiguration" => MUTATING.to_owned(),
        "ValidatingWebhookConfiguration" => VALIDATING.to_owned(),
        other => panic!("where do {other}s live?"),
    }
}

fn lease(name: &str, renewed: Timestamp) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": format!("{renewed:.6}")},
    })
}

fn node(cluster: &Cluster, name: &str, reported: Option<Timestamp>) {
    cluster.create("/api/v1/nodes", &json!({"metadata": {"name": name}}));
    let mut metric = json!({
        "apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": name}, "spec": {},
    });
    if let Some(reported) = reported {
        metric["status"] = json!({"updateTime": reported.to_string()});
    }
    cluster.create("/apis/slo.koordinator.sh/v1alpha1/nodemetrics", &metric);
}

/// An installation with nothing wrong.
fn healthy(name: &str) -> Cluster {
    let cluster = Cluster::installed(name);
    let config = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config");
    let set = certificates(Timestamp::now());
    for file in [
        "rbac/service_account.yaml",
        "rbac/role.yaml",
        "rbac/role_binding.yaml",
        "webhook/service.yaml",
        "webhook/manifests.yaml",
    ] {
        let text = std::fs::read_to_string(config.join(file)).unwrap();
        for mut object in serde_saphyr::from_multiple::<Value>(&text).unwrap().into_iter().filter(Value::is_object) {
            for entry in object["webhooks"].as_array_mut().into_iter().flatten() {
                entry["clientConfig"]["caBundle"] = BASE64.encode(&set.ca_certs).into();
            }
            if object["kind"] == "MutatingWebhookConfiguration" || object["kind"] == "ValidatingWebhookConfiguration" {
                // Nobody answers here, and the test itself wants to write.
                for entry in object["webhooks"].as_array_mut().into_iter().flatten() {
                    entry["matchConditions"] = json!([{"name": "never", "expression": "false"}]);
                }
            }
            cluster.create(&path(&object), &object);
        }
    }
    cluster.create(&format!("/api/v1/namespaces/{SYSTEM}/secrets"), &secret(&set));
    cluster.create(
        &format!("/apis/discovery.k8s.io/v1/namespaces/{SYSTEM}/endpointslices"),
        &json!({
            "metadata": {"name": "webhook", "labels": {"kubernetes.io/service-name": "koordinator-webhook-service"}},
            "ports": [{"name": "", "port": 9876, "protocol": "TCP"}], "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}],
        }),
    );
    cluster.create(LEASES, &lease("koordinator-manager", Timestamp::now()));
    node(&cluster, "n1", Some(Timestamp::now()));
    cluster
}

/// What is always so where the test is not in the cluster.
const NOT_CHECKED: &str = "the certificate that it presents is not checked";

/// Severity, object and problem of each finding, and the exit code.
fn findings(cluster: &Cluster, arguments: &[&str]) -> (Vec<(String, String, String)>, u8) {
    let line: Vec<&str> = ["doctor", "-o", "json"].iter().chain(arguments).copied().collect();
    let Answer { text, code } = cluster.koordctl(&line).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let word = |finding: &Value, field: &str| finding[field].as_str().unwrap().to_owned();
    let list = json["findings"].as_array().unwrap();
    for finding in list {
        assert!(word(finding, "remedy").len() > 10, "{finding}");
    }
    let known = list.iter().filter(|finding| !word(finding, "problem").starts_with(NOT_CHECKED));
    let found = known.map(|finding| (word(finding, "severity"), word(finding, "object"), word(finding, "problem")));
    (found.collect(), code)
}

/// Exactly one finding, and it is this one.
#[track_caller]
fn finds(cluster: &Cluster, check: &str, severity: &str, object: &str, problem: &str) {
    let (found, code) = findings(cluster, &["--only", check]);
    let [(how, what, why)] = &found[..] else { panic!("not one finding: {found:#?}") };
    assert!(
        how == severity && what.contains(object) && why.contains(problem),
        "{severity} {object}: {problem}\n{found:#?}"
    );
    assert_eq!(code, ["note", "warning", "error"].iter().position(|known| *known == severity).unwrap() as u8);
}

#[test]
fn in_a_healthy_cluster_there_is_nothing_to_find() {
    let cluster = healthy("doctor-healthy");
    assert_eq!(findings(&cluster, &[]), (vec![], 0));
    let Answer { text, .. } = cluster.koordctl(&["doctor"]).unwrap();
    let all = "server, definitions, webhooks, certificates, permissions, lease, configuration, objects, nodes, allocations, descheduler";
    let (note, end) = text.split_once("nothing").unwrap();
    assert_eq!(end, format!(" is wrong with: {all}\n"));
    assert!(note.contains(NOT_CHECKED) && note.lines().count() == 3, "{note}");
    let written = cluster.asked().into_iter().filter(|(verb, _)| !["get", "list"].contains(&verb.as_str()));
    let reviews = ["subjectaccessreviews", "selfsubjectreviews"];
    let written: Vec<_> = written.filter(|(_, resource)| !reviews.contains(&resource.as_str())).collect();
    assert_eq!(written, [], "a doctor only looks");
}

#[test]
fn an_empty_cluster_is_told_what_it_lacks() {
    let cluster = Cluster::bare("doctor-bare");
    let (found, code) = findings(&cluster, &[]);
    assert_eq!(code, 2);
    let has = |severity: &str, object: &str| {
        assert!(found.iter().any(|(how, what, _)| how == severity && what.contains(object)), "{object}: {found:#?}");
    };
    has("error", "CustomResourceDefinition nodeslos.slo.koordinator.sh");
    has("note", "CustomResourceDefinition recommendations.analysis.koordinator.sh");
    has("warning", "Webhook configurations");
    has("error", "ServiceAccount koordinator-system/koord-manager");
    has("error", "Lease koordinator-system/koordinator-manager");
    has("warning", "ConfigMap koordinator-system/slo-controller-config");
    let worst: Vec<&str> = found.iter().map(|(how, ..)| how.as_str()).collect();
    assert!(worst.is_sorted_by_key(|how| ["error", "warning", "note"].iter().position(|known| known == how)));
}
