//! Jobs that say what makes no sense: they do not stop the others.

use jiff::SignedDuration;
use koord_config::arguments;
use koord_runtime::random::Random;
use serde_json::{Value, json};

use super::stage::Stage;

const GOOD: usize = 5;

/// The fields of a job, as paths.
const FIELDS: [&str; 21] = [
    "metadata/annotations",
    "metadata/annotations/descheduler.koordinator.sh~1passed-arbitration",
    "metadata/annotations/koordinator.sh~1evict-reason",
    "metadata/labels",
    "metadata/labels/koordinator.sh~1evict-policy",
    "metadata/creationTimestamp",
    "metadata/uid",
    "spec",
    "spec/podRef",
    "spec/podRef/name",
    "spec/podRef/uid",
    "spec/ttl",
    "spec/mode",
    "spec/paused",
    "spec/deleteOptions",
    "spec/reservationOptions",
    "spec/reservationOptions/template",
    "spec/reservationOptions/reservationRef",
    "status",
    "status/phase",
    "status/conditions",
];

/// What fields become.
fn values() -> Vec<Value> {
    let long = "x".repeat(70_000);
    vec![
        Value::Null,
        json!(""),
        json!(-1),
        json!(9_223_372_036_854_775_807_i64),
        json!(1e300),
        json!(true),
        json!([]),
        json!([null]),
        json!({}),
        json!({"a": [{"b": null}]}),
        json!("-5m"),
        json!("9999999h"),
        json!("Running"),
        json!("Nonsense"),
        json!("good-0"),
        json!({"namespace": "default", "name": "good-0"}),
        json!({"name": "$uid(PodMigrationJob good-0)"}),
        json!({"spec": {"containers": "none"}, "metadata": []}),
        json!([{"type": "Eviction", "status": "True"}, {"type": 5}, "x"]),
        json!("2026-13-45T00:00:00Z"),
        json!(long),
    ]
}

/// Sets a member, whatever is in its way.
fn set(object: &mut Value, path: &str, value: &Value) {
    let mut at = object;
    for part in path.split('/').map(|part| part.replace("~1", "/")) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[part];
    }
    *at = value.clone();
}

fn job(name: &str, mode: &str) -> Value {
    let reference = json!({"namespace": "default", "name": name});
    json!({"kind": "PodMigrationJob", "metadata": {"name": name}, "spec": {"mode": mode, "podRef": reference, "ttl": "5m"}})
}

fn pod(name: &str) -> Value {
    let grace = json!({"spec": {"terminationGracePeriodSeconds": 0}});
    koord_descheduler_testing::with(&koord_descheduler_testing::pod(name, "n1"), &grace)
}

/// Some good jobs beside one that has these changes: all good ones end, and their pods are evicted once.
fn good_jobs_end_beside(changes: &[(&str, Value)]) {
    let mut stage = Stage::new(arguments(&json!({})).unwrap(), false);
    let names: Vec<String> = (0..GOOD).map(|number| format!("good-{number}")).collect();
    for name in names.iter().map(String::as_str).chain(["hostile"]) {
        stage.create(pod(name));
    }
    let (before, after) = names.split_at(2);
    for name in before {
        stage.create(job(name, "EvictDirectly"));
    }
    let mut hostile = job("hostile", "ReservationFirst");
    for (path, value) in changes {
        set(&mut hostile, path, value);
    }
    stage.put(("PodMigrationJob", "hostile"), hostile);
    for name in after {
        stage.create(job(name, "EvictDirectly"));
    }
    stage.start();
    stage.pass(SignedDuration::from_mins(5));
    let world = stage.world.lock();
    for name in &names {
        let key = ("PodMigrationJob".to_owned(), String::new(), name.clone());
        let phase = world.objects.get(&key).map(|job| job["status"]["phase"].clone());
        assert_eq!(phase, Some(json!("Succeeded")), "{name} beside {changes:?}");
        let evictions = world.evictions.get(&format!("$uid(Pod/default/{name})"));
        assert_eq!(evictions, Some(&1), "{name} beside {changes:?}");
    }
}

#[test]
fn every_field_of_a_job_may_have_any_value() {
    for path in FIELDS {
        for value in values() {
            good_jobs_end_beside(&[(path, value)]);
        }
    }
}

#[test]
fn several_fields_of_a_job_may_have_any_value() {
    let (random, values) = (Random::seeded(34), values());
    let pick = |count: usize| usize::try_from(random.number() % count as u64).unwrap();
    for _ in 0..100 {
        let changes: Vec<(&str, Value)> =
            (0..=pick(4)).map(|_| (FIELDS[pick(FIELDS.len())], values[pick(values.len())].clone())).collect();
        good_jobs_end_beside(&changes);
    }
}
