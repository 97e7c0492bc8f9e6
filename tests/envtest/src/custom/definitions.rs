//! The kind CustomResourceDefinition: defaults, checks, and how its deletion begins.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use koord_schema::field::{Errors, Path};
use koord_schema::names;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};

use super::{APPROVAL_ANNOTATION, CLEANUP_FINALIZER, conditions, versions};
use crate::client_config;
use crate::environment::time_text;
use crate::metadata;
use crate::status::ApiError;
use crate::strategy::{Generation, StatusKeeps, Strategy, WriteContext};

/// The strategy of definitions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Definitions;

impl Strategy for Definitions {
    fn status_keeps(&self) -> StatusKeeps {
        StatusKeeps::Metadata
    }

    fn generation(&self) -> Generation {
        Generation::Spec
    }

    fn has_status(&self) -> bool {
        true
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn set_defaults(&self, definition: &mut Value) {
        let Some(spec) = definition["spec"].as_object_mut() else { return };
        let conversion = spec.entry("conversion").or_insert(Value::Null);
        if conversion.is_null() {
            *conversion = json!({"strategy": "None"});
        }
        if let Some(service) = conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut) {
            service.entry("port").or_insert_with(|| json!(443));
        }
        let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        for (field, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
            let absent = names.get(field).and_then(Value::as_str).is_none_or(str::is_empty);
            if absent && !kind.is_empty() {
                names.insert(field.to_owned(), json!(default));
            }
        }
    }

    fn prepare_create(&self, definition: &mut Value, _around: &WriteContext<'_>) {
        let stored: Vec<Value> = storage_version(definition).map(|name| json!(name)).into_iter().collect();
        let stored = if stored.is_empty() { Value::Null } else { Value::Array(stored) };
        definition["status"] =
            json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": stored});
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value, subresource: &str, _around: &WriteContext<'_>) {
        if !subresource.is_empty() {
            return;
        }
        let Some(version) = storage_version(new).map(ToOwned::to_owned) else { return };
        if let Some(stored) = new["status"]["storedVersions"].as_array_mut()
            && !stored.iter().any(|known| *known == version.as_str())
        {
            stored.push(json!(version));
        }
    }

