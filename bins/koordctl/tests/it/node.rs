//! `koordctl node`: the documents of an agent on a fixture tree (`bins/koordlet/tests/recordings/state.rs`), served at an address or behind the
//! API server's proxy, and what the commands make of them.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener},
    process::Output,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};

use crate::{
    peer::{answers, kubeconfig},
    program::{fails, koordctl},
};

const STATUS: &str = include_str!("../../../../controllers/koordlet/state/examples/status.json");
const FILES: &str = include_str!("../../../../controllers/koordlet/state/examples/files.json");

/// Answers paths that begin like this; notes the paths that are asked for.
fn serves(pages: Vec<(String, u16, String)>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (address, asked) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
            let _: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let page = pages.iter().find(|(start, ..)| path.starts_with(start));
            let (code, body) = page.map_or((404, "{}"), |(_, code, body)| (*code, body.as_str()));
            noted.lock().unwrap().push(path);
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {code} \r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
        }
    });
    (address, asked)
}

fn agent() -> String {
    let pages = [("/node/status", STATUS), ("/node/files", FILES)];
    serves(pages.map(|(path, body)| (path.to_owned(), 200, body.to_owned())).into()).0.to_string()
}

fn node(arguments: &[&str], address: &str) -> Output {
    koordctl().arg("node").args(arguments).args(["--address", address]).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_status_names_what_is_degraded_first_and_how_old_inputs_are() {
    let output = node(&["status", "n1"], &agent());
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let mut lines = text.lines();
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("koordlet 1.0.0 on n1, since 2026-06-01T00:00:00Z; cgroups v1 (systemd), 2 pods")
    );
    let first = lines.nth(2).unwrap();
    assert!(first.starts_with("NodeTopologyReport ") && first.contains("degraded"), "{text}");
    assert!(first.contains("its meminfo is missing or malformed; mount /sys of the node"), "{text}");
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(row("cold-pages").ends_with("off") && row("CPUSuppress").ends_with("active"), "{text}");
    assert!(row("NodeSLO  ").contains("changed 8.0 s ago") || text.contains("changed 8.0 s ago"), "{text}");
    assert!(row("NodeMetric").ends_with("not written yet"), "{text}");
}

#[test]
fn each_value_of_a_pod_is_explained() {
    let output = node(&["explain", "n1", "shop/worker"], &agent());
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1), "two files differ: {output:?}");
    assert!(text.starts_with("shop/worker on n1, class BE\n"), "{text}");
    let row =
        |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}"));
    let words: Vec<&str> = row("cpu.shares").split_whitespace().collect();
    assert_eq!(words[..5], ["cpu.shares", "2560", "2", "RuntimeHooks", "Pod/shop/worker"], "{text}");
    let container = text.split("\ncontainer main ").nth(1).unwrap();
    assert!(container.contains("2560") && container.contains("the same"), "{text}");
    let above = text.split("\nabove: kubepods.slice/kubepods-besteffort.slice\n").nth(1).unwrap();
    let suppressed = above.lines().nth(1).unwrap();
    for part in ["cpu.cfs_quota_us  160000", "CPUSuppress", "NodeSLO/n1", "cpuSuppressPolicy: 4000m × 65 %"] {
        assert!(suppressed.contains(part), "{part}: {suppressed}");
    }
    assert!(!text.contains("shop/other"), "{text}");
}

#[test]
fn a_container_that_was_not_made_has_no_values() {
    let mut files: Value = serde_json::from_str(FILES).unwrap();
    files["pods"].as_array_mut().unwrap().iter_mut().for_each(|pod| {
        pod["containers"][0].as_object_mut().unwrap().remove("cgroup");
    });
    let output = node(&["explain", "n1", "shop/worker"], &answers(200, files.to_string()).to_string());
    assert!(text(&output).contains("\ncontainer main: the runtime has not made it yet\n"), "{output:?}");
}

#[test]
fn the_audit_lists_files_that_differ() {
    let output = node(&["audit", "n1"], &agent());
    let text = text(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.starts_with("n1: ") && text.contains(" files agree, 2 differ\n"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("shop/worker ")).collect();
    assert!(rows.len() == 2 && rows[1].contains("memory.limit_in_bytes  2147483648  4096"), "{text}");

    let document: Value = serde_json::from_str(&self::text(&node(&["audit", "n1", "-o", "json"], &agent()))).unwrap();
    let all: Value = serde_json::from_str(FILES).unwrap();
    assert_eq!(document, all, "nothing is lost on the way");
}

#[test]
fn where_nothing_differs_the_audit_ends_with_0() {
    let mut files: Value = serde_json::from_str(FILES).unwrap();
    files["files"].as_array_mut().unwrap().retain(|file| file["comparison"] == "agrees");
    let address = answers(200, files.to_string()).to_string();
    let output = node(&["audit", "n1"], &address);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&output).lines().count(), 1);
}

