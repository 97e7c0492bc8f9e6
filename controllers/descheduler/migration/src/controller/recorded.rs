//! What the original did with jobs, and ours: the recordings in `../shared` beside the repository, where it has them.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

use jiff::SignedDuration;
use koord_config::{arguments, descheduler::MigrationControllerArgs};
use serde_json::{Map, Value, json};

use super::stage::{Stage, World};

/// Where our jobs end otherwise: the case, what ours comes to, and why.
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("bare-pod", "Failed/ReservationCreated/FailedCreateReservation", "no retry would help"),
    ("direct-pdb-timeout", "Failed/-/Timeout", "a condition names the budget"),
    ("direct-wrong-uid", "Failed/-/MissingPod", "another pod is not evicted in its place"),
    ("expired", "Failed/ReservationCreated/ReservationExpired", "the Reservation is deleted"),
    ("generated-restart", "Failed/PodBoundReservation/Timeout", "a new process goes on"),
    ("pending-pod-missing", "Failed/PodScheduled/MissingPod", "the Reservation is deleted"),
    ("pod-deleted-before-available", "Failed/ReservationScheduled/MissingPod", "the Reservation is deleted"),
    ("reservation-deleted-after-eviction", "Failed/PodBoundReservation/MissingReservation", "it is said at once"),
    ("restart-user-job", "Succeeded/Complete/-", "a new process goes on"),
    ("running-no-annotation", "Running/ReservationCreated/-", "the job knows its pod by its uid"),
    ("running-passed", "Running/ReservationCreated/-", "a new process goes on"),
    ("same-node", "Failed/ReservationCreated/ForbiddenMigratePod", "the Reservation is deleted"),
    ("scavenger", "-/-/-", "the user's own Reservation stays"),
];

/// A job of a strategy is named after its pod; a name has no slash.
const SLASH: &str = "~";

/// Puts names and times in place of placeholders.
fn filled(value: &Value, stage: &Stage) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| filled(item, stage)).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), filled(value, stage))).collect(),
        Value::String(text) => {
            if let Some(offset) = text.strip_prefix("$now") {
                let seconds: i64 = offset.trim_end_matches('s').parse().unwrap_or(0);
                let at = stage.now() + SignedDuration::from_secs(seconds);
                return koord_resource::Time::from(at).to_string().into();
            }
            let inner = |prefix: &str| text.strip_prefix(prefix)?.strip_suffix(')');
            if let Some(job) = inner("$reservation(") {
                return reservation_of(&stage.world.lock(), job).into();
            }
            if let Some(object) = inner("$uid(") {
                return uid_of(&stage.world.lock(), object).unwrap_or_else(|| text.clone()).into();
            }
            if let Some(job) = inner("$job(") {
                return job_of(job).into();
            }
            value.clone()
        }
        other => other.clone(),
    }
}

/// The name of a job, by its name or by the pod that it was made for.
fn job_of(text: &str) -> String {
    if text.contains('/') { format!("for {}", text.replace('/', SLASH)) } else { text.to_owned() }
}

fn job<'w>(world: &'w World, text: &str) -> Option<&'w Value> {
    world.objects.get(&("PodMigrationJob".to_owned(), String::new(), job_of(text)))
}

fn reservation_of(world: &World, text: &str) -> String {
    let Some(job) = job(world, text) else { return String::new() };
    let options = &job["spec"]["reservationOptions"];
    let names = [&options["reservationRef"]["name"], &options["template"]["metadata"]["name"], &job["metadata"]["uid"]];
    names.into_iter().find_map(Value::as_str).unwrap().to_owned()
}

/// The uid of the object that has a name now: `Kind/namespace/name`, or `Kind/name`.
fn uid_of(world: &World, text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (kind, namespace, name) = match parts.as_slice() {
        [kind, namespace, name] => (*kind, *namespace, *name),
        [kind, name] => (*kind, "", *name),
        _ => return None,
    };
    let object = world.objects.get(&(kind.to_owned(), namespace.to_owned(), name.to_owned()))?;
    object["metadata"]["uid"].as_str().map(str::to_owned)
}

