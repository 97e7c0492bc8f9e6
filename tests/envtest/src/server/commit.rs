//! The last step of a write: the store changes, at one revision.

use serde_json::Value;

use super::{
    ApiServer, Outcome,
    convert::{self, TwoForms},
    identity, subject,
    write::{Effect, Write},
};
use crate::{encode, metadata, registry::ResourceDef, status::ApiError, store::ChangeKind};

impl ApiServer {
    /// Carries a write out that admission has let pass.
    pub(super) fn finish(&mut self, write: Write) -> Result<Outcome, ApiError> {
        match write.effect.clone() {
            Effect::Store => match convert::webhook_of(&write).cloned() {
                Some(webhook) => Ok(convert::into_stored(webhook, write)),
                None => self.store_object(write, None),
            },
            Effect::Delete(options) => self.delete_admitted(write, &options),
            Effect::Subresource => self.run_subresource(&write),
        }
    }

    /// Stores the object of a write, in the form that a webhook has converted it to where there is one.
    pub(super) fn store_object(&mut self, mut write: Write, forms: Option<TwoForms>) -> Result<Outcome, ApiError> {
        let definition = write.definition.clone();
        let key = definition.key(&write.target.namespace, &write.target.name);
        if write.old.is_none() && !write.dry_run {
            identity::refuse_revision(&write.object)?;
        }
        let current = self.store.collection(definition.collection).get(&key);
        match (&write.old, current) {
            (None, Some(current)) => {
                let known = encode::value(&definition, current);
                let is_ending = !metadata::text(&known, "deletionTimestamp").is_empty();
                return Err(ApiError::already_exists(subject(&definition, &write.target.name), is_ending));
            }
            (Some(_), None) => return Err(ApiError::not_found(subject(&definition, &write.target.name))),
            (Some((seen, _)), Some(current)) if seen.revision != current.revision => {
                // Somebody was faster while webhooks were asked.
                if write.is_conditional {
                    return Err(ApiError::modified(subject(&definition, &write.target.name)));
                }
                return Ok(self.handle(&write.request.clone()));
            }
            _ => {}
        }
        let code = if write.old.is_none() { 201 } else { 200 };
        let mut object = std::mem::take(&mut write.object);
        definition.strategy.set_stored_defaults(&mut object);
        let (is_unchanged, is_end) = write.old.as_ref().map_or((false, false), |(record, old)| {
            let is_unchanged = match &forms {
                // An object that is stored in another version changes by being written.
                None if definition.conversion.is_some() && *record.version != *definition.api_version() => false,
                None => *old == object,
                Some(forms) => encode::stored_value(&definition, record) == forms.stored,
            };
            (is_unchanged, ends_by_update(&definition, &object, old))
        });
        let (mut stored, answer) = match forms {
            None => (object, None),
            Some(TwoForms { stored, answer }) => (stored, Some(answer)),
        };
        if !is_unchanged && !write.dry_run {
            if let Some((record, old)) = write.old.as_ref().filter(|_| is_end) {
                // The state that takes the last finalizer away is never stored: it is what the client is answered with, while
                // watchers see the last state that was.
                let last = match &definition.conversion {
                    Some(_) => encode::stored_value(&definition, record),
                    None => old.clone(),
                };
                self.remove_object(&definition, &key, last);
            } else {
                self.put_object(&definition, &key, &mut stored);
            }
        }
        let object = match answer {
            None => stored,
            Some(answer) => {
                let mut answer = answer?;
                convert::copy_revision(&stored, &mut answer);
                answer
            }
        };
        Ok(Outcome::Done(self.answer(&write, code, object)))
    }

    /// Stores an object at the next revision, which is written into it.
    pub(crate) fn put_object(&mut self, definition: &ResourceDef, key: &str, object: &mut Value) {
        let revision = self.store.next_revision();
        let now = self.environment.now().as_second();
        let old = self.store.collection(definition.collection).get(key);
        let change = if old.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        let record = encode::record(definition, object, revision, change);
        self.garbage.note_put(definition.collection, key, old.map(AsRef::as_ref), &record, object);
        self.note_change(definition, key, Some(&record));
        self.store.put(definition.collection, key, record, now);
        self.changed.push((definition.collection, revision));
        self.unfollowed.push((definition.collection, key.to_owned()));
    }

    /// Removes an object; `last` is its final state, given back with the revision of the deletion.
    pub(crate) fn remove_object(&mut self, definition: &ResourceDef, key: &str, mut last: Value) -> Value {
        let revision = self.store.next_revision();
        let record = encode::record(definition, &mut last, revision, ChangeKind::Deleted);
        let now = self.environment.now().as_second();
        let old = self.store.collection(definition.collection).get(key);
        self.garbage.note_removed(definition.collection, key, old.map(AsRef::as_ref), &last);
        self.note_change(definition, key, None);
        self.store.remove(definition.collection, key, record, now);
        self.changed.push((definition.collection, revision));
        self.unfollowed.push((definition.collection, key.to_owned()));
        last
    }
}

/// An object whose deletion has begun ends when an update takes its last finalizer away.
fn ends_by_update(definition: &ResourceDef, new: &Value, old: &Value) -> bool {
    if definition.group.is_empty() && definition.plural == "namespaces" {
        let spec_is_final = new["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        return metadata::is_deleting(old) && spec_is_final && metadata::finalizers(new).next().is_none();
    }
    let grace = old["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    metadata::is_deleting(old) && grace == 0 && metadata::finalizers(new).next().is_none()
}
