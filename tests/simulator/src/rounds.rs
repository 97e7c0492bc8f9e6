//! Recorded runs: people act while the program stands still, then the program makes everything right, and so on. Nothing
//! goes wrong but one death, so that what comes of it can be compared with what comes without.
//!
//! The program decides nothing while a watch has events. So it never sees half of what people did: whether it
//! did would be up to chance, and what it writes of a state that passes may stay (a ratio of `1.00`, an amount of `0`),
//! or be lost with an object that is made anew. All of that is right, and none of it follows from the death.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use koord_runtime::{
    clock::{ManualClock, SharedClock},
    random::Random,
};
use serde_json::Value;

use crate::{
    Failure, Options, Simulation,
    people::name_of,
    run::{REPORTED, Run, start},
    stage::Stage,
    world::World,
};

/// How often people act and the program follows.
const ROUNDS: usize = 3;
/// What people do in a round.
const ACTS: usize = 50;
/// How long the program then has.
const QUIET: Duration = Duration::from_mins(40);

/// What stands in the collections of a scenario, by path and name, without what differs by the history of the writes.
pub type State = BTreeMap<String, Value>;

/// What a recorded run was like.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounds {
    /// Writes that the program sent.
    pub program_writes: u64,
    /// How often it died.
    pub deaths: u64,
    /// What stood there after each round.
    pub states: Vec<State>,
    /// The last things that happened.
    pub story: String,
}

impl Simulation<'_> {
    /// One recorded run, in which the program may die right after one of its writes.
    pub fn rounds(&self, seed: u64, crash_after_write: Option<u64>) -> Result<Rounds, Failure> {
        let clock = ManualClock::new(start());
        let stage = self.stage().fork(seed, Arc::clone(&clock) as SharedClock);
        let world = World::new(stage, clock, Random::seeded(seed), false, self.scenario);
        let options = Options { faults: false, crash_after_write, ..Options::default() };
        let mut run = Run::new(self.scenario, options, world);
        run.attentive = true;
        let ended = play(&mut run, seed);
        let (deaths, program_writes) = (run.lives.saturating_sub(1), run.world.program_writes);
        let story = run.world.trace.last_lines();
        match ended {
            Ok(states) => Ok(Rounds { program_writes, deaths, states, story }),
            Err(what) => Err(Failure { seed, what, story }),
        }
    }
}

fn play(run: &mut Run<'_>, seed: u64) -> Result<Vec<State>, String> {
    // What people do follows from the seed alone, and not from what the program does.
    let people = Random::seeded(seed);
    let mut program = run.new_life()?;
    let mut states = Vec::with_capacity(ROUNDS);
    for round in 1..=ROUNDS {
        for _ in 0..ACTS {
            let done = run.scenario.disturb(&mut run.world.stage, &people);
            run.world.note(format_args!("a person: {}", done.what));
        }
        if round == ROUNDS {
            run.scenario.conclude(&mut run.world.stage);
        }
        run.pass(&mut program, QUIET)?;
        run.scenario.report(&mut run.world.stage, &people);
        run.pass(&mut program, REPORTED)?;
        states.push(state(run.scenario.collections(), &mut run.world.stage));
    }
    run.scenario.check(&mut run.world.stage)?;
    Ok(states)
}

fn state(collections: &[&str], stage: &mut Stage) -> State {
    let mut state = State::new();
    for collection in collections {
        for mut object in stage.objects(collection) {
            let path = format!("{collection}/{}", name_of(&object));
            if let Some(metadata) = object["metadata"].as_object_mut() {
                for field in ["uid", "resourceVersion", "generation", "managedFields", "creationTimestamp"] {
                    metadata.remove(field);
                }
            }
            state.insert(path, object);
        }
    }
    state
}
