//! Taking fields out of an object.

use serde_json::{Map, Value};

use super::{FieldSet, Step};
use crate::typed::{Shape, TypeNode};

/// The object without the members of a set.
///
/// QUIRK: an object or list that loses its last part is left as `null`, as the API server leaves it
/// (`what_is_emptied_is_left_as_null`).
pub fn remove<N: TypeNode>(value: &Value, set: &FieldSet, node: &N) -> Value {
    remove_from(value, set, Some(node))
}

fn remove_from<N: TypeNode>(value: &Value, set: &FieldSet, node: Option<&N>) -> Value {
    let shape = node.map_or(Shape::Untyped, TypeNode::shape);
    match value {
        Value::Object(fields) if matches!(shape, Shape::Object | Shape::Untyped) => {
            let mut kept = Map::new();
            for (name, field) in fields {
                let (member, below) = set.at(&Step::field(name));
                if member {
                    continue;
                }
                let field_node = node.and_then(|node| node.field(name));
                let rest = below.map_or_else(|| field.clone(), |below| remove_from(field, below, field_node.as_ref()));
                kept.insert(name.clone(), rest);
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        Value::Array(items) if matches!(shape, Shape::SetList | Shape::KeyedList) => {
            let item_node = node.and_then(TypeNode::item);
            let mut kept = Vec::with_capacity(items.len());
            for item in items {
                let step = node.and_then(|node| Step::of_item(node, item));
                let (member, below) = step.as_ref().map_or((false, None), |step| set.at(step));
                if member {
                    continue;
                }
                kept.push(below.map_or_else(|| item.clone(), |below| remove_from(item, below, item_node.as_ref())));
            }
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
        Value::Object(_) | Value::Array(_) => Value::Null,
        scalar => scalar.clone(),
    }
}
