//! Who owns which field: `managedFields` on every write, and server-side apply.

use koord_schema::{
    fieldset::FieldSet,
    managed_fields::{self, ApplyError, Writer},
    typed::{SchemaNode, TypeNode},
};
use serde_json::{Map, Value, json};

use super::{
    ApiServer,
    write::{Effect, Write},
};
use crate::{
    builtins::{self, BuiltinType},
    environment, metadata, options,
    registry::ResourceDef,
    status::ApiError,
    strategy::StatusKeeps,
};

/// Text that `managedFields` need about a write.
struct Scribe {
    manager: String,
    api_version: String,
    subresource: String,
    time: String,
}

impl Scribe {
    fn writer(&self) -> Writer<'_> {
        Writer {
            manager: &self.manager,
            api_version: &self.api_version,
            subresource: &self.subresource,
            time: &self.time,
        }
    }
}

/// The type of what a subresource such as `binding` is given, where that is not its resource.
fn argument_type(write: &Write) -> Option<&'static BuiltinType> {
    if write.effect != Effect::Subresource {
        return None;
    }
    let (group, version, kind) = write.definition.subresource(&write.target.subresource)?.body.as_ref()?;
    builtins::kind(group, version, kind)
}

/// A change that webhooks have undone changes nothing, not even the times at which fields were written.
pub(super) fn keep_times_of_unchanged(write: &mut Write) {
    let Some((_, old)) = &write.old else { return };
    let kept = &old["metadata"]["managedFields"];
    if !is_same_but_for_times(&write.object["metadata"]["managedFields"], kept) {
        return;
    }
    let mut same = write.object.clone();
    metadata::of_mut(&mut same).insert("managedFields".to_owned(), kept.clone());
    if same == *old {
        write.object = same;
    }
}

fn is_same_but_for_times(one: &Value, other: &Value) -> bool {
    let timeless = |entries: &Value| -> Vec<Value> {
        let mut entries = entries.as_array().cloned().unwrap_or_default();
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        entries
    };
    one.is_array() && other.is_array() && timeless(one) == timeless(other)
}

impl ApiServer {
    fn scribe(&mut self, write: &Write) -> Scribe {
        let parameter = write.request.parameter("fieldManager").unwrap_or_default();
        Scribe {
            manager: options::manager(parameter, &write.request.user_agent),
            api_version: match write.effect {
                Effect::Subresource => write.object["apiVersion"].as_str().unwrap_or_default().to_owned(),
                _ => write.definition.api_version(),
            },
            subresource: write.target.subresource.clone(),
            time: environment::time_text(self.environment.now()),
        }
    }

    /// Records the writer of an object that is answered and never stored, such as a review.
    pub(crate) fn own_fields(
        &mut self,
        definition: &ResourceDef,
        object: &mut Value,
        manager: &str,
        subresource: &str,
    ) {
        let scribe = Scribe {
            manager: manager.to_owned(),
            api_version: definition.api_version(),
            subresource: subresource.to_owned(),
            time: environment::time_text(self.environment.now()),
        };
        if let Some(node) = crate::builtins::kind(&definition.group, &definition.version, &definition.kind) {
            record(None, object, &scribe, &node, &FieldSet::default());
        }
    }

