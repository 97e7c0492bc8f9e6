//! Pressure makes strategies run at once.

use koord_koordlet_runtime::{Effect, Input};
use koord_koordlet_system::PressureResource;

use super::node::FixtureNode;

fn stops(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::StopContainer { .. })).count()
}

#[test]
fn suppression_follows_cpu_pressure_by_a_sample_of_that_moment() {
    let mut node = FixtureNode::new("kubepods", 4, &[]);
    node.settle();
    assert_eq!(node.quota(), Some(8.4), "16 × 65 % − 2");
    // 300 ms after the last round, others use six cores more.
    node.advance(300, 8.0);
    assert_eq!(node.quota(), Some(8.4), "no strategy is due");
    node.take(Input::Pressure(PressureResource::Cpu));
    assert_eq!(node.quota(), Some(2.4), "16 × 65 % − 8");
    // The interval begins anew, with samples and strategy alike.
    node.advance(990, 4.0);
    assert_eq!(node.quota(), Some(2.4));
    node.advance(10, 4.0);
    assert_eq!(node.quota(), Some(4.0), "16 × 65 % − 4 is more than a tenth of the node above 2.4");
}

#[test]
fn much_pressure_makes_suppression_run_twice_a_second() {
    let mut node = FixtureNode::new("kubepods", 4, &[]);
    node.settle();
    let mut changes = Vec::new();
    let mut last = node.quota();
    for tick in 1..=200 {
        // What is used changes all the time, so that each round writes another quota.
        node.advance(10, if tick % 100 < 50 { 4.0 } else { 8.0 });
        node.take(Input::Pressure(PressureResource::Cpu));
        if node.quota() != last {
            changes.push(tick * 10);
            last = node.quota();
        }
    }
    assert_eq!(changes, [20, 520, 1020, 1520], "the first waits until the last sample is 20 ms old");
}

#[test]
fn memory_pressure_evicts_at_once_and_not_before_the_pause_is_over() {
    let mut node = FixtureNode::new("kubepods", 4, &["--feature-gates=BEMemoryEvict=true"]);
    node.settle();
    node.set_available(20);
    assert_eq!(stops(&node.advance(200, 2.0)), 0, "no strategy is due");
    let effects = node.take(Input::Pressure(PressureResource::Memory));
    let [Effect::StopContainer { id, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    let more = node.take(Input::Stopped { id: *id, result: Ok(()) });
    assert_eq!(stops(&more), 0, "one pod is enough");
    node.set_available(5);
    let mut later = 0;
    for _ in 0..39 {
        later += stops(&node.advance(100, 2.0));
        later += stops(&node.take(Input::Pressure(PressureResource::Memory)));
    }
    assert_eq!(later, 0, "within --memory-evict-cool-time-seconds");
    assert_eq!(stops(&node.advance(100, 2.0)), 1);
}

#[test]
fn a_strategy_that_never_runs_is_not_woken() {
    let mut node = FixtureNode::new("kubepods", 4, &["--cpu-suppress-interval-seconds=0"]);
    node.settle();
    node.advance(300, 8.0);
    node.take(Input::Pressure(PressureResource::Cpu));
    node.take(Input::Pressure(PressureResource::Io));
    assert_eq!(node.quota(), None);
}
