//! Gangs in a world of one resource, as arrivals, departures and failed bindings come.

use koord_resource::Duration;
use koord_types::gang::GangMode;
use proptest::prelude::*;

use super::*;

fn declared(gang: &str, min: usize, policy: MatchPolicy, group: &[&str]) -> Declaration {
    let group = GangGroup::new(group.iter().copied().chain([gang]).map(ObjectKey::cluster).collect());
    let (mode, waiting_time) = (GangMode::Strict, Duration::from_secs(600));
    Declaration { min, total: min, mode, policy, group, waiting_time, topology: None }
}

pub(super) fn once(gang: &str, min: usize) -> Declaration {
    declared(gang, min, MatchPolicy::OnceSatisfied, &[])
}

fn member(gang: &str, name: &str) -> Member {
    Member {
        key: ObjectKey::new("ns", name),
        gang: ObjectKey::cluster(gang),
        scheduler: Arc::default(),
        is_ready: true,
        is_bound: false,
        priority: 0,
        created: 0,
        index: None,
    }
}

/// A scheduler of one node: it tries what is woken, once.
#[derive(Default)]
struct World {
    gangs: Gangs,
    capacity: usize,
    /// Pods that are tried when something changes.
    queue: BTreeSet<Uid>,
    pods: BTreeMap<Uid, Member>,
    /// Assumed to be on the node, not bound yet.
    assumed: BTreeSet<Uid>,
    /// All rounds, complete or not.
    rounds: Vec<Outcome>,
}

