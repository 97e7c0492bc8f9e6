//! Delete: preconditions, grace, finalizers.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    ApiServer, Outcome, kind_subject, subject,
    write::{Effect, Operation, Write},
};
use crate::{
    encode, environment, metadata, negotiate,
    options::DeleteOptions,
    registry::ResourceDef,
    request::{ApiRequest, Target},
    status::{self, ApiError},
    store::Record,
    strategy::Propagation,
};

const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// What a delete comes to.
enum Ending {
    /// The object is gone; this is its last state. With a grace of zero the state is written before it goes.
    Gone(Value),
    /// The object stays for a while, like this.
    Stays(Value),
    /// Nothing changes: deletion is already under way.
    Pending,
}

/// What a delete did.
pub(super) enum Deletion {
    /// The object is gone, or is marked as being deleted.
    Done {
        /// The object before.
        before: Arc<Record>,
        /// The object after; its last state when it is gone.
        object: Value,
        /// Whether it is gone.
        is_gone: bool,
    },
    /// The stored object is now one that a webhook must convert first: the request starts anew.
    Unconverted,
}

/// The warning for a delete that does not say what becomes of dependents.
pub(super) fn warning(definition: &ResourceDef, options: &DeleteOptions) -> Option<&'static str> {
    let says_nothing = options.propagation.is_none() && options.as_sent["orphanDependents"].is_null();
    (definition.plural == "jobs" && !definition.custom && says_nothing).then_some(JOB_WARNING)
}

impl ApiServer {
    pub(super) fn delete(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
    ) -> Result<Outcome, ApiError> {
        let options = DeleteOptions::read(request)?;
        let warnings: Vec<String> = warning(&definition, &options).map(ToOwned::to_owned).into_iter().collect();
        let write = self.delete_write(request, target, definition, options);
        let admission = write.and_then(|write| self.admit(write));
        let outcome = admission.and_then(|admission| self.carry_out(admission, None));
        outcome.map_err(|error| error.with_warnings(warnings))
    }

    /// A delete of one object, before admission.
    pub(super) fn delete_write(
        &mut self,
        request: &ApiRequest,
        target: Target,
        definition: Arc<ResourceDef>,
        options: DeleteOptions,
    ) -> Result<Write, ApiError> {
        let representation = negotiate::representation(&request.accept)?;
        let stored = self.stored(&definition, &target);
        let stored = stored.ok_or_else(|| ApiError::not_found(subject(&definition, &target.name)))?;
        Ok(Write {
            definition,
            target,
            operation: Operation::Delete,
            request: request.clone(),
            representation,
            dry_run: options.dry_run,
            options: options.to_value(),
            effect: Effect::Delete(Box::new(options)),
            object: Value::Null,
            old: Some(stored),
            is_conditional: false,
            is_applied: false,
            warnings: Vec::new(),
        })
    }

    /// Deletes an object that admission lets go, and answers the client.
    pub(super) fn delete_admitted(&mut self, mut write: Write, options: &DeleteOptions) -> Result<Outcome, ApiError> {
        let Deletion::Done { object, is_gone, before: _ } = self.delete_stored(&write, options)? else {
            return Ok(self.handle(&write.request));
        };
        let definition = Arc::clone(&write.definition);
        write.warnings.extend(warning(&definition, options).map(ToOwned::to_owned));
        let code = if !is_gone && asks_for_cascade(options) { 202 } else { 200 };
        let body = if is_gone && !definition.strategy.returns_deleted() {
            let uid = metadata::text(&object, "uid");
            status::success(&definition.group, &definition.plural, &write.target.name, uid)
        } else {
            object
        };
        Ok(Outcome::Done(self.answer(&write, code, body)))
    }

    /// Deletes an object that admission lets go.
    pub(super) fn delete_stored(&mut self, write: &Write, options: &DeleteOptions) -> Result<Deletion, ApiError> {
        let definition = &write.definition;
        let name = write.target.name.as_str();
        let key = definition.key(&write.target.namespace, name);
        let record = self.store.collection(definition.collection).get(&key).cloned();
        let record = record.ok_or_else(|| ApiError::not_found(subject(definition, name)))?;
        if definition.lacks_conversion(&record) {
            return Ok(Deletion::Unconverted);
        }
        let old = encode::value(definition, &record);
        check_preconditions(definition, name, options, &old)?;
        let (object, is_gone) = match self.ending(definition, &old, options)? {
            Ending::Gone(mut last) => {
                if !write.dry_run {
                    if last != old {
                        self.put_state(definition, &key, &record, &mut last);
                    }
                    last = self.remove_state(definition, &key, &record, last);
                }
                (last, true)
            }
            Ending::Stays(mut object) => {
                if !write.dry_run {
                    self.put_state(definition, &key, &record, &mut object);
                }
                (object, false)
            }
            Ending::Pending => (old, false),
        };
        Ok(Deletion::Done { before: record, object, is_gone })
    }

