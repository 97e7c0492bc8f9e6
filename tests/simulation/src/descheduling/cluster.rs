//! What Kubernetes' own controllers and kubelets do about pods, and who sees what the descheduler does to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use envtest::shell::Server;
use http::Method;
use koord_runtime::clock::{Moment, SharedClock};
use serde_json::{Value, json};

use super::{BUDGETS, CALM, CONFIG_MAPS, JOBS, MIGRATING_MAX, REPLICA_SETS, VIOLATIONS};
use crate::{network::STALL_MAX, people::name_of, scheduling::PODS};

/// How often they look.
const EVERY: Duration = Duration::from_secs(1);
/// The same when everything has long been right.
const SELDOM: Duration = Duration::from_secs(20);
/// How long jobs may live after the last fault: one that stands still when others have ended may do so for long.
const RECOVERY: Duration = Duration::from_mins(5).saturating_add(STALL_MAX);

struct Cluster {
    server: Server,
    clock: SharedClock,
    created: u64,
    /// The uids of pods that a job has named.
    named: BTreeSet<String>,
    evicted: BTreeSet<String>,
    calm_since: Option<Moment>,
}

/// Works until it is ended.
pub(super) async fn run(server: Server, clock: SharedClock) {
    let mut cluster =
        Cluster { server, clock, created: 0, named: BTreeSet::new(), evicted: BTreeSet::new(), calm_since: None };
    loop {
        cluster.look().await;
        let is_quiet = cluster
            .calm_since
            .is_some_and(|calm| cluster.clock.moment().since(calm) > RECOVERY + Duration::from_mins(5));
        cluster.clock.sleep(if is_quiet { SELDOM } else { EVERY }).await;
    }
}

impl Cluster {
    async fn look(&mut self) {
        let (jobs, pods) = (self.list(JOBS).await, self.list(PODS).await);
        self.judge(&jobs, &pods).await;
        for pod in &pods {
            self.keep(pod).await;
        }
        for set in self.list(REPLICA_SETS).await {
            self.replicate(&set, &pods).await;
        }
        let is_ready = |pod: &&Value| {
            pod["metadata"]["labels"]["app"] == "rs0"
                && pod["metadata"]["deletionTimestamp"].is_null()
                && pod["status"]["phase"] == "Running"
        };
        let ready = pods.iter().filter(is_ready).count();
        self.allow(ready.saturating_sub(2)).await;
    }

    /// Only pods that a job names are evicted, no more pods of a workload migrate than may, and no job outlives the faults for long.
    async fn judge(&mut self, jobs: &[Value], pods: &[Value]) {
        self.named.extend(jobs.iter().filter_map(|job| Some(job["spec"]["podRef"]["uid"].as_str()?.to_owned())));
        let is_target = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array();
            conditions.is_some_and(|all| all.iter().any(|condition| condition["type"] == "DisruptionTarget"))
        };
        let evicted = pods.iter().filter(is_target).filter_map(|pod| Some(pod["metadata"]["uid"].as_str()?.to_owned()));
        self.evicted.extend(evicted);
        if let Some(uid) = self.evicted.iter().find(|uid| !self.named.contains(*uid)) {
            let violation = format!("a pod was evicted that no job has named: {uid}");
            self.violated(violation).await;
        }
        if let Some((workload, pods)) = migrating(jobs, pods).into_iter().find(|(_, pods)| pods.len() > MIGRATING_MAX) {
            let violation = format!("more than {MIGRATING_MAX} pods of {workload} migrate: {pods:?}");
            self.violated(violation).await;
        }
        let now = self.clock.moment();
        let calm = format!("{CONFIG_MAPS}/{CALM}");
        if self.calm_since.is_none() && self.object(&calm).await.is_some() {
            self.calm_since = Some(now);
            let seen = json!({"evicted": self.evicted.len().to_string()});
            self.send(Method::PATCH, &calm, &json!({ "data": seen })).await;
        }
        let is_late = self.calm_since.is_some_and(|calm| now.since(calm) > RECOVERY);
        let is_live =
            |job: &&Value| !matches!(job["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Aborted"));
        if let Some(job) = jobs.iter().find(is_live).filter(|_| is_late) {
            let violation = format!("{} minutes after the last fault a job goes on: {job}", RECOVERY.as_secs() / 60);
            self.violated(violation).await;
        }
    }

    /// What a kubelet does: pods on nodes run, and those that are to go go.
    async fn keep(&self, pod: &Value) {
        let path = format!("{PODS}/{}", name_of(pod));
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            self.send(Method::DELETE, &path, &json!({"gracePeriodSeconds": 0})).await;
        } else if pod["spec"]["nodeName"].is_string() && pod["status"]["phase"] != "Running" {
            let ready = json!([{"type": "Ready", "status": "True"}]);
            let status = json!({"status": {"phase": "Running", "conditions": ready}});
            self.send(Method::PATCH, &format!("{path}/status"), &status).await;
        }
    }

    /// What the controller of ReplicaSets does.
    async fn replicate(&mut self, set: &Value, pods: &[Value]) {
        let name = name_of(set);
        let is_own =
            |pod: &&Value| pod["metadata"]["labels"]["app"] == *name && pod["metadata"]["deletionTimestamp"].is_null();
        let wanted = set["spec"]["replicas"].as_u64().unwrap_or(0);
        for _ in pods.iter().filter(is_own).count() as u64..wanted {
            self.created += 1;
            let mut pod = set["spec"]["template"].clone();
            pod["metadata"]["name"] = format!("{name}-{}", self.created).into();
            pod["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": set["metadata"]["uid"], "controller": true,
            }]);
            self.send(Method::POST, PODS, &pod).await;
        }
    }

    /// What the disruption controller does.
    async fn allow(&self, disruptions: usize) {
        let path = format!("{BUDGETS}/b");
        let Some(budget) = self.object(&path).await else { return };
        if budget["status"]["disruptionsAllowed"] != disruptions {
            let generation = budget["metadata"]["generation"].clone();
            let status = json!({
                "disruptionsAllowed": disruptions, "observedGeneration": generation, "currentHealthy": disruptions + 2,
                "desiredHealthy": 2, "expectedPods": 3, "disruptedPods": null,
            });
            self.send(Method::PATCH, &format!("{path}/status"), &json!({ "status": status })).await;
        }
    }

    async fn violated(&self, what: String) {
        self.send(Method::POST, CONFIG_MAPS, &json!({"metadata": {"name": VIOLATIONS}, "data": {"what": what}})).await;
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        let list = self.object(path).await.unwrap_or_default();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    async fn object(&self, path: &str) -> Option<Value> {
        let (code, object) = self.send(Method::GET, path, &Value::Null).await;
        (code == 200).then_some(object)
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        self.server.send(method, path, body).await
    }
}

/// The pods of each workload that jobs under way are about: users may make several for one.
fn migrating<'o>(jobs: &'o [Value], pods: &'o [Value]) -> BTreeMap<&'o str, BTreeSet<&'o str>> {
    let workload =
        |pod: &'o Value| Some((pod["metadata"]["uid"].as_str()?, pod["metadata"]["labels"]["app"].as_str()?));
    let workloads: BTreeMap<&str, &str> = pods.iter().filter_map(workload).collect();
    let mut migrating: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for job in jobs.iter().filter(|job| job["status"]["phase"] == "Running") {
        let uid = job["spec"]["podRef"]["uid"].as_str().unwrap_or_default();
        if let Some(workload) = workloads.get(uid) {
            migrating.entry(workload).or_default().insert(uid);
        }
    }
    migrating
}
