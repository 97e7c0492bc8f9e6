//! What in objects can be read and hardly does what was meant, beside their labels and annotations.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use koord_resource::{Duration, ResourceList, yaml};
use koord_scheduling::Selector;
use serde::Deserialize as _;

use super::doubt::Doubt;
use crate::{
    cluster_network_topology::{CLUSTER_LAYER, ClusterNetworkTopology, NODE_LAYER, NetworkTopologySpec},
    device::{Device, DeviceInfo, DeviceType},
    elastic_quota::ElasticQuota,
    pod_group::PodGroup,
    reservation::Reservation,
};

/// The key of a ConfigMap under which the templates of GPUs stand.
const TEMPLATES: &str = "data.yaml";

/// Devices that cannot be allocated, that contradict each other, or that have less than nothing.
pub fn of_device(device: &Device) -> Vec<Doubt> {
    let devices = &device.spec.devices;
    let mut doubts = Vec::new();
    for (index, info) in devices.iter().enumerate() {
        let at = |field: &str| format!("spec.devices[{index}].{field}");
        let mut say = |field: &str, problem: String, remedy: &str| doubts.push(Doubt::new(at(field), problem, remedy));
        match &info.type_ {
            Some(DeviceType::Other(other)) => {
                say("type", format!("{other:?} is not known"), "expected gpu, fpga or rdma");
            }
            Some(_) => {}
            None => say("type", "is missing".to_owned(), "the device is left out; expected gpu, fpga or rdma"),
        }
        match info.minor {
            None => say("minor", "is missing".to_owned(), "the device is left out; expected a number"),
            Some(minor) if minor < 0 => {
                say("minor", format!("{minor} is negative"), "expected a number of at least 0");
            }
            Some(minor) => {
                let is_same = |other: &DeviceInfo| other.minor == info.minor && other.type_ == info.type_;
                if devices[..index].iter().any(is_same) {
                    say("minor", format!("another device of the type has {minor}"), "give each device its own");
                }
            }
        }
        negative(&at("resources"), &info.resources, &mut doubts);
    }
    doubts
}

/// Amounts of a quota that are negative.
pub fn of_elastic_quota(quota: &ElasticQuota) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    negative("spec.min", &quota.spec.min, &mut doubts);
    negative("spec.max", &quota.spec.max, &mut doubts);
    doubts
}

/// Numbers of a group that are negative.
pub fn of_pod_group(group: &PodGroup) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let timeout = group.spec.schedule_timeout_seconds.unwrap_or_default();
    for (field, number) in [("spec.minMember", group.spec.min_member), ("spec.scheduleTimeoutSeconds", timeout)] {
        if number < 0 {
            let problem = format!("{number} is negative");
            doubts.push(Doubt::new(field.to_owned(), problem, "expected a number of at least 0"));
        }
    }
    negative("spec.minResources", &group.spec.min_resources, &mut doubts);
    doubts
}

/// A template that is none, a lifetime that is none, and owners whose selector cannot be parsed.
pub fn of_reservation(reservation: &Reservation) -> Vec<Doubt> {
    let spec = &reservation.spec;
    let mut doubts = Vec::new();
    let mut say = |field: String, problem: String, remedy: &str| doubts.push(Doubt::new(field, problem, remedy));
    if let Err(error) = spec.pod_template() {
        say("spec.template".to_owned(), error.to_string(), "expected the template of a pod");
    }
    if let Some(ttl) = spec.ttl.as_deref().filter(|ttl| ttl.parse::<Duration>().is_err()) {
        say("spec.ttl".to_owned(), format!("{ttl:?} is no duration"), "expected one such as 24h");
    }
    if spec.owners.is_empty() {
        say("spec.owners".to_owned(), "is empty".to_owned(), "name the pods that may use the Reservation");
    }
    for (index, owner) in spec.owners.iter().enumerate() {
        if let Some(Err(error)) = owner.label_selector.as_ref().map(Selector::new) {
            let field = format!("spec.owners[{index}].labelSelector");
            say(field, error.to_string(), "no pod can use the Reservation until it is corrected");
        }
    }
    doubts
}

