//! Devices of nodes in few words. `gpu0@1/a` is GPU 0 on NUMA node 1 and PCIe switch `a`; `!` after the number says that it is
//! unhealthy, `[b]` after the place that its label `t` is `b`, `+f1+f2` that it has these virtual functions, `=fast` after them
//! that the label `type` of their group is `fast` instead of `general`.

use koord_types::device::Device;
use serde_json::{Value, json};

/// The report of a node `n` with these devices.
pub fn report(devices: &str) -> Device {
    let devices: Vec<Value> = devices.split_whitespace().map(device).collect();
    serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {"devices": devices}})).unwrap()
}

/// Resources in few words: `gpu-core=50 nvidia.com/gpu=1`, those without a domain of Koordinator's.
pub fn list(text: &str) -> Value {
    let resource = |word: &str| {
        let (name, amount) = word.split_once('=').unwrap();
        let name = if name.contains('/') { name.to_owned() } else { format!("koordinator.sh/{name}") };
        (name, Value::from(amount))
    };
    text.split_whitespace().map(resource).collect::<serde_json::Map<_, _>>().into()
}

fn device(word: &str) -> Value {
    let (word, group) = word.split_once('=').unwrap_or((word, "general"));
    let mut parts = word.split('+');
    let (word, label) =
        parts.next().map(|word| word.trim_end_matches(']').split_once('[').unwrap_or((word, ""))).unwrap();
    let functions: Vec<Value> = parts.map(|bus_id| json!({"minor": 0, "busID": bus_id})).collect();
    let (word, place) = word.split_once('@').unwrap_or((word, ""));
    let (name, is_healthy) = word.strip_suffix('!').map_or((word, true), |name| (name, false));
    let (type_, minor) = numbered(name);
    let resources = match type_ {
        "gpu" => list("gpu-core=100 gpu-memory=80Gi gpu-memory-ratio=100"),
        type_ => list(&format!("{type_}=100")),
    };
    let mut device = json!({
        "type": type_,
        "minor": minor,
        "id": format!("{}-{minor}", type_.to_uppercase()),
        "health": is_healthy,
        "resources": resources,
        "labels": {"t": label},
    });
    if let Some((numa_node, pcie)) = place.split_once('/') {
        device["topology"] = json!({"socketID": 0, "nodeID": numa_node.parse::<i32>().unwrap(), "pcieID": pcie});
    }
    if !functions.is_empty() {
        device["vfGroups"] = json!([{"labels": {"type": group}, "vfs": functions}]);
    }
    device
}

/// The type and the minor number of a device such as `gpu0`.
pub fn numbered(name: &str) -> (&str, i32) {
    let at = name.find(|letter: char| letter.is_ascii_digit()).unwrap();
    (&name[..at], name[at..].parse().unwrap())
}
