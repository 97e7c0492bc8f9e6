//! AdmissionReview, v1 and v1beta1: read without copying, answered as Kubernetes' own webhook library answers.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use koord_resource::{
    admission::{Denial, Request, Verdict, text},
    field::FieldError,
    go_json, strict_json,
};
use serde::Deserialize;

/// A review as it was posted.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(borrow, deserialize_with = "text")]
    api_version: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

/// A review: its request, and the version in which the answer must be given.
#[derive(Debug)]
pub struct Review<'a> {
    /// The request; one with empty fields where the review has none.
    pub request: Request<'a>,
    envelope: Envelope<'a>,
}

/// Kind and version of a review. The answer echoes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    api_version: Cow<'a, str>,
    kind: Cow<'a, str>,
}

impl Envelope<'_> {
    /// For answers to what is no review: they carry neither kind nor version.
    const NONE: Envelope<'static> = Envelope { api_version: Cow::Borrowed(""), kind: Cow::Borrowed("") };
}

/// Decodes a posted review. Wrong input is refused with the codes and words of Kubernetes' webhook library.
pub fn decode<'a>(content_type: &str, body: &'a [u8]) -> Result<Review<'a>, Denial> {
    if body.is_empty() {
        return Err(Denial::bad_request("request body is empty"));
    }
    if content_type != "application/json" {
        return Err(Denial::bad_request(format!("contentType={content_type}, expected application/json")));
    }
    let unreadable = |reason| Denial::bad_request(format!("couldn't get version/kind; json parse error: {reason}"));
    let wire: Option<Wire<'a>> = strict_json::from_slice(body)
        .map_err(|error| unreadable(no_review(body).unwrap_or_else(|| error.to_string())))?;
    let wire = wire.unwrap_or_default();
    if wire.api_version.matches('/').count() > 1 {
        let reason = format!("unexpected GroupVersion string: {}", wire.api_version);
        return Err(Denial::bad_request(reason));
    }
    let mut envelope = Envelope { api_version: wire.api_version, kind: wire.kind };
    if envelope == Envelope::NONE {
        envelope =
            Envelope { api_version: Cow::Borrowed("admission.k8s.io/v1"), kind: Cow::Borrowed("AdmissionReview") };
    }
    Ok(Review { request: wire.request.unwrap_or_default(), envelope })
}

/// Why a body is no review at all, in Go's words: it is no JSON, or neither an object nor `null`.
fn no_review(body: &[u8]) -> Option<String> {
    if let Err(error) = go_json::check(&String::from_utf8_lossy(body)) {
        return Some(error.to_string());
    }
    let kind = match body.trim_ascii_start().first()? {
        b'[' => "array",
        b'"' => "string",
        b't' | b'f' => "bool",
        b'0'..=b'9' | b'-' => "number",
        _ => return None,
    };
    Some(format!(
        "json: cannot unmarshal {kind} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    ))
}

impl Review<'_> {
    /// The answer to this review.
    pub fn answer(&self, verdict: &Verdict) -> Vec<u8> {
        encode(&self.envelope, &self.request.uid, verdict)
    }
}

/// The answer to what is no review.
pub fn refuse(denial: Denial) -> Vec<u8> {
    encode(&Envelope::NONE, "", &Verdict::deny(denial))
}

fn encode(envelope: &Envelope<'_>, uid: &str, verdict: &Verdict) -> Vec<u8> {
    let mut out = Vec::with_capacity(320 + verdict.patch.as_bytes().len() * 4 / 3);
    out.push(b'{');
    for (name, value) in [("kind", &envelope.kind), ("apiVersion", &envelope.api_version)] {
        if !value.is_empty() {
            member(&mut out, name, value.as_ref());
        }
    }
    next(&mut out);
    out.extend_from_slice(br#""response":{"#);
    member(&mut out, "uid", uid);
    member(&mut out, "allowed", &verdict.denial.is_none());
    next(&mut out);
    out.extend_from_slice(br#""status":{"metadata":{}"#);
    match &verdict.denial {
        None => member(&mut out, "code", &200),
        Some(denial) => write_denial(&mut out, denial),
    }
    out.push(b'}');
    // The API server refuses a patch type without a patch.
    if verdict.denial.is_none() && !verdict.patch.is_empty() {
        next(&mut out);
        out.extend_from_slice(br#""patch":""#);
        append_base64(&mut out, verdict.patch.as_bytes());
        out.push(b'"');
        member(&mut out, "patchType", "JSONPatch");
    }
    if !verdict.audit_annotations.is_empty() {
        member(&mut out, "auditAnnotations", &verdict.audit_annotations);
    }
    if !verdict.warnings.is_empty() {
        member(&mut out, "warnings", &verdict.warnings);
    }
    out.extend_from_slice(b"}}\n");
    out
}

fn write_denial(out: &mut Vec<u8>, denial: &Denial) {
    member(out, "message", &denial.message);
    if !denial.reason.is_empty() {
        member(out, "reason", denial.reason.as_ref());
    }
    if !denial.causes.is_empty() {
        #[derive(serde::Serialize)]
        struct Cause<'a> {
            reason: &'static str,
            message: String,
            field: &'a str,
        }
        let cause = |error: &'_ FieldError| -> serde_json::Value {
            let cause = Cause { reason: error.mistake.reason(), message: error.body(), field: &error.field };
            serde_json::json!(cause)
        };
        let causes: Vec<_> = denial.causes.iter().map(cause).collect();
        member(out, "details", &serde_json::json!({ "causes": causes }));
    }
    member(out, "code", &denial.code);
}

/// Writes `"name":value`, after a comma where one is due.
fn member<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, name: &str, value: &T) {
    next(out);
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    // Texts, numbers and maps of texts always become JSON, and a Vec takes all that is written.
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.extend_from_slice(b"null");
    }
}

