use std::collections::BTreeSet;

use super::*;

/// Texts that are no value of most keys, or not the one that was meant.
const TEXTS: [&str; 10] = [
    "",
    "x",
    "-1",
    "99999999999999999999",
    "{",
    "{\"a\":[]}",
    "[null]",
    r#"[{"name":"n1","node":-1,"resources":{"cpu":"x"}}]"#,
    r#"{"gpu":[{"minor":-9,"resources":{"koordinator.sh/gpu-core":"1e400"}}]}"#,
    "true\u{0}",
];

/// Members that objects lose or get.
fn patches() -> [Value; 6] {
    [
        json!({"spec": null}),
        json!({"status": null}),
        json!({"spec": {}, "status": {}}),
        json!({"metadata": {"labels": null, "annotations": null, "uid": null}}),
        json!({"metadata": {"deletionTimestamp": "2026-01-02T03:04:04Z", "finalizers": ["example.com/stays"]}}),
        json!({"metadata": {"name": "", "namespace": ""}}),
    ]
}

/// Of the cluster, all but those who have nothing to do with the others.
fn odd(change: impl Fn(&mut Value)) -> Vec<Value> {
    let mut objects = cluster();
    let others = objects.len() - BYSTANDERS;
    objects[..others].iter_mut().for_each(change);
    objects
}

#[test]
fn every_key_of_all_objects_may_say_what_makes_no_sense() {
    for key in keys() {
        for text in TEXTS {
            for switches in [&*switches::SHIPPED, &*switches::ALL_ON] {
                holds(odd(|object| says(object, key, text)), switches);
            }
        }
    }
}

#[test]
fn every_object_may_lack_what_others_have() {
    let others = cluster().len() - BYSTANDERS;
    for index in 0..others {
        for patch in patches() {
            for switches in [&*switches::SHIPPED, &*switches::ALL_ON] {
                let mut objects = cluster();
                objects[index] = patch::merge::apply(objects[index].take(), &patch);
                holds(objects, switches);
            }
        }
    }
}

#[test]
fn the_cluster_has_an_object_of_every_kind_that_is_read_and_all_can_be_read() {
    let kinds: BTreeSet<String> = cluster()
        .iter()
        .map(|object| format!("{} {}", object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap()))
        .collect();
    for switches in [&*switches::SHIPPED, &*switches::ALL_ON] {
        let engine = engine(cluster(), switches).expect("all of it can be read");
        for kind in engine.reads().kinds.keys() {
            let kind = format!("{} {}", kind.api_version(), kind.kind);
            assert!(kinds.contains(&kind), "no object of {kind}");
        }
        assert_eq!(engine.cluster().rows().count(), 2);
    }
}

/// What is switched on reaches readers that nothing else does.
#[test]
fn everything_is_switched_on() {
    let effective = switches::ALL_ON.configuration.effective().unwrap();
    let shipped = switches::SHIPPED.configuration.effective().unwrap();
    let args = |of: &Value, plugin: &str| {
        let configs = of["profiles"][0]["pluginConfig"].as_array().unwrap();
        configs.iter().find(|config| config["name"] == plugin).unwrap()["args"].clone()
    };
    for (plugin, name) in [
        ("Coscheduling", "awareNetworkTopology"),
        ("Coscheduling", "enablePreemption"),
        ("LoadAwareScheduling", "allowCustomizeEstimation"),
        ("LoadAwareScheduling", "usageThresholds"),
        ("LoadAwareScheduling", "aggregated"),
        ("Reservation", "enablePreemption"),
        ("ElasticQuota", "enableQueueHint"),
        ("ElasticQuota", "monitorAllQuotas"),
    ] {
        assert_ne!(args(&effective, plugin)[name], args(&shipped, plugin)[name], "{plugin}: {name}");
    }
    for gate in ["DevicePluginAdaption", "MultiQuotaTree", "ReplaceResourcesTransformer", "ResizePod"] {
        assert!(switches::ALL_ON.gates.enabled(gate) && !switches::SHIPPED.gates.enabled(gate), "{gate}");
    }
}
