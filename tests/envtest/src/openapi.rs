//! `/openapi/v3`: the index, and one document per group version; `/openapi/v2`: all of them in one.

pub mod v2;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::builtins;
use crate::registry::{Registry, ResourceDef};

const REFERENCE: &str = "#/components/schemas/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const OBJECT_API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const OBJECT_KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const OBJECT_METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// A published document.
#[derive(Debug)]
pub struct Document {
    /// Changes whenever the text does.
    pub hash: String,
    text: OnceLock<Arc<str>>,
    path: String,
}

/// All documents, made for one generation of the registry.
#[derive(Debug, Default)]
pub struct Documents {
    generation: Option<u64>,
    by_path: BTreeMap<String, Document>,
    merged: Option<Merged>,
}

/// The document of version 2 in both of its forms.
#[derive(Clone, Debug)]
pub struct Merged {
    /// JSON text.
    pub json: Bytes,
    /// The protobuf message.
    pub protobuf: Bytes,
    /// Changes whenever the document does.
    pub hash: String,
}

// === impl Documents ===

impl Documents {
    /// Makes the documents of custom resources anew where definitions changed.
    pub fn refresh(&mut self, registry: &Registry) {
        if self.generation == Some(registry.generation()) {
            return;
        }
        self.generation = Some(registry.generation());
        self.merged = None;
        if self.by_path.is_empty() {
            for path in builtins::openapi_documents() {
                let hash = hash(&[builtins::openapi_digest(), path]);
                self.by_path.insert(path.to_owned(), Document { hash, text: OnceLock::new(), path: path.to_owned() });
            }
        }
        let mut custom: BTreeMap<String, Vec<&Arc<ResourceDef>>> = BTreeMap::new();
        for definition in registry.iter().filter(|definition| definition.custom) {
            custom.entry(format!("apis/{}", definition.api_version())).or_default().push(definition);
        }
        let built_in: BTreeSet<&str> = builtins::openapi_documents().collect();
        self.by_path.retain(|path, _| built_in.contains(path.as_str()) || custom.contains_key(path));
        for (path, definitions) in custom {
            if built_in.contains(path.as_str()) {
                continue;
            }
            let text = custom_document(&definitions);
            let hash = hash(&[&text]);
            let document = Document { hash, text: OnceLock::from(Arc::from(text)), path: path.clone() };
            self.by_path.insert(path, document);
        }
    }

    /// `/openapi/v3`.
    pub fn index(&self) -> Value {
        let paths = self.by_path.iter().map(|(path, document)| {
            let url = format!("/openapi/v3/{path}?hash={}", document.hash);
            (path.clone(), json!({"serverRelativeURL": url}))
        });
        json!({"paths": paths.collect::<serde_json::Map<_, _>>()})
    }

    /// `/openapi/v2`, made when it is asked for.
    pub fn merged(&mut self) -> &Merged {
        self.merged.get_or_insert_with(|| {
            let document = v2::document(self.by_path.values().map(|document| &**document.text()));
            let json = document.to_string();
            let hash = hash(&[&json]);
            Merged { json: Bytes::from(json), protobuf: Bytes::from(v2::protobuf(&document)), hash }
        })
    }

    /// The document of a path such as `apis/apps/v1`.
    pub fn get(&self, path: &str) -> Option<&Document> {
        self.by_path.get(path)
    }
}

// === impl Document ===

impl Document {
    /// The whole document as JSON text.
    pub fn text(&self) -> &Arc<str> {
        self.text.get_or_init(|| {
            let paths = builtins::openapi_paths(&self.path).unwrap_or_else(|| "{}".to_owned());
            Arc::from(document(&paths, &BTreeMap::new()))
        })
    }
}

fn hash(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    digest.finalize().iter().fold(String::new(), |text, byte| format!("{text}{byte:02X}"))
}

