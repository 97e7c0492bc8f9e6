//! How many pods of a scenario are decided about in a second.
#![allow(dead_code)]

use goals::{Chosen, clock};

use super::scenarios::Scenario;

/// Measurements of scenarios.
pub(crate) trait Decided {
    /// Prints how many pods a second of CPU are decided about, from the queue to the assumed node.
    fn measure(&self, name: &str, scenario: impl FnOnce() -> Scenario) {
        self.measure_for(None, name, scenario);
    }

    /// The same, with a goal.
    fn measure_for(&self, goal: impl Into<Option<f64>>, name: &str, scenario: impl FnOnce() -> Scenario);
}

impl Decided for Chosen {
    fn measure_for(&self, goal: impl Into<Option<f64>>, name: &str, scenario: impl FnOnce() -> Scenario) {
        self.rate(goal, (name, "pods/s"), || {
            let mut scenario = scenario();
            let (pods, start) = (scenario.waiting(), clock());
            scenario.decide(pods);
            (pods, clock().saturating_sub(start))
        });
    }
}
