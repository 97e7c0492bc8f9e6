//! Whether API servers can call the webhooks, and what happens when they cannot.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_api::label_selector;
use koord_resource::schema::cel::Condition;
use koord_webhooks::HANDLERS;
use serde_json::{Value, json};

use super::{
    cluster::{Cluster, Obstacle},
    finding::{Report, Severity, few},
};

/// A webhook configuration as it is read.
pub(super) struct Configuration {
    /// Kind and name.
    pub(super) object: String,
    pub(super) found: Option<Value>,
}

impl Configuration {
    pub(super) fn entries(&self) -> &[Value] {
        let entries = self.found.as_ref().and_then(|found| found["webhooks"].as_array());
        entries.map(Vec::as_slice).unwrap_or_default()
    }
}

/// Both configurations, of those that change objects first.
pub(super) async fn configurations(cluster: &Cluster) -> Result<[Configuration; 2], Obstacle> {
    let read = async |plural: &str, kind: &str, name: &str| {
        let found = cluster.get(&format!("/apis/admissionregistration.k8s.io/v1/{plural}/{name}")).await?;
        Ok(Configuration { object: format!("{kind} {name}"), found })
    };
    Ok([
        read("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", &cluster.installed.mutating).await?,
        read("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", &cluster.installed.validating)
            .await?,
    ])
}

/// What an entry calls.
pub(super) enum Target<'a> {
    Service { namespace: &'a str, name: &'a str, path: &'a str },
    Url(&'a str),
}

impl<'a> Target<'a> {
    pub(super) fn of(entry: &'a Value) -> Option<Self> {
        let client = &entry["clientConfig"];
        if let Some(url) = client["url"].as_str() {
            return Some(Self::Url(url));
        }
        let text = |field: &str| client["service"][field].as_str();
        Some(Self::Service { namespace: text("namespace")?, name: text("name")?, path: text("path").unwrap_or("/") })
    }
}

pub(super) async fn look(cluster: &Cluster, report: &mut Report) {
    let Some(configurations) = report.read(configurations(cluster).await) else { return };
    let install = "install it from the chart, or: kubectl apply -k config/webhook";
    if configurations.iter().all(|configuration| configuration.found.is_none()) {
        return report.warning(
            "Webhook configurations",
            "there are none: pods get no profile, and quotas and the configuration are not checked",
            install,
        );
    }
    let system = system_namespaces(cluster).await;
    let mut strictest: Option<Severity> = None;
    for configuration in &configurations {
        if configuration.found.is_none() {
            report.error(&configuration.object, "it is not there, though the other one is", install);
            continue;
        }
        if configuration.entries().is_empty() {
            report.warning(
                &configuration.object,
                "it has no entries: API servers call nobody",
                "see which feature gates koord-manager runs with; if its annotation \"template\" is empty too, install it anew",
            );
        }
        for entry in configuration.entries() {
            let name = entry["name"].as_str().unwrap_or("?");
            let object = format!("{}, entry {name}", configuration.object);
            let severity = if is_strict(entry) { Severity::Error } else { Severity::Warning };
            if check_target(cluster, &object, entry, report) {
                strictest = strictest.max(Some(severity));
            }
            catches(&object, entry, &system, report);
        }
    }
    if let Some(severity) = strictest {
        check_service(cluster, severity, report).await;
    }
}

/// Whether the API server refuses requests when it cannot call the entry.
fn is_strict(entry: &Value) -> bool {
    entry["failurePolicy"] != "Ignore"
}

/// Looks at what is called; whether that is the Service.
fn check_target(cluster: &Cluster, object: &str, entry: &Value, report: &mut Report) -> bool {
    let (path, calls_service) = match Target::of(entry) {
        Some(Target::Service { namespace, name, path }) => {
            let installed = &cluster.installed;
            if (namespace, name) != (&installed.namespace, &installed.service) {
                report.warning(
                    object,
                    format!("it calls Service {namespace}/{name}, not {}/{}", installed.namespace, installed.service),
                    "let koord-manager put it right (it does every minute), or name the installation's namespace: --namespace",
                );
            }
            (path.to_owned(), true)
        }
        Some(Target::Url(url)) => {
            let path = url.parse::<http::Uri>().map(|url| url.path().to_owned());
            (path.unwrap_or_default(), false)
        }
        None => {
            report.error(object, "it calls nobody", "delete the entry, or install the configuration anew");
            return false;
        }
    };
    if !HANDLERS.iter().any(|handler| handler.path == path) {
        report.warning(
            object,
            format!("it calls {path:?}, which koord-manager does not serve"),
            "remove the entry, or let the koord-manager that serves the path run",
        );
    }
    calls_service
}

async fn check_service(cluster: &Cluster, severity: Severity, report: &mut Report) {
    let (namespace, name) = (&cluster.installed.namespace, &cluster.installed.service);
    let object = format!("Service {namespace}/{name}");
    let meaning = match severity {
        Severity::Error => "requests for pods and quotas are refused",
        _ => "requests pass unchecked",
    };
    let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
    let Some(found) = report.read(cluster.get(&path).await) else { return };
    if found.is_none() {
        let problem = format!("the webhook configurations call it and it is not there: {meaning}");
        return report.add(severity, object, problem, "install it: kubectl apply -k config/webhook");
    }
    let path = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{name}"
    );
    let Some(slices) = report.read(cluster.get(&path).await) else { return };
    let slices = slices.unwrap_or_default();
    let endpoints = slices["items"].as_array().into_iter().flatten();
    let endpoints = endpoints.flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] != false).count();
    if ready == 0 {
        report.add(
            severity,
            object,
            format!("no pod answers behind it: {meaning}"),
            format!("see why koord-manager is not ready: kubectl -n {namespace} get pods; kubectl -n {namespace} logs deploy/koord-manager"),
        );
    }
}

