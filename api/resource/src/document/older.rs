//! What the declaration of the newest version says about an older one, whose fields have other names.

use koord_schema::{AdditionalProperties, Schema as Node};

use crate::declare::{at_moved, by_newest_name};

/// Calls the keys of lists as the items of this version are called.
pub(super) fn name_list_keys(schema: &mut Node) {
    if let Some(items) = &mut schema.items {
        for key in &mut schema.list_map_keys {
            if let Some((name, _)) = by_newest_name(items, key) {
                name.clone_into(key);
            }
        }
        name_list_keys(items);
    }
    schema.properties.values_mut().for_each(name_list_keys);
    if let Some(AdditionalProperties::Schema(values)) = &mut schema.additional_properties {
        name_list_keys(values);
    }
}

/// A JSON path of the newest version in the names of this one; none when this one has no such field.
///
/// What stands in brackets (filters, indexes, quoted names) stays as it is.
pub(super) fn path(schema: &Node, path: &str) -> Option<String> {
    let (mut at, mut rest, mut older) = (Some(schema), path, String::with_capacity(path.len()));
    while !rest.is_empty() {
        let start = rest.strip_prefix('.').unwrap_or(rest);
        let dots = rest.len() - start.len();
        if let Some((name, node, next)) = at.and_then(|node| at_moved(node, start)) {
            older.push_str(&rest[..dots]);
            older.push_str(&name);
            (rest, at) = (next, Some(node));
            continue;
        }
        let end = match start.strip_prefix('[') {
            Some(inner) => inner.find(']').map_or(start.len(), |end| end + 2),
            None => start.find(['.', '[']).unwrap_or(start.len()),
        };
        let (step, next) = start.split_at(end);
        older.push_str(&rest[..dots]);
        (rest, at) = (
            next,
            match at {
                _ if step.starts_with('[') => {
                    older.push_str(step);
                    at.and_then(below)
                }
                // Whatever an object has, under whatever names.
                Some(node) if step == "*" => {
                    older.push_str(step);
                    below(node)
                }
                Some(node) if !node.properties.is_empty() => match by_newest_name(node, step) {
                    Some((name, node)) => {
                        older.push_str(name);
                        Some(node)
                    }
                    None if node.preserve_unknown_fields == Some(true) => {
                        older.push_str(step);
                        None
                    }
                    None => return None,
                },
                _ => {
                    older.push_str(step);
                    at.and_then(below)
                }
            },
        );
    }
    Some(older)
}

/// What is in an array or map.
fn below(node: &Node) -> Option<&Node> {
    let values = match &node.additional_properties {
        Some(AdditionalProperties::Schema(values)) => Some(&**values),
        _ => None,
    };
    node.items.as_deref().or(values)
}
