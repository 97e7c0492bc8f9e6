//! How long plugins take, in the attempts that are sampled.

use std::sync::Arc;

use koord_core::clock::{ManualClock, SharedClock};
use koord_scheduler_framework::{
    BeforePreFilter, Filter, NodeScore, Permit, Plugin, PreBind, PreFilter, Registration, Reserve, Score,
    timing::PluginLatency,
};

use super::*;

/// Takes a different number of milliseconds at each extension point.
struct Slow(Arc<ManualClock>);

impl Slow {
    fn takes(&self, milliseconds: u64) {
        self.0.advance(Duration::from_millis(milliseconds));
    }
}

impl Plugin for Slow {
    fn name(&self) -> &'static str {
        "Slow"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self)
            .before_pre_filter(&self)
            .pre_filter(&self)
            .filter(&self)
            .score(&self)
            .reserve(&self)
            .permit(&self)
            .pre_bind(&self)
    }
}

impl BeforePreFilter for Slow {
    fn before_pre_filter(&self, _: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
        self.takes(1);
        Ok(())
    }
}

impl PreFilter for Slow {
    fn pre_filter(&self, _: &Request<'_>, _: &Cluster) -> Result<(), Rejection> {
        self.takes(2);
        Ok(())
    }
}

impl Filter for Slow {
    fn prepare_filter(&self, _: &Request<'_>, _: &Cluster) -> PreparedFilter {
        self.takes(3);
        PreparedFilter::Nodes(Box::new(Self(Arc::clone(&self.0))))
    }
}

impl Score for Slow {
    fn prepare_score(&self, _: &Request<'_>, _: &Cluster) -> Option<Box<dyn NodeScore>> {
        self.takes(5);
        Some(Box::new(Self(Arc::clone(&self.0))))
    }
}

impl Reserve for Slow {
    fn reserve(&self, _: &Request<'_>, _: &Cluster, _: Row, _: &mut Holds) -> Result<(), Rejection> {
        self.takes(6);
        Ok(())
    }
}

impl Permit for Slow {
    fn permit(&self, _: &Request<'_>, _: &mut Cluster, _: &mut Orders) -> PermitResult {
        self.takes(7);
        PermitResult::Allow
    }
}

impl PreBind for Slow {
    fn pre_bind(&self, _: &Request<'_>, _: &Placed, _: &Cluster, _: &mut Patch) {
        self.takes(8);
    }
}

impl NodeFilter for Slow {
    fn filter(&self, _: &Cluster, _: Row) -> Result<(), Refusal> {
        self.takes(4);
        Ok(())
    }
}

impl NodeScore for Slow {
    fn score(&self, _: &Cluster, _: Row) -> i64 {
        self.takes(9);
        0
    }

    fn is_local(&self) -> bool {
        true
    }
}

/// An engine with a clock and one node, which has room for so many pods.
fn slow(pods: u32) -> Engine {
    let clock = ManualClock::new(Timestamp::UNIX_EPOCH);
    let shared: SharedClock = clock.clone();
    let plugins: Vec<Arc<dyn Plugin>> = vec![Arc::new(Slow(clock)), Arc::new(PodLimit)];
    let profile = Profile { filters: vec![0, 1], scores: vec![(0, 1)], ..Profile::of("test", plugins) };
    let mut engine = Engine::new(vec![profile], Timings::default(), Random::seeded(1)).timed_by(shared);
    engine.set_node(node("n", pods), at(0));
    engine
}

fn workload(job: &str) -> Arc<Template> {
    let labels = [("job", job)].into_iter().collect();
    Arc::new(Template { scheduler: "test".into(), labels, ..Template::default() })
}

/// Tries a pod of a workload, and says how long plugins took.
fn attempt(engine: &mut Engine, name: &str, template: &Arc<Template>) -> Vec<String> {
    let pod = Pod { template: Arc::clone(template), ..Pod::clone(&pod(name, "test", None)) };
    engine.set_pod(Arc::new(pod), at(0));
    assert_eq!(engine.attempt(at(0)).unwrap().pod.key.name(), name);
    let said = |PluginLatency { plugin, point, status, took }| {
        format!("{} {plugin} {} {}", point.as_str(), status.as_str(), took.as_millis())
    };
    engine.take_plugin_latencies().map(said).collect()
}

#[test]
fn plugins_are_timed_in_every_tenth_attempt() {
    let mut engine = slow(20);
    for name in ["1", "2", "3", "4", "5", "6", "7", "8", "9"] {
        assert_eq!(attempt(&mut engine, name, &workload(name)), [""; 0]);
    }
    let expected = [
        "BeforePreFilter Slow Success 1",
        "PreFilter Slow Success 5",
        "PreFilter PodLimit Success 0",
        "PreScore Slow Success 5",
        "Filter Slow Success 4",
        "Filter PodLimit Success 0",
        "Score Slow Success 9",
        "Reserve Slow Success 6",
        "Permit Slow Success 7",
        "PreBind Slow Success 8",
    ];
    assert_eq!(attempt(&mut engine, "10", &workload("10")), expected);
    let known = workload("11");
    for name in ["11", "12", "13", "14", "15", "16", "17", "18", "19"] {
        assert_eq!(attempt(&mut engine, name, &known), [""; 0]);
    }
    let latencies = attempt(&mut engine, "20", &known);
    assert_eq!(latencies[1..4], ["PreFilter Slow Success 2", "Filter Slow Success 4", "Filter PodLimit Success 0"]);
}

#[test]
fn a_node_that_refuses_the_pod_is_timed_up_to_the_filter_that_refuses_it() {
    let mut engine = slow(9);
    for name in ["1", "2", "3", "4", "5", "6", "7", "8", "9"] {
        assert_eq!(attempt(&mut engine, name, &workload(name)), [""; 0]);
    }
    let latencies = attempt(&mut engine, "10", &workload("10"));
    let of_node: Vec<&str> =
        latencies.iter().map(String::as_str).skip_while(|lap| !lap.starts_with("Filter")).collect();
    assert_eq!(of_node, ["Filter Slow Success 4", "Filter PodLimit Unschedulable 0"]);
}

#[test]
fn without_a_clock_no_plugin_is_timed() {
    let mut engine = engine();
    engine.set_node(node("n", 10), at(0));
    for name in ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"] {
        assert_eq!(attempt(&mut engine, name, &workload(name)), [""; 0]);
    }
}
