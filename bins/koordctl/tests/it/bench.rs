//! `koordctl bench`: every scenario that is built in finishes, the result has its fields and is compared, a cluster is left as it was, and
//! whatever is wrong is said in one line.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::program::{Api, Up, fails, folder, koordctl, koordctl_with_little_room};

/// A scenario that takes no time.
const SMALL: &str = "name: small\nnodeCount: 3\npodCount: 20\nresourceRequests: {cpu: 100m}\n";

struct Bench {
    folder: PathBuf,
}

impl Bench {
    fn new(name: &str) -> Self {
        Self { folder: folder(name) }
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn put(&self, name: &str, text: &str) -> String {
        std::fs::write(self.folder.join(name), text).unwrap();
        self.path(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = koordctl();
        command.arg("bench").args(arguments).current_dir(&self.folder);
        command
    }

    /// The result in the file that a run names.
    fn result(&self, output: &Output) -> Value {
        let text = stdout(output);
        let file = text.lines().find_map(|line| line.strip_prefix("result: ")).unwrap_or_else(|| panic!("{output:?}"));
        serde_json::from_str(&std::fs::read_to_string(self.folder.join(file)).unwrap()).unwrap()
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What kube-scheduler's own performance tests play, and the two scenarios beside them.
#[test]
fn every_scenario_that_is_built_in_finishes() {
    let bench = Bench::new("bench-built-in");
    let names = Mutex::new(koord_scheduler_bench::names());
    let wrong = Mutex::new(Vec::new());
    let play = || {
        loop {
            let Some(name) = names.lock().unwrap().next() else { return };
            let output = bench.run(&[name, "--qps", "0", "--result", &format!("{name}.json")]);
            if output.status.code() != Some(0) {
                wrong.lock().unwrap().push(format!("{name}: {output:?}"));
                continue;
            }
            let result = bench.result(&output);
            assert_eq!((&result["name"], &result["schedulingFailureCount"]), (&json!(name), &json!(0)));
            assert!(result["podCount"].as_u64().is_some_and(|pods| pods >= 20), "{name}: {result}");
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(play))));
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let listed = stdout(&bench.run(&["list"]));
    assert!(koord_scheduler_bench::names().all(|name| listed.contains(name)), "{listed}");
}

#[test]
fn the_result_has_the_fields_of_the_original_and_finer_ones() {
    let bench = Bench::new("bench-result");
    let scenario = bench.put(
        "gangs.yaml",
        "name: of-gangs\nnodeCount: 5\npodCount: 40\ngangSize: 10\nminMember: 8\nclientQPS: 200\nclientBurst: 1\n",
    );
    let output = bench.run(&["-f", &scenario]);
    assert!(output.status.success(), "{output:?}");
    let result = bench.result(&output);
    for (field, value) in [
        ("name", json!("of-gangs")),
        ("nodeCount", json!(5)),
        ("podCount", json!(40)),
        ("timedOut", json!(false)),
        ("thresholdBreached", json!(false)),
        ("apiServer", json!("embedded")),
    ] {
        assert_eq!(result[field], value, "{field}");
    }
    let run = result["runID"].as_str().unwrap();
    assert!(stdout(&output).ends_with(&format!("result: bench-of-gangs-{run}.json\n")));
    let number = |pointer: &str| {
        result.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}: {result}"))
    };
    // Four PodGroups and 40 pods at 200 a second, of which the pods are measured.
    let creation = number("/apiCreationDurationSec");
    assert!((0.19..5.0).contains(&creation), "{creation}");
    let total = number("/totalDurationSec");
    assert!(total >= creation * 0.9 && (number("/throughputPodsPerSec") - 40.0 / total).abs() < 0.01, "{result}");
    let waits = ["p50Sec", "p90Sec", "p99Sec", "maxSec"].map(|field| number(&format!("/observed/{field}")));
    assert!(waits.is_sorted() && waits[3] > 0.0 && waits[3] <= total, "{waits:?}");
    assert!(number("/latencyP99Sec") <= total.ceil() && number("/latencyP50Sec").fract() == 0.0, "{result}");
    let (half, most) = (number("/gangCompletionP50"), number("/gangCompletionP99"));
    // The pods of a gang come 5 ms apart, and the first waits for the others.
    assert!(half <= most && half >= 0.03, "{half} {most}");
}

#[test]
fn a_result_is_compared_with_an_earlier_one() {
    let bench = Bench::new("bench-baseline");
    let scenario =
        bench.put("small.yaml", &format!("{SMALL}thresholds: {{throughputDropPct: 10, p99IncreasePct: 20}}\n"));
    let before = |throughput: f64, p99: f64| {
        let result = json!({
            "name": "small", "runID": "earlier", "nodeCount": 3, "podCount": 20, "throughputPodsPerSec": throughput, "latencyP99Sec": 1000,
            "observed": {"p50Sec": p99, "p90Sec": p99, "p99Sec": p99, "maxSec": p99},
        });
        bench.put("before.json", &result.to_string())
    };
    let file = before(0.1, 1000.0);
    let better = bench.run(&["-f", &scenario, "--baseline", &file]);
    assert_eq!(better.status.code(), Some(0), "{better:?}");
    assert!(stdout(&better).contains("throughput before") && !stdout(&better).contains("Worse"));
    let file = before(1e9, 1e-9);
    let worse = bench.run(&["-f", &scenario, "--baseline", &file]);
    assert_eq!(worse.status.code(), Some(1), "{worse:?}");
    let text = stdout(&worse);
    assert!(text.contains("Worse than before: the throughput fell by 100.0 %, more than 10 %"), "{text}");
    assert!(text.contains("Worse than before: the 99th percentile of the wait grew by"), "{text}");
    let result = bench.result(&worse);
    assert_eq!(
        (&result["thresholdBreached"], &result["comparison"]["baselineRunID"]),
        (&json!(true), &json!("earlier"))
    );
}

#[test]
fn pods_that_get_no_node_in_time_are_counted_with_the_reason() {
    let bench = Bench::new("bench-late");
    let scenario =
        bench.put("late.yaml", "name: late\nnodeCount: 1\npodCount: 5\nresourceRequests: {cpu: 10}\ntimeout: 3s\n");
    let output = bench.run(&["-f", &scenario, "--result", "late.json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = stdout(&output);
    assert!(text.contains("It was not done within 3 s.") && text.contains("Insufficient cpu"), "{text}");
    let result = bench.result(&output);
    assert_eq!((&result["timedOut"], &result["schedulingFailureCount"]), (&json!(true), &json!(2)));
    assert_eq!(result["schedulingFailureRate"], json!(0.4));
}

/// What is left of any run.
fn left(api: &Api) -> usize {
    let label = "labelSelector=benchmark.koordinator.sh%2Frun-id";
    let paths = ["nodes", "pods", "persistentvolumes"].map(|plural| format!("/api/v1/{plural}?{label}"));
    let groups = format!("/apis/scheduling.sigs.k8s.io/v1alpha1/podgroups?{label}");
    let count = |path: &String| api.get(path)["items"].as_array().unwrap().len();
    paths.iter().chain([&groups]).map(count).sum()
}

#[test]
fn a_cluster_is_left_as_it_was() {
    let bench = Bench::new("bench-cluster");
    let kubeconfig = bench.folder.join("kubeconfig");
    let _up = Up::start(&kubeconfig, &["--no-manager"]);
    let api = Api::of(&kubeconfig);
    let at = format!("--kubeconfig={}", kubeconfig.display());
    let ops = "\
name: in-a-cluster
schedulerName: default-scheduler
templates:
  kept: {extends: pod, metadata: {finalizers: [example.com/keep]}}
  volume: {apiVersion: v1, kind: PersistentVolume, spec: {accessModes: [ReadOnlyMany], capacity: {storage: 1Gi}, csi: {driver: d, volumeHandle: v}}}
  claim: {apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}}
ops:
- createNodes: {count: 3}
- createPods: {count: 5, template: kept, volume: volume, claim: claim}
- createPods: {count: 20, gangSize: 10, collectMetrics: true}
";
    let scenario = bench.put("ops.yaml", ops);
    let refused = fails(&bench.run(&["-f", &scenario, &at]));
    assert!(
        refused.contains("has nodes that are no benchmark's") && refused.contains("--beside-other-nodes"),
        "{refused}"
    );
    let output = bench.run(&["-f", &scenario, &at, "--beside-other-nodes"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(bench.result(&output)["podCount"], 20);
    assert_eq!(left(&api), 0);

    // What ctrl-C interrupts is gone too.
    let long = bench.put("long.yaml", &format!("{ops}- sleep: 5m\n"));
    let mut child = bench.command(&["-f", &long, &at, "--beside-other-nodes"]).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    let pods = "/api/v1/namespaces/benchmark/pods";
    // All of its pods are on its own nodes, whose other ones are there and empty.
    let on_own_nodes = |pods: &Value| {
        let nodes = pods["items"].as_array().unwrap().iter().filter_map(|pod| pod["spec"]["nodeName"].as_str());
        nodes.filter(|node| node.starts_with("bench-")).count()
    };
    while on_own_nodes(&api.get(pods)) < 25 {
        assert!(Instant::now() < deadline, "{}", api.get(pods));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait().unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!((output.code(), said.as_str()), (Some(2), "koordctl: interrupted; what was created is gone again\n"));
    assert_eq!(left(&api), 0);
}

#[test]
fn what_an_earlier_run_left_is_named() {
    let bench = Bench::new("bench-left");
    let kubeconfig = bench.folder.join("kubeconfig");
    let _up = Up::start(&kubeconfig, &["--no-manager", "--nodes=0"]);
    let api = Api::of(&kubeconfig);
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "left", "labels": {"benchmark.koordinator.sh/run-id": "old"}}});
    api.create("/api/v1/nodes", &node).unwrap();
    let error = fails(&bench.run(&["basic", &format!("--kubeconfig={}", kubeconfig.display())]));
    assert!(
        error.contains("1 nodes of the run old are there") && error.contains("kubectl delete nodes,namespaces -l"),
        "{error}"
    );
}

#[test]
fn whatever_is_wrong_is_said_in_one_line() {
    let bench = Bench::new("bench-bad");
    let small = bench.put("small.yaml", SMALL);
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    bench.put("old.json", "{}");
    let other = bench.put(
        "other.json",
        &json!({
            "name": "other", "runID": "r", "nodeCount": 1, "podCount": 1, "throughputPodsPerSec": 1, "latencyP99Sec": 1,
        })
        .to_string(),
    );
    let wrong = bench.put("wrong.yaml", "name: a\nnodeCount: 1\npodCount: 1\nclientQps: 5\n");
    let kind = bench.put(
        "kind.yaml",
        "name: a\ntemplates: {x: {kind: Pod}}\nops:\n- createPods: {count: 1, template: x, collectMetrics: true}\n",
    );
    let scheduler = bench.put("scheduler.yaml", "name: a\nnodeCount: 1\npodCount: 1\nschedulerName: koord-schedular\n");
    let missing = bench.put("missing.yaml", "name: a\nnodeCount: 1\npodCount: 1\nnodeTemplateFile: nowhere.yaml\n");
    let refused = bench.put("refused.yaml", "name: a\nnodeCount: 1\npodCount: 1\nlabels: {a: 'no label value'}\n");
    let table: &[(&[&str], &[&str])] = &[
        (&["-f", "nowhere.yaml"], &["nowhere.yaml cannot be read"]),
        (&["-f", &wrong], &["wrong.yaml:4: clientQps: unknown field; did you mean clientQPS?"]),
        (&["-f", &kind], &["template x: an object needs apiVersion and kind"]),
        (&["-f", &scheduler], &["schedulerName is \"koord-schedular\"", "did you mean \"koord-scheduler\"?"]),
        (&["-f", &missing], &["nodeTemplateFile", "nowhere.yaml cannot be read"]),
        (&["-f", &refused], &["cannot be created", "label"]),
        (&["bsic"], &["there is no scenario \"bsic\"; did you mean \"basic\"?"]),
        (&["basic", "-f", &small], &["cannot be used with"]),
        (&["-f", &small, "--qps", "fast"], &["'fast' for '--qps"]),
        (&["-f", &small, "--result", "old.json"], &["old.json exists already", "--force"]),
        (&["-f", &small, "--result", "none/new.json"], &["--result none/new.json: there is no folder none"]),
        (&["-f", &small, "--baseline", "nowhere.json"], &["--baseline nowhere.json cannot be read"]),
        (&["-f", &small, "--baseline", "old.json"], &["--baseline old.json is no result of koordctl bench", "name"]),
        (&["-f", &small, "--baseline", &other], &["--baseline is a result of scenario other, not of small"]),
        (&["-f", &small, "--config", "nowhere.yaml"], &["--config nowhere.yaml cannot be read"]),
        (&["-f", &small, "--scheduler-addr", &address], &[&address, "in use"]),
        (&["-f", &small, "--beside-other-nodes"], &["is about a cluster; name it with --kubeconfig"]),
        (&["-f", &small, "--kubeconfig", "nowhere"], &["nowhere"]),
        (
            &["-f", &small, "--kubeconfig", "nowhere", "--config", &small],
            &["in a cluster its own scheduler is measured"],
        ),
    ];
    for (arguments, words) in table {
        let output = bench.run(arguments);
        let error = fails(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{arguments:?}: {error}");
        let lines = error.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines == 1 || error.contains("--help"), "{arguments:?}: {error}");
    }
    let results = |folder: &Path| {
        std::fs::read_dir(folder)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("bench-"))
            .count()
    };
    assert_eq!(results(&bench.folder), 0);

    // A full disk leaves no half result.
    let output =
        koordctl_with_little_room(0).args(["bench", "-f", &small]).current_dir(&bench.folder).output().unwrap();
    let error = fails(&output);
    assert!(error.contains("cannot be written: ") && error.lines().count() == 1, "{error}");
    assert_eq!(results(&bench.folder), 0);
}
