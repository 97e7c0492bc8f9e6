//! A device of a device file.

use koord_resource::{
    Quantity, ResourceList,
    go_json::{self, DecodeError},
    quantity::Format,
};
use koord_types::{
    device::DeviceTopology,
    resource_names::{GPU_CORE, GPU_MEMORY, GPU_MEMORY_RATIO},
};
use serde::Deserialize;

use crate::found::Health;

/// A device of a device file.
#[derive(Clone, Debug, PartialEq)]
pub struct XpuDevice {
    pub vendor: String,
    pub model: String,
    pub uuid: String,
    pub minor: i32,
    /// What the file lists, and a whole memory ratio.
    pub resources: ResourceList,
    pub topology: Option<DeviceTopology>,
    /// Groups of devices that are well connected, of which it is one.
    pub links: Vec<PeerLink>,
    /// Whether its vendor lets pods have whole groups only.
    pub must_honor_partition: bool,
    pub health: Health,
}

/// Devices with which a device is well connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerLink {
    /// The minor numbers of the others.
    pub peers: Vec<i32>,
    /// How they are connected, such as `HCCS`.
    pub kind: String,
}

/// Names that files may write without the domain.
const SHORT_NAMES: [(&str, &str); 2] = [("gpu-core", GPU_CORE), ("gpu-memory", GPU_MEMORY)];
const UNKNOWN_REASON: &str = "Unknown";
const UNHEALTHY: &str = "device is unhealthy";
const NO_SOCKET: i32 = -1;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    vendor: String,
    model: String,
    uuid: String,
    minor: String,
    resources: ResourceList,
    topology: Option<WireTopology>,
    status: Option<WireStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireTopology {
    #[serde(rename = "p2pLinks")]
    links: Vec<WireLink>,
    #[serde(rename = "mustHonorPartition")]
    must_honor_partition: bool,
    #[serde(rename = "socketID")]
    socket_id: String,
    #[serde(rename = "nodeID")]
    node_id: String,
    #[serde(rename = "pcieID")]
    pcie_id: String,
    #[serde(rename = "busID")]
    bus_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireLink {
    peer_minor: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireStatus {
    healthy: bool,
    err_code: String,
    err_message: String,
}

impl XpuDevice {
    /// Reads one element of a device file, by the rules of Go's decoder.
    ///
    /// # Errors
    ///
    /// What is wrong, with the field.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let wire: Wire = go_json::from_str(text).map_err(reason)?;
        let WireTopology { links, must_honor_partition, socket_id, node_id, pcie_id, bus_id } =
            wire.topology.unwrap_or_default();
        let is_located = [&socket_id, &node_id, &pcie_id, &bus_id].iter().any(|text| !text.is_empty());
        let topology = DeviceTopology {
            socket_id: number("topology.socketID", &socket_id, NO_SOCKET)?,
            // What belongs to no NUMA node counts to the first.
            node_id: number("topology.nodeID", &node_id, 0)?.max(0),
            pcie_id,
            bus_id,
        };
        let minor = wire.minor.parse().ok().filter(|minor: &i32| *minor >= 0);
        Ok(Self {
            minor: minor.ok_or_else(|| format!("minor is {:?}, not a number from 0 on", wire.minor))?,
            vendor: wire.vendor,
            model: wire.model,
            uuid: wire.uuid,
            resources: resources(&wire.resources)?,
            topology: is_located.then_some(topology),
            links: links.iter().filter_map(|link| link.read().transpose()).collect::<Result<_, _>>()?,
            must_honor_partition,
            health: wire.status.map_or(Health::Healthy, WireStatus::health),
        })
    }
}

/// Why an element is not decoded, with the path of the field.
fn reason(error: DecodeError) -> String {
    match error {
        DecodeError::Type { value, place, .. } => {
            let field = place.split_once('.').map_or("a device", |(_, field)| field);
            format!("{field} cannot be a JSON {value}")
        }
        error => error.to_string(),
    }
}

fn number(field: &str, text: &str, absent: i32) -> Result<i32, String> {
    if text.is_empty() {
        return Ok(absent);
    }
    text.parse().map_err(|_| format!("{field} is {text:?}, not a number"))
}

fn resources(listed: &ResourceList) -> Result<ResourceList, String> {
    let mut resources: ResourceList = [(GPU_MEMORY_RATIO, Quantity::new(100, Format::DecimalSI))].into_iter().collect();
    for (name, amount) in listed {
        if *amount < Quantity::ZERO {
            return Err(format!("resources.{name} is {amount}, less than nothing"));
        }
        let long = SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name, |(_, long)| long);
        resources.insert(long, amount.clone());
    }
    Ok(resources)
}