    /// Records what the writer changed.
    pub(super) fn record_ownership(&mut self, write: &mut Write) {
        let scribe = self.scribe(write);
        let definition = write.definition.clone();
        let ignored = fields_of_other_doors(&definition, &write.target.subresource);
        let live = write.old.as_ref().map(|(_, old)| old);
        let node = match argument_type(write) {
            Some(argument) => Some(argument),
            None => definition.builtin_type(),
        };
        match (node, definition.schema.get()) {
            (Some(node), _) => record(live, &mut write.object, &scribe, &node, &ignored),
            (None, Some(schema)) => {
                record(live, &mut write.object, &scribe, &SchemaNode::of_object(schema), &ignored);
            }
            (None, None) => {}
        }
        // QUIRK: the real server keeps no time for writers of `scale` (recording apply/scale-conflict).
        if scribe.subresource == "scale" {
            let entries = write.object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
            for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
                if entry.get("subresource").is_some_and(|name| name == "scale") {
                    entry.remove("time");
                }
            }
        }
    }

    /// Applies a configuration to the stored object, or to nothing.
    pub(super) fn apply_configuration(
        &mut self,
        write: &Write,
        configuration: &Value,
        force: bool,
    ) -> Result<Value, ApiError> {
        let scribe = self.scribe(write);
        let definition = write.definition.clone();
        let ignored = fields_of_other_doors(&definition, &scribe.subresource);
        let live = write.old.as_ref().map_or_else(|| json!({}), |(_, old)| old.clone());
        let applied = match (definition.builtin_type(), definition.schema.get()) {
            (Some(node), _) => managed_fields::apply(&live, configuration, &scribe.writer(), &node, &ignored, force),
            (None, Some(schema)) => {
                let node = SchemaNode::of_object(schema);
                managed_fields::apply(&live, configuration, &scribe.writer(), &node, &ignored, force)
            }
            (None, None) => return Err(ApiError::unsupported_media_type("415: Unsupported Media Type")),
        };
        applied.map_err(|error| refusal(&error, &definition, configuration))
    }
}

fn record<N: TypeNode>(live: Option<&Value>, new: &mut Value, scribe: &Scribe, node: &N, ignored: &FieldSet) {
    let zero = live.is_none().then(|| node.zero());
    if let Some(live) = live.or(zero.as_ref()) {
        managed_fields::update(live, new, &scribe.writer(), node, ignored);
    }
}

fn refusal(error: &ApplyError, definition: &ResourceDef, configuration: &Value) -> ApiError {
    match error {
        ApplyError::ManagedFields => ApiError::bad_request(error.to_string()),
        ApplyError::Mismatch(_) => ApiError::unclassified(format!(
            "failed to create typed patch object ({}/{}; {}/{}, Kind={}): {error}",
            metadata::text(configuration, "namespace"),
            metadata::text(configuration, "name"),
            definition.group,
            definition.version,
            definition.kind
        )),
        ApplyError::Conflicts(conflicts) => {
            let causes: Vec<Value> = conflicts
                .iter()
                .map(|conflict| {
                    json!({
                        "reason": "FieldManagerConflict", "message": conflict.message(), "field": conflict.field,
                    })
                })
                .collect();
            let mut details = Map::new();
            details.insert("causes".to_owned(), Value::Array(causes));
            ApiError::new(409, "Conflict", error.to_string()).with_details(details)
        }
    }
}

/// Fields that nobody gets to own by writing through this endpoint, as kube-apiserver's `GetResetFields` lists them.
///
/// QUIRK: the status of a custom resource resets nothing but `spec`: who changes a label there owns it, although the label is
/// not stored.
fn fields_of_other_doors(definition: &ResourceDef, subresource: &str) -> FieldSet {
    const SPEC: &[&str] = &["spec"];
    if subresource != "status" {
        let has_status = definition.subresource("status").is_some();
        return if has_status { FieldSet::of_fields(&[&["status"]]) } else { FieldSet::new() };
    }
    match (definition.group.as_str(), definition.plural.as_str()) {
        ("", "pods") => {
            FieldSet::of_fields(&[SPEC, &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
        }
        _ if definition.custom => FieldSet::of_fields(&[SPEC]),
        _ => match definition.strategy.status_keeps() {
            StatusKeeps::Metadata => FieldSet::of_fields(&[SPEC, &["metadata"]]),
            StatusKeeps::Labels => FieldSet::of_fields(&[SPEC, &["metadata", "labels"]]),
            StatusKeeps::Nothing => FieldSet::of_fields(&[SPEC]),
        },
    }
}

/// An applied configuration must be of the type of the endpoint.
pub(super) fn check_type(configuration: &Value, definition: &ResourceDef) -> Result<(), ApiError> {
    let api_version = configuration["apiVersion"].as_str().unwrap_or_default();
    let kind = configuration["kind"].as_str().unwrap_or_default();
    if definition.is_api_version(api_version) && kind == definition.kind {
        return Ok(());
    }
    let (group, version, kind) = match api_version.matches('/').count() {
        0 | 1 => {
            let (group, version) = crate::builtins::split_group_version(api_version);
            (group, version, kind)
        }
        _ => ("", "", ""),
    };
    Err(ApiError::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")))
}
