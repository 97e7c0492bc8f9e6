//! What makes an object itself: name, namespace, uid, revision. The server gives them, writers must have them right.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    ApiServer, subject,
    write::{Effect, Write},
};
use crate::{
    environment, metadata,
    registry::ResourceDef,
    request::Target,
    status::{ApiError, Subject},
    store::Record,
};

/// Metadata that no client sets on a new object.
const SERVER_FIELDS: [&str; 3] = ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// A new object has no past: what only the server sets is dropped.
pub(super) fn check_new(write: &mut Write) -> Result<(), ApiError> {
    match_namespace(&write.target, &mut write.object)?;
    drop_server_fields(&mut write.object);
    metadata::text(&write.object, "name").clone_into(&mut write.target.name);
    Ok(())
}

/// What webhooks made of an object may say as little about its identity as what the client sent.
pub(super) fn check_admitted(write: &mut Write) -> Result<(), ApiError> {
    if write.effect != Effect::Store || !write.target.subresource.is_empty() {
        return Ok(());
    }
    match_namespace(&write.target, &mut write.object)
}

/// The revision of a new object is the server's alone. As with kube-apiserver it is looked at when the object is stored, so that a
/// dry run passes and other mistakes are reported first.
pub(super) fn refuse_revision(object: &Value) -> Result<(), ApiError> {
    match metadata::text(object, "resourceVersion") {
        "" | "0" => Ok(()),
        _ => Err(ApiError::unclassified("resourceVersion should not be set on objects to be created")),
    }
}

fn drop_server_fields(object: &mut Value) {
    let fields = metadata::of_mut(object);
    for field in SERVER_FIELDS {
        fields.remove(field);
    }
}

impl ApiServer {
    /// Gives a new object its identity: mutating webhooks have not seen it, validating ones do.
    pub(super) fn identify(&mut self, write: &mut Write) {
        let now = self.environment.now();
        let uid = environment::uid(self.environment.as_mut());
        drop_server_fields(&mut write.object);
        let fields = metadata::of_mut(&mut write.object);
        fields.insert("uid".to_owned(), json!(uid));
        fields.insert("creationTimestamp".to_owned(), json!(environment::time_text(now)));
        if metadata::text(&write.object, "name").is_empty() {
            let prefix = metadata::text(&write.object, "generateName").to_owned();
            if !prefix.is_empty() {
                let definition = Arc::clone(&write.definition);
                let name = self.free_name(&definition, &write.target.namespace, &prefix);
                metadata::of_mut(&mut write.object).insert("name".to_owned(), json!(name));
            }
        }
        metadata::text(&write.object, "name").clone_into(&mut write.target.name);
    }

    fn free_name(&mut self, definition: &ResourceDef, namespace: &str, prefix: &str) -> String {
        const PREFIX_BYTES_MAX: usize = 63 - 5;
        let cut =
            prefix.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= PREFIX_BYTES_MAX).last();
        let prefix = &prefix[..cut.unwrap_or_default()];
        let mut name = String::new();
        for _ in 0..8 {
            name = format!("{prefix}{}", environment::name_suffix(self.environment.as_mut()));
            if self.store.collection(definition.collection).get(&definition.key(namespace, &name)).is_none() {
                break;
            }
        }
        name
    }
}

/// The body's namespace must be that of the URL; an absent one is filled in.
pub(super) fn match_namespace(target: &Target, object: &mut Value) -> Result<(), ApiError> {
    let namespace = metadata::text(object, "namespace").to_owned();
    if target.namespace.is_empty() {
        metadata::remove(object, "namespace");
    } else if namespace.is_empty() {
        metadata::of_mut(object).insert("namespace".to_owned(), json!(target.namespace));
    } else if namespace != target.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// A body, or the outcome of a patch, may not name another object than the URL.
pub(super) fn check_name(object: &Value, target: &Target) -> Result<(), ApiError> {
    let (name, url) = (metadata::text(object, "name"), &target.name);
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({url} based on URL) was undeterminable: name must be provided"
        )));
    }
    if name != target.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({url})"
        )));
    }
    Ok(())
}

/// The uid and revision that the writer names must be those of the stored object.
pub(super) fn check_preconditions(write: &Write, old: &Value, record: &Record) -> Result<(), ApiError> {
    let (definition, target, new) = (&write.definition, &write.target, &write.object);
    let is_patch = write.request.method == http::Method::PATCH;
    let about: Subject<'_> = subject(definition, &target.name);
    let uid = metadata::text(new, "uid");
    let stored_uid = metadata::text(old, "uid");
    if !uid.is_empty() && uid != stored_uid && !is_patch {
        let key = storage_key(definition, target);
        return Err(ApiError::conflict(
            about,
            &format!(
                "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {stored_uid}"
            ),
        ));
    }
    let version = metadata::text(new, "resourceVersion");
    if version.is_empty() || version == "0" {
        if is_patch || definition.strategy.allows_unconditional_update() {
            return Ok(());
        }
        let mut errors = koord_schema::field::Errors::new();
        let at = koord_schema::field::Path::root("metadata");
        errors.invalid(&at.child("resourceVersion"), 0, "must be specified for an update");
        return Err(ApiError::invalid(about, &errors));
    }
    let version: u64 = version
        .parse()
        .map_err(|_| ApiError::unclassified(format!("strconv.ParseUint: parsing {version:?}: invalid syntax")))?;
    if version != record.revision {
        return Err(ApiError::modified(about));
    }
    Ok(())
}

/// Where the real server would keep the object; it stands in some of its messages.
pub(super) fn storage_key(definition: &ResourceDef, target: &Target) -> String {
    let resource = match (definition.group.as_str(), definition.plural.as_str()) {
        ("", "nodes") => "minions",
        ("", "services") => "services/specs",
        (_, plural) => plural,
    };
    let group = if definition.custom { format!("{}/", definition.group) } else { String::new() };
    let namespace = if target.namespace.is_empty() { String::new() } else { format!("{}/", target.namespace) };
    format!("/registry/{group}{resource}/{namespace}{}", target.name)
}

/// Identity, creation and deletion times are the server's; absent ones are those of the stored object.
pub(super) fn keep(write: &mut Write) {
    let Some((_, old)) = &write.old else { return };
    let kept = &old["metadata"];
    let fields = metadata::of_mut(&mut write.object);
    fields.remove("selfLink");
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        match kept.get(field) {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.remove(field),
        };
    }
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if fields.get(field).is_none_or(|value| value.is_null() || value == "")
            && let Some(value) = kept.get(field)
        {
            fields.insert(field.to_owned(), value.clone());
        }
    }
}
