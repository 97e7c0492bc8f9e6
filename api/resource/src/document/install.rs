//! The whole installation of an operator, out of one declared value.

mod access;
mod configuration;
mod network;
mod pods;
#[cfg(test)]
mod tests;
mod webhooks;

use std::{collections::BTreeMap, iter};

use serde_json::{Map, Value, json};

pub use configuration::ConfigurationFile;
pub use pods::{NONROOT, restricted_container, restricted_pod};
pub use webhooks::Webhooks;

use super::{Declared, Descriptions, converted_resource_definition, crd::sorted, custom_resource_definition};
use crate::{controller::ControllerSpec, declare::Profile, rbac::RbacRule};

/// Labels by their keys.
pub type Labels = BTreeMap<String, String>;

/// What an operator's installation consists of, declared.
///
/// [`Installation::new`] fills in everything that follows from name, namespace and image. Each part is a field of its own, which can be
/// changed or left out:
///
/// ```
/// use koord_resource::document::{Installation, install};
/// use koord_resource::serde_json::json;
///
/// let waiter = Installation {
///     replicas: 1,
///     disruption_budget: None,
///     arguments: vec!["--tables=12".to_owned()],
///     ..Installation::new("waiter", "restaurant", "registry.example.com/waiter:v1")
/// };
/// let objects = install(&waiter);
/// let kinds: Vec<&str> = objects.iter().filter_map(|object| object["kind"].as_str()).collect();
/// assert_eq!(kinds[..4], ["Namespace", "ServiceAccount", "ClusterRole", "Role"]);
/// assert_eq!(kinds[4..], ["ClusterRoleBinding", "RoleBinding", "Service", "NetworkPolicy", "Deployment"]);
/// assert_eq!(objects[8]["metadata"]["labels"], json!({"app.kubernetes.io/name": "waiter"}));
/// ```
#[derive(Clone)]
pub struct Installation {
    /// Name of the Deployment, the ServiceAccount, the disruption budget and the network policy. Roles are called `NAME-role` and
    /// bindings `NAME-rolebinding`.
    pub name: String,
    /// Namespace of all objects that live in one.
    pub namespace: String,
    /// Labels of the namespace; none where it exists already and is no part of the installation.
    pub namespace_labels: Option<Labels>,
    /// Labels of every object but the namespace and the definitions.
    pub labels: Labels,
    /// Labels by which pods are selected. They cannot be changed once the Deployment exists.
    pub selector: Labels,
    /// The kinds that the operator brings, each with its versions.
    pub kinds: &'static [&'static [Declared]],
    /// How the definitions of the kinds are written.
    pub profile: Profile,
    /// Which descriptions the schemas of the definitions have.
    pub descriptions: Descriptions,
    /// The controllers that the program runs: it may do what they declare.
    pub controllers: &'static [ControllerSpec],
    /// What the program may do beside that. Leases where there is a leader election, events, and what the webhook server and its
    /// handlers need are added; every program of the library records events.
    pub rules: Vec<RbacRule>,
    /// Objects that are applied before the program starts, such as ConfigMaps; they are left as they are.
    pub more: Vec<Value>,
    /// Number of pods. More than one are spread over nodes where possible.
    pub replicas: u32,
    /// How many pods may be unavailable while nodes are drained; none for no PodDisruptionBudget.
    pub disruption_budget: Option<u32>,
    /// PriorityClass of the pods.
    pub priority_class: Option<String>,
    /// Image of the program.
    pub image: String,
    /// When the image is pulled; none leaves it to the API server.
    pub pull_policy: Option<String>,
    /// The program in the image; empty for the image's own entry point.
    pub command: Vec<String>,
    /// Whether one of the pods leads, and the others wait.
    pub leader_election: bool,
    /// Name of the Lease that they share: the field manager of the program. The role names it.
    pub lease: String,
    /// Flags beside those for leader election, metrics, health and the configuration file.
    pub arguments: Vec<String>,
    /// The file that `--config` names; none for a program without that flag, or one that shall have its defaults.
    pub configuration: Option<ConfigurationFile>,
    /// Variables beside the namespace of the pod and those of the webhooks.
    pub environment: Vec<(String, String)>,
    /// Port of `/healthz` and `/readyz`, which the probes ask for.
    pub health_port: u16,
    /// Port of the metrics; none serves no metrics.
    pub metrics_port: Option<u16>,
    /// Name of the Service through which the metrics of every pod are scraped; none for no Service.
    pub metrics_service: Option<String>,
    /// Resource requirements of the container.
    pub resources: Value,
    /// Security context of the pods, by default [`restricted_pod`].
    pub pod_security_context: Map<String, Value>,
    /// Security context of the container, by default [`restricted_container`].
    pub security_context: Map<String, Value>,
    /// Whether a NetworkPolicy allows connections to the ports of webhooks, metrics and health alone.
    pub network_policy: bool,
    /// Who may read metrics, as `from` of a NetworkPolicy; empty for everybody.
    pub metrics_from: Vec<Value>,
    /// The webhook server; none for an operator without one.
    pub webhooks: Option<Webhooks>,
}

