//! The program beside an API server: it schedules by its configuration, and another replica takes over.

use std::{
    fs,
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use http::Method;
use programs::{Running, answer, free};
use serde_json::{Value, json};

use crate::program::{Server, program};

const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const MAX: Duration = Duration::from_mins(1);

/// Two profiles that choose opposite nodes.
pub(crate) const CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {resourceName: koord-scheduler, resourceNamespace: kube-system}
clientConnection: {kubeconfig: KUBECONFIG}
profiles:
- schedulerName: spreads
- schedulerName: packs
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
  plugins:
    multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}
";

impl Server {
    pub(crate) async fn add_node(&self, name: &str, cpu: &str) {
        let status = json!({"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}});
        self.send(Method::POST, "/api/v1/nodes", &json!({"metadata": {"name": name}, "status": status})).await;
        self.send(Method::PATCH, &format!("/api/v1/nodes/{name}"), &json!({"spec": {"taints": null}})).await;
    }

    pub(crate) async fn add_pod(&self, name: &str, scheduler: &str) {
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}});
        let spec = json!({"schedulerName": scheduler, "containers": [container]});
        self.send(Method::POST, PODS, &json!({"metadata": {"name": name}, "spec": spec})).await;
    }

    /// The node of a pod, once it has one.
    pub(crate) async fn node_of(&self, name: &str) -> String {
        let begin = Instant::now();
        loop {
            let pod = self.send(Method::GET, &format!("{PODS}/{name}"), &Value::Null).await;
            if let Some(node) = pod["spec"]["nodeName"].as_str() {
                return node.to_owned();
            }
            assert!(begin.elapsed() < MAX, "{name} gets no node: {pod}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn replica(&self, port: SocketAddr) -> Running {
        Running(self.program(CONFIG, port).stderr(Stdio::null()).spawn().unwrap())
    }

    /// The program with this configuration, with health and metrics on a port, and no other one.
    pub(crate) fn program(&self, config: &str, port: SocketAddr) -> Command {
        let mut program = self.program_on_both_ports(config, port);
        program.arg("--secure-port=0");
        program
    }

    /// The same once it is ready, with the file of its log. It shows everybody all that it has.
    pub(crate) async fn logged(&self, config: &str, port: SocketAddr) -> (Running, PathBuf) {
        let log = self.file("log", "");
        let stderr = Stdio::from(fs::File::create(&log).unwrap());
        let mut program = Running(self.program(config, port).arg("--insecure-debug").stderr(stderr).spawn().unwrap());
        is_ready(&mut program, port).await;
        (program, log)
    }

    /// The same with its usual secure port.
    pub(crate) fn program_on_both_ports(&self, config: &str, port: SocketAddr) -> Command {
        let config = self.file("config.yaml", &config.replace("KUBECONFIG", &self.kubeconfig().display().to_string()));
        let mut program = program();
        program.arg("--config").arg(config).args(["--address=127.0.0.1", "--bind-address=127.0.0.1"]);
        program.arg("--leader-elect-retry-period=200ms");
        program.arg(format!("--port={}", port.port()));
        program
    }
}

pub(crate) async fn is_ready(replica: &mut Running, port: SocketAddr) {
    let begin = Instant::now();
    while answer(port, "/readyz").await.is_none() {
        assert_eq!(replica.0.try_wait().unwrap(), None, "it has ended");
        assert!(begin.elapsed() < MAX, "it does not become ready");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_place_pods_by_their_arguments_and_another_replica_takes_over() {
    let server = Server::start().await;
    server.add_node("large", "8").await;
    server.add_node("small", "4").await;
    let (one, two) = (free(), free());
    let mut first = server.replica(one);
    is_ready(&mut first, one).await;
    server.add_pod("a", "packs").await;
    assert_eq!(server.node_of("a").await, "small");
    server.add_pod("b", "spreads").await;
    assert_eq!(server.node_of("b").await, "large");
    let metrics = answer(one, "/metrics").await.unwrap();
    assert!(metrics.contains("koord_scheduler_build_info{"), "{metrics}");

    let (mut second, log) = server.logged(CONFIG, two).await;
    let begin = Instant::now();
    while !fs::read_to_string(&log)
        .unwrap()
        .contains("waiting: another process leads lease=\"koord-scheduler\" leader=")
    {
        assert!(begin.elapsed() < MAX, "{}", fs::read_to_string(&log).unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(first.terminate(), Some(0), "and it gives its lease back");
    server.add_pod("c", "packs").await;
    assert_eq!(server.node_of("c").await, "small");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/koord-scheduler";
    assert_eq!(server.send(Method::GET, lease, &Value::Null).await["spec"]["leaseTransitions"], 1);
    assert_eq!(second.terminate(), Some(0));
}

/// Ends a leader with the usual retry period, and a Lease for three seconds, beside another replica. Gives how long a pod waits
/// for its node that is created then.
async fn wait_without_leader(end: fn(&mut Running)) -> Duration {
    const FLAGS: [&str; 3] =
        ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2500ms", "--leader-elect-retry-period=2s"];
    let server = Server::start().await;
    server.add_node("small", "4").await;
    let start = async |port: SocketAddr| {
        let mut program = server.program(CONFIG, port);
        program.args(FLAGS).stderr(Stdio::null());
        let mut replica = Running(program.spawn().unwrap());
        is_ready(&mut replica, port).await;
        replica
    };
    let mut first = start(free()).await;
    server.add_pod("a", "packs").await;
    assert_eq!(server.node_of("a").await, "small");
    let mut second = start(free()).await;
    end(&mut first);
    let ended = Instant::now();
    server.add_pod("b", "packs").await;
    assert_eq!(server.node_of("b").await, "small");
    let took = ended.elapsed();
    assert_eq!(second.terminate(), Some(0), "what it had to say is said");
    let events = server.send(Method::GET, "/apis/events.k8s.io/v1/namespaces/default/events", &Value::Null).await;
    let bound = events["items"].as_array().unwrap().iter().filter(|event| event["reason"] == "Scheduled").count();
    assert!(bound <= 2, "each pod is bound once: {events}");
    took
}

/// What is measured is printed: on a quiet machine it is less than a second after the end of the Lease, which is renewed every
/// two seconds.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_killed_is_followed_when_its_lease_is_over() {
    let took = wait_without_leader(|leader| leader.0.kill().unwrap()).await;
    println!("a pod has its node {took:?} after the leader was killed, whose Lease was for 3 s");
}

/// What is measured is printed: on a quiet machine it is less than a second.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stops_is_followed_at_once() {
    let took = wait_without_leader(|leader| assert_eq!(leader.terminate(), Some(0))).await;
    println!("a pod has its node {took:?} after the leader has stopped and released its Lease");
}
