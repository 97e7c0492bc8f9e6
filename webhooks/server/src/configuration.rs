//! Keeps the two webhook configurations right, and the definitions of kinds that the server converts: pure functions of
//! what is there and what is served.
//!
//! What a chart or a user wrote stays in an annotation; every entry is derived from it afresh. So a gate that is
//! switched off removes its entries, switching it on brings them back, and an upgrade that resets the entries is
//! repaired.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use koord_resource::{
    convert::{CONVERSION_REVIEW_VERSIONS, CONVERT_PATH},
    go_json,
};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};

/// The annotation that keeps the entries as somebody wrote them.
pub const TEMPLATE: &str = "template";

/// The port of a Service, where none is written.
const SERVICE_PORT: u16 = 443;

/// What entries shall point at.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// The authorities that API servers shall trust, as PEM.
    pub ca_bundle: &'a str,
    /// The namespace of the Service.
    pub namespace: &'a str,
    /// The Service.
    pub service: &'a str,
    /// The host and port that replace the Service.
    pub host: Option<(&'a str, u16)>,
}

/// An entry list that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The annotation is no list of webhooks.
    #[error(
        "annotation \"template\" of {kind} {name} is no list of webhooks: {source}; delete the annotation to rebuild it from the entries"
    )]
    Template {
        /// Kind of the configuration.
        kind: String,
        /// Name of the configuration.
        name: String,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// The JSON merge patch that makes a configuration right; none when it is. `served` names the paths that are.
pub fn repair(
    configuration: &Value,
    target: &Target<'_>,
    served: impl Fn(&str) -> bool,
) -> Result<Option<Value>, ConfigurationError> {
    let current = configuration.get("webhooks").cloned().unwrap_or_else(|| json!([]));
    let annotation = configuration
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(TEMPLATE))
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty());
    let template: Vec<Map<String, Value>> = match annotation {
        Some(text) => serde_json::from_str(text),
        None => Vec::deserialize(&current),
    }
    .map_err(|source| ConfigurationError::Template {
        kind: text(configuration, "/kind").to_owned(),
        name: text(configuration, "/metadata/name").to_owned(),
        source,
    })?;
    let wanted: Value = template.iter().filter_map(|entry| entry_for(entry, target, &served)).collect();

    let mut patch = Map::new();
    if annotation.is_none() {
        let entries: Vec<_> = template.iter().map(|entry| GoOrder { fields: entry, ranked: true }).collect();
        if let Ok(kept) = go_json::to_string(&entries) {
            patch.insert("metadata".to_owned(), json!({"annotations": {TEMPLATE: kept}}));
        }
    }
    if wanted != current {
        patch.insert("webhooks".to_owned(), wanted);
    }
    if patch.is_empty() {
        return Ok(None);
    }
    // A list is replaced whole, so the patch must fail where somebody changed the configuration meanwhile.
    if let Some(revision) = configuration.pointer("/metadata/resourceVersion") {
        let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
        metadata["resourceVersion"] = revision.clone();
    }
    Ok(Some(Value::Object(patch)))
}

/// The JSON merge patch that makes a definition call `/convert`; none when it does.
pub fn repair_conversion(definition: &Value, target: &Target<'_>) -> Option<Value> {
    let mut client = json!({"caBundle": BASE64.encode(target.ca_bundle)});
    let port = definition.pointer("/spec/conversion/webhook/clientConfig/service/port").cloned();
    match target.host {
        Some((host, port)) => client["url"] = format!("https://{host}:{port}{CONVERT_PATH}").into(),
        None => {
            client["service"] = json!({
                "namespace": target.namespace, "name": target.service, "path": CONVERT_PATH,
                "port": port.unwrap_or_else(|| SERVICE_PORT.into()),
            });
        }
    }
    let wanted = json!({
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": CONVERSION_REVIEW_VERSIONS},
    });
    if definition.pointer("/spec/conversion") == Some(&wanted) {
        return None;
    }
    let mut patch = json!({"spec": {"conversion": wanted}});
    // A merge patch keeps what it does not name, and a definition has either a Service or a URL.
    let client = &mut patch["spec"]["conversion"]["webhook"]["clientConfig"];
    let other = if target.host.is_some() { "service" } else { "url" };
    if definition.pointer("/spec/conversion/webhook/clientConfig").is_some_and(|client| client.get(other).is_some()) {
        client[other] = Value::Null;
    }
    if let Some(revision) = definition.pointer("/metadata/resourceVersion") {
        patch["metadata"] = json!({"resourceVersion": revision});
    }
    Some(patch)
}

/// The bundles, in base64, of everything that a configuration or a definition calls, with the name of what calls.
pub fn bundles(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let entries = object.get("webhooks").and_then(Value::as_array);
    let entries =
        entries.into_iter().flatten().map(|entry| (text(entry, "/name"), text(entry, "/clientConfig/caBundle")));
    let conversion = object.pointer("/spec/conversion").map(|conversion| {
        let bundle = text(conversion, "/webhook/clientConfig/caBundle");
        (text(object, "/metadata/name"), bundle)
    });
    entries.chain(conversion)
}

