//! What the original's controllers did in recorded situations, and ours, on the embedded API server's core.
//!
//! Each line of `tests/data/manager/*.jsonl` is a situation: objects that are there, what people do then, and how the
//! watched objects look afterwards. Further recordings are played where the folder that `KOORD_SHARED` names, or
//! `../shared` beside the repository, has them.

use std::{collections::BTreeSet, fs, path::PathBuf, time::Duration};

use jiff::SignedDuration;
use koord_manager_controllers::colocationprofile;
use koord_program::flags::span;
use koord_resource::Quantity;
use serde_json::{Value, json};

use crate::stage::{START, Stage, paths};

/// Recordings with which we differ on purpose; each has its row in docs/reference/divergences.md.
pub(crate) const DIVERGENCES: &[&str] = &[
    // A strategy for some nodes that names no bandwidth inherits it; the original sets it to 0.
    "nodeslo/system-node",
    // Batch amounts of zones become 0 when those of the node go; the original leaves them as they were.
    "noderesource/numa-degrade",
    // An annotation of the node that is read takes effect at once; in the original with the next change of something else.
    "nodemetric/annotate",
    "nodeslo/node-annotate",
];

/// The object with `$now`, `$now-20m` and `$now+10m` replaced by times.
pub(crate) fn timed(object: &Value) -> Value {
    match object {
        Value::String(text) => match text.strip_prefix("$now") {
            Some("") => START.to_string().into(),
            Some(offset) => {
                let minutes: i64 = offset.trim_end_matches('m').parse().unwrap();
                (START + SignedDuration::from_mins(minutes)).to_string().into()
            }
            None => object.clone(),
        },
        Value::Array(items) => items.iter().map(timed).collect(),
        Value::Object(map) => Value::Object(map.iter().map(|(key, value)| (key.clone(), timed(value))).collect()),
        other => other.clone(),
    }
}

/// Nulls and empty objects say nothing, and quantities are equal by value.
fn meaning(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| (key.clone(), meaning(value)));
            Value::Object(entries.filter(|(_, value)| !value.is_null() && *value != json!({})).collect())
        }
        Value::Array(items) => items.iter().map(meaning).collect(),
        Value::String(text) => {
            text.parse::<Quantity>().map_or_else(|_| value.clone(), |quantity| quantity.nano_value().to_string().into())
        }
        Value::Number(number) => number.to_string().into(),
        other => other.clone(),
    }
}

/// The cluster of a recording, with a manager that has not started yet.
pub(crate) fn asleep(case: &Value) -> Stage {
    let flags: Vec<&str> = case["flags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    Stage::asleep(case["featureGates"].as_str().unwrap_or_default(), profiles(&flags))
}

/// Does what people do in a recording; `between` comes after each step.
pub(crate) fn act(stage: &mut Stage, case: &Value, between: fn(&mut Stage)) {
    for object in timed(&case["given"]).as_array().unwrap() {
        stage.put(object);
        between(stage);
    }
    for step in timed(&case["then"]).as_array().unwrap() {
        match step["op"].as_str().unwrap() {
            "create" | "update" => stage.put(&step["object"]),
            "delete" => {
                stage.send("DELETE", &paths(&step["object"]).1, &json!({}));
            }
            "patch" => {
                let subresource = step["subresource"].as_str().map(|name| format!("/{name}")).unwrap_or_default();
                let path = format!("{}{subresource}", paths(&step["ref"]).1);
                stage.send("PATCH", &path, &step["patch"]);
            }
            "wait" => stage.pass(Duration::from_secs_f64(step["waitSeconds"].as_f64().unwrap())),
            other => panic!("unknown step {other}"),
        }
        between(stage);
    }
    stage.pass(Duration::from_secs_f64(case["minSeconds"].as_f64().unwrap_or_default()));
    between(stage);
}

fn play(case: &Value) -> Result<(), String> {
    let mut stage = asleep(case);
    stage.settle();
    act(&mut stage, case, Stage::settle);
    let watched = case["watch"].as_array().unwrap();
    let found: Value = watched.iter().map(|watched| stage.observe(watched)).collect();
    let (expected, found) = (meaning(&case["recorded"]), meaning(&found));
    if expected == found { Ok(()) } else { Err(format!("recorded {expected}\n     found {found}")) }
}

/// The flags of recordings that concern the colocationprofile controller.
fn profiles(flags: &[&str]) -> colocationprofile::Settings {
    let mut settings = colocationprofile::Settings::default();
    for flag in flags.iter().filter_map(|flag| flag.strip_prefix("--colocation-profile-")) {
        let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
        match name {
            "reconcile-by-default" => settings.by_default = value.parse().unwrap(),
            "reconcile-interval" => settings.interval = span(value).unwrap(),
            "force-update-pod-duration" => settings.force_after = span(value).unwrap(),
            "expire-pod-cache-duration" => settings.forget_every = span(value).unwrap(),
            "update-pod-qps" => settings.per_second = value.parse().unwrap(),
            "update-pod-qps-burst" => settings.burst = value.parse().unwrap(),
            other => panic!("unknown flag {other}"),
        }
    }
    settings
}

pub(crate) fn recordings(group: &str) -> Vec<Value> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    let own = fs::read_to_string(root.join(format!("tests/data/manager/{group}.jsonl"))).unwrap();
    let mut cases: Vec<Value> = own.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shared = std::env::var_os("KOORD_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    let known: BTreeSet<String> = cases.iter().map(|case| case["name"].to_string()).collect();
    let files = fs::read_dir(shared.join("corpus/manager/cases").join(group)).into_iter().flatten();
    let mut further: Vec<Value> = files
        .map(|file| serde_json::from_str(&fs::read_to_string(file.unwrap().path()).unwrap()).unwrap())
        .filter(|case: &Value| !known.contains(&case["name"].to_string()))
        .collect();
    cases.append(&mut further);
    cases
}

fn play_all(group: &str) {
    let cases = recordings(group);
    let mut failures = Vec::new();
    for case in &cases {
        let name = format!("{group}/{}", case["name"].as_str().unwrap());
        let expected_to_differ = DIVERGENCES.contains(&name.as_str());
        match play(case) {
            Ok(()) if expected_to_differ => failures.push(format!("{name}: no longer differs; strike it off the list")),
            Err(difference) if !expected_to_differ => {
                failures.push(format!("{name} ({}):\n  {difference}", case["about"].as_str().unwrap_or_default()));
            }
            _ => {}
        }
    }
    println!("{group}: {} recordings, {} with which we differ by mistake", cases.len(), failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn nodeslo_does_what_the_original_did() {
    play_all("nodeslo");
}

#[test]
fn nodemetric_does_what_the_original_did() {
    play_all("nodemetric");
}

#[test]
fn noderesource_does_what_the_original_did() {
    play_all("noderesource");
}

#[test]
fn quotaprofile_does_what_the_original_did() {
    play_all("quota-profile");
}

#[test]
fn colocationprofile_does_what_the_original_did() {
    play_all("colocation-profile");
}

#[test]
fn a_profile_with_a_bad_selector_is_told() {
    let mut stage = Stage::new("");
    stage.put(&json!({
        "apiVersion": "quota.koordinator.sh/v1alpha1", "kind": "ElasticQuotaProfile",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"quotaName": "q", "nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Nope"}]}},
    }));
    stage.settle();
    assert_eq!(stage.reasons("p"), ["InvalidNodeSelector"]);
}
