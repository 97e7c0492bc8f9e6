//! Holds a document against the JSON Schema of its type: by the keywords that `schemars` writes for types and their attributes. Which of several
//! alternatives is meant is left to serde.

use std::collections::BTreeSet;

use koord_resource::{Duration, Quantity, schema::pattern};
use serde_json::Value;

use crate::{Problem, Step};

/// What of a document its schema refuses. `root` holds the definitions that the schema refers to.
pub fn check_schema(root: &Value, schema: &Value, document: &Value, at: &[Step]) -> Vec<Problem> {
    let mut walk = Walk { root, at: at.to_vec(), problems: Vec::new() };
    walk.value(schema, document);
    walk.problems
}

/// What of a document its schema does not know, each with the field that may have been meant. The rest is as good as a document without it.
pub fn unknown_fields(root: &Value, schema: &Value, document: &Value, at: &[Step]) -> Vec<Problem> {
    let mut problems = check_schema(root, schema, document, at);
    problems.retain(|problem| problem.message == UNKNOWN_FIELD);
    problems
}

const UNKNOWN_FIELD: &str = "unknown field";

struct Walk<'a> {
    root: &'a Value,
    at: Vec<Step>,
    problems: Vec<Problem>,
}

impl<'a> Walk<'a> {
    fn add(&mut self, message: String, suggestion: Option<String>) {
        self.problems.push(Problem { path: self.at.clone(), message, suggestion });
    }

    fn at(&mut self, step: Step, check: impl FnOnce(&mut Self)) {
        self.at.push(step);
        check(self);
        self.at.pop();
    }

    /// The schema that is meant: a reference is followed, and a sole alternative to `null`.
    fn resolved(&self, mut schema: &'a Value) -> &'a Value {
        // A chain of references ends, because types are finite; the bound is for schemas that are no types.
        for _ in 0..16 {
            if let Some(name) = schema["$ref"].as_str() {
                schema = self.root.pointer(name.trim_start_matches('#')).unwrap_or(&Value::Null);
            } else if let Some(sole) = sole_alternative(schema) {
                schema = sole;
            } else {
                break;
            }
        }
        schema
    }

    fn value(&mut self, schema: &'a Value, value: &Value) {
        let schema = self.resolved(schema);
        // Absent and null are the same in Go.
        if value.is_null() {
            return;
        }
        if !self.has_type(schema, value) {
            return;
        }
        self.choice(schema, value);
        self.bounds(schema, value);
        self.lengths(schema, value);
        self.form(schema, value);
        match value {
            Value::Object(members) => self.object(schema, members),
            Value::Array(items) => self.list(schema, items),
            _ => {}
        }
    }

    fn list(&mut self, schema: &'a Value, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            self.at(Step::Index(index), |walk| walk.item(&schema["items"], item));
            if schema["uniqueItems"] == true && !seen.insert(item.to_string()) {
                self.at(Step::Index(index), |walk| walk.add(format!("{item} stands twice"), None));
            }
        }
    }

    /// An item of a list, which cannot be left out.
    fn item(&mut self, schema: &'a Value, item: &Value) {
        if item.is_null() {
            self.has_type(self.resolved(schema), item);
        } else {
            self.value(schema, item);
        }
    }

    fn has_type(&mut self, schema: &Value, value: &Value) -> bool {
        let wanted: Vec<&str> = match &schema["type"] {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect(),
            _ => return true,
        };
        let found = type_of(value);
        let fits = wanted.iter().any(|wanted| *wanted == found || (*wanted == "number" && found == "integer"));
        if !fits {
            self.add(
                format!(
                    "must be {}, not {}",
                    wanted.iter().map(|name| named(name)).collect::<Vec<_>>().join(" or "),
                    named(found)
                ),
                None,
            );
        }
        fits
    }

    fn choice(&mut self, schema: &Value, value: &Value) {
        let listed = schema["enum"].as_array().into_iter().flatten();
        let alternatives = schema["oneOf"].as_array().into_iter().flatten();
        let texts: Vec<&str> = listed
            .chain(alternatives.clone().map(|one| &one["const"]))
            .chain(alternatives.filter_map(|one| one["enum"].as_array()).flatten())
            .filter_map(Value::as_str)
            .collect();
        let Some(text) = value.as_str().filter(|text| !texts.is_empty() && !texts.contains(text)) else { return };
        let suggestion = nearest(text, texts.iter().copied());
        self.add(format!("{text:?} is none of {}", texts.join(", ")), suggestion);
    }

