//! What is measured of attempts, of the queue and of the cluster, under the names of kube-scheduler.
//!
//! An attempt costs a few additions to counters that exist already. What is read off the queue and the cluster is read once in a
//! while ([`Measures::observe`]), not at every scrape.

mod families;
mod koordinator;
mod requests;
mod workloads;

use std::time::Duration;

use koord_runtime::{clock::Moment, metrics::Registries};
use koord_scheduler_engine::{
    Attempt, Engine, Outcome, Refused,
    queue::{Arrivals, Depths},
};
use koord_scheduler_framework::{PluginSet, Registration, timing::PluginLatency};
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Result};

pub use self::families::METRICS;
use self::koordinator::OfKoordinator;
pub(crate) use self::workloads::OfWorkloads;
use crate::{
    observer::{Ended, Observed, Observer, Occurrence},
    timeouts::Timeouts,
};

/// From this number of attempts on they are one series.
const ATTEMPTS: [&str; 15] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15+"];

pub struct Measures {
    profiles: Vec<OfProfile>,
    unschedulable: IntGaugeVec,
    decision: Histogram,
    permit_allowed: Histogram,
    permit_rejected: Histogram,
    attempts: Histogram,
    since_first: HistogramVec,
    preemptions: IntCounter,
    victims: Histogram,
    /// Active, backoff, unschedulable, gated.
    pending: [IntGauge; 4],
    /// Nodes, pods, assumed pods.
    cached: [IntGauge; 3],
    arrivals: IntCounterVec,
    mismatches: IntCounterVec,
    /// When the audit has last come round.
    audited: IntGauge,
    /// What of the arrivals has been counted.
    counted: Arrivals,
    /// When the queue and the cluster were read last.
    read: Option<Moment>,
    conflicts: IntCounterVec,
    elsewhere: IntCounterVec,
    deciding: IntGauge,
    disagreements: IntCounter,
    stale: IntCounterVec,
    points: HistogramVec,
    plugins: HistogramVec,
    of_koordinator: OfKoordinator,
}

/// How long hooks of quotas take.
#[derive(Clone)]
pub struct HookLatency(HistogramVec);

impl HookLatency {
    /// A call of the hook with this key has ended.
    pub fn observe(&self, hook: &str, operation: &'static str, took: Duration) {
        self.0.with_label_values(&[hook, operation]).observe(took.as_secs_f64());
    }
}

/// What is measured of the pods of a profile.
struct OfProfile {
    name: String,
    /// In the order of [`Ended`].
    ended: [(IntCounter, Histogram); 3],
    /// Its plugins, by their index.
    plugins: Vec<&'static str>,
    /// How many pods each has refused, as last shown.
    refused: Vec<i64>,
}

impl Measures {
    /// How often the queue and the cluster are read.
    pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

