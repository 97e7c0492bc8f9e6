//! The tasks around the passes: the one of the leader, which carries plans out, and the one of every other replica, which only follows the cluster.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::future::OptionFuture;
use koord_descheduler_framework::{Eviction, Skipped, Step};
use koord_descheduler_migration::controller::COMPONENT;
use koord_runtime::{
    Core, api::Api, clock::SharedClock, events::EventSink, manager::Manager, random::Random, uid::Uid,
};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    carry_out,
    feed::{DELTAS_MAX, Feed},
    history::HistoryStore,
    metrics::Measures,
    migration::{Migration, Verdict},
    passes::{Passes, UnderWay},
    scales::Scales,
};

/// How long changes are left alone after others came.
const PAUSE: Duration = Duration::from_millis(5);
/// How long changes are waited for where nothing else is to be done.
const IDLE: Duration = Duration::from_secs(1);
/// How long the first pass waits for what the scheduler knows.
const FORESIGHT_WITHIN: Duration = Duration::from_secs(10);
/// How many objections are remembered, so that each is reported once.
const REPORTED_MAX: usize = 10_000;
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
    /// Where the history of evictions is kept; `None` where no profile plans.
    history: Option<HistoryStore>,
    /// Why nothing can be foreseen, as it was reported.
    obstacle: Option<String>,
    /// Pods that stay because of an objection that was reported, with its code.
    reported: BTreeSet<(Uid, &'static str)>,
}

impl Worker {
    pub fn new(
        passes: Passes,
        migration: Option<Migration>,
        feed: Feed,
        core: &Core,
        measures: Measures,
        (is_dry_run, history_namespace): (bool, &str),
    ) -> Self {
        let history = passes.planner.as_ref().map(|_| HistoryStore::new(history_namespace.to_owned()));
        Self {
            history,
            obstacle: None,
            reported: BTreeSet::new(),
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
        let foresight: OptionFuture<_> = self.passes.planner.as_mut().map(|planner| planner.follow()).into();
        let mut deltas = Vec::new();
        tokio::select! {
            biased;
            next = self.feed.stream.next(DELTAS_MAX) => deltas = next,
            Some(()) = foresight => {}
            () = clock.sleep(longest) => return,
        }
        // What the scheduler reads may have come alone, or with more of what the descheduler reads.
        if deltas.is_empty() {
            deltas = self.feed.stream.take(DELTAS_MAX);
        } else if let Some(planner) = &mut self.passes.planner {
            planner.catch_up(self.clock.now());
        }
        {
            let mut cluster = self.passes.cluster.lock();
            for delta in deltas {
                delta.apply(&mut cluster);
            }
        }
        clock.sleep(PAUSE.min(longest)).await;
    }

    /// Makes passes until `end`.
    async fn lead(&mut self, api: &Api, end: &CancellationToken) {
        while !self.feed.is_complete() && !end.is_cancelled() {
            self.follow(INCOMPLETE).await;
        }
        self.foresee(api, end).await;
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
                    self.follow(next.map_or(IDLE, |next| next.since(now))).await;
                }
            }
        }
    }

    /// Reads what was evicted before, and waits a while for what the scheduler knows.
    async fn foresee(&mut self, api: &Api, end: &CancellationToken) {
        if let Some(history) = &mut self.history {
            history.load(api, &mut self.passes.history).await;
        }
        let until = self.clock.moment() + FORESIGHT_WITHIN;
        let waits = |passes: &Passes| passes.planner.as_ref().is_some_and(|planner| planner.obstacle().is_some());
        while waits(&self.passes) && self.clock.moment() < until && !end.is_cancelled() {
            self.follow(INCOMPLETE).await;
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
        self.prepare_foresight();
        let began = self.clock.moment();
        let mut pass = self.passes.begin(self.clock.now(), began);
        let took = self.clock.moment().since(began);
        self.measures.computed(took, pass.plan.steps.len());
        self.report(&pass);
        self.report_spared(&pass.plan.spared);
        while let Some(step) = pass.plan.steps.get(pass.done()).cloned() {
            if end.is_cancelled() {
                return;
            }
            let is_done = self.carry_out(&step, api).await;
            self.passes.carried_out(&mut pass, is_done);
        }
        self.passes.end(pass);
        if let Some(history) = &mut self.history {
            history.save(api, &self.passes.history).await;
        }
    }

    /// Brings the planner to where the caches are, and reports where it cannot foresee anything.
    fn prepare_foresight(&mut self) {
        let now = self.clock.now();
        let Some(planner) = &mut self.passes.planner else { return };
        planner.catch_up(now);
        let obstacle = planner.obstacle();
        self.measures.plans(obstacle.is_none());
        if let Some(obstacle) = obstacle.as_ref().filter(|_| self.obstacle != obstacle) {
            tracing::warn!("what evictions lead to is not foreseen: {obstacle}; profiles with `planning: enforce` evict nothing until it is, and `planning: off` does without");
        }
        self.obstacle = obstacle;
        if self.passes.find_successors(now)
            && let Some(history) = &mut self.history
        {
            history.changed();
        }
    }

    /// Reports evictions that are not worth it and do not take place, each once until another reason keeps the pod.
    fn report_spared(&mut self, spared: &[Eviction]) {
        let mut reported = BTreeSet::new();
        for eviction in spared {
            let Some(objection) = &eviction.outlook.objection else { continue };
            self.measures.objected(eviction, true);
            let key = (eviction.pod.uid.clone(), objection.code.as_str());
            if !self.reported.contains(&key)
                && let Some(event) = carry_out::objection(eviction, true)
            {
                let (pod, strategy) = (eviction.pod.key.as_str(), eviction.plugin);
                tracing::info!(pod, strategy, "the pod stays: {objection}");
                if !self.is_dry_run {
                    self.events.record(COMPONENT, event);
                }
            }
            if reported.len() < REPORTED_MAX {
                reported.insert(key);
            }
        }
        self.reported = reported;
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
        self.report_objection(step);
        let result = api.write(&write).await;
        let Step::Evict(eviction) = step else {
            if let Err(error) = &result {
                tracing::error!(%error, "a step of the pass failed");
            }
            return result.is_ok();
        };
        match &result {
            Ok(_) => {
                if self.passes.remember(eviction, self.clock.now())
                    && let Some(history) = &mut self.history
                {
                    history.changed();
                }
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

impl Worker {
    /// Reports an eviction that takes place although it is not worth it.
    fn report_objection(&self, step: &Step) {
        if let Some(eviction) = step.eviction()
            && let Some(event) = carry_out::objection(eviction, false)
        {
            self.measures.objected(eviction, false);
            self.events.record(COMPONENT, event);
        }
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
