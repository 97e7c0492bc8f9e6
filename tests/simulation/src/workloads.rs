//! The scheduler with Koordinator's plugins: pods of quotas and gangs, Reservations and their owners. In the end every pod has a
//! node, unless its gang has too few members; what Reservations and quotas say of themselves is computed anew from the pods.

use std::{collections::BTreeMap, sync::Arc};

use http::Method;
use koord_config::scheduler::SchedulerConfiguration;
use koord_resource::yaml;
use koord_runtime::{Core, events::EventSink, random::Random};
use koord_scheduler_assembly::build;
use koord_scheduler_runtime::Scheduler;
use koord_simulator::{Companion, Scenario, Witness};
use serde_json::{Value, json};

use crate::{
    Disturbance, Fault, Stage,
    companion::beside,
    people::{define, name_of},
    scheduling::{NODES, PODS, add_node, milli, now, of_profile, pod_body, replace_pod},
    witness::BindingWitness,
};

const QUOTAS: &str = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas";
const GANGS: &str = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups";
const RESERVATIONS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
/// The configuration that Koordinator ships.
const SHIPPED: &str = include_str!("../../../config/koord-scheduler.config.yaml");
/// Few names, so that things that happen to one name meet.
const NODE_NAMES: u64 = 3;
const POD_NAMES: u64 = 14;
const RESERVATION_NAMES: u64 = 2;
/// How many members every gang needs.
const MEMBERS: usize = 2;

/// The scenario of the scheduler with Koordinator's plugins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Workloads;

/// What a pod belongs to, by its number.
enum Share {
    Nothing,
    Quota(u64),
    /// A gang that its members declare.
    Declared,
    /// A gang with a PodGroup.
    Grouped,
    Owner(u64),
}

impl Share {
    fn of(number: u64) -> Self {
        match number {
            0..=3 => Self::Quota(number % 2),
            4..=6 => Self::Declared,
            7..=9 => Self::Grouped,
            10..=12 => Self::Owner(number % RESERVATION_NAMES),
            _ => Self::Nothing,
        }
    }

    fn of_name(pod: &str) -> Self {
        pod.strip_prefix('p').and_then(|number| number.parse().ok()).map_or(Self::Nothing, Self::of)
    }

    fn mark(&self, pod: &mut Value) {
        let (labels, annotations) = match self {
            Self::Nothing => return,
            Self::Quota(number) => (json!({"quota.scheduling.koordinator.sh/name": format!("q{number}")}), Value::Null),
            Self::Declared => {
                let (name, least) =
                    ("gang.scheduling.koordinator.sh/name", "gang.scheduling.koordinator.sh/min-available");
                (Value::Null, json!({name: "declared", least: MEMBERS.to_string()}))
            }
            Self::Grouped => (json!({"pod-group.scheduling.sigs.k8s.io": "grouped"}), Value::Null),
            Self::Owner(number) => (json!({"app": format!("r{number}")}), Value::Null),
        };
        (pod["metadata"]["labels"], pod["metadata"]["annotations"]) = (labels, annotations);
    }
}

impl crate::Scenario for Workloads {
    fn scheduler(&self, core: &mut Core, events: &Arc<dyn EventSink>) -> Option<Scheduler> {
        shipped(core, events)
    }
}

