//! The cluster of a case: the embedded API server in virtual time, and the objects that the case made in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use envtest::{cluster::standard_server, environment::TimedEnvironment, shell::Server};
use futures::StreamExt as _;
use http::Method;
use jiff::Timestamp;
use koord_resource::{declare::Profile, document::custom_resource_definition};
use koord_runtime::clock::{ScaledClock, SharedClock};
use koord_types::KINDS;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, WatchEvent, WatchParams},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Kind, group and version, plural, whether it is in namespaces.
const PATHS: [(&str, &str, &str, bool); 18] = [
    ("Pod", "v1", "pods", true),
    ("Node", "v1", "nodes", false),
    ("Namespace", "v1", "namespaces", false),
    ("ReplicationController", "v1", "replicationcontrollers", true),
    ("PersistentVolumeClaim", "v1", "persistentvolumeclaims", true),
    ("PersistentVolume", "v1", "persistentvolumes", false),
    ("ReplicaSet", "apps/v1", "replicasets", true),
    ("Deployment", "apps/v1", "deployments", true),
    ("StatefulSet", "apps/v1", "statefulsets", true),
    ("DaemonSet", "apps/v1", "daemonsets", true),
    ("Job", "batch/v1", "jobs", true),
    ("StorageClass", "storage.k8s.io/v1", "storageclasses", false),
    ("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", false),
    ("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", true),
    ("NodeMetric", "slo.koordinator.sh/v1alpha1", "nodemetrics", false),
    ("Reservation", "scheduling.koordinator.sh/v1alpha1", "reservations", false),
    ("PodMigrationJob", "scheduling.koordinator.sh/v1alpha1", "podmigrationjobs", false),
    ("Event", "v1", "events", true),
];
const NAMESPACES: [&str; 4] = ["default", "team-a", "team-b", "koordinator-system"];
/// The kinds whose changes are kept.
const WATCHED: [&str; 4] = ["Pod", "PodMigrationJob", "Reservation", "Node"];
const START: Timestamp = Timestamp::constant(1_790_000_000, 0);

/// The changes of a kind, in order: what happened, and the object.
pub(crate) type Changes = Arc<Mutex<Vec<(String, Value)>>>;

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) clock: SharedClock,
    pub(crate) changes: BTreeMap<&'static str, Changes>,
    /// The uid of the newest object of a `Kind/namespace/name`.
    by_name: BTreeMap<String, String>,
    /// What objects that the case made are called, by uid.
    pub(crate) uids: BTreeMap<String, String>,
    /// The objects that the case made, as it made them, by uid.
    pub(crate) created: BTreeMap<String, Value>,
    /// The uids of objects that the case deleted.
    pub(crate) deleted: BTreeSet<String>,
}

fn path_of(kind: &str) -> Result<(&'static str, &'static str, bool)> {
    let known = PATHS.iter().find(|(known, ..)| *known == kind);
    known
        .map(|(_, version, plural, namespaced)| (*version, *plural, *namespaced))
        .with_context(|| format!("kind {kind}"))
}

pub(crate) fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

impl World {
    pub(crate) async fn new() -> Result<Self> {
        let clock = ScaledClock::shared(START, 1.0);
        let time = Arc::clone(&clock);
        let environment = TimedEnvironment::new(1, move || time.now());
        let server = standard_server(Box::new(environment))?;
        let mut world = Self {
            server,
            clock,
            changes: BTreeMap::new(),
            by_name: BTreeMap::new(),
            uids: BTreeMap::new(),
            created: BTreeMap::new(),
            deleted: BTreeSet::new(),
        };
        for kind in KINDS {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let definition = custom_resource_definition(kind, Profile::Compatible);
            world.send(Method::POST, path, &definition).await?;
        }
        for name in NAMESPACES {
            let namespace = json!({"metadata": {"name": name}});
            let (code, answer) = world.server.send(Method::POST, "/api/v1/namespaces", &namespace).await;
            ensure!(matches!(code, 201 | 409), "{answer}");
        }
        for kind in WATCHED {
            world.watch(kind).await?;
        }
        Ok(world)
    }

    /// Keeps the changes of a kind from now on.
    async fn watch(&mut self, kind: &'static str) -> Result<()> {
        let (api_version, plural, _) = path_of(kind)?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let api = Api::<DynamicObject>::all_with(Client::new(self.server.router(), "default"), &resource);
        let revision = api.list_metadata(&kube::api::ListParams::default()).await?.metadata.resource_version;
        let changes = Changes::default();
        self.changes.insert(kind, Arc::clone(&changes));
        let parameters = WatchParams { bookmarks: false, timeout: Some(290), ..WatchParams::default() };
        tokio::spawn(async move {
            let mut revision = revision.unwrap_or_default();
            loop {
                let Ok(stream) = api.watch(&parameters, &revision).await else { return };
                let mut stream = Box::pin(stream);
                while let Some(Ok(event)) = stream.next().await {
                    let (what, object) = match event {
                        WatchEvent::Added(object) => ("ADDED", object),
                        WatchEvent::Modified(object) => ("MODIFIED", object),
                        WatchEvent::Deleted(object) => ("DELETED", object),
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                    };
                    revision = object.metadata.resource_version.clone().unwrap_or_default();
                    changes.lock().push((what.to_owned(), serde_json::to_value(&object).unwrap_or_default()));
                }
            }
        });
        Ok(())
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let (code, answer) = self.server.send(method.clone(), path, body).await;
        ensure!((200..300).contains(&code), "{method} {path}: {code} {}", answer["message"]);
        Ok(answer)
    }

