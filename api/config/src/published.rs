//! The JSON Schema of a whole document: that of its type, with the arguments of plugins in their places.

use koord_configuration::published;
use serde_json::{Value, json};

use crate::Kind;

impl Kind {
    /// The JSON Schema of a whole document, with the arguments of every plugin that has some.
    pub fn published_schema(self) -> Result<Value, serde_json::Error> {
        let complete = match self {
            // What is not set has no default in a policy.
            Self::PolicyV1alpha1 | Self::PolicyV1alpha2 => json!({}),
            Self::Scheduler | Self::Descheduler => self.effective(&json!({}))?.value,
        };
        let mut schema = published(self.schema(), &complete, self.api_version(), self.name());
        schema["required"] = json!(["apiVersion", "kind"]);
        let mut cases = Vec::new();
        for args in self.plugins() {
            let mut of = args.published_schema(self.api_version())?;
            if let Some(members) = of.as_object_mut() {
                members.remove("$schema");
                // Types of the same name are the same type, in whatever arguments they stand.
                if let Some(Value::Object(shared)) = members.remove("$defs") {
                    for (name, definition) in shared {
                        schema["$defs"][name] = definition;
                    }
                }
            }
            let name = format!("{}Args", args.plugin);
            let its_args =
                json!({"properties": {"args": {"anyOf": [{"$ref": format!("#/$defs/{name}")}, {"type": "null"}]}}});
            let condition = json!({"properties": {"name": {"const": args.plugin}}, "required": ["name"]});
            cases.push(json!({"if": condition, "then": its_args}));
            schema["$defs"][name] = of;
        }
        if !cases.is_empty() {
            schema["$defs"]["PluginConfig"]["allOf"] = cases.into();
        }
        Ok(schema)
    }
}