impl Scenario for Workloads {
    fn prepare(&self, stage: &mut Stage) {
        for name in ["default", "koordinator-system"] {
            stage.person(&Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": name}}));
        }
        define(stage, koord_types::KINDS);
        add_node(stage, "n0", 2, "a");
        stage.person(&Method::POST, GANGS, &pod_group());
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
        let (number, amount) = (random.below(POD_NAMES), 1 + random.below(6));
        let pod = format!("p{number}");
        let pod_path = format!("{PODS}/{pod}");
        let node = format!("n{}", random.below(NODE_NAMES));
        let body = || {
            let mut body = pod_body(&pod, 200 * amount, None);
            Share::of(number).mark(&mut body);
            body
        };
        let (what, code, fault) = match random.below(20) {
            0 => ("adds a node", add_node(stage, &node, 1 + random.below(3), "a"), None),
            1..=8 => ("creates a pod", stage.person(&Method::POST, PODS, &body()), None),
            9 | 10 => ("deletes a pod", stage.person(&Method::DELETE, &pod_path, &now()), None),
            11 => ("replaces a pod", replace_pod(stage, &pod_path, &body()), Some(Fault::Recreated)),
            12 => {
                let ended = json!({"status": {"phase": "Succeeded"}});
                ("sees a pod end", stage.person(&Method::PATCH, &format!("{pod_path}/status"), &ended), None)
            }
            13 => {
                let cordon = json!({"spec": {"unschedulable": random.below(2) == 0}});
                let path = format!("{NODES}/{node}");
                ("cordons or uncordons a node", stage.person(&Method::PATCH, &path, &cordon), None)
            }
            14 | 15 => ("sets a quota", set_quota(stage, random.below(2), amount), None),
            16 => {
                let path = format!("{QUOTAS}/q{}", random.below(2));
                ("deletes a quota", stage.person(&Method::DELETE, &path, &Value::Null), None)
            }
            17 => {
                let deleted = stage.person(&Method::DELETE, &format!("{GANGS}/grouped"), &Value::Null);
                (
                    "replaces a gang",
                    if deleted < 300 { stage.person(&Method::POST, GANGS, &pod_group()) } else { deleted },
                    None,
                )
            }
            18 => {
                let path = format!("{RESERVATIONS}/r{}", random.below(RESERVATION_NAMES));
                ("deletes a Reservation", stage.person(&Method::DELETE, &path, &Value::Null), None)
            }
            _ => {
                let body = reservation(random.below(RESERVATION_NAMES), amount, random);
                ("creates a Reservation", stage.person(&Method::POST, RESERVATIONS, &body), None)
            }
        };
        let fault = fault.filter(|_| code < 300);
        Disturbance { what: format!("{what} {node} {pod} ({amount}) -> {code}"), fault }
    }

    fn collections(&self) -> &'static [&'static str] {
        &[NODES, PODS, QUOTAS, GANGS, RESERVATIONS]
    }

    fn conclude(&self, stage: &mut Stage) {
        for number in 0..2 {
            set_quota(stage, number, 1000);
        }
        stage.person(&Method::POST, GANGS, &pod_group());
        add_node(stage, "last", 64, "a");
    }

    fn check(&self, stage: &mut Stage) -> Result<(), String> {
        let pods: Vec<Value> =
            stage.objects(PODS).into_iter().filter(|pod| pod["status"]["phase"] != "Succeeded").collect();
        for pod in pods.iter().filter(|pod| pod["spec"]["nodeName"].is_null()) {
            let members =
                |wanted: fn(&Share) -> bool| pods.iter().filter(|pod| wanted(&Share::of_name(&name_of(pod)))).count();
            let least = match Share::of_name(&name_of(pod)) {
                Share::Declared => members(|share| matches!(share, Share::Declared)),
                Share::Grouped => members(|share| matches!(share, Share::Grouped)),
                Share::Nothing | Share::Quota(_) | Share::Owner(_) => MEMBERS,
            };
            if least >= MEMBERS {
                return Err(format!("{} has no node: {}", name_of(pod), pod["status"]["conditions"]));
            }
        }
        quotas_say_what_is_used(stage, &pods)?;
        reservations_say_who_owns_them(stage, &pods)
    }
}

/// The scheduler with the configuration that Koordinator ships.
pub(crate) fn shipped(core: &mut Core, events: &Arc<dyn EventSink>) -> Option<Scheduler> {
    let mut document = yaml::parse(SHIPPED).ok()?;
    let profile = &mut document["profiles"][0];
    // What is over is forgotten before the end is looked at.
    let args = json!({"name": "Reservation", "args": {"gcDurationSeconds": 600}});
    profile["pluginConfig"].as_array_mut()?.push(args);
    let profile = SchedulerConfiguration::of(&document).ok()?.profiles.first()?.resolved();
    let built = build(&profile, &|_| false).ok()?;
    Some(of_profile(built.profile, core, events))
}