impl World {
    fn of(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    fn create(&mut self, name: &str, gang: &str, declared: Option<Declaration>) {
        self.put(name, member(gang, name), declared);
    }

    fn put(&mut self, name: &str, member: Member, declared: Option<Declaration>) {
        let uid = Uid::from(name);
        self.gangs.set(&uid, member.clone(), declared, false);
        if self.gangs.admits(&uid).is_ok() && member.is_ready && !member.is_bound {
            self.queue.insert(uid.clone());
        }
        self.pods.insert(uid, member);
        self.run();
    }

    fn delete(&mut self, name: &str) {
        let uid = Uid::from(name);
        self.assumed.remove(&uid);
        self.pods.remove(&uid);
        self.gangs.remove(&uid);
        self.retry();
    }

    /// The node has room for so many pods from now on.
    fn grow(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.retry();
    }

    /// Something has changed that may help all that was refused.
    fn retry(&mut self) {
        let is_pending =
            |uid: &Uid, member: &Member| member.is_ready && !member.is_bound && !self.assumed.contains(uid);
        let pending = self.pods.iter().filter(|(uid, member)| is_pending(uid, member));
        self.queue = pending.map(|(uid, _)| uid).filter(|uid| self.gangs.admits(uid).is_ok()).cloned().collect();
        self.run();
    }

    fn run(&mut self) {
        self.queue.extend(self.gangs.take_woken());
        while let Some(uid) = self.queue.pop_first() {
            if self.pods.contains_key(&uid) && !self.assumed.contains(&uid) && self.gangs.admits(&uid).is_ok() {
                self.attempt(&uid);
            }
            self.queue.extend(self.gangs.take_woken());
        }
    }

    fn attempt(&mut self, uid: &Uid) {
        let Some(mut round) = self.gangs.round(uid) else {
            if self.used() < self.capacity {
                self.gangs.set_placed(uid, true);
                self.assumed.insert(uid.clone());
            }
            return;
        };
        self.gangs.began(round.group());
        let mut tried = 0;
        while let Some(uid) = round.next().cloned() {
            self.queue.remove(&uid);
            if self.used() + tried < self.capacity {
                round.placed(&uid);
                tried += 1;
            } else {
                round.refused(&uid, "full", None);
            }
        }
        let outcome = round.outcome();
        // Where nothing can come of it, the others are refused together with the last one.
        outcome.untried.iter().filter(|_| !outcome.is_complete).for_each(|uid| _ = self.queue.remove(uid));
        if outcome.is_complete {
            self.gangs.conclude(&outcome);
            for uid in &outcome.placed {
                self.gangs.set_placed(uid, true);
                self.assumed.insert(uid.clone());
            }
        }
        self.rounds.push(outcome);
    }

    fn bind(&mut self) {
        while let Some(uid) = self.assumed.pop_first() {
            let member = self.pods.get_mut(&uid).unwrap();
            member.is_bound = true;
            self.gangs.set(&uid, member.clone(), None, false);
        }
        self.run();
        if !self.assumed.is_empty() {
            self.bind();
        }
    }

    fn bind_failed(&mut self, name: &str) {
        let uid = Uid::from(name);
        assert!(self.assumed.remove(&uid));
        self.gangs.set_placed(&uid, false);
    }

    fn used(&self) -> usize {
        self.assumed.len() + self.pods.values().filter(|member| member.is_bound).count()
    }

    /// The names of the pods that have a node or are assumed to have one.
    fn running(&self) -> String {
        let is_running = |(uid, member): &(&Uid, &Member)| member.is_bound || self.assumed.contains(*uid);
        self.pods.iter().filter(is_running).map(|(uid, _)| uid.to_string()).collect::<Vec<_>>().join(" ")
    }

    fn gang(&self, name: &str) -> Option<usize> {
        self.pods.get(&Uid::from(name))?.gang.as_str().parse().ok()
    }

    fn says(&self, name: &str) -> String {
        self.gangs.admits(&Uid::from(name)).err().map(|why| why.to_string()).unwrap_or_default()
    }
}

#[test]
fn a_gang_waits_for_its_members_and_one_is_tried_for_all() {
    let mut world = World::of(8);
    world.create("p1", "ns/g", Some(once("ns/g", 3)));
    world.create("p2", "ns/g", Some(once("ns/g", 3)));
    assert_eq!((world.says("p1"), world.rounds.len()), ("gang ns/g has 2 of 3 members".to_owned(), 0));
    world.capacity = 2;
    world.gangs.set(&Uid::from("p3"), member("ns/g", "p3"), None, false);
    assert_eq!(world.says("p2"), "representative pod ns/p3 of gangGroupID ns/g already exists", "the last to come");
    world.create("p3", "ns/g", None);
    assert_eq!((world.says("p3"), world.running(), world.rounds.len()), (String::new(), String::new(), 1));
    world.grow(3);
    assert_eq!(world.running(), "p1 p2 p3");
}

#[test]
fn a_gang_that_does_not_fit_holds_nothing_and_is_tried_once_per_change() {
    let mut world = World::of(2);
    for name in ["p1", "p2", "p3"] {
        world.create(name, "ns/g", Some(once("ns/g", 3)));
    }
    assert_eq!((world.used(), world.rounds.len()), (0, 1));
    world.create("x", "ns/x", Some(once("ns/x", 1)));
    assert_eq!(world.running(), "x", "another pod has the room");
    assert_eq!(world.rounds.len(), 2, "and that did not make the gang try again");
    for _ in 0..3 {
        world.retry();
    }
    assert_eq!((world.running(), world.rounds.len()), ("x".to_owned(), 5));
}

#[test]
fn groups_that_arrive_mixed_do_not_hold_what_the_other_needs() {
    // Groups A with B and C with D arrive as A, C, B, D; there is room for one of them.
    let of = |gang: &str, group: &[&str]| Some(declared(gang, 2, MatchPolicy::OnceSatisfied, group));
    let mut world = World::of(4);
    for (gang, group) in [("A", ["A", "B"]), ("C", ["C", "D"]), ("B", ["A", "B"]), ("D", ["C", "D"])] {
        for name in [format!("{gang}1"), format!("{gang}2")] {
            world.create(&name, gang, of(gang, &group));
        }
    }
    assert_eq!(world.running(), "A1 A2 B1 B2");
    world.bind();
    world.grow(8);
    assert_eq!(world.running(), "A1 A2 B1 B2 C1 C2 D1 D2");
    assert_eq!(world.rounds.iter().filter(|round| round.is_complete).count(), 2);
}

#[test]
fn a_group_waits_for_gangs_that_do_not_exist() {
    let of = |gang| Some(declared(gang, 2, MatchPolicy::OnceSatisfied, &["ns/a", "ns/b"]));
    let mut world = World::of(8);
    world.create("a1", "ns/a", of("ns/a"));
    world.create("a2", "ns/a", of("ns/a"));
    assert_eq!(world.says("a1"), "gang ns/b does not exist");
    world.create("b1", "ns/b", of("ns/b"));
    world.create("b2", "ns/b", of("ns/b"));
    assert_eq!((world.running(), world.rounds.len()), ("a1 a2 b1 b2".to_owned(), 1));
    assert_eq!(&**world.rounds[0].group.name(), "ns/a,ns/b");
}

#[test]
fn a_member_that_is_tried_too_early_is_refused_in_the_words_of_the_original() {
    let said = |world: &World, name: &str| {
        let refused = world.gangs.basic_check(&Uid::from(name)).err();
        refused.map(|reason| format!("{}: {}", reason.code.as_str(), reason.text)).unwrap_or_default()
    };
    let mut world = World::of(0);
    world.create("p1", "ns/g", Some(once("ns/g", 2)));
    let few = "gangGroup [ns/g] basic check: memberGangs [ns/g] child pod not collect enough, current gang: ns/g, \
               podName: ns/p1";
    assert_eq!(said(&world, "p1"), format!("GangWaitingMembers: {few}"));
    world.create("p2", "ns/g", None);
    assert_eq!(said(&world, "p1"), "");

    world.create("a1", "ns/a", Some(declared("ns/a", 2, MatchPolicy::OnceSatisfied, &["ns/b", "ns/c"])));
    world.create("b1", "ns/b", None);
    let group = "[ns/a ns/b ns/c]";
    let all = format!(
        "gangGroup {group} basic check: memberGangs [ns/c] doesn't exists, memberGangs [ns/b] has not init, memberGangs \
         {group} child pod not collect enough, current gang: ns/a, podName: ns/a1"
    );
    assert!(said(&world, "a1").ends_with(&all), "{}", said(&world, "a1"));
    let undeclared = "GangUndeclared: gang has not init, gangName: ns/b, podName: ns/b1";
    assert_eq!(said(&world, "b1"), undeclared);
}

#[test]
fn a_pod_group_may_come_late_change_and_go() {
    let group = |min| declared("ns/g", min, MatchPolicy::OnceSatisfied, &[]);
    let mut world = World::of(8);
    world.create("p1", "ns/g", None);
    world.create("p2", "ns/g", None);
    assert!(world.says("p1").starts_with("gang ns/g has not init"));
    world.gangs.declare(&ObjectKey::cluster("ns/g"), group(3));
    assert_eq!(world.says("p1"), "gang ns/g has 2 of 3 members");
    world.gangs.declare(&ObjectKey::cluster("ns/g"), group(2));
    world.run();
    assert_eq!(world.running(), "p1 p2");
    world.gangs.undeclare(&ObjectKey::cluster("ns/g"));
    world.create("p3", "ns/g", None);
    assert!(world.says("p3").starts_with("gang ns/g has not init"));
}

#[test]
fn a_gang_of_annotations_is_gone_with_its_last_member_and_a_pod_group_is_not() {
    let mut world = World::of(0);
    world.create("p1", "ns/g", Some(once("ns/g", 3)));
    world.create("p2", "ns/g", Some(once("ns/g", 5)));
    assert_eq!(world.gangs.declaration(&ObjectKey::cluster("ns/g")).unwrap().min, 3, "the first pod declares");
    world.delete("p1");
    world.delete("p2");
    assert_eq!(world.gangs.declaration(&ObjectKey::cluster("ns/g")), None);
    assert!(world.gangs.by_id.is_empty() && world.gangs.groups.is_empty() && world.gangs.naming.is_empty());
    world.capacity = 2;
    world.create("p3", "ns/g", Some(once("ns/g", 2)));
    world.create("p4", "ns/g", Some(once("ns/g", 2)));
    assert_eq!(world.running(), "p3 p4");
    let crd = ObjectKey::cluster("ns/crd");
    world.gangs.declare(&crd, declared("ns/crd", 2, MatchPolicy::OnceSatisfied, &[]));
    world.create("q", "ns/crd", None);
    world.delete("q");
    assert_eq!(world.gangs.declaration(&crd).unwrap().min, 2);
}

#[test]
fn another_member_is_tried_when_the_first_is_gone() {
    let mut world = World::of(0);
    for name in ["p1", "p2", "p3"] {
        world.create(name, "ns/g", Some(once("ns/g", 2)));
    }
    assert_eq!(world.rounds.len(), 2, "when there were two of them, and when there was a third");
    world.capacity = 2;
    world.gangs.remove(&Uid::from("p2"));
    world.pods.remove(&Uid::from("p2"));
    world.run();
    assert_eq!(world.running(), "p1 p3", "they do not wait for anything else to happen");
}

#[test]
fn the_member_with_the_highest_priority_is_tried_for_all() {
    let mut world = World::of(0);
    world.gangs.set(&Uid::from("p1"), member("ns/g", "p1"), Some(once("ns/g", 2)), false);
    let urgent = Member { priority: 9, ..member("ns/g", "p2") };
    world.gangs.set(&Uid::from("p2"), urgent, None, false);
    world.gangs.set(&Uid::from("p3"), member("ns/g", "p3"), None, false);
    assert_eq!(world.says("p1"), "representative pod ns/p2 of gangGroupID ns/g already exists");
    assert_eq!(world.says("p3"), "representative pod ns/p2 of gangGroupID ns/g already exists");
}

#[test]
fn a_member_that_joins_a_gang_which_was_tried_is_tried_with_it() {
    let mut world = World::of(0);
    for name in ["p1", "p2"] {
        world.create(name, "ns/g", Some(once("ns/g", 2)));
    }
    assert_eq!(world.rounds.len(), 1);
    // Nothing else has happened that may help p1 or p2.
    world.capacity = 2;
    let set = |world: &mut World, is_changed: bool| {
        world.gangs.set(&Uid::from("p1"), member("ns/g", "p1"), None, is_changed);
        world.capacity = 0;
        world.run();
        world.rounds.len()
    };
    assert_eq!(set(&mut world, false), 1, "a status was written");
    assert_eq!(set(&mut world, true), 2, "such as a toleration");
    world.capacity = 2;
    world.create("p3", "ns/g", None);
    assert_eq!(world.rounds.len(), 3);
    assert_eq!(world.running().split(' ').count(), 2);
}

#[test]
fn members_that_may_not_be_placed_do_not_count() {
    let mut world = World::of(8);
    world.create("p1", "ns/g", Some(once("ns/g", 2)));
    world.put("p2", Member { is_ready: false, ..member("ns/g", "p2") }, None);
    assert_eq!(world.says("p1"), "gang ns/g has 1 of 2 members");
    world.put("p2", member("ns/g", "p2"), None);
    assert_eq!(world.running(), "p1 p2");
}

#[test]
fn once_there_were_enough_members_come_alone() {
    let mut world = World::of(2);
    for name in ["p1", "p2", "p3"] {
        world.create(name, "ns/g", Some(once("ns/g", 2)));
    }
    assert_eq!(world.running(), "p1 p2");
    world.bind();
    assert_eq!(world.says("p3"), "");
    world.grow(3);
    assert_eq!(world.running(), "p1 p2 p3");
    let seen = World::of(8);
    let mut world = World { pods: BTreeMap::new(), ..seen };
    world.put("q1", Member { is_bound: true, ..member("ns/q", "q1") }, Some(once("ns/q", 3)));
    world.create("q2", "ns/q", None);
    assert_eq!(world.running(), "q1 q2", "a member that runs at the start shows that there were enough");
}

#[test]
fn policies_count_different_members() {
    let with = |policy| {
        let mut world = World::of(8);
        let of = || Some(declared("ns/g", 2, policy, &[]));
        world.create("p1", "ns/g", of());
        world.create("p2", "ns/g", of());
        world.bind();
        world.delete("p1");
        world.create("p3", "ns/g", of());
        (world.running(), world.rounds.last().unwrap().reason.clone())
    };
    let refused = "all pending pods is already been attempted".to_owned();
    assert_eq!(with(MatchPolicy::OnlyWaiting), ("p2".to_owned(), refused.clone()));
    assert_eq!(with(MatchPolicy::WaitingAndRunning), ("p2 p3".to_owned(), refused.clone()));
    assert_eq!(with(MatchPolicy::OnceSatisfied), ("p2 p3".to_owned(), refused));
}

#[test]
fn members_that_do_not_all_fit_are_enough() {
    // gang-min-below-total: four of five run.
    let mut world = World::of(4);
    for name in ["p1", "p2", "p3", "p4", "p5"] {
        world.create(name, "ns/g", Some(once("ns/g", 3)));
    }
    world.bind();
    assert_eq!(world.running(), "p1 p2 p3 p4");
}

#[test]
fn a_member_whose_binding_failed_comes_back_alone() {
    let mut world = World::of(2);
    let of = || Some(declared("ns/g", 2, MatchPolicy::OnlyWaiting, &[]));
    world.create("p1", "ns/g", of());
    world.create("p2", "ns/g", of());
    world.create("p3", "ns/g", of());
    world.bind_failed("p2");
    assert_eq!((world.running(), world.says("p3")), ("p1".to_owned(), String::new()), "it does not stand for others");
    world.delete("p3");
    world.bind();
    world.retry();
    assert_eq!(world.running(), "p1 p2");
}

#[test]
fn a_gang_that_names_no_group_is_satisfied_for_the_group_that_names_it() {
    let mut world = World::of(8);
    world.create("b1", "ns/b", Some(once("ns/b", 1)));
    world.bind();
    world.create("a1", "ns/a", Some(declared("ns/a", 1, MatchPolicy::OnceSatisfied, &["ns/b"])));
    assert_eq!(world.running(), "a1 b1");
}

#[test]
fn running_pods_of_a_gang_satisfy_the_group_that_it_joins() {
    let together = |gang: &str, min: usize, other: &str| declared(gang, min, MatchPolicy::OnceSatisfied, &[other]);
    let mut world = World::of(2);
    world.create("a1", "ns/a", Some(once("ns/a", 1)));
    world.bind();
    world.gangs.declare(&ObjectKey::cluster("ns/a"), together("ns/a", 1, "ns/b"));
    world.create("b1", "ns/b", Some(together("ns/b", 2, "ns/a")));
    assert_eq!((world.running(), world.rounds.len()), ("a1 b1".to_owned(), 1), "b1 needs nobody");
}

/// What happens in a world.
#[derive(Clone, Debug)]
enum Step {
    Create { gang: usize, ready: bool },
    Ready(usize),
    Delete(usize),
    Bind,
    BindFails(usize),
    Capacity(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_usize..4, prop::bool::weighted(0.9)).prop_map(|(gang, ready)| Step::Create { gang, ready }),
        1 => (0_usize..40).prop_map(Step::Ready),
        2 => (0_usize..40).prop_map(Step::Delete),
        2 => Just(Step::Bind),
        1 => (0_usize..40).prop_map(Step::BindFails),
        2 => (0_usize..12).prop_map(Step::Capacity),
    ]
}

