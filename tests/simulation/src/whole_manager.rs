//! koord-manager with all its controllers at once: what they make of nodes, pods, reports, devices, topologies and quota
//! profiles has no oracle of its own here. A program that starts afresh is one: it decides everything anew, and must
//! find nothing to write.

use http::Method;
use koord_manager_controllers::{
    ConfigSource,
    noderesource::{self, NodeResourceController, Plugins},
    quotaprofile::{self, QuotaProfileController},
};
use koord_resource::{declare::Profile, document::custom_resource_definition};
use koord_runtime::{Core, random::Random};
use serde_json::{Value, json};

use crate::{
    Disturbance, Fault, Scenario, Stage,
    manager::Manager,
    people::{name_of, replace},
};

const NORMALIZATION: &str = "node.koordinator.sh/cpu-normalization-ratio";
const STRATEGY: &str = "node.koordinator.sh/colocation-strategy";
const NODES: &str = "/api/v1/nodes";
const PODS: &str = "/api/v1/namespaces/default/pods";
const METRICS: &str = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics";
const DEVICES: &str = "/apis/scheduling.koordinator.sh/v1alpha1/devices";
const TOPOLOGIES: &str = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies";
const PROFILES: &str = "/apis/quota.koordinator.sh/v1alpha1/namespaces/default/elasticquotaprofiles";
/// Few names, so that things that happen to one name meet.
const NAMES: u64 = 5;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct WholeManager;

impl Scenario for WholeManager {
    fn prepare(&self, stage: &mut Stage) {
        for name in ["default", "koordinator-system"] {
            stage.person(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
        for versions in koord_api::KINDS {
            let definition = custom_resource_definition(versions, Profile::Hardened);
            stage.person(&Method::POST, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
        }
    }

    fn wire(&self, core: &mut Core) -> Result<(), String> {
        Manager.wire(core)?;
        let source = ConfigSource::default();
        let plugins = Plugins::chosen(&["*"], true);
        core.add(NodeResourceController::SPEC, noderesource::COMPONENT, |wiring| {
            NodeResourceController::wire(wiring, &source, plugins)
        })
        .map_err(|error| error.to_string())?;
        core.add(QuotaProfileController::SPEC, quotaprofile::COMPONENT, QuotaProfileController::wire)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn disturb(&self, stage: &mut Stage, random: &Random) -> Disturbance {
        if random.below(2) == 0 {
            return Manager.disturb(stage, random);
        }
        let name = format!("n{}", random.below(NAMES));
        let amount = 1 + random.below(8);
        let (what, code, fault) = match random.below(12) {
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
                let made = json!({"apiVersion": "quota.koordinator.sh/v1alpha1", "kind": "ElasticQuotaProfile", "metadata": {"name": name}, "spec": {
                    "quotaName": format!("{name}-root"), "quotaLabels": {"for": name},
                    "nodeSelector": {"matchLabels": {"pool": format!("p{}", amount % 3)}},
                }});
                ("a profile is made of", replace_or_make(stage, (&profile, PROFILES), &made), None)
            }
            _ => {
                let body = json!({"status": {"allocatable": {"kubernetes.io/batch-cpu": amount.to_string()}},
                    "metadata": {"annotations": {NORMALIZATION: "9E"}}});
                let node = format!("{NODES}/{name}/status");
                ("nonsense is written to", stage.person(&Method::PATCH, &node, &body), Some(Fault::Malformed))
            }
        };
        Disturbance { what: format!("{what} {name} ({amount}) -> {code}"), fault: fault.filter(|_| code < 300) }
    }

    /// Nonsense is taken off the nodes: a program that starts tells of what it finds.
    fn conclude(&self, stage: &mut Stage) {
        Manager.conclude(stage);
        // The clock may have jumped: reports of what is now the future would expire too late.
        let now = json!({"status": {"updateTime": stage.clock().now().to_string()}});
        for metric in stage.objects(METRICS) {
            stage.person(&Method::PATCH, &format!("{METRICS}/{}/status", name_of(&metric)), &now);
        }
        for node in stage.objects(NODES) {
            let path = format!("{NODES}/{}", name_of(&node));
            stage.person(
                &Method::PATCH,
                &path,
                &json!({"metadata": {"annotations": {NORMALIZATION: null, STRATEGY: null}}}),
            );
        }
    }

    fn check(&self, stage: &mut Stage) -> Result<(), String> {
        Manager.check(stage)
    }
}

fn replace_or_make(stage: &mut Stage, (object, collection): (&str, &str), body: &Value) -> u16 {
    match replace(stage, (object, collection), body) {
        404 => stage.person(&Method::POST, collection, body),
        code => code,
    }
}

fn size(stage: &mut Stage, node: &str, amount: u64) -> u16 {
    let has = json!({"cpu": (amount * 8).to_string(), "memory": format!("{}Gi", amount * 32), "pods": "110"});
    let body = json!({"status": {"capacity": has, "allocatable": has}});
    stage.person(&Method::PATCH, &format!("{NODES}/{node}/status"), &body)
}

fn report(stage: &mut Stage, node: &str, amount: u64) -> u16 {
    let uses = |cpu: u64| json!({"resources": {"cpu": format!("{cpu}"), "memory": format!("{cpu}Gi")}});
    let of_pod = |number: u64| json!({"namespace": "default", "name": format!("{node}-{number}"), "priority": "koord-prod", "podUsage": uses(number)});
    let body = json!({"status": {
        "updateTime": stage.clock().now().to_string(),
        "nodeMetric": {"nodeUsage": uses(amount * 2), "systemUsage": uses(1)},
        "podsMetric": [of_pod(amount), of_pod(amount / 2)],
    }});
    stage.person(&Method::PATCH, &format!("{METRICS}/{node}/status"), &body)
}

fn pod(node: &str, amount: u64) -> Value {
    let qos = ["LS", "LSR", "BE", "LSE"][usize::try_from(amount % 4).unwrap_or_default()];
    let requests = json!({"cpu": format!("{amount}00m"), "memory": format!("{amount}Gi")});
    json!({
        "metadata": {"name": format!("{node}-{amount}"), "labels": {"koordinator.sh/qosClass": qos}},
        "spec": {"nodeName": node, "containers": [
            {"name": "main", "image": "main", "resources": {"requests": requests, "limits": requests}},
        ]},
    })
}

fn devices(node: &str, amount: u64) -> Value {
    let has = json!({"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu-memory": "16Gi"});
    let one = |minor: u64| json!({"type": "gpu", "id": format!("gpu-{minor}"), "minor": minor, "health": minor != 3, "resources": has});
    json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device",
        "metadata": {"name": node, "labels": {"node.koordinator.sh/gpu-model": "T"}},
        "spec": {"devices": (0..amount).map(one).collect::<Vec<_>>()}})
}

fn zones(node: &str, amount: u64) -> Value {
    let zone = |number: u64| {
        let has =
            |name: &str, much: String| json!({"name": name, "capacity": much, "allocatable": much, "available": much});
        json!({"name": format!("node-{number}"), "type": "Node",
            "resources": [has("cpu", (amount * 4).to_string()), has("memory", format!("{}Gi", amount * 16))]})
    };
    json!({"apiVersion": "topology.node.k8s.io/v1alpha1", "kind": "NodeResourceTopology",
        "metadata": {"name": node}, "topologyPolicies": ["None"], "zones": [zone(0), zone(1)]})
}
