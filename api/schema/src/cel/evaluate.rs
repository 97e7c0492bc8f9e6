//! Evaluating the rules of an object, and telling what failed.

use std::{sync::Arc, time::Duration};

use kube_cel::cel::{Context, ExecutionError, Value as CelValue, objects::OptionalValue};
use serde_json::Value;

use super::{Compiled, RuleNode, Rules, executor, value};
use crate::{
    AdditionalProperties, Schema, SchemaType,
    field::{Errors, FieldError, Mistake, Path},
    go_text,
    structural::{correlation::Correlation, legality::field_path_steps},
};

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
const BROKEN: &str = "validation failed: the rules of this kind could not be evaluated";

impl Rules {
    /// Evaluates the rules for an object that is created (`old` is `None`) or changed. The whole evaluation may take
    /// `limit` of real time; beyond it the object is refused.
    ///
    /// Rules that compare with the old value run only where there is one (or where they ask for an optional one);
    /// all others pass where nothing changed since.
    pub fn evaluate(&self, object: &Value, old: Option<&Value>, limit: Duration) -> Errors {
        if self.is_empty() {
            return Errors::new();
        }
        let (root, schema) = (Arc::clone(&self.root), Arc::clone(&self.schema));
        let (object, old) = (object.clone(), old.cloned());
        let answer = executor::SHARED.run(limit, move |context| {
            let mut errors = Errors::new();
            let place = Place { schema: &schema, value: &object, old: old.as_ref() };
            visit(&root, &place, &Path::root(""), context, &mut errors);
            errors
        });
        answer.unwrap_or_else(|none| {
            let detail = if none == executor::ServiceError::OutOfTime { OUT_OF_BUDGET } else { BROKEN };
            let mut errors = Errors::new();
            errors.add(error(Mistake::Invalid, &Path::root(""), "\"object\"".to_owned(), detail.to_owned()));
            errors
        })
    }

    /// Evaluates the rules after the schema itself was checked, and adds what they refuse to what it found. Objects
    /// that the schema refuses for their types or sizes are not evaluated.
    pub fn evaluate_after(&self, errors: &mut Errors, object: &Value, old: Option<&Value>, limit: Duration) {
        if self.is_empty() {
            return;
        }
        if errors.iter().any(blocks) {
            let at = Path::root("");
            errors.add(error(Mistake::Invalid, &at, "null".to_owned(), NOT_CHECKED.to_owned()));
        } else {
            errors.extend(self.evaluate(object, old, limit));
        }
    }
}

/// Mistakes after which rules are not evaluated: the value may not be of the types that the rules were checked for.
fn blocks(error: &FieldError) -> bool {
    matches!(error.mistake, Mistake::Required | Mistake::TooLong | Mistake::TooMany | Mistake::TypeInvalid)
}

struct Place<'v> {
    schema: &'v Schema,
    value: &'v Value,
    old: Option<&'v Value>,
}

fn visit(node: &RuleNode, place: &Place<'_>, at: &Path<'_>, context: &Context<'_>, errors: &mut Errors) {
    if place.value.is_null() {
        return;
    }
    if !node.rules.is_empty() {
        run_rules(&node.rules, place, at, context, errors);
    }
    match place.value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let old = place.old.and_then(|old| old.get(name));
                if let (Some(child), Some(schema)) = (node.fields.get(name), place.schema.properties.get(name)) {
                    visit(child, &Place { schema, value: field, old }, &at.child(name), context, errors);
                } else if let (Some(child), Some(AdditionalProperties::Schema(schema))) =
                    (&node.values, &place.schema.additional_properties)
                {
                    visit(child, &Place { schema, value: field, old }, &at.key(name), context, errors);
                }
            }
        }
        Value::Array(items) => {
            let (Some(child), Some(schema)) = (&node.items, place.schema.items.as_deref()) else { return };
            let correlation = Correlation::of(place.schema, place.old);
            for (index, item) in items.iter().enumerate() {
                let old = correlation.old_item(index, item);
                visit(child, &Place { schema, value: item, old }, &at.index(index), context, errors);
            }
        }
        _ => {}
    }
}