/// Puts paths together with every definition that they lead to.
fn document(paths: &str, own: &BTreeMap<String, String>) -> String {
    let mut packages: BTreeMap<String, String> = BTreeMap::new();
    let mut schemas: BTreeMap<String, String> = BTreeMap::new();
    let mut wanted: Vec<String> =
        references(paths).chain(own.keys().map(String::as_str)).map(ToOwned::to_owned).collect();
    while let Some(name) = wanted.pop() {
        if schemas.contains_key(&name) {
            continue;
        }
        let text = own.get(&name).cloned().or_else(|| {
            let (package, _) = name.rsplit_once('.')?;
            let package = packages
                .entry(package.to_owned())
                .or_insert_with(|| builtins::openapi_package(package).unwrap_or_else(|| "{}".to_owned()));
            let definitions: BTreeMap<&str, &RawValue> = serde_json::from_str(package).ok()?;
            definitions.get(name.as_str()).map(|raw| raw.get().to_owned())
        });
        let Some(text) = text else { continue };
        wanted.extend(references(&text).map(ToOwned::to_owned));
        schemas.insert(name, text);
    }
    let schemas: Vec<String> = schemas.iter().map(|(name, text)| format!("{}:{text}", json!(name))).collect();
    let security = r#"{"BearerToken":{"in":"header","name":"authorization","type":"apiKey"}}"#;
    format!(
        r#"{{"components":{{"schemas":{{{}}},"securitySchemes":{security}}},"info":{{"title":"Kubernetes","version":"1.34"}},"openapi":"3.0.0","paths":{paths}}}"#,
        schemas.join(",")
    )
}

/// The names of all definitions that a text refers to.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split(REFERENCE).skip(1).map(|rest| rest.split('"').next().unwrap_or_default())
}

fn custom_document(definitions: &[&Arc<ResourceDef>]) -> String {
    let mut schemas = BTreeMap::new();
    let mut paths = serde_json::Map::new();
    for definition in definitions {
        schemas.insert(definition_name(definition, &definition.kind), object_schema(definition).to_string());
        schemas.insert(definition_name(definition, &definition.list_kind), list_schema(definition).to_string());
        add_paths(&mut paths, definition);
    }
    document(&Value::Object(paths).to_string(), &schemas)
}

/// `com.example.v1.Widget`: the group turned around, version, kind.
fn definition_name(definition: &ResourceDef, kind: &str) -> String {
    let group: Vec<&str> = definition.group.rsplit('.').collect();
    format!("{}.{}.{kind}", group.join("."), definition.version)
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{REFERENCE}{name}")})
}

fn kind_of(definition: &ResourceDef, kind: &str) -> Value {
    json!({"group": definition.group, "version": definition.version, "kind": kind})
}

fn object_schema(definition: &ResourceDef) -> Value {
    let schema = definition.schema.get();
    let mut schema = schema.and_then(|schema| serde_json::to_value(schema.as_ref()).ok()).unwrap_or_else(|| json!({}));
    if !schema.is_object() {
        schema = json!({});
    }
    schema["type"] = json!("object");
    schema["properties"]["apiVersion"] = json!({"type": "string", "description": OBJECT_API_VERSION});
    schema["properties"]["kind"] = json!({"type": "string", "description": OBJECT_KIND});
    schema["properties"]["metadata"] =
        json!({"allOf": [reference(&format!("{META}.ObjectMeta"))], "description": OBJECT_METADATA});
    schema["x-kubernetes-group-version-kind"] = json!([kind_of(definition, &definition.kind)]);
    schema
}

fn list_schema(definition: &ResourceDef) -> Value {
    let items = reference(&definition_name(definition, &definition.kind));
    json!({
        "type": "object",
        "description": format!("{} is a list of {}", definition.list_kind, definition.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": OBJECT_API_VERSION},
            "kind": {"type": "string", "description": OBJECT_KIND},
            "metadata": {"allOf": [reference(&format!("{META}.ListMeta"))]},
            "items": {"type": "array", "items": items, "description": format!("List of {}.", definition.plural)},
        },
        "x-kubernetes-group-version-kind": [kind_of(definition, &definition.list_kind)],
    })
}

