//! Measured usage: it is fetched before a pass, within limits of time and bytes, and the snapshot has it.
//!
//! Strategies ask a [`UsageQuery`]. What the metrics server measures is smoothed: on the leader it is asked between passes, too.

mod kubernetes_metrics;
mod prometheus;
mod smoothing;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use futures::future::join_all;
use koord_config::descheduler::Prometheus as ConfiguredPrometheus;
use koord_descheduler_framework::{Cluster, Descheduler, MeasuredUsage, Measurements, UsageQuery};
use koord_runtime::{
    api::{Api, excerpt},
    clock::{Clock, Moment},
};
use parking_lot::Mutex;

use self::{
    prometheus::{Prometheus, ServiceAccount},
    smoothing::Smoothing,
};
use crate::{metrics::Measures, migration::SharedCluster};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How often the metrics server is asked between passes: it measures no more often.
const SAMPLE_EVERY: Duration = Duration::from_secs(15);
/// What was measured not longer ago than this is not asked again for a pass.
const FRESH: Duration = Duration::from_secs(5);
/// How long a source that has failed is left alone. The leader does nothing else while it waits for an answer.
const PAUSE: Duration = Duration::from_secs(15);

/// What asks for usage, between the passes of a leader.
pub(crate) struct UsageCollector {
    prometheus: Option<Prometheus>,
    asks_metrics_server: bool,
    smoothing: Smoothing,
    /// What the metrics server measured last, and when.
    sample: Option<(Sample, Moment)>,
    /// Queries that failed: why, and until when they are not asked.
    failed: BTreeMap<UsageQuery, (Arc<str>, Moment)>,
    /// What was reported of each query.
    reported: BTreeMap<UsageQuery, Reported>,
}

type Sample = Measured<BTreeMap<Arc<str>, koord_scheduling::ResourceVector>>;

/// What a source has measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Measured<T> {
    pub(crate) value: T,
    /// How much of the answer was left out, and why the first of it.
    pub(crate) left_out: usize,
    pub(crate) reason: Option<String>,
}

/// What is wrong with a source, as it was reported last: in all of its answer, or in parts of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Reported {
    #[default]
    Right,
    InParts,
    Failed,
}

/// A change of what is wrong with a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UsageReport {
    /// Nothing is known from it.
    Failed { query: UsageQuery, reason: Arc<str> },
    /// Some nodes or pods are not known.
    LeftOut { query: UsageQuery, count: usize, reason: String },
    /// All that it says is used again.
    Recovered { query: UsageQuery },
}

/// Why a source has measured nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeasureError {
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    #[error("the API server does not serve metrics.k8s.io; install the metrics server")]
    NoMetricsServer,
    #[error("{0}")]
    Request(String),
    #[error("the answer cannot be read: {0}")]
    Form(String),
    #[error(
        "the token of Secret {secret} cannot be read: {reason}; grant get on this Secret, and let it have the key prometheusAuthToken"
    )]
    Token { secret: String, reason: String },
}

// === impl UsageCollector ===

impl UsageCollector {
    /// What the strategies of a descheduler need.
    pub(crate) fn new(descheduler: &Descheduler, prometheus: Option<&ConfiguredPrometheus>) -> Self {
        Self::with_account(descheduler, prometheus, ServiceAccount::default())
    }

    fn with_account(
        descheduler: &Descheduler,
        prometheus: Option<&ConfiguredPrometheus>,
        account: ServiceAccount,
    ) -> Self {
        let queries = queries(descheduler);
        let asks_prometheus = queries.iter().any(|query| matches!(query, UsageQuery::Prometheus(_)));
        let prometheus = prometheus.filter(|_| asks_prometheus);
        Self {
            prometheus: prometheus.map(|configured| Prometheus::new(configured.clone(), account)),
            asks_metrics_server: queries.contains(&UsageQuery::KubernetesMetrics),
            smoothing: Smoothing::default(),
            sample: None,
            failed: BTreeMap::new(),
            reported: BTreeMap::new(),
        }
    }

    /// The strategies of another configuration ask from now on. What was measured counts on.
    pub(crate) fn reconfigure(&mut self, descheduler: &Descheduler, prometheus: Option<&ConfiguredPrometheus>) {
        let next = Self::new(descheduler, prometheus);
        let (smoothing, sample) = (std::mem::take(&mut self.smoothing), self.sample.take());
        *self = Self { smoothing, sample, ..next };
    }

    /// When the metrics server is asked next between passes; `None` where no strategy goes by it.
    pub(crate) fn next(&self) -> Option<Moment> {
        if !self.asks_metrics_server {
            return None;
        }
        let after_failure = self.failed.get(&UsageQuery::KubernetesMetrics).map(|(_, until)| *until);
        let after_sample = self.sample.as_ref().map(|(_, at)| *at + SAMPLE_EVERY);
        Some(after_failure.or(after_sample).unwrap_or_default())
    }

