//! Read access to the engine's state, which the scheduler gives between two attempts.

mod queue;
mod verdicts;

use std::{collections::BTreeMap, sync::Arc};

use koord_runtime::clock::Moment;
use koord_scheduler_engine::Engine;
use koord_scheduler_framework::{
    Query, ServiceError, cluster::Cluster, columns::Row, node::Node, pod::Pod, shown, volume::Volume,
};
use koord_scheduling::ResourceId;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// Requests that wait.
const WAITING_MAX: usize = 64;

/// Sends read requests to the scheduler. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EngineReader(mpsc::Sender<ReadRequest>);

/// Why the state cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Another replica schedules, or this one does not yet.
    #[error("the instance is not leader")]
    NotLeading,
    /// There is no such path, or it names a pod that is not known.
    #[error("not found")]
    Unknown,
    /// What the path names is not known.
    #[error("{0}")]
    NotFound(String),
    /// What the path names cannot be shown.
    #[error("{0}")]
    Failed(String),
}

impl From<ServiceError> for ReadError {
    fn from(why: ServiceError) -> Self {
        match why {
            ServiceError::UnknownPath => Self::Unknown,
            ServiceError::NotFound(what) => Self::NotFound(what),
            ServiceError::Failed(why) => Self::Failed(why),
        }
    }
}

/// A read request, with the channel of its response.
pub(crate) enum ReadRequest {
    /// What is known of a path, with these parameters.
    Path(String, Query, oneshot::Sender<Result<Value, ReadError>>),
    /// A copy of all that is known, with its time.
    Copy(oneshot::Sender<Result<(Box<Engine>, Moment), ReadError>>),
    Pods(oneshot::Sender<Result<Vec<Arc<Pod>>, ReadError>>),
}

/// The two ends of the channel of read requests.
pub(crate) fn reader() -> (EngineReader, mpsc::Receiver<ReadRequest>) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (EngineReader(sender), receiver)
}

impl EngineReader {
    /// What the scheduler knows about a path such as `nodes/NAME` or `plugins/PLUGIN/…`.
    pub async fn get(&self, path: &str) -> Result<Value, ReadError> {
        self.get_with(path, Query::default()).await
    }

    /// The same, with parameters such as `includePods=true`.
    pub async fn get_with(&self, path: &str, query: Query) -> Result<Value, ReadError> {
        let (answer, answered) = oneshot::channel();
        // This fails when the scheduler has ended.
        let _ = self.0.send(ReadRequest::Path(path.to_owned(), query, answer)).await;
        answered.await.unwrap_or(Err(ReadError::NotLeading))
    }

    /// A copy of what the scheduler knows, on which something can be tried.
    pub(crate) async fn copy(&self) -> Result<(Box<Engine>, Moment), ReadError> {
        let (answer, answered) = oneshot::channel();
        let _ = self.0.send(ReadRequest::Copy(answer)).await;
        answered.await.unwrap_or(Err(ReadError::NotLeading))
    }

    /// All pods that have not ended.
    pub async fn pods(&self) -> Result<Vec<Arc<Pod>>, ReadError> {
        let (answer, answered) = oneshot::channel();
        // This fails when the scheduler has ended.
        let _ = self.0.send(ReadRequest::Pods(answer)).await;
        answered.await.unwrap_or(Err(ReadError::NotLeading))
    }
}

impl ReadRequest {
    /// Responds with the state of an engine; without one, this replica does not schedule.
    pub(crate) fn answer(self, engine: Option<(&Engine, Moment)>) {
        let known = engine.ok_or(ReadError::NotLeading);
        // The receiver may be gone.
        match self {
            Self::Path(path, query, to) => {
                let answer = known.and_then(|(engine, now)| answer(engine, &path, &query, now));
                let _ = to.send(answer);
            }
            Self::Copy(to) => {
                let _ = to.send(known.map(|(engine, now)| (Box::new(engine.copy()), now)));
            }
            Self::Pods(to) => _ = to.send(known.map(|(engine, _)| pods(engine))),
        }
    }
}

/// All pods that have not ended: those on nodes, and those that wait.
fn pods(engine: &Engine) -> Vec<Arc<Pod>> {
    let cluster = engine.cluster();
    cluster.pods().map(|placed| &placed.pod).chain(cluster.pending()).cloned().collect()
}

