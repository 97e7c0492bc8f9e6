//! `koordctl snapshot replay`: what the scheduler makes of a saved cluster, offline.

mod check;
mod show;
mod waiting;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use koord_resource::yaml::place::{Step, steps};
use koord_runtime::clock::SystemClock;
use koord_scheduler_what_if::Objects;
use serde_json::Value;

use crate::{
    Answer,
    cli::{OutputFormat, SnapshotReplayArgs},
    files,
    screen::Screen,
    simulate::{complete, configurations},
};

/// What became of a pod under one configuration.
struct Decision {
    /// The node that it gets; none where it waits.
    node: Option<String>,
    /// The plugins that have the say about that.
    plugins: Vec<String>,
    /// Why it waits, or what there is to say beside the node.
    words: Option<String>,
}

/// A pod, and what became of it under each configuration.
struct Replayed {
    pod: String,
    /// The node that it has in the snapshot.
    node: Option<String>,
    decisions: Vec<Decision>,
    /// What should be alike is not.
    differs: bool,
}

/// What came of a replay.
struct Replay {
    at: Timestamp,
    is_check: bool,
    configurations: Vec<String>,
    pods: Vec<Replayed>,
    /// Pods that were evicted under each configuration.
    evicted: Vec<Vec<String>>,
    /// Waiting pods of other schedulers.
    left_out: usize,
}

/// Replays.
pub(super) async fn run(args: &SnapshotReplayArgs, screen: Screen) -> Result<Answer> {
    let configurations = configurations(&args.config, &args.feature_gates)?;
    let mut objects = files::objects(&args.filename)?;
    let at = args.at.or_else(|| latest(&objects)).unwrap_or_else(|| SystemClock::shared().now());
    complete(&mut objects, &mut Objects::of_files(&[])).await?;
    objects.sort_by_cached_key(created);
    let replay = if args.check {
        check::replay(objects, configurations, at).await?
    } else {
        waiting::replay(&objects, configurations, at, args.seed).context("the snapshot cannot be replayed")?
    };
    let text = match args.output {
        OutputFormat::Table => show::text(&replay, screen),
        format => format.document(&show::document(&replay))?,
    };
    Ok(Answer { text, code: u8::from(!replay.is_good()) })
}

impl Replay {
    /// Whether nothing waits, and nothing differs that should not.
    fn is_good(&self) -> bool {
        self.pods.iter().all(|pod| !pod.differs && pod.decisions.iter().all(|decision| decision.node.is_some()))
    }
}

/// Pods in the order of their creation, and after all else.
fn created(object: &Value) -> (bool, String, String, String) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let is_pod = object["kind"] == "Pod";
    let order = if is_pod { text("creationTimestamp") } else { String::new() };
    let (namespace, name) = if is_pod { (text("namespace"), text("name")) } else { Default::default() };
    (is_pod, order, namespace, name)
}

/// The node of a pod.
fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty())
}

/// The name of the scheduler that a pod belongs to.
fn scheduler_of(pod: &Value) -> &str {
    pod["spec"]["schedulerName"].as_str().unwrap_or("default-scheduler")
}

fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
        || !pod["metadata"]["deletionTimestamp"].is_null()
}

/// The latest time that was written into the objects: the snapshot is not older.
fn latest(objects: &[Value]) -> Option<Timestamp> {
    const FIELDS: [&str; 5] =
        ["metadata.creationTimestamp", "status.startTime", "status.updateTime", "status.conditions", "spec.renewTime"];
    let paths: Vec<Vec<Step>> = FIELDS.iter().map(|path| steps(path)).collect();
    let times = objects.iter().flat_map(|object| paths.iter().flat_map(move |path| times_at(object, path)));
    times.max()
}

/// The time at a path, or those of the conditions there.
fn times_at(object: &Value, path: &[Step]) -> Vec<Timestamp> {
    let found = path.iter().fold(object, |value, step| match step {
        Step::Key(key) => &value[key],
        Step::Index(index) => &value[index],
    });
    let time = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
    match found {
        Value::Array(conditions) => conditions.iter().filter_map(|one| time(&one["lastTransitionTime"])).collect(),
        one => time(one).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_latest_time_is_found_wherever_it_stands() {
        let object = |value: Value| value;
        let conditions = json!([{"lastTransitionTime": "2026-01-03T00:00:00Z"}, {"type": "Ready"}]);
        let all = [
            object(json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}})),
            object(json!({"status": {"updateTime": "2026-01-02T00:00:00Z", "conditions": conditions}})),
            object(json!({"status": {"startTime": "never"}})),
        ];
        assert_eq!(latest(&all).unwrap().to_string(), "2026-01-03T00:00:00Z");
        assert_eq!(latest(&all[2..]), None);
    }
}
