//! `koordctl doctor`: nothing to find in a healthy cluster, and each thing that can be wrong is found.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use jiff::{SignedDuration, Timestamp};
use koord_webhook::certificates::{CertificateSet, decide, ends_at};
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
    let all =
        "server, definitions, webhooks, certificates, permissions, lease, configuration, objects, nodes, allocations";
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

#[test]
fn a_server_that_does_not_answer_is_the_only_finding() {
    let kubeconfig = kubeconfig("doctor-down", "http://127.0.0.1:1");
    let folder = kubeconfig.parent().unwrap().to_owned();
    let run = |kubeconfig: &std::path::Path| {
        koordctl().args(["doctor", "--kubeconfig"]).arg(kubeconfig).env("HOME", &folder).output().unwrap()
    };
    let output = run(&kubeconfig);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text.starts_with("error    server         API server\n") && text.contains("kubectl cluster-info"),
        "{text}"
    );
    assert!(text.ends_with("1 error, 0 warnings; nothing else was looked at\n"), "{text}");
    let text = String::from_utf8_lossy(&run(&folder.join("none")).stdout).into_owned();
    assert!(text.contains("the kubeconfig") && text.contains("cannot be read"), "{text}");
}

#[test]
fn a_server_that_is_old_or_strange_is_found() {
    let look = |code: u16, version: Value| {
        let kubeconfig = kubeconfig("doctor-strange", &format!("http://{}", answers(code, version.to_string())));
        let output = koordctl().args(["doctor", "--only=server", "--kubeconfig"]).arg(kubeconfig).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap())
    };
    let version = |minor: &str| json!({"major": "1", "minor": minor, "gitVersion": format!("v1.{minor}")});
    assert_eq!(look(200, version("25")), ("nothing is wrong with: server\n".to_owned(), 0));
    for (code, answer, says, ends) in [
        (200, version("24+"), "v1.24+ is older than 1.25", 1),
        (200, version("?"), "says no minor version", 0),
        (200, json!({}), "is no Kubernetes API server", 2),
        (500, version("30"), "answers 500 Internal Server Error to /version", 2),
        (401, json!({}), "does not know who asks (401)", 2),
        // Who may not ask for the version may ask for the rest.
        (403, json!({}), "may not read its version", 0),
    ] {
        let (text, code) = look(code, answer);
        assert!(text.contains(says) && code == ends, "{says}: {code}\n{text}");
    }
}

#[test]
fn clocks_that_differ_are_found() {
    let cluster = Cluster::bare("doctor-clock");
    let at = |seconds: i64| format!("--at={}", Timestamp::now() + SignedDuration::from_secs(seconds));
    let problem = |seconds: i64| findings(&cluster, &["--only=server", &at(seconds)]).0;
    assert_eq!(problem(0), []);
    assert!(problem(60)[0].2.contains("s behind this machine's"), "{:?}", problem(60));
    assert!(problem(-60)[0].2.contains("s ahead of this machine's"), "{:?}", problem(-60));
}

#[test]
fn definitions_that_are_missing_or_different_are_found() {
    let cluster = Cluster::installed("doctor-definitions");
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(findings(&cluster, &["--only=definitions"]), (vec![], 0));

    let nodeslos = format!("{crds}/nodeslos.slo.koordinator.sh");
    let kept = cluster.get(&nodeslos);
    let mut versions = kept["spec"]["versions"].clone();
    versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["more"] = json!({"type": "string"});
    cluster.patch(&nodeslos, &json!({"spec": {"versions": versions}}));
    finds(&cluster, "definitions", "warning", "nodeslos", "its structure is neither of this program's profiles");
    cluster.patch(&nodeslos, &json!({"spec": {"versions": kept["spec"]["versions"]}}));

    let mut versions = kept["spec"]["versions"].clone();
    let mut other = versions[0].clone();
    other["name"] = "v2".into();
    versions[0]["served"] = false.into();
    versions[0]["storage"] = false.into();
    versions.as_array_mut().unwrap().push(other);
    cluster.patch(&nodeslos, &json!({"spec": {"versions": versions}}));
    finds(&cluster, "definitions", "error", "nodeslos", "version v1alpha1 is not served, only v2");

    cluster.delete(&nodeslos);
    finds(&cluster, "definitions", "error", "nodeslos", "the cluster lacks it");

    // Another definition has taken the kind's name.
    let mut spec = kept["spec"].clone();
    spec["names"] = json!({"plural": "others", "singular": "other", "kind": "NodeSLO", "listKind": "NodeSLOList"});
    let other = json!({"metadata": {"name": "others.slo.koordinator.sh"}, "spec": spec});
    cluster.create(crds, &other);
    cluster.create(crds, &json!({"metadata": {"name": "nodeslos.slo.koordinator.sh"}, "spec": kept["spec"]}));
    finds(&cluster, "definitions", "error", "nodeslos", "its names are taken: ");
}

