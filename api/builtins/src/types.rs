//! The types of built-in kinds: fields, formats, defaults, merge keys; inflated one package at a time, on first use.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use koord_schema::typed;

use crate::archive;

/// One node of a built-in type.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Source")]
pub struct BuiltinType {
    /// What the node is.
    pub shape: Shape,
    /// `int32`, `int64`, `date-time`, `byte`, `int-or-string`, …
    pub format: Option<Box<str>>,
    /// The value of an absent field, as the OpenAPI document states it; the zero value of the Go type where it has no other.
    pub default: Option<Value>,
    /// The allowed values.
    pub enumeration: Vec<Value>,
    /// Names of the fields that must be there.
    pub required: Vec<Box<str>>,
    /// How items of a list are distinguished, in server-side apply.
    pub list_type: Option<koord_schema::ListType>,
    /// The fields that identify an item of a `map` list.
    pub list_map_keys: Vec<Box<str>>,
    /// Whether an object is one value, in server-side apply; at a field it counts before what its type says.
    pub map_type: Option<koord_schema::MapType>,
    /// The field that identifies an item, in strategic merge patch.
    pub patch_merge_key: Option<Box<str>>,
    /// `merge`, `replace`, `retainKeys`, as comma-separated list, in strategic merge patch.
    pub patch_strategy: Option<Box<str>>,
}

/// What a [`BuiltinType`] is.
#[derive(Debug, Default)]
pub enum Shape {
    /// Anything: raw JSON.
    #[default]
    Any,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// A string.
    String,
    /// A whole number or a string.
    IntOrString,
    /// A quantity: a string, or a number that is read as one.
    Quantity,
    /// An object with known fields.
    Object(BTreeMap<Box<str>, BuiltinType>),
    /// An object whose field names are data.
    Map(Box<BuiltinType>),
    /// A list.
    List(Box<BuiltinType>),
    /// A type that is defined by name.
    Named(Named),
}

/// A type that is defined by name; its definition is looked up once.
#[derive(Debug)]
pub struct Named {
    /// The full name of the definition.
    pub name: Box<str>,
    definition: OnceLock<Option<&'static BuiltinType>>,
}

/// A schema as the OpenAPI documents write it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    format: Option<Box<str>>,
    default: Option<Value>,
    #[serde(rename = "enum", default)]
    enumeration: Vec<Value>,
    #[serde(default)]
    all_of: Vec<Source>,
    #[serde(default)]
    one_of: Vec<Value>,
    items: Option<Box<BuiltinType>>,
    additional_properties: Option<Value>,
    properties: Option<BTreeMap<Box<str>, BuiltinType>>,
    #[serde(default)]
    required: Vec<Box<str>>,
    #[serde(rename = "x-kubernetes-list-type")]
    list_type: Option<koord_schema::ListType>,
    #[serde(rename = "x-kubernetes-list-map-keys", default)]
    list_map_keys: Vec<Box<str>>,
    #[serde(rename = "x-kubernetes-map-type")]
    map_type: Option<koord_schema::MapType>,
    #[serde(rename = "x-kubernetes-patch-merge-key")]
    patch_merge_key: Option<Box<str>>,
    #[serde(rename = "x-kubernetes-patch-strategy")]
    patch_strategy: Option<Box<str>>,
}

// === impl Source ===

impl Source {
    fn shape(&mut self) -> Shape {
        let reference = self.reference.take().or_else(|| self.all_of.first_mut()?.reference.take());
        if let Some(reference) = reference {
            let name = reference.rsplit('/').next().unwrap_or_default().into();
            return Shape::Named(Named { name, definition: OnceLock::new() });
        }
        if self.format.as_deref() == Some("int-or-string") {
            return Shape::IntOrString;
        }
        match self.kind.as_deref() {
            Some("boolean") => Shape::Boolean,
            Some("integer") => Shape::Integer,
            Some("number") => Shape::Number,
            Some("string") => Shape::String,
            Some("array") => Shape::List(self.items.take().unwrap_or_default()),
            Some("object") => match (self.properties.take(), self.additional_properties.take()) {
                (Some(fields), _) => Shape::Object(fields),
                (None, Some(values)) => Shape::Map(Box::new(serde_json::from_value(values).unwrap_or_default())),
                (None, None) => Shape::Any,
            },
            _ if !self.one_of.is_empty() => Shape::Quantity,
            _ => Shape::Any,
        }
    }
}

// === impl BuiltinType ===

impl From<Source> for BuiltinType {
    fn from(mut source: Source) -> Self {
        Self {
            shape: source.shape(),
            format: source.format,
            default: source.default,
            enumeration: source.enumeration,
            required: source.required,
            list_type: source.list_type,
            list_map_keys: source.list_map_keys,
            map_type: source.map_type,
            patch_merge_key: source.patch_merge_key,
            patch_strategy: source.patch_strategy,
        }
    }
}

impl BuiltinType {
    /// The node itself, or the definition that it names.
    pub fn resolve(&self) -> &Self {
        match &self.shape {
            Shape::Named(named) => named.definition.get_or_init(|| definition(&named.name)).unwrap_or(self),
            _ => self,
        }
    }

