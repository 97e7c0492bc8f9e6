//! The bridge from schemars: types that implement `JsonSchema` become structural schemas.
//!
//! schemars describes JSON in the JSON Schema of 2020; a structural schema names every type and property at its place and
//! has no references. What schemars says about serde's enums is joined as the derive of [`Schema`](super::Schema) joins it.
//! What has no structural form is not dropped: the node says why, and [`Declared::check`](crate::document::Declared::check)
//! reports it with the type and the field.

use koord_schema::{AdditionalProperties, ListType, Schema as Node, SchemaType};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Number, Value, json};

use super::{anything, array, int_or_string, object, one_of_properties, property, tagged, text, typed, untagged};

/// Keywords that describe a value for people or other tools and that a structural schema has no place for.
const ANNOTATIONS: [&str; 9] =
    ["$schema", "$comment", "$defs", "components", "title", "deprecated", "readOnly", "writeOnly", "examples"];

/// The structural schema of a type that implements `schemars::JsonSchema`, as it is deserialized.
///
/// ```
/// use koord_resource::{declare::from_schemars, schema::SchemaType};
///
/// #[derive(schemars::JsonSchema)]
/// # #[allow(dead_code)]
/// struct Window {
///     /// The first hour.
///     #[schemars(range(max = 23))]
///     from: u8,
/// }
/// let schema = from_schemars::<Window>();
/// assert_eq!(schema.properties["from"].type_, Some(SchemaType::Integer));
/// assert_eq!(schema.properties["from"].maximum, Some(23.into()));
/// assert_eq!(schema.required, ["from"]);
/// ```
pub fn from_schemars<T: JsonSchema>() -> Node {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    Bridge { name: T::schema_name().into_owned() }.node(schema.as_value(), "")
}

/// One conversion, with what its errors name.
struct Bridge {
    /// The name of the type.
    name: String,
}

impl Bridge {
    fn refuse(&self, at: &str, reason: &str) -> Node {
        let field = if at.is_empty() { String::new() } else { format!(", field {}", at.trim_start_matches('.')) };
        Node { not_structural: Some(format!("type {}{field}: {reason}", self.name)), ..Node::default() }
    }

    /// The node of a schema. `at`: the path of the field below the type.
    fn node(&self, schema: &Value, at: &str) -> Node {
        let fields = match schema {
            Value::Bool(true) => return anything(),
            Value::Object(fields) => fields,
            _ => return self.refuse(at, "no value fits its schema"),
        };
        let mut node = self.shape(fields, at);
        if node.not_structural.is_some() {
            return node;
        }
        if let Some(unknown) = fields.keys().find(|keyword| !is_known(keyword)) {
            return self.refuse(at, &format!("the keyword `{unknown}` has no place in a structural schema"));
        }
        if let Some(description) = fields.get("description").and_then(Value::as_str) {
            node.description = Some(description.to_owned());
        }
        node.nullable = fields.get("nullable") == Some(&Value::Bool(true));
        // The default of an `Option`: the field is absent.
        node.default = fields.get("default").filter(|default| !default.is_null()).cloned();
        node.example = fields.get("example").cloned();
        match extensions(&mut node, fields) {
            Ok(()) => node,
            Err(error) => self.refuse(at, &error.to_string()),
        }
    }

