//! What is done to an operator, and what it costs.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::{
    Operator, folder, lines,
    process::{Cpu, Memory, Process},
    server::{Counted, Counts},
};

const PARENTS: &str = "/apis/cache.example.com/v1/namespaces/default/cacheclusters";
const CHILDREN: [&str; 4] = [
    "/apis/apps/v1/namespaces/default/statefulsets",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/secrets",
];
/// How many objects are touched, one after the other.
pub const TOUCHES: usize = 100;
/// How long after a touch the next one comes.
const BETWEEN_TOUCHES: Duration = Duration::from_millis(50);
/// An operator that has done nothing for so long is quiet; events are collected for a second by one of them.
const QUIET: Duration = Duration::from_secs(3);
/// What an operator may use of 100 ms and be quiet all the same.
const IDLE_CPU: Duration = Duration::from_millis(5);
const DEADLINE: Duration = Duration::from_mins(20);

/// What a phase costs.
pub struct Phase {
    /// Requests.
    pub counts: Counts,
    /// CPU time of the operator.
    pub cpu: Duration,
    /// CPU time of the API server; this program's own share is small.
    pub server_cpu: Duration,
    /// Until the operator was quiet.
    pub wall: Duration,
    /// Memory at the end.
    pub memory: Memory,
    /// From the first request after a touch to the last answer, in the middle of all touches; none where nothing was asked for.
    pub reconcile: Option<Duration>,
}

/// An operator, measured.
pub struct Column {
    /// Its name.
    pub title: &'static str,
    /// Its lines of code.
    pub lines: usize,
    /// What it made of one parent, without what differs by chance.
    pub made: Value,
    /// From its start until all children and statuses are there.
    pub bring_up: Phase,
    /// While nothing happens.
    pub quiet: Phase,
    /// A label that nobody reads is set on parents.
    pub parent_touched: Phase,
    /// A label that nobody reads is set on children.
    pub child_touched: Phase,
    /// The number of replicas of parents changes, and with it one child and the status.
    pub changed: Phase,
    /// It is ended and started again.
    pub restart: Phase,
    /// Lines of its log until it was ended first, and the last of them.
    pub said: (usize, String),
}

fn name(number: usize) -> String {
    format!("cache-{number:05}")
}

/// Puts an operator through all phases, on a server of its own.
pub async fn measure(
    operator: &Operator,
    program: &Path,
    manifests: &[Value],
    parents: usize,
    quiet_s: u64,
) -> Result<Column> {
    let server = Counted::start(manifests).await?;
    for number in 0..parents {
        let parent = json!({
            "apiVersion": "cache.example.com/v1", "kind": "CacheCluster",
            "metadata": {"name": name(number)}, "spec": {"replicas": 3, "memory": "2Gi"},
        });
        server.send(Method::POST, PARENTS, &parent).await?;
    }
    let folder = folder()?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, &server.kubeconfig)?;
    let start = |log: &str| Process::start(program, operator.arguments, &kubeconfig, folder.path().join(log));

    let begin = Begin::of_start(&server)?;
    let mut run = Run { server: &server, process: start("first.log")?, parents };
    let mut bring_up = run.phase(&begin).await?;
    while !run.is_complete().await? {
        ensure!(begin.at.elapsed() < DEADLINE, "children are missing; its last words: {}", run.process.said().1);
        bring_up = run.phase(&begin).await?;
    }
    let made = made(&server).await?;

    let begin = run.begin()?;
    tokio::time::sleep(Duration::from_secs(quiet_s)).await;
    let quiet = run.end(&begin, begin.at.elapsed())?;

    let label = json!({"metadata": {"labels": {"touched": "yes"}}});
    let parent_touched = run.touch(PARENTS, &label).await?;
    let child_touched = run.touch(CHILDREN[2], &label).await?;
    let changed = run.touch(PARENTS, &json!({"spec": {"replicas": 4}})).await?;

    let Run { process, .. } = run;
    let said = process.said();
    process.terminate().await?;
    let begin = Begin::of_start(&server)?;
    let mut run = Run { server: &server, process: start("second.log")?, parents };
    let restart = run.phase(&begin).await?;
    Ok(Column {
        title: operator.title,
        lines: lines(operator.sources),
        made,
        bring_up,
        quiet,
        parent_touched,
        child_touched,
        changed,
        restart,
        said,
    })
}

