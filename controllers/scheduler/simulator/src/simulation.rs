//! Plays a scenario: time goes from one thing that happens to the next.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use anyhow::{Result, bail, ensure};
use koord_runtime::{
    Core,
    clock::{Clock as _, ManualClock, Moment, SharedClock},
    events::EventSink,
    key::ObjectKey,
    metrics::Metrics,
    random::Random,
};
use koord_scheduler_engine::Engine;
use koord_scheduler_runtime::{Next, Scheduler, Transformers, feed::Feed};
use serde_json::Value;

use crate::{
    Arrival, Outcome, Scenario,
    listener::Listener,
    measure::{self, Rooms},
    outcome::{self, Sample},
    pods::Pods,
    scenario,
    survey::Survey,
    world::{Effect, World},
};

/// How far a simulation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Pods that have come.
    pub arrived: usize,
    /// Pods that come in all.
    pub arrivals: usize,
    /// Pods that wait for a node now.
    pub waiting: usize,
}

/// How long it goes on for pods that wait after the last pod has come or ended: longer than a gang waits for its members.
const LINGER: Duration = Duration::from_mins(15);

/// How often the cluster is measured, at most.
const SAMPLES_MAX: usize = 240;

/// What the scheduler may do at one time, for each pod that has come. It rests long before.
const STEPS_PER_POD_MAX: usize = 1000;

/// What there is at the end of a simulation.
#[derive(Clone, Debug)]
pub struct End {
    /// What came of it.
    pub outcome: Outcome,
    /// All objects of the kinds that the scheduler reads, as it has left them.
    pub objects: Vec<Value>,
}

/// Plays a scenario with an engine that knows nothing yet, to which pods come as these transformers make them. `see` is told of
/// every pod that comes.
pub fn run(
    engine: Engine,
    transformers: Transformers,
    scenario: &Scenario,
    see: impl FnMut(Progress),
) -> Result<Outcome> {
    play(engine, transformers, scenario, see).map(|end| end.outcome)
}

/// The same, with the objects of the end.
pub fn play(engine: Engine, transformers: Transformers, scenario: &Scenario, see: impl FnMut(Progress)) -> Result<End> {
    check(scenario)?;
    let mut simulation = Simulation::new(engine, transformers, scenario)?;
    simulation.play(scenario, see)?;
    Ok(End { objects: simulation.world.objects(), outcome: simulation.outcome() })
}

fn check(scenario: &Scenario) -> Result<()> {
    ensure!(scenario.nodes() > 0, "there is no node; add some, in a file or from a cluster");
    ensure!(
        !scenario.arrivals.is_empty(),
        "there is no pod that waits for a node: a pod that is to come has no spec.nodeName and has not ended"
    );
    let mut keys: Vec<ObjectKey> = scenario.arrivals.iter().map(Arrival::key).collect();
    let running = scenario.objects.iter().filter(|object| object["kind"] == "Pod");
    keys.extend(running.map(scenario::key));
    keys.sort();
    if let Some(twice) = keys.windows(2).find(|pair| pair.first() == pair.get(1)).and_then(<[_]>::first) {
        bail!("there are two pods {twice}; give one of them another name");
    }
    Ok(())
}

struct Simulation {
    scheduler: Scheduler,
    clock: Arc<ManualClock>,
    listener: Arc<Listener>,
    world: World,
    survey: Survey,
    pods: Pods,
    /// When pods end that have begun to run.
    ends: BTreeSet<(Duration, ObjectKey)>,
    /// How long pods run that have not begun yet.
    lasts: BTreeMap<ObjectKey, Duration>,
    rooms: Rooms,
    samples: Vec<Sample>,
    /// What has happened since the last sample.
    happened: usize,
    /// What happens between two samples.
    stride: usize,
    gpu_milli: i64,
    bindings: u64,
}

impl Simulation {
    fn new(engine: Engine, transformers: Transformers, scenario: &Scenario) -> Result<Self> {
        let survey = Survey::of(scenario)?;
        let (clock, listener) = (ManualClock::new(scenario.start), Listener::shared());
        let shared: SharedClock = clock.clone();
        let sink: Arc<dyn EventSink> = listener.clone();
        let random = Random::seeded(scenario.seed);
        let mut core = Core::new("koord-scheduler", Arc::clone(&shared), random, Metrics::new()?, Arc::clone(&sink));
        let feed = Feed::transforming(&mut core, &engine.reads(), transformers);
        let world = World::new(core, &scenario.objects)?;
        let scheduler = Scheduler::new(engine, feed, sink, shared);
        let (mut ends, mut lasts) = (BTreeSet::new(), BTreeMap::new());
        for pod in scenario.objects.iter().filter(|object| object["kind"] == "Pod") {
            let started = pod["status"]["startTime"].as_str().and_then(|time| time.parse().ok());
            let ran = Duration::try_from(scenario.start.duration_since(started.unwrap_or(scenario.start)));
            if let Some(lasts) = scenario::lasts(pod)? {
                ends.insert((lasts.saturating_sub(ran.unwrap_or_default()), scenario::key(pod)));
            }
        }
        lasts.extend(scenario.arrivals.iter().filter_map(|arrival| Some((arrival.key(), arrival.lasts?))));
        let happens = scenario.arrivals.len() + lasts.len() + ends.len();
        let (pods, rooms, samples) = (Pods::default(), Rooms::default(), Vec::new());
        let stride = happens.div_ceil(SAMPLES_MAX).max(1);
        let (happened, gpu_milli, bindings) = (0, 0, 0);
        Ok(Self {
            scheduler,
            clock,
            listener,
            world,
            survey,
            pods,
            ends,
            lasts,
            rooms,
            samples,
            happened,
            stride,
            gpu_milli,
            bindings,
        })
    }

