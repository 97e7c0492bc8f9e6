//! ConfigMaps and Secrets: keys, sizes, immutability.

use koord_schema::field::{Errors, Path};
use serde_json::{Value, json};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{names, strategy::Strategy};

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
        let wanted: &[&str] = match object["type"].as_str().unwrap_or_default() {
            "kubernetes.io/tls" => &["tls.crt", "tls.key"],
            "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
            "kubernetes.io/dockercfg" => &[".dockercfg"],
            "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
            _ => &[],
        };
        for key in wanted {
            if object["data"].get(key).is_none() {
                errors.required(&at.key(key), "");
            }
        }
    }

    fn check_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        if new["type"] != old["type"] {
            errors.invalid(&Path::root("type"), &new["type"], "field is immutable");
        }
        check_immutable(new, old, &["data"], errors);
        self.check_create(new, errors);
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