/// Whether everything that a configuration or a definition calls is trusted by exactly these authorities.
pub fn trusts(object: &Value, ca_bundle: &str) -> bool {
    let wanted = BASE64.encode(ca_bundle);
    bundles(object).all(|(_, bundle)| bundle == wanted)
}

/// An entry as it shall be; none when nobody answers on its path.
fn entry_for(template: &Map<String, Value>, target: &Target<'_>, served: impl Fn(&str) -> bool) -> Option<Value> {
    let mut entry = Value::Object(template.clone());
    let path = path_of(&entry).filter(|path| served(path))?;
    let client = entry.as_object_mut()?.entry("clientConfig").or_insert_with(|| json!({})).as_object_mut()?;
    client.insert("caBundle".to_owned(), BASE64.encode(target.ca_bundle).into());
    if let Some(service) = client.get_mut("service").and_then(Value::as_object_mut) {
        service.insert("namespace".to_owned(), target.namespace.into());
        service.insert("name".to_owned(), target.service.into());
        if let Some((host, port)) = target.host {
            client.remove("service");
            client.insert("url".to_owned(), format!("https://{host}:{port}{path}").into());
        }
    }
    Some(entry)
}

/// The path that an entry calls.
fn path_of(entry: &Value) -> Option<String> {
    let client = entry.get("clientConfig")?;
    if let Some(path) = client.pointer("/service/path").and_then(Value::as_str) {
        return Some(path.to_owned());
    }
    let url: http::Uri = client.get("url")?.as_str()?.parse().ok()?;
    Some(url.path().to_owned())
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// An object whose fields are written in the order of the original's types, so that either program finds the text
/// that it would have written itself.
struct GoOrder<'a> {
    fields: &'a Map<String, Value>,
    /// Fields of a type; the keys of a map stay sorted.
    ranked: bool,
}

const GO_ORDER: &[&str] = &[
    "url",
    "service",
    "namespace",
    "name",
    "path",
    "port",
    "caBundle",
    "expression",
    "clientConfig",
    "rules",
    "operations",
    "apiGroups",
    "apiVersions",
    "resources",
    "scope",
    "failurePolicy",
    "matchPolicy",
    "namespaceSelector",
    "objectSelector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "sideEffects",
    "timeoutSeconds",
    "admissionReviewVersions",
    "reinvocationPolicy",
    "matchConditions",
];

impl Serialize for GoOrder<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rank = |name: &str| GO_ORDER.iter().position(|known| *known == name).unwrap_or(GO_ORDER.len());
        let mut fields: Vec<_> = self.fields.iter().filter(|(_, value)| !value.is_null()).collect();
        if self.ranked {
            fields.sort_by_key(|(name, _)| rank(name));
        }
        let mut object = serializer.serialize_map(Some(fields.len()))?;
        for (name, value) in fields {
            object.serialize_entry(name, &GoValue { value, ranked: self.ranked && name != "matchLabels" })?;
        }
        object.end()
    }
}

struct GoValue<'a> {
    value: &'a Value,
    ranked: bool,
}

