//! CertificateSigningRequests: what the requester is comes from the request's user, and approval has an endpoint of its own.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::{Map, Value, json};

use crate::{
    names::NameRule,
    request::User,
    strategy::{StatusKeeps, Strategy, WriteContext},
};

/// What a key may be used for, in the order in which it is listed to who asked for something else.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Conditions that say what was decided; they are only ever true.
const DECISIONS: [&str; 3] = ["Approved", "Denied", "Failed"];
/// Seconds that a certificate is valid at least.
const EXPIRATION_MIN: i64 = 600;

pub(super) struct CertificateRequests;

impl Strategy for CertificateRequests {
    fn name_rule(&self) -> NameRule {
        NameRule::PathSegment
    }

    fn has_status(&self) -> bool {
        true
    }

    fn writes_status(&self, subresource: &str) -> bool {
        matches!(subresource, "status" | "approval")
    }

    fn status_keeps(&self) -> StatusKeeps {
        StatusKeeps::Nothing
    }

    fn prepare_create(&self, object: &mut Value, around: &WriteContext<'_>) {
        object["status"] = json!({});
        if let Some(spec) = object["spec"].as_object_mut() {
            name_requester(spec, around.user);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str, around: &WriteContext<'_>) {
        match subresource {
            "" => new["spec"] = old["spec"].clone(),
            "approval" => {
                let conditions = new.pointer_mut("/status/conditions").map(Value::take);
                new["status"] = old["status"].clone();
                if let Some(conditions) = conditions {
                    new["status"]["conditions"] = conditions;
                }
            }
            _ => keep_decisions(new, old),
        }
        stamp_conditions(new, old, around.now);
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        check(object, errors);
    }

    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        check(new, errors);
        let status_at = Path::root("status");
        let at = status_at.child("conditions");
        for name in DECISIONS {
            if of_type(new, name).count() < of_type(old, name).count() {
                errors.forbidden(&at, format!("updates may not remove a condition of type {name:?}"));
            }
        }
        if subresource != "approval" {
            for name in ["Approved", "Denied"] {
                if of_type(new, name).count() > of_type(old, name).count() {
                    errors.forbidden(&at, format!("updates may not add a condition of type {name:?}"));
                }
            }
        }
        if subresource == "status"
            && !old["status"]["certificate"].is_null()
            && new["status"]["certificate"] != old["status"]["certificate"]
        {
            errors.forbidden(&status_at.child("certificate"), "updates may not modify existing certificate content");
        }
    }
}

fn name_requester(spec: &mut Map<String, Value>, user: &User) {
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    for (field, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            spec.insert(field.to_owned(), json!(text));
        }
    }
    if !user.groups.is_empty() {
        spec.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        let extra: Map<String, Value> = user.extra.iter().map(|(name, values)| (name.clone(), json!(values))).collect();
        spec.insert("extra".to_owned(), extra.into());
    }
}

fn conditions(object: &Value) -> &[Value] {
    object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn of_type<'a>(object: &'a Value, name: &'a str) -> impl Iterator<Item = &'a Value> {
    conditions(object).iter().filter(move |condition| condition["type"] == name)
}

/// The status endpoint does not change what was decided.
fn keep_decisions(new: &mut Value, old: &Value) {
    for name in ["Approved", "Denied"] {
        let kept: Vec<Value> = of_type(old, name).cloned().collect();
        if kept.len() != of_type(new, name).count() {
            continue;
        }
        let Some(conditions) = new.pointer_mut("/status/conditions").and_then(Value::as_array_mut) else { continue };
        let places = conditions.iter_mut().filter(|condition| condition["type"] == name);
        places.zip(kept).for_each(|(place, kept)| *place = kept);
    }
}

fn stamp_conditions(new: &mut Value, old: &Value, now: &str) {
    let Some(conditions) = new.pointer_mut("/status/conditions").and_then(Value::as_array_mut) else { return };
    for condition in conditions {
        let Some(fields) = condition.as_object_mut() else { continue };
        if fields.get("lastUpdateTime").is_none_or(Value::is_null) {
            fields.insert("lastUpdateTime".to_owned(), json!(now));
        }
        if fields.get("lastTransitionTime").is_none_or(Value::is_null) {
            let name = fields.get("type").and_then(Value::as_str).unwrap_or_default();
            let same = of_type(old, name).find(|known| Some(&known["status"]) == fields.get("status"));
            let since = same.and_then(|known| known["lastTransitionTime"].as_str()).unwrap_or(now);
            fields.insert("lastTransitionTime".to_owned(), json!(since));
        }
    }
}

fn check(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let at = Path::root("spec");
    if !is_request(spec["request"].as_str().unwrap_or_default()) {
        errors.invalid(&at.child("request"), &spec["request"], "PEM block type must be CERTIFICATE REQUEST");
    }
    check_usages(spec["usages"].as_array().map(Vec::as_slice).unwrap_or_default(), &at.child("usages"), errors);
    check_signer(spec["signerName"].as_str().unwrap_or_default(), &at.child("signerName"), errors);
    if let Some(seconds) = spec["expirationSeconds"].as_i64().filter(|seconds| *seconds < EXPIRATION_MIN) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid(&at.child("expirationSeconds"), seconds, detail);
    }
    check_conditions(object, errors);
}

