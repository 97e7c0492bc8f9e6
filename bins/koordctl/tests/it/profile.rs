//! `koordctl profile test`: with profiles of files and of a cluster.

use koordctl::{Answer, Cli, run_on, screen::Screen};
use serde_json::{Value, json};

use crate::cluster::Cluster;

const PROFILES: &str = r#"
apiVersion: config.koordinator.sh/v1alpha1
kind: ClusterColocationProfile
metadata: {name: batch}
spec:
  selector: {matchLabels: {app: web}}
  namespaceSelector: {matchLabels: {team: a}}
  qosClass: BE
  priorityClassName: koord-batch
  labels: {x: "1"}
---
apiVersion: config.koordinator.sh/v1alpha1
kind: ClusterColocationProfile
metadata: {name: gold}
spec:
  selector: {matchExpressions: [{key: tier, operator: In, values: [gold, silver]}]}
---
apiVersion: config.koordinator.sh/v1alpha1
kind: ClusterColocationProfile
metadata: {name: later}
spec: {labels: {x: "3"}, patch: {spec: {terminationGracePeriodSeconds: 5}}}
---
apiVersion: config.koordinator.sh/v1alpha1
kind: ClusterColocationProfile
metadata: {name: never}
spec: {probability: 0, labels: {x: "4"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: a}}
"#;
const PRIORITY_CLASS: &str = "
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: koord-batch}
value: 5000
";
const POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web, koordinator.sh/qosClass: LSR}}
spec: {containers: [{name: main, resources: {limits: {cpu: "2"}}}]}
"#;
const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: other}
spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main}]}}}
";

fn tested(pod: &str, profiles: &str, arguments: &[&str]) -> Result<Answer, String> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("pod.yaml"), pod).unwrap();
    std::fs::write(at("profiles.yaml"), profiles).unwrap();
    let (pod, profiles) = (at("pod.yaml"), at("profiles.yaml"));
    let line = ["koordctl", "profile", "test", "-f", &pod, "--profiles", &profiles];
    let cli = <Cli as clap::Parser>::try_parse_from(line.iter().chain(arguments)).unwrap();
    let answer = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run_on(cli, Screen::ENDLESS));
    answer.map_err(|error| format!("{error:#}"))
}

/// The lines, with single spaces.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn profiles_are_shown_in_their_order_with_reasons_and_changes() {
    let answer = tested(POD, &format!("{PROFILES}{PRIORITY_CLASS}"), &[]).unwrap();
    let lines = lines(&answer.text);
    let mut at = 0;
    for wanted in [
        "Pod shop/web",
        "1. ClusterColocationProfile batch applies",
        "selector app=web holds",
        "namespaceSelector team=a holds",
        "+ metadata.labels.x 1",
        "~ metadata.labels[koordinator.sh/qosClass] LSR → BE",
        "+ spec.priority 5000",
        "- ClusterColocationProfile gold does not match",
        "selector tier in (gold,silver) does not hold: the pod has no label tier",
        "2. ClusterColocationProfile later applies",
        "selector none, so every pod matches",
        "~ metadata.labels.x 1 → 3",
        "+ spec.terminationGracePeriodSeconds 5",
        "- ClusterColocationProfile never matches, but chance is against it",
        "What follows from it:",
        "- spec.containers[0].resources.limits.cpu 2",
        "+ spec.containers[0].resources.limits[kubernetes.io/batch-cpu] 2k",
        "In all:",
        "+ metadata.labels.x 3",
        "~ metadata.labels[koordinator.sh/qosClass] LSR → BE",
        r#"Warning: metadata.labels[koordinator.sh/qosClass]: "LSR" of the object has no effect, ClusterColocationProfile "batch" sets "BE""#,
    ] {
        let found = lines[at..].iter().position(|line| line == wanted);
        at += found.unwrap_or_else(|| panic!("{wanted}\n{}", answer.text)) + 1;
    }
    assert_eq!(answer.code, 0);
}

#[test]
fn a_pod_that_would_be_refused_says_what_to_do_and_ends_with_1() {
    let answer = tested(POD, PROFILES, &[]).unwrap();
    let refusal = r#"The pod is refused: PriorityClass.scheduling.k8s.io "koord-batch" not found; add the PriorityClass to the files that --profiles names"#;
    assert!(answer.text.contains(refusal), "{}", answer.text);
    assert_eq!(answer.code, 1);
}

