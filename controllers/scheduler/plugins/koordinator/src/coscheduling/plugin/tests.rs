//! Gangs on whole engines, with the recordings of the original where it decides well.

mod lists;
mod liveness;
mod network;
mod preemption;
mod reasons;
mod status;

use std::{any::TypeId, collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::PodSpec;
use koord_core::{clock::Moment, key::ObjectKey, random::Random, uid::Uid};
use koord_scheduler_engine::{Attempt, Engine, Outcome, queue::Timings};
use koord_scheduler_framework::{
    Profile,
    object::Object,
    pod::{Reference, Template},
};
use koord_scheduler_plugins_kubernetes::{NodeResourcesFit, SchedulingGates};
use koord_scheduler_testing::node;
use koord_types::pod_group::PodGroup;
use serde_json::{Value, json};

use super::*;

const GANG: &str = "gang.scheduling.koordinator.sh/";

/// What is said of a pod beside its annotations.
const MEMBERS: [&str; 7] = ["podGroup", "node", "gated", "priority", "label", "reservation", "spec"];

/// A scheduler, with what it has done.
struct World {
    engine: Engine,
    now: Moment,
    bound: BTreeMap<String, Attempt>,
    messages: BTreeMap<String, String>,
    attempts: usize,
    pods: BTreeMap<String, Arc<Pod>>,
    /// Who was evicted, and for whom.
    evicted: Vec<String>,
    /// For which gang groups or pods.
    preemptors: Vec<Arc<str>>,
}

impl World {
    fn new(cpus: &[u32]) -> Self {
        Self::with(Coscheduling::default(), cpus)
    }

    fn with(plugin: Coscheduling, cpus: &[u32]) -> Self {
        Self::beside(None, plugin, cpus)
    }

    fn beside(other: Option<Arc<dyn Plugin>>, plugin: Coscheduling, cpus: &[u32]) -> Self {
        let plugins: Vec<Arc<dyn Plugin>> =
            vec![Arc::new(SchedulingGates), Arc::new(NodeResourcesFit::default()), Arc::new(plugin)];
        let preempts = other.as_ref().is_some_and(|other| other.name() == "DefaultPreemption");
        let plugins: Vec<_> = plugins.into_iter().chain(other).collect();
        let profile = Profile {
            filters: if plugins.len() > 3 { vec![3, 1] } else { vec![1] },
            scores: vec![(2, 1)],
            post_filters: if preempts { vec![2, 3] } else { vec![2] },
            ..Profile::of("default-scheduler", plugins)
        };
        let engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1));
        let (bound, messages, pods) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut world = Self {
            engine,
            now: Moment::default(),
            bound,
            messages,
            attempts: 0,
            pods,
            evicted: Vec::new(),
            preemptors: Vec::new(),
        };
        for (index, cpus) in cpus.iter().enumerate() {
            world.add_node(&format!("n{}", index + 1), *cpus);
        }
        world
    }

    fn add_node(&mut self, name: &str, cpus: u32) {
        self.add_node_at(name, cpus, &json!({}));
    }

    fn add_node_at(&mut self, name: &str, cpus: u32, labels: &Value) {
        let allocatable = json!({"allocatable": {"cpu": cpus.to_string(), "pods": "110"}});
        let members = json!({"metadata": {"labels": labels}, "status": allocatable});
        self.engine.set_node(node(name, &members), self.now);
    }

    /// Pods arrive at once: their names, and what they say.
    fn create(&mut self, names: &[&str], cpus: u32, gang: &Value) -> &mut Self {
        for name in names {
            self.put(name, cpus, gang);
        }
        self.run()
    }

    fn put(&mut self, name: &str, cpus: u32, gang: &Value) {
        let (namespace, bare) = name.split_once('/').unwrap_or(("ns", name));
        let mut spec = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpus.to_string()}}}]});
        let annotations: BTreeMap<String, &str> = gang
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| !MEMBERS.contains(&&***key))
            .map(|(key, value)| {
                let key = if key.contains('/') { key.clone() } else { format!("{GANG}{key}") };
                (key, value.as_str().unwrap())
            })
            .collect();
        let annotations = annotations.iter().map(|(key, value)| (&**key, *value)).collect();
        let group = gang.get("podGroup").map(|name| ("pod-group.scheduling.sigs.k8s.io", name.as_str().unwrap()));
        let label = gang.get("label").map(|label| label.as_str().unwrap().split_once('=').unwrap());
        for (name, value) in gang.get("spec").and_then(Value::as_object).into_iter().flatten() {
            spec[name] = value.clone();
        }
        let mut spec: PodSpec = serde_json::from_value(spec).unwrap();
        spec.priority = gang.get("priority").map(|priority| priority.as_i64().unwrap().try_into().unwrap());
        let labels = group.into_iter().chain(label).collect();
        let template = Template::of(namespace, labels, &annotations, &spec).unwrap();
        let pod = Arc::new(Pod {
            key: ObjectKey::new(namespace, bare),
            uid: Uid::from(name),
            template: Arc::new(template),
            node: gang.get("node").map(|node| node.as_str().unwrap().into()),
            reservation: gang.get("reservation").map(|name| {
                let key = ObjectKey::cluster(name.as_str().unwrap());
                Arc::new(Reference { kind: ResourceKind::typed::<koord_types::reservation::Reservation>(), key })
            }),
            gates: gang.get("gated").map(|_| "gate".into()).into_iter().collect(),
            ..Pod::default()
        });
        self.pods.insert(name.to_owned(), Arc::clone(&pod));
        self.engine.set_pod(pod, self.now);
    }

    fn pod_group(&mut self, name: &str, members: i32) -> &mut Self {
        let value: PodGroup = serde_json::from_value(json!({"spec": {"minMember": members}})).unwrap();
        let key = ObjectKey::new("ns", name);
        self.engine.set_object(Object::new(key, Uid::from(name), false, Arc::new(value)), self.now);
        self.run()
    }

    fn delete(&mut self, name: &str) -> &mut Self {
        self.engine.remove_pod(&Uid::from(name), self.now);
        self.bound.remove(name);
        self.run()
    }

    /// Tries all that is to be tried.
    fn run(&mut self) -> &mut Self {
        for _ in 0..1000 {
            if !self.engine.has_work(self.now) {
                assert_eq!(self.engine.waiting().count(), 0, "nothing waits when a round is over");
                return self;
            }
            self.attempts += 1;
            let Some(attempt) = self.engine.attempt(self.now) else {
                self.attempts -= 1;
                continue;
            };
            let name = attempt.pod.uid.to_string();
            match &attempt.outcome {
                Outcome::Bind { .. } => _ = self.bound.insert(name, attempt),
                Outcome::Refused(refused) => {
                    self.messages.insert(name.clone(), refused.message.clone());
                    self.preemptors.extend(refused.preemptor.clone());
                    self.evicted.extend(refused.victims.iter().map(|victim| format!("{} for {name}", victim.uid)));
                }
                Outcome::Waiting { .. } | Outcome::ExtenderCall { .. } => {}
            }
        }
        panic!("there is no end to it");
    }

    /// Time passes, second by second.
    fn wait(&mut self, seconds: u64) -> &mut Self {
        for _ in 0..seconds {
            self.now = self.now + Duration::from_secs(1);
            self.run();
        }
        self
    }

    /// What is to be bound is bound.
    fn bind(&mut self) -> &mut Self {
        for (name, attempt) in &self.bound {
            if let Outcome::Bind { node, .. } = &attempt.outcome {
                let pod = Pod { node: Some(Arc::clone(node)), ..Pod::clone(&self.pods[name]) };
                self.engine.set_pod(Arc::new(pod), self.now);
            }
        }
        self.run()
    }

    fn bind_failed(&mut self, name: &str) -> &mut Self {
        let attempt = self.bound.remove(name).unwrap();
        self.engine.bind_failed(&attempt, self.now);
        self
    }

    /// The pods that have a node, each with the number of pods that it was bound with.
    fn bound(&self) -> String {
        let members = |attempt: &Attempt| match &attempt.outcome {
            Outcome::Bind { patch, .. } => {
                let written = patch.annotations.get("internal.scheduling.koordinator.sh/bind-gang-member-count");
                written.map(|count| format!(":{}", count.as_deref().unwrap_or("-"))).unwrap_or_default()
            }
            _ => unreachable!(),
        };
        self.bound.iter().map(|(name, attempt)| format!("{name}{}", members(attempt))).collect::<Vec<_>>().join(" ")
    }
}

