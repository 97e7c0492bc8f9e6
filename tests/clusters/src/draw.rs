//! A small cluster and its pods, from a seed.

use std::time::Duration;

use jiff::Timestamp;
use koord_runtime::random::Random;
use koord_scheduler_simulator::{Arrival, Scenario};
use serde_json::{Map, Value, json};

use crate::RUNS_MIN;

/// When pods come at the latest.
const COMING: Duration = Duration::from_mins(8);
/// A time at which pods come and go.
pub const HALF: Duration = Duration::from_mins(4);
/// What every GPU has.
const GPU_MEMORY: &str = "80Gi";
/// All pods and Reservations have it, so that none is evicted for another; production, as CPUs of one's own need it.
const PRIORITY: i32 = 9500;

/// What a cluster has beside nodes and plain pods.
#[derive(Clone, Copy, Debug)]
struct Themes {
    gpus: bool,
    numa: bool,
    reservations: bool,
    quotas: bool,
    gangs: bool,
}

struct Drawing {
    random: Random,
    themes: Themes,
    objects: Vec<Value>,
    arrivals: Vec<Arrival>,
}

/// The cluster of a seed.
pub fn scenario(seed: u64) -> Scenario {
    let random = Random::seeded(seed);
    let wanted = || random.below(2) == 0;
    let themes = Themes { gpus: wanted(), numa: wanted(), reservations: wanted(), quotas: wanted(), gangs: wanted() };
    let mut drawing = Drawing { random, themes, objects: Vec::new(), arrivals: Vec::new() };
    drawing.draw();
    let Drawing { objects, mut arrivals, .. } = drawing;
    arrivals.sort_by_key(|arrival| arrival.at);
    Scenario { start: start(), objects, arrivals, until: None, seed, gathers: false }
}

