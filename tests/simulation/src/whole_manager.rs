//! koord-manager with all its controllers at once: what they make of nodes, pods, reports, devices, topologies and quota
//! profiles is what the module `oracle` computes anew. A program that starts afresh is another oracle: it decides everything
//! once more, and must find nothing to write.

use http::Method;
use koord_manager_controllers::{
    ConfigSource,
    colocationprofile::{self, ColocationProfileController},
    noderesource::{self, NodeResourceController, Plugins},
    quotaprofile::{self, QuotaProfileController},
};
use koord_runtime::{Core, random::Random, write::Write};
use koord_simulator::Scenario;
use serde_json::{Value, json};

use crate::{
    Disturbance, Fault, Stage,
    manager::{CONFIG, METRICS, Manager, NODES, SLOS, put_config},
    oracle::Cluster,
    people::{define, name_of, replace},
    waiting,
};

const NORMALIZATION: &str = "node.koordinator.sh/cpu-normalization-ratio";
const STRATEGY: &str = "node.koordinator.sh/colocation-strategy";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEVICES: &str = "/apis/scheduling.koordinator.sh/v1alpha1/devices";
const TOPOLOGIES: &str = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies";
const PROFILES: &str = "/apis/quota.koordinator.sh/v1alpha1/namespaces/default/elasticquotaprofiles";
const QUOTAS: &str = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas";
/// Few names, so that things that happen to one name meet.
const NAMES: u64 = 5;

/// Every policy that there is for amounts has its pool of nodes.
const COLOCATION: &str = r#"{"enable":true,"metricReportIntervalSeconds":30,"nodeConfigs":[
    {"name":"usage","nodeSelector":{"matchLabels":{"pool":"p0"}},"midUnallocatedPercent":50,"batchCPUThresholdPercent":35},
    {"name":"larger","nodeSelector":{"matchLabels":{"pool":"p1"}},"cpuCalculatePolicy":"maxUsageRequest",
     "memoryCalculatePolicy":"maxUsageRequest","metricReportIntervalSeconds":20,"midReclaimMode":"static",
     "midStaticCPUReservedPercent":20,"midStaticMemoryReservedPercent":30,"midCPUThresholdPercent":15},
    {"name":"request","nodeSelector":{"matchLabels":{"pool":"p2"}},"memoryCalculatePolicy":"request",
     "cpuReclaimThresholdPercent":81,"memoryReclaimThresholdPercent":120,"batchMemoryThresholdPercent":90}]}"#;
const THRESHOLD: &str = r#"{"clusterStrategy":{"enable":true},"nodeStrategies":[
    {"name":"b","nodeSelector":{"matchLabels":{"pool":"p1"}},"cpuSuppressThresholdPercent":40}]}"#;
/// QUIRK: lists are merged item by item, so that the third disk is limited as the first (§2.2).
const QOS: &str = r#"{"clusterStrategy":{"policies":{"cpuPolicy":"groupIdentity"},
    "lsClass":{"cpuQOS":{"enable":true,"groupIdentity":1},"networkQOS":{"enable":true,"ingressLimit":60}},
    "beClass":{"memoryQOS":{"enable":true,"wmarkRatio":90},"blkioQOS":{"enable":true,"blocks":[
        {"name":"a","type":"device","ioCfg":{"readIOPS":100}},{"name":"b","type":"volumegroup","ioCfg":{"writeIOPS":50}}]}}},
    "nodeStrategies":[{"name":"b","nodeSelector":{"matchLabels":{"pool":"p1"}},
    "lsClass":{"cpuQOS":{"groupIdentity":2},"resctrlQOS":{"enable":true,"catRangeEndPercent":30}},
    "beClass":{"blkioQOS":{"blocks":[{"name":"c"}]}}}]}"#;
const CPU_BURST: &str = r#"{"clusterStrategy":{"policy":"auto","cpuBurstPercent":500},"nodeStrategies":[
    {"name":"c","nodeSelector":{"matchLabels":{"pool":"p2"}},"policy":"cfsQuotaBurstOnly","cfsQuotaBurstPeriodSeconds":60}]}"#;
const SYSTEM: &str = r#"{"clusterStrategy":{"minFreeKbytesFactor":100,"totalNetworkBandwidth":"10G"},"nodeStrategies":[
    {"name":"a","nodeSelector":{"matchLabels":{"pool":"p0"}},"watermarkScaleFactor":150}]}"#;
