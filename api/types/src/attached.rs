//! Rules that no marker states, as functions that fields name with `check`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_resource::{
    Duration, Quantity, ResourceList,
    field::{Errors, Path},
};

/// A duration as Go writes it, that is not negative.
pub(crate) fn duration(text: &str, at: &Path<'_>, errors: &mut Errors) {
    match text.parse::<Duration>() {
        Ok(duration) if duration.is_negative() => errors.invalid(at, text, "must not be negative"),
        Ok(_) => {}
        Err(_) => errors.invalid(at, text, "must be a duration such as 90s, 1h30m or 24h"),
    }
}

/// No amount is negative.
pub(crate) fn not_negative(amounts: &ResourceList, at: &Path<'_>, errors: &mut Errors) {
    for (name, quantity) in amounts {
        if Quantity::is_negative(quantity) {
            errors.invalid(&at.key(name), quantity.to_string(), "must be greater than or equal to 0");
        }
    }
}

/// Every term of a selector is legal.
pub(crate) fn selector_parses(selector: &LabelSelector, at: &Path<'_>, errors: &mut Errors) {
    if let Err(error) = koord_scheduling::check(selector) {
        errors.invalid(at, selector, error.to_string());
    }
}
