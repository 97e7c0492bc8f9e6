//! Requests that wait for a conversion webhook: which objects they need in another version, and how they go on.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ApiServer, Outcome, write::Write};
use crate::{
    conversion::{ConversionWebhook, Converted},
    encode, metadata,
    registry::ResourceDef,
    request::{ApiRequest, Target},
    status::ApiError,
    store::Record,
};

/// Objects that a webhook is to convert, and the request that waits for them.
#[derive(Debug)]
pub struct Conversion {
    /// The webhook.
    pub webhook: Arc<ConversionWebhook>,
    /// The `apiVersion` that is wanted.
    pub desired: String,
    /// The objects, each in the version that it has.
    pub objects: Vec<Value>,
    then: Then,
}

/// How a request goes on.
#[derive(Debug)]
enum Then {
    /// From its beginning, with what was read at these revisions.
    Again { request: Box<ApiRequest>, revisions: Vec<u64>, known: Converted },
    /// A write has its object as it is stored; the client is answered with what that says in the client's version.
    Store(Box<Write>),
    /// A write has both.
    Answer(Box<Write>, Value),
}

/// An object as it is stored, and what the client is answered.
#[derive(Debug)]
pub(super) struct TwoForms {
    pub(super) stored: Value,
    pub(super) answer: Result<Value, ApiError>,
}

/// The definition as a request sees it for which objects were converted.
pub(super) fn seeing(definition: Arc<ResourceDef>, converted: Converted) -> Arc<ResourceDef> {
    if converted.is_empty() {
        return definition;
    }
    Arc::new(ResourceDef { converted, ..(*definition).clone() })
}

/// The conversion of records for a request that sees `definition`; none when all can be read.
pub(super) fn of_records<'a>(
    request: &ApiRequest,
    definition: &ResourceDef,
    records: impl IntoIterator<Item = &'a Arc<Record>>,
) -> Option<Outcome> {
    let webhook = Arc::clone(definition.conversion.as_ref()?);
    let (revisions, objects): (Vec<u64>, Vec<Value>) = records
        .into_iter()
        .filter(|record| definition.lacks_conversion(record))
        .map(|record| (record.revision, encode::stored_value(definition, record)))
        .unzip();
    if objects.is_empty() {
        return None;
    }
    let then = Then::Again { request: Box::new(request.clone()), revisions, known: definition.converted.clone() };
    Some(Outcome::Convert(Box::new(Conversion { webhook, desired: definition.api_version(), objects, then })))
}

/// The webhook that must bring a write's object into the version that is stored; none where it has that version.
pub(super) fn webhook_of(write: &Write) -> Option<&Arc<ConversionWebhook>> {
    let webhook = write.definition.conversion.as_ref()?;
    // What the server itself changes keeps the version that it has.
    (webhook.stored != write.definition.api_version() && !super::admit::is_own(&write.request)).then_some(webhook)
}

/// The way of a write's object into the version that is stored.
pub(super) fn into_stored(webhook: Arc<ConversionWebhook>, write: Write) -> Outcome {
    let (desired, objects) = (webhook.stored.clone(), vec![write.object.clone()]);
    Outcome::Convert(Box::new(Conversion { webhook, desired, objects, then: Then::Store(Box::new(write)) }))
}

impl ApiServer {
    /// The conversion of the object that a request names.
    pub(super) fn conversion_of_target(
        &self,
        request: &ApiRequest,
        target: &Target,
        definition: &ResourceDef,
    ) -> Option<Outcome> {
        if definition.conversion.is_none() || target.name.is_empty() {
            return None;
        }
        let record =
            self.store.collection(definition.collection).get(&definition.key(&target.namespace, &target.name))?;
        of_records(request, definition, [record])
    }

    /// Goes on with what a conversion webhook has answered: one object for each that was asked for.
    pub fn resume_converted(&mut self, conversion: Conversion, answer: Result<Vec<Value>, ApiError>) -> Outcome {
        let Conversion { webhook, desired: _, objects: _, then } = conversion;
        let answer = answer.map(|mut objects| {
            for object in &mut objects {
                webhook.settle_converted(object);
            }
            objects
        });
        let one = |answer: Result<Vec<Value>, ApiError>| answer.map(|mut objects| objects.pop().unwrap_or_default());
        let deprecation = match &then {
            Then::Again { .. } => None,
            Then::Store(write) | Then::Answer(write, _) => write.definition.deprecation.clone(),
        };
        let outcome = match (then, answer) {
            (Then::Again { request, revisions, mut known }, Ok(objects)) => {
                known.extend(revisions.into_iter().zip(objects));
                return self.handle_with(&request, known);
            }
            (Then::Again { .. } | Then::Store(_), Err(error)) => Err(error),
            (Then::Store(write), answer) => one(answer).map(|mut stored| {
                webhook.settle_stored(&mut stored);
                Outcome::Convert(Box::new(Conversion {
                    webhook,
                    desired: write.definition.api_version(),
                    objects: vec![stored.clone()],
                    then: Then::Answer(write, stored),
                }))
            }),
            (Then::Answer(write, stored), answer) => {
                self.store_object(*write, Some(TwoForms { stored, answer: one(answer) }))
            }
        };
        self.follow_changes();
        Outcome::from(outcome).with_warning(deprecation)
    }

    /// Stores a state that differs from the record in the server's own metadata alone, in the version that the record has.
    pub(super) fn put_state(&mut self, definition: &ResourceDef, key: &str, record: &Record, object: &mut Value) {
        let Some(mut stored) = in_version_of(definition, record, object) else {
            return self.put_object(definition, key, object);
        };
        self.put_object(definition, key, &mut stored);
        copy_revision(&stored, object);
    }

    /// Removes an object whose last state differs from the record in the server's own metadata alone.
    pub(super) fn remove_state(
        &mut self,
        definition: &ResourceDef,
        key: &str,
        record: &Record,
        mut last: Value,
    ) -> Value {
        let Some(stored) = in_version_of(definition, record, &last) else {
            return self.remove_object(definition, key, last);
        };
        let stored = self.remove_object(definition, key, stored);
        copy_revision(&stored, &mut last);
        last
    }
}

/// The record's content with the metadata of `object`; none where both have one version.
fn in_version_of(definition: &ResourceDef, record: &Record, object: &Value) -> Option<Value> {
    if definition.conversion.is_none() || *record.version == *definition.api_version() {
        return None;
    }
    let mut stored = encode::stored_value(definition, record);
    let kept = metadata::of_mut(&mut stored);
    let own = |field: &str| matches!(field, "labels" | "annotations");
    let fields = object["metadata"].as_object().into_iter().flatten();
    kept.retain(|field, _| own(field));
    kept.extend(fields.filter(|(field, _)| !own(field)).map(|(field, value)| (field.clone(), value.clone())));
    Some(stored)
}

/// Gives the client's form the revision that the stored form has got.
pub(super) fn copy_revision(stored: &Value, object: &mut Value) {
    let revision = metadata::text(stored, "resourceVersion");
    if !revision.is_empty() {
        metadata::of_mut(object).insert("resourceVersion".to_owned(), json!(revision));
    }
}
