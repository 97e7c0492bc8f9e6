//! The arguments of a plugin, and where each comes from.

use koord_configuration::Step;
use serde_json::{Map, Value};

use super::builder::{Place, below, path};

/// The arguments of a plugin under construction. Places begin at the arguments.
pub(super) struct Arguments {
    pub(super) value: Value,
    pub(super) places: Vec<Place>,
}

impl Arguments {
    pub(super) fn none() -> Self {
        Self { value: Value::Object(Map::new()), places: Vec::new() }
    }

    /// Arguments that stand at a place of the policy as they are. What is null there is not set.
    pub(super) fn whole(mut value: Value, source: Vec<Step>) -> Self {
        if value.is_null() {
            value = Value::Object(Map::new());
        }
        if let Some(members) = value.as_object_mut() {
            members.retain(|_, member| !member.is_null());
        }
        Self { value, places: vec![Place { target: Vec::new(), source, has_same_fields: true }] }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.value.as_object().is_some_and(Map::is_empty)
    }

    /// Sets an argument, or a field of one. `has_same_fields`: what is below it has the same names at its source.
    pub(super) fn set(&mut self, keys: &[&str], value: Value, source: Vec<Step>, has_same_fields: bool) {
        let mut target = &mut self.value;
        for key in keys {
            target = &mut target[*key];
        }
        *target = value;
        self.places.push(Place { target: path(keys), source, has_same_fields });
    }

    /// Where an argument comes from.
    pub(super) fn source_of(&self, name: &str) -> Vec<Step> {
        let target = path(&[name]);
        let found = self.places.iter().filter(|place| target.starts_with(&place.target));
        match found.max_by_key(|place| place.target.len()) {
            Some(place) if place.target.is_empty() => below(&place.source, &[name]),
            Some(place) => place.source.clone(),
            None => Vec::new(),
        }
    }
}