/// Every quota says how much the pods use that are bound and count to it.
fn quotas_say_what_is_used(stage: &mut Stage, pods: &[Value]) -> Result<(), String> {
    for quota in stage.objects(QUOTAS) {
        let name = name_of(&quota);
        let of_quota =
            |pod: &&Value| pod["metadata"]["labels"]["quota.scheduling.koordinator.sh/name"] == name.as_str();
        let used: u64 = pods.iter().filter(of_quota).map(request).sum();
        let said = quota["status"]["used"]["cpu"].as_str().map_or(0, milli);
        if used != said {
            return Err(format!("{name} says that {said}m are used, and its pods use {used}m"));
        }
    }
    Ok(())
}

/// Every Reservation has a node, unless its time is over, and says who has it.
fn reservations_say_who_owns_them(stage: &mut Stage, pods: &[Value]) -> Result<(), String> {
    let mut owners: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for pod in pods {
        let allocated = pod["metadata"]["annotations"]["scheduling.koordinator.sh/reservation-allocated"].as_str();
        let allocated: Value = allocated.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        if let Some(uid) = allocated["uid"].as_str() {
            owners.entry(uid.to_owned()).or_default().push(pod);
        }
    }
    for reservation in stage.objects(RESERVATIONS) {
        let (name, status) = (name_of(&reservation), &reservation["status"]);
        if !matches!(status["phase"].as_str(), Some("Available" | "Succeeded" | "Failed"))
            || status["nodeName"].is_null()
        {
            return Err(format!("{name} waits: {status}"));
        }
        if status["phase"] != "Available" {
            continue;
        }
        let owners = owners.get(reservation["metadata"]["uid"].as_str().unwrap_or_default());
        let (owners, once) = (owners.map_or(&[][..], Vec::as_slice), reservation["spec"]["allocateOnce"] != false);
        let used: u64 = owners.iter().map(|pod| request(pod)).sum();
        let said = status["allocated"]["cpu"].as_str().map_or(0, milli);
        let names = status["currentOwners"].as_array().map_or(0, Vec::len);
        if once && !owners.is_empty() || owners.len() != names || used != said {
            return Err(format!("{name} is owned by {} pods with {used}m: {status}", owners.len()));
        }
    }
    Ok(())
}

/// Thousandths of a CPU that a pod requests.
fn request(pod: &Value) -> u64 {
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].as_str().map_or(0, milli)
}

fn pod_group() -> Value {
    json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "grouped"},
        "spec": {"minMember": MEMBERS}})
}

/// Lets a quota have this many CPUs, whether it exists or not.
fn set_quota(stage: &mut Stage, number: u64, cpu: u64) -> u16 {
    let name = format!("q{number}");
    let spec = json!({"max": {"cpu": cpu.to_string()}, "min": {"cpu": "0"}});
    let changed = stage.person(&Method::PATCH, &format!("{QUOTAS}/{name}"), &json!({ "spec": spec }));
    if changed != 404 {
        return changed;
    }
    let body = json!({"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
        "metadata": {"name": name}, "spec": spec});
    stage.person(&Method::POST, QUOTAS, &body)
}

fn reservation(number: u64, amount: u64, random: &Random) -> Value {
    let name = format!("r{number}");
    let template = pod_body(&name, 400 * amount, None);
    let ttl = if random.below(2) == 0 { "0s" } else { "3m" };
    json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": name}, "spec": {
        "template": {"metadata": {"namespace": "default"}, "spec": template["spec"]},
        "owners": [{"labelSelector": {"matchLabels": {"app": name}}}],
        "allocateOnce": random.below(2) == 0, "ttl": ttl}})
}
