//! Machines, and what wants them.

use koord_runtime::random::Random;
use serde_json::{Map, Value, json};

use crate::witness::{GANG, QUOTA};

/// A node and what belongs to it. What a machine has follows from its name.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) name: String,
    zone: &'static str,
    zones: u64,
    cores: u64,
    gpus: u64,
    policy: Option<&'static str>,
    tainted: bool,
}

impl Machine {
    pub(super) const COUNT: u64 = 4;

    pub(super) fn of(number: u64) -> Self {
        let (zone, zones, cores, gpus, policy, tainted) = match number {
            0 => ("a", 1, 4, 0, None, false),
            1 => ("a", 2, 2, 2, Some("SingleNUMANode"), false),
            2 => ("b", 1, 4, 4, None, true),
            _ => ("b", 1, 2, 1, None, false),
        };
        let name = if number == 3 { "x-odd".to_owned() } else { format!("n{number}") };
        Self { name, zone, zones, cores, gpus, policy, tainted }
    }

    /// Two machines that take what is left in the end.
    pub(super) fn last() -> [Self; 2] {
        let of = |name: &str, zone| Self {
            name: name.to_owned(),
            zone,
            zones: 1,
            cores: 40,
            gpus: 12,
            policy: None,
            tainted: false,
        };
        [of("last", "a"), of("last-b", "b")]
    }

    pub(super) fn node(&self) -> Value {
        let mut labels = json!({"kubernetes.io/hostname": self.name, "zone": self.zone});
        if let Some(policy) = self.policy {
            labels["node.koordinator.sh/numa-topology-policy"] = json!(policy);
        }
        let cpus = self.zones * self.cores * 2;
        let mut amounts = json!({"cpu": cpus.to_string(), "memory": format!("{}Gi", 16 * self.cores), "pods": "110"});
        if self.gpus > 0 {
            for resource in ["gpu", "gpu-core", "gpu-memory-ratio", "gpu.shared"] {
                amounts[format!("koordinator.sh/{resource}")] = json!((self.gpus * 100).to_string());
            }
        }
        json!({"metadata": {"name": self.name, "labels": labels}, "spec": {"taints": self.taints()},
            "status": {"allocatable": amounts, "capacity": amounts}})
    }

    pub(super) fn taints(&self) -> Value {
        if self.tainted { json!([{"key": "dedicated", "value": "gpus", "effect": "NoSchedule"}]) } else { Value::Null }
    }

    pub(super) fn device(&self) -> Value {
        let device = |minor: u64| {
            json!({"type": "gpu", "minor": minor, "id": format!("GPU-{minor}"), "health": true,
                "resources": {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "80Gi"},
                "topology": {"nodeID": minor * self.zones / self.gpus, "socketID": 0, "pcieID": minor.to_string(), "busID": format!("0000:0{minor}:00.0")}})
        };
        let devices: Vec<Value> = (0..self.gpus).map(device).collect();
        json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": self.name},
            "spec": {"devices": devices}})
    }

    /// NUMA nodes with so many cores of two CPUs each.
    pub(super) fn topology(&self) -> Value {
        let cpus = (0..self.zones * self.cores * 2).map(|cpu| {
            let core = cpu / 2;
            json!({"id": cpu, "core": core, "socket": 0, "node": core / self.cores})
        });
        let detail = json!({"detail": cpus.collect::<Vec<_>>()}).to_string();
        let zone = |number: u64| {
            let amount = |name: &str, amount: String| json!({"name": name, "allocatable": amount, "available": amount, "capacity": amount});
            let memory = format!("{}Gi", 16 * self.cores / self.zones);
            json!({"name": format!("node-{number}"), "type": "Node",
                "resources": [amount("cpu", (self.cores * 2).to_string()), amount("memory", memory)]})
        };
        json!({"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology", "topologyPolicies": ["None"],
            "metadata": {"name": self.name, "labels": {"app.kubernetes.io/managed-by": "Koordinator"},
                "annotations": {"node.koordinator.sh/cpu-topology": detail}},
            "zones": (0..self.zones).map(zone).collect::<Vec<_>>()})
    }
}

/// What a pod wants, by its number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Share {
    Nothing,
    Gpus,
    PartOfGpu,
    Cpus,
    Quota(u64),
    Gang,
    Owner(u64),
}

