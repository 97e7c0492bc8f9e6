//! Values with bounds and forms, as types that know their schema.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::Setting;

macro_rules! schema {
    ($name:ident => $($schema:tt)*) => {
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($($schema)*)
            }
        }

        impl Setting for $name {
            fn schema(generator: &mut SchemaGenerator) -> Schema {
                generator.subschema_for::<Self>()
            }
        }
    };
}

/// A percentage from 0 to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Percent(pub i64);

schema!(Percent => {"type": "integer", "minimum": 0, "maximum": 100});

/// A weight or a factor in percent, above 0 and at most 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weight(pub i64);

schema!(Weight => {"type": "integer", "minimum": 1, "maximum": 100});

impl Default for Weight {
    fn default() -> Self {
        Self(1)
    }
}