    fn bounds(&mut self, schema: &Value, value: &Value) {
        let Some(number) = value.as_f64() else { return };
        let range = schema["format"].as_str().and_then(range);
        let whole = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
        if let (Some((least, most)), Some(whole)) = (range, whole)
            && !(least..=most).contains(&whole)
        {
            let bound = if whole < least { format!("{least} or greater") } else { format!("{most} or less") };
            return self.add(format!("must be {bound}"), None);
        }
        let bound = |key: &str| schema[key].as_f64();
        if let Some(least) = bound("minimum").filter(|least| number < *least) {
            self.add(format!("must be {least} or greater"), None);
        } else if let Some(least) = bound("exclusiveMinimum").filter(|least| number <= *least) {
            self.add(format!("must be greater than {least}"), None);
        } else if let Some(most) = bound("maximum").filter(|most| number > *most) {
            self.add(format!("must be {most} or less"), None);
        } else if let Some(most) = bound("exclusiveMaximum").filter(|most| number >= *most) {
            self.add(format!("must be less than {most}"), None);
        }
    }

    /// How long a text or a list is.
    fn lengths(&mut self, schema: &Value, value: &Value) {
        let (length, least, most, unit) = match value {
            Value::String(text) => (text.chars().count(), "minLength", "maxLength", "character"),
            Value::Array(items) => (items.len(), "minItems", "maxItems", "item"),
            _ => return,
        };
        let bound = |key: &str| schema[key].as_u64();
        let counted = |count: u64| format!("{count} {unit}{}", if count == 1 { "" } else { "s" });
        if let Some(least) = bound(least).filter(|least| (length as u64) < *least) {
            self.add(format!("must have at least {}", counted(least)), None);
        } else if let Some(most) = bound(most).filter(|most| length as u64 > *most) {
            self.add(format!("must have at most {}", counted(most)), None);
        }
    }

    fn form(&mut self, schema: &Value, value: &Value) {
        if let (Some(expression), Some(text)) = (schema["pattern"].as_str(), value.as_str()) {
            match pattern::compile(expression) {
                Ok(compiled) if compiled.is_match(text) => {}
                Ok(_) => self.add(format!("{text:?} does not match {expression}"), None),
                Err(error) => self.add(format!("cannot be checked: {error}"), None),
            }
        }
        match schema["format"].as_str() {
            Some("duration") => {
                let duration = value.as_str().unwrap_or_default().parse::<Duration>();
                match duration {
                    Err(error) => {
                        self.add(error.to_string(), Some("durations are texts such as 90s, 5m or 1h30m".to_owned()));
                    }
                    Ok(duration) if duration.is_negative() => self.add("must be 0 or longer".to_owned(), None),
                    Ok(_) => {}
                }
            }
            Some("quantity") => match serde_json::from_value::<Quantity>(value.clone()) {
                Err(_) => self
                    .add("is no quantity".to_owned(), Some("quantities are texts such as 500m, 2 or 4Gi".to_owned())),
                Ok(amount) if amount.is_negative() => self.add("must be 0 or more".to_owned(), None),
                Ok(_) => {}
            },
            _ => {}
        }
    }

    fn object(&mut self, schema: &'a Value, members: &serde_json::Map<String, Value>) {
        let properties = schema["properties"].as_object();
        for (key, value) in members {
            let property = properties.and_then(|properties| properties.get(key)).or_else(|| by_pattern(schema, key));
            self.at(Step::Key(key.clone()), |walk| match property {
                Some(property) => walk.value(property, value),
                None if schema["additionalProperties"] == false => {
                    let known = properties.into_iter().flat_map(|properties| properties.keys());
                    let suggestion = nearest(key, known.map(String::as_str));
                    walk.add(UNKNOWN_FIELD.to_owned(), suggestion);
                }
                None => walk.value(&schema["additionalProperties"], value),
            });
        }
        for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if members.get(key).is_none_or(Value::is_null) {
                self.at(Step::Key(key.to_owned()), |walk| walk.add("must be set".to_owned(), None));
            }
        }
    }
}

/// The alternative to `null`; none where there are several, or none at all.
fn sole_alternative(schema: &Value) -> Option<&Value> {
    let mut others = schema["anyOf"].as_array()?.iter().filter(|one| one["type"] != "null");
    let first = others.next()?;
    others.next().is_none().then_some(first)
}

