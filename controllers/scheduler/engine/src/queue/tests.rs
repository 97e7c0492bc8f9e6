use koord_core::key::ObjectKey;
use koord_scheduler_framework::{event::Events, node::Node, pod::Template};

use super::*;

pub(super) fn pod(name: &str, priority: i32) -> Arc<Pod> {
    Arc::new(Pod {
        key: ObjectKey::new("ns", name),
        uid: Uid::from(name),
        template: Arc::new(Template { priority, ..Template::default() }),
        ..Pod::default()
    })
}

/// Plugin 1 waits for nodes, plugin 2 holds back pods that have a gate, and plugin 3 those that it wakes by itself, in the place of
/// which the pod `first` is tried.
struct Plugins;

impl QueueingHints for Plugins {
    fn pre_enqueue(&self, pod: &Pod, _: Option<u8>) -> Result<(), u8> {
        match pod.gates.first() {
            None => Ok(()),
            Some(gate) => Err(if &**gate == "gang" { 3 } else { 2 }),
        }
    }

    fn activates(&self, _: &Pod, plugin: u8) -> bool {
        plugin == 3
    }

    fn representative(&self, _: &Pod, plugin: u8) -> Option<Uid> {
        (plugin == 3).then(|| Uid::from("first"))
    }

    fn is_helped_by(&self, _: &Pod, refused_by: PluginSet, event: &Event) -> bool {
        refused_by.iter().any(|plugin| {
            let events = if plugin == 1 { Events::NODE_ADDED } else { Events::POD_CHANGED };
            event.kinds().meets(events)
        })
    }
}

/// Fails where it is asked.
struct NeverCalled;

impl QueueingHints for NeverCalled {
    fn pre_enqueue(&self, _: &Pod, _: Option<u8>) -> Result<(), u8> {
        panic!("asked whether it may be tried");
    }

    fn activates(&self, _: &Pod, _: u8) -> bool {
        panic!("asked who wakes it");
    }

    fn is_helped_by(&self, _: &Pod, _: PluginSet, _: &Event) -> bool {
        panic!("asked whether an event helps");
    }
}

fn at(milliseconds: u64) -> Moment {
    Moment::at(Duration::from_millis(milliseconds))
}

fn node_added() -> Event {
    Event::NodeAdded(Arc::new(Node::default()))
}

fn by_nodes() -> Return {
    Return::Refused(PluginSet::of(1))
}

fn popped(queue: &mut Queue, now: Moment) -> String {
    queue.pop(now).map_or_else(|| "-".to_owned(), |(pod, _)| pod.key.name().to_owned())
}

/// Tries the next pod, which is refused.
fn refuse(queue: &mut Queue, why: Return, now: Moment) {
    let (pod, tried) = queue.pop(now).unwrap();
    queue.give_back(pod, tried, why, now, &Plugins);
}

#[test]
fn the_highest_priority_comes_first_and_then_who_waits_longest() {
    let mut queue = Queue::default();
    for (name, priority, second) in [("late", 0, 3), ("early", 0, 1), ("high", 9, 5)] {
        queue.set(pod(name, priority), at(second * 1000), &Plugins);
    }
    assert_eq!(["", "", "", ""].map(|_| popped(&mut queue, at(6000))), ["high", "early", "late", "-"]);
}

#[test]
fn a_refused_pod_waits_for_what_may_help_and_pauses_first() {
    let mut queue = Queue::new(Timings::default());
    queue.set(pod("a", 0), at(500), &Plugins);
    refuse(&mut queue, by_nodes(), at(500));
    assert_eq!(queue.depths(), Depths { parked: 1, ..Depths::default() });
    queue.notify(&Event::PodRemoved(pod("b", 0)), at(600), &Plugins);
    assert_eq!(popped(&mut queue, at(600)), "-", "no node came");
    queue.notify(&node_added(), at(700), &Plugins);
    assert_eq!(queue.depths().backoff, 1);
    queue.set(pod("first", 0), at(800), &Plugins);
    assert_eq!(popped(&mut queue, at(800)), "first");
    assert_eq!(popped(&mut queue, at(800)), "a", "nothing else is to be tried");
}

