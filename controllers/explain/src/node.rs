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
use koord_scheduler_allocation::devices::{Device as NodeDevice, DeviceAmounts, Kind};
use koord_types::{device::Device, node_resource_topology::v1alpha1::NodeResourceTopology};
use serde_json::{Map, Value, json};

use crate::{
    AllocationOptions,
    allocations::{Allocations, OnNode},
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

fn text(node: &OnNode, screen: Screen) -> String {
    let allocations = &node.allocations;
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
    let devices = allocations.all_devices().flat_map(|(kind, minor, device)| {
        let shares: Vec<(&str, DeviceAmounts)> = allocations.shares_of(kind, minor).collect();
        rows_of_device((kind, minor), device, &shares)
    });
    section(&["DEVICE", "HEALTH", "NUMA", "RESOURCE", "TOTAL", "FREE", "ALLOCATED"], devices.collect());
    let zones = allocations.numa_nodes().into_iter().flat_map(|numa| {
        let cpus = allocations.cpus(numa).map(|cpus| {
            let free = allocations.free_cpus(numa).to_string();
            vec![numa.to_string(), "CPUs".to_owned(), cpus.to_string(), or_none(&free)]
        });
        let (total, free) = allocations.zone(numa).unwrap_or_default();
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
    let pods = allocations.cpus_of_pods().map(|(pod, cpus)| vec![pod.to_owned(), cpus.to_string()]);
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
fn rows_of_device(
    (kind, minor): (Kind, i32),
    device: &NodeDevice,
    shares: &[(&str, DeviceAmounts)],
) -> Vec<Vec<String>> {
    let (total, used, free) = (device.total.list(), device.used.list(), device.free().list());
    let shares: Vec<(&str, ResourceList)> = shares.iter().map(|(pod, amounts)| (*pod, amounts.list())).collect();
    let health = match is_healthy(device) {
        None => "unknown",
        Some(true) => "healthy",
        Some(false) => "unhealthy",
    };
    let head = [
        format!("{kind} {minor}"),
        health.to_owned(),
        numa_node(device).map_or_else(|| "-".to_owned(), |numa| numa.to_string()),
    ];
    let names = total.plus(&used);
    if names.is_empty() {
        return vec![[head.as_slice(), &["-", "-", "-", "-"].map(str::to_owned)].concat()];
    }
    let row = |name: &str| {
        let amount =
            |list: &ResourceList| list.get(name).map_or_else(|| "-".to_owned(), |amount| units::amount(name, amount));
        let pods = shares.iter().filter(|(_, share)| share.contains(name));
        let pods: Vec<String> =
            pods.map(|(pod, share)| format!("{pod} {}", units::amount(name, share.amount(name)))).collect();
        let columns = [name.to_owned(), amount(&total), amount(&free), or_none(&pods.join(", "))];
        [head.as_slice(), &columns].concat()
    };
    names.names().map(row).collect()
}

/// Whether the node reports the device as healthy; none where it does not report it.
fn is_healthy(device: &NodeDevice) -> Option<bool> {
    device.is_reported.then_some(!device.is_unhealthy)
}

/// The NUMA node of a device, where it is near one alone.
fn numa_node(device: &NodeDevice) -> Option<i32> {
    device.place.as_ref().map(|place| place.numa_node).filter(|number| *number >= 0)
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

fn document(name: &str, node: &OnNode) -> Value {
    let allocations = &node.allocations;
    let devices = allocations.all_devices().map(|(kind, minor, device)| {
        let shares = allocations.shares_of(kind, minor).map(|(pod, amounts)| (pod.to_owned(), json!(amounts.list())));
        json!({
            "type": kind.type_(), "minor": minor,
            "healthy": is_healthy(device), "numaNode": numa_node(device),
            "total": device.total.list(), "free": device.free().list(), "allocations": shares.collect::<Map<_, _>>(),
        })
    });
    let numa_nodes = allocations.numa_nodes().into_iter().map(|numa| {
        let (total, free) = allocations.zone(numa).unzip();
        json!({
            "numaNode": numa, "cpus": allocations.cpus(numa).map(ToString::to_string),
            "freeCpus": allocations.free_cpus(numa).to_string(), "total": total, "free": free.unwrap_or_default(),
        })
    });
    let cpus: Map<String, Value> =
        allocations.cpus_of_pods().map(|(pod, cpus)| (pod.to_owned(), cpus.to_string().into())).collect();
    json!({
        "node": name, "devices": devices.collect::<Value>(), "numaNodes": numa_nodes.collect::<Value>(),
        "cpusOfPods": cpus, "conflicts": node.conflicts(),
    })
}
