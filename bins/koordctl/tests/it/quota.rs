//! `koordctl explain quota`, from files: amounts, bounds, and changes that are tried out.

use koordctl::{Answer, Cli, run_on, screen::Screen};
use serde_json::Value;

use crate::cluster::Cluster;

/// A tree of three quotas and a quota with a pod.
const OBJECTS: &str = r#"
apiVersion: v1
kind: List
items:
- apiVersion: scheduling.sigs.k8s.io/v1alpha1
  kind: ElasticQuota
  metadata:
    name: company
    namespace: kube-system
    labels: {quota.scheduling.koordinator.sh/is-parent: "true", quota.scheduling.koordinator.sh/tree-id: "t1"}
  spec: {min: {cpu: "100", memory: 100Gi}, max: {cpu: "100", memory: 100Gi}}
- apiVersion: scheduling.sigs.k8s.io/v1alpha1
  kind: ElasticQuota
  metadata:
    name: team-a
    namespace: a
    labels: {quota.scheduling.koordinator.sh/parent: company, quota.scheduling.koordinator.sh/tree-id: "t1"}
    annotations: {quota.scheduling.koordinator.sh/request: '{"cpu":"50","memory":"20Gi"}'}
  spec: {min: {cpu: "40", memory: 10Gi}, max: {cpu: "90", memory: 80Gi}}
  status: {used: {cpu: "30500m", memory: 20Gi}}
- apiVersion: scheduling.sigs.k8s.io/v1alpha1
  kind: ElasticQuota
  metadata:
    name: team-b
    namespace: b
    labels: {quota.scheduling.koordinator.sh/parent: company, quota.scheduling.koordinator.sh/tree-id: "t1"}
  spec: {min: {cpu: "25", memory: 60Gi}, max: {cpu: "100", memory: 100Gi}}
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: a, labels: {quota.scheduling.koordinator.sh/name: team-a}}
"#;

fn asked(arguments: &[&str], change: &str) -> Result<Answer, String> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("objects.yaml"), OBJECTS).unwrap();
    std::fs::write(at("change.yaml"), change).unwrap();
    let mut line: Vec<String> = ["koordctl", "explain", "quota"].map(str::to_owned).to_vec();
    line.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    line.extend(["-f".to_owned(), at("objects.yaml")]);
    if !change.is_empty() {
        line.extend(["--what-if".to_owned(), at("change.yaml")]);
    }
    let cli = <Cli as clap::Parser>::try_parse_from(line).unwrap();
    let answer = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run_on(cli, Screen::ENDLESS));
    answer.map_err(|error| format!("{error:#}"))
}

fn row(text: &str, first: &str) -> String {
    let line = text.lines().find(|line| line.trim_start().starts_with(first));
    line.unwrap_or_else(|| panic!("no row {first}:\n{text}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_quota_shows_its_place_and_its_amounts() {
    let Answer { text, code } = asked(&["team-a"], "").unwrap();
    assert_eq!(code, 0);
    assert!(text.starts_with("ElasticQuota a/team-a, in tree t1\n"), "{text}");
    assert_eq!(row(&text, "above"), "above root › kube-system/company");
    assert_eq!(row(&text, "pods"), "pods 1");
    assert_eq!(row(&text, "resource"), "resource min max used requested weight parent's min min of brothers left");
    assert_eq!(row(&text, "cpu"), "cpu 40 90 30500m 50 90 100 25 35");
    assert_eq!(row(&text, "memory"), "memory 10Gi 80Gi 20Gi 20Gi 80Gi 100Gi 60Gi 30Gi");
}

#[test]
fn bounds_are_where_the_webhook_begins_to_refuse() {
    let Answer { text, .. } = asked(&["team-a"], "").unwrap();
    let beyond = "checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: company";
    assert_eq!(row(&text, "raise min.cpu"), format!("raise min.cpu 75 {beyond}"));
    assert_eq!(row(&text, "raise min.memory"), format!("raise min.memory 40Gi {beyond}"));
    assert_eq!(row(&text, "lower min.cpu"), "lower min.cpu 0");
    assert_eq!(row(&text, "lower max.cpu"), "lower max.cpu 40 resourceKey cpu of quota team-a min 40 > max 39999m");
    assert!(row(&text, "bound another").contains("max keys are not the same with"), "{text}");
    assert!(row(&text, "is-parent=true").contains("refused quota has bound pods"), "{text}");
    assert_eq!(row(&text, "delete"), "delete refused delete quota failed, quota team-a has 1 child pods: web");

    let Answer { text, .. } = asked(&["company"], "").unwrap();
    let beyond = "checkMinQuotaSum all children's MinQuota > current MinQuota, current: company";
    assert_eq!(row(&text, "lower min.cpu"), format!("lower min.cpu 65 {beyond}"));
    assert_eq!(row(&text, "raise min.cpu"), "raise min.cpu 100 resourceKey cpu of quota company min 100001m > max 100");
    assert!(row(&text, "is-parent=false").contains("refused quota has children"), "{text}");
}

const RAISED: &str = r#"
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: team-a, namespace: a}
spec: {min: {cpu: "CPU", memory: 10Gi}, max: {cpu: "90", memory: 80Gi}}
"#;

#[test]
fn a_change_is_tried_out() {
    let Answer { text, code } = asked(&["team-a"], &RAISED.replace("CPU", "75")).unwrap();
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("update a/team-a: admitted\n\nThen:\n\nElasticQuota a/team-a, in tree t1"), "{text}");
    assert_eq!(row(&text, "cpu"), "cpu 75 90 30500m 50 90 100 25 0", "labels, annotations and status stay");

    let Answer { text, code } = asked(&["team-a"], &RAISED.replace("CPU", "76")).unwrap();
    assert_eq!(code, 1);
    assert_eq!(
        row(&text, "checkMinQuotaSum"),
        "checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: company"
    );
    assert_eq!(row(&text, "field"), "field spec.min");
    assert!(row(&text, "remedy").starts_with("remedy lower this min"), "{text}");
    assert_eq!(row(&text, "cpu"), "cpu 40 90 30500m 50 90 100 25 35", "what is refused changes nothing");
}

