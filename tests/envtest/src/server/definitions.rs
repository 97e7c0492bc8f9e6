//! The pass that follows every change of a CustomResourceDefinition: names, conditions, what is served, and deletion.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::ApiServer;
use crate::custom::conditions::{has_condition, set_condition};
use crate::custom::names::{Taken, accept, condition};
use crate::custom::{APPROVAL_ANNOTATION, CLEANUP_FINALIZER, GROUP, PLURAL, definitions, resources};
use crate::environment::time_text;
use crate::registry::ResourceDef;
use crate::request::{ApiRequest, User};
use crate::store::{CollectionId, Record};
use crate::{encode, metadata};

/// Brings definitions' status, and what is served, up to date. `changed` are the objects that changed, by collection and key.
pub(super) fn follow(core: &mut ApiServer, changed: &[(CollectionId, String)]) {
    let Some(kind) = core.registry.get(GROUP, "v1", PLURAL).cloned() else { return };
    let mut due: VecDeque<String> =
        changed.iter().filter(|(collection, _)| *collection == kind.collection).map(|(_, name)| name.clone()).collect();
    // The pass over a definition that is being deleted marks all of its objects once, and no new ones are admitted. What
    // is left is the end of the last one.
    let ending = core.registry.iter().filter(|known| {
        known.is_terminating
            && changed.iter().any(|(collection, _)| *collection == known.collection)
            && core.store.collection(known.collection).is_empty()
    });
    due.extend(ending.map(|known| format!("{}.{}", known.plural, known.group)));
    let mut settled = BTreeSet::new();
    while let Some(name) = due.pop_front() {
        if !settled.insert(name.clone()) {
            continue;
        }
        let freed_names = settle(core, &kind, &name);
        // What the pass wrote about this definition needs no pass of its own.
        core.forget_unfollowed(kind.collection, &name);
        if freed_names {
            due.extend(waiting(core, &kind, &name));
        }
    }
}

/// The group of a definition, by its name.
fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

fn plural_of(name: &str) -> &str {
    name.split_once('.').map_or(name, |(plural, _)| plural)
}

/// Definitions of the same group whose names were taken.
fn waiting(core: &ApiServer, kind: &ResourceDef, name: &str) -> Vec<String> {
    let group = group_of(name);
    let names = core.store.collection(kind.collection).range("", "").map(|(key, _)| key.to_string());
    names
        .filter(|other| {
            other != name && group_of(other) == group && core.registry.any_version(group, plural_of(other)).is_none()
        })
        .collect()
}