fn next(out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}

fn append_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, b'=');
    let written = BASE64.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
}

#[cfg(test)]
mod tests {
    use koord_resource::{
        admission::{Operation, Patch},
        field::{Errors, Path},
    };
    use serde_json::{Value, json};

    use super::*;

    fn answer(review: &str, verdict: &Verdict) -> Value {
        serde_json::from_slice(&decode("application/json", review.as_bytes()).unwrap().answer(verdict)).unwrap()
    }

    fn refused(content_type: &str, body: &str) -> Value {
        serde_json::from_slice(&refuse(decode(content_type, body.as_bytes()).unwrap_err())).unwrap()
    }

    #[test]
    fn the_answer_echoes_uid_and_version() {
        let review = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"a\"b"}}"#;
        assert_eq!(
            answer(review, &Verdict::allow()),
            json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1",
                "response": {"uid": "a\"b", "allowed": true, "status": {"metadata": {}, "code": 200}}})
        );
    }

    #[test]
    fn reviews_without_version_are_answered_in_v1() {
        let request = r#"{"request":{}}"#;
        assert_eq!(answer(request, &Verdict::allow())["apiVersion"], "admission.k8s.io/v1");
        let only_kind = r#"{"kind":"AdmissionReview","request":{}}"#;
        assert_eq!(answer(only_kind, &Verdict::allow()).get("apiVersion"), None);
    }

    #[test]
    fn a_review_without_a_request_is_decided_as_one_about_nothing() {
        let whole = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}"#;
        for review in ["{}", "null", r#"{"request":null}"#, whole] {
            let answer = answer(review, &Verdict::allow());
            assert_eq!(answer["response"]["allowed"], true, "{review}");
            assert_eq!(
                (&answer["apiVersion"], &answer["kind"]),
                (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
            );
        }
    }

    #[test]
    fn what_is_no_review_is_refused_without_version() {
        let message = |content_type, body| refused(content_type, body)["response"]["status"]["message"].clone();
        assert_eq!(message("text/plain", ""), "request body is empty");
        assert_eq!(message("text/plain", "{}"), "contentType=text/plain, expected application/json");
        assert_eq!(
            message("application/json; charset=utf-8", "{}"),
            "contentType=application/json; charset=utf-8, expected application/json"
        );
        let odd_version = r#"{"kind":"AdmissionReview","apiVersion":"a/b/c","request":{"uid":"u"}}"#;
        assert_eq!(message("application/json", odd_version), "unexpected GroupVersion string: a/b/c");
        let answer = refused("application/json", odd_version);
        assert_eq!(
            (answer.get("kind"), answer.get("apiVersion"), &answer["response"]["uid"]),
            (None, None, &json!(""))
        );
        let answer = refused("application/json", "{bad");
        assert_eq!((answer.get("kind"), &answer["response"]["allowed"]), (None, &json!(false)));
        assert_eq!(answer["response"]["status"]["code"], 400);
    }

    #[test]
    fn a_patch_is_sent_as_base64_and_only_when_there_is_one() {
        let mut patch = Patch::default();
        patch.add(&Path::root("a"), "é").unwrap();
        let review = r#"{"request":{"uid":"u"}}"#;
        let response = &answer(review, &Verdict::patched(patch))["response"];
        assert_eq!(response["patchType"], "JSONPatch");
        let decoded = BASE64.decode(response["patch"].as_str().unwrap()).unwrap();
        assert_eq!(String::from_utf8(decoded).unwrap(), r#"[{"op":"add","path":"/a","value":"é"}]"#);
        let response = &answer(review, &Verdict::patched(Patch::default()))["response"];
        assert_eq!((response.get("patch"), response.get("patchType")), (None, None));
    }

    #[test]
    fn a_refusal_names_code_reason_and_fields() {
        let mut errors = Errors::new();
        errors.required(&Path::root("spec").child("owners"), "");
        let answer = answer(r#"{"request":{"uid":"u"}}"#, &Verdict::deny(Denial::invalid(&errors)).warn("w"));
        assert_eq!(
            answer["response"],
            json!({"uid": "u", "allowed": false, "warnings": ["w"], "status": {
            "metadata": {}, "message": "spec.owners: Required value", "reason": "Invalid", "code": 422,
            "details": {"causes": [
                {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.owners"}
            ]}}})
        );
    }

    #[test]
    fn nulls_and_unknown_operations_are_read_as_go_reads_them() {
        let body = br#"{"request":{"uid":null,"kind":null,"resource":{"resource":null},"dryRun":null,
            "operation":"FROB","object":null,"userInfo":{"username":"u","groups":["a","b"]}}}"#;
        let review = decode("application/json", body).unwrap();
        assert_eq!((review.request.operation, review.request.object.is_some()), (Operation::Other, false));
        assert_eq!(review.request.user().unwrap().groups, ["a", "b"]);
    }
}
