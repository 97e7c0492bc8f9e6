//! Schemas of enums that carry data.
//!
//! A structural schema names every property at the top and uses `oneOf` only to say which of them go together, so the
//! properties of all variants are joined and each variant becomes one branch.

use koord_schema::{Schema as Node, SchemaType};
use serde_json::json;

use super::{anything, choice, int_or_string, object, property};

/// serde's external tagging: an object with exactly one of the properties.
pub fn one_of_properties<'n>(description: &str, variants: impl IntoIterator<Item = (&'n str, Node)>) -> Node {
    let mut union = object(description);
    for (name, schema) in variants {
        property(&mut union, name, false, schema);
        union.one_of.push(Node { required: vec![name.to_owned()], ..Node::default() });
    }
    union
}

/// serde's internal tagging: the tag stands among the variant's own fields.
pub fn tagged<'n>(description: &str, tag: &str, variants: impl IntoIterator<Item = (&'n str, Node)>) -> Node {
    let variants: Vec<_> = variants.into_iter().collect();
    let mut union = object(description);
    let names: Vec<&str> = variants.iter().map(|(name, _)| *name).collect();
    property(&mut union, tag, true, choice("", &names));
    for (name, schema) in variants {
        union.one_of.push(branch(tag, name, schema.required));
        for (name, schema) in schema.properties {
            join(&mut union, name, schema);
        }
    }
    union
}

/// serde's adjacent tagging: the tag stands beside the variant's content.
pub fn tagged_beside<'n>(
    description: &str,
    tag: &str,
    content: &str,
    variants: impl IntoIterator<Item = (&'n str, Node)>,
) -> Node {
    let variants: Vec<_> = variants.into_iter().collect();
    let mut union = object(description);
    let names: Vec<&str> = variants.iter().map(|(name, _)| *name).collect();
    property(&mut union, tag, true, choice("", &names));
    let mut contents = Vec::new();
    for (name, schema) in variants {
        let is_unit = schema.type_ == Some(SchemaType::Object) && is_empty_object(&schema);
        let required = if is_unit { Vec::new() } else { vec![content.to_owned()] };
        union.one_of.push(branch(tag, name, required));
        if !is_unit {
            contents.push(schema);
        }
    }
    if !contents.is_empty() {
        property(&mut union, content, false, either("", contents));
    }
    union
}

/// serde's untagged enums: the first variant that fits.
pub fn untagged<'n>(description: &str, variants: impl IntoIterator<Item = (&'n str, Node)>) -> Node {
    either(description, variants.into_iter().map(|(_, schema)| schema).collect())
}

fn branch(tag: &str, name: &str, required: Vec<String>) -> Node {
    let mut branch = Node { required, ..Node::default() };
    property(&mut branch, tag, false, Node { enum_: vec![json!(name)], ..Node::default() });
    branch
}

/// A property that several variants have keeps its schema where they agree, and allows anything where they do not.
fn join(union: &mut Node, name: String, schema: Node) {
    match union.properties.get_mut(&name) {
        None => {
            union.properties.insert(name, schema);
        }
        Some(present) if same(present, &schema) => {}
        Some(present) => *present = anything(),
    }
}

fn same(one: &Node, other: &Node) -> bool {
    let bare = |schema: &Node| Node { description: None, ..schema.clone() };
    bare(one) == bare(other)
}

fn is_empty_object(schema: &Node) -> bool {
    schema.properties.is_empty() && schema.additional_properties.is_none() && schema.preserve_unknown_fields.is_none()
}

/// One schema for several: their common one, an object with the properties of all, an integer or text, or anything.
fn either(description: &str, schemas: Vec<Node>) -> Node {
    let described = |schema: Node| Node {
        description: if description.is_empty() { schema.description } else { Some(description.to_owned()) },
        ..schema
    };
    let all = |type_| schemas.iter().all(|schema| schema.type_ == Some(type_));
    let any = |type_| schemas.iter().any(|schema| schema.type_ == Some(type_));
    if let Some(first) = schemas.first()
        && schemas.iter().all(|schema| same(schema, first))
    {
        return described(first.clone());
    }
    if all(SchemaType::Object) && schemas.iter().all(|schema| schema.additional_properties.is_none()) {
        let mut union = object("");
        for schema in schemas {
            union.any_of.push(Node { required: schema.required, ..Node::default() });
            for (name, schema) in schema.properties {
                join(&mut union, name, schema);
            }
        }
        if union.any_of.iter().any(|branch| branch.required.is_empty()) {
            union.any_of.clear();
        }
        return described(union);
    }
    let only_scalars =
        schemas.iter().all(|schema| matches!(schema.type_, Some(SchemaType::Integer | SchemaType::String)));
    if only_scalars && any(SchemaType::Integer) && any(SchemaType::String) {
        return described(int_or_string());
    }
    described(anything())
}
