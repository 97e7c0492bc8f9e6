//! The program, and an API server for it.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use envtest::{
    cluster::{Cluster, Options},
    serve::Owner,
};
use http::Method;
use kube::Client;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;

/// The program with nothing around it: no kubeconfig, no home, no pod.
pub(crate) fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_koord-scheduler"));
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for name in inherited.filter(|name| name.to_string_lossy().starts_with("KUBE")) {
        program.env_remove(name);
    }
    program.env("HOME", "/nonexistent").stdin(Stdio::null());
    program
}

/// A program that does not outlive its test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Asks it to end, and waits for its exit code.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.0.wait().unwrap().code()
    }
}

/// A port of this machine that is free now.
pub(crate) fn free() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

/// The body of a GET; none where it is not answered with 200.
pub(crate) async fn answer(address: SocketAddr, path: &str) -> Option<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    answer.starts_with("HTTP/1.1 200").then_some(answer)
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