impl WireLink {
    /// `None` of a link without peers or kind.
    fn read(&self) -> Result<Option<PeerLink>, String> {
        if self.peer_minor.is_empty() || self.kind.is_empty() {
            return Ok(None);
        }
        let peer = |text: &str| text.trim().parse().ok().filter(|minor: &i32| *minor >= 0);
        let peers: Option<Vec<i32>> = self.peer_minor.split(',').map(peer).collect();
        let wrong = || format!("topology.p2pLinks.peerMinor is {:?}, not numbers with commas", self.peer_minor);
        Ok(Some(PeerLink { peers: peers.ok_or_else(wrong)?, kind: self.kind.clone() }))
    }
}

impl WireStatus {
    fn health(self) -> Health {
        if self.healthy {
            return Health::Healthy;
        }
        let or = |text: String, absent: &str| if text.is_empty() { absent.to_owned() } else { text };
        Health::unhealthy(or(self.err_code, UNKNOWN_REASON), or(self.err_message, UNHEALTHY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_with_all_fields_is_read() {
        let text = r#"{"vendor":"huawei","model":"Ascend-910B","uuid":"u","minor":"0","resources":{"huawei.com/npu-core":"32","gpu-memory":"32Gi",
            "gpu-core":"100","koordinator.sh/other":"1"},"topology":{"p2pLinks":[{"peerMinor":"1,2, 3","type":"HCCS"},{"type":"HCCS"},{"peerMinor":"1"}],
            "mustHonorPartition":true,"socketID":"0","nodeID":"-1","pcieID":"pci0000:00","busID":"0000:00:08.0"},"status":{"healthy":true}}"#;
        let device = XpuDevice::read(text).unwrap();
        let amounts: Vec<_> = device.resources.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        let expected = [
            "huawei.com/npu-core=32",
            "koordinator.sh/gpu-core=100",
            "koordinator.sh/gpu-memory=32Gi",
            "koordinator.sh/gpu-memory-ratio=100",
            "koordinator.sh/other=1",
        ];
        assert_eq!(amounts, expected);
        assert_eq!(device.links, [PeerLink { peers: vec![1, 2, 3], kind: "HCCS".into() }]);
        let topology = device.topology.unwrap();
        assert_eq!((topology.socket_id, topology.node_id), (0, 0), "NUMA node -1 is the first");
        assert_eq!((topology.pcie_id.as_str(), topology.bus_id.as_str()), ("pci0000:00", "0000:00:08.0"));
        assert!(device.must_honor_partition && device.health.is_healthy());
    }

    #[test]
    fn what_is_absent_has_its_default() {
        let device = XpuDevice::read(r#"{"minor":"7"}"#).unwrap();
        assert_eq!((device.minor, device.topology, device.health), (7, None, Health::Healthy));
        let unhealthy =
            |status: &str| XpuDevice::read(&format!(r#"{{"minor":"0","status":{status}}}"#)).unwrap().health;
        assert_eq!(unhealthy(r#"{"healthy":false}"#), Health::unhealthy("Unknown", "device is unhealthy"));
        assert_eq!(unhealthy(r#"{"errCode":"12","errMessage":"broken"}"#), Health::unhealthy("12", "broken"));
        let socket = XpuDevice::read(r#"{"minor":"0","topology":{"nodeID":"1"}}"#).unwrap().topology.unwrap().socket_id;
        assert_eq!(socket, -1);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        for (text, expected) in [
            (r#"{"minor":1}"#, "minor cannot be a JSON number"),
            (r#"{"minor":"a"}"#, r#"minor is "a", not a number from 0 on"#),
            (r#"{"uuid":"u"}"#, r#"minor is "", not a number from 0 on"#),
            (r#"{"minor":"-1"}"#, r#"minor is "-1", not a number from 0 on"#),
            (r#"{"minor":"0","topology":{"nodeID":1}}"#, "topology.nodeID cannot be a JSON number"),
            (r#"{"minor":"0","topology":{"nodeID":"x"}}"#, r#"topology.nodeID is "x", not a number"#),
            (r#"{"minor":"0","resources":{"gpu-core":"-1"}}"#, "resources.gpu-core is -1, less than nothing"),
            (r#"{"minor":"0","resources":{"gpu-core":"x"}}"#, "quantities must match"),
            (
                r#"{"minor":"0","topology":{"p2pLinks":[{"peerMinor":"1;2","type":"t"}]}}"#,
                r#"topology.p2pLinks.peerMinor is "1;2", not numbers with commas"#,
            ),
            ("3", "a device cannot be a JSON number"),
        ] {
            let error = XpuDevice::read(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