fn at(object: &Value) -> (String, String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

fn act(stage: &mut Stage, step: &Value) {
    let step = &filled(step, stage);
    let seconds = |value: &Value| SignedDuration::from_secs_f64(value.as_f64().unwrap());
    let create = |stage: &mut Stage, object: &Value| {
        let mut object = object.clone();
        if object["metadata"]["namespace"].is_null()
            && !["Node", "PodMigrationJob", "Reservation"].contains(&object["kind"].as_str().unwrap())
        {
            object["metadata"]["namespace"] = json!("default");
        }
        let (name, status) = (at(&object), object.as_object_mut().unwrap().remove("status"));
        stage.create(object);
        if let Some(status) = status {
            stage.world.lock().patch(&name, &json!({ "status": status }));
        }
    };
    match step.as_object().unwrap().iter().next().unwrap() {
        (word, Value::Array(objects)) if word == "create" => objects.iter().for_each(|object| create(stage, object)),
        (word, object) if word == "create" => create(stage, object),
        (word, patch) if word == "patch" => {
            let (mut body, name) = (patch.clone(), at(patch));
            body["metadata"].as_object_mut().unwrap().retain(|field, _| field == "labels" || field == "annotations");
            let answer = stage.world.lock().patch(&name, &body);
            assert_eq!(answer.code, 200, "{name:?} {}", answer.body);
        }
        (word, object) if word == "delete" => {
            let answer = stage.world.lock().delete(&at(object), &json!({"gracePeriodSeconds": 0}), "step");
            assert_eq!(answer.code, 200, "{object} {}", answer.body);
        }
        (word, span) if word == "wait" => stage.pass(seconds(span)),
        (word, _) if word == "settle" => stage.pass(SignedDuration::from_secs(3)),
        (word, what) if word == "descheduler" => match what.as_str().unwrap() {
            "stop" => stage.stop(),
            "start" | "restart" => stage.start(),
            other => panic!("{other}"),
        },
        (word, wanted) if word == "until" => stage.until(|world| is_reached(world, wanted)),
        _ => create(stage, step),
    }
    stage.settle();
}

fn is_reached(world: &World, wanted: &Value) -> bool {
    let object = if let Some(name) = wanted["job"].as_str() {
        job(world, name)
    } else if let Some(name) = wanted["reservation"].as_str() {
        let name = name.strip_prefix("of ").map_or_else(|| name.to_owned(), |job| reservation_of(world, job));
        world.objects.get(&("Reservation".to_owned(), String::new(), name))
    } else {
        let (namespace, name) = wanted["pod"].as_str().unwrap().split_once('/').unwrap();
        world.objects.get(&("Pod".to_owned(), namespace.to_owned(), name.to_owned()))
    };
    let Some(object) = object else { return false };
    let fields =
        wanted.as_object().unwrap().iter().filter(|(key, _)| !["job", "reservation", "pod"].contains(&key.as_str()));
    fields.into_iter().all(|(path, value)| object.pointer(&format!("/{}", path.replace('.', "/"))) == Some(value))
}

fn play(case: &Value) -> Stage {
    let no_args = json!({});
    let plugins = case["config"]["profiles"].as_array().into_iter().flatten();
    let plugins = plugins.flat_map(|profile| profile["pluginConfig"].as_array().into_iter().flatten());
    let args = plugins.filter(|plugin| plugin["name"] == "MigrationController").find_map(|plugin| plugin.get("args"));
    let args: MigrationControllerArgs = arguments(args.unwrap_or(&no_args)).unwrap();
    let ttl = args.default_job_ttl.to_string();
    let mut stage = Stage::new(args, case["featureGates"]["DisablePVCReservation"] == true);
    for object in case["given"].as_array().unwrap() {
        act(&mut stage, object);
    }
    stage.start();
    stage.settle();
    // What a strategy made of it.
    let generated = case["recorded"]["jobs"].as_object().into_iter().flat_map(Map::keys);
    for pod in generated.filter_map(|job| job.strip_prefix("for ")) {
        let (namespace, name) = pod.split_once('/').unwrap();
        let uid = format!("$uid(Pod/{pod})");
        stage.create(json!({
            "kind": "PodMigrationJob",
            "metadata": {"name": job_of(pod), "annotations": {
                "koordinator.sh/evict-reason": "", "koordinator.sh/evict-trigger": "RemovePodsViolatingNodeTaints",
                "koordinator.sh/job-created-by": "an earlier process",
            }},
            "spec": {"mode": "ReservationFirst", "ttl": ttl, "podRef": {"namespace": namespace, "name": name, "uid": uid}},
        }));
        stage.settle();
    }
    for step in case["steps"].as_array().into_iter().flatten() {
        act(&mut stage, step);
    }
    stage.pass(SignedDuration::from_secs_f64(case["quiet"].as_f64().unwrap_or(2.5)));
    stage
}

/// What is compared: courses and outcomes of jobs, Reservations, pods.
fn outcome(stage: &Stage) -> Value {
    let world = stage.world.lock();
    let mut jobs = Map::new();
    for (uid, (history, job)) in &world.courses {
        let name = uid.trim_start_matches("$uid(PodMigrationJob ").trim_end_matches(')');
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten().map(|condition| {
            let mut condition = condition.clone();
            let fields = condition.as_object_mut().unwrap();
            fields.retain(|field, _| ["status", "reason", "message"].contains(&field.as_str()));
            let type_ = fields.remove("type");
            drop(type_);
            condition
        });
        let types = job["status"]["conditions"].as_array().into_iter().flatten();
        let types = types.map(|condition| condition["type"].as_str().unwrap().to_owned());
        let conditions: Map<String, Value> = types.zip(conditions).collect();
        let mut status = job["status"].clone();
        if !status.is_object() {
            status = json!({});
        }
        status["conditions"] = conditions.into();
        jobs.insert(name.to_owned(), json!({"history": history, "spec": job["spec"], "status": status}));
    }
    let mut reservations = Map::new();
    let of_world =
        world.objects.iter().filter(|((kind, _, _), _)| kind == "Reservation").map(|(_, object)| (object, false));
    let deleted = world.deleted.iter().filter(|object| object["kind"] == "Reservation").map(|object| (object, true));
    for (reservation, is_deleted) in of_world.chain(deleted) {
        let name = reservation["metadata"]["name"].as_str().unwrap();
        let is_generated = reservation["metadata"]["ownerReferences"].is_array();
        let name = name
            .strip_prefix("$uid(")
            .map_or_else(|| name.to_owned(), |job| format!("of {}", job.trim_end_matches(')')));
        let mut shown = json!({});
        if is_deleted {
            shown["deleted"] = true.into();
        }
        if is_generated {
            shown["generated"] = true.into();
            shown["spec"] = reservation["spec"].clone();
        }
        reservations.insert(name, shown);
    }
    let mut pods = Map::new();
    let there = world.objects.iter().filter(|((kind, _, _), _)| kind == "Pod").map(|(_, object)| (object, false));
    let gone = world.deleted.iter().filter(|object| object["kind"] == "Pod").map(|object| (object, true));
    for (pod, is_gone) in there.chain(gone) {
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        let mut shown = json!({});
        if is_gone {
            shown["gone"] = true.into();
        }
        if let Some(grace) = pod["metadata"].get("deletionGracePeriodSeconds").filter(|_| !is_gone) {
            shown["terminating"] = true.into();
            shown["gracePeriodSeconds"] = grace.clone();
        }
        if let Some(way) = world.ways.get(uid) {
            shown["by"] = (*way).into();
        }
        if let Some(annotation) = pod["metadata"]["annotations"]["scheduling.koordinator.sh/soft-eviction"].as_str() {
            shown["annotations"]["scheduling.koordinator.sh/soft-eviction"] = timeless(annotation).into();
        }
        pods.insert(uid.trim_start_matches("$uid(Pod/").trim_end_matches(')').to_owned(), shown);
    }
    let outcome = json!({"jobs": jobs, "reservations": reservations, "pods": pods}).to_string();
    comparable(serde_json::from_str(&outcome.replace(SLASH, "/")).unwrap())
}

fn timeless(annotation: &str) -> String {
    let (before, after) = annotation.split_once(r#""timestamp":""#).unwrap();
    let (_, after) = after.split_once('"').unwrap();
    format!(r#"{before}"timestamp":"$time"{after}"#)
}

fn recorded(case: &Value) -> Value {
    let recorded = &case["recorded"];
    comparable(json!({"jobs": recorded["jobs"], "reservations": recorded["reservations"], "pods": recorded["pods"]}))
}

/// The same without what another part of the program does, what the API server fills in, and what differs every time.
fn comparable(mut outcome: Value) -> Value {
    fn clean(value: &mut Value) {
        match value {
            Value::Object(members) => {
                for field in [
                    "creationTimestamp",
                    "resourceVersion",
                    "dnsPolicy",
                    "enableServiceLinks",
                    "preemptionPolicy",
                    "priority",
                    "restartPolicy",
                    "securityContext",
                    "tolerations",
                    "imagePullPolicy",
                    "terminationMessagePath",
                    "terminationMessagePolicy",
                    "defaultMode",
                    "expires",
                    "resources",
                    "volumeClaimTemplate",
                ] {
                    members.remove(field);
                }
                if let Some(order) = members.get_mut("scheduling.koordinator.sh/reservation-order") {
                    *order = "$millis".into();
                }
                members.values_mut().for_each(clean);
            }
            Value::Array(items) => items.iter_mut().for_each(clean),
            _ => {}
        }
    }
    for job in outcome["jobs"].as_object_mut().into_iter().flat_map(|jobs| jobs.values_mut()) {
        job.as_object_mut().unwrap().retain(|field, _| ["history", "spec", "status"].contains(&field.as_str()));
        let spec = job["spec"].as_object_mut().unwrap();
        spec.retain(|_, value| *value != json!(false));
        // Arbitration writes it so.
        if let Some(ttl) = spec.get_mut("ttl") {
            *ttl = ttl.as_str().unwrap().parse::<koord_resource::Duration>().unwrap().to_string().into();
        }
    }
    for reservation in outcome["reservations"].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
        reservation
            .as_object_mut()
            .unwrap()
            .retain(|field, _| ["deleted", "generated", "spec"].contains(&field.as_str()));
    }
    clean(&mut outcome);
    outcome
}

fn remove(value: &mut Value, path: &[&str]) {
    match path {
        [] => {}
        [last] => drop(value.as_object_mut().and_then(|members| members.remove(*last))),
        [first, rest @ ..] => {
            if let Some(member) = value.get_mut(*first) {
                remove(member, rest);
            }
        }
    }
}

fn differences(path: &str, recorded: &Value, ours: &Value, found: &mut Vec<String>) {
    if let (Value::Object(left), Value::Object(right)) = (recorded, ours) {
        for key in left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))) {
            let nothing = Value::Null;
            differences(
                &format!("{path}/{key}"),
                left.get(key).unwrap_or(&nothing),
                right.get(key).unwrap_or(&nothing),
                found,
            );
        }
    } else if recorded != ours {
        found.push(format!("{path}: recorded {recorded}, ours {ours}"));
    }
}

