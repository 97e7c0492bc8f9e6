//! Reservations on whole engines, as the original's recordings show them.

use std::{collections::BTreeMap, sync::Arc};

use koord_config::scheduler::NodeNumaResourceArgs;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, write::Action};
use koord_resource::{ResourceList, schema::patch::merge};
use koord_scheduler_engine::{Attempt, Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{Profile, labels::Labels, object::Object, pod::Template};
use koord_scheduler_plugins_kubernetes::{NodePorts, NodeResourcesFit};
use koord_scheduler_testing::node;
use koord_scheduling::ResourceId;
use serde_json::{Value, json};

use super::*;
use crate::{DeviceShare, NodeNumaResource};

mod conditions;
mod gates;
mod memory;
mod messages;
mod over;
mod parts;
mod pods;
mod refused;
mod required;
mod shown;
mod written;

/// A scheduler with nodes of so many cores.
struct World {
    engine: Engine,
    now: Moment,
    objects: BTreeMap<String, Value>,
    events: Vec<(&'static str, String)>,
}

impl World {
    fn new(cpus: &[u32]) -> Self {
        Self::of_plugin(Reservation::default(), cpus)
    }

    fn of_plugin(plugin: Reservation, cpus: &[u32]) -> Self {
        Self::of_plugins(plugin, DeviceShare::default(), cpus)
    }

    fn of_plugins(plugin: Reservation, devices: DeviceShare, cpus: &[u32]) -> Self {
        let plugins: Vec<Arc<dyn Plugin>> = vec![
            Arc::new(plugin),
            Arc::new(NodeResourcesFit::default()),
            Arc::new(NodeNumaResource::new(NodeNumaResourceArgs::default())),
            Arc::new(devices),
            Arc::new(NodePorts),
        ];
        let profile = Profile {
            filters: vec![1, 2, 3, 0, 4],
            scores: vec![(1, 1), (0, 5000)],
            post_filters: vec![0],
            ..Profile::of("default-scheduler", plugins)
        };
        Self::of_profile(profile, cpus)
    }

    fn of_profile(profile: Profile, cpus: &[u32]) -> Self {
        let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        let mut world = Self { engine, now: Moment::default(), objects: BTreeMap::new(), events: Vec::new() };
        for (index, cpus) in cpus.iter().enumerate() {
            let name = format!("n{}", index + 1);
            let members = json!({
                "metadata": {"labels": {"kubernetes.io/hostname": name}},
                "status": {"allocatable": {"cpu": cpus.to_string(), "memory": "1Ti", "pods": "110"}},
            });
            world.engine.set_node(node(&name, &members), world.now);
        }
        world
    }

    /// A Reservation of so many cores is placed, and is available. Gives its node, or why it has none.
    fn reserve(&mut self, name: &str, cpus: u32, spec: &Value) -> String {
        self.create(name, cpus, spec);
        self.attempt()
    }

    fn create(&mut self, name: &str, cpus: u32, spec: &Value) {
        let container = json!({"name": "c", "resources": {"requests": {"cpu": cpus.to_string()}}});
        let mut all = json!({"owners": [{"labelSelector": {"matchLabels": {"app": "x"}}}]});
        let mut template = json!({"containers": [container]});
        let mut labels = json!({});
        for (key, value) in spec.as_object().unwrap() {
            match &**key {
                "nodeName" => template["nodeName"] = value.clone(),
                "hostPort" => template["containers"][0]["ports"] = json!([{"containerPort": 1, "hostPort": value}]),
                "labels" => labels = value.clone(),
                _ => all[key] = value.clone(),
            }
        }
        all["template"] = json!({"spec": template});
        let object = json!({"metadata": {"name": name, "uid": name, "labels": labels}, "spec": all, "status": {}});
        self.objects.insert(name.to_owned(), object);
        self.update(name, &|_| {});
    }

    /// A write of a Reservation or a pod arrives, and its result is seen.
    fn write(&mut self, write: &Write) {
        let Action::Patch { patch, .. } = &write.action else { panic!("{write:?}") };
        if write.kind != ResourceKind::POD {
            self.update(write.key.as_str(), &|object| *object = merge::apply(object.take(), patch));
            return;
        }
        let uid = Uid::from(patch["metadata"]["uid"].as_str().unwrap());
        let mut pod = Pod::clone(&self.engine.cluster().pod(&uid).unwrap().pod);
        let annotations = patch["metadata"]["annotations"].as_object().unwrap();
        pod.given = annotations.iter().map(|(key, value)| (&**key, value.as_str().unwrap())).collect();
        self.engine.set_pod(Arc::new(pod), self.now);
    }

    /// What is written beside attempts arrives. Gives how many writes there were.
    fn status_updates(&mut self) -> usize {
        let writes = self.engine.status_updates().writes;
        for write in &writes {
            self.write(write);
        }
        writes.len()
    }

    /// The phase of a Reservation, and its conditions that are true.
    fn status(&self, name: &str) -> String {
        let status = &self.objects[name]["status"];
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let words =
            conditions.map(|one| format!(" {}={}", one["type"].as_str().unwrap(), one["status"].as_str().unwrap()));
        format!("{}{}", status["phase"].as_str().unwrap_or("-"), words.collect::<String>())
    }

    fn object(&self, name: &str) -> ReservationObject {
        serde_json::from_value(self.objects[name].clone()).unwrap()
    }

    fn update(&mut self, name: &str, change: &dyn Fn(&mut Value)) {
        change(self.objects.get_mut(name).unwrap());
        let value = Arc::new(self.object(name));
        let object = Object::new(ObjectKey::cluster(name), Uid::from(name), false, value);
        self.engine.set_object(object, self.now);
    }

    /// A pod of so many cores arrives. Gives its node with the reservation that it uses, or why it has none.
    fn pod(&mut self, name: &str, cpus: u32, labels: &[(&str, &str)], affinity: &str) -> String {
        let pod = Self::of(name, cpus, labels, affinity);
        self.engine.set_pod(Arc::new(pod), self.now);
        self.attempt()
    }

    fn of(name: &str, cpus: u32, labels: &[(&str, &str)], affinity: &str) -> Pod {
        let spec = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpus.to_string()}}}]});
        let annotations = [("scheduling.koordinator.sh/reservation-affinity", affinity)].into_iter();
        let annotations = annotations.filter(|(_, text)| !text.is_empty()).collect();
        let spec = serde_json::from_value(spec).unwrap();
        let template = Template::of("ns", labels.iter().copied().collect(), &annotations, &spec).unwrap();
        Pod { key: ObjectKey::new("ns", name), uid: Uid::from(name), template: Arc::new(template), ..Pod::default() }
    }

    fn owner(&mut self, name: &str, cpus: u32, affinity: &str) -> String {
        self.pod(name, cpus, &[("app", "x")], affinity)
    }

    /// The next attempt; none where there is nothing to try.
    fn next(&mut self) -> Option<Attempt> {
        while self.engine.has_work(self.now) {
            if let Some(attempt) = self.engine.attempt(self.now) {
                return Some(attempt);
            }
        }
        None
    }

    fn attempt(&mut self) -> String {
        self.next().map_or("-".to_owned(), |attempt| self.written(attempt))
    }

    /// What an attempt wants to be written arrives.
    fn written(&mut self, attempt: Attempt) -> String {
        match attempt.outcome {
            Outcome::Bind { node, patch, instead, .. } => {
                patch.writes.iter().for_each(|(_, write)| self.write(write));
                if let Some((_, write)) = &instead {
                    self.write(write);
                }
                let allocated = patch.annotations.get("scheduling.koordinator.sh/reservation-allocated");
                let allocated = allocated.map(|text| {
                    let value: Value = serde_json::from_str(text.as_deref().unwrap()).unwrap();
                    assert_eq!(value["name"], value["uid"]);
                    format!(" in {}", value["name"].as_str().unwrap())
                });
                format!("{node}{}", allocated.unwrap_or_default())
            }
            Outcome::Refused(refused) => {
                let Explanation { write, events } = self.engine.explanation(&attempt.pod, &refused.message);
                if let Some(write) = &write {
                    self.write(write);
                }
                self.events.extend(events);
                refused.message
            }
            Outcome::Waiting { .. } | Outcome::ExtenderCall { .. } => unreachable!(),
        }
    }

    fn used(&self) -> i64 {
        let cluster = self.engine.cluster();
        assert_eq!(cluster.discrepancies(), []);
        cluster.rows().map(|(row, _)| cluster.requested(ResourceId::CPU, row)).sum()
    }
}

