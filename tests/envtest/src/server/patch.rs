//! Patch: JSON, merge, strategic merge and apply.

use std::sync::Arc;

use koord_schema::patch::{self, PatchError};
use serde_json::Value;

use super::{
    ApiServer, Outcome, ownership, subject, subresource,
    write::{Effect, Operation, Write},
};
use crate::{
    decode, encode, metadata,
    negotiate::{self, Representation},
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
            return Err(
                ApiError::unsupported_media_type("415: Unsupported Media Type").with_details(serde_json::Map::new())
            );
        }
        let options = WriteOptions::read(request, "PatchOptions", media_type == APPLY_YAML)?;
        if media_type == APPLY_YAML {
            return self.apply(request, target, definition, &options, representation);
        }
        let key = definition.key(&target.namespace, &target.name);
        let record = self.store.shelf(definition.shelf).get(&key).cloned();
        let record = record.ok_or_else(|| ApiError::not_found(subject(&definition, &target.name)))?;
        let old = encode::value(&definition, &record);
        if target.subresource == "scale" {
            return self.patch_scale(request, target, definition, media_type, &options, representation);
        }
        let mut object = apply(media_type, &request.body, &old, &definition)?;
        let decoded = decode::patched(&mut object, &definition, options.field_validation, false)?;
        definition.strategy.set_defaults(&mut object);
        check_name(&object, &target)?;
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
            is_applied: false,
            collection: None,
            warnings: decoded,
        };
        self.update_decoded(write)
    }
}

impl ApiServer {
    /// A patch of `scale` is applied to the `Scale` that a GET would show.
    fn patch_scale(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
        media_type: &str,
        options: &WriteOptions,
        representation: Representation,
    ) -> Result<Outcome, ApiError> {
        let key = definition.key(&target.namespace, &target.name);
        let record = self.store.shelf(definition.shelf).get(&key).cloned();
        let record = record.ok_or_else(|| ApiError::not_found(subject(&definition, &target.name)))?;
        let old = encode::value(&definition, &record);
        let scale = subresource::scale_of(&definition, &old).ok_or_else(ApiError::no_such_resource)?;
        let media_type = if media_type == STRATEGIC_PATCH { MERGE_PATCH } else { media_type };
        let scale = apply(media_type, &request.body, &scale, &definition)?;
        let object = subresource::with_scale(&definition, &old, &scale)?;
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
            is_applied: false,
            collection: None,
            warnings: Vec::new(),
        };
        self.update_decoded(write)
    }
}

impl ApiServer {
    /// Server-side apply: the configuration is merged with what others own; an absent object is created.
    fn apply(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
        options: &WriteOptions,
        representation: Representation,
    ) -> Result<Outcome, ApiError> {
        let text = String::from_utf8_lossy(&request.body);
        let configuration = crate::yaml::parse(&text)
            .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
        ownership::check_configuration(&configuration, &definition, &target.name)?;
        let key = definition.key(&target.namespace, &target.name);
        let record = self.store.shelf(definition.shelf).get(&key).cloned();
        let old = record.map(|record| {
            let old = encode::value(&definition, &record);
            (record, old)
        });
        let is_create = old.is_none();
        if is_create && !target.subresource.is_empty() {
            return Err(ApiError::not_found(subject(&definition, &target.name)));
        }
        let given_uid = metadata::text(&configuration, "uid");
        if is_create && !given_uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {given_uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(subject(&definition, &target.name), &why));
        }
        let mut write = Write {
            is_conditional: !metadata::text(&configuration, "resourceVersion").is_empty(),
            definition,
            target,
            operation: if is_create { Operation::Create } else { Operation::Update },
            effect: Effect::Store,
            request: request.clone(),
            representation,
            dry_run: options.dry_run,
            options: options.to_value(),
            object: Value::Null,
            old,
            is_applied: true,
            collection: None,
            warnings: Vec::new(),
        };
        let mut object = self.apply_configuration(&write, &configuration, options.force.unwrap_or_default())?;
        write.warnings = decode::patched(&mut object, &write.definition, options.field_validation, true)?;
        write.definition.strategy.set_defaults(&mut object);
        write.object = object;
        if is_create {
            metadata::remove(&mut write.object, "resourceVersion");
        }
        if is_create { self.create_decoded(write) } else { self.update_decoded(write) }
    }
}

/// A patch may neither rename an object nor move it.
fn check_name(object: &Value, target: &Target) -> Result<(), ApiError> {
    let name = metadata::text(object, "name");
    if name != target.name {
        let url = &target.name;
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({url})"
        )));
    }
    if metadata::text(object, "namespace") != target.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn apply(media_type: &str, body: &[u8], old: &Value, definition: &ResourceDef) -> Result<Value, ApiError> {
    let patch: Value = serde_json::from_slice(body).map_err(|_| {
        ApiError::bad_request(decode::syntax_mistake(body).unwrap_or_else(|| "error decoding patch".to_owned()))
    })?;
    let object = old.clone();
    let result = match media_type {
        JSON_PATCH => patch::json::apply(object, &patch),
        STRATEGIC_PATCH => match definition.builtin_type() {
            Some(node) => patch::strategic::apply(object, &patch, &node),
            None => return Err(ApiError::unsupported_media_type("")),
        },
        _ => Ok(patch::merge::apply(object, &patch)),
    };
    result.map_err(|error| match error {
        PatchError::Malformed(message) => ApiError::bad_request(message),
        PatchError::TooManyOperations { .. } => ApiError::new(413, "RequestEntityTooLarge", error.to_string()),
        PatchError::DoesNotApply(_) => {
            ApiError::new(422, "Invalid", "the server rejected our request due to an error in our request")
                .with_details(serde_json::Map::new())
        }
        PatchError::Unmergeable(message) => ApiError::unclassified(message),
    })
}
