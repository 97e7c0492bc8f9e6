//! The generation of a DaemonSet's template, which its first API kept as a field and every later one as an annotation.

use serde_json::{Value, json};

use crate::metadata;

/// Where the generation stands.
const ANNOTATION: &str = "deprecated.daemonset.template.generation";

fn generation(object: &Value) -> i64 {
    let text = object["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
    text.parse().unwrap_or_default()
}

fn set(object: &mut Value, generation: i64) {
    let annotations = metadata::of_mut(object).entry("annotations").or_insert_with(|| json!({}));
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[ANNOTATION] = json!(generation.to_string());
}

/// An object without a generation states that it has none: its writer owns the annotation.
pub(super) fn state(object: &mut Value) {
    let given = generation(object);
    set(object, given);
}

/// The generation of a new object.
pub(super) fn begin(object: &mut Value) {
    let given = generation(object);
    set(object, given.max(1));
}

/// Nobody sets the generation; it moves with the template.
pub(super) fn keep(new: &mut Value, old: &Value) {
    let is_changed = new["spec"]["template"] != old["spec"]["template"];
    set(new, generation(old).saturating_add(i64::from(is_changed)));
}

/// QUIRK: the real server shapes metadata from its own form of the object, where the generation is still a field
/// (recording `table/workloads`).
pub(crate) fn hide(object: &Value, metadata: &mut Value) {
    if object["kind"] != "DaemonSet" || !object["apiVersion"].as_str().unwrap_or_default().starts_with("apps/") {
        return;
    }
    let Some(fields) = metadata.as_object_mut() else { return };
    if let Some(annotations) = fields.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
        if annotations.is_empty() {
            fields.remove("annotations");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_moves_with_the_template_alone() {
        let mut set =
            json!({"kind": "DaemonSet", "apiVersion": "apps/v1", "metadata": {}, "spec": {"template": {"a": 1}}});
        state(&mut set);
        assert_eq!(set["metadata"]["annotations"][ANNOTATION], "0");
        begin(&mut set);
        assert_eq!(generation(&set), 1);
        let mut same = set.clone();
        same["metadata"]["annotations"][ANNOTATION] = json!("7");
        keep(&mut same, &set);
        assert_eq!(generation(&same), 1);
        let mut changed = set.clone();
        changed["spec"]["template"]["a"] = json!(2);
        keep(&mut changed, &set);
        assert_eq!(generation(&changed), 2);
        let mut shown = changed["metadata"].clone();
        hide(&changed, &mut shown);
        assert_eq!(shown, json!({}));
    }
}
