//! Runs through the real tasks: watch loops, queues, leader election and the recorder of events, over `kube::Client`
//! and the server's router, on a paused runtime in one thread. What goes wrong, goes wrong on the way between them.

use std::{sync::Arc, time::Duration};

use koord_runtime::{
    Core,
    clock::{ScaledClock, SharedClock},
    lease::Candidacy,
    manager::{Manager, RunError, Settings},
    metrics::Metrics,
    random::Random,
    recorder::Recorder,
    reflector::Initial,
};
use kube::Client;
use tokio::{runtime, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    Disturbance, Failure, Fault, Options, Report, Scenario, Simulation, Stage,
    network::{Network, Weather},
    run::start,
};

/// How long things may take to become right after the last fault; a key's longest delay is 1000 s.
const PEACE: Duration = Duration::from_mins(50);
/// How long nothing may be written after that.
const SILENCE: Duration = Duration::from_mins(30);
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
            let weather = Weather::new(Arc::clone(&clock), random.clone(), options.faults);
            let stage = self.stage.fork(seed, Arc::clone(&clock));
            let mut play = Play { scenario: self.scenario, stage, clock, random, weather, lives: Vec::new(), born: 0 };
            let told = play.tell_all(options).await;
            let (trace_hash, steps, story, faults) = play.weather.story();
            let program_writes = play.weather.writes();
            let writes = play.stage.writes() + program_writes;
            match told {
                Ok(()) => Ok(Report { trace_hash, steps, writes, program_writes, faults }),
                Err(what) => Err(Failure { seed, what, story }),
            }
        })
    }
}

struct Play<'s> {
    scenario: &'s dyn Scenario,
    stage: Stage,
    clock: SharedClock,
    random: Random,
    weather: Arc<Weather>,
    lives: Vec<Life>,
    born: u64,
}

/// A running program.
struct Life {
    core: Arc<Core>,
    stop: CancellationToken,
    running: JoinHandle<Result<(), RunError>>,
}

impl Play<'_> {
    async fn tell_all(&mut self, options: Options) -> Result<(), String> {
        for _ in 0..REPLICAS {
            self.begin_life()?;
        }
        while self.stage.writes() + self.weather.writes() < options.writes {
            self.trouble().await?;
        }
        self.weather.make_peace();
        self.scenario.conclude(&mut self.stage);
        self.weather.note(format_args!("peace"));
        self.pass(PEACE).await?;
        self.scenario.check(&mut self.stage)?;
        self.silence("after everything was right").await?;
        // A new life knows only what the server says.
        let old: Vec<Life> = self.lives.drain(..).collect();
        self.begin_life()?;
        for life in &old {
            life.stop.cancel();
        }
        self.silence("by a program that had just started, although everything was right").await?;
        old.iter().try_for_each(|life| self.compare(life))
    }

    /// A program that was told to stop has done so, and its caches were right.
    fn compare(&self, old: &Life) -> Result<(), String> {
        if !old.running.is_finished() {
            return Err("a program that was told to stop goes on".to_owned());
        }
        let news = self.lives.iter().flat_map(|life| life.core.watches());
        for (old, new) in old.core.watches().iter().zip(news) {
            let differences = old.differences(new);
            if !differences.is_empty() {
                return Err(format!("the cache of {} differs: {differences:?}", old.kind.plural));
            }
        }
        Ok(())
    }

    fn begin_life(&mut self) -> Result<(), String> {
        self.born += 1;
        let replica = self.born;
        self.weather.note(format_args!("life {replica}"));
        let network = Network::new(self.stage.server(), Arc::clone(&self.weather), replica);
        let (recorder, told) = Recorder::new(Arc::clone(&self.clock));
        let metrics = Metrics::new().map_err(|error| error.to_string())?;
        let random = Random::seeded(self.random.number());
        let mut core = Core::new(Arc::clone(&self.clock), random, metrics, Arc::new(recorder));
        core.set_initial(if self.chance(2) { Initial::Stream } else { Initial::Pages });
        self.scenario.wire(&mut core)?;
        let candidacy = Candidacy {
            lease: Duration::from_mins(2),
            renew: Duration::from_secs(80),
            retry: Duration::from_secs(20),
            release: self.chance(2),
            ..Candidacy::new("default", "simulated", format!("replica-{replica}"))
        };
        let settings = Settings {
            field_manager: "simulated",
            requests_per_second: 20.0,
            requests_burst: 30,
            candidacy: Some(candidacy),
            metrics: None,
            health: None,
            host: "simulated".to_owned(),
        };
        let clock = Arc::clone(&self.clock);
        let manager = Manager::timed_by(clock, core, Client::new(network, "default"), told, settings);
        let (core, stop) = (Arc::clone(manager.core()), CancellationToken::new());
        let running = tokio::spawn(manager.run(stop.clone()));
        self.lives.push(Life { core, stop, running });
        Ok(())
    }

    /// A while, something that a person does, and what goes wrong with programs and the server as a whole.
    async fn trouble(&mut self) -> Result<(), String> {
        let longest = if self.chance(30) { Duration::from_mins(20) } else { Duration::from_secs(20) };
        self.pass(self.span(longest)).await?;
        let Disturbance { what, fault } = self.scenario.disturb(&mut self.stage, &self.random);
        if let Some(fault) = fault {
            self.weather.struck(fault);
        }
        self.weather.note(format_args!("a person: {what}"));
        // Kubernetes' own controllers are not always quick.
        if self.chance(3) {
            self.stage.tidy();
        }
        if self.chance(30) {
            let victim = self.lives.remove(self.index(self.lives.len()));
            self.weather.struck(Fault::Crash);
            self.weather.note(format_args!("a program dies"));
            victim.running.abort();
            self.begin_life()?;
        }
        if self.chance(30) {
            self.weather.begin_outage(self.span(OUTAGE));
        }
        if self.chance(15) {
            self.revoke();
        }
        Ok(())
    }

    fn revoke(&self) {
        const VERBS: [&str; 5] = ["list", "watch", "create", "patch", "delete"];
        let plurals: Vec<_> =
            self.lives.iter().flat_map(|life| life.core.watches()).map(|watch| watch.kind.plural).collect();
        let (verb, plural) = (VERBS[self.index(VERBS.len())], plurals[self.index(plurals.len())]);
        self.weather.revoke(verb, plural, REVOCATION);
    }

    async fn pass(&mut self, span: Duration) -> Result<(), String> {
        self.clock.sleep(span).await;
        self.weather.broken()?;
        if self.lives.iter().any(|life| life.running.is_finished()) {
            return Err("a program ended by itself".to_owned());
        }
        Ok(())
    }

    async fn silence(&mut self, when: &str) -> Result<(), String> {
        let before = self.weather.writes();
        self.pass(SILENCE).await?;
        match self.weather.writes() - before {
            0 => Ok(()),
            writes => Err(format!("{writes} writes in {SILENCE:?} {when}")),
        }
    }

    fn chance(&self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    fn index(&self, length: usize) -> usize {
        usize::try_from(self.random.below(length as u64)).unwrap_or_default()
    }

    fn span(&self, longest: Duration) -> Duration {
        Duration::from_millis(self.random.below(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)))
    }
}
