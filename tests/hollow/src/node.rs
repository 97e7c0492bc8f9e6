//! What a hollow node is: a Node object that looks like a machine, and the Lease that says it is alive.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo},
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time},
    },
};

use crate::{seed::Seed, usage::UsageModel};

/// Marks the nodes that this crate keeps alive; nodes without it are left to others.
pub const HOLLOW_LABEL: &str = "node.koordinator.sh/hollow";

/// The namespace in which nodes keep their leases.
pub const LEASE_NAMESPACE: &str = "kube-node-lease";

/// How long a lease holds: as the real kubelet asks for.
pub const LEASE_DURATION: Duration = Duration::from_secs(40);

/// How often a node renews its lease: as the real kubelet does.
pub const LEASE_RENEWAL: Duration = Duration::from_secs(10);

/// A machine: what it has, and how busy it is.
#[derive(Clone, Debug, PartialEq)]
pub struct HollowNode {
    /// Name of the Node object.
    pub name: String,
    /// Number in the fleet, from 0.
    pub index: u32,
    /// CPU, in thousandths of a core.
    pub cpu_milli: u64,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// How many pods it takes.
    pub pods: u32,
    /// Where its numbers come from.
    pub seed: Seed,
    /// How busy it is.
    pub usage: UsageModel,
}

const GIB: u64 = 1 << 30;

/// Cores and GiB of the machines on offer; most of a fleet is of the first two sizes.
const SHAPES: [(u64, u64, &str); 4] = [
    (16, 64, "hollow.4xlarge"),
    (32, 128, "hollow.8xlarge"),
    (64, 256, "hollow.16xlarge"),
    (96, 384, "hollow.24xlarge"),
];

/// Zones of a fleet, taken in turn.
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

impl HollowNode {
    /// Node number `index` of the fleet that this seed gives.
    pub fn of_fleet(fleet: Seed, index: u32) -> Self {
        let name = format!("hollow-{index}");
        let seed = fleet.child(&name);
        let (cores, gib, _) = SHAPES[Self::shape(seed)];
        HollowNode {
            index,
            cpu_milli: cores * 1000,
            memory_bytes: gib * GIB,
            pods: 110,
            usage: UsageModel::drawn(seed),
            seed,
            name,
        }
    }

    fn shape(seed: Seed) -> usize {
        match seed.child("shape").below(10) {
            0..=3 => 0,
            4..=7 => 1,
            8 => 2,
            _ => 3,
        }
    }

    /// The Node object as it registers itself: ready, with what it has.
    pub fn object(&self, now: Timestamp) -> Node {
        let (_, _, instance_type) = SHAPES[Self::shape(self.seed)];
        let labels = [
            (HOLLOW_LABEL, "true"),
            ("kubernetes.io/hostname", self.name.as_str()),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/os", "linux"),
            ("node.kubernetes.io/instance-type", instance_type),
            ("topology.kubernetes.io/region", "hollow"),
            ("topology.kubernetes.io/zone", ZONES[self.index as usize % ZONES.len()]),
        ];
        let resources: BTreeMap<String, Quantity> = [
            ("cpu", (self.cpu_milli / 1000).to_string()),
            ("memory", format!("{}Gi", self.memory_bytes / GIB)),
            ("ephemeral-storage", "200Gi".to_owned()),
            ("pods", self.pods.to_string()),
        ]
        .map(|(name, amount)| (name.to_owned(), Quantity(amount)))
        .into();
        Node {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec { provider_id: Some(format!("hollow://{}", self.name)), ..NodeSpec::default() }),
            status: Some(NodeStatus {
                allocatable: Some(resources.clone()),
                capacity: Some(resources),
                conditions: Some(conditions(now)),
                addresses: Some(vec![
                    NodeAddress { type_: "InternalIP".to_owned(), address: self.address() },
                    NodeAddress { type_: "Hostname".to_owned(), address: self.name.clone() },
                ]),
                node_info: Some(NodeSystemInfo {
                    architecture: "amd64".to_owned(),
                    container_runtime_version: "hollow://1".to_owned(),
                    kubelet_version: concat!("v1.34.3+hollow-", env!("CARGO_PKG_VERSION")).to_owned(),
                    operating_system: "linux".to_owned(),
                    os_image: "Hollow".to_owned(),
                    kernel_version: "6.12.0".to_owned(),
                    machine_id: self.name.clone(),
                    system_uuid: self.name.clone(),
                    ..NodeSystemInfo::default()
                }),
                ..NodeStatus::default()
            }),
        }
    }

    /// The lease of the node, renewed at `now`. It belongs to the Node, so that it goes when the Node goes.
    pub fn lease(&self, node_uid: &str, now: Timestamp) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(LEASE_NAMESPACE.to_owned()),
                owner_references: Some(vec![OwnerReference {
                    api_version: "v1".to_owned(),
                    kind: "Node".to_owned(),
                    name: self.name.clone(),
                    uid: node_uid.to_owned(),
                    ..OwnerReference::default()
                }]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.name.clone()),
                lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
                renew_time: Some(MicroTime(now)),
                ..LeaseSpec::default()
            }),
        }
    }

    /// The address of the node in 10.0.0.0/9, by its number.
    pub fn address(&self) -> String {
        let [_, high, middle, low] = (self.index + 1).to_be_bytes();
        format!("10.{}.{middle}.{low}", high & 0x7F)
    }
}

fn conditions(now: Timestamp) -> Vec<NodeCondition> {
    [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "the hollow kubelet is posting ready status"),
    ]
    .map(|(type_, status, reason, message)| NodeCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    })
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_is_the_same_every_time_and_its_nodes_differ() {
        let fleet = |seed| (0..100).map(|index| HollowNode::of_fleet(Seed::new(seed), index)).collect::<Vec<_>>();
        assert_eq!(fleet(1), fleet(1));
        assert_ne!(fleet(1), fleet(2));
        let sizes: std::collections::BTreeSet<u64> = fleet(1).iter().map(|node| node.cpu_milli).collect();
        assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [16_000, 32_000, 64_000, 96_000]);
    }

    #[test]
    fn a_node_is_ready_and_says_what_it_has() {
        let node = HollowNode::of_fleet(Seed::new(1), 7);
        let object = node.object(Timestamp::UNIX_EPOCH);
        let status = object.status.unwrap();
        let ready = status.conditions.unwrap().into_iter().find(|condition| condition.type_ == "Ready").unwrap();
        assert_eq!(ready.status, "True");
        assert_eq!(status.allocatable.unwrap()["cpu"].0, (node.cpu_milli / 1000).to_string());
        assert_eq!(object.metadata.labels.unwrap()["topology.kubernetes.io/zone"], "zone-b");
    }

    #[test]
    fn addresses_differ_within_a_large_fleet() {
        let addresses: std::collections::BTreeSet<String> =
            (0..5000).map(|index| HollowNode::of_fleet(Seed::new(1), index).address()).collect();
        assert_eq!(addresses.len(), 5000);
        assert!(addresses.contains("10.0.1.0"));
    }

    #[test]
    fn a_lease_belongs_to_its_node_and_outlives_three_missed_renewals() {
        let lease = HollowNode::of_fleet(Seed::new(1), 0).lease("some-uid", Timestamp::UNIX_EPOCH);
        assert_eq!(lease.metadata.owner_references.unwrap()[0].uid, "some-uid");
        assert!(LEASE_RENEWAL * 3 < LEASE_DURATION);
    }
}
