//! Values against a schema, with the API server's messages, order and choice of which failure of an `anyOf` to show.

mod scalar;

use scalar::{checked_format, type_name};
use serde_json::Value;

use crate::{
    AdditionalProperties, Schema,
    field::{Errors, FieldError, Mistake, Path},
    go_text,
    structural::{correlation::Correlation, formats},
};

/// Checks a value; paths start at the value itself.
pub fn validate(schema: &Schema, value: &Value) -> Errors {
    validate_under(None, schema, value)
}

/// Checks a value that stands at a path of something larger, such as the default of a field.
pub fn validate_at(at: &str, schema: &Schema, value: &Value) -> Errors {
    validate_under(Some(at), schema, value)
}

/// Checks a changed value. What is wrong with a part that did not change passes.
pub fn validate_update(schema: &Schema, value: &Value, old: &Value) -> Errors {
    collect(Validation { base: None }.node(schema, value, Some(old), &Path::root("")))
}

/// Checks a changed value that stands at a path of something larger. Failures name the whole path, and their texts only
/// the part below `at`.
pub fn validate_update_at(at: &str, schema: &Schema, value: &Value, old: &Value) -> Errors {
    collect(Validation { base: Some(at) }.node(schema, value, Some(old), &Path::root("")))
}

fn validate_under(base: Option<&str>, schema: &Schema, value: &Value) -> Errors {
    collect(Validation { base }.node(schema, value, None, &Path::root("")))
}

fn collect(outcome: Outcome) -> Errors {
    let mut errors = Errors::new();
    let mut seen = std::collections::HashSet::new();
    for error in outcome.errors {
        if seen.insert(error.to_string()) {
            errors.add(error);
        }
    }
    errors
}

/// The failures of one schema node, and how many of its checks held: of several alternatives that all fail, the one
/// with the most checks that held is shown.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    held: usize,
}

impl Outcome {
    fn merge(&mut self, other: Outcome) {
        self.errors.extend(other.errors);
        self.held += other.held;
    }
}

struct Validation<'b> {
    base: Option<&'b str>,
}