/// What an operator made of the first parent, without what differs by chance.
async fn made(server: &Counted) -> Result<Value> {
    let mut made = Vec::new();
    for collection in CHILDREN.iter().chain([&PARENTS]) {
        let mut object = server.send(Method::GET, &format!("{collection}/{}", name(0)), &Value::Null).await?;
        for volatile in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            object["metadata"].as_object_mut().map(|metadata| metadata.remove(volatile));
        }
        if let Some(owner) = object.pointer_mut("/metadata/ownerReferences/0").and_then(Value::as_object_mut) {
            owner.remove("uid");
            // koord sets it, `controller_owner_ref` of kube-rs does not.
            owner.remove("blockOwnerDeletion");
        }
        if let Some(condition) = object.pointer_mut("/status/conditions/0").and_then(Value::as_object_mut) {
            condition.remove("lastTransitionTime");
        }
        made.push(object);
    }
    Ok(Value::Array(made))
}

/// Where a phase begins.
struct Begin {
    at: Instant,
    cpu: Cpu,
    server_cpu: Cpu,
}

impl Begin {
    /// Of a process that is about to be started.
    fn of_start(server: &Counted) -> Result<Self> {
        server.reset();
        Ok(Self { at: Instant::now(), cpu: Cpu::default(), server_cpu: Cpu::of("self")? })
    }
}

/// A running operator.
struct Run<'a> {
    server: &'a Counted,
    process: Process,
    parents: usize,
}

impl Run<'_> {
    fn begin(&self) -> Result<Begin> {
        Ok(Begin { cpu: self.process.cpu()?, ..Begin::of_start(self.server)? })
    }

    fn end(&self, begin: &Begin, wall: Duration) -> Result<Phase> {
        Ok(Phase {
            counts: self.server.counts(),
            cpu: self.process.cpu()?.since(begin.cpu),
            server_cpu: Cpu::of("self")?.since(begin.server_cpu),
            wall,
            memory: self.process.memory()?,
            reconcile: None,
        })
    }

    /// Waits until the operator is quiet.
    async fn phase(&mut self, begin: &Begin) -> Result<Phase> {
        let (mut last, mut seen) = (Instant::now(), (self.server.counts().work(), self.process.cpu()?));
        while last.elapsed() < QUIET {
            ensure!(begin.at.elapsed() < DEADLINE, "it is not quiet; its last words: {}", self.process.said().1);
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.process.check()?;
            let now = (self.server.counts().work(), self.process.cpu()?);
            if now.0 != seen.0 || now.1.since(seen.1) > IDLE_CPU {
                last = Instant::now();
            }
            seen = now;
        }
        self.end(begin, last - begin.at)
    }

    /// Whether every parent has its children and its status.
    async fn is_complete(&self) -> Result<bool> {
        for children in CHILDREN {
            let list =
                self.server.send(Method::GET, &format!("{children}?labelSelector=app=cache"), &Value::Null).await?;
            if list["items"].as_array().map_or(0, Vec::len) != self.parents {
                return Ok(false);
            }
        }
        let list = self.server.send(Method::GET, PARENTS, &Value::Null).await?;
        Ok(list["items"].as_array().into_iter().flatten().all(|parent| parent["status"]["conditions"][0].is_object()))
    }

    /// Patches objects of a collection one after the other.
    async fn touch(&mut self, collection: &str, patch: &Value) -> Result<Phase> {
        let begin = self.begin()?;
        let (mut total, mut reconciles) = (Counts::default(), Vec::new());
        for number in 0..TOUCHES.min(self.parents) {
            self.server.send(Method::PATCH, &format!("{collection}/{}", name(number)), patch).await?;
            tokio::time::sleep(BETWEEN_TOUCHES).await;
            let counts = self.server.counts();
            self.server.reset();
            reconciles.extend(counts.span.map(|(first, last)| last - first));
            total = total + counts;
        }
        reconciles.sort();
        let phase = self.phase(&begin).await?;
        let reconcile = reconciles.get(reconciles.len() / 2).copied();
        Ok(Phase { counts: total + phase.counts, reconcile, ..phase })
    }
}
