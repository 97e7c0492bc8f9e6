//! A server in the test's process, over a socket as users reach it, that notes what is asked of it.

use std::path::PathBuf;

use envtest::{
    auth::recorder::Recorder,
    cluster::{self, Options},
    serve::Owner,
};
use koordctl::{Answer, Cli, cli::Profile, error_text::in_words, up::install};
use kube::Client;
use serde_json::{Value, json};
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
};

use crate::program::folder;

/// The user of the kubeconfig.
const USER: &str = "admin";

pub(crate) struct Cluster {
    runtime: Runtime,
    /// The way without a socket: what the test itself asks for is not noted.
    client: Client,
    pub(crate) kubeconfig: PathBuf,
    recorder: Recorder,
    stop: watch::Sender<bool>,
}

impl Cluster {
    /// A server without anything of ours.
    pub(crate) fn bare(name: &str) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let kubeconfig = folder(name).join("kubeconfig");
        let recorder = Recorder::default();
        let options = Options { recorder: Some(recorder.clone()), ..Options::default() };
        let (stop, stopped) = watch::channel(false);
        let client = runtime.block_on(async {
            let cluster = cluster::Cluster::bind(options).await.unwrap();
            cluster.kubeconfig(Owner::named(name)).write(&kubeconfig, true).unwrap();
            let client = Client::new(cluster.server.router(), "default");
            tokio::spawn(cluster.run(stopped));
            client
        });
        Self { runtime, client, kubeconfig, recorder, stop }
    }

    /// A server with our definitions, namespaces, priorities and configuration.
    pub(crate) fn installed(name: &str) -> Self {
        let cluster = Self::bare(name);
        cluster.runtime.block_on(async {
            install::definitions(&cluster.client, Profile::Compatible, |_| {}).await.unwrap();
            install::installation(&cluster.client).await.unwrap();
        });
        cluster
    }

    /// A token of a ServiceAccount in koordinator-system.
    pub(crate) fn token(&self, account: &str) -> String {
        let path = format!("/api/v1/namespaces/koordinator-system/serviceaccounts/{account}/token");
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
        let answer = self.request(http::Method::POST, &path, Some(&request)).unwrap();
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    /// A ServiceAccount in koordinator-system that may do nothing but what everybody may, and koordctl as its user.
    pub(crate) fn seen_by_a_stranger(&self, account: &str) -> Self {
        let object = json!({"metadata": {"name": account}});
        self.create("/api/v1/namespaces/koordinator-system/serviceaccounts", &object);
        self.seen_by(&self.token(account))
    }

    /// The same cluster, with koordctl as the user of a token.
    pub(crate) fn seen_by(&self, token: &str) -> Self {
        let mut config: Value = serde_saphyr::from_str(&std::fs::read_to_string(&self.kubeconfig).unwrap()).unwrap();
        config["users"][0]["user"]["token"] = token.into();
        let kubeconfig = self.kubeconfig.with_extension(token.len().to_string());
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (client, recorder, stop) = (self.client.clone(), self.recorder.clone(), self.stop.clone());
        Self { runtime, client, kubeconfig, recorder, stop }
    }

    /// Runs koordctl here.
    pub(crate) fn koordctl(&self, arguments: &[&str]) -> Result<Answer, String> {
        let kubeconfig = format!("--kubeconfig={}", self.kubeconfig.display());
        let (command, after) = match arguments.iter().position(|argument| *argument == "--") {
            Some(at) => arguments.split_at(at),
            None => (arguments, &[][..]),
        };
        let line = std::iter::once("koordctl").chain(command.iter().copied()).chain([kubeconfig.as_str()]);
        let cli = <Cli as clap::Parser>::try_parse_from(line.chain(after.iter().copied())).unwrap();
        self.runtime
            .block_on(koordctl::run_on(cli, koordctl::screen::Screen::ENDLESS))
            .map_err(|error| in_words(&error))
    }

    /// Creates an object; its status, where it says one, is written too.
    #[track_caller]
    pub(crate) fn create(&self, path: &str, object: &Value) {
        self.ask(http::Method::POST, path, Some(object));
        if let Some(status) = object.get("status") {
            let name = object["metadata"]["name"].as_str().unwrap();
            let status = json!({ "status": status });
            let _ = self.request(http::Method::PATCH, &format!("{path}/{name}/status"), Some(&status));
        }
    }

    /// Changes an object by a merge patch.
    #[track_caller]
    pub(crate) fn patch(&self, path: &str, patch: &Value) {
        self.ask(http::Method::PATCH, path, Some(patch));
    }

    #[track_caller]
    pub(crate) fn delete(&self, path: &str) {
        self.ask(http::Method::DELETE, path, None);
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        self.ask(http::Method::GET, path, None)
    }

    #[track_caller]
    fn ask(&self, method: http::Method, path: &str, body: Option<&Value>) -> Value {
        self.request(method, path, body).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn request(&self, method: http::Method, path: &str, body: Option<&Value>) -> kube::Result<Value> {
        let media = if method == http::Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header(http::header::CONTENT_TYPE, media).body(body).unwrap();
        self.runtime.block_on(self.client.request(request))
    }

    /// What koordctl asked for: verb and resource, each once.
    pub(crate) fn asked(&self) -> Vec<(String, String)> {
        self.recorder.asked_by(USER).into_iter().map(|asked| (asked.verb, asked.resource)).collect()
    }
}
