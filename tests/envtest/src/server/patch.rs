//! Patch: JSON, merge, strategic merge and apply.

use std::sync::{Arc, LazyLock};

use koord_schema::{
    Schema, SchemaType,
    go_text::json_type,
    patch::{self, PatchError},
    strict,
    typed::SchemaNode,
};
use serde_json::Value;

use super::{ApiServer, Outcome, identity, ownership, subject, subresource, write::Order};
use crate::{
    decode::{self, Decoded, FieldValidation},
    metadata, negotiate,
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
        let media_type = request.content_type.split(';').next().unwrap_or_default().trim();
        let is_accepted = match media_type {
            JSON_PATCH | MERGE_PATCH | APPLY_YAML => true,
            STRATEGIC_PATCH => !definition.custom,
            _ => false,
        };
        if !is_accepted {
            negotiate::representation(&request.accept)?;
            return Err(if definition.custom {
                ApiError::unsupported_media_type(format!(
                    "the body of the request was in an unknown format - accepted media types include: {JSON_PATCH}, {MERGE_PATCH}, {APPLY_YAML}"
                ))
            } else {
                ApiError::unsupported_media_type("415: Unsupported Media Type").with_details(serde_json::Map::new())
            });
        }
        let order = Order::read(request, target, definition, "PatchOptions", media_type == APPLY_YAML)?;
        if media_type == APPLY_YAML {
            return self.apply(order);
        }
        let (record, old) = self
            .stored(&order.definition, &order.target)
            .ok_or_else(|| ApiError::not_found(subject(&order.definition, &order.target.name)))?;
        let decoded = if order.target.subresource == "scale" {
            patched_scale(media_type, &order, &old)?
        } else {
            let validation = order.options.field_validation;
            let patch = decoded_patch(media_type, &request.body, validation)?;
            let source = match media_type {
                STRATEGIC_PATCH => decode::PatchedBy::Strategic(patch.clone()),
                _ => decode::PatchedBy::Patch { touches_metadata: touches_metadata(media_type, &patch) },
            };
            let mistakes = mistakes_in_fields(media_type, &request.body);
            let make = || patched(media_type, &patch, &old, &order.definition);
            let Decoded { mut object, warnings } =
                decode::patched(make, &order.definition, validation, &source, mistakes)?;
            check_place(&mut object, &order.target).map_err(|error| error.after_warnings(warnings.clone()))?;
            Decoded { object, warnings }
        };
        let is_conditional =
            metadata::text(&decoded.object, "resourceVersion") != metadata::text(&old, "resourceVersion");
        self.submit(order.write(Some((record, old)), decoded, is_conditional))
    }

    /// Server-side apply: the configuration is merged with what others own; an absent object is created.
    fn apply(&mut self, order: Order<'_>) -> Result<Outcome, ApiError> {
        let text = String::from_utf8_lossy(&order.request.body);
        let configuration = crate::yaml::parse(&text)
            .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))?;
        let configuration = match configuration {
            Value::Object(_) => configuration,
            Value::Null => Value::Object(serde_json::Map::new()),
            other => {
                return Err(ApiError::bad_request(format!(
                    "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    json_type(&other)
                )));
            }
        };
        ownership::check_type(&configuration, &order.definition)?;
        let stored = self.stored(&order.definition, &order.target);
        let is_create = stored.is_none();
        if is_create && !order.target.subresource.is_empty() {
            return Err(ApiError::not_found(subject(&order.definition, &order.target.name)));
        }
        let given_uid = metadata::text(&configuration, "uid");
        if is_create && !given_uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {given_uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(subject(&order.definition, &order.target.name), &why));
        }
        let (force, validation) = (order.options.force.unwrap_or_default(), order.options.field_validation);
        let is_conditional = !metadata::text(&configuration, "resourceVersion").is_empty();
        let mut write = order.write(stored, Decoded::default(), is_conditional);
        write.is_applied = true;
        if let Some(authorizer) = self.authorizer.as_ref().filter(|_| is_create) {
            authorizer.check_create(self, &write.attributes())?;
        }
        write.object = self.apply_configuration(&write, &configuration, force)?;
        identity::check_name(&write.object, &write.target)?;
        identity::match_namespace(&write.target, &mut write.object)?;
        let of = |name| metadata::text(&configuration, name).to_owned();
        let source = decode::PatchedBy::Apply { namespace: of("namespace"), name: of("name") };
        let applied = std::mem::take(&mut write.object);
        let decoded = decode::patched(|| Ok(applied.clone()), &write.definition, validation, &source, Vec::new())?;
        (write.object, write.warnings) = (decoded.object, decoded.warnings);
        if is_create {
            metadata::remove(&mut write.object, "resourceVersion");
        }
        self.submit(write)
    }
}

/// A patch of `scale` is applied to the `Scale` that a GET would show.
fn patched_scale(media_type: &str, order: &Order<'_>, old: &Value) -> Result<Decoded, ApiError> {
    let definition = &order.definition;
    let shown = subresource::scale_to_patch(definition, old).ok_or_else(ApiError::no_such_resource)?;
    let media_type = if media_type == STRATEGIC_PATCH { MERGE_PATCH } else { media_type };
    let validation = order.options.field_validation;
    let patch = decoded_patch(media_type, &order.request.body, validation)?;
    let scale_definition = subresource::scale_definition(definition);
    let scale_definition = ResourceDef { custom: false, ..scale_definition };
    let source = decode::PatchedBy::Patch { touches_metadata: touches_metadata(media_type, &patch) };
    let make = || patched(media_type, &patch, &shown, definition);
    let Decoded { object: mut scale, .. } = decode::patched(make, &scale_definition, validation, &source, Vec::new())?;
    check_place(&mut scale, &order.target)?;
    let object = subresource::with_scale(definition, old, &scale)?;
    Ok(Decoded { object, warnings: Vec::new() })
}

