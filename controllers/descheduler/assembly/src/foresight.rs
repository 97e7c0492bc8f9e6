//! The scheduler's engine beside a running descheduler: it follows the same cluster, and is asked what evictions would lead to.

use anyhow::Result;
use futures::future::BoxFuture;
use koord_descheduler_framework::{Descheduler, History, Input, Plan};
use koord_descheduler_planning::{EvictedAgain, Foresight, plan};
use koord_descheduler_runtime::Planner;
use koord_program::gates::Gates;
use koord_runtime::{Core, clock::SharedClock};
use koord_scheduler_assembly::{Configuration, engine, transformers};
use koord_scheduler_engine::Engine;
use koord_scheduler_runtime::feed::Feed;

/// The scheduler of the cluster as a running descheduler knows it. It places no pod.
pub struct LiveScheduler {
    engine: Engine,
    feed: Feed,
    clock: SharedClock,
    /// What is known of the pass under way.
    again: EvictedAgain,
}

impl LiveScheduler {
    /// A scheduler with this configuration, whose caches are among those of the program. Where the program may not watch what only the scheduler reads,
    /// nothing is foreseen, and the rest goes on.
    ///
    /// # Errors
    ///
    /// The configuration makes no engine.
    pub fn new(core: &mut Core, configuration: &Configuration, gates: &Gates) -> Result<Self> {
        let engine = engine(configuration, gates, core.random().clone())?;
        let known = core.watches().len();
        let feed = Feed::transforming(core, &engine.reads(), transformers(gates));
        for watch in core.watches().iter().skip(known) {
            watch.set_dispensable("the planning of evictions".to_owned());
        }
        Ok(Self { engine, feed, clock: core.clock().clone(), again: EvictedAgain::default() })
    }
}

impl Planner for LiveScheduler {
    fn follow(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.feed.follow(&mut self.engine, &self.clock))
    }

    fn catch_up(&mut self) {
        self.feed.catch_up(&mut self.engine, self.clock.moment());
    }

    fn obstacle(&self) -> Option<String> {
        if let Some(forbidden) = self.feed.forbidden() {
            return Some(forbidden);
        }
        (!self.feed.is_complete()).then(|| "the caches of the scheduler's objects are not complete yet".to_owned())
    }

    fn plan(&mut self, descheduler: &Descheduler, input: &Input<'_>, history: &History) -> Plan {
        if input.results.is_empty() {
            self.again = EvictedAgain::default();
            self.engine.tick(input.now);
        }
        let scheduler = self.obstacle().is_none().then_some(&self.engine);
        plan(descheduler, input, Foresight { scheduler, history }, &mut self.again)
    }
}
