//! The fields of a value by its type, and whether the value is of that type at all.

use serde_json::Value;

use super::{Entry, FieldSet, Step};
use crate::{
    go_text::{go_type, plain, quote},
    typed::{Shape, TypeNode},
};

/// A value that is not of its type, with the path where it is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TypeMismatch(pub String);

/// The fields that an applied configuration names: leaves, list items, and entries of maps.
///
/// A struct's field with fields of its own is not a member by itself; an empty or null one is.
pub fn fields_of<N: TypeNode>(value: &Value, node: &N) -> FieldSet {
    let mut set = FieldSet::new();
    let shape = node.shape();
    match value {
        Value::Object(fields) if matches!(shape, Shape::Object | Shape::Untyped) => {
            for (name, field) in fields {
                let below = node.field(name).map(|field_node| below(field, &field_node));
                let is_leaf = below.is_none() || is_leaf(field, node.field(name).as_ref());
                let is_empty = field.is_null() || field.as_object().is_some_and(serde_json::Map::is_empty);
                let member = is_leaf || is_empty || !node.declares(name);
                put(&mut set, Step::field(name), member, &below.unwrap_or_default());
            }
        }
        Value::Array(items) if matches!(shape, Shape::SetList | Shape::KeyedList) => {
            let item_node = node.item();
            for item in items {
                let Some(step) = Step::of_item(node, item) else { continue };
                let below = item_node.as_ref().map(|item_node| below(item, item_node)).unwrap_or_default();
                put(&mut set, step, true, &below);
            }
        }
        _ => {}
    }
    set
}

fn below<N: TypeNode>(value: &Value, node: &N) -> FieldSet {
    if is_leaf(value, Some(node)) { FieldSet::new() } else { fields_of(value, node) }
}

fn put(set: &mut FieldSet, step: Step, member: bool, below: &FieldSet) {
    if !member && below.is_empty() {
        return;
    }
    let entry = set.entries.entry(step).or_default();
    entry.member |= member;
    entry.below = std::mem::take(&mut entry.below).union(below);
}

/// Whether a value is owned as one: a scalar, or an object or list that is atomic.
pub(super) fn is_leaf<N: TypeNode>(value: &Value, node: Option<&N>) -> bool {
    let shape = node.map_or(Shape::Untyped, TypeNode::shape);
    match value {
        Value::Object(_) => !matches!(shape, Shape::Object | Shape::Untyped),
        Value::Array(_) => !matches!(shape, Shape::SetList | Shape::KeyedList),
        // A null where an object or a list could be is no value of its own.
        Value::Null => !matches!(shape, Shape::Object | Shape::SetList | Shape::KeyedList),
        _ => true,
    }
}

/// The set together with every struct field that it passes through: owning `a.b` then owns the field `a`, but not the
/// map entry or list item on the way.
pub fn with_named_fields<N: TypeNode>(set: &FieldSet, node: &N) -> FieldSet {
    let entries = set.entries.iter().map(|(step, entry)| {
        let (declared, next) = match step.field_name() {
            Some(name) => (node.declares(name), node.field(name)),
            None => (false, node.item()),
        };
        let below = match &next {
            Some(next) => with_named_fields(&entry.below, next),
            None => entry.below.clone(),
        };
        let member = entry.member || (declared && !entry.below.is_empty());
        (step.clone(), Entry { member, below })
    });
    FieldSet { entries: entries.collect() }
}

/// Checks that a value is of its type: no unknown fields, right JSON types, list items with unique identities.
pub fn check<N: TypeNode>(value: &Value, node: &N) -> Vec<TypeMismatch> {
    let mut found = Vec::new();
    check_at(value, node, &mut String::new(), &mut found);
    found
}

