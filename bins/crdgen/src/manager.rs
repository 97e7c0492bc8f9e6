//! The installation of koord-manager, declared; `config/` is written from it.
//!
//! Objects without a program of their own (priority classes, the ConfigMap slo-controller-config) are no part of it.

use anyhow::{Context as _, Result};
use koord_manager_assembly::{BUILD, webhook_defaults};
use koord_resource::{
    admission::WebhookKind,
    document::{Installation, Labels, Webhooks, install},
};
use serde_json::{Map, Value, json};

use crate::{
    chart,
    document::{Document, yaml_stream, yaml_text},
    installation::{METRICS_SERVICE, NAMESPACE},
};

/// The files of `config/`, each with the kinds of its objects. The definitions have files of their own.
const FILES: [(&str, &[&str]); 9] = [
    ("manager/namespace", &["Namespace"]),
    ("manager/manager", &["Deployment"]),
    ("manager/disruption_budget", &["PodDisruptionBudget"]),
    ("manager/network_policy", &["NetworkPolicy"]),
    ("rbac/service_account", &["ServiceAccount"]),
    ("rbac/role", &["ClusterRole", "Role"]),
    ("rbac/role_binding", &["ClusterRoleBinding", "RoleBinding"]),
    ("webhook/service", &["Service"]),
    ("webhook/manifests", &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]),
];

/// What an installation of koord-manager consists of, with the names of the original's.
pub fn installation() -> Result<Installation> {
    let names = webhook_defaults();
    let configurations = [
        configuration(WebhookKind::Mutating, "MutatingWebhookConfiguration", &names.mutating, &names.service)?,
        configuration(WebhookKind::Validating, "ValidatingWebhookConfiguration", &names.validating, &names.service)?,
    ];
    let webhooks = Webhooks {
        certificates: format!("/run/{}", names.secret),
        service: names.service,
        secret: names.secret,
        mutating: names.mutating,
        validating: names.validating,
        named_by_variables: false,
        configurations: configurations.into(),
        ..Webhooks::of::<()>(BUILD.program, NAMESPACE, &[])
    };
    Ok(Installation { webhooks: Some(webhooks), ..without_webhooks() })
}

fn without_webhooks() -> Installation {
    let image = format!("{}:v{}-rust", BUILD.program, BUILD.version);
    Installation {
        // Webhooks keep away from the pods that serve them. The second spelling is the original's.
        namespace_labels: Some(labels(&[("control-plane", "koordinator"), ("controle-plane", "koordinator")])),
        labels: Labels::new(),
        selector: labels(&[("koord-app", BUILD.program)]),
        kinds: koord_types::KINDS,
        rules: koord_manager_assembly::own_rules(),
        priority_class: Some("koord-prod".to_owned()),
        pull_policy: Some("Always".to_owned()),
        command: vec![format!("/{}", BUILD.program)],
        arguments: vec![
            "--logtostderr=true".to_owned(),
            "--v=4".to_owned(),
            "--feature-gates=".to_owned(),
            "--sync-period=0".to_owned(),
            format!("--config-namespace={NAMESPACE}"),
        ],
        lease: BUILD.field_manager.to_owned(),
        metrics_service: Some(METRICS_SERVICE.to_owned()),
        ..Installation::new(BUILD.program, NAMESPACE, &image)
    }
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// The files of `config/` that are written from the installation.
pub(crate) fn documents() -> Result<Vec<Document>> {
    let objects = install(&installation()?);
    let file = |(file, kinds): (&str, &[&str])| {
        let of_file = objects.iter().filter(|object| kinds.iter().any(|kind| object["kind"] == *kind));
        let of_file: Vec<Value> = of_file.filter(|object| !is_metrics_service(object)).cloned().collect();
        Ok::<_, anyhow::Error>(Document { path: format!("config/{file}.yaml"), text: yaml_stream(&of_file)? })
    };
    let fixed =
        Document { path: format!("{}/deployment.yaml", chart::FILES), text: yaml_text(&fixed_parts(&objects)?)? };
    FILES.into_iter().map(file).chain([Ok(fixed)]).collect()
}

/// What no value of the chart decides of the Deployment, for the chart's template.
fn fixed_parts(objects: &[Value]) -> Result<Value> {
    let deployment =
        objects.iter().find(|object| object["kind"] == "Deployment").context("nothing runs koord-manager")?;
    let spec = &deployment["spec"];
    let pod = &spec["template"]["spec"];
    let container = &pod["containers"][0];
    let parts = |of: &Value, names: &[&str]| -> Value {
        names.iter().map(|name| ((*name).to_owned(), of[name].clone())).collect::<Map<_, _>>().into()
    };
    Ok(json!({
        "rollout": parts(spec, &["minReadySeconds", "strategy"]),
        "pod": parts(pod, &["serviceAccountName", "terminationGracePeriodSeconds"]),
        "affinity": pod["affinity"],
        "probes": parts(container, &["startupProbe", "livenessProbe", "readinessProbe"]),
        "mounts": parts(container, &["volumeMounts"]),
        "volumes": parts(pod, &["volumes"]),
    }))
}

/// The Service through which the metrics of all replicas are scraped. It is written beside who scrapes it, in `config/monitoring`.
pub(crate) fn metrics_service() -> Option<Value> {
    install(&without_webhooks()).into_iter().find(is_metrics_service)
}

fn is_metrics_service(object: &Value) -> bool {
    object["kind"] == "Service" && object["metadata"]["name"] == METRICS_SERVICE
}

/// A webhook configuration. It has the entries that are served with the default flags; the annotation that the manager
/// rebuilds entries from has all, so that gates bring further ones, and applying the file again finds nothing to change.
/// The certificate authority is left to the manager for the same reason.
fn configuration(kind: WebhookKind, kind_name: &str, name: &str, service: &str) -> Result<Value> {
    let entries = chart::entries(kind)?;
    let written = |entry: &chart::Entry| entry.in_configuration(NAMESPACE, service);
    let template = serde_json::to_string(&entries.iter().map(written).collect::<Value>())?;
    let webhooks: Value = entries.iter().filter_map(|entry| entry.by_default(NAMESPACE, service)).collect();
    Ok(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind_name,
        "metadata": {"name": name, "annotations": {"template": template}},
        "webhooks": webhooks,
    }))
}
