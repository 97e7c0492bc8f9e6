//! The `clientConfig` of a webhook: a URL or a Service, for admission and for conversions.

use crate::{
    field::{Errors, Path},
    names,
};
use serde_json::Value;

/// Checks where a webhook is.
pub fn check(client: &Value, at: &Path<'_>, errors: &mut Errors) {
    check_naming(client, ["name", "namespace"], at, errors);
}

/// The same for conversions. QUIRK: apiextensions-apiserver takes the name of the Service for its namespace, and the
/// other way round (`definitions_are_refused_as_kubernetes_refuses_them`).
pub(super) fn check_of_conversion(client: &Value, at: &Path<'_>, errors: &mut Errors) {
    check_naming(client, ["namespace", "name"], at, errors);
}

/// `names`: the fields that are read as the name of the Service and as its namespace.
fn check_naming(client: &Value, names: [&str; 2], at: &Path<'_>, errors: &mut Errors) {
    match (client["url"].as_str(), client["service"].as_object()) {
        (Some(url), None) => check_url(url, &at.child("url"), errors),
        (None, Some(_)) => check_service(&client["service"], names, &at.child("service"), errors),
        _ => errors.required(at, "exactly one of url or service is required"),
    }
}

fn check_url(url: &str, at: &Path<'_>, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    if url.starts_with(':') {
        let why = format!("url must be a valid URL: parse {url:?}: missing protocol scheme");
        errors.required(at, format!("{why}{FORM}"));
        return;
    }
    let (scheme, rest) = url.split_once("://").unwrap_or(("", ""));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if scheme != "https" {
        errors.invalid(at, scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        errors.invalid(at, "", format!("host must be specified{FORM}"));
    }
    if !user.is_empty() {
        errors.invalid(at, user, "user information is not permitted in the URL");
    }
    let (before, fragment) = url.split_once('#').unwrap_or((url, ""));
    if !fragment.is_empty() {
        errors.invalid(at, fragment, "fragments are not permitted in the URL");
    }
    if let Some((_, query)) = before.split_once('?').filter(|(_, query)| !query.is_empty()) {
        errors.invalid(at, query, "query parameters are not permitted in the URL");
    }
}

fn check_service(service: &Value, names: [&str; 2], at: &Path<'_>, errors: &mut Errors) {
    for (read, reported) in names.into_iter().zip(["name", "namespace"]) {
        if service[read].as_str().unwrap_or_default().is_empty() {
            errors.required(&at.child(reported), "");
        }
    }
    if let Some(port) = service["port"].as_i64().filter(|port| !(1..=65535).contains(port)) {
        errors.invalid(&at.child("port"), port, "port is not valid: must be between 1 and 65535, inclusive");
    }
    let path = service["path"].as_str().unwrap_or_default();
    let at = at.child("path");
    if matches!(path, "" | "/") {
        return;
    }
    if !path.starts_with('/') {
        errors.invalid(&at, path, "must start with a '/'");
    }
    let steps = path.get(1..).unwrap_or_default();
    for (index, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            errors.invalid(&at, path, format!("segment[{index}] may not be empty"));
            continue;
        }
        for wrong in names::dns1123_subdomain(step) {
            errors.invalid(&at, path, format!("segment[{index}]: {wrong}"));
        }
    }
}
