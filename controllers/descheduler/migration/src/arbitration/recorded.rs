//! What the original's arbitration did with jobs made by hand, and ours: the recordings in `../shared` beside the repository, where it has them.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::PathBuf,
};

use jiff::{SignedDuration, Timestamp};
use koord_core::uid::Uid;
use koord_descheduler_framework::Cluster;
use koord_descheduler_testing::with;
use koord_types::pod_migration_job::PodMigrationJobMode;
use serde_json::{Value, json};

use super::Decision;
use crate::{
    MigrationController, MigrationJob, ObjectLimiters,
    jobs::PASSED_ARBITRATION,
    plugin::fixtures::{controller, evictions},
    workloads::{Scale, controllers_to_look_up, set_workload},
};

/// Where jobs come to something else: the case and job, what ours comes to, and why.
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("deployment-replicas/j-b", "waits", "the pods of two ReplicaSets of one Deployment count together"),
    ("replicas-capped/j-p1", "passes", "a limit above the replicas does not forbid every migration"),
    ("waiting-job-paused/j-free", "waits", "a paused job does not pass"),
    ("waiting-job-paused/j-prod", "passes", "a paused job takes no room"),
];

/// An API server whose jobs end as soon as they may: what is behind arbitration takes no time.
struct Server {
    controller: MigrationController,
    limiters: ObjectLimiters,
    objects: BTreeMap<String, Value>,
    now: Timestamp,
    priorities: BTreeMap<String, i64>,
    is_started: bool,
}

fn key(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = text(&object["metadata"]["namespace"]);
    let is_global = matches!(object["kind"].as_str(), Some("Node" | "PodMigrationJob" | "PriorityClass"));
    let namespace = if namespace.is_empty() && !is_global { "default".to_owned() } else { namespace };
    format!("{}/{namespace}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Objects name the uids of others as `$uid(Kind/namespace/name)`.
fn filled(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(filled).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), filled(value))).collect(),
        Value::String(text) => {
            text.strip_prefix("$uid(").and_then(|text| text.strip_suffix(')')).unwrap_or(text).into()
        }
        other => other.clone(),
    }
}

impl Server {
    fn create(&mut self, object: &Value) {
        if object["kind"] == "PriorityClass" {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            self.priorities.insert(name, object["value"].as_i64().unwrap());
        }
        let key = key(object);
        let namespace = key.split('/').nth(1).unwrap();
        let metadata = json!({"uid": key, "creationTimestamp": self.now.to_string()});
        let mut object = with(&filled(object), &json!({"metadata": metadata}));
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        if let Some(class) = object["spec"]["priorityClassName"].as_str() {
            object["spec"]["priority"] = json!(self.priorities.get(class).copied().unwrap_or(2_000_000_000));
        }
        self.objects.insert(key, object);
    }

    fn patch(&mut self, key: &str, patch: &Value) {
        let object = self.objects.get_mut(key).unwrap();
        *object = with(object, patch);
    }

    fn cluster(&self) -> Cluster {
        let objects: Vec<Value> = self.objects.values().cloned().collect();
        let mut cluster = koord_descheduler_testing::cluster(&objects);
        for object in &objects {
            if object["kind"] == "PodMigrationJob" {
                cluster.set_json::<MigrationJob>(object).unwrap();
            }
            set_workload(&mut cluster, object).unwrap();
        }
        for uid in controllers_to_look_up(&cluster).into_keys() {
            cluster.set_object(Scale::Failed.object(&uid));
        }
        cluster
    }

    /// One round of arbitration, and what follows from it.
    fn round(&mut self) {
        let cluster = self.cluster();
        let job_key = |job: &MigrationJob| format!("PodMigrationJob//{}", job.name);
        let decided: Vec<(String, Decision)> = self
            .controller
            .arbitrate(&cluster, &BTreeSet::<Uid>::new())
            .into_iter()
            .map(|arbitrated| (job_key(arbitrated.job), arbitrated.decision))
            .collect();
        for (key, decision) in decided {
            match decision {
                Decision::Pass => {
                    let annotations = json!({PASSED_ARBITRATION: "true"});
                    self.patch(
                        &key,
                        &json!({"metadata": {"annotations": annotations}, "status": {"phase": "Running"}}),
                    );
                }
                Decision::Fail(_) => {
                    self.patch(&key, &json!({"status": {"phase": "Failed", "reason": "ForbiddenMigratePod"}}));
                }
                Decision::Stay(_) => {}
            }
        }
        let cluster = self.cluster();
        for job in MigrationJob::all(&cluster).filter(|job| job.is_running()) {
            let deadline = job
                .ttl
                .and_then(koord_resource::Duration::to_std)
                .map(|ttl| job.created + i64::try_from(ttl.as_secs()).unwrap());
            let end = |phase: &str| json!({"status": {"phase": phase}});
            let Some((_, pod)) = job.pod_in(&cluster) else {
                self.patch(&job_key(job), &end("Failed"));
                continue;
            };
            if deadline.is_some_and(|deadline| self.now.as_second() >= deadline) {
                self.patch(&job_key(job), &end("Failed"));
            } else if job.mode == Some(PodMigrationJobMode::EvictDirectly)
                && self.controller.hold_up(&self.limiters, &cluster, pod, Some(&job.uid), self.now).is_none()
            {
                self.controller.count_eviction(&mut self.limiters, &cluster, pod, Some(&job.uid), self.now);
                self.objects.remove(&format!("Pod/{}", pod.key));
                self.patch(&job_key(job), &end("Succeeded"));
            }
        }
    }

