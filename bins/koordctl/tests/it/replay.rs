//! `koordctl snapshot replay`: pods that wait are tried in the order of the queue, configurations are compared, and decisions of the past are
//! made anew.

use std::path::PathBuf;

use koordctl::{Answer, Cli, run_on, screen::Screen};
use serde_json::{Value, json};

use crate::{
    program::{fails, folder, koordctl},
    unblock::{gang, merge, node, on, pod, requesting},
};

const MOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/simulation/most-allocated.yaml");
const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/koord-scheduler.config.yaml");

struct Saved(PathBuf);

impl Saved {
    fn new(name: &str, objects: &[Value]) -> Self {
        let file = folder(name).join("snapshot.json");
        std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
        Self(file)
    }

    fn replayed(&self, more: &[&str]) -> Result<Answer, String> {
        let file = self.0.display().to_string();
        let line = ["koordctl", "snapshot", "replay", &file].into_iter().chain(more.iter().copied());
        let cli = <Cli as clap::Parser>::try_parse_from(line).map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run_on(cli, Screen::ENDLESS)).map_err(|error| format!("{error:#}"))
    }

    fn document(&self, more: &[&str]) -> Value {
        serde_json::from_str(&self.replayed(&[more, &["-o", "json"]].concat()).unwrap().text).unwrap()
    }
}

fn at(second: u32, mut pod: Value) -> Value {
    merge(&mut pod, &json!({"metadata": {"creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")}}));
    pod
}

/// Pods and their nodes under each configuration.
fn nodes(document: &Value) -> Vec<(&str, Vec<Option<&str>>)> {
    let pods = document["pods"].as_array().unwrap().iter();
    pods.map(|pod| (pod["pod"].as_str().unwrap(), decisions(pod))).collect()
}

fn decisions(pod: &Value) -> Vec<Option<&str>> {
    pod["decisions"].as_array().unwrap().iter().map(|decision| decision["node"].as_str()).collect()
}

#[test]
fn pods_that_wait_are_tried_by_priority_and_then_by_age() {
    let priority = |pod: Value, priority: i32| {
        let mut pod = pod;
        pod["spec"]["priority"] = json!(priority);
        pod
    };
    let three = json!({"cpu": "3"});
    let objects = [
        node("n1", &json!({})),
        on("n1", requesting("runs", &json!({"cpu": "500m"}))),
        at(3, requesting("a-late", &three)),
        at(1, requesting("z-early", &three)),
        at(4, requesting("tiny", &json!({"cpu": "100m"}))),
        at(5, priority(requesting("important", &json!({"cpu": "200m"})), 100)),
        merged(pod("elsewhere", &json!({})), &json!({"spec": {"schedulerName": "another"}})),
    ];
    let saved = Saved::new("replay-order", &objects);
    let answer = saved.replayed(&[]).unwrap();
    assert_eq!(answer.code, 1);
    let text = answer.text;
    assert!(text.starts_with("At 2026-01-01T00:00:05Z:\n3 of 4 pods that wait get a node\n"), "{text}");
    assert!(text.contains("NodeResourcesFit") && text.contains("Insufficient cpu"), "{text}");
    assert!(text.ends_with("1 more pods wait for another scheduler\n"), "{text}");
    let document = saved.document(&[]);
    let expected = [
        ("shop/important", vec![Some("n1")]),
        ("shop/z-early", vec![Some("n1")]),
        ("shop/a-late", vec![None]),
        ("shop/tiny", vec![Some("n1")]),
    ];
    assert_eq!(nodes(&document), expected);
    let fields: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["at", "check", "configurations", "evicted", "otherSchedulers", "pods"]);
    assert_eq!(document["otherSchedulers"], 1);
    assert_eq!(saved.document(&[]).to_string(), document.to_string(), "it is the same again");
}

fn merged(mut object: Value, members: &Value) -> Value {
    merge(&mut object, members);
    object
}

#[test]
fn configurations_are_compared_on_the_pods_that_wait() {
    let large = json!({"status": {"allocatable": {"cpu": "8"}, "capacity": {"cpu": "8"}}});
    let objects = [
        node("empty", &large),
        node("used", &large),
        on("used", requesting("runs", &json!({"cpu": "4"}))),
        at(1, requesting("new", &json!({"cpu": "1"}))),
        at(2, requesting("huge", &json!({"cpu": "99"}))),
    ];
    let saved = Saved::new("replay-compared", &objects);
    let two = ["--config", SHIPPED, "--config", MOST];
    let answer = saved.replayed(&two).unwrap();
    assert_eq!(answer.code, 1);
    let text = answer.text;
    assert!(text.contains(&format!("{SHIPPED}: 1 of 2 pods that wait get a node\n{MOST}: 1 of 2 pods")), "{text}");
    assert!(text.contains("1 pods get different nodes\n") && !text.contains("shop/huge"), "{text}");
    let document = saved.document(&two);
    assert_eq!(nodes(&document)[0], ("shop/new", vec![Some("empty"), Some("used")]));
    assert_eq!((&document["pods"][0]["differs"], &document["pods"][1]["differs"]), (&json!(true), &json!(false)));
}

