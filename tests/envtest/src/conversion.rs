//! Versions of a custom kind whose fields differ: what a conversion webhook is asked, and what its answer means.
//!
//! Objects are stored in one version. The core never waits: a request that needs an object in another version leads to
//! an outcome of the core, and goes on when it is given the converted objects.

mod answer;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use koord_schema::Schema;
use koord_schema::structural::{defaults, prune};
use serde_json::{Value, json};

pub use answer::read;

/// The webhook that a definition names for its conversions.
#[derive(Debug)]
pub struct ConversionWebhook {
    /// The `apiVersion` that objects are stored in.
    pub stored: String,
    /// Where the webhook is, as the definition says it.
    pub client_config: Value,
    /// The first version of ConversionReview that both sides know.
    pub review_version: Option<&'static str>,
    /// The schema of every version, by `apiVersion`.
    schemas: BTreeMap<String, Schema>,
}

/// Objects that were converted for one request, by the revision at which they were read.
#[derive(Clone, Debug, Default)]
pub struct Converted(Arc<HashMap<u64, Value>>);

// === impl ConversionWebhook ===

impl ConversionWebhook {
    /// The webhook of a CustomResourceDefinition; none when changing `apiVersion` is all that its versions need.
    pub fn of(definition: &Value) -> Option<Arc<Self>> {
        let conversion = definition.pointer("/spec/conversion").filter(|found| found["strategy"] == "Webhook")?;
        let group = definition.pointer("/spec/group")?.as_str()?;
        let api_version = |version: &Value| version["name"].as_str().map(|name| format!("{group}/{name}"));
        let versions = definition.pointer("/spec/versions")?.as_array()?;
        let schema = |version: &Value| {
            let schema = version.pointer("/schema/openAPIV3Schema")?.clone();
            Some((api_version(version)?, serde_json::from_value(schema).ok()?))
        };
        let reviews = conversion.pointer("/webhook/conversionReviewVersions").and_then(Value::as_array);
        Some(Arc::new(Self {
            stored: versions.iter().find(|version| version["storage"] == true).and_then(api_version)?,
            client_config: conversion.pointer("/webhook/clientConfig")?.clone(),
            review_version: reviews.into_iter().flatten().find_map(|version| match version.as_str() {
                Some("v1") => Some("v1"),
                Some("v1beta1") => Some("v1beta1"),
                _ => None,
            }),
            schemas: versions.iter().filter_map(schema).collect(),
        }))
    }

    /// Gives an object that was read from the store the defaults of its own version, and takes away what that version
    /// does not know.
    pub fn settle_stored(&self, object: &mut Value) {
        if let Some(schema) = self.schema(object) {
            defaults::apply(schema, object);
            prune::prune(schema, object);
        }
    }

    /// Takes away what the version of a converted object does not know.
    pub fn settle_converted(&self, object: &mut Value) {
        if let Some(schema) = self.schema(object) {
            prune::prune(schema, object);
        }
    }

    fn schema(&self, object: &Value) -> Option<&Schema> {
        self.schemas.get(object["apiVersion"].as_str()?)
    }
}

// === impl Converted ===

impl Converted {
    /// The object that was read at a revision.
    pub fn get(&self, revision: u64) -> Option<&Value> {
        self.0.get(&revision)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds objects, each with its revision.
    pub fn extend(&mut self, objects: impl IntoIterator<Item = (u64, Value)>) {
        Arc::make_mut(&mut self.0).extend(objects);
    }

    /// Takes an object out that is not needed again.
    pub fn remove(&mut self, revision: u64) {
        Arc::make_mut(&mut self.0).remove(&revision);
    }
}

/// The ConversionReview that asks for one object in another version.
pub fn request(version: &str, uid: &str, object: &Value, desired: &str) -> Value {
    json!({
        "apiVersion": format!("apiextensions.k8s.io/{version}"),
        "kind": "ConversionReview",
        "request": {"uid": uid, "desiredAPIVersion": desired, "objects": [object]},
    })
}

/// A version and kind as Go prints them in messages about conversions.
pub fn printed_kind(object: &Value) -> String {
    format!(
        "{}, Kind={}",
        object["apiVersion"].as_str().unwrap_or_default(),
        object["kind"].as_str().unwrap_or_default()
    )
}
