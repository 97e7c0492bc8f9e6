//! One run: trouble, then peace, then silence.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use jiff::{Timestamp, ToSpan};
use koord_runtime::{
    Core,
    clock::{Clock, Moment, SharedClock},
    random::Random,
    write::{Answer, Write},
};

use crate::{
    fault::Fault,
    program::{Program, Step, names_its_basis},
    stage::{Stage, failure},
    trace::Trace,
};

/// How long a taken-away permission stays away.
const REVOCATION: Duration = Duration::from_mins(1);
/// How long things may take to become right after the last fault; a key's longest delay is 1000 s.
const PEACE: Duration = Duration::from_hours(2);
/// How long nothing may be written after that.
const SILENCE: Duration = Duration::from_mins(30);
/// More steps than this without time passing are a hot loop.
const STEPS_AT_ONCE: u32 = 20_000;

/// Who is simulated, what people do to it, and what should become of it.
pub trait Scenario {
    /// Sets the stage before anybody acts.
    fn prepare(&self, stage: &mut Stage);
    /// Makes the program's controllers.
    fn wire(&self, core: &mut Core) -> Result<(), String>;
    /// One thing that a person does, described.
    fn disturb(&self, stage: &mut Stage, random: &Random) -> String;
    /// The last thing that people do; what should be follows from the stage alone afterwards.
    fn conclude(&self, stage: &mut Stage);
    /// Whether what is, is what should be.
    fn check(&self, stage: &mut Stage) -> Result<(), String>;
}

/// How much trouble there is.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Things that people do.
    pub disturbances: u32,
    /// Whether anything goes wrong.
    pub faults: bool,
    /// Kills the program after this write of its first life, however many lives follow.
    pub crash_after_write: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { disturbances: 250, faults: true, crash_after_write: None }
    }
}

/// What a good run was like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Of everything that happened.
    pub trace_hash: u64,
    /// Steps that were made.
    pub steps: u64,
    /// Writes that were carried out, by people and the program.
    pub writes: u64,
    /// Writes that the program sent.
    pub program_writes: u64,
    /// Things that went wrong.
    pub faults: u64,
    /// The different kinds of them.
    pub fault_kinds: BTreeSet<Fault>,
}

/// Why a run was not good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Gives the same run again.
    pub seed: u64,
    /// What is wrong.
    pub what: String,
    /// The last things that happened.
    pub story: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}\nwhat happened last:\n{}", self.seed, self.what, self.story)
    }
}

/// What the program's steps act on.
pub(crate) struct World {
    pub(crate) stage: Stage,
    pub(crate) random: Random,
    trace: Trace,
    trouble: bool,
    revoked: Option<(&'static str, Moment)>,
    faults: u64,
    fault_kinds: BTreeSet<Fault>,
    program_writes: u64,
    broken: Option<String>,
}

impl World {
    pub(crate) fn note(&mut self, what: fmt::Arguments<'_>) {
        let now = self.stage.clock().now();
        self.trace.note(now, what);
    }

    pub(crate) fn faulty(&self) -> bool {
        self.trouble
    }

    /// Whether a one-in-so-many chance comes true.
    pub(crate) fn chance(&self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    pub(crate) fn struck(&mut self, fault: Fault) {
        self.faults += 1;
        self.fault_kinds.insert(fault);
    }

    /// The refusal of a request for a kind whose permission is taken away just now.
    pub(crate) fn gated(&self, plural: &str) -> Option<Answer> {
        let (revoked, until) = self.revoked?;
        let forbidden = revoked == plural && self.stage.clock().moment() < until;
        forbidden.then(|| failure(403, "Forbidden", &format!("{plural} is forbidden")))
    }

    pub(crate) fn check_write(&mut self, write: &Write) {
        if !names_its_basis(write) {
            self.broken = Some(format!("a change does not name what it was decided on: {write}"));
        }
    }

    pub(crate) fn wrote(&mut self, write: &Write, fault: Option<Fault>, answer: &Answer) {
        self.program_writes += 1;
        match fault {
            Some(fault) => self.note(format_args!("  {write} -> {} ({fault:?})", answer.code)),
            None => self.note(format_args!("  {write} -> {}", answer.code)),
        }
    }
}

/// Simulates one run of a scenario.
pub fn simulate(scenario: &dyn Scenario, seed: u64, options: Options) -> Result<Report, Failure> {
    let start = Timestamp::UNIX_EPOCH + 500_000.hours();
    let mut stage = Stage::new(seed, start);
    scenario.prepare(&mut stage);
    let world = World {
        stage,
        random: Random::seeded(seed),
        trace: Trace::new(),
        trouble: options.faults,
        revoked: None,
        faults: 0,
        fault_kinds: BTreeSet::new(),
        program_writes: 0,
        broken: None,
    };
    let mut run = Run { scenario, options, world, lives: 0 };
    let told = run.tell_all();
    let world = run.world;
    match told {
        Ok(()) => Ok(Report {
            trace_hash: world.trace.hash(),
            steps: world.trace.len(),
            writes: world.stage.writes(),
            program_writes: world.program_writes,
            faults: world.faults,
            fault_kinds: world.fault_kinds,
        }),
        Err(what) => Err(Failure { seed, what, story: world.trace.last_lines() }),
    }
}

struct Run<'s> {
    scenario: &'s dyn Scenario,
    options: Options,
    world: World,
    lives: u64,
}

impl Run<'_> {
    fn tell_all(&mut self) -> Result<(), String> {
        let mut program = self.new_life()?;
        self.trouble(&mut program)?;
        self.world.trouble = false;
        self.world.revoked = None;
        self.scenario.conclude(&mut self.world.stage);
        self.world.note(format_args!("peace"));
        self.pass(&mut program, PEACE)?;
        self.scenario.check(&mut self.world.stage)?;
        self.silence(&mut program, "after everything was right")?;
        // A cache that differs from the server would show now: a new life knows only what the server says.
        let mut program = self.new_life()?;
        self.silence(&mut program, "by a program that had just started, although everything was right")
    }

