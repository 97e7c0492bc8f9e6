//! The controller: a function from a key and the caches to what shall be.

use std::sync::Arc;

use koord::{
    Projection,
    controller::ResourceKind,
    jiff::Timestamp,
    runtime::{
        controller::Controller,
        error::ReconcileError,
        key::ObjectKey,
        outcome::{Outcome, Owned},
        ownership::controller_reference,
        store::Store,
    },
    serde::Deserialize,
    serde_json::{Map, Value, json},
};

use crate::database::{Database, DatabaseSpec, DatabaseStatus, ServerSettings};

/// StatefulSets are known by their identity; nothing of their type is needed.
const STATEFUL_SET: ResourceKind =
    ResourceKind { group: "apps", version: "v1", kind: "StatefulSet", plural: "statefulsets", namespaced: true };

/// What the cache keeps of a database.
#[derive(PartialEq, Projection)]
#[koord(kind = Database, runtime = koord::runtime)]
pub struct DatabaseView {
    spec: DatabaseSpec,
    status: Option<DatabaseStatus>,
}

impl Owned for DatabaseView {
    fn owned(&self) -> Value {
        Value::Null
    }

    fn status(&self) -> Value {
        self.status.as_ref().map_or(Value::Null, |status| json!(status))
    }
}

/// What the cache keeps of a StatefulSet.
#[derive(PartialEq, Projection)]
#[koord(kind = STATEFUL_SET, runtime = koord::runtime)]
pub struct StatefulSetView {
    spec: Servers,
    status: Option<Progress>,
}

/// The part of a StatefulSet's spec that we write.
#[derive(PartialEq, Deserialize, koord::serde::Serialize)]
#[serde(crate = "koord::serde", rename_all = "camelCase")]
struct Servers {
    replicas: Option<i32>,
    service_name: Option<String>,
    selector: Value,
    template: Value,
}

#[derive(PartialEq, Deserialize)]
#[serde(crate = "koord::serde", rename_all = "camelCase")]
struct Progress {
    #[serde(default)]
    ready_replicas: i32,
}

impl Owned for StatefulSetView {
    fn owned(&self) -> Value {
        json!({ "spec": self.spec })
    }
}

/// Keeps one StatefulSet of the same name for every database, and the database's status.
#[koord::controller(
    name = "database",
    for = databases,
    owns(stateful_sets),
    concurrency = 2,
    rbac(group = "db.example.com", resource = "databases/status", verbs = [patch]),
    runtime = koord::runtime,
)]
pub struct Databases {
    databases: Arc<Store<DatabaseView>>,
    stateful_sets: Arc<Store<StatefulSetView>>,
}

impl Controller for Databases {
    fn reconcile(&self, key: &ObjectKey, _: Timestamp) -> Result<Outcome, ReconcileError> {
        let (databases, stateful_sets) = (self.databases.read(), self.stateful_sets.read());
        let mut outcome = Outcome::settled();
        // What belongs to a database that is gone is collected by its owner reference.
        let Some(database) = databases.get(key.as_str()).filter(|database| !database.deleting) else {
            return Ok(outcome);
        };
        let kind = ResourceKind::of(&<Database as koord::Resource>::INFO);
        let owner = controller_reference(&kind, (key, database), key)
            .map_err(|error| ReconcileError::never(koord::runtime::error::Fault::User, error.to_string()))?;
        outcome.present(&stateful_sets, key, stateful_set(key, &database.value.spec, &owner))?;
        let ready = stateful_sets.get(key.as_str()).and_then(|set| set.value.status.as_ref());
        let status = DatabaseStatus { ready: ready.map_or(0, |progress| progress.ready_replicas) };
        outcome.status(&databases, key, &json!(status));
        Ok(outcome)
    }
}

fn stateful_set(key: &ObjectKey, spec: &DatabaseSpec, owner: &Value) -> Map<String, Value> {
    let labels = json!({"app": "postgres", "database": key.name()});
    let arguments = spec.settings.as_ref().map(ServerSettings::arguments).unwrap_or_default();
    let mut container = json!({"name": "postgres", "image": format!("postgres:{}", spec.release)});
    if !arguments.is_empty() {
        container["args"] = json!(arguments);
    }
    let mut body = Map::new();
    body.insert("metadata".to_owned(), json!({"labels": labels, "ownerReferences": [owner]}));
    body.insert(
        "spec".to_owned(),
        json!({
            "replicas": spec.replicas.unwrap_or(1),
            "serviceName": key.name(),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container]},
            },
        }),
    );
    body
}
