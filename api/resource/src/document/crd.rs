//! The CustomResourceDefinition of a declared kind.

mod descriptions;

use koord_schema::{
    Schema as Node,
    field::{Errors, Path},
    structural::legality,
};
use serde_json::{Map, Value, json};

pub use descriptions::Descriptions;

use super::{WebhookService, older};
use crate::{
    Resource, ResourceInfo,
    convert::{CONVERSION_REVIEW_VERSIONS, CONVERT_PATH},
    declare::{Emit, Profile, Schema, object, property, text},
    resource::{Column, Scope},
};

/// The generator whose structure the compatible profile keeps.
const GENERATOR: (&str, &str) = ("controller-gen.kubebuilder.io/version", "v0.20.1");

/// One version of a declared kind: its identity and its schema. Constant, so that kinds can stand in a table.
#[derive(Clone, Copy)]
pub struct Declared {
    /// Identity and presentation.
    pub info: ResourceInfo,
    schema: fn(Emit) -> Node,
    /// Whether fields look as they did in this version; those of the newest one look as they are declared.
    is_older: bool,
}

impl Declared {
    /// The declaration that the derives made for a type.
    pub const fn of<T: Resource + Schema>() -> Self {
        Declared { info: T::INFO, schema: T::schema, is_older: false }
    }

    /// An older version of the same declaration; its fields look as they did.
    ///
    /// It is served and not stored, unless the type says otherwise: `#[koord(older(version = "v1alpha1", storage))]`.
    #[must_use]
    pub const fn older(self, version: &'static str) -> Self {
        let served = self.info.served_in(version);
        Declared { info: ResourceInfo { version, served, ..self.info }, is_older: true, ..self }
    }

    /// A document of this version.
    fn emit(&self, profile: Profile) -> Emit {
        let cx = Emit::new(profile);
        if self.is_older { cx.at_version(self.info.version) } else { cx }
    }

    /// The declared fields, as they look in this version.
    fn fields(&self, cx: Emit) -> Node {
        let mut schema = (self.schema)(cx);
        if self.is_older {
            older::name_list_keys(&mut schema);
        }
        schema
    }

    /// The schema of the declared fields alone, with or without the rules that only admission enforces.
    pub(super) fn rules(&self, admission: bool) -> Node {
        let cx = self.emit(Profile::Compatible);
        self.fields(if admission { cx.with_admission() } else { cx })
    }

    /// What an API server would refuse in the schema, and what could not be written as one: the types that
    /// `#[koord(schemars)]` brings are known only at run time. Call it in a test of the type.
    pub fn check(&self, profile: Profile) -> Errors {
        let at = Path::root("spec");
        let at = at.child("validation");
        let at = at.child("openAPIV3Schema");
        let schema = self.schema(profile);
        let mut errors = Errors::new();
        schema.check_structural(&Path::root(self.info.kind), &mut errors);
        if errors.is_empty() {
            match serde_json::to_value(&schema) {
                Ok(document) => errors = legality::check(&document, &at).errors,
                Err(error) => errors.invalid(&at, "", error.to_string()),
            }
        }
        errors
    }

    /// The schema of whole objects, with the fields that every object has.
    pub fn schema(&self, profile: Profile) -> Node {
        let mut schema = self.fields(self.emit(profile));
        let mut root = object("");
        property(&mut root, "apiVersion", false, text("API version of the object, as group/version."));
        property(&mut root, "kind", false, text("Kind of the object."));
        property(&mut root, "metadata", false, object(""));
        schema.properties.shift_remove("metadata");
        schema.required.retain(|name| name != "metadata");
        root.properties.append(&mut schema.properties);
        Node { properties: root.properties, ..schema }
    }
}

/// The CustomResourceDefinition of a kind whose objects a webhook server converts between its versions.
///
/// The authority of the server's certificate is left out: the server itself puts it there, and until then clients can
/// use the stored version alone. A definition with one version needs no conversion and gets none.
pub fn converted_resource_definition(versions: &[Declared], profile: Profile, service: &WebhookService<'_>) -> Value {
    let mut definition = custom_resource_definition(versions, profile);
    if listed(versions).count() > 1 {
        definition["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {
                    "service": {"name": service.name, "namespace": service.namespace, "path": CONVERT_PATH},
                },
                "conversionReviewVersions": CONVERSION_REVIEW_VERSIONS,
            },
        });
    }
    sorted(definition)
}

