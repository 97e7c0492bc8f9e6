//! Compares what was seen with a recording: in outcomes, and in everything.

use std::collections::{BTreeMap, BTreeSet};

use koord_resource::Duration;
use serde_json::{Map, Value};

/// How two differ: in outcomes, and in everything else.
pub(crate) fn compare(case: &Value, seen: &Value) -> [Vec<String>; 2] {
    let (mut wanted, mut seen) = (case["recorded"].clone(), seen.clone());
    let mut outcomes = Vec::new();
    equals(case, &mut wanted, &mut seen, &mut outcomes);
    let unstable: Vec<Vec<String>> = ["unstable", "ignore"]
        .iter()
        .flat_map(|list| case[list].as_array().into_iter().flatten())
        .filter(|path| path[0] != "events")
        .map(|path| path.as_array().into_iter().flatten().filter_map(|part| Some(part.as_str()?.to_owned())).collect())
        .collect();
    for path in &unstable {
        for tree in [&mut wanted, &mut seen] {
            remove(tree, path);
        }
    }
    let (want, got) = (outcome(&wanted), outcome(&seen));
    let gone: BTreeSet<String> = unstable.iter().map(|path| path.join("/")).collect();
    let keys: BTreeSet<&String> = want.keys().chain(got.keys()).collect();
    for key in keys {
        let is_unstable = gone.iter().any(|gone| {
            key == gone
                || key.starts_with(&format!("{gone}/"))
                || (key.ends_with("/fate") && {
                    let (pod, field) = gone.rsplit_once('/').unwrap_or_default();
                    key.strip_suffix("/fate") == Some(pod) && matches!(field, "gone" | "terminating" | "by")
                })
        });
        let (want, got) = (want.get(key), got.get(key));
        if !is_unstable && want != got {
            outcomes.push(format!("{key}: wanted {}, got {}", shown(want), shown(got)));
        }
    }
    for word in case["mentions"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let message = seen["exit"]["message"].as_str().unwrap_or_default();
        if wanted["exit"].is_object() && !message.to_lowercase().contains(&word.to_lowercase()) {
            outcomes.push(format!("the message does not mention {word}: {message}"));
        }
    }
    // What only a process shows, and events, which the original loses.
    for tree in [&mut wanted, &mut seen] {
        if let Some(members) = tree.as_object_mut() {
            for key in ["evictedMetric", "events", "exit"] {
                members.remove(key);
            }
        }
    }
    let mut everything = Vec::new();
    diff(&wanted, &seen, "", &mut everything);
    [outcomes, everything]
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

/// Where equals are picked at random, only their number is compared; they are taken out of both.
fn equals(case: &Value, wanted: &mut Value, seen: &mut Value, outcomes: &mut Vec<String>) {
    let mut chosen = BTreeSet::new();
    for (pattern, counts) in case["alternatives"]["evicted"].as_object().into_iter().flatten() {
        let pods = [&*wanted, &*seen].into_iter().flat_map(|tree| tree["pods"].as_object().into_iter().flatten());
        let names: BTreeSet<String> =
            pods.map(|(name, _)| name.clone()).filter(|name| matches(pattern, name)).collect();
        let evicted = |name: &&String| {
            let fate = fate(&seen["pods"][name.as_str()]);
            !matches!(fate.as_str(), "kept" | "gone" | "terminating")
                || seen["jobs"].get(format!("for {name}")).is_some()
        };
        let count = names.iter().filter(evicted).count();
        let is_one = |wanted: &Value| wanted.as_u64() == u64::try_from(count).ok();
        let is_right = counts.as_array().map_or_else(|| is_one(counts), |counts| counts.iter().any(is_one));
        if !is_right {
            outcomes.push(format!("{pattern}: wanted {counts} to be evicted, got {count}"));
        }
        chosen.extend(names);
    }
    for tree in [wanted, seen] {
        for name in &chosen {
            if let Some(pods) = tree["pods"].as_object_mut() {
                pods.remove(name);
            }
            for section in ["jobs", "reservations"] {
                if let Some(objects) = tree[section].as_object_mut() {
                    objects.retain(|key, _| *key != format!("for {name}") && !key.ends_with(&format!(" for {name}")));
                }
            }
        }
    }
}

/// Whether a name has a pattern with `*` and sets such as `[ab]`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.chars().next() {
        None => name.is_empty(),
        Some('*') => {
            (0..=name.len()).filter(|at| name.is_char_boundary(*at)).any(|at| matches(&pattern[1..], &name[at..]))
        }
        Some('?') => name.chars().next().is_some_and(|first| matches(&pattern[1..], &name[first.len_utf8()..])),
        Some('[') => {
            let (set, rest) = pattern[1..].split_once(']').unwrap_or((&pattern[1..], ""));
            let Some(first) = name.chars().next() else { return false };
            is_in_set(set, first) && matches(rest, &name[first.len_utf8()..])
        }
        Some(first) => name.strip_prefix(first).is_some_and(|rest| matches(&pattern[first.len_utf8()..], rest)),
    }
}

