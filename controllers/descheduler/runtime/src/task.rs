//! The tasks around the passes: the one of the leader, which carries plans out, and the one of every other replica, which only follows the cluster.

use std::{sync::Arc, time::Duration};

use koord_descheduler_framework::{Skipped, Step};
use koord_descheduler_migration::controller::COMPONENT;
use koord_runtime::{Core, api::Api, clock::SharedClock, events::EventSink, manager::Manager, random::Random};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    carry_out,
    feed::{DELTAS_MAX, Feed},
    metrics::Measures,
    migration::{Migration, Verdict},
    passes::{Passes, UnderWay},
    scales::Scales,
};

/// How long changes are left alone after others came.
const PAUSE: Duration = Duration::from_millis(5);
/// How long changes are waited for where nothing else is to be done.
const IDLE: Duration = Duration::from_secs(1);
/// How often it is looked whether the caches are complete.
const INCOMPLETE: Duration = Duration::from_millis(20);

/// The descheduler with its caches, between the program and the framework.
pub struct Worker {
    passes: Passes,
    migration: Option<Migration>,
    scales: Scales,
    feed: Feed,
    clock: SharedClock,
    events: Arc<dyn EventSink>,
    random: Random,
    measures: Measures,
    /// Whether nothing is written.
    is_dry_run: bool,
    /// The id of this process on the jobs that it makes.
    process: String,
    /// Why the last pass did nothing, as it was reported.
    skipped: Option<Skipped>,
}

impl Worker {
    pub fn new(
        passes: Passes,
        migration: Option<Migration>,
        feed: Feed,
        core: &Core,
        measures: Measures,
        is_dry_run: bool,
    ) -> Self {
        Self {
            passes,
            migration,
            scales: Scales::default(),
            feed,
            clock: Arc::clone(core.clock()),
            events: Arc::clone(core.events()),
            random: core.random().clone(),
            measures,
            is_dry_run,
            process: core.random().uuid(),
            skipped: None,
        }
    }

    /// Follows the cluster for a time, or until changes have come.
    async fn follow(&mut self, longest: Duration) {
        let clock = Arc::clone(&self.clock);
        tokio::select! {
            biased;
            deltas = self.feed.stream.next(DELTAS_MAX) => {
                {
                    let mut cluster = self.passes.cluster.lock();
                    for delta in deltas {
                        delta.apply(&mut cluster);
                    }
                }
                clock.sleep(PAUSE.min(longest)).await;
            }
            () = clock.sleep(longest) => {}
        }
    }

    /// Makes passes until `end`.
    async fn lead(&mut self, api: &Api, end: &CancellationToken) {
        while !self.feed.is_complete() && !end.is_cancelled() {
            self.follow(INCOMPLETE).await;
        }
        self.passes.lead(self.clock.moment());
        while !end.is_cancelled() {
            let now = self.clock.moment();
            if let Some(migration) = &mut self.migration {
                migration.changed(&self.passes.cluster.lock(), now);
            }
            let arbitration = self.migration.as_ref().and_then(Migration::next);
            match (self.passes.next(), arbitration) {
                (Some(next), _) if next <= now => self.pass(api, end).await,
                (_, Some(next)) if next <= now => self.arbitrate(api, end).await,
                (pass, arbitration) => {
                    let next = pass.into_iter().chain(arbitration).min();
                    let follow = self.follow(next.map_or(IDLE, |next| next.since(now)));
                    // The next pass may be hours away.
                    tokio::select! { biased; () = end.cancelled() => return, () = follow => {} }
                }
            }
        }
    }

    /// Lets jobs start that may, and ends those whose pods may not migrate.
    async fn arbitrate(&mut self, api: &Api, end: &CancellationToken) {
        self.look_up_scales(api).await;
        let Some(migration) = &mut self.migration else { return };
        let verdicts = {
            let mut cluster = self.passes.cluster.lock();
            self.feed.fill(&mut cluster);
            migration.arbitrate(&cluster, self.clock.moment())
        };
        for Verdict { uid, write, event } in verdicts {
            if end.is_cancelled() {
                return;
            }
            match api.write(&write).await {
                Ok(_) => match event {
                    Some(event) => self.events.record(COMPONENT, event),
                    None => migration.passed(uid),
                },
                // A job that is gone or has changed is decided about again when the caches show it.
                Err(error) if error.stale => {}
                Err(error) => tracing::warn!(%error, "a PodMigrationJob could not be arbitrated"),
            }
        }
    }

