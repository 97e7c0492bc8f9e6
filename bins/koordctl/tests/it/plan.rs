//! `koordctl plan`: the same from files and from a cluster, and nothing is written.

use std::{collections::BTreeSet, path::Path};

use koordctl::{Answer, Cli, run_on, screen::Screen};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    program::{PROGRAM, folder},
};

fn objects() -> Vec<(&'static str, Value)> {
    let node = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"capacity": {"cpu": "100", "memory": "100Gi"}, "allocatable": {"cpu": "100", "memory": "100Gi"}},
        })
    };
    let metric = json!({
        "apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": "n1"},
        "spec": {},
        "status": {
            "updateTime": "2026-01-01T00:00:00Z",
            "nodeMetric": {"nodeUsage": {"resources": {"cpu": "10", "memory": "10Gi"}}},
        },
    });
    vec![
        ("/api/v1/nodes", node("n1")),
        ("/api/v1/nodes", node("n2")),
        ("/apis/slo.koordinator.sh/v1alpha1/nodemetrics", metric),
    ]
}

const CONFIG: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: slo-controller-config, namespace: koordinator-system}
data: {colocation-config: '{"enable": true}'}
---
"#;

const AT: &str = "--at=2026-01-01T00:01:00Z";

fn from_files(text: &str, arguments: &[&str]) -> Result<Answer, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("objects.yaml");
    std::fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let line = ["koordctl", "plan", "-f", &file, AT].into_iter().chain(arguments.iter().copied());
    let cli = <Cli as clap::Parser>::try_parse_from(line).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run_on(cli, Screen::ENDLESS)).map_err(|error| format!("{error:#}"))
}

fn yaml() -> String {
    let list: Vec<Value> = objects().into_iter().map(|(_, object)| object).collect();
    format!("{CONFIG}{}", json!({"apiVersion": "v1", "kind": "List", "items": list}))
}

/// Action, kind and name of every planned write.
fn writes(text: &str) -> BTreeSet<(String, String, String)> {
    let json: Value = serde_json::from_str(text).unwrap();
    let word = |write: &Value, field: &str| write[field].as_str().unwrap().to_owned();
    let writes = json["writes"].as_array().unwrap();
    writes.iter().map(|write| (word(write, "action"), word(write, "kind"), word(write, "name"))).collect()
}

fn expected() -> BTreeSet<(String, String, String)> {
    [
        ("change", "Node", "n1"),
        ("change", "Node", "n2"),
        ("change", "NodeMetric", "n1"),
        ("create", "NodeMetric", "n2"),
        ("create", "NodeSLO", "n1"),
        ("create", "NodeSLO", "n2"),
    ]
    .into_iter()
    .map(|(action, kind, name)| (action.to_owned(), kind.to_owned(), name.to_owned()))
    .collect()
}

#[test]
fn the_plan_shows_every_field_that_would_change() {
    let Answer { text, code } = from_files(&yaml(), &[]).unwrap();
    assert_eq!(code, 1, "{text}");
    for line in [
        "create NodeSLO n2  # nodeslo",
        "change Node/status n1  # noderesource",
        "+ status.allocatable[kubernetes.io/batch-cpu]: \"60k\"",
        "+ status.capacity[kubernetes.io/batch-cpu]: \"60k\"",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line:?} in\n{text}");
    }
    assert!(!text.contains('\x1b') && !text.contains("resourceVersion"), "{text}");
    assert_eq!(writes(&from_files(&yaml(), &["-o", "json"]).unwrap().text), expected());
}

#[test]
fn a_plan_that_is_carried_out_leaves_nothing_to_plan() {
    let Answer { text, .. } = from_files(&yaml(), &["-o", "json", "--controllers=nodeslo"]).unwrap();
    let plan: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(plan["writes"].as_array().unwrap().len(), 2, "only what was asked for: {text}");
    // What is created stands in the changes, so that the objects can be made of them.
    let mut objects = yaml();
    for write in plan["writes"].as_array().unwrap() {
        let mut object = json!({});
        for change in write["changes"].as_array().unwrap() {
            let path = change["path"].as_str().unwrap();
            let pointer = format!("/{}", path.replace('.', "/"));
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            let mut place = &mut object;
            for step in parent.split('/').skip(1) {
                place = &mut place[step];
            }
            place[name] = change["to"].clone();
        }
        objects.extend(["\n---\n".to_owned(), object.to_string()]);
    }
    let Answer { text, code } = from_files(&objects, &["--controllers=nodeslo"]).unwrap();
    assert_eq!((text.as_str(), code), ("", 0));
}