#[test]
fn a_pause_ends_with_its_second() {
    let mut queue = Queue::new(Timings::default());
    queue.set(pod("a", 0), at(500), &Plugins);
    refuse(&mut queue, Return::Failed, at(500));
    assert_eq!((queue.depths().backoff, queue.wake_at()), (1, Some(at(2000))));
    queue.flush(at(1999), &Plugins);
    assert_eq!(popped(&mut queue, at(1999)), "-", "an error is not tried early");
    queue.flush(at(2000), &Plugins);
    assert_eq!(popped(&mut queue, at(2000)), "a");
}

#[test]
fn what_happens_during_an_attempt_is_not_missed() {
    let mut queue = Queue::new(Timings::default());
    queue.set(pod("a", 0), at(0), &Plugins);
    queue.set(pod("b", 0), at(1), &Plugins);
    queue.notify(&node_added(), at(2), &Plugins);
    let (a, tried_a) = queue.pop(at(3)).unwrap();
    queue.notify(&node_added(), at(4), &Plugins);
    let (b, tried_b) = queue.pop(at(5)).unwrap();
    queue.give_back(b, tried_b, by_nodes(), at(6), &Plugins);
    assert_eq!(queue.depths(), Depths { parked: 1, ..Depths::default() }, "the node was there when b was tried");
    queue.give_back(a, tried_a, by_nodes(), at(7), &Plugins);
    assert_eq!(queue.depths(), Depths { parked: 1, backoff: 1, ..Depths::default() }, "a has not seen it");
    assert!(queue.events.is_empty() && queue.in_flight.is_empty());
}

#[test]
fn queueing_hints_are_not_called_for_a_pod_that_its_plugin_activates() {
    let mut queue = Queue::default();
    let of_gang = |gates: Vec<Arc<str>>| Arc::new(Pod { gates, ..Pod::clone(&pod("a", 0)) });
    queue.set(of_gang(vec!["gang".into()]), at(0), &Plugins);
    assert_eq!((queue.depths().gated, queue.standings()[0].stands), (1, Stands::Gated));
    queue.notify(&Event::PodChanged, at(1), &NeverCalled);
    queue.activate(&[Uid::from("a")], at(2), &Plugins);
    assert_eq!(queue.depths().gated, 1, "its plugin still holds it back");
    assert_eq!(queue.wake_at(), Some(at(300_001)));
    queue.set(of_gang(Vec::new()), at(3), &Plugins);
    assert_eq!((queue.depths().gated, &*popped(&mut queue, at(4))), (0, "a"));
}

/// A queue in which a pod waits for nodes, and is held back when one comes, because `first` is tried in its place.
fn with_a_member() -> Queue {
    let mut queue = Queue::default();
    queue.set(pod("a", 0), at(0), &Plugins);
    refuse(&mut queue, by_nodes(), at(0));
    queue.set(Arc::new(Pod { gates: vec!["gang".into()], ..Pod::clone(&pod("a", 0)) }), at(0), &Plugins);
    queue.set(pod("first", 0), at(1), &Plugins);
    queue
}

#[test]
fn what_helps_a_pod_has_the_one_tried_that_is_tried_in_its_place() {
    let mut queue = with_a_member();
    refuse(&mut queue, Return::Refused(PluginSet::of(2)), at(1));
    assert_eq!(queue.depths(), Depths { parked: 2, ..Depths::default() });
    queue.notify(&Event::PodRemoved(pod("b", 0)), at(2), &Plugins);
    assert_eq!(queue.depths().parked, 2, "it helps neither");
    queue.notify(&node_added(), at(3), &Plugins);
    assert_eq!(queue.depths(), Depths { backoff: 1, gated: 1, ..Depths::default() });
    queue.notify(&node_added(), at(4), &Plugins);
    assert_eq!((&*popped(&mut queue, at(2000)), queue.helped.len()), ("first", 0));
}

