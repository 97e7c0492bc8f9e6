//! `AdmissionReview`: the request to a webhook, and what its answer means.

use base64::Engine;
use koord_schema::go_text;
use serde_json::{Value, json};

use super::answer;
use crate::decode;
use crate::registry::ResourceDef;
use crate::server::{Attributes, Operation};
use crate::status::ApiError;

/// What a webhook decided.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    /// The request may go on, with this JSON patch applied.
    Allowed(Option<Value>),
    /// The request is refused.
    Denied(Box<ApiError>),
}

/// A review as it is sent: the object and the old one in the version of `definition`.
pub(super) fn request(
    about: &Attributes<'_>,
    definition: &ResourceDef,
    [object, old]: [Value; 2],
    version: &str,
    uid: &str,
) -> Value {
    let mut request = json!({
        "uid": uid, "kind": kind(definition, about.subresource), "resource": resource(definition),
        "requestKind": kind(about.definition, about.subresource), "requestResource": resource(about.definition),
        "operation": about.operation.word(), "userInfo": about.user.info(),
        "object": object, "oldObject": old,
        "dryRun": about.dry_run, "options": options(about),
    });
    for (field, text) in [
        ("name", about.name),
        ("namespace", about.namespace),
        ("subResource", about.subresource),
        ("requestSubResource", about.subresource),
    ] {
        if !text.is_empty() {
            request[field] = json!(text);
        }
    }
    json!({"apiVersion": format!("admission.k8s.io/{version}"), "kind": "AdmissionReview", "request": request})
}

/// A patch is a create or an update once its outcome is known, and says so.
fn options(about: &Attributes<'_>) -> Value {
    let mut options = about.options.clone();
    if options["kind"] == "PatchOptions" {
        options["kind"] = match about.operation {
            Operation::Create => json!("CreateOptions"),
            _ => json!("UpdateOptions"),
        };
        if let Some(fields) = options.as_object_mut() {
            fields.remove("force");
        }
    }
    options
}

/// An object in another version of its resource.
pub(super) fn convert(object: &Value, from: &ResourceDef, to: &ResourceDef) -> Value {
    let mut object = object.clone();
    let (old, new) = (from.api_version(), to.api_version());
    if to.strategy.converts(&old, &new) {
        to.strategy.convert(&mut object, &old, &new);
    }
    object["apiVersion"] = json!(new);
    object["kind"] = json!(to.kind);
    object
}

fn kind(definition: &ResourceDef, subresource: &str) -> Value {
    let body = definition.subresource(subresource).and_then(|sub| sub.body.clone());
    let (group, version, kind) =
        body.unwrap_or_else(|| (definition.group.clone(), definition.version.clone(), definition.kind.clone()));
    json!({"group": group, "version": version, "kind": kind})
}

fn resource(definition: &ResourceDef) -> Value {
    json!({"group": definition.group, "version": definition.version, "resource": definition.plural})
}

/// Reads the answer; warnings come with it in any case. An error means that the webhook is broken.
pub(super) fn read(
    webhook: &str,
    answer: &[u8],
    version: &str,
    uid: &str,
    mutating: bool,
) -> (Vec<String>, Result<Verdict, String>) {
    let review = match answer::decode(answer, version) {
        Ok(review) => review,
        Err(error) => return (Vec::new(), Err(format!("failed to call webhook: {error}"))),
    };
    let response = &review["response"];
    if !response.is_object() {
        return (Vec::new(), Err("received invalid webhook response: webhook response was absent".to_owned()));
    }
    let answered = response["uid"].as_str().unwrap_or_default();
    if version == "v1" && answered != uid {
        let error = format!("received invalid webhook response: expected response.uid={uid:?}, got {answered:?}");
        return (Vec::new(), Err(error));
    }
    let warnings = response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let warnings = warnings.filter(|text| !text.is_empty()).map(ToOwned::to_owned).collect();
    (warnings, verdict(webhook, response, version, mutating))
}

