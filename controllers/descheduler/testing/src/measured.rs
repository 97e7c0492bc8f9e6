//! The cluster on which descheduling is measured: the same every time, as large as is wanted.
//!
//! A hundred pods belong to each ReplicaSet, ten of them in each of the ten zones. They are spread over zones by a constraint with a skew of 1. In every tenth
//! block of ten nodes, the pods of the last two zones are on the node of the first zone instead, so a tenth of the ReplicaSets violates its constraint.

use serde_json::{Value, json};

/// The zones, and the nodes of a block: one of each zone.
const ZONES: usize = 10;
/// Of a hundred nodes as many blocks as zones; a ReplicaSet is met again after so many blocks.
const NODES_OF_A_STEP: usize = 100;
/// The namespace of all pods.
pub const NAMESPACE: &str = "apps";
/// When NodeMetrics were reported, in seconds since 1970.
pub const REPORTED: i64 = 1_790_000_000;

const CPU_MILLI: usize = 32_000;
const MEMORY_MIB: usize = 131_072;

/// A cluster.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredCluster {
    /// A multiple of 100.
    pub nodes: usize,
    /// Pods for each node.
    pub per_node: usize,
    pub load: Load,
}

/// What nodes use of their CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A tenth of the nodes 90 %, three tenths 20 %, and the others 60 %.
    Mixed,
    /// One half of the nodes 90 %, the other half 20 %.
    Halves,
}

impl Load {
    fn percent(self, node: usize) -> usize {
        match (self, node % ZONES) {
            (Self::Mixed, 7) => 90,
            (Self::Mixed, 0..=2) => 20,
            (Self::Mixed, _) => 60,
            (Self::Halves, place) => [20, 90][place % 2],
        }
    }
}

impl MeasuredCluster {
    /// The one on which the original was measured.
    pub const SMALL: Self = Self { nodes: 1000, per_node: 30, load: Load::Mixed };
    /// 150 000 pods.
    pub const LARGE: Self = Self { nodes: 5000, per_node: 30, load: Load::Mixed };

    pub fn pods(&self) -> usize {
        self.nodes * self.per_node
    }

    pub fn replica_sets(&self) -> usize {
        self.pods() / 100
    }

    /// All objects, with the members that an API server gives them: nodes, ReplicaSets, pods and NodeMetrics.
    pub fn objects(self) -> impl Iterator<Item = Value> {
        let nodes = (0..self.nodes).map(move |number| self.node(number));
        let replica_sets = (0..self.replica_sets()).map(move |number| self.replica_set(number));
        let pods = (0..self.nodes).flat_map(move |node| self.pods_on(node));
        let metrics = (0..self.nodes).map(move |number| self.metric(number));
        nodes.chain(replica_sets).chain(pods).chain(metrics)
    }

    pub fn node(&self, number: usize) -> Value {
        let name = node_name(number);
        let has = json!({"cpu": CPU_MILLI.div_euclid(1000).to_string(), "memory": "128Gi", "pods": "110"});
        let labels =
            json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": format!("z{}", number % ZONES)});
        let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady"});
        json!({
            "apiVersion": "v1", "kind": "Node", "metadata": metadata("", &name, 0x1000_0000 + number, &labels),
            "spec": {}, "status": {"capacity": has, "allocatable": has, "conditions": [ready]},
        })
    }