const FULL: &str = "0/1 nodes are available: 1 Insufficient cpu.";

#[test]
fn what_is_reserved_is_there_for_owners_alone() {
    let mut world = World::new(&[8]);
    assert_eq!(world.reserve("r", 6, &json!({})), "n1");
    assert_eq!(world.pod("other", 4, &[], ""), FULL, "expire-ttl: the pod that waits for the room");
    assert_eq!(world.owner("p", 4, ""), "n1 in r");
    assert_eq!(world.used(), 10_000, "the owner counts beside what is kept for it");
    // It is used up, and the owner took 4 of its 6.
    assert_eq!(world.owner("q", 3, ""), FULL);
    assert_eq!(world.pod("s", 2, &[], ""), "n1");
}

#[test]
fn an_owner_prefers_its_reservation_and_may_take_more_than_it() {
    let mut world = World::new(&[8, 16]);
    assert_eq!(world.reserve("r", 4, &json!({"nodeName": "n1"})), "n1");
    assert_eq!(world.owner("p", 4, ""), "n1 in r", "owner-label");
    let mut world = World::new(&[8]);
    world.reserve("r", 4, &json!({}));
    assert_eq!(world.owner("p", 6, ""), "n1 in r", "default-overflow-to-node");
    let mut world = World::new(&[8, 16]);
    world.reserve("r", 4, &json!({"nodeName": "n1"}));
    assert_eq!(world.owner("p", 9, ""), "n2", "what does not fit there goes elsewhere");
}

