//! One run: faults, then recovery, then silence.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use jiff::{Timestamp, ToSpan};
use koord_runtime::{
    clock::{Clock, ManualClock, SharedClock},
    random::Random,
};

use crate::{
    fault::Fault,
    program::{Program, Step},
    scenario::{Disturbance, Scenario},
    stage::Stage,
    world::World,
};

/// How long things may take to become right after the last fault; a key's longest delay is 1000 s.
const RECOVERY: Duration = Duration::from_hours(2);
/// How often agents report without faults.
const REPORTS: usize = 2;
/// How long after a report everything follows from it: longer than small changes wait.
pub const REPORTED: Duration = Duration::from_mins(11);
/// How long after that it is expired.
const FORGOTTEN: Duration = Duration::from_mins(10);
/// How long nothing may be written after that.
const SILENCE: Duration = Duration::from_mins(30);
/// How often one object that cannot be written may be tried meanwhile: once in five minutes for each of four profiles,
/// and once when a program starts.
const DENIALS: u64 = 28;
/// How far the clock may be set forwards or backwards.
const JUMP: i64 = 60;
/// The companion's sums are computed anew when people have done something and the number of all writes is a multiple of this.
const AUDIT: u64 = 8;
/// When people have acted so often and nothing was written, nothing ever will be.
const IN_VAIN_MAX: u32 = 10_000;
/// What [`Run::steps_at_once`] is for few objects.
const STEPS_AT_ONCE: u32 = 20_000;

/// How much trouble there is.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Trouble goes on until people and the program have carried out so many writes.
    pub writes: u64,
    /// Whether anything goes wrong.
    pub faults: bool,
    /// Kills the program right after so many writes of its first life.
    pub crash_after_write: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { writes: 200, faults: true, crash_after_write: None }
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
    /// Decisions that a witness has judged.
    pub judged: u64,
    /// What went wrong, and how often.
    pub faults: BTreeMap<Fault, u64>,
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

/// A scenario whose stage is set: every run begins with a copy of it.
pub struct Simulation<'s> {
    pub(crate) scenario: &'s dyn Scenario,
    stage: Stage,
}

impl<'s> Simulation<'s> {
    /// Sets the stage.
    pub fn of(scenario: &'s dyn Scenario) -> Self {
        let mut stage = Stage::new(0, ManualClock::new(start()));
        scenario.prepare(&mut stage);
        Self { scenario, stage }
    }

    /// What every run begins with.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// One run.
    pub fn run(&self, seed: u64, options: Options) -> Result<Report, Failure> {
        let clock = ManualClock::new(start());
        let stage = self.stage.fork(seed, Arc::clone(&clock) as SharedClock);
        let world = World::new(stage, clock, Random::seeded(seed), options.faults, self.scenario);
        let mut run = Run::new(self.scenario, options, world);
        let ended = run.play_out();
        let world = run.world;
        match ended {
            Ok(()) => Ok(Report {
                trace_hash: world.trace.hash(),
                steps: world.trace.length(),
                writes: world.stage.writes(),
                program_writes: world.program_writes,
                judged: world.judged(),
                faults: world.all_faults(),
            }),
            Err(what) => Err(Failure { seed, what, story: world.trace.last_lines() }),
        }
    }
}

/// When every run begins.
pub fn start() -> Timestamp {
    Timestamp::UNIX_EPOCH + 500_000.hours()
}

/// A run under way: the program acts on the world, step by step.
pub struct Run<'s> {
    pub(crate) scenario: &'s dyn Scenario,
    options: Options,
    /// What the program acts on.
    pub world: World,
    pub(crate) lives: u64,
    steps: Vec<Step>,
    /// More steps than this without time passing are a hot loop.
    pub steps_at_once: u32,
    /// Whether nothing is decided while a watch has events.
    pub attentive: bool,
    /// By how much the clock was set back in all.
    set_back: Duration,
}

impl<'s> Run<'s> {
    /// A run of which nothing has happened yet.
    pub fn new(scenario: &'s dyn Scenario, options: Options, world: World) -> Self {
        let steps_at_once = STEPS_AT_ONCE;
        let (steps, attentive, set_back) = (Vec::new(), false, Duration::ZERO);
        Self { scenario, options, world, lives: 0, steps, steps_at_once, attentive, set_back }
    }

    fn play_out(&mut self) -> Result<(), String> {
        let mut program = self.new_life()?;
        self.trouble(&mut program)?;
        program.sums_agree()?;
        self.world.stop_faults();
        program.stop_faults();
        self.scenario.conclude(&mut self.world.stage);
        self.world.note(format_args!("no more faults"));
        self.pass(&mut program, RECOVERY)?;
        self.scenario.check(&mut self.world.stage)?;
        for _ in 0..REPORTS {
            self.scenario.report(&mut self.world.stage, &self.world.random);
            self.world.note(format_args!("the agents of nodes report"));
            self.pass(&mut program, REPORTED)?;
            self.scenario.check(&mut self.world.stage)?;
        }
        // What ends at a time of day ends later where the clock was set back.
        self.pass(&mut program, FORGOTTEN + self.set_back)?;
        self.scenario.check(&mut self.world.stage)?;
        self.silence(&mut program, "after everything was right")?;
        // A new life knows only what the server says.
        let mut heir = self.new_life()?;
        self.silence(&mut heir, "by a program that had just started, although everything was right")?;
        program.sums_agree()?;
        heir.sums_agree()?;
        caches_agree(&program, &heir)
    }

