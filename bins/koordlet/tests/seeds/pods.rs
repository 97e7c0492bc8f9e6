//! Random pods, as a kubelet lists them, and random NodeSLOs.

use std::collections::BTreeMap;

use koord_core::random::Random;
use serde_json::{Value, json};

/// The annotation with the CPUs that the scheduler gave a pod.
const CPUS: &str = "scheduling.koordinator.sh/resource-status";

/// What a pod uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Thousandths of a CPU.
    pub(crate) milli: u64,
    pub(crate) bytes: u64,
    /// Of a hundred periods of its quota, those in which it is throttled.
    pub(crate) throttled_percent: u64,
    pub(crate) is_best_effort: bool,
}

/// A pod of the node.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) uid: String,
    /// As the kubelet lists it.
    pub(crate) object: Value,
    pub(crate) load: Load,
    /// Whether the kubelet lists it.
    pub(crate) is_listed: bool,
    /// The virtual second in which it is gone.
    pub(crate) ends: Option<u64>,
}

/// One of several.
pub(crate) fn one_of<'a, T>(random: &Random, values: &'a [T]) -> &'a T {
    &values[random.below(values.len() as u64) as usize]
}

/// Whether something of so many in a hundred happens.
pub(crate) fn chance(random: &Random, percent: u64) -> bool {
    random.below(100) < percent
}

impl Load {
    /// The part of each of so many containers.
    pub(crate) fn shared_by(self, containers: u64) -> Self {
        let containers = containers.max(1);
        Self { milli: self.milli / containers, bytes: self.bytes / containers, ..self }
    }
}

