//! Goals of measurements, and those that are known to be missed.
//!
//! A goal is what is wanted, and does not follow what was measured. One that is missed for long stands in `tests/data/missed-goals.json`, with a bound of
//! its own, so that a bench fails when it becomes worse, and with what would be needed to reach it. docs/performance.md shows that list. Read first:
//! [`Goals::at_most`].
//!
//! Goals of time are those of one machine. On a slower one they are as many times longer as a fixed piece of work takes longer there (`machine`).
//!
//! [`Chosen`] is a bench with such goals.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

mod chosen;
mod clock;
mod machine;

use std::{fmt::Write as _, fs, path::PathBuf, thread, time::Duration};

use serde::Deserialize;

use self::machine::slowness;
pub use self::{
    chosen::{Chosen, Floor, mean},
    clock::clock,
};

/// How many times a bench measures at most what misses its goal.
const ROUNDS: u32 = 5;

/// How long a bench waits before it measures again: on a shared machine other work comes and goes in seconds.
const PAUSE: Duration = Duration::from_secs(10);

/// The rounds of a bench: other work on the machine makes a measurement worse and never better, so what misses its goal is measured again,
/// and one round that holds counts.
#[derive(Debug)]
pub struct Rounds {
    round: u32,
    pause: Duration,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { round: 1, pause: PAUSE }
    }
}

impl Rounds {
    /// Whether to measure again after a round in which so many goals were missed; waits before, and says so.
    pub fn again(&mut self, missed: usize) -> bool {
        if missed == 0 || self.round == ROUNDS {
            return false;
        }
        self.round += 1;
        thread::sleep(self.pause);
        println!("round {} of {ROUNDS} at most, for the {missed} that missed a goal", self.round);
        true
    }
}

/// A goal that is known to be missed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missed {
    /// The measurement, by the name that its bench prints.
    pub name: String,
    /// The unit of `goal` and `bound`: `ns`, `µs`, `ms`, `s`, `MB`, `times` or `pods/s`.
    pub unit: String,
    pub goal: f64,
    /// What is accepted until then. A bench fails beyond it.
    pub bound: f64,
    /// What was measured, and where.
    pub measured: String,
    /// The day of that measurement, as `2026-11-28`.
    pub since: String,
    /// What would be needed to reach the goal.
    pub needed: String,
}

/// How a measurement compares with its goal.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The goal is reached.
    Reached,
    /// The goal is missed, which is known, and the bound is held.
    KnownMiss {
        /// The bound that is held.
        bound: f64,
    },
    /// The goal is missed, and the bound too where there is one.
    Missed {
        /// The bound that is missed.
        bound: Option<f64>,
    },
}

/// The goals that are known to be missed.
#[derive(Clone, Debug)]
pub struct Goals {
    missed: Vec<Missed>,
    /// How slow the machine is now; a test says it.
    slowness: fn() -> f64,
}

impl Goals {
    /// Reads `tests/data/missed-goals.json`.
    pub fn load() -> Self {
        let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/missed-goals.json"));
        Self { missed: serde_json::from_slice(&fs::read(file).unwrap()).unwrap(), slowness }
    }

    /// How slow this machine is now, in words: what a bench prints first.
    pub fn machine(&self) -> String {
        format!("a fixed piece of work takes {:.2} times as long as on the machine of the goals", (self.slowness)())
    }

    /// The goals that are known to be missed, in the order of the file.
    pub fn missed(&self) -> &[Missed] {
        &self.missed
    }

    /// Compares a measurement with the most that is wanted, in the unit of the goal.
    pub fn at_most(&self, name: &str, unit: &str, measured: f64, goal: f64) -> Verdict {
        self.judge(name, unit, goal, |limit, slowness| measured <= limit * slowness)
    }

    /// Compares a measurement with the least that is wanted, in the unit of the goal.
    pub fn at_least(&self, name: &str, unit: &str, measured: f64, goal: f64) -> Verdict {
        self.judge(name, unit, goal, |limit, slowness| measured * slowness >= limit)
    }

    /// `holds`: whether the measurement is within a limit on a machine that is so slow.
    fn judge(&self, name: &str, unit: &str, goal: f64, holds: impl Fn(f64, f64) -> bool) -> Verdict {
        if holds(goal, 1.0) {
            return Verdict::Reached;
        }
        let slowness = if is_of_time(unit) { (self.slowness)() } else { 1.0 };
        if holds(goal, slowness) {
            return Verdict::Reached;
        }
        // A goal that was changed in the bench alone has no bound.
        let is_this =
            |missed: &&Missed| missed.name == name && missed.unit == unit && missed.goal.to_bits() == goal.to_bits();
        match self.missed.iter().find(is_this).map(|missed| missed.bound) {
            Some(bound) if holds(bound, slowness) => Verdict::KnownMiss { bound },
            bound => Verdict::Missed { bound },
        }
    }