/// The schema of a member whose key has a form, such as a number.
fn by_pattern<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    let mut forms = schema["patternProperties"].as_object()?.iter();
    let found = forms.find(|(form, _)| pattern::compile(form).is_ok_and(|compiled| compiled.is_match(key)));
    found.map(|(_, property)| property)
}

/// The least and the greatest integer of a format; none of a format of something else.
fn range(format: &str) -> Option<(i128, i128)> {
    Some(match format {
        "int8" => (i8::MIN.into(), i8::MAX.into()),
        "int16" => (i16::MIN.into(), i16::MAX.into()),
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int" | "int64" => (i64::MIN.into(), i64::MAX.into()),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint" | "uint64" => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// What a value is, in words, such as `a list`.
pub(crate) fn form_of(value: &Value) -> &'static str {
    named(type_of(value))
}

/// The type of a value, as a schema names it.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn named(kind: &str) -> &str {
    match kind {
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "string" => "a text",
        "array" => "a list",
        "object" => "an object",
        other => other,
    }
}

/// A question for the known text that is most like this one; none where none is like it.
pub fn nearest<'k>(text: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    let distance = |known: &str| strsim::damerau_levenshtein(&text.to_lowercase(), &known.to_lowercase());
    let near = known.into_iter().map(|known| (distance(known), known)).min()?;
    (near.0 <= text.len().max(4) / 3).then(|| format!("did you mean {}?", near.1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;
    use crate::decode;

    /// What a type and its attributes can say of a value.
    #[derive(Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Menu {
        #[schemars(length(min = 2, max = 4))]
        name: Option<String>,
        #[schemars(regex(pattern = r"^[a-z]+$"))]
        group: Option<String>,
        #[schemars(regex(pattern = "(broken"))]
        broken: Option<String>,
        #[schemars(length(min = 1, max = 2))]
        tables: Option<Vec<String>>,
        #[schemars(extend("exclusiveMaximum" = 1))]
        share: Option<f64>,
        guests: BTreeSet<String>,
        floors: BTreeMap<u8, Floor>,
        size: Option<Size>,
    }

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct Floor {
        seats: u8,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Size {
        Number(u32),
        Word(String),
    }

    #[track_caller]
    fn refuses(document: &Value, message: &str) {
        let problems = decode::<Menu>(document).unwrap_err();
        assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [message]);
    }

    #[test]
    fn lengths_and_patterns_of_a_type_are_kept() {
        let good = json!({
            "name": "\u{e4}\u{f6}\u{fc}\u{df}", "group": "a", "tables": ["x"], "guests": ["a", "b"], "share": 0.5,
        });
        assert!(decode::<Menu>(&good).is_ok());
        refuses(&json!({"name": "x"}), "name: must have at least 2 characters");
        refuses(&json!({"name": "xxxxx"}), "name: must have at most 4 characters");
        refuses(&json!({"group": "A"}), "group: \"A\" does not match ^[a-z]+$");
        refuses(&json!({"tables": []}), "tables: must have at least 1 item");
        refuses(&json!({"tables": ["a", "b", "c"]}), "tables: must have at most 2 items");
        refuses(&json!({"guests": ["a", "b", "a"]}), "guests[2]: \"a\" stands twice");
        refuses(&json!({"share": 1}), "share: must be less than 1");
        let unchecked = decode::<Menu>(&json!({"broken": "x"})).unwrap_err().remove(0).to_string();
        assert!(unchecked.starts_with("broken: cannot be checked: "), "{unchecked}");
    }

    #[test]
    fn keys_that_are_numbers_are_no_unknown_fields() {
        let floors = |document: Value| decode::<Menu>(&json!({"floors": document})).map(|menu| menu.floors);
        assert_eq!(floors(json!({"2": {"seats": 8}})), Ok(BTreeMap::from([(2, Floor { seats: 8 })])));
        refuses(&json!({"floors": {"2": {"seat": 8}}}), "floors.2.seat: unknown field");
        refuses(&json!({"floors": {"up": {}}}), "floors.up: unknown field");
    }

    #[test]
    fn which_of_several_alternatives_is_meant_is_left_to_serde() {
        let size = |size: Value| decode::<Menu>(&json!({"size": size})).map(|menu| menu.size);
        assert_eq!(size(json!(3)), Ok(Some(Size::Number(3))));
        assert_eq!(size(json!("large")), Ok(Some(Size::Word("large".to_owned()))));
        assert_eq!(size(json!(null)), Ok(None));
        assert!(size(json!([])).is_err());
    }
}
