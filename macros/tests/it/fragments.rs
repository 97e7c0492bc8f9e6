//! Derives inside of a `macro_rules!`, which passes types, texts and numbers on as groups.

use koord_resource::{
    Mutate, Schema, Validate,
    declare::Emit,
    field::{Errors, Path},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

macro_rules! limits {
    ($name:ident, $description:expr, $number:ty, $optional:ty, $least:expr, $default:path) => {
        #[doc = $description]
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate)]
        struct $name {
            #[serde(default)]
            #[koord(minimum = $least)]
            count: $number,
            #[serde(skip_serializing_if = "Option::is_none")]
            #[koord(maximum = 9, default_fn($default))]
            limit: $optional,
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            #[koord(items(minimum = $least))]
            steps: Vec<$number>,
        }
    };
}

limits!(Limits, "How much.", u16, Option<u16>, 3, twice);

fn twice(limits: &Limits) -> u16 {
    2 * limits.count
}

#[test]
fn the_schema_sees_through_fragments() {
    let schema = serde_json::to_value(Limits::schema(Emit::default())).unwrap();
    assert_eq!(schema["description"], "How much.");
    assert_eq!(schema["properties"]["count"]["minimum"], 3);
    assert_eq!(schema["properties"]["count"]["type"], "integer");
    assert_eq!(schema["properties"]["limit"]["maximum"], 9);
    assert_eq!(schema["properties"]["steps"]["items"]["minimum"], 3);
    assert_eq!(schema.get("required"), None);
}

#[test]
fn rules_and_defaults_see_through_fragments() {
    let mut limits: Limits = serde_json::from_value(json!({"count": 4, "steps": [3, 2]})).unwrap();
    limits.mutate();
    assert_eq!(limits.limit, Some(8));
    let mut errors = Errors::new();
    limits.validate_schema(&Path::root("limits"), &mut errors);
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["limits.steps[1]"]);
}
