//! Nodes: taints, addresses of pods, resources.

use koord_resource::Quantity;
use koord_schema::{
    field::{Errors, FieldError, Mistake, Path},
    names,
};
use serde_json::{Value, json};

use crate::strategy::{Strategy, WriteContext};

pub(super) struct Nodes;

impl Strategy for Nodes {
    fn has_own_field_labels(&self) -> bool {
        true
    }

    fn set_defaults(&self, object: &mut Value) {
        if let Some(status) = object["status"].as_object_mut()
            && !status.contains_key("allocatable")
            && let Some(capacity) = status.get("capacity").cloned()
        {
            status.insert("allocatable".to_owned(), capacity);
        }
        let spec = &mut object["spec"];
        let first = spec["podCIDRs"][0].clone();
        if spec["podCIDR"].is_string() && !spec["podCIDRs"].is_array() {
            spec["podCIDRs"] = json!([spec["podCIDR"]]);
        } else if first.is_string() && !spec["podCIDR"].is_string() {
            spec["podCIDR"] = first;
        }
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|_, value| !value.is_null());
        }
    }

    /// What makes a new node unschedulable until its kubelet says it is ready.
    fn admit_create(&self, object: &mut Value) {
        let not_ready = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
        let mut taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
        if !taints.iter().any(|taint| taint["key"] == not_ready["key"] && taint["effect"] == not_ready["effect"]) {
            taints.push(not_ready);
            object["spec"]["taints"] = Value::Array(taints);
        }
    }

    fn prepare_create(&self, _object: &mut Value, _around: &WriteContext<'_>) {}

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str, _around: &WriteContext<'_>) {
        let kept = if subresource == "status" { "spec" } else { "status" };
        new[kept] = old[kept].clone();
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        check(object, errors);
    }

    fn check_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        check(new, errors);
        for field in ["podCIDR", "providerID"] {
            let (now, before) = (&new["spec"][field], &old["spec"][field]);
            if before.as_str().is_some_and(|before| !before.is_empty()) && now != before {
                let at = Path::root("spec");
                errors.forbidden(&at.child(field), "node updates may not change podCIDR except from \"\" to valid");
            }
        }
    }
}

fn check(node: &Value, errors: &mut Errors) {
    let metadata_at = Path::root("metadata");
    let taints_at = metadata_at.child("taints");
    let taints = node["spec"]["taints"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, taint) in taints.iter().enumerate() {
        let at = taints_at.index(index);
        let part = |name: &str| taint[name].as_str().unwrap_or_default();
        for message in names::qualified_name(part("key")) {
            errors.invalid(&at.child("key"), part("key"), message);
        }
        for message in names::label_value(part("value")) {
            errors.invalid(&at.child("value"), part("value"), message);
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        match part("effect") {
            "" => errors.required(&at.child("effect"), ""),
            effect if !effects.contains(&effect) => errors.not_supported(&at.child("effect"), effect, &effects),
            _ => {}
        }
        if taints[..index].iter().any(|known| known["key"] == taint["key"] && known["effect"] == taint["effect"]) {
            errors.add(FieldError {
                mistake: Mistake::Duplicate,
                field: at.to_string(),
                value: format!(
                    r#"{{"Key":"{}","Value":"{}","Effect":"{}","TimeAdded":null}}"#,
                    part("key"),
                    part("value"),
                    part("effect")
                ),
                detail: "taints must be unique by key and effect pair".to_owned(),
            });
        }
    }
    let spec_at = Path::root("spec");
    let ranges_at = spec_at.child("podCIDRs");
    for (index, range) in node["spec"]["podCIDRs"].as_array().into_iter().flatten().enumerate() {
        let text = range.as_str().unwrap_or_default();
        if !is_range(text) {
            errors.invalid(
                &ranges_at.index(index),
                text,
                "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            );
        }
    }
    let status_at = Path::root("status");
    for field in ["capacity", "allocatable"] {
        let at = status_at.child(field);
        for (name, value) in node["status"][field].as_object().into_iter().flatten() {
            let quantity = value.as_str().and_then(|text| text.parse::<Quantity>().ok());
            if quantity.is_some_and(|quantity| quantity.is_negative()) {
                errors.invalid(&at.child(name), value, "must be greater than or equal to 0");
            }
        }
    }
}

fn is_range(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let bits: u8 = bits.parse().unwrap_or(u8::MAX);
    match address.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => bits <= 32,
        Ok(std::net::IpAddr::V6(_)) => bits <= 128,
        Err(_) => false,
    }
}
