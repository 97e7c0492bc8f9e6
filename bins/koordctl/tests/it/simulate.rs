//! `koordctl simulate`: the table, JSON that stays the same, a report that needs nothing else, traces, and bad input.

use std::path::Path;

use koordctl::{Answer, Cli, run_on, screen::Screen};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    program::{fails, folder, koordctl},
};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/simulation");

fn simulated(line: &[&str]) -> Result<Answer, String> {
    let line = ["koordctl", "simulate"].into_iter().chain(line.iter().copied());
    let cli = <Cli as clap::Parser>::try_parse_from(line).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run_on(cli, Screen::ENDLESS)).map_err(|error| format!("{error:#}"))
}

fn document(line: &[&str]) -> Value {
    serde_json::from_str(&simulated(&[line, &["-o", "json"]].concat()).unwrap().text).unwrap()
}

fn example(name: &str) -> String {
    Path::new(EXAMPLES).join(name).display().to_string()
}

/// The cells of the row that begins so.
fn row<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let line = text.lines().find(|line| line.starts_with(&format!("{name}  ")));
    let line = line.unwrap_or_else(|| panic!("no {name:?} in\n{text}"));
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn configurations_are_compared_on_the_same_pods() {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/koord-scheduler.config.yaml");
    let most = example("most-allocated.yaml");
    let answer = simulated(&["-f", EXAMPLES, "--config", shipped, "--config", &most]).unwrap();
    assert_eq!(answer.code, 0);
    let text = answer.text;
    assert!(text.starts_with("7 pods on 3 nodes, seed 1\n"), "{text}");
    assert_eq!(row(&text, "pods placed"), ["pods placed", "7", "7"]);
    assert_eq!(row(&text, "pods that have ended"), ["pods that have ended", "4", "4"]);
    assert_eq!(row(&text, "wait of placed pods, longest")[1..], ["8.0 min", "0"]);
    assert_eq!(row(&text, "namespace lab served")[1..], ["100.00 %", "100.00 %"]);
    for name in [shipped, &most] {
        assert!(text.contains(&format!("Pods were placed with {name}:\n")), "{text}");
    }
    assert_eq!(row(&text, "lab/train")[1..], ["large", "5.0 min", "8.0 min"]);
}

#[test]
fn json_has_its_fields_and_the_same_bytes_for_the_same_seed() {
    let trace = format!("--trace=openb={}", example("openb"));
    let line = [trace.as_str(), "--demand=130%", "--seed=42"];
    let mut first = document(&line);
    let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&first), ["runs", "scenario"]);
    assert_eq!(first["scenario"]["nodes"], 7);
    let run = &first["runs"][0];
    let expected = [
        "config",
        "decisions",
        "fairness",
        "lastedS",
        "nodes",
        "placements",
        "pods",
        "reasons",
        "resources",
        "samples",
        "waits",
        "wall",
    ];
    assert_eq!(fields(run), expected);
    assert_eq!(fields(&run["resources"][0]), ["allocatable", "fragmented", "max", "mean", "name", "requested"]);
    let placement = ["arrivedS", "evicted", "leftS", "node", "placedS", "pod", "refusals"];
    assert_eq!(fields(&run["placements"][0]), placement);
    assert_eq!(fields(&run["reasons"][0]), ["example", "message", "plugins", "pods", "reason"]);
    assert_eq!(fields(&run["samples"][0]), ["arrived", "atS", "fragmented", "gpuDemand", "requested", "waiting"]);
    assert_eq!(fields(&run["wall"]), ["attemptsPerSecond", "seconds"]);
    assert_eq!(
        run["decisions"]["attempts"],
        json!(run["decisions"]["bindings"].as_u64().unwrap() + run["decisions"]["refusals"].as_u64().unwrap())
    );
    let mut again = document(&line);
    let mut other = document(&[trace.as_str(), "--demand=130%", "--seed=43"]);
    for answer in [&mut first, &mut again, &mut other] {
        answer["runs"][0]["wall"] = Value::Null;
    }
    assert_eq!(first.to_string(), again.to_string());
    assert_ne!(first.to_string(), other.to_string());
}

#[test]
fn a_pod_that_waits_is_counted_with_its_reason() {
    let folder = folder("simulate-waits");
    let pod = folder.join("pod.yaml");
    std::fs::write(&pod, "{apiVersion: v1, kind: Pod, metadata: {name: huge}, spec: {priorityClassName: system-node-critical, containers: [{name: c, resources: {requests: {cpu: 99}}}]}}").unwrap();
    let answer = simulated(&["-f", &example("nodes.yaml"), "--add", &pod.display().to_string()]).unwrap();
    assert_eq!(answer.code, 1);
    assert_eq!(row(&answer.text, "1"), ["1", "NodeResourcesFit", "default/huge", "Insufficient cpu"]);
}