    /// Reads the replicas of workloads that are not watched, where they count.
    async fn look_up_scales(&mut self, api: &Api) {
        if self.migration.is_some() {
            self.scales.look_up(api, &self.passes.cluster, self.clock.moment()).await;
        }
    }

    async fn pass(&mut self, api: &Api, end: &CancellationToken) {
        self.look_up_scales(api).await;
        {
            let mut cluster = self.passes.cluster.lock();
            self.feed.fill(&mut cluster);
            if let Some(migration) = &self.migration {
                migration.prepare(&mut cluster);
            }
        }
        let began = self.clock.moment();
        let mut pass = self.passes.begin(self.clock.now(), began);
        let took = self.clock.moment().since(began);
        self.measures.computed(took, pass.plan.steps.len());
        self.report(&pass);
        while let Some(step) = pass.plan.steps.get(pass.done()).cloned() {
            if end.is_cancelled() {
                return;
            }
            let is_done = self.carry_out(&step, api).await;
            self.passes.carried_out(&mut pass, is_done);
        }
        self.passes.end(pass);
    }

    /// Reports what a pass could not do. Why it did nothing is reported once.
    fn report(&mut self, pass: &UnderWay) {
        for (profile, strategy, error) in &pass.plan.errors {
            tracing::error!(profile = &**profile, strategy, %error, "the strategy failed");
            self.measures.errors.with_label_values(&[&**profile, strategy]).inc();
        }
        if pass.plan.skipped != self.skipped {
            if let Some(skipped) = &pass.plan.skipped {
                tracing::warn!("no pods are descheduled: {skipped}");
            }
            self.skipped = pass.plan.skipped;
        }
    }

    /// Whether a step succeeded.
    async fn carry_out(&mut self, step: &Step, api: &Api) -> bool {
        if let Step::Evict(eviction) = step {
            let (pod, node) = (eviction.pod.key.as_str(), eviction.pod.node.as_deref().unwrap_or_default());
            let is_dry_run = self.is_dry_run || step.is_dry_run();
            let (strategy, reason) = (eviction.plugin, &eviction.reason.text);
            tracing::info!(pod, node, strategy, dry_run = is_dry_run, "the pod is evicted: {reason}");
        }
        let write = carry_out::write(step, || self.random.uuid(), &self.process);
        let Some(write) = write.filter(|_| !self.is_dry_run) else { return true };
        let result = api.write(&write).await;
        let Step::Evict(eviction) = step else {
            if let Err(error) = &result {
                tracing::error!(%error, "a step of the pass failed");
            }
            return result.is_ok();
        };
        match &result {
            Ok(_) => {
                if let Some(event) = carry_out::event(eviction) {
                    self.measures.evicted(eviction, true);
                    self.events.record(COMPONENT, event);
                }
            }
            Err(error) => {
                tracing::warn!(pod = eviction.pod.key.as_str(), %error, "the eviction failed");
                self.measures.evicted(eviction, false);
                self.events.record(COMPONENT, carry_out::failure(eviction, &error.message));
                self.passes.eviction_failed(&eviction.pod.uid, self.clock.moment());
            }
        }
        result.is_ok()
    }
}

/// Runs passes with a manager: on the leader they are carried out, and every replica follows the cluster.
pub fn install(worker: Worker, manager: &mut Manager) {
    let worker = Arc::new(Mutex::new(worker));
    let leader = Arc::clone(&worker);
    manager.while_leading("descheduling", move |api, end| {
        let leader = Arc::clone(&leader);
        async move { leader.lock().await.lead(&api, &end).await }
    });
    let leading = manager.leading();
    manager.on_every_replica("descheduler standby", move |_, end| {
        let (worker, mut leading) = (Arc::clone(&worker), leading.clone());
        async move {
            let follow = async {
                loop {
                    if leading.wait_for(|leads| !leads).await.is_err() {
                        // The manager is gone; its tasks are ended by their tokens.
                        std::future::pending::<()>().await;
                    }
                    let mut worker = worker.lock().await;
                    while !*leading.borrow() {
                        worker.follow(IDLE).await;
                    }
                }
            };
            tokio::select! { biased; () = end.cancelled() => {}, () = follow => {} }
        }
    });
}