    /// The metrics of an engine.
    pub fn of(engine: &Engine, metrics: &Registries) -> Result<Self> {
        let attempts = metrics.counter(families::ATTEMPTS)?;
        let durations = metrics.histogram(families::ATTEMPT_DURATION)?;
        let of_profile = |name: &str, plugins: Vec<&'static str>| OfProfile {
            name: name.to_owned(),
            ended: ["scheduled", "unschedulable", "error"].map(|result| {
                (attempts.with_label_values(&[result, name]), durations.with_label_values(&[result, name]))
            }),
            refused: vec![0; plugins.len()],
            plugins,
        };
        let profiles = engine.profiles().map(|profile| {
            let plugins = profile.plugins.iter().map(Registration::name).collect();
            of_profile(&profile.scheduler, plugins)
        });
        let (conflicts, elsewhere) = (metrics.counter(families::CONFLICTS)?, metrics.counter(families::ELSEWHERE)?);
        for profile in engine.profiles() {
            // A series that begins with 1 has not increased, as Prometheus sees it.
            elsewhere.with_label_values(&[&*profile.scheduler]);
            for resource in ["cpu", "memory", "pods"] {
                conflicts.with_label_values(&[resource, &*profile.scheduler]);
            }
        }
        let (pending, cached) = (metrics.gauge(families::PENDING)?, metrics.gauge(families::CACHE_SIZE)?);
        let permit = metrics.histogram(families::PERMIT_WAIT)?;
        let none: &[&str] = &[];
        Ok(Self {
            profiles: profiles.collect(),
            unschedulable: metrics.gauge(families::UNSCHEDULABLE)?,
            decision: metrics.histogram(families::DECISION)?.with_label_values(none),
            permit_allowed: permit.with_label_values(&["Success"]),
            permit_rejected: permit.with_label_values(&["Unschedulable"]),
            attempts: metrics.histogram(families::POD_ATTEMPTS)?.with_label_values(none),
            since_first: metrics.histogram(families::POD_DURATION)?,
            preemptions: metrics.counter(families::PREEMPTIONS)?.with_label_values(none),
            victims: metrics.histogram(families::VICTIMS)?.with_label_values(none),
            pending: ["active", "backoff", "unschedulable", "gated"].map(|part| pending.with_label_values(&[part])),
            cached: ["nodes", "pods", "assumed_pods"].map(|type_| cached.with_label_values(&[type_])),
            arrivals: metrics.counter(families::INCOMING)?,
            mismatches: metrics.counter(families::MISMATCHES)?,
            audited: metrics.gauge(families::AUDITED)?.with_label_values(none),
            counted: Arrivals::default(),
            read: None,
            conflicts,
            elsewhere,
            deciding: metrics.gauge(families::DECIDING)?.with_label_values(none),
            disagreements: metrics.counter(families::DISAGREEMENTS)?.with_label_values(none),
            stale: metrics.counter(families::STALE)?,
            points: metrics.histogram(families::EXTENSION_POINTS)?,
            plugins: metrics.histogram(families::PLUGIN_EXECUTION)?,
            of_koordinator: OfKoordinator::new(metrics)?,
        })
    }

    /// The engine has made a decision, or the wait of a pod in its place is over.
    fn decided(&self, attempt: &Attempt, now: Moment) {
        let measured = match attempt.outcome {
            _ if !attempt.has_waited => &self.decision,
            Outcome::Bind { .. } => &self.permit_allowed,
            Outcome::Waiting { .. } | Outcome::Refused(_) | Outcome::ExtenderCall { .. } => &self.permit_rejected,
        };
        measured.observe(seconds(attempt.began, now));
        self.of_koordinator.decided(attempt);
    }

    /// Counts the plugins whose input about the node that a pod has got is stale.
    fn count_stale(&self, engine: &Engine, attempt: &Attempt) {
        let (Outcome::Bind { node, .. } | Outcome::Waiting { node }) = &attempt.outcome else { return };
        let (cluster, scheduler) = (engine.cluster(), &*attempt.pod.template.scheduler);
        let (Some(row), Some(profile)) = (cluster.row(node), engine.profile(scheduler)) else { return };
        let is_stale = |plugin: &&Registration| {
            plugin.diagnostics.as_ref().is_some_and(|point| point.is_input_stale(cluster, row))
        };
        for plugin in profile.plugins.iter().filter(is_stale) {
            self.stale.with_label_values(&[plugin.name(), scheduler]).inc();
        }
    }

    /// The node of a pod has rejected it because it lacks a resource.
    fn rejected(&self, scheduler: &str, resource: &str) {
        if self.profiles.iter().any(|profile| profile.name == scheduler) {
            self.conflicts.with_label_values(&[resource, scheduler]).inc();
        }
    }

    /// A part of an attempt of a pod of this scheduler is over.
    fn part(&self, (point, is_success): (&str, bool), scheduler: &str, took: Duration) {
        let refused = if matches!(point, "PreBind" | "Bind") { "Error" } else { "Unschedulable" };
        let status = if is_success { "Success" } else { refused };
        self.points.with_label_values(&[point, status, scheduler]).observe(took.as_secs_f64());
    }

    fn plugin(&self, latency: &PluginLatency) {
        let labels = [latency.plugin, latency.point.as_str(), latency.status.as_str()];
        self.plugins.with_label_values(&labels).observe(latency.took.as_secs_f64());
    }

    /// Decisions and bindings that last for too long.
    pub(crate) fn timeouts(&self) -> Timeouts {
        Timeouts::new(self.of_koordinator.timeouts.clone())
    }

    /// How long hooks of quotas take.
    pub fn hook_latency(&self) -> HookLatency {
        HookLatency(self.of_koordinator.quota_hooks.clone())
    }

    /// No node takes the pod.
    fn refused(&self, refused: &Refused) {
        self.preemptions.inc_by(u64::from(refused.ran_post_filters));
        if !refused.victims.is_empty() {
            self.victims.observe(refused.victims.len() as f64);
        }
    }

    /// An attempt has ended, with its binding if there was one.
    fn ended(&self, attempt: &Attempt, how: Ended, now: Moment) {
        let scheduler = &*attempt.pod.template.scheduler;
        if let Some(profile) = self.profiles.iter().find(|profile| profile.name == scheduler) {
            let (count, duration) = &profile.ended[how as usize];
            count.inc();
            duration.observe(seconds(attempt.began, now));
        }
        if how == Ended::Scheduled {
            self.attempts.observe(f64::from(attempt.tried.attempts));
            let first = attempt.tried.first.unwrap_or(attempt.began);
            self.since_first.with_label_values(&[attempts_label(attempt.tried.attempts)]).observe(seconds(first, now));
        }
        if let Outcome::Refused(refused) = &attempt.outcome {
            self.refused(refused);
        }
    }

    /// Reads the queue and the cluster, if that was not done lately.
    fn observe(&mut self, engine: &Engine, now: Moment) {
        if self.read.is_some_and(|read| now.since(read) < Self::INTERVAL) {
            return;
        }
        self.read = Some(now);
        self.of_koordinator.observe(engine, now);
        let queue = engine.queue();
        let Depths { active, backoff, parked, gated } = queue.depths();
        for (gauge, depth) in self.pending.iter().zip([active, backoff, parked, gated]) {
            gauge.set(number(depth));
        }
        let sizes = engine.cluster().sizes();
        for (gauge, size) in self.cached.iter().zip([sizes.nodes, sizes.pods, sizes.assumed]) {
            gauge.set(number(size));
        }
        self.count_arrivals(queue.arrivals());
        self.show_refused(engine);
    }

    fn count_arrivals(&mut self, arrivals: &Arrivals) {
        for (cause, part, pods) in arrivals.iter() {
            let new = pods.saturating_sub(self.counted.of(cause, part));
            if new > 0 {
                self.arrivals.with_label_values(&[families::part(part), &*families::cause(cause)]).inc_by(new);
            }
        }
        self.counted.clone_from(arrivals);
    }

    fn show_refused(&mut self, engine: &Engine) {
        let mut refused: Vec<Vec<i64>> = self.profiles.iter().map(|profile| vec![0; profile.plugins.len()]).collect();
        for (pod, plugins) in engine.queue().refusals().filter(|(_, plugins)| !plugins.is_empty()) {
            let index = self.profiles.iter().position(|profile| profile.name == *pod.template.scheduler);
            if let Some(counts) = index.and_then(|index| refused.get_mut(index)) {
                count(counts, plugins);
            }
        }
        for (profile, refused) in self.profiles.iter_mut().zip(refused) {
            let changed =
                profile.plugins.iter().zip(&refused).zip(&profile.refused).filter(|((_, new), old)| new != old);
            for ((plugin, pods), _) in changed {
                self.unschedulable.with_label_values(&[*plugin, profile.name.as_str()]).set(*pods);
            }
            profile.refused = refused;
        }
    }
}

