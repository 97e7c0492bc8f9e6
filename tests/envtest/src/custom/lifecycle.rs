//! The pass that follows every change of a definition: names, conditions, what is served, and deletion.

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::names::{Taken, accept, condition};
use super::{APPROVAL_ANNOTATION, CLEANUP_FINALIZER, GROUP, PLURAL, definitions, resources};
use crate::environment::time_text;
use crate::request::{ApiRequest, User};
use crate::server::ApiServer;
use crate::store::ShelfId;
use crate::{encode, metadata};

/// Whether a condition of a definition is true.
pub fn has_condition(definition: &Value, type_: &str) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

/// Sets a condition, with the time of its last transition.
pub(super) fn set_condition(definition: &mut Value, mut condition: Value, now: Timestamp) {
    condition["lastTransitionTime"] = json!(time_text(now));
    if !definition["status"]["conditions"].is_array() {
        definition["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = definition["status"]["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => {
            if known["status"] == condition["status"] {
                condition["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}

/// The user in whose name the server writes about definitions.
pub const SERVER_USER: &str = "system:apiserver";

fn server_user() -> User {
    User { name: SERVER_USER.to_owned(), groups: vec!["system:masters".to_owned()], ..User::default() }
}

/// Brings every definition's status, and what is served, up to date. `changed` are the shelves that changed.
pub fn follow(core: &mut ApiServer, changed: &[ShelfId]) {
    let Some(shelf) = core.registry.get(GROUP, "v1", PLURAL).map(|known| known.shelf) else { return };
    let is_due =
        |known: &std::sync::Arc<crate::registry::ResourceDef>| known.is_terminating && changed.contains(&known.shelf);
    if !changed.contains(&shelf) && !core.registry.iter().any(is_due) {
        return;
    }
    let touches = |definition: &Value| changed.contains(&shelf) || is_ending_on(core, definition, changed);
    let due: Vec<String> = definitions(core)
        .iter()
        .filter(|definition| touches(definition))
        .map(|definition| metadata::text(definition, "name").to_owned())
        .collect();
    for name in due {
        settle(core, &name);
    }
    if changed.contains(&shelf) {
        forget_removed(core);
    }
}

fn is_ending_on(core: &ApiServer, definition: &Value, changed: &[ShelfId]) -> bool {
    metadata::is_deleting(definition)
        && core
            .registry
            .any_version(text(definition, "/spec/group"), text(definition, "/spec/names/plural"))
            .is_some_and(|known| changed.contains(&known.shelf))
}

fn definitions(core: &ApiServer) -> Vec<Value> {
    let Some(kind) = core.registry.get(GROUP, "v1", PLURAL) else { return Vec::new() };
    core.store.shelf(kind.shelf).range("", "").map(|(_, record)| encode::value(kind, record)).collect()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// One definition: accepts its names, establishes it, serves it; or takes its objects away when it is being deleted.
fn settle(core: &mut ApiServer, name: &str) {
    let all = definitions(core);
    let Some(definition) = all.iter().find(|definition| metadata::text(definition, "name") == name) else { return };
    let mut taken = Taken::default();
    let group = text(definition, "/spec/group");
    for other in &all {
        if text(other, "/spec/group") == group && metadata::text(other, "name") != name {
            taken.add(other);
        }
    }
    let now = core.now();
    let mut next = definition.clone();
    if !metadata::is_deleting(definition) {
        let (names, accepted) = accept(definition, &taken);
        let all_accepted = accepted["status"] == "True";
        next["status"]["acceptedNames"] = names;
        set_condition(&mut next, accepted, now);
        if all_accepted {
            let message = "the initial names have been accepted";
            set_condition(&mut next, condition("Established", true, "InitialNamesAccepted", message), now);
        } else if !has_condition(definition, "Established") {
            set_condition(&mut next, condition("Established", false, "NotAccepted", "not all names are accepted"), now);
        }
        if definitions::is_protected(group) {
            set_condition(&mut next, approval(definition), now);
        }
    } else if is_held(definition) {
        let message = "CustomResource deletion is in progress";
        set_condition(&mut next, condition("Terminating", true, "InstanceDeletionInProgress", message), now);
    }
    if next["status"] != definition["status"] {
        write_status(core, name, &next["status"]);
    }
    if has_condition(&next, "Established") {
        serve(core, &next);
    }
    if metadata::is_deleting(&next) && is_held(&next) && clear(core, &next, now) {
        release(core, name, &next);
    }
}

fn is_held(definition: &Value) -> bool {
    metadata::finalizers(definition).any(|finalizer| finalizer == CLEANUP_FINALIZER)
}

fn approval(definition: &Value) -> Value {
    let reason = definition["metadata"]["annotations"][APPROVAL_ANNOTATION].as_str().unwrap_or_default();
    let type_ = "KubernetesAPIApprovalPolicyConformant";
    if reason.starts_with("unapproved") {
        let message = format!("not approved: \"{reason}\"");
        condition(type_, false, "UnapprovedAnnotation", &message)
    } else {
        condition(type_, true, "ApprovedAnnotation", &format!("approved in {reason}"))
    }
}

/// Writes as the API server itself, so that the fields are owned as they should be.
fn write(core: &mut ApiServer, name: &str, subresource: &str, patch: &Value) {
    let path = format!("/apis/{GROUP}/v1/{PLURAL}/{name}{subresource}");
    let mut request = ApiRequest::new(Method::PATCH, &path, patch.to_string());
    "application/merge-patch+json".clone_into(&mut request.content_type);
    "kube-apiserver".clone_into(&mut request.user_agent);
    request.user = server_user();
    // The server asks no webhooks about its own writes, so this is done when it returns.
    let _ = core.handle_own(&request);
}

fn write_status(core: &mut ApiServer, name: &str, status: &Value) {
    write(core, name, "/status", &json!({"status": status}));
}

fn release(core: &mut ApiServer, name: &str, definition: &Value) {
    let left: Vec<&str> =
        metadata::finalizers(definition).filter(|finalizer| *finalizer != CLEANUP_FINALIZER).collect();
    let left = if left.is_empty() { Value::Null } else { json!(left) };
    write(core, name, "", &json!({"metadata": {"finalizers": left}}));
}

fn serve(core: &mut ApiServer, definition: &Value) {
    let (group, plural) = (text(definition, "/spec/group"), text(definition, "/status/acceptedNames/plural"));
    let shelf = core.store.shelf_id(&format!("{group}/{plural}"));
    core.registry.remove(group, plural);
    for served in resources::served(definition, shelf) {
        core.registry.insert(served);
    }
}

/// Deletes every object of a definition; whether none is left.
fn clear(core: &mut ApiServer, definition: &Value, now: Timestamp) -> bool {
    let (group, plural) = (text(definition, "/spec/group"), text(definition, "/status/acceptedNames/plural"));
    let Some(known) = core.registry.any_version(group, plural).cloned() else { return true };
    let objects: Vec<(String, Value)> = core
        .store
        .shelf(known.shelf)
        .range("", "")
        .map(|(key, record)| (key.to_string(), encode::value(&known, record)))
        .collect();
    let mut is_empty = true;
    for (key, mut object) in objects {
        if metadata::finalizers(&object).next().is_none() {
            core.remove_object(&known, &key, object);
            continue;
        }
        is_empty = false;
        if !metadata::is_deleting(&object) {
            let fields = metadata::of_mut(&mut object);
            fields.insert("deletionTimestamp".to_owned(), json!(time_text(now)));
            fields.insert("deletionGracePeriodSeconds".to_owned(), json!(0));
            core.put_object(&known, &key, &mut object);
        }
    }
    is_empty
}

/// Stops serving what no definition stands for any more.
fn forget_removed(core: &mut ApiServer) {
    let defined: Vec<(String, String)> = definitions(core)
        .iter()
        .map(|definition| {
            (text(definition, "/spec/group").to_owned(), text(definition, "/status/acceptedNames/plural").to_owned())
        })
        .collect();
    let served: Vec<(String, String)> = core
        .registry
        .iter()
        .filter(|known| known.custom)
        .map(|known| (known.group.clone(), known.plural.clone()))
        .filter(|known| !defined.contains(known))
        .collect();
    for (group, plural) in served {
        core.registry.remove(&group, &plural);
    }
}