    /// Asks the metrics server what nodes use.
    pub(crate) async fn sample(&mut self, api: &Api, cluster: &SharedCluster, clock: &dyn Clock) {
        let known: BTreeSet<Arc<str>> = cluster.lock().nodes().map(|(_, node)| Arc::clone(&node.name)).collect();
        let answer = kubernetes_metrics::nodes(api, clock, |name| known.contains(name)).await;
        let now = clock.moment();
        match answer {
            Ok(mut sample) => {
                self.smoothing.smooth(&mut sample.value, now);
                self.sample = Some((sample, now));
                self.failed.remove(&UsageQuery::KubernetesMetrics);
            }
            Err(error) => self.has_failed(&UsageQuery::KubernetesMetrics, &error, now),
        }
    }

    /// Measures all that a pass needs, and lets the snapshot have it. What has changed about the sources is returned.
    pub(crate) async fn measure(
        &mut self,
        api: &Api,
        (descheduler, cluster): (&Descheduler, &SharedCluster),
        clock: &dyn Clock,
        measures: Option<&Measures>,
    ) -> Vec<UsageReport> {
        let queries = queries(descheduler);
        if queries.is_empty() {
            return Vec::new();
        }
        let mut measurements = Measurements::default();
        let mut reports = Vec::new();
        if queries.contains(&UsageQuery::KubernetesMetrics) {
            let query = UsageQuery::KubernetesMetrics;
            let answer = self.amounts(api, (descheduler, cluster), clock).await;
            reports.extend(self.report(&query, &answer, measures));
            measurements.set(query, answer.map(|measured| measured.value));
        }
        let now = clock.moment();
        let asked = queries.into_iter().filter_map(|query| match &query {
            UsageQuery::Prometheus(text) => Some((query.clone(), Arc::clone(text))),
            UsageQuery::KubernetesMetrics => None,
        });
        let (failed, prometheus) = (&self.failed, self.prometheus.as_ref());
        let answers = join_all(asked.map(|(query, text)| async move {
            let paused = failed.get(&query).filter(|(_, until)| *until > now);
            let answer = match (paused, prometheus) {
                (Some((reason, _)), _) => Err(Some(Arc::clone(reason))),
                (None, Some(prometheus)) => Ok(prometheus.query(api, clock, &text).await),
                (None, None) => Err(None),
            };
            (query, answer)
        }))
        .await;
        for (query, answer) in answers {
            let answer = match answer {
                Ok(Ok(shares)) => {
                    self.failed.remove(&query);
                    Ok(shares.map(MeasuredUsage::Shares))
                }
                Ok(Err(error)) => {
                    self.has_failed(&query, &error, clock.moment());
                    Err(Arc::from(error.to_string()))
                }
                Err(reason) => Err(reason.unwrap_or_else(|| Arc::from("metricsProviders has no Prometheus"))),
            };
            reports.extend(self.report(&query, &answer, measures));
            measurements.set(query, answer.map(|measured| measured.value));
        }
        measurements.store(&mut cluster.lock());
        reports
    }

    /// What nodes use, and the pods of those that strategies want to relieve.
    async fn amounts(
        &mut self,
        api: &Api,
        (descheduler, cluster): (&Descheduler, &SharedCluster),
        clock: &dyn Clock,
    ) -> Result<Measured<MeasuredUsage>, Arc<str>> {
        let query = UsageQuery::KubernetesMetrics;
        let now = clock.moment();
        let is_paused = self.failed.get(&query).is_some_and(|(_, until)| *until > now);
        let is_fresh = self.sample.as_ref().is_some_and(|(_, at)| now.since(*at) < FRESH);
        if !is_paused && (!is_fresh || self.failed.contains_key(&query)) {
            self.sample(api, cluster, clock).await;
        }
        if let Some((reason, _)) = self.failed.get(&query) {
            return Err(Arc::clone(reason));
        }
        let (nodes, _) = self.sample.clone().unwrap_or_default();
        let of_nodes = nodes.map(|nodes| MeasuredUsage::Amounts { nodes, pods: BTreeMap::new() });
        let wanted = {
            let mut cluster = cluster.lock();
            let mut measurements = Measurements::default();
            measurements.set(query.clone(), Ok(of_nodes.value.clone()));
            measurements.store(&mut cluster);
            let asking = descheduler.measured().filter(|strategy| strategy.usage_query().as_ref() == Some(&query));
            let mut wanted: Vec<_> = asking.flat_map(|strategy| strategy.nodes_to_relieve(&cluster)).collect();
            wanted.sort_unstable();
            wanted.dedup();
            wanted
        };
        if wanted.is_empty() {
            return Ok(of_nodes);
        }
        let is_wanted = |pod: &_| kubernetes_metrics::is_on(&cluster.lock(), pod, &wanted);
        match kubernetes_metrics::pods(api, clock, is_wanted).await {
            Ok(of_pods) => Ok(of_nodes.with_pods(of_pods)),
            Err(error) => {
                self.has_failed(&query, &error, clock.moment());
                Err(Arc::from(error.to_string()))
            }
        }
    }

