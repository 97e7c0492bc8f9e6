//! What may stand in a configuration.

use std::collections::{BTreeMap, BTreeSet};

use koord_resource::{Duration, Quantity, ResourceList};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::Problems;

/// A value of a configuration: a struct with `derive(Configuration)`, a choice with it, or one of Rust's own types.
///
/// A value that was decoded has the defaults of what is not set already; [`Setting::set_defaults`] sets what counts as not set though it
/// is there, and what follows from other fields.
pub trait Setting: Sized {
    /// What documents may say.
    fn schema(generator: &mut SchemaGenerator) -> Schema;

    /// Sets what counts as not set.
    fn set_defaults(&mut self) {}

    /// Checks what a schema cannot say. The value has its defaults.
    fn validate(&self, _: &mut Problems) {}

    /// What has no effect though it is set; `unset` is the value where nothing is set.
    fn warn(&self, _unset: &Self, _: &mut Problems) {}
}

macro_rules! plain {
    ($($type:ty),*) => {
        $(impl Setting for $type {
            fn schema(generator: &mut SchemaGenerator) -> Schema {
                generator.subschema_for::<Self>()
            }
        })*
    };
}

plain!(std::path::PathBuf, bool, i8, i16, i32, i64, u8, u16, u32, u64, usize, f32, f64, String, Value);

impl Setting for Duration {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "duration"})
    }
}

impl Setting for Quantity {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number"], "format": "quantity"})
    }
}

impl Setting for ResourceList {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        map_of(&Quantity::schema(generator))
    }
}

impl<T: Setting> Setting for Option<T> {
    /// The schema that the type has with `null` beside it, as schemars writes it.
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::schema(generator);
        if *schema.as_value() == Value::Bool(true) {
            // Anything is null too.
            return schema;
        }
        match schema.get_mut("type") {
            Some(Value::Array(types)) => types.push("null".into()),
            Some(type_ @ Value::String(_)) => *type_ = Value::Array(vec![type_.take(), "null".into()]),
            _ => schema = json_schema!({"anyOf": [schema, {"type": "null"}]}),
        }
        schema
    }

    fn set_defaults(&mut self) {
        self.iter_mut().for_each(T::set_defaults);
    }

    fn validate(&self, problems: &mut Problems) {
        if let Some(value) = self {
            value.validate(problems);
        }
    }

    fn warn(&self, unset: &Self, problems: &mut Problems) {
        if let (Some(value), Some(unset)) = (self, unset) {
            value.warn(unset, problems);
        }
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let items = T::schema(generator);
        json_schema!({"type": "array", "items": items})
    }

    fn set_defaults(&mut self) {
        self.iter_mut().for_each(T::set_defaults);
    }

    fn validate(&self, problems: &mut Problems) {
        for (index, item) in self.iter().enumerate() {
            problems.within_item(index, |problems| item.validate(problems));
        }
    }
}

impl<T: Setting + Ord> Setting for BTreeSet<T> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let items = T::schema(generator);
        json_schema!({"type": "array", "items": items, "uniqueItems": true})
    }
}

impl<T: Setting> Setting for BTreeMap<String, T> {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        map_of(&T::schema(generator))
    }

    fn set_defaults(&mut self) {
        self.values_mut().for_each(T::set_defaults);
    }

    fn validate(&self, problems: &mut Problems) {
        for (key, value) in self {
            problems.within(key, |problems| value.validate(problems));
        }
    }
}

fn map_of(values: &Schema) -> Schema {
    json_schema!({"type": "object", "additionalProperties": values})
}
