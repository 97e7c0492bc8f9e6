//! The answer of a conversion webhook, and what it may not change.

use koord_schema::{
    field::{Errors, Path},
    go_text::go_type,
};
use serde_json::Value;

use super::printed_kind;
use crate::metadata;

/// The converted object in the answer to [`super::request`]; otherwise the error for the client.
pub fn read(text: &[u8], version: &str, uid: &str, object: &Value, desired: &str) -> Result<Value, String> {
    let about = format!("conversion webhook for {}", printed_kind(object));
    let objects = response(text, version, uid).map_err(|why| format!("{about} failed: {why}"))?;
    if objects.len() != 1 {
        return Err(format!("{about} returned {} objects, expected 1", objects.len()));
    }
    let Some(mut converted) = objects.into_iter().next() else {
        return Err(format!("{about} failed, no objects returned"));
    };
    if !converted.is_object() || converted["kind"].as_str().is_none_or(str::is_empty) {
        return Err(format!("Object 'Kind' is missing in '{converted}'"));
    }
    let text = |field: &str| converted[field].as_str().unwrap_or_default();
    if text("apiVersion") != desired {
        let got = text("apiVersion");
        return Err(format!(
            "{about} returned invalid object at index 0: invalid groupVersion (expected {desired}, received {got})"
        ));
    }
    let kind = object["kind"].as_str().unwrap_or_default();
    if text("kind") != kind {
        let got = text("kind");
        return Err(format!(
            "{about} returned invalid object at index 0: invalid kind (expected {kind}, received {got})"
        ));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (metadata::text(object, field), metadata::text(&converted, field));
        if before != after {
            return Err(format!("{about} returned invalid object: must have the same {name}: {before} != {after}"));
        }
    }
    restore_metadata(object, &mut converted).map_err(|why| format!("{about} returned invalid metadata: {why}"))?;
    Ok(converted)
}

/// The converted objects of an answer that says success.
fn response(text: &[u8], version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let mut review: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let field = |name: &str| review[name].as_str().unwrap_or_default();
    let (got, kind) = (field("apiVersion"), field("kind"));
    if kind.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(text)));
    }
    if kind != "ConversionReview" || !matches!(got, "apiextensions.k8s.io/v1" | "apiextensions.k8s.io/v1beta1") {
        // The place is the real server's.
        return Err(format!(
            "no kind {kind:?} is registered for version {got:?} in scheme \"pkg/runtime/scheme.go:110\""
        ));
    }
    let wanted = format!("apiextensions.k8s.io/{version}");
    // The older version was never checked for whom it answers.
    let is_checked = version == "v1";
    if is_checked && got != wanted {
        return Err(format!("expected webhook response of {wanted}, Kind=ConversionReview, got {got}, Kind={kind}"));
    }
    let response = &mut review["response"];
    if !response.is_object() {
        return Err("no response provided".to_owned());
    }
    let answered = response["uid"].as_str().unwrap_or_default();
    if is_checked && answered != uid {
        return Err(format!("expected response.uid={uid:?}, got {answered:?}"));
    }
    let status = response["result"]["status"].as_str().unwrap_or_default();
    if status != "Success" {
        return Err(match response["result"]["message"].as_str() {
            Some(message) if !message.is_empty() => message.to_owned(),
            _ => format!("response.result.status was '{status}', not 'Success'"),
        });
    }
    Ok(response["convertedObjects"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

/// A webhook may change labels and annotations; all else in the metadata is what it was.
fn restore_metadata(original: &Value, converted: &mut Value) -> Result<(), String> {
    let answered = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(fields)) => fields.clone(),
        Some(other) => return Err(format!("invalid metadata of type {} in converted object", go_type(other))),
    };
    let mut kept = original["metadata"].as_object().cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match answered.get(field) {
            None | Some(Value::Null) => drop(kept.remove(field)),
            Some(entries @ Value::Object(_)) => {
                check_entries(field, entries, kept.get(field))?;
                kept.insert(field.to_owned(), entries.clone());
            }
            Some(other) => {
                return Err(format!("invalid metadata.{field} of type {} in converted object", go_type(other)));
            }
        }
    }
    converted["metadata"] = Value::Object(kept);
    Ok(())
}