fn of(min: u32) -> Value {
    json!({"name": "g", "min-available": min.to_string()})
}

#[test]
fn a_gang_that_fits_is_bound_with_its_count() {
    let mut world = World::new(&[8]);
    assert_eq!(world.create(&["p1", "p2"], 2, &of(3)).bound(), "");
    assert!(world.messages.is_empty(), "gang-waits-for-members: nothing is tried");
    assert_eq!(world.create(&["p3"], 2, &of(3)).bound(), "p1:3 p2:3 p3:3");
    let Outcome::Bind { patch, .. } = &world.bound["p1"].outcome else { unreachable!() };
    assert_eq!(patch.annotations["scheduling.koordinator.sh/bind-gang-group-id"].as_deref(), Some("ns/g"));
    assert_eq!(patch.annotations.len(), 4);
    // gang-min-one, gang-min-zero
    for min in [0, 1] {
        assert_eq!(World::new(&[8]).create(&["p1"], 1, &of(min)).bound(), "p1");
    }
}

#[test]
fn a_reservation_may_be_a_member() {
    let mut world = World::new(&[8]);
    let mut reservation = of(2);
    reservation["reservation"] = json!("r");
    assert_eq!(world.create(&["r"], 2, &reservation).bound(), "");
    assert_eq!(world.create(&["p1"], 2, &of(2)).bound(), "p1:2 r:2");
}