fn check_at<N: TypeNode>(value: &Value, node: &N, path: &mut String, found: &mut Vec<TypeMismatch>) {
    let mut expected = |what: &str, found_instead: String| {
        found.push(TypeMismatch(format!("{path}: expected {what}, got {found_instead}")));
    };
    match (node.shape(), value) {
        (_, Value::Null)
        | (Shape::Untyped, _)
        | (Shape::String, Value::String(_))
        | (Shape::Number, Value::Number(_))
        | (Shape::Boolean, Value::Bool(_))
        | (Shape::Scalar, Value::String(_) | Value::Number(_) | Value::Bool(_)) => {}
        (Shape::String, _) => expected("string", format!("&value.valueUnstructured{{Value:{}}}", go_syntax(value))),
        (Shape::Number, _) => expected("numeric (int or float)", go_type(value).to_owned()),
        (Shape::Boolean, _) => expected("boolean", format!("&{{{}}}", plain(value))),
        (Shape::Scalar, _) => expected("scalar", format!("&{{{}}}", plain(value))),
        (Shape::Object | Shape::AtomicObject, Value::Object(fields)) => {
            for (name, field) in fields {
                let length = path.len();
                path.push('.');
                path.push_str(name);
                match node.field(name) {
                    Some(field_node) => check_at(field, &field_node, path, found),
                    None => found.push(TypeMismatch(format!("{path}: field not declared in schema"))),
                }
                path.truncate(length);
            }
        }
        (Shape::Object | Shape::AtomicObject, _) => expected("map", format!("&{{{}}}", plain(value))),
        (Shape::AtomicList | Shape::SetList | Shape::KeyedList, Value::Array(items)) => {
            check_items(items, node, path, found);
        }
        (Shape::AtomicList | Shape::SetList | Shape::KeyedList, _) => {
            expected("list", format!("&{{{}}}", plain(value)));
        }
    }
}

fn check_items<N: TypeNode>(items: &[Value], node: &N, path: &mut String, found: &mut Vec<TypeMismatch>) {
    let identified = matches!(node.shape(), Shape::SetList | Shape::KeyedList);
    let item_node = node.item();
    let mut seen = std::collections::HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let step = if identified {
            let Some(step) = Step::of_item(node, item).filter(|_| has_identity(item, node)) else {
                found.push(TypeMismatch(format!("{path}: element {index}: {}", missing_identity(item, node))));
                continue;
            };
            if !seen.insert(step.clone()) {
                found.push(TypeMismatch(format!("{path}: duplicate entries for key {}", step.shown())));
                continue;
            }
            step.shown()
        } else {
            format!("[{index}]")
        };
        let length = path.len();
        path.push_str(&step);
        if let Some(item_node) = &item_node {
            check_at(item, item_node, path, found);
        }
        path.truncate(length);
    }
}

/// Whether an item may stand in a list whose items have an identity: a set has no objects and no lists.
fn has_identity<N: TypeNode>(item: &Value, node: &N) -> bool {
    node.shape() != Shape::SetList || !matches!(item, Value::Object(_) | Value::Array(_))
}

fn missing_identity<N: TypeNode>(item: &Value, node: &N) -> String {
    match (node.shape(), item) {
        (Shape::SetList, Value::Object(_)) => {
            "associative list without keys has an element that's a map type".to_owned()
        }
        (Shape::SetList, Value::Array(_)) => "not supported: associative list with lists as elements".to_owned(),
        (Shape::SetList, _) => "associative list without keys has an element that's an explicit null".to_owned(),
        (_, Value::Null) => "associative list with keys may not have a null element".to_owned(),
        (_, Value::Object(_)) => {
            let keys: Vec<String> = node.list_keys().iter().map(|key| quote(key.name)).collect();
            format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                keys.join(" ")
            )
        }
        _ => "associative list with keys may not have non-map elements".to_owned(),
    }
}

/// A value as Go source would write it.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            format!("{}{{{}}}", go_type(value), items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, field)| format!("{}:{}", quote(name), go_syntax(field))).collect();
            format!("{}{{{}}}", go_type(value), fields.join(", "))
        }
        scalar => plain(scalar),
    }
}
