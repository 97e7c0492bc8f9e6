//! How the pods are reached, and how many of them may be away.

use serde_json::{Value, json};

use super::{Installation, add_labels};

/// The name of the port of the webhooks.
pub(super) const WEBHOOKS: &str = "webhook-server";
/// The name of the port of the metrics.
pub(super) const METRICS: &str = "metrics";
/// The name of the port of the probes.
pub(super) const HEALTH: &str = "health";

/// Services, NetworkPolicy and PodDisruptionBudget, as far as the installation has them.
pub(super) fn objects(installation: &Installation) -> impl Iterator<Item = Value> {
    let found = [
        webhook_service(installation),
        metrics_service(installation),
        network_policy(installation),
        disruption_budget(installation),
    ];
    found.into_iter().flatten()
}

/// Ports are found by their name: while one version of the program replaces another, each is found at its own port.
fn webhook_service(installation: &Installation) -> Option<Value> {
    let name = &installation.webhooks.as_ref()?.service;
    Some(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": installation.in_namespace(name),
        "spec": {
            "selector": installation.selector,
            "ports": [{"port": 443, "targetPort": WEBHOOKS}],
        },
    }))
}

/// Headless, such that every pod is scraped. It has the labels of the pods, by which a ServiceMonitor finds it.
fn metrics_service(installation: &Installation) -> Option<Value> {
    let (name, port) = (installation.metrics_service.as_ref()?, installation.metrics_port?);
    let mut metadata = installation.in_namespace(name);
    add_labels(&mut metadata, &installation.selector);
    Some(json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "clusterIP": "None",
            "selector": installation.selector,
            "ports": [{"name": METRICS, "port": port, "targetPort": METRICS}],
        },
    }))
}

/// Incoming connections alone are restricted: no policy can name the addresses of API servers and kubelets.
fn network_policy(installation: &Installation) -> Option<Value> {
    if !installation.network_policy {
        return None;
    }
    let port = |name: &str| json!({"port": name, "protocol": "TCP"});
    let webhooks = installation.webhooks.as_ref().map(|_| port(WEBHOOKS));
    let of_cluster: Vec<Value> = webhooks.into_iter().chain([port(HEALTH)]).collect();
    let mut ingress = vec![json!({"ports": of_cluster})];
    if installation.metrics_port.is_some() {
        let mut metrics = json!({"ports": [port(METRICS)]});
        if !installation.metrics_from.is_empty() {
            metrics["from"] = json!(installation.metrics_from);
        }
        ingress.push(metrics);
    }
    Some(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": installation.in_namespace(&installation.name),
        "spec": {
            "podSelector": {"matchLabels": installation.selector},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    }))
}

fn disruption_budget(installation: &Installation) -> Option<Value> {
    let unavailable = installation.disruption_budget?;
    Some(json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": installation.in_namespace(&installation.name),
        "spec": {"maxUnavailable": unavailable, "selector": {"matchLabels": installation.selector}},
    }))
}
