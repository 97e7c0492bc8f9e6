//! Third-party extensions.

use koord_resource::{
    Mutate, Schema, Validate,
    declare::{Emit, Shape, object},
    schema,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Any JSON by the key of its owner.
///
/// QUIRK: on the wire the keys stand below one more, literal key: `{"Object": {"owner": …}}`. Go ignores `inline` on a
/// map, and koordlets read it so (spec/manager.md 1.2; `the_wrapper_stays_on_the_wire`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Extensions {
    /// The fields by owner. Absent and `null` are the same.
    #[serde(rename = "Object", default)]
    pub object: Option<Map<String, Value>>,
}

impl Extensions {
    /// No fields, written as `{"Object":{}}`.
    pub fn empty() -> Self {
        Self { object: Some(Map::new()) }
    }
}

impl Validate for Extensions {}

impl Mutate for Extensions {}

impl Schema for Extensions {
    const SHAPE: Shape = Shape::Object;

    fn schema(_: Emit) -> schema::Schema {
        schema::Schema { preserve_unknown_fields: Some(true), ..object("Third-party extensions, in the field Object.") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wrapper_stays_on_the_wire() {
        for json in [r#"{"Object":null}"#, r#"{"Object":{}}"#, r#"{"Object":{"a":{"b":[1,null]}}}"#] {
            let extensions: Extensions = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&extensions).unwrap(), json);
        }
        assert_eq!(serde_json::to_string(&Extensions::empty()).unwrap(), r#"{"Object":{}}"#);
    }
}
