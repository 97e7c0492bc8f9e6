//! What became of everything, in the form of a recording.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::world::{World, text};

/// What became of everything.
pub(crate) async fn observe(case: &Value, world: &World) -> Result<Value> {
    world.clock.sleep(std::time::Duration::from_millis(100)).await;
    let mut uids = world.uids.clone();
    let jobs = names_of_jobs(world, &mut uids);
    let reservations = names_of_reservations(world, &mut uids);
    let (pods, order) = pods(world);
    let mut seen = json!({
        "pods": pods, "jobs": of_jobs(world, &jobs), "reservations": of_reservations(world, &reservations), "nodes": nodes(world),
        "events": [],
    });
    if case["order"] == true {
        seen["order"] = json!(order);
        let made: Vec<&String> = ordered(world, "PodMigrationJob")
            .into_iter()
            .filter(|uid| !world.created.contains_key(uid))
            .filter_map(|uid| jobs.get(&uid))
            .collect();
        seen["jobOrder"] = json!(made);
    }
    Ok(normalised(&seen, &uids))
}

fn log(world: &World, kind: &str) -> Vec<(String, Value)> {
    world.changes.get(kind).map(|changes| changes.lock().clone()).unwrap_or_default()
}

/// The uids of a kind, in the order in which they came.
fn ordered(world: &World, kind: &str) -> Vec<String> {
    let mut seen = Vec::new();
    for (_, object) in log(world, kind) {
        let uid = text(&object, "/metadata/uid").to_owned();
        if !seen.contains(&uid) {
            seen.push(uid);
        }
    }
    seen
}

/// The last state of each object of a kind, by uid.
fn last(world: &World, kind: &str) -> BTreeMap<String, (String, Value)> {
    log(world, kind)
        .into_iter()
        .map(|(what, object)| (text(&object, "/metadata/uid").to_owned(), (what, object)))
        .collect()
}

fn names_of_jobs(world: &World, uids: &mut BTreeMap<String, String>) -> BTreeMap<String, String> {
    let (mut names, mut counts) = (BTreeMap::<String, String>::new(), BTreeMap::<String, usize>::new());
    for (_, job) in log(world, "PodMigrationJob") {
        let uid = text(&job, "/metadata/uid").to_owned();
        if names.contains_key(&uid) {
            continue;
        }
        let own = text(&job, "/metadata/name").to_owned();
        let name = if world.created.contains_key(&uid) {
            own
        } else {
            let of = |path| text(&job, path);
            let base = format!("for {}/{}", of("/spec/podRef/namespace"), of("/spec/podRef/name"));
            let count = counts.entry(base.clone()).or_default();
            *count += 1;
            let name = if *count == 1 { base } else { format!("{base}#{count}") };
            uids.insert(own, format!("PodMigrationJob {name}"));
            name
        };
        uids.insert(uid.clone(), format!("PodMigrationJob {name}"));
        names.insert(uid, name);
    }
    names
}

fn names_of_reservations(world: &World, uids: &mut BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::<String, String>::new();
    for (_, reservation) in log(world, "Reservation") {
        let own = text(&reservation, "/metadata/name");
        let name = uids.get(own).map_or_else(|| own.to_owned(), |job| format!("of {job}"));
        names.entry(text(&reservation, "/metadata/uid").to_owned()).or_insert(name);
    }
    for (uid, name) in &names {
        uids.entry(uid.clone()).or_insert_with(|| format!("Reservation {name}"));
    }
    names
}

