//! Environment variables, and the fields of a pod that they and downward volumes may show.

use koord_resource::Quantity;
use koord_schema::{
    field::{Errors, Path},
    names,
};
use serde_json::Value;

use super::{list, text};

/// What a variable may show of its pod.
const VARIABLE_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// What a file of a downward volume may show of its pod.
const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// What has a name at all; `spec.host` is the old name of the node's.
const KNOWN_FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const AMOUNTS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const BYTE_DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
const VARIABLE_SOURCES: [&str; 4] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"];
const VARIABLE_NAME: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const TOO_MANY: &str = "may not have more than one field specified at a time";

/// Whose fields are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Variable,
    File,
}

/// Checks the variables of a container.
pub(super) fn variables(container: &Value, at: &Path<'_>, errors: &mut Errors) {
    for (index, variable) in list(container, "env").enumerate() {
        let at = at.index(index);
        let name = text(variable, "name");
        if name.is_empty() {
            errors.required(&at.child("name"), "");
        } else {
            variable_name(name, &at.child("name"), errors);
        }
        value_from(variable, &at.child("valueFrom"), errors);
    }
}

fn value_from(variable: &Value, at: &Path<'_>, errors: &mut Errors) {
    let source = &variable["valueFrom"];
    if !source.is_object() {
        return;
    }
    for kind in VARIABLE_SOURCES.into_iter().filter(|kind| source[*kind].is_object()) {
        let (reference, at) = (&source[kind], at.child(kind));
        match kind {
            "fieldRef" => field_reference(reference, &at, Reader::Variable, errors),
            "resourceFieldRef" => amount_reference(reference, &at, Reader::Variable, errors),
            _ => key_reference(reference, &at, errors),
        }
    }
    let count = VARIABLE_SOURCES.iter().filter(|kind| source[**kind].is_object()).count();
    if count == 0 {
        errors.invalid(
            at,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
        );
    } else if !text(variable, "value").is_empty() {
        errors.invalid(at, "", "may not be specified when `value` is not empty");
    } else if count > 1 {
        errors.invalid(at, "", TOO_MANY);
    }
}

/// Checks what a container takes all variables of.
pub(super) fn sources(container: &Value, at: &Path<'_>, errors: &mut Errors) {
    for (index, source) in list(container, "envFrom").enumerate() {
        let at_one = at.index(index);
        let prefix = text(source, "prefix");
        if !prefix.is_empty() {
            variable_name(prefix, &at_one.child("prefix"), errors);
        }
        let given: Vec<&str> =
            ["configMapRef", "secretRef"].into_iter().filter(|kind| source[*kind].is_object()).collect();
        for kind in &given {
            let at = at_one.child(kind);
            let name = text(&source[*kind], "name");
            if name.is_empty() {
                errors.required(&at.child("name"), "");
            } else {
                // The real server takes a name that ends with a hyphen for the beginning of one.
                for message in names::dns1123_subdomain(&completed(name)) {
                    errors.invalid(&at.child("name"), name, message);
                }
            }
        }
        match given.len() {
            0 => errors.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid(at, "", TOO_MANY),
        }
    }
}

/// A name that is only the beginning of one may end with a hyphen.
fn completed(name: &str) -> std::borrow::Cow<'_, str> {
    match name.get(..name.len().saturating_sub(2)) {
        Some(start) if name.len() > 1 && name.ends_with('-') => format!("{start}a").into(),
        _ => name.into(),
    }
}

fn variable_name(name: &str, at: &Path<'_>, errors: &mut Errors) {
    if name.chars().any(|c| !matches!(c, ' '..='~') || c == '=') {
        errors.invalid(at, name, VARIABLE_NAME);
    }
}

fn key_reference(reference: &Value, at: &Path<'_>, errors: &mut Errors) {
    let (name, key) = (text(reference, "name"), text(reference, "key"));
    for message in names::dns1123_subdomain(name) {
        errors.invalid(&at.child("name"), name, message);
    }
    if key.is_empty() {
        return errors.required(&at.child("key"), "");
    }
    config_key(key, &at.child("key"), errors);
}

/// Checks a key of a ConfigMap or Secret.
fn config_key(key: &str, at: &Path<'_>, errors: &mut Errors) {
    if key.len() > names::SUBDOMAIN_CHARS_MAX {
        errors.invalid(at, key, format!("must be no more than {} characters", names::SUBDOMAIN_CHARS_MAX));
    }
    if !key.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.')) {
        errors.invalid(at, key, CONFIG_KEY);
    }
    match key {
        "." => errors.invalid(at, key, "must not be '.'"),
        ".." => errors.invalid(at, key, "must not be '..'"),
        _ if key.starts_with("..") => errors.invalid(at, key, "must not start with '..'"),
        _ => {}
    }
}