fn run_rules(rules: &[Compiled], place: &Place<'_>, at: &Path<'_>, context: &Context<'_>, errors: &mut Errors) {
    let unchanged = place.old == Some(place.value);
    let own = value::of(place.value, Some(place.schema), context);
    let old = place.old.map(|old| value::of(old, Some(place.schema), context));
    for rule in rules {
        let mut scope = context.new_inner_scope();
        if rule.uses_old {
            match (&old, rule.rule.optional_old_self == Some(true)) {
                (None, false) => continue,
                (Some(old), false) => scope.add_variable_from_value("oldSelf", old.clone()),
                (old, true) => {
                    let optional = old.clone().map_or_else(OptionalValue::none, OptionalValue::of);
                    scope.add_variable_from_value("oldSelf", CelValue::Opaque(Arc::new(optional)));
                }
            }
        } else if unchanged {
            continue;
        }
        scope.add_variable_from_value("self", own.clone());
        match CelValue::resolve(&rule.expression, &scope) {
            Ok(CelValue::Bool(true)) => {}
            Ok(CelValue::Bool(false)) => errors.add(refusal(rule, place.schema, at, &scope)),
            Ok(_) => {
                let detail = "cel expression evaluated to a value that is no bool".to_owned();
                errors.add(error(Mistake::Invalid, at, type_shown(place.schema), detail));
            }
            Err(failure) => {
                let detail = failure_text(&failure, rule);
                errors.add(error(Mistake::Invalid, at, type_shown(place.schema), detail));
            }
        }
    }
}

fn refusal(rule: &Compiled, schema: &Schema, at: &Path<'_>, scope: &Context<'_>) -> FieldError {
    let computed = rule.message.as_ref().and_then(|message| match CelValue::resolve(message, scope) {
        // As the API server does: a message that is empty or breaks lines is not shown.
        Ok(CelValue::String(text)) if !text.trim().is_empty() && !text.contains('\n') => Some(text.trim().to_owned()),
        _ => None,
    });
    let stated = rule.rule.message.as_deref().filter(|message| !message.is_empty());
    let detail = computed
        .or_else(|| stated.map(str::to_owned))
        .unwrap_or_else(|| format!("failed rule: {}", rule.rule.rule.trim()));
    let mistake = match rule.rule.reason.as_deref() {
        Some("FieldValueForbidden") => Mistake::Forbidden,
        Some("FieldValueRequired") => Mistake::Required,
        Some("FieldValueDuplicate") => Mistake::Duplicate,
        _ => Mistake::Invalid,
    };
    let mut error = match mistake {
        Mistake::Forbidden | Mistake::Required => error(mistake, at, String::new(), detail),
        Mistake::Duplicate => error(mistake, at, type_shown(schema), String::new()),
        _ => error(mistake, at, type_shown(schema), detail),
    };
    if let Some(steps) = rule.rule.field_path.as_deref().and_then(field_path_steps) {
        let mut field = if error.field == "<nil>" { String::new() } else { error.field };
        for (name, quoted) in steps {
            if quoted {
                field = format!("{field}[{name}]");
            } else {
                let dot = if field.is_empty() { "" } else { "." };
                field = format!("{field}{dot}{name}");
            }
        }
        error.field = field;
    }
    error
}

fn error(mistake: Mistake, at: &Path<'_>, value: String, detail: String) -> FieldError {
    let field = at.to_string();
    FieldError { mistake, field: if field.is_empty() { "<nil>".to_owned() } else { field }, value, detail }
}

/// The value is shown by its type alone.
fn type_shown(schema: &Schema) -> String {
    let name = match schema.type_ {
        None => "",
        Some(SchemaType::Object) => "object",
        Some(SchemaType::Array) => "array",
        Some(SchemaType::String) => "string",
        Some(SchemaType::Integer) => "integer",
        Some(SchemaType::Number) => "number",
        Some(SchemaType::Boolean) => "boolean",
    };
    go_text::quote(name)
}

fn failure_text(failure: &ExecutionError, rule: &Compiled) -> String {
    let stated = rule.rule.message.as_deref().filter(|message| !message.is_empty());
    let shown = stated.unwrap_or(rule.rule.rule.trim());
    let is_mismatch = matches!(
        failure,
        ExecutionError::NoSuchOverload
            | ExecutionError::UnsupportedBinaryOperator(..)
            | ExecutionError::UnsupportedUnaryOperator(..)
            | ExecutionError::ValuesNotComparable(..)
    );
    if is_mismatch {
        return format!(
            "'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
        );
    }
    format!("{} evaluating rule: {shown}", reason(failure))
}

/// Why an evaluation broke off, as Go's interpreter says it.
pub(super) fn reason(failure: &ExecutionError) -> String {
    match failure {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(CelValue::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::IndexOutOfBounds(_) => "index out of bounds".to_owned(),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..) => "no such overload".to_owned(),
        ExecutionError::FunctionError { function, .. }
            if matches!(function.as_str(), "int" | "uint" | "double" | "bool" | "duration" | "timestamp") =>
        {
            format!("type conversion error from 'string' to '{function}'")
        }
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}