#[test]
fn what_helps_a_pod_while_the_one_in_its_place_is_tried_has_that_one_tried_again() {
    let mut queue = with_a_member();
    let (first, tried) = queue.pop(at(1)).unwrap();
    queue.notify(&node_added(), at(2), &Plugins);
    assert_eq!(queue.helped.len(), 1);
    queue.give_back(first, tried, Return::Refused(PluginSet::of(2)), at(3), &Plugins);
    assert_eq!(queue.depths(), Depths { backoff: 1, gated: 1, ..Depths::default() });
    assert!(queue.helped.is_empty());
    // Who needs no node any more has nobody tried.
    let mut queue = with_a_member();
    queue.notify(&node_added(), at(2), &Plugins);
    queue.remove(&Uid::from("a"));
    refuse(&mut queue, Return::Refused(PluginSet::of(2)), at(3));
    assert_eq!(queue.depths(), Depths { parked: 1, ..Depths::default() });
}

#[test]
fn a_gated_pod_is_not_tried_before_its_gate_is_gone() {
    let mut queue = Queue::new(Timings::default());
    let gated = Arc::new(Pod { gates: vec!["wait".into()], ..Pod::clone(&pod("a", 0)) });
    queue.set(gated, at(0), &Plugins);
    assert_eq!(queue.depths(), Depths { gated: 1, ..Depths::default() });
    queue.notify(&node_added(), at(1), &Plugins);
    queue.flush(at(600_000), &Plugins);
    assert_eq!(popped(&mut queue, at(600_000)), "-");
    queue.set(pod("a", 0), at(600_001), &Plugins);
    assert_eq!(popped(&mut queue, at(600_001)), "a");
}

#[test]
fn after_five_minutes_a_parked_pod_is_tried_whatever_happened() {
    let mut queue = Queue::new(Timings::default());
    queue.set(pod("a", 0), at(0), &Plugins);
    refuse(&mut queue, by_nodes(), at(0));
    assert_eq!(queue.wake_at(), Some(at(300_001)));
    queue.flush(at(300_000), &Plugins);
    assert_eq!(queue.depths().parked, 1);
    queue.set(pod("b", 0), at(300_000), &Plugins);
    queue.flush(at(300_001), &Plugins);
    assert_eq!((queue.depths().active, queue.arrivals().of(Cause::TimeOver, Part::Active)), (2, 1), "without a pause");
    assert_eq!(popped(&mut queue, at(300_001)), "a", "it has waited longer than b");
}

#[test]
fn a_pod_that_needs_no_node_any_more_is_forgotten_wherever_it_is() {
    let mut queue = Queue::new(Timings::default());
    for name in ["active", "parked", "flying"] {
        queue.set(pod(name, 0), at(0), &Plugins);
    }
    let (active, tried) = queue.pop(at(0)).unwrap();
    queue.remove(&Uid::from("parked"));
    assert!(queue.contains(&active.uid));
    queue.done(&active.uid);
    assert!(!queue.contains(&active.uid));
    assert_eq!((tried.attempts, tried.first), (1, Some(at(0))));
    queue.activate(&[Uid::from("flying"), Uid::from("nobody")], at(1), &Plugins);
    assert_eq!(["", ""].map(|_| popped(&mut queue, at(1))), ["flying", "-"]);
}

#[test]
fn a_pod_whose_status_alone_has_changed_is_not_tried_again() {
    let mut queue = Queue::default();
    queue.set(pod("a", 0), at(0), &Plugins);
    refuse(&mut queue, Return::Refused(PluginSet::of(2)), at(0));
    let nominated = Pod { nominated: Some("n".into()), ..(*pod("a", 0)).clone() };
    queue.set(Arc::new(nominated), at(20_000), &Plugins);
    assert_eq!(popped(&mut queue, at(20_000)), "-");
    queue.set(pod("a", 1), at(30_000), &Plugins);
    assert_eq!(queue.pop(at(40_000)).map(|(pod, _)| pod.template.priority), Some(1));
}