#[test]
fn what_is_admitted_counts_for_what_follows() {
    let new = |name: &str, parent: &str| {
        format!(
            "---\napiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\n\
             metadata: {{name: {name}, namespace: c, labels: {{quota.scheduling.koordinator.sh/parent: {parent}, \
             quota.scheduling.koordinator.sh/is-parent: \"true\"}}}}\n\
             spec: {{min: {{cpu: \"20\", memory: 10Gi}}, max: {{cpu: \"50\", memory: 50Gi}}}}\n"
        )
    };
    // The first takes 20 of the 35 that are left; the second stands below it; the third finds only 15.
    let change = format!("{}{}{}", new("c", "company"), new("d", "c"), new("e", "company"));
    let Answer { text, code } = asked(&["c", "-o", "json"], &change).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let admitted: Vec<_> = json["whatIf"].as_array().unwrap().iter().map(|step| &step["admitted"]).collect();
    assert_eq!((admitted, code), (vec![&Value::Bool(true), &Value::Bool(true), &Value::Bool(false)], 1), "{text}");
    assert_eq!(json["whatIf"][2]["refusal"]["field"], "spec.min");
    assert_eq!(json["quota"]["treeID"], "t1", "a new quota inherits the tree");
    assert_eq!(json["quota"]["below"][0], "c/d");

    let Answer { text, code } = asked(&["orphan"], &new("orphan", "nobody")).unwrap();
    assert_eq!(code, 1);
    assert_eq!(row(&text, "fill quota"), "fill quota orphan failed, parent not exist");
    assert!(row(&text, "remedy").contains("create the parent first"), "{text}");
}

#[test]
fn a_quota_that_is_inconsistent_in_the_store_says_so() {
    let change = OBJECTS.replace("cpu: \"25\"", "cpu: \"80\"");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("objects.yaml");
    std::fs::write(&file, change).unwrap();
    let line = ["koordctl", "explain", "quota", "team-a", "-f"].map(str::to_owned);
    let cli = <Cli as clap::Parser>::try_parse_from(line.into_iter().chain([file.display().to_string()])).unwrap();
    let answer =
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run_on(cli, Screen::ENDLESS)).unwrap();
    assert!(answer.text.contains("As it is stored it breaks a rule"), "{}", answer.text);
    assert_eq!(row(&answer.text, "cpu"), "cpu 40 90 30500m 50 90 100 80 -20");
}

#[test]
fn what_cannot_be_answered_says_why() {
    let error = |arguments: &[&str], change: &str| asked(arguments, change).unwrap_err();
    assert!(error(&["nobody"], "").contains("there is no quota nobody; `kubectl get elasticquotas -A`"));
    assert!(error(&["team-a", "-n", "b"], "").contains("there is no quota team-a in namespace b"));
    assert!(error(&["team-a"], "kind: Pod").contains("--what-if takes ElasticQuotas, not Pod"));
    assert!(error(&["team-a", "--feature-gates=Multi=true"], "").contains("--feature-gates: "));
}

#[test]
fn a_cluster_answers_like_its_objects_in_a_file() {
    let cluster = Cluster::installed("quota");
    for namespace in ["a", "b"] {
        cluster.create("/api/v1/namespaces", &serde_json::json!({"metadata": {"name": namespace}}));
    }
    let objects: Value = serde_saphyr::from_str(OBJECTS).unwrap();
    for object in objects["items"].as_array().unwrap() {
        let namespace = object["metadata"]["namespace"].as_str().unwrap();
        let mut object = object.clone();
        let path = if object["kind"] == "Pod" {
            object["spec"] = serde_json::json!({"containers": [{"name": "c", "image": "i"}]});
            format!("/api/v1/namespaces/{namespace}/pods")
        } else {
            format!("/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/{namespace}/elasticquotas")
        };
        cluster.create(&path, &object);
    }
    let live = cluster.koordctl(&["explain", "quota", "team-a"]).unwrap();
    assert_eq!(live, asked(&["team-a"], "").unwrap());
    let asked = cluster.asked();
    assert!(!asked.is_empty() && asked.iter().all(|(verb, what)| verb == "list" || what == "/version"), "{asked:?}");

    let error = Cluster::bare("quota-bare").koordctl(&["explain", "quota", "x"]).unwrap_err();
    assert!(error.contains("the quotas cannot be listed; `koordctl doctor`"), "{error}");
}