fn answer(engine: &Engine, path: &str, query: &Query, now: Moment) -> Result<Value, ReadError> {
    let cluster = engine.cluster();
    match *path.split('/').collect::<Vec<_>>() {
        ["__services__"] => Ok(services(engine)),
        ["nodes", name] => {
            let known = cluster.row(name).and_then(|row| Some((row, cluster.node(row)?)));
            let (row, known) = known.ok_or_else(|| ReadError::NotFound(format!("cannot find node {name}")))?;
            Ok(node(cluster, known, row))
        }
        ["queue"] => Ok(queue::list(engine, now)),
        ["queue", namespace, name] => queue::pod(engine, namespace, name, now).ok_or(ReadError::Unknown),
        ["verdicts", namespace, name] => verdicts::of(engine, namespace, name).ok_or(ReadError::Unknown),
        ["plugins", plugin, ref rest @ ..] => {
            let mut plugins = engine.profiles().flat_map(|profile| &profile.plugins);
            let plugin = plugins.find(|known| known.name() == plugin).ok_or(ReadError::Unknown)?;
            let endpoint = plugin.service_endpoint.as_ref().ok_or(ServiceError::UnknownPath)?;
            Ok(endpoint.serve(rest, query, cluster)?)
        }
        _ => Err(ReadError::Unknown),
    }
}

/// The paths of all answers.
fn services(engine: &Engine) -> Value {
    let plugins = engine.profiles().flat_map(|profile| &profile.plugins);
    let built_in =
        ["__services__", "nodes/:nodeName", "queue", "queue/:namespace/:podName", "verdicts/:namespace/:podName"];
    let mut paths: Vec<String> = plugins
        .filter_map(|plugin| Some((plugin.name(), plugin.service_endpoint.as_ref()?)))
        .flat_map(|(name, point)| point.paths().iter().map(move |path| format!("/apis/v1/plugins/{name}/{path}")))
        .chain(built_in.map(|path| format!("/apis/v1/{path}")))
        .collect();
    paths.sort();
    paths.dedup();
    json!({"GET": paths})
}

/// A node with its pods. Of the objects only what the engine knows is there.
fn node(cluster: &Cluster, node: &Arc<Node>, row: Row) -> Value {
    let resources = cluster.resources();
    let amounts = |of: &dyn Fn(ResourceId) -> i64| -> Value {
        let known = resources.names().filter_map(|name| Some((name, of(resources.get(name)?))));
        shown::resource(known.filter(|(_, amount)| *amount != 0))
    };
    // The original counts pods by their list alone: none is requested, and as many are left as may be there.
    let requested = |id: ResourceId| if id == ResourceId::PODS { 0 } else { cluster.requested(id, row) };
    let pods = |is_one: fn(&Pod) -> bool| -> Vec<Value> {
        let placed = cluster.pods_on(row).filter(|placed| is_one(&placed.pod));
        placed.map(|placed| json!({"Pod": shown::pod(&placed.pod, Some(&node.name))})).collect()
    };
    let ports = cluster.pods_on(row).flat_map(|placed| &placed.pod.template.host_ports);
    let mut claims: BTreeMap<String, usize> = BTreeMap::new();
    for placed in cluster.pods_on(row) {
        for volume in &placed.pod.template.volumes {
            if let Volume::Claim(name) = volume {
                *claims.entry(format!("{}/{name}", placed.pod.key.namespace())).or_default() += 1;
            }
        }
    }
    let images = node.images.iter().map(|(name, size)| {
        let nodes = cluster.image(name).map_or(0, |image| image.rows.len());
        (name.to_string(), json!({"Size": size, "NumNodes": nodes}))
    });
    let [cpu, memory] = cluster.assumed_usage(row);
    shown::without_empty(json!({
        "node": shown::node(node),
        "pods": pods(|_| true),
        "podsWithAffinity": pods(|pod| pod.template.pod_affinity.terms().next().is_some()),
        "podsWithRequiredAntiAffinity": pods(|pod| !pod.template.pod_affinity.forbidden.is_empty()),
        "usedPorts": shown::ports(ports),
        "imageStates": images.collect::<Value>(),
        "pvcRefCounts": claims,
        "requested": amounts(&requested),
        "nonZeroRequested": shown::resource([("cpu", cpu), ("memory", memory)]),
        "allocatable": amounts(&|id| cluster.allocatable(id, row)),
        "remaining": amounts(&|id| cluster.allocatable(id, row).saturating_sub(requested(id))),
        "generation": cluster.generation(row),
    }))
}