impl Share {
    pub(super) fn of(number: u64) -> Self {
        match number {
            0 | 1 => Self::Gpus,
            2..=4 => Self::PartOfGpu,
            5..=7 => Self::Cpus,
            8..=10 => Self::Quota(number % 2),
            11 | 12 => Self::Gang,
            13 | 14 => Self::Owner(number % 2),
            _ => Self::Nothing,
        }
    }

    pub(super) fn pod(self, name: &str, amount: u64, random: &Random) -> Value {
        let (mut labels, mut annotations) = (Map::new(), Map::new());
        let mut requests = json!({"cpu": format!("{}m", 500 * amount), "memory": "1Gi"});
        match self {
            Self::Nothing => {}
            Self::Gpus => requests["koordinator.sh/gpu"] = json!((100 * amount.min(2)).to_string()),
            Self::PartOfGpu => requests["koordinator.sh/gpu"] = json!((20 * amount).to_string()),
            Self::Cpus => {
                requests["cpu"] = json!((2 * amount.min(3)).to_string());
                labels.insert("koordinator.sh/qosClass".to_owned(), json!("LSR"));
                if amount > 2 {
                    let spec = json!({"requiredCPUBindPolicy": "FullPCPUs"}).to_string();
                    annotations.insert("scheduling.koordinator.sh/resource-spec".to_owned(), json!(spec));
                }
            }
            Self::Quota(number) => _ = labels.insert(QUOTA.to_owned(), json!(format!("q{number}"))),
            Self::Gang => {
                requests["koordinator.sh/gpu"] = json!("100");
                labels.insert(GANG.to_owned(), json!("gang"));
            }
            Self::Owner(number) => _ = labels.insert("app".to_owned(), json!(format!("r{number}"))),
        }
        let container = json!({"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}});
        let class = if random.below(8) == 0 { "urgent" } else { "production" };
        let mut spec =
            json!({"schedulerName": "koord-scheduler", "priorityClassName": class, "containers": [container]});
        if random.below(2) == 0 {
            spec["tolerations"] = json!([{"key": "dedicated", "operator": "Exists"}]);
        }
        let zone = if random.below(2) == 0 { "a" } else { "b" };
        match random.below(6) {
            0 => spec["nodeSelector"] = json!({ "zone": zone }),
            1 => {
                let terms = json!([{"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": [zone]}]}]);
                spec["affinity"] = json!({"nodeAffinity":
                    {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
            }
            _ => {}
        }
        json!({"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": spec})
    }
}

pub(super) fn quota(number: u64, cpu: u64) -> Value {
    json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": format!("q{number}")}, "spec": {"max": {"cpu": cpu.to_string()}, "min": {"cpu": "0"}}})
}

pub(super) fn gang() -> Value {
    json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "gang"},
        "spec": {"minMember": super::MEMBERS, "scheduleTimeoutSeconds": 60}})
}

pub(super) fn reservation(number: u64, amount: u64, random: &Random) -> Value {
    let (name, once) = (format!("r{number}"), random.below(2) == 0);
    let share = if random.below(3) == 0 { Share::Cpus } else { Share::Nothing };
    let pod = share.pod(&name, 2 * amount, random);
    let metadata = json!({"namespace": "default", "labels": pod["metadata"]["labels"], "annotations": pod["metadata"]["annotations"]});
    let ttl = if random.below(2) == 0 { "0s" } else { "3m" };
    json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": name}, "spec": {
        "template": {"metadata": metadata, "spec": pod["spec"]},
        "owners": [{"labelSelector": {"matchLabels": {"app": name}}}], "allocateOnce": once, "ttl": ttl}})
}

pub(super) fn budget(number: u64) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": format!("b{number}")},
        "spec": {"minAvailable": number, "selector": {"matchLabels": {QUOTA: format!("q{number}")}}}})
}

/// What a koordlet reports.
pub(super) fn usage(node: &str, amount: u64, now: &jiff::Timestamp) -> Value {
    let resources = json!({"cpu": (2 * amount).to_string(), "memory": "1Gi"});
    json!({"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": node},
        "spec": {"metricCollectPolicy": {"reportIntervalSeconds": 60}},
        "status": {"updateTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(), "nodeMetric": {"nodeUsage": {"resources": resources}}}})
}