    fn shape(&self, fields: &Map<String, Value>, at: &str) -> Node {
        if fields.contains_key("$ref") {
            return self.refuse(at, "the type contains itself; mark the field `schemaless, preserve_unknown_fields`");
        }
        if let Some([one]) = fields.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            return self.node(one, at);
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(branches) = fields.get(keyword).and_then(Value::as_array) {
                return self.union(branches, fields, at);
            }
        }
        let values = fields.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let type_ = match fields.get("type") {
            Some(Value::String(type_)) => type_.as_str(),
            Some(Value::Array(types)) if is_integer_or_string(types) => return int_or_string(),
            None if values.is_empty() && is_anything(fields) => return anything(),
            None => match common_type(values) {
                Some(type_) => type_,
                None => return self.refuse(at, "its schema names no single type"),
            },
            Some(types) => return self.refuse(at, &format!("a value of one of the types {types} has no single type")),
        };
        let mut node = match type_ {
            "boolean" => typed(SchemaType::Boolean, ""),
            "string" => Node {
                min_length: count(fields, "minLength"),
                max_length: count(fields, "maxLength"),
                pattern: string(fields, "pattern"),
                format: string(fields, "format"),
                ..text("")
            },
            "integer" => match integer(fields) {
                Ok(node) => node,
                Err(reason) => return self.refuse(at, &reason),
            },
            "number" => with_bounds(Node { format: string(fields, "format"), ..typed(SchemaType::Number, "") }, fields),
            "array" => self.list(fields, at),
            "object" => self.fields(fields, at),
            other => return self.refuse(at, &format!("the type {other:?} is none of JSON's")),
        };
        node.enum_ = values.to_vec();
        node
    }

    fn list(&self, fields: &Map<String, Value>, at: &str) -> Node {
        let items = match fields.get("items") {
            None => anything(),
            Some(Value::Array(_)) => return self.refuse(at, "the items of a tuple have schemas of their own"),
            Some(items) => self.node(items, &format!("{at}[*]")),
        };
        let is_scalar = !matches!(items.type_, None | Some(SchemaType::Object | SchemaType::Array));
        let unique = fields.get("uniqueItems") == Some(&Value::Bool(true));
        if unique && !is_scalar {
            return self.refuse(at, "the items of a set must be scalars");
        }
        Node {
            min_items: count(fields, "minItems"),
            max_items: count(fields, "maxItems"),
            list_type: unique.then_some(ListType::Set),
            ..array(items)
        }
    }

    fn fields(&self, fields: &Map<String, Value>, at: &str) -> Node {
        let below = |name: &str| format!("{at}.{name}");
        let required: Vec<&str> = list(fields, "required").iter().filter_map(Value::as_str).collect();
        let mut node = object("");
        for (name, schema) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
            property(&mut node, name, required.contains(&name.as_str()), self.node(schema, &below(name)));
        }
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        // Keys of numbers: the pattern says what a key looks like, which a structural schema cannot.
        let values = match patterns.map(|patterns| patterns.values().collect::<Vec<_>>()).as_deref() {
            None | Some([]) => fields.get("additionalProperties"),
            Some([values]) => Some(*values),
            Some(_) => return self.refuse(at, "its values have schemas that depend on their keys"),
        };
        match values {
            // Unknown fields are pruned anyway.
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => node.preserve_unknown_fields = Some(true),
            Some(_) if !node.properties.is_empty() => {
                return self.refuse(at, "an object has either named fields or values of one schema, not both");
            }
            Some(values) => {
                let values = self.node(values, &format!("{at}[*]"));
                node.additional_properties = Some(AdditionalProperties::Schema(Box::new(values)));
            }
        }
        Node { min_properties: count(fields, "minProperties"), max_properties: count(fields, "maxProperties"), ..node }
    }

    /// serde's enums, as schemars describes them.
    fn union(&self, branches: &[Value], fields: &Map<String, Value>, at: &str) -> Node {
        let description = fields.get("description").and_then(Value::as_str).unwrap_or_default();
        let beside = fields.get("properties").or_else(|| fields.get("required"));
        if beside.is_some() {
            return self.refuse(at, "a flattened enum has no structural form beside other fields");
        }
        let words: Vec<Option<&[Value]>> = branches.iter().map(words).collect();
        if let Some(words) = words.iter().copied().collect::<Option<Vec<_>>>() {
            return Node { enum_: words.concat(), ..text(description) };
        }
        if let Some(variants) = branches.iter().map(only_property).collect::<Option<Vec<_>>>() {
            let nodes = variants.into_iter().map(|(name, schema)| (name, self.node(schema, &format!("{at}.{name}"))));
            return one_of_properties(description, nodes);
        }
        if let Some(tag) = common_tag(branches) {
            let variants = branches.iter().filter_map(|branch| Some((tag_value(branch, tag)?, self.node(branch, at))));
            let variants = variants.map(|(name, mut node)| {
                node.properties.shift_remove(tag);
                node.required.retain(|required| required != tag);
                (name, node)
            });
            return tagged(description, tag, variants);
        }
        if words.iter().any(Option::is_some) {
            return self.refuse(at, "an enum with and without data is a text or an object; give it a tag");
        }
        let nodes: Vec<Node> = branches.iter().map(|branch| self.node(branch, at)).collect();
        if let Some(refused) = nodes.iter().find(|node| node.not_structural.is_some()) {
            return refused.clone();
        }
        untagged(description, nodes.into_iter().map(|node| ("", node)))
    }
}

// === keywords ===

fn is_known(keyword: &str) -> bool {
    const KNOWN: [&str; 30] = [
        "type",
        "format",
        "description",
        "nullable",
        "default",
        "example",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "items",
        "minItems",
        "maxItems",
        "uniqueItems",
        "properties",
        "patternProperties",
        "additionalProperties",
        "required",
        "minProperties",
        "maxProperties",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
    ];
    keyword.starts_with("x-kubernetes-") || KNOWN.contains(&keyword) || ANNOTATIONS.contains(&keyword)
}

/// Whether a schema without a type says nothing about the value.
fn is_anything(fields: &Map<String, Value>) -> bool {
    fields.keys().all(|keyword| {
        keyword.starts_with("x-kubernetes-")
            || ANNOTATIONS.contains(&keyword.as_str())
            || ["description", "nullable", "default", "example"].contains(&keyword.as_str())
    })
}

