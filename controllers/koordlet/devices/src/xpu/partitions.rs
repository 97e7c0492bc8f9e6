//! Partitions of accelerators, from how they are connected.

use std::collections::BTreeSet;

use koord_types::{
    device_protocol::{GpuPartition, GpuPartitionTable},
    node_annotations::GpuPartitionPolicy,
};

use super::XpuDevice;

/// All partitions are equally good.
const SCORE: i64 = 1;

/// The groups that the links of devices name, by their size. A group has the device and its peers; the same group, named by another of its devices, is one.
/// `None` where no device has links.
pub(crate) fn partitions(devices: &[&XpuDevice]) -> Option<GpuPartitionTable> {
    let mut table = GpuPartitionTable::default();
    let mut known = BTreeSet::new();
    for device in devices {
        for link in &device.links {
            let group: BTreeSet<i32> = link.peers.iter().copied().chain([device.minor]).collect();
            let minors: Vec<i32> = group.iter().copied().collect();
            if known.insert(group) {
                let size = u32::try_from(minors.len()).unwrap_or(u32::MAX);
                let partition = GpuPartition {
                    minors,
                    gpu_link_type: link.kind.clone(),
                    ring_bus_bandwidth: None,
                    allocation_score: Some(SCORE),
                };
                table.0.entry(size).or_default().push(partition);
            }
        }
    }
    (!table.0.is_empty()).then_some(table)
}

/// Whether pods have whole partitions only: when a device with links says so. `None` where no device has links.
pub(crate) fn partition_policy(devices: &[&XpuDevice]) -> Option<GpuPartitionPolicy> {
    let mut linked = devices.iter().filter(|device| !device.links.is_empty()).peekable();
    linked.peek()?;
    let is_honored = linked.any(|device| device.must_honor_partition);
    Some(if is_honored { GpuPartitionPolicy::Honor } else { GpuPartitionPolicy::Prefer })
}

#[cfg(test)]
mod tests {
    use koord_types::{device_protocol::GPU_PARTITIONS, protocol::Labels};

    use super::*;

    fn device(minor: i32, links: &[(&str, &str)], honors: bool) -> XpuDevice {
        let links: Vec<_> =
            links.iter().map(|(peers, kind)| serde_json::json!({"peerMinor": peers, "type": kind})).collect();
        let element = serde_json::json!({"minor": minor.to_string(), "topology": {"p2pLinks": links, "mustHonorPartition": honors}});
        XpuDevice::read(&element.to_string()).unwrap()
    }

    fn annotation(devices: &[XpuDevice]) -> Option<String> {
        let table = partitions(&devices.iter().collect::<Vec<_>>())?;
        let mut annotations = Labels::new();
        GPU_PARTITIONS.set(&mut annotations, &table);
        annotations.remove(GPU_PARTITIONS.name())
    }

    #[test]
    fn groups_are_counted_once_by_their_devices() {
        let devices = [
            device(0, &[("1", "HCCS"), ("1,2,3", "HCCS")], false),
            device(1, &[("0", "PIX"), ("3,2,0", "HCCS")], false),
            device(2, &[("3", "HCCS")], false),
        ];
        assert_eq!(
            annotation(&devices).unwrap(),
            r#"{"2":[{"minors":[0,1],"gpuLinkType":"HCCS","allocationScore":1},{"minors":[2,3],"gpuLinkType":"HCCS","allocationScore":1}],"4":[{"minors":[0,1,2,3],"gpuLinkType":"HCCS","allocationScore":1}]}"#
        );
    }

    #[test]
    fn devices_without_links_have_no_partitions_and_no_policy() {
        let devices = [device(0, &[("", "HCCS"), ("1", "")], true), device(1, &[], true)];
        assert_eq!(annotation(&devices), None);
        assert_eq!(partition_policy(&devices.iter().collect::<Vec<_>>()), None);
    }

    #[test]
    fn partitions_are_honored_when_a_linked_device_says_so() {
        for (honors, expected) in [
            ([false, false], GpuPartitionPolicy::Prefer),
            ([true, false], GpuPartitionPolicy::Honor),
            ([false, true], GpuPartitionPolicy::Honor),
        ] {
            let devices = honors.map(|honors| device(0, &[("1", "HCCS")], honors));
            assert_eq!(partition_policy(&devices.iter().collect::<Vec<_>>()), Some(expected), "{honors:?}");
        }
    }
}