#[test]
fn gangs_wait_as_a_whole_and_evictions_are_told() {
    let mut gang: Vec<Value> = gang(3, 3, "2").into_iter().collect();
    let saved = Saved::new("replay-gang", &gang);
    let document = saved.document(&[]);
    assert!(
        nodes(&document).iter().all(|(_, nodes)| nodes == &vec![None]) && nodes(&document).len() == 3,
        "{document}"
    );
    gang.push(node("second", &json!({})));
    let saved = Saved::new("replay-gang-fits", &gang);
    let answer = saved.replayed(&[]).unwrap();
    assert_eq!(answer.code, 0, "{}", answer.text);

    let important = merged(requesting("important", &json!({"cpu": "3"})), &json!({"spec": {"priority": 10_000}}));
    let victim = on("n1", requesting("victim", &json!({"cpu": "3"})));
    let saved = Saved::new("replay-evicts", &[node("n1", &json!({})), victim, at(1, important)]);
    let answer = saved.replayed(&[]).unwrap();
    assert!(answer.code == 0 && answer.text.contains("Evicted: shop/victim\n"), "{}", answer.text);
}

#[test]
fn decisions_of_the_past_are_made_anew() {
    let labelled = |name: &str, pool: &str| node(name, &json!({"metadata": {"labels": {"pool": pool}}}));
    let blue = json!({"spec": {"nodeSelector": {"pool": "blue"}}});
    let with = |pod: Value| merged(pod, &blue);
    let objects = [
        labelled("blue", "blue"),
        labelled("green", "green"),
        // It fills its node but for one more: what came after it does not count.
        at(1, on("blue", requesting("first", &json!({"cpu": "2"})))),
        at(2, on("green", requesting("second", &json!({"cpu": "1"})))),
        at(3, on("green", with(requesting("wrong", &json!({"cpu": "1"}))))),
        at(4, on("gone", requesting("lost", &json!({"cpu": "1"})))),
        at(5, on("blue", requesting("third", &json!({"cpu": "1"})))),
        at(6, requesting("waits", &json!({"cpu": "1"}))),
    ];
    let saved = Saved::new("replay-check", &objects);
    let answer = saved.replayed(&["--check"]).unwrap();
    assert_eq!(answer.code, 1);
    assert!(answer.text.contains("3 of 5 pods would be placed where they are\n"), "{}", answer.text);
    let document = saved.document(&["--check"]);
    let of = |name: &str| {
        let pods = document["pods"].as_array().unwrap();
        pods.iter().find(|pod| pod["pod"] == format!("shop/{name}")).unwrap_or_else(|| panic!("{name}: {document}"))
    };
    assert_eq!(document["pods"].as_array().unwrap().len(), 5);
    for same in ["first", "second", "third"] {
        assert_eq!(of(same)["differs"], json!(false), "{same}: {}", of(same));
    }
    let wrong = &of("wrong")["decisions"][0];
    assert_eq!((&wrong["node"], &wrong["plugins"]), (&json!("blue"), &json!(["NodeAffinity"])));
    assert!(wrong["message"].as_str().unwrap().starts_with("green is refused: "), "{wrong}");
    assert_eq!(of("lost")["decisions"][0]["message"], "there is no node gone");
    assert_eq!(saved.document(&["--check"]).to_string(), document.to_string());

    let without = Saved::new("replay-check-none", &objects[..2]);
    assert!(without.replayed(&["--check"]).unwrap_err().contains("there is nothing to check"));
    let nothing = without.replayed(&[]).unwrap();
    assert!(
        nothing.code == 0 && nothing.text.ends_with("With --check the pods that have nodes are decided anew.\n"),
        "{}",
        nothing.text
    );
}

#[test]
fn bad_input_is_said_in_one_line() {
    let bad = folder("replay-bad");
    let put = |name: &str, text: &str| {
        std::fs::write(bad.join(name), text).unwrap();
        bad.join(name).display().to_string()
    };
    let fine = put("fine.yaml", "{apiVersion: v1, kind: Node, metadata: {name: n}}");
    let nameless = put("nameless.yaml", "{apiVersion: v1, kind: Pod, spec: {}}");
    let broken = put("broken.yaml", "a: [");
    let config = put(
        "config.yaml",
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofils: []\n",
    );
    for (arguments, words) in [
        (vec!["/nowhere.yaml"], "/nowhere.yaml cannot be read"),
        (vec![&broken], "broken.yaml is no YAML"),
        (vec![&nameless], "a pod has no name"),
        (vec![&fine, "--config", &config], "config.yaml:3: profils: unknown field; did you mean profiles?"),
        (vec![&fine, "--config", "/none.yaml"], "--config /none.yaml cannot be read"),
        (vec![&fine, "--at", "noon"], "'noon' for '--at"),
    ] {
        let output = koordctl().args(["snapshot", "replay"]).args(&arguments).output().unwrap();
        let error = fails(&output);
        assert!(error.contains(words) && output.status.code() == Some(2), "{arguments:?}: {error}");
        assert!(error.lines().count() == 1 || error.contains("--help"), "{arguments:?}: {error}");
    }
}
