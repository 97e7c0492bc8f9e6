//! Patch: JSON, merge, strategic merge and apply.

use std::sync::Arc;

use serde_json::Value;

use super::{
    ApiServer, Outcome, subject,
    write::{Effect, Operation, Write},
};
use crate::{
    decode, encode, metadata, negotiate,
    options::WriteOptions,
    registry::ResourceDef,
    request::{ApiRequest, Target},
    status::ApiError,
};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_YAML: &str = "application/apply-patch+yaml";

impl ApiServer {
    pub(super) fn patch(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let representation = negotiate::representation(&request.accept)?;
        let media_type = request.content_type.split(';').next().unwrap_or_default().trim();
        let mut accepted = vec![JSON_PATCH, MERGE_PATCH];
        if !definition.custom {
            accepted.push(STRATEGIC_PATCH);
        }
        accepted.push(APPLY_YAML);
        if !accepted.contains(&media_type) {
            return Err(ApiError::unsupported_media_type(format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                accepted.join(", ")
            )));
        }
        let options = WriteOptions::read(request, "PatchOptions", media_type == APPLY_YAML)?;
        let key = definition.key(&target.namespace, &target.name);
        let record = self.store.shelf(definition.shelf).get(&key).cloned();
        let record = record.ok_or_else(|| ApiError::not_found(subject(&definition, &target.name)))?;
        let old = encode::value(&definition, &record);
        let mut object = apply(media_type, &request.body, &old)?;
        let decoded = decode::patched(&mut object, &definition, options.field_validation)?;
        definition.strategy.set_defaults(&mut object);
        let write = Write {
            is_conditional: metadata::text(&object, "resourceVersion") != metadata::text(&old, "resourceVersion"),
            definition,
            target,
            operation: Operation::Update,
            effect: Effect::Store,
            request: request.clone(),
            representation,
            dry_run: options.dry_run,
            options: options.to_value(),
            object,
            old: Some((record, old)),
            collection: None,
            warnings: decoded,
        };
        self.update_decoded(write)
    }
}

fn apply(media_type: &str, body: &[u8], old: &Value) -> Result<Value, ApiError> {
    let patch: Value = serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    let mut object = old.clone();
    match media_type {
        JSON_PATCH => {
            let operations: json_patch::Patch = serde_json::from_value(patch)
                .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
            json_patch::patch(&mut object, &operations).map_err(|error| {
                ApiError::new(
                    422,
                    "Invalid",
                    format!("the server rejected our request due to an error in our request: {error}"),
                )
            })?;
        }
        _ => json_patch::merge(&mut object, &patch),
    }
    Ok(object)
}
