//! koord-manager as a cluster's installation describes it: the flags, environment and ServiceAccount of its Deployment, and no other power.
//!
//! Nobody runs containers here, so the test stands in for the kubelet: it reads the Deployment from the API server, resolves what the kubelet
//! resolves, and starts the same library that the program is made of.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use koord_manager::run_with;
use koord_manager_assembly::{Options, webhook_defaults};
use koord_program::Dependencies;
use koord_webhook_server::{CertWriter, Environment};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// A running koord-manager with the rights of its ServiceAccount.
pub struct Installed {
    /// What `kubectl auth` calls it.
    pub user: String,
    /// Where it serves its metrics.
    pub metrics: SocketAddr,
    stop: CancellationToken,
    running: JoinHandle<Result<()>>,
    health: SocketAddr,
    probes: Vec<String>,
    /// Stands for the volume with the certificates.
    _certificates: TempDir,
}

/// Where API servers find the webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Through the installation's Service, which leads to this port of 127.0.0.1.
    Service(u16),
    /// At 127.0.0.1 itself: a kube-apiserver without a cluster network resolves no Service.
    Loopback,
}

/// What a Deployment of koord-manager says about its process.
#[derive(Clone, Debug)]
pub struct Process {
    namespace: String,
    account: String,
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
    /// The paths that the kubelet asks.
    probes: Vec<String>,
}

impl Process {
    /// Reads the Deployment.
    pub async fn described(client: &Client, namespace: &str, deployment: &str) -> Result<Self> {
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{deployment}");
        let found: Value = client.request(http::Request::get(&path).body(Vec::new())?).await.context(path)?;
        let pod = &found["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let texts = |field: &Value| -> Vec<String> {
            field.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        ensure!(texts(&container["command"]) == ["/koord-manager"], "the command is {}", container["command"]);
        let arguments = [vec!["koord-manager".to_owned()], texts(&container["args"])].concat();
        let mut variables = BTreeMap::new();
        for variable in container["env"].as_array().into_iter().flatten() {
            let name = variable["name"].as_str().context("a variable without a name")?;
            let value = match (&variable["value"], variable["valueFrom"]["fieldRef"]["fieldPath"].as_str()) {
                (Value::String(value), None) => value.clone(),
                (Value::Null, Some("metadata.namespace")) => namespace.to_owned(),
                _ => bail!("the kubelet of this test cannot resolve {variable}"),
            };
            variables.insert(name.to_owned(), value);
        }
        // Where the image cannot be written, there must be a volume for what the program writes.
        if container["securityContext"]["readOnlyRootFilesystem"] == true {
            let mounts = container["volumeMounts"].as_array().into_iter().flatten();
            let mut mounts = mounts.filter_map(|mount| mount["mountPath"].as_str());
            let folder = variables.get("WEBHOOK_CERT_DIR").context("certificates would go to a folder of the image")?;
            ensure!(mounts.any(|mount| folder.starts_with(mount)), "{folder} cannot be written");
        }
        let health = container["ports"].as_array().into_iter().flatten().find(|port| port["name"] == "health");
        let health = health.context("no port named health")?;
        let mut probes = Vec::new();
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let ask = &container[probe]["httpGet"];
            if let Some(path) = ask["path"].as_str() {
                let port = &ask["port"];
                ensure!(*port == "health" || *port == health["containerPort"], "{probe} asks port {port}");
                probes.push(format!("/{}", path.trim_start_matches('/')));
            }
        }
        let account = pod["serviceAccountName"].as_str().context("a Deployment without a ServiceAccount")?.to_owned();
        Ok(Self { namespace: namespace.to_owned(), account, arguments, variables, probes })
    }

    /// Switches further feature gates on.
    #[must_use]
    pub fn with_gates(mut self, gates: &str) -> Self {
        self.arguments.push(format!("--feature-gates={gates}"));
        self
    }

