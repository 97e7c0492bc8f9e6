//! A cluster as the original's descheduler would have left it, had it been stopped while it worked on a job: made of the recording of the job's
//! whole life. What a job says at each of its steps, and which objects there are then, follows from its history and its end.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Map, Value, json};

use crate::{
    play::items,
    world::{World, text},
};

const SUCCESSOR: &str = "scheduling.koordinator.sh/reservation-allocated";

/// A moment of a recording: after this many entries of the history of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment<'c> {
    /// When the recording ended.
    End,
    /// The job of this name had come to this entry.
    Entry(&'c str, usize),
}

/// What is recorded of a job, as it was at a moment.
struct Recorded<'c> {
    name: &'c str,
    job: &'c Value,
    /// `phase/status/reason` of every step so far.
    history: Vec<&'c str>,
    is_end: bool,
}

impl<'c> Recorded<'c> {
    fn at(name: &'c str, job: &'c Value, moment: Moment<'c>) -> Self {
        let all: Vec<&str> = job["history"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match moment {
            Moment::Entry(of, last) if of == name => {
                Self { name, job, is_end: last + 1 == all.len(), history: all[..=last].to_vec() }
            }
            Moment::End | Moment::Entry(..) => Self { name, job, is_end: true, history: all },
        }
    }

    /// Whether the job has come to a status, or to a status with a reason.
    fn has(&self, wanted: &str) -> bool {
        self.history.iter().any(|entry| {
            let (_, rest) = entry.split_once('/').unwrap_or_default();
            rest == wanted || rest.split('/').next() == Some(wanted)
        })
    }

    fn status(&self, now: &str) -> Value {
        let mut status = if self.is_end { self.job["status"].clone() } else { self.status_so_far() };
        let conditions = status["conditions"].as_object().cloned().unwrap_or_default();
        let listed: Vec<Value> = conditions
            .into_iter()
            .map(|(kind, mut condition)| {
                condition["type"] = kind.into();
                condition["lastProbeTime"] = now.into();
                condition["lastTransitionTime"] = now.into();
                condition
            })
            .collect();
        status["conditions"] = listed.into();
        status
    }

    fn status_so_far(&self) -> Value {
        let mut status = json!({});
        let parts = self.history.last().into_iter().flat_map(|entry| entry.splitn(3, '/'));
        for (field, part) in ["phase", "status", "reason"].into_iter().zip(parts).filter(|(_, part)| *part != "-") {
            status[field] = part.into();
        }
        for (kind, condition) in self.job["status"]["conditions"].as_object().into_iter().flatten() {
            let condition = match kind.as_str() {
                kind if !self.has(kind) => continue,
                "Eviction" if !self.has("Eviction/EvictComplete") => json!({"status": "False", "reason": "Evicting"}),
                "PodBoundReservation" if !self.has("BoundPodReady") => {
                    json!({"status": "False", "reason": "WaitForPodBindReservation"})
                }
                _ => condition.clone(),
            };
            status["conditions"][kind.as_str()] = condition;
        }
        if self.has("ReservationScheduled") {
            status["nodeName"] = self.job["status"]["nodeName"].clone();
        }
        status
    }

    fn is_reserved(&self) -> bool {
        self.is_end || self.has("ReservationCreated")
    }

    /// The original evicts first, and says so afterwards.
    fn is_evicted(&self) -> bool {
        self.has("Eviction") || self.has("Complete")
    }
}

/// The cluster of a case at a moment.
pub(crate) async fn left(case: &Value, moment: Moment<'_>) -> Result<World> {
    let mut world = World::new().await?;
    for given in case["given"].as_array().into_iter().flatten() {
        if given["delete"].is_object() {
            world.delete(&given["delete"]).await?;
        } else if given["wait"].is_null() {
            world.create(given).await?;
        }
    }
    let recorded: Vec<Recorded<'_>> = case["recorded"]["jobs"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, job)| job["deleted"].is_null() && job["deletedByStep"].is_null())
        .map(|(name, job)| Recorded::at(name, job, moment))
        .collect();
    let mut are_written = false;
    for step in case["steps"].as_array().into_iter().flatten() {
        if let Some(wanted) = step["until"].as_object().filter(|_| moment != Moment::End)
            && !recorded.iter().all(|job| is_so(wanted, job))
        {
            break;
        }
        let needs_jobs = step.to_string().contains("$reservation(") || step.to_string().contains("$job(");
        if needs_jobs && !are_written {
            write_jobs(&mut world, case, &recorded).await?;
            are_written = true;
        }
        for (action, objects) in step.as_object().into_iter().flatten() {
            for object in items(objects) {
                // What steps do to what the original had deleted, or has not made here, is without an object.
                let done = match action.as_str() {
                    "create" => world.create(object).await,
                    "patch" => world.patch(object).await,
                    "delete" => world.delete(object).await,
                    _ => Ok(()),
                };
                ensure!(done.is_ok() || needs_jobs, "{step}: {done:?}");
            }
        }
    }
    if !are_written {
        write_jobs(&mut world, case, &recorded).await?;
    }
    evict(&mut world, case, &recorded).await?;
    Ok(world)
}

/// Whether a job has what a step waited for.
fn is_so(wanted: &Map<String, Value>, job: &Recorded<'_>) -> bool {
    let of_job =
        wanted.get("job").and_then(Value::as_str).is_some_and(|name| name == job.name || job.name.ends_with(name));
    if wanted.contains_key("reservation") {
        return job.has("ReservationCreated");
    }
    let Some(status) = wanted.get("status.status").and_then(Value::as_str).filter(|_| of_job) else {
        return !of_job || job.is_end;
    };
    job.has(status)
}

/// Brings jobs into the state of the moment, with the Reservations that they had.
async fn write_jobs(world: &mut World, case: &Value, recorded: &[Recorded<'_>]) -> Result<()> {
    let now = world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for job in recorded {
        let mut name = job.name.to_owned();
        if let Some(pod) = job.name.strip_prefix("for ") {
            name = pod.replace(['/', '#'], "-");
            let (namespace, pod) = pod.split('#').next().and_then(|pod| pod.split_once('/')).context("no pod")?;
            let reference = json!({"namespace": namespace, "name": pod});
            let spec = json!({"podRef": reference, "mode": job.job["spec"]["mode"], "ttl": job.job["spec"]["ttl"]});
            world.create(&of_kind("PodMigrationJob", &name, &spec)).await?;
        }
        let path = World::path("PodMigrationJob", "", &name)?;
        let (code, stored) = world.server.send(Method::GET, &path, &Value::Null).await;
        ensure!(code == 200, "{path}: {code}");
        let uid = text(&stored, "/metadata/uid").to_owned();
        let mut known = vec![(format!("$uid(PodMigrationJob {})", job.name), uid.clone())];
        let label = format!("of PodMigrationJob {}", job.name);
        let reservation = &case["recorded"]["reservations"][&label];
        if job.is_reserved() && reservation["spec"].is_object() && reservation["deleted"].is_null() {
            let mut object = of_kind("Reservation", &uid, &reservation["spec"]);
            object["metadata"]["labels"] = reservation["labels"].clone();
            world.create(&with_known(&object, &known, &now)).await?;
            let (_, made) = world.server.send(Method::GET, &World::path("Reservation", "", &uid)?, &Value::Null).await;
            known.push((format!("$uid(Reservation {label})"), text(&made, "/metadata/uid").to_owned()));
        }
        let mut spec = job.job["spec"].clone();
        if !job.is_reserved() {
            spec.as_object_mut().context("no spec")?.remove("reservationOptions");
        }
        let is_passed = job.is_end || job.history.last().is_some_and(|entry| !entry.starts_with("-/"));
        let annotations = if is_passed { job.job["annotations"].clone() } else { json!({}) };
        let patch = json!({"kind": "PodMigrationJob", "metadata": {"name": name, "annotations": annotations}, "spec": spec, "status": job.status(&now)});
        world.patch(&with_known(&patch, &known, &now)).await?;
    }
    Ok(())
}

fn of_kind(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Replaces what stands in recordings for what differs every time.
fn with_known(value: &Value, known: &[(String, String)], now: &str) -> Value {
    match value {
        Value::String(text) => {
            let mut text = text.replace("$millis", "1790000000000").replace("$uuid", "00000000").replace("$time", now);
            for (placeholder, uid) in known {
                text = text.replace(placeholder, uid);
            }
            text.into()
        }
        Value::Array(items) => items.iter().map(|item| with_known(item, known, now)).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, member)| (key.clone(), with_known(member, known, now))).collect()
        }
        other => other.clone(),
    }
}