#[test]
fn what_comes_is_counted_with_its_cause_and_what_waits_has_its_plugins() {
    let mut queue = Queue::default();
    queue.set(pod("a", 0), at(0), &Plugins);
    refuse(&mut queue, by_nodes(), at(0));
    let gated = Arc::new(Pod { gates: vec!["gate".into()], ..Pod::clone(&pod("b", 0)) });
    queue.set(Arc::clone(&gated), at(0), &Plugins);
    let stopped = |queue: &Queue| {
        let plugins = queue.refusals().map(|(pod, by)| (pod.key.name().to_owned(), by.iter().collect::<Vec<_>>()));
        plugins.collect::<Vec<_>>()
    };
    assert_eq!(stopped(&queue), [("a".to_owned(), vec![1]), ("b".to_owned(), vec![2])]);
    queue.notify(&node_added(), at(100), &Plugins);
    queue.flush(at(3000), &Plugins);
    refuse(&mut queue, Return::Failed, at(3000));
    assert_eq!(popped(&mut queue, at(3000)), "-", "a pause after an error is not cut short");
    let came = |cause: Cause| Part::ALL.map(|part| queue.arrivals().of(cause, part));
    assert_eq!(came(Cause::PodAdded), [1, 0, 1], "a, and b that is held back");
    assert_eq!(came(Cause::AttemptFailed), [0, 1, 1]);
    assert_eq!((came(Cause::NodeAdded), came(Cause::PauseOver)), ([0, 1, 0], [1, 0, 0]));
    assert_eq!(stopped(&queue)[0], ("a".to_owned(), Vec::new()));
    queue.clear();
    assert_eq!(queue.arrivals().of(Cause::PodAdded, Part::Active), 1, "what was counted stays counted");
}

#[test]
fn a_pod_that_no_plugin_has_refused_is_not_tried_early() {
    let mut queue = Queue::default();
    queue.set(pod("a", 0), at(0), &Plugins);
    refuse(&mut queue, Return::Refused(PluginSet::default()), at(0));
    assert_eq!((popped(&mut queue, at(500)), queue.depths().backoff), ("-".to_owned(), 1));
    queue.flush(at(2000), &Plugins);
    assert_eq!(popped(&mut queue, at(2000)), "a");
}

#[test]
fn a_pod_stands_where_it_will_be_tried() {
    let mut queue = Queue::new(Timings::default());
    for (name, why) in [("failed", Return::Failed), ("refused", by_nodes())] {
        queue.set(pod(name, 0), at(0), &Plugins);
        refuse(&mut queue, why, at(100));
    }
    queue.set(Arc::new(Pod { gates: vec!["g".into()], ..Pod::clone(&pod("gated", 0)) }), at(200), &Plugins);
    queue.set(pod("flies", 0), at(300), &Plugins);
    assert_eq!(popped(&mut queue, at(400)), "flies");
    for (name, priority) in [("low", 0), ("high", 9)] {
        queue.set(pod(name, priority), at(500), &Plugins);
    }
    let standings = queue.standings();
    let shown: Vec<_> = standings
        .iter()
        .map(|it| {
            (it.pod.key.name(), it.stands, it.before, it.until.is_some(), it.stopped_by.iter().collect::<Vec<_>>())
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("flies", Stands::InFlight, 0, false, vec![]),
            ("high", Stands::Active, 0, false, vec![]),
            ("low", Stands::Active, 1, false, vec![]),
            ("failed", Stands::Backoff, 0, true, vec![]),
            ("refused", Stands::Unschedulable, 0, false, vec![1]),
            ("gated", Stands::Gated, 0, false, vec![2]),
        ]
    );
    assert_eq!(standings[3].until, Some(at(2000)), "as the pause ends");
}