    fn wait(&mut self, seconds: f64, until: impl Fn(&Self) -> bool) {
        for _ in 0..((seconds * 2.0).ceil() as usize) {
            if self.is_started {
                self.round();
            }
            if until(self) {
                return;
            }
            self.now += SignedDuration::from_millis(500);
        }
    }

    fn phase(&self, job: &str) -> &str {
        self.objects
            .get(&format!("PodMigrationJob//{job}"))
            .map_or("", |job| job["status"]["phase"].as_str().unwrap_or_default())
    }

    fn act(&mut self, step: &Value) {
        if step.get("kind").is_some() {
            return self.create(step);
        }
        let (word, what) = step.as_object().unwrap().iter().next().unwrap();
        match (word.as_str(), what) {
            ("create", Value::Array(objects)) => objects.iter().for_each(|object| self.create(object)),
            ("create", object) => self.create(object),
            ("delete", object) => drop(self.objects.remove(&key(object))),
            ("wait", seconds) => self.wait(seconds.as_f64().unwrap(), |_| false),
            ("until", condition) => {
                let reservation = condition["reservation"].as_str().and_then(|text| text.strip_prefix("of "));
                let job = condition["job"].as_str().or(reservation).unwrap().to_owned();
                let phase = condition["status.phase"].as_str().unwrap_or("Running").to_owned();
                self.wait(15.0, |server| server.phase(&job) == phase);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn arguments(case: &Value) -> Value {
    let configs = case["config"]["profiles"][0]["pluginConfig"].as_array().unwrap();
    configs
        .iter()
        .find(|config| config["name"] == "MigrationController")
        .map_or(json!({}), |config| config["args"].clone())
}

/// A server with the objects that a case begins with.
fn begin(case: &Value) -> Server {
    let now = Timestamp::UNIX_EPOCH;
    let controller = controller(&arguments(case));
    let (limiters, objects, priorities) = (ObjectLimiters::default(), BTreeMap::new(), BTreeMap::new());
    let mut server = Server { controller, limiters, objects, now, priorities, is_started: false };
    case["given"].as_array().unwrap().iter().for_each(|object| server.act(object));
    server.is_started = true;
    server
}

/// What each job of a case comes to.
fn play(case: &Value) -> BTreeMap<String, &'static str> {
    let mut server = begin(case);
    case["steps"].as_array().into_iter().flatten().for_each(|step| server.act(step));
    server.wait(3.0, |_| false);
    let jobs = case["recorded"]["jobs"].as_object().unwrap().keys();
    let outcome = |name: &String| match server.objects.get(&format!("PodMigrationJob//{name}")) {
        None => "is gone",
        Some(job) if job["status"]["reason"] == "ForbiddenMigratePod" => "fails",
        Some(job) if job["metadata"]["annotations"][PASSED_ARBITRATION] == "true" => "passes",
        Some(_) => "waits",
    };
    jobs.map(|name| (name.clone(), outcome(name))).collect()
}

/// The recorded cases, by name.
fn cases() -> Vec<(String, Value)> {
    let shared = env::var_os("KOORD_SHARED")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared")), PathBuf::from);
    let Ok(files) = fs::read_dir(shared.join("corpus/descheduler/cases/arbitration")) else { return Vec::new() };
    let read = |file: fs::DirEntry| {
        let case: Value = serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
        (case["name"].as_str().unwrap().rsplit('/').next().unwrap().to_owned(), case)
    };
    files.map(|file| read(file.unwrap())).collect()
}

#[test]
fn jobs_made_by_hand_pass_as_those_of_the_original() {
    let (mut differences, mut compared) = (Vec::new(), 0);
    let cases = cases();
    for (name, case) in cases.iter().filter(|(name, _)| !name.starts_with("strategy-")) {
        for (job, ours) in play(case) {
            let theirs = match &case["recorded"]["jobs"][&job] {
                theirs if theirs["gone"] == true || ours == "is gone" => continue,
                theirs if theirs["status"]["reason"] == "ForbiddenMigratePod" => "fails",
                theirs if theirs["annotations"][PASSED_ARBITRATION] == "true" => "passes",
                _ => "waits",
            };
            compared += 1;
            let known = DIFFERENT.iter().find(|(known, ..)| *known == format!("{name}/{job}"));
            let known = known.map(|(_, ours, _)| *ours);
            if ours != known.unwrap_or(theirs) || known == Some(theirs) {
                differences.push(format!("{name}/{job}: ours {ours}, theirs {theirs}"));
            }
        }
    }
    assert!(cases.is_empty() || compared > 60, "{compared}");
    assert!(differences.is_empty(), "{differences:#?}");
}

/// The strategy of these cases evicts the pods of a node with a taint, which are all of them.
#[test]
fn strategies_make_jobs_for_the_pods_that_they_make_them_for_in_the_original() {
    for (name, case) in cases().iter().filter(|(name, _)| name.starts_with("strategy-")) {
        let cluster = begin(case).cluster();
        let evictions = evictions(&arguments(case), &["p"], &cluster);
        let ours: BTreeSet<String> = evictions.iter().map(|eviction| format!("for {}", eviction.pod.key)).collect();
        let theirs = case["recorded"]["jobs"].as_object().unwrap().keys();
        let mut theirs: BTreeSet<String> =
            theirs.filter(|job| job.starts_with("for ") && !job.contains('#')).cloned().collect();
        if name == "strategy-node-fit" {
            // The original checks fit for its own strategies alone.
            assert!(theirs.remove("for default/big"));
        }
        match case["alternatives"]["evicted"].as_object() {
            // What is started was checked against a cache that lags: ours starts as many as the limits say.
            Some(_) => assert!(!ours.is_empty(), "{name}"),
            None => assert_eq!(ours, theirs, "{name}"),
        }
    }
}
