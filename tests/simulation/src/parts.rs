//! The scheduler with Koordinator's plugins in a cluster whose nodes have parts: GPUs, CPUs and NUMA nodes. Nodes are deleted and
//! come back, objects are replaced by others of their name, held by finalizers, or say nonsense. Every binding is judged by a
//! witness; in the end every pod has a node, unless it says nonsense itself or its gang has too few members.

mod nonsense;
mod objects;

use std::{collections::BTreeSet, sync::Arc};

use clusters::{facts::Facts, laws};
use http::Method;
use koord_runtime::{Core, events::EventSink, random::Random, write::Write};
use koord_scheduler_runtime::Scheduler;
use koord_simulator::{Companion, Scenario, Witness};
use serde_json::{Value, json};

use self::{
    nonsense::Nonsense,
    objects::{Machine, Share},
};
use crate::{
    Disturbance, Fault, Stage,
    companion::beside,
    people::{define, delete_held, let_go, name_of, replace},
    scheduling::{NODES, PODS, now},
    witness::{BindingWitness, GANG, ODD, has_ended, is_of_gang, of_kind},
    workloads::shipped,
};

const NAMESPACES: &str = "/api/v1/namespaces";
const ENDING: &str = "/api/v1/namespaces/ending";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const DEVICES: &str = "/apis/scheduling.koordinator.sh/v1alpha1/devices";
const TOPOLOGIES: &str = "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies";
const METRICS: &str = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics";
const QUOTAS: &str = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas";
const GANGS: &str = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups";
const RESERVATIONS: &str = "/apis/scheduling.koordinator.sh/v1alpha1/reservations";
/// Few names, so that things that happen to one name meet.
const POD_NAMES: u64 = 16;
/// What [`laws`] says of nodes that give out more than they have.
const GIVES_OUT: &str = " gives out ";
/// How many members every gang needs.
const MEMBERS: usize = 2;

/// The scenario of the scheduler on nodes with parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    /// Whether no node may ever give out more than it has, which only the freshest caches guarantee.
    pub exact: bool,
}

impl crate::Scenario for Parts {
    fn scheduler(&self, core: &mut Core, events: &Arc<dyn EventSink>) -> Option<Scheduler> {
        shipped(core, events)
    }
}

