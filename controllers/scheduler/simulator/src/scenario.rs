//! What happens in a simulation, whichever scheduler is simulated.

use std::time::Duration;

use anyhow::{Result, bail};
use jiff::Timestamp;
use koord_program::flags::span;
use koord_runtime::key::ObjectKey;
use serde_json::{Value, json};

/// Annotation of a pod: how long it runs, such as `1h30m`. Without it `spec.activeDeadlineSeconds` counts, and without both a pod
/// does not end.
pub const DURATION: &str = "simulation.koordinator.sh/duration";

/// What happens in a simulation.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The time of day at which it begins.
    pub start: Timestamp,
    /// What is there when it begins.
    pub objects: Vec<Value>,
    /// The pods that come, in their order.
    pub arrivals: Vec<Arrival>,
    /// When it ends at the latest; none where it goes on until nothing more happens.
    pub until: Option<Duration>,
    /// What ties are decided by.
    pub seed: u64,
    /// Nothing is decided before every pod has come.
    pub gathers: bool,
}

/// A pod that comes.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When, from the start.
    pub at: Duration,
    pub pod: Value,
    /// How long it runs; none where it does not end.
    pub lasts: Option<Duration>,
}

impl Scenario {
    /// Pods without a node come when they were created, those that were created before the start at the start; without a start
    /// the first of them is. Everything else is there.
    pub fn of(objects: Vec<Value>, start: Option<Timestamp>, now: Timestamp) -> Result<Self> {
        let (mut pods, mut others): (Vec<Value>, Vec<Value>) = objects.into_iter().partition(waits);
        pods.iter_mut().chain(&mut others).for_each(identify);
        let start = start.or_else(|| pods.iter().filter_map(created).min()).unwrap_or(now);
        let mut arrivals = Vec::with_capacity(pods.len());
        for pod in pods {
            let at = created(&pod).and_then(|created| Duration::try_from(created.duration_since(start)).ok());
            arrivals.push(Arrival { at: at.unwrap_or_default(), lasts: lasts(&pod)?, pod });
        }
        arrivals.sort_by_key(|arrival| arrival.at);
        Ok(Self { start, objects: others, arrivals, until: None, seed: 0, gathers: false })
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.objects.iter().filter(|object| object["kind"] == "Node").count()
    }
}

impl Arrival {
    /// The namespace and name of the pod.
    pub fn key(&self) -> ObjectKey {
        key(&self.pod)
    }
}

pub(crate) fn key(object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str();
    ObjectKey::new(text("namespace").unwrap_or("default"), text("name").unwrap_or_default())
}

/// Whether an object is a pod that is to be placed.
fn waits(object: &Value) -> bool {
    let has_ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let has_node = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    object["kind"] == "Pod" && !has_ended && !has_node && object["metadata"]["deletionTimestamp"].is_null()
}

/// Objects of files may lack a uid, by which they are told apart.
fn identify(object: &mut Value) {
    if object["metadata"].is_object() && object["metadata"]["uid"].is_null() {
        let kind = object["kind"].as_str().unwrap_or_default();
        object["metadata"]["uid"] = json!(format!("{kind}/{}", key(object)));
    }
}

fn created(pod: &Value) -> Option<Timestamp> {
    pod["metadata"]["creationTimestamp"].as_str()?.parse().ok()
}

/// How long a pod runs, as it says itself.
pub(crate) fn lasts(pod: &Value) -> Result<Option<Duration>> {
    if let Some(text) = pod["metadata"]["annotations"][DURATION].as_str() {
        return match span(text) {
            Ok(span) => Ok(Some(span)),
            Err(error) => bail!("pod {}: annotation {DURATION}: {error}", key(pod)),
        };
    }
    Ok(pod["spec"]["activeDeadlineSeconds"].as_u64().map(Duration::from_secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, created: Option<&str>, spec: &Value) -> Value {
        json!({"kind": "Pod", "metadata": {"name": name, "creationTimestamp": created}, "spec": spec})
    }

    fn names(scenario: &Scenario) -> Vec<(String, u64, Option<u64>)> {
        let of = |arrival: &Arrival| {
            (arrival.key().name().to_owned(), arrival.at.as_secs(), arrival.lasts.map(|lasts| lasts.as_secs()))
        };
        scenario.arrivals.iter().map(of).collect()
    }

    #[test]
    fn pods_without_a_node_come_when_they_were_created() {
        let mut annotated = pod("c", None, &json!({"activeDeadlineSeconds": 7}));
        annotated["metadata"]["annotations"] = json!({DURATION: "1m"});
        let objects = vec![
            pod("a", Some("2026-01-01T00:01:00Z"), &json!({"activeDeadlineSeconds": 30})),
            pod("b", Some("2026-01-01T00:00:00Z"), &json!({})),
            annotated,
            pod("runs", Some("2025-01-01T00:00:00Z"), &json!({"nodeName": "n"})),
            json!({"kind": "Node", "metadata": {"name": "n"}}),
        ];
        let scenario = Scenario::of(objects.clone(), None, Timestamp::UNIX_EPOCH).unwrap();
        let expected = [("b".to_owned(), 0, None), ("c".to_owned(), 0, Some(60)), ("a".to_owned(), 60, Some(30))];
        assert_eq!((names(&scenario), scenario.nodes(), scenario.objects.len()), (expected.to_vec(), 1, 2));
        assert_eq!(scenario.start.to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(scenario.objects[0]["metadata"]["uid"], "Pod/default/runs");
        let later =
            Scenario::of(objects, Some("2026-01-01T00:00:50Z".parse().unwrap()), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(later.arrivals.iter().map(|arrival| arrival.at.as_secs()).collect::<Vec<_>>(), [0, 0, 10]);
    }

    #[test]
    fn a_duration_that_is_none_is_named() {
        let mut broken = pod("a", None, &json!({}));
        broken["metadata"]["annotations"] = json!({DURATION: "soon"});
        let error = Scenario::of(vec![broken], None, Timestamp::UNIX_EPOCH).unwrap_err().to_string();
        assert!(error.starts_with("pod default/a: annotation simulation.koordinator.sh/duration: "), "{error}");
    }
}