#[test]
fn a_gang_that_does_not_fit_reports_why_and_is_not_tried_again() {
    let mut world = World::new(&[8]);
    world.create(&["p1", "p2", "p3"], 3, &of(3));
    let full = "0/1 nodes are available: 1 Insufficient cpu.";
    let rejected = format!(
        "0/1 nodes are available: 1 GangGroup \"ns/g\" gets rejected due to member Pod \"ns/p2\" is unschedulable with \
         reason {full:?}, alreadyWaitForBound: 2."
    );
    assert_eq!(
        (&world.messages["p1"], &world.messages["p3"]),
        (&rejected, &rejected),
        "the last to come is tried first"
    );
    assert_eq!((world.messages["p2"].as_str(), world.bound()), (full, String::new()));
    assert_eq!(world.engine.cluster().discrepancies(), []);
    let attempts = world.attempts;
    world.wait(250);
    assert_eq!(world.attempts, attempts, "nothing has changed");
    // gang-and-plain
    assert_eq!(world.create(&["x"], 4, &json!({})).bound(), "x");
}

#[test]
fn the_first_member_that_does_not_fit_refuses_those_that_were_not_tried() {
    let mut world = World::new(&[2]);
    world.create(&["p1", "p2"], 3, &of(2));
    assert_eq!(world.messages["p2"], "0/1 nodes are available: 1 Insufficient cpu.");
    let reason = "0/1 nodes are available: GangGroup \"ns/g\" gets rejected due to member Pod \"ns/p2\" is unschedulable \
                  with reason \"0/1 nodes are available: 1 Insufficient cpu.\", alreadyWaitForBound: 0.";
    assert_eq!(world.messages["p1"], reason);
}

#[test]
fn a_gang_runs_when_all_members_fit() {
    // gang-strict-room-freed
    let mut world = World::new(&[8]);
    world.create(&["a"], 6, &json!({})).bind().create(&["p1", "p2", "p3"], 2, &of(3));
    assert_eq!(world.bound(), "a");
    assert_eq!(world.delete("a").wait(12).bound(), "p1:3 p2:3 p3:3");
    // gang-nonstrict-completed: a node arrives
    let mut world = World::new(&[8]);
    let gang = json!({"name": "g", "min-available": "3", "mode": "NonStrict", "waiting-time": "60s"});
    world.create(&["p1", "p2", "p3"], 3, &gang);
    assert_eq!(world.bound(), "");
    world.add_node("n2", 8);
    assert_eq!(world.wait(12).bound(), "p1:3 p2:3 p3:3");
}

