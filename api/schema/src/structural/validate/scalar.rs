//! What one node of a schema says of a value by itself: its type, its choices, and the rules of texts and numbers.

use serde_json::{Number, Value};

use super::{Outcome, Validation};
use crate::{
    Schema, SchemaType,
    field::{FieldError, Mistake, Path},
    go_text, pattern,
    structural::{
        formats,
        numbers::{bound_text, compare, is_multiple, is_whole, same_value},
    },
};

impl Validation<'_> {
    pub(super) fn check_type(
        &self,
        schema: &Schema,
        value: &Value,
        format: Option<&str>,
        at: &Path<'_>,
    ) -> Option<FieldError> {
        let declared = type_name(schema);
        let wants = |name: &str| declared.split(',').any(|declared| declared == name);
        let found = type_of(value);
        let whole = found == "number" && wants("integer") && value.as_f64().is_some_and(is_whole);
        let fits = wants(found) || whole || (found == "integer" && wants("number"));
        if let Some(format) = format {
            // QUIRK: where a string format is declared, the type of strings and lists is not looked at, and the
            // message about others names the format (`a_format_hides_the_type`).
            if matches!(value, Value::String(_) | Value::Array(_)) {
                return None;
            }
            if !fits {
                let found_format = match found {
                    "integer" => "int64",
                    "number" => "float64",
                    _ => "",
                };
                return Some(self.wrong_type(at, format, found_format));
            }
        }
        (!fits && !declared.is_empty()).then(|| self.wrong_type(at, &declared, found))
    }

    pub(super) fn check_enum(&self, schema: &Schema, value: &Value, at: &Path<'_>, outcome: &mut Outcome) {
        if schema.enum_.is_empty() || schema.enum_.iter().any(|allowed| same_value(allowed, value)) {
            outcome.held += 1;
            return;
        }
        let allowed: Vec<String> = schema
            .enum_
            .iter()
            .map(|allowed| go_text::quote(&allowed.as_str().map_or_else(|| go_text::json(allowed), str::to_owned)))
            .collect();
        let detail = format!("supported values: {}", allowed.join(", "));
        let shown = if value.is_null() { "\"null\"".to_owned() } else { go_text::shown(value) };
        outcome.errors.push(self.error(Mistake::NotSupported, at, shown, detail));
    }

    pub(super) fn check_string(&self, schema: &Schema, text: &str, at: &Path<'_>, outcome: &mut Outcome) {
        let too_long = |max: u64| {
            let noun = if max == 1 { "byte" } else { "bytes" };
            self.error(Mistake::TooLong, at, String::new(), format!("may not be more than {max} {noun}"))
        };
        let length =
            if schema.max_length.is_some() || schema.min_length.is_some() { text.chars().count() as u64 } else { 0 };
        if let Some(max) = schema.max_length.filter(|max| length > *max) {
            outcome.errors.push(too_long(max));
        } else if let Some(min) = schema.min_length.filter(|min| length < *min) {
            outcome.errors.push(self.invalid(
                at,
                go_text::quote(text),
                &format!("should be at least {min} chars long"),
            ));
        } else if let Some(expression) = &schema.pattern {
            let message = match pattern::compile(expression) {
                Ok(regex) if regex.is_match(text) => return,
                Ok(_) => format!("should match '{expression}'"),
                Err(error) => format!("should match '{expression}, but pattern is invalid: {error}'"),
            };
            outcome.errors.push(self.invalid(at, go_text::quote(text), &message));
        }
    }

    pub(super) fn check_number(&self, schema: &Schema, number: &Number, at: &Path<'_>, outcome: &mut Outcome) {
        let mut report = |message: String| {
            outcome.errors.push(self.invalid(at, go_text::number(number), &message));
        };
        if let Some(factor) = &schema.multiple_of
            && !is_multiple(number, factor)
        {
            report(format!("should be a multiple of {}", bound_text(number, factor)));
        }
        if let Some(maximum) = &schema.maximum {
            let order = compare(number, maximum);
            if order == Some(std::cmp::Ordering::Greater)
                || (schema.exclusive_maximum && order == Some(std::cmp::Ordering::Equal))
            {
                let words = if schema.exclusive_maximum { "less than" } else { "less than or equal to" };
                report(format!("should be {words} {}", bound_text(number, maximum)));
            }
        }
        if let Some(minimum) = &schema.minimum {
            let order = compare(number, minimum);
            if order == Some(std::cmp::Ordering::Less)
                || (schema.exclusive_minimum && order == Some(std::cmp::Ordering::Equal))
            {
                let words = if schema.exclusive_minimum { "greater than" } else { "greater than or equal to" };
                report(format!("should be {words} {}", bound_text(number, minimum)));
            }
        }
    }
}

/// The declared type as messages name it.
pub(super) fn type_name(schema: &Schema) -> String {
    match schema.type_ {
        _ if schema.int_or_string => "integer,string".to_owned(),
        None => String::new(),
        Some(type_) => type_text(type_).to_owned(),
    }
}

fn type_text(type_: SchemaType) -> &'static str {
    match type_ {
        SchemaType::Object => "object",
        SchemaType::Array => "array",
        SchemaType::String => "string",
        SchemaType::Integer => "integer",
        SchemaType::Number => "number",
        SchemaType::Boolean => "boolean",
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_i64().is_some() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The format, where it is one that is checked for this type.
pub(super) fn checked_format(schema: &Schema) -> Option<&str> {
    let format = schema.format.as_deref()?;
    let of_strings = matches!(schema.type_, None | Some(SchemaType::String)) && !schema.int_or_string;
    (of_strings && formats::is_known(format)).then_some(format)
}