    /// The list as the rows of docs/performance.md.
    pub fn table(&self) -> String {
        let mut table =
            "| measurement | goal | bound | measured | since | what would be needed |\n|---|---|---|---|---|---|\n"
                .to_owned();
        for Missed { name, unit, goal, bound, measured, since, needed } in &self.missed {
            let _ = writeln!(table, "| {name} | {goal} {unit} | {bound} {unit} | {measured} | {since} | {needed} |");
        }
        table
    }
}

/// Whether a measurement in this unit depends on how fast the machine is.
fn is_of_time(unit: &str) -> bool {
    !matches!(unit, "MB" | "times")
}

impl Verdict {
    /// Whether the bench fails for it.
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Missed { .. })
    }

    /// What is printed beside the measurement; nothing where the goal is reached.
    pub fn words(&self) -> String {
        match self {
            Self::Reached => String::new(),
            Self::KnownMiss { bound } => format!("missed, as is known; at most {bound} is accepted"),
            Self::Missed { bound: Some(bound) } => format!("MISSED, and {bound} is accepted"),
            Self::Missed { bound: None } => "MISSED".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goals() -> Goals {
        let missed = r#"[{"name": "a replay", "unit": "ms", "goal": 50, "bound": 400, "measured": "241 ms", "since": "2026-11-26", "needed": "less work"}]"#;
        Goals { missed: serde_json::from_str(missed).unwrap(), slowness: || 1.0 }
    }

    #[test]
    fn a_bench_measures_again_until_a_round_holds_or_five_have_not() {
        let mut rounds = Rounds { pause: Duration::ZERO, ..Rounds::default() };
        assert!(rounds.again(2) && rounds.again(1) && !rounds.again(0));
        assert!(rounds.again(1) && rounds.again(1) && !rounds.again(1));
    }

    #[test]
    fn a_known_miss_holds_its_bound() {
        let judge = |measured| goals().at_most("a replay", "ms", measured, 50.0);
        assert_eq!(judge(50.0), Verdict::Reached);
        assert_eq!(judge(399.0), Verdict::KnownMiss { bound: 400.0 });
        assert_eq!(judge(401.0), Verdict::Missed { bound: Some(400.0) });
        assert!(judge(401.0).is_failure() && !judge(399.0).is_failure());
    }

    #[test]
    fn any_other_miss_is_a_failure() {
        assert_eq!(goals().at_most("another", "ms", 51.0, 50.0), Verdict::Missed { bound: None });
        assert_eq!(goals().at_least("a rate", "pods/s", 4_999.0, 5_000.0), Verdict::Missed { bound: None });
        assert_eq!(goals().at_least("a rate", "pods/s", 5_000.0, 5_000.0), Verdict::Reached);
        // The goal of the bench is another than that of the list.
        assert_eq!(goals().at_most("a replay", "ms", 61.0, 60.0), Verdict::Missed { bound: None });
    }

    #[test]
    fn a_slower_machine_may_take_longer_and_no_more_memory() {
        let slow = Goals { slowness: || 2.0, ..goals() };
        assert_eq!(slow.at_most("a replay", "ms", 99.0, 50.0), Verdict::Reached);
        assert_eq!(slow.at_most("a replay", "ms", 799.0, 50.0), Verdict::KnownMiss { bound: 400.0 });
        assert_eq!(slow.at_most("a replay", "ms", 801.0, 50.0), Verdict::Missed { bound: Some(400.0) });
        assert_eq!(slow.at_least("a rate", "pods/s", 2_600.0, 5_000.0), Verdict::Reached);
        assert_eq!(slow.at_least("a rate", "pods/s", 2_400.0, 5_000.0), Verdict::Missed { bound: None });
        assert_eq!(slow.at_most("resident", "MB", 51.0, 50.0), Verdict::Missed { bound: None });
        assert!((1.0..=4.0).contains(&slowness()));
    }

    #[test]
    fn bounds_are_beyond_their_goals_and_say_what_is_needed() {
        for missed in Goals::load().missed() {
            let is_rate = missed.unit == "pods/s";
            assert_eq!(missed.bound < missed.goal, is_rate, "{}", missed.name);
            assert!(!missed.needed.is_empty() && missed.since.len() == "2026-11-28".len(), "{}", missed.name);
            assert!(["ns", "µs", "ms", "s", "MB", "times", "pods/s"].contains(&&*missed.unit), "{}", missed.unit);
        }
    }
}
