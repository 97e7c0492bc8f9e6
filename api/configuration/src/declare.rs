//! What the code that `derive(Configuration)` makes calls. It is no interface for others.

use schemars::{Schema, json_schema};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::Problems;

/// The schema of a struct, to which its fields are added.
#[derive(Debug)]
pub struct Section {
    members: Map<String, Value>,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field<'a> {
    /// Its name in a document.
    pub name: &'a str,
    /// What it means.
    pub description: &'a str,
    /// Why it has no effect; none where it has one.
    pub no_effect: Option<&'a str>,
    /// Whether a document without it is refused.
    pub required: bool,
    /// The schema of its type.
    pub schema: Schema,
    /// What else is said of its value, by keyword.
    pub keywords: Vec<(&'static str, Value)>,
    /// What it is where it is not set.
    pub default: Option<Value>,
}

impl Section {
    /// A struct without fields.
    pub fn new(description: &str) -> Self {
        let mut members = Map::new();
        describe(&mut members, description);
        members.insert("type".to_owned(), "object".into());
        Self { members, properties: Map::new(), required: Vec::new() }
    }

    /// Adds a field.
    pub fn field(&mut self, field: Field<'_>) {
        let Field { name, description, no_effect, required, schema, keywords, default } = field;
        let mut schema = match schema.to_value() {
            Value::Object(members) => members,
            // Anything is right.
            _ => Map::new(),
        };
        let description = match no_effect {
            Some(why) => format!("{description} Accepted without an effect: {why}."),
            None => description.to_owned(),
        };
        describe(&mut schema, &description);
        for (keyword, value) in keywords {
            match (schema.get_mut(keyword), value) {
                // What is said of the items of a list stands beside what their type says.
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                (_, value) => drop(schema.insert(keyword.to_owned(), value)),
            }
        }
        match default {
            _ if required => self.required.push(name.into()),
            Some(default) => drop(schema.insert("default".to_owned(), default)),
            None => {}
        }
        self.properties.insert(name.to_owned(), schema.into());
    }

    /// The schema.
    pub fn into_schema(mut self) -> Schema {
        self.members.insert("properties".to_owned(), self.properties.into());
        self.members.insert("additionalProperties".to_owned(), false.into());
        if !self.required.is_empty() {
            self.members.insert("required".to_owned(), self.required.into());
        }
        Schema::from(self.members)
    }
}

fn describe(members: &mut Map<String, Value>, description: &str) {
    if !description.is_empty() {
        members.insert("description".to_owned(), description.into());
    }
}

/// The schema of a choice of texts, each with its meaning.
pub fn choice(description: &str, texts: &[(&str, &str)]) -> Schema {
    let mut members = Map::new();
    describe(&mut members, description);
    members.insert("type".to_owned(), "string".into());
    if texts.iter().all(|(_, meaning)| meaning.is_empty()) {
        members.insert("enum".to_owned(), texts.iter().map(|(text, _)| *text).collect());
    } else {
        let one = |(text, meaning): &(&str, &str)| {
            let mut one = Map::from_iter([("const".to_owned(), (*text).into())]);
            describe(&mut one, meaning);
            Value::from(one)
        };
        members.insert("oneOf".to_owned(), texts.iter().map(one).collect());
    }
    Schema::from(members)
}

/// The schema of an object that is left to serde.
pub fn opaque(may_be_null: bool) -> Schema {
    let types = if may_be_null { json!(["object", "null"]) } else { json!("object") };
    json_schema!({"type": types})
}

/// The default of a field, of the form that it has in a document.
///
/// # Panics
///
/// The field's type has no such value.
#[expect(clippy::panic, reason = "a declaration is wrong, and every use of the type shows it")]
pub fn default_of<T: DeserializeOwned>(field: &str, default: Value) -> T {
    serde_json::from_value(default)
        .unwrap_or_else(|error| panic!("the default of {field} is no value of its type: {error}"))
}

/// Puts the default in the place of the zero of a type.
pub fn replace_zero<T: Default + PartialEq>(value: &mut T, default: impl FnOnce() -> T) {
    if *value == T::default() {
        *value = default();
    }
}

/// Notes a field without an effect that is set to something else than its default.
pub fn warn_of_no_effect<T: PartialEq>(value: &T, unset: &T, field: &str, why: &str, problems: &mut Problems) {
    if value != unset {
        problems.add(&[field], format!("has no effect: {why}"));
    }
}
