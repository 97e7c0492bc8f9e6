//! Which kinds the server knows, and what it knows about each.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use koord_schema::Schema;

use crate::{
    builtins::{self, BuiltinType},
    conversion::{ConversionWebhook, Converted},
    store::{CollectionId, Record},
    strategy::{Plain, Strategy},
};

/// One served version of one resource.
#[derive(Clone)]
pub struct ResourceDef {
    /// API group; empty for core.
    pub group: String,
    /// API version, such as `v1`.
    pub version: String,
    /// Kind, such as `ConfigMap`.
    pub kind: String,
    /// Kind of a list of these.
    pub list_kind: String,
    /// Plural, as it stands in URLs.
    pub plural: String,
    /// Singular.
    pub singular: String,
    /// Short names for kubectl.
    pub short_names: Vec<String>,
    /// Groups of kinds for kubectl.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Verbs of the resource itself, sorted.
    pub verbs: Vec<String>,
    /// Subresources, in the order of discovery.
    pub subresources: Vec<Subresource>,
    /// Fields that field selectors may use beside name and namespace.
    pub selectable_fields: Vec<SelectableField>,
    /// Where the objects of all versions of this resource stand.
    pub collection: CollectionId,
    /// The structure of the kind.
    pub schema: SchemaSource,
    /// The kind's own rules.
    pub strategy: Arc<dyn Strategy>,
    /// Whether a CustomResourceDefinition declares it.
    pub custom: bool,
    /// Whether objects of a custom resource are stored in this version.
    pub is_storage_version: bool,
    /// Whether the definition is being deleted, so that nothing new can be created.
    pub is_terminating: bool,
    /// The warning for clients of a deprecated version.
    pub deprecation: Option<String>,
    /// Where a custom resource with the subresource `scale` keeps its numbers.
    pub scale: Option<ScalePointers>,
    /// Additional printer columns of a custom resource.
    pub columns: Vec<Column>,
    /// The webhook that converts objects of a custom resource; without one, versions differ in `apiVersion` alone.
    pub conversion: Option<Arc<ConversionWebhook>>,
    /// What the webhook has converted for the request that sees this definition.
    pub converted: Converted,
}

/// A subresource and what its requests carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subresource {
    /// Name, such as `status`.
    pub name: String,
    /// Group, version and kind of its body, where they differ from the resource's own.
    pub body: Option<(String, String, String)>,
    /// Verbs, sorted.
    pub verbs: Vec<String>,
}

/// JSON pointers of what the subresource `scale` of a custom resource shows and sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScalePointers {
    /// Replicas that are wanted.
    pub spec_replicas: String,
    /// Replicas that are there.
    pub status_replicas: String,
    /// The label selector as text.
    pub label_selector: Option<String>,
}

/// A field that field selectors may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectableField {
    /// As selectors name it, such as `spec.nodeName`.
    pub name: String,
    /// JSON pointer of the value.
    pub pointer: String,
    /// The value of an absent field.
    pub absent: String,
}

impl SelectableField {
    /// A field whose name is its path.
    pub fn new(name: &str, absent: &str) -> Self {
        Self { name: name.to_owned(), pointer: format!("/{}", name.replace('.', "/")), absent: absent.to_owned() }
    }
}

/// One additional printer column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: String,
    /// OpenAPI format; empty for none.
    pub format: String,
    /// Prose; empty for none.
    pub description: String,
    /// 0 shows it always, more only in wide output.
    pub priority: i32,
    /// JSON path of the value.
    pub json_path: String,
}

/// A schema that is made when it is first asked for.
#[derive(Clone, Default)]
pub struct SchemaSource {
    made: OnceLock<Option<Arc<Schema>>>,
    make: Option<Arc<dyn Fn() -> Option<Arc<Schema>> + Send + Sync>>,
}

// === impl SchemaSource ===

impl SchemaSource {
    /// A schema that is already there.
    pub fn ready(schema: Arc<Schema>) -> Self {
        Self { made: OnceLock::from(Some(schema)), make: None }
    }

    /// A schema made on first use.
    pub fn lazy(make: impl Fn() -> Option<Arc<Schema>> + Send + Sync + 'static) -> Self {
        Self { made: OnceLock::new(), make: Some(Arc::new(make)) }
    }

    /// The schema; none when the kind has no known structure.
    pub fn get(&self) -> Option<&Arc<Schema>> {
        self.made.get_or_init(|| self.make.as_ref().and_then(|make| make())).as_ref()
    }
}

