//! Reservations on whole engines, as the original's recordings show them.

use std::{collections::BTreeMap, sync::Arc};

use koord_core::{clock::Moment, key::ObjectKey, random::Random};
use koord_engine::{
    cycle::Profile,
    engine::{Engine, Outcome},
    object::Object,
    pod::Template,
    queue::Timings,
};
use koord_resource::ResourceList;
use koord_scheduling::ResourceId;
use serde_json::{Value, json};

use super::*;
use crate::{NodeResourcesFit, reservation::lifecycle, testing::node};

/// A scheduler with nodes of so many cores.
struct World {
    engine: Engine,
    now: Moment,
    objects: BTreeMap<String, Value>,
}

impl World {
    fn new(cpus: &[u32]) -> Self {
        let plugins: Vec<Arc<dyn Plugin>> =
            vec![Arc::new(NodeResourcesFit::default()), Arc::new(Reservation::default())];
        let profile = Profile {
            filters: vec![0, 1],
            scores: vec![(0, 1), (1, 5000)],
            post_filters: vec![1],
            ..Profile::of("default-scheduler", plugins)
        };
        let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        let mut world = Self { engine, now: Moment::default(), objects: BTreeMap::new() };
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
        let container = json!({"name": "c", "resources": {"requests": {"cpu": cpus.to_string()}}});
        let mut all = json!({"owners": [{"labelSelector": {"matchLabels": {"app": "x"}}}]});
        let mut template = json!({"containers": [container]});
        let mut labels = json!({});
        for (key, value) in spec.as_object().unwrap() {
            match &**key {
                "nodeName" => template["nodeName"] = value.clone(),
                "labels" => labels = value.clone(),
                _ => all[key] = value.clone(),
            }
        }
        all["template"] = json!({"spec": template});
        let object = json!({"metadata": {"name": name, "uid": name, "labels": labels}, "spec": all, "status": {}});
        self.objects.insert(name.to_owned(), object);
        self.update(name, &|_| {});
        let pod = ReservePod::new(&self.object(name)).unwrap().pod;
        self.engine.set_pod(Arc::new(pod), self.now);
        let placed = self.attempt();
        if self.engine.cluster().row(&placed).is_some() {
            let requests: ResourceList = [("cpu", cpus.to_string().parse().unwrap())].into_iter().collect();
            let status = lifecycle::bound(&self.object(name).status, &placed, &requests, jiff::Timestamp::UNIX_EPOCH);
            self.update(name, &|object| object["status"] = serde_json::to_value(&status).unwrap());
            let pod = ReservePod::new(&self.object(name)).unwrap().pod;
            self.engine.set_pod(Arc::new(pod), self.now);
        }
        placed
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

    fn attempt(&mut self) -> String {
        while self.engine.has_work(self.now) {
            let Some(attempt) = self.engine.attempt(self.now) else { continue };
            return match attempt.outcome {
                Outcome::Bind { node, patch, .. } => {
                    let allocated = patch.annotations.get("scheduling.koordinator.sh/reservation-allocated");
                    let allocated = allocated.map(|text| {
                        let value: Value = serde_json::from_str(text.as_deref().unwrap()).unwrap();
                        assert_eq!(value["name"], value["uid"]);
                        format!(" in {}", value["name"].as_str().unwrap())
                    });
                    format!("{node}{}", allocated.unwrap_or_default())
                }
                Outcome::Refused(refused) => refused.message,
                Outcome::Waiting { .. } => unreachable!(),
            };
        }
        "-".to_owned()
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
fn a_pod_that_ignores_reservations_uses_what_they_keep() {
    let mut world = World::new(&[8]);
    world.reserve("r", 6, &json!({}));
    let ignoring = [("scheduling.koordinator.sh/reservation-ignored", "true")];
    assert_eq!(world.pod("p", 4, &ignoring, ""), "n1", "ignored-label");
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
fn a_reservation_wants_its_node_and_no_other_policy_beside_it() {
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
        let kept = world.engine.cluster().state::<Kept>().unwrap();
        (kept.info(&Uid::from("r")).unwrap().available().get("cpu"), world.owner("q", 2, r#"{"name":"r"}"#))
    };
    assert_eq!(with(true), with(false));
    assert_eq!(with(true).0, 1000);
}

#[test]
fn what_is_over_keeps_nothing() {
    let mut world = World::new(&[8]);
    world.reserve("r", 6, &json!({}));
    assert_eq!(world.pod("p", 4, &[], ""), FULL);
    world.update("r", &|object| object["status"]["phase"] = json!("Failed"));
    world.engine.remove_pod(&Uid::from("r"), world.now);
    world.now = world.now + std::time::Duration::from_secs(12);
    // deleted-frees: the original leaves the pod waiting.
    assert_eq!((world.attempt(), world.used()), ("n1".to_owned(), 4000));
}
