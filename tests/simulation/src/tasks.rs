//! Runs through the real tasks: watch loops, queues, leader election and the recorder of events, over `kube::Client`
//! and the server's router, on a paused runtime in one thread. What goes wrong, goes wrong on the way between them.

use std::{sync::Arc, time::Duration};

use koord_runtime::{clock::ScaledClock, random::Random};
use koord_simulator::parts::start;
use tokio::runtime;

use crate::{
    Disturbance, Failure, Options, Report, Scenario, Simulation, Stage, network::Disruptions, replica::Replicas,
    scenario::Install,
};

/// How long things may take to become right after the last fault; a key's longest delay is 1000 s.
const RECOVERY: Duration = Duration::from_mins(50);
/// Programs of which one leads.
const REPLICAS: usize = 2;
/// How long nobody may reach the server, at most.
const OUTAGE: Duration = Duration::from_mins(2);
/// How long a taken-away permission stays away.
const REVOCATION: Duration = Duration::from_mins(1);

impl Simulation<'_> {
    /// One run through the real tasks.
    pub fn run_tasks(&self, seed: u64, options: Options) -> Result<Report, Failure> {
        let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.map_err(|error| Failure { seed, what: error.to_string(), story: String::new() })?;
        runtime.block_on(async {
            let clock = ScaledClock::shared(start(), 1.0);
            let random = Random::seeded(seed);
            let disruptions = Disruptions::new(Arc::clone(&clock), random.clone(), options);
            let stage = self.steps.stage().fork(seed, Arc::clone(&clock));
            let replicas = Replicas::new(&stage, random.clone(), Arc::clone(&disruptions));
            let surroundings = self.scenario.surroundings(stage.server(), &clock).map(tokio::spawn);
            let mut play = Play { scenario: self.scenario, stage, random, disruptions, replicas };
            let ended = play.play_out(options).await;
            if let Some(surroundings) = surroundings {
                surroundings.abort();
            }
            let (trace_hash, steps, story, faults) = play.disruptions.story();
            let program_writes = play.disruptions.writes();
            let writes = play.stage.writes() + program_writes;
            let bindings = play.scenario.judged(&mut play.stage);
            match ended {
                Ok(()) => Ok(Report { trace_hash, steps, writes, program_writes, promises: 0, bindings, faults }),
                Err(what) => Err(Failure { seed, what, story }),
            }
        })
    }
}

struct Play<'s> {
    scenario: &'s dyn Scenario,
    stage: Stage,
    random: Random,
    disruptions: Arc<Disruptions>,
    replicas: Replicas,
}

impl Play<'_> {
    async fn play_out(&mut self, options: Options) -> Result<(), String> {
        for _ in 0..REPLICAS {
            self.begin_life()?;
        }
        while self.stage.writes() + self.disruptions.writes() < options.writes {
            self.trouble(options).await?;
        }
        self.disruptions.stop_faults();
        self.scenario.conclude(&mut self.stage);
        self.disruptions.note(format_args!("no more faults"));
        self.replicas.pass(RECOVERY).await?;
        self.scenario.check(&mut self.stage)?;
        self.replicas.silence("after everything was right").await?;
        // A new life knows only what the server says.
        let old = self.replicas.leave();
        self.begin_life()?;
        for replica in &old {
            replica.stop();
        }
        self.replicas.silence("by a program that had just started, although everything was right").await?;
        old.iter().try_for_each(|replica| self.replicas.compare(replica))
    }

    fn begin_life(&mut self) -> Result<(), String> {
        let scenario = self.scenario;
        self.replicas.begin(|core, events| {
            scenario.wire(core)?;
            let mut installs = scenario.install(core, events)?;
            if let Some(scheduler) = scenario.scheduler(core, events) {
                let clock = Arc::clone(core.clock());
                let install: Install =
                    Box::new(move |manager| koord_scheduler_runtime::install(scheduler, clock, manager));
                installs.push(install);
            }
            Ok(((), installs))
        })
    }

    /// A while, something that a person does, and what goes wrong with programs and the server as a whole.
    async fn trouble(&mut self, options: Options) -> Result<(), String> {
        let longest = if self.chance(30) { Duration::from_mins(20) } else { Duration::from_secs(20) };
        self.replicas.pass(self.disruptions.span(longest)).await?;
        self.scenario.always(&mut self.stage)?;
        let Disturbance { what, fault } = self.scenario.disturb(&mut self.stage, &self.random);
        if let Some(fault) = fault {
            self.disruptions.struck(fault);
        }
        self.disruptions.note(format_args!("a person: {what}"));
        // Kubernetes' own controllers are not always quick.
        if self.chance(3) {
            self.stage.tidy();
        }
        if self.chance(30) {
            self.replicas.kill_one();
            self.begin_life()?;
        }
        if options.calm {
            return Ok(());
        }
        if self.chance(30) {
            self.disruptions.begin_outage(self.disruptions.span(OUTAGE));
        }
        if self.chance(15) {
            self.revoke();
        }
        Ok(())
    }

    fn revoke(&self) {
        const VERBS: [&str; 5] = ["list", "watch", "create", "patch", "delete"];
        let plurals: Vec<_> = self
            .replicas
            .living()
            .iter()
            .flat_map(|replica| replica.core().watches())
            .map(|watch| watch.kind.plural)
            .collect();
        let (verb, plural) = (VERBS[self.index(VERBS.len())], plurals[self.index(plurals.len())]);
        self.disruptions.revoke(verb, plural, REVOCATION);
    }

    fn chance(&self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    fn index(&self, length: usize) -> usize {
        usize::try_from(self.random.below(length as u64)).unwrap_or_default()
    }
}