const HOST_APPLICATIONS: &str = r#"{"applications":[
    {"name":"proxy","priority":"koord-prod","qos":"LS","cgroupPath":{"base":"CgroupRoot","relativePath":"proxy/"}}],
    "nodeConfigs":[{"name":"c","nodeSelector":{"matchLabels":{"pool":"p2"}},"applications":[
    {"name":"backup","priority":"koord-batch","qos":"BE","cgroupPath":{"base":"Kubepods","parentDir":"b","relativePath":"backup/"}}]}]}"#;
const NORMALIZATIONS: &str = r#"{"enable":true,"ratioModel":{"M":{"baseRatio":1.1,"hyperThreadEnabledRatio":1.2,
    "turboEnabledRatio":1.335,"hyperThreadTurboEnabledRatio":1.5},"N":{"baseRatio":7,"turboEnabledRatio":0.5}},
    "nodeConfigs":[{"name":"off","nodeSelector":{"matchLabels":{"pool":"p2"}},"enable":false}]}"#;
const AMPLIFICATIONS: &str = r#"{"enable":true,"resourceAmplificationRatio":{"memory":1.25},"nodeConfigs":[
    {"name":"b","nodeSelector":{"matchLabels":{"pool":"p1"}},"resourceAmplificationRatio":{"cpu":1.5}}]}"#;

/// The scenario of koord-manager with all its controllers.
#[derive(Clone, Copy, Debug, Default)]
pub struct WholeManager {
    /// As [`Manager::sensible`].
    pub sensible: bool,
}

impl WholeManager {
    fn of_slos(self) -> Manager {
        Manager { sensible: self.sensible }
    }
}