const LIST_PARAMETERS: [(&str, &str); 10] = [
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE_PARAMETERS: [(&str, &str); 3] =
    [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const DELETE_PARAMETERS: [(&str, &str); 5] = [
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

fn parameters(place: &str, names: &[(&str, &str)]) -> Vec<Value> {
    let one = |(name, type_): &(&str, &str)| {
        let mut parameter = json!({"in": place, "name": name, "schema": {"type": type_, "uniqueItems": true}});
        if place == "path" {
            parameter["required"] = json!(true);
        }
        parameter
    };
    names.iter().map(one).collect()
}

fn add_paths(paths: &mut serde_json::Map<String, Value>, definition: &ResourceDef) {
    let base = format!("/apis/{}", definition.api_version());
    let plural = &definition.plural;
    let scope = if definition.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{base}{scope}/{plural}");
    let mut place = vec![];
    if definition.namespaced {
        place = parameters("path", &[("namespace", "string")]);
        let mut item = json!({"get": operation(definition, "get", "list", &definition.list_kind, true)});
        item["parameters"] = json!(parameters("query", &LIST_PARAMETERS));
        paths.insert(format!("{base}/{plural}"), item);
    }
    let mut shared = place.clone();
    shared.extend(parameters("query", &[("pretty", "string")]));
    let mut item = json!({"parameters": shared});
    for (method, action) in [("get", "list"), ("post", "post"), ("delete", "deletecollection")] {
        let response = if action == "list" { &definition.list_kind } else { &definition.kind };
        item[method] = operation(definition, method, action, response, definition.namespaced);
    }
    paths.insert(collection.clone(), item);

    let mut shared = place;
    shared.extend(parameters("path", &[("name", "string")]));
    shared.extend(parameters("query", &[("pretty", "string")]));
    let suffixes = definition.subresources.iter().map(|sub| format!("/{}", sub.name));
    for suffix in std::iter::once(String::new()).chain(suffixes) {
        let mut item = json!({"parameters": shared});
        let methods: &[&str] =
            if suffix.is_empty() { &["get", "put", "patch", "delete"] } else { &["get", "put", "patch"] };
        for method in methods {
            item[*method] = operation(definition, method, method, &definition.kind, definition.namespaced);
        }
        paths.insert(format!("{collection}/{{name}}{suffix}"), item);
    }
}

fn operation(definition: &ResourceDef, method: &str, action: &str, response: &str, namespaced: bool) -> Value {
    let (verb, query): (&str, &[(&str, &str)]) = match action {
        "list" => ("list", &LIST_PARAMETERS),
        "post" => ("create", &WRITE_PARAMETERS),
        "put" => ("replace", &WRITE_PARAMETERS),
        "patch" => ("patch", &WRITE_PARAMETERS),
        "delete" => ("delete", &DELETE_PARAMETERS),
        "deletecollection" => ("deletecollection", &DELETE_PARAMETERS),
        _ => ("read", &[]),
    };
    let mut parameters = parameters("query", query);
    if action == "patch" {
        parameters.extend(self::parameters("query", &[("force", "boolean")]));
    }
    let own = reference(&definition_name(definition, &definition.kind));
    let result = match action {
        "delete" | "deletecollection" => reference(&format!("{META}.Status")),
        _ => reference(&definition_name(definition, response)),
    };
    let mut operation = json!({
        "operationId": format!("{verb}{}{}", if namespaced { "Namespaced" } else { "" }, definition.kind),
        "parameters": parameters,
        "responses": {
            "200": {"content": {"application/json": {"schema": result}, "application/yaml": {"schema": result}}},
            "401": {},
        },
        "tags": [format!("{}_{}", definition.group.replace('.', "_"), definition.version)],
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind_of(definition, &definition.kind),
    });
    match method {
        "post" | "put" => {
            operation["requestBody"] = json!({"content": {"*/*": {"schema": own}}, "required": true});
        }
        "patch" => {
            let patch = json!({"schema": reference(&format!("{META}.Patch"))});
            operation["requestBody"] = json!({"required": true, "content": {
                "application/apply-patch+yaml": patch, "application/json-patch+json": patch,
                "application/merge-patch+json": patch,
            }});
        }
        "delete" => {
            let options = json!({"schema": reference(&format!("{META}.DeleteOptions"))});
            operation["requestBody"] = json!({"content": {"*/*": options}});
        }
        _ => {}
    }
    operation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_document_holds_all_that_its_paths_lead_to() {
        let mut documents = Documents::default();
        documents.refresh(&Registry::default());
        let text = documents.get("apis/apps/v1").unwrap().text();
        let document: Value = serde_json::from_str(text).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        assert!(schemas.contains_key("io.k8s.api.core.v1.PodSpec"));
        for name in references(text) {
            assert!(schemas.contains_key(name), "{name}");
        }
        assert!(document["paths"].as_object().unwrap().contains_key("/apis/apps/v1/deployments"));
    }

    #[test]
    fn built_in_types_come_without_prose() {
        let mut documents = Documents::default();
        documents.refresh(&Registry::default());
        let document: Value = serde_json::from_str(documents.get("api/v1").unwrap().text()).unwrap();
        assert_eq!(document["components"]["schemas"]["io.k8s.api.core.v1.Binding"].get("description"), None);
    }

    #[test]
    fn every_document_is_in_the_index_under_its_hash() {
        let mut documents = Documents::default();
        documents.refresh(&Registry::default());
        let index = documents.index();
        let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap();
        assert_eq!(url, format!("/openapi/v3/api/v1?hash={}", documents.get("api/v1").unwrap().hash));
    }
}
