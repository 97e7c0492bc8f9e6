//! The handlers that follow from a type's own rules. They need no snapshot.

use koord_schema::{
    field::{Errors, FieldError, Path},
    patch::merge,
};
use serde_json::Value;

use super::{Declaration, Denial, Operation, Patch, Request, Review, Verdict};
use crate::{Mutate, Resource, Validate};

/// Denies objects that break the admission rules of their type.
///
/// An update may keep what was wrong before, so that an object from before a rule can still lose its finalizers; and
/// an object that is being deleted is always admitted. A request by the field manager `declaration.warns` is admitted
/// with a warning for each broken rule.
pub fn validate<T: Resource + Validate>(request: &Request<'_>, declaration: &Declaration) -> Verdict {
    validate_with::<T>(request, declaration, |_, _| {})
}

/// The same, and then the rules of a function that sees the object and its old version, and has a snapshot of its own.
pub fn validate_with<T: Resource + Validate>(
    request: &Request<'_>,
    declaration: &Declaration,
    rules: impl Fn(&Review<'_, T>, &mut Errors),
) -> Verdict {
    if !is_written(request) {
        return Verdict::allow();
    }
    let review = match Review::<T>::decode(request) {
        Ok(review) => review,
        Err(denial) => return Verdict::deny(denial),
    };
    let Some(object) = &review.object else {
        return Verdict::deny(Denial::bad_request("there is no content to decode"));
    };
    if object.metadata().deletion_timestamp.is_some() {
        return Verdict::allow();
    }
    let mut errors = broken(object);
    if let Some(old) = review.old_object.as_ref().filter(|_| request.operation == Operation::Update) {
        let before: Vec<FieldError> = broken(old).iter().cloned().collect();
        let mut left = Errors::new();
        errors.iter().filter(|error| !before.contains(error)).for_each(|error| left.add(error.clone()));
        object.validate_update(old, &Path::root(""), &mut left);
        errors = left;
    }
    rules(&review, &mut errors);
    if errors.is_empty() {
        Verdict::allow()
    } else if declaration.warns.is_some_and(|manager| manager == request.field_manager()) {
        Verdict { warnings: errors.iter().map(ToString::to_string).collect(), ..Verdict::allow() }
    } else {
        Verdict::deny(Denial { code: declaration.code, ..Denial::invalid(&errors) })
    }
}

/// Whether a request writes the object itself.
fn is_written(request: &Request<'_>) -> bool {
    request.sub_resource.is_empty() && matches!(request.operation, Operation::Create | Operation::Update)
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
pub fn mutate<T: Resource + Mutate>(request: &Request<'_>) -> Verdict {
    if !is_written(request) {
        return Verdict::allow();
    }
    let Some(text) = request.object else { return Verdict::allow() };
    let raw: Value = match serde_json::from_str(text.get()) {
        Ok(raw) => raw,
        Err(error) => return Verdict::deny(Denial::bad_request(error.to_string())),
    };
    // Read from the text, as every object is: types with a pod in them are large, and each way to read them is compiled anew.
    // Mutation comes before the schema: the API server denies what cannot be decoded, and names every field.
    let Ok(mut object) = serde_json::from_str::<T>(text.get()) else { return Verdict::allow() };
    patched(&mut object, &raw).map_err(Denial::from).into()
}

fn patched<T: Resource + Mutate>(object: &mut T, raw: &Value) -> Result<Patch, serde_json::Error> {
    let before = serde_json::to_value(&*object)?;
    object.mutate();
    let Some(changes) = merge::diff(&before, &serde_json::to_value(&*object)?) else { return Ok(Patch::default()) };
    let after = merge::apply(raw.clone(), &changes);
    Patch::between(raw, &after)
}