    fn now(&self) -> Duration {
        self.clock.moment().since(Moment::default())
    }

    fn play(&mut self, scenario: &Scenario, mut see: impl FnMut(Progress)) -> Result<()> {
        let arrivals = scenario.arrivals.len();
        let mut coming = scenario.arrivals.iter().peekable();
        let mut last = Duration::ZERO;
        self.rest()?;
        self.sample();
        loop {
            let now = self.now();
            while let Some(arrival) = coming.next_if(|arrival| arrival.at <= now || scenario.gathers) {
                // The queue tells pods of one priority apart by when they came.
                self.clock.advance(arrival.at.saturating_sub(self.now()));
                self.arrive(arrival)?;
                while scenario.gathers && self.scheduler.catch_up() {}
                see(Progress { arrived: self.pods.len(), arrivals, waiting: self.pods.waiting() });
                last = now;
            }
            while self.ends.first().is_some_and(|(at, _)| *at <= now) {
                let Some((_, key)) = self.ends.pop_first() else { break };
                self.world.remove_pod(&key)?;
                self.pods.leave(&key, now);
                self.happened += 1;
                last = now;
            }
            self.rest()?;
            if self.happened >= self.stride {
                self.sample();
            }
            let scripted = coming.peek().map(|arrival| arrival.at);
            let scripted = scripted.into_iter().chain(self.ends.first().map(|(at, _)| *at)).min();
            let is_over = scripted.is_none() && self.pods.waiting() == 0;
            let wake =
                self.scheduler.wake_at().map(|at| at.since(Moment::default()).max(now + Duration::from_millis(1)));
            let Some(next) = scripted.into_iter().chain(wake).min().filter(|_| !is_over) else { break };
            let limit = scenario.until.unwrap_or(if scripted.is_some() { Duration::MAX } else { last + LINGER });
            self.clock.advance(next.min(limit).saturating_sub(now));
            if next > limit {
                break;
            }
        }
        self.rest()?;
        self.sample();
        Ok(())
    }

    fn arrive(&mut self, arrival: &Arrival) -> Result<()> {
        let key = arrival.key();
        self.gpu_milli = self.gpu_milli.saturating_add(self.survey.gpu_milli(&key));
        self.pods.arrive(key, self.now());
        self.happened += 1;
        let mut pod = arrival.pod.clone();
        pod["metadata"]["creationTimestamp"] = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
        self.world.add(pod)
    }

    /// Lets the scheduler do what it can do now.
    fn rest(&mut self) -> Result<()> {
        let steps_max = STEPS_PER_POD_MAX.saturating_mul(self.pods.len() + 100);
        for _ in 0..steps_max {
            while self.scheduler.catch_up() {}
            match self.scheduler.step() {
                Next::Send(work) => {
                    let effect = self.world.write(&work.write, self.clock.now())?;
                    self.scheduler.written(work, Ok(()));
                    self.take(effect);
                }
                // Nobody is asked in a simulation, whose engine has no extenders.
                Next::Attempted | Next::CallExtenders(_) => {}
                Next::Rest => {
                    self.listen();
                    return Ok(());
                }
            }
            self.listen();
        }
        bail!("the scheduler does not come to rest at {:?} of the simulation", self.now())
    }

    fn take(&mut self, effect: Effect) {
        let now = self.now();
        match effect {
            Effect::None => {}
            Effect::Bound(key, node) => {
                if self.pods.place(&key, now, node) {
                    self.bindings += 1;
                }
                if let Some(lasts) = self.lasts.remove(&key) {
                    self.ends.insert((now.saturating_add(lasts), key));
                }
            }
            Effect::Deleted(key) => self.pods.leave(&key, now),
        }
    }

    fn listen(&mut self) {
        for (key, event) in self.listener.take() {
            self.pods.observe(&key, event);
        }
    }

    fn sample(&mut self) {
        self.happened = 0;
        let cluster = self.scheduler.engine().cluster();
        let shares = measure::shares(cluster, &self.survey.capacity);
        let fragmented = self.rooms.fragmented(cluster, &self.survey);
        let gpus: i64 = cluster.rows().flat_map(|(row, _)| measure::gpus(cluster, row)).map(|(total, _)| total).sum();
        let demand = (gpus > 0).then(|| outcome::rounded(self.gpu_milli as f64 / gpus as f64));
        self.samples.push(Sample {
            at_s: outcome::seconds(self.now()),
            arrived: self.pods.len(),
            waiting: self.pods.waiting(),
            gpu_demand: demand,
            requested: outcome::all_rounded(shares),
            fragmented: outcome::all_rounded(fragmented),
        });
    }

    fn outcome(self) -> Outcome {
        let lasted = self.now();
        let parts = outcome::Parts {
            engine: self.scheduler.engine(),
            survey: &self.survey,
            pods: &self.pods,
            samples: self.samples,
            bindings: self.bindings,
            lasted,
        };
        Outcome::of(parts)
    }
}
