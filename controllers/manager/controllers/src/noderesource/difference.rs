//! What a decision changes about the objects as they are, and whether that is worth a write.

use koord_resource::{Quantity, ResourceList};
use koord_types::{
    node_annotations::{CPU_NORMALIZATION_RATIO, RESOURCE_AMPLIFICATION_RATIO},
    resource_names::{BATCH_CPU, BATCH_MEMORY},
};
use serde_json::{Map, Value, json};

use super::{
    cpu_normalization::is_worth_writing,
    decision::{Decision, ZoneAmounts},
    facts::Facts,
};

/// What a decision changes about its node.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Difference {
    /// Merge patch of `metadata`; empty for none.
    pub(super) metadata: Map<String, Value>,
    /// Merge patch of `status`; empty for none.
    pub(super) status: Map<String, Value>,
    /// Whether some amount changes by more than the threshold.
    pub(super) is_large: bool,
    /// Whether a ratio or a label changes so that it cannot wait.
    pub(super) is_pressing: bool,
}

impl Difference {
    /// Between what shall be and what is.
    pub(super) fn of(decision: &Decision, facts: &Facts<'_>) -> Self {
        let mut difference = Self::default();
        let threshold = facts.strategy.resource_diff_threshold.unwrap_or_default();
        // QUIRK: a difference in `capacity` alone is never large.
        for (field, current) in [("capacity", &facts.capacity), ("allocatable", &facts.allocatable)] {
            let (patch, is_large) = amounts(decision, current, threshold);
            difference.is_large |= is_large && field == "allocatable";
            if !patch.is_empty() {
                difference.status.insert(field.to_owned(), Value::Object(patch));
            }
        }
        difference.annotate(decision, facts);
        let mut labels = Map::new();
        for (key, text) in &decision.labels {
            let current = facts.labels.get(*key);
            if current != Some(text) {
                // An empty label waits: whoever reads it finds the same as without it.
                difference.is_pressing |= current.map_or("", String::as_str) != text;
                labels.insert((*key).to_owned(), text.as_str().into());
            }
        }
        if !labels.is_empty() {
            difference.metadata.insert("labels".to_owned(), Value::Object(labels));
        }
        difference
    }

    fn annotate(&mut self, decision: &Decision, facts: &Facts<'_>) {
        let mut annotations = Map::new();
        for (key, text) in &decision.annotations {
            let current = facts.annotations.get(*key).map(String::as_str);
            let (differs, is_pressing) = match text.as_deref() {
                None => (current.is_some(), true),
                Some(text) if *key == CPU_NORMALIZATION_RATIO.name() => {
                    (current != Some(text), is_worth_writing(current, text))
                }
                Some(text) => (current != Some(text), *key == RESOURCE_AMPLIFICATION_RATIO.name()),
            };
            if differs {
                self.is_pressing |= is_pressing;
                annotations.insert((*key).to_owned(), text.as_deref().into());
            }
        }
        if !annotations.is_empty() {
            self.metadata.insert("annotations".to_owned(), Value::Object(annotations));
        }
    }

    /// Whether nothing changes at all.
    pub(super) fn is_empty(&self) -> bool {
        self.metadata.is_empty() && self.status.is_empty()
    }
}

fn amounts(decision: &Decision, current: &ResourceList, threshold: f64) -> (Map<String, Value>, bool) {
    let (mut patch, mut is_large) = (Map::new(), false);
    for (name, wanted) in &decision.resources {
        let old = current.get(name);
        if old != wanted.as_ref() {
            is_large |= is_beyond(old, wanted.as_ref(), threshold);
            patch.insert((*name).to_owned(), wanted.as_ref().map(Quantity::to_string).into());
        }
    }
    (patch, is_large)
}

/// Whether an amount appears, goes, or changes by more than a share of what it was.
fn is_beyond(old: Option<&Quantity>, new: Option<&Quantity>, threshold: f64) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return old != new };
    let (old, new) = (old.milli_value() as f64, new.milli_value() as f64);
    (new - old).abs() > old * threshold
}

/// How zones are compared.
#[derive(Clone, Copy, Debug)]
pub(super) enum ZoneRules {
    /// An amount is replaced where it changes by more than this share.
    Threshold(f64),
    /// An amount is replaced where it is another; zones that say nothing about batch pods are left so.
    Reset,
}

/// The zones with what batch pods may use of each; none where nothing is worth writing. Capacity, allocatable and
/// available are replaced one by one.
pub(super) fn zones(mut zones: Vec<Value>, wanted: &[ZoneAmounts], rules: ZoneRules) -> Option<Value> {
    let threshold = match rules {
        ZoneRules::Threshold(share) => share,
        ZoneRules::Reset => 0.0,
    };
    let mut differs = false;
    for (zone, wanted) in zones.iter_mut().zip(wanted) {
        let Some(zone) = zone.as_object_mut() else { continue };
        let resources = zone.entry("resources").or_insert_with(|| json!([]));
        let Some(resources) = resources.as_array_mut() else { continue };
        let mut appended = false;
        for (name, amount) in [(BATCH_CPU, &wanted.cpu), (BATCH_MEMORY, &wanted.memory)] {
            match resources.iter_mut().find(|resource| resource["name"] == name) {
                Some(resource) => {
                    for field in ["capacity", "allocatable", "available"] {
                        let old: Quantity = serde_json::from_value(resource[field].clone()).unwrap_or_default();
                        if is_beyond(Some(&old), Some(amount), threshold) {
                            resource[field] = amount.to_string().into();
                            differs = true;
                        }
                    }
                }
                None if matches!(rules, ZoneRules::Reset) => {}
                None => {
                    let text = amount.to_string();
                    resources.push(json!({"name": name, "capacity": text, "allocatable": text, "available": text}));
                    (differs, appended) = (true, true);
                }
            }
        }
        if appended {
            resources.sort_by_key(|resource| resource["name"].as_str().unwrap_or_default().to_owned());
        }
    }
    differs.then_some(Value::Array(zones))
}