#[test]
fn an_agent_that_observes_is_said_to_write_nothing() {
    let mut files: Value = serde_json::from_str(FILES).unwrap();
    files["observeOnly"] = json!(true);
    let address = answers(200, files.to_string()).to_string();
    let audit = text(&node(&["audit", "n1"], &address));
    assert!(audit.contains("\nkoordlet only observes here: it writes none of this\n"), "{audit}");
    assert!(audit.ends_with("koordlet only observes\n"), "{audit}");
}

#[test]
fn another_node_an_unknown_pod_and_a_foreign_answer_are_errors() {
    let error = fails(&node(&["status", "n2"], &agent()));
    assert!(error.contains("this koordlet runs on n1, not on n2"), "{error}");
    let error = fails(&node(&["explain", "n1", "shop/workr"], &agent()));
    assert!(error.contains("knows no pod shop/workr; did you mean \"shop/worker\"?"), "{error}");
    let error = fails(&node(&["status", "n1"], &answers(200, "{}".to_owned()).to_string()));
    assert!(error.contains("is no koordlet"), "{error}");
    let error = fails(&node(&["status", "n1"], &answers(404, String::new()).to_string()));
    assert!(error.contains("has no page /node/status"), "{error}");
    let error = fails(&node(&["status", "n1"], "https://127.0.0.1:1"));
    assert!(error.contains("write HOST:PORT"), "{error}");
    let error = fails(&koordctl().args(["node", "explain", "n1", "worker"]).output().unwrap());
    assert!(error.contains("a pod as NAMESPACE/NAME"), "{error}");
}

/// An API server with these pods, whose proxy answers with this.
fn cluster(name: &str, pods: &Value, proxied: (u16, &str)) -> (Output, Vec<String>) {
    let list = json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": pods}).to_string();
    let (code, body) = proxied;
    let pages = [
        ("/version", 200, json!({"gitVersion": "v1.34.0"}).to_string()),
        ("/api/v1/namespaces/koordinator-system/pods?", 200, list),
        ("/api/v1/namespaces/koordinator-system/pods/koordlet-new:9000/proxy/node/status", code, body.to_owned()),
    ];
    let (address, asked) = serves(pages.map(|(path, code, body)| (path.to_owned(), code, body)).into());
    let kubeconfig = kubeconfig(name, &format!("http://{address}"));
    let output = koordctl().args(["node", "status", "n1", "--kubeconfig"]).arg(kubeconfig).output().unwrap();
    (output, asked.lock().unwrap().clone())
}

fn pod(name: &str, node: &str, phase: &str) -> Value {
    json!({
        "metadata": {"name": name}, "status": {"phase": phase},
        "spec": {"nodeName": node, "containers": [{"ports": [{"name": "metrics", "containerPort": 9000}]}]},
    })
}

#[test]
fn the_pod_on_the_node_is_asked_through_the_proxy_of_the_api_server() {
    let pods = json!([
        pod("koordlet-other", "n2", "Running"),
        pod("koordlet-old", "n1", "Failed"),
        pod("koordlet-new", "n1", "Running")
    ]);
    let (output, asked) = cluster("node-proxy", &pods, (200, STATUS));
    assert!(text(&output).contains("koordlet 1.0.0 on n1"), "{output:?}");
    let listed = "/api/v1/namespaces/koordinator-system/pods?labelSelector=koord-app%3Dkoordlet&fieldSelector=spec.nodeName%3Dn1";
    assert!(asked.iter().any(|path| path == listed), "{asked:?}");
}

#[test]
fn refusals_name_another_way() {
    let pods = || json!([pod("koordlet-new", "n1", "Running")]);
    let (output, _) =
        cluster("node-local", &pods(), (403, r#"{"message": "koordlet shows its state to clients on its own node"}"#));
    let error = fails(&output);
    for part in [
        "koordinator-system/koordlet-new on n1 refuses: koordlet shows its state",
        "kubectl -n koordinator-system port-forward pod/koordlet-new 9000, and ask with --address 127.0.0.1:9000",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let refusal = r#"{"kind": "Status", "message": "pods \"koordlet-new:9000\" is forbidden"}"#;
    let error = fails(&cluster("node-forbidden", &pods(), (403, refusal)).0);
    assert!(error.contains("ask as a user who may get pods/proxy"), "{error}");
    let error = fails(&cluster("node-none", &json!([]), (200, "{}")).0);
    assert!(error.contains("no koordlet runs on n1") && error.contains("--namespace"), "{error}");
}