impl std::fmt::Debug for ResourceDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ResourceDef({}, {})", self.api_version(), self.plural)
    }
}

// === impl ResourceDef ===

impl ResourceDef {
    /// A resource with all verbs, neither subresources nor rules of its own.
    pub fn new(
        group: &str,
        version: &str,
        kind: &str,
        plural: &str,
        namespaced: bool,
        collection: CollectionId,
    ) -> Self {
        let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced,
            verbs: verbs.map(ToOwned::to_owned).to_vec(),
            subresources: Vec::new(),
            selectable_fields: Vec::new(),
            collection,
            schema: SchemaSource::default(),
            strategy: Arc::new(Plain),
            custom: false,
            is_storage_version: true,
            is_terminating: false,
            deprecation: None,
            scale: None,
            columns: Vec::new(),
            conversion: None,
            converted: Converted::default(),
        }
    }

    /// The type of a built-in kind.
    pub fn builtin_type(&self) -> Option<&'static BuiltinType> {
        if self.custom { None } else { builtins::kind(&self.group, &self.version, &self.kind) }
    }

    /// Where the `scale` subresource reads and writes; none without one.
    pub fn scale_paths(&self) -> Option<ScalePointers> {
        self.subresource("scale")?;
        Some(self.scale.clone().unwrap_or_else(|| ScalePointers {
            spec_replicas: "/spec/replicas".to_owned(),
            status_replicas: "/status/replicas".to_owned(),
            label_selector: Some("/spec/selector".to_owned()),
        }))
    }

    /// Whether an object that is stored like this must be converted by the webhook, and is not yet.
    pub fn lacks_conversion(&self, record: &Record) -> bool {
        self.conversion.is_some()
            && *record.version != *self.api_version()
            && self.converted.get(record.revision).is_none()
    }

    /// Whether `api_version` is this definition's.
    pub fn is_api_version(&self, api_version: &str) -> bool {
        match api_version.split_once('/') {
            Some((group, version)) => group == self.group && version == self.version,
            None => self.group.is_empty() && api_version == self.version,
        }
    }

    /// `v1` or `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The key of an object in its collection.
    pub fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// What all keys of a namespace, or of the whole kind, start with.
    pub fn key_prefix(&self, namespace: &str) -> String {
        if self.namespaced && !namespace.is_empty() { format!("{namespace}/") } else { String::new() }
    }

    /// Whether the resource itself has this verb.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }
}

/// Every kind that is served.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    definitions: BTreeMap<(String, String, String), Arc<ResourceDef>>,
    generation: u64,
}

// === impl Registry ===

impl Registry {
    /// Serves a resource, instead of an older definition of it when there is one.
    pub fn insert(&mut self, definition: ResourceDef) -> Arc<ResourceDef> {
        let key = (definition.group.clone(), definition.version.clone(), definition.plural.clone());
        let definition = Arc::new(definition);
        self.definitions.insert(key, Arc::clone(&definition));
        self.generation += 1;
        definition
    }

    /// Stops serving every version of a resource.
    pub fn remove(&mut self, group: &str, plural: &str) {
        self.definitions.retain(|_, definition| definition.group != group || definition.plural != plural);
        self.generation += 1;
    }

    /// Changes whenever the set of kinds does; caches of discovery and OpenAPI are made for one generation.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The definition of one version of a resource.
    pub fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<ResourceDef>> {
        self.definitions.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The definition of a kind.
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<ResourceDef>> {
        self.iter().find(|known| known.group == group && known.version == version && known.kind == kind)
    }

    /// Any served version of a resource.
    pub fn any_version(&self, group: &str, plural: &str) -> Option<&Arc<ResourceDef>> {
        self.iter().find(|known| known.group == group && known.plural == plural)
    }

    /// The version of a resource in which an object is stored, or another where that is not served.
    pub fn storing(&self, collection: CollectionId, record: &Record) -> Option<&Arc<ResourceDef>> {
        let of_collection = || self.iter().filter(|known| known.collection == collection);
        of_collection().find(|known| known.is_api_version(&record.version)).or_else(|| of_collection().next())
    }

    /// All definitions, by group, version and plural.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ResourceDef>> {
        self.definitions.values()
    }

    /// Whether anything is served in the group version.
    pub fn serves(&self, group: &str, version: &str) -> bool {
        self.iter().any(|known| known.group == group && known.version == version)
    }
}
