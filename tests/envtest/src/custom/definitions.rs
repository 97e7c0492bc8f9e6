//! The kind CustomResourceDefinition: which checks a write must pass, and how a deletion begins.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use koord_schema::definition;
use koord_schema::field::{Errors, Path};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};

use super::{CLEANUP_FINALIZER, conditions};
use crate::environment::time_text;
use crate::metadata;
use crate::status::ApiError;
use crate::strategy::{Generation, StatusKeeps, Strategy, WriteContext};

pub(crate) use koord_schema::definition::is_protected;

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

    fn set_defaults(&self, object: &mut Value) {
        definition::set_defaults(object);
    }

    fn prepare_create(&self, object: &mut Value, _around: &WriteContext<'_>) {
        definition::begin_status(object);
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value, subresource: &str, _around: &WriteContext<'_>) {
        if !subresource.is_empty() {
            return;
        }
        let Some(version) = definition::storage_version(new).map(ToOwned::to_owned) else { return };
        if let Some(stored) = new["status"]["storedVersions"].as_array_mut()
            && !stored.iter().any(|known| *known == version.as_str())
        {
            stored.push(json!(version));
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        definition::check_new(object, errors);
    }

    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        // Stored versions are taken as they are: whoever migrates objects drops versions from them.
        if !subresource.is_empty() {
            definition::check_status(new, errors);
            return;
        }
        let is_established = conditions::has_condition(old, "Established");
        definition::check_changed(new, old, is_established, errors);
        if is_established && (bundle(old).is_empty() || is_bundle(bundle(old))) {
            check_bundle(bundle(new), errors);
        }
    }

    fn delete(&self, object: &Value, now: Timestamp) -> Result<Option<Value>, ApiError> {
        if metadata::is_deleting(object) {
            return Ok(None);
        }
        let mut ending = object.clone();
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

/// The certificate authorities of the webhook that converts objects.
fn bundle(definition: &Value) -> &str {
    let bundle = definition.pointer("/spec/conversion/webhook/clientConfig/caBundle");
    bundle.and_then(Value::as_str).unwrap_or_default()
}

fn is_bundle(bundle: &str) -> bool {
    let pem = STANDARD.decode(bundle).unwrap_or_default();
    CertificateDer::pem_slice_iter(&pem).any(|certificate| certificate.is_ok())
}

/// Checks that a bundle, where there is one, holds certificates.
fn check_bundle(bundle: &str, errors: &mut Errors) {
    if !bundle.is_empty() && !is_bundle(bundle) {
        let spec = Path::root("spec");
        let conversion = spec.child("conversion");
        let config = conversion.child("webhookClientConfig");
        let detail = "unable to load root certificates: unable to parse bytes as PEM block";
        errors.invalid(&config.child("caBundle"), bundle, detail);
    }
}