fn start() -> Timestamp {
    Timestamp::UNIX_EPOCH.saturating_add(Duration::from_hours(500_000)).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl Drawing {
    fn chance(&self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn between(&self, least: u64, most: u64) -> u64 {
        least + self.random.below(most - least + 1)
    }

    fn pick<T: Copy>(&self, of: &[T]) -> Option<T> {
        usize::try_from(self.random.below(of.len() as u64)).ok().and_then(|index| of.get(index)).copied()
    }

    fn word(&self, of: &[&'static str]) -> &'static str {
        self.pick(of).unwrap_or_default()
    }

    fn draw(&mut self) {
        for number in 0..self.between(1, 3) {
            self.node(number);
        }
        if self.themes.quotas {
            self.quotas();
        }
        if self.themes.reservations {
            for number in 0..self.between(1, 2) {
                let reservation = self.reservation(number);
                self.objects.push(reservation);
            }
        }
        let gangs = if self.themes.gangs { self.between(1, 2) } else { 0 };
        for number in 0..gangs {
            self.gang(number);
        }
        // A pod of nobody: while it waits, time goes on, and what the scheduler writes a little later is written.
        let mut nobodys = self.pod("nobodys");
        nobodys["spec"]["schedulerName"] = json!("another");
        self.arrive(nobodys, None);
        for number in 0..self.between(4, 12) {
            let pod = self.pod(&format!("p{number}"));
            let lasts = self.chance(40).then(|| RUNS_MIN + Duration::from_secs(self.random.below(500)));
            self.arrive(pod, lasts);
        }
    }

    fn arrive(&mut self, pod: Value, lasts: Option<Duration>) {
        let at = Duration::from_secs(self.random.below(COMING.as_secs()));
        self.arrivals.push(Arrival { at, pod, lasts });
    }

    // === nodes ===

    fn node(&mut self, number: u64) {
        let name = format!("n{number}");
        let (zones, cores) = (self.between(1, 2), self.between(2, 4));
        let has_numa = self.themes.numa && self.chance(80);
        let cpus = if has_numa { zones * cores * 2 } else { self.between(2, 12) };
        let memory = zones * 16;
        let gpus = if self.themes.gpus && self.chance(80) { 1 << self.random.below(4) } else { 0_u64 };
        let mut labels = Map::from_iter([("kubernetes.io/hostname".to_owned(), json!(name))]);
        if has_numa {
            if self.chance(50) {
                let policy = self.word(&["BestEffort", "Restricted", "SingleNUMANode"]);
                labels.insert("node.koordinator.sh/numa-topology-policy".to_owned(), json!(policy));
            }
            if self.chance(20) {
                let bind = self.word(&["FullPCPUsOnly", "SpreadByPCPUs"]);
                labels.insert("node.koordinator.sh/cpu-bind-policy".to_owned(), json!(bind));
            }
            if self.chance(30) {
                let fill = self.word(&["MostAllocated", "LeastAllocated"]);
                labels.insert("node.koordinator.sh/numa-allocate-strategy".to_owned(), json!(fill));
            }
            self.objects.push(topology(&name, zones, cores));
        }
        let mut amounts = json!({"cpu": cpus.to_string(), "memory": format!("{memory}Gi"), "pods": "110"});
        if gpus > 0 {
            for resource in ["gpu", "gpu-core", "gpu-memory-ratio", "gpu.shared"] {
                amounts[format!("koordinator.sh/{resource}")] = json!((gpus * 100).to_string());
            }
            amounts["nvidia.com/gpu"] = json!(gpus.to_string());
            let devices = self.devices(&name, gpus, zones);
            self.objects.push(devices);
        }
        self.objects.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": amounts, "capacity": amounts}}));
    }

    fn devices(&self, node: &str, gpus: u64, zones: u64) -> Value {
        let broken = self.chance(15).then(|| self.random.below(gpus));
        let device = |minor: u64| {
            json!({"type": "gpu", "minor": minor, "id": format!("GPU-{minor}"), "health": broken != Some(minor),
                "resources": {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": GPU_MEMORY},
                "topology": {"nodeID": minor * zones / gpus, "socketID": 0, "pcieID": (minor / 2).to_string(), "busID": format!("0000:0{minor}:00.0")}})
        };
        let devices: Vec<Value> = (0..gpus).map(device).collect();
        let mut metadata = json!({"name": node});
        if gpus > 1 && self.chance(40) {
            let sizes = [1, 2, 4, 8].into_iter().filter(|size| *size <= gpus);
            let table = sizes.map(|size| {
                let parts = (0..gpus / size).map(|part| {
                    json!({"minors": (part * size..(part + 1) * size).collect::<Vec<_>>(),
                    "gpuLinkType": "NVLink", "allocationScore": self.between(1, 2)})
                });
                (size.to_string(), parts.collect::<Vec<_>>())
            });
            let table: Map<String, Value> = table.map(|(size, parts)| (size, json!(parts))).collect();
            metadata["annotations"] =
                json!({"scheduling.koordinator.sh/gpu-partitions": Value::Object(table).to_string()});
            metadata["labels"] = json!({"node.koordinator.sh/gpu-partition-policy": self.word(&["Honor", "Prefer"])});
        }
        json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": metadata, "spec": {"devices": devices}})
    }

    // === what pods belong to ===

    fn quotas(&mut self) {
        let parent = self.chance(50);
        let quota = |name: &str, labels: Value, min: u64, max: u64| {
            json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
                "metadata": {"name": name, "namespace": "default", "labels": labels},
                "spec": {"min": {"cpu": min.to_string()}, "max": {"cpu": max.to_string()}}})
        };
        let mut labels = json!({});
        if parent {
            labels["quota.scheduling.koordinator.sh/parent"] = json!("top");
            let of_parent = json!({"quota.scheduling.koordinator.sh/is-parent": "true"});
            self.objects.push(quota("top", of_parent, self.between(0, 4), self.between(4, 16)));
        }
        for name in ["q0", "q1"] {
            if self.chance(30) {
                labels["quota.scheduling.koordinator.sh/allow-lent-resource"] = json!("false");
            }
            self.objects.push(quota(name, labels.clone(), self.between(0, 2), self.between(2, 8)));
        }
    }

    fn reservation(&mut self, number: u64) -> Value {
        let name = format!("r{number}");
        let mut pod = self.pod(&name);
        if let Some(labels) = pod["metadata"]["labels"].as_object_mut() {
            labels.retain(|name, _| name == "koordinator.sh/qosClass");
        }
        let ttl = self.word(&["0s", "24h", "6m"]);
        json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation",
            "metadata": {"name": name, "uid": format!("reservation-{name}"), "creationTimestamp": start().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()},
            "spec": {"template": {"metadata": {"namespace": "default", "labels": pod["metadata"]["labels"], "annotations": pod["metadata"]["annotations"]}, "spec": pod["spec"]},
                "owners": [{"labelSelector": {"matchLabels": {"app": name}}}],
                "allocateOnce": self.chance(50), "allocatePolicy": self.pick(&[None, Some("Aligned"), Some("Restricted")]).flatten(), "ttl": ttl}})
    }

    fn gang(&mut self, number: u64) {
        let (name, least) = (format!("g{number}"), self.between(2, 3));
        let mode = self.word(&["Strict", "NonStrict"]);
        self.objects.push(json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default", "annotations": {"gang.scheduling.koordinator.sh/mode": mode}},
            "spec": {"minMember": least}}));
        let pod = self.pod("member");
        for member in 0..(least + self.random.below(2)) - u64::from(self.chance(10)) {
            let mut pod = pod.clone();
            pod["metadata"]["name"] = json!(format!("{name}-{member}"));
            pod["metadata"]["uid"] = json!(format!("pod-{name}-{member}"));
            pod["metadata"]["labels"]["pod-group.scheduling.sigs.k8s.io"] = json!(name);
            self.arrive(pod, None);
        }
    }

    // === pods ===

    fn pod(&self, name: &str) -> Value {
        let (mut labels, mut annotations) = (Map::new(), Map::new());
        let mut requests = json!({"memory": format!("{}Gi", self.between(1, 8))});
        requests["cpu"] = if self.themes.numa && self.chance(50) {
            if self.chance(80) {
                labels.insert("koordinator.sh/qosClass".to_owned(), json!("LSR"));
                let spec = match self.random.below(5) {
                    0 => json!({"requiredCPUBindPolicy": "FullPCPUs"}),
                    1 => json!({"requiredCPUBindPolicy": "SpreadByPCPUs"}),
                    2 => json!({"preferredCPUBindPolicy": "SpreadByPCPUs"}),
                    3 => json!({"preferredCPUBindPolicy": "FullPCPUs", "preferredCPUExclusivePolicy": "PCPULevel"}),
                    _ => json!({}),
                };
                annotations.insert("scheduling.koordinator.sh/resource-spec".to_owned(), json!(spec.to_string()));
            }
            json!(self.between(1, 6).to_string())
        } else {
            json!(format!("{}m", 250 * self.between(1, 14)))
        };
        if self.themes.numa && self.chance(20) {
            let spec = json!({"numaTopologyPolicy": self.word(&["BestEffort", "Restricted", "SingleNUMANode"])});
            annotations.insert("scheduling.koordinator.sh/numa-topology-spec".to_owned(), json!(spec.to_string()));
        }
        if self.themes.gpus && self.chance(60) {
            self.ask_for_gpus(&mut requests, &mut annotations);
        }
        if self.themes.reservations && self.chance(40) {
            labels.insert("app".to_owned(), json!(self.word(&["r0", "r1"])));
        }
        if self.themes.quotas && self.chance(50) {
            labels.insert("quota.scheduling.koordinator.sh/name".to_owned(), json!(self.word(&["q0", "q1"])));
        }
        let container = json!({"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}});
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": format!("pod-{name}"), "labels": labels, "annotations": annotations},
            "spec": {"schedulerName": "koord-scheduler", "priority": PRIORITY, "containers": [container]}})
    }

    fn ask_for_gpus(&self, requests: &mut Value, annotations: &mut Map<String, Value>) {
        let amounts: &[(&str, u64)] = match self.random.below(8) {
            0 => &[("nvidia.com/gpu", 1)],
            1 => &[("nvidia.com/gpu", 2)],
            2 => &[("koordinator.sh/gpu", 200)],
            3 => &[("koordinator.sh/gpu", 50)],
            4 => &[("koordinator.sh/gpu", 30)],
            5 => &[("koordinator.sh/gpu-memory-ratio", 40)],
            6 => &[("koordinator.sh/gpu-core", 25), ("koordinator.sh/gpu-memory-ratio", 50)],
            _ => &[("koordinator.sh/gpu", 400)],
        };
        for (name, amount) in amounts {
            requests[*name] = json!(amount.to_string());
        }
        if self.chance(20) {
            let spec = json!({"allocatePolicy": self.word(&["Restricted", "BestEffort"])});
            annotations.insert("scheduling.koordinator.sh/gpu-partition-spec".to_owned(), json!(spec.to_string()));
        }
    }
}

/// NUMA nodes with so many cores of two CPUs each.
fn topology(node: &str, zones: u64, cores: u64) -> Value {
    let cpus = (0..zones * cores * 2).map(|cpu| {
        let core = cpu / 2;
        json!({"id": cpu, "core": core, "socket": 0, "node": core / cores})
    });
    let detail = json!({"detail": cpus.collect::<Vec<_>>()}).to_string();
    let zone = |number: u64| {
        let amount = |name: &str, amount: String| json!({"name": name, "allocatable": amount, "available": amount, "capacity": amount});
        json!({"name": format!("node-{number}"), "type": "Node",
            "resources": [amount("cpu", (cores * 2).to_string()), amount("memory", "16Gi".to_owned())]})
    };
    json!({"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology", "topologyPolicies": ["None"],
        "metadata": {"name": node, "labels": {"app.kubernetes.io/managed-by": "Koordinator"}, "annotations": {"node.koordinator.sh/cpu-topology": detail}},
        "zones": (0..zones).map(zone).collect::<Vec<_>>()})
}
