//! Values that may be written in several forms.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value};

/// An object of Kubernetes, whose fields the API server checks.
pub(super) type Object = Map<String, Value>;

/// References to Secrets; the original's chart writes none as an empty object.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct PullSecrets(Option<Vec<Value>>);

/// A text that may be written as a number.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct NumberText(pub(super) &'static str);

/// A verbosity from 0 to 10, as a number or a text.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct LogLevel(pub(super) &'static str);

/// A word of `--declared-webhooks`, or nothing. YAML reads a bare off as false.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Mode(pub(super) &'static str);

/// A word of the field `planning` of a profile, or nothing. YAML reads a bare off as false.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Planning(pub(super) &'static str);

/// A number of replicas, at least one, or a percentage of them.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct CountOrPercent(pub(super) u32);

/// A number of nodes, at least one, or a percentage of them.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct NodesAtOnce(pub(super) &'static str);

macro_rules! schema {
    ($name:ident => $($schema:tt)*) => {
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($($schema)*)
            }
        }
    };
}

schema!(PullSecrets => {
    "type": ["array", "object", "null"],
    "maxProperties": 0,
    "items": {
        "type": "object",
        "additionalProperties": false,
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
});
schema!(NumberText => {"type": ["string", "integer"]});
schema!(LogLevel => {"type": ["string", "integer"], "pattern": "^(10|[0-9])$", "minimum": 0, "maximum": 10});
schema!(Mode => {"enum": ["", "off", false, "warn", "enforce"]});
schema!(Planning => {"enum": ["", "off", false, "report", "enforce"]});
schema!(NodesAtOnce => {"type": ["integer", "string"], "minimum": 1, "pattern": "^(100|[1-9]?[0-9])%$"});
schema!(CountOrPercent => {"type": ["integer", "string"], "minimum": 1, "pattern": "^(100|[1-9]?[0-9])%$"});
