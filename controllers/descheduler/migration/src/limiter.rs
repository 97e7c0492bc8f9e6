//! Limits over time: how soon after an eviction the next pod of a workload or namespace may be evicted.

use std::{any::TypeId, collections::BTreeMap, sync::Arc, time::Duration as StdDuration};

use jiff::{SignedDuration, Timestamp};
use koord_config::descheduler::{MigrationControllerArgs, ObjectLimiter};
use koord_core::{key::ObjectKey, uid::Uid};
use koord_descheduler_framework::{Cluster, Pod, ReasonCode, Refusal, objects::Object};
use koord_resource::Duration;

use crate::{args_error::ArgsError, limits::WorkloadLimit, workloads::expected_replicas};

/// The limiters of the arguments; `None` where there is none. One that is off does not concern the other.
#[derive(Clone, Debug)]
pub(crate) struct LimiterSettings {
    workload: Option<Limiter>,
    namespace: Option<Limiter>,
}

#[derive(Clone, Copy, Debug)]
struct Limiter {
    duration: Duration,
    /// How many pods may be evicted within it.
    max: WorkloadLimit,
    /// How many of them at once.
    burst: i32,
}

/// Token buckets, one for each workload and namespace of which a pod was evicted. It is a value: the time is what callers say it is.
///
/// A snapshot has it as an object, so that a pass reads it and does not change it: see [`ObjectLimiters::store`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectLimiters {
    buckets: BTreeMap<Limited, Bucket>,
}

/// What a bucket is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Limited {
    /// The uid of the workload, or of the controller where the workload is not known.
    Workload(Uid),
    Namespace(Box<str>),
}

#[derive(Clone, Debug, PartialEq)]
struct Bucket {
    tokens: f64,
    /// When there were so many tokens.
    at: Timestamp,
    per_second: f64,
    burst: f64,
    /// When it can be forgotten.
    end: Timestamp,
    /// The jobs whose evictions took a token, with the times until which they are remembered: no job waits for its own token.
    jobs: BTreeMap<Uid, Timestamp>,
}

/// That object limiters hold up a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldUp {
    /// The limiter: `workload` or `namespace`.
    pub by: &'static str,
    pub for_: StdDuration,
}

impl From<HeldUp> for Refusal {
    fn from(HeldUp { by, for_ }: HeldUp) -> Self {
        let seconds = i64::try_from(for_.as_secs()).unwrap_or(i64::MAX).saturating_add(1);
        Self::new(ReasonCode::ObjectLimiter).with("limiter", by).with("seconds", seconds)
    }
}

/// The name under which a snapshot has the limiters.
const NAME: &str = "MigrationController";

impl LimiterSettings {
    /// `max_migrating` is `maxMigratingPerWorkload`, which holds for a workload limiter without a maximum of its own.
    pub(crate) fn new(args: &MigrationControllerArgs, max_migrating: WorkloadLimit) -> Result<Self, ArgsError> {
        let limiter = |name, field, default: Option<WorkloadLimit>| {
            let Some(ObjectLimiter { duration, max_migrating, burst }) = args.object_limiters.get(name) else {
                return Ok(None);
            };
            let max = match max_migrating {
                Some(value) => Some(WorkloadLimit::of(Some(value)).ok_or(ArgsError::WorkloadLimit { field })?),
                None => default,
            };
            let duration = duration.filter(|duration| *duration > Duration::ZERO);
            let burst = burst.filter(|burst| *burst > 0).unwrap_or(1);
            Ok(duration.zip(max).map(|(duration, max)| Limiter { duration, max, burst }))
        };
        let namespace = limiter("namespace", "objectLimiters.namespace.maxMigrating", None)?;
        Ok(Self {
            workload: limiter("workload", "objectLimiters.workload.maxMigrating", Some(max_migrating))?,
            // A namespace has no replicas of which there could be a part.
            namespace: namespace.filter(|limiter| matches!(limiter.max, WorkloadLimit::Number(1..))),
        })
    }
}

impl Limiter {
    fn nanos(&self, factor: f64) -> SignedDuration {
        SignedDuration::from_nanos((self.duration.as_nanos() as f64 * factor) as i64)
    }

    /// A bucket of this limiter is remembered for so long.
    fn memory(&self) -> SignedDuration {
        self.nanos(1.5)
    }
}

impl ObjectLimiters {
    /// The limiters that a snapshot has; `None` before the first eviction.
    pub fn of(cluster: &Cluster) -> Option<&Self> {
        cluster.objects().get(NAME)
    }

