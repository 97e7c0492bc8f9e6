//! Programs on the real tasks, over `kube::Client`: of several replicas one leads. Each has a clock of its own.

use std::{sync::Arc, time::Duration};

use envtest::shell::Server;
use futures::{FutureExt, future::BoxFuture};
use jiff::{SignedDuration, Timestamp};
use koord_runtime::{
    Core,
    api::Api,
    clock::{Clock, Moment, SharedClock},
    events::EventSink,
    lease::LeaderElectionConfig,
    manager::{Manager, RunError, Settings},
    metrics::Metrics,
    random::Random,
    recorder::Recorder,
    reflector::Initial,
};
use koord_simulator::parts::FIELD_MANAGER;
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{
    Fault, Stage,
    network::{Disruptions, Network},
    scenario::Install,
};

/// How long nothing may be written after everything is right.
const SILENCE: Duration = Duration::from_mins(30);
/// How many seconds a clock may be before or behind the server's; certificates bear five minutes.
const SKEW: u64 = 240;

/// The replicas of a program, and the faults between them and the server.
pub(crate) struct Replicas {
    server: Server,
    clock: SharedClock,
    random: Random,
    disruptions: Arc<Disruptions>,
    living: Vec<Replica>,
    born: u64,
}

pub(crate) struct Replica {
    pub(crate) number: u64,
    core: Arc<Core>,
    api: Api,
    stop: CancellationToken,
    running: JoinHandle<Result<(), RunError>>,
    beside: Vec<JoinHandle<()>>,
}

/// The clock of one replica: it does not show what the others show, and stands still while its program does.
struct OwnClock {
    common: SharedClock,
    ahead: SignedDuration,
    replica: u64,
    disruptions: Arc<Disruptions>,
}

// === impl Replicas ===

impl Replicas {
    pub(crate) fn new(stage: &Stage, random: Random, disruptions: Arc<Disruptions>) -> Self {
        let (server, clock) = (stage.server().clone(), SharedClock::clone(stage.clock()));
        Self { server, clock, random, disruptions, living: Vec::new(), born: 0 }
    }

    /// Begins a program; `wire` makes its controllers, whatever else works with its caches, and what is installed on its manager.
    pub(crate) fn begin<T>(
        &mut self,
        wire: impl FnOnce(&mut Core, &Arc<dyn EventSink>) -> Result<(T, Vec<Install>), String>,
    ) -> Result<T, String> {
        self.born += 1;
        let number = self.born;
        let clock = self.own_clock(number);
        let (recorder, events) = Recorder::new(Arc::clone(&clock));
        let metrics = Metrics::new().map_err(|error| error.to_string())?;
        let random = Random::seeded(self.random.number());
        let recorder: Arc<dyn EventSink> = Arc::new(recorder);
        let mut core = Core::new(FIELD_MANAGER, Arc::clone(&clock), random, metrics, Arc::clone(&recorder));
        core.set_initial(if self.chance(2) { Initial::Stream } else { Initial::Pages });
        core.inject_panics(self.disruptions.panics.injector());
        let (wired, installs) = wire(&mut core, &recorder)?;
        let leader_election = LeaderElectionConfig {
            lease: Duration::from_mins(2),
            renew: Network::RENEW,
            retry: Duration::from_secs(20),
            release: self.chance(2),
            ..LeaderElectionConfig::new(Network::LEASE.0, Network::LEASE.1, Network::identity(number))
        };
        let settings = Settings {
            requests_per_second: 20.0,
            requests_burst: 30,
            leader_election: Some(leader_election),
            metrics: None,
            health: None,
            host: "simulated".to_owned(),
        };
        let network = Network::new(&self.server, Arc::clone(&self.disruptions), number);
        let client = Client::new(network, "default");
        let mut manager = Manager::timed_by(clock, core, client, events, settings);
        for install in installs {
            install(&mut manager);
        }
        let (core, api, stop) = (Arc::clone(manager.core()), manager.api().clone(), CancellationToken::new());
        let running = tokio::spawn(manager.run(stop.clone()));
        self.living.push(Replica { number, core, api, stop, running, beside: Vec::new() });
        Ok(wired)
    }

