//! A cluster in virtual time that gives the program an occasion for everything that it does to objects.

use std::{sync::Arc, time::Duration};

use envtest::{
    auth::{self, recorder::Recorder, tokens::Tokens},
    request::User,
};
use http::{HeaderValue, Method, Request, header};
use koord_configuration::Source;
use koord_descheduler::{Settings, run_with};
use koord_descheduler_assembly::Configuration;
use koord_program::Dependencies;
use koord_resource::{declare::Profile, document::custom_resource_definition};
use koord_runtime::random::Random;
use koord_testing::{Cluster, Result};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::util::MapRequest;

use crate::rights::USER;

const TOKEN: &str = "secret";
/// A job lives for this long, and is deleted five minutes later.
const TTL: Duration = Duration::from_mins(2);
const JOBS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs";
const RESERVATIONS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";

/// One profile migrates pods, the other evicts them, with these strategies. `namespaces` are those of every plugin that selects some.
pub(crate) fn configuration(namespaces: &Value, strategies: &[&str]) -> Configuration {
    let enabled =
        |names: &[&str]| json!({"enabled": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()});
    let only = |name: &str| json!({"disabled": [{"name": "*"}], "enabled": [{"name": name}]});
    let plugin = |name: &str, args: Value| json!({"name": name, "args": args});
    let level = |name: &str| json!({"name": name, "nodeSelector": {"matchLabels": {"price": name}}});
    let document = json!({
        "apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerConfiguration", "deschedulingInterval": "30s",
        "profiles": [
            {
                "name": "migrates",
                "plugins": {"deschedule": enabled(&["RemovePodsViolatingNodeTaints"]), "balance": enabled(&["LowNodeLoad"])},
                "pluginConfig": [
                    plugin("MigrationController", json!({
                        "namespaces": namespaces, "defaultJobTTL": "2m", "evictQPS": "100", "evictBurst": 10, "maxMigratingPerNode": 0,
                    })),
                    plugin("LowNodeLoad", json!({"evictableNamespaces": namespaces, "lowThresholds": {"cpu": 1}, "highThresholds": {"cpu": 99}})),
                    plugin("RemovePodsViolatingNodeTaints", json!({"namespaces": namespaces})),
                ],
            },
            {
                "name": "evicts",
                "plugins": {
                    "deschedule": enabled(&["RemoveFailedPods"]), "balance": enabled(strategies),
                    "evict": only("DefaultEvictor"), "filter": only("DefaultEvictor"),
                },
                "pluginConfig": [
                    plugin("RemoveFailedPods", json!({"namespaces": namespaces})),
                    plugin("ScaleDownBinPack", json!({"evictableNamespaces": namespaces})),
                    plugin("CustomPriority", json!({
                        "evictableNamespaces": namespaces, "autoCordon": true, "mode": "DrainNode",
                        "evictionOrder": [level("dear"), level("cheap")],
                    })),
                ],
            },
        ],
    });
    Configuration::of_document(&document, &Source::new("config", "")).unwrap()
}

pub(crate) struct Occasions {
    cluster: Cluster,
}

