//! The program, and an API server for it.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use envtest::{
    cluster::{Cluster, Options},
    serve::Owner,
};
use http::Method;
use kube::{Client, Config};
use programs::alone;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;

/// The program with nothing around it: no kubeconfig, no home, no pod.
pub(crate) fn program() -> Command {
    alone(env!("CARGO_BIN_EXE_koord-scheduler"))
}

/// The code and the body of a GET at the secure port; of a refusal, its message.
pub(crate) async fn secure_answer(address: SocketAddr, token: Option<&str>, path: &str) -> (u16, String) {
    let mut config = secure_config(address);
    config.auth_info.token = token.map(|token| token.to_owned().into());
    answer_to(config, http::Request::get(path).body(Vec::new()).unwrap()).await
}

/// How clients reach the secure port, whatever its certificate.
pub(crate) fn secure_config(address: SocketAddr) -> Config {
    let mut config = Config::new(format!("https://{address}").parse().unwrap());
    config.accept_invalid_certs = true;
    config
}

/// The code and the body of an answer; of a refusal, its message.
pub(crate) async fn answer_to(config: Config, request: http::Request<Vec<u8>>) -> (u16, String) {
    let path = request.uri().path().to_owned();
    let client = Client::try_from(config).unwrap();
    match client.request_text(request).await {
        Ok(body) => (200, body),
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        Err(error) => panic!("{path}: {error}"),
    }
}

/// An API server with a kubeconfig, until it is dropped.
pub(crate) struct Server {
    client: Client,
    folder: TempDir,
    _stop: watch::Sender<bool>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    pub(crate) async fn start_with(options: Options) -> Self {
        let cluster = Cluster::bind(options).await.unwrap();
        let client = Client::new(cluster.server.router(), "default");
        let folder = tempfile::tempdir().unwrap();
        let owner = Owner { name: "test".to_owned(), port: 0, data_dir: None };
        fs::write(folder.path().join("kubeconfig"), cluster.kubeconfig(owner).to_text()).unwrap();
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(cluster.run(stopped));
        Self { client, folder, _stop: stop }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// A file of this content beside the kubeconfig.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        write(self.folder.path(), name, text)
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> Value {
        let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", content_type);
        self.client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
    }
}

/// A file of this content.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}
