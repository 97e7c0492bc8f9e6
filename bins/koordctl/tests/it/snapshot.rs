//! `koordctl snapshot save`: what `why` says of the file is what it says of the objects; without names, it is the same up to names.
//! `koordctl queue`: what a scheduler that runs says of its queue.

use std::{
    net::TcpListener,
    path::Path,
    time::{Duration, Instant},
};

use koordctl::{Answer, Cli, run_on, screen::Screen};
use serde_json::{Value, json};

use crate::{
    program::{Api, Up, folder, koordctl},
    unblock::{gang, merge, node, on, pod, requesting},
    why::AT,
};

fn run(line: &[&str]) -> Result<Answer, String> {
    let cli =
        <Cli as clap::Parser>::try_parse_from(["koordctl"].iter().chain(line)).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run_on(cli, Screen::ENDLESS)).map_err(|error| format!("{error:#}"))
}

fn saved(objects: &[Value], folder: &Path, flags: &[&str]) -> Value {
    let (from, to) = (folder.join("from.json"), folder.join("to.json"));
    std::fs::write(&from, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
    let (from, to) = (from.display().to_string(), to.display().to_string());
    let line = [&["snapshot", "save", "--force", "-f", &*from, &*to], flags].concat();
    let answer = run(&line).unwrap();
    assert!(answer.text.contains("objects in "), "{}", answer.text);
    serde_json::from_str(&std::fs::read_to_string(&to).unwrap()).unwrap()
}

/// A cluster with what decides by names, labels and annotations.
fn objects() -> Vec<Value> {
    let zone = |name: &str, zone: &str| {
        node(name, &json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone, "example.com/pool": "blue"}}}))
    };
    let taint = json!([{"key": "example.com/team", "value": "red", "effect": "NoSchedule"}]);
    let quota = json!({
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": "team", "namespace": "shop"},
        "spec": {"max": {"cpu": "2", "memory": "8Gi"}, "min": {"cpu": "1", "memory": "1Gi"}},
    });
    let term = json!({"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "web"}}});
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let expression = json!({"key": "example.com/pool", "operator": "In", "values": ["green", "blue"]});
    let pool = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [expression]}],
    }}});
    let skew = json!([{
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]);
    let claim = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data-claim"}}]);
    let labelled = json!({"metadata": {"labels": {"quota.scheduling.koordinator.sh/name": "team"}}});
    let mut of_quota = requesting("of-quota", &json!({"cpu": "3"}));
    merge(&mut of_quota, &labelled);
    let mut all = vec![
        zone("worker-b", "paris"),
        zone("worker-a", "london"),
        node("worker-c", &json!({"spec": {"taints": taint}})),
        quota,
        on("worker-b", pod("running", &json!({}))),
        on("worker-a", pod("running-too", &json!({"metadata": {"labels": {"app": "other"}}}))),
        of_quota,
        requesting("large", &json!({"cpu": "16"})),
        pod("apart", &json!({"spec": {"affinity": apart}})),
        pod("pooled", &json!({"spec": {"affinity": pool}})),
        pod("selected", &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "worker-a"}}})),
        pod("nowhere", &json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": "worker-z"}}})),
        pod("spread", &json!({"spec": {"topologySpreadConstraints": skew}})),
        pod("claiming", &json!({"spec": {"volumes": claim}})),
    ];
    all.extend(gang(2, 3, "1").into_iter().skip(1));
    all
}

/// What is said of every pod, without names: numbers, plugins, and which kind of outcome.
fn verdicts(list: &Value, folder: &Path) -> Vec<String> {
    let file = folder.join("asked.json");
    std::fs::write(&file, list.to_string()).unwrap();
    let file = file.display().to_string();
    let items = list["items"].as_array().unwrap();
    let pods = items.iter().filter(|object| object["kind"] == "Pod");
    pods.map(|pod| {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap();
        let answer = run(&["why", text("name"), "-n", text("namespace"), AT, "-f", &file, "-o", "json"]).unwrap().text;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let position = |name: &Value| {
            items.iter().position(|object| object["kind"] == "Node" && object["metadata"]["name"] == *name)
        };
        let nodes: Vec<String> = answer["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|node| {
                let refusals: Vec<_> = node["refusals"].as_array().unwrap().iter().map(|one| &one["plugin"]).collect();
                format!("{:?} {} {refusals:?} {}", position(&node["name"]), node["total"], node["scores"])
            })
            .collect();
        let chosen = answer["outcome"].as_object().map(|outcome| {
            outcome.iter().map(|(kind, one)| format!("{kind} {:?}", position(&one["node"]))).collect::<Vec<_>>()
        });
        let unblock: Vec<String> = answer["unblock"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                let kinds: Vec<_> = one["changes"].as_array().unwrap().iter().map(|change| &change["kind"]).collect();
                format!("{kinds:?} {:?}", position(&one["node"]))
            })
            .collect();
        format!("{} {} {nodes:#?} {chosen:?} {unblock:#?}", answer["placed"], answer["held"]["plugin"])
    })
    .collect()
}

