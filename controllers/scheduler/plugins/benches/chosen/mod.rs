//! Which measurements are made, and whether they reach their goals.
#![allow(dead_code)]

use std::{cell::Cell, process::ExitCode, time::Duration};

use super::{clock::clock, scenarios::Scenario};

/// The measurements whose names have this in them, and how many of them missed their goals.
pub(crate) struct Chosen {
    part: String,
    missed: Cell<usize>,
}

impl Chosen {
    /// As the arguments of the program say.
    pub(crate) fn of_arguments() -> Self {
        let part = std::env::args().skip(1).find(|argument| argument != "--bench").unwrap_or_default();
        Self { part, missed: Cell::new(0) }
    }

    /// Whether a measurement is made.
    pub(crate) fn has(&self, name: &str) -> bool {
        name.contains(&self.part)
    }

    /// A failure where a goal was missed.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.missed.get() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Prints how many pods a second of CPU are decided about, from the queue to the assumed node.
    pub(crate) fn measure(&self, name: &str, scenario: impl FnOnce() -> Scenario) {
        self.measure_for(None, name, scenario);
    }

    /// The same, with a goal.
    pub(crate) fn measure_for(&self, goal: impl Into<Option<f64>>, name: &str, scenario: impl FnOnce() -> Scenario) {
        if !self.has(name) {
            return;
        }
        let mut scenario = scenario();
        let (pods, start) = (scenario.waiting(), clock());
        scenario.decide(pods);
        let rate = pods as f64 / clock().saturating_sub(start).as_secs_f64();
        let goal = goal.into().map_or_else(String::new, |goal| self.judged(rate >= goal, &format!("{goal:.0}")));
        println!("{name}: {rate:.0} pods/s{goal}");
    }

    /// Prints how long each of so many things takes that one call does. It is called for half a second.
    pub(crate) fn time(&self, goal: impl Into<Option<Duration>>, name: &str, things: usize, mut call: impl FnMut()) {
        const ENOUGH: Duration = Duration::from_millis(500);
        call();
        let (mut calls, start) = (0_u32, clock());
        let taken = loop {
            call();
            calls += 1;
            let taken = clock().saturating_sub(start);
            if taken >= ENOUGH {
                break taken;
            }
        };
        self.took(goal, name, taken.div_f64(f64::from(calls) * things as f64));
    }

    /// Prints how long something took.
    pub(crate) fn took(&self, goal: impl Into<Option<Duration>>, name: &str, taken: Duration) {
        let goal = goal.into().map_or_else(String::new, |goal| self.judged(taken <= goal, &format!("{goal:?}")));
        println!("{name}: {taken:?}{goal}");
    }

    fn judged(&self, is_reached: bool, goal: &str) -> String {
        self.missed.set(self.missed.get() + usize::from(!is_reached));
        format!(" (goal {goal}{})", if is_reached { "" } else { ", missed" })
    }
}