/// Checks a reference to a field of the pod.
pub(super) fn field_reference(reference: &Value, at: &Path<'_>, reader: Reader, errors: &mut Errors) {
    let (version, path) = (text(reference, "apiVersion"), text(reference, "fieldPath"));
    let path_at = at.child("fieldPath");
    if version.is_empty() {
        return errors.required(&at.child("apiVersion"), "");
    }
    if path.is_empty() {
        return errors.required(&path_at, "");
    }
    let convert = |errors: &mut Errors, why: String| {
        errors.invalid(&path_at, path, format!("error converting fieldPath: {why}"));
    };
    if version != "v1" {
        return convert(errors, format!("unsupported pod version: {version}"));
    }
    if let Some((map, key)) = subscript(path) {
        match map {
            "metadata.annotations" | "metadata.labels" => {
                let key = if map == "metadata.annotations" { key.to_lowercase() } else { key.to_owned() };
                for message in names::qualified_name(&key) {
                    errors.invalid(at, &key, message);
                }
            }
            _ => convert(errors, format!("field label does not support subscript: {path}")),
        }
        return;
    }
    let path = if path == "spec.host" { "spec.nodeName" } else { path };
    if !KNOWN_FIELDS.contains(&path) {
        return convert(errors, format!("field label not supported: {path}"));
    }
    let allowed = if reader == Reader::Variable { &VARIABLE_FIELDS[..] } else { &FILE_FIELDS[..] };
    if !allowed.contains(&path) {
        errors.not_supported(&path_at, path, allowed);
    }
}

/// `metadata.labels['key']` as its map and key.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, rest) = path.strip_suffix("']")?.split_once("['")?;
    (!map.is_empty()).then_some((map, rest))
}

/// Checks a reference to an amount of a container.
pub(super) fn amount_reference(reference: &Value, at: &Path<'_>, reader: Reader, errors: &mut Errors) {
    let resource = text(reference, "resource");
    let is_huge =
        |resource: &str| resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
    if reader == Reader::File && text(reference, "containerName").is_empty() {
        errors.required(&at.child("containerName"), "");
    } else if resource.is_empty() {
        errors.required(&at.child("resource"), "");
    } else if !AMOUNTS.contains(&resource) && !is_huge(resource) {
        errors.not_supported(&at.child("resource"), resource, &AMOUNTS);
    }
    let divisor: Quantity = text(reference, "divisor").parse().unwrap_or_default();
    if divisor.is_zero() {
        return;
    }
    let shown = divisor.to_string();
    let kind = match resource.split_once('.').map(|(_, name)| name) {
        Some("cpu") => {
            if shown != "1m" && shown != "1" {
                let message = "only divisor's values 1m and 1 are supported with the cpu resource";
                errors.invalid(&at.child("divisor"), resource, message);
            }
            return;
        }
        Some("memory") => "memory",
        Some("ephemeral-storage") => "local ephemeral storage",
        _ if is_huge(resource) => "hugepages",
        _ => return,
    };
    if !BYTE_DIVISORS.contains(&shown.as_str()) {
        let message =
            format!("only divisor's values {} are supported with the {kind} resource", BYTE_DIVISORS.join(", "));
        errors.invalid(&at.child("divisor"), resource, message);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(container: &Value) -> String {
        let mut errors = Errors::new();
        variables(container, &Path::root("env"), &mut errors);
        sources(container, &Path::root("envFrom"), &mut errors);
        errors.to_string()
    }

    #[test]
    fn a_variable_has_one_source_that_exists() {
        let from = |source: Value| json!({"env": [{"name": "A", "valueFrom": source}]});
        let field = |path: &str| json!({"fieldRef": {"apiVersion": "v1", "fieldPath": path}});
        assert_eq!(refused(&from(field("metadata.labels['a/b']"))), "[]");
        assert_eq!(
            refused(&from(field("spec.color"))),
            r#"env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.color": error converting fieldPath: field label not supported: spec.color"#
        );
        assert!(refused(&from(field("status.phase"))).contains("Unsupported value: \"status.phase\""));
        assert!(refused(&from(json!({}))).contains("must specify one of"));
        assert_eq!(
            refused(&json!({"envFrom": [{"prefix": "a=", "secretRef": {"name": "s"}}]})),
            format!("envFrom[0].prefix: Invalid value: \"a=\": {VARIABLE_NAME}")
        );
    }
}