fn check_entries(field: &'static str, entries: &Value, before: Option<&Value>) -> Result<(), String> {
    if let Some((key, value)) = entries.as_object().into_iter().flatten().find(|(_, value)| !value.is_string()) {
        return Err(format!("metadata.{field}[{key}] must be a string, but is {} in converted object", go_type(value)));
    }
    if before == Some(entries) {
        return Ok(());
    }
    let (mut errors, metadata) = (Errors::new(), Path::root("metadata"));
    if field == "labels" {
        koord_schema::object_meta::validate_labels(entries, &metadata.child("labels"), &mut errors);
    } else {
        // The real server names the field in the singular here.
        koord_schema::object_meta::validate_annotations(entries, &metadata.child("annotation"), &mut errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.to_string()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored() -> Value {
        json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "1", "generation": 4}})
    }

    fn answered(response: &Value) -> Result<Value, String> {
        let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
        read(review.to_string().as_bytes(), "v1", "u", &stored(), "x.io/v1beta1")
    }

    fn with_object(object: &Value) -> Result<Value, String> {
        answered(&json!({"uid": "u", "result": {"status": "Success"}, "convertedObjects": [object]}))
    }

    #[test]
    fn a_webhook_changes_fields_labels_and_annotations_and_nothing_else_of_the_metadata() {
        let converted = with_object(&json!({
            "apiVersion": "x.io/v1beta1", "kind": "Widget", "spec": {"size": 3},
            "metadata": {"name": "w", "uid": "1", "generation": 99, "labels": {"a": "b"}},
        }));
        assert_eq!(
            converted.unwrap(),
            json!({"apiVersion": "x.io/v1beta1", "kind": "Widget", "spec": {"size": 3},
                "metadata": {"name": "w", "uid": "1", "generation": 4, "labels": {"a": "b"}}})
        );
    }

    #[test]
    fn wrong_answers_are_refused_in_the_words_of_the_real_server() {
        let about = "conversion webhook for x.io/v1, Kind=Widget";
        let object = |change: &dyn Fn(&mut Value)| {
            let mut object = stored();
            object["apiVersion"] = json!("x.io/v1beta1");
            change(&mut object);
            with_object(&object).unwrap_err()
        };
        let cases = [
            (answered(&json!({"uid": "other"})).unwrap_err(), r#" failed: expected response.uid="u", got "other""#),
            (answered(&Value::Null).unwrap_err(), " failed: no response provided"),
            (
                answered(&json!({"uid": "u", "result": {"status": "Failure", "message": "no room"}})).unwrap_err(),
                " failed: no room",
            ),
            (
                answered(&json!({"uid": "u", "result": {"status": "Maybe"}})).unwrap_err(),
                " failed: response.result.status was 'Maybe', not 'Success'",
            ),
            (
                answered(&json!({"uid": "u", "result": {"status": "Success"}})).unwrap_err(),
                " returned 0 objects, expected 1",
            ),
            (
                object(&|object| object["apiVersion"] = json!("x.io/v1")),
                " returned invalid object at index 0: invalid groupVersion (expected x.io/v1beta1, received x.io/v1)",
            ),
            (
                object(&|object| object["kind"] = json!("Gadget")),
                " returned invalid object at index 0: invalid kind (expected Widget, received Gadget)",
            ),
            (
                object(&|object| object["metadata"]["name"] = json!("v")),
                " returned invalid object: must have the same name: w != v",
            ),
            (
                object(&|object| object["metadata"]["uid"] = json!("2")),
                " returned invalid object: must have the same UID: 1 != 2",
            ),
            (
                object(&|object| object["metadata"]["labels"] = json!({"a": 1})),
                " returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
            ),
            (
                object(&|object| object["metadata"]["labels"] = json!([])),
                " returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(text, format!("{about}{wanted}"));
        }
    }
}
