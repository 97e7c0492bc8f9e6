//! Keeps the two webhook configurations right, and the definitions of kinds that the server converts: pure functions of
//! what is there and what is served.
//!
//! What a chart or a user wrote stays in an annotation; every entry that calls this server is derived from it afresh. So
//! a gate that is switched off removes its entries, switching it on brings them back, and an upgrade that resets the
//! entries is repaired. Entries that call another server are left as they are.

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

/// The name of the match condition that keeps writes of the installation's own programs from an advisory webhook.
const BY_OTHERS: &str = "not-by-this-installation";

/// How long API servers wait for an advisory webhook: what is admitted in any case is not held up.
const ADVISORY_TIMEOUT_SECONDS: u8 = 3;

/// How a path is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// By nobody: its entries go.
    No,
    /// What is denied is refused.
    Enforced,
    /// Nothing is refused: its entries are as [`advise`] makes them.
    Advisory,
}

impl From<bool> for Serving {
    /// Whether somebody answers.
    fn from(served: bool) -> Self {
        if served { Self::Enforced } else { Self::No }
    }
}

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

/// Which entries call this server.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    /// What they shall point at.
    pub target: &'a Target<'a>,
    /// Names of entries that declare a Service or a URL of their own. Another Service in any other entry is a wrong name of
    /// this server's.
    pub elsewhere: &'a [&'a str],
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

// === impl Called ===

impl Called<'_> {
    /// Whether an entry calls this server: its Service, or a URL whose host its certificate is for.
    fn by(self, entry: &Value) -> bool {
        match entry.pointer("/clientConfig/service").filter(|service| service.is_object()) {
            Some(service) => self.names(service) || !self.elsewhere.contains(&text(entry, "/name")),
            None => self.at(text(entry, "/clientConfig/url")),
        }
    }

    fn names(self, service: &Value) -> bool {
        (text(service, "/namespace"), text(service, "/name")) == (self.target.namespace, self.target.service)
    }

    fn at(self, url: &str) -> bool {
        let Target { namespace, service, host, .. } = *self.target;
        let url = url.parse::<http::Uri>().ok();
        let called = url.as_ref().and_then(http::Uri::host);
        called.is_some_and(|called| match host {
            Some((host, _)) => called == host,
            None => called == format!("{service}.{namespace}.svc"),
        })
    }
}

/// The JSON merge patch that makes a configuration right; none when it is. `served` says how a path is answered, or whether it is.
pub fn repair<S: Into<Serving>>(
    configuration: &Value,
    target: &Target<'_>,
    served: impl Fn(&str) -> S,
) -> Result<Option<Value>, ConfigurationError> {
    repair_called(configuration, Called { target, elsewhere: &[] }, served)
}

/// As [`repair`], where some entries may declare that they call another server.
pub fn repair_called<S: Into<Serving>>(
    configuration: &Value,
    called: Called<'_>,
    served: impl Fn(&str) -> S,
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
    let wanted = entries(&template, &current, called, |path| served(path).into());

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

/// The bundles, in base64, by which a configuration or a definition trusts this server, with the name of what calls.
pub fn bundles<'a>(object: &'a Value, called: Called<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let entries = object.get("webhooks").and_then(Value::as_array).into_iter().flatten();
    let entries = entries.filter(move |entry| called.by(entry));
    let entries = entries.map(|entry| (text(entry, "/name"), text(entry, "/clientConfig/caBundle")));
    let conversion = object.pointer("/spec/conversion").map(|conversion| {
        let bundle = text(conversion, "/webhook/clientConfig/caBundle");
        (text(object, "/metadata/name"), bundle)
    });
    entries.chain(conversion)
}

/// Whether everything in a configuration or a definition that calls this server trusts exactly its authorities.
pub fn trusts(object: &Value, called: Called<'_>) -> bool {
    let wanted = BASE64.encode(called.target.ca_bundle);
    bundles(object, called).all(|(_, bundle)| bundle == wanted)
}

/// The entries as they shall be: those of the template that call this server, and those that call another as they are
/// now.
fn entries(
    template: &[Map<String, Value>],
    current: &Value,
    called: Called<'_>,
    served: impl Fn(&str) -> Serving,
) -> Value {
    let now = || current.as_array().into_iter().flatten();
    let kept = template.iter().filter_map(|entry| {
        let entry = Value::Object(entry.clone());
        if called.by(&entry) { Some(entry) } else { now().find(|now| now["name"] == entry["name"]).cloned() }
    });
    let is_known = |entry: &Value| template.iter().any(|known| known.get("name") == entry.get("name"));
    let added = now().filter(|entry| !called.by(entry) && !is_known(entry)).cloned();
    let wanted = |entry: Value| if called.by(&entry) { entry_for(entry, called.target, &served) } else { Some(entry) };
    kept.chain(added).filter_map(wanted).collect()
}

/// An entry that calls this server as it shall be; none when nobody answers on its path.
fn entry_for(mut entry: Value, target: &Target<'_>, served: impl Fn(&str) -> Serving) -> Option<Value> {
    let path = path_of(&entry)?;
    match served(&path) {
        Serving::No => return None,
        Serving::Enforced => {}
        Serving::Advisory => advise(&mut entry, target.namespace),
    }
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

/// Makes an entry one that refuses nothing: API servers go on without an answer, do not wait long for one, and do not ask about writes of
/// ServiceAccounts of the installation's namespace. What these write for each node or pod of a large cluster costs no review then.
pub fn advise(entry: &mut Value, namespace: &str) {
    entry["failurePolicy"] = "Ignore".into();
    let timeout = entry["timeoutSeconds"].as_u64().unwrap_or(u64::MAX).min(ADVISORY_TIMEOUT_SECONDS.into());
    entry["timeoutSeconds"] = timeout.into();
    let mut conditions = entry["matchConditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["name"] != BY_OTHERS);
    conditions.push(json!({
        "name": BY_OTHERS,
        "expression": format!("!('system:serviceaccounts:{namespace}' in request.userInfo.groups)"),
    }));
    entry["matchConditions"] = conditions.into();
}

/// Whether an API server of this version (the body of `/version`) knows match conditions; none where the body does not say.
pub(crate) fn knows_match_conditions(version: &Value) -> Option<bool> {
    let number = |field: &str| {
        let text = version[field].as_str()?;
        text.trim_end_matches(|last: char| !last.is_ascii_digit()).parse::<u32>().ok()
    };
    Some((number("major")?, number("minor")?) >= (1, 28))
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

/// An object whose fields are written in the order of the fields of Go's types, so that programs in either language find the text
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
mod tests;