    pub(crate) fn path(kind: &str, namespace: &str, name: &str) -> Result<String> {
        let (version, plural, namespaced) = path_of(kind)?;
        let root = if version.contains('/') { "apis" } else { "api" };
        let namespace = if namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        let name = if name.is_empty() { String::new() } else { format!("/{name}") };
        Ok(format!("/{root}/{version}{namespace}/{plural}{name}"))
    }

    /// The objects of a kind.
    pub(crate) async fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let (version, plural, _) = path_of(kind)?;
        let root = if version.contains('/') { "apis" } else { "api" };
        let list = self.send(Method::GET, &format!("/{root}/{version}/{plural}"), &Value::Null).await?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// The newest job for a pod, or of this name.
    pub(crate) async fn job(&self, key: &str, patience: Duration) -> Result<Value> {
        let end = self.clock.moment() + patience;
        loop {
            let jobs = self.list("PodMigrationJob").await?;
            let is_meant = |job: &&Value| {
                let of = |path| text(job, path);
                format!("{}/{}", of("/spec/podRef/namespace"), of("/spec/podRef/name")) == key
                    || of("/metadata/name") == key
            };
            let revision = |job: &&Value| text(job, "/metadata/resourceVersion").parse::<u64>().unwrap_or(0);
            if let Some(job) = jobs.iter().filter(is_meant).max_by_key(revision) {
                return Ok(job.clone());
            }
            if self.clock.moment() >= end {
                bail!("no PodMigrationJob for {key}");
            }
            self.clock.sleep(Duration::from_millis(100)).await;
        }
    }