#[test]
fn an_owner_that_requests_no_reserved_resource_uses_the_reservation_all_the_same() {
    let mut world = World::new(&[8]);
    world.reserve("r", 6, &json!({}));
    assert_eq!(world.owner("p", 0, ""), "n1 in r");
    let owner = Pod { node: Some("n1".into()), ..World::of("p", 0, &[("app", "x")], "") };
    world.engine.set_pod(Arc::new(owner), world.now);
    world.status_updates();
    assert_eq!(world.status("r"), "Succeeded Scheduled=True Ready=False");
    assert_eq!(world.pod("other", 8, &[], ""), "n1", "nothing is kept any more");
}

#[test]
fn an_owner_that_requests_none_of_the_reserved_resources_uses_no_reservation() {
    let mut world = World::new(&[8]);
    world.reserve("r", 6, &json!({}));
    let template =
        Template { requests: ResourceList::new(), ..Template::clone(&World::of("p", 0, &[("app", "x")], "").template) };
    let owner = Pod { template: Arc::new(template), ..World::of("p", 0, &[("app", "x")], "") };
    world.engine.set_pod(Arc::new(owner), world.now);
    assert_eq!((world.attempt(), world.status_updates()), ("n1".to_owned(), 0));
    assert_eq!(world.status("r"), "Available Scheduled=True Ready=True");
}

#[test]
fn several_owners_share_what_allows_it() {
    let mut world = World::new(&[4]);
    world.reserve("r", 4, &json!({"allocateOnce": false}));
    assert_eq!([world.owner("p", 2, ""), world.owner("q", 2, "")], ["n1 in r", "n1 in r"], "owner-allocate-many");
    assert!(world.owner("s", 1, "").starts_with("0/1 nodes are available: 1 Insufficient cpu"));
    // What the owners use is kept once.
    world.engine.remove_pod(&Uid::from("p"), world.now);
    assert_eq!(world.pod("other", 1, &[], ""), FULL);
}

