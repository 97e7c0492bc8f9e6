//! What is read of the JSON of objects.

use std::collections::BTreeMap;

use koord_resource::Quantity;
use serde_json::Value;

/// Amounts by the names of resources: cpu in thousandths of cores, all else in units.
pub type Amounts = BTreeMap<String, i64>;

pub(crate) fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

pub(crate) fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The JSON in a text.
pub(crate) fn embedded(value: &Value) -> Value {
    value.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

pub(crate) fn amounts(value: &Value) -> Amounts {
    let named = value.as_object().into_iter().flatten();
    named.map(|(name, quantity)| (name.clone(), amount(name, quantity))).collect()
}

pub(crate) fn amount(name: &str, quantity: &Value) -> i64 {
    let quantity: Option<Quantity> = quantity.as_str().and_then(|text| text.parse().ok());
    quantity.map_or(0, |quantity| if name == "cpu" { quantity.milli_value() } else { quantity.value() })
}