    /// Replaces the placeholders of texts.
    async fn expand(&self, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::String(text) if text.contains('$') => self.expanded(text).await?.into(),
            Value::Array(items) => {
                let mut expanded = Vec::new();
                for item in items {
                    expanded.push(Box::pin(self.expand(item)).await?);
                }
                expanded.into()
            }
            Value::Object(members) => {
                let mut expanded = serde_json::Map::new();
                for (key, member) in members {
                    expanded.insert(key.clone(), Box::pin(self.expand(member)).await?);
                }
                expanded.into()
            }
            other => other.clone(),
        })
    }

    async fn expanded(&self, text: &str) -> Result<String> {
        const PATIENCE: Duration = Duration::from_secs(12);
        let mut expanded = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            expanded += &rest[..at];
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("$now") {
                let (shift, after) = shift(after);
                let time = self.clock.now() + jiff::SignedDuration::from_secs(shift);
                expanded += &time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                rest = after;
                continue;
            }
            let argument = |name: &str| {
                let after = rest.strip_prefix(name)?.strip_prefix('(')?;
                after.split_once(')')
            };
            if let Some((key, after)) = argument("$uid") {
                expanded += self.by_name.get(key).map_or("unknown", String::as_str);
                rest = after;
            } else if let Some((key, after)) = argument("$job") {
                expanded += self::text(&self.job(key, PATIENCE).await?, "/metadata/name");
                rest = after;
            } else if let Some((key, after)) = argument("$reservation") {
                let job = self.job(key, PATIENCE).await?;
                expanded += self::text(&job, "/spec/reservationOptions/reservationRef/name");
                rest = after;
            } else {
                expanded.push('$');
                rest = &rest[1..];
            }
        }
        Ok(expanded + rest)
    }

    fn note(&mut self, object: &Value, kind: &str) -> Result<()> {
        let (_, _, namespaced) = path_of(kind)?;
        let uid = text(object, "/metadata/uid").to_owned();
        let namespace = if namespaced { format!("{}/", text(object, "/metadata/namespace")) } else { String::new() };
        let key = format!("{kind}/{namespace}{}", text(object, "/metadata/name"));
        let mut name = key.clone();
        if self.by_name.get(&key).is_some_and(|known| *known != uid) {
            let numbered = (2..).map(|number| format!("{key}#{number}"));
            name = numbered.into_iter().find(|name| !self.uids.values().any(|known| known == name)).unwrap_or_default();
        }
        self.uids.insert(uid.clone(), name);
        self.by_name.insert(key, uid);
        Ok(())
    }

    pub(crate) async fn create(&mut self, object: &Value) -> Result<()> {
        let mut object = self.expand(object).await?;
        let kind = text(&object, "/kind").to_owned();
        let (_, _, namespaced) = path_of(&kind)?;
        if namespaced && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!("default");
        }
        let (namespace, name) =
            (text(&object, "/metadata/namespace").to_owned(), text(&object, "/metadata/name").to_owned());
        let mut body = object.clone();
        let status = match kind.as_str() {
            "Node" => None,
            _ => body.as_object_mut().and_then(|members| members.remove("status")),
        };
        let path = Self::path(&kind, &namespace, &name)?;
        let (code, mut answer) = self.server.send(Method::POST, &Self::path(&kind, &namespace, "")?, &body).await;
        if code == 409 && matches!(kind.as_str(), "Namespace" | "PriorityClass") {
            answer = self.send(Method::PATCH, &path, &body).await?;
        } else {
            ensure!(code == 201, "{kind} {name}: {code} {}", answer["message"]);
        }
        if kind == "Node" {
            let taints = object.pointer("/spec/taints").cloned().unwrap_or_default();
            self.send(Method::PATCH, &path, &json!({"spec": {"taints": taints}})).await?;
        } else if let Some(status) = status {
            self.server.send(Method::PATCH, &format!("{path}/status"), &json!({"status": status})).await;
        }
        self.note(&answer, &kind)?;
        self.created.insert(text(&answer, "/metadata/uid").to_owned(), object);
        Ok(())
    }

    pub(crate) async fn patch(&mut self, object: &Value) -> Result<()> {
        let object = self.expand(object).await?;
        let path = Self::path_of(&object)?;
        let mut body = object.clone();
        let status = body.as_object_mut().and_then(|members| {
            for key in ["kind", "apiVersion"] {
                members.remove(key);
            }
            members.remove("status")
        });
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.retain(|key, _| matches!(key.as_str(), "labels" | "annotations" | "finalizers"));
            if metadata.is_empty()
                && let Some(members) = body.as_object_mut()
            {
                members.remove("metadata");
            }
        }
        if body.as_object().is_some_and(|members| !members.is_empty()) {
            self.send(Method::PATCH, &path, &body).await?;
        }
        if let Some(status) = status {
            let (code, _) =
                self.server.send(Method::PATCH, &format!("{path}/status"), &json!({"status": status})).await;
            if code == 404 {
                self.send(Method::PATCH, &path, &json!({"status": status})).await?;
            }
        }
        Ok(())
    }

    fn path_of(object: &Value) -> Result<String> {
        let namespace = match text(object, "/metadata/namespace") {
            "" => "default",
            named => named,
        };
        Self::path(text(object, "/kind"), namespace, text(object, "/metadata/name"))
    }

    pub(crate) async fn delete(&mut self, object: &Value) -> Result<()> {
        let object = self.expand(object).await?;
        let path = Self::path_of(&object)?;
        let (code, known) = self.server.send(Method::GET, &path, &Value::Null).await;
        if code == 200 {
            self.deleted.insert(text(&known, "/metadata/uid").to_owned());
        }
        let grace = object["gracePeriodSeconds"].as_i64().unwrap_or(0);
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": grace});
        let (code, answer) = self.server.send(Method::DELETE, &path, &options).await;
        ensure!(matches!(code, 200 | 202 | 404), "DELETE {path}: {code} {answer}");
        Ok(())
    }

    /// How many changes there have been.
    pub(crate) fn changes(&self) -> usize {
        self.changes.values().map(|changes| changes.lock().len()).sum()
    }

    /// Waits until nothing changes any more.
    pub(crate) async fn settle(&self, quiet: f64, limit: f64) {
        let begin = self.clock.moment();
        let limit = Duration::from_secs_f64(limit.max(quiet + 6.0));
        let quiet = Duration::from_secs_f64(quiet);
        let (mut since, mut last) = (begin, self.changes());
        loop {
            self.clock.sleep(Duration::from_millis(150)).await;
            let (now, changes) = (self.clock.moment(), self.changes());
            if changes != last {
                (last, since) = (changes, now);
            }
            if now.since(since) >= quiet || now.since(begin) > limit {
                return;
            }
        }
    }
}

/// The seconds of a shift such as `-30s`, and what follows it.
fn shift(text: &str) -> (i64, &str) {
    let sign = match text.chars().next() {
        Some('+') => 1,
        Some('-') => -1,
        _ => return (0, text),
    };
    let digits = text[1..].chars().take_while(char::is_ascii_digit).count();
    let unit = match text[1 + digits..].chars().next() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3600,
        _ => return (0, text),
    };
    match text[1..=digits].parse::<i64>() {
        Ok(number) => (sign * number * unit, &text[2 + digits..]),
        Err(_) => (0, text),
    }
}
