//! A trace of the openb family as a scenario.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Result, bail, ensure};
use jiff::Timestamp;
use koord_runtime::random::Random;
use koord_scheduler_openb::{NODES, Node, Pod, Request, arrivals, pods_file, read};
use serde_json::{Value, json};

use crate::{Arrival, Scenario};

/// A trace: nodes, and pods with their times.
#[derive(Clone, Debug)]
pub struct Trace {
    nodes: Vec<Node>,
    pods: Vec<Pod>,
}

/// How a trace is played.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// So many of its nodes, taken evenly from the list; all of them where there is no number.
    pub nodes_max: Option<usize>,
    /// So many of its pods, the first that come; all of them where there is no number.
    pub pods_max: Option<usize>,
    /// Pods come shuffled and stay, until they request this many percent of the GPUs. Without it they come and go at the times
    /// of the trace.
    pub demand_percent: Option<u32>,
    /// The seed of what is drawn.
    pub seed: u64,
    /// The name of the scheduler that the pods name.
    pub scheduler: String,
    /// The time of day at which it begins.
    pub start: Timestamp,
    /// Objects beside those of the trace. Where nodes are among them, those of the trace are left out.
    pub further: Vec<Value>,
}

/// The time between two pods where they come shuffled.
const BETWEEN: Duration = Duration::from_millis(10);

/// The trace that a folder stands for.
const DEFAULT: &str = "default";

const NAMESPACE: &str = "openb";

impl Trace {
    /// Reads a trace: `FOLDER`, whose trace is `default`, `FOLDER/NAME` such as `FOLDER/cpu100`, or the file with its pods.
    pub fn read(path: &Path) -> Result<Self> {
        let (folder, pods) = if path.is_dir() {
            (path.to_owned(), path.join(pods_file(DEFAULT)))
        } else {
            let folder = path.parent().map(Path::to_owned).unwrap_or_default();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let is_file = path.extension().is_some_and(|extension| extension == "csv");
            let file = if is_file { path.to_owned() } else { folder.join(pods_file(&name)) };
            (folder, file)
        };
        if !pods.is_file() {
            bail!("there is no trace {}; {}", path.display(), known(&folder));
        }
        Ok(Self { nodes: read(&folder.join(NODES))?, pods: read(&pods)? })
    }

    /// The scenario of a replay.
    pub fn scenario(&self, replay: Replay) -> Result<Scenario> {
        let brings_nodes = replay.further.iter().any(|object| object["kind"] == "Node");
        let nodes = if brings_nodes { Vec::new() } else { self.nodes(&replay) };
        let mut objects: Vec<Value> = nodes.iter().flat_map(|node| node.objects(&node.name)).collect();
        let mut coming = match replay.demand_percent {
            Some(percent) => {
                ensure!(
                    !brings_nodes,
                    "--demand counts the GPUs of the trace's nodes; leave --demand or the nodes of the files out"
                );
                self.shuffled(&nodes, percent, &replay)?
            }
            None => self.recorded(&replay),
        };
        let mut further = Scenario::of(replay.further, Some(replay.start), replay.start)?;
        objects.append(&mut further.objects);
        coming.append(&mut further.arrivals);
        coming.sort_by_key(|arrival| arrival.at);
        // Where nothing ends, waiting longer changes nothing.
        let last = coming.last().map(|arrival| arrival.at);
        let until = last.filter(|_| replay.demand_percent.is_some());
        Ok(Scenario { start: replay.start, objects, arrivals: coming, until, seed: replay.seed, gathers: false })
    }

    /// With a demand for GPUs, nodes without them play no part, as in the published experiment.
    fn nodes(&self, replay: &Replay) -> Vec<&Node> {
        let counts = |node: &&Node| replay.demand_percent.is_none() || node.gpus > 0;
        let all: Vec<&Node> = self.nodes.iter().filter(counts).collect();
        let node_count = replay.nodes_max.unwrap_or(all.len()).min(all.len());
        (0..node_count).filter_map(|at| all.get(at * all.len() / node_count).copied()).collect()
    }

    fn shuffled(&self, nodes: &[&Node], percent: u32, replay: &Replay) -> Result<Vec<Arrival>> {
        let requests: Vec<Request> = self.pods.iter().map(|pod| pod.request.clone()).collect();
        let gpus: i64 = nodes.iter().map(|node| node.gpus).sum();
        ensure!(gpus > 0, "no node of the trace has a GPU, so there is no share of them; leave --demand out");
        let max = gpus.saturating_mul(10).saturating_mul(i64::from(percent));
        let arriving = arrivals(&requests, max, &Random::seeded(replay.seed));
        let pods = (0_u32..).zip(arriving).take(replay.pods_max.unwrap_or(usize::MAX));
        let of = |(number, request): (u32, Request)| {
            arrival(&format!("openb-{number:05}"), &request, &replay.scheduler, BETWEEN * number, None)
        };
        Ok(pods.map(of).collect())
    }

    fn recorded(&self, replay: &Replay) -> Vec<Arrival> {
        let mut pods: Vec<&Pod> = self.pods.iter().collect();
        pods.sort_by_key(|pod| pod.created_s);
        pods.truncate(replay.pods_max.unwrap_or(usize::MAX));
        let first = pods.first().map_or(0, |pod| pod.created_s);
        let of = |pod: &&Pod| {
            let (at, lasts) = (Duration::from_secs(pod.created_s - first), pod.lasted_s.map(Duration::from_secs));
            arrival(&pod.name, &pod.request, &replay.scheduler, at, lasts)
        };
        pods.iter().map(of).collect()
    }
}

fn arrival(name: &str, request: &Request, scheduler: &str, at: Duration, lasts: Option<Duration>) -> Arrival {
    let metadata = json!({"name": name, "namespace": NAMESPACE, "uid": format!("Pod/{NAMESPACE}/{name}")});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": request.spec(scheduler)});
    Arrival { at, pod, lasts }
}

/// The traces of a folder, in words.
fn known(folder: &Path) -> String {
    let (prefix, suffix) = ("openb_pod_list_", ".csv");
    let files = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    let traces = names.filter_map(|name| Some(name.strip_prefix(prefix)?.strip_suffix(suffix)?.to_owned()));
    let mut traces: Vec<String> = traces.collect();
    traces.sort();
    if traces.is_empty() {
        let nodes_file = PathBuf::from(folder).join(NODES);
        return format!("name a folder with the files of the traces, such as {}", nodes_file.display());
    }
    format!("the folder has: {}", traces.join(", "))
}