/// Layers that are named twice, that are below a layer which does not exist, or that do not lead to the nodes.
pub fn of_network_topology(topology: &ClusterNetworkTopology) -> Vec<Doubt> {
    let layers = &topology.spec.network_topology_spec;
    let mut doubts = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        let mut say = |field: &str, problem: String, remedy: &str| {
            doubts.push(Doubt::new(format!("spec.networkTopologySpec[{index}].{field}"), problem, remedy));
        };
        let (name, parent) = (&layer.topology_layer, &layer.parent_topology_layer);
        let is_declared = layers.iter().any(|other| other.topology_layer == *parent);
        if !is_declared && !matches!(parent.as_str(), "" | CLUSTER_LAYER) {
            say("parentTopologyLayer", format!("there is no layer {parent:?}"), "name a layer of the list");
        }
        if layers[..index].iter().any(|before| before.topology_layer == *name) {
            say("topologyLayer", format!("{name:?} is declared already"), "give each layer its own name");
        }
    }
    if doubts.is_empty() && !leads_to_nodes(layers) {
        let problem = format!("the layers do not lead from {CLUSTER_LAYER} to {NODE_LAYER}");
        doubts.push(Doubt::new(
            "spec.networkTopologySpec".to_owned(),
            problem,
            "gangs with a network topology wait until it is corrected",
        ));
    }
    doubts
}

fn leads_to_nodes(layers: &[NetworkTopologySpec]) -> bool {
    let mut name = NODE_LAYER;
    for _ in layers {
        let Some(layer) = layers.iter().find(|layer| layer.topology_layer == name) else { return false };
        match layer.parent_topology_layer.as_str() {
            "" | CLUSTER_LAYER => return true,
            parent => name = parent,
        }
    }
    false
}

/// Templates of GPUs that cannot be read, or that have less than nothing. Without the key there are none.
pub fn of_gpu_templates(map: &ConfigMap) -> Vec<Doubt> {
    let Some(text) = map.data.as_ref().and_then(|data| data.get(TEMPLATES)) else { return Vec::new() };
    let unreadable = |problem: String| {
        let remedy = "no template counts until it is corrected; expected amounts by model and template";
        vec![Doubt::new(format!("data[{TEMPLATES}]"), problem, remedy)]
    };
    let value = match yaml::parse(text) {
        Ok(value) => value,
        Err(error) => return unreadable(error.to_string()),
    };
    match BTreeMap::<String, BTreeMap<String, ResourceList>>::deserialize(value) {
        Ok(models) => {
            let mut doubts = Vec::new();
            for (model, templates) in &models {
                for (name, amounts) in templates {
                    negative(&format!("data[{TEMPLATES}].{model}.{name}"), amounts, &mut doubts);
                }
            }
            doubts
        }
        Err(error) => unreadable(error.to_string()),
    }
}

