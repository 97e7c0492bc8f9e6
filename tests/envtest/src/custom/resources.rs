//! What an established definition serves.

use std::sync::Arc;
use std::time::Duration;

use koord_schema::Schema;
use koord_schema::cel::Rules;
use koord_schema::field::{Errors, Path};
use koord_schema::json_path::JsonPath;
use koord_schema::structural;
use koord_schema::structural::{defaults, prune};
use serde_json::{Value, json};

use crate::conversion::ConversionWebhook;
use crate::registry::{Column, ResourceDef, SchemaSource, SelectableField, Subresource};
use crate::store::CollectionId;
use crate::strategy::{Generation, StatusKeeps, Strategy};

/// How long the rules of one object may run.
const RULES_TIME: Duration = Duration::from_secs(2);

/// The rules of one version of a custom kind.
struct CustomResource {
    schema: Option<Arc<Schema>>,
    /// The schema of the version that objects are stored in: its defaults are those of an object that is read.
    stored: Option<Arc<Schema>>,
    /// The CEL rules of the schema; their errors were reported when the definition was written.
    rules: Option<Rules>,
    has_status: bool,
    /// Objects may have been stored under another schema, or in another version.
    reshapes: bool,
}

/// The definitions of all versions that are served.
pub(crate) fn served(definition: &Value, collection: CollectionId) -> Vec<ResourceDef> {
    let spec = &definition["spec"];
    let empty = Vec::new();
    let versions = spec["versions"].as_array().unwrap_or(&empty);
    let conversion = ConversionWebhook::of(definition);
    let stored = versions.iter().find(|version| version["storage"] == true).and_then(schema_of);
    let served = versions.iter().filter(|version| version["served"] == true);
    served
        .map(|version| ResourceDef {
            conversion: conversion.clone(),
            ..one(definition, version, stored.clone(), collection)
        })
        .collect()
}

fn schema_of(version: &Value) -> Option<Arc<Schema>> {
    let schema = version.pointer("/schema/openAPIV3Schema")?;
    let schema: Schema = serde_json::from_value(schema.clone()).ok()?;
    Some(Arc::new(schema))
}

fn one(definition: &Value, version: &Value, stored: Option<Arc<Schema>>, collection: CollectionId) -> ResourceDef {
    let (spec, names) = (&definition["spec"], &definition["status"]["acceptedNames"]);
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
    };
    let (group, name, kind) = (text(spec, "group"), text(version, "name"), text(names, "kind"));
    let mut def =
        ResourceDef::new(&group, &name, &kind, &text(names, "plural"), spec["scope"] == "Namespaced", collection);
    def.custom = true;
    def.list_kind = text(names, "listKind");
    def.singular = text(names, "singular");
    def.short_names = texts(&names["shortNames"]);
    def.categories = texts(&names["categories"]);
    // The order in which the API server lists the verbs of custom resources.
    def.verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
        .map(ToOwned::to_owned)
        .to_vec();
    def.is_storage_version = version["storage"] == true;
    def.is_terminating = super::conditions::has_condition(definition, "Terminating");
    def.deprecation = (version["deprecated"] == true).then(|| {
        let warning = version["deprecationWarning"].as_str().map(ToOwned::to_owned);
        warning.unwrap_or_else(|| format!("{group}/{name} {kind} is deprecated"))
    });
    let verbs = ["get", "patch", "update"].map(ToOwned::to_owned).to_vec();
    let subresources = &version["subresources"];
    let has_status = subresources["status"].is_object();
    if subresources["scale"].is_object() {
        let body = ("autoscaling".to_owned(), "v1".to_owned(), "Scale".to_owned());
        def.subresources.push(Subresource { name: "scale".to_owned(), body: Some(body), verbs: verbs.clone() });
        let pointer = |field: &str| {
            let path = subresources["scale"][field].as_str().filter(|path| !path.is_empty())?;
            JsonPath::parse(path).ok()?.to_pointer()
        };
        def.scale =
            pointer("specReplicasPath").zip(pointer("statusReplicasPath")).map(|(spec_replicas, status_replicas)| {
                crate::registry::ScalePointers {
                    spec_replicas,
                    status_replicas,
                    label_selector: pointer("labelSelectorPath"),
                }
            });
    }
    if has_status {
        def.subresources.push(Subresource { name: "status".to_owned(), body: None, verbs });
    }
    let schema = if def.is_storage_version { stored.clone() } else { schema_of(version) };
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    let fields = fields.filter_map(|field| {
        let path = field["jsonPath"].as_str()?;
        let pointer = JsonPath::parse(path).ok()?.to_pointer()?;
        Some(SelectableField { name: path.trim_start_matches('.').to_owned(), pointer, absent: String::new() })
    });
    def.selectable_fields = fields.collect();
    def.columns = version["additionalPrinterColumns"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|column| column_of(column, &text))
        // As in the API server, a path that cannot be read ends the columns.
        .take_while(|column| JsonPath::parse(&column.json_path).is_ok())
        .collect();
    let generation = definition["metadata"]["generation"].as_i64().unwrap_or_default();
    let rules = schema.as_ref().map(|schema| Rules::compile(schema, &Path::root("")).0);
    let strategy = CustomResource { schema: schema.clone(), stored, rules, has_status, reshapes: generation > 1 };
    if let Some(schema) = schema {
        def.schema = SchemaSource::ready(schema);
    }
    def.strategy = Arc::new(strategy);
    def
}

fn column_of(column: &Value, text: &impl Fn(&Value, &str) -> String) -> Column {
    Column {
        name: text(column, "name"),
        type_: text(column, "type"),
        format: text(column, "format"),
        description: text(column, "description"),
        priority: column["priority"].as_i64().and_then(|priority| i32::try_from(priority).ok()).unwrap_or_default(),
        json_path: text(column, "jsonPath"),
    }
}

// === impl CustomResource ===

impl CustomResource {
    fn check(&self, object: &Value, old: Option<&Value>, subresource: &str, errors: &mut Errors) {
        if let Some(schema) = &self.schema {
            let mut found = match old {
                Some(old) if subresource == "status" => structural::validate_status(schema, object, old),
                _ => structural::validate_object(schema, object, old),
            };
            if let Some(rules) = &self.rules {
                rules.evaluate_after(&mut found, object, old, RULES_TIME);
            }
            errors.extend(found);
        }
    }
}

impl Strategy for CustomResource {
    fn status_keeps(&self) -> StatusKeeps {
        StatusKeeps::Metadata
    }

    fn metadata_checks(&self) -> (usize, usize) {
        (2, 2)
    }

    fn generation(&self) -> Generation {
        if self.has_status { Generation::Spec } else { Generation::All }
    }

    fn has_status(&self) -> bool {
        self.has_status
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        self.check(object, None, "", errors);
    }

    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        self.check(new, Some(old), subresource, errors);
    }

    fn converts(&self, from: &str, to: &str) -> bool {
        self.reshapes || from != to
    }

    fn convert(&self, object: &mut Value, _from: &str, to: &str) {
        self.set_stored_defaults(object);
        object["apiVersion"] = json!(to);
        if let Some(schema) = &self.schema {
            prune::prune(schema, object);
        }
    }

    fn set_stored_defaults(&self, object: &mut Value) {
        if let Some(schema) = &self.stored {
            defaults::apply(schema, object);
        }
    }
}