proptest! {
    /// Gangs 0 and 1 are a group, 2 and 3 are by themselves. Room is never exceeded, a round places a whole group or nobody,
    /// and with room for all of them, every gang that has enough members runs.
    #[test]
    fn groups_are_placed_whole_and_in_the_end(
        mins in proptest::array::uniform4(0_usize..4),
        policies in proptest::array::uniform4(0_usize..3),
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        const POLICIES: [MatchPolicy; 3] =
            [MatchPolicy::OnlyWaiting, MatchPolicy::WaitingAndRunning, MatchPolicy::OnceSatisfied];
        let of = |gang: usize| {
            let group: &[&str] = if gang < 2 { &["0", "1"] } else { &[] };
            Some(declared(&gang.to_string(), mins[gang], POLICIES[policies[gang]], group))
        };
        let mut world = World::of(4);
        let mut names = Vec::new();
        // Of which a member is gone or was not bound.
        let mut spoiled = [false; 4];
        for step in steps {
            let (rounds, running) = (world.rounds.len(), world.running());
            match step {
                Step::Create { gang, ready } => {
                    let name = format!("p{}", names.len());
                    let member = Member { is_ready: ready, ..member(&gang.to_string(), &name) };
                    names.push(name.clone());
                    world.put(&name, member, of(gang));
                }
                Step::Ready(at) => {
                    let known = names.get(at).and_then(|name| Some((name, world.pods.get(&Uid::from(&**name))?.clone())));
                    if let Some((name, member)) = known {
                        world.put(name, Member { is_ready: true, ..member }, None);
                    }
                }
                Step::Delete(at) => {
                    if let Some((name, gang)) = names.get(at).and_then(|name| Some((name, world.gang(name)?))) {
                        spoiled[gang] = true;
                        world.delete(name);
                    }
                }
                Step::Bind => world.bind(),
                Step::BindFails(at) => {
                    let name = names.get(at).filter(|name| world.assumed.contains(&Uid::from(&***name)));
                    if let Some((name, gang)) = name.and_then(|name| Some((name, world.gang(name)?))) {
                        spoiled[gang] = true;
                        world.bind_failed(name);
                    }
                }
                Step::Capacity(capacity) => world.grow(capacity.max(world.used())),
            }
            prop_assert!(world.used() <= world.capacity);
            let count = |gang: usize| {
                let members = world.pods.iter().filter(|(_, member)| member.gang.as_str() == gang.to_string());
                members.filter(|(uid, member)| member.is_bound || world.assumed.contains(*uid)).count()
            };
            for gangs in [&[0_usize, 1][..], &[2], &[3]].into_iter().filter(|gangs| !gangs.iter().any(|gang| spoiled[*gang])) {
                let is_whole = gangs.iter().all(|gang| count(*gang) >= mins[*gang]);
                prop_assert!(is_whole || gangs.iter().all(|gang| count(*gang) == 0), "a part of {gangs:?} was placed");
            }
            // No gang is tried again and again while nothing changes.
            let pods = |running: &str| running.split_whitespace().count();
            let placed = pods(&world.running()).saturating_sub(pods(&running));
            prop_assert!(world.rounds.len() - rounds <= 5 + placed, "{running} -> {}", world.running());
        }
        let woken = world.gangs.clone().take_woken();
        prop_assert!(woken.is_empty(), "{woken:?} were never tried");
        world.grow(1000);
        world.bind();
        world.retry();
        let has = |gang: usize| {
            let members = world.pods.values().filter(|member| member.gang.as_str() == gang.to_string());
            members.filter(|member| member.is_ready || member.is_bound).count()
        };
        let complete = |gangs: &[usize]| gangs.iter().all(|gang| has(*gang) >= mins[*gang] && has(*gang) > 0);
        for (uid, member) in world.pods.iter().filter(|(_, member)| member.is_ready && !member.is_bound) {
            let gang: usize = member.gang.as_str().parse().unwrap();
            let group: &[usize] = if gang < 2 { &[0, 1] } else { std::slice::from_ref(&gang) };
            let counts_all = group.iter().all(|gang| POLICIES[policies[*gang]] != MatchPolicy::OnlyWaiting);
            if counts_all && complete(group) {
                prop_assert!(world.assumed.contains(uid), "{uid} of gang {gang} was left behind");
            }
        }
    }
}
