//! The scheduler as its users run it, on the embedded API server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use envtest::{
    cluster::{Cluster, Options},
    serve::Owner,
    shell::Server,
};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

const SOURCES: [&str; 2] = [include_str!("../src/main.rs"), include_str!("../src/spot_nodes.rs")];
const PODS: &str = "/api/v1/namespaces/default/pods";
const CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: KUBECONFIG}
profiles: [{schedulerName: spot-scheduler}]
";

/// A program that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn send(server: &Server, method: Method, path: &str, body: &Value) -> Value {
    let (code, answer) = server.send(method, path, body).await;
    assert!(code < 300, "{path}: {answer}");
    answer
}

async fn add_node(server: &Server, name: &str, is_spot: bool) {
    let status = json!({"allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"}});
    let labels = json!({"example.com/spot": is_spot.to_string()});
    let node = json!({"metadata": {"name": name, "labels": labels}, "status": status});
    send(server, Method::POST, "/api/v1/nodes", &node).await;
    send(server, Method::PATCH, &format!("/api/v1/nodes/{name}"), &json!({"spec": {"taints": null}})).await;
}

async fn add_pod(server: &Server, name: &str, is_interruptible: bool) {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}});
    let labels = json!({"example.com/interruptible": is_interruptible.to_string()});
    let spec = json!({"schedulerName": "spot-scheduler", "containers": [container]});
    send(server, Method::POST, PODS, &json!({"metadata": {"name": name, "labels": labels}, "spec": spec})).await;
}

/// What has become of a pod: its node, or why it has none.
async fn fate(server: &Server, name: &str) -> String {
    let begin = Instant::now();
    loop {
        let pod = send(server, Method::GET, &format!("{PODS}/{name}"), &Value::Null).await;
        let message = pod["status"]["conditions"][0]["message"].as_str();
        if let Some(fate) = pod["spec"]["nodeName"].as_str().or(message) {
            return fate.to_owned();
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "nothing is decided about {name}: {pod}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn spot_nodes_are_for_pods_that_may_be_interrupted() {
    let cluster = Cluster::bind(Options::default()).await.unwrap();
    let (server, folder) = (cluster.server.clone(), tempfile::tempdir().unwrap());
    let owner = Owner { name: "test".to_owned(), port: 0, data_dir: None };
    let [kubeconfig, config] = ["kubeconfig", "config.yaml"].map(|name| folder.path().join(name));
    fs::write(&kubeconfig, cluster.kubeconfig(owner).to_text()).unwrap();
    fs::write(&config, CONFIG.replace("KUBECONFIG", &kubeconfig.display().to_string())).unwrap();
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(cluster.run(stopped));
    add_node(&server, "steady", false).await;
    add_node(&server, "spot", true).await;

    let mut program = Command::new(env!("CARGO_BIN_EXE_scheduler-plugin"));
    program.arg("--config").arg(&config).args(["--port=0", "--secure-port=0"]);
    let _running = Running(program.stderr(Stdio::null()).spawn().unwrap());

    add_pod(&server, "batch", true).await;
    assert_eq!(fate(&server, "batch").await, "spot", "although both nodes are empty");
    for name in ["web-0", "web-1"] {
        add_pod(&server, name, false).await;
        assert_eq!(fate(&server, name).await, "steady");
    }
    add_pod(&server, "web-2", false).await;
    let message = fate(&server, "web-2").await;
    assert!(
        message.starts_with("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) that may be taken away."),
        "{message}"
    );
    let steady = json!({"metadata": {"labels": {"example.com/spot": "false"}}});
    send(&server, Method::PATCH, "/api/v1/nodes/spot", &steady).await;
    let begin = Instant::now();
    while fate(&server, "web-2").await != "spot" {
        assert!(begin.elapsed() < Duration::from_secs(30), "a node that stays takes it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn the_readme_shows_the_sources() {
    let readme = include_str!("../README.md");
    for source in SOURCES {
        assert!(readme.contains(&format!("```rust\n{source}```")), "copy the sources into README.md");
    }
}

#[test]
fn the_sources_have_forty_lines_beside_comments() {
    let lines = SOURCES.into_iter().flat_map(str::lines).map(str::trim);
    let count = lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count();
    assert!(count <= 40, "{count}; README.md and docs/scheduler.md say forty");
}
