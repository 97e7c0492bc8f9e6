//! Selectors of labels, as stored objects have them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use koord_scheduling::Selector;
use serde::Deserialize as _;
use serde_json::Value;

use crate::store::Record;

/// The selector that a stored object has: `matchLabels` and `matchExpressions`. None when an operator is unknown, or when
/// there is no selector at all, which matches nothing.
pub fn of_object(object: &Value) -> Option<Selector> {
    object.as_object()?;
    Selector::stored(&LabelSelector::deserialize(object).ok()?)
}

/// Whether a stored object is selected by its labels.
pub fn selects_record(selector: &Selector, record: &Record) -> bool {
    selector.is_everything() || selector.selects(|key| record.labels.get(key))
}
