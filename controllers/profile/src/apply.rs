//! What profiles change in labels and annotations.

use koord_types::{priority::SUB_PRIORITY_LABEL, qos::QOS_LABEL};

use crate::{Profile, Texts};

/// Changes labels and annotations of an object, in the original's order. Maps of a profile are gone through by their
/// keys.
pub fn apply<'a>(profile: &'a Profile, labels: &mut Texts<'a>, annotations: &mut Texts<'a>) {
    let spec = &profile.spec;
    for (key, value) in &spec.labels {
        labels.set(key.as_str(), value.as_str());
    }
    for (key, value) in &spec.annotations {
        annotations.set(key.as_str(), value.as_str());
    }
    for (old, new) in &spec.label_keys_mapping {
        labels.copy(old, new);
    }
    for (old, new) in &spec.annotation_keys_mapping {
        annotations.copy(old, new);
    }
    for (key, suffix) in &spec.label_suffixes {
        labels.append(key, suffix);
    }
    if let Some(qos) = spec.qos_class.as_ref().filter(|qos| !qos.as_str().is_empty()) {
        labels.set(QOS_LABEL, qos.as_str());
    }
    if let Some(priority) = spec.koordinator_priority {
        labels.set(SUB_PRIORITY_LABEL, priority.to_string());
    }
}