impl Scenario for Parts {
    fn prepare(&self, stage: &mut Stage) {
        for name in ["default", "koordinator-system", "ending"] {
            stage.person(&Method::POST, NAMESPACES, &json!({"metadata": {"name": name}}));
        }
        for (name, value) in [("production", 9500), ("urgent", 9900)] {
            let class = json!({"metadata": {"name": name}, "value": value});
            stage.person(&Method::POST, "/apis/scheduling.k8s.io/v1/priorityclasses", &class);
        }
        define(stage, koord_types::KINDS);
        for number in 0..2 {
            add(stage, &Machine::of(number));
            stage.person(&Method::POST, QUOTAS, &objects::quota(number, 4));
        }
        stage.person(&Method::POST, GANGS, &objects::gang());
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
        let (number, amount) = (random.below(POD_NAMES), 1 + random.below(4));
        let pod = format!("{PODS}/p{number}");
        let machine = Machine::of(random.below(Machine::COUNT));
        let node = format!("{NODES}/{}", machine.name);
        let is_odd = machine.name.starts_with(ODD);
        let body = || Share::of(number).pod(&format!("p{number}"), amount, random);
        let (what, code, fault) = match random.below(32) {
            0 | 1 => ("adds a machine", add(stage, &machine), None),
            2..=10 => ("creates a pod", stage.person(&Method::POST, PODS, &body()), None),
            11 | 12 => ("deletes a pod", stage.person(&Method::DELETE, &pod, &now()), None),
            13 => ("replaces a pod", replace_now(stage, (&pod, PODS), &body()), Some(Fault::Recreated)),
            14 => {
                let ended = json!({"status": {"phase": "Succeeded"}});
                ("sees a pod end", stage.person(&Method::PATCH, &format!("{pod}/status"), &ended), None)
            }
            15 => {
                let cordon = json!({"spec": {"unschedulable": random.below(2) == 0}});
                ("cordons or uncordons a node", stage.person(&Method::PATCH, &node, &cordon), None)
            }
            16 => ("deletes a node", stage.person(&Method::DELETE, &node, &Value::Null), None),
            17 => ("replaces a node", replace(stage, (&node, NODES), &machine.node()), Some(Fault::Recreated)),
            18 => {
                let device = format!("{DEVICES}/{}", machine.name);
                ("replaces a Device", replace(stage, (&device, DEVICES), &machine.device()), Some(Fault::Recreated))
            }
            19 => {
                let devices = machine.device()["spec"]["devices"].clone();
                let mut devices = devices.as_array().cloned().unwrap_or_default();
                if let Some(first) = devices.first_mut() {
                    first["health"] = (random.below(2) == 0).into();
                }
                let path = format!("{DEVICES}/{}", machine.name);
                let body = json!({"spec": {"devices": devices}});
                ("looks after a GPU", stage.person(&Method::PATCH, &path, &body), None)
            }
            20 => {
                let usage = objects::usage(&machine.name, amount, &stage.clock().now());
                let path = format!("{METRICS}/{}", machine.name);
                stage.person(&Method::POST, METRICS, &usage);
                ("reports usage", stage.person(&Method::PATCH, &format!("{path}/status"), &usage), None)
            }
            21 | 22 => ("sets a quota", set_quota(stage, number % 2, 2 * amount), None),
            23 => {
                let path = format!("{QUOTAS}/q{}", number % 2);
                let body = objects::quota(number % 2, 2 * amount);
                ("replaces a quota", replace(stage, (&path, QUOTAS), &body), Some(Fault::Recreated))
            }
            24 => {
                let path = format!("{RESERVATIONS}/r{}", number % 2);
                let body = objects::reservation(number % 2, amount, random);
                stage.person(&Method::POST, RESERVATIONS, &body);
                ("replaces a Reservation", replace(stage, (&path, RESERVATIONS), &body), Some(Fault::Recreated))
            }
            25 => {
                let body = objects::reservation(number % 2, amount, random);
                ("creates a Reservation", stage.person(&Method::POST, RESERVATIONS, &body), None)
            }
            26 => {
                let held = [&*pod, &node, &format!("{RESERVATIONS}/r0"), &format!("{QUOTAS}/q0")]
                    [usize::try_from(amount - 1).unwrap_or_default()]
                .to_owned();
                ("deletes what is held of", delete_held(stage, &held), Some(Fault::Stuck))
            }
            27 => {
                let held = [pod, node, format!("{RESERVATIONS}/r0"), format!("{QUOTAS}/q0")];
                ("lets go of", held.iter().map(|path| let_go(stage, path)).min().unwrap_or_default(), None)
            }
            28 if amount < 3 => ("ends a namespace", end(stage, random), Some(Fault::Terminating)),
            28 => {
                let budget = objects::budget(number % 2);
                stage.person(&Method::POST, BUDGETS, &budget);
                let path = format!("{BUDGETS}/b{}", 1 - number % 2);
                ("changes budgets", stage.person(&Method::DELETE, &path, &Value::Null), None)
            }
            29 => {
                let topology = format!("{TOPOLOGIES}/{}", machine.name);
                let code = replace(stage, (&topology, TOPOLOGIES), &machine.topology());
                ("replaces a topology", code, Some(Fault::Recreated))
            }
            _ => {
                let nonsense = Nonsense::draw(random);
                let code = nonsense.write(stage, random);
                let what = format!("says nonsense: {} -> {code}", nonsense.what);
                return Disturbance { what, fault: (code < 300).then_some(Fault::Malformed) };
            }
        };
        // What is odd of one machine is repaired by nobody.
        let fault = fault.filter(|_| code < 300 && !is_odd);
        Disturbance { what: format!("{what} {} p{number} ({amount}) -> {code}", machine.name), fault }
    }