fn pods(world: &World) -> (Map<String, Value>, Vec<String>) {
    let (mut evicted, mut order) = (Vec::new(), Vec::<String>::new());
    for (what, pod) in log(world, "Pod") {
        let uid = text(&pod, "/metadata/uid").to_owned();
        let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
        let is_evicted = |condition: &Value| {
            condition["type"] == "DisruptionTarget" && condition["reason"] == "EvictionByEvictionAPI"
        };
        if conditions.into_iter().flatten().any(is_evicted) {
            evicted.push(uid.clone());
        }
        let goes = what == "DELETED" || !pod["metadata"]["deletionTimestamp"].is_null();
        let given = world.created.get(&uid);
        let is_given = given.is_some_and(|given| given["metadata"]["deletionTimestamp"].is_null());
        if goes && is_given && !world.deleted.contains(&uid) && !order.contains(&uid) {
            order.push(uid);
        }
    }
    let mut pods = Map::new();
    for (uid, (what, pod)) in last(world, "Pod") {
        let Some(name) = world.uids.get(&uid).and_then(|name| name.strip_prefix("Pod/")) else { continue };
        let mut seen = Map::new();
        let is_terminating = !pod["metadata"]["deletionTimestamp"].is_null();
        if what == "DELETED" {
            seen.insert("gone".into(), true.into());
        } else if is_terminating {
            seen.insert("terminating".into(), true.into());
            seen.insert("gracePeriodSeconds".into(), pod["metadata"]["deletionGracePeriodSeconds"].clone());
        }
        if what == "DELETED" || is_terminating {
            let by = match (world.deleted.contains(&uid), evicted.contains(&uid)) {
                (true, false) => "step",
                (_, true) => "eviction",
                (false, false) => "delete",
            };
            seen.insert("by".into(), by.into());
        }
        for field in ["annotations", "labels"] {
            insert(&mut seen, field, changed(world, &pod, field));
        }
        pods.insert(name.to_owned(), seen.into());
    }
    let order = order.iter().filter_map(|uid| Some(world.uids.get(uid)?.strip_prefix("Pod/")?.to_owned())).collect();
    (pods, order)
}

/// What of a map of the metadata is otherwise than the case has made it.
fn changed(world: &World, object: &Value, field: &str) -> Map<String, Value> {
    let given = world.created.get(text(object, "/metadata/uid")).map(|given| &given["metadata"][field]);
    let given = given.and_then(Value::as_object).cloned().unwrap_or_default();
    let now = object["metadata"][field].as_object().cloned().unwrap_or_default();
    let keys: std::collections::BTreeSet<&String> = given.keys().chain(now.keys()).collect();
    let differs = |key: &&&String| given.get(**key) != now.get(**key);
    keys.iter().filter(differs).map(|key| ((*key).clone(), now.get(*key).cloned().unwrap_or_default())).collect()
}