#[test]
fn what_changes_shows_old_and_new() {
    let with = yaml().replace("\"allocatable\":{", "\"allocatable\":{\"kubernetes.io/batch-cpu\":\"10k\",");
    let Answer { text, .. } = from_files(&with, &["--controllers=noderesource"]).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let old = lines.iter().position(|line| *line == "- status.allocatable[kubernetes.io/batch-cpu]: \"10k\"").unwrap();
    assert_eq!(lines[old + 1], "+ status.allocatable[kubernetes.io/batch-cpu]: \"60k\"");
}

#[test]
fn what_cannot_be_decided_is_a_problem() {
    let broken = format!("{}\n---\n{}", yaml(), r#"{"kind": "NodeMetric", "metadata": {"name": "n2"}, "status": 5}"#);
    let Answer { text, code } = from_files(&broken, &["--controllers=nodemetric"]).unwrap();
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("nodemetric cannot decide about n2: NodeMetric n2 cannot be read"), "{text}");
    assert!(text.contains("change NodeMetric n1"), "one broken object does not hide the rest: {text}");
    assert!(text.contains("warning DecodeError on NodeMetric n2"), "{text}");

    assert!(from_files("", &["--", "--noderesource-plugin=x"]).unwrap_err().contains("'--noderesource-plugins'"));
    assert!(from_files(": [", &[]).unwrap_err().contains("objects.yaml is no YAML"));
}

#[test]
fn a_cluster_is_read_once_and_never_written() {
    let cluster = Cluster::installed("plan");
    for (path, object) in objects() {
        cluster.create(path, &object);
    }
    let Answer { text, code } = cluster.koordctl(&["plan", AT, "-o", "json"]).unwrap();
    assert_eq!((writes(&text), code), (expected(), 1));
    let asked = cluster.asked();
    assert!(!asked.is_empty() && asked.iter().all(|(verb, what)| verb == "list" || what == "/version"), "{asked:?}");
    assert_eq!(cluster.get("/apis/slo.koordinator.sh/v1alpha1/nodeslos")["items"], json!([]));

    let Answer { text, code } = cluster.koordctl(&["plan", AT, "--", "--controllers=none"]).unwrap();
    assert_eq!((text.as_str(), code), ("", 0));
}

#[test]
fn a_cluster_without_definitions_is_an_error_that_says_so() {
    let error = Cluster::bare("plan-bare").koordctl(&["plan"]).unwrap_err();
    assert!(error.contains("cannot be listed") && error.contains("`koordctl doctor`"), "{error}");
}

// === another program ===

/// The example `name_cards_operator`, which `cargo test` builds beside the tests.
fn name_cards() -> String {
    let program = Path::new(PROGRAM).with_file_name("examples").join("name_cards_operator");
    assert!(program.exists(), "cargo build -p koordctl --example name_cards_operator");
    program.display().to_string()
}

/// A program that prints the flag `--plan` in its help, or does not, and does this when it is called with other arguments.
fn script(name: &str, help: &str, otherwise: &str) -> String {
    let path = folder(name).join("operator");
    std::fs::write(
        &path,
        format!("#!/bin/bash\nif [ \"$1\" = --help ]; then echo '{help}'; exit 0; fi\n{otherwise}\n"),
    )
    .unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn nodes() -> String {
    let texts: Vec<String> = objects().into_iter().map(|(_, object)| object.to_string()).collect();
    texts.join("\n---\n")
}

#[test]
fn the_plan_of_another_program_is_handed_on() {
    let program = name_cards();
    let Answer { text, code } = from_files(&nodes(), &["--program", &program]).unwrap();
    assert_eq!(code, 1, "{text}");
    for line in [
        "create ConfigMap cards/n1  # name-cards",
        r#"+ data.pool: "none""#,
        "event NameCard on Node n2: the node gets a new name card",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line:?} in\n{text}");
    }
    let Answer { text, .. } = from_files(&nodes(), &["-o", "json", "--program", &program]).unwrap();
    let create = |name: &str| ["create", "ConfigMap", name].map(str::to_owned).into();
    assert_eq!(writes(&text), BTreeSet::from([create("n1"), create("n2")]));
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["at"], "2026-01-01T00:01:00Z");
    assert_eq!(from_files(CONFIG, &["--program", &program]).unwrap(), Answer::success(""));
}