    fn collections(&self) -> &'static [&'static str] {
        &[NODES, PODS, DEVICES, TOPOLOGIES, METRICS, QUOTAS, GANGS, RESERVATIONS]
    }

    fn conclude(&self, stage: &mut Stage) {
        for collection in [NODES, PODS, RESERVATIONS, QUOTAS] {
            for object in stage.objects(collection) {
                if !object["metadata"]["finalizers"].is_null() {
                    let_go(stage, &format!("{collection}/{}", name_of(&object)));
                }
            }
        }
        // Who waits for a member that says nonsense waits for ever, and that is said again and again.
        let is_member = |pod: &&Value| name_of(pod).starts_with(ODD) && is_of_gang(pod);
        for pod in stage.objects(PODS).iter().filter(is_member) {
            stage.person(&Method::DELETE, &format!("{PODS}/{}", name_of(pod)), &now());
        }
        for number in 0..2 {
            set_quota(stage, number, 1000);
        }
        stage.person(&Method::POST, GANGS, &objects::gang());
        for machine in Machine::last() {
            add(stage, &machine);
        }
    }

    fn repeated(&self) -> fn(&Write) -> bool {
        |write| write.kind.kind == "Event" && write.key.name().starts_with(ODD)
    }

    fn always(&self, stage: &mut Stage) -> Result<(), String> {
        if !self.exact {
            return Ok(());
        }
        // A Reservation may have ended before it says so, and what quotas and gangs want follows from what people did since.
        let mut objects: Vec<Value> = stage.objects(NODES).iter().map(|node| of_kind("Node", node)).collect();
        objects.retain(|node| !name_of(node).starts_with(ODD));
        let pods = stage.objects(PODS);
        objects.extend(pods.iter().filter(|pod| !has_ended(pod)).map(|pod| of_kind("Pod", pod)));
        let mut wrong = laws::broken(&Facts::of(&objects), false);
        wrong.retain(|what| what.contains(GIVES_OUT));
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }

    fn check(&self, stage: &mut Stage) -> Result<(), String> {
        let mut pods = stage.objects(PODS);
        pods.extend(stage.objects(&format!("{ENDING}/pods")));
        pods.retain(|pod| !has_ended(pod));
        let is_member = |pod: &&Value| !pod["metadata"]["labels"][GANG].is_null() && !name_of(pod).starts_with(ODD);
        let members = pods.iter().filter(is_member).count();
        for pod in pods.iter().filter(|pod| pod["spec"]["nodeName"].is_null()) {
            let waits = is_member(&pod) && members < MEMBERS;
            if !waits && !name_of(pod).starts_with(ODD) {
                return Err(format!("{} has no node: {}", name_of(pod), pod["status"]["conditions"]));
            }
        }
        for reservation in stage.objects(RESERVATIONS) {
            let (name, status) = (name_of(&reservation), &reservation["status"]);
            if !name.starts_with(ODD) && !matches!(status["phase"].as_str(), Some("Available" | "Succeeded" | "Failed"))
            {
                return Err(format!("{name} waits: {status}"));
            }
        }
        self.say_what_is(stage, &pods)
    }
}

impl Parts {
    /// What quotas and Reservations say of themselves is what the pods amount to, and no gang is there in part.
    fn say_what_is(self, stage: &mut Stage, pods: &[Value]) -> Result<(), String> {
        let mut objects: Vec<Value> = pods.iter().map(|pod| of_kind("Pod", pod)).collect();
        let kinds = [
            (NODES, "Node"),
            (DEVICES, "Device"),
            (TOPOLOGIES, "NodeResourceTopology"),
            (QUOTAS, "ElasticQuota"),
            (RESERVATIONS, "Reservation"),
        ];
        for (collection, kind) in kinds {
            let sensible = |object: &Value| !name_of(object).starts_with(ODD);
            objects.extend(stage.objects(collection).iter().filter(|one| sensible(one)).map(|one| of_kind(kind, one)));
        }
        let facts = Facts::of(&objects);
        let always: BTreeSet<String> = laws::broken(&facts, false).into_iter().collect();
        let mut wrong = laws::broken(&facts, true);
        wrong.retain(|what| !always.contains(what) || (self.exact && what.contains(GIVES_OUT)));
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }
}

/// A machine comes with all that is said of it.
fn add(stage: &mut Stage, machine: &Machine) -> u16 {
    stage.person(&Method::POST, DEVICES, &machine.device());
    stage.person(&Method::POST, TOPOLOGIES, &machine.topology());
    let code = stage.person(&Method::POST, NODES, &machine.node());
    // Its kubelet is ready at once.
    let spec = json!({"spec": {"taints": machine.taints()}});
    stage.person(&Method::PATCH, &format!("{NODES}/{}", machine.name), &spec);
    code
}

fn replace_now(stage: &mut Stage, (object, collection): (&str, &str), body: &Value) -> u16 {
    match stage.person(&Method::DELETE, object, &now()) {
        deleted if deleted < 300 => stage.person(&Method::POST, collection, body),
        refused => refused,
    }
}

/// Lets a quota have this many CPUs, whether it exists or not.
fn set_quota(stage: &mut Stage, number: u64, cpu: u64) -> u16 {
    let body = objects::quota(number, cpu);
    let changed = stage.person(&Method::PATCH, &format!("{QUOTAS}/q{number}"), &json!({"spec": body["spec"]}));
    if changed == 404 { stage.person(&Method::POST, QUOTAS, &body) } else { changed }
}

/// A namespace ends with a pod in it, or begins again.
fn end(stage: &mut Stage, random: &Random) -> u16 {
    let pods = format!("{ENDING}/pods");
    stage.person(&Method::POST, NAMESPACES, &json!({"metadata": {"name": "ending"}}));
    let pod = Share::Nothing.pod(&format!("e{}", random.below(3)), 1, random);
    stage.person(&Method::POST, &pods, &pod);
    stage.person(&Method::DELETE, ENDING, &Value::Null)
}