    /// Starts the program with empty memory.
    pub fn new_life(&mut self) -> Result<Program, String> {
        self.lives += 1;
        self.world.note(format_args!("life {}", self.lives));
        let clock = Arc::clone(&self.world.clock) as SharedClock;
        let random = Random::seeded(self.world.random.number());
        let program = Program::start(self.scenario, clock, random, &self.world)?;
        self.world.begin_witness(self.scenario.witness());
        Ok(program)
    }

    fn trouble(&mut self, program: &mut Program) -> Result<(), String> {
        let (mut at_once, mut in_vain, mut known) = (0, 0, 0);
        while self.world.stage.writes() < self.options.writes {
            let person = self.world.chance(4);
            if person {
                self.disturb();
                in_vain = if self.world.stage.writes() == known { in_vain + 1 } else { 0 };
                known = self.world.stage.writes();
                if in_vain > IN_VAIN_MAX {
                    return Err(format!("people have acted {IN_VAIN_MAX} times, and nothing was written"));
                }
                if self.world.stage.writes().is_multiple_of(AUDIT) {
                    program.sums_agree()?;
                }
            }
            self.strike(program)?;
            program.steps(&mut self.steps, &mut self.world);
            if self.steps.is_empty() || self.world.chance(16) {
                self.let_time_pass();
                at_once = 0;
            } else if !person {
                self.step(program)?;
                at_once += 1;
                if at_once > self.steps_at_once {
                    return Err("the program never rests".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Mostly seconds, now and then hours.
    fn let_time_pass(&mut self) {
        let longest = if self.world.chance(25) { Duration::from_hours(3) } else { Duration::from_secs(20) };
        self.world.clock.advance(self.world.span(longest));
    }

    fn disturb(&mut self) {
        let Disturbance { what, fault } = self.scenario.disturb(&mut self.world.stage, &self.world.random);
        if let Some(fault) = fault {
            self.world.struck(fault);
        }
        self.world.note(format_args!("a person: {what}"));
        // Kubernetes' own controllers are not always quick.
        if self.world.chance(3) {
            self.world.stage.tidy();
        }
    }

    /// The faults of the program as a whole.
    fn strike(&mut self, program: &mut Program) -> Result<(), String> {
        if !self.options.faults {
            return Ok(());
        }
        if self.world.chance(150) {
            self.die(program)?;
        }
        if self.world.chance(150) {
            let plural = program.some_plural(&self.world.random);
            if let Some(plural) = plural {
                self.world.revoke(plural);
            }
        }
        if self.world.chance(500) {
            let minutes = if self.world.chance(2) { JUMP } else { -JUMP };
            let now = self.world.clock.now();
            self.world.clock.jump_to(now + minutes.minutes());
            self.set_back += Duration::from_mins((-minutes).max(0).unsigned_abs());
            self.world.struck(Fault::Jump);
            self.world.note(format_args!("the clock jumps by {minutes} minutes"));
        }
        Ok(())
    }

    fn step(&mut self, program: &mut Program) -> Result<(), String> {
        let index = usize::try_from(self.world.random.below(self.steps.len() as u64)).unwrap_or_default();
        if let Some(step) = self.steps.get(index) {
            program.step(*step, &mut self.world);
            if step.writes() {
                self.scenario.always(&mut self.world.stage)?;
            }
        }
        if self.lives == 1 && self.options.crash_after_write == Some(self.world.program_writes) {
            self.die(program)?;
        }
        self.world.broken.take().map_or(Ok(()), Err)
    }

    fn die(&mut self, program: &mut Program) -> Result<(), String> {
        self.world.struck(Fault::Crash);
        self.world.note(format_args!("the program dies"));
        *program = self.new_life()?;
        Ok(())
    }

    /// Lets the program do what it has to, for this long.
    pub fn pass(&mut self, program: &mut Program, span: Duration) -> Result<(), String> {
        let clock = Arc::clone(&self.world.clock);
        let end = clock.moment() + span;
        let mut at_once = 0;
        loop {
            while self.world.stage.tidy() > 0 {}
            program.steps(&mut self.steps, &mut self.world);
            if self.attentive && self.steps.iter().any(Step::is_watch) {
                self.steps.retain(Step::is_watch);
            }
            if self.steps.is_empty() {
                let left = end.since(clock.moment());
                if left.is_zero() {
                    return Ok(());
                }
                // A moment that has come already is waited for in the smallest step a queue knows.
                let due = program.next_due().unwrap_or(left).max(Duration::from_millis(1));
                clock.advance(due.min(left));
                at_once = 0;
            } else {
                self.step(program)?;
                at_once += 1;
                if at_once > self.steps_at_once {
                    return Err("the program never rests although nothing goes wrong any more".to_owned());
                }
            }
        }
    }

    fn silence(&mut self, program: &mut Program, when: &str) -> Result<(), String> {
        let before = self.world.program_writes - self.world.repeated;
        self.world.denied.clear();
        self.pass(program, SILENCE)?;
        // What is denied for ever is retried and reported, but rarely.
        let denied = std::mem::take(&mut self.world.denied);
        if let Some((object, times)) = denied.objects.iter().find(|(_, times)| **times > DENIALS) {
            return Err(format!("{object} is written {times} times in {SILENCE:?} {when}, and denied each time"));
        }
        match self.world.program_writes - self.world.repeated - before - denied.writes() {
            0 => Ok(()),
            writes => Err(format!("{writes} writes in {SILENCE:?} {when}")),
        }
    }
}

/// What a program has in its caches after a long and troubled life is what a new one reads from the server.
fn caches_agree(old: &Program, new: &Program) -> Result<(), String> {
    for (old, new) in old.core().watches().iter().zip(new.core().watches()) {
        let differences = old.differences(new);
        if !differences.is_empty() {
            return Err(format!("the cache of {} differs from the server's objects: {differences:?}", old.kind.plural));
        }
    }
    Ok(())
}
