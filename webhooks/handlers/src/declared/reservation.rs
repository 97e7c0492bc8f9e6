//! Reservations: who may use them, for how long, and what they hold.

use koord_api::{
    label_selector,
    reservation::{Reservation, ReservationPhase},
};
use koord_resource::{
    ResourceList,
    admission::{Handler, WebhookEntry},
    field::{Errors, Path},
};
use serde_json::Value;

use super::{check_duration, check_not_negative, entry, handler, validate};
use crate::Ctx;

const ENTRY: WebhookEntry = entry("vreservation.koordinator.sh", &["scheduling.koordinator.sh"], &["reservations"]);

/// The handler.
pub const VALIDATE: Handler<Ctx> =
    handler("/validate-scheduling-koordinator-sh-v1alpha1-reservation", "reservation", &[ENTRY], |request, _| {
        validate::<Reservation>(request, "reservations", check, check_update)
    });

fn check(reservation: &Reservation, errors: &mut Errors) {
    let spec = Path::root("spec");
    let owners = spec.child("owners");
    if reservation.spec.owners.is_empty() {
        errors.required(&owners, "at least one owner must be able to use the reservation");
    }
    for (index, owner) in reservation.spec.owners.iter().enumerate() {
        let at = owners.index(index);
        if owner.object.is_none() && owner.controller.is_none() && owner.label_selector.is_none() {
            errors.required(&at, "set object, controller or labelSelector");
        }
        if let Some(selector) = &owner.label_selector
            && let Err(error) = label_selector::check(selector)
        {
            errors.invalid(&at.child("labelSelector"), selector, error.to_string());
        }
    }
    check_duration(&spec.child("ttl"), reservation.spec.ttl.as_deref(), errors);
    check_template(&spec.child("template"), &reservation.spec.template, errors);
}

/// The template stays as it was written, so it is looked at as plain JSON.
fn check_template(template: &Path<'_>, value: &Value, errors: &mut Errors) {
    let spec = template.child("spec");
    let mut any = false;
    for name in ["initContainers", "containers"] {
        let list = spec.child(name);
        let containers = value.pointer("/spec").and_then(|spec| spec.get(name)).and_then(Value::as_array);
        for (index, container) in containers.into_iter().flatten().enumerate() {
            any |= name == "containers";
            let at = list.index(index);
            let at = at.child("resources");
            for name in ["requests", "limits"] {
                let at = at.child(name);
                let Some(amounts) = container.pointer("/resources").and_then(|resources| resources.get(name)) else {
                    continue;
                };
                match serde_json::from_value::<Option<ResourceList>>(amounts.clone()) {
                    Ok(amounts) => check_not_negative(&at, &amounts.unwrap_or_default(), errors),
                    Err(error) => errors.invalid(&at, amounts, crate::decode::reason(&error)),
                }
            }
        }
    }
    if !any {
        errors
            .required(&spec.child("containers"), "the template must have the containers whose resources are reserved");
    }
}

fn check_update(reservation: &Reservation, old: &Reservation, errors: &mut Errors) {
    if old.status.phase == Some(ReservationPhase::Available) && reservation.spec.template != old.spec.template {
        let spec = Path::root("spec");
        errors.forbidden(&spec.child("template"), "field is immutable once the reservation is Available");
    }
}