#[test]
fn webhooks_that_cannot_be_called_are_found() {
    let cluster = healthy("doctor-webhooks");
    let (mutating, validating) = (format!("{MUTATING}/{MUTATING_NAME}"), format!("{VALIDATING}/{VALIDATING_NAME}"));
    let entries = cluster.get(&mutating)["webhooks"].clone();
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut entries = entries.clone();
        edit(&mut entries[0]);
        cluster.patch(&mutating, &json!({"webhooks": entries}));
    };
    with(&|entry| entry["clientConfig"]["service"]["path"] = "/unknown".into());
    finds(&cluster, "webhooks", "warning", "entry mpod-create", "\"/unknown\", which koord-manager does not serve");
    with(&|entry| entry["clientConfig"]["service"]["name"] = "other".into());
    finds(&cluster, "webhooks", "warning", "entry mpod-create", "it calls Service koordinator-system/other");
    with(&|entry| {
        entry["matchConditions"] = json!([]);
        entry["namespaceSelector"] = json!({});
    });
    finds(&cluster, "webhooks", "warning", "entry mpod-create", "catches pods of kube-system, koordinator-system");
    with(&|entry| {
        entry["namespaceSelector"] = json!({});
        entry["matchConditions"] = json!([{"name": "own", "expression": "request.namespace != 'koordinator-system'"}]);
    });
    finds(&cluster, "webhooks", "warning", "entry mpod-create", "catches pods of kube-system:");
    with(&|entry| {
        entry["failurePolicy"] = "Ignore".into();
        entry["matchConditions"] = json!([]);
        entry["namespaceSelector"] = json!({});
    });
    assert_eq!(findings(&cluster, &["--only=webhooks"]), (vec![], 0), "what is ignored cannot lock anybody out");
    cluster.patch(&mutating, &json!({"webhooks": []}));
    finds(&cluster, "webhooks", "warning", MUTATING_NAME, "it has no entries");
    with(&|_| {});

    with(&|entry| entry["clientConfig"]["service"]["port"] = 9443.into());
    let service = "Service koordinator-system/koordinator-webhook-service";
    finds(&cluster, "webhooks", "error", service, "call its port 9443, and it has only 443");
    with(&|entry| {
        entry["clientConfig"]["service"]["port"] = 9443.into();
        entry["failurePolicy"] = "Ignore".into();
    });
    finds(&cluster, "webhooks", "warning", service, "has only 443: requests pass unchecked");
    with(&|_| {});

    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{SYSTEM}/endpointslices/webhook");
    cluster.patch(&slices, &json!({"ports": null}));
    finds(&cluster, "webhooks", "error", service, "none of them has its targetPort webhook-server");
    cluster.patch(&slices, &json!({"endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}]}));
    finds(&cluster, "webhooks", "error", service, "no pod answers behind it");
    cluster.delete(&format!("/api/v1/namespaces/{SYSTEM}/services/koordinator-webhook-service"));
    finds(&cluster, "webhooks", "error", service, "it is not there");
    cluster.delete(&mutating);
    let (found, _) = findings(&cluster, &["--only=webhooks"]);
    assert!(
        found.iter().any(|(_, what, why)| what.contains(MUTATING_NAME) && why.contains("it is not there")),
        "{found:?}"
    );
    cluster.delete(&validating);
    finds(&cluster, "webhooks", "warning", "Webhook configurations", "there are none");
}

#[test]
fn certificates_that_nobody_believes_are_found() {
    let cluster = healthy("doctor-certificates");
    let in_days = |days: i64| Timestamp::now() + SignedDuration::from_hours(24 * days);
    let look = |days: i64| findings(&cluster, &["--only=certificates", &format!("--at={}", in_days(days))]).0;
    assert_eq!(look(0), []);
    let end = ends_at(&certificates(Timestamp::now()).cert).unwrap();
    let days = end.duration_since(Timestamp::now()).as_hours() / 24;
    let found = look(days - 10);
    assert!(
        found.iter().any(|(how, _, why)| how == "warning" && why.contains("should long have been renewed")),
        "{found:?}"
    );
    let found = look(days + 10);
    assert!(
        found
            .iter()
            .any(|(how, what, why)| how == "error" && what.starts_with("Secret") && why.contains("cannot be served")),
        "{found:?}"
    );

    // A bundle that trusts another authority, and one that trusts none.
    let mutating = format!("{MUTATING}/{MUTATING_NAME}");
    let entries = cluster.get(&mutating)["webhooks"].clone();
    let with = |bundle: String| {
        let mut entries = entries.clone();
        entries[0]["clientConfig"]["caBundle"] = bundle.into();
        cluster.patch(&mutating, &json!({"webhooks": entries}));
    };
    with(BASE64.encode(certificates(Timestamp::now()).ca_certs));
    finds(&cluster, "certificates", "error", "entry mpod-create", "does not verify the stored certificate");
    with("Cg==".to_owned());
    finds(&cluster, "certificates", "error", "entry mpod-create", "its caBundle holds no certificate");
    with(entries[0]["clientConfig"]["caBundle"].as_str().unwrap().to_owned());

    let secret_path = format!("/api/v1/namespaces/{SYSTEM}/secrets/koordinator-webhook-certs");
    let kept = cluster.get(&secret_path);
    let foreign = decide(None, "elsewhere.svc", false, Timestamp::now()).unwrap().set;
    cluster.patch(&secret_path, &json!({"data": secret(&foreign)["data"]}));
    let (found, _) = findings(&cluster, &["--only=certificates"]);
    assert!(
        found.iter().any(|(_, what, why)| what.starts_with("Secret") && why.contains("not valid for name")),
        "{found:?}"
    );
    cluster.delete(&secret_path);
    finds(&cluster, "certificates", "note", "Secret koordinator-system/koordinator-webhook-certs", "it is not there");
    assert_eq!(kept["data"].as_object().unwrap().len(), 6);
}

#[test]
fn the_certificate_that_is_presented_is_looked_at() {
    let kubeconfig = folder("doctor-presented").join("kubeconfig");
    let _up = Up::start(&kubeconfig, &[]);
    let api = Api::of(&kubeconfig);
    let doctor = |mutating: &str| {
        let mut command = koordctl();
        command.args(["doctor", "--only=certificates", "-o", "json", "--kubeconfig"]).arg(&kubeconfig);
        let output = command.env("MUTATING_WEBHOOK_NAME", mutating).output().unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let problems = json["findings"].as_array().unwrap().iter();
        let problems = problems.filter(|finding| finding["severity"] != "note");
        problems.map(|finding| finding["problem"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(doctor(MUTATING_NAME), [""; 0]);

    let mut other = api.get(&format!("{MUTATING}/{MUTATING_NAME}"));
    let entry = other["webhooks"][0].clone();
    other["metadata"] = json!({"name": "other"});
    other["webhooks"] = json!([entry, entry]);
    for (index, (name, bundle, url)) in [
        (
            "a.koordinator.sh",
            BASE64.encode(certificates(Timestamp::now()).ca_certs),
            entry["clientConfig"]["url"].clone(),
        ),
        (
            "b.koordinator.sh",
            entry["clientConfig"]["caBundle"].as_str().unwrap().to_owned(),
            "https://127.0.0.1:1/mutate-pod".into(),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        other["webhooks"][index]["name"] = name.into();
        other["webhooks"][index]["clientConfig"]["caBundle"] = bundle.into();
        other["webhooks"][index]["clientConfig"]["url"] = url;
        other["webhooks"][index]["failurePolicy"] = "Ignore".into();
    }
    api.create(MUTATING, &other).unwrap();
    let found = doctor("other");
    assert!(found.iter().any(|why| why.contains("does not verify the certificate that 127.0.0.1:")), "{found:?}");
    assert!(found.iter().any(|why| why.contains("no answer from 127.0.0.1:1")), "{found:?}");

    api.create(&format!("/api/v1/namespaces/{SYSTEM}/secrets"), &secret(&certificates(Timestamp::now()))).unwrap();
    let found = doctor(MUTATING_NAME);
    assert!(found.iter().any(|why| why.contains("presents another certificate than the Secret holds")), "{found:?}");
}

#[test]
fn what_the_service_presents_is_looked_at_where_it_can_be_reached() {
    let cluster = healthy("doctor-reached");
    let findings = |arguments: &[&str]| {
        let line = [&["doctor", "--only=certificates", "-o", "json"], arguments].concat();
        let answer: Value = serde_json::from_str(&cluster.koordctl(&line).unwrap().text).unwrap();
        answer["findings"].clone()
    };
    let not_checked = findings(&[]);
    assert_eq!(not_checked.as_array().unwrap().len(), 1, "{not_checked:#}");
    let finding = &not_checked[0];
    assert_eq!(
        (&finding["severity"], &finding["object"]),
        (&"note".into(), &format!("Service {SYSTEM}/{SERVICE}").into())
    );
    assert!(finding["problem"].as_str().unwrap().starts_with(NOT_CHECKED), "{finding}");
    let forward = format!("kubectl -n {SYSTEM} port-forward service/{SERVICE} 9443:443");
    assert!(finding["remedy"].as_str().unwrap().contains(&forward), "{finding}");

    let stored = cluster.get(&format!("/api/v1/namespaces/{SYSTEM}/secrets/koordinator-webhook-certs"));
    let entries = stored["data"].as_object().unwrap().iter();
    let entries = entries.map(|(name, text)| (name.clone(), BASE64.decode(text.as_str().unwrap()).unwrap())).collect();
    let at = |set: &CertificateSet| format!("--webhook-at={}", presented(set));
    assert_eq!(findings(&[&at(&CertificateSet::of_entries(&entries))]), json!([]));
    let other = findings(&[&at(&certificates(Timestamp::now()))]);
    let problem = other[0]["problem"].as_str().unwrap();
    assert!(problem.contains("does not verify the certificate that koordinator-webhook-service."), "{other:#}");
    let nobody = findings(&["--webhook-at=127.0.0.1:1"]);
    assert!(nobody[0]["problem"].as_str().unwrap().starts_with("no answer from 127.0.0.1:1"), "{nobody:#}");
    assert_eq!((nobody.as_array().unwrap().len(), &nobody[0]["severity"]), (1, &"error".into()));
}

#[test]
fn permissions_that_are_missing_are_found() {
    let cluster = healthy("doctor-permissions");
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/koord-manager-role";
    let rules = cluster.get(role)["rules"].clone();
    let without = |group: &str, resource: &str, verb: &str| {
        let mut rules = rules.clone();
        for rule in rules.as_array_mut().unwrap() {
            let says = |field: &str, word: &str| rule[field].as_array().unwrap().contains(&word.into());
            if says("apiGroups", group) && says("resources", resource) {
                rule["verbs"].as_array_mut().unwrap().retain(|known| known != verb);
            }
        }
        cluster.patch(role, &json!({ "rules": rules }));
    };
    assert_eq!(findings(&cluster, &["--only=permissions"]), (vec![], 0));
    let with_gate = ["--only=permissions", "--feature-gates=ColocationProfileController=true"];
    let (found, _) = findings(&cluster, &with_gate);
    assert!(found.iter().any(|(_, _, why)| why == "it may not patch pods"), "{found:?}");
    without("slo.koordinator.sh", "nodeslos", "create");
    let (found, code) = findings(&cluster, &["--only=permissions"]);
    assert_eq!(code, 2);
    assert!(found.iter().any(|(_, _, why)| why == "it may not create nodeslos.slo.koordinator.sh"), "{found:?}");
    cluster.patch(role, &json!({"rules": rules}));

    // A role of an older installation grants events of the core group.
    for group in ["", "events.k8s.io"] {
        for verb in ["create", "patch"] {
            let mut rules = rules.clone();
            for rule in rules.as_array_mut().unwrap().iter_mut().filter(|rule| rule["resources"] == json!(["events"])) {
                rule["apiGroups"] = json!([group]);
                rule["verbs"] = json!([verb]);
            }
            cluster.patch(role, &json!({ "rules": rules }));
            finds(&cluster, "permissions", "error", "ServiceAccount", "events.events.k8s.io");
        }
    }
    let mut old = rules.clone();
    for rule in old.as_array_mut().unwrap().iter_mut().filter(|rule| rule["resources"] == json!(["events"])) {
        rule["apiGroups"] = json!([""]);
    }
    cluster.patch(role, &json!({ "rules": old }));
    finds(&cluster, "permissions", "note", "ServiceAccount", "it may write events of the core group alone");
    assert_eq!(findings(&cluster, &["--only=permissions"]).0.len(), 1, "and nothing is an error");
    cluster.patch(role, &json!({ "rules": rules }));

    let binding = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{SYSTEM}/rolebindings");
    for item in cluster.get(&binding)["items"].as_array().unwrap() {
        cluster.delete(&format!("{binding}/{}", item["metadata"]["name"].as_str().unwrap()));
    }
    let (found, _) = findings(&cluster, &["--only=permissions"]);
    let leases = "leases.coordination.k8s.io in namespace koordinator-system";
    assert!(found.iter().any(|(_, _, why)| why == &format!("it may not create, get, update {leases}")), "{found:?}");

    cluster.delete(&format!("/api/v1/namespaces/{SYSTEM}/serviceaccounts/koord-manager"));
    finds(&cluster, "permissions", "error", "ServiceAccount koordinator-system/koord-manager", "it is not there");
}

#[test]
fn who_may_read_little_is_told_so() {
    let cluster = healthy("doctor-forbidden");
    let stranger = cluster.seen_by_a_stranger("nobody");
    let (found, code) = findings(&stranger, &[]);
    assert_eq!(code, 1, "{found:#?}");
    let forbidden =
        found.iter().filter(|(how, _, why)| how == "warning" && why.contains("cannot be looked at: ")).count();
    assert!(forbidden >= 8 && forbidden == found.len(), "{found:#?}");

    // koord-manager asks about itself, which everybody may.
    let itself = cluster.seen_by(&cluster.token("koord-manager"));
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/koord-manager-role";
    let mut rules = cluster.get(role)["rules"].clone();
    rules.as_array_mut().unwrap().push(json!({"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["get"]}));
    rules.as_array_mut().unwrap().retain(|rule| rule["resources"] != json!(["events"]));
    cluster.patch(role, &json!({"rules": rules}));
    finds(
        &itself,
        "permissions",
        "error",
        "ServiceAccount koordinator-system/koord-manager",
        "it may not create, patch events",
    );
}

#[test]
fn a_leader_that_is_missing_late_or_not_alone_is_found() {
    let cluster = Cluster::installed("doctor-lease");
    let now = Timestamp::now();
    let ours = format!("{LEASES}/koordinator-manager");
    finds(&cluster, "lease", "error", "Lease koordinator-system/koordinator-manager", "no koord-manager has led here");
    cluster.create(LEASES, &lease("koordinator-manager", now));
    cluster.create(LEASES, &lease("another-program", now));
    assert_eq!(findings(&cluster, &["--only=lease"]), (vec![], 0));
    let with = |spec: Value| cluster.patch(&ours, &json!({ "spec": spec }));
    with(json!({"renewTime": format!("{:.6}", now - SignedDuration::from_secs(100))}));
    finds(&cluster, "lease", "error", "Lease", "one has not renewed it for ");
    with(json!({"renewTime": format!("{:.6}", now + SignedDuration::from_secs(1000))}));
    finds(&cluster, "lease", "warning", "Lease", "its clock is wrong");
    with(json!({"renewTime": null}));
    finds(&cluster, "lease", "warning", "Lease", "one holds it without a renewTime");
    with(json!({"holderIdentity": "", "renewTime": null}));
    finds(&cluster, "lease", "error", "Lease", "it has no holder");

    let elsewhere = LEASES.replace(SYSTEM, "default");
    cluster.create(&elsewhere, &lease("koordinator-manager", Timestamp::now() + SignedDuration::from_secs(3)));
    with(json!({"holderIdentity": "one", "renewTime": format!("{:.6}", Timestamp::now())}));
    finds(&cluster, "lease", "error", "Lease", "several koord-managers lead at once");
    cluster.delete(&ours);
    finds(&cluster, "lease", "warning", "Lease", "it is not there, but another is held: one in default");
}

#[test]
fn every_key_of_the_configuration_is_looked_at() {
    let cluster = Cluster::installed("doctor-configuration");
    let path = format!("/api/v1/namespaces/{SYSTEM}/configmaps/slo-controller-config");
    assert_eq!(findings(&cluster, &["--only=configuration"]), (vec![], 0));
    let with = |data: Value| cluster.patch(&path, &json!({ "data": data }));
    with(json!({"colocation-config": "{"}));
    finds(&cluster, "configuration", "error", "key colocation-config", "goes on with the key's last good value");
    with(
        json!({"colocation-config": "{}", "resource-threshold-config": r#"{"clusterStrategy":{"cpuSuppressThresholdPercent":500}}"#}),
    );
    finds(
        &cluster,
        "configuration",
        "warning",
        "key resource-threshold-config",
        "ResourceThresholdCfg.ClusterStrategy.CPUSuppressThresholdPercent: ",
    );
    with(json!({"resource-threshold-config": null, "colocation-confg": "{}"}));
    finds(&cluster, "configuration", "warning", "key colocation-confg", "unknown key");
    with(json!({"colocation-confg": null}));
    cluster.patch(&path, &json!({"metadata": {"labels": null}}));
    finds(&cluster, "configuration", "note", "ConfigMap", "it lacks the label koordinator.sh/configmap-type");
    cluster.delete(&path);
    finds(&cluster, "configuration", "warning", "ConfigMap", "it is not there");
}

#[test]
fn objects_that_are_set_aside_are_found() {
    let cluster = Cluster::installed("doctor-objects");
    cluster.create("/api/v1/nodes", &json!({"metadata": {"name": "n1"}}));
    assert_eq!(findings(&cluster, &["--only=objects"]), (vec![], 0));
    let annotation = "node.koordinator.sh/reservation";
    cluster.patch("/api/v1/nodes/n1", &json!({"metadata": {"annotations": {annotation: "half"}}}));
    finds(&cluster, "objects", "warning", "Node n1", annotation);
    cluster.patch("/api/v1/nodes/n1", &json!({"metadata": {"annotations": {annotation: null}}}));

    let quota = |name: &str, labels: Value, cpu: &str| {
        cluster.create(
            QUOTAS,
            &json!({
                "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
                "metadata": {"name": name, "labels": labels}, "spec": {"min": {"cpu": cpu}, "max": {"cpu": "100"}},
            }),
        );
    };
    let parent = "quota.scheduling.koordinator.sh/parent";
    quota("orphan", json!({parent: "nobody"}), "1");
    finds(&cluster, "objects", "warning", "ElasticQuota default/orphan", "orphan has parentName nobody but not find");
    cluster.delete(&format!("{QUOTAS}/orphan"));
    quota("koordinator-root-quota", json!({"quota.scheduling.koordinator.sh/is-parent": "true", parent: ""}), "0");
    assert_eq!(findings(&cluster, &["--only=objects"]).0, [], "it belongs to the scheduler");
    quota("top", json!({"quota.scheduling.koordinator.sh/is-parent": "true"}), "5");
    quota("low", json!({parent: "top"}), "9");
    let (found, _) = findings(&cluster, &["--only=objects"]);
    assert!(
        found
            .iter()
            .any(|(_, what, why)| what == "ElasticQuota default/top" && why.contains("all children's MinQuota")),
        "{found:?}"
    );
}

#[test]
fn an_object_that_cannot_be_read_is_found() {
    let cluster = Cluster::installed("doctor-unreadable");
    // Without a schema the server stores whatever comes.
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nodemetrics.slo.koordinator.sh";
    let mut versions = cluster.get(crd)["spec"]["versions"].clone();
    versions[0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    versions[0]["subresources"] = Value::Null;
    cluster.patch(crd, &json!({"spec": {"versions": versions}}));
    cluster.create(
        "/apis/slo.koordinator.sh/v1alpha1/nodemetrics",
        &json!({"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n1"}, "status": 5}),
    );
    finds(&cluster, "objects", "warning", "NodeMetric n1", "DecodeError: this NodeMetric cannot be read");
}

#[test]
fn nodes_without_reports_are_found() {
    let cluster = Cluster::installed("doctor-nodes");
    node(&cluster, "fresh", Some(Timestamp::now()));
    assert_eq!(findings(&cluster, &["--only=nodes"]), (vec![], 0));
    cluster.create("/api/v1/nodes", &json!({"metadata": {"name": "bare"}}));
    finds(&cluster, "nodes", "warning", "Node bare", "there is no NodeMetric");
    cluster.delete("/api/v1/nodes/bare");
    node(&cluster, "silent", None);
    finds(&cluster, "nodes", "warning", "NodeMetric silent", "koordlet has never reported");
    cluster.delete("/api/v1/nodes/silent");
    node(&cluster, "old", Some(Timestamp::now() - SignedDuration::from_mins(20)));
    finds(&cluster, "nodes", "warning", "NodeMetric old", "degradeTimeMinutes (15 min)");
    let path = format!("/api/v1/namespaces/{SYSTEM}/configmaps/slo-controller-config");
    cluster.patch(&path, &json!({"data": {"colocation-config": r#"{"enable":true,"degradeTimeMinutes":30}"#}}));
    assert_eq!(findings(&cluster, &["--only=nodes"]), (vec![], 0));
}

#[test]
fn devices_and_cpus_that_are_allocated_twice_are_found() {
    let cluster = Cluster::installed("doctor-allocations");
    cluster.create("/api/v1/nodes", &json!({"metadata": {"name": "n1"}}));
    let devices = "/apis/scheduling.koordinator.sh/v1alpha1/devices";
    let gpu = json!({"type": "gpu", "minor": 0, "health": true, "resources": {"koordinator.sh/gpu-core": "100"}});
    cluster.create(
        devices,
        &json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
        "metadata": {"name": "n1"}, "spec": {"devices": [gpu]}}),
    );
    let pod = |name: &str| {
        let device = r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"60"}}]}"#;
        let annotations = json!({
            "scheduling.koordinator.sh/device-allocated": device,
            "scheduling.koordinator.sh/resource-status": r#"{"cpuset":"0-3"}"#,
        });
        json!({"metadata": {"name": name, "namespace": "default", "annotations": annotations},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
    };
    let pods = "/api/v1/namespaces/default/pods";
    cluster.create(pods, &pod("a"));
    assert_eq!(findings(&cluster, &["--only=allocations"]), (vec![], 0));
    cluster.create(pods, &pod("b"));
    let (found, code) = findings(&cluster, &["--only=allocations"]);
    let problems: Vec<&str> = found.iter().map(|(_, _, problem)| problem.as_str()).collect();
    let over =
        "gpu 0: more is allocated than the device has of koordinator.sh/gpu-core; allocated to default/a, default/b";
    assert_eq!((problems, code), (vec![over, "CPUs 0-3 belong to default/a, default/b"], 1));
    let explained = cluster.koordctl(&["explain", "node", "n1"]).unwrap().text;
    assert!(explained.contains("conflict: gpu 0: more is allocated"), "{explained}");
    cluster.delete(&format!("{devices}/n1"));
    let (found, _) = findings(&cluster, &["--only=allocations"]);
    assert!(found[0].2.starts_with("gpu 0: the node reports no such device"), "{found:#?}");

    let bare = Cluster::bare("doctor-allocations-bare");
    assert_eq!(
        findings(&bare, &["--only=allocations"]),
        (vec![], 0),
        "without definitions there is nothing to compare"
    );
}
