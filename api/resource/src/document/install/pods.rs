//! The Deployment: what runs, how it is started, and when it counts as alive and ready.

use serde_json::{Map, Value, json};

use super::{
    ConfigurationFile, Installation, add_labels,
    configuration::CHECKSUM,
    network::{HEALTH, METRICS, WEBHOOKS},
};

/// User and group of images that run as nobody in particular, as those of distroless do.
pub const NONROOT: u32 = 65532;

/// The volume with the certificates of the webhooks.
const CERTIFICATES: &str = "certificates";

/// What the Pod Security Standard "restricted" requires of pods, for an image with this user and group.
pub fn restricted_pod(user: u32) -> Map<String, Value> {
    Map::from_iter([
        ("fsGroup".to_owned(), json!(user)),
        ("runAsGroup".to_owned(), json!(user)),
        ("runAsNonRoot".to_owned(), json!(true)),
        ("runAsUser".to_owned(), json!(user)),
        ("seccompProfile".to_owned(), json!({"type": "RuntimeDefault"})),
    ])
}

/// What the Pod Security Standard "restricted" requires of containers, and a file system that nothing writes to.
pub fn restricted_container() -> Map<String, Value> {
    Map::from_iter([
        ("allowPrivilegeEscalation".to_owned(), json!(false)),
        ("capabilities".to_owned(), json!({"drop": ["ALL"]})),
        ("readOnlyRootFilesystem".to_owned(), json!(true)),
    ])
}

/// The Deployment. New pods are ready before old ones are stopped, so that webhooks are answered during an upgrade.
pub(super) fn deployment(installation: &Installation) -> Value {
    let mut metadata = installation.in_namespace(&installation.name);
    add_labels(&mut metadata, &installation.selector);
    let mut template = json!({"metadata": {"labels": metadata["labels"]}, "spec": pod(installation)});
    if let Some(configuration) = &installation.configuration {
        template["metadata"]["annotations"][CHECKSUM] = json!(configuration.checksum());
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": installation.replicas,
            "minReadySeconds": 3,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "100%"}},
            "selector": {"matchLabels": installation.selector},
            "template": template,
        },
    })
}

fn pod(installation: &Installation) -> Value {
    let (volumes, mounts): (Vec<Value>, Vec<Value>) = volumes(installation).unzip();
    let mut pod = json!({
        "serviceAccountName": installation.name,
        "terminationGracePeriodSeconds": 10,
        "securityContext": installation.pod_security_context,
        "containers": [container(installation, &mounts)],
    });
    if let Some(class) = &installation.priority_class {
        pod["priorityClassName"] = json!(class);
    }
    if installation.replicas > 1 {
        pod["affinity"] = spread(installation);
    }
    if !volumes.is_empty() {
        pod["volumes"] = json!(volumes);
    }
    pod
}

/// The volumes, each with its place in the container.
fn volumes(installation: &Installation) -> impl Iterator<Item = (Value, Value)> {
    let certificates = installation.webhooks.as_ref().map(|webhooks| {
        // Private keys; in memory they leave no trace on the node.
        let volume = json!({"name": CERTIFICATES, "emptyDir": {"medium": "Memory", "sizeLimit": "4Mi"}});
        (volume, json!({"name": CERTIFICATES, "mountPath": webhooks.certificates}))
    });
    certificates.into_iter().chain(installation.configuration.as_ref().map(ConfigurationFile::volume))
}

/// Prefers nodes that run no other pod of the program.
fn spread(installation: &Installation) -> Value {
    json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "podAffinityTerm": {
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": installation.selector},
        },
    }]}})
}

fn container(installation: &Installation, mounts: &[Value]) -> Value {
    let probe = |path: &str| json!({"path": path, "port": HEALTH});
    let mut container = json!({
        "name": "manager",
        "image": installation.image,
        "args": arguments(installation),
        "env": environment(installation),
        "ports": ports(installation),
        // Caches of large clusters take their time.
        "startupProbe": {"httpGet": probe("/healthz"), "periodSeconds": 2, "failureThreshold": 60},
        "livenessProbe": {"httpGet": probe("/healthz"), "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {"httpGet": probe("/readyz"), "periodSeconds": 5},
        "resources": installation.resources,
        "securityContext": installation.security_context,
    });
    if let Some(policy) = &installation.pull_policy {
        container["imagePullPolicy"] = json!(policy);
    }
    if !installation.command.is_empty() {
        container["command"] = json!(installation.command);
    }
    if !mounts.is_empty() {
        container["volumeMounts"] = json!(mounts);
    }
    container
}

/// The flags of every program with controllers, and the program's own.
fn arguments(installation: &Installation) -> Vec<String> {
    let elects = if installation.leader_election { "" } else { "=false" };
    let metrics = installation.metrics_port.map_or_else(|| "0".to_owned(), |port| format!(":{port}"));
    let mut arguments = vec![
        format!("--enable-leader-election{elects}"),
        format!("--metrics-addr={metrics}"),
        format!("--health-probe-addr=:{}", installation.health_port),
    ];
    if installation.leader_election {
        arguments.push(format!("--leader-election-namespace={}", installation.namespace));
    }
    arguments.extend(installation.configuration.iter().map(|file| format!("--config={}", file.path())));
    arguments.extend_from_slice(&installation.arguments);
    arguments
}

fn environment(installation: &Installation) -> Vec<Value> {
    let namespace = json!({"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}});
    let webhooks = installation.webhooks.iter().flat_map(|webhooks| {
        let names = webhooks.variables().into_iter().filter(move |_| webhooks.named_by_variables);
        let port = variable("WEBHOOK_PORT", &webhooks.port.to_string());
        let certificates = variable("WEBHOOK_CERT_DIR", &webhooks.certificates);
        [port, certificates].into_iter().chain(names.map(|(name, value)| variable(name, value)))
    });
    let own = installation.environment.iter().map(|(name, value)| variable(name, value));
    std::iter::once(namespace).chain(webhooks).chain(own).collect()
}

fn variable(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

fn ports(installation: &Installation) -> Vec<Value> {
    let webhooks = installation.webhooks.as_ref().map(|webhooks| (WEBHOOKS, webhooks.port));
    let metrics = installation.metrics_port.map(|port| (METRICS, port));
    let ports = webhooks.into_iter().chain(metrics).chain([(HEALTH, installation.health_port)]);
    ports.map(|(name, port)| json!({"name": name, "containerPort": port, "protocol": "TCP"})).collect()
}
