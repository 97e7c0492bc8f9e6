//! A webhook takes part in scheduling.

use std::{net::SocketAddr, process::Stdio, time::Duration};

use http::Method;
use programs::Running;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::program::{Server, program};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// An extender that accepts the nodes of a zone, prefers the last of them, and binds nothing itself.
async fn extender() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    address
}

async fn answer(mut stream: TcpStream) -> Option<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).await.ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.trim().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let args: Value = serde_json::from_slice(&body).unwrap();
    assert!(args["Pod"]["spec"]["containers"].is_array(), "the pod is whole: {args}");
    let nodes = args["Nodes"]["items"].as_array().unwrap();
    let name = |node: &&Value| node["metadata"]["name"].as_str().unwrap().to_owned();
    let (accepted, refused): (Vec<&Value>, Vec<&Value>) =
        nodes.iter().partition(|node| node["metadata"]["labels"]["zone"] == args["Pod"]["metadata"]["labels"]["zone"]);
    let answer = if head.contains("/filter ") {
        let words = refused.iter().map(|node| (name(node), json!("node(s) in another zone")));
        json!({"Nodes": {"items": accepted}, "FailedAndUnresolvableNodes": words.collect::<serde_json::Map<_, _>>()})
    } else {
        nodes
            .iter()
            .map(|node| json!({"Host": name(&node), "Score": if name(&node) == "n3" { 10 } else { 0 }}))
            .collect()
    };
    let text = answer.to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
    stream.write_all((head + &text).as_bytes()).await.ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extender_decides_about_pods_that_request_what_it_manages() {
    let server = Server::start().await;
    let config = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         clientConnection: {{kubeconfig: {}}}\nleaderElection: {{leaderElect: false}}\n\
         extenders:\n- urlPrefix: http://{}/fpga/\n  filterVerb: filter\n  prioritizeVerb: prioritize\n  weight: 5\n  \
         managedResources:\n  - {{name: example.com/fpga, ignoredByScheduler: true}}\n\
         - urlPrefix: http://127.0.0.1:1\n  filterVerb: filter\n  ignorable: true\n",
        server.kubeconfig().display(),
        extender().await
    );
    let file = server.file("config.yaml", &config);
    for (name, zone) in [("n1", "a"), ("n2", "a"), ("n3", "a"), ("n4", "b")] {
        let status = json!({"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}});
        let node = json!({"metadata": {"name": name, "labels": {"zone": zone}}, "status": status});
        server.send(Method::POST, "/api/v1/nodes", &node).await;
        server.send(Method::PATCH, &format!("/api/v1/nodes/{name}"), &json!({"spec": {"taints": null}})).await;
    }
    for (name, zone) in [("accepted", "a"), ("refused", "nowhere")] {
        let requests = json!({"cpu": "1", "example.com/fpga": "1"});
        let resources = json!({"requests": requests, "limits": {"example.com/fpga": "1"}});
        let pod = json!({
            "metadata": {"name": name, "labels": {"zone": zone}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
        });
        server.send(Method::POST, PODS, &pod).await;
    }
    let mut program = program();
    program.arg("--config").arg(file).args(["--port=0", "--secure-port=0"]);
    let mut running = Running(program.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let words = "0/4 nodes are available: 4 node(s) in another zone. no new claims to deallocate, \
                 preemption: 0/4 nodes are available: \
                 4 Preemption is not helpful for scheduling.";
    let mut seen = (Value::Null, Value::Null);
    for _ in 0..600 {
        let get = async |name: &str| server.send(Method::GET, &format!("{PODS}/{name}"), &Value::Null).await;
        let (accepted, refused) = (get("accepted").await, get("refused").await);
        seen = (accepted["spec"]["nodeName"].clone(), refused["status"]["conditions"][0]["message"].clone());
        if !seen.0.is_null() && !seen.1.is_null() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(seen, (json!("n3"), json!(words)));
    assert_eq!(running.terminate(), Some(0));
}