    fn new_life(&mut self) -> Result<Program, String> {
        self.lives += 1;
        self.world.note(format_args!("life {}", self.lives));
        let clock = Arc::clone(self.world.stage.clock()) as SharedClock;
        Program::start(self.scenario, clock, Random::seeded(self.world.random.number()))
    }

    fn trouble(&mut self, program: &mut Program) -> Result<(), String> {
        let mut left = self.options.disturbances;
        let mut at_once = 0;
        while left > 0 {
            let person = self.world.chance(4);
            if person {
                left -= 1;
                self.disturb(program);
            }
            if self.options.faults {
                self.strike(program)?;
            }
            let steps = program.steps(&mut self.world);
            if steps.is_empty() || self.world.chance(16) {
                let jump = Duration::from_millis(self.world.random.below(20_000));
                self.world.stage.clock().advance(jump);
                at_once = 0;
            } else if !person {
                self.step(program, &steps)?;
                at_once += 1;
                if at_once > STEPS_AT_ONCE {
                    return Err("the program never rests".to_owned());
                }
            }
        }
        Ok(())
    }

    fn disturb(&mut self, program: &Program) {
        if self.world.chance(3) {
            for path in program.watched_paths() {
                self.world.stage.remember(&path);
            }
        }
        let what = self.scenario.disturb(&mut self.world.stage, &self.world.random);
        self.world.note(format_args!("a person: {what}"));
    }

    /// What befalls the program as a whole.
    fn strike(&mut self, program: &mut Program) -> Result<(), String> {
        let planned =
            self.options.crash_after_write.is_some_and(|after| self.world.program_writes == after && self.lives == 1);
        if planned || (self.options.crash_after_write.is_none() && self.world.chance(150)) {
            self.world.struck(Fault::Crash);
            self.world.note(format_args!("the program dies"));
            *program = self.new_life()?;
        }
        if self.world.chance(300) {
            let watches = program.core().watches();
            let index = usize::try_from(self.world.random.below(watches.len() as u64)).unwrap_or_default();
            if let Some(watch) = watches.get(index) {
                let plural = watch.kind.plural;
                self.world.struck(Fault::Revoked);
                self.world.note(format_args!("the permission for {plural} is taken away"));
                self.world.revoked = Some((plural, self.world.stage.clock().moment() + REVOCATION));
            }
        }
        Ok(())
    }

    fn step(&mut self, program: &mut Program, steps: &[Step]) -> Result<(), String> {
        let index = usize::try_from(self.world.random.below(steps.len() as u64)).unwrap_or_default();
        if let Some(step) = steps.get(index) {
            program.step(*step, &mut self.world);
        }
        self.world.broken.take().map_or(Ok(()), Err)
    }

    /// Lets the program do what it has to, for this long.
    fn pass(&mut self, program: &mut Program, span: Duration) -> Result<(), String> {
        let clock = Arc::clone(self.world.stage.clock());
        let end = clock.moment() + span;
        let mut at_once = 0;
        loop {
            let steps = program.steps(&mut self.world);
            if steps.is_empty() {
                let left = end.since(clock.moment());
                if left.is_zero() {
                    return Ok(());
                }
                // A moment that has come already is waited for in the smallest step a queue knows.
                let due = program.next_due().unwrap_or(left).max(Duration::from_millis(1));
                clock.advance(due.min(left));
                at_once = 0;
            } else {
                self.step(program, &steps)?;
                at_once += 1;
                if at_once > STEPS_AT_ONCE {
                    return Err("the program never rests although nothing goes wrong any more".to_owned());
                }
            }
        }
    }

    fn silence(&mut self, program: &mut Program, when: &str) -> Result<(), String> {
        let before = self.world.program_writes;
        self.pass(program, SILENCE)?;
        match self.world.program_writes - before {
            0 => Ok(()),
            writes => Err(format!("{writes} writes in {SILENCE:?} {when}")),
        }
    }
}
