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

    /// Taints and resources are checked as those of a new node and once more, as by kube-apiserver.
    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource.is_empty() {
            check(new, errors);
        }
        check_resources(new, errors);
        check_addresses(new, errors);
        let at = Path::root("spec");
        let ranges = |node: &Value| node["spec"]["podCIDRs"].as_array().cloned().unwrap_or_default();
        let (now, before) = (ranges(new), ranges(old));
        let changed = if before.is_empty() {
            0
        } else if now.len() == before.len() {
            now.iter().zip(&before).filter(|(now, before)| now != before).count()
        } else {
            1
        };
        for _ in 0..changed {
            errors.forbidden(&at.child("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid");
        }
        let (now, before) = (&new["spec"]["providerID"], &old["spec"]["providerID"]);
        if before.as_str().is_some_and(|before| !before.is_empty()) && now != before {
            let message = "node updates may not change providerID except from \"\" to valid";
            errors.forbidden(&at.child("providerID"), message);
        }
        check_taints(new, errors);
    }
}

fn check(node: &Value, errors: &mut Errors) {
    check_taints(node, errors);
    check_resources(node, errors);
    check_ranges(&node["spec"]["podCIDRs"], errors);
}

fn check_taints(node: &Value, errors: &mut Errors) {
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
}

/// Checks the address ranges of a node's pods: at most one of each family.
fn check_ranges(ranges: &Value, errors: &mut Errors) {
    let list = ranges.as_array().map(Vec::as_slice).unwrap_or_default();
    let spec_at = Path::root("spec");
    let ranges_at = spec_at.child("podCIDRs");
    for (index, range) in list.iter().enumerate() {
        let text = range.as_str().unwrap_or_default();
        if !is_range(text) {
            errors.invalid(
                &ranges_at.index(index),
                text,
                "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            );
        }
    }
    let families: Vec<bool> = list.iter().filter_map(Value::as_str).map(|range| range.contains(':')).collect();
    if list.len() > 1 && (families.len() != 2 || families[0] == families[1]) {
        errors.invalid(&ranges_at, ranges, "may specify no more than one CIDR for each IP family");
    }
}

fn check_resources(node: &Value, errors: &mut Errors) {
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

/// Checks that no address of a node stands twice.
fn check_addresses(node: &Value, errors: &mut Errors) {
    let status_at = Path::root("status");
    let at = status_at.child("addresses");
    let addresses = node["status"]["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, address) in
        addresses.iter().enumerate().filter(|(index, address)| addresses[..*index].contains(address))
    {
        let part = |name: &str| address[name].as_str().unwrap_or_default();
        errors.add(FieldError {
            mistake: Mistake::Duplicate,
            field: at.index(index).to_string(),
            value: format!(r#"{{"Type":"{}","Address":"{}"}}"#, part("type"), part("address")),
            detail: String::new(),
        });
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
