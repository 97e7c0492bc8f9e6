//! The difference between the report and the object on the API server.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use koord_koordlet_framework::Node;
use koord_types::device::{DeviceInfo, VirtualFunction, VirtualFunctionGroup};
use serde_json::{Map, Value, json};

use super::{
    DeviceReport,
    names::{condition_message, condition_reason},
};
use crate::found::{FoundDevice, Health};

/// How the object becomes what the report says.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceChange {
    /// The whole object, which is not there.
    Create(Value),
    /// A merge patch.
    Patch(Value),
}

const API_VERSION: &str = "scheduling.koordinator.sh/v1alpha1";
const KIND: &str = "Device";
const HEALTHY: &str = "Healthy";
const HEALTHY_REASON: &str = "DeviceHealthy";
const HEALTHY_MESSAGE: &str = "device is healthy";
/// The minor number of a virtual function, which has none.
const NO_MINOR: i32 = -1;

impl DeviceReport {
    /// What is to be written; `None` when the live object says all of it. A node without devices has an object without devices.
    ///
    /// Labels and annotations of others stay, and so do labels, modules and conditions that others gave to devices. The transition time of a condition is
    /// `now` when its status changes, or is new.
    pub fn change(&self, node: &Node, live: Option<&Value>, now: Timestamp) -> Option<DeviceChange> {
        let live_devices = live.map(devices_of).unwrap_or_default();
        let devices: Vec<DeviceInfo> = self.devices.iter().map(|found| device(found, &live_devices, now)).collect();
        let Some(live) = live else {
            return self.object(node, &devices).map(DeviceChange::Create);
        };
        let mut patch = Map::new();
        let mut metadata = Map::new();
        for (field, wanted) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            let live = &live["metadata"][field];
            let differs = |name: &str, text: &Option<String>| live[name].as_str() != text.as_deref();
            let changes = wanted.iter().filter(|(name, text)| differs(name, text));
            let changes: Map<_, _> = changes.map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
            if !changes.is_empty() {
                metadata.insert(field.to_owned(), Value::Object(changes));
            }
        }
        if !metadata.is_empty() {
            patch.insert("metadata".to_owned(), Value::Object(metadata));
        }
        if !live_devices.iter().map(Option::as_ref).eq(devices.iter().map(Some)) {
            let devices = if devices.is_empty() { Value::Null } else { serde_json::to_value(&devices).ok()? };
            patch.insert("spec".to_owned(), json!({ "devices": devices }));
        }
        (!patch.is_empty()).then_some(DeviceChange::Patch(Value::Object(patch)))
    }

    fn object(&self, node: &Node, devices: &[DeviceInfo]) -> Option<Value> {
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": &*node.name, "uid": &*node.uid,
            "blockOwnerDeletion": true, "controller": true});
        let mut metadata = json!({"name": &*node.name, "ownerReferences": [owner]});
        for (field, wanted) in [("labels", &self.labels), ("annotations", &self.annotations)] {
            let set: Map<_, _> =
                wanted.iter().filter_map(|(name, text)| Some(((*name).to_owned(), json!(text.as_ref()?)))).collect();
            if !set.is_empty() {
                metadata[field] = Value::Object(set);
            }
        }
        let mut spec = json!({});
        if !devices.is_empty() {
            spec["devices"] = serde_json::to_value(devices).ok()?;
        }
        Some(json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec, "status": {}}))
    }
}

/// The devices of an object; `None` for one that is not understood.
fn devices_of(object: &Value) -> Vec<Option<DeviceInfo>> {
    let devices = object["spec"]["devices"].as_array();
    devices.into_iter().flatten().map(|device| serde_json::from_value(device.clone()).ok()).collect()
}

fn device(found: &FoundDevice, live: &[Option<DeviceInfo>], now: Timestamp) -> DeviceInfo {
    let is_same = |live: &&DeviceInfo| live.type_.as_ref() == Some(&found.type_) && live.id == found.id;
    let live = live.iter().flatten().find(is_same);
    let mut conditions = vec![condition(&found.health, live, now)];
    conditions
        .extend(live.into_iter().flat_map(|live| &live.conditions).filter(|other| other.type_ != HEALTHY).cloned());
    let functions = &found.virtual_functions.0;
    let functions: Vec<VirtualFunction> =
        functions.iter().map(|bus_id| VirtualFunction { minor: NO_MINOR, bus_id: bus_id.clone() }).collect();
    DeviceInfo {
        id: found.id.clone(),
        minor: Some(found.minor),
        module_id: live.and_then(|live| live.module_id),
        type_: Some(found.type_.clone()),
        labels: live.map(|live| live.labels.clone()).unwrap_or_default(),
        health: found.health.is_healthy(),
        resources: found.resources.clone(),
        topology: found.topology.clone(),
        vf_groups: if functions.is_empty() {
            Vec::new()
        } else {
            vec![VirtualFunctionGroup { vfs: functions, ..VirtualFunctionGroup::default() }]
        },
        conditions,
    }
}

fn condition(health: &Health, live: Option<&DeviceInfo>, now: Timestamp) -> Condition {
    let (status, reason, message) = match health {
        Health::Healthy => ("True", HEALTHY_REASON.to_owned(), HEALTHY_MESSAGE.to_owned()),
        Health::Unhealthy { reason, message } => ("False", condition_reason(reason), condition_message(message)),
    };
    let live = live.and_then(|live| live.conditions.iter().find(|live| live.type_ == HEALTHY));
    let same = live.filter(|live| live.status == status);
    Condition {
        last_transition_time: same.map_or(Time(now), |live| live.last_transition_time.clone()),
        observed_generation: live.and_then(|live| live.observed_generation),
        message,
        reason,
        status: status.to_owned(),
        type_: HEALTHY.to_owned(),
    }
}