impl Validation<'_> {
    fn node(&self, schema: &Schema, value: &Value, old: Option<&Value>, at: &Path<'_>) -> Outcome {
        let outcome = self.check(schema, value, old, at);
        if !outcome.errors.is_empty() && old == Some(value) {
            return Outcome { errors: Vec::new(), held: outcome.held };
        }
        outcome
    }

    fn check(&self, schema: &Schema, value: &Value, old: Option<&Value>, at: &Path<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        if value.is_null() {
            if !schema.nullable && (schema.type_.is_some() || schema.int_or_string) {
                outcome.errors.push(self.wrong_type(at, &type_name(schema), "null"));
            }
            self.check_enum(schema, value, at, &mut outcome);
            return outcome;
        }
        let format = checked_format(schema);
        if schema.type_.is_some() || schema.int_or_string || format.is_some() {
            outcome.held += 1;
            match self.check_type(schema, value, format, at) {
                Some(error) => outcome.errors.push(error),
                None => outcome.held += 1,
            }
        }
        self.check_junctors(schema, value, old, at, &mut outcome);
        match value {
            Value::String(text) => {
                self.check_string(schema, text, at, &mut outcome);
                if let Some(format) = format
                    && !formats::holds(format, text)
                {
                    outcome.errors.push(self.wrong_type(at, format, text));
                }
                outcome.held += 2;
            }
            Value::Number(number) => {
                self.check_number(schema, number, at, &mut outcome);
                outcome.held += 2;
            }
            Value::Array(items) => {
                self.check_items(schema, items, old, at, &mut outcome);
                outcome.held += 2;
            }
            Value::Object(_) | Value::Bool(_) | Value::Null => {}
        }
        self.check_enum(schema, value, at, &mut outcome);
        if let Value::Object(fields) = value {
            self.check_fields(schema, fields, old, at, &mut outcome);
        }
        outcome.held += 1;
        outcome
    }

    // === what is inside ===

    fn check_items(&self, schema: &Schema, items: &[Value], old: Option<&Value>, at: &Path<'_>, outcome: &mut Outcome) {
        if let Some(item_schema) = schema.items.as_deref() {
            let correlation = Correlation::of(schema, old);
            for (index, item) in items.iter().enumerate() {
                outcome.merge(self.node(item_schema, item, correlation.old_item(index, item), &at.index(index)));
            }
        }
        let found = items.len() as u64;
        if let Some(min) = schema.min_items.filter(|min| found < *min) {
            outcome.errors.push(self.invalid(at, found.to_string(), &format!("should have at least {min} items")));
        }
        if let Some(max) = schema.max_items.filter(|max| found > *max) {
            outcome.errors.push(self.too_many(at, found, max));
        }
    }

    fn check_fields(
        &self,
        schema: &Schema,
        fields: &serde_json::Map<String, Value>,
        old: Option<&Value>,
        at: &Path<'_>,
        outcome: &mut Outcome,
    ) {
        let found = fields.len() as u64;
        if let Some(min) = schema.min_properties.filter(|min| found < *min) {
            outcome.errors.push(self.invalid(at, found.to_string(), &format!("should have at least {min} properties")));
            return;
        }
        if let Some(max) = schema.max_properties.filter(|max| found > *max) {
            outcome.errors.push(self.too_many(at, found, max));
            return;
        }
        for (name, field) in fields {
            let old_field = old.and_then(|old| old.get(name));
            if let Some(field_schema) = schema.properties.get(name) {
                outcome.merge(self.node(field_schema, field, old_field, &at.child(name)));
                continue;
            }
            match &schema.additional_properties {
                Some(AdditionalProperties::Schema(values)) => {
                    outcome.merge(self.node(values, field, old_field, &at.child(name)));
                }
                Some(AdditionalProperties::Allowed(false)) => {
                    let detail = format!("{} in body is a forbidden property", at.child(name));
                    outcome.errors.push(self.error(Mistake::Invalid, at, go_text::quote(name), detail));
                }
                Some(AdditionalProperties::Allowed(true)) | None => {}
            }
        }
        for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
            outcome.errors.push(self.error(Mistake::Required, &at.child(name), String::new(), String::new()));
        }
    }

    fn check_junctors(
        &self,
        schema: &Schema,
        value: &Value,
        old: Option<&Value>,
        at: &Path<'_>,
        outcome: &mut Outcome,
    ) {
        let composite = |words: String| {
            let field = self.base.unwrap_or("<nil>").to_owned();
            let detail = format!("{} {words}", go_text::quote(&at.to_string()));
            FieldError { mistake: Mistake::Invalid, field, value: "\"\"".to_owned(), detail }
        };
        if !schema.any_of.is_empty() {
            let (valid, shown) = self.alternatives(&schema.any_of, value, old, at, true);
            if valid == 0 {
                outcome.errors.push(composite("must validate at least one schema (anyOf)".to_owned()));
            }
            outcome.merge(shown);
        }
        if !schema.one_of.is_empty() {
            let (valid, shown) = self.alternatives(&schema.one_of, value, old, at, false);
            if valid != 1 {
                let found = if valid == 0 {
                    "Found none valid".to_owned()
                } else {
                    format!("Found {valid} valid alternatives")
                };
                outcome.errors.push(composite(format!("must validate one and only one schema (oneOf). {found}")));
            }
            outcome.merge(shown);
        }
        if !schema.all_of.is_empty() {
            let outcomes: Vec<Outcome> = schema.all_of.iter().map(|part| self.node(part, value, old, at)).collect();
            let valid = outcomes.iter().filter(|part| part.errors.is_empty()).count();
            for part in outcomes {
                outcome.merge(part);
            }
            if valid != schema.all_of.len() {
                let more = if valid == 0 { ". None validated" } else { "" };
                outcome.errors.push(composite(format!("must validate all the schemas (allOf){more}")));
            }
        }
        if let Some(not) = schema.not.as_deref()
            && self.node(not, value, old, at).errors.is_empty()
        {
            outcome.errors.push(composite("must not validate the schema (not)".to_owned()));
        }
        outcome.held += 2;
    }

    /// How many alternatives hold, and what to report: the first that holds, else the one that came closest.
    fn alternatives(
        &self,
        alternatives: &[Schema],
        value: &Value,
        old: Option<&Value>,
        at: &Path<'_>,
        first_is_enough: bool,
    ) -> (usize, Outcome) {
        let mut valid = 0;
        let mut first_valid = None;
        let mut closest: Option<Outcome> = None;
        for alternative in alternatives {
            let outcome = self.node(alternative, value, old, at);
            if outcome.errors.is_empty() {
                valid += 1;
                first_valid.get_or_insert(outcome);
                if first_is_enough {
                    break;
                }
            } else if closest.as_ref().is_none_or(|closest| outcome.held > closest.held) {
                closest = Some(outcome);
            }
        }
        let shown = match (valid, first_valid) {
            (0, _) => closest.unwrap_or_default(),
            (1, Some(outcome)) => outcome,
            _ => Outcome::default(),
        };
        (valid, shown)
    }

    // === errors ===

    fn error(&self, mistake: Mistake, at: &Path<'_>, value: String, detail: String) -> FieldError {
        let relative = at.to_string();
        let field = match (self.base, relative.is_empty()) {
            (None, true) => "<nil>".to_owned(),
            (None, false) => relative,
            (Some(base), true) => base.to_owned(),
            (Some(base), false) => format!("{base}.{relative}"),
        };
        FieldError { mistake, field, value, detail }
    }

    fn invalid(&self, at: &Path<'_>, value: String, message: &str) -> FieldError {
        self.error(Mistake::Invalid, at, value, format!("{at} in body {message}"))
    }

    fn wrong_type(&self, at: &Path<'_>, declared: &str, found: &str) -> FieldError {
        let found = go_text::quote(found);
        let detail = format!("{at} in body must be of type {declared}: {found}");
        self.error(Mistake::TypeInvalid, at, found, detail)
    }

    fn too_many(&self, at: &Path<'_>, found: u64, max: u64) -> FieldError {
        let noun = if max == 1 { "item" } else { "items" };
        self.error(Mistake::TooMany, at, found.to_string(), format!("must have at most {max} {noun}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(field_schema: Value, value: Value) -> String {
        let schema: Schema = serde_json::from_value(
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field_schema}}}}),
        )
        .unwrap();
        validate(&schema, &json!({"spec": {"f": value}})).to_string()
    }

    #[test]
    fn messages_are_those_of_the_api_server() {
        let quantity = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))$";
        let table = [
            (
                json!({"type": "integer"}),
                json!("1"),
                r#"spec.f: Invalid value: "string": spec.f in body must be of type integer: "string""#,
            ),
            (
                json!({"type": "integer"}),
                json!(1.5),
                r#"spec.f: Invalid value: "number": spec.f in body must be of type integer: "number""#,
            ),
            (json!({"type": "integer"}), json!(1.0), "[]"),
            (
                json!({"type": "integer", "format": "int64"}),
                json!(1e20),
                r#"spec.f: Invalid value: "number": spec.f in body must be of type integer: "number""#,
            ),
            (json!({"type": "integer", "format": "int32"}), json!(2_147_483_648_i64), "[]"),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                json!([null]),
                r#"spec.f[0]: Invalid value: "null": spec.f[0] in body must be of type string: "null""#,
            ),
            (
                json!({"x-kubernetes-int-or-string": true}),
                json!(true),
                r#"spec.f: Invalid value: "boolean": spec.f in body must be of type integer,string: "boolean""#,
            ),
            (
                json!({"type": "string", "enum": ["A", "B"]}),
                json!(1),
                r#"[spec.f: Invalid value: "integer": spec.f in body must be of type string: "integer", spec.f: Unsupported value: 1: supported values: "A", "B"]"#,
            ),
            (
                json!({"type": "integer", "enum": [1, 2]}),
                json!(3),
                r#"spec.f: Unsupported value: 3: supported values: "1", "2""#,
            ),
            (
                json!({"type": "number", "maximum": 1.5}),
                json!(2.5),
                "spec.f: Invalid value: 2.5: spec.f in body should be less than or equal to 1.5",
            ),
            (
                json!({"type": "number", "maximum": 1.5}),
                json!(2),
                "spec.f: Invalid value: 2: spec.f in body should be less than or equal to 1",
            ),
            (
                json!({"type": "integer", "maximum": 5, "exclusiveMaximum": true}),
                json!(5),
                "spec.f: Invalid value: 5: spec.f in body should be less than 5",
            ),
            (
                json!({"type": "integer", "minimum": 1}),
                json!(0),
                "spec.f: Invalid value: 0: spec.f in body should be greater than or equal to 1",
            ),
            (
                json!({"type": "integer", "multipleOf": 3}),
                json!(4),
                "spec.f: Invalid value: 4: spec.f in body should be a multiple of 3",
            ),
            (json!({"type": "number", "multipleOf": 0.1}), json!(0.3), "[]"),
            (
                json!({"type": "string", "minLength": 2}),
                json!("a"),
                r#"spec.f: Invalid value: "a": spec.f in body should be at least 2 chars long"#,
            ),
            (
                json!({"type": "string", "maxLength": 4}),
                json!("abcde"),
                "spec.f: Too long: may not be more than 4 bytes",
            ),
            (json!({"type": "string", "maxLength": 4}), json!("äöüß"), "[]"),
            (
                json!({"type": "string", "format": "date-time"}),
                json!("yesterday"),
                r#"spec.f: Invalid value: "yesterday": spec.f in body must be of type date-time: "yesterday""#,
            ),
            (
                json!({"type": "array", "items": {"type": "integer"}, "minItems": 1}),
                json!([]),
                "spec.f: Invalid value: 0: spec.f in body should have at least 1 items",
            ),
            (
                json!({"type": "array", "items": {"type": "integer"}, "maxItems": 2}),
                json!([1, 2, 3]),
                "spec.f: Too many: 3: must have at most 2 items",
            ),
            (
                json!({"type": "object", "additionalProperties": {"type": "integer"}}),
                json!({"a": "x"}),
                r#"spec.f.a: Invalid value: "string": spec.f.a in body must be of type integer: "string""#,
            ),
            (
                json!({"type": "object", "minProperties": 1}),
                json!({}),
                "spec.f: Invalid value: 0: spec.f in body should have at least 1 properties",
            ),
            (
                json!({"type": "object", "maxProperties": 1}),
                json!({"a": 1, "b": 2}),
                "spec.f: Too many: 2: must have at most 1 item",
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
                json!({}),
                "spec.f.a: Required value",
            ),
            (
                json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": quantity}),
                json!("1x"),
                &format!(r#"spec.f: Invalid value: "1x": spec.f in body should match '{quantity}'"#),
            ),
            (
                json!({"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                json!({}),
                r#"[<nil>: Invalid value: "": "spec.f" must validate at least one schema (anyOf), spec.f.a: Required value]"#,
            ),
            (
                json!({"type": "object", "properties": {"a": {}, "b": {}}, "not": {"required": ["a", "b"]}}),
                json!({"a": 1, "b": 2}),
                r#"<nil>: Invalid value: "": "spec.f" must not validate the schema (not)"#,
            ),
            (
                json!({"type": "integer", "oneOf": [{"minimum": 1}, {"minimum": 2}]}),
                json!(3),
                r#"<nil>: Invalid value: "": "spec.f" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
            ),
            (
                json!({"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 2}]}),
                json!(3),
                r#"[spec.f: Invalid value: 3: spec.f in body should be less than or equal to 2, <nil>: Invalid value: "": "spec.f" must validate all the schemas (allOf)]"#,
            ),
            (json!({"type": "string", "nullable": true}), json!(null), "[]"),
        ];
        for (schema, value, message) in table {
            assert_eq!(wrong(schema.clone(), value.clone()), message, "{schema} {value}");
        }
    }

    #[test]
    fn a_format_hides_the_type() {
        let dated = json!({"type": "string", "format": "date"});
        assert_eq!(wrong(dated.clone(), json!([])), "[]");
        assert_eq!(
            wrong(dated, json!(5)),
            r#"spec.f: Invalid value: "int64": spec.f in body must be of type date: "int64""#
        );
    }

    #[test]
    fn what_did_not_change_passes() {
        let schema: Schema = serde_json::from_value(json!({"type": "object", "properties": {
            "a": {"type": "integer", "maximum": 5}, "other": {"type": "integer"},
            "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                     "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 5}}}}}}))
        .unwrap();
        let old = json!({"a": 9, "list": [{"k": "x", "v": 9}]});
        let update = |new: Value| validate_update(&schema, &new, &old).to_string();
        assert_eq!(update(json!({"a": 9, "other": 1, "list": [{"k": "y", "v": 1}, {"k": "x", "v": 9}]})), "[]");
        assert_eq!(update(json!({"a": 10})), "a: Invalid value: 10: a in body should be less than or equal to 5");
        assert_eq!(
            update(json!({"a": 9, "list": [{"k": "y", "v": 9}]})),
            "list[0].v: Invalid value: 9: list[0].v in body should be less than or equal to 5"
        );
    }
}