    /// The clocks of machines are never quite the same.
    fn own_clock(&self, replica: u64) -> SharedClock {
        let seconds = if self.disruptions.chance(2) { self.disruptions.below(2 * SKEW + 1) } else { SKEW };
        let ahead = SignedDuration::from_secs(seconds.cast_signed() - SKEW.cast_signed());
        self.disruptions.note(format_args!("life {replica}, whose clock is {} s ahead", ahead.as_secs()));
        if !ahead.is_zero() {
            self.disruptions.struck(Fault::Skew);
        }
        let (common, disruptions) = (Arc::clone(&self.clock), Arc::clone(&self.disruptions));
        Arc::new(OwnClock { common, ahead, replica, disruptions })
    }

    /// Kills one of the programs.
    pub(crate) fn kill_one(&mut self) -> Replica {
        let victim = usize::try_from(self.disruptions.below(self.living.len() as u64)).unwrap_or_default();
        let victim = self.living.remove(victim);
        self.disruptions.struck(Fault::Crash);
        self.disruptions.note(format_args!("a program dies"));
        victim.running.abort();
        victim.beside.iter().for_each(JoinHandle::abort);
        victim
    }

    pub(crate) fn living(&self) -> &[Replica] {
        &self.living
    }

    /// The program that began last.
    pub(crate) fn newest(&mut self) -> Option<&mut Replica> {
        self.living.last_mut()
    }

    /// From now on these count as programs of the past; they run until they are stopped.
    pub(crate) fn leave(&mut self) -> Vec<Replica> {
        std::mem::take(&mut self.living)
    }

    /// Lets the programs do what they have to, for this long.
    pub(crate) async fn pass(&self, span: Duration) -> Result<(), String> {
        self.clock.sleep(span).await;
        self.disruptions.broken()?;
        if self.living.iter().any(Replica::has_ended) {
            return Err("a program ended by itself".to_owned());
        }
        Ok(())
    }

    /// Nothing is written for long.
    pub(crate) async fn silence(&self, when: &str) -> Result<(), String> {
        let before = self.disruptions.writes();
        self.pass(SILENCE).await?;
        match self.disruptions.writes() - before {
            0 => Ok(()),
            writes => Err(format!("{writes} writes in {SILENCE:?} {when}")),
        }
    }

    /// A program that was stopped has ended, and its caches were right.
    pub(crate) fn compare(&self, old: &Replica) -> Result<(), String> {
        if !old.has_ended() || old.beside.iter().any(|task| !task.is_finished()) {
            return Err("a program that was stopped goes on".to_owned());
        }
        let news = self.living.iter().flat_map(|replica| replica.core.watches());
        for (old, new) in old.core.watches().iter().zip(news) {
            let differences = old.differences(new);
            if !differences.is_empty() {
                return Err(format!("the cache of {} differs: {differences:?}", old.kind.plural));
            }
        }
        Ok(())
    }

    fn chance(&self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }
}

// === impl Replica ===

impl Replica {
    /// Its caches and controllers.
    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    /// Runs this beside its controllers.
    pub(crate) fn accompany<F>(&mut self, work: impl FnOnce(Api, CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.beside.push(tokio::spawn(work(self.api.clone(), self.stop.clone())));
    }

    /// Tells it to stop.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    fn has_ended(&self) -> bool {
        self.running.is_finished() || self.beside.iter().any(JoinHandle::is_finished)
    }
}

// === impl OwnClock ===

impl Clock for OwnClock {
    fn now(&self) -> Timestamp {
        self.common.now().saturating_add(self.ahead).unwrap_or(Timestamp::MAX)
    }

    fn moment(&self) -> Moment {
        self.common.moment()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        let (slept, disruptions, replica) = (self.common.sleep(span), Arc::clone(&self.disruptions), self.replica);
        async move {
            slept.await;
            disruptions.stall(replica).await;
        }
        .boxed()
    }
}
