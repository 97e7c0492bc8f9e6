//! A large cluster in which nothing happens but that agents of nodes report what they reported before.

use std::{sync::Arc, time::Duration};

use http::Method;
use koord_runtime::{
    clock::{ManualClock, SharedClock},
    random::Random,
};
use koord_simulator::{
    Options, Scenario,
    parts::{REPORTED, Run, World, start},
};
use serde_json::json;

use crate::{
    Stage,
    manager::NODES,
    whole_manager::{WholeManager, report, size},
};

/// How long the program has for a cluster that it has never seen.
const FIRST: Duration = Duration::from_mins(20);
/// How long nothing may be written then.
const QUIET: u64 = 10;
/// A node reports once in so many minutes.
const ROUND: u64 = 5;
/// Each node may lead to so many steps at one moment.
const STEPS_PER_NODE: u32 = 100;

/// What a quiet cluster cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// What the program wrote until everything was right.
    pub writes_before: u64,
    /// What it wrote in ten minutes after that.
    pub writes: u64,
}

/// Ten quiet minutes of a cluster with so many nodes, with all controllers.
pub fn quiet(nodes: u32) -> Result<Quiet, String> {
    let scenario = WholeManager { sensible: true };
    let clock = ManualClock::new(start());
    let mut stage = Stage::remembering(0, Arc::clone(&clock) as SharedClock, 8 * nodes as usize);
    scenario.prepare(&mut stage);
    let each = || (0..nodes).map(|number| (format!("n{number}"), 1 + u64::from(number % 8)));
    for (name, amount) in each() {
        let node = json!({"metadata": {"name": name, "labels": {"pool": format!("p{}", amount % 3)}}});
        stage.person(&Method::POST, NODES, &node);
        size(&mut stage, &name, amount);
    }
    scenario.conclude(&mut stage);
    let world = World::new(stage, clock, Random::seeded(0), false, &scenario);
    let mut run = Run::new(&scenario, Options { faults: false, ..Options::default() }, world);
    run.attentive = true;
    run.steps_at_once = STEPS_PER_NODE.saturating_mul(nodes);
    let mut program = run.new_life()?;
    run.pass(&mut program, FIRST)?;
    for span in [REPORTED, Duration::ZERO] {
        for (name, amount) in each() {
            report(&mut run.world.stage, &name, amount);
        }
        run.pass(&mut program, span)?;
    }
    scenario.check(&mut run.world.stage)?;
    let writes_before = run.world.program_writes;
    for minute in 0..QUIET {
        for (name, amount) in each().skip(usize::try_from(minute % ROUND).unwrap_or_default()).step_by(ROUND as usize) {
            report(&mut run.world.stage, &name, amount);
        }
        run.pass(&mut program, Duration::from_mins(1))?;
    }
    Ok(Quiet { writes_before, writes: run.world.program_writes - writes_before })
}
