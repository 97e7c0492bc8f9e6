//! What an API server does with an object of a custom kind: prune, default, validate; and what it asks of a schema.
//!
//! The order on a write is: [`default`](defaults::apply), drop needless nulls, [`prune`](prune::prune), then
//! [`validate`](validate::validate). On a read from the store, defaults and pruning apply again.

pub(crate) mod correlation;
pub mod defaults;
pub mod embedded;
pub mod formats;
pub mod legality;
pub mod lists;
mod numbers;
pub mod prune;
pub mod validate;
pub mod within;

use serde_json::Value;

use crate::{Schema, field::Errors};

/// Everything that the schema alone says about an object; CEL rules come after it.
///
/// With `old`, what was wrong before and did not change passes (ratcheting), as it does in the API server.
pub fn validate_object(schema: &Schema, object: &Value, old: Option<&Value>) -> Errors {
    let errors = match old {
        None => validate::validate(schema, object),
        Some(old) => validate::validate_update(schema, object, old),
    };
    with_shapes(errors, schema, object, old)
}

/// What the schema says about an object of which only the status is written.
pub fn validate_status(schema: &Schema, object: &Value, old: &Value) -> Errors {
    let errors = match (schema.properties.get("status"), object.get("status")) {
        (Some(schema), Some(status)) => validate::validate_update_at("status", schema, status, &old["status"]),
        _ => Errors::new(),
    };
    with_shapes(errors, schema, object, Some(old))
}

/// Adds what is wrong with embedded objects, and with lists that are sets or maps.
fn with_shapes(mut errors: Errors, schema: &Schema, object: &Value, old: Option<&Value>) -> Errors {
    errors.extend(embedded::validate(schema, object));
    let duplicates = lists::validate(schema, object);
    if !duplicates.is_empty() && old.is_none_or(|old| lists::validate(schema, old).is_empty()) {
        errors.extend(duplicates);
    }
    errors
}