fn verdict(webhook: &str, response: &Value, version: &str, mutating: bool) -> Result<Verdict, String> {
    let patch = response["patch"].as_str().filter(|patch| !patch.is_empty());
    let patch_type = response["patchType"].as_str();
    if version == "v1" {
        let broken = match (patch, patch_type) {
            (Some(_), _) if !mutating => Some("validating webhook may not return response.patch"),
            (_, Some(_)) if !mutating => Some("validating webhook may not return response.patchType"),
            (Some(_), None) => Some("webhook returned response.patch but not response.patchType"),
            (None, Some(_)) => Some("webhook returned response.patchType but not response.patch"),
            _ => None,
        };
        if let Some(broken) = broken {
            return Err(format!("received invalid webhook response: {broken}"));
        }
    }
    if response["allowed"] != true {
        return Ok(Verdict::Denied(Box::new(denial(webhook, &response["status"]))));
    }
    let Some(patch) = patch.filter(|_| mutating) else { return Ok(Verdict::Allowed(None)) };
    if let Some(other) = patch_type.filter(|kind| *kind != "JSONPatch") {
        return Err(format!("unsupported patch type {other:?}"));
    }
    let text = base64::engine::general_purpose::STANDARD
        .decode(patch)
        .map_err(|error| format!("failed to call webhook: illegal base64 data: {error}"))?;
    let undecodable = |why: String| format!("received undecodable patch in webhook response: {why}");
    let patch = decode::json(&text).map_err(undecodable)?;
    if !patch.is_array() && !patch.is_null() {
        let found = go_text::json_type(&patch);
        return Err(undecodable(format!("json: cannot unmarshal {found} into Go value of type jsonpatch.Patch")));
    }
    Ok(Verdict::Allowed(Some(patch).filter(Value::is_array)))
}

/// A refusal as the client sees it: never below 400, always saying by whom.
fn denial(webhook: &str, status: &Value) -> ApiError {
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    let by = format!("admission webhook \"{webhook}\" denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
    let error = ApiError::new(code.unwrap_or(400), text("reason").to_owned(), message);
    match status["details"].as_object() {
        Some(details) => error.with_details(details.clone()),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(response: &Value) -> (Vec<String>, Result<Verdict, String>) {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        read("w.x.y", review.to_string().as_bytes(), "v1", "u", true)
    }

    #[test]
    fn a_denial_keeps_its_code_and_reason() {
        let table = [
            (json!({}), 400, "", "admission webhook \"w.x.y\" denied the request without explanation"),
            (json!({"message": "no"}), 400, "", "admission webhook \"w.x.y\" denied the request: no"),
            (
                json!({"code": 403, "reason": "Forbidden"}),
                403,
                "Forbidden",
                "admission webhook \"w.x.y\" denied the request: Forbidden",
            ),
            (json!({"code": 200, "message": "odd"}), 400, "", "admission webhook \"w.x.y\" denied the request: odd"),
        ];
        for (status, code, reason, message) in table {
            let (_, verdict) = answer(&json!({"uid": "u", "allowed": false, "status": status}));
            let Ok(Verdict::Denied(error)) = verdict else { panic!("{status} was not a denial") };
            assert_eq!((error.code(), &*error.failure().reason, error.message()), (code, reason, message));
        }
    }

    #[test]
    fn broken_answers_are_no_verdicts() {
        for response in [
            json!({"uid": "other", "allowed": true}),
            json!({"uid": "u", "allowed": true, "patch": "W10="}),
            json!({"uid": "u", "allowed": true, "patch": "W10=", "patchType": "MergePatch"}),
            json!({"uid": "u", "allowed": true, "patch": "bm90IGpzb24=", "patchType": "JSONPatch"}),
            Value::Null,
        ] {
            assert!(answer(&response).1.is_err(), "{response}");
        }
        assert!(read("w", b"not json", "v1", "u", true).1.is_err());
    }

    #[test]
    fn warnings_come_with_any_verdict() {
        let (warnings, _) = answer(&json!({"uid": "u", "allowed": false, "warnings": ["a", "", "b"]}));
        assert_eq!(warnings, ["a", "b"]);
    }
}
