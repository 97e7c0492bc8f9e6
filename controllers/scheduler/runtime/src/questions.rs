//! Questions about what the scheduler knows, which it answers between two attempts.

mod queue;
mod verdicts;

use std::{collections::BTreeMap, sync::Arc};

use koord_engine::{cluster::Cluster, columns::Row, engine::Engine, node::Node, pod::Pod};
use koord_runtime::clock::Moment;
use koord_scheduling::ResourceId;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// Questions that wait.
const WAITING_MAX: usize = 64;

/// Where questions are asked. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Questions(mpsc::Sender<Question>);

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// Another replica schedules.
    #[error("the instance is not leader")]
    NotLeading,
    /// Nobody knows about that.
    #[error("not found")]
    Unknown,
}

/// A question, and where its answer goes.
pub(crate) enum Question {
    /// What is known of a path.
    Path(String, oneshot::Sender<Result<Value, Unanswered>>),
    /// A copy of all that is known, with its time.
    Copy(oneshot::Sender<Result<(Box<Engine>, Moment), Unanswered>>),
    /// All pods.
    Pods(oneshot::Sender<Result<Vec<Arc<Pod>>, Unanswered>>),
}

/// Where questions are asked, and where they arrive.
pub(crate) fn questions() -> (Questions, mpsc::Receiver<Question>) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (Questions(sender), receiver)
}

impl Questions {
    /// What the scheduler knows about a path such as `nodes/NAME` or `plugins/PLUGIN/…`.
    pub async fn ask(&self, path: &str) -> Result<Value, Unanswered> {
        let (answer, answered) = oneshot::channel();
        // Nobody listens any more where this fails.
        let _ = self.0.send(Question::Path(path.to_owned(), answer)).await;
        answered.await.unwrap_or(Err(Unanswered::NotLeading))
    }

    /// A copy of what the scheduler knows, on which something can be tried.
    pub(crate) async fn copy(&self) -> Result<(Box<Engine>, Moment), Unanswered> {
        let (answer, answered) = oneshot::channel();
        let _ = self.0.send(Question::Copy(answer)).await;
        answered.await.unwrap_or(Err(Unanswered::NotLeading))
    }

    /// All pods that have not ended.
    pub async fn pods(&self) -> Result<Vec<Arc<Pod>>, Unanswered> {
        let (answer, answered) = oneshot::channel();
        // Nobody listens any more where this fails.
        let _ = self.0.send(Question::Pods(answer)).await;
        answered.await.unwrap_or(Err(Unanswered::NotLeading))
    }
}

impl Question {
    /// Answers by what an engine knows now; without one, another replica schedules.
    pub(crate) fn answer(self, engine: Option<(&Engine, Moment)>) {
        let known = engine.ok_or(Unanswered::NotLeading);
        // Whoever asked may be gone.
        match self {
            Self::Path(path, to) => {
                let answer = known.and_then(|(engine, now)| answer(engine, &path, now).ok_or(Unanswered::Unknown));
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

fn answer(engine: &Engine, path: &str, now: Moment) -> Option<Value> {
    let cluster = engine.cluster();
    match *path.split('/').collect::<Vec<_>>() {
        ["__services__"] => Some(services(engine)),
        ["nodes", name] => {
            let row = cluster.row(name)?;
            Some(node(cluster, cluster.node(row)?, row))
        }
        ["queue"] => Some(queue::list(engine, now)),
        ["queue", namespace, name] => queue::pod(engine, namespace, name, now),
        ["verdicts", namespace, name] => verdicts::of(engine, namespace, name),
        ["plugins", plugin, ref rest @ ..] => {
            let mut plugins = engine.profiles().flat_map(|profile| &profile.plugins);
            plugins.find(|known| known.name() == plugin)?.service(rest, cluster)
        }
        _ => None,
    }
}

/// The paths of all answers.
fn services(engine: &Engine) -> Value {
    let plugins = engine.profiles().flat_map(|profile| &profile.plugins);
    let own = ["__services__", "nodes/:nodeName", "queue", "queue/:namespace/:podName", "verdicts/:namespace/:podName"];
    let mut paths: Vec<String> = plugins
        .flat_map(|plugin| plugin.services().iter().map(|path| format!("/apis/v1/plugins/{}/{path}", plugin.name())))
        .chain(own.map(|path| format!("/apis/v1/{path}")))
        .collect();
    paths.sort();
    paths.dedup();
    json!({"GET": paths})
}

/// A node with its pods, in the units of the engine: thousandths of a CPU, whole units of everything else.
fn node(cluster: &Cluster, node: &Arc<Node>, row: Row) -> Value {
    let resources = cluster.resources();
    let amounts = |of: &dyn Fn(ResourceId) -> i64| -> BTreeMap<&str, i64> {
        let known = resources.names().filter_map(|name| Some((name, of(resources.get(name)?))));
        known.filter(|(_, amount)| *amount != 0).collect()
    };
    let pods: Vec<String> = cluster.pods_on(row).map(|placed| placed.pod.key.to_string()).collect();
    let [cpu, memory] = cluster.assumed_usage(row);
    json!({
        "node": &*node.name,
        "pods": pods,
        "requested": amounts(&|id| cluster.requested(id, row)),
        "nonZeroRequested": {"cpu": cpu, "memory": memory},
        "allocatable": amounts(&|id| cluster.allocatable(id, row)),
        "remaining": amounts(&|id| cluster.allocatable(id, row) - cluster.requested(id, row)),
    })
}