    /// Sends traces to a collector.
    #[must_use]
    pub fn with_traces(mut self, collector: SocketAddr) -> Self {
        self.arguments.push(format!("--otlp-endpoint=http://{collector}"));
        self
    }

    /// What the variables say, on this machine: the ports of a pod are its own, here one machine has one of each.
    fn environment(&self, reach: Reach, certificates: &Path) -> Result<Environment> {
        let described = Environment::of(webhook_defaults(), |name| self.variables.get(name).cloned())?;
        let cert_dir = Some(certificates.to_owned());
        let described = Environment { second_port: None, listen: Ipv4Addr::LOCALHOST.into(), cert_dir, ..described };
        Ok(match reach {
            Reach::Service(port) => Environment { port, ..described },
            Reach::Loopback => {
                let host = Some(Ipv4Addr::LOCALHOST.to_string());
                Environment { port: 0, host, cert_writer: CertWriter::Secret, ..described }
            }
        })
    }

    /// Starts it with a token of its ServiceAccount.
    pub async fn start(&self, admin: &Client, server: &Config, reach: Reach) -> Result<Installed> {
        let (metrics, health) = (programs::free(), programs::free());
        let options = Options::from_arguments(self.arguments.iter().map(|argument| match argument.split_once('=') {
            Some((flag @ "--metrics-addr", _)) => format!("{flag}={metrics}"),
            Some((flag @ "--health-probe-addr", _)) => format!("{flag}={health}"),
            _ => argument.clone(),
        }))?;
        let config = config_of(admin, server, &self.namespace, &self.account).await?;
        let certificates = TempDir::new()?;
        let dependencies = Dependencies::connected_by(config)?;
        let environment = self.environment(reach, certificates.path())?;
        let stop = CancellationToken::new();
        let running = tokio::spawn(run_with(options.check()?, dependencies, environment, stop.clone()));
        let user = format!("system:serviceaccount:{}:{}", self.namespace, self.account);
        let probes = self.probes.clone();
        Ok(Installed { user, metrics, stop, running, health, probes, _certificates: certificates })
    }
}

impl Installed {
    /// Waits until something is so, while it runs.
    pub async fn until<F: Future<Output = Result<bool>>>(&mut self, what: &str, holds: impl Fn() -> F) -> Result<()> {
        const MAX: Duration = Duration::from_secs(40);
        let begin = Instant::now();
        loop {
            if self.running.is_finished() {
                (&mut self.running).await??;
                bail!("koord-manager has ended while it was waited for: {what}");
            }
            if holds().await? {
                return Ok(());
            }
            ensure!(begin.elapsed() < MAX, "it does not come true that {what}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the kubelet finds it well: every probe answers 200.
    pub async fn until_ready(&mut self) -> Result<()> {
        let (health, probes) = (self.health, self.probes.clone());
        ensure!(!probes.is_empty(), "the kubelet would never ask how it is");
        let is_well = || async {
            for path in &probes {
                if !answers(health, path).await.unwrap_or(false) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        self.until("every probe succeeds", is_well).await
    }

    /// Ends it as the kubelet does, and waits.
    pub async fn stop(self) -> Result<()> {
        self.stop.cancel();
        self.running.await?
    }
}

/// How a ServiceAccount connects to a server, with a token that `admin` asks for, as the kubelet does.
pub async fn config_of(admin: &Client, server: &Config, namespace: &str, account: &str) -> Result<Config> {
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let ask = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let request = http::Request::post(&path).header("content-type", "application/json");
    let answer: Value = admin.request(request.body(ask.to_string().into_bytes())?).await.context(path)?;
    let token = answer["status"]["token"].as_str().context("no token")?;
    let mut config = Config::new(server.cluster_url.clone());
    config.root_cert.clone_from(&server.root_cert);
    config.auth_info.token = Some(token.to_owned().into());
    Ok(config)
}

/// Whether a GET is answered with 200.
async fn answers(address: SocketAddr, path: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer.starts_with(b"HTTP/1.1 200"))
}

/// A folder of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}
