//! An API server that does not serve every kind that plugins read.

use programs::free;
use std::{fs, time::Instant};

use crate::{program::Server, replicas::MAX};

/// LoadAwareScheduling reads NodeMetrics.
const CONFIG: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {resourceName: koord-scheduler, resourceNamespace: kube-system}
clientConnection: {kubeconfig: KUBECONFIG}
profiles:
- schedulerName: aware
  plugins:
    filter: {enabled: [{name: LoadAwareScheduling}]}
";

#[tokio::test(flavor = "multi_thread")]
async fn without_a_definition_the_plugin_that_needs_it_is_idle_and_the_program_is_ready() {
    let server = Server::start().await;
    server.add_node("only", "8").await;
    let port = free();
    let (mut program, log) = server.logged(CONFIG, port).await;
    server.add_pod("a", "aware").await;
    assert_eq!(server.node_of("a").await, "only");
    let (begin, idle) = (Instant::now(), "cannot be watched; plugin LoadAwareScheduling is idle until it can");
    let said = || fs::read_to_string(&log).unwrap();
    while !said().lines().any(|line| line.contains(idle) && line.contains("nodemetrics.slo.koordinator.sh")) {
        assert!(begin.elapsed() < MAX, "{}", said());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(program.terminate(), Some(0));
}
