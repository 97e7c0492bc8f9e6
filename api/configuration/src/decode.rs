//! From a document to its type.

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Problem, check_schema};

/// The JSON Schema of a type, with the definitions that it refers to.
pub fn schema<T: JsonSchema>() -> Value {
    SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

/// A document as its type.
///
/// # Errors
///
/// What of the document the schema of the type refuses.
pub fn decode<T: JsonSchema + DeserializeOwned>(document: &Value) -> Result<T, Vec<Problem>> {
    let root = schema::<T>();
    let problems = check_schema(&root, &root, document, &[]);
    if !problems.is_empty() {
        return Err(problems);
    }
    serde_json::from_value(document.clone()).map_err(|error| vec![Problem::of_document(error.to_string())])
}

/// A document that was checked as its type. What is null is not set, as in Go; version and kind are left out.
///
/// # Errors
///
/// The document has another form than the type.
pub fn typed<T: DeserializeOwned>(document: &Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(without_nulls(&without_type_meta(document)))
}

/// A document without its `apiVersion` and `kind`.
pub(crate) fn without_type_meta(document: &Value) -> Value {
    let mut document = document.clone();
    if let Some(members) = document.as_object_mut() {
        members.retain(|key, _| key != "apiVersion" && key != "kind");
    }
    document
}

/// A value without members that are not set.
pub(crate) fn without_nulls(value: &Value) -> Value {
    let mut set = value.clone();
    remove_nulls(&mut set);
    set
}

/// Removes members that are not set.
pub(crate) fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(remove_nulls);
            members.retain(|_, member| !member.is_null());
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}
