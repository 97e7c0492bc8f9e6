//! koord-manager beside an embedded API server whose webhook configurations call it.

use std::{
    fs,
    net::SocketAddr,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use envtest::{
    cluster::{Cluster, Options},
    serve::Owner,
};
use koordctl::{cli::Profile, up::install};
use kube::Client;
use programs::{Running, answer, free};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

const MAX: Duration = Duration::from_mins(1);

/// Both, until this is dropped.
pub(crate) struct Installation {
    /// A client of the API server.
    pub(crate) client: Client,
    /// Where the manager serves its webhooks.
    pub(crate) webhooks: SocketAddr,
    /// The authority of its certificate, in PEM.
    pub(crate) authority: String,
    manager: Running,
    _stop: watch::Sender<bool>,
    _folder: TempDir,
}

impl Installation {
    /// Starts both, and waits until a review is answered.
    pub(crate) async fn start() -> Self {
        let cluster = Cluster::bind(Options::default()).await.unwrap();
        let client = Client::new(cluster.server.router(), "default");
        install::definitions(&client, Profile::Compatible, |_| ()).await.unwrap();
        install::installation(&client).await.unwrap();
        install::webhooks(&client).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let owner = Owner { name: "test".to_owned(), port: 0, data_dir: None };
        fs::write(&kubeconfig, cluster.kubeconfig(owner).to_text()).unwrap();
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(cluster.run(stopped));

        let (webhooks, health) = (free(), free());
        let manager = Command::new(env!("CARGO_BIN_EXE_koord-manager"))
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(["--metrics-addr=0", "--enable-leader-election=false"])
            .arg(format!("--health-probe-addr={health}"))
            .env("WEBHOOK_HOST", "127.0.0.1")
            .env("WEBHOOK_PORT", webhooks.port().to_string())
            .env("WEBHOOK_CERT_DIR", folder.path().join("certificates"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let manager = Running(manager);
        let mut running = Self { client, webhooks, authority: String::new(), manager, _stop: stop, _folder: folder };
        let deadline = Instant::now() + MAX;
        while answer(health, "/readyz").await.is_none() {
            assert!(running.manager.0.try_wait().unwrap().is_none(), "koord-manager has ended");
            assert!(Instant::now() < deadline, "koord-manager does not become ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let path = format!(
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{}",
            koord_manager_assembly::webhook_defaults().validating
        );
        let configuration = running.request(http::Method::GET, &path, None).await.unwrap();
        let bundle = configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap();
        running.authority = String::from_utf8(BASE64.decode(bundle).unwrap()).unwrap();
        running
    }

    async fn request(&self, method: http::Method, path: &str, body: Option<&Value>) -> kube::Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
        self.client.request(request.body(body).unwrap()).await
    }

    /// Has the API server ask for a review, which the manager must refuse. Gives how long that took.
    pub(crate) async fn review(&self) -> Duration {
        let quota = json!({
            "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
            "metadata": {"name": "wrong", "namespace": "default"},
            "spec": {"min": {"cpu": "2"}, "max": {"cpu": "1"}},
        });
        let begin = Instant::now();
        let path = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas";
        let refused = self.request(http::Method::POST, path, Some(&quota)).await.unwrap_err().to_string();
        assert!(refused.contains("min") && refused.contains("max"), "{refused}");
        begin.elapsed()
    }

    /// Bytes of memory that the manager has.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.manager.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
    }
}