/// What `#[schemars(extend("x-kubernetes-…" = …))]` says.
fn extensions(node: &mut Node, fields: &Map<String, Value>) -> Result<(), serde_json::Error> {
    let extensions = fields.iter().filter(|(keyword, _)| keyword.starts_with("x-kubernetes-"));
    let extensions: Map<String, Value> = extensions.map(|(keyword, value)| (keyword.clone(), value.clone())).collect();
    if extensions.is_empty() {
        return Ok(());
    }
    let extended: Node = serde_json::from_value(extensions.into())?;
    if extended.int_or_string {
        *node = Node { description: node.description.take(), nullable: node.nullable, ..int_or_string() };
    }
    node.preserve_unknown_fields = extended.preserve_unknown_fields.or(node.preserve_unknown_fields);
    node.embedded_resource = extended.embedded_resource;
    node.list_type = extended.list_type.or(node.list_type);
    node.list_map_keys = extended.list_map_keys;
    node.map_type = extended.map_type;
    node.validations = extended.validations;
    Ok(())
}

/// An integer with a format that API servers know, and the bounds of what narrower types can hold.
fn integer(fields: &Map<String, Value>) -> Result<Node, String> {
    let (format, narrow) = match fields.get("format").and_then(Value::as_str) {
        Some("int8") => (Some("int32"), Some((json!(i8::MIN), json!(i8::MAX)))),
        Some("int16") => (Some("int32"), Some((json!(i16::MIN), json!(i16::MAX)))),
        Some("uint8") => (Some("int32"), Some((json!(0), json!(u8::MAX)))),
        Some("uint16") => (Some("int32"), Some((json!(0), json!(u16::MAX)))),
        Some("uint32") => (Some("int64"), Some((json!(0), json!(u32::MAX)))),
        Some("int32") => (Some("int32"), None),
        Some("int" | "int64" | "uint" | "uint64") => (Some("int64"), None),
        None => (None, None),
        Some(other) => return Err(format!("API servers know no integers of the format {other:?}")),
    };
    let mut node = Node { format: format.map(str::to_owned), ..typed(SchemaType::Integer, "") };
    if let Some((Value::Number(minimum), Value::Number(maximum))) = narrow {
        (node.minimum, node.maximum) = (Some(minimum), Some(maximum));
    }
    Ok(with_bounds(node, fields))
}

fn with_bounds(mut node: Node, fields: &Map<String, Value>) -> Node {
    let number = |name: &str| match fields.get(name) {
        Some(Value::Number(number)) => Some(whole(number)),
        _ => None,
    };
    let is_true = |name: &str| fields.get(name) == Some(&Value::Bool(true));
    node.minimum = number("minimum").or(node.minimum);
    node.maximum = number("maximum").or(node.maximum);
    node.exclusive_minimum = is_true("exclusiveMinimum");
    node.exclusive_maximum = is_true("exclusiveMaximum");
    if let Some(bound) = number("exclusiveMinimum") {
        (node.minimum, node.exclusive_minimum) = (Some(bound), true);
    }
    if let Some(bound) = number("exclusiveMaximum") {
        (node.maximum, node.exclusive_maximum) = (Some(bound), true);
    }
    node.multiple_of = number("multipleOf");
    node
}

/// `1.0` is written as `1`, as everything that is whole.
fn whole(number: &Number) -> Number {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => Number::from(float as i64),
        _ => number.clone(),
    }
}

fn is_integer_or_string(types: &[Value]) -> bool {
    types.len() == 2 && types.contains(&json!("integer")) && types.contains(&json!("string"))
}

/// The type that all values of an enum have.
fn common_type(values: &[Value]) -> Option<&'static str> {
    let type_of = |value: &Value| match value {
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("boolean"),
        Value::Number(number) if number.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        _ => None,
    };
    let mut types = values.iter().filter(|value| !value.is_null()).map(type_of);
    let first = types.next()??;
    types.all(|type_| type_ == Some(first)).then_some(first)
}

/// The words of a branch that is a text out of a list.
fn words(branch: &Value) -> Option<&[Value]> {
    let words = branch.get("enum")?.as_array()?;
    words.iter().all(Value::is_string).then_some(words.as_slice())
}

/// The property of a branch that is an object with exactly one.
fn only_property(branch: &Value) -> Option<(&str, &Value)> {
    let mut properties = branch.get("properties")?.as_object()?.iter();
    let (name, schema) = properties.next()?;
    let is_data = tag_value(branch, name).is_none();
    let is_required = branch.get("required")?.as_array()?.contains(&json!(name));
    (properties.next().is_none() && is_data && is_required).then_some((name, schema))
}

/// The property by whose only value all branches are distinguished.
fn common_tag(branches: &[Value]) -> Option<&str> {
    let candidates = branches.first()?.get("properties")?.as_object()?.keys();
    candidates.map(String::as_str).find(|tag| branches.iter().all(|branch| tag_value(branch, tag).is_some()))
}

fn tag_value<'b>(branch: &'b Value, tag: &str) -> Option<&'b str> {
    match branch.get("properties")?.get(tag)?.get("enum")?.as_array()?.as_slice() {
        [Value::String(value)] => Some(value),
        _ => None,
    }
}

fn list<'f>(fields: &'f Map<String, Value>, name: &str) -> &'f [Value] {
    fields.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn count(fields: &Map<String, Value>, name: &str) -> Option<u64> {
    fields.get(name).and_then(Value::as_u64)
}

fn string(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name).and_then(Value::as_str).map(str::to_owned)
}
