//! Endpoints and endpoint slices.

use serde_json::{Value, json};

use super::pod_template::{fill, items};
use crate::strategy::{Generation, Strategy, WriteContext};

/// Endpoints default the protocol of their ports.
pub(super) struct Endpoints;

impl Strategy for Endpoints {
    fn creates_on_update(&self) -> bool {
        true
    }

    fn set_defaults(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        for subset in items(object, "subsets") {
            for port in items(subset, "ports") {
                fill(port, "protocol", json!("TCP"));
            }
        }
    }
}

/// Both lists of a slice are there even when they say nothing, and an empty one is kept as none.
fn show_lists(slice: &mut Value) {
    for list in ["endpoints", "ports"] {
        if slice[list].as_array().is_none_or(Vec::is_empty) {
            slice[list] = Value::Null;
        }
    }
}

/// Endpoint slices: like endpoints, and their generation moves with labels too, by which services find them.
pub(super) struct EndpointSlices;

impl Strategy for EndpointSlices {
    fn generation(&self) -> Generation {
        Generation::Spec
    }

    fn metadata_moves_generation(&self, new: &Value, old: &Value) -> bool {
        new["metadata"]["labels"] != old["metadata"]["labels"]
    }

    fn set_defaults(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        for port in items(object, "ports") {
            fill(port, "protocol", json!("TCP"));
            fill(port, "name", json!(""));
        }
    }

    fn prepare_create(&self, object: &mut Value, _around: &WriteContext<'_>) {
        show_lists(object);
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value, _subresource: &str, _around: &WriteContext<'_>) {
        show_lists(new);
    }
}
