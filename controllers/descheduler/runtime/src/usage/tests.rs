//! Sources that answer well, in parts, nonsense, or not at all.

mod metrics_server;
mod prometheus;

use std::sync::Arc;

use http::{Request, Response};
use jiff::Timestamp;
use koord_descheduler_framework::{
    Balance, Cluster, Measured as Measuring, NodeId, Pass, Plugin, Registration, StrategyError,
};
use koord_descheduler_testing::{Everything, cluster, descheduler, node, pod, with};
use koord_runtime::{
    clock::{ScaledClock, SharedClock},
    metrics::Metrics,
};
use koord_scheduling::ResourceId;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};

use super::*;

/// A strategy that relieves nodes with more than 5 cores in use.
#[derive(Clone)]
struct Asking(UsageQuery);

impl Plugin for Asking {
    fn name(&self) -> &'static str {
        "Asking"
    }

    fn register(self: Arc<Self>) -> Registration {
        Registration::of(&self).balance(&self).measured(&self)
    }
}

impl Balance for Asking {
    fn balance(&self, _: &mut Pass<'_>) -> Result<(), StrategyError> {
        Ok(())
    }
}

impl Measuring for Asking {
    fn usage_query(&self) -> Option<UsageQuery> {
        Some(self.0.clone())
    }

    fn nodes_to_relieve(&self, cluster: &Cluster) -> Vec<NodeId> {
        let Ok(MeasuredUsage::Amounts { nodes, .. }) = cluster.measured_usage(&self.0) else { return Vec::new() };
        let hot = nodes.iter().filter(|(_, usage)| usage.get(ResourceId::CPU) > 5000);
        hot.filter_map(|(name, _)| cluster.node_id(name)).collect()
    }
}

/// An API server that answers by path, and what it was asked.
#[derive(Clone, Default)]
struct ApiServer {
    answers: Arc<Mutex<BTreeMap<String, (u16, String)>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ApiServer {
    /// Answers a path with this from now on. Of other paths nothing is served; a path with code 0 is never answered.
    #[expect(clippy::needless_pass_by_value, reason = "texts and objects alike")]
    fn set(&self, path: &str, code: u16, body: impl ToString) {
        self.answers.lock().insert(path.to_owned(), (code, body.to_string()));
    }

    fn api(&self, clock: &SharedClock) -> Api {
        let server = self.clone();
        let service = service_fn(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            let answer = server.answers.lock().get(&path).cloned().unwrap_or((404, "{}".to_owned()));
            server.asked.lock().push(path);
            async move {
                let (code, body) = answer;
                if code == 0 {
                    std::future::pending::<()>().await;
                }
                let response = Response::builder().status(code).body(Body::from(body.into_bytes()));
                Ok::<_, BoxError>(response.unwrap())
            }
        });
        let metrics = Metrics::new().unwrap().requests();
        Api::new(Client::new(service, "default"), Arc::clone(clock), metrics, "test", (0.0, 0))
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

/// Two nodes with a pod each, a strategy, and what measures for it.
struct Stage {
    server: ApiServer,
    clock: SharedClock,
    api: Api,
    descheduler: Descheduler,
    cluster: SharedCluster,
    collector: UsageCollector,
    measures: Measures,
    query: UsageQuery,
}

impl Stage {
    fn new(query: UsageQuery, prometheus: Option<&Value>, account: ServiceAccount) -> Self {
        let clock = ScaledClock::shared("2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap(), 1.0);
        let server = ApiServer::default();
        let descheduler = descheduler(Asking(query.clone()), Everything);
        let prometheus = prometheus.map(|prometheus| serde_json::from_value(prometheus.clone()).unwrap());
        let known = cluster(&[node("n1"), node("n2"), pod("p1", "n1"), pod("p2", "n2")]);
        Self {
            api: server.api(&clock),
            collector: UsageCollector::with_account(&descheduler, prometheus.as_ref(), account),
            measures: Measures::new(&Metrics::new().unwrap()).unwrap(),
            cluster: Arc::new(Mutex::new(known)),
            server,
            clock,
            descheduler,
            query,
        }
    }

    /// Measures for a pass, and gives what is reported.
    async fn measure(&mut self) -> Vec<UsageReport> {
        let seen = (&self.descheduler, &self.cluster);
        self.collector.measure(&self.api, seen, &*self.clock, Some(&self.measures)).await
    }

    /// What the snapshot has.
    fn measured(&self) -> Result<MeasuredUsage, String> {
        self.cluster.lock().measured_usage(&self.query).cloned().map_err(str::to_owned)
    }
}
