//! What children cost: memory of ten thousand parents with four children each, and the time of a decision that changes nothing.
//!
//! `cargo bench -p koord-core --bench children` prints both.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

use std::{fs, hint::black_box, sync::Arc, time::Instant};

use koord_core::{
    child::Child,
    intern::Interner,
    key::ObjectKey,
    outcome::Outcome,
    panics::PanicGuard,
    projection::{DecodeError, MetadataOnly, Projection},
    store::{Sink as _, Store},
};
use koord_resource::{
    controller::ResourceKind,
    k8s_openapi::api::{apps::v1::StatefulSet, core::v1::ConfigMap, core::v1::Secret, core::v1::Service},
};
use serde::Serialize;
use serde_json::{Value, json};

const PARENTS: usize = 10_000;
const MANAGER: &str = "bench";

#[derive(PartialEq)]
struct Parent;

impl Projection for Parent {
    const KIND: ResourceKind = ResourceKind::POD;
    type Wire<'a> = MetadataOnly<'a>;
    type Index = ();

    fn project(_: Self::Wire<'_>, _: &mut Interner) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Arc<T> {
    Arc::new(serde_json::from_str(text).unwrap())
}

fn text(object: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(object).unwrap()
}

fn typed<T: serde::de::DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}

fn declared(name: &str) -> [Value; 4] {
    let labels = json!({"app": "cache", "cache": name});
    [
        json!({
            "metadata": {"labels": labels},
            "spec": {
                "replicas": 3, "serviceName": name, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{
                        "name": "cache", "image": "cache:7", "args": ["--port", "6379"],
                        "ports": [{"name": "cache", "containerPort": 6379, "protocol": "TCP"}],
                        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}},
                    }]},
                },
            },
        }),
        json!({"metadata": {"labels": labels}, "spec": {"selector": labels, "ports": [{"name": "cache", "port": 6379, "protocol": "TCP"}]}}),
        json!({"metadata": {"labels": labels}, "data": {"cache.conf": "maxmemory 2gb\nappendonly yes\n"}}),
        json!({"metadata": {"labels": labels}, "data": {"password": "c2VjcmV0"}}),
    ]
}

/// The fields of a value as `managedFields` records them; lists of objects are keyed by what the API says.
fn fields(value: &Value) -> Value {
    let Value::Object(members) = value else { return json!({}) };
    let below = members.iter().map(|(name, member)| {
        let below = match (name.as_str(), member) {
            ("containers", Value::Array(items)) => keyed(items, &["name"]),
            ("ports", Value::Array(items)) if items[0].get("containerPort").is_some() => {
                keyed(items, &["containerPort", "protocol"])
            }
            ("ports", Value::Array(items)) => keyed(items, &["port", "protocol"]),
            ("ownerReferences", Value::Array(items)) => json!({format!("k:{{\"uid\":{}}}", items[0]["uid"]): {}}),
            ("selector", _) => json!({}),
            _ => fields(member),
        };
        (format!("f:{name}"), below)
    });
    Value::Object(below.collect())
}

fn keyed(items: &[Value], keys: &[&str]) -> Value {
    let items = items.iter().map(|item| {
        let key: serde_json::Map<String, Value> =
            keys.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect();
        (format!("k:{}", Value::Object(key)), fields(item))
    });
    Value::Object(items.collect())
}

/// The object as the API server shows it to a watch, with what it filled in.
fn stored(name: &str, number: usize, declared: &Value) -> String {
    let owner = json!({
        "apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid(number), "controller": true, "blockOwnerDeletion": true,
    });
    let mut object = declared.clone();
    object["metadata"]["ownerReferences"] = json!([owner]);
    let ours = fields(&object);
    let metadata = json!({
        "name": name, "namespace": "ns", "uid": uid(number + PARENTS), "resourceVersion": (number + 1).to_string(), "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [
            {"manager": MANAGER, "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": ours},
            {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:replicas": {}}}, "subresource": "status"},
        ],
    });
    for (member, value) in metadata.as_object().unwrap() {
        object["metadata"][member] = value.clone();
    }
    object["status"] = json!({"replicas": 3, "readyReplicas": 3, "currentRevision": "x-7f9", "collisionCount": 0});
    object.to_string()
}

fn uid(number: usize) -> String {
    format!("6f1c2d3e-0000-4000-8000-{number:012x}")
}

fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn store<P: Projection>() -> Store<P> {
    Store::of_program(MANAGER, PanicGuard::default())
}

fn main() {
    let before = resident();
    let parents = store::<Parent>();
    let (sets, services) = (store::<Child<StatefulSet>>(), store::<Child<Service>>());
    let (maps, secrets) = (store::<Child<ConfigMap>>(), store::<Child<Secret>>());
    let name = |number: usize| format!("cache-{number:05}");
    let start = Instant::now();
    for number in 0..PARENTS {
        let name = name(number);
        let parent = json!({"metadata": {"name": name, "namespace": "ns", "uid": uid(number), "resourceVersion": "1"}});
        parents.upsert(&parent.to_string()).unwrap();
        let [set, service, map, secret] = declared(&name).map(|object| stored(&name, number, &object));
        sets.upsert(&set).unwrap();
        services.upsert(&service).unwrap();
        maps.upsert(&map).unwrap();
        secrets.upsert(&secret).unwrap();
    }
    println!(
        "{PARENTS} parents with 4 children each: {:.1} MB, {:.1} s to make and read their JSON",
        (resident() - before) as f64 / 1e6,
        start.elapsed().as_secs_f64()
    );

    let before = resident();
    let whole: Vec<_> = (0..PARENTS)
        .map(|number| {
            let name = name(number);
            let [set, service, map, secret] = declared(&name).map(|object| stored(&name, number, &object));
            (read::<StatefulSet>(&set), read::<Service>(&service), read::<ConfigMap>(&map), read::<Secret>(&secret))
        })
        .collect();
    println!(
        "the children as whole typed objects, as reflectors of kube-rs keep them: {:.1} MB",
        (resident() - before) as f64 / 1e6
    );
    drop(black_box(whole));

    let typed: Vec<_> = (0..PARENTS)
        .map(|number| {
            let name = name(number);
            let [set, service, map, secret] = declared(&name);
            (
                ObjectKey::new("ns", &name),
                typed::<StatefulSet>(&set),
                typed::<Service>(&service),
                typed::<ConfigMap>(&map),
                typed::<Secret>(&secret),
            )
        })
        .collect();
    for round in ["first decisions", "later decisions"] {
        let start = Instant::now();
        for (key, set, service, map, secret) in &typed {
            let parents = parents.read();
            let mut outcome = Outcome::of(key, parents.get(key.as_str()).unwrap());
            outcome.apply(&sets.read(), key, set).unwrap();
            outcome.apply(&services.read(), key, service).unwrap();
            outcome.apply(&maps.read(), key, map).unwrap();
            outcome.apply(&secrets.read(), key, secret).unwrap();
            assert!(outcome.plan.is_empty(), "{}", outcome.plan[0]);
            black_box(outcome);
        }
        println!(
            "{round}: {:.1} µs each, four children that are as declared",
            start.elapsed().as_secs_f64() * 1e6 / PARENTS as f64
        );
    }
    let start = Instant::now();
    for (_, set, service, map, secret) in &typed {
        let length = |text: Vec<u8>| black_box(text).len();
        black_box(length(text(set)) + length(text(service)) + length(text(map)) + length(text(secret)));
    }
    println!(
        "of which serde_json writes the declarations: {:.1} µs",
        start.elapsed().as_secs_f64() * 1e6 / PARENTS as f64
    );
}
