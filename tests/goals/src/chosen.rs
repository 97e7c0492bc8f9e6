//! Which measurements are made, whether they reach their goals, and how far they are above their floors.
//!
//! A floor is the least work that must be done for what is measured, made by the same program on the same machine.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    hint::black_box,
    process::ExitCode,
    time::Duration,
};

use crate::{Goals, Rounds, Verdict, clock::clock};

/// The least work that something needs.
#[derive(Clone, Copy, Debug)]
pub enum Floor {
    /// Choosing the largest of so many numbers, one of a node each: what is kept of every node is read once.
    Largest(usize),
    /// Adding so many numbers up: each of them must be read.
    Sum(usize),
    /// Copying a word of 64 CPUs, and counting them.
    Mask,
    /// What the bench has measured itself.
    Measured(Duration),
}

impl Floor {
    /// How many nanoseconds it takes: the mean over some milliseconds.
    fn nanos(self) -> f64 {
        match self {
            Self::Largest(numbers) => {
                let scores: Vec<i64> = (0..100_i64).cycle().take(numbers).collect();
                nanos(|| _ = black_box(black_box(&scores).iter().zip(0_usize..).max()))
            }
            Self::Sum(numbers) => {
                let amounts = vec![1_i64; numbers];
                nanos(|| _ = black_box(black_box(&amounts).iter().sum::<i64>()))
            }
            Self::Mask => {
                let mask = 0x00ff_00ff_00ff_00ff_u64;
                nanos(|| {
                    let copy = black_box(mask);
                    black_box(copy.count_ones());
                })
            }
            Self::Measured(taken) => taken.as_secs_f64() * 1e9,
        }
    }
}

/// How long a call takes, as the mean over some milliseconds.
pub fn mean(call: impl FnMut()) -> Duration {
    Duration::from_secs_f64(nanos(call) / 1e9)
}

fn nanos(mut call: impl FnMut()) -> f64 {
    const ENOUGH: Duration = Duration::from_millis(20);
    // The clock takes longer than some calls.
    const TIMES: u32 = 100;
    let (mut calls, start) = (0.0, clock());
    loop {
        (0..TIMES).for_each(|_| call());
        calls += f64::from(TIMES);
        let taken = clock().saturating_sub(start);
        if taken >= ENOUGH {
            break taken.as_secs_f64() * 1e9 / calls;
        }
    }
}

/// The measurements whose names have the argument of the program in them, and the names of those that failed: missed a goal that is not known to be
/// missed, or its bound.
#[derive(Debug)]
pub struct Chosen {
    part: String,
    goals: Goals,
    failed: RefCell<BTreeSet<String>>,
    /// Whether only those are measured that failed.
    is_again: bool,
    floor: Cell<Option<Floor>>,
}

impl Chosen {
    /// Measures, and again what failed. The exit code is a failure where no round held.
    pub fn run(measure: impl Fn(&Self)) -> ExitCode {
        let part = std::env::args().skip(1).find(|argument| argument != "--bench").unwrap_or_default();
        let mut chosen =
            Self { part, goals: Goals::load(), failed: RefCell::default(), is_again: false, floor: Cell::new(None) };
        println!("{}", chosen.goals.machine());
        measure(&chosen);
        chosen.is_again = true;
        let mut rounds = Rounds::default();
        while rounds.again(chosen.failed.borrow().len()) {
            println!("{}", chosen.goals.machine());
            measure(&chosen);
        }
        if chosen.failed.borrow().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// The next measurement is held against this floor.
    pub fn above(&self, floor: Floor) -> &Self {
        self.floor.set(Some(floor));
        self
    }

    /// Whether a measurement is made, or some of those whose names begin so.
    pub fn has(&self, name: &str) -> bool {
        name.contains(&self.part)
            && (!self.is_again || self.failed.borrow().iter().any(|failed| failed.starts_with(name)))
    }

    /// Prints how many things a second of CPU are done: `act` gives their number and the time that they took.
    pub fn rate(
        &self,
        goal: impl Into<Option<f64>>,
        (name, unit): (&str, &str),
        act: impl FnOnce() -> (usize, Duration),
    ) {
        let floor = self.floor.take();
        if !self.has(name) {
            return;
        }
        let (things, taken) = act();
        let rate = things as f64 / taken.as_secs_f64();
        let each = Duration::from_secs_f64(rate.recip());
        let judged = |goal: f64| {
            let verdict = self.goals.at_least(name, unit, rate, goal);
            self.judged(name, &verdict, &format!("{goal:.0}"), Some((each, floor)))
        };
        let goal = goal.into().map_or_else(String::new, judged);
        println!("{name}: {rate:.0} {unit}{goal}");
    }

    /// Prints how long each of so many things takes that one call does. It is called for half a second.
    pub fn time(&self, goal: impl Into<Option<Duration>>, name: &str, things: usize, mut call: impl FnMut()) {
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
    pub fn took(&self, goal: impl Into<Option<Duration>>, name: &str, taken: Duration) {
        let floor = self.floor.take();
        let judged = |goal: Duration| {
            let (unit, nanos) = unit(goal);
            let of = |time: Duration| time.as_secs_f64() * 1e9 / nanos;
            let verdict = self.goals.at_most(name, unit, of(taken), of(goal));
            self.judged(name, &verdict, &format!("{goal:?}"), Some((taken, floor)))
        };
        let goal = goal.into().map_or_else(String::new, judged);
        println!("{name}: {taken:?}{goal}");
    }

    /// Prints how much memory something holds.
    pub fn holds(&self, goal_mb: impl Into<Option<f64>>, name: &str, megabytes: f64) {
        let judged = |goal: f64| {
            self.judged(name, &self.goals.at_most(name, "MB", megabytes, goal), &format!("{goal} MB"), None)
        };
        let goal = goal_mb.into().map_or_else(String::new, judged);
        println!("{name}: {megabytes:.1} MB{goal}");
    }

    /// In brackets: the goal, and the floor of what took so long.
    fn judged(&self, name: &str, verdict: &Verdict, goal: &str, taken: Option<(Duration, Option<Floor>)>) -> String {
        let floor = taken.and_then(|(taken, floor)| {
            let least = floor?.nanos();
            let shown = Duration::from_secs_f64(least / 1e9);
            Some(format!("; floor {shown:?}, ×{:.1}", taken.as_secs_f64() * 1e9 / least))
        });
        let floor = floor.unwrap_or_default();
        let mut failed = self.failed.borrow_mut();
        if !verdict.is_failure() {
            failed.remove(name);
        } else if !self.is_again {
            failed.insert(name.to_owned());
        }
        let words = verdict.words();
        format!(" (goal {goal}{}{words}{floor})", if words.is_empty() { "" } else { ", " })
    }
}

/// The unit in which a goal is written, and how many nanoseconds it has.
fn unit(goal: Duration) -> (&'static str, f64) {
    match goal {
        goal if goal < Duration::from_micros(1) => ("ns", 1.0),
        goal if goal < Duration::from_millis(1) => ("µs", 1e3),
        _ => ("ms", 1e6),
    }
}