fn is_in_set(set: &str, wanted: char) -> bool {
    let characters: Vec<char> = set.chars().collect();
    let mut at = 0;
    while let Some(first) = characters.get(at) {
        if let (Some('-'), Some(last)) = (characters.get(at + 1), characters.get(at + 2)) {
            if (*first..=*last).contains(&wanted) {
                return true;
            }
            at += 3;
        } else if *first == wanted {
            return true;
        } else {
            at += 1;
        }
    }
    false
}

fn remove(tree: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(tree, |value, key| value.get_mut(key));
    if let Some(members) = parent.and_then(Value::as_object_mut) {
        members.remove(last);
    }
}

/// In one word what became of a pod.
fn fate(pod: &Value) -> String {
    let state = if pod["gone"] == true {
        "gone"
    } else if pod["terminating"] == true {
        "terminating"
    } else {
        "kept"
    };
    let by = pod["by"].as_str().filter(|by| *by != "step").map(|by| format!(" by {by}")).unwrap_or_default();
    let is_asked = pod["annotations"].get("scheduling.koordinator.sh/soft-eviction").is_some();
    format!("{state}{by}{}", if is_asked { ", asked to leave" } else { "" })
}

/// What matters of what became of everything.
fn outcome(tree: &Value) -> BTreeMap<String, Value> {
    let mut outcome = BTreeMap::new();
    let objects = |section: &str| tree[section].as_object().cloned().unwrap_or_default();
    let mut add = |key: String, value: &Value| {
        if !value.is_null() {
            outcome.insert(key, value.clone());
        }
    };
    for (name, pod) in objects("pods") {
        add(format!("pods/{name}/fate"), &fate(&pod).into());
        add(format!("pods/{name}/cost"), &pod["annotations"]["controller.kubernetes.io/pod-deletion-cost"]);
    }
    let existence = |object: &Value| Value::from(if object["deleted"] == true { "deleted" } else { "exists" });
    for (name, job) in objects("jobs") {
        let (status, spec) = (&job["status"], &job["spec"]);
        add(format!("jobs/{name}"), &existence(&job));
        for field in ["phase", "reason", "nodeName"] {
            add(format!("jobs/{name}/{field}"), &status[field]);
        }
        add(format!("jobs/{name}/mode"), &spec["mode"]);
        add(format!("jobs/{name}/ttl"), &duration(&spec["ttl"]));
        add(format!("jobs/{name}/passed"), &job["annotations"]["descheduler.koordinator.sh/passed-arbitration"]);
    }
    for (name, reservation) in objects("reservations") {
        add(format!("reservations/{name}"), &existence(&reservation));
        if reservation["generated"] == true {
            for field in ["owners", "allocateOnce", "ttl"] {
                add(format!("reservations/{name}/{field}"), &duration(&reservation["spec"][field]));
            }
        }
    }
    for (name, node) in objects("nodes") {
        add(format!("nodes/{name}/unschedulable"), &node["unschedulable"]);
    }
    for key in ["order", "jobOrder", "started"] {
        add(key.to_owned(), &tree[key]);
    }
    add("exit/code".to_owned(), &tree["exit"]["code"]);
    outcome
}

/// The nanoseconds of a duration, so that `5m` equals `5m0s`; anything else as it is.
fn duration(value: &Value) -> Value {
    let parsed = value.as_str().and_then(|text| text.parse::<Duration>().ok());
    parsed.map_or_else(|| value.clone(), |duration| duration.to_string().into())
}

/// JSON in texts by its value.
fn opened(value: &Value) -> Value {
    match value.as_str().filter(|text| text.starts_with(['{', '['])) {
        Some(text) => serde_json::from_str(text).unwrap_or_else(|_| value.clone()),
        None => value.clone(),
    }
}

fn diff(wanted: &Value, got: &Value, path: &str, found: &mut Vec<String>) {
    let (wanted, got) = (opened(wanted), opened(got));
    let is_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    match (&wanted, &got) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let none = Value::Null;
            let of = |members: &Map<String, Value>, key: &String| members.get(key).unwrap_or(&none).clone();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                diff(&of(one, key), &of(other, key), &path, found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                diff(one, other, &format!("{path}[{index}]"), found);
            }
        }
        _ if wanted == got || (is_nothing(&wanted) && is_nothing(&got)) => {}
        _ if matches!(path.rsplit('.').next(), Some("ttl" | "duration")) && duration(&wanted) == duration(&got) => {}
        _ => found.push(format!("{path}: wanted {wanted}, got {got}")),
    }
}