    pub fn replica_set(&self, number: usize) -> Value {
        let name = replica_set_name(number);
        let labels = json!({"app": name});
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": metadata(NAMESPACE, &name, 0x2000_0000 + number, &json!({})),
            "spec": {"replicas": 100, "selector": {"matchLabels": labels}, "template": template},
        })
    }

    /// The pods that are on a node.
    pub fn pods_on(self, node: usize) -> impl Iterator<Item = Value> {
        self.places(node).map(move |(home, slot)| self.pod(home, slot, node))
    }

    /// What koordlet reports of a node. Nine tenths of what it uses is used by its pods, evenly.
    pub fn metric(&self, node: usize) -> Value {
        let percent = self.load.percent(node);
        let cpu = CPU_MILLI * percent / 100;
        let memory = MEMORY_MIB * if percent == 90 { 50 } else { 40 } / 100;
        let usage = |cpu: usize, memory: usize| json!({"resources": {"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")}});
        let places: Vec<(usize, usize)> = self.places(node).collect();
        let each = usage(cpu * 9 / 10 / places.len().max(1), memory * 9 / 10 / places.len().max(1));
        let of_pod = |(home, slot): &(usize, usize)| json!({"namespace": NAMESPACE, "name": self.pod_name(*home, *slot), "podUsage": each});
        let updated = jiff::Timestamp::from_second(REPORTED).unwrap().to_string();
        json!({
            "apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric",
            "metadata": metadata("", &node_name(node), 0x3000_0000 + node, &json!({})), "spec": {},
            "status": {
                "updateTime": updated,
                "nodeMetric": {"nodeUsage": usage(cpu, memory), "systemUsage": usage(cpu / 10, memory / 10)},
                "podsMetric": places.iter().map(of_pod).collect::<Vec<Value>>(),
            },
        })
    }

    /// The pods that are on a node, each by the node that it would be on were it spread, and its place there.
    fn places(self, node: usize) -> impl Iterator<Item = (usize, usize)> {
        let (block, zone) = (node / ZONES, node % ZONES);
        let homes = match (block % ZONES == 3, zone) {
            (true, 0) => vec![node, node + 8, node + 9],
            (true, 8 | 9) => Vec::new(),
            _ => vec![node],
        };
        homes.into_iter().flat_map(move |home| (0..self.per_node).map(move |slot| (home, slot)))
    }

    /// The ReplicaSet of a pod.
    fn owner(&self, home: usize, slot: usize) -> usize {
        (slot * (self.nodes / NODES_OF_A_STEP) + home / ZONES) % self.replica_sets()
    }

    fn pod_name(&self, home: usize, slot: usize) -> String {
        format!("{}-{home:05}-{slot:02}", replica_set_name(self.owner(home, slot)))
    }

    fn pod(&self, home: usize, slot: usize, node: usize) -> Value {
        let (owner, name) = (self.owner(home, slot), self.pod_name(home, slot));
        let app = replica_set_name(owner);
        let labels = json!({"app": app, "koordinator.sh/qosClass": "LS"});
        let mut metadata = metadata(NAMESPACE, &name, 0x4000_0000 + home * self.per_node + slot, &labels);
        metadata["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": uid(0x2000_0000 + owner),
            "controller": true, "blockOwnerDeletion": true,
        }]);
        let resources = json!({"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}});
        let lost =
            |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
        let condition =
            |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"});
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {
                "nodeName": node_name(node), "schedulerName": "koord-scheduler", "priority": 0, "restartPolicy": "Always",
                "automountServiceAccountToken": false, "dnsPolicy": "ClusterFirst", "serviceAccountName": "default",
                "containers": [{"name": "c", "image": "x", "imagePullPolicy": "Always", "resources": resources}],
                "tolerations": [lost("node.kubernetes.io/not-ready"), lost("node.kubernetes.io/unreachable")],
                "topologySpreadConstraints": [{
                    "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": app}},
                }],
            },
            "status": {
                "phase": "Running", "qosClass": "Burstable", "startTime": "2026-01-01T00:00:02Z",
                "conditions": [condition("Ready"), condition("PodScheduled")],
            },
        })
    }
}

fn node_name(number: usize) -> String {
    format!("n-{number:05}")
}

fn replica_set_name(number: usize) -> String {
    format!("rs-{number:03}")
}

/// As an API server draws them: in no order.
fn uid(number: usize) -> String {
    let drawn = (number as u32).wrapping_mul(2_654_435_769);
    format!("{drawn:08x}-0000-4000-8000-{number:012x}")
}

fn metadata(namespace: &str, name: &str, number: usize, labels: &Value) -> Value {
    let mut metadata = json!({
        "name": name, "uid": uid(number), "resourceVersion": (number + 1).to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": labels,
    });
    if !namespace.is_empty() {
        metadata["namespace"] = namespace.into();
    }
    metadata
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_tenth_of_the_replica_sets_violates_its_constraint_in_any_size() {
        for nodes in [200, 1000] {
            let cluster = MeasuredCluster { nodes, ..MeasuredCluster::SMALL };
            let mut counts = vec![[0; ZONES]; cluster.replica_sets()];
            for node in 0..nodes {
                for (home, slot) in cluster.places(node) {
                    counts[cluster.owner(home, slot)][node % ZONES] += 1;
                }
            }
            let mut by_spread = BTreeMap::<[i32; ZONES], usize>::new();
            for spread in counts {
                *by_spread.entry(spread).or_default() += 1;
            }
            let even = [10; ZONES];
            let violated = [30, 10, 10, 10, 10, 10, 10, 10, 0, 0];
            let sets = cluster.replica_sets();
            // Blocks of ten times ten nodes at least are needed for the tenth; with fewer, the fifth violates it in part.
            if nodes == 1000 {
                assert_eq!(by_spread, BTreeMap::from([(even, sets * 9 / 10), (violated, sets / 10)]));
            }
            assert!(by_spread.len() > 1 && by_spread.values().sum::<usize>() == sets, "{by_spread:?}");
        }
    }

    #[test]
    fn the_objects_are_read_without_error() {
        let cluster = MeasuredCluster { nodes: 100, ..MeasuredCluster::SMALL };
        let objects: Vec<Value> = cluster.objects().collect();
        let (read, errors) = koord_descheduler_framework::Cluster::of(&objects);
        assert_eq!((read.nodes().count(), read.pods().count(), errors), (100, 3000, vec![]));
        let node = read.node_id("n-00007").unwrap();
        let used: Vec<_> = read.metric(node).unwrap().pods().collect();
        assert_eq!(used.len(), 30);
    }
}