fn negative(at: &str, amounts: &ResourceList, doubts: &mut Vec<Doubt>) {
    for (name, amount) in amounts.iter().filter(|(_, amount)| amount.is_negative()) {
        let problem = format!("{amount} is negative");
        doubts.push(Doubt::new(format!("{at}[{name}]"), problem, "expected an amount of at least 0"));
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn said<T: DeserializeOwned>(doubts: fn(&T) -> Vec<Doubt>, object: Value) -> Vec<String> {
        doubts(&serde_json::from_value(object).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn devices_that_cannot_be_allocated_or_contradict_each_other_are_found() {
        let devices = json!([
            {"type": "gpu", "minor": 0, "health": true, "resources": {"koordinator.sh/gpu-core": "100"}},
            {"type": "gpu", "minor": 0, "health": true, "resources": {"koordinator.sh/gpu-core": "-1"}},
            {"type": "rdma", "minor": 0, "health": true},
            {"type": "tpu", "minor": -1, "health": true},
            {"health": true},
        ]);
        let device = json!({"metadata": {"name": "n"}, "spec": {"devices": devices}});
        assert_eq!(
            said(of_device, device),
            [
                "spec.devices[1].minor: another device of the type has 0; give each device its own",
                "spec.devices[1].resources[koordinator.sh/gpu-core]: -1 is negative; expected an amount of at least 0",
                r#"spec.devices[3].type: "tpu" is not known; expected gpu, fpga or rdma"#,
                "spec.devices[3].minor: -1 is negative; expected a number of at least 0",
                "spec.devices[4].type: is missing; the device is left out; expected gpu, fpga or rdma",
                "spec.devices[4].minor: is missing; the device is left out; expected a number",
            ]
        );
    }

    #[test]
    fn negative_numbers_of_quotas_and_groups_are_found() {
        let quota = json!({"metadata": {"name": "q"}, "spec": {"min": {"cpu": "-1"}, "max": {"cpu": "4"}}});
        assert_eq!(said(of_elastic_quota, quota), ["spec.min[cpu]: -1 is negative; expected an amount of at least 0"]);
        let group = json!({"metadata": {"name": "g"}, "spec": {"minMember": -2, "minResources": {"cpu": "1"}}});
        assert_eq!(said(of_pod_group, group), ["spec.minMember: -2 is negative; expected a number of at least 0"]);
    }

    #[test]
    fn a_reservation_that_nobody_can_use_is_found() {
        let selector = json!({"matchExpressions": [{"key": "k", "operator": "Near"}]});
        let spec = |owners: Value| json!({"template": {"spec": {"containers": []}}, "owners": owners, "ttl": "soon"});
        let reservation = |owners| json!({"metadata": {"name": "r"}, "spec": spec(owners)});
        assert_eq!(
            said(of_reservation, reservation(json!([]))),
            [
                r#"spec.ttl: "soon" is no duration; expected one such as 24h"#,
                "spec.owners: is empty; name the pods that may use the Reservation",
            ]
        );
        let found = said(of_reservation, reservation(json!([{"labelSelector": selector}])));
        let start = "spec.owners[0].labelSelector: ";
        assert!(found.len() == 2 && found[1].starts_with(start) && found[1].contains("Near"), "{found:?}");
    }

    #[test]
    fn layers_that_do_not_lead_to_the_nodes_are_found() {
        let topology =
            |layers: Value| json!({"metadata": {"name": "default"}, "spec": {"networkTopologySpec": layers}});
        let layer = |name: &str, parent: &str| json!({"topologyLayer": name, "parentTopologyLayer": parent});
        let right = json!([layer("Spine", ""), layer(NODE_LAYER, "Spine")]);
        assert_eq!(said(of_network_topology, topology(right)), [""; 0]);
        let wrong = json!([layer("Spine", ""), layer("Spine", CLUSTER_LAYER), layer(NODE_LAYER, "Rack")]);
        assert_eq!(
            said(of_network_topology, topology(wrong)),
            [
                r#"spec.networkTopologySpec[1].topologyLayer: "Spine" is declared already; give each layer its own name"#,
                r#"spec.networkTopologySpec[2].parentTopologyLayer: there is no layer "Rack"; name a layer of the list"#,
            ]
        );
        let circle = json!([layer("Spine", NODE_LAYER), layer(NODE_LAYER, "Spine")]);
        for layers in [circle, json!([layer("Spine", "")])] {
            let found = said(of_network_topology, topology(layers));
            assert!(found.len() == 1 && found[0].contains("do not lead from"), "{found:?}");
        }
    }

    #[test]
    fn templates_of_gpus_that_cannot_be_read_are_found() {
        let templates = |text: &str| said(of_gpu_templates, json!({"data": {"data.yaml": text}}));
        assert_eq!(templates("huawei-910B:\n  small:\n    huawei.com/npu-core: 3\n"), [""; 0]);
        assert_eq!(
            templates("huawei-910B:\n  small:\n    huawei.com/npu-core: -3\n"),
            [
                "data[data.yaml].huawei-910B.small[huawei.com/npu-core]: -3 is negative; expected an amount of at least 0"
            ]
        );
        for text in ["a: [", "huawei-910B: 5\n"] {
            let found = templates(text);
            assert!(found.len() == 1 && found[0].starts_with("data[data.yaml]: "), "{found:?}");
        }
        assert_eq!(said(of_gpu_templates, json!({})), [""; 0]);
    }
}
