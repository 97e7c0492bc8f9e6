//! The body of a webhook's answer as an `AdmissionReview`, with the errors of the client that decodes it for
//! kube-apiserver.

use koord_schema::go_text;
use serde_json::{Map, Value, json};

use crate::{builtins::split_group_version, decode, yaml};

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";
/// Kinds that the client knows beside reviews.
const STATUS_KINDS: [&str; 5] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];

/// The fields of a response with the JSON type and the Go type of each.
const RESPONSE_FIELDS: [(&str, &str, &str); 7] = [
    ("uid", "string", "types.UID"),
    ("allowed", "bool", "bool"),
    ("status", "object", "v1.Status"),
    ("patch", "string", "[]uint8"),
    ("patchType", "string", "v1.PatchType"),
    ("auditAnnotations", "object", "map[string]string"),
    ("warnings", "array", "[]string"),
];

/// Decodes the body as a review of this version. A body that leaves out `apiVersion` or `kind` is taken for one.
pub(super) fn decode(body: &[u8], version: &str) -> Result<Value, String> {
    let mut review = match decode::json(body) {
        Ok(Value::Null) => Value::Object(Map::new()),
        Ok(value) => value,
        Err(mistake) => match std::str::from_utf8(body).ok().and_then(|text| yaml::parse(text).ok()) {
            Some(value) => value,
            None => return Err(no_type(&mistake)),
        },
    };
    if !review.is_object() {
        return Err(no_type(&decode::no_type_fields(&review)));
    }
    if let Some(mistake) = decode::type_field_mistake(&review) {
        return Err(no_type(&mistake));
    }
    let wanted = format!("{GROUP}/{version}");
    let given = |field: &str, default: &str| match review[field].as_str() {
        None | Some("") => default.to_owned(),
        Some(text) => text.to_owned(),
    };
    let (api_version, kind) = (given("apiVersion", &wanted), given("kind", KIND));
    if (api_version.as_str(), kind.as_str()) != (&wanted, KIND) {
        return Err(not_a_review(&api_version, &kind, version));
    }
    check_response(&review["response"], version)?;
    review["apiVersion"] = json!(api_version);
    review["kind"] = json!(kind);
    Ok(review)
}

fn no_type(mistake: &str) -> String {
    format!("couldn't get version/kind; json parse error: {mistake}")
}

/// The error of decoding another kind into a review.
fn not_a_review(api_version: &str, kind: &str, version: &str) -> String {
    let (group, given_version) = split_group_version(api_version);
    let is_known = match group {
        GROUP => matches!(given_version, "v1" | "v1beta1") && kind == KIND,
        "" => given_version == "v1" && STATUS_KINDS.contains(&kind),
        _ => false,
    };
    if is_known {
        format!("converting ({given_version}.{kind}) to ({version}.{KIND}): unknown conversion")
    } else {
        // The place is the real server's.
        format!("no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:110\"")
    }
}

/// Checks the types of the response's fields.
fn check_response(response: &Value, version: &str) -> Result<(), String> {
    let mismatch = |value: &Value, field: &str, go: &str| {
        format!(
            "json: cannot unmarshal {} into Go struct field {field} of type {}",
            go_text::json_type(value),
            go.replace("v1.PatchType", &format!("{version}.PatchType"))
        )
    };
    let fields = match response {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => return Err(mismatch(other, "AdmissionReview.response", &format!("{version}.AdmissionResponse"))),
    };
    for (field, wanted, go) in RESPONSE_FIELDS {
        let value = fields.get(field).unwrap_or(&Value::Null);
        if !value.is_null() && go_text::json_type(value) != wanted {
            return Err(mismatch(value, &format!("AdmissionResponse.response.{field}"), go));
        }
    }
    match fields.get("patch").and_then(Value::as_str) {
        Some(patch) => decode::check_base64(patch),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_without_type_is_a_review_and_yaml_is_read() {
        for body in ["{}", "null", r#"{"kind":"AdmissionReview"}"#, r#"{"apiVersion":"admission.k8s.io/v1"}"#] {
            assert_eq!(decode(body.as_bytes(), "v1").unwrap()["kind"], "AdmissionReview", "{body}");
        }
        let yaml = "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse: {uid: a, allowed: true}\n";
        assert_eq!(decode(yaml.as_bytes(), "v1").unwrap()["response"]["allowed"], true);
    }

    #[test]
    fn other_bodies_are_refused_as_the_client_words_it() {
        let review = |response: &str| {
            format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{response}}}"#)
        };
        let no_object = "into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
        for (body, error) in [
            (
                "oops".to_owned(),
                format!("couldn't get version/kind; json parse error: json: cannot unmarshal string {no_object}"),
            ),
            (
                "[]".to_owned(),
                format!("couldn't get version/kind; json parse error: json: cannot unmarshal array {no_object}"),
            ),
            (
                r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#.to_owned(),
                "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion".to_owned(),
            ),
            (
                r#"{"apiVersion":"v1","kind":"ConfigMap"}"#.to_owned(),
                "no kind \"ConfigMap\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:110\""
                    .to_owned(),
            ),
            (
                review("\"x\""),
                "json: cannot unmarshal string into Go struct field AdmissionReview.response of type v1.AdmissionResponse"
                    .to_owned(),
            ),
            (
                review(r#"{"allowed":"yes"}"#),
                "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool"
                    .to_owned(),
            ),
            (review(r#"{"patch":"!"}"#), "illegal base64 data at input byte 0".to_owned()),
        ] {
            assert_eq!(decode(body.as_bytes(), "v1"), Err(error), "{body}");
        }
    }
}
