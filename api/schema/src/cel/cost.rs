//! How much rules may cost at worst, at all places of an object together.

use super::declared::{Declared, REQUEST_BYTES_MAX};
use crate::{Schema, SchemaType};

/// What one rule, evaluated for all the places that its schema may repeat, may cost.
pub(super) const RULE_COST_MAX: u64 = 10_000_000;
/// What all rules of one schema may cost.
pub(super) const TOTAL_COST_MAX: u64 = 100_000_000;

/// How often a place of a schema can occur in one object; `None` where nothing bounds it but the size of a request.
pub(super) type Cardinality = Option<u64>;

/// The cardinality of what stands below a schema.
pub(super) fn below(schema: &Schema, cardinality: Cardinality) -> Cardinality {
    let factor = match schema.type_ {
        Some(SchemaType::Array) => schema.max_items?,
        Some(SchemaType::Object) if schema.additional_properties.is_some() => schema.max_properties?,
        _ => 1,
    };
    Some(cardinality?.saturating_mul(factor))
}

/// The cost of a rule at all places where its schema occurs.
pub(super) fn everywhere(cost: u64, declared: &Declared, cardinality: Cardinality) -> u64 {
    cost.saturating_mul(cardinality.unwrap_or(REQUEST_BYTES_MAX / (declared.bytes_min + 1)))
}

/// `estimated rule cost exceeds budget by factor of …`
pub(super) fn over_budget(what: &str, cost: u64, max: u64) -> String {
    let factor = cost as f64 / max as f64;
    let shown = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
