//! The two webhook configurations out of tables of handlers.

use serde_json::{Map, Value, json};

use super::crd::sorted;
use crate::admission::{Client, FailurePolicy, Handler, Selector, SideEffects, WebhookEntry, WebhookKind};

/// Where the API server finds the webhooks.
#[derive(Clone, Copy, Debug)]
pub struct WebhookService<'a> {
    /// Namespace of the Service.
    pub namespace: &'a str,
    /// Name of the Service.
    pub name: &'a str,
    /// The CA bundle in base64; what is put here is a place holder where a controller fills it in.
    pub ca_bundle: &'a str,
}

/// One configuration with the entries of its kind, in the order of the table.
pub fn webhook_configuration<C: ?Sized>(
    kind: WebhookKind,
    name: &str,
    handlers: &[Handler<C>],
    service: &WebhookService<'_>,
) -> Value {
    let entries = handlers.iter().flat_map(|handler| handler.entries.iter().map(|entry| (handler.path, entry)));
    let webhooks: Vec<Value> =
        entries.filter(|(_, entry)| entry.kind == kind).map(|(path, entry)| webhook(path, entry, service)).collect();
    sorted(json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": match kind {
            WebhookKind::Mutating => "MutatingWebhookConfiguration",
            WebhookKind::Validating => "ValidatingWebhookConfiguration",
        },
        "metadata": {"name": name},
        "webhooks": webhooks,
    }))
}

fn webhook(path: &str, entry: &WebhookEntry, service: &WebhookService<'_>) -> Value {
    let mut webhook = Map::new();
    let mut set = |key: &str, value: Value| webhook.insert(key.to_owned(), value);
    set("name", json!(entry.name));
    set("admissionReviewVersions", json!(entry.review_versions));
    set("clientConfig", client_config(path, &entry.client, service));
    set(
        "failurePolicy",
        json!(match entry.failure_policy {
            FailurePolicy::Fail => "Fail",
            FailurePolicy::Ignore => "Ignore",
        }),
    );
    let mut rule = json!({
        "apiGroups": entry.groups,
        "apiVersions": entry.versions,
        "operations": entry.operations,
        "resources": entry.resources,
    });
    if let Some(scope) = entry.scope {
        rule["scope"] = json!(scope);
    }
    set("rules", json!([rule]));
    set(
        "sideEffects",
        json!(match entry.side_effects {
            SideEffects::None => "None",
            SideEffects::NoneOnDryRun => "NoneOnDryRun",
        }),
    );
    if let Some(policy) = entry.match_policy {
        set("matchPolicy", json!(policy));
    }
    if let Some(policy) = entry.reinvocation_policy {
        set("reinvocationPolicy", json!(policy));
    }
    if let Some(seconds) = entry.timeout_seconds {
        set("timeoutSeconds", json!(seconds));
    }
    if let Some(selector) = &entry.namespace_selector {
        set("namespaceSelector", label_selector(selector));
    }
    if let Some(selector) = &entry.object_selector {
        set("objectSelector", label_selector(selector));
    }
    if !entry.match_conditions.is_empty() {
        let conditions = entry.match_conditions.iter();
        let conditions = conditions.map(|(name, expression)| json!({"name": name, "expression": expression}));
        set("matchConditions", conditions.collect());
    }
    Value::Object(webhook)
}

fn client_config(path: &str, client: &Client, installed: &WebhookService<'_>) -> Value {
    let mut config = json!({"caBundle": installed.ca_bundle});
    match *client {
        Client::Url(url) => config["url"] = json!(url),
        Client::Service { name, namespace, port } => {
            config["service"] = json!({
                "name": name.unwrap_or(installed.name),
                "namespace": namespace.unwrap_or(installed.namespace),
                "path": path,
            });
            if let Some(port) = port {
                config["service"]["port"] = json!(port);
            }
        }
    }
    config
}

fn label_selector(selector: &Selector) -> Value {
    let expressions = selector.expressions.iter().map(|(key, operator, values)| {
        if values.is_empty() {
            json!({"key": key, "operator": operator})
        } else {
            json!({"key": key, "operator": operator, "values": values})
        }
    });
    json!({"matchExpressions": expressions.collect::<Vec<_>>()})
}