#[test]
fn what_owners_use_beyond_their_reservation_is_not_free() {
    let mut world = World::new(&[8]);
    world.reserve("r", 4, &json!({"allocateOnce": false}));
    assert_eq!([world.owner("p", 3, ""), world.owner("q", 3, "")], ["n1 in r", "n1 in r"]);
    assert_eq!(world.pod("other", 3, &[], ""), FULL, "six of eight cores are used");
    assert_eq!(world.pod("small", 2, &[], ""), "n1");
}

#[test]
fn a_bound_owner_is_shown_at_once_in_its_reservation_alone() {
    let mut world = World::new(&[8]);
    for name in ["r", "s"] {
        world.reserve(name, 2, &json!({"labels": {"k": name}, "allocateOnce": false}));
    }
    assert_eq!(world.owner("p", 2, r#"{"name":"r"}"#), "n1 in r");
    assert_eq!(world.engine.urgent_of(|_| true), [], "it is not bound yet");
    let owner = world.engine.cluster().pod(&Uid::from("p")).unwrap().pod.clone();
    let given = [("scheduling.koordinator.sh/reservation-allocated", r#"{"name":"r","uid":"r"}"#)];
    let bound = Pod { node: Some("n1".into()), given: given.into_iter().collect(), ..Pod::clone(&owner) };
    world.engine.set_pod(Arc::new(bound), world.now);
    let mut written = |owners: Value| {
        let writes = world.engine.urgent_of(|_| true);
        let keys: Vec<&str> = writes.iter().map(|write| write.key.as_str()).collect();
        assert_eq!(keys, ["r"]);
        world.write(&writes[0]);
        assert_eq!(world.objects["r"]["status"]["currentOwners"][0]["name"], owners);
        assert_eq!(world.engine.urgent_of(|_| true), [], "nothing is new");
        assert_eq!(world.status_updates(), 0, "nothing is left");
        world.engine.remove_pod(&Uid::from("p"), world.now);
    };
    written(json!("p"));
    written(Value::Null);
}

#[test]
fn restricted_reservations_are_used_alone_or_not_at_all() {
    let restricted = || json!({"allocatePolicy": "Restricted"});
    let mut world = World::new(&[16]);
    world.reserve("r", 4, &restricted());
    assert_eq!(world.owner("p", 6, ""), "n1", "restricted-too-big-uses-node");
    let mut world = World::new(&[8]);
    world.reserve("r", 4, &restricted());
    let said = "0/1 nodes are available: 1 Insufficient cpu by node. 1 Reservation(s) for node reason that Insufficient cpu by \
         node, 1 Reservation(s) matched owner total";
    assert_eq!(world.owner("p", 6, ""), said, "restricted-too-big-no-node-room");
    let mut world = World::new(&[16]);
    world.reserve("r", 4, &restricted());
    assert_eq!(
        world.owner("p", 6, r#"{"name":"r"}"#),
        "0/1 nodes are available: 1 Reservation(s) Insufficient cpu, requested: 6000, used: 0, capacity: 4000. \
         1 Reservation(s) exactly matches the requested reservation name, 1 Reservation(s) matched owner total",
        "restricted-too-big-name"
    );
}

#[test]
fn a_pod_with_an_affinity_uses_a_reservation_or_waits() {
    let selector = r#"{"reservationSelector":{"k":"v"}}"#;
    let none = "0/2 nodes are available: node(s) no reservations match reservation affinity.";
    let mut world = World::new(&[8, 16]);
    assert_eq!(
        world.owner("p", 2, selector),
        format!("{none} 0 Reservation(s) matched owner total"),
        "affinity-required-none"
    );
    world.reserve("r", 4, &json!({"labels": {"k": "v"}, "unschedulable": true, "nodeName": "n1"}));
    let said = format!("{none} 1 Reservation(s) is unschedulable, 1 Reservation(s) matched owner total");
    assert_eq!(world.owner("q", 2, selector), said, "unschedulable-affinity");
    // unschedulable-skipped, unschedulable-tolerated
    assert_eq!(world.owner("s", 2, ""), "n2");
    let tolerant = r#"{"tolerations":[{"key":"node.kubernetes.io/unschedulable","operator":"Exists"}]}"#;
    assert_eq!(world.owner("t", 2, tolerant), "n1 in r");
    // affinity-invalid-json
    assert_eq!(world.owner("u", 2, "{bad"), "invalid character 'b' looking for beginning of object key string");
}

#[test]
fn a_reservation_that_becomes_schedulable_lets_its_pods_in() {
    let mut world = World::new(&[8]);
    world.reserve("r", 4, &json!({"labels": {"k": "v"}, "unschedulable": true}));
    assert!(world.owner("p", 2, r#"{"reservationSelector":{"k":"v"}}"#).contains("is unschedulable"));
    world.update("r", &|object| object["spec"]["unschedulable"] = json!(false));
    world.now = world.now + std::time::Duration::from_secs(12);
    assert_eq!(world.attempt(), "n1 in r", "update-unschedulable-revives");
}

#[test]
fn a_reservation_that_is_being_deleted_takes_no_owners() {
    let mut world = World::new(&[8]);
    world.reserve("r", 4, &json!({"labels": {"k": "v"}, "allocateOnce": false}));
    world.update("r", &|object| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"));
    let said = world.owner("p", 2, r#"{"reservationSelector":{"k":"v"}}"#);
    assert!(said.ends_with("1 Reservation(s) is unschedulable, 1 Reservation(s) matched owner total"), "{said}");
    let terminating = "running Reserve plugin \"Reservation\": target reservation is terminating";
    assert_eq!(world.owner("q", 2, r#"{"name":"r"}"#), terminating);
    assert_eq!(world.owner("s", 2, ""), "n1", "it keeps what it has");
}

#[test]
fn a_pod_that_ignores_reservations_uses_reserved_resources() {
    let mut world = World::new(&[8]);
    world.reserve("r", 6, &json!({}));
    let ignoring = [("scheduling.koordinator.sh/reservation-ignored", "true")];
    assert_eq!(world.pod("p", 4, &ignoring, ""), "n1", "ignored-label");
    assert_eq!(world.pod("q", 1, &ignoring, r#"{"name":"r"}"#), "n1", "it asks for one and uses none");
}

#[test]
fn the_smallest_order_wins_and_then_the_fullest_reservation() {
    let ordered = |order: &str, node: &str| json!({"labels": {"scheduling.koordinator.sh/reservation-order": order}, "nodeName": node});
    let with = |first: Value, second: Value| {
        let mut world = World::new(&[8, 16]);
        world.reserve("r1", 6, &first);
        world.reserve("r2", 3, &second);
        world.owner("p", 3, "")
    };
    assert_eq!(with(ordered("100", "n2"), ordered("5", "n1")), "n1 in r2", "order-across-nodes");
    assert_eq!(with(ordered("5", "n1"), ordered("100", "n2")), "n1 in r1");
    assert_eq!(with(ordered("50", "n1"), ordered("x", "n2")), "n1 in r1", "order-against-unordered");
    assert_eq!(with(ordered("0", "n1"), ordered("x", "n2")), "n2 in r2", "order-zero-ignored, score-tightest");
    assert_eq!(with(json!({"nodeName": "n2"}), json!({"nodeName": "n2"})), "n2 in r2", "score-same-node-tightest");
}

#[test]
fn a_reservation_requires_its_node_and_no_other_policy_beside_it() {
    let mut world = World::new(&[2, 16]);
    assert_eq!(
        world.reserve("r", 4, &json!({"nodeName": "n1"})),
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match the nodeName specified by reservation.",
        "schedule-nodename-full"
    );
    let mut world = World::new(&[16]);
    world.reserve("r1", 4, &json!({"allocatePolicy": "Restricted"}));
    assert_eq!(world.reserve("r2", 4, &json!({"allocatePolicy": "Aligned"})), "n1", "policy-no-conflict");
    assert_eq!(
        world.reserve("r3", 4, &json!({})),
        "0/1 nodes are available: 1 node(s) reservation allocate policy conflict."
    );
}

#[test]
fn owners_are_known_whatever_is_seen_first() {
    let with = |pod_first: bool| {
        let mut world = World::new(&[8]);
        let given = [("scheduling.koordinator.sh/reservation-allocated", r#"{"name":"r","uid":"r"}"#)];
        let owner = World::of("p", 3, &[("app", "x")], "");
        let owner = Pod { node: Some("n1".into()), given: given.into_iter().collect(), ..owner };
        if pod_first {
            world.engine.set_pod(Arc::new(owner.clone()), world.now);
        }
        world.reserve("r", 4, &json!({"allocateOnce": false, "allocatePolicy": "Restricted"}));
        if !pod_first {
            world.engine.set_pod(Arc::new(owner), world.now);
        }
        let cache = world.engine.cluster().state::<ReservationCache>().unwrap();
        (cache.info(&Uid::from("r")).unwrap().available().get("cpu"), world.owner("q", 2, r#"{"name":"r"}"#))
    };
    assert_eq!(with(true), with(false));
    assert_eq!(with(true).0, 1000);
}

#[test]
fn an_expired_reservation_reserves_nothing() {
    let mut world = World::new(&[8]);
    world.reserve("r", 6, &json!({}));
    assert_eq!(world.pod("p", 4, &[], ""), FULL);
    world.update("r", &|object| object["status"]["phase"] = json!("Failed"));
    world.now = world.now + std::time::Duration::from_secs(12);
    // deleted-frees: the original leaves the pod waiting.
    assert_eq!((world.attempt(), world.used()), ("n1".to_owned(), 4000));
}

#[test]
fn a_reservation_with_a_node_that_is_not_available_reserves_nothing() {
    for phase in [json!("Pending"), json!("Waiting"), json!(""), Value::Null] {
        let mut world = World::new(&[8]);
        world.reserve("r", 6, &json!({}));
        world.update("r", &|object| object["status"]["phase"] = phase.clone());
        assert_eq!((world.attempt(), world.used()), ("-".to_owned(), 0), "it is not placed anew: {phase}");
        assert_eq!(world.owner("p", 8, ""), "n1");
        world.update("r", &|object| object["status"]["phase"] = json!("Available"));
        assert_eq!(world.used(), 14_000);
    }
}

#[test]
fn the_phases_of_a_reservation_are_reported() {
    let mut world = World::new(&[8]);
    assert!(world.reserve("large", 9, &json!({})).starts_with("0/1 nodes are available"));
    assert_eq!(world.status("large"), "- Scheduled=False");
    assert_eq!(world.reserve("r", 6, &json!({})), "n1");
    assert_eq!(world.status("r"), "Available Scheduled=True Ready=True");
    assert_eq!(world.status_updates(), 0, "nobody uses it");
    let owner = Pod { node: Some("n1".into()), ..World::of("p", 4, &[("app", "x")], "") };
    assert_eq!(world.owner("p", 4, ""), "n1 in r");
    assert_eq!(world.status_updates(), 0, "it is not bound yet");
    world.engine.set_pod(Arc::new(owner), world.now);
    assert_eq!((world.status_updates(), world.status_updates()), (1, 0));
    assert_eq!(world.status("r"), "Succeeded Scheduled=True Ready=False");
    assert_eq!(world.objects["r"]["status"]["currentOwners"][0]["name"], "p");
    assert_eq!(world.used(), 4000, "the owner alone");
}

#[test]
fn a_reservation_that_is_deleted_is_gone() {
    let mut world = World::new(&[8]);
    world.reserve("r", 6, &json!({}));
    world.engine.remove_object(std::any::TypeId::of::<ReservationObject>(), "r", world.now);
    assert_eq!((world.used(), world.pod("p", 8, &[], "")), (0, "n1".to_owned()));
}

#[test]
fn an_invalid_template_is_reported_of_the_reservation() {
    let mut world = World::new(&[8]);
    let spec = json!({"owners": [{}], "template": {"spec": {"containers": 1}}});
    let object = json!({"metadata": {"name": "r", "uid": "r"}, "spec": spec, "status": {}});
    world.objects.insert("r".to_owned(), object);
    world.update("r", &|_| {});
    assert_eq!((world.attempt(), world.status_updates(), world.status_updates()), ("-".to_owned(), 1, 0));
    let message = world.objects["r"]["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("spec.template: "), "{message}");
}

#[test]
fn running_pods_are_taken_over() {
    let over = |policy: &str| {
        json!({"allocatePolicy": policy, "preAllocation": true,
            "labels": {"scheduling.koordinator.sh/pre-allocation-required": "true"}})
    };
    let mut world = World::new(&[4]);
    let no_pod = "0/1 nodes are available: node(s) no pod match reservation with pre allocation required.";
    assert_eq!(world.reserve("early", 4, &over("Restricted")), no_pod, "prealloc-required-none");
    let unsupported = "node(s) reservation pre allocation is unsupported with current attributes";
    assert!(world.reserve("aligned", 4, &over("Aligned")).contains(unsupported), "prealloc-default-policy");
    for name in ["early", "aligned"] {
        world.engine.remove_object(std::any::TypeId::of::<ReservationObject>(), name, world.now);
    }
    let owner = World::of("p", 4, &[("app", "x")], "");
    world.engine.set_pod(Arc::new(Pod { node: Some("n1".into()), ..owner }), world.now);
    assert_eq!(world.reserve("r", 4, &over("Restricted")), "n1", "prealloc-takes-running");
    assert_eq!((world.status_updates(), world.status("r")), (1, "Succeeded Scheduled=True Ready=False".to_owned()));
    assert_eq!(world.objects["r"]["status"]["currentOwners"][0]["name"], "p");
}

#[test]
fn a_reserved_port_is_free_for_an_owner() {
    let spec = json!({"hostPort": 80, "allocateOnce": false});
    let owner = |name: &str, app: &str| {
        let pod = World::of(name, 1, &[("app", app)], "");
        let ports = json!({"containers": [{"ports": [{"containerPort": 1, "hostPort": 80}]}]});
        let host_ports = koord_scheduler_testing::pod("ports", &ports).template.host_ports.clone();
        Arc::new(Pod { template: Arc::new(Template { host_ports, ..Template::clone(&pod.template) }), ..pod })
    };
    let mut world = World::new(&[8]);
    assert_eq!(world.reserve("r", 4, &spec), "n1");
    let mut placed = |pod: Arc<Pod>| {
        world.engine.set_pod(pod, world.now);
        world.attempt()
    };
    assert!(placed(owner("other", "y")).contains("didn't have free ports"));
    assert_eq!(placed(owner("p", "x")), "n1 in r", "hostport-reserved");
    assert!(placed(owner("q", "x")).contains("didn't have free ports"), "an owner has it");
}

#[test]
fn a_pod_with_a_reservation_affinity_gets_an_event_about_reservations() {
    let mut world = World::new(&[8]);
    world.reserve("r", 4, &json!({"unschedulable": true}));
    world.owner("p", 2, r#"{"name":"other"}"#);
    world.owner("q", 9, "");
    let said = "0/1 reservations are available: 1 Reservation(s) didn't match the requested reservation name.";
    assert_eq!(world.events, [("FailedScheduling-Reservation", said.to_owned())]);
}

#[test]
fn an_owner_uses_a_reservation_whose_node_is_not_written_yet() {
    let once = |spec: Value| {
        let mut world = World::new(&[4, 16]);
        world.create("r", 4, &spec);
        let attempt = world.next().unwrap();
        (world, attempt)
    };
    let on_n1 = || json!({"nodeName": "n1"});
    let (mut world, attempt) = once(on_n1());
    assert_eq!(world.owner("p", 2, ""), "n1 in r", "order-across-nodes");
    assert_eq!(world.owner("q", 2, ""), "n2", "one owner is all that it takes");
    assert_eq!(world.written(attempt), "n1");
    assert_eq!(world.status("r"), "Available Scheduled=True Ready=True");
    let info = || world.engine.cluster().state::<ReservationCache>().unwrap().info(&Uid::from("r")).unwrap();
    assert_eq!((info().is_assumed, info().assigned_count()), (false, 1));

    // A change of the object that comes before its status does not lose it; a failed write does.
    let (mut world, attempt) = once(on_n1());
    world.update("r", &|object| object["metadata"]["labels"] = json!({"k": "v"}));
    let selector = r#"{"reservationSelector":{"k":"v"}}"#;
    world.engine.bind_failed(&attempt, world.now);
    assert!(world.owner("p", 2, selector).contains("no reservations match reservation affinity"));
    let (mut world, _) = once(on_n1());
    world.update("r", &|object| object["metadata"]["labels"] = json!({"k": "v"}));
    assert_eq!(world.owner("p", 2, selector), "n1 in r");
}

#[test]
fn a_deleted_reservation_takes_no_owners_before_its_node_is_written() {
    let mut world = World::new(&[4, 16]);
    world.create("r", 4, &json!({"nodeName": "n1"}));
    world.next().unwrap();
    world.engine.remove_object(std::any::TypeId::of::<ReservationObject>(), "r", world.now);
    assert_eq!((world.owner("p", 2, ""), world.used()), ("n2".to_owned(), 2000));
    assert!(world.engine.cluster().state::<ReservationCache>().unwrap().is_empty());
}

#[test]
fn a_reservation_without_owners_is_not_placed() {
    let mut world = World::new(&[8]);
    let said = "running PreFilter plugin \"Reservation\": the reservation misses the owner spec";
    assert_eq!(world.reserve("r", 4, &json!({"owners": []})), said);
    assert_eq!(world.status("r"), "- Scheduled=False");
    assert_eq!(world.owner("p", 8, ""), "n1");
}

#[test]
fn an_annotation_that_is_left_of_a_failed_binding_is_removed() {
    let mut world = World::new(&[8]);
    let given = [("scheduling.koordinator.sh/reservation-allocated", r#"{"name":"r","uid":"r"}"#)];
    let pod = Pod { given: given.into_iter().collect(), ..World::of("p", 4, &[("app", "x")], "") };
    world.engine.set_pod(Arc::new(pod.clone()), world.now);
    let Outcome::Bind { patch, .. } = world.next().unwrap().outcome else { panic!("there is room") };
    assert_eq!(patch.annotations, [(given[0].0.to_owned(), None)].into(), "the reservation is gone");
    let mut world = World::new(&[8]);
    world.reserve("r", 4, &json!({}));
    world.engine.set_pod(Arc::new(pod), world.now);
    assert_eq!(world.attempt(), "n1 in r");
}

#[test]
fn a_reservation_that_loses_or_changes_its_node_is_where_its_status_says() {
    let mut world = World::new(&[8, 8]);
    assert_eq!(world.reserve("r", 6, &json!({"nodeName": "n1"})), "n1");
    world.update("r", &|object| object["status"]["nodeName"] = json!("n2"));
    assert_eq!(world.owner("p", 6, ""), "n2 in r");
    world.engine.remove_pod(&Uid::from("p"), world.now);
    world.update("r", &|object| object["status"] = json!({}));
    assert!(world.engine.cluster().state::<ReservationCache>().unwrap().is_empty());
    assert_eq!((world.used(), world.attempt(), world.used()), (0, "n1".to_owned(), 6000));
}

#[test]
fn the_index_of_owners_is_shown() {
    let mut world = World::new(&[8]);
    world.reserve("r", 4, &json!({"allocateOnce": false}));
    let plugin = Reservation::default();
    let index = |query: &[(&str, &str)]| {
        let query = query.iter().copied().collect();
        plugin.serve(&["reservationSelectorIndex"], &query, world.engine.cluster()).unwrap()
    };
    let counts = json!({"reservations": 1, "selectors": 1, "unindexed": 0});
    assert_eq!((index(&[]), index(&[("detail", "false")])), (counts.clone(), counts));
    let detail = index(&[("detail", "true")]);
    assert_eq!((&detail["bySelector"]["app"], &detail["unindexedReservations"]), (&json!({"x": ["r"]}), &json!([])));
}