/// The namespaces that must work without webhooks, with their labels.
async fn system_namespaces(cluster: &Cluster) -> Vec<(String, BTreeMap<String, String>)> {
    let mut namespaces = Vec::new();
    for name in ["kube-system", cluster.installed.namespace.as_str()] {
        // Without the right to read it, nothing is known and nothing is said.
        let Ok(Some(object)) = cluster.get(&format!("/api/v1/namespaces/{name}")).await else { continue };
        let mut labels: BTreeMap<String, String> =
            serde_json::from_value(object["metadata"]["labels"].clone()).unwrap_or_default();
        labels.entry("kubernetes.io/metadata.name".to_owned()).or_insert_with(|| name.to_owned());
        namespaces.push((name.to_owned(), labels));
    }
    namespaces
}

/// A strict entry about pods must leave the namespaces alone that bring it back to life.
fn catches(object: &str, entry: &Value, system: &[(String, BTreeMap<String, String>)], report: &mut Report) {
    if !is_strict(entry) || !is_about_new_pods(entry) {
        return;
    }
    let selector: Option<LabelSelector> =
        serde_json::from_value(entry["namespaceSelector"].clone()).unwrap_or_default();
    let selector = selector.unwrap_or_default();
    let caught: Vec<String> = system
        .iter()
        .filter(|(_, labels)| label_selector::matches(Some(&selector), labels).unwrap_or(true))
        .filter(|(name, _)| conditions_hold(entry, name))
        .map(|(name, _)| name.clone())
        .collect();
    if !caught.is_empty() {
        report.warning(
            object,
            format!("with failurePolicy Fail it catches pods of {}: when no koord-manager answers, they cannot start, and it may not either", few(&caught)),
            "leave them out: kubectl label namespace NAME control-plane=true, or a namespaceSelector or matchConditions of your own",
        );
    }
}

fn is_about_new_pods(entry: &Value) -> bool {
    let names = |rule: &Value, field: &str, wanted: &[&str]| {
        rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).any(|name| wanted.contains(&name))
    };
    let unselective = |selector: &Value| {
        ["matchLabels", "matchExpressions"].iter().all(|part| match &selector[*part] {
            Value::Object(labels) => labels.is_empty(),
            Value::Array(expressions) => expressions.is_empty(),
            _ => true,
        })
    };
    let mut rules = entry["rules"].as_array().into_iter().flatten();
    rules.any(|rule| {
        names(rule, "apiGroups", &["", "*"])
            && names(rule, "resources", &["pods", "*", "*/*"])
            && names(rule, "operations", &["CREATE", "*"])
    }) && unselective(&entry["objectSelector"])
}

/// Whether the conditions let a new pod of a namespace through. One that fails lets nothing pass, which is as bad.
fn conditions_hold(entry: &Value, namespace: &str) -> bool {
    const EVALUATION_MAX: Duration = Duration::from_secs(2);
    let object = json!({"metadata": {"name": "pod", "namespace": namespace}, "spec": {"containers": []}});
    let request = json!({
        "operation": "CREATE", "namespace": namespace, "name": "pod", "object": object, "dryRun": false,
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "userInfo": {"username": "", "groups": []},
    });
    let variables = [("object", object), ("oldObject", Value::Null), ("request", request), ("authorizer", json!({}))];
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    let mut conditions = entry["matchConditions"].as_array().into_iter().flatten();
    conditions.all(|condition| {
        let text = condition["expression"].as_str().unwrap_or_default();
        let compiled = Condition::compile(text.trim(), &names);
        compiled.and_then(|condition| condition.holds(&variables, EVALUATION_MAX)).unwrap_or(true)
    })
}