#[test]
fn more_members_than_the_minimum_come_one_by_one() {
    // gang-min-below-total
    let mut world = World::new(&[8]);
    let five = json!({"name": "g", "min-available": "3", "total-number": "5"});
    world.create(&["p1", "p2", "p3", "p4", "p5"], 2, &five);
    assert_eq!(world.bound(), "p1:3 p2:3 p3:3 p4");
    assert_eq!(world.messages["p5"], "0/1 nodes are available: 1 Insufficient cpu.");
}

#[test]
fn pod_groups_declare_gangs_whenever_they_come() {
    let member = json!({"podGroup": "g"});
    let mut world = World::new(&[8]);
    assert_eq!(world.create(&["p1", "p2"], 1, &member).bound(), "", "podgroup-missing");
    assert_eq!(world.pod_group("g", 3).bound(), "");
    assert_eq!(world.pod_group("g", 2).bound(), "p1:2 p2:2", "podgroup-created-late, podgroup-min-lowered");
    world.engine.remove_object(TypeId::of::<PodGroup>(), "ns/g", world.now);
    assert_eq!(world.bind().create(&["p3"], 1, &member).bound(), "p1:2 p2:2");
    assert_eq!(world.pod_group("g", 2).bound(), "p1:2 p2:2 p3", "members that run show that there were enough");
}

#[test]
fn policies_decide_about_members_that_come_later() {
    let with = |policy: &str| {
        let mut world = World::new(&[8]);
        let gang = json!({"name": "g", "min-available": "2", "pod-group.scheduling.sigs.k8s.io/match-policy": policy});
        world.create(&["p1", "p2"], 1, &gang).bind().create(&["p3"], 1, &gang);
        (world.bound(), world.messages.get("p3").cloned())
    };
    let refused = "0/1 nodes are available: 1 all pending pods is already been attempted.".to_owned();
    assert_eq!(with("only-waiting"), ("p1:2 p2:2".to_owned(), Some(refused.clone())), "match-alias");
    assert_eq!(with("waiting-and-running"), ("p1:2 p2:2 p3".to_owned(), None));
    assert_eq!(with("once-satisfied"), ("p1:2 p2:2 p3".to_owned(), None));
    // match-default-arg
    let args = serde_json::from_value(json!({"defaultMatchPolicy": "only-waiting"})).unwrap();
    let mut world = World::with(Coscheduling::new(&args), &[8]);
    world.create(&["p1", "p2"], 1, &of(2)).bind().create(&["p3"], 1, &of(2));
    assert_eq!(world.messages["p3"], refused);
}

#[test]
fn members_that_run_at_the_start_are_enough_and_namespaces_are_apart() {
    // running-at-start
    let mut world = World::new(&[8]);
    let running = json!({"name": "g", "min-available": "3", "node": "n1"});
    world.create(&["p1", "p2"], 1, &running);
    assert_eq!(world.create(&["p3"], 1, &of(3)).bound(), "p3");
    // two-gangs-different-namespaces
    let mut world = World::new(&[8]);
    assert_eq!(world.create(&["p1", "p2", "a/p1", "a/p2"], 1, &of(3)).bound(), "");
}

#[test]
fn running_members_count_from_the_start_where_the_policy_says_so() {
    let gang = |node: Option<&str>| {
        let mut gang = json!({"name": "g", "min-available": "3", "match-policy": "waiting-and-running"});
        if let Some(node) = node {
            gang["node"] = json!(node);
        }
        gang
    };
    let mut world = World::new(&[8]);
    world.create(&["p1", "p2"], 1, &gang(Some("n1")));
    assert_eq!(world.create(&["p3"], 1, &gang(None)).bound(), "p3");
}

#[test]
fn a_member_that_is_bound_alone_says_no_longer_that_it_was_bound_with_others() {
    let mut gang = of(2);
    gang["scheduling.koordinator.sh/bind-gang-member-count"] = json!("2");
    let mut world = World::new(&[8]);
    world.create(&["p1", "p2"], 1, &of(2)).bind().create(&["p3"], 1, &gang);
    let Outcome::Bind { patch, .. } = &world.bound["p3"].outcome else { unreachable!() };
    let removed = [("scheduling.koordinator.sh/bind-gang-member-count".to_owned(), None)];
    assert_eq!(patch.annotations, removed.into_iter().collect());
}

