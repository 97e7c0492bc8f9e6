//! The structural schema as data: what `openAPIV3Schema` of a CRD may say.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::field::{Errors, Path};

/// One node of a structural schema (apiextensions/v1 `JSONSchemaProps`, the structural subset).
///
/// Properties keep the order in which the source declares them; the JSON text sorts nothing.
/// An absent keyword is `None`, `false` or empty and is not written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Schema {
    /// Prose for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A short title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The JSON type; absent where `x-kubernetes-int-or-string` or `x-kubernetes-preserve-unknown-fields` takes its place.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<SchemaType>,
    /// `int32`, `int64`, `date-time`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Whether JSON `null` is a value of this field.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub nullable: bool,
    /// The value that the API server fills in for an absent field.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_value")]
    pub default: Option<Value>,
    /// An example for documentation.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_value")]
    pub example: Option<Value>,
    /// The allowed values, in source order.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub enum_: Vec<Value>,

    /// Lower bound of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// Whether `minimum` itself is excluded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exclusive_minimum: bool,
    /// Upper bound of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    /// Whether `maximum` itself is excluded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exclusive_maximum: bool,
    /// The number must be an integral multiple of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiple_of: Option<Number>,

    /// Shortest string, in Unicode code points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Longest string, in Unicode code points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// An RE2 expression that must match somewhere in the string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,

    /// Schema of the items of an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<Schema>>,
    /// Fewest items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Most items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// Forbidden in structural schemas; kept so that it can be refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unique_items: bool,

    /// Named fields of an object.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub properties: IndexMap<String, Schema>,
    /// Schema of, or permission for, fields that are not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_properties: Option<AdditionalProperties>,
    /// Names of fields that must be present.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Fewest fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_properties: Option<u64>,
    /// Most fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_properties: Option<u64>,

    /// Every one of these must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<Schema>,
    /// At least one of these must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Schema>,
    /// Exactly one of these must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<Schema>,
    /// This must not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Box<Schema>>,
    /// A link to further documentation.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_value")]
    pub external_docs: Option<Value>,

    /// Unknown fields below this node are kept instead of pruned.
    #[serde(rename = "x-kubernetes-preserve-unknown-fields", skip_serializing_if = "Option::is_none")]
    pub preserve_unknown_fields: Option<bool>,
    /// The node is a whole Kubernetes object with apiVersion, kind and metadata.
    #[serde(rename = "x-kubernetes-embedded-resource", skip_serializing_if = "std::ops::Not::not")]
    pub embedded_resource: bool,
    /// The value is an integer or a string.
    #[serde(rename = "x-kubernetes-int-or-string", skip_serializing_if = "std::ops::Not::not")]
    pub int_or_string: bool,
    /// How items of an array are distinguished when it is merged.
    #[serde(rename = "x-kubernetes-list-type", skip_serializing_if = "Option::is_none")]
    pub list_type: Option<ListType>,
    /// The fields that identify an item of a `map` list.
    #[serde(rename = "x-kubernetes-list-map-keys", skip_serializing_if = "Vec::is_empty")]
    pub list_map_keys: Vec<String>,
    /// Whether an object is merged by field or replaced whole.
    #[serde(rename = "x-kubernetes-map-type", skip_serializing_if = "Option::is_none")]
    pub map_type: Option<MapType>,
    /// CEL rules.
    #[serde(rename = "x-kubernetes-validations", skip_serializing_if = "Vec::is_empty")]
    pub validations: Vec<Rule>,
    /// Why the source of this node cannot be written as a structural schema; never part of a document.
    #[serde(skip)]
    pub not_structural: Option<String>,
    /// In the schema of an older version: what the newest one calls this property. Never part of a document.
    #[serde(skip)]
    pub newest_name: Option<String>,
}

impl Schema {
    /// Adds an error for every node that could not be written as a structural schema.
    pub fn check_structural(&self, at: &Path<'_>, errors: &mut Errors) {
        if let Some(reason) = &self.not_structural {
            errors.forbidden(at, reason);
        }
        for (name, property) in &self.properties {
            property.check_structural(&at.child(name), errors);
        }
        let items = self.items.as_deref();
        let values = match &self.additional_properties {
            Some(AdditionalProperties::Schema(values)) => Some(&**values),
            _ => None,
        };
        for inner in items.into_iter().chain(values) {
            inner.check_structural(&at.key("*"), errors);
        }
    }
}

/// The JSON type of a schema node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaType {
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// A JSON string.
    String,
    /// A JSON number without a fraction.
    Integer,
    /// Any JSON number.
    Number,
    /// `true` or `false`.
    Boolean,
}

/// `additionalProperties`: a schema, or a plain yes or no.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AdditionalProperties {
    /// Any further field, or none.
    Allowed(bool),
    /// Further fields of this shape.
    Schema(Box<Schema>),
}

/// How the items of an array are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListType {
    /// Replaced as one value.
    Atomic,
    /// A set of scalars.
    Set,
    /// A map, keyed by `listMapKeys`.
    Map,
}

/// How the fields of an object are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MapType {
    /// Replaced as one value.
    Atomic,
    /// Field by field.
    Granular,
}

/// One CEL rule (`x-kubernetes-validations`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// The expression; true means valid. `self` is the value, `oldSelf` the stored one.
    pub rule: String,
    /// The message for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// An expression that computes the message for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<String>,
    /// `FieldValueInvalid` (default), `FieldValueForbidden`, `FieldValueRequired` or `FieldValueDuplicate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Relative path of the field to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
    /// Evaluate a transition rule also when there is no old value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional_old_self: Option<bool>,
}

/// Keeps an explicit `null` apart from an absent keyword.
fn some_value<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
