//! What merging needs to know about the type of a value, whoever describes that type.
//!
//! Built-in kinds are described by a table made from OpenAPI, custom kinds by their structural schema. Both
//! implement [`TypeNode`], so that strategic merge patch, field ownership and server-side apply are written once.

use std::sync::LazyLock;

use serde_json::Value;

use crate::{AdditionalProperties, ListType, MapType, Schema, SchemaType, object_meta};

/// One place in a type: the root, a field, a map value or a list item. A handle, cheap to clone.
pub trait TypeNode: Clone {
    /// What kind of value stands here, and how such values are merged.
    fn shape(&self) -> Shape;
    /// The place of an object's field or a map's value; `None` where the type knows no such field.
    fn field(&self, name: &str) -> Option<Self>;
    /// Whether the type names this field; `false` for the entries of a map and for fields kept without a description.
    fn declares(&self, name: &str) -> bool;
    /// The place of a list's items.
    fn item(&self) -> Option<Self>;
    /// The fields that identify an item of a [`Shape::KeyedList`], each with the value that stands for an absent one.
    fn list_keys(&self) -> Vec<ListKey<'_>>;
    /// What an object holds before anything is written to it. The Go types of built-in kinds always write their struct
    /// fields (`{}`) and required fields (`null`, `""`, `0`); custom kinds have none.
    fn zero(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }
    /// `x-kubernetes-patch-merge-key` of the field that this place is.
    fn patch_merge_key(&self) -> Option<&str> {
        None
    }
    /// `x-kubernetes-patch-strategy` of the field that this place is, such as `merge` or `merge,retainKeys`.
    fn patch_strategy(&self) -> Option<&str> {
        None
    }
}

/// What kind of value stands at a place, and how values of that kind are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing is declared: objects are merged by field, everything else is replaced whole.
    Untyped,
    /// A string.
    String,
    /// An integer or another number.
    Number,
    /// A boolean.
    Boolean,
    /// A scalar of any kind, such as an integer or a string.
    Scalar,
    /// An object or map whose fields are merged one by one.
    Object,
    /// An object or map that is replaced whole.
    AtomicObject,
    /// A list that is replaced whole.
    AtomicList,
    /// A list of scalars without order, merged by value.
    SetList,
    /// A list of objects, merged by their keys.
    KeyedList,
}

/// A field that is part of the identity of list items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListKey<'a> {
    /// The field's name.
    pub name: &'a str,
    /// The value that an absent field stands for.
    pub default: Option<&'a Value>,
}

/// A place in a structural schema, or below fields that the schema keeps without describing them.
#[derive(Clone, Copy, Debug)]
pub struct SchemaNode<'a> {
    schema: Option<&'a Schema>,
    /// Whether apiVersion, kind and metadata are implied here.
    is_resource: bool,
}

static TEXT: LazyLock<Schema> = LazyLock::new(|| Schema { type_: Some(SchemaType::String), ..Schema::default() });

impl<'a> SchemaNode<'a> {
    /// The place of a value that a schema describes.
    pub fn of(schema: &'a Schema) -> Self {
        SchemaNode { schema: Some(schema), is_resource: schema.embedded_resource }
    }

    /// The place of a whole object of a custom kind: apiVersion, kind and metadata are implied.
    pub fn of_object(schema: &'a Schema) -> Self {
        SchemaNode { schema: Some(schema), is_resource: true }
    }

    const ANYTHING: Self = SchemaNode { schema: None, is_resource: false };

    fn meta_field(&self, name: &str) -> Option<&'static Schema> {
        match name {
            "metadata" if self.is_resource => Some(&object_meta::SCHEMA),
            "apiVersion" | "kind" if self.is_resource => Some(&TEXT),
            _ => None,
        }
    }
}

impl TypeNode for SchemaNode<'_> {
    fn shape(&self) -> Shape {
        let Some(schema) = self.schema else { return Shape::Untyped };
        if schema.int_or_string {
            return Shape::Scalar;
        }
        match schema.type_ {
            None => Shape::Untyped,
            Some(SchemaType::String) => Shape::String,
            Some(SchemaType::Integer | SchemaType::Number) => Shape::Number,
            Some(SchemaType::Boolean) => Shape::Boolean,
            Some(SchemaType::Object) if schema.map_type == Some(MapType::Atomic) => Shape::AtomicObject,
            Some(SchemaType::Object) => Shape::Object,
            Some(SchemaType::Array) => match schema.list_type {
                None | Some(ListType::Atomic) => Shape::AtomicList,
                Some(ListType::Set) => Shape::SetList,
                Some(ListType::Map) => Shape::KeyedList,
            },
        }
    }

    fn field(&self, name: &str) -> Option<Self> {
        let Some(schema) = self.schema else { return Some(*self) };
        if let Some(meta) = self.meta_field(name) {
            return Some(SchemaNode::of(meta));
        }
        if let Some(field) = schema.properties.get(name) {
            return Some(SchemaNode::of(field));
        }
        match &schema.additional_properties {
            Some(AdditionalProperties::Schema(values)) => Some(SchemaNode::of(values)),
            Some(AdditionalProperties::Allowed(true)) => Some(Self::ANYTHING),
            _ if schema.preserve_unknown_fields == Some(true) || schema.type_.is_none() => Some(Self::ANYTHING),
            _ => None,
        }
    }

    fn declares(&self, name: &str) -> bool {
        self.meta_field(name).is_some() || self.schema.is_some_and(|schema| schema.properties.contains_key(name))
    }

    fn item(&self) -> Option<Self> {
        match self.schema {
            None => Some(*self),
            Some(schema) => schema.items.as_deref().map(SchemaNode::of),
        }
    }

    fn list_keys(&self) -> Vec<ListKey<'_>> {
        let Some(schema) = self.schema else { return Vec::new() };
        let item = schema.items.as_deref();
        let default =
            |name: &String| item.and_then(|item| item.properties.get(name)).and_then(|key| key.default.as_ref());
        schema.list_map_keys.iter().map(|name| ListKey { name, default: default(name) }).collect()
    }
}
