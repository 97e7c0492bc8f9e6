//! The tasks around the passes: the one of the leader, which carries plans out, and the one of every other replica, which only follows the cluster.

mod foresight;
mod mistakes;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::future::OptionFuture;
use koord_descheduler_framework::{Skipped, Step, Stopwatch};
use koord_descheduler_migration::controller::COMPONENT;
use koord_runtime::{
    Core,
    api::Api,
    clock::{Moment, SharedClock},
    events::{EventSink, EventType},
    manager::Manager,
    random::Random,
    uid::Uid,
};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use self::mistakes::Mistakes;
use crate::{
    carry_out,
    feed::{DELTAS_MAX, Feed},
    history::HistoryStore,
    metrics::Measures,
    migration::{Migration, Verdict},
    own_events::OwnEvents,
    passes::{Passes, UnderWay},
    reconfigure::{Behaviour, ConfigurationChange, ConfigurationChanges, Reconfiguration},
    scales::Scales,
    usage::{UsageCollector, UsageReport},
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
    usage: UsageCollector,
    feed: Feed,
    clock: SharedClock,
    events: Arc<dyn EventSink>,
    own_events: OwnEvents,
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
    mistakes: Mistakes,
    /// Where changes of the configuration come from, if it can change.
    changes: Option<ConfigurationChanges>,
    /// Whether caches that a change of the configuration asked for are not known to be complete.
    is_filling: bool,
    /// Ends the program after the last pass; `None` where it runs on.
    ends: Option<CancellationToken>,
}

impl Worker {
    pub fn new(
        passes: Passes,
        migration: Option<Migration>,
        feed: Feed,
        core: &Core,
        measures: Measures,
        own_events: OwnEvents,
        Behaviour { is_dry_run, prometheus }: Behaviour,
    ) -> Self {
        let usage = UsageCollector::new(passes.descheduler(), prometheus.as_ref());
        let history = passes.planner.as_ref().map(|_| HistoryStore::new(own_events.namespace().to_owned()));
        Self {
            history,
            obstacle: None,
            reported: BTreeSet::new(),
            mistakes: Mistakes::default(),
            passes,
            migration,
            scales: Scales::default(),
            usage,
            own_events,
            feed,
            clock: Arc::clone(core.clock()),
            events: Arc::clone(core.events()),
            random: core.random().clone(),
            measures,
            is_dry_run,
            process: core.random().uuid(),
            skipped: None,
            changes: None,
            ends: None,
            is_filling: false,
        }
    }

    /// The same with a configuration that can change.
    #[must_use]
    pub fn with_changes(mut self, changes: ConfigurationChanges) -> Self {
        self.changes = Some(changes);
        self
    }

    /// Takes the changes of the configuration that have come. `leading_at` is the time on the leader.
    fn take_changes(&mut self, leading_at: Option<Moment>) {
        while let Some(change) = self.changes.as_mut().and_then(|changes| changes.changes.try_recv().ok()) {
            let (type_, reason, message, result) = change.report();
            match type_ {
                EventType::Warning => tracing::error!("{message}"),
                EventType::Normal => tracing::info!("{message}"),
            }
            self.measures.configuration_changed(result);
            self.own_events.record(&self.passes.cluster.lock(), type_, ("Configuring", reason), message);
            if let ConfigurationChange::Taken(taken) = change {
                self.reconfigure(*taken, leading_at);
            }
        }
    }

    fn reconfigure(&mut self, taken: Reconfiguration, leading_at: Option<Moment>) {
        let Reconfiguration { descheduler, interval, behaviour, migration, keeps_memory, shown, .. } = taken;
        self.feed.require(&descheduler.reads());
        self.is_filling = true;
        self.usage.reconfigure(&descheduler, behaviour.prometheus.as_ref());
        self.passes.reconfigure(descheduler, (interval, keeps_memory), leading_at);
        self.is_dry_run = behaviour.is_dry_run;
        if let (Some(running), Some((plugin, interval))) = (&mut self.migration, migration) {
            running.reconfigure(plugin, interval);
        }
        if let Some(changes) = &self.changes {
            *changes.shown.write() = shown;
        }
    }

    /// The same, with a program that ends by this token when no further pass is to come.
    #[must_use]
    pub fn ending_after_a_pass(self, program: CancellationToken) -> Self {
        Self { ends: Some(program), ..self }
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
            planner.catch_up();
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
            self.take_changes(Some(now));
            if self.is_filling && !self.feed.is_complete() {
                self.follow(INCOMPLETE).await;
                continue;
            }
            self.is_filling = false;
            if let Some(migration) = &mut self.migration {
                migration.changed(&self.passes.cluster.lock(), now);
            }
            let arbitration = self.migration.as_ref().and_then(Migration::next);
            match (self.passes.next(), arbitration, self.usage.next()) {
                (Some(next), ..) if next <= now => self.pass(api, end).await,
                (_, Some(next), _) if next <= now => self.arbitrate(api, end).await,
                (.., Some(next)) if next <= now => self.usage.sample(api, &self.passes.cluster, &*self.clock).await,
                (pass, arbitration, usage) => {
                    let next = pass.into_iter().chain(arbitration).chain(usage).min();
                    let longest = next.map_or(IDLE, |next| next.since(now));
                    // Changes of the configuration are looked for, too.
                    let follow = self.follow(if self.changes.is_some() { longest.min(IDLE) } else { longest });
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
            self.mistakes.report(&cluster, &*self.events);
        }
        self.prepare_foresight();
        self.measure_usage(api).await;
        let began = self.clock.moment();
        let elapsed = || self.clock.moment().since(began);
        let stopwatch = self.measures.times_strategies().then_some(Stopwatch(&elapsed));
        let mut pass = self.passes.begin(self.clock.now(), began, stopwatch);
        self.measures.computed(elapsed(), pass.plan.steps.len(), &pass.plan.strategy_times);
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
        self.measures.pass_ended(self.clock.moment().since(began));
        if let Some(program) = self.ends.as_ref().filter(|_| self.passes.next().is_none()) {
            tracing::info!("the pass has ended, and no other is to come: the program ends");
            program.cancel();
        }
    }

    /// Fetches the usage that strategies ask for, and reports what is wrong with its sources once.
    async fn measure_usage(&mut self, api: &Api) {
        let seen = (&**self.passes.descheduler(), &self.passes.cluster);
        for report in self.usage.measure(api, seen, &*self.clock, Some(&self.measures)).await {
            let (type_, reason) = match &report {
                UsageReport::Failed { .. } => (EventType::Warning, "UsageUnknown"),
                UsageReport::LeftOut { .. } => (EventType::Warning, "UsageIncomplete"),
                UsageReport::Recovered { .. } => (EventType::Normal, "UsageKnown"),
            };
            let (message, source) = (report.to_string(), report.query());
            match type_ {
                EventType::Warning => tracing::warn!(%source, "{message}"),
                EventType::Normal => tracing::info!(%source, "{message}"),
            }
            self.own_events.record(&self.passes.cluster.lock(), type_, ("MeasuringUsage", reason), message);
        }
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
                        worker.take_changes(None);
                        worker.follow(IDLE).await;
                    }
                }
            };
            tokio::select! { biased; () = end.cancelled() => {}, () = follow => {} }
        }
    });
}