/// The CustomResourceDefinition of a kind with one or more versions.
///
/// Without a webhook, the API server turns one version into another by changing `apiVersion` alone: see
/// [`converted_resource_definition`] for versions whose fields differ.
/// Names, scope and metadata are those of the stored version; keys are sorted, as controller-gen prints them.
/// Versions that are skipped are left out. A list without others gives `null`.
///
/// All fields have their descriptions; [`Descriptions::kept_in`] takes them out again.
pub fn custom_resource_definition(versions: &[Declared], profile: Profile) -> Value {
    let stored = listed(versions).find(|version| version.info.served.storage);
    let Some(main) = stored.or_else(|| listed(versions).next()) else { return Value::Null };
    let info = &main.info;
    let mut metadata = Map::new();
    let mut annotations = text_map(info.annotations);
    if profile == Profile::Compatible {
        annotations.entry(GENERATOR.0).or_insert_with(|| json!(GENERATOR.1));
    }
    metadata.insert("name".to_owned(), json!(format!("{}.{}", info.plural, info.group)));
    insert_some(&mut metadata, "annotations", Value::Object(annotations));
    insert_some(&mut metadata, "labels", Value::Object(text_map(info.labels)));
    let mut names = Map::new();
    names.insert("kind".to_owned(), json!(info.kind));
    names.insert("listKind".to_owned(), json!(info.list_kind));
    names.insert("plural".to_owned(), json!(info.plural));
    names.insert("singular".to_owned(), json!(info.singular));
    insert_some(&mut names, "shortNames", json!(with_extras(info.short_names, info.extras.short_names, profile)));
    insert_some(&mut names, "categories", json!(with_extras(info.categories, info.extras.categories, profile)));
    sorted(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": info.group,
            "names": names,
            "scope": match info.scope {
                Scope::Cluster => "Cluster",
                Scope::Namespaced => "Namespaced",
            },
            "versions": listed(versions).map(|declared| version(declared, profile)).collect::<Vec<_>>(),
        },
    }))
}

/// The versions that a definition has.
pub(super) fn listed(versions: &[Declared]) -> impl Iterator<Item = &Declared> {
    versions.iter().filter(|version| !version.info.served.skipped)
}

fn version(declared: &Declared, profile: Profile) -> Value {
    let info = &declared.info;
    let mut version = Map::new();
    version.insert("name".to_owned(), json!(info.version));
    version.insert("served".to_owned(), json!(info.served.served));
    version.insert("storage".to_owned(), json!(info.served.storage));
    if let Some(warning) = info.served.deprecated {
        version.insert("deprecated".to_owned(), json!(true));
        insert_some(&mut version, "deprecationWarning", json!(warning));
    }
    let schema = declared.schema(profile);
    let cx = declared.emit(profile);
    // Paths are written for the newest version. What an older one has no field for is left out of it.
    let path = |path: &str| if declared.is_older { older::path(&schema, path) } else { Some(path.to_owned()) };
    let columns = with_extras(info.columns, info.extras.columns, profile);
    let columns = columns.iter().filter(|shown| cx.is_among(shown.versions));
    let columns = columns.filter_map(|shown| Some(column(shown, &path(shown.json_path)?)));
    insert_some(&mut version, "additionalPrinterColumns", columns.collect());
    let selectable = with_extras(info.selectable_fields, info.extras.selectable_fields, profile);
    let selectable = selectable.iter().filter(|field| cx.is_among(field.versions));
    let selectable = selectable.filter_map(|field| path(field.json_path));
    let selectable: Value = selectable.map(|path| json!({"jsonPath": path})).collect();
    insert_some(&mut version, "selectableFields", selectable);
    let mut subresources = Map::new();
    if info.status.is_some_and(|versions| cx.is_among(versions)) {
        subresources.insert("status".to_owned(), json!({}));
    }
    if let Some(scale) = info.scale.iter().find(|scale| cx.is_among(scale.versions))
        && let (Some(spec), Some(status)) = (path(scale.spec_replicas_path), path(scale.status_replicas_path))
    {
        let mut paths = json!({"specReplicasPath": spec, "statusReplicasPath": status});
        if let Some(path) = scale.label_selector_path.and_then(path) {
            paths["labelSelectorPath"] = json!(path);
        }
        subresources.insert("scale".to_owned(), paths);
    }
    insert_some(&mut version, "subresources", Value::Object(subresources));
    let schema = serde_json::to_value(sort_required(schema)).unwrap_or_default();
    version.insert("schema".to_owned(), json!({ "openAPIV3Schema": schema }));
    Value::Object(version)
}

fn column(column: &Column, path: &str) -> Value {
    let mut shown = Map::new();
    shown.insert("name".to_owned(), json!(column.name));
    shown.insert("type".to_owned(), json!(column.type_));
    shown.insert("jsonPath".to_owned(), json!(path));
    insert_some(&mut shown, "description", json!(column.description));
    insert_some(&mut shown, "format", json!(column.format));
    if column.priority != 0 {
        shown.insert("priority".to_owned(), json!(column.priority));
    }
    Value::Object(shown)
}

fn with_extras<T: Copy>(base: &[T], extras: &[T], profile: Profile) -> Vec<T> {
    let extras = if profile == Profile::Hardened { extras } else { &[] };
    base.iter().chain(extras).copied().collect()
}

fn text_map(pairs: &[(&str, &str)]) -> Map<String, Value> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
}

fn insert_some(map: &mut Map<String, Value>, key: &str, value: Value) {
    let empty = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    if !empty {
        map.insert(key.to_owned(), value);
    }
}

/// `required` is a set; it is printed sorted.
fn sort_required(mut schema: Node) -> Node {
    schema.required.sort();
    schema.properties = schema.properties.into_iter().map(|(name, schema)| (name, sort_required(schema))).collect();
    schema.items = schema.items.map(|items| Box::new(sort_required(*items)));
    if let Some(koord_schema::AdditionalProperties::Schema(values)) = schema.additional_properties {
        schema.additional_properties =
            Some(koord_schema::AdditionalProperties::Schema(Box::new(sort_required(*values))));
    }
    schema
}

/// Sorts the members of all objects, whatever map serde_json was built with.
pub(super) fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> = members.into_iter().collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().map(|(name, member)| (name, sorted(member))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        scalar => scalar,
    }
}
