//! The devices, CPUs and NUMA nodes of a node, what is free of them, and which pods have the rest.

use anyhow::{Result, bail};
use koord_program::{
    connect, files,
    listing::{self, Part},
    output::{Answer, OutputFormat},
    permission::Missing,
    screen::Screen,
    table, units,
};
use koord_resource::{Resource as _, ResourceList, controller::ResourceKind};
use koord_scheduling::{DeviceId, NodeDevice};
use koord_types::{device::Device, node_resource_topology::v1alpha1::NodeResourceTopology};
use serde_json::{Map, Value, json};

use crate::{
    AllocationOptions,
    allocations::{Allocations, NodeAllocations},
};

/// What is free of a node, and which pods have the rest.
pub async fn explain(options: &AllocationOptions<'_>, screen: Screen) -> Result<Answer> {
    let node = gather(options).await?.of_node(options.node);
    if node.is_empty() {
        bail!(
            "nothing is known of devices, CPUs and NUMA nodes of {}: there is no Device and no NodeResourceTopology of that name; does koordlet run there?",
            options.node
        );
    }
    Ok(Answer::success(match options.output {
        OutputFormat::Table => text(&node, screen),
        format => format.document(&document(options.node, &node))?,
    }))
}

async fn gather(options: &AllocationOptions<'_>) -> Result<Allocations> {
    let mut allocations = Allocations::default();
    if !options.files.is_empty() {
        let objects = files::objects(options.files)?;
        for kind in Allocations::KINDS {
            for object in objects.iter().filter(|object| object["kind"] == kind) {
                allocations.add(kind, &object.to_string())?;
            }
        }
        return Ok(allocations);
    }
    let client = connect::client(&options.cluster).await?;
    let mut missing = Missing::default();
    for info in [Device::INFO, NodeResourceTopology::INFO] {
        match koord_program::listing::get(&client, &ResourceKind::of(&info).url_path("", Some(options.node))).await {
            Ok(Some(object)) => allocations.add(info.kind, &object.to_string())?,
            Ok(None) => {}
            Err(error) => missing.note(error)?,
        }
    }
    let query = listing::query(&format!("spec.nodeName={}", options.node), "");
    let path = ResourceKind::POD.url_path("", None);
    let pods = listing::each(&client, &path, &query, Part::Whole, |pod| allocations.add("Pod", pod));
    if let Err(error) = pods.await {
        missing.note(error)?;
    }
    missing.none()?;
    Ok(allocations)
}

fn text(node: &NodeAllocations, screen: Screen) -> String {
    let mut text = String::new();
    let mut section = |head: &[&str], rows: Vec<Vec<String>>| {
        if rows.is_empty() {
            return;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let head = head.iter().map(|word| (*word).to_owned()).collect();
        text.push_str(&table::lines(&[vec![head], rows].concat(), screen));
    };
    let devices = node.devices.iter().flat_map(|(id, device)| rows_of_device(id, device));
    section(&["DEVICE", "HEALTH", "NUMA", "RESOURCE", "TOTAL", "FREE", "ALLOCATED"], devices.collect());
    let zones = node.numa.numa_nodes().into_iter().flat_map(|numa| {
        let cpus = node.numa.topology.nodes().find(|(number, _)| *number == numa).map(|(_, cpus)| {
            vec![numa.to_string(), "CPUs".to_owned(), cpus.to_string(), or_none(&node.numa.free_cpus(numa).to_string())]
        });
        let free = node.numa.free(numa);
        let total = node.numa.zones.get(&numa).cloned().unwrap_or_default();
        let amounts: Vec<Vec<String>> = total
            .iter()
            .map(|(name, amount)| {
                let free = units::amount(name, free.amount(name));
                vec![numa.to_string(), name.to_owned(), units::amount(name, amount), free]
            })
            .collect();
        cpus.into_iter().chain(amounts)
    });
    section(&["NUMA", "RESOURCE", "TOTAL", "FREE"], zones.collect());
    let pods = node.numa.cpus_of_pods().map(|(pod, cpus)| vec![pod.to_owned(), cpus.to_string()]);
    section(&["POD", "CPUS"], pods.collect());
    let conflicts = node.conflicts();
    if !conflicts.is_empty() && !text.is_empty() {
        text.push('\n');
    }
    for conflict in conflicts {
        text.push_str(&screen.wrapped(&format!("conflict: {conflict}"), "", "  "));
        text.push('\n');
    }
    text
}

/// A row per resource; one without a resource where a device has none.
fn rows_of_device(id: &DeviceId, device: &NodeDevice) -> Vec<Vec<String>> {
    let (used, free) = (device.used(), device.free());
    let total = device.reported.as_ref().map(|reported| reported.resources.clone()).unwrap_or_default();
    let health = match &device.reported {
        None => "unknown",
        Some(reported) if reported.is_healthy => "healthy",
        Some(_) => "unhealthy",
    };
    let numa = device.reported.as_ref().and_then(|reported| reported.numa_node);
    let head = [
        format!("{} {}", id.type_, id.minor),
        health.to_owned(),
        numa.map_or_else(|| "-".to_owned(), |numa| numa.to_string()),
    ];
    let names = total.plus(&used);
    if names.is_empty() {
        return vec![[head.as_slice(), &["-", "-", "-", "-"].map(str::to_owned)].concat()];
    }
    let row = |name: &str| {
        let amount =
            |list: &ResourceList| list.get(name).map_or_else(|| "-".to_owned(), |amount| units::amount(name, amount));
        let pods = device.allocations.iter().filter(|(_, share)| share.contains(name));
        let pods: Vec<String> =
            pods.map(|(pod, share)| format!("{pod} {}", units::amount(name, share.amount(name)))).collect();
        let columns = [name.to_owned(), amount(&total), amount(&free), or_none(&pods.join(", "))];
        [head.as_slice(), &columns].concat()
    };
    names.names().map(row).collect()
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

fn document(name: &str, node: &NodeAllocations) -> Value {
    let devices = node.devices.iter().map(|(id, device)| {
        json!({
            "type": id.type_, "minor": id.minor,
            "healthy": device.reported.as_ref().map(|reported| reported.is_healthy),
            "numaNode": device.reported.as_ref().and_then(|reported| reported.numa_node),
            "total": device.total(), "free": device.free(), "allocations": device.allocations,
        })
    });
    let numa_nodes = node.numa.numa_nodes().into_iter().map(|numa| {
        let cpus = node.numa.topology.nodes().find(|(number, _)| *number == numa).map(|(_, cpus)| cpus.to_string());
        json!({
            "numaNode": numa, "cpus": cpus, "freeCpus": node.numa.free_cpus(numa).to_string(),
            "total": node.numa.zones.get(&numa), "free": node.numa.free(numa),
        })
    });
    let cpus: Map<String, Value> =
        node.numa.cpus_of_pods().map(|(pod, cpus)| (pod.to_owned(), cpus.to_string().into())).collect();
    json!({
        "node": name, "devices": devices.collect::<Value>(), "numaNodes": numa_nodes.collect::<Value>(),
        "cpusOfPods": cpus, "conflicts": node.conflicts(),
    })
}