impl Installation {
    /// Two pods of this image in a namespace of their own, without kinds, controllers and webhooks.
    pub fn new(name: &str, namespace: &str, image: &str) -> Self {
        let labels = Labels::from([("app.kubernetes.io/name".to_owned(), name.to_owned())]);
        Self {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            namespace_labels: Some(labels.clone()),
            selector: labels.clone(),
            labels,
            kinds: &[],
            profile: Profile::Compatible,
            descriptions: Descriptions::All,
            controllers: &[],
            rules: Vec::new(),
            more: Vec::new(),
            replicas: 2,
            disruption_budget: Some(1),
            priority_class: None,
            image: image.to_owned(),
            pull_policy: None,
            command: Vec::new(),
            leader_election: true,
            lease: name.to_owned(),
            arguments: Vec::new(),
            configuration: None,
            environment: Vec::new(),
            health_port: 8000,
            metrics_port: Some(8080),
            metrics_service: Some(format!("{name}-metrics")),
            resources: json!({
                "requests": {"cpu": "100m", "memory": "64Mi"},
                "limits": {"cpu": "1", "memory": "256Mi"},
            }),
            pod_security_context: restricted_pod(NONROOT),
            security_context: restricted_container(),
            network_policy: true,
            metrics_from: Vec::new(),
            webhooks: None,
        }
    }

    fn namespace_object(&self) -> Option<Value> {
        let mut metadata = json!({"name": self.namespace});
        add_labels(&mut metadata, self.namespace_labels.as_ref()?);
        Some(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
    }

    /// The definitions. Those whose objects the program converts name its webhook server.
    fn definitions(&self) -> impl Iterator<Item = Value> {
        let definitions = self.kinds.iter().map(|versions| {
            let plain = custom_resource_definition(versions, self.profile);
            match self.webhooks.as_ref().filter(|webhooks| webhooks.converts(&plain)) {
                Some(webhooks) => converted_resource_definition(versions, self.profile, &webhooks.at(&self.namespace)),
                None => plain,
            }
        });
        definitions.filter(Value::is_object).map(|definition| self.descriptions.kept_in(definition))
    }

    /// The metadata of an object of the cluster.
    fn in_cluster(&self, name: &str) -> Value {
        let mut metadata = json!({"name": name});
        add_labels(&mut metadata, &self.labels);
        metadata
    }

    /// The metadata of an object in the namespace.
    fn in_namespace(&self, name: &str) -> Value {
        let mut metadata = self.in_cluster(name);
        metadata["namespace"] = json!(self.namespace);
        metadata
    }
}

/// Everything that an installation consists of, as objects in the order in which they are applied.
///
/// What others need comes first: namespace, definitions, ServiceAccount, roles and the configuration file. The webhook configurations come last, because a
/// webhook that does not answer yet may refuse what is applied after it. Certificate authorities are left out: the webhook server
/// puts its own where they belong, and applying the objects again leaves them as they are.
pub fn install(installation: &Installation) -> Vec<Value> {
    let configuration = installation.configuration.as_ref().map(|file| file.object(installation));
    let webhooks = installation.webhooks.iter().flat_map(|webhooks| webhooks.objects(&installation.labels));
    let before = installation.namespace_object().into_iter().chain(installation.definitions());
    before
        .chain(access::objects(installation))
        .chain(configuration)
        .chain(installation.more.iter().cloned())
        .chain(network::objects(installation))
        .chain(iter::once(pods::deployment(installation)))
        .chain(webhooks)
        .map(sorted)
        .collect()
}

/// Adds labels to those that the metadata has.
fn add_labels(metadata: &mut Value, labels: &Labels) {
    for (key, value) in labels {
        metadata["labels"][key] = json!(value);
    }
}
