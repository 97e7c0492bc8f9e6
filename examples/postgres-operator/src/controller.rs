//! The controller: a function from a key and the caches to what shall be.

use std::{collections::BTreeMap, sync::Arc};

use koord::{
    Projection,
    jiff::Timestamp,
    k8s_openapi::{
        api::{
            apps::v1::{StatefulSet, StatefulSetSpec},
            core::v1::{Container, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec},
        },
        apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
    },
    runtime::{
        cache::{Cache, Entry},
        child::Child,
        condition::{self, condition},
        controller::Controller,
        effect::{Effects, Progress},
        error::ReconcileError,
        key::ObjectKey,
        outcome::Outcome,
        ownership::{Cleanup, Finalizers},
        store::Store,
    },
};
use serde::Deserialize;

use crate::{
    backups::{self, BackupStore, Bucket},
    database::{Database, DatabaseSpec, DatabaseStatus, ServerSettings},
};

/// What the cache keeps of a database.
#[derive(PartialEq, Projection)]
#[koord(kind = Database)]
pub struct DatabaseView {
    spec: DatabaseSpec,
    status: Option<DatabaseStatus>,
    finalizers: Finalizers,
}

/// What the controller reads of a StatefulSet beside what it applied.
#[derive(PartialEq, Deserialize)]
pub struct Servers {
    #[serde(default)]
    status: Counts,
}

#[derive(PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    #[serde(default)]
    ready_replicas: i32,
}

/// The bucket of a database goes before the database does.
const BUCKET: &str = "db.example.com/bucket";

/// Keeps a StatefulSet and a Service of the same name for every database, a bucket for those with backups, and the
/// database's status.
#[koord::controller(
    name = "database",
    for(databases, writes = [status, finalizers]),
    owns(stateful_sets),
    owns(services),
    effects(buckets, limits = backups::LIMITS),
    concurrency = 2,
)]
pub struct DatabaseController {
    databases: Arc<Store<DatabaseView>>,
    stateful_sets: Arc<Store<Child<StatefulSet, Servers>>>,
    services: Arc<Store<Child<Service>>>,
    buckets: Arc<Effects<Bucket, Option<String>>>,
    store: Option<BackupStore>,
}

impl Controller for DatabaseController {
    fn reconcile(&self, key: &ObjectKey, now: Timestamp) -> Result<Outcome, ReconcileError> {
        let databases = self.databases.read();
        let Some(database) = databases.get(key.as_str()) else { return Ok(Outcome::settled()) };
        let mut outcome = Outcome::of(key, database);
        outcome.finalizer(
            &databases,
            key,
            BUCKET,
            |outcome, database| self.apply(outcome, &databases, (key, database), now),
            |outcome, _| Ok(self.clean_up(outcome, key)),
        )?;
        Ok(outcome)
    }
}

impl DatabaseController {
    fn apply(
        &self,
        outcome: &mut Outcome,
        databases: &Cache<DatabaseView>,
        (key, database): (&ObjectKey, &Entry<DatabaseView>),
        now: Timestamp,
    ) -> Result<(), ReconcileError> {
        let DatabaseView { spec, status, .. } = &*database.value;
        let stateful_sets = self.stateful_sets.read();
        outcome.apply(&stateful_sets, key, &stateful_set(key, spec))?;
        outcome.apply(&self.services.read(), key, &service(key))?;
        let ready = stateful_sets.get(key.as_str()).map_or(0, |set| set.value.seen.status.ready_replicas);
        let mut conditions = status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
        if spec.backup.is_some() {
            let (is_backed_up, reason, message) = self.bucket(outcome, key);
            let condition = condition("BackedUp", is_backed_up, reason, &message, database.generation);
            condition::set(&mut conditions, condition, now);
        }
        outcome.status(databases, key, &DatabaseStatus { ready, conditions })
    }

    /// Whether there is a bucket, and what to say of it.
    fn bucket(&self, outcome: &mut Outcome, key: &ObjectKey) -> (Option<bool>, &'static str, String) {
        let Some(store) = &self.store else {
            return (Some(false), "NoStore", "name a backupStore in the configuration".to_owned());
        };
        let bucket = Bucket::Present(bucket_name(key));
        let work = store.clone().bring_about(bucket.clone());
        match outcome.effect(&self.buckets, key, bucket, work) {
            Progress::Pending => (None, "Pending", "the bucket is being made".to_owned()),
            Progress::Done(url) => (Some(true), "BucketReady", url.as_deref().unwrap_or("ready").to_owned()),
            Progress::Failed { error, .. } => (Some(false), "NoBucket", error.message),
        }
    }

    fn clean_up(&self, outcome: &mut Outcome, key: &ObjectKey) -> Cleanup {
        let Some(store) = &self.store else { return Cleanup::Done };
        let bucket = Bucket::Absent(bucket_name(key));
        let work = store.clone().bring_about(bucket.clone());
        match outcome.effect(&self.buckets, key, bucket, work) {
            Progress::Done(_) => Cleanup::Done,
            Progress::Pending => Cleanup::WaitsFor(format!("the bucket {}", bucket_name(key))),
            Progress::Failed { error, .. } => {
                Cleanup::WaitsFor(format!("the bucket {} ({})", bucket_name(key), error.message))
            }
        }
    }
}

fn bucket_name(key: &ObjectKey) -> String {
    format!("{}.{}", key.namespace(), key.name())
}

fn labels(key: &ObjectKey) -> BTreeMap<String, String> {
    [("app", "postgres"), ("database", key.name())].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn stateful_set(key: &ObjectKey, spec: &DatabaseSpec) -> StatefulSet {
    let labelled = || ObjectMeta { labels: Some(labels(key)), ..ObjectMeta::default() };
    let container = Container {
        name: "postgres".to_owned(),
        image: Some(format!("postgres:{}", spec.release)),
        args: spec.settings.as_ref().map(ServerSettings::arguments),
        ..Container::default()
    };
    let pod = PodSpec { containers: vec![container], ..PodSpec::default() };
    StatefulSet {
        metadata: labelled(),
        spec: Some(StatefulSetSpec {
            replicas: Some(spec.replicas.unwrap_or(1)),
            service_name: Some(key.name().to_owned()),
            selector: LabelSelector { match_labels: Some(labels(key)), ..LabelSelector::default() },
            template: PodTemplateSpec { metadata: Some(labelled()), spec: Some(pod) },
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

fn service(key: &ObjectKey) -> Service {
    Service {
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            selector: Some(labels(key)),
            ports: Some(vec![ServicePort { name: Some("postgres".to_owned()), port: 5432, ..ServicePort::default() }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}
