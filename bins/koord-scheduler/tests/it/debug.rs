//! What is set while the program runs, and what it does not serve.

use std::{fs, net::SocketAddr};

use programs::{answer, free};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::program::Server;

const CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: KUBECONFIG}
";

/// The status line and the body of a request.
pub(crate) async fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> (String, String) {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    stream.write_all((head + body).as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn verbosity_is_set_and_resources_of_pods_are_shown() {
    let server = Server::start().await;
    for node in ["only", "cordoned"] {
        server.add_node(node, "8").await;
    }
    let cordon = serde_json::json!({"spec": {"unschedulable": true}});
    server.send(http::Method::PATCH, "/api/v1/nodes/cordoned", &cordon).await;
    let port = free();
    let (mut program, log) = server.logged(CONFIG, port).await;
    let (status, body) = request(port, "PUT", "/debug/flags/v", "9").await;
    assert_eq!((status.as_str(), body.as_str()), ("HTTP/1.1 200 OK", "successfully set klog.logging.verbosity to 9"));
    let long = "9".repeat(65);
    for (method, path, body, code, says) in [
        ("PUT", "/debug/flags/v", "high", 400, "is no verbosity"),
        ("PUT", "/debug/flags/v", &*long, 413, "the body has more than 64 bytes"),
        ("PUT", "/debug/flags/s", "10", 200, "successfully set debugTopNScores to 10"),
        ("PUT", "/debug/flags/s", "some", 400, "is no number of nodes"),
        ("PUT", "/debug/flags/f", "true", 200, "successfully set debugFilterFailure to true"),
        ("PUT", "/debug/flags/f", "perhaps", 400, "is neither true nor false"),
        ("PUT", "/debug/flags/d", "true", 501, "koordctl why POD --history"),
        ("PUT", "/debug/flags/x", "1", 404, "there is no flag x"),
        ("GET", "/debug/pprof/profile?seconds=1", "", 501, "perf record"),
    ] {
        let (status, text) = request(port, method, path, body).await;
        assert!(status.starts_with(&format!("HTTP/1.1 {code} ")) && text.contains(says), "{path}: {status} {text}");
    }
    server.add_pod("a", "default-scheduler").await;
    assert_eq!(server.node_of("a").await, "only");
    let logged = fs::read_to_string(&log).unwrap();
    assert!(logged.contains("DEBUG"), "it logs more now");
    let line = |words: &str| logged.lines().find(|line| line.contains(words)).unwrap_or_default();
    let score = line("the score of a node");
    assert!(["default/a", "place=1", "only", "NodeResourcesFit"].iter().all(|word| score.contains(word)), "{score}");
    let refusal = line("a node is refused");
    let words = ["default/a", "cordoned", "NodeUnschedulable", "node(s) were unschedulable"];
    assert!(words.iter().all(|word| refusal.contains(word)), "{refusal}");
    let series = "kube_pod_resource_request{namespace=\"default\",pod=\"a\",";
    let mut text = String::new();
    for _ in 0..100 {
        text = answer(port, "/metrics/resources").await.unwrap();
        if text.contains(series) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(text.contains(series), "{text}");
    assert_eq!(program.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_are_refused_with_what_takes_them_and_unknown_where_profiling_is_off() {
    let server = Server::start().await;
    for (more, code, says) in [("", 501, "samply record -p PID"), ("enableProfiling: false\n", 404, "")] {
        let port = free();
        let (mut program, _) = server.logged(&format!("{CONFIG}{more}"), port).await;
        for path in ["/debug/pprof", "/debug/pprof/", "/debug/pprof/heap"] {
            let (status, text) = request(port, "GET", path, "").await;
            assert!(status.starts_with(&format!("HTTP/1.1 {code} ")), "{path}: {status} {text}");
            assert!(text.contains(says) && text.contains("perf record") != says.is_empty(), "{path}: {text}");
        }
        assert_eq!(program.terminate(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_of_plugins_take_parameters_and_health_is_counted() {
    let server = Server::start().await;
    server.add_node("only", "8").await;
    let plugins =
        "profiles: [{schedulerName: default-scheduler, plugins: {preFilter: {enabled: [{name: Reservation}]}}}]\n";
    let port = free();
    let (mut program, _) = server.logged(&format!("{CONFIG}{plugins}"), port).await;
    server.add_pod("a", "default-scheduler").await;
    assert_eq!(server.node_of("a").await, "only");
    let index = "/apis/v1/plugins/Reservation/reservationSelectorIndex";
    let asked = async |path: &str| request(port, "GET", path, "").await;
    let (short, detailed) = (asked(index).await, asked(&format!("{index}?detail=true")).await);
    assert_eq!(short.1, r#"{"reservations":0,"selectors":0,"unindexed":0}"#);
    assert!(detailed.1.contains(r#""unindexedReservations":[]"#), "{}", detailed.1);
    let (status, body) = asked("/apis/v1/plugins/DeviceShare/nodeDeviceSummaries").await;
    assert!(status.contains(" 404 ") && body.contains("message"), "no profile has it: {status} {body}");
    let (status, body) = asked("/apis/v1/nodes/none").await;
    assert!(status.contains(" 404 ") && body == r#"{"message":"cannot find node none"}"#, "{status} {body}");
    assert_eq!(asked("/healthz").await.1, "ok");
    let slis = answer(port, "/metrics/slis").await.unwrap();
    assert!(slis.contains(r#"kubernetes_healthcheck{name="tasks",type="healthz"} 1"#), "{slis}");
    assert_eq!(program.terminate(), Some(0));
}
