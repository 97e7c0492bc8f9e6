//! The generation of a DaemonSet's template, which its first API kept as a field and every later one as an annotation.

use serde_json::{Value, json};

use crate::metadata::{self, DAEMON_SET_GENERATION as ANNOTATION};

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
        assert_eq!(crate::present::partial_metadata(&changed, "v1")["metadata"], json!({}));
    }
}