#[test]
fn templates_stand_for_their_pods_and_unknown_namespaces_are_named() {
    let answer = tested(DEPLOYMENT, PROFILES, &[]).unwrap();
    assert!(answer.text.starts_with("pods of Deployment other/web\n"), "{}", answer.text);
    assert!(answer.text.contains("namespace other is in none of the files; add it to see its labels"));
    assert!(answer.text.contains("each pod of this template draws for itself"));
    let answer = tested(DEPLOYMENT, &format!("{PROFILES}{PRIORITY_CLASS}"), &["-n", "shop"]).unwrap();
    assert!(answer.text.contains("1. ClusterColocationProfile batch applies"), "{}", answer.text);
}

#[test]
fn programs_read_json() {
    let answer = tested(POD, &format!("{PROFILES}{PRIORITY_CLASS}"), &["-o", "json"]).unwrap();
    let json: Value = serde_json::from_str(&answer.text).unwrap();
    let profiles = &json["pods"][0]["profiles"];
    assert_eq!(profiles[1]["selector"][0], json!({"term": "tier in (gold,silver)", "found": null, "holds": false}));
    assert_eq!((&profiles[3]["matches"], &profiles[3]["applies"]), (&json!(true), &json!(false)));
    assert_eq!((&profiles[3]["probability"]["percent"], &profiles[3]["changes"]), (&json!(0), &Value::Null));
    assert_eq!(profiles[2]["changes"][0], json!({"path": "metadata.labels.x", "from": "1", "to": "3"}));
    assert_eq!(json["pods"][0]["refused"], Value::Null);
}

#[test]
fn what_cannot_be_tested_is_said_with_a_remedy() {
    let error = |pod: &str, profiles: &str| tested(pod, profiles, &[]).unwrap_err();
    let service = "{kind: Service, metadata: {name: s}}";
    assert!(
        error(service, PROFILES).contains("Service s is no pod and has no template of pods; name a file with a pod")
    );
    assert!(error(POD, PRIORITY_CLASS).contains("there is no ClusterColocationProfile in the files"));
    assert!(error("", PROFILES).contains("there is no object in "));
    let odd = "{kind: ClusterColocationProfile, metadata: {name: odd}, spec: {selector: {matchExpressions: [{key: a, operator: Nope}]}}}";
    let text = tested(POD, odd, &[]).unwrap().text;
    assert!(text.starts_with("odd is quarantined and selects no pod until it is fixed: spec.selector: "), "{text}");
    let half = "{kind: ClusterColocationProfile, metadata: {name: half}, spec: {probability: half}}";
    let answer = tested(POD, half, &[]).unwrap();
    assert!(answer.text.contains("matches, but its probability is invalid"), "{}", answer.text);
    assert_eq!(answer.code, 1);
}

#[test]
fn the_profiles_of_a_cluster_are_taken() {
    let cluster = Cluster::installed("profile-test");
    let spec =
        json!({"selector": {"matchLabels": {"app": "web"}}, "qosClass": "BE", "priorityClassName": "koord-batch"});
    let profile = json!({"apiVersion": "config.koordinator.sh/v1alpha1", "kind": "ClusterColocationProfile",
                         "metadata": {"name": "batch"}, "spec": spec});
    cluster.create("/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles", &profile);
    let folder = tempfile::tempdir().unwrap();
    let pod = folder.path().join("pod.yaml");
    std::fs::write(&pod, POD).unwrap();
    let answer = cluster.koordctl(&["profile", "test", "-n", "default", "-f", &pod.display().to_string()]).unwrap();
    assert!(answer.text.contains("1. ClusterColocationProfile batch applies"), "{}", answer.text);
    assert_eq!(answer.code, 0);
    let bare = Cluster::bare("profile-test-bare");
    let error = bare.koordctl(&["profile", "test", "-f", &pod.display().to_string()]).unwrap_err();
    assert!(error.contains("`koordctl crd apply` installs the definitions"), "{error}");
}
