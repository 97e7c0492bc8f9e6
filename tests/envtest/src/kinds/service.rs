//! Services: addresses, ports, policies.

use koord_schema::field::{Errors, Path};
use serde_json::{Value, json};

use super::pod_template::{fill, items};
use crate::{
    names::NameRule,
    strategy::{Generation, Strategy, Surroundings},
};

const NODE_PORTS: std::ops::Range<u64> = 30000..32768;

pub(super) struct Services;

impl Strategy for Services {
    fn creates_on_update(&self) -> bool {
        true
    }

    fn metadata_checks(&self) -> (usize, usize) {
        (2, 3)
    }

    fn name_rule(&self) -> NameRule {
        NameRule::Label1035
    }

    fn has_own_field_labels(&self) -> bool {
        true
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn has_status(&self) -> bool {
        true
    }

    fn set_defaults(&self, object: &mut Value) {
        let Some(spec) = object["spec"].as_object_mut() else { return };
        fill(spec, "sessionAffinity", json!("None"));
        fill(spec, "type", json!("ClusterIP"));
        if spec["sessionAffinity"] == "ClientIP" {
            fill(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10800}}));
        }
        let kind = spec["type"].as_str().unwrap_or_default().to_owned();
        for port in items(spec, "ports") {
            fill(port, "protocol", json!("TCP"));
            let number = port.get("port").cloned().unwrap_or_default();
            fill(port, "targetPort", number);
        }
        if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
            fill(spec, "externalTrafficPolicy", json!("Cluster"));
        }
        if kind != "ExternalName" {
            fill(spec, "internalTrafficPolicy", json!("Cluster"));
        }
        if kind == "LoadBalancer" {
            fill(spec, "allocateLoadBalancerNodePorts", json!(true));
        }
    }

    fn prepare_create(&self, object: &mut Value, around: &Surroundings<'_>) {
        object["status"] = json!({"loadBalancer": {}});
        let Some(spec) = object["spec"].as_object_mut() else { return };
        let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if kind == "ExternalName" {
            return;
        }
        fill(spec, "ipFamilyPolicy", json!("SingleStack"));
        fill(spec, "ipFamilies", json!(["IPv4"]));
        if spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().is_empty() {
            spec.insert("clusterIP".to_owned(), json!(free_address(around)));
        }
        let address = spec["clusterIP"].clone();
        fill(spec, "clusterIPs", json!([address]));
        if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
            let mut offset = around.random;
            for port in items(spec, "ports") {
                let number = NODE_PORTS.start + offset % (NODE_PORTS.end - NODE_PORTS.start);
                fill(port, "nodePort", json!(number));
                offset = offset.wrapping_add(1);
            }
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        if subresource.is_empty()
            && let (Some(spec), Some(before)) = (new["spec"].as_object_mut(), old["spec"].as_object())
        {
            let stays = spec.get("type") == before.get("type");
            for field in ["ipFamilyPolicy", "ipFamilies"] {
                if let Some(value) = before.get(field) {
                    fill(spec, field, value.clone());
                }
            }
            let is_empty = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default().is_empty();
            if is_empty
                && stays
                && let Some(value) = before.get("clusterIP")
            {
                spec.insert("clusterIP".to_owned(), value.clone());
            }
            // The first of `clusterIPs` follows `clusterIP`.
            let address = spec.get("clusterIP").cloned();
            let changed = address.as_ref() != before.get("clusterIP");
            if let Some(address) = address
                && (changed || !spec.contains_key("clusterIPs"))
            {
                spec.insert("clusterIPs".to_owned(), json!([address]));
            }
            let known: Vec<Value> = before.get("ports").and_then(Value::as_array).cloned().unwrap_or_default();
            for port in items(spec, "ports") {
                let same = known.iter().find(|known| {
                    known.get("port") == port.get("port") && known.get("protocol") == port.get("protocol")
                });
                if let Some(number) = same.and_then(|known| known.get("nodePort")).filter(|_| stays) {
                    fill(port, "nodePort", number.clone());
                }
            }
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        let at = Path::root("spec");
        let spec = &object["spec"];
        let kind = spec["type"].as_str().unwrap_or_default();
        let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        if !kinds.contains(&kind) {
            errors.not_supported(&at.child("type"), kind, &kinds);
        }
        let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
        if ports.is_empty() && spec["clusterIP"] != "None" && kind != "ExternalName" {
            errors.required(&at.child("ports"), "");
        }
        let ports_at = at.child("ports");
        for (index, port) in ports.iter().enumerate() {
            let at = ports_at.index(index);
            let name = port["name"].as_str().unwrap_or_default();
            if name.is_empty() && ports.len() > 1 {
                errors.required(&at.child("name"), "");
            } else if !name.is_empty() {
                for message in koord_schema::names::dns1123_label(name) {
                    errors.invalid(&at.child("name"), name, message);
                }
            }
            let number = port["port"].as_i64().unwrap_or_default();
            if !(1..=65535).contains(&number) {
                errors.invalid(&at.child("port"), number, "must be between 1 and 65535, inclusive");
            }
            let protocol = port["protocol"].as_str().unwrap_or_default();
            if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
                errors.not_supported(&at.child("protocol"), protocol, &["SCTP", "TCP", "UDP"]);
            }
        }
        koord_schema::object_meta::validate_labels(&spec["selector"], &at.child("selector"), errors);
    }

    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        if !subresource.is_empty() {
            return;
        }
        let (now, before) = (&new["spec"], &old["spec"]);
        if now["type"] == before["type"] && before["clusterIP"].is_string() && now["clusterIP"] != before["clusterIP"] {
            let at = Path::root("spec");
            errors.invalid(&at.child("clusterIPs").index(0), &now["clusterIPs"], "may not change once set");
        }
        self.check_create(new, errors);
    }
}

/// An address of 10.0.0.0/16 that no other service has.
fn free_address(around: &Surroundings<'_>) -> String {
    let mut number = around.random;
    for _ in 0..256 {
        let address = format!("10.0.{}.{}", (number >> 8) & 0xff, 1 + number % 254);
        let is_taken = around
            .store
            .shelf(around.shelf)
            .range("", "")
            .any(|(_, record)| record.fields.first().is_some_and(|known| **known == *address));
        if !is_taken {
            return address;
        }
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    "10.0.0.2".to_owned()
}

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

    fn prepare_create(&self, object: &mut Value, _around: &Surroundings<'_>) {
        show_lists(object);
    }

    fn prepare_update(&self, new: &mut Value, _old: &Value, _subresource: &str) {
        show_lists(new);
    }
}
