//! A real kube-apiserver with its etcd, started from the folder that `KUBEBUILDER_ASSETS` names (see tests/kube-assets).

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use tempfile::TempDir;

/// A running kube-apiserver and its etcd; both end when this is dropped.
#[derive(Debug)]
pub struct RealServer {
    /// Address of the API server.
    pub url: String,
    /// Its certificate authority, PEM.
    pub ca: String,
    /// A kubeconfig of an administrator (user `admin`, uid `uid`, group `system:masters`).
    pub kubeconfig: PathBuf,
    /// The process of kube-apiserver.
    pub apiserver_pid: u32,
    /// The process of etcd.
    pub etcd_pid: u32,
    /// From the start of etcd to the first `ok` of /readyz.
    pub start: Duration,
    programs: [Program; 2],
    folder: TempDir,
}

/// A program that does not outlive its owner.
#[derive(Debug)]
struct Program {
    pid: u32,
    keeper: Child,
}

impl Program {
    /// Whether it still runs.
    fn runs(&self) -> bool {
        // A zombie counts as running; its log is read then.
        Path::new("/proc").join(self.pid.to_string()).exists()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The bearer token of the administrator.
pub const ADMIN_TOKEN: &str = "integration-admin";
/// The bearer token of the user `dev` of group `devs`, who may do nothing.
pub const DEV_TOKEN: &str = "integration-dev";

/// How long the programs may take until they answer.
const START_MAX: Duration = Duration::from_mins(2);

impl RealServer {
    /// The folder of the programs, when there is one.
    pub fn assets() -> Option<PathBuf> {
        std::env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty()).map(PathBuf::from)
    }

    /// Starts etcd and kube-apiserver on free ports of 127.0.0.1 and waits until the server is ready.
    pub async fn start(assets: &Path) -> Result<Self> {
        let begin = Instant::now();
        for program in ["etcd", "kube-apiserver"] {
            let file = assets.join(program);
            ensure!(
                file.is_file(),
                "KUBEBUILDER_ASSETS has no {program}: {} does not exist; make it with tests/kube-assets/build",
                file.display()
            );
        }
        let folder = TempDir::new()?;
        let at = |name: &str| folder.path().join(name);
        let [etcd_port, peer_port, port] = [(); 3].map(|()| programs::free().port());
        let etcd_url = format!("http://127.0.0.1:{etcd_port}");
        let peer_url = format!("http://127.0.0.1:{peer_port}");
        let etcd = spawn(
            &assets.join("etcd"),
            &at("etcd.log"),
            &[
                format!("--data-dir={}", at("etcd").display()),
                format!("--listen-client-urls={etcd_url}"),
                format!("--advertise-client-urls={etcd_url}"),
                format!("--listen-peer-urls={peer_url}"),
                format!("--initial-advertise-peer-urls={peer_url}"),
                format!("--initial-cluster=default={peer_url}"),
                "--unsafe-no-fsync".to_owned(),
                "--log-level=error".to_owned(),
            ],
        )?;
        let ca = certificates(folder.path())?;
        fs::write(at("tokens.csv"), format!("{ADMIN_TOKEN},admin,uid,system:masters\n{DEV_TOKEN},dev,,devs\n"))?;
        let apiserver = spawn(
            &assets.join("kube-apiserver"),
            &at("apiserver.log"),
            &[
                format!("--etcd-servers={etcd_url}"),
                "--bind-address=127.0.0.1".to_owned(),
                "--advertise-address=127.0.0.1".to_owned(),
                format!("--secure-port={port}"),
                format!("--cert-dir={}", at("certificates").display()),
                format!("--tls-cert-file={}", at("tls.crt").display()),
                format!("--tls-private-key-file={}", at("tls.key").display()),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                format!("--service-account-key-file={}", at("account.pub").display()),
                format!("--service-account-signing-key-file={}", at("account.key").display()),
                "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
                "--authorization-mode=RBAC".to_owned(),
                // as in every cluster whose nodes have agents
                "--allow-privileged=true".to_owned(),
                format!("--token-auth-file={}", at("tokens.csv").display()),
                // no controller manager makes the accounts that this plugin wants
                "--disable-admission-plugins=ServiceAccount".to_owned(),
            ],
        )?;
        let url = format!("https://127.0.0.1:{port}");
        let kubeconfig = at("kubeconfig");
        fs::write(&kubeconfig, kubeconfig_text(&url, &at("ca.crt")))?;
        let mut server = Self {
            url,
            ca,
            kubeconfig,
            apiserver_pid: apiserver.pid,
            etcd_pid: etcd.pid,
            start: Duration::ZERO,
            programs: [apiserver, etcd],
            folder,
        };
        server.wait_until_ready(begin).await?;
        server.start = begin.elapsed();
        Ok(server)
    }

    async fn wait_until_ready(&self, begin: Instant) -> Result<()> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = kube::Client::try_from(config)?;
        loop {
            let answer = client.request_text(http::Request::get("/readyz").body(Vec::new())?).await;
            if answer.as_deref().is_ok_and(|text| text == "ok") {
                return Ok(());
            }
            for (program, log) in self.programs.iter().zip(["apiserver.log", "etcd.log"]) {
                if !program.runs() {
                    bail!("the program of {log} has ended:\n{}", self.end_of(log));
                }
            }
            if begin.elapsed() > START_MAX {
                bail!("kube-apiserver is not ready after {START_MAX:?}: {answer:?}\n{}", self.end_of("apiserver.log"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn end_of(&self, log: &str) -> String {
        let text = fs::read_to_string(self.folder.path().join(log)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

/// Starts a program that ends with this process, however this process ends: a shell waits for the end of its standard input, which is the other
/// end of a pipe that only this process holds, and ends the program then.
fn spawn(program: &Path, log: &Path, arguments: &[String]) -> Result<Program> {
    const KEEPER: &str = r#"log=$1; shift; "$@" >"$log" 2>&1 </dev/null & child=$!; echo "$child"; cat >/dev/null; kill -9 "$child"; wait"#;
    let mut keeper = Command::new("sh")
        .args(["-c", KEEPER, "sh"])
        .arg(log)
        .arg(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{} does not start", program.display()))?;
    let mut pid = String::new();
    let output = keeper.stdout.take().context("the shell has no output")?;
    BufReader::new(output).read_line(&mut pid)?;
    Ok(Program { pid: pid.trim().parse()?, keeper })
}

/// Writes ca.crt, tls.crt, tls.key, account.key and account.pub into the folder; gives the CA's certificate.
fn certificates(folder: &Path) -> Result<String> {
    let mut authority = CertificateParams::new(Vec::default())?;
    authority.distinguished_name.push(DnType::CommonName, "integration");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let ca = authority.self_signed(&key)?.pem();
    let issuer = Issuer::new(authority, key);

    let mut leaf = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    leaf.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let leaf_key = KeyPair::generate()?;
    fs::write(folder.join("ca.crt"), &ca)?;
    fs::write(folder.join("tls.crt"), leaf.signed_by(&leaf_key, &issuer)?.pem())?;
    fs::write(folder.join("tls.key"), leaf_key.serialize_pem())?;
    let account = KeyPair::generate()?;
    fs::write(folder.join("account.key"), account.serialize_pem())?;
    fs::write(folder.join("account.pub"), account.public_key_pem())?;
    Ok(ca)
}

fn kubeconfig_text(url: &str, ca: &Path) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: integration\n\
         clusters:\n- name: integration\n  cluster:\n    server: {url}\n    certificate-authority: {}\n\
         users:\n- name: admin\n  user:\n    token: {ADMIN_TOKEN}\n\
         contexts:\n- name: integration\n  context:\n    cluster: integration\n    user: admin\n",
        ca.display()
    )
}