    /// Lets a snapshot have them.
    pub fn store(self, cluster: &mut Cluster) {
        cluster.set_object(Object::new(ObjectKey::cluster(NAME), Uid::default(), false, Arc::new(self)));
    }

    /// The type of the object that a snapshot has them as.
    pub fn type_id() -> TypeId {
        TypeId::of::<Self>()
    }
}

impl Bucket {
    fn new(limiter: &Limiter, per_second: f64, now: Timestamp) -> Self {
        let burst = f64::from(limiter.burst);
        Self { tokens: burst, at: now, per_second, burst, end: now, jobs: BTreeMap::new() }
    }

    fn tokens_at(&self, now: Timestamp) -> f64 {
        let passed = now.duration_since(self.at).as_secs_f64().max(0.0);
        (self.tokens + passed * self.per_second).min(self.burst)
    }

    /// A pod was evicted. A token that is missing is not owed.
    fn take(&mut self, limiter: &Limiter, per_second: f64, job: Option<&Uid>, now: Timestamp) {
        let tokens = self.tokens_at(now);
        self.tokens = if tokens >= 1.0 { tokens - 1.0 } else { tokens };
        (self.at, self.per_second) = (now, per_second);
        self.end = now.checked_add(limiter.memory()).unwrap_or(Timestamp::MAX);
        self.jobs.retain(|_, end| *end > now);
        if let Some(job) = job {
            self.jobs.insert(job.clone(), self.end);
        }
    }

    /// How long until there is a token; `None` where there is one.
    fn hold_up(&self, job: Option<&Uid>, now: Timestamp) -> Option<StdDuration> {
        let tokens = self.tokens_at(now);
        if now >= self.end || tokens >= 1.0 || job.is_some_and(|job| self.jobs.contains_key(job)) {
            return None;
        }
        Some(StdDuration::try_from_secs_f64((1.0 - tokens) / self.per_second).unwrap_or(StdDuration::MAX))
    }
}

impl LimiterSettings {
    /// How long object limiters hold up the eviction of a pod, and which of them does; `None` where none does. A job is not held up by its own eviction.
    pub(crate) fn hold_up(
        &self,
        limiters: &ObjectLimiters,
        cluster: &Cluster,
        pod: &Pod,
        job: Option<&Uid>,
        now: Timestamp,
    ) -> Option<HeldUp> {
        if limiters.buckets.is_empty() {
            return None;
        }
        let workload = self.workload.and_then(|_| workload(cluster, pod)).map(|(limited, _)| limited);
        let namespace = self.namespace.map(|_| Limited::Namespace(pod.namespace().into()));
        let held_up = [("workload", workload), ("namespace", namespace)].into_iter().filter_map(|(by, limited)| {
            let for_ = limiters.buckets.get(&limited?)?.hold_up(job, now)?;
            Some(HeldUp { by, for_ })
        });
        held_up.max_by_key(|held_up| held_up.for_)
    }

    /// A pod was evicted, for a job or not. The pod is the one that was evicted, as it was known before.
    pub(crate) fn count_eviction(
        &self,
        limiters: &mut ObjectLimiters,
        cluster: &Cluster,
        pod: &Pod,
        job: Option<&Uid>,
        now: Timestamp,
    ) {
        limiters.buckets.retain(|_, bucket| bucket.end > now);
        let workload = self.workload.and_then(|limiter| {
            let (limited, replicas) = workload(cluster, pod)?;
            Some((limiter, limited, limiter.max.capped(replicas?)))
        });
        let namespace = self.namespace.map(|limiter| {
            let max = limiter.max.uncapped(i32::MAX);
            (limiter, Limited::Namespace(pod.namespace().into()), max)
        });
        for (limiter, limited, max) in [workload, namespace].into_iter().flatten().filter(|(_, _, max)| *max > 0) {
            let per_second = max as f64 / limiter.duration.as_secs_f64();
            let bucket = limiters.buckets.entry(limited);
            bucket.or_insert_with(|| Bucket::new(&limiter, per_second, now)).take(&limiter, per_second, job, now);
        }
    }
}

/// What the bucket of a pod's workload is named by, and its replicas where they are known; `None` for a pod without controller.
fn workload(cluster: &Cluster, pod: &Pod) -> Option<(Limited, Option<i32>)> {
    let controller = pod.controller()?;
    Some(match expected_replicas(cluster, pod.namespace(), controller) {
        Ok((uid, replicas)) => (Limited::Workload(uid), Some(replicas)),
        Err(_) => (Limited::Workload(controller.uid.clone()), None),
    })
}

#[cfg(test)]
mod tests;