    fn ending(&mut self, definition: &ResourceDef, old: &Value, options: &DeleteOptions) -> Result<Ending, ApiError> {
        if let Some(ending) = definition.strategy.delete(old, self.environment.now())? {
            return Ok(if ending == *old { Ending::Pending } else { Ending::Stays(ending) });
        }
        let mut object = old.clone();
        let now = self.environment.now();
        let grace = match begin_grace(definition, &mut object, options, now) {
            Grace::AlreadyPending => return Ok(Ending::Pending),
            Grace::Seconds(seconds) => Some(seconds),
            Grace::None => None,
        };
        let finalizers = finalizers_after(definition, old, options);
        if finalizers.is_empty() {
            metadata::remove(&mut object, "finalizers");
        } else {
            metadata::of_mut(&mut object).insert("finalizers".to_owned(), json!(finalizers));
            if grace.is_none() {
                mark_deleting(&mut object, now);
            }
        }
        let stays = !finalizers.is_empty() || grace.is_some_and(|seconds| seconds > 0);
        if !stays {
            return Ok(Ending::Gone(object));
        }
        if object == *old { Ok(Ending::Pending) } else { Ok(Ending::Stays(object)) }
    }
}

/// Validating webhooks see how long a graceful deletion will take, not how long the client asked for.
pub(super) fn set_grace_of_review(write: &mut Write) {
    let (Effect::Delete(options), Some((_, old))) = (&write.effect, &write.old) else { return };
    let asked = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    if let Some(seconds) = write.definition.strategy.grace_seconds(old, asked).filter(|_| !metadata::is_deleting(old)) {
        write.options["gracePeriodSeconds"] = json!(seconds);
    }
}

enum Grace {
    None,
    AlreadyPending,
    Seconds(i64),
}

fn begin_grace(definition: &ResourceDef, object: &mut Value, options: &DeleteOptions, now: Timestamp) -> Grace {
    let asked = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    if metadata::is_deleting(object) {
        let Some(set) = object["metadata"]["deletionGracePeriodSeconds"].as_i64() else { return Grace::None };
        if definition.strategy.grace_seconds(object, asked).is_none() {
            return Grace::None;
        }
        // A deletion under way may only be shortened.
        let Some(asked) = asked.filter(|asked| *asked < set) else { return Grace::AlreadyPending };
        let ends = metadata::text(object, "deletionTimestamp").parse::<Timestamp>().unwrap_or(now);
        let ends = ends.saturating_add(SignedDuration::from_secs(asked - set)).unwrap_or(ends);
        set_deletion(object, ends, asked);
        return Grace::Seconds(asked);
    }
    match definition.strategy.grace_seconds(object, asked) {
        None => Grace::None,
        Some(seconds) => {
            let ends = now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(now);
            set_deletion(object, ends, seconds);
            bump_generation(object);
            Grace::Seconds(seconds)
        }
    }
}

pub(super) fn check_preconditions(
    definition: &ResourceDef,
    name: &str,
    options: &DeleteOptions,
    old: &Value,
) -> Result<(), ApiError> {
    let about = kind_subject(definition, name);
    let (uid, version) = (metadata::text(old, "uid"), metadata::text(old, "resourceVersion"));
    if let Some(asked) = options.uid.as_deref().filter(|asked| *asked != uid) {
        return Err(ApiError::conflict(
            about,
            &format!(
                "the UID in the precondition ({asked}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            ),
        ));
    }
    if let Some(asked) = options.resource_version.as_deref().filter(|asked| *asked != version) {
        return Err(ApiError::conflict(
            about,
            &format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({version}). The object might have been modified"
            ),
        ));
    }
    Ok(())
}

/// The finalizers of the garbage collector follow the propagation asked for, or what the object already says.
fn finalizers_after(definition: &ResourceDef, old: &Value, options: &DeleteOptions) -> Vec<String> {
    let mut finalizers: Vec<String> = metadata::finalizers(old).map(ToOwned::to_owned).collect();
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    let propagation = options.propagation.unwrap_or_else(|| {
        if has("orphan") {
            Propagation::Orphan
        } else if has("foregroundDeletion") {
            Propagation::Foreground
        } else {
            definition.strategy.default_propagation()
        }
    });
    finalizers.retain(|finalizer| !matches!(finalizer.as_str(), "orphan" | "foregroundDeletion"));
    match propagation {
        Propagation::Orphan => finalizers.push("orphan".to_owned()),
        Propagation::Foreground => finalizers.push("foregroundDeletion".to_owned()),
        Propagation::Background => {}
    }
    finalizers
}

fn mark_deleting(object: &mut Value, now: Timestamp) {
    if !metadata::is_deleting(object) {
        bump_generation(object);
        set_deletion(object, now, 0);
    }
}

fn set_deletion(object: &mut Value, ends: Timestamp, seconds: i64) {
    let fields = metadata::of_mut(object);
    fields.insert("deletionTimestamp".to_owned(), json!(environment::time_text(ends)));
    fields.insert("deletionGracePeriodSeconds".to_owned(), json!(seconds));
}

fn bump_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64().filter(|generation| *generation > 0) {
        metadata::of_mut(object).insert("generation".to_owned(), json!(generation.saturating_add(1)));
    }
}

/// The oldest way of asking for a cascade is answered with 202 while the object stays.
fn asks_for_cascade(options: &DeleteOptions) -> bool {
    options.as_sent["orphanDependents"] == Value::Bool(false)
}