/// Removes the pods that were evicted by then, and evicts those that were about to end.
async fn evict(world: &mut World, case: &Value, recorded: &[Recorded<'_>]) -> Result<()> {
    let evicted = |name: &str| {
        recorded.iter().any(|job| {
            let of = |path| text(job.job, path);
            format!("{}/{}", of("/spec/podRef/namespace"), of("/spec/podRef/name")) == name
                && (job.is_end || job.is_evicted())
        })
    };
    for (name, pod) in case["recorded"]["pods"].as_object().into_iter().flatten() {
        let is_over = pod["gone"] == true || pod["terminating"] == true;
        if !is_over || name.contains('#') || !evicted(name) {
            continue;
        }
        let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
        let grace = if pod["terminating"] == true { pod["gracePeriodSeconds"].as_i64().unwrap_or(30) } else { 0 };
        let metadata = json!({"namespace": namespace, "name": name});
        world.delete(&json!({"kind": "Pod", "metadata": metadata, "gracePeriodSeconds": grace})).await?;
    }
    Ok(())
}

/// Does once what a scheduler, a controller of workloads and a kubelet do: Reservations get a node, successors use them, pods that are to end do.
pub(crate) async fn cluster_goes_on(world: &mut World) -> Result<()> {
    let (nodes, jobs, pods) =
        (world.list("Node").await?, world.list("PodMigrationJob").await?, world.list("Pod").await?);
    for pod in pods.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_string()) {
        let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
        world.delete(&json!({"kind": "Pod", "metadata": {"namespace": namespace, "name": name}})).await?;
    }
    for reservation in world.list("Reservation").await? {
        let name = text(&reservation, "/metadata/name");
        let of = |job: &&Value| text(job, "/spec/reservationOptions/reservationRef/name") == name;
        let Some(job) = jobs.iter().find(of) else { continue };
        let moved = pods.iter().find(|pod| pod["metadata"]["uid"] == job["spec"]["podRef"]["uid"]);
        match text(&reservation, "/status/phase") {
            "" | "Pending" => {
                let old = reservation["spec"]["template"]["spec"]["affinity"].to_string();
                let free = nodes.iter().map(|node| text(node, "/metadata/name"));
                let Some(node) = free.into_iter().find(|node| !old.contains(&format!("\"{node}\""))) else { continue };
                world.patch(&status(name, &json!({"phase": "Available", "nodeName": node}), world)).await?;
            }
            "Available" if moved.is_none() && reservation["status"]["currentOwners"].is_null() => {
                succeed(world, &reservation).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A successor that is ready uses a Reservation.
async fn succeed(world: &mut World, reservation: &Value) -> Result<()> {
    let (name, node) = (text(reservation, "/metadata/name"), text(reservation, "/status/nodeName"));
    let template = &reservation["spec"]["template"];
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("next-{}", &name[..8.min(name.len())]), "namespace": "default", "labels": template["metadata"]["labels"],
            "ownerReferences": template["metadata"]["ownerReferences"],
        },
        "spec": {"nodeName": node, "schedulerName": "koord-scheduler", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    pod["metadata"]["annotations"] =
        json!({SUCCESSOR: json!({"name": name, "uid": reservation["metadata"]["uid"]}).to_string()});
    world.create(&pod).await?;
    let path = World::path("Pod", "default", text(&pod, "/metadata/name"))?;
    let (_, made) = world.server.send(Method::GET, &path, &Value::Null).await;
    let owner = json!({"namespace": "default", "name": made["metadata"]["name"], "uid": made["metadata"]["uid"]});
    let succeeded = json!({"phase": "Succeeded", "nodeName": node, "currentOwners": [owner]});
    let patch = status(name, &succeeded, world);
    world.patch(&patch).await
}

/// The status of a Reservation that has a node.
fn status(name: &str, status: &Value, world: &World) -> Value {
    let now = world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "lastProbeTime": now, "lastTransitionTime": now});
    let mut status = status.clone();
    status["conditions"] = json!([condition("Scheduled", "Scheduled"), condition("Ready", "Available")]);
    json!({"kind": "Reservation", "metadata": {"name": name}, "status": status})
}
