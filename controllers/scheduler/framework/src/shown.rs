//! The shapes that answers about the scheduler's state have in common. They are those of Go: amounts of a node are a
//! `framework.Resource`, amounts of anything else a `ResourceList`, and sets are objects whose members are empty objects.

use std::collections::BTreeMap;

use jiff::Timestamp;
use koord_resource::{ResourceList, quantity::Format};
use koord_scheduling::quantity;
use serde_json::{Map, Value, json};

use crate::{host_ports::HostPort, node::Node, pod::Pod};

/// A time that is not set.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// Amounts as a `framework.Resource`: thousandths of cores of cpu, whole units of everything else.
pub fn resource<'a>(amounts: impl IntoIterator<Item = (&'a str, i64)>) -> Value {
    let mut shown =
        json!({"MilliCPU": 0, "Memory": 0, "EphemeralStorage": 0, "AllowedPodNumber": 0, "ScalarResources": null});
    for (name, amount) in amounts {
        match name {
            "cpu" => shown["MilliCPU"] = amount.into(),
            "memory" => shown["Memory"] = amount.into(),
            "ephemeral-storage" => shown["EphemeralStorage"] = amount.into(),
            "pods" => shown["AllowedPodNumber"] = amount.into(),
            scalar => shown["ScalarResources"][scalar] = amount.into(),
        }
    }
    shown
}

/// The same amounts as quantities.
pub fn quantities<'a>(amounts: impl IntoIterator<Item = (&'a str, i64)>) -> ResourceList {
    amounts.into_iter().map(|(name, amount)| (name, quantity(name, amount, format(name)))).collect()
}

/// With which suffixes amounts of a resource are usually written.
fn format(name: &str) -> Format {
    let is_of_bytes = matches!(name, "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if is_of_bytes { Format::BinarySI } else { Format::DecimalSI }
}

/// Ports of a node, by its addresses.
pub fn ports<'a>(ports: impl IntoIterator<Item = &'a HostPort>) -> Value {
    let mut by_address: BTreeMap<&str, Vec<&HostPort>> = BTreeMap::new();
    for port in ports {
        by_address.entry(&port.address).or_default().push(port);
    }
    let listed = |mut ports: Vec<&HostPort>| -> Value {
        ports.sort_by_key(|port| (&port.protocol, port.port));
        ports.dedup();
        ports.iter().map(|port| json!({"Protocol": *port.protocol, "Port": port.port})).collect()
    };
    by_address.into_iter().map(|(address, ports)| (address.to_owned(), listed(ports))).collect()
}

/// A pod as an object of the API, with what is known of it.
pub fn pod(pod: &Pod, node: Option<&str>) -> Value {
    let template = &pod.template;
    let metadata = json!({
        "name": pod.key.name(), "namespace": pod.key.namespace(), "uid": pod.uid.to_string(),
        "creationTimestamp": time(Some(pod.created)), "labels": template.labels.iter().collect::<BTreeMap<_, _>>(),
    });
    json!({
        "metadata": without_empty(metadata),
        "spec": without_empty(json!({
            "nodeName": node, "schedulerName": *template.scheduler, "priority": template.priority,
        })),
    })
}

/// A node as an object of the API, with what is known of it.
pub fn node(node: &Node) -> Value {
    let mut images: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for (name, size) in &node.images {
        images.entry(*size).or_default().push(name);
    }
    let images: Vec<Value> =
        images.into_iter().map(|(size, names)| json!({"names": names, "sizeBytes": size})).collect();
    let labels: BTreeMap<_, _> = node.labels.iter().collect();
    let annotations: BTreeMap<_, _> = node.annotations.iter().collect();
    json!({
        "metadata": without_empty(json!({"name": *node.name, "labels": labels, "annotations": annotations})),
        "spec": without_empty(json!({"unschedulable": node.unschedulable, "taints": node.taints})),
        "status": without_empty(json!({"allocatable": node.allocatable, "images": images})),
    })
}

/// Seconds since 1970 as a time.
pub fn time(seconds: Option<i64>) -> String {
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| NEVER.to_owned(), |time| time.to_string())
}

/// A set of names.
pub fn set(names: impl IntoIterator<Item = String>) -> Value {
    names.into_iter().map(|name| (name, json!({}))).collect::<Map<_, _>>().into()
}

/// An object without the members that say nothing, as Go leaves them out where they are declared with `omitempty`.
pub fn without_empty(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| match value {
            Value::Null => false,
            Value::Bool(is_set) => *is_set,
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::String(text) => !text.is_empty(),
            Value::Array(list) => !list.is_empty(),
            Value::Object(members) => !members.is_empty(),
        });
    }
    object
}

#[cfg(test)]
mod tests {
    use koord_core::{key::ObjectKey, uid::Uid};

    use super::*;

    #[test]
    fn amounts_are_those_of_the_framework_or_quantities() {
        let amounts = [("cpu", 1500), ("memory", 1 << 30), ("pods", 110), ("example.com/x", 2000)];
        assert_eq!(
            resource(amounts),
            json!({
                "MilliCPU": 1500, "Memory": 1 << 30, "EphemeralStorage": 0, "AllowedPodNumber": 110,
                "ScalarResources": {"example.com/x": 2000},
            })
        );
        assert_eq!(resource([])["ScalarResources"], json!(null));
        assert_eq!(
            json!(quantities(amounts)),
            json!({"cpu": "1500m", "example.com/x": "2k", "memory": "1Gi", "pods": "110"})
        );
    }

    #[test]
    fn ports_are_listed_by_address() {
        let port =
            |address: &str, protocol: &str, port| HostPort { port, protocol: protocol.into(), address: address.into() };
        let known = [port("0.0.0.0", "UDP", 53), port("10.0.0.1", "TCP", 80), port("0.0.0.0", "TCP", 443)];
        assert_eq!(
            ports(&known),
            json!({
                "0.0.0.0": [{"Protocol": "TCP", "Port": 443}, {"Protocol": "UDP", "Port": 53}],
                "10.0.0.1": [{"Protocol": "TCP", "Port": 80}],
            })
        );
    }

    #[test]
    fn objects_have_what_is_known_of_them() {
        let known = Pod { key: ObjectKey::new("ns", "a"), uid: Uid::from("u"), created: 60, ..Pod::default() };
        let metadata = json!({"name": "a", "namespace": "ns", "uid": "u", "creationTimestamp": "1970-01-01T00:01:00Z"});
        assert_eq!(pod(&known, Some("n1")), json!({"metadata": metadata, "spec": {"nodeName": "n1"}}));
        let known = Node {
            name: "n1".into(),
            labels: [("zone", "a")].into_iter().collect(),
            unschedulable: true,
            allocatable: quantities([("cpu", 4000)]),
            images: [("i:1".into(), 7), ("i@sha".into(), 7)].into(),
            ..Node::default()
        };
        assert_eq!(
            node(&known),
            json!({
                "metadata": {"name": "n1", "labels": {"zone": "a"}},
                "spec": {"unschedulable": true},
                "status": {"allocatable": {"cpu": "4"}, "images": [{"names": ["i:1", "i@sha"], "sizeBytes": 7}]},
            })
        );
        assert_eq!((time(None), set(["x".to_owned()])), (NEVER.to_owned(), json!({"x": {}})));
    }
}