/// The names that other definitions of the group have been given.
fn taken(core: &ApiServer, kind: &ResourceDef, name: &str) -> Taken {
    let mut taken = Taken::default();
    let (group, plural) = (group_of(name), plural_of(name));
    for known in core.registry.iter().filter(|known| known.custom && known.group == group && known.plural != plural) {
        taken.add_served(known);
    }
    for other in waiting(core, kind, name) {
        if let Some(definition) = core.object(kind, "", &other) {
            taken.add(&definition);
        }
    }
    taken
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// One definition: accepts its names, establishes it, serves it; or takes its objects away when it is being deleted.
/// Whether names became free by it.
fn settle(core: &mut ApiServer, kind: &ResourceDef, name: &str) -> bool {
    let Some(definition) = core.object(kind, "", name) else {
        core.registry.remove(group_of(name), plural_of(name));
        return true;
    };
    let now = core.now();
    let mut next = definition.clone();
    if !metadata::is_deleting(&definition) {
        let is_settled = definition["spec"]["names"] == definition["status"]["acceptedNames"]
            && has_condition(&definition, "NamesAccepted");
        if !is_settled {
            let (names, accepted) = accept(&definition, &taken(core, kind, name));
            next["status"]["acceptedNames"] = names;
            set_condition(&mut next, accepted, now);
        }
        if has_condition(&next, "NamesAccepted") {
            let message = "the initial names have been accepted";
            set_condition(&mut next, condition("Established", true, "InitialNamesAccepted", message), now);
        } else if !has_condition(&definition, "Established") {
            set_condition(&mut next, condition("Established", false, "NotAccepted", "not all names are accepted"), now);
        }
        if definitions::is_protected(group_of(name)) {
            set_condition(&mut next, approval(&definition), now);
        }
    } else if is_held(&definition) {
        let message = "CustomResource deletion is in progress";
        set_condition(&mut next, condition("Terminating", true, "InstanceDeletionInProgress", message), now);
    }
    if next["status"] != definition["status"] {
        write(core, name, "/status", &json!({"status": next["status"]}));
    }
    if has_condition(&next, "Established") {
        serve(core, &next);
    }
    if metadata::is_deleting(&next) && is_held(&next) && clear(core, &next, now) {
        release(core, name, &next);
        if core.object(kind, "", name).is_none() {
            core.registry.remove(group_of(name), plural_of(name));
            return true;
        }
    }
    false
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
    request.user = User::server();
    // The server asks no webhooks about its own writes, so this is done when it returns.
    let _ = core.handle_own(&request);
}

fn release(core: &mut ApiServer, name: &str, definition: &Value) {
    let left: Vec<&str> =
        metadata::finalizers(definition).filter(|finalizer| *finalizer != CLEANUP_FINALIZER).collect();
    let left = if left.is_empty() { Value::Null } else { json!(left) };
    write(core, name, "", &json!({"metadata": {"finalizers": left}}));
}

fn serve(core: &mut ApiServer, definition: &Value) {
    let (group, plural) = (text(definition, "/spec/group"), text(definition, "/status/acceptedNames/plural"));
    let collection = core.store.collection_id(&format!("{group}/{plural}"));
    core.registry.remove(group, plural);
    for served in resources::served(definition, collection) {
        core.registry.insert(served);
    }
}

/// Deletes every object of a definition; whether none is left.
fn clear(core: &mut ApiServer, definition: &Value, now: Timestamp) -> bool {
    let (group, plural) = (text(definition, "/spec/group"), text(definition, "/status/acceptedNames/plural"));
    let Some(known) = core.registry.any_version(group, plural).cloned() else { return true };
    let objects: Vec<(Arc<str>, Arc<Record>)> = core
        .store
        .collection(known.collection)
        .range("", "")
        .map(|(key, record)| (Arc::clone(key), Arc::clone(record)))
        .collect();
    let mut is_empty = true;
    for (key, record) in objects {
        let known = core.registry.storing(known.collection, &record).unwrap_or(&known).clone();
        let mut object = encode::value(&known, &record);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::SeededEnvironment;
    use crate::kinds;
    use crate::server::Outcome;
    use crate::store::HistoryLimits;

    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

    fn core() -> ApiServer {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let mut core = ApiServer::empty(Box::new(SeededEnvironment::new(1, now)), HistoryLimits::default());
        kinds::install(&mut core);
        core
    }

    fn send(core: &mut ApiServer, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        match core.handle(&ApiRequest::new(method, path, body)) {
            Outcome::Done(answer) => (answer.code, serde_json::from_slice(&answer.body).unwrap_or_default()),
            other => panic!("{other:?}"),
        }
    }

    fn definition(plural: &str, kind: &str) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.x.io")},
            "spec": {"group": "x.io", "scope": "Cluster", "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
    }

    #[test]
    fn an_established_definition_is_served_until_its_last_object_is_gone() {
        let mut core = core();
        assert_eq!(send(&mut core, Method::POST, DEFINITIONS, &definition("widgets", "Widget")).0, 201);
        let object =
            json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["a.b/c"]}});
        assert_eq!(send(&mut core, Method::POST, "/apis/x.io/v1/widgets", &object).0, 201);

        let path = format!("{DEFINITIONS}/widgets.x.io");
        assert_eq!(send(&mut core, Method::DELETE, &path, &Value::Null).0, 200);
        let (_, held) = send(&mut core, Method::GET, &path, &Value::Null);
        assert!(has_condition(&held, "Terminating"));
        let mut other = object.clone();
        other["metadata"]["name"] = json!("late");
        assert_eq!(send(&mut core, Method::POST, "/apis/x.io/v1/widgets", &other).0, 403);

        let (_, mut stored) = send(&mut core, Method::GET, "/apis/x.io/v1/widgets/w", &Value::Null);
        assert!(metadata::is_deleting(&stored));
        stored["metadata"]["finalizers"] = json!([]);
        assert_eq!(send(&mut core, Method::PUT, "/apis/x.io/v1/widgets/w", &stored).0, 200);
        assert_eq!(send(&mut core, Method::GET, &path, &Value::Null).0, 404);
        assert_eq!(send(&mut core, Method::GET, "/apis/x.io/v1/widgets", &Value::Null).0, 404);
    }

    #[test]
    fn a_change_of_an_object_does_not_read_the_others_of_its_ending_kind() {
        const OBJECTS: usize = 600;
        let mut core = core();
        assert_eq!(send(&mut core, Method::POST, DEFINITIONS, &definition("widgets", "Widget")).0, 201);
        for number in 0..OBJECTS {
            let metadata = json!({"name": format!("w{number}"), "finalizers": ["a.b/c"]});
            let object = json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": metadata});
            assert_eq!(send(&mut core, Method::POST, "/apis/x.io/v1/widgets", &object).0, 201);
        }
        let path = format!("{DEFINITIONS}/widgets.x.io");
        assert_eq!(send(&mut core, Method::DELETE, &path, &Value::Null).0, 200);
        let revision = |core: &mut ApiServer| {
            let (_, definition) = send(core, Method::GET, &path, &Value::Null);
            definition["metadata"]["resourceVersion"].as_str().map(ToOwned::to_owned)
        };
        let begun = revision(&mut core);
        assert!(begun.is_some());
        for number in 0..OBJECTS {
            assert_eq!(
                revision(&mut core),
                begun,
                "nothing is written about the definition before its last object is gone"
            );
            let object = format!("/apis/x.io/v1/widgets/w{number}");
            let mut request = ApiRequest::new(Method::PATCH, &object, r#"{"metadata": {"finalizers": null}}"#);
            "application/merge-patch+json".clone_into(&mut request.content_type);
            let Outcome::Done(answer) = core.handle(&request) else { panic!("no webhook is configured") };
            assert_eq!(answer.code, 200);
        }
        assert_eq!(send(&mut core, Method::GET, &path, &Value::Null).0, 404);
    }

    #[test]
    fn a_definition_gets_its_names_when_they_become_free() {
        let mut core = core();
        send(&mut core, Method::POST, DEFINITIONS, &definition("widgets", "Widget"));
        send(&mut core, Method::POST, DEFINITIONS, &definition("gizmos", "Widget"));
        let path = format!("{DEFINITIONS}/gizmos.x.io");
        let (_, second) = send(&mut core, Method::GET, &path, &Value::Null);
        assert!(!has_condition(&second, "Established"));
        assert_eq!(send(&mut core, Method::GET, "/apis/x.io/v1/gizmos", &Value::Null).0, 404);

        send(&mut core, Method::DELETE, &format!("{DEFINITIONS}/widgets.x.io"), &Value::Null);
        let (_, second) = send(&mut core, Method::GET, &path, &Value::Null);
        assert!(has_condition(&second, "Established"), "{second}");
        assert_eq!(send(&mut core, Method::GET, "/apis/x.io/v1/gizmos", &Value::Null).0, 200);
    }
}
