//! The scheduler: people add nodes and pods, cordon, label and delete, and in the end every pod has a node that it may be on.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::Method;
use koord_runtime::{Core, events::EventSink, random::Random};
use koord_scheduler_assembly::default_profile;
use koord_scheduler_engine::{Engine, queue::Timings};
use koord_scheduler_framework::Profile;
use koord_scheduler_runtime::{Scheduler, feed::Feed};
use koord_simulator::{Companion, Scenario, Witness};
use serde_json::{Value, json};

use crate::{Disturbance, Fault, Stage, companion::beside, people::name_of, witness::BindingWitness};

pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
/// Few names, so that things that happen to one name meet.
const NODE_NAMES: u64 = 4;
const POD_NAMES: u64 = 12;
/// How long a new leader waits for its caches to agree with the API server, as in koord-scheduler.
const AGREEMENT_MAX: Duration = Duration::from_secs(10);
/// The node that takes what is left in the end.
const LAST: &str = "last";

/// The scenario of the scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scheduling {
    /// Whether no node may have more pods than fit, which only the freshest caches guarantee: a scheduler that starts with a list of the past
    /// does not know what its predecessor has placed.
    pub exact: bool,
}

impl crate::Scenario for Scheduling {
    fn scheduler(&self, core: &mut Core, events: &Arc<dyn EventSink>) -> Option<Scheduler> {
        let profile = default_profile("koord-scheduler").ok()?;
        Some(of_profile(profile, core, events))
    }
}

impl Scenario for Scheduling {
    fn prepare(&self, stage: &mut Stage) {
        stage.person(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "default"}}));
        let class = json!({"metadata": {"name": "high"}, "value": 1000});
        stage.person(&Method::POST, "/apis/scheduling.k8s.io/v1/priorityclasses", &class);
        add_node(stage, "n0", 2, "a");
    }

    fn wire(&self, _: &mut Core) -> Result<(), String> {
        Ok(())
    }

    fn companion(&self, core: &mut Core, events: &Arc<dyn EventSink>) -> Option<Box<dyn Companion>> {
        beside(self, core, events)
    }

    fn witness(&self) -> Option<Box<dyn Witness>> {
        Some(Box::<BindingWitness>::default())
    }

    fn disturb(&self, stage: &mut Stage, random: &Random) -> Disturbance {
        let node = format!("n{}", random.below(NODE_NAMES));
        let pod = format!("p{}", random.below(POD_NAMES));
        let (node_path, pod_path) = (format!("{NODES}/{node}"), format!("{PODS}/{pod}"));
        let zone = if random.below(2) == 0 { "a" } else { "b" };
        let mut body = pod_body(&pod, 200 * (1 + random.below(6)), (random.below(3) == 0).then_some(zone));
        if random.below(4) == 0 {
            // Others may have to go for it.
            body["spec"]["priorityClassName"] = json!("high");
        }
        let patch = |patch: Value| (Method::PATCH, patch);
        let (what, code, fault) = match random.below(12) {
            0 => ("adds a node", add_node(stage, &node, 1 + random.below(3), zone), None),
            1..=5 => ("creates a pod", stage.person(&Method::POST, PODS, &body), None),
            6 | 7 => ("deletes a pod", stage.person(&Method::DELETE, &pod_path, &now()), None),
            8 => ("replaces a pod", replace_pod(stage, &pod_path, &body), Some(Fault::Recreated)),
            9 => {
                let (method, cordon) = patch(json!({"spec": {"unschedulable": random.below(2) == 0}}));
                ("cordons or uncordons a node", stage.person(&method, &node_path, &cordon), None)
            }
            10 => {
                let (method, label) = patch(json!({"metadata": {"labels": {"zone": zone}}}));
                ("labels a node", stage.person(&method, &node_path, &label), None)
            }
            _ => {
                let (method, ended) = patch(json!({"status": {"phase": "Succeeded"}}));
                ("sees a pod end", stage.person(&method, &format!("{pod_path}/status"), &ended), None)
            }
        };
        let fault = fault.filter(|_| code < 300);
        Disturbance { what: format!("{what} {node} {pod} ({zone}) -> {code}"), fault }
    }

    fn collections(&self) -> &'static [&'static str] {
        &[NODES, PODS]
    }

    fn conclude(&self, stage: &mut Stage) {
        // Pods that ended before they had a node stay as they are.
        add_node(stage, LAST, 64, "a");
        add_node(stage, &format!("{LAST}-b"), 64, "b");
    }

    fn check(&self, stage: &mut Stage) -> Result<(), String> {
        let nodes: BTreeMap<String, Value> =
            stage.objects(NODES).into_iter().map(|node| (name_of(&node), node)).collect();
        let mut used: BTreeMap<String, u64> = BTreeMap::new();
        for pod in stage.objects(PODS) {
            if pod["status"]["phase"] == "Succeeded" {
                continue;
            }
            let Some(node) = pod["spec"]["nodeName"].as_str() else {
                return Err(format!("{} has no node: {}", name_of(&pod), pod["status"]["conditions"]));
            };
            let request = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].as_str().unwrap_or_default();
            *used.entry(node.to_owned()).or_default() += milli(request);
            if !nodes.contains_key(node) {
                return Err(format!("{} is on {node}, which never was", name_of(&pod)));
            }
        }
        let over = used.iter().find(|(node, used)| {
            let offered = nodes[*node]["status"]["allocatable"]["cpu"].as_str().map_or(0, milli);
            **used > offered
        });
        match over.filter(|_| self.exact) {
            Some((node, used)) => Err(format!("{node} has pods of {used}m, which do not fit")),
            None => Ok(()),
        }
    }
}

/// A scheduler with this profile.
pub(crate) fn of_profile(profile: Profile, core: &mut Core, events: &Arc<dyn EventSink>) -> Scheduler {
    let engine = Engine::new(vec![profile], Timings::default(), core.random().clone());
    let feed = Feed::of(core, &engine.reads());
    Scheduler::new(engine, feed, Arc::clone(events), Arc::clone(core.clock())).agreeing(Some(AGREEMENT_MAX))
}

pub(crate) fn milli(cpu: &str) -> u64 {
    match cpu.strip_suffix('m') {
        Some(milli) => milli.parse().unwrap_or(0),
        None => cpu.parse::<u64>().unwrap_or(0) * 1000,
    }
}

pub(crate) fn now() -> Value {
    json!({"gracePeriodSeconds": 0})
}

pub(crate) fn add_node(stage: &mut Stage, name: &str, cpu: u64, zone: &str) -> u16 {
    let status = json!({"allocatable": {"cpu": cpu.to_string(), "memory": "64Gi", "pods": "100"}});
    let body = json!({"metadata": {"name": name, "labels": {"zone": zone}}, "status": status});
    let code = stage.person(&Method::POST, NODES, &body);
    // Its kubelet is ready at once.
    stage.person(&Method::PATCH, &format!("{NODES}/{name}"), &json!({"spec": {"taints": null}}));
    code
}

pub(crate) fn pod_body(name: &str, cpu: u64, zone: Option<&str>) -> Value {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": format!("{cpu}m")}}});
    let mut spec = json!({"schedulerName": "koord-scheduler", "containers": [container]});
    if let Some(zone) = zone {
        spec["nodeSelector"] = json!({ "zone": zone });
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

pub(crate) fn replace_pod(stage: &mut Stage, path: &str, body: &Value) -> u16 {
    match stage.person(&Method::DELETE, path, &now()) {
        deleted if deleted < 300 => stage.person(&Method::POST, PODS, body),
        refused => refused,
    }
}
