//! Whether API servers can call the webhooks, and what happens when they cannot.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_program::{
    findings::{Report, Severity},
    names::few,
    obstacle::Obstacle,
};
use koord_resource::schema::cel::Condition;
use koord_webhook_handlers::HANDLERS;
use serde_json::{Value, json};

use crate::cluster::Cluster;

/// A webhook configuration as it is read.
pub(crate) struct Configuration {
    /// Kind and name.
    pub(crate) object: String,
    pub(crate) found: Option<Value>,
}

impl Configuration {
    pub(crate) fn entries(&self) -> &[Value] {
        let entries = self.found.as_ref().and_then(|found| found["webhooks"].as_array());
        entries.map(Vec::as_slice).unwrap_or_default()
    }
}

/// Both configurations, of those that change objects first.
pub(crate) async fn configurations(cluster: &Cluster) -> Result<[Configuration; 2], Obstacle> {
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
pub(crate) enum Target<'a> {
    Service { namespace: &'a str, name: &'a str, port: u16, path: &'a str },
    Url(&'a str),
}

impl<'a> Target<'a> {
    pub(crate) fn of(entry: &'a Value) -> Option<Self> {
        let client = &entry["clientConfig"];
        if let Some(url) = client["url"].as_str() {
            return Some(Self::Url(url));
        }
        let text = |field: &str| client["service"][field].as_str();
        let port = client["service"]["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        Some(Self::Service {
            namespace: text("namespace")?,
            name: text("name")?,
            port: port.unwrap_or(443),
            path: text("path").unwrap_or("/"),
        })
    }
}

pub(crate) async fn look(cluster: &Cluster, report: &mut Report) {
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
    // The ports of the Service that are called, with what it means when no endpoint answers.
    let mut called: BTreeMap<u16, Severity> = BTreeMap::new();
    for configuration in &configurations {
        if configuration.found.is_none() {
            report.error(&configuration.object, "it is not there, though the other one is", install);
            continue;
        }
        if configuration.entries().is_empty() {
            report.warning(
                &configuration.object,
                "it has no entries: API servers call no webhook",
                "see which feature gates koord-manager runs with; if its annotation \"template\" is empty too, install it anew",
            );
        }
        for entry in configuration.entries() {
            let name = entry["name"].as_str().unwrap_or("?");
            let object = format!("{}, entry {name}", configuration.object);
            let severity = if is_strict(entry) { Severity::Error } else { Severity::Warning };
            if let Some(port) = check_target(cluster, &object, entry, report) {
                let strictest = called.entry(port).or_insert(severity);
                *strictest = severity.max(*strictest);
            }
            catches(&object, entry, &system, report);
        }
    }
    if !called.is_empty() {
        check_service(cluster, &called, report).await;
    }
}

/// Whether the API server refuses requests when it cannot call the entry.
fn is_strict(entry: &Value) -> bool {
    entry["failurePolicy"] != "Ignore"
}

/// Looks at what is called; the Service's port where that is our Service.
fn check_target(cluster: &Cluster, object: &str, entry: &Value, report: &mut Report) -> Option<u16> {
    let (path, called) = match Target::of(entry) {
        Some(Target::Service { namespace, name, port, path }) => {
            let installed = &cluster.installed;
            let is_ours = (namespace, name) == (&installed.namespace, &installed.service);
            if !is_ours {
                report.warning(
                    object,
                    format!("it calls Service {namespace}/{name}, not {}/{}", installed.namespace, installed.service),
                    "let koord-manager put it right (it does every minute), or name the installation's namespace: --namespace",
                );
            }
            (path.to_owned(), is_ours.then_some(port))
        }
        Some(Target::Url(url)) => {
            let path = url.parse::<http::Uri>().map(|url| url.path().to_owned());
            (path.unwrap_or_default(), None)
        }
        None => {
            report.error(
                object,
                "it names neither a Service nor a URL",
                "delete the entry, or install the configuration anew",
            );
            return None;
        }
    };
    if !HANDLERS.iter().any(|handler| handler.path == path) {
        report.warning(
            object,
            format!("it calls {path:?}, which koord-manager does not serve"),
            "remove the entry, or let the koord-manager that serves the path run",
        );
    }
    called
}

async fn check_service(cluster: &Cluster, called: &BTreeMap<u16, Severity>, report: &mut Report) {
    let (namespace, name) = (&cluster.installed.namespace, &cluster.installed.service);
    let object = format!("Service {namespace}/{name}");
    let install = "install it: kubectl apply -k config/webhook";
    let meaning = |severity| match severity {
        Severity::Error => "requests for pods and quotas are refused",
        _ => "requests pass unchecked",
    };
    let strictest = called.values().copied().max().unwrap_or(Severity::Warning);
    let path = format!("/api/v1/namespaces/{namespace}/services/{name}");
    let Some(found) = report.read(cluster.get(&path).await) else { return };
    let Some(service) = found else {
        let problem = format!("the webhook configurations call it and it is not there: {}", meaning(strictest));
        return report.add(strictest, object, problem, install);
    };
    let ports: Vec<String> =
        service["spec"]["ports"].as_array().into_iter().flatten().map(|port| port["port"].to_string()).collect();
    for (port, severity) in called.iter().filter(|(port, _)| !ports.contains(&port.to_string())) {
        let problem = format!(
            "the webhook configurations call its port {port}, and it has only {}: {}",
            few(&ports),
            meaning(*severity)
        );
        report.add(*severity, &object, problem, install);
    }
    let path = format!(
        "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{name}"
    );
    let Some(slices) = report.read(cluster.get(&path).await) else { return };
    let slices = slices.unwrap_or_default();
    let is_ready = |slice: &&Value| {
        slice["endpoints"].as_array().into_iter().flatten().any(|endpoint| endpoint["conditions"]["ready"] != false)
    };
    let ready: Vec<&Value> = slices["items"].as_array().into_iter().flatten().filter(is_ready).collect();
    if ready.is_empty() {
        report.add(
            strictest,
            object,
            format!("no pod answers behind it: {}", meaning(strictest)),
            format!("see why koord-manager is not ready: kubectl -n {namespace} get pods; kubectl -n {namespace} logs deploy/koord-manager"),
        );
    } else if ready.iter().all(|slice| slice["ports"].as_array().is_none_or(Vec::is_empty)) {
        // So the cluster shows a targetPort that no container of the pods declares.
        let targets: Vec<String> = service["spec"]["ports"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|port| port["targetPort"].as_str().map_or_else(|| port["targetPort"].to_string(), str::to_owned))
            .collect();
        report.add(
            strictest,
            object,
            format!(
                "its pods are ready, but none of them has its targetPort {}: {}",
                few(&targets),
                meaning(strictest)
            ),
            format!("name a port of the pods' containers as targetPort: kubectl -n {namespace} edit service {name}"),
        );
    }
}

/// The namespaces that must work without webhooks, with their labels.
async fn system_namespaces(cluster: &Cluster) -> Vec<(String, BTreeMap<String, String>)> {
    let mut namespaces = Vec::new();
    for name in ["kube-system", cluster.installed.namespace.as_str()] {
        // Without the right to read it, nothing is known and nothing is reported.
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
        .filter(|(_, labels)| koord_scheduling::matches(Some(&selector), labels).unwrap_or(true))
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