fn insert(seen: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    let value = value.into();
    let is_empty = match &value {
        Value::Null | Value::Bool(false) => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if !is_empty {
        seen.insert(key.to_owned(), value);
    }
}

fn of_jobs(world: &World, names: &BTreeMap<String, String>) -> Map<String, Value> {
    let mut histories = BTreeMap::<String, Vec<String>>::new();
    for (_, job) in log(world, "PodMigrationJob") {
        let part = |field: &str| match text(&job, &format!("/status/{field}")) {
            "" => "-".to_owned(),
            part => part.to_owned(),
        };
        let state = format!("{}/{}/{}", part("phase"), part("status"), part("reason"));
        let history = histories.entry(text(&job, "/metadata/uid").to_owned()).or_default();
        if history.last() != Some(&state) {
            history.push(state);
        }
    }
    let mut jobs = Map::new();
    for (uid, (what, job)) in last(world, "PodMigrationJob") {
        let Some(name) = names.get(&uid) else { continue };
        let is_given = world.created.contains_key(&uid);
        let mut status = Map::new();
        for field in ["phase", "status", "reason", "message", "nodeName"] {
            insert(&mut status, field, job["status"][field].clone());
        }
        if let Some(pod) = job.pointer("/status/podRef") {
            let of = |field: &str| Some((field.to_owned(), pod.get(field)?.clone()));
            status.insert(
                "podRef".into(),
                ["namespace", "name", "uid"].into_iter().filter_map(of).collect::<Map<_, _>>().into(),
            );
        }
        let conditions = job.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let conditions = conditions.map(|condition| {
            let mut shown = Map::new();
            for field in ["status", "reason", "message"] {
                insert(&mut shown, field, condition[field].clone());
            }
            (text(condition, "/type").to_owned(), Value::from(shown))
        });
        insert(&mut status, "conditions", conditions.collect::<Map<_, _>>());
        let annotations = if is_given {
            changed(world, &job, "annotations")
        } else {
            job["metadata"]["annotations"].as_object().cloned().unwrap_or_default()
        };
        let mut seen = Map::new();
        insert(&mut seen, "deleted", what == "DELETED");
        insert(&mut seen, "generated", !is_given);
        insert(&mut seen, "annotations", annotations);
        insert(&mut seen, "labels", changed(world, &job, "labels"));
        insert(&mut seen, "spec", stripped(&job["spec"]));
        insert(&mut seen, "history", histories.get(&uid).cloned().unwrap_or_default());
        insert(&mut seen, "status", status);
        insert(&mut seen, "deletedByStep", what == "DELETED" && world.deleted.contains(&uid));
        jobs.insert(name.clone(), seen.into());
    }
    jobs
}

fn of_reservations(world: &World, names: &BTreeMap<String, String>) -> Map<String, Value> {
    let mut reservations = Map::new();
    for (uid, (what, reservation)) in last(world, "Reservation") {
        let Some(name) = names.get(&uid) else { continue };
        let mut seen = Map::new();
        insert(&mut seen, "deleted", what == "DELETED");
        if world.created.contains_key(&uid) {
            insert(&mut seen, "labels", without_millis(changed(world, &reservation, "labels")));
            insert(&mut seen, "annotations", changed(world, &reservation, "annotations"));
        } else {
            let labels = reservation["metadata"]["labels"].as_object().cloned().unwrap_or_default();
            seen.insert("generated".into(), true.into());
            insert(&mut seen, "labels", without_millis(labels));
            insert(&mut seen, "annotations", reservation["metadata"]["annotations"].clone());
            insert(&mut seen, "spec", stripped(&reservation["spec"]));
        }
        reservations.insert(name.clone(), seen.into());
    }
    reservations
}

fn nodes(world: &World) -> Map<String, Value> {
    let mut nodes = Map::new();
    for (uid, (what, node)) in last(world, "Node") {
        let Some(given) = world.created.get(&uid).filter(|_| what != "DELETED") else { continue };
        let mut seen = Map::new();
        let is_cordoned = |node: &Value| node.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
        if is_cordoned(given) != is_cordoned(&node) {
            seen.insert("unschedulable".into(), is_cordoned(&node).into());
        }
        for field in ["annotations", "labels"] {
            insert(&mut seen, field, changed(world, &node, field));
        }
        if !seen.is_empty() {
            nodes.insert(text(&node, "/metadata/name").to_owned(), seen.into());
        }
    }
    nodes
}

const ORDER: &str = "scheduling.koordinator.sh/reservation-order";

fn without_millis(mut labels: Map<String, Value>) -> Map<String, Value> {
    if let Some(order) = labels.get_mut(ORDER)
        && order.as_str().is_some_and(|text| text.len() == 13 && text.bytes().all(|byte| byte.is_ascii_digit()))
    {
        *order = "$millis".into();
    }
    labels
}

/// A spec without what an API server fills in.
fn stripped(spec: &Value) -> Value {
    match spec {
        Value::Object(members) => {
            let mut stripped: Map<String, Value> =
                members.iter().map(|(key, value)| (key.clone(), self::stripped(value))).collect();
            if let Some(metadata) = stripped.get_mut("metadata").and_then(Value::as_object_mut) {
                const FILLED: [&str; 6] =
                    ["resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink", "generateName"];
                metadata.retain(|key, _| !FILLED.contains(&key.as_str()));
                if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
                    *labels = without_millis(std::mem::take(labels));
                }
            }
            stripped.into()
        }
        Value::Array(items) => items.iter().map(stripped).collect(),
        other => other.clone(),
    }
}

/// The same with names instead of what differs every time: uids, times.
fn normalised(value: &Value, uids: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => normalised_text(text, uids).into(),
        Value::Array(items) => items.iter().map(|item| normalised(item, uids)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (normalised_text(key, uids), normalised(value, uids)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

fn normalised_text(text: &str, uids: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for (uid, name) in uids.iter().filter(|(uid, _)| !uid.is_empty()) {
        if text.contains(uid.as_str()) {
            text = text.replace(uid.as_str(), &format!("$uid({name})"));
        }
    }
    let times = |text: String| replaced(&text, "dddd-dd-ddTdd:dd:ddZ", "$time");
    times(replaced(&text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "$uuid"))
}

/// The text with every part that has a form replaced: `d` is a digit, `x` a hexadecimal digit, everything else itself.
fn replaced(text: &str, form: &str, by: &str) -> String {
    let is = |byte: u8, form: u8| match form {
        b'd' => byte.is_ascii_digit(),
        b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        other => byte == other,
    };
    let mut replaced = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let has_form = rest.len() >= form.len() && rest.bytes().zip(form.bytes()).all(|(byte, form)| is(byte, form));
        if has_form {
            replaced += by;
            rest = &rest[form.len()..];
        } else {
            let next = rest.chars().next().map_or(1, char::len_utf8);
            replaced += &rest[..next];
            rest = &rest[next..];
        }
    }
    replaced
}
