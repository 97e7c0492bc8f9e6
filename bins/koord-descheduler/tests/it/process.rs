//! The program as a process: its Lease and its secure port, which need sockets and real time.

use std::{
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use envtest::{
    auth::recorder::Recorder,
    cluster::{Cluster, Options},
    serve::Owner,
};
use http::{Method, Request};
use koord_descheduler::rbac_rules;
use koord_resource::{declare::Profile, document::custom_resource_definition, yaml};
use kube::{Client, Config};
use programs::{Running, alone, answer, free};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::rights::{NAMESPACE, USER, installed};

const MAX: Duration = Duration::from_mins(1);
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/koordinator-system/leases";

/// The program waits for another replica, leads when its Lease is gone, and asks the API server who reads its secure port.
pub(crate) fn leads_and_answers_at_its_secure_port(recorder: &Recorder) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let (client, kubeconfig, _stop) = serve(folder.path(), recorder).await;
        install(&client).await;
        let spec = json!({"holderIdentity": "another", "leaseDurationSeconds": 3600});
        send(&client, Method::POST, LEASES, &json!({"metadata": {"name": "koord-descheduler"}, "spec": spec})).await;
        let (port, secure) = (free(), free());
        let mut program = alone(env!("CARGO_BIN_EXE_koord-descheduler"));
        program.args(["--address=127.0.0.1", "--bind-address=127.0.0.1", "--leader-elect-retry-period=200ms"]);
        program.arg(format!("--kubeconfig={kubeconfig}")).arg(format!("--port={}", port.port()));
        program.arg(format!("--secure-port={}", secure.port())).stderr(Stdio::inherit());
        let _program = Running(program.spawn().unwrap());
        until("it is ready", async || answer(port, "/readyz").await.is_some()).await;
        let has_asked = |verb: &str| {
            recorder.asked_by(USER).iter().any(|asked| (&*asked.resource, &*asked.verb) == ("leases", verb))
        };
        until("it watches the Lease of the other", async || has_asked("watch")).await;
        send(&client, Method::DELETE, &format!("{LEASES}/koord-descheduler"), &json!({})).await;
        until("it leads", async || has_asked("create") && has_asked("update")).await;

        let mut config = Config::new(format!("https://{secure}").parse().unwrap());
        config.accept_invalid_certs = true;
        config.auth_info.token = Some("secret".to_owned().into());
        let metrics = Request::get("/metrics").body(Vec::new()).unwrap();
        let refused = Client::try_from(config).unwrap().request_text(metrics).await;
        let Err(kube::Error::Api(status)) = refused else { panic!("{refused:?}") };
        assert_eq!(status.message, format!("forbidden: User {USER:?} cannot get path \"/metrics\""));
    });
}

/// An API server with a user for the program; the path of the kubeconfig of that user.
async fn serve(folder: &Path, recorder: &Recorder) -> (Client, String, watch::Sender<bool>) {
    let tokens = folder.join("tokens");
    fs::write(&tokens, format!("secret,{USER},uid\n")).unwrap();
    let options = Options { token_file: Some(tokens), recorder: Some(recorder.clone()), ..Options::default() };
    let cluster = Cluster::bind(options).await.unwrap();
    let client = Client::new(cluster.server.router(), "default");
    let text = cluster.kubeconfig(Owner { name: "test".to_owned(), port: 0, data_dir: None }).to_text();
    let mut kubeconfig = yaml::parse(&text).unwrap();
    kubeconfig["users"][0]["user"] = json!({"token": "secret"});
    let path = folder.join("kubeconfig");
    fs::write(&path, kubeconfig.to_string()).unwrap();
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(cluster.run(stopped));
    (client, path.display().to_string(), stop)
}

/// The definitions, and the roles of an installation for the user.
async fn install(client: &Client) {
    for versions in koord_types::KINDS {
        let definition = custom_resource_definition(versions, Profile::Compatible);
        send(client, Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    }
    send(client, Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}})).await;
    for role in installed(&rbac_rules()) {
        let kind = role["kind"].as_str().unwrap();
        let place = role["metadata"]["namespace"].as_str();
        let path = place.map_or(RBAC.to_owned(), |namespace| format!("{RBAC}/namespaces/{namespace}"));
        send(client, Method::POST, &format!("{path}/{}s", kind.to_lowercase()), &role).await;
        let binding = json!({
            "metadata": {"name": USER},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role["metadata"]["name"]},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
        });
        send(client, Method::POST, &format!("{path}/{}bindings", kind.to_lowercase()), &binding).await;
    }
}

async fn send(client: &Client, method: Method, path: &str, body: &Value) -> Value {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let answered = client.request(request.body(body.to_string().into_bytes()).unwrap()).await;
    answered.unwrap_or_else(|error| panic!("{path}: {error}"))
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < MAX, "it does not come true that {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
