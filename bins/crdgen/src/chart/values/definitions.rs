//! `crds`: which custom resource definitions the chart installs. There is one value per kind.

use std::borrow::Cow;

use koord_resource::ResourceInfo;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value, json};

/// Installed unless a value says otherwise.
#[derive(Debug, Default)]
pub(super) struct Definitions;

/// Values that concern all definitions, with their meanings.
const OF_ALL: [(&str, &str); 2] = [
    ("managed", "Whether the chart installs definitions at all."),
    (
        "keep",
        "Added. Whether definitions, the custom resources of these kinds and the namespace stay when the release is uninstalled.",
    ),
];

fn kinds() -> impl Iterator<Item = ResourceInfo> {
    koord_types::KINDS.iter().filter_map(|versions| versions.first()).map(|declared| declared.info)
}

impl Serialize for Definitions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for name in OF_ALL.iter().map(|(name, _)| *name).chain(kinds().map(|kind| kind.plural)) {
            map.serialize_entry(name, &true)?;
        }
        map.end()
    }
}

impl JsonSchema for Definitions {
    fn schema_name() -> Cow<'static, str> {
        "Definitions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let switch = |meaning: &str| json!({"type": "boolean", "default": true, "description": meaning});
        let of_all = OF_ALL.iter().map(|(name, meaning)| ((*name).to_owned(), switch(meaning)));
        let of_kinds = kinds().map(|kind| {
            (kind.plural.to_owned(), switch(&format!("Whether the chart installs the definition of {}.", kind.kind)))
        });
        let properties: Value = of_all.chain(of_kinds).collect();
        json_schema!({"type": "object", "additionalProperties": false, "properties": properties})
    }
}
