//! The devices of ResourceClaims.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Cast, config, histories, holds, node, pod};

fn cast() -> Cast {
    let request = json!({"name": "r", "exactly": {"deviceClassName": "c", "count": 1, "allocationMode": "ExactCount"}});
    let claim = |revision: &str, status: Value| json!({"metadata": {"resourceVersion": revision}, "spec": {"devices": {"requests": [request]}}, "status": status});
    let has = |device: &str| {
        let result = json!({"request": "r", "driver": "d", "pool": "n0", "device": device});
        json!({"allocation": {"devices": {"results": [result]}}, "reservedFor": []})
    };
    let mut claims: Vec<Value> = ["1", "5"].iter().map(|revision| claim(revision, json!({}))).collect();
    claims.extend([
        claim("7", has("0")),
        claim("x", has("1")),
        json!({"spec": {"devices": {"requests": [{"name": "r"}]}}}),
    ]);
    let slice = |node: &str, generation: i64, devices: &[&str]| {
        let devices: Vec<Value> = devices.iter().map(|name| json!({ "name": name })).collect();
        let pool = json!({"name": node, "generation": generation, "resourceSliceCount": 1});
        json!({"spec": {"driver": "d", "nodeName": node, "pool": pool, "devices": devices}})
    };
    let slices = vec![
        slice("n0", 1, &["0", "1"]),
        slice("n0", 2, &["0"]),
        slice("n1", 1, &["0", "1", "1"]),
        json!({"spec": {"driver": "d", "allNodes": true, "pool": {"name": "all", "generation": 1, "resourceSliceCount": 2}, "devices": [{"name": "a"}]}}),
        json!({"spec": {"driver": "d", "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1}, "devices": []}}),
    ];
    let of = |names: &[&str]| {
        let mut form = pod(json!({}), json!({}), json!({"cpu": "100m"}));
        let claims: Vec<Value> = names.iter().map(|name| json!({"name": name, "resourceClaimName": name})).collect();
        form["spec"]["resourceClaims"] = json!(claims);
        form
    };
    Cast {
        nodes: vec![node("16", json!({}), json!({}))],
        pods: vec![of(&["c0"]), of(&["c1"]), of(&["c0", "c1"]), of(&[])],
        objects: vec![
            ("resourceclaim", "c0", claims.clone()),
            ("resourceclaim", "c1", claims),
            ("slice", "s0", slices.clone()),
            ("slice", "s1", slices),
            ("deviceclass", "c", vec![json!({"spec": {"selectors": []}})]),
        ],
        gates: Vec::new(),
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn devices_are_given_to_the_claims_that_have_them(steps in histories()) {
        holds(&cast(), &steps)?;
    }
}
