//! Holds a document against the JSON Schema of its type.

use koord_resource::{Duration, Quantity};
use serde_json::Value;

use crate::{Problem, Step};

/// What of a document its schema refuses. `root` holds the definitions that the schema refers to.
pub fn check_schema(root: &Value, schema: &Value, document: &Value, at: &[Step]) -> Vec<Problem> {
    let mut walk = Walk { root, at: at.to_vec(), problems: Vec::new() };
    walk.value(schema, document);
    walk.problems
}

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

    /// The schema that is meant: a reference is followed, and of alternatives with `null` the other one.
    fn resolved(&self, mut schema: &'a Value) -> &'a Value {
        // A chain of references ends, because types are finite; the bound is for schemas that are no types.
        for _ in 0..16 {
            if let Some(name) = schema["$ref"].as_str() {
                schema = self.root.pointer(name.trim_start_matches('#')).unwrap_or(&Value::Null);
            } else if let Some(some) =
                schema["anyOf"].as_array().and_then(|any| any.iter().find(|one| one["type"] != "null"))
            {
                schema = some;
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
        self.form(schema, value);
        match value {
            Value::Object(members) => self.object(schema, members),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.at(Step::Index(index), |walk| walk.item(&schema["items"], item));
                }
            }
            _ => {}
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
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
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
        }
    }

    fn form(&mut self, schema: &Value, value: &Value) {
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
            self.at(Step::Key(key.clone()), |walk| match properties.and_then(|properties| properties.get(key)) {
                Some(property) => walk.value(property, value),
                None if schema["additionalProperties"] == false => {
                    let known = properties.into_iter().flat_map(|properties| properties.keys());
                    let suggestion = nearest(key, known.map(String::as_str));
                    walk.add("unknown field".to_owned(), suggestion);
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