impl Scenario for WholeManager {
    fn prepare(&self, stage: &mut Stage) {
        for name in ["default", "koordinator-system"] {
            stage.person(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
        waiting::prepare(stage);
        define(stage, koord_types::KINDS);
    }

    fn wire(&self, core: &mut Core) -> Result<(), String> {
        self.of_slos().wire(core)?;
        let source = ConfigSource::default();
        let plugins = Plugins::chosen(&["*"], true);
        core.add(NodeResourceController::SPEC, noderesource::COMPONENT, |wiring| {
            NodeResourceController::wire(wiring, &source, plugins)
        })
        .map_err(|error| error.to_string())?;
        core.add(QuotaProfileController::SPEC, quotaprofile::COMPONENT, QuotaProfileController::wire)
            .map_err(|error| error.to_string())?;
        let settings = colocationprofile::Settings::default();
        core.add(ColocationProfileController::SPEC, colocationprofile::COMPONENT, |wiring| {
            ColocationProfileController::wire(wiring, settings)
        })
        .map(drop)
        .map_err(|error| error.to_string())
    }

    fn disturb(&self, stage: &mut Stage, random: &Random) -> Disturbance {
        match random.below(5) {
            0 | 1 => return self.of_slos().disturb(stage, random),
            2 => return waiting::disturb(stage, random, self.sensible),
            _ => {}
        }
        let name = format!("n{}", random.below(NAMES));
        let amount = 1 + random.below(8);
        let (what, code, fault) = match random.below(16) {
            0 | 1 => ("a kubelet reports on", size(stage, &name, amount), None),
            2 | 3 => ("a koordlet reports on", report(stage, &name, amount), None),
            4 | 5 => ("a pod comes to", stage.person(&Method::POST, PODS, &pod(&name, amount)), None),
            6 => {
                let phase = if amount > 4 { "Running" } else { "Succeeded" };
                let pod = format!("{PODS}/{name}-{amount}/status");
                ("a pod goes on on", stage.person(&Method::PATCH, &pod, &json!({"status": {"phase": phase}})), None)
            }
            7 => {
                let pod = format!("{PODS}/{name}-{amount}?gracePeriodSeconds=0");
                ("a pod leaves", stage.person(&Method::DELETE, &pod, &Value::Null), None)
            }
            8 => {
                let device = format!("{DEVICES}/{name}");
                ("other devices are in", replace_or_make(stage, (&device, DEVICES), &devices(&name, amount)), None)
            }
            9 => {
                let topology = format!("{TOPOLOGIES}/{name}");
                ("another board is in", replace_or_make(stage, (&topology, TOPOLOGIES), &zones(&name, amount)), None)
            }
            10 => {
                let profile = format!("{PROFILES}/{name}");
                (
                    "a profile is made of",
                    replace_or_make(stage, (&profile, PROFILES), &quota_profile(&name, amount)),
                    None,
                )
            }
            11 => {
                let code = stage.person(&Method::PATCH, &format!("{NODES}/{name}"), &settings(amount));
                ("an operator sets up", code, None)
            }
            12 => {
                let is_odd = amount > 6 && !self.sensible;
                let mut data = everything();
                if is_odd {
                    data["resource-amplification-config"] = json!("[]");
                }
                (
                    "everything is configured, not only for",
                    put_config(stage, &data),
                    (amount > 6).then_some(Fault::Malformed),
                )
            }
            13 => {
                let condition = json!({"type": "Ready", "status": if amount > 3 { "True" } else { "False" }});
                let body = json!({"status": {"conditions": [condition]}});
                ("a kubelet is well on", stage.person(&Method::PATCH, &format!("{NODES}/{name}/status"), &body), None)
            }
            14 => {
                let body = json!({"spec": {"unschedulable": amount > 4}});
                ("somebody cordons", stage.person(&Method::PATCH, &format!("{NODES}/{name}"), &body), None)
            }
            _ if self.sensible => ("nobody comes to", 304, None),
            _ => {
                let body = json!({"status": {"allocatable": {"kubernetes.io/batch-cpu": amount.to_string()}},
                    "metadata": {"annotations": {NORMALIZATION: "9E"}}});
                let node = format!("{NODES}/{name}/status");
                ("nonsense is written to", stage.person(&Method::PATCH, &node, &body), Some(Fault::Malformed))
            }
        };
        Disturbance { what: format!("{what} {name} ({amount}) -> {code}"), fault: fault.filter(|_| code < 300) }
    }

    fn collections(&self) -> &'static [&'static str] {
        &[NODES, SLOS, METRICS, TOPOLOGIES, PROFILES, QUOTAS, PODS, waiting::TEAMS]
    }

    /// Nonsense is taken off the nodes: a program that starts reports what it finds.
    fn conclude(&self, stage: &mut Stage) {
        self.of_slos().conclude(stage);
        waiting::conclude(stage);
        put_config(stage, &everything());
        // The clock may have jumped: reports of what is now the future would expire too late.
        let now = json!({"status": {"updateTime": stage.clock().now().to_string()}});
        for metric in stage.objects(METRICS) {
            stage.person(&Method::PATCH, &format!("{METRICS}/{}/status", name_of(&metric)), &now);
        }
        for node in stage.objects(NODES) {
            let name = name_of(&node);
            let strategy = match name.as_str() {
                "n3" => json!(r#"{"cpuReclaimThresholdPercent":70,"degradeTimeMinutes":14}"#),
                "n4" => json!(r#"{"enable":false}"#),
                _ => Value::Null,
            };
            // QUIRK: an annotation that changes alone wakes neither NodeSLO nor NodeMetric, as recorded.
            let touched = stage.clock().now().as_second().to_string();
            let body = json!({"metadata": {
                "annotations": {NORMALIZATION: null, STRATEGY: strategy}, "labels": {"touched": touched},
            }});
            stage.person(&Method::PATCH, &format!("{NODES}/{name}"), &body);
        }
    }

    fn denied(&self) -> fn(&Write) -> bool {
        waiting::is_denied
    }

    /// Kubelets and koordlets, now and then not all of them, and the zones' sizes change a little.
    fn report(&self, stage: &mut Stage, random: &Random) {
        for metric in stage.objects(METRICS) {
            let name = name_of(&metric);
            if random.below(3) > 0 {
                size(stage, &name, 1 + random.below(8));
            }
            if random.below(4) > 0 {
                report(stage, &name, 1 + random.below(8));
            }
            if random.below(2) == 0 {
                resize_zones(stage, &name, random.below(200));
            }
        }
    }

    fn check(&self, stage: &mut Stage) -> Result<(), String> {
        let config = stage.object(CONFIG).ok_or("the ConfigMap is gone")?;
        let cluster = Cluster {
            config: config["data"].clone(),
            nodes: stage.objects(NODES),
            pods: stage.objects(PODS),
            metrics: stage.objects(METRICS),
            slos: stage.objects(SLOS),
            devices: stage.objects(DEVICES),
            topologies: stage.objects(TOPOLOGIES),
            profiles: stage.objects(PROFILES),
            quotas: stage.objects(QUOTAS),
            namespaces: stage.objects(waiting::NAMESPACES),
            waiting: waiting::pods(stage),
            colocation_profiles: stage.objects(waiting::PROFILES),
        };
        cluster.check(stage.clock().now())
    }
}

/// A configuration with all of its sections.
fn everything() -> Value {
    json!({
        "colocation-config": COLOCATION, "resource-threshold-config": THRESHOLD, "resource-qos-config": QOS,
        "cpu-burst-config": CPU_BURST, "system-config": SYSTEM, "host-application-config": HOST_APPLICATIONS,
        "cpu-normalization-config": NORMALIZATIONS, "resource-amplification-config": AMPLIFICATIONS,
    })
}

fn replace_or_make(stage: &mut Stage, (object, collection): (&str, &str), body: &Value) -> u16 {
    match replace(stage, (object, collection), body) {
        404 => stage.person(&Method::POST, collection, body),
        code => code,
    }
}

pub(crate) fn size(stage: &mut Stage, node: &str, amount: u64) -> u16 {
    let has = json!({"cpu": (amount * 8).to_string(), "memory": format!("{}Gi", amount * 32), "pods": "110"});
    let body = json!({"status": {"capacity": has, "allocatable": has}});
    stage.person(&Method::PATCH, &format!("{NODES}/{node}/status"), &body)
}

/// Gives every zone of a node as many MiB less than whole GiB; what others say about the zones stays.
fn resize_zones(stage: &mut Stage, node: &str, less: u64) -> u16 {
    let path = format!("{TOPOLOGIES}/{node}");
    let Some(topology) = stage.object(&path) else { return 404 };
    let mut zones = topology["zones"].clone();
    let resources = zones.as_array_mut().into_iter().flatten().filter_map(|zone| zone["resources"].as_array_mut());
    for resource in resources.flatten().filter(|resource| resource["name"] == "memory") {
        let memory = resource["allocatable"].as_str().unwrap_or_default();
        if let Some(whole) = memory.strip_suffix("Gi").and_then(|number| number.parse::<u64>().ok()) {
            resource["allocatable"] = json!(format!("{}Mi", whole * 1024 - less));
        }
    }
    stage.person(&Method::PATCH, &path, &json!({"zones": zones}))
}

pub(crate) fn report(stage: &mut Stage, node: &str, amount: u64) -> u16 {
    let uses = |cpu: u64| json!({"resources": {"cpu": format!("{}m", cpu * 990), "memory": format!("{cpu}Gi")}});
    let class = |number: u64| ["koord-prod", "koord-mid", "koord-batch", "", "koord-free"][index(number, 5)];
    let of_pod = |number: u64| json!({"namespace": "default", "name": format!("{node}-{number}"), "priority": class(number), "podUsage": uses(number)});
    let application = |number: u64| json!({"name": format!("a{number}"), "priority": class(number), "usage": uses(1)});
    let body = json!({"status": {
        "updateTime": stage.clock().now().to_string(),
        "nodeMetric": {"nodeUsage": uses(amount * 2), "systemUsage": uses(1)},
        "podsMetric": [of_pod(amount), of_pod(amount / 2)],
        "hostApplicationMetric": [application(amount), application(amount + 1)],
        "prodReclaimableMetric": {"resource": uses(amount % 5)},
    }});
    stage.person(&Method::PATCH, &format!("{METRICS}/{node}/status"), &body)
}

/// A map of the entries that have a value.
fn present<const N: usize>(entries: [(&str, Option<String>); N]) -> Value {
    entries.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::String(text?)))).collect()
}

