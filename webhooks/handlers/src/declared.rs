//! Handlers that the original never had, behind the gate `DeclaredWebhooks`: they refuse what nobody can carry out.
//!
//! Each refusal has code 422 and names every field with what would be right. The rules hold for all legal objects:
//! whatever the original or our controllers write passes them.

mod device;
mod node_slo;
mod pod_migration_job;
mod reservation;

use koord_resource::{
    Quantity, ResourceList,
    admission::{Denial, FailurePolicy, Handler, Operation, Patch, Request, Review, Verdict, WebhookEntry},
    field::{Errors, Path},
};
use serde::de::DeserializeOwned;

use crate::Ctx;

pub use device::VALIDATE as VALIDATE_DEVICE;
pub use node_slo::VALIDATE as VALIDATE_NODE_SLO;
pub use pod_migration_job::{MUTATE as MUTATE_POD_MIGRATION_JOB, VALIDATE as VALIDATE_POD_MIGRATION_JOB};
pub use reservation::VALIDATE as VALIDATE_RESERVATION;

const GATE: Option<&str> = Some("DeclaredWebhooks");

/// A handler of a declared kind with one entry.
const fn handler(
    path: &'static str,
    object_type: &'static str,
    entries: &'static [WebhookEntry],
    call: fn(&Request<'_>, &Ctx) -> Verdict,
) -> Handler<Ctx> {
    Handler { path, gate: GATE, entries, rbac: &[], object_type, call }
}

const fn entry(
    name: &'static str,
    groups: &'static [&'static str],
    resources: &'static [&'static str],
) -> WebhookEntry {
    WebhookEntry {
        name,
        groups,
        versions: &["v1alpha1"],
        resources,
        operations: &[Operation::Create, Operation::Update],
        // What worked before these handlers existed works on without them.
        failure_policy: FailurePolicy::Ignore,
        review_versions: &["v1", "v1beta1"],
        ..WebhookEntry::BASE
    }
}

/// Checks the object of a review, and on an update what must not change.
fn validate<T: DeserializeOwned>(
    request: &Request<'_>,
    resource: &str,
    check: fn(&T, &mut Errors),
    check_update: fn(&T, &T, &mut Errors),
) -> Verdict {
    let concerned = request.sub_resource.is_empty()
        && request.resource.resource == resource
        && matches!(request.operation, Operation::Create | Operation::Update);
    if !concerned {
        return Verdict::allow();
    }
    let review = match Review::<T>::decode(request) {
        Ok(review) => review,
        Err(denial) => return Verdict::deny(denial),
    };
    let Some(object) = review.object else {
        return Verdict::deny(Denial::bad_request("there is no content to decode"));
    };
    let mut errors = Errors::new();
    check(&object, &mut errors);
    if let Some(old) = review.old_object.filter(|_| request.operation == Operation::Update) {
        check_update(&object, &old, &mut errors);
    }
    if errors.is_empty() { Verdict::allow() } else { Verdict::deny(Denial::invalid(&errors)) }
}

fn nothing_is_fixed<T>(_: &T, _: &T, _: &mut Errors) {}

/// A duration as Go writes it, that is not negative.
fn check_duration(at: &Path<'_>, text: Option<&str>, errors: &mut Errors) {
    let Some(text) = text else { return };
    match text.parse::<koord_resource::Duration>() {
        Ok(duration) if duration.is_negative() => errors.invalid(at, text, "must not be negative"),
        Ok(_) => {}
        Err(_) => errors.invalid(at, text, "must be a duration such as 90s, 1h30m or 24h"),
    }
}

fn check_not_negative(at: &Path<'_>, amounts: &ResourceList, errors: &mut Errors) {
    for (name, quantity) in amounts {
        if Quantity::is_negative(quantity) {
            errors.invalid(&at.key(name), quantity.to_string(), "must be greater than or equal to 0");
        }
    }
}

/// Adds the fields that are missing, for handlers that fill in defaults.
fn fill(patch: &mut Patch, at: &Path<'_>, present: bool, value: &str) -> Result<(), Denial> {
    if !present {
        patch.add(at, value)?;
    }
    Ok(())
}
