//! ConfigMaps and Secrets: keys, sizes, immutability.

use koord_schema::field::{Errors, Path};
use serde_json::{Value, json};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{decode, names, strategy::Strategy};

/// Names the account whose token a secret holds.
const ACCOUNT: &str = "kubernetes.io/service-account.name";
const BYTES_MAX: usize = 1024 * 1024;
const IMMUTABLE: &str = "field is immutable when `immutable` is set";

pub(super) struct ConfigMaps;

impl Strategy for ConfigMaps {
    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let data_at = Path::root("data");
        let binary_at = Path::root("binaryData");
        for (key, _) in entries(object, "data") {
            for message in names::config_key(key) {
                errors.invalid(&data_at.key(key), key, message);
            }
            if object["binaryData"].get(key).is_some() {
                errors.invalid(&data_at.key(key), key, "duplicate of key present in binaryData");
            }
        }
        for (key, _) in entries(object, "binaryData") {
            for message in names::config_key(key) {
                errors.invalid(&binary_at.key(key), key, message);
            }
        }
        let size: usize = entries(object, "data")
            .chain(entries(object, "binaryData"))
            .map(|(_, value)| value.as_str().map_or(0, str::len))
            .sum();
        if size > BYTES_MAX {
            errors.add(too_long(""));
        }
    }

    fn check_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        check_immutable(new, old, &["data", "binaryData"], errors);
        self.check_create(new, errors);
    }
}

pub(super) struct Secrets;

impl Strategy for Secrets {
    fn has_own_field_labels(&self) -> bool {
        true
    }

    fn set_defaults(&self, object: &mut Value) {
        if let Some(plain) = object.as_object_mut().and_then(|object| object.remove("stringData")) {
            if !object["data"].is_object() {
                object["data"] = json!({});
            }
            for (key, value) in plain.as_object().into_iter().flatten() {
                object["data"][key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
            }
        }
        if object["type"].as_str().unwrap_or_default().is_empty() {
            object["type"] = json!("Opaque");
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let at = Path::root("data");
        let mut size = 0;
        for (key, value) in entries(object, "data") {
            for message in names::config_key(key) {
                errors.invalid(&at.key(key), key, message);
            }
            size += value.as_str().map_or(0, |text| text.len() / 4 * 3);
        }
        if size > BYTES_MAX {
            errors.add(too_long("data"));
        }
        let has = |key: &str| object["data"].get(key).is_some();
        match object["type"].as_str().unwrap_or_default() {
            "kubernetes.io/service-account-token" => {
                let account = object["metadata"]["annotations"][ACCOUNT].as_str().unwrap_or_default();
                if account.is_empty() {
                    let metadata_at = Path::root("metadata");
                    errors.required(&metadata_at.child("annotations").key(ACCOUNT), "");
                }
            }
            "kubernetes.io/dockercfg" => registries(object, ".dockercfg", errors),
            "kubernetes.io/dockerconfigjson" => registries(object, ".dockerconfigjson", errors),
            "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
                errors.required(&at.key("username"), "");
                errors.required(&at.key("password"), "");
            }
            "kubernetes.io/ssh-auth" if content(object, "ssh-privatekey").is_none_or(|key| key.is_empty()) => {
                errors.required(&at.key("ssh-privatekey"), "");
            }
            "kubernetes.io/tls" => {
                for key in ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)) {
                    errors.required(&at.key(key), "");
                }
            }
            _ => {}
        }
    }

    fn warnings(&self, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let has_pem = |key: &str| {
            let text = content(object, key).unwrap_or_default();
            String::from_utf8_lossy(&text).contains("-----BEGIN ")
        };
        // Of a pair that does not fit, only what is no certificate at all is seen.
        let lacking = match object["type"].as_str() {
            Some("kubernetes.io/tls") if !has_pem("tls.crt") => "certificate",
            Some("kubernetes.io/tls") if !has_pem("tls.key") => "key",
            _ => return Vec::new(),
        };
        vec![format!("tls: failed to find any PEM data in {lacking} input")]
    }

    fn check_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        if new["type"] != old["type"] {
            errors.invalid(&Path::root("type"), &new["type"], "field is immutable");
        }
        check_immutable(new, old, &["data"], errors);
        self.check_create(new, errors);
    }
}

/// The bytes behind a key of a secret.
fn content(secret: &Value, key: &str) -> Option<Vec<u8>> {
    STANDARD.decode(secret["data"].get(key)?.as_str().unwrap_or_default()).ok()
}

/// Checks what a secret says of the registries of images: a JSON object.
fn registries(secret: &Value, key: &str, errors: &mut Errors) {
    let at = Path::root("data");
    let at = at.key(key);
    let Some(text) = content(secret, key) else { return errors.required(&at, "") };
    let mistake = match decode::json(&text) {
        Err(mistake) => Some(mistake),
        Ok(Value::Object(_) | Value::Null) => None,
        Ok(other) => {
            let kind = koord_schema::go_text::json_type(&other);
            Some(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
        }
    };
    if let Some(mistake) = mistake {
        errors.invalid(&at, "<secret contents redacted>", mistake);
    }
}

fn entries<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object[field].as_object().into_iter().flatten()
}

fn too_long(field: &str) -> koord_schema::field::FieldError {
    koord_schema::field::FieldError {
        mistake: koord_schema::field::Mistake::TooLong,
        field: field.to_owned(),
        value: String::new(),
        detail: format!("may not be more than {BYTES_MAX} bytes"),
    }
}

fn check_immutable(new: &Value, old: &Value, fields: &[&'static str], errors: &mut Errors) {
    if old["immutable"] != Value::Bool(true) {
        return;
    }
    if new["immutable"] != Value::Bool(true) {
        errors.forbidden(&Path::root("immutable"), IMMUTABLE);
    }
    for field in fields {
        if new[*field] != old[*field] {
            errors.forbidden(&Path::root(field), IMMUTABLE);
        }
    }
}