fn index(number: u64, of: u64) -> usize {
    usize::try_from(number % of).unwrap_or_default()
}

/// What an operator may say about a node: what is kept from pods, what others took, how much may be reclaimed.
fn settings(amount: u64) -> Value {
    let reservation = match amount {
        1 | 2 => json!(format!(r#"{{"resources":{{"cpu":"{amount}","memory":"3Gi"}}}}"#)),
        3 => json!(r#"{"resources":{"cpu":"9"},"reservedCPUs":"0-2,5"}"#),
        _ => Value::Null,
    };
    let taken = match amount {
        1..=4 => json!(format!(
            r#"{{"allocations":[{{"name":"a","priority":"koord-batch","resources":{{"kubernetes.io/batch-cpu":"{amount}k","kubernetes.io/batch-memory":"2Gi"}}}},{{"name":"b","priority":"koord-mid","resources":{{"kubernetes.io/mid-cpu":"1k"}}}}]}}"#
        )),
        _ => Value::Null,
    };
    let ratio = if amount > 5 { json!("0.29") } else { Value::Null };
    let bandwidth = match amount {
        1 | 2 => json!(format!("{amount}G")),
        3 => json!("unlimited"),
        _ => Value::Null,
    };
    json!({"metadata": {
        "annotations": {"node.koordinator.sh/reservation": reservation, "node.koordinator.sh/thirdPartyAllocations": taken,
            "node.koordinator.sh/network-bandwidth": bandwidth},
        // An annotation alone wakes nobody who writes a NodeSLO.
        "labels": {"node.koordinator.sh/memory-reclaim-ratio": ratio, "bandwidth": bandwidth},
    }})
}

fn quota_profile(name: &str, amount: u64) -> Value {
    let (ratio, keys) = match amount {
        1 | 2 => (json!("0.9"), None),
        3 | 4 => (json!("1.5"), Some(r#"["cpu","pods"]"#.to_owned())),
        _ => (Value::Null, None),
    };
    json!({"apiVersion": "quota.koordinator.sh/v1alpha1", "kind": "ElasticQuotaProfile",
    "metadata": {"name": name, "annotations": present([("quota.scheduling.koordinator.sh/resource-keys", keys)])},
    "spec": {
        "quotaName": format!("{name}-root"), "quotaLabels": {"for": name}, "resourceRatio": ratio,
        "nodeSelector": {"matchLabels": {"pool": format!("p{}", amount % 3)}},
    }})
}

fn pod(node: &str, amount: u64) -> Value {
    let qos = ["LS", "LSR", "BE", "LSE"][index(amount, 4)];
    let class = [None, Some("koord-mid"), Some("koord-prod"), Some("unknown")][index(amount / 2, 4)].map(str::to_owned);
    let status = (amount > 5).then(|| format!(r#"{{"numaNodeResources":[{{"node":{}}}]}}"#, amount % 3));
    let requests = |cpu: u64| json!({"cpu": format!("{cpu}50m"), "memory": format!("{cpu}Gi")});
    let container = |name: &str, cpu: u64| json!({"name": name, "image": "main", "resources": {"requests": requests(cpu), "limits": requests(cpu)}});
    json!({
        "metadata": {
            "name": format!("{node}-{amount}"), "labels": present([("koordinator.sh/qosClass", Some(qos.to_owned())), ("koordinator.sh/priority-class", class)]),
            "annotations": present([("scheduling.koordinator.sh/resource-status", status)]),
        },
        "spec": {"nodeName": node, "initContainers": [container("first", 3)], "containers": [container("main", amount)]},
    })
}

fn devices(node: &str, amount: u64) -> Value {
    let has = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "16Gi"});
    let one = |minor: u64| json!({"type": "gpu", "id": format!("gpu-{minor}"), "minor": minor, "health": minor != 3 && amount != 2, "resources": has});
    let card =
        |minor: u64| json!({"type": "rdma", "id": format!("rdma-{minor}"), "minor": minor, "health": minor == 0});
    let devices: Vec<Value> = (0..amount).map(one).chain((0..amount % 3).map(card)).collect();
    json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
        "metadata": {"name": node, "labels": {
            "node.koordinator.sh/gpu-model": format!("T{}", amount % 2),
            "node.koordinator.sh/gpu-vendor": if amount > 5 { "huawei" } else { "nvidia" },
        }},
        "spec": {"devices": devices}})
}

/// Two zones, or three in which a node's use cannot be shared evenly.
fn zones(node: &str, amount: u64) -> Value {
    let zone = |number: u64| {
        let has =
            |name: &str, much: String| json!({"name": name, "capacity": much, "allocatable": much, "available": much});
        json!({"name": format!("node-{number}"), "type": "Node",
            "resources": [has("cpu", (amount * 4).to_string()), has("memory", format!("{}Gi", amount * 16))]})
    };
    let model = ["M", "M", "N", "O"][index(amount, 4)];
    let cpu = (amount != 4).then(|| {
        format!(
            r#"{{"cpuModel":"{model}","hyperThreadEnabled":{},"turboEnabled":{}}}"#,
            amount.is_multiple_of(2),
            amount > 3
        )
    });
    json!({"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
        "metadata": {"name": node, "annotations": present([("node.koordinator.sh/cpu-basic-info", cpu)])},
        "topologyPolicies": ["None"], "zones": (0..2 + amount % 2).map(zone).collect::<Vec<_>>()})
}