impl Observer for Measures {
    fn notice(&mut self, occurrence: &Occurrence<'_>, observed: &Observed<'_>) {
        let now = || observed.clock.moment();
        match occurrence {
            Occurrence::Tick => {
                self.deciding.set(i64::from(observed.is_leading && observed.knows_all));
                self.observe(observed.engine, now());
            }
            Occurrence::CachesDisagree => self.disagreements.inc(),
            Occurrence::Changed { quota_operation: Some(operation), began } => {
                let process = self.of_koordinator.quota_process.with_label_values(&[*operation]);
                process.observe(seconds(*began, now()));
            }
            // Each replica knows of it, and the leader counts it.
            Occurrence::NodeRejected { scheduler, resource } if observed.is_leading => {
                self.rejected(scheduler, resource);
            }
            Occurrence::BoundElsewhere { scheduler } => self.elsewhere.with_label_values(&[*scheduler]).inc(),
            Occurrence::Attempted { ended, .. } => {
                ended.iter().for_each(|job| self.of_koordinator.job_ended(job, now()));
            }
            Occurrence::PartEnded { point, is_success, scheduler, took } => {
                self.part((point, *is_success), scheduler, *took);
            }
            Occurrence::PluginAnswered(latency) => self.plugin(latency),
            Occurrence::Decided { attempt, decided, .. } => {
                if !attempt.has_waited {
                    self.count_stale(observed.engine, attempt);
                }
                self.decided(attempt, *decided);
            }
            Occurrence::Ended { attempt, how } => self.ended(attempt, *how, now()),
            Occurrence::QuotaWritten { lasted } => self.of_koordinator.quota_status.observe(lasted.as_secs_f64()),
            Occurrence::SumCorrected(mismatch) => self.mismatches.with_label_values(&[mismatch.sum]).inc(),
            Occurrence::AuditCompleted => self.audited.set(observed.clock.now().as_second()),
            Occurrence::Leads
            | Occurrence::Follows
            | Occurrence::Restarted
            | Occurrence::Changing(_)
            | Occurrence::Changed { quota_operation: None, .. }
            | Occurrence::NodeRejected { .. }
            | Occurrence::EvictionFailed(_) => {}
        }
    }
}

fn count(counts: &mut [i64], plugins: PluginSet) {
    for plugin in plugins.iter() {
        if let Some(count) = counts.get_mut(usize::from(plugin)) {
            *count += 1;
        }
    }
}

fn attempts_label(attempts: u32) -> &'static str {
    let index = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX);
    ATTEMPTS.get(index).or(ATTEMPTS.last()).copied().unwrap_or_default()
}

fn seconds(from: Moment, to: Moment) -> f64 {
    to.since(from).as_secs_f64()
}

fn number(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use koord_runtime::random::Random;
    use koord_scheduler_engine::queue::Timings;

    use super::*;

    #[test]
    fn every_metric_is_in_the_table() {
        let metrics = Registries::default();
        let engine = Engine::new(Vec::new(), Timings::default(), Random::seeded(1));
        Measures::of(&engine, &metrics).unwrap();
        OfWorkloads::new(&metrics, &[]).unwrap();
        let mut table: Vec<&str> = METRICS.iter().map(|description| description.name).collect();
        table.sort_unstable();
        assert_eq!(metrics.described().iter().map(|description| description.name).collect::<Vec<_>>(), table);
    }

    #[test]
    fn many_attempts_are_one_series() {
        assert_eq!([1, 2, 14, 15, 400].map(attempts_label), ["1", "2", "14", "15+", "15+"]);
    }
}
