//! The handlers that follow from a type's own rules. They need no snapshot.

use koord_schema::{
    field::{Errors, FieldError, Path},
    patch::merge,
};
use serde_json::Value;

use super::{Denial, Operation, Patch, Request, Review, Verdict};
use crate::{Mutate, Resource, Validate};

/// Refuses objects that break the admission rules of their type, with the code `CODE`.
///
/// An update may keep what was wrong before, so that an object from before a rule can still lose its finalizers; and
/// nothing stands in the way of an object that is being deleted.
pub fn validate<T: Resource + Validate, C: ?Sized, const CODE: u16>(request: &Request<'_>, _: &C) -> Verdict {
    if !request.sub_resource.is_empty() || !matches!(request.operation, Operation::Create | Operation::Update) {
        return Verdict::allow();
    }
    let review = match Review::<T>::decode(request) {
        Ok(review) => review,
        Err(denial) => return Verdict::deny(denial),
    };
    let Some(object) = review.object.filter(|object| object.metadata().deletion_timestamp.is_none()) else {
        return Verdict::allow();
    };
    let mut errors = broken(&object);
    if let Some(old) = review.old_object.filter(|_| request.operation == Operation::Update) {
        let before: Vec<FieldError> = broken(&old).iter().cloned().collect();
        let mut left = Errors::new();
        errors.iter().filter(|error| !before.contains(error)).for_each(|error| left.add(error.clone()));
        object.validate_update(&old, &Path::root(""), &mut left);
        errors = left;
    }
    if errors.is_empty() { Verdict::allow() } else { Verdict::deny(Denial { code: CODE, ..Denial::invalid(&errors) }) }
}

fn broken<T: Validate>(object: &T) -> Errors {
    let mut errors = Errors::new();
    object.validate_admission(&Path::root(""), &mut errors);
    errors
}

/// Gives defaults and normalises, as the type says.
///
/// Only what the type's `Mutate` changed goes into the patch: fields that the type does not know stay, and so do values
/// that the user wrote in another form.
pub fn mutate<T: Resource + Mutate, C: ?Sized>(request: &Request<'_>, _: &C) -> Verdict {
    if !request.sub_resource.is_empty() || !matches!(request.operation, Operation::Create | Operation::Update) {
        return Verdict::allow();
    }
    let Some(raw) = request.object else { return Verdict::allow() };
    let decoded = serde_json::from_str::<Value>(raw.get()).and_then(|raw| Ok((T::deserialize(&raw)?, raw)));
    let (mut object, raw) = match decoded {
        Ok(decoded) => decoded,
        Err(error) => return Verdict::deny(Denial::bad_request(error.to_string())),
    };
    patched(&mut object, &raw).map_err(Denial::from).into()
}

fn patched<T: Resource + Mutate>(object: &mut T, raw: &Value) -> Result<Patch, serde_json::Error> {
    let before = serde_json::to_value(&*object)?;
    object.mutate();
    let changes = merge::diff(&before, &serde_json::to_value(&*object)?);
    if changes.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(Patch::default());
    }
    let after = merge::apply(raw.clone(), &changes);
    Patch::between(raw, &after)
}
