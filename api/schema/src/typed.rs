//! What merging needs to know about the type of a value, whoever describes that type.
//!
//! Built-in kinds are described by a table made from OpenAPI, custom kinds by their structural schema. Both
//! implement [`TypeNode`], so that strategic merge patch, field ownership and server-side apply are written once.

use serde_json::Value;

use crate::{AdditionalProperties, ListType, MapType, Schema, SchemaType};

/// One place in a type: the root, a field, a map value or a list item. A handle, cheap to clone.
pub trait TypeNode: Clone {
    /// What kind of value stands here, and how such values are merged.
    fn shape(&self) -> Shape;
    /// The place of an object's field or a map's value; `None` where the type knows no such field.
    fn field(&self, name: &str) -> Option<Self>;
    /// The place of a list's items.
    fn item(&self) -> Option<Self>;
    /// The fields that identify an item of a [`Shape::KeyedList`], each with the value that stands for an absent one.
    fn list_keys(&self) -> Vec<ListKey<'_>>;
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

/// A place in a structural schema; `None` below fields that the schema keeps without describing them.
#[derive(Clone, Copy, Debug)]
pub struct SchemaNode<'a>(Option<&'a Schema>);

impl<'a> SchemaNode<'a> {
    /// The place that a schema describes.
    pub fn of(schema: &'a Schema) -> Self {
        SchemaNode(Some(schema))
    }
}

impl TypeNode for SchemaNode<'_> {
    fn shape(&self) -> Shape {
        let Some(schema) = self.0 else { return Shape::Untyped };
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
        let Some(schema) = self.0 else { return Some(*self) };
        if let Some(field) = schema.properties.get(name) {
            return Some(SchemaNode(Some(field)));
        }
        match &schema.additional_properties {
            Some(AdditionalProperties::Schema(values)) => Some(SchemaNode(Some(values))),
            Some(AdditionalProperties::Allowed(true)) => Some(SchemaNode(None)),
            _ if schema.preserve_unknown_fields == Some(true) || schema.type_.is_none() => Some(SchemaNode(None)),
            _ => None,
        }
    }

    fn item(&self) -> Option<Self> {
        match self.0 {
            None => Some(*self),
            Some(schema) => schema.items.as_deref().map(SchemaNode::of),
        }
    }

    fn list_keys(&self) -> Vec<ListKey<'_>> {
        let Some(schema) = self.0 else { return Vec::new() };
        let item = schema.items.as_deref();
        let default =
            |name: &String| item.and_then(|item| item.properties.get(name)).and_then(|key| key.default.as_ref());
        schema.list_map_keys.iter().map(|name| ListKey { name, default: default(name) }).collect()
    }
}