impl Serialize for GoValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Object(fields) => GoOrder { fields, ranked: self.ranked }.serialize(serializer),
            Value::Array(items) => {
                serializer.collect_seq(items.iter().map(|value| GoValue { value, ranked: self.ranked }))
            }
            plain => plain.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target<'_> = Target {
        ca_bundle: "PEM",
        namespace: "koordinator-system",
        service: "koordinator-webhook-service",
        host: None,
    };

    fn served(path: &str) -> bool {
        path != "/mutate-reservation"
    }

    fn from_the_chart() -> Value {
        let entry = |name: &str, path: &str| {
            json!({
                "name": name, "failurePolicy": "Ignore", "sideEffects": "None",
                "clientConfig": {"caBundle": "Cg==", "service": {"name": "webhook-service", "namespace": "x", "path": path}},
                "rules": [{"resources": ["pods"], "operations": ["CREATE"]}],
                "namespaceSelector": {"matchExpressions": [{"values": ["a"], "key": "k", "operator": "In"}],
                    "matchLabels": {"url": "1", "name": "<2>"}},
            })
        };
        json!({
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "m", "resourceVersion": "7"},
            "webhooks": [entry("mpod.koordinator.sh", "/mutate-pod"), entry("mres.koordinator.sh", "/mutate-reservation")],
        })
    }

    fn apply(configuration: &Value, patch: &Value) -> Value {
        let mut configuration = configuration.clone();
        for (name, value) in patch.as_object().unwrap() {
            match name.as_str() {
                "metadata" => {
                    for (name, value) in value.as_object().unwrap() {
                        configuration["metadata"][name] = value.clone();
                    }
                }
                _ => configuration[name] = value.clone(),
            }
        }
        configuration
    }

    #[test]
    fn entries_get_trust_and_service_and_those_of_switched_off_gates_go() {
        let before = from_the_chart();
        let patch = repair(&before, &TARGET, served).unwrap().unwrap();
        assert_eq!(patch["metadata"]["resourceVersion"], "7", "a list is replaced whole");
        let after = apply(&before, &patch);
        assert_eq!(after["webhooks"].as_array().unwrap().len(), 1);
        assert_eq!(
            after["webhooks"][0]["clientConfig"],
            json!({"caBundle": BASE64.encode("PEM"), "service": {
                "name": "koordinator-webhook-service", "namespace": "koordinator-system", "path": "/mutate-pod"}})
        );
        assert_eq!(repair(&after, &TARGET, served).unwrap(), None, "what is right is left alone");
        assert!(trusts(&after, "PEM") && !trusts(&after, "OTHER") && !trusts(&before, "PEM"));
    }

    #[test]
    fn the_template_has_the_text_that_the_original_writes() {
        let patch = repair(&from_the_chart(), &TARGET, served).unwrap().unwrap();
        let template = patch["metadata"]["annotations"]["template"].as_str().unwrap();
        let first = r#"[{"name":"mpod.koordinator.sh","clientConfig":{"service":{"namespace":"x","name":"webhook-service","path":"/mutate-pod"},"caBundle":"Cg=="},"rules":[{"operations":["CREATE"],"resources":["pods"]}],"failurePolicy":"Ignore","namespaceSelector":{"matchLabels":{"name":"\u003c2\u003e","url":"1"},"matchExpressions":[{"key":"k","operator":"In","values":["a"]}]},"sideEffects":"None"},"#;
        assert!(template.starts_with(first), "{template}");
    }

    #[test]
    fn a_gate_that_is_switched_on_again_brings_its_entries_back() {
        let before = from_the_chart();
        let off = apply(&before, &repair(&before, &TARGET, served).unwrap().unwrap());
        let on = apply(&off, &repair(&off, &TARGET, |_| true).unwrap().unwrap());
        assert_eq!(on["webhooks"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn an_upgrade_that_resets_the_entries_is_repaired_from_the_new_ones() {
        let before = from_the_chart();
        let right = apply(&before, &repair(&before, &TARGET, served).unwrap().unwrap());
        // Helm knows neither the annotation nor our entries: a three-way merge puts the chart's list back.
        let mut upgraded = right.clone();
        upgraded["webhooks"] = before["webhooks"].clone();
        assert_eq!(apply(&upgraded, &repair(&upgraded, &TARGET, served).unwrap().unwrap()), right);
    }

    #[test]
    fn a_host_replaces_the_service() {
        let target = Target { host: Some(("127.0.0.1", 9443)), ..TARGET };
        let before = from_the_chart();
        let after = apply(&before, &repair(&before, &target, served).unwrap().unwrap());
        assert_eq!(
            after["webhooks"][0]["clientConfig"],
            json!({"caBundle": BASE64.encode("PEM"), "url": "https://127.0.0.1:9443/mutate-pod"})
        );
        assert_eq!(repair(&after, &target, served).unwrap(), None);
    }

    #[test]
    fn a_definition_calls_the_server_and_keeps_its_port() {
        let mut definition =
            json!({"metadata": {"name": "d.g", "resourceVersion": "3"}, "spec": {"conversion": {"strategy": "None"}}});
        let patch = repair_conversion(&definition, &TARGET).unwrap();
        assert_eq!(patch["metadata"], json!({"resourceVersion": "3"}));
        definition["spec"]["conversion"] = patch["spec"]["conversion"].clone();
        assert_eq!(definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"], 443);
        assert_eq!(repair_conversion(&definition, &TARGET), None);
        assert!(trusts(&definition, "PEM") && !trusts(&definition, "OTHER"));

        definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] = json!(8443);
        assert_eq!(repair_conversion(&definition, &TARGET), None);
        let renewed = repair_conversion(&definition, &Target { ca_bundle: "NEW", ..TARGET }).unwrap();
        assert_eq!(renewed["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"], 8443);
        let moved = repair_conversion(&definition, &Target { host: Some(("127.0.0.1", 9443)), ..TARGET }).unwrap();
        let client = &moved["spec"]["conversion"]["webhook"]["clientConfig"];
        assert_eq!((&client["url"], &client["service"]), (&json!("https://127.0.0.1:9443/convert"), &Value::Null));
    }

    #[test]
    fn a_template_that_cannot_be_read_says_how_to_go_on() {
        let broken = json!({"kind": "K", "metadata": {"name": "m", "annotations": {"template": "{"}}});
        let error = repair(&broken, &TARGET, served).unwrap_err();
        assert!(error.to_string().starts_with("annotation \"template\" of K m is no list"), "{error}");
    }
}
