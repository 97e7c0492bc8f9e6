//! Numbers as the API server compares them.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::go_text;

/// Largest number of which every smaller whole number is exact in 64-bit floating point.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// Whether a number counts as an integer, rounding errors forgiven.
pub(super) fn is_whole(number: f64) -> bool {
    if !number.is_finite() || number.abs() > EXACT_MAX {
        return false;
    }
    let truncated = number.trunc();
    let difference = (number - truncated).abs();
    difference == 0.0 || (truncated != 0.0 && difference / (number.abs() + truncated.abs()) < 1e-9)
}

/// Integers compare with the whole part of a bound, as the API server does.
pub(super) fn compare(number: &Number, bound: &Number) -> Option<Ordering> {
    match (number.as_i64(), whole_part(bound)) {
        (Some(number), Some(bound)) => Some(number.cmp(&bound)),
        _ => number.as_f64()?.partial_cmp(&bound.as_f64()?),
    }
}

fn whole_part(bound: &Number) -> Option<i64> {
    bound.as_i64().or_else(|| bound.as_f64().filter(|bound| bound.abs() < 9.2e18).map(|bound| bound.trunc() as i64))
}

/// A bound as messages about this number show it.
pub(super) fn bound_text(number: &Number, bound: &Number) -> String {
    match (number.as_i64(), whole_part(bound)) {
        (Some(_), Some(bound)) => bound.to_string(),
        _ => go_text::number(bound),
    }
}

/// Whether a number is an integral multiple, rounding errors forgiven.
pub(super) fn is_multiple(number: &Number, factor: &Number) -> bool {
    if let (Some(number), Some(factor)) = (number.as_i64(), factor.as_i64()) {
        return number.checked_rem(factor).is_none_or(|rest| rest == 0);
    }
    match (number.as_f64(), factor.as_f64()) {
        (Some(number), Some(factor)) if factor > 0.0 => {
            is_whole(if factor < 1.0 { 1.0 / factor * number } else { number / factor })
        }
        _ => true,
    }
}

/// Equality in which 1 and 1.0 are the same number.
pub(super) fn same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}
