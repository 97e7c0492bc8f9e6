//! The servers themselves: that what the suite runs on is what it says it is.

use integration::{Kubectl, RealServer};

#[tokio::test]
async fn a_real_kube_apiserver_answers_kubectl() {
    let Some(assets) = RealServer::assets() else { return };
    let server = RealServer::start(&assets).await.unwrap();
    let cache = tempfile::tempdir().unwrap();
    let Some(kubectl) = Kubectl::find(&server.kubeconfig, cache.path()).unwrap() else { return };
    let printed = kubectl.run(&["get", "namespace", "default", "-o", "name"], None, &[]).unwrap();
    assert_eq!((printed.stdout.as_str(), printed.code), ("namespace/default\n", 0), "{}", printed.stderr);
    println!("ready after {:?}", server.start);
}
