//! The whole program on the embedded API server, in virtual time: what it does when its configuration changes, and where it gets usage from.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod configuration;
mod usage;

use std::{fs, sync::Arc, time::Duration};

use anyhow::Result;
use envtest::{cluster::standard_server, environment::SeededEnvironment, shell::Server};
use http::Method;
use jiff::Timestamp;
use koord_descheduler::{ConfigurationFile, Options, Settings, configuration_with_text, run_with};
use koord_program::Dependencies;
use koord_resource::{declare::Profile, document::custom_resource_definition};
use koord_runtime::{
    clock::{ScaledClock, SharedClock},
    random::Random,
};
use koord_types::KINDS;
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const START: Timestamp = Timestamp::constant(1_790_000_000, 0);
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PODS: &str = "/api/v1/namespaces/default/pods";
const HEAD: &str = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerConfiguration\ndeschedulingInterval: 10s\n";
/// Evicts by the eviction API, all pods that have an owner.
const EVICTS: &str = "evict: {disabled: [{name: '*'}], enabled: [{name: DefaultEvictor}]}, filter: {disabled: [{name: '*'}], enabled: [{name: DefaultEvictor}]}";

/// A cluster with two nodes, and the program with its configuration file.
struct Stage {
    server: Server,
    clock: SharedClock,
    folder: TempDir,
    running: Option<JoinHandle<Result<()>>>,
}

impl Stage {
    async fn new() -> Self {
        let clock = ScaledClock::shared(START, 1.0);
        let server = standard_server(Box::new(SeededEnvironment::new(1, START))).unwrap();
        let stage = Self { server, clock, folder: tempfile::tempdir().unwrap(), running: None };
        for kind in KINDS {
            stage.create(DEFINITIONS, &custom_resource_definition(kind, Profile::Compatible)).await;
        }
        for name in ["default", "koordinator-system"] {
            stage.send(Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}})).await;
        }
        for name in ["n1", "n2"] {
            let status = json!({"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"}});
            stage.create("/api/v1/nodes", &json!({"metadata": {"name": name}, "status": status})).await;
            let path = format!("/api/v1/nodes/{name}");
            stage.send(Method::PATCH, &path, &json!({"spec": {"taints": null}})).await;
        }
        stage
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.server.send(method, path, body).await
    }

    async fn create(&self, path: &str, body: &Value) -> Value {
        let (code, answer) = self.send(Method::POST, path, body).await;
        assert_eq!(code, 201, "{path}: {answer}");
        answer
    }

    /// A pod of a ReplicaSet on a node.
    async fn pod(&self, name: &str, node: &str, phase: &str) {
        let owner =
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": true});
        let containers = json!([{"name": "c", "image": "i"}]);
        let spec = json!({"nodeName": node, "containers": containers, "terminationGracePeriodSeconds": 0});
        self.create(PODS, &json!({"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec})).await;
        self.send(Method::PATCH, &format!("{PODS}/{name}/status"), &json!({"status": {"phase": phase}})).await;
    }

    /// The names of the pods that are there and not being deleted.
    async fn pods(&self) -> Vec<String> {
        let (_, list) = self.send(Method::GET, PODS, &Value::Null).await;
        let pods = list["items"].as_array().unwrap().iter();
        let stays = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        stays.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Writes the configuration file.
    fn configure(&self, text: &str) {
        fs::write(self.folder.path().join("config.yaml"), format!("{HEAD}{text}")).unwrap();
    }

    fn start(&mut self) {
        let file = self.folder.path().join("config.yaml");
        let arguments = ["koord-descheduler".to_owned(), format!("--config={}", file.display())];
        let options = Options::from_arguments(arguments).unwrap();
        let (configuration, text) = configuration_with_text(&options).unwrap();
        let built = koord_descheduler_assembly::build(&configuration.values).unwrap();
        let file = ConfigurationFile::of(&options, text, &configuration, &built);
        let settings = Settings { file, ..Settings::within(configuration).unwrap() };
        let dependencies = Dependencies {
            client: Client::new(self.server.router(), "default"),
            api_host: "cluster".to_owned(),
            clock: Arc::clone(&self.clock),
            random: Random::seeded(1),
        };
        let run = run_with(settings, dependencies, Some(Arc::clone(&self.clock)), CancellationToken::new());
        self.running = Some(tokio::spawn(run));
    }

    async fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
        assert!(self.running.as_ref().is_none_or(|running| !running.is_finished()), "the program has ended");
    }

    /// The last event of the descheduler about itself with this reason.
    async fn event(&self, reason: &str) -> Option<String> {
        let (_, list) =
            self.send(Method::GET, "/apis/events.k8s.io/v1/namespaces/koordinator-system/events", &Value::Null).await;
        let events = list["items"].as_array().unwrap().iter().rev();
        let mut about = events.filter(|event| {
            event["reason"] == reason
                && event["regarding"]["kind"] == "Lease"
                && event["regarding"]["name"] == "koord-descheduler"
        });
        about.next().map(|event| event["note"].as_str().unwrap().to_owned())
    }
}