/// Whether the bytes are PEM of a request. What lies inside is not read: nobody here signs it.
fn is_request(encoded: &str) -> bool {
    let Ok(bytes) = BASE64.decode(encoded) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    text.contains("-----BEGIN CERTIFICATE REQUEST-----") && text.contains("-----END CERTIFICATE REQUEST-----")
}

fn check_usages(usages: &[Value], at: &Path<'_>, errors: &mut Errors) {
    if usages.is_empty() {
        errors.required(at, "");
    }
    for (index, usage) in usages.iter().enumerate() {
        if !usage.as_str().is_some_and(|usage| USAGES.contains(&usage)) {
            errors.not_supported(&at.index(index), usage, &USAGES);
        }
    }
    for (index, usage) in usages.iter().enumerate() {
        if usages[..index].contains(usage) {
            errors.duplicate(&at.index(index), usage);
        }
    }
}

fn check_signer(signer: &str, at: &Path<'_>, errors: &mut Errors) {
    if signer.is_empty() {
        return errors.required(at, "");
    }
    if signer == "kubernetes.io/legacy-unknown" {
        return errors.invalid(at, signer, "the legacy signerName is not allowed via this API version");
    }
    let Some((domain, path)) = signer.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.invalid(at, signer, detail);
    };
    check_labels(domain, names::dns1123_label, at, errors);
    if domain.split('.').count() < 2 {
        errors.invalid(at, domain, "should be a domain with at least two segments separated by dots");
    }
    check_labels(path, names::dns1123_subdomain, at, errors);
}

/// Reports the first label that breaks the rule.
fn check_labels(part: &str, rule: fn(&str) -> Vec<String>, at: &Path<'_>, errors: &mut Errors) {
    let wrong = part.split('.').map(|label| (label, rule(label))).find(|(_, messages)| !messages.is_empty());
    let Some((label, messages)) = wrong else { return };
    for message in messages {
        errors.invalid(at, part, format!("validating label {label:?}: {message}"));
    }
}

fn check_conditions(object: &Value, errors: &mut Errors) {
    let status_at = Path::root("status");
    let at = status_at.child("conditions");
    let mut decided: Option<&str> = None;
    for (index, condition) in conditions(object).iter().enumerate() {
        let at_condition = at.index(index);
        let name = condition["type"].as_str().unwrap_or_default();
        if name.is_empty() {
            errors.required(&at_condition.child("type"), "");
        }
        let allowed: &[&str] = if DECISIONS.contains(&name) { &["True"] } else { &["False", "True", "Unknown"] };
        match condition["status"].as_str().unwrap_or_default() {
            "" => errors.required(&at_condition.child("status"), ""),
            status if !allowed.contains(&status) => {
                errors.not_supported(&at_condition.child("status"), status, allowed);
            }
            _ => {}
        }
        if matches!(name, "Approved" | "Denied") {
            if decided.is_some_and(|decided| decided != name) {
                errors.invalid(&at, name, "Approved and Denied conditions are mutually exclusive");
            }
            decided = Some(name);
        }
        if conditions(object)[..index].iter().any(|earlier| earlier["type"] == condition["type"]) {
            errors.duplicate(&at_condition.child("type"), name);
        }
    }
}