#[test]
fn a_snapshot_without_names_is_decided_alike() {
    let folder = tempfile::tempdir().unwrap();
    let plain = saved(&objects(), folder.path(), &[]);
    assert_eq!(plain["items"].as_array().unwrap().len(), objects().len());
    let redacted = saved(&objects(), folder.path(), &["--redact"]);
    let text = redacted.to_string();
    for name in
        ["worker", "shop", "paris", "london", "blue", "red\"", "team", "data-claim", "train", "app:1", "example.com"]
    {
        assert!(!text.contains(&format!("\"{name}")), "{name} is in {text}");
    }
    let (plain, redacted) = (verdicts(&plain, folder.path()), verdicts(&redacted, folder.path()));
    assert!(
        plain.iter().any(|verdict| verdict.starts_with("true"))
            && plain.iter().any(|verdict| verdict.starts_with("false"))
    );
    for (plain, redacted) in plain.iter().zip(&redacted) {
        assert_eq!(plain, redacted);
    }
    assert_eq!(plain.len(), redacted.len());
}

#[test]
fn a_file_is_neither_overwritten_nor_guessed_at() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml").display().to_string();
    let from = folder.path().join("from.json").display().to_string();
    std::fs::write(&from, node("n1", &json!({})).to_string()).unwrap();
    let save = |to: &str| run(&["snapshot", "save", "-f", &from, to]);
    assert_eq!(save(&file).unwrap().text, format!("1 objects in {file}: 1 Node\n"));
    assert_eq!(
        save(&file).unwrap_err(),
        format!("{file} exists already; name another file, or overwrite it with --force")
    );
    assert!(save("objects.txt").unwrap_err().ends_with("let it end in .yaml or .json"));
    let said = run(&["why", "p", "-f", &file]).unwrap_err();
    assert!(said.starts_with("there is no pod p"), "the file is read: {said}");
}

#[test]
fn the_queue_of_a_scheduler_that_runs_is_shown() {
    let folder = folder("queue");
    let kubeconfig = folder.join("koord.kubeconfig");
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let up = Up::start(&kubeconfig, &[&format!("--scheduler-addr=127.0.0.1:{port}")]);
    assert!(up.greeting.contains(&format!("koordctl queue list --scheduler {url}")), "{}", up.greeting);
    let api = Api::of(&kubeconfig);
    let mut large = requesting("large", &json!({"cpu": "1000"}));
    large["metadata"]["namespace"] = json!("default");
    api.create("/api/v1/namespaces/default/pods", &large).unwrap();
    let show = |pod: &str| koordctl().args(["queue", "show", pod, "--scheduler", &url]).output().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let text = loop {
        let text = String::from_utf8_lossy(&show("large").stdout).into_owned();
        if text.contains("unschedulable, position 1") {
            break text;
        }
        assert!(Instant::now() < deadline, "{:?}", show("large"));
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(text.contains("NodeResourcesFit") && text.contains("AssignedPod/Delete"), "{text}");
    let list = koordctl().args(["queue", "list", "--scheduler", &url]).output().unwrap();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.starts_with("0 active, 0 backoff, 1 unschedulable, 0 gated, 0 inFlight\n"), "{list}");
    let none = show("none");
    assert_eq!(none.status.code(), Some(1));
    let text = String::from_utf8_lossy(&none.stdout).into_owned();
    assert!(text.ends_with("\n`koordctl why pod none -n default` shows which\n"), "{text}");
    let without_scheme = koordctl().args(["queue", "show", "none", "--scheduler", &url["http://".len()..]]).output();
    assert_eq!(without_scheme.unwrap().stdout, none.stdout);
    let history = |pod: &str| {
        let output = koordctl().args(["why", pod, "--history", "--scheduler", &url]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, text) = history("large");
    let line = text.lines().nth(1).unwrap_or_default().split_whitespace().skip(1).collect::<Vec<_>>().join(" ");
    assert_eq!(code, Some(0), "{text}");
    assert!(
        line.contains("refused") && line.contains("NodeResourcesFit InsufficientResources Insufficient cpu"),
        "{text}"
    );
    let (code, text) = history("none");
    assert_eq!(code, Some(1));
    assert!(text.starts_with("default/none has not been tried lately: "), "{text}");
    for mut object in gang(2, 2, "1000").into_iter().skip(1) {
        object["metadata"]["namespace"] = json!("default");
        let path = match object["kind"].as_str() {
            Some("Pod") => "/api/v1/namespaces/default/pods",
            _ => "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups",
        };
        api.create(path, &object).unwrap();
    }
    let of_gang =
        |gang: &str| koordctl().args(["why", "gang", gang, "--history", "--scheduler", &url]).output().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let output = of_gang("train");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        if lines.any(|line| line.contains(" default/m") && line.contains(" refused ")) {
            assert_eq!(output.status.code(), Some(0), "{text}");
            break;
        }
        assert!(Instant::now() < deadline, "{output:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let unknown = of_gang("none");
    let error = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(unknown.status.code() == Some(2) && error.contains("knows no gang default/none"), "{error}");
    drop(up);
    let gone = show("large");
    let error = String::from_utf8_lossy(&gone.stderr).into_owned();
    assert!(
        gone.status.code() == Some(2) && error.contains("does not answer") && error.contains("--scheduler"),
        "{error}"
    );
}
