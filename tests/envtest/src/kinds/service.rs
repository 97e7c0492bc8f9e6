//! Services: defaults, and what follows from a change of type.

mod allocation;
mod checks;

use koord_schema::field::Errors;
use serde_json::{Map, Value, json};

use super::pod_template::{fill, items};
use crate::{
    names::NameRule,
    status::ApiError,
    strategy::{Strategy, WriteContext},
};

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
        fill_empty(spec, "sessionAffinity", "None");
        fill_empty(spec, "type", "ClusterIP");
        let affinity = spec["sessionAffinity"].clone();
        if affinity == "None" {
            spec.remove("sessionAffinityConfig");
        } else if affinity == "ClientIP"
            && spec.get("sessionAffinityConfig").is_none_or(|config| config["clientIP"]["timeoutSeconds"].is_null())
        {
            spec.insert("sessionAffinityConfig".to_owned(), json!({"clientIP": {"timeoutSeconds": 10800}}));
        }
        for port in items(spec, "ports") {
            fill_empty(port, "protocol", "TCP");
            let is_open = port.get("targetPort").is_none_or(|target| *target == 0 || *target == "");
            if is_open {
                let number = port.get("port").cloned().unwrap_or(json!(0));
                port.insert("targetPort".to_owned(), number);
            }
        }
        if is_external(spec) {
            fill_empty(spec, "externalTrafficPolicy", "Cluster");
        }
        if matches!(kind(spec), "ClusterIP" | "NodePort" | "LoadBalancer") {
            fill(spec, "internalTrafficPolicy", json!("Cluster"));
        }
        if kind(spec) == "LoadBalancer" {
            fill(spec, "allocateLoadBalancerNodePorts", json!(true));
        }
    }

    fn prepare_create(&self, object: &mut Value, _around: &WriteContext<'_>) {
        object["status"] = json!({"loadBalancer": {}});
    }

    fn allocate(
        &self,
        object: &mut Value,
        old: Option<&Value>,
        around: &WriteContext<'_>,
        errors: &mut Errors,
    ) -> Result<(), ApiError> {
        allocation::allocate(object, old, around, errors)
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str, _around: &WriteContext<'_>) {
        if subresource.is_empty()
            && let (Some(spec), Some(before)) = (new["spec"].as_object_mut(), old["spec"].as_object())
        {
            drop_what_the_type_lost(spec, before);
        }
    }

    fn check_create(&self, object: &Value, errors: &mut Errors) {
        checks::service(object, None, errors);
    }

    fn check_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource.is_empty() {
            checks::changes(new, old, errors);
            checks::service(new, Some(old), errors);
        } else {
            checks::load_balancer(new, errors);
        }
    }
}

/// Sets a text that is absent or empty.
fn fill_empty(fields: &mut Map<String, Value>, name: &str, value: &str) {
    if fields.get(name).is_none_or(|known| known.is_null() || *known == "") {
        fields.insert(name.to_owned(), json!(value));
    }
}

fn text<'a>(spec: &'a Map<String, Value>, name: &str) -> &'a str {
    spec.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn kind(spec: &Map<String, Value>) -> &str {
    text(spec, "type")
}

fn has_node_ports(spec: &Map<String, Value>) -> bool {
    matches!(kind(spec), "NodePort" | "LoadBalancer")
}

fn needs_health_check(spec: &Map<String, Value>) -> bool {
    kind(spec) == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// Whether it is reached from outside of the cluster.
fn is_external(spec: &Map<String, Value>) -> bool {
    let has_addresses = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    has_node_ports(spec) || (kind(spec) == "ClusterIP" && has_addresses)
}

fn node_ports(spec: &Map<String, Value>) -> Vec<i64> {
    let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
    ports.filter_map(|port| port["nodePort"].as_i64()).filter(|number| *number != 0).collect()
}

/// A service that changes its type loses what only the old type has, unless the client said otherwise.
fn drop_what_the_type_lost(spec: &mut Map<String, Value>, before: &Map<String, Value>) {
    let has_address = |spec: &Map<String, Value>| kind(spec) != "ExternalName";
    let unset_if_same = |spec: &mut Map<String, Value>, fields: &[&str]| {
        for field in fields {
            if spec.get(*field) == before.get(*field) {
                spec.remove(*field);
            }
        }
    };
    if has_address(before) && !has_address(spec) {
        if spec.get("clusterIPs") == before.get("clusterIPs") {
            unset_if_same(spec, &["clusterIP"]);
            spec.remove("clusterIPs");
        }
        unset_if_same(spec, &["ipFamilies", "ipFamilyPolicy"]);
    }
    let known_ports = node_ports(before);
    if has_node_ports(before) && !has_node_ports(spec) && node_ports(spec).iter().all(|port| known_ports.contains(port))
    {
        items(spec, "ports").for_each(|port| drop(port.remove("nodePort")));
    }
    if needs_health_check(before) && !needs_health_check(spec) {
        unset_if_same(spec, &["healthCheckNodePort"]);
    }
    if kind(before) == "LoadBalancer" && kind(spec) != "LoadBalancer" {
        unset_if_same(spec, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if is_external(before) && !is_external(spec) {
        unset_if_same(spec, &["externalTrafficPolicy"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_becomes_internal_loses_what_was_allocated() {
        let old = json!({"spec": {
            "type": "LoadBalancer", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "externalTrafficPolicy": "Cluster",
            "allocateLoadBalancerNodePorts": true, "ports": [{"port": 80, "nodePort": 30080}],
        }});
        let mut new = old.clone();
        new["spec"]["type"] = json!("ClusterIP");
        drop_what_the_type_lost(new["spec"].as_object_mut().unwrap(), old["spec"].as_object().unwrap());
        let left =
            json!({"type": "ClusterIP", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ports": [{"port": 80}]});
        assert_eq!(new["spec"], left);
    }

    #[test]
    fn defaults_follow_the_type() {
        let mut service =
            json!({"spec": {"ports": [{"port": 80, "targetPort": 0}], "sessionAffinityConfig": {"clientIP": {}}}});
        Services.set_defaults(&mut service);
        assert_eq!(
            service["spec"],
            json!({
                "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
                "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
            })
        );
    }
}