/// Whether a patch reaches into `metadata`.
fn touches_metadata(media_type: &str, patch: &Value) -> bool {
    if media_type != JSON_PATCH {
        return patch["metadata"].is_object();
    }
    let paths = patch.as_array().into_iter().flatten().flat_map(|operation| [&operation["path"], &operation["from"]]);
    paths.filter_map(Value::as_str).any(|path| path.starts_with("/metadata/"))
}

/// A patch may neither rename an object nor move it.
fn check_place(object: &mut Value, target: &Target) -> Result<(), ApiError> {
    identity::check_name(object, target)?;
    if target.namespace.is_empty() && !metadata::text(object, "namespace").is_empty() {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    identity::match_namespace(target, object)
}

/// The operations of a JSON patch.
static OPERATIONS: LazyLock<Schema> = LazyLock::new(|| {
    let text = Schema { type_: Some(SchemaType::String), ..Schema::default() };
    let any = Schema { preserve_unknown_fields: Some(true), ..Schema::default() };
    let fields = [("op", text.clone()), ("path", text.clone()), ("from", text), ("value", any)];
    let operation = Schema {
        type_: Some(SchemaType::Object),
        properties: fields.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect(),
        ..Schema::default()
    };
    Schema { type_: Some(SchemaType::Array), items: Some(Box::new(operation)), ..Schema::default() }
});

/// Fields that stand twice in the text of a patch, and those that no operation has.
fn mistakes_in_fields(media_type: &str, body: &[u8]) -> Vec<String> {
    if media_type != JSON_PATCH {
        return strict::duplicates(body);
    }
    let mistakes = strict::decoding_errors(body, Some(&SchemaNode::of(&OPERATIONS)));
    mistakes.into_iter().map(|mistake| format!("json patch {mistake}")).collect()
}

/// Reads a patch as far as its form goes. Who validates fields reads it twice, and the first reading has other messages.
fn decoded_patch(media_type: &str, body: &[u8], validation: FieldValidation) -> Result<Value, ApiError> {
    let is_validated = validation != FieldValidation::Ignore;
    let prefix = if media_type == STRATEGIC_PATCH || !is_validated { "" } else { "error decoding patch: " };
    let unreadable = |mistake: &str| {
        let is_plain = media_type == MERGE_PATCH && !is_validated;
        Err(ApiError::bad_request(if is_plain {
            "Invalid JSON Patch".to_owned()
        } else {
            format!("{prefix}{mistake}")
        }))
    };
    let patch = match decode::json(body) {
        Ok(patch) => patch,
        Err(mistake) => return unreadable(&mistake),
    };
    match patch {
        Value::Null if media_type == MERGE_PATCH => Err(ApiError::bad_request("Invalid JSON Patch")),
        Value::Null if media_type == JSON_PATCH => Ok(Value::Array(Vec::new())),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Array(operations) if media_type == JSON_PATCH => {
            match operations.iter().filter(|_| is_validated).find_map(mistake_in_operation) {
                Some(mistake) => unreadable(&mistake),
                None if operations.iter().any(Value::is_null) => Err(rejected()),
                None => Ok(Value::Array(operations)),
            }
        }
        Value::Object(_) if media_type != JSON_PATCH => Ok(patch),
        other => {
            let wanted = match media_type {
                JSON_PATCH if is_validated => "[]handlers.jsonPatchOp",
                JSON_PATCH => "jsonpatch.Patch",
                _ => "map[string]interface {}",
            };
            unreadable(&format!("json: cannot unmarshal {} into Go value of type {wanted}", json_type(&other)))
        }
    }
}

/// `op`, `path` and `from` of an operation are strings.
fn mistake_in_operation(operation: &Value) -> Option<String> {
    let mistake =
        |value: &Value, place: &str| Some(format!("json: cannot unmarshal {} into Go {place}", json_type(value)));
    match operation {
        Value::Null => None,
        Value::Object(fields) => ["op", "path", "from"].into_iter().find_map(|name| match fields.get(name)? {
            Value::Null | Value::String(_) => None,
            other => mistake(other, &format!("struct field jsonPatchOp.{name} of type string")),
        }),
        other => mistake(other, "value of type handlers.jsonPatchOp"),
    }
}

/// 422: the patch is well formed and cannot be carried out.
fn rejected() -> ApiError {
    ApiError::new(422, "Invalid", "the server rejected our request due to an error in our request")
        .with_details(serde_json::Map::new())
}

fn patched(media_type: &str, patch: &Value, old: &Value, definition: &ResourceDef) -> Result<Value, ApiError> {
    let object = old.clone();
    let result = match media_type {
        JSON_PATCH => patch::json::apply(object, patch),
        STRATEGIC_PATCH => match definition.builtin_type() {
            // Which type a strategic patch names does not count, as long as it is text.
            Some(node) => patch::strategic::apply(object, patch, &node).map(|mut object| {
                for field in ["apiVersion", "kind"] {
                    if matches!(object[field], Value::Null | Value::String(_)) {
                        object[field] = old[field].clone();
                    }
                }
                object
            }),
            None => return Err(ApiError::unsupported_media_type("")),
        },
        _ => Ok(patch::merge::apply(object, patch)),
    };
    result.map_err(|error| match error {
        PatchError::Malformed(message) => ApiError::bad_request(message),
        PatchError::TooManyOperations { .. } => ApiError::new(413, "RequestEntityTooLarge", error.to_string()),
        PatchError::DoesNotApply(_) => rejected(),
        PatchError::Unmergeable(message) => ApiError::unclassified(message),
    })
}