#[test]
fn another_program_reads_the_cluster_of_the_kubeconfig_and_writes_nothing() {
    let cluster = Cluster::bare("plan-program");
    for (path, object) in objects().into_iter().take(2) {
        cluster.create(path, &object);
    }
    let program = name_cards();
    let plan = |more: &[&str]| cluster.koordctl(&[&["plan", "--program", &program], more].concat());
    let Answer { text, code } = plan(&[]).unwrap();
    assert_eq!((text.lines().filter(|line| line.starts_with("create ConfigMap")).count(), code), (2, 1), "{text}");
    let lists = [("list", "nodes"), ("list", "configmaps")].map(|(verb, what)| (verb.to_owned(), what.to_owned()));
    assert_eq!(cluster.asked(), lists);
    let leases = "/apis/coordination.k8s.io/v1/leases";
    assert_eq!((&cluster.get("/api/v1/configmaps")["items"], &cluster.get(leases)["items"]), (&json!([]), &json!([])));

    let error = plan(&["--context", "elsewhere"]).unwrap_err();
    assert!(error.contains("has no context \"elsewhere\"; name one of: "), "{error}");
    assert_eq!(error.lines().count(), 1);
    let Answer { text, code } = plan(&["-o", "json", "--context", "elsewhere"]).unwrap();
    let answered: Value = serde_json::from_str(&text).unwrap();
    assert!(code == 2 && answered["error"].as_str().unwrap().contains("elsewhere"), "{text}");
    let error = plan(&["--", "--nonsense"]).unwrap_err();
    assert!(error.ends_with("name_cards_operator: unexpected argument '--nonsense' found"), "{error}");
}

#[test]
fn what_is_no_program_with_a_plan_is_not_run() {
    let run = |program: &str, more: &[&str]| from_files(&nodes(), &[&["--program", program], more].concat());
    let error = run("./no-such-operator", &[]).unwrap_err();
    assert_eq!(
        error,
        "./no-such-operator cannot be started: there is no such program; name its path, such as ./operator"
    );
    let page = folder("plan-page").join("page");
    std::fs::write(&page, "no program").unwrap();
    let error = run(&page.display().to_string(), &[]).unwrap_err();
    assert!(error.ends_with("it is no program that may be run; name the one that was built"), "{error}");

    let ran = folder("plan-other").join("ran");
    let other = script("plan-other-program", "Usage: other [--planet]", &format!("touch {}", ran.display()));
    let error = run(&other, &[]).unwrap_err();
    assert!(
        error.contains("does not know --plan: name a program whose main is koord_program::run_controllers"),
        "{error}"
    );
    assert!(!ran.exists(), "a program that would run for real was started");

    let killed = script("plan-killed", "  --plan", "echo change; echo one >&2; echo two >&2; kill -9 $$");
    let error = run(&killed, &[]).unwrap_err();
    assert!(error.contains("died (signal: 9 (SIGKILL)) before its plan was known: two"), "{error}");
    let silent = script("plan-silent", "  --plan", "exit 1");
    let error = run(&silent, &[]).unwrap_err();
    assert!(error.ends_with("it said nothing; run it with --plan to see more"), "{error}");
    let panicked =
        script("plan-panicked", "  --plan", "printf 'thread panicked\\nno cards\\nnote: run with\\n' >&2; exit 101");
    assert!(run(&panicked, &[]).unwrap_err().ends_with("no cards"));

    let line = ["koordctl", "plan", "--program", "x", "--controllers", "nodeslo"];
    let error = <Cli as clap::Parser>::try_parse_from(line).unwrap_err().to_string();
    assert!(error.contains("'--program <PROGRAM>' cannot be used with '--controllers <LIST>'"), "{error}");
}
