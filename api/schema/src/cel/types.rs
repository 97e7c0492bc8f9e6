//! The CEL types that a schema gives to values, and how much room such values may take.

use crate::{AdditionalProperties, Schema, SchemaType, cel_name::escape};

/// The most that one request may carry; what a schema does not bound is bounded by this.
pub(super) const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// The static type of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type<'s> {
    /// Not known before evaluation.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    /// A string of at most so many bytes.
    String(u64),
    Bytes,
    Timestamp,
    Duration,
    /// A list of at most so many items.
    List(Box<Type<'s>>, u64),
    /// A map of at most so many entries.
    Map(Box<Type<'s>>, u64),
    /// An object with declared fields; `resource`: apiVersion, kind and the names in metadata are implied.
    Object {
        schema: &'s Schema,
        resource: bool,
    },
    /// The metadata of a resource, of which only the names can be read.
    Metadata,
}

impl<'s> Type<'s> {
    /// The type of values of a schema; `None` where CEL cannot see them at all.
    pub(super) fn of(schema: &'s Schema, resource: bool) -> Option<Type<'s>> {
        if schema.int_or_string {
            return Some(Type::Dyn);
        }
        Some(match schema.type_? {
            SchemaType::Boolean => Type::Bool,
            SchemaType::Integer => Type::Int,
            SchemaType::Number => Type::Double,
            SchemaType::String => match schema.format.as_deref() {
                Some("byte") => Type::Bytes,
                Some("date" | "date-time") => Type::Timestamp,
                Some("duration") => Type::Duration,
                _ => Type::String(string_bytes_max(schema)),
            },
            SchemaType::Array => {
                let items = schema.items.as_deref()?;
                let max = schema.max_items.unwrap_or(REQUEST_BYTES_MAX / (size_min(items) + 1));
                Type::List(Box::new(Type::of(items, items.embedded_resource)?), max)
            }
            SchemaType::Object => match &schema.additional_properties {
                Some(AdditionalProperties::Schema(values)) => {
                    let max = schema.max_properties.unwrap_or(REQUEST_BYTES_MAX / (size_min(values) + 6));
                    Type::Map(Box::new(Type::of(values, values.embedded_resource)?), max)
                }
                _ => Type::Object { schema, resource: resource || schema.embedded_resource },
            },
        })
    }

    /// The type of a field as CEL names it; `None` where the object declares no such field.
    pub(super) fn field(&self, name: &str) -> Option<Type<'s>> {
        match self {
            Type::Dyn => Some(Type::Dyn),
            Type::Map(values, _) => Some((**values).clone()),
            Type::Metadata => matches!(name, "name" | "generateName").then_some(Type::String(253)),
            Type::Object { schema, resource } => {
                let implied = match name {
                    "apiVersion" | "kind" if *resource => Some(Type::String(253)),
                    "metadata" if *resource => Some(Type::Metadata),
                    _ => None,
                };
                implied.or_else(|| {
                    let (_, field) =
                        schema.properties.iter().find(|(declared, _)| escape(declared).as_deref() == Some(name))?;
                    Type::of(field, field.embedded_resource)
                })
            }
            _ => None,
        }
    }

    /// The name in messages.
    pub(super) fn name(&self) -> String {
        match self {
            Type::Dyn => "dyn".to_owned(),
            Type::Null => "null".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Int => "int".to_owned(),
            Type::Uint => "uint".to_owned(),
            Type::Double => "double".to_owned(),
            Type::String(_) => "string".to_owned(),
            Type::Bytes => "bytes".to_owned(),
            Type::Timestamp => "timestamp".to_owned(),
            Type::Duration => "duration".to_owned(),
            Type::List(items, _) => format!("list({})", items.name()),
            Type::Map(values, _) => format!("map(string, {})", values.name()),
            Type::Object { .. } | Type::Metadata => "object".to_owned(),
        }
    }

    /// Whether the type is one scalar, of which operators are known exactly.
    pub(super) fn is_scalar(&self) -> bool {
        matches!(
            self,
            Type::Bool
                | Type::Int
                | Type::Uint
                | Type::Double
                | Type::String(_)
                | Type::Bytes
                | Type::Timestamp
                | Type::Duration
        )
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Type::Int | Type::Uint | Type::Double)
    }
}

fn string_bytes_max(schema: &Schema) -> u64 {
    // A character takes up to four bytes.
    let bounded = schema.max_length.map(|length| length.saturating_mul(4));
    let longest = schema.enum_.iter().filter_map(|value| value.as_str()).map(|text| text.len() as u64).max();
    longest.or(bounded).unwrap_or(REQUEST_BYTES_MAX - 2)
}

/// The fewest bytes that a value of a schema takes in JSON.
pub(super) fn size_min(schema: &Schema) -> u64 {
    if schema.int_or_string {
        return 1;
    }
    match schema.type_ {
        Some(SchemaType::Object) => {
            let required =
                schema.required.iter().filter_map(|name| schema.properties.get(name).map(|field| (name, field)));
            let fields = required.filter(|(_, field)| field.default.is_none());
            2 + fields.map(|(name, field)| name.len() as u64 + 4 + size_min(field)).sum::<u64>()
        }
        Some(SchemaType::Boolean) => 4,
        Some(SchemaType::Array | SchemaType::String) => 2,
        _ => 1,
    }
}