impl Occasions {
    /// A cluster in which the program may do what these roles say.
    pub(crate) async fn with_roles(roles: Vec<Value>) -> Result<Self> {
        let own = koord_types::KINDS.iter().map(|kind| custom_resource_definition(kind, Profile::Compatible));
        let kruise =
            [("CloneSet", "v1alpha1"), ("StatefulSet", "v1beta1")].map(|(kind, version)| of_kruise(kind, version));
        let manifests: Vec<Value> = own.chain(kruise).chain(roles).collect();
        let occasions =
            Self { cluster: Cluster::of(USER, &manifests).await?.with_patience(TTL + Duration::from_mins(6)) };
        for (name, price, taints) in [
            ("closed", "any", json!([{"key": "maintenance", "value": "true", "effect": "NoSchedule"}])),
            ("dear-1", "dear", json!([])),
            ("cheap-1", "cheap", json!([])),
        ] {
            occasions.add_node(name, price, &taints).await?;
        }
        let replicas = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": {
            "replicas": 4, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }});
        let owner = occasions.cluster.create(&replicas).await?;
        let evictable = json!({"descheduler.alpha.kubernetes.io/evict": "true"});
        let owned = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner["metadata"]["uid"], "controller": true}]);
        // A strategy migrates the first one; its Reservation gets no node, so that the job fails and goes.
        for (name, node) in [("tainted", "closed"), ("costly", "dear-1"), ("left", "cheap-1"), ("failed", "cheap-1")] {
            let mut metadata = json!({"name": name, "labels": {"app": "web"}, "ownerReferences": owned});
            if ["tainted", "left"].contains(&name) {
                // The limits of their workload, of which the two others go, do not hold for them.
                metadata["annotations"] = evictable.clone();
            }
            occasions.add_pod("default", &metadata, node, if name == "failed" { "Failed" } else { "Running" }).await?;
        }
        for policy in ["Eviction", "Delete", "SoftEviction"] {
            let name = policy.to_lowercase();
            let metadata = json!({"name": name, "annotations": evictable});
            occasions.add_pod("default", &metadata, "cheap-1", "Running").await?;
            let labels = json!({"koordinator.sh/evict-policy": policy});
            let spec = json!({"mode": "EvictDirectly", "ttl": "2m", "podRef": {"namespace": "default", "name": name}});
            occasions.add_job(&json!({"name": name, "labels": labels}), &spec).await?;
        }
        // Reservations of users: one without an order, and one that does not exist.
        let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
        let spec = json!({"template": template, "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}]});
        occasions
            .create("scheduling.koordinator.sh/v1alpha1", "Reservation", &json!({"name": "of-a-user"}), &spec)
            .await?;
        for name in ["of-a-user", "missing"] {
            let spec = json!({
                "mode": "ReservationFirst", "ttl": "2m", "podRef": {"namespace": "default", "name": "left"},
                "reservationOptions": {"reservationRef": {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "name": name}},
            });
            occasions.add_job(&json!({"name": name}), &spec).await?;
        }
        Ok(occasions)
    }

    /// Pods that would be evicted if their namespace were selected, and a job for one of them.
    pub(crate) async fn add_namespace_with_pods(&self, namespace: &str) -> Result<()> {
        self.cluster.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).await?;
        self.add_pod(namespace, &json!({"name": "tainted"}), "closed", "Running").await?;
        self.add_pod(namespace, &json!({"name": "failed"}), "cheap-1", "Failed").await?;
        let spec = json!({"mode": "EvictDirectly", "ttl": "2m", "podRef": {"namespace": namespace, "name": "tainted"}});
        self.add_job(&json!({"name": namespace}), &spec).await
    }

    /// Lets the program work until all jobs have ended, and then until they are gone.
    pub(crate) async fn play(&self, recorder: &Recorder, configuration: Configuration) -> Result<()> {
        let clock = self.cluster.clock();
        let dependencies = Dependencies {
            client: self.client(recorder),
            api_host: "cluster".to_owned(),
            clock: Arc::clone(clock),
            random: Random::seeded(1),
        };
        let stop = CancellationToken::new();
        let settings = Settings::within(configuration)?;
        let running = tokio::spawn(run_with(settings, dependencies, Some(Arc::clone(clock)), stop.clone()));
        self.cluster.pass(Duration::from_mins(1)).await;
        // Nothing is to be moved there any more.
        self.patch("/api/v1/nodes/closed", &json!({"spec": {"taints": []}})).await?;
        self.cluster.pass(TTL).await;
        let (jobs, reservations) = (self.list(JOBS).await?, self.list(RESERVATIONS).await?);
        assert!(jobs.iter().any(|job| job["spec"]["podRef"]["name"] == "tainted"), "{jobs:#?}");
        let open: Vec<String> = jobs
            .iter()
            .filter(|job| !["Succeeded", "Failed"].iter().any(|phase| job["status"]["phase"] == *phase))
            .map(|job| format!("{} of {}: {}", job["metadata"]["name"], job["spec"]["podRef"]["name"], job["status"]))
            .collect();
        assert!(open.is_empty(), "{open:#?}");
        assert_eq!(reservations.len(), 1, "only that of the user is left: {reservations:#?}");
        let api = self.cluster.api_of("scheduling.koordinator.sh/v1alpha1", "PodMigrationJob").await?;
        for job in &jobs {
            self.cluster.until_gone(&api, job["metadata"]["name"].as_str().unwrap()).await?;
        }
        stop.cancel();
        running.await?
    }

    /// How the program reaches the server.
    fn client(&self, recorder: &Recorder) -> Client {
        let mut tokens = Tokens::new(TOKEN.as_bytes());
        tokens.add(TOKEN, User { name: USER.to_owned(), ..User::default() });
        let router = auth::guarded(self.cluster.server(), Arc::new(tokens), Some(recorder.clone()));
        let with_token = |mut request: Request<Body>| {
            request.headers_mut().insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer secret"));
            request
        };
        Client::new(MapRequest::new(router, with_token), "default")
    }

    async fn add_node(&self, name: &str, price: &str, taints: &Value) -> Result<()> {
        let metadata = json!({"name": name, "labels": {"kubernetes.io/hostname": name, "price": price}});
        self.create("v1", "Node", &metadata, &json!({})).await?;
        self.patch(&format!("/api/v1/nodes/{name}"), &json!({"spec": {"taints": taints}})).await?;
        let amounts = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
        let ready = json!([{"type": "Ready", "status": "True", "reason": "Kubelet"}]);
        let status = json!({"capacity": amounts, "allocatable": amounts, "conditions": ready});
        self.patch(&format!("/api/v1/nodes/{name}/status"), &json!({"status": status})).await
    }

    async fn add_pod(&self, namespace: &str, metadata: &Value, node: &str, phase: &str) -> Result<()> {
        let mut metadata = metadata.clone();
        metadata["namespace"] = json!(namespace);
        let spec = json!({
            "nodeName": node, "schedulerName": "koord-scheduler", "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        });
        self.create("v1", "Pod", &metadata, &spec).await?;
        let status = json!({"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]});
        let name = metadata["name"].as_str().unwrap();
        self.patch(&format!("/api/v1/namespaces/{namespace}/pods/{name}/status"), &json!({"status": status})).await
    }

    async fn add_job(&self, metadata: &Value, spec: &Value) -> Result<()> {
        self.create("scheduling.koordinator.sh/v1alpha1", "PodMigrationJob", metadata, spec).await
    }

    async fn create(&self, api_version: &str, kind: &str, metadata: &Value, spec: &Value) -> Result<()> {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
        self.cluster.create(&object).await.map(drop)
    }

    async fn patch(&self, path: &str, patch: &Value) -> Result<()> {
        let request = Request::builder().method(Method::PATCH).uri(path);
        let request = request.header(header::CONTENT_TYPE, "application/merge-patch+json");
        self.cluster.client().request::<Value>(request.body(patch.to_string().into_bytes())?).await?;
        Ok(())
    }

    async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let list: Value = self.cluster.client().request(Request::get(path).body(Vec::new())?).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }
}

/// A definition of Kruise, as far as watches need one.
fn of_kruise(kind: &str, version: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.apps.kruise.io")},
        "spec": {
            "group": "apps.kruise.io", "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": version, "served": true, "storage": true, "schema": schema}],
        },
    })
}