#[test]
fn a_member_behind_a_gate_holds_the_gang_back() {
    let mut world = World::new(&[8]);
    let gated = json!({"name": "g", "min-available": "2", "gated": ""});
    world.create(&["p1"], 1, &of(2)).create(&["p2"], 1, &gated);
    assert_eq!(world.bound(), "");
    assert_eq!(world.create(&["p2"], 1, &of(2)).bound(), "p1:2 p2:2");
}

#[test]
fn a_member_that_could_not_be_bound_comes_back_alone() {
    let mut world = World::new(&[2]);
    let gang = json!({"name": "g", "min-available": "2", "match-policy": "only-waiting"});
    world.create(&["p1", "p2"], 1, &gang).bind_failed("p2");
    assert_eq!(world.bind().wait(12).bound(), "p1:2 p2");
}

#[test]
fn a_round_ends_when_a_member_of_it_is_deleted() {
    let mut world = World::new(&[8]);
    for name in ["p1", "p2", "p3"] {
        world.put(name, 2, &of(3));
    }
    let first = world.engine.attempt(world.now).unwrap();
    assert!(matches!(first.outcome, Outcome::Waiting { .. }) && first.pod.uid == Uid::from("p3"));
    world.delete("p2");
    assert_eq!((world.bound(), world.engine.cluster().pod(&Uid::from("p3")).is_none()), (String::new(), true));
    assert_eq!(world.create(&["p4"], 2, &of(3)).wait(12).bound(), "p1:3 p3:3 p4:3");
    // The same with one that has its place already.
    let mut world = World::new(&[8]);
    for name in ["p1", "p2", "p3"] {
        world.put(name, 2, &of(3));
    }
    world.engine.attempt(world.now).unwrap();
    world.delete("p3");
    assert_eq!(world.create(&["p4"], 2, &of(3)).wait(12).bound(), "p1:3 p2:3 p4:3");
}

#[test]
fn a_gang_is_a_job_from_its_first_attempt_to_its_last() {
    let mut world = World::new(&[4]);
    let gang = json!({"name": "g", "min-available": "3"});
    let result = |world: &mut World| {
        let jobs = world.engine.take_ended_jobs();
        jobs.iter().map(|job| (job.began, job.pods, job.reason)).collect::<Vec<_>>()
    };
    world.create(&["a", "b"], 2, &gang);
    assert_eq!(result(&mut world), [], "it is not tried before it is complete");
    world.create(&["c"], 2, &gang);
    assert_eq!(result(&mut world), [(Moment::default(), 3, "all pending pods is already been attempted")]);
    world.now = world.now + Duration::from_mins(1);
    let now = world.now;
    world.add_node("n2", 4);
    world.run();
    assert_eq!(result(&mut world), [(now, 3, "gang is already succeed")]);
    for name in ["d", "e"] {
        world.put(name, 1, &json!({"name": "h", "min-available": "2"}));
    }
    let first = world.engine.attempt(now).unwrap().pod.uid.to_string();
    for name in [if first == "d" { "e" } else { "d" }, &first] {
        world.engine.remove_pod(&Uid::from(name), now);
    }
    world.run();
    assert_eq!(result(&mut world), [(now, 0, "gang is nil, may be already deleted")], "nobody is left");
}

#[test]
fn a_member_that_joins_a_gang_is_placed_with_those_that_fit() {
    let mut world = World::new(&[8]);
    world.create(&["p1"], 1, &of(2));
    world.create(&["p2"], 16, &of(2));
    assert_eq!(world.bound(), "", "p2 fits nowhere");
    world.create(&["p3"], 1, &of(2));
    assert_eq!(world.bound(), "p1:2 p3:2");
}

#[test]
fn a_gang_without_a_node_is_reported_once() {
    let mut world = World::new(&[]);
    world.create(&["p1", "p2"], 1, &of(2));
    let records = |name: &str| world.engine.verdicts(&ObjectKey::new("ns", name)).len();
    assert_eq!((records("p1"), records("p2")), (0, 1), "the others wait with the member that came last");
}
