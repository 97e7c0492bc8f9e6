//! Resource claims on servers that do not have `resource.k8s.io/v1`.

use super::*;

const NEWEST: &str = "/apis/resource.k8s.io/v1/";

/// A client of a server that serves the group in this version alone, and says so of all that it is asked for.
fn serving(server: &Server, version: &'static str) -> Client {
    rerouted(server, move |path| {
        let served = format!("/apis/resource.k8s.io/{version}/");
        let is_served = path.starts_with(&served) || !path.starts_with("/apis/resource.k8s.io/");
        is_served.then(|| path.replacen(&served, NEWEST, 1))
    })
}

#[tokio::test(start_paused = true)]
async fn claims_are_read_and_written_in_the_version_that_is_served() {
    for version in ["v1beta2", "v1beta1"] {
        let stage = Stage::new();
        stage.add_node("only", "4");
        let class = json!({"metadata": {"name": "gpu"}, "spec": {}});
        stage.send(Method::POST, &format!("{NEWEST}deviceclasses"), &class);
        let pool = json!({"name": "only", "generation": 1, "resourceSliceCount": 1});
        let spec = json!({"driver": "d", "nodeName": "only", "pool": pool, "devices": [{"name": "gpu-0"}]});
        stage.send(Method::POST, &format!("{NEWEST}resourceslices"), &json!({"metadata": {"name": "s"}, "spec": spec}));
        let requests = json!([{"name": "r", "exactly": {"deviceClassName": "gpu"}}]);
        let claims = format!("{NEWEST}namespaces/default/resourceclaims");
        let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}});
        stage.send(Method::POST, &claims, &claim);
        let container = json!({"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}});
        let of_pod = json!([{"name": "gpu", "resourceClaimName": "c"}]);
        let spec = json!({"schedulerName": "koord-scheduler", "containers": [container], "resourceClaims": of_pod});
        stage.send(Method::POST, PODS, &json!({"metadata": {"name": "a"}, "spec": spec}));
        let profile = default_profile("koord-scheduler").unwrap();
        let (manager, ..) = stage.program(serving(&stage.server, version), profile, "one");
        let stop = CancellationToken::new();
        let running = tokio::spawn(manager.run(stop.clone()));
        stage.pass(60).await;
        assert_eq!(stage.place("a"), "only", "{version}");
        let claim = stage.send(Method::GET, &format!("{claims}/c"), &Value::Null);
        assert_eq!(claim["status"]["allocation"]["devices"]["results"][0]["device"], "gpu-0", "{version}");
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}