    fn has_failed(&mut self, query: &UsageQuery, error: &MeasureError, now: Moment) {
        self.failed.insert(query.clone(), (Arc::from(error.to_string()), now + PAUSE));
    }

    /// What is to be reported of an answer: a change.
    fn report<T>(
        &mut self,
        query: &UsageQuery,
        answer: &Result<Measured<T>, Arc<str>>,
        measures: Option<&Measures>,
    ) -> Option<UsageReport> {
        let (now, result) = match answer {
            Err(_) => (Reported::Failed, "error"),
            Ok(measured) if measured.left_out > 0 => (Reported::InParts, "partial"),
            Ok(_) => (Reported::Right, "success"),
        };
        if let Some(measures) = measures {
            measures.measured(query.source(), result);
        }
        let reported = self.reported.entry(query.clone()).or_default();
        if *reported == now {
            return None;
        }
        *reported = now;
        let query = query.clone();
        Some(match answer {
            Err(reason) => UsageReport::Failed { query, reason: Arc::clone(reason) },
            Ok(Measured { left_out: count @ 1.., reason, .. }) => {
                UsageReport::LeftOut { query, count: *count, reason: reason.clone().unwrap_or_default() }
            }
            Ok(_) => UsageReport::Recovered { query },
        })
    }
}

/// Measures once what the strategies of a descheduler need, and lets the snapshot have it. What is not known is returned with the reason.
pub async fn measure(
    api: &Api,
    (descheduler, cluster): (&Descheduler, Cluster),
    prometheus: Option<&ConfiguredPrometheus>,
    clock: &dyn Clock,
) -> (Cluster, Vec<String>) {
    let cluster: SharedCluster = Arc::new(Mutex::new(cluster));
    let mut collector = UsageCollector::new(descheduler, prometheus);
    let reports = collector.measure(api, (descheduler, &cluster), clock, None).await;
    let measured = std::mem::take(&mut *cluster.lock());
    let unknown = reports.iter().filter(|report| !matches!(report, UsageReport::Recovered { .. }));
    (measured, unknown.map(UsageReport::to_string).collect())
}

impl UsageReport {
    pub(crate) fn query(&self) -> &UsageQuery {
        match self {
            Self::Failed { query, .. } | Self::LeftOut { query, .. } | Self::Recovered { query } => query,
        }
    }
}

impl fmt::Display for UsageReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { query, reason } => {
                write!(f, "usage is not known from {query}, and no pods are evicted by it: {reason}")
            }
            Self::LeftOut { query, count, reason } => {
                write!(f, "{count} parts of what {query} measures are left out, the first: {reason}")
            }
            Self::Recovered { query } => write!(f, "usage is known from {query} again"),
        }
    }
}

// === impl Measured ===

impl<T> Measured<T> {
    /// A part of the answer is not used.
    fn leave_out(&mut self, reason: impl AsRef<str>) {
        self.left_out += 1;
        self.reason.get_or_insert_with(|| excerpt(reason.as_ref()));
    }

    fn map<U>(self, change: impl FnOnce(T) -> U) -> Measured<U> {
        Measured { value: change(self.value), left_out: self.left_out, reason: self.reason }
    }
}

impl Measured<MeasuredUsage> {
    fn with_pods(
        mut self,
        of_pods: Measured<BTreeMap<koord_runtime::key::ObjectKey, koord_scheduling::ResourceVector>>,
    ) -> Self {
        if let MeasuredUsage::Amounts { pods, .. } = &mut self.value {
            *pods = of_pods.value;
        }
        self.left_out += of_pods.left_out;
        self.reason = self.reason.or(of_pods.reason);
        self
    }
}

/// What the strategies ask, each once.
fn queries(descheduler: &Descheduler) -> BTreeSet<UsageQuery> {
    descheduler.measured().filter_map(|strategy| strategy.usage_query()).collect()
}

/// An answer that comes in time.
async fn within<T>(clock: &dyn Clock, answer: impl Future<Output = T>) -> Result<T, MeasureError> {
    tokio::select! {
        biased;
        answer = answer => Ok(answer),
        () = clock.sleep(TIMEOUT) => Err(MeasureError::Timeout),
    }
}
