//! Traces of pods, as a collector gets them.

use std::{net::SocketAddr, process::Stdio, sync::Arc, time::Duration};

use axum::{Router, body::Bytes, extract::State, routing::post};
use parking_lot::Mutex;
use programs::{Running, free};
use tokio::net::TcpListener;

use crate::{program::Server, replicas::is_ready};

const CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: KUBECONFIG}
";

/// What was sent to a collector; texts are as they are in protobuf.
type Taken = Arc<Mutex<Vec<u8>>>;

async fn take(State(taken): State<Taken>, body: Bytes) {
    taken.lock().extend_from_slice(&body);
}

/// A collector that takes whatever comes.
async fn collector() -> (SocketAddr, Taken) {
    let taken = Taken::default();
    let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&taken));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (address, taken)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_of_a_pod_is_sent_to_the_collector() {
    let (collector, taken) = collector().await;
    let server = Server::start().await;
    server.add_node("only", "8").await;
    let port = free();
    let mut command = server.program(CONFIG, port);
    command.arg(format!("--otlp-endpoint=http://{collector}")).stderr(Stdio::null());
    let mut program = Running(command.spawn().unwrap());
    is_ready(&mut program, port).await;
    server.add_pod("traced", "default-scheduler").await;
    assert_eq!(server.node_of("traced").await, "only");
    let wanted =
        ["koord-scheduler", "queue", "scheduling cycle", "binding cycle", "schedule Pod", "default/traced", "only"];
    let missing = || {
        let taken = taken.lock();
        let text = String::from_utf8_lossy(&taken);
        wanted.into_iter().filter(|name| !text.contains(name)).collect::<Vec<_>>()
    };
    for _ in 0..100 {
        if missing().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(missing(), [""; 0]);
    assert_eq!(program.terminate(), Some(0));
}