impl Pod {
    /// A pod of a random class.
    pub(crate) fn random(random: &Random, number: u64) -> Self {
        let uid = random.uuid();
        let name = format!("pod-{number}");
        let count = 1 + random.below(2);
        let cores = 1 + random.below(2);
        let gib = 1 + random.below(2);
        let ordinary = |cpu: Value, memory: String| json!({"cpu": cpu, "memory": memory});
        let (class, label, priority, requests, limits) = match random.below(6) {
            0 => (
                "Burstable",
                Some("LS"),
                9500,
                ordinary(json!("500m"), format!("{gib}Gi")),
                ordinary(json!(cores.to_string()), format!("{}Gi", gib + 1)),
            ),
            1 => ("Burstable", None, 0, ordinary(json!("200m"), "512Mi".to_owned()), json!({})),
            2 => {
                let amounts = ordinary(json!(cores.to_string()), format!("{gib}Gi"));
                ("Guaranteed", Some(*one_of(random, &["LSR", "LSE"])), 9900, amounts.clone(), amounts)
            }
            3 => {
                let amounts = ordinary(json!("1500m"), format!("{gib}Gi"));
                ("Guaranteed", Some("LS"), 9100, amounts.clone(), amounts)
            }
            4 => ("BestEffort", None, 0, json!({}), json!({})),
            _ => {
                let milli = 500 * (1 + random.below(4));
                let amounts = json!({"kubernetes.io/batch-cpu": milli.to_string(), "kubernetes.io/batch-memory": format!("{gib}Gi")});
                ("BestEffort", Some("BE"), 5500, amounts.clone(), amounts)
            }
        };
        let containers: Vec<Value> = (0..count)
            .map(|index| {
                json!({"name": format!("c{index}"), "image": "example/app:1", "resources": {"requests": requests, "limits": limits}})
            })
            .collect();
        let labels = label.map_or_else(|| json!({}), |label| json!({"koordinator.sh/qosClass": label}));
        let object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "shop", "uid": uid, "creationTimestamp": "2026-05-01T00:00:00Z",
                "labels": labels, "annotations": {},
            },
            "spec": {"nodeName": "node", "priority": priority, "containers": containers},
            "status": {"phase": "Running", "qosClass": class, "containerStatuses": []},
        });
        let mut pod = Self { uid, object, load: Load::default(), is_listed: true, ends: None };
        pod.load.is_best_effort = class == "BestEffort";
        for index in 0..count {
            pod.start_container(random, index as usize);
        }
        if matches!(label, Some("LSR" | "LSE")) && chance(random, 70) {
            let cpus = *one_of(random, &["0", "0-1", "2-3", "1,3", ""]);
            pod.object["metadata"]["annotations"][CPUS] = json!(format!(r#"{{"cpuset":"{cpus}"}}"#));
        }
        pod.annotate(random);
        pod.use_more_or_less(random);
        pod
    }

    /// A container gets a new id; returns the one before.
    pub(crate) fn start_container(&mut self, random: &Random, index: usize) -> Option<String> {
        let statuses = self.object["status"]["containerStatuses"].as_array_mut().unwrap();
        let id = format!("containerd://{:016x}", random.number());
        let status = json!({
            "name": format!("c{index}"), "containerID": id, "ready": true, "restartCount": 0, "image": "", "imageID": "",
            "state": {"running": {"startedAt": "2026-05-01T00:00:01Z"}},
        });
        let Some(known) = statuses.get_mut(index) else {
            statuses.push(status);
            return None;
        };
        std::mem::replace(known, status)["containerID"].as_str().map(str::to_owned)
    }

    pub(crate) fn container_ids(&self) -> Vec<String> {
        let statuses = self.object["status"]["containerStatuses"].as_array().unwrap();
        statuses.iter().filter_map(|status| status["containerID"].as_str().map(str::to_owned)).collect()
    }

    /// Sets annotations that the agent follows, or that it cannot read.
    pub(crate) fn annotate(&mut self, random: &Random) {
        let bursts = [
            r#"{"policy":"none"}"#,
            r#"{"policy":"cpuBurstOnly","cpuBurstPercent":100}"#,
            r#"{"policy":"auto","cpuBurstPercent":200,"cfsQuotaBurstPercent":300,"cfsQuotaBurstPeriodSeconds":-1}"#,
            "{",
        ];
        let memories =
            [r#"{"policy":"none"}"#, r#"{"policy":"auto"}"#, r#"{"lowLimitPercent":50,"throttlingPercent":80}"#, "[]"];
        let annotations = &mut self.object["metadata"]["annotations"];
        // Its CPUs are those of all its life.
        annotations.as_object_mut().unwrap().retain(|name, _| name == CPUS);
        if chance(random, 30) {
            annotations["koordinator.sh/cpuBurst"] = json!(one_of(random, &bursts));
        }
        if chance(random, 30) {
            annotations["koordinator.sh/memoryQOS"] = json!(one_of(random, &memories));
        }
    }

    /// Takes the annotation away by which its quota may have grown.
    pub(crate) fn stop_bursting(&mut self) {
        let annotations = self.object["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.remove("koordinator.sh/cpuBurst");
    }

    pub(crate) fn use_more_or_less(&mut self, random: &Random) {
        self.load.milli = random.below(1500);
        self.load.bytes = random.below(3 << 30);
        self.load.throttled_percent = if chance(random, 40) { random.below(100) } else { 0 };
    }

    pub(crate) fn begin_to_end(&mut self, second: u64) {
        if self.ends.is_none() {
            self.ends = Some(second);
            self.object["metadata"]["deletionTimestamp"] = json!("2026-06-01T00:00:00Z");
        }
    }
}

/// The body of the kubelet's answer.
pub(crate) fn pod_list(pods: &BTreeMap<String, Pod>) -> String {
    let items: Vec<&Value> = pods.values().filter(|pod| pod.is_listed).map(|pod| &pod.object).collect();
    json!({"kind": "PodList", "apiVersion": "v1", "items": items}).to_string()
}

/// The spec of a NodeSLO. All of it can be decoded, though not all of it makes sense.
pub(crate) fn slo(random: &Random) -> Value {
    let is_on = |percent| chance(random, percent);
    let percent = || random.below(110).cast_signed() - 5;
    let class = |group_identity: i64| {
        json!({
            "cpuQOS": {"enable": is_on(60), "groupIdentity": group_identity},
            "memoryQOS": {
                "enable": is_on(60), "minLimitPercent": percent(), "lowLimitPercent": percent(),
                "throttlingPercent": percent(), "wmarkRatio": percent(), "wmarkMinAdj": percent() - 50,
                "priority": random.below(14), "priorityEnable": random.below(2), "oomKillGroup": random.below(2),
            },
        })
    };
    let mut best_effort = class(-1);
    best_effort["cpuQOS"]["schedIdle"] = json!(random.below(2));
    json!({
        "resourceUsedThresholdWithBE": {
            "enable": is_on(70),
            "cpuSuppressThresholdPercent": percent(),
            "cpuSuppressPolicy": one_of(random, &["cpuset", "cfsQuota", "other"]),
            "cpuSuppressMinPercent": random.below(30),
            "memoryEvictThresholdPercent": 30 + random.below(70),
            "memoryEvictLowerPercent": if is_on(50) { json!(20) } else { Value::Null },
            "cpuEvictBESatisfactionLowerPercent": random.below(70),
            "cpuEvictBESatisfactionUpperPercent": 40 + random.below(60),
            "cpuEvictBEUsageThresholdPercent": random.below(100),
            "cpuEvictTimeWindowSeconds": random.below(20),
            "cpuEvictThresholdPercent": 40 + random.below(60),
            "evictEnabledPriorityThreshold": 6000,
        },
        "resourceQOSStrategy": {"lsrClass": class(2), "lsClass": class(2), "beClass": best_effort},
        "cpuBurstStrategy": {
            "policy": one_of(random, &["none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto", "sometimes"]),
            "cpuBurstPercent": one_of(random, &[0, 50, 100, 1000, 20_000]),
            "cfsQuotaBurstPercent": one_of(random, &[50, 100, 300]),
            "cfsQuotaBurstPeriodSeconds": one_of(random, &[-1, 0, 60]),
            "sharePoolThresholdPercent": percent(),
        },
        "systemStrategy": {
            "minFreeKbytesFactor": random.below(500), "watermarkScaleFactor": random.below(600),
        },
    })
}

/// A NodeSLO in which nothing is enabled.
pub(crate) fn disabled_slo() -> Value {
    json!({
        "resourceUsedThresholdWithBE": {"enable": false},
        "cpuBurstStrategy": {"policy": "none"},
    })
}

/// A spec of which some sections cannot be decoded.
pub(crate) fn malformed_slo(random: &Random) -> Value {
    let mut spec = slo(random);
    match random.below(4) {
        0 => spec["resourceUsedThresholdWithBE"] = json!([1, 2]),
        1 => spec["cpuBurstStrategy"]["cpuBurstPercent"] = json!("9E"),
        2 => spec["resourceQOSStrategy"]["beClass"] = json!("BE"),
        _ => spec["hostApplications"] = json!({"name": 7}),
    }
    spec
}