    /// The type of a field, of a map's values, or of a list's items (which have no name of their own).
    pub fn field(&self, name: &str) -> Option<&Self> {
        match &self.resolve().shape {
            Shape::Object(fields) => fields.get(name),
            Shape::Map(values) => Some(values),
            _ => None,
        }
    }

    /// The type of a list's items.
    pub fn items(&self) -> Option<&Self> {
        match &self.resolve().shape {
            Shape::List(items) => Some(items),
            _ => None,
        }
    }

    /// Whether an object is one value in server-side apply: as the field says, or else its type.
    pub fn is_atomic(&self) -> bool {
        self.map_type.or(self.resolve().map_type) == Some(koord_schema::MapType::Atomic)
    }
}

/// The only times that are written even when they are not set; they belong to Events.
const EVENT_TIMES: [&str; 5] =
    ["eventTime", "firstTimestamp", "lastTimestamp", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"];

impl typed::TypeNode for &'static BuiltinType {
    fn shape(&self) -> typed::Shape {
        let resolved = self.resolve();
        match &resolved.shape {
            Shape::Any | Shape::Named(_) => typed::Shape::Untyped,
            Shape::Boolean => typed::Shape::Boolean,
            Shape::Integer | Shape::Number => typed::Shape::Number,
            Shape::String => typed::Shape::String,
            Shape::IntOrString | Shape::Quantity => typed::Shape::Scalar,
            Shape::Object(_) | Shape::Map(_) if self.is_atomic() => typed::Shape::AtomicObject,
            Shape::Object(_) | Shape::Map(_) => typed::Shape::Object,
            Shape::List(_) => match self.list_type.or(resolved.list_type) {
                None | Some(koord_schema::ListType::Atomic) => typed::Shape::AtomicList,
                Some(koord_schema::ListType::Set) => typed::Shape::SetList,
                Some(koord_schema::ListType::Map) => typed::Shape::KeyedList,
            },
        }
    }

    fn field(&self, name: &str) -> Option<Self> {
        match &self.resolve().shape {
            Shape::Any => Some(*self),
            _ => BuiltinType::field(self, name),
        }
    }

    fn declares(&self, name: &str) -> bool {
        matches!(&self.resolve().shape, Shape::Object(fields) if fields.contains_key(name))
    }

    fn zero(&self) -> Value {
        let resolved = self.resolve();
        let Shape::Object(fields) = &resolved.shape else { return Value::Object(serde_json::Map::new()) };
        let zero = fields.iter().filter_map(|(name, field)| {
            let value = match &field.default {
                Some(Value::Object(_)) if matches!(field.resolve().shape, Shape::Object(_)) => {
                    typed::TypeNode::zero(&field)
                }
                Some(default) => default.clone(),
                None if resolved.required.contains(name) || EVENT_TIMES.contains(&&**name) => Value::Null,
                None => return None,
            };
            Some((name.to_string(), value))
        });
        Value::Object(zero.collect())
    }

    fn item(&self) -> Option<Self> {
        match &self.resolve().shape {
            Shape::Any => Some(*self),
            _ => self.items(),
        }
    }

    fn list_keys(&self) -> Vec<typed::ListKey<'_>> {
        let item = self.items();
        let keys = self.list_map_keys.iter();
        keys.map(|name| {
            let default = item.and_then(|item| BuiltinType::field(item, name)).and_then(|key| key.default.as_ref());
            typed::ListKey { name, default }
        })
        .collect()
    }

    fn patch_merge_key(&self) -> Option<&str> {
        self.patch_merge_key.as_deref()
    }

    fn patch_strategy(&self) -> Option<&str> {
        self.patch_strategy.as_deref()
    }
}

type Package = BTreeMap<Box<str>, BuiltinType>;

/// A definition by its full name, such as `io.k8s.api.core.v1.PodSpec`.
pub fn definition(name: &str) -> Option<&'static BuiltinType> {
    static PACKAGES: OnceLock<BTreeMap<&'static str, OnceLock<Package>>> = OnceLock::new();
    let (package, _) = name.rsplit_once('.')?;
    let packages = PACKAGES.get_or_init(|| archive::names("types:").map(|name| (name, OnceLock::new())).collect());
    let (&package, cell) = packages.get_key_value(package)?;
    cell.get_or_init(|| {
        archive::member("types:", package).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    })
    .get(name)
}

/// The package of definitions that holds a group version's own kinds.
fn package_of(group: &str, version: &str) -> String {
    match group {
        "" => format!("io.k8s.api.core.{version}"),
        "apiextensions.k8s.io" => format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}"),
        "apiregistration.k8s.io" => format!("io.k8s.kube-aggregator.pkg.apis.apiregistration.{version}"),
        _ => format!("io.k8s.api.{}.{version}", group.split('.').next().unwrap_or_default()),
    }
}

/// The full name of a built-in kind's definition, such as `io.k8s.api.core.v1.Pod`.
pub fn definition_name(group: &str, version: &str, kind: &str) -> String {
    format!("{}.{kind}", package_of(group, version))
}

/// The type of a built-in kind.
pub fn kind(group: &str, version: &str, kind: &str) -> Option<&'static BuiltinType> {
    definition(&definition_name(group, version, kind))
}