#[test]
fn a_report_needs_nothing_but_itself() {
    let folder = folder("simulate-report");
    let file = folder.join("report.html").display().to_string();
    let trace = format!("--trace=openb={}", example("openb"));
    let most = example("most-allocated.yaml");
    let line = [
        trace.as_str(),
        "--demand=130%",
        "--config",
        most.as_str(),
        "--config",
        most.as_str(),
        "--report",
        file.as_str(),
    ];
    assert!(simulated(&line).unwrap().text.ends_with(&format!("report: {file}\n")));
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">") && page.ends_with("</html>\n"));
    for foreign in ["<script", "<link", "<img", "<iframe", "@import", "url(", "src=", "href=", "http:", "https:"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("Content-Security-Policy") && page.contains("prefers-color-scheme: dark"));
    // Every picture says in words what it shows, and plots of lines and bars have their numbers.
    let pictures: Vec<&str> = page.split("<svg class=\"plot\"").skip(1).collect();
    assert!(pictures.len() >= 6, "{}", pictures.len());
    for picture in &pictures {
        assert!(picture.starts_with(" role=\"img\""), "{picture}");
        let (_, title) = picture.split_once("<title>").unwrap();
        let (title, rest) = title.split_once("</title>\n<desc>").unwrap();
        assert!(
            !title.is_empty() && rest.split_once("</desc>").is_some_and(|(words, _)| words.len() > 20),
            "{picture}"
        );
    }
    assert_eq!(page.matches("<details>").count() + 2, pictures.len(), "all but the strips of nodes");
    for (open, close) in
        [("<svg", "</svg>"), ("<table", "</table>"), ("<section", "</section>"), ("<figure", "</figure>")]
    {
        assert_eq!(page.matches(open).count(), page.matches(close).count(), "{open}");
    }
    assert_eq!(
        page.matches("<polyline class=\"c1\" points=\"0,5").count(),
        page.matches("<polyline class=\"c0\" points=\"0,5").count()
    );

    let error = simulated(&line).unwrap_err();
    assert_eq!(error, format!("{file} exists already; name another file, or overwrite it with --force"));
    assert!(simulated(&[&line[..], &["--force"]].concat()).is_ok());
    let nowhere = folder.join("none/report.html").display().to_string();
    let error = simulated(&["-f", EXAMPLES, "--report", &nowhere]).unwrap_err();
    assert!(error.contains("there is no folder") && error.contains("create it, or name another"), "{error}");
}

#[test]
fn bad_input_is_named_with_its_remedy() {
    let folder = folder("simulate-bad");
    let put = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name).display().to_string()
    };
    let says = |line: &[&str], words: &str| {
        let error = simulated(line).unwrap_err();
        assert!(error.contains(words), "{line:?}: {error}");
    };
    says(&["-f", "/nowhere.yaml"], "/nowhere.yaml cannot be read");
    says(&["-f", &example("nodes.yaml")], "there is no pod that waits for a node");
    says(&["-f", &example("pods.yaml")], "there is no node; add some");
    says(&["-f", EXAMPLES, "--config", "/none.yaml"], "--config /none.yaml cannot be read");
    let broken = put(
        "broken.yaml",
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofile: []\n",
    );
    says(&["-f", EXAMPLES, "--config", &broken], "broken.yaml:3: profile: unknown field; did you mean profiles?");
    says(&["--trace=alibaba"], "there is no trace \"alibaba\", but openb; write openb=FOLDER");
    says(&["--trace=openb"], "say where its files are: openb=FOLDER");
    says(&["--trace", &format!("openb={}", example("openb/cpu100"))], "the folder has: default");
    says(&["--demand=130%", "-f", EXAMPLES], "--trace");
    says(&["--trace=openb=x", "--demand=lots"], "such as 130%");
    let nodes = std::fs::read_to_string(example("openb/openb_node_list_all_node.csv")).unwrap();
    put("openb_node_list_all_node.csv", &nodes);
    let pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\na,1000,1,1,500,\nb,much,1,0,0,\n";
    let pods = put("openb_pod_list_default.csv", pods);
    says(&["--trace", &format!("openb={}", folder.display())], &format!("{pods}:3: cpu_milli: invalid digit"));
    let class = put(
        "class.yaml",
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {priorityClassName: none, containers: [{name: c}]}}",
    );
    says(
        &["-f", &example("nodes.yaml"), "--add", &class],
        "pod p: there is no PriorityClass none; create it, or write",
    );
    let output = koordctl().args(["simulate", "-f", "/nowhere.yaml"]).output().unwrap();
    assert_eq!((fails(&output).lines().count(), output.status.code()), (1, Some(2)), "{output:?}");
}

#[test]
fn pods_of_a_file_come_to_a_cluster() {
    let cluster = Cluster::installed("koordctl-simulate");
    let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": amounts, "allocatable": amounts},
    });
    cluster.create("/api/v1/nodes", &node);
    cluster.patch("/api/v1/nodes/n1", &json!({"spec": {"taints": null}}));
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}});
    let pod =
        |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
    cluster
        .create("/api/v1/namespaces/default/pods", &pod("runs", json!({"nodeName": "n1", "containers": [container]})));
    let file = folder("simulate-cluster").join("pod.json");
    let small = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}});
    let new = json!({"kind": "List", "items": [pod("small", json!({"containers": [small]})), pod("large", json!({"containers": [container]}))]});
    std::fs::write(&file, new.to_string()).unwrap();
    let kubeconfig = cluster.kubeconfig.display().to_string();
    let answer = document(&["--kubeconfig", &kubeconfig, "--add", &file.display().to_string()]);
    let places: Vec<(&str, Option<&str>)> = answer["runs"][0]["placements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|placement| (placement["pod"].as_str().unwrap(), placement["node"].as_str()))
        .collect();
    assert_eq!(places, [("default/large", None), ("default/small", Some("n1"))]);
}