    fn check_create(&self, definition: &Value, errors: &mut Errors) {
        let root = Path::root("metadata");
        let (spec, name) = (&definition["spec"], metadata::text(definition, "name"));
        let wanted = format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group"));
        if name != wanted {
            errors.invalid(&root.child("name"), name, "must be spec.names.plural+\".\"+spec.group");
        }
        check(definition, errors);
    }

    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        // A status is taken as it is: whoever migrates objects drops versions from it.
        if !subresource.is_empty() {
            return;
        }
        check(new, errors);
        let spec = Path::root("spec");
        let names = spec.child("names");
        let mut keep = |at: &Path<'_>, pointer: &str| {
            let (new, old) = (new.pointer(pointer), old.pointer(pointer));
            if new != old {
                errors.invalid(at, new, "field is immutable");
            }
        };
        if conditions::has_condition(old, "Established") {
            keep(&spec.child("scope"), "/spec/scope");
            keep(&names.child("kind"), "/spec/names/kind");
        }
        keep(&spec.child("group"), "/spec/group");
        keep(&names.child("plural"), "/spec/names/plural");
    }

    fn delete(&self, definition: &Value, now: Timestamp) -> Result<Option<Value>, ApiError> {
        if metadata::is_deleting(definition) {
            return Ok(None);
        }
        let mut ending = definition.clone();
        let fields = metadata::of_mut(&mut ending);
        fields.insert("deletionTimestamp".to_owned(), json!(time_text(now)));
        let mut finalizers = fields.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        if !finalizers.iter().any(|known| known == CLEANUP_FINALIZER) {
            finalizers.push(json!(CLEANUP_FINALIZER));
        }
        fields.insert("finalizers".to_owned(), Value::Array(finalizers));
        let generation = fields.get("generation").and_then(Value::as_i64).unwrap_or_default();
        fields.insert("generation".to_owned(), json!(generation.saturating_add(1)));
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        let condition = super::names::condition("Terminating", true, "InstanceDeletionPending", message);
        conditions::set_condition(&mut ending, condition, now);
        Ok(Some(ending))
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// The name of the version that objects are stored in.
pub(super) fn storage_version(definition: &Value) -> Option<&str> {
    let versions = definition["spec"]["versions"].as_array()?;
    versions.iter().find(|version| version["storage"] == true)?["name"].as_str()
}

fn check(definition: &Value, errors: &mut Errors) {
    let spec = &definition["spec"];
    let at = Path::root("spec");
    let group = text(spec, "group");
    let wrong = names::dns1123_subdomain(group);
    if group.is_empty() {
        errors.required(&at.child("group"), "");
    } else if !wrong.is_empty() {
        errors.invalid(&at.child("group"), group, wrong.join(","));
    } else if !group.contains('.') {
        errors.invalid(&at.child("group"), group, "should be a domain with at least one dot");
    }
    match text(spec, "scope") {
        "" => errors.required(&at.child("scope"), ""),
        "Cluster" | "Namespaced" => {}
        other => errors.not_supported(&at.child("scope"), other, &["Cluster", "Namespaced"]),
    }
    if spec["preserveUnknownFields"] == true {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.invalid(&at.child("preserveUnknownFields"), true, detail);
    }
    versions::check(spec, &at, errors, |errors| check_names(&spec["names"], &at.child("names"), errors));
    check_conversion(&spec["conversion"], &at.child("conversion"), errors);
    check_stored_versions(definition, errors);
    check_approval(definition, group, errors);
}

fn check_names(given: &Value, at: &Path<'_>, errors: &mut Errors) {
    let fields = ["plural", "singular", "kind", "listKind"];
    for field in fields {
        if text(given, field).is_empty() {
            errors.required(&at.child(field), "");
        }
    }
    for field in fields {
        let name = text(given, field);
        let is_kind = matches!(field, "kind" | "listKind");
        let wrong = names::dns1035_label(if is_kind { name.to_lowercase() } else { name.to_owned() }.as_str());
        if name.is_empty() || wrong.is_empty() {
            continue;
        }
        let prefix = if is_kind { "may have mixed case, but should otherwise match: " } else { "" };
        errors.invalid(&at.child(field), name, format!("{prefix}{}", wrong.join(",")));
    }
    let mut check_list = |field: &str| {
        let list = at.child(field);
        for (index, name) in given[field].as_array().into_iter().flatten().enumerate() {
            let name = name.as_str().unwrap_or_default();
            let wrong = names::dns1035_label(name);
            if !wrong.is_empty() {
                errors.invalid(&list.index(index), name, wrong.join(","));
            }
        }
    };
    check_list("shortNames");
    check_list("categories");
    let kind = text(given, "kind");
    if !kind.is_empty() && kind == text(given, "listKind") {
        errors.invalid(&at.child("listKind"), kind, "kind and listKind may not be the same");
    }
}

fn check_conversion(conversion: &Value, at: &Path<'_>, errors: &mut Errors) {
    let config = conversion.pointer("/webhook/clientConfig").filter(|config| config.is_object());
    let reviews = conversion.pointer("/webhook/conversionReviewVersions").and_then(Value::as_array);
    let reviews = reviews.map(Vec::as_slice).unwrap_or_default();
    let (config_at, reviews_at) = (at.child("webhookClientConfig"), at.child("conversionReviewVersions"));
    match text(conversion, "strategy") {
        "Webhook" => {
            match config {
                None => errors.required(&config_at, "required when strategy is set to Webhook"),
                Some(config) => {
                    client_config::check(config, &config_at, errors);
                    check_bundle(text(config, "caBundle"), &config_at.child("caBundle"), errors);
                }
            }
            for (index, version) in reviews.iter().enumerate() {
                let name = version.as_str().unwrap_or_default();
                if reviews[..index].contains(version) {
                    errors.invalid(&reviews_at.index(index), name, "duplicate version");
                }
                for message in names::dns1035_label(name) {
                    errors.invalid(&reviews_at.index(index), name, message);
                }
            }
            if reviews.is_empty() {
                errors.required(&reviews_at, "");
            } else if !reviews.iter().any(|version| version == "v1" || version == "v1beta1") {
                errors.invalid(&reviews_at, reviews, "must include at least one of v1, v1beta1");
            }
        }
        "None" => {
            if config.is_some() {
                errors.forbidden(&config_at, "should not be set when strategy is not set to Webhook");
            }
            if !reviews.is_empty() {
                errors.forbidden(&reviews_at, "should not be set when strategy is not set to Webhook");
            }
        }
        "" => errors.required(&at.child("strategy"), ""),
        other => errors.not_supported(&at.child("strategy"), other, &["None", "Webhook"]),
    }
}

/// Checks that a bundle, where there is one, holds certificates.
fn check_bundle(bundle: &str, at: &Path<'_>, errors: &mut Errors) {
    let pem = STANDARD.decode(bundle).unwrap_or_default();
    if !pem.is_empty() && !CertificateDer::pem_slice_iter(&pem).any(|certificate| certificate.is_ok()) {
        let detail = "unable to load root certificates: unable to parse bytes as PEM block";
        errors.invalid(at, bundle, detail);
    }
}

fn check_stored_versions(definition: &Value, errors: &mut Errors) {
    let status = Path::root("status");
    let at = status.child("storedVersions");
    let stored = &definition["status"]["storedVersions"];
    let names = stored.as_array().map(Vec::as_slice).unwrap_or_default();
    if names.is_empty() {
        errors.invalid(&at, Value::Null, "must have at least one stored version");
        return;
    }
    let versions = || definition["spec"]["versions"].as_array().into_iter().flatten();
    let mut left = names.to_vec();
    for version in versions() {
        let name = &version["name"];
        if version["storage"] == true && !left.contains(name) {
            errors.invalid(&at, stored, format!("must have the storage version {}", text(version, "name")));
        }
        left.retain(|known| known != name);
    }
    let known: Vec<&Value> = versions().map(|version| &version["name"]).collect();
    for (index, name) in names.iter().enumerate() {
        if !known.contains(&name) {
            let version = name.as_str().unwrap_or_default();
            let detail = format!(
                "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
            );
            errors.invalid(&at.index(index), name, detail);
        }
    }
}

/// Whether a group belongs to the Kubernetes community, which approves what is put there.
pub(crate) fn is_protected(group: &str) -> bool {
    group == "k8s.io" || group == "kubernetes.io" || group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io")
}

fn check_approval(definition: &Value, group: &str, errors: &mut Errors) {
    if !is_protected(group) {
        return;
    }
    let metadata = Path::root("metadata");
    let annotations = metadata.child("annotations");
    let at = annotations.key(APPROVAL_ANNOTATION);
    match definition["metadata"]["annotations"][APPROVAL_ANNOTATION].as_str().unwrap_or_default() {
        "" => errors.required(
            &at,
            format!(
                "protected groups must have approval annotation \"{APPROVAL_ANNOTATION}\", see https://github.com/kubernetes/enhancements/pull/1111"
            ),
        ),
        reason if reason.starts_with("unapproved") || reason.contains("://") => {}
        other => errors.invalid(
            &at,
            other,
            format!(
                "protected groups must have approval annotation \"{APPROVAL_ANNOTATION}\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"
            ),
        ),
    }
}