#[test]
fn jobs_come_to_what_the_original_brings_them_to() {
    let shared = env::var_os("KOORD_SHARED")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared")), PathBuf::from);
    let Ok(cases) = fs::read_dir(shared.join("corpus/descheduler/cases/migration")) else {
        return programs::skipped("PodMigrationJobs", "there are no recordings of the original beside the repository");
    };
    let known: BTreeMap<&str, &str> = DIFFERENT.iter().map(|(case, ours, _)| (*case, *ours)).collect();
    let mut wrong = Vec::new();
    for path in cases.map(|case| case.unwrap().path()) {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let case: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let stage = play(&case);
        let twice = name != "direct-two-jobs-one-pod" && stage.world.lock().evictions.values().any(|times| *times > 1);
        assert!(!twice, "{name}: a pod is evicted twice");
        let (mut recorded, mut ours) = (recorded(&case), outcome(&stage));
        for path in ["ignore", "unstable"].iter().flat_map(|word| case[*word].as_array().into_iter().flatten()) {
            let path: Vec<&str> = path.as_array().unwrap().iter().filter_map(Value::as_str).collect();
            remove(&mut recorded, &path);
            remove(&mut ours, &path);
        }
        let mut found = Vec::new();
        differences("", &recorded, &ours, &mut found);
        match known.get(&*name) {
            None if !found.is_empty() => wrong.push(format!("{name}\n    {}", found.join("\n    "))),
            Some(_) if found.is_empty() => wrong.push(format!("{name} does not differ any more")),
            Some(expected) => {
                let last = ours["jobs"]
                    .as_object()
                    .unwrap()
                    .values()
                    .next()
                    .and_then(|job| job["history"].as_array()?.last()?.as_str());
                if last != Some(expected) {
                    wrong.push(format!("{name}: ends as {last:?} instead of {expected}"));
                }
            }
            None => {}
        }
    }
    wrong.sort();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
